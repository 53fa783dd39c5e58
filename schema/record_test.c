/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/record.h"

#include "common/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct wpk_record make_full(void)
{
    struct wpk_record record = {
        .outcome = WPK_OUTCOME_OK,
        .timing = {.median_ns = 590125,
                   .min_ns = 588001,
                   .mad_ns = 912,
                   .sample_count = 3,
                   .repeat_count = 2,
                   .censored = true,
                   .throttled_count = 2,
                   .disturbed_count = 3,
                   .sample_ns = {588001, 590125, 600003}},
        .anchor_ns = 1000017,
        .anchor_failed = true,
        .counters = {.present = true, .cycles = 1.5e6, .instructions = 4e6, .llc_misses = 0.25},
        .build_ns = 150000000,
        .verify_ns = 31000000,
        .measure_ns = 27000000,
        .error_max = 1.0 / 3,
        .error_tolerance = 0.7,
        .error_ratio = 1e-17,
        .of_rms = 1e-7,
        .times_direct = 1.75,
        .constants_bytes = 4096,
        .launch = {.registers = 70, .local_bytes = 16, .shared_bytes = 8192},
        .unseen = strdup("t1: neighbour"),
        .schedule = strdup("wpk-schedule 2\ntarget \"x\"\n"),
        .schedule_sha256 = HASH,
        .artifact_path = strdup("/a/b.so"),
        .artifact_sha256 = HASH,
        .detail = strdup("brgconv:avx512_core"),
        .recipe = strdup("{\"kind\":\"vendor\"}"),
    };
    return record;
}

static void assert_record_equal(const struct wpk_record *a, const struct wpk_record *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_string_equal(a->log, b->log);
    assert_memory_equal(&a->timing, &b->timing, sizeof(a->timing));
    assert_memory_equal(&a->counters.cycles, &b->counters.cycles, 4 * sizeof(double));
    assert_int_equal(a->counters.present, b->counters.present);
    assert_int_equal(a->anchor_ns, b->anchor_ns);
    assert_int_equal(a->anchor_failed, b->anchor_failed);
    assert_int_equal(a->build_ns, b->build_ns);
    assert_int_equal(a->verify_ns, b->verify_ns);
    assert_int_equal(a->measure_ns, b->measure_ns);
    assert_true(a->error_max == b->error_max);
    assert_true(a->error_tolerance == b->error_tolerance);
    assert_true(a->error_ratio == b->error_ratio);
    assert_true(a->of_rms == b->of_rms);
    assert_true(a->times_direct == b->times_direct);
    assert_true(a->constants_bytes == b->constants_bytes);
    assert_memory_equal(&a->launch, &b->launch, sizeof(a->launch));
    assert_string_equal(a->unseen ? a->unseen : "-", b->unseen ? b->unseen : "-");
    assert_string_equal(a->schedule ? a->schedule : "-", b->schedule ? b->schedule : "-");
    assert_string_equal(a->schedule_sha256, b->schedule_sha256);
    assert_string_equal(a->artifact_path ? a->artifact_path : "-",
                        b->artifact_path ? b->artifact_path : "-");
    assert_string_equal(a->artifact_sha256, b->artifact_sha256);
    assert_string_equal(a->detail ? a->detail : "-", b->detail ? b->detail : "-");
    assert_string_equal(a->recipe ? a->recipe : "-", b->recipe ? b->recipe : "-");
}

static void check_round_trip(const struct wpk_record *record)
{
    char *text = NULL;
    struct wpk_record back = {0};
    assert_int_equal(wpk_record_encode(record, &text), WPK_OK);
    assert_int_equal(wpk_record_decode(text, &back, NULL), WPK_OK);
    assert_record_equal(record, &back);
    free(text);
    wpk_record_fini(&back);
}

static void test_round_trip_full(void **state)
{
    (void)state;
    struct wpk_record record = make_full();
    check_round_trip(&record);
    wpk_record_fini(&record);
    assert_null(record.schedule);
}

static void test_round_trip_each_outcome(void **state)
{
    (void)state;
    for (int i = 0; i < WPK_OUTCOME_COUNT; i++) {
        struct wpk_record record = {.outcome = (enum wpk_outcome)i};
        snprintf(record.log, sizeof(record.log), "%s", "line one\n\"quoted\" \t\x01 end");
        check_round_trip(&record);
    }
}

static void test_round_trip_all_samples(void **state)
{
    (void)state;
    struct wpk_record record = {
        .timing = {.median_ns = 1, .sample_count = WPK_SAMPLES_MAX, .repeat_count = 1}};
    for (int i = 0; i < WPK_SAMPLES_MAX; i++) {
        record.timing.sample_ns[i] = (uint64_t)i * 1000003;
    }
    check_round_trip(&record);
}

/* A compiler's output is any bytes; it must survive the way, if not unchanged. */
static void test_log_of_any_bytes(void **state)
{
    (void)state;
    struct wpk_record record = {.outcome = WPK_OUTCOME_BUILD_ERROR};
    memset(record.log, 0xff, sizeof(record.log) - 1);
    record.log[0] = 'x'; /* three bytes for each would fill the log exactly */
    char *text = NULL;
    struct wpk_record back = {0};
    assert_int_equal(wpk_record_encode(&record, &text), WPK_OK);
    assert_int_equal(wpk_record_decode(text, &back, NULL), WPK_OK);
    assert_true(strlen(back.log) > WPK_LOG_MAX / 2);
    assert_true(strlen(back.log) < WPK_LOG_MAX);
    assert_int_equal(wpk_utf8_check(back.log, strlen(back.log)), strlen(back.log));
    free(text);
    wpk_record_fini(&back);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < WPK_OUTCOME_COUNT; i++) {
        enum wpk_outcome back = WPK_OUTCOME_COUNT;
        assert_int_equal(wpk_outcome_parse(wpk_outcome_name((enum wpk_outcome)i), &back), WPK_OK);
        assert_int_equal(back, i);
    }
    enum wpk_outcome unchanged = WPK_OUTCOME_ABANDONED;
    assert_int_equal(wpk_outcome_parse("fine", &unchanged), WPK_ENOENT);
    assert_int_equal(unchanged, WPK_OUTCOME_ABANDONED);
}

#define TIMING(median, samples)                                                                    \
    "\"timing\":{\"median_ns\":" median ",\"min_ns\":0,\"mad_ns\":0,\"repeat_count\":1,"           \
    "\"censored\":false,\"sample_ns\":" samples "},"
#define REST                                                                                       \
    "\"anchor_ns\":0,\"build_ns\":0,\"verify_ns\":0,\"measure_ns\":0,"                             \
    "\"constants_bytes\":0,\"error\":{\"of_rms\":0,\"times_direct\":0,\"max\":0,\"tolerance\":0,"  \
    "\"ratio\":0}}"

static void test_decode_rejects(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"outcome\":\"fine\"," REST,
        "{\"outcome\":\"ok\",\"more\":1," REST,
        "{\"outcome\":\"ok\"," TIMING("-1", "[1]") REST,
        "{\"outcome\":\"ok\"," TIMING("0", "[0]") REST, /* it would be the fastest of all */
        "{\"outcome\":\"ok\"," TIMING("1", "[]") REST,
        "{\"outcome\":\"run_crash\"," TIMING("1", "[1]") REST,
        "{\"outcome\":\"ok\",\"schedule_sha256\":\"00aa\"," REST,
        "{\"outcome\":\"ok\",\"launch\":{\"registers\":70}," REST,
        "{\"outcome\":\"ok\",\"artifact\":{\"sha256\":\"\"}," REST,
        "{\"outcome\":\"ok\",\"artifact\":{\"sha256\":\"../../../../../../etc/passwd\"}," REST,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wpk_record record = {.build_ns = 7};
        struct wpk_diag diag = {0};
        assert_int_not_equal(wpk_record_decode(bad[i], &record, &diag), WPK_OK);
        assert_int_equal(record.build_ns, 7);
        assert_true(diag.text[0] != '\0');
    }
    static const char *const good[] = {
        "{\"outcome\":\"ok\"," REST,
        "{\"outcome\":\"ok\"," TIMING("1", "[1]") REST,
        "{\"outcome\":\"ok\",\"artifact\":{\"sha256\":\"" HASH "\"}," REST,
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct wpk_record record = {0};
        assert_int_equal(wpk_record_decode(good[i], &record, NULL), WPK_OK);
        wpk_record_fini(&record);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_full),
        cmocka_unit_test(test_round_trip_each_outcome),
        cmocka_unit_test(test_round_trip_all_samples),
        cmocka_unit_test(test_log_of_any_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_decode_rejects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
