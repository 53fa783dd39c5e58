/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails when it is told to, under SQLite: a VFS in front of the system's, for every
 * database that is opened after it was installed. Writes and syncs are counted over all files;
 * shared memory is not touched. Any thread. */
#ifndef WPK_TESTS_SIM_FAULTY_VFS_H
#define WPK_TESTS_SIM_FAULTY_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers count from the moment at which this is set; 0: never. */
struct wpk_faults {
    uint64_t write_fails; /* this write, as a full disk does */
    uint64_t sync_fails;  /* this sync, as a broken disk does */
    bool lasting;         /* and all after it */
    uint64_t dies_before; /* the process ends at this operation, as kill -9 does */
    uint64_t dies_after;  /* likewise, when it is done */
    uint32_t sync_ms;     /* every sync takes so much longer */
    bool reads_fail;      /* every read, as from a broken disk; may be set while others read */
};

#define WPK_FAULT_EXIT 137 /* status of a process that died so */

struct wpk_fault_counts {
    uint64_t writes;
    uint64_t syncs;
    uint64_t failures;
};

/* Make it SQLite's default; once, before a database is opened. */
void wpk_faulty_vfs_install(void);
void wpk_faulty_vfs_set(const struct wpk_faults *faults);
/* Since the last set. */
struct wpk_fault_counts wpk_faulty_vfs_counts(void);

#endif
