/* SPDX-License-Identifier: Apache-2.0 */
/* A history as years of work leave it, made up in a minute. */
#ifndef WPK_BENCH_FLEET_FILL_H
#define WPK_BENCH_FLEET_FILL_H

#include "coordinator/store/store.h"

/* Add problems, each with one search, one kernel that is served, and its share of the trials, each
 * with its measurement; nothing if so many trials are there already.
 *   errors  what the store says */
WPK_MUST_CHECK wpk_err bench_fleet_fill(struct wpk_store *store, int64_t trials, int64_t kernels,
                                        struct wpk_diag *diag);

#endif
