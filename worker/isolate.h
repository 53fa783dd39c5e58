/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the network away from this process and all that it will start. */
#ifndef WPK_WORKER_ISOLATE_H
#define WPK_WORKER_ISOLATE_H

#include <stdbool.h>

/* A network namespace of its own where the system permits it, and everywhere `socket` refused with
 * EACCES for all but local sockets. Descriptors that are open stay. False when neither worked. */
bool wpk_isolate_from_network(void);

#endif
