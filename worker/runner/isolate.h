/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the network away from this process and from all processes that it will start. */
#ifndef WPK_WORKER_RUNNER_ISOLATE_H
#define WPK_WORKER_RUNNER_ISOLATE_H

#include <stdbool.h>

/* Refuse the system call `socket` with EACCES from now on, for local sockets too, and enter a new
 * network namespace where the system permits it. Open descriptors stay open, and socketpair works.
 * Returns false on failure: the caller must then not run untrusted code. */
bool wpk_isolate_from_network(void);

#endif
