/* SPDX-License-Identifier: Apache-2.0 */
/* The file of bench-gate: a head line, which says what hashes depend on besides the code, then one
 * candidate a line:
 *
 *     c6 any 1 SCHEDULE OBJECT PREPARE CANDIDATE
 *
 * operator, layouts, threads, the SHA-256 of the schedule's text, of the object of the main program
 * and of the object of the prepare program (`-`: there is none), and the candidate's text. */
#ifndef WPK_BENCH_GATE_FILE_H
#define WPK_BENCH_GATE_FILE_H

#include "common/crypto.h"
#include "schema/job.h"

#define BENCH_GATE_ENTRIES_MAX 512

enum bench_gate_hash {
    BENCH_GATE_SCHEDULE,
    BENCH_GATE_OBJECT,
    BENCH_GATE_PREPARE,
    BENCH_GATE_HASH_COUNT,
};

struct bench_gate_entry {
    char op[WPK_JOB_NAME_MAX];
    char layouts[8];
    int threads;
    char expected[BENCH_GATE_HASH_COUNT][WPK_SHA256_HEX_SIZE];
    char made[BENCH_GATE_HASH_COUNT][WPK_SHA256_HEX_SIZE]; /* "": it could not be made */
    char *candidate;                                       /* owned */
    int line;
};

struct bench_gate_file {
    const char *path;
    const char *head;
    struct bench_gate_entry *entries; /* owned; [count], in memory that children share */
    int count;
};

/*   owns    caller calls bench_gate_file_fini; `path` and `head` must outlive the file
 *   errors  WPK_ENOMEM */
wpk_err bench_gate_file_init(struct bench_gate_file *file, const char *path, const char *head);
void bench_gate_file_fini(struct bench_gate_file *file);

/* Append a copy of `entry` with this candidate, and the line it will have.
 *   errors  WPK_ENOSPC BENCH_GATE_ENTRIES_MAX, WPK_ENOMEM */
wpk_err bench_gate_file_add(struct bench_gate_file *file, const struct bench_gate_entry *entry,
                            const char *candidate, size_t size);
/* Drop the entries of other operators than `only` (NULL: of none), and all but the first `count`.
 */
void bench_gate_file_select(struct bench_gate_file *file, const char *only, int count);

/* Read the entries with the hashes that are expected.
 *   errors  WPK_EMISMATCH  another head; WPK_EPARSE, WPK_ENOSPC with the line */
wpk_err bench_gate_file_read(struct bench_gate_file *file, struct wpk_diag *diag);
/* Write the entries with the hashes that were made.
 *   errors  WPK_EUNSUPPORTED  a hash could not be made; the file stays as it was */
wpk_err bench_gate_file_write(const struct bench_gate_file *file, struct wpk_diag *diag);

#endif
