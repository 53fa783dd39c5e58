/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of leases that need no engine: finals whose artifacts arrive, or do not. */
#include "worker/session/holding.h"

#include "common/crypto.h"
#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char content[] = "a shared object";

struct bench {
    char directory[64];
    char hash[2][WPK_SHA256_HEX_SIZE]; /* of `content`, and of something else */
    struct wpk_holding *holding;
};

static int open_bench(void **state)
{
    static struct bench bench;
    char path[96];
    bench = (struct bench){.directory = "/tmp/wpk-holding-XXXXXX"};
    assert_non_null(mkdtemp(bench.directory));
    snprintf(path, sizeof path, "%s/artifacts", bench.directory);
    assert_int_equal(wpk_fs_make_dirs(path, NULL), WPK_OK);
    wpk_crypto_sha256_hex(content, sizeof content, bench.hash[0]);
    wpk_crypto_sha256_hex("", 0, bench.hash[1]);
    struct wpk_holding_options options = {.work_dir = bench.directory};
    bench.holding = wpk_holding_new(&options);
    *state = &bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    wpk_holding_free(bench->holding);
    assert_int_equal(wpk_fs_remove_tree(bench->directory, NULL), WPK_OK);
    return 0;
}

/* A final of one artifact and a vendor. */
static void take_in_final(struct bench *bench, uint32_t index, const char *hash)
{
    struct wpk_message_op op = {.text = "op", .layouts = "fixed"};
    struct wpk_work work = {.id = {1, WPK_WORK_FINAL, index},
                            .attempt = 1,
                            .provider = "",
                            .candidate = "",
                            .round_count = 3,
                            .contenders = {{"halide-cpu", hash}, {"onednn", ""}},
                            .contender_count = 2};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_WORK, .ops = &op, .op_count = 1, .work = &work, .work_count = 1};
    wpk_holding_take_in(bench->holding, &message);
}

static void an_artifact_that_comes_is_there(void **state)
{
    struct bench *bench = *state;
    char path[160];
    take_in_final(bench, 1, bench->hash[0]);
    assert_string_equal(wpk_holding_missing(bench->holding), bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], content, sizeof content, WPK_OK);
    assert_null(wpk_holding_missing(bench->holding));
    snprintf(path, sizeof path, "%s/artifacts/%s.so", bench->directory, bench->hash[0]);
    assert_int_equal(access(path, X_OK), 0);
    assert_int_equal(wpk_holding_unfinished(bench->holding), 1);
}

/* Code that is not what was asked for is neither kept nor loaded. */
static void an_artifact_with_another_content_is_refused(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    char path[160];
    take_in_final(bench, 1, bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], "something else", 14, WPK_OK);
    snprintf(path, sizeof path, "%s/artifacts/%s.so", bench->directory, bench->hash[0]);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 1);
    assert_int_equal(results[0].timing_count, 0);
    assert_non_null(strstr(results[0].failure, wpk_err_text(WPK_ECORRUPT)));
}

static void only_the_finals_that_need_it_fail(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    take_in_final(bench, 1, bench->hash[0]);
    take_in_final(bench, 2, bench->hash[1]);
    take_in_final(bench, 3, bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], NULL, 0, WPK_ENOENT);
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 2);
    assert_int_equal(results[0].id.index + results[1].id.index, 4);
    assert_string_equal(wpk_holding_missing(bench->holding), bench->hash[1]);
}

static void results_are_sent_again_if_need_be(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    struct wpk_message message = {0};
    struct wpk_buf frame = {0};
    uint32_t count = 7;
    assert_int_equal(wpk_holding_encode_results(bench->holding, 5, &frame, &count), WPK_OK);
    assert_int_equal(count, 0);
    take_in_final(bench, 1, bench->hash[0]);
    take_in_final(bench, 2, bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], NULL, 0, WPK_ENOENT);
    assert_int_equal(wpk_holding_results(bench->holding, results, 1), 1);
    wpk_holding_not_acknowledged(bench->holding);
    assert_int_equal(wpk_holding_encode_results(bench->holding, 5, &frame, &count), WPK_OK);
    assert_int_equal(count, 2);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &message, NULL), WPK_OK);
    assert_int_equal(message.result_count, 2);
    assert_int_equal(message.session, 5);
    wpk_message_fini(&message);
    wpk_holding_acknowledged(bench->holding);
    assert_int_equal(bench->holding->count, 0);
    wpk_buf_fini(&frame);
}

/* Here the frame is short; elsewhere the schedules are long. */
static void results_that_do_not_fit_go_one_by_one(void **state)
{
    struct bench *bench = *state;
    struct wpk_buf frame;
    uint32_t count = 0;
    wpk_buf_init(&frame, 240);
    for (uint32_t i = 1; i <= 3; i++) {
        take_in_final(bench, i, bench->hash[0]);
    }
    wpk_holding_artifact(bench->holding, bench->hash[0], NULL, 0, WPK_ENOENT);
    for (uint32_t left = 3; left > 0; left--) {
        assert_int_equal(wpk_holding_encode_results(bench->holding, 5, &frame, &count), WPK_OK);
        assert_int_equal(count, 1);
        wpk_holding_acknowledged(bench->holding);
        assert_int_equal(bench->holding->count, left - 1);
    }
    wpk_buf_fini(&frame);
    wpk_buf_init(&frame, 20);
    take_in_final(bench, 4, bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], NULL, 0, WPK_ENOENT);
    assert_int_equal(wpk_holding_encode_results(bench->holding, 5, &frame, &count), WPK_ENOSPC);
    wpk_buf_fini(&frame);
}

/* A trial that has ended well, whose artifact is in this worker's directory. */
static void end_trial(struct bench *bench, uint32_t index)
{
    struct wpk_message_op op = {.text = "op", .layouts = "fixed"};
    struct wpk_work work = {.id = {1, WPK_WORK_TRIAL, index},
                            .attempt = 1,
                            .provider = "halide-cpu",
                            .candidate = "a=b"};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_WORK, .ops = &op, .op_count = 1, .work = &work, .work_count = 1};
    wpk_holding_take_in(bench->holding, &message);
    struct wpk_holding_item *item = &bench->holding->items[index];
    item->standing = WPK_HOLDING_ENDED;
    snprintf(item->record.artifact_sha256, WPK_ID_MAX, "%s", bench->hash[0]);
    wpk_holding_artifact(bench->holding, bench->hash[0], content, sizeof content, WPK_OK);
}

static void expect_upload(const struct bench *bench, uint32_t index)
{
    wpk_work_id made_for;
    assert_non_null(wpk_holding_next_upload(bench->holding, &made_for));
    assert_int_equal(made_for.index, index);
}

/* Candidates that differ may come to the same code. */
static void one_upload_does_for_equal_code(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    wpk_work_id made_for;
    end_trial(bench, 0);
    end_trial(bench, 1);
    expect_upload(bench, 0);
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 0);
    wpk_holding_uploaded(bench->holding, bench->hash[0]);
    assert_null(wpk_holding_next_upload(bench->holding, &made_for));
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 2);
}

/* No poll names it, no result is sent for it: wpkd leases it to whoever comes, unblamed. */
static void what_is_refused_is_held_no_longer(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    wpk_work_id ids[WPK_HOLDING_MAX];
    end_trial(bench, 0);
    end_trial(bench, 1);
    wpk_holding_refused(bench->holding, (wpk_work_id){1, WPK_WORK_TRIAL, 0}, WPK_ENOSPC, "full");
    expect_upload(bench, 1);
    assert_int_equal(wpk_holding_ids(bench->holding, false, ids), 1);
    assert_int_equal(ids[0].index, 1);
    wpk_holding_uploaded(bench->holding, bench->hash[0]);
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 1);
    assert_int_equal(results[0].id.index, 1);
}

/* It is no outcome of the candidate, and what is damaged does not answer for it again. */
static void what_arrives_damaged_was_not_tried(void **state)
{
    struct bench *bench = *state;
    struct wpk_result results[WPK_WORK_MAX];
    wpk_work_id made_for;
    char path[160];
    end_trial(bench, 0);
    wpk_holding_not_sent(bench->holding, (wpk_work_id){1, WPK_WORK_TRIAL, 0}, WPK_ECORRUPT);
    assert_null(wpk_holding_next_upload(bench->holding, &made_for));
    assert_int_equal(wpk_holding_results(bench->holding, results, WPK_WORK_MAX), 1);
    assert_int_equal(results[0].record.outcome, WPK_OUTCOME_ABANDONED);
    assert_string_equal(results[0].record.artifact_sha256, "");
    assert_non_null(strstr(results[0].record.log, wpk_err_text(WPK_ECORRUPT)));
    snprintf(path, sizeof path, "%s/artifacts/%s.so", bench->directory, bench->hash[0]);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Another engine has had the device for a minute: others may do what waits for it here. */
static void what_waits_for_the_device_is_not_named(void **state)
{
    struct bench *bench = *state;
    wpk_work_id ids[WPK_HOLDING_MAX];
    take_in_final(bench, 7, bench->hash[0]);
    assert_int_equal(wpk_holding_ids(bench->holding, false, ids), 1);
    bench->holding->blocked = true;
    assert_int_equal(wpk_holding_ids(bench->holding, false, ids), 0);
    assert_int_equal(wpk_holding_running(bench->holding), 0);
    assert_int_equal(wpk_holding_ids(bench->holding, true, ids), 1); /* it is held still */
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        CASE(an_artifact_that_comes_is_there),
        CASE(an_artifact_with_another_content_is_refused),
        CASE(only_the_finals_that_need_it_fail),
        CASE(results_are_sent_again_if_need_be),
        CASE(results_that_do_not_fit_go_one_by_one),
        CASE(one_upload_does_for_equal_code),
        CASE(what_is_refused_is_held_no_longer),
        CASE(what_arrives_damaged_was_not_tried),
        CASE(what_waits_for_the_device_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
