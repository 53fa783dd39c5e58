/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails when it is told to: SQLite writes through these instead of the C library's. */
#ifndef WPK_TESTS_SIM_SIM_DISK_H
#define WPK_TESTS_SIM_SIM_DISK_H

#include <stdbool.h>

/* After `writes` more, every write fails with `error`, the first of them half done; as do syncs. */
void wpk_sim_disk_break(long writes, int error);
void wpk_sim_disk_mend(void);
/* Has a write failed since it was told to break? */
bool wpk_sim_disk_failed(void);

#endif
