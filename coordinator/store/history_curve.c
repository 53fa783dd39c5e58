/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history_curve.h"

#include "schema/record.h"

#define STEPS_LOG2 4 /* buckets of each power of two */

uint32_t wpk_curve_bucket(uint32_t ask)
{
    uint32_t power = STEPS_LOG2;
    if (ask >> STEPS_LOG2 == 0) {
        return ask;
    }
    while (power < 31 && ask >> (power + 1) != 0) {
        power++;
    }
    uint32_t step = (ask >> (power - STEPS_LOG2)) & ((1u << STEPS_LOG2) - 1);
    return ((power - STEPS_LOG2 + 1) << STEPS_LOG2) + step;
}

void wpk_history_count_end(struct wpk_store *store, const struct wpk_curve_end *end)
{
    bool raced_out = end->outcome == WPK_OUTCOME_OK && end->censored;
    bool ok = end->outcome == WPK_OUTCOME_OK && !end->censored && end->median_ns > 0;
    int64_t best_ns = ok ? (int64_t)end->median_ns : 0;
    wpk_store_run(
        store,
        "INSERT INTO search_bucket (search_id, number, ok, failed, best_ns, best_ask, best_trial,"
        " best_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ok = ok + excluded.ok,"
        " failed = failed + excluded.failed,"
        " best_ask = iif(excluded.best_ns > 0 AND (best_ns = 0 OR excluded.best_ns < best_ns),"
        " excluded.best_ask, best_ask),"
        " best_trial = iif(excluded.best_ns > 0 AND (best_ns = 0 OR excluded.best_ns < best_ns),"
        " excluded.best_trial, best_trial),"
        " best_at = iif(excluded.best_ns > 0 AND (best_ns = 0 OR excluded.best_ns < best_ns),"
        " excluded.best_at, best_at),"
        " best_ns = iif(excluded.best_ns > 0 AND (best_ns = 0 OR excluded.best_ns < best_ns),"
        " excluded.best_ns, best_ns)",
        "iiiiiiii", (int64_t)end->search_id, (int64_t)wpk_curve_bucket(end->ask), (int64_t)ok,
        (int64_t)!ok, best_ns, (int64_t)end->ask, (int64_t)end->trial_id,
        (int64_t)wpk_store_wall_ns(store));
    wpk_store_run(store,
                  "INSERT INTO search_outcome (search_id, outcome, count, last_trial)"
                  " VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE SET count = count + 1,"
                  " last_trial = excluded.last_trial",
                  "iti", (int64_t)end->search_id,
                  raced_out ? "raced out" : wpk_outcome_name(end->outcome), (int64_t)end->trial_id);
}

void wpk_history_read_curve(struct wpk_store *store, uint64_t search_id, bool of_others,
                            wpk_curve_point_fn fn, void *user)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT b.best_ask, b.best_ns, (b.best_at - s.created_at) / 1e9, coalesce(t.candidate, ''),"
        " coalesce(a.source, 'unknown'), s.strategy, b.ok, b.failed FROM search_bucket b JOIN "
        "search s ON"
        " s.id = b.search_id LEFT JOIN trial t ON t.id = b.best_trial LEFT JOIN ask a ON"
        " a.search_id = s.id AND a.number = b.best_ask WHERE b.search_id IN (SELECT max(o.id) FROM"
        " search s JOIN search o ON o.problem_id = s.problem_id WHERE s.id = ?1 AND"
        " iif(?2, o.strategy <> s.strategy, o.id = s.id) GROUP BY o.strategy)"
        " ORDER BY b.search_id, b.number",
        "ii", (int64_t)search_id, (int64_t)of_others);
    while (wpk_rows_next(rows)) {
        struct wpk_curve_point point;
        wpk_rows_get(rows, "uursssuu", &point.ask, &point.best_ns, &point.at_s, &point.candidate,
                     &point.source, &point.strategy, &point.ok_count, &point.failed_count);
        fn(user, &point);
    }
}

void wpk_history_read_outcomes(struct wpk_store *store, uint64_t search_id, wpk_curve_outcome_fn fn,
                               void *user)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT o.outcome, o.count, coalesce(t.log, '') FROM search_outcome o LEFT JOIN trial t"
        " ON t.id = o.last_trial WHERE o.search_id = ? ORDER BY o.count DESC",
        "i", (int64_t)search_id);
    while (wpk_rows_next(rows)) {
        struct wpk_curve_outcome outcome;
        wpk_rows_get(rows, "sus", &outcome.outcome, &outcome.count, &outcome.log);
        fn(user, &outcome);
    }
}

uint64_t wpk_history_search_of(struct wpk_store *store, uint64_t job_number, uint32_t position)
{
    return wpk_rows_take_id(
        wpk_store_query(store, "SELECT search_id FROM job_op WHERE job_number = ? AND position = ?",
                        "ii", (int64_t)job_number, (int64_t)position));
}
