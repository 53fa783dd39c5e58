/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails on demand. sim_disk.c defines pwrite64 and fdatasync, and SQLite is linked to
 * them instead of the C library's. */
#ifndef WPK_TESTS_SIM_SIM_DISK_H
#define WPK_TESTS_SIM_SIM_DISK_H

#include <stdbool.h>

/* Let `writes` more writes succeed, write half of the next one, and fail all later writes and syncs
 * with `error`. */
void wpk_sim_disk_break(long writes, int error);
void wpk_sim_disk_mend(void);
/* True if a write has failed since wpk_sim_disk_break(). */
bool wpk_sim_disk_failed(void);

#endif
