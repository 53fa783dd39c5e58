/* SPDX-License-Identifier: Apache-2.0 */
/* Which artifacts go when there is no room for all. */
#include "coordinator/store/history.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/store/artifact.h"
#include "tests/clock_fake.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS (3600 * WPK_NS_PER_S)

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
};

static const char *name_of(int number)
{
    static char name[WPK_ID_MAX];
    snprintf(name, sizeof name, "%064d", number);
    return name;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-artifacts-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    wpk_store_begin(f->store);
    for (int i = 0; i < 10; i++) {
        wpk_history_put_artifact(f->store, name_of(i), 100);
        wpk_clock_fake_advance(&f->clock, WPK_NS_PER_S);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    wpk_store_close(f->store);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static uint32_t prune(struct fixture *f, uint64_t bytes, char (*pruned)[WPK_ID_MAX])
{
    return wpk_history_prune_artifacts(f->store, bytes, pruned, 8);
}

static void the_longest_unused_goes(void **state)
{
    struct fixture *f = *state;
    char pruned[8][WPK_ID_MAX];
    assert_int_equal(wpk_history_artifact_bytes(f->store), 1000);
    assert_int_equal(prune(f, 100, pruned), 0); /* all are of this hour */
    wpk_clock_fake_advance(&f->clock, 48 * HOUR_NS);
    wpk_history_use_artifact(f->store, name_of(0));
    assert_int_equal(prune(f, 150, pruned), 2);
    assert_string_equal(pruned[0], name_of(1));
    assert_string_equal(pruned[1], name_of(2));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 800);
    assert_false(wpk_history_has_artifact(f->store, name_of(1)));
    assert_true(wpk_history_has_artifact(f->store, name_of(0)));
    /* The same one twice is one. */
    wpk_history_put_artifact(f->store, name_of(1), 100);
    wpk_history_put_artifact(f->store, name_of(1), 100);
    assert_int_equal(wpk_history_artifact_bytes(f->store), 900);
}

static void what_somebody_keeps_stays(void **state)
{
    struct fixture *f = *state;
    char pruned[8][WPK_ID_MAX];
    wpk_clock_fake_advance(&f->clock, 48 * HOUR_NS);
    wpk_history_keep_artifact(f->store, name_of(0), 1);
    wpk_history_keep_artifact(f->store, name_of(0), 1);
    wpk_history_keep_artifact(f->store, name_of(0), -1);
    wpk_history_keep_artifact(f->store, name_of(1), 1);
    wpk_history_keep_artifact(f->store, name_of(1), -1);
    assert_int_equal(prune(f, 100, pruned), 1);
    assert_string_equal(pruned[0], name_of(1));
    assert_int_equal(prune(f, 10000, pruned), 8); /* at most so many at a time */
    assert_int_equal(prune(f, 10000, pruned), 0);
    assert_true(wpk_history_has_artifact(f->store, name_of(0)));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 100);
}

/* An hour after it was made, but not after it was sent, asked for or found once more. */
static void what_is_used_again_stays(void **state)
{
    struct fixture *f = *state;
    char pruned[8][WPK_ID_MAX];
    wpk_clock_fake_advance(&f->clock, HOUR_NS / 2);
    wpk_history_put_artifact(f->store, name_of(0), 100);
    wpk_history_use_artifact(f->store, name_of(1));
    wpk_clock_fake_advance(&f->clock, HOUR_NS * 3 / 4);
    assert_int_equal(prune(f, 100, pruned), 1);
    assert_string_equal(pruned[0], name_of(2));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 900);
}

/* A time whose code is gone cannot win: the candidate is measured again. */
static void what_went_is_not_known(void **state)
{
    struct fixture *f = *state;
    struct wpk_search search = {.op = (char *)"Y[i] = X[i]", .policy = {.threads = 1}};
    struct wpk_trial_summary known;
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    struct wpk_record record = {.timing = {.median_ns = 5, .min_ns = 5, .sample_count = 1}};
    snprintf(search.key.providers, sizeof search.key.providers, "halide-cpu");
    snprintf(record.artifact_sha256, sizeof record.artifact_sha256, "%s", name_of(3));
    wpk_history_open_search(f->store, &search, opened);
    wpk_store_run(f->store, "UPDATE search SET anchor = 'anchor'", "");
    record.anchor_ratio = 1;
    struct wpk_history_ask ask = {.search_id = opened->search_id,
                                  .problem_id = opened->problem_id,
                                  .provider = "halide-cpu",
                                  .candidate = "cpu-1 tile=4",
                                  .source = "drawn"};
    assert_false(wpk_history_put_ask(f->store, &ask, &known));
    struct wpk_history_result result = {.problem_id = opened->problem_id,
                                        .work = {opened->search_id, WPK_WORK_TRIAL, 0},
                                        .record = &record,
                                        .anchor = "anchor",
                                        .worker = {"w", "slot"}};
    wpk_history_put_trial(f->store, &result);
    ask.number = 1;
    wpk_clock_fake_advance(&f->clock, 48 * HOUR_NS);
    assert_true(wpk_history_put_ask(f->store, &ask, &known));
    char pruned[8][WPK_ID_MAX];
    assert_int_equal(prune(f, 400, pruned), 4); /* not what was found to be known just now */
    assert_true(wpk_history_has_artifact(f->store, name_of(3)));
    wpk_clock_fake_advance(&f->clock, 48 * HOUR_NS);
    assert_int_equal(prune(f, 10000, pruned), 6);
    ask.number = 2;
    assert_false(wpk_history_put_ask(f->store, &ask, &known));
    wpk_opened_free(opened);
}

/* A search with three asks, whose artifacts are the first three; returns its id. */
static uint64_t three_asks(struct fixture *f, uint64_t seed)
{
    struct wpk_search search = {.op = (char *)"Y[i] = X[i]", .policy = {.threads = 1}};
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    struct wpk_trial_summary known;
    search.key.seed = seed;
    snprintf(search.key.providers, sizeof search.key.providers, "halide-cpu");
    wpk_history_open_search(f->store, &search, opened);
    for (uint32_t n = 0; n < 3; n++) {
        char candidate[32];
        struct wpk_record record = {.timing = {.median_ns = 5, .min_ns = 5, .sample_count = 1}};
        snprintf(candidate, sizeof candidate, "cpu-1 tile=%u", n);
        snprintf(record.artifact_sha256, sizeof record.artifact_sha256, "%s", name_of((int)n));
        struct wpk_history_ask ask = {.search_id = opened->search_id,
                                      .problem_id = opened->problem_id,
                                      .number = n,
                                      .provider = "halide-cpu",
                                      .candidate = candidate,
                                      .source = "drawn"};
        struct wpk_history_result result = {.problem_id = opened->problem_id,
                                            .work = {opened->search_id, WPK_WORK_TRIAL, n},
                                            .record = &record,
                                            .worker = {"w", "slot"}};
        if (!wpk_history_put_ask(f->store, &ask, &known)) {
            wpk_history_put_trial(f->store, &result);
        }
    }
    uint64_t id = opened->search_id;
    wpk_opened_free(opened);
    return id;
}

/* The best of a search: those of the last snapshot, and no others. */
static void a_snapshot_keeps_its_best(void **state)
{
    struct fixture *f = *state;
    struct wpk_history_snapshot snapshot = {.search_id = three_asks(f, 1),
                                            .text = "",
                                            .version = "ga-1",
                                            .best = {1, 0, 2},
                                            .best_count = 3};
    wpk_history_put_snapshot(f->store, &snapshot, 2);
    snapshot.best[0] = 2;
    snapshot.best[1] = 1;
    snapshot.best[2] = 0;
    wpk_history_put_snapshot(f->store, &snapshot, 2);
    wpk_clock_fake_advance(&f->clock, 48 * HOUR_NS);
    char pruned[8][WPK_ID_MAX];
    assert_int_equal(prune(f, 10000, pruned), 8);
    assert_false(wpk_history_has_artifact(f->store, name_of(0)));
    assert_true(wpk_history_has_artifact(f->store, name_of(1)));
    assert_true(wpk_history_has_artifact(f->store, name_of(2)));
}

static int64_t kept(struct fixture *f, int number)
{
    struct wpk_rows *rows = wpk_store_query(f->store, "SELECT kept FROM artifact WHERE sha256 = ?",
                                            "t", name_of(number));
    assert_true(wpk_rows_next(rows));
    int64_t count = wpk_rows_int(rows, 0);
    wpk_rows_close(rows);
    return count;
}

/* An artifact that one search no longer keeps, or never kept, is still kept by another one. */
static void how_many_are_kept_is_changed(void **state)
{
    static const int64_t wanted[][3] = {{1, 2, 1}, {2, 2, 2}, {1, 2, 1}, {2, 2, 2}};
    static const uint32_t max[] = {1, 16, 1, 3};
    struct fixture *f = *state;
    struct wpk_history_snapshot one = {.search_id = three_asks(f, 1),
                                       .text = "",
                                       .version = "ga-1",
                                       .best = {1, 0, 2},
                                       .best_count = 3};
    struct wpk_history_snapshot other = one;
    other.search_id = three_asks(f, 2);
    wpk_history_put_snapshot(f->store, &other, 3);
    for (size_t i = 0; i < 4; i++) {
        wpk_history_put_snapshot(f->store, &one, max[i]);
        for (int n = 0; n < 3; n++) {
            assert_int_equal(kept(f, n), wanted[i][n]);
        }
    }
    one.best_count = 0;
    wpk_history_put_snapshot(f->store, &one, 3);
    assert_int_equal(kept(f, 1), 1);
}

/* Files that a killed wpkd had written and not recorded, or had only begun, are deleted. */
static void files_without_a_row_are_swept(void **state)
{
    struct fixture *f = *state;
    static const char *const contents[] = {"recorded", "stray"};
    char sha256[2][WPK_ID_MAX];
    char path[2][192];
    char begun[224];
    for (int i = 0; i < 2; i++) {
        wpk_crypto_sha256_hex(contents[i], strlen(contents[i]), sha256[i]);
        assert_int_equal(
            wpk_artifact_put(f->directory, sha256[i], contents[i], strlen(contents[i]), NULL),
            WPK_OK);
        snprintf(path[i], sizeof path[i], "%s/artifacts/%.2s/%s.so", f->directory, sha256[i],
                 sha256[i]);
    }
    snprintf(begun, sizeof begun, "%s.tmp.0123456789abcdef", path[0]);
    assert_int_equal(wpk_fs_write(begun, "half", 4, 0644, NULL), WPK_OK);
    wpk_history_put_artifact(f->store, sha256[0], strlen(contents[0]));
    assert_int_equal(wpk_history_sweep_artifacts(f->store, f->directory), 1);
    assert_int_equal(access(path[0], F_OK), 0);
    assert_int_not_equal(access(path[1], F_OK), 0);
    assert_int_not_equal(access(begun, F_OK), 0);
    assert_int_equal(wpk_history_sweep_artifacts(f->store, f->directory), 0);
}

/* Perhaps they all have one. */
static void nothing_is_swept_unseen(void **state)
{
    struct fixture *f = *state;
    char sha256[WPK_ID_MAX];
    struct wpk_buf bytes = {0};
    wpk_crypto_sha256_hex("code", 4, sha256);
    assert_int_equal(wpk_artifact_put(f->directory, sha256, "code", 4, NULL), WPK_OK);
    wpk_store_fail(f->store, WPK_EIO, &(struct wpk_diag){.text = "the disk"});
    assert_int_equal(wpk_history_sweep_artifacts(f->store, f->directory), 0);
    assert_int_equal(wpk_artifact_get(f->directory, sha256, &bytes, NULL), WPK_OK);
    wpk_buf_fini(&bytes);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_EIO);
    wpk_store_begin(f->store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_longest_unused_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_somebody_keeps_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_used_again_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_went_is_not_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_snapshot_keeps_its_best, set_up, tear_down),
        cmocka_unit_test_setup_teardown(how_many_are_kept_is_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_without_a_row_are_swept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_swept_unseen, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
