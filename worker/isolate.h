/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the network away from this process and all that it will start. */
#ifndef WPK_WORKER_ISOLATE_H
#define WPK_WORKER_ISOLATE_H

#include <stdbool.h>

/* `socket` is refused with EACCES from now on, for local sockets too; where the system permits it
 * the network namespace is another besides. Descriptors that are open stay, and pairs of connected
 * sockets can be made. False when it does not work: nothing that is not trusted may run then. */
bool wpk_isolate_from_network(void);

#endif
