/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a table with the cases to compare; the rows are not measured yet. */
#ifndef WPK_BENCH_CASES_H
#define WPK_BENCH_CASES_H

#include "bench/table.h"

/* The operators, and which of them are wanted. */
struct bench_selection {
    const struct bench_ops *ops;
    const char *only; /* names of operators, separated by commas; NULL: all */
};

/* Add each operator, with peers alone.
 *
 *   errors  WPK_ENOSPC  more than BENCH_ROWS_MAX
 */
wpk_err bench_cases_add_all(struct bench_table *table, const struct bench_selection *selection,
                            enum bench_layouts layouts, int threads);

/* Add the rows of a file: [{"op": NAME, "layouts": "any"|"fixed", "threads": N,
 * "kernel": PATH, "served": PATH}, ...]; the two paths are optional.
 *
 *   errors  those of wpk_fs_read and wpk_json_open; WPK_ENOENT an operator that is not in `ops`;
 *           WPK_ENOSPC
 */
wpk_err bench_cases_read(struct bench_table *table, const struct bench_selection *selection,
                         const char *path, struct wpk_diag *diag);

/* Add the rows of a file that `wpkctl tune --json` printed. `source` is LAYOUTS:THREADS:PATH, such
 * as any:1:bench/tuned/any-1-seed1.json. A kernel that the vendor provides is `served`, not ours.
 *
 *   errors  those of bench_cases_read; WPK_EINVAL  `source` is not of that form
 */
wpk_err bench_cases_read_tuned(struct bench_table *table, const struct bench_selection *selection,
                               const char *source, struct wpk_diag *diag);

#endif
