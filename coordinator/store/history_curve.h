/* SPDX-License-Identifier: Apache-2.0 */
/* How searches converge and how their asks end: sums that are written with each result, so that a
 * page about a search of a million asks reads some hundred rows. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_CURVE_H
#define WPK_COORDINATOR_STORE_HISTORY_CURVE_H

#include "coordinator/state/model.h"
#include "coordinator/store/store.h"

#define WPK_CURVE_BUCKETS_MAX 464     /* of a search: numbers of asks have 32 bits */
#define WPK_CURVE_BUCKETS_MILLION 272 /* of these, with 2^20 asks */

/* The bucket of an ask's number (schema.sql), below WPK_CURVE_BUCKETS_MAX. */
uint32_t wpk_curve_bucket(uint32_t ask);

/* The end of an ask. */
struct wpk_curve_end {
    uint64_t search_id;
    uint32_t ask;
    uint64_t trial_id;
    enum wpk_outcome outcome;
    bool censored;
    uint64_t median_ns;
};

/* Count the end of an ask, in the batch that records it: once for each ask. */
void wpk_history_count_end(struct wpk_store *store, const struct wpk_curve_end *end);

/* The best ask of a bucket, with all of the bucket's. Texts are valid during the call. */
struct wpk_curve_point {
    uint64_t ask;
    uint64_t best_ns; /* 0: none has a time */
    double at_s;      /* seconds after the search began */
    const char *candidate;
    const char *source;   /* of the candidate, as in openapi.yaml */
    const char *strategy; /* of the search */
    uint64_t ok_count;
    uint64_t failed_count;
};
typedef void (*wpk_curve_point_fn)(void *user, const struct wpk_curve_point *point);
/* Read the buckets of a search, in the order of their asks; or of other strategies' last searches
 * of its problem, one after the other. */
void wpk_history_read_curve(struct wpk_store *store, uint64_t search_id, bool of_others,
                            wpk_curve_point_fn fn, void *user);

struct wpk_curve_outcome {
    const char *outcome;
    uint64_t count;
    const char *log; /* of the last one */
};
typedef void (*wpk_curve_outcome_fn)(void *user, const struct wpk_curve_outcome *outcome);
/* Read how asks of a search ended, the commonest outcome first. */
void wpk_history_read_outcomes(struct wpk_store *store, uint64_t search_id, wpk_curve_outcome_fn fn,
                               void *user);

/* Call `fn` with the times of asks that were timed whole, of about `most` asks of a search: of all,
 * else in stretches that are evenly spaced. Returns how many asks the search has. */
typedef void (*wpk_curve_time_fn)(void *user, const char *candidate, uint64_t median_ns);
uint64_t wpk_history_sample_times(struct wpk_store *store, uint64_t search_id, uint32_t most,
                                  wpk_curve_time_fn fn, void *user);

/* The search of a job's operator; 0: none. */
uint64_t wpk_history_search_of(struct wpk_store *store, uint64_t job_number, uint32_t position);

#endif
