/* SPDX-License-Identifier: Apache-2.0 */
/* Which schedules of other shapes a search begins with. */
#include "common/fs.h"
#include "coordinator/store/history.h"
#include "tests/clock_fake.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
};

static void put_problem(struct fixture *f, int64_t id, const char *family, const char *extents,
                        const char *policy)
{
    wpk_store_run(
        f->store,
        "INSERT INTO problem (id, fingerprint, layouts, device_class, environment, policy,"
        " family, extents, op, flops, bytes, created_at, epoch)"
        " VALUES (?1, 'f' || ?1, '', '', '', ?, ?, ?, '', 1, 1, 1, 1)",
        "ittt", id, policy, family, extents);
}

/* A trial of the problem with a time; `verified_ns` above 0: and a kernel. */
static void put_trial(struct fixture *f, int64_t problem, const char *candidate, int64_t median_ns,
                      int64_t verified_ns)
{
    wpk_store_run(
        f->store,
        "INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome, log,"
        " detail, schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms,"
        " times_direct, constants_bytes, unseen, recipe, build_ns, verify_ns, recorded_at,"
        " epoch) VALUES (?1, 'own', ?2, ?2, 'ok', '', '', '', ?2, 0, 0, 0, 0, 0, '', '', 0,"
        " 0, 1, 1)",
        "it", problem, candidate);
    wpk_store_run(f->store,
                  "INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance,"
                  " median_ns, min_ns, mad_ns, repeat_count, censored, anchor_ns, anchor_ratio,"
                  " anchor, samples_ns, counters, measured_at, epoch)"
                  " VALUES (?, 0, 'trial', NULL, '', '', ?, 1, 1, 1, 0, 0, 0, '', '', '', 1, 1)",
                  "ii", (int64_t)wpk_store_inserted(f->store), median_ns);
    if (verified_ns > 0) {
        wpk_store_run(
            f->store,
            "INSERT INTO kernel (problem_id, search_id, provider, artifact_sha256,"
            " plain_sha256, accuracy, times_direct, median_ns, served, served_at, pinned,"
            " revoked_at, revoked_reason, verified_by, document, manifest, signature,"
            " created_at, epoch) VALUES (?, 1, 'own', ?, '', 'standard', 1, ?, 0, 0, 0, 0,"
            " '', '', '{}', '', '', 1, 1)",
            "iti", problem, candidate, verified_ns);
    }
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-relative-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    wpk_store_begin(f->store);
    put_problem(f, 1, "conv", "64,28,28", "warm");
    wpk_store_run(f->store,
                  "INSERT INTO search (id, problem_id, strategy, options, prior, pins, seed,"
                  " providers, space_version, elapsed_ns, ended_asks, exhausted, snapshot,"
                  " snapshot_version, snapshot_told, ok_count, failed_count, known_count, best,"
                  " accuracy, anchor, stand_in, stand_in_ratio, created_at, epoch) VALUES (1, 1,"
                  " 'nearest', '', '', '', '', '', '', 0, 0, 0, '', '', 0, 0, 0, 0, '', 'standard',"
                  " '', '', 0, 1, 1)",
                  "");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct wpk_diag diag = {0};
    if (wpk_store_commit(f->store, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

/* Print the relatives of a problem, each followed by a blank. */
static void expect(struct fixture *f, const char *wanted, uint32_t twins)
{
    char *found[WPK_HISTORY_RELATIVES_MAX];
    char text[512] = "";
    uint32_t twin_count;
    uint32_t count = wpk_history_relatives(f->store, 1, found, &twin_count);
    assert_int_equal(twin_count, twins);
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s ", found[i]);
        free(found[i]);
    }
    assert_string_equal(text, wanted);
}

static void the_nearest_shape_comes_first(void **state)
{
    struct fixture *f = *state;
    expect(f, "", 0);
    put_trial(f, 1, "its_own", 1, 1);
    put_problem(f, 2, "conv", "64,7,7", "warm");
    put_trial(f, 2, "far", 100, 90);
    put_problem(f, 3, "conv", "64,28,28", "warm"); /* with other borders */
    put_trial(f, 3, "placed", 500, 490);
    put_problem(f, 4, "conv", "128,28,28", "warm");
    put_trial(f, 4, "near", 300, 290);
    expect(f, "placed near far ", 1);
}

static void verified_ones_come_first(void **state)
{
    struct fixture *f = *state;
    put_problem(f, 2, "conv", "64,7,7", "warm");
    put_trial(f, 2, "quick", 80, 0);
    put_trial(f, 2, "second", 95, 95);
    put_trial(f, 2, "slow", 200, 0);
    put_trial(f, 2, "first", 100, 90);
    put_trial(f, 2, "slower", 300, 0);
    expect(f, "first second quick ", 0);
}

static void others_are_no_relatives(void **state)
{
    struct fixture *f = *state;
    put_problem(f, 2, "product", "64,7,7", "warm");
    put_trial(f, 2, "other", 100, 90);
    put_problem(f, 3, "conv", "64,14,14", "cold");
    put_trial(f, 3, "cold", 100, 90);
    put_problem(f, 4, "conv", "64,14,14", "warm");
    put_trial(f, 4, "unverified", 100, 0);
    expect(f, "", 0);
    wpk_store_run(f->store, "UPDATE problem SET policy = 'warm' WHERE id = 3", "");
    expect(f, "cold ", 0);
    wpk_store_run(f->store, "UPDATE kernel SET revoked_at = 7 WHERE problem_id = 3", "");
    expect(f, "", 0);
}

/* Print whose packing of constants a new search of problem 1 shares. */
static void expect_packing(struct fixture *f, const char *wanted)
{
    char *found = wpk_history_packing(f->store, 1);
    assert_string_equal(found, wanted);
    free(found);
}

static void the_first_shape_sets_the_packing(void **state)
{
    struct fixture *f = *state;
    put_trial(f, 1, "its_own", 1, 1);
    put_problem(f, 2, "conv", "64,7,7", "warm");
    put_trial(f, 2, "unverified", 80, 0);
    put_problem(f, 3, "conv", "64,9,9", "warm");
    put_trial(f, 3, "slower", 95, 95);
    put_trial(f, 3, "first", 100, 90);
    put_problem(f, 4, "conv", "64,8,8", "warm");
    put_trial(f, 4, "later", 10, 10);
    expect_packing(f, "first");
    wpk_store_run(f->store, "UPDATE problem SET constants = 'of other extents' WHERE id = 3", "");
    expect_packing(f, "later");
    wpk_store_run(f->store, "UPDATE problem SET policy = 'threads=2' WHERE id = 4", "");
    expect_packing(f, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_nearest_shape_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(verified_ones_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_are_no_relatives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_shape_sets_the_packing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
