/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails on demand, under SQLite: a VFS in front of the system's. Every database that is
 * opened after the installation uses it. Writes and syncs are counted over all files; shared memory
 * is not affected. Any thread may use it. */
#ifndef WPK_TESTS_SIM_FAULTY_VFS_H
#define WPK_TESTS_SIM_FAULTY_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* Which operations fail. Operations are numbered from 1, from the last set on; 0: never. */
struct wpk_faults {
    uint64_t write_fails; /* this write, as a full disk does */
    uint64_t sync_fails;  /* this sync, as a broken disk does */
    bool lasting;         /* all later ones fail, too */
    uint64_t dies_before; /* the process ends before this write or sync, as after kill -9 */
    uint64_t dies_after;  /* the process ends after this write or sync, as after kill -9 */
    uint32_t sync_ms;     /* every sync takes this much longer */
    bool reads_fail;      /* every read, as a broken disk does; may be set during reads */
};

#define WPK_FAULT_EXIT 137 /* exit status after dies_before and dies_after */

struct wpk_fault_counts {
    uint64_t writes;
    uint64_t syncs;
    uint64_t failures;
};

/* Make it SQLite's default VFS. Call this once, before a database is opened. */
void wpk_faulty_vfs_install(void);
/* Set the faults and reset the counts. Call this while nothing is written. */
void wpk_faulty_vfs_set(const struct wpk_faults *faults);
/* The counts since the last set. */
struct wpk_fault_counts wpk_faulty_vfs_counts(void);

#endif
