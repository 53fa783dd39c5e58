/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a store with a made-up history as large as years of work leave. It takes about a minute. */
#ifndef WPK_BENCH_FLEET_FILL_H
#define WPK_BENCH_FLEET_FILL_H

#include "coordinator/store/store.h"

/* Add `kernels` problems. Each has one search, one kernel that is served, and its share of the
 * trials; each trial has a measurement. Add nothing if the store already has that many trials.
 *   errors  those of the store */
wpk_err bench_fleet_fill(struct wpk_store *store, int64_t trials, int64_t kernels,
                         struct wpk_diag *diag);

#endif
