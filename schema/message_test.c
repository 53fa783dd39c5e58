/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Encode, decode, encode again: equal frames mean that nothing was lost on the way. */
static void round_trip(const struct wpk_message *message, struct wpk_message *back,
                       struct wpk_buf *frame)
{
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_message_encode(message, frame), WPK_OK);
    wpk_err err = wpk_message_decode(frame->data, frame->size, back, &diag);
    if (err != WPK_OK) {
        fail_msg("%s: %s", diag.field, diag.text);
    }
    struct wpk_buf again = {0};
    assert_int_equal(wpk_message_encode(back, &again), WPK_OK);
    assert_int_equal(again.size, frame->size);
    assert_memory_equal(again.data, frame->data, frame->size);
    wpk_buf_fini(&again);
}

static void check(const struct wpk_message *message)
{
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(message, &back, &frame);
    assert_int_equal(back.kind, message->kind);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void hello(void **state)
{
    (void)state;
    struct wpk_hello hello = {
        .name = "host/17",
        .device = {.kind = "cpu",
                   .model = "A \"CPU\"",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 2,
                   .l1_bytes = 32768,
                   .l2_bytes = 1 << 20,
                   .l3_bytes = 1 << 25,
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .instance = "host/cpu0"},
        .environment = "codegen=1;halide=21.0.0",
        .providers = {{.name = "halide-cpu"}, {.name = "onednn", .vendor = true}},
        .provider_count = 2,
    };
    wpk_work_id holding = {.search = 3, .kind = WPK_WORK_TRIAL, .index = 17};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_HELLO, .hello = &hello, .holding = &holding, .holding_count = 1};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_string_equal(back.hello->device.model, "A \"CPU\"");
    assert_true(back.hello->providers[1].vendor);
    assert_true(wpk_work_id_equal(back.holding[0], holding));
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void results_with_records_and_a_final(void **state)
{
    (void)state;
    struct wpk_result results[2] = {
        {.id = {9, WPK_WORK_TRIAL, 4},
         .attempt = 2,
         .record = {.outcome = WPK_OUTCOME_RUN_CRASH, .log = "signal 11"}},
        {.id = {9, WPK_WORK_FINAL, 0},
         .attempt = 1,
         .failure = "",
         .timing = {{.median_ns = 5,
                     .min_ns = 4,
                     .mad_ns = 1,
                     .sample_count = 2,
                     .repeat_count = 1,
                     .sample_ns = {4, 5}}},
         .timing_count = 1},
    };
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .session = UINT64_MAX, .results = results, .result_count = 2};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_true(back.session == UINT64_MAX);
    assert_int_equal(back.results[0].record.outcome, WPK_OUTCOME_RUN_CRASH);
    assert_int_equal(back.results[1].timing[0].sample_ns[1], 5);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void work_of_every_kind(void **state)
{
    (void)state;
    struct wpk_message_op op = {.text = "input X f32[4]\noutput Y f32[4]\nY[i] = X[i]",
                                .layouts = "any"};
    struct wpk_policy policy = {.threads = 2,
                                .cold_cache = true,
                                .time_ns_min = 20000000,
                                .sample_count = 10,
                                .race_ratio = 1.25};
    struct wpk_work work[2] = {
        {.id = {1, WPK_WORK_TRIAL, 0},
         .attempt = 1,
         .provider = "halide-cpu",
         .candidate = "cpu-1 algorithm=direct",
         .policy = policy,
         .incumbent_ns = 590125,
         .keep_artifact = true},
        {.id = {1, WPK_WORK_FINAL, 1},
         .attempt = 3,
         .policy = policy,
         .round_count = 7,
         .contenders = {{"halide-cpu", HASH}, {"onednn", ""}},
         .contender_count = 2},
    };
    struct wpk_message message = {.kind = WPK_MESSAGE_WORK,
                                  .session = 1,
                                  .ops = &op,
                                  .op_count = 1,
                                  .work = work,
                                  .work_count = 2,
                                  .leave = true};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_string_equal(back.ops[back.work[0].op].text, op.text);
    assert_string_equal(back.work[1].contenders[0].artifact_sha256, HASH);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void the_small_ones(void **state)
{
    (void)state;
    enum wpk_ack acks[] = {WPK_ACK_RECORDED, WPK_ACK_UNKNOWN};
    wpk_work_id id = {1, WPK_WORK_VERIFY, 2};
    check(&(struct wpk_message){.kind = WPK_MESSAGE_POLL, .want = 8, .wait_ms = 5000});
    check(&(struct wpk_message){.kind = WPK_MESSAGE_GET_ARTIFACT, .sha256 = HASH});
    check(&(struct wpk_message){.kind = WPK_MESSAGE_WELCOME, .session = 5, .lease_ms = 15000});
    check(&(struct wpk_message){.kind = WPK_MESSAGE_ACK, .acks = acks, .ack_count = 2});
    check(&(struct wpk_message){
        .kind = WPK_MESSAGE_GIVE_BACK, .given_back = &id, .given_back_count = 1});
    check(
        &(struct wpk_message){.kind = WPK_MESSAGE_ERROR, .err = WPK_EMISMATCH, .text = "too old"});
}

static void artifacts_carry_bytes(void **state)
{
    (void)state;
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = 2,
                                  .sha256 = HASH,
                                  .bytes = "\0\x7f"
                                           "ELF",
                                  .bytes_size = 5};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_int_equal(back.bytes_size, 5);
    assert_memory_equal(back.bytes, message.bytes, 5);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static wpk_err decode_text(const char *json, const char *after)
{
    char frame[1024];
    size_t size = strlen(json);
    frame[0] = (char)(size & 0xff);
    frame[1] = (char)(size >> 8);
    frame[2] = 0;
    frame[3] = 0;
    memcpy(frame + 4, json, size);
    memcpy(frame + 4 + size, after, strlen(after));
    struct wpk_message message = {0};
    wpk_err err = wpk_message_decode(frame, 4 + size + strlen(after), &message, NULL);
    wpk_message_fini(&message);
    return err;
}

static void rejects(void **state)
{
    (void)state;
    const char *poll = "{\"version\":1,\"type\":\"poll\",\"session\":\"1\",\"want\":1,"
                       "\"wait_ms\":0,\"holding\":[]}";
    assert_int_equal(decode_text(poll, ""), WPK_OK);
    assert_int_equal(decode_text(poll, "x"), WPK_EPARSE);
    assert_int_equal(decode_text("{\"version\":2,\"type\":\"poll\",\"session\":\"1\"}", ""),
                     WPK_EMISMATCH);
    assert_int_not_equal(decode_text("{\"version\":1,\"type\":\"dance\",\"session\":\"1\"}", ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":1,\"type\":\"poll\",\"session\":\"1\","
                                     "\"want\":1,\"wait_ms\":0,\"holding\":[],\"more\":1}",
                                     ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":1,\"type\":\"get_artifact\",\"session\":\"1\","
                                     "\"sha256\":\"../../etc/passwd\"}",
                                     ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":1,\"type\":\"work\",\"session\":\"1\",\"ops\":"
                                     "[],\"work\":[{}],\"leave\":false}",
                                     ""),
                         WPK_OK);
    struct wpk_message message = {0};
    assert_int_equal(wpk_message_decode("\xff\xff\xff\xff{}", 6, &message, NULL), WPK_EPARSE);
    assert_int_equal(wpk_message_decode("", 0, &message, NULL), WPK_EPARSE);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    struct wpk_result result = {
        .id = {9, WPK_WORK_TRIAL, 4},
        .attempt = 1,
        .record = {
            .outcome = WPK_OUTCOME_OK,
            .timing = {.median_ns = 1, .sample_count = 1, .repeat_count = 1, .sample_ns = {1}},
            .detail = (char *)"x"}};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .results = &result, .result_count = 1};
    struct wpk_buf frame = {0};
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    for (size_t size = 0; size < frame.size; size++) {
        char *copy = malloc(size + 1); /* its own block, so that reading past it is found */
        memcpy(copy, frame.data, size);
        struct wpk_message back = {0};
        assert_int_not_equal(wpk_message_decode(copy, size, &back, NULL), WPK_OK);
        free(copy);
    }
    wpk_buf_fini(&frame);
}

static void ok_is_timed(void **state)
{
    (void)state;
    struct wpk_result result = {.id = {9, WPK_WORK_TRIAL, 4}, .attempt = 1};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .results = &result, .result_count = 1};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    struct wpk_diag diag = {0};
    assert_int_equal(result.record.outcome, WPK_OUTCOME_OK);
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "not timed"));
    wpk_buf_reset(&frame);
    result.id.kind = WPK_WORK_FINAL; /* whose contenders may have failed */
    result.failure = "";
    result.timing_count = 1;
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, NULL), WPK_OK);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello),
        cmocka_unit_test(results_with_records_and_a_final),
        cmocka_unit_test(work_of_every_kind),
        cmocka_unit_test(the_small_ones),
        cmocka_unit_test(artifacts_carry_bytes),
        cmocka_unit_test(rejects),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(ok_is_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
