/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history_curve.h"

#include "schema/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_buckets_are_in_order_and_bounded(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (uint32_t ask = 0; ask < 1u << 20; ask++) {
        uint32_t bucket = wpk_curve_bucket(ask);
        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
    }
    assert_int_equal(last, WPK_CURVE_BUCKETS_MILLION - 1);
    assert_int_equal(wpk_curve_bucket(UINT32_MAX), WPK_CURVE_BUCKETS_MAX - 1);
}

struct sums {
    uint64_t ok, failed, best_ns, best_ask, outcomes, raced_out;
};

static void take_point(void *user, const struct wpk_curve_point *point)
{
    struct sums *sums = user;
    sums->ok += point->ok_count;
    sums->failed += point->failed_count;
    if (point->best_ns > 0 && (sums->best_ns == 0 || point->best_ns < sums->best_ns)) {
        sums->best_ns = point->best_ns;
        sums->best_ask = point->ask;
    }
}

static void take_outcome(void *user, const struct wpk_curve_outcome *outcome)
{
    struct sums *sums = user;
    sums->outcomes += outcome->count;
    sums->raced_out += strcmp(outcome->outcome, "raced out") == 0 ? outcome->count : 0;
}

static void count(struct wpk_store *store, uint32_t ask, enum wpk_outcome outcome, bool censored,
                  uint64_t median_ns)
{
    const struct wpk_curve_end end = {.search_id = 1,
                                      .ask = ask,
                                      .trial_id = ask + 1,
                                      .outcome = outcome,
                                      .censored = censored,
                                      .median_ns = median_ns};
    wpk_history_count_end(store, &end);
}

struct sample {
    uint32_t count, first, last, stretches;
};

static void take_time(void *user, const char *candidate, uint64_t median_ns)
{
    struct sample *sample = user;
    uint32_t ask = (uint32_t)strtoul(candidate, NULL, 10);
    assert_int_equal(median_ns, 1000 + ask); /* of its whole measurement, not of the first */
    assert_true(ask % 10 != 3 && ask % 10 != 5);
    sample->first = sample->count == 0 ? ask : sample->first;
    sample->stretches += sample->count == 0 || ask > sample->last + 3;
    sample->last = ask;
    sample->count++;
}

#define COUNT_TO(n)                                                                                \
    "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < " n ")"

/* 10,000 asks: one in ten failed, one in ten was raced out. */
static void put_asks(struct wpk_store *store)
{
    wpk_store_run(
        store,
        COUNT_TO(
            "9999") " INSERT INTO trial (id, problem_id, provider, candidate,"
                    " candidate_hash, outcome, log, detail, schedule_sha256, artifact_sha256,"
                    " error_max, error_tolerance, of_rms, times_direct, constants_bytes, unseen,"
                    " recipe, build_ns, verify_ns, recorded_at, epoch) SELECT n + 1, 1, 'x', n, n,"
                    " iif(n % 10 = 3, 'run_crash', 'ok'), '', '', '', '', 0, 0, 0, 0, 0, '', '', "
                    "0, 0,"
                    " 0, 1 FROM c",
        "");
    wpk_store_run(
        store,
        COUNT_TO(
            "19999") " INSERT INTO measurement (trial_id, number, kind,"
                     " search_id, worker, instance, median_ns, min_ns, mad_ns, repeat_count, "
                     "censored,"
                     " anchor_ns, anchor_ratio, anchor, samples_ns, counters, measured_at, epoch)"
                     " SELECT n / 2 + 1, n % 2, 'trial', 1, 'w', 'i', iif(n % 2, 1000, 1) + n / 2, "
                     "1,"
                     " 1, 1, n % 2 = 0 OR n / 2 % 10 = 5, 0, 0, '', '[]', '', 1, 1 FROM c",
        "");
    wpk_store_run(
        store, COUNT_TO("9999") " INSERT INTO ask SELECT 1, n, n + 1, 'drawn', 1, 0, 1 FROM c", "");
}

static void expect_samples(struct wpk_store *store)
{
    struct sample all = {0}, some = {0}, none = {0};
    put_asks(store);
    assert_int_equal(wpk_history_sample_times(store, 1, 20000, take_time, &all), 10000);
    assert_true(all.count == 8000 && all.first == 0 && all.last == 9999 && all.stretches == 1);
    assert_int_equal(wpk_history_sample_times(store, 1, 1000, take_time, &some), 10000);
    assert_in_range(some.count, 750, 850);
    assert_in_range(some.stretches, 60, 63);
    assert_true(some.last > 9800);
    assert_int_equal(wpk_history_sample_times(store, 2, 1000, take_time, &none), 0);
    assert_int_equal(none.count, 0);
}

struct others {
    char text[128];
};

static void take_other(void *user, const struct wpk_curve_point *point)
{
    struct others *others = user;
    size_t used = strlen(others->text);
    snprintf(others->text + used, sizeof others->text - used, "%s %s %d;", point->strategy,
             point->source, (int)point->best_ns);
}

/* The last search of each other strategy on the problem; sources are those of the best asks. */
static void expect_others(struct wpk_store *store)
{
    struct others own = {""}, others = {""};
    static const char *const searches[][3] = {{"2", "1", "rl"},
                                              {"3", "1", "rl"},
                                              {"4", "2", "auto"},
                                              {"5", "1", "anneal"},
                                              {"6", "1", "ga"}};
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
        wpk_store_run(
            store,
            "INSERT INTO search SELECT ?1, ?2, ?3, '', '', '', '', ?1, 'x', 's', 'standard', '',"
            " '', 0, 0, 0, 0, NULL, '', '', 0, 0, 0, 0, '', 1, 1",
            "ttt", searches[i][0], searches[i][1], searches[i][2]);
        wpk_store_run(store, "INSERT INTO search_bucket VALUES (?1, 0, 1, 0, 10 * ?1, 7, 7, 1)",
                      "t", searches[i][0]);
    }
    wpk_store_run(store,
                  "INSERT INTO problem VALUES (2, 'g', 'fixed', 'd', 'e', 'p', 'f', '1', '', 'op',"
                  " 1, 1, 1, 1)",
                  "");
    wpk_store_run(store, "INSERT INTO ask VALUES (3, 7, 7, 'crossed', 1, 0, 1)", "");
    wpk_history_read_curve(store, 1, true, take_other, &others);
    assert_string_equal(others.text, "rl crossed 30;anneal unknown 50;");
    wpk_history_read_curve(store, 6, false, take_other, &own);
    assert_string_equal(own.text, "ga unknown 60;");
}

static void test_sums_are_those_of_all_ends(void **state)
{
    (void)state;
    char directory[] = "/tmp/wpk-curve-XXXXXX";
    char path[64];
    struct wpk_diag diag = {0};
    struct wpk_store *store = NULL;
    struct sums sums = {0};
    assert_non_null(mkdtemp(directory));
    assert_int_equal(wpk_store_open(directory, wpk_clock_system(), &store, &diag), WPK_OK);
    wpk_store_begin(store);
    wpk_store_run(store, "PRAGMA defer_foreign_keys = 1", "");
    for (uint32_t ask = 0; ask < 1000; ask++) {
        count(store, ask, WPK_OUTCOME_OK, false, 5000 - ask);
    }
    count(store, 1000, WPK_OUTCOME_OK, true, 1);
    count(store, 1001, WPK_OUTCOME_BUILD_ERROR, false, 0);
    wpk_history_read_outcomes(store, 1, take_outcome, &sums);
    assert_int_equal(sums.outcomes, 1002);
    assert_int_equal(sums.raced_out, 1);
    wpk_store_run(
        store,
        "INSERT INTO problem VALUES (1, 'f', 'fixed', 'd', 'e', 'p', 'f', '1', '', 'op', 1, 1,"
        " 1, 1)",
        "");
    wpk_store_run(
        store,
        "INSERT INTO search VALUES (1, 1, 'ga', '', '', '', '', '1', 'x', 's', 'standard', '',"
        " '', 0, 0, 0, 0, NULL, '', '', 0, 0, 0, 0, '', 1, 1)",
        "");
    wpk_history_read_curve(store, 1, false, take_point, &sums);
    assert_int_equal(sums.ok, 1000);
    assert_int_equal(sums.failed, 2);
    assert_int_equal(sums.best_ns, 4001);
    assert_int_equal(sums.best_ask, 999);
    expect_samples(store);
    expect_others(store);
    assert_int_equal(wpk_store_commit(store, &diag), WPK_OK);
    wpk_store_close(store);
    snprintf(path, sizeof path, "%s/history.db", directory);
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_are_in_order_and_bounded),
        cmocka_unit_test(test_sums_are_those_of_all_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
