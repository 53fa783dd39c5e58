/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be compared: fills a table with rows that are not yet measured. */
#ifndef WPK_BENCH_CASES_H
#define WPK_BENCH_CASES_H

#include "bench/table.h"

/* Where rows come from and which are wanted. */
struct bench_selection {
    const struct bench_ops *ops;
    const char *only; /* NULL: all; else names of operators with commas between */
};

/* Each operator, peers alone.
 *
 *   errors  WPK_ENOSPC  more than BENCH_ROWS_MAX
 */
WPK_MUST_CHECK wpk_err bench_cases_add_all(struct bench_table *table,
                                           const struct bench_selection *selection,
                                           enum bench_layouts layouts, int threads);

/* From a file: [{"op": NAME, "layouts": "any"|"fixed", "threads": N, "kernel": PATH,
 * "served": PATH}, ...]; the two paths are optional.
 *
 *   errors  of reading; WPK_ENOENT an operator that is not in `ops`; WPK_ENOSPC
 */
WPK_MUST_CHECK wpk_err bench_cases_read(struct bench_table *table,
                                        const struct bench_selection *selection, const char *path,
                                        struct wpk_diag *diag);

/* From what `wpkctl tune --json` printed, saved to a file and named LAYOUTS:THREADS:PATH, such as
 * any:1:bench/tuned/any-1-seed1.json. A kernel that the vendor provides is `served`, not ours.
 *
 *   errors  as above; WPK_EINVAL  not of that form
 */
WPK_MUST_CHECK wpk_err bench_cases_read_tuned(struct bench_table *table,
                                              const struct bench_selection *selection,
                                              const char *source, struct wpk_diag *diag);

#endif
