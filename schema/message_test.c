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
                   .cpu = {.flags = WPK_CPU_SET_AVX2,
                           .l1_bytes = 32768,
                           .l2_bytes = 1 << 20,
                           .l3_bytes = 1 << 25,
                           .vector_bytes = 32,
                           .vector_registers = 16},
                   .core_count = 2,
                   .instance = "host/cpu0"},
        .environment = "codegen=1;halide=21.0.0",
        .providers = {{.name = "halide-cpu"}, {.name = "onednn", .vendor = true}},
        .provider_count = 2,
        .back_ends = {{.name = "c", .version = "gcc-12.2.0"}, {.name = "d", .missing = "no d"}},
        .back_end_count = 2,
        .token = "wpk_0123",
        .roles = WPK_WORKER_BUILDS,
        .slots = 7,
        .program = "wpk-worker 2",
        .labels = {{"zone", "b"}, {"rack.row", "4 \"x\""}},
        .label_count = 2,
    };
    wpk_work_id holding = {.search = 3, .kind = WPK_WORK_TRIAL, .index = 17};
    struct wpk_message message = {
        .kind = WPK_MESSAGE_HELLO, .hello = &hello, .holding = &holding, .holding_count = 1};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_string_equal(back.hello->device.model, "A \"CPU\"");
    assert_true(back.hello->providers[1].vendor);
    assert_int_equal(back.hello->back_end_count, 2);
    assert_string_equal(back.hello->back_ends[0].version, "gcc-12.2.0");
    assert_string_equal(back.hello->back_ends[1].missing, "no d");
    assert_int_equal(back.hello->roles, WPK_WORKER_BUILDS);
    assert_int_equal(back.hello->slots, 7);
    assert_string_equal(back.hello->token, "wpk_0123");
    assert_string_equal(back.hello->program, "wpk-worker 2");
    assert_string_equal(back.hello->labels[1].name, "rack.row");
    assert_string_equal(back.hello->labels[1].value, "4 \"x\"");
    assert_true(wpk_work_id_equal(back.holding[0], holding));
    wpk_message_fini(&back);

    /* '+' and '/' join the entries of a list of back ends. */
    for (const char *at = "+;/ "; *at != '\0'; at++) {
        hello.back_ends[0].version[3] = *at;
        wpk_buf_reset(&frame);
        assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
        assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, NULL), WPK_EINVAL);
    }
    hello.back_ends[0].version[3] = '-';

    /* A text that wpkctl prints must not contain a terminal's escape sequence. */
    char *const texts[] = {hello.name,
                           hello.device.model,
                           hello.environment,
                           hello.program,
                           hello.labels[1].value,
                           hello.providers[1].name,
                           hello.back_ends[1].missing};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wpk_diag diag = {0};
        char first = texts[i][0];
        texts[i][0] = '\x1b';
        wpk_buf_reset(&frame);
        assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
        assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, &diag), WPK_EINVAL);
        assert_string_equal(diag.text, "has a control character");
        texts[i][0] = first;
    }
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
                                .conditions = WPK_CONDITIONS_COLD_CONSTANTS,
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
         .keep_artifact = true,
         .accuracy = {.times_direct = 6}},
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
    assert_true(back.work[0].accuracy.times_direct == 6);
    assert_int_equal(back.work[0].policy.conditions, WPK_CONDITIONS_COLD_CONSTANTS);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

/* A worker's session ends at a reply that it cannot read. */
static void the_longest_candidate(void **state)
{
    (void)state;
    static char candidate[WPK_CANDIDATE_TEXT_MAX];
    memset(candidate, 'a', sizeof(candidate) - 1);
    struct wpk_message_op op = {.text = "Y[i] = X[i]", .layouts = "any"};
    struct wpk_work work = {.id = {1, WPK_WORK_TRIAL, 0},
                            .attempt = 1,
                            .provider = "halide-cpu",
                            .candidate = candidate,
                            .policy = {.threads = 1, .sample_count = 1},
                            .accuracy = WPK_ACCURACY_STANDARD};
    struct wpk_message message = {.kind = WPK_MESSAGE_WORK,
                                  .session = 1,
                                  .ops = &op,
                                  .op_count = 1,
                                  .work = &work,
                                  .work_count = 1};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_string_equal(back.work[0].candidate, candidate);
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void stages_name_what_they_need(void **state)
{
    (void)state;
    struct wpk_message_op op = {.text = "Y[i] = X[i]", .layouts = "any"};
    struct wpk_device target = {.kind = "cpu",
                                .model = "B",
                                .cpu = {.flags = WPK_CPU_SET_AVX512,
                                        .vector_bytes = 64,
                                        .l1_bytes = 1,
                                        .l2_bytes = 1,
                                        .l3_bytes = 1,
                                        .vector_registers = 32},
                                .core_count = 4,
                                .instance = "b/cpu0"};
    struct wpk_policy policy = {.threads = 1, .sample_count = 1};
    struct wpk_work work[2] = {
        {.id = {1, WPK_WORK_TRIAL, 0},
         .lease = UINT64_MAX,
         .stage = WPK_STAGE_BUILD,
         .attempt = 1,
         .provider = "halide-cpu",
         .candidate = "a=b",
         .policy = policy,
         .accuracy = WPK_ACCURACY_STANDARD},
        {.id = {1, WPK_WORK_VERIFY, 1},
         .lease = 4,
         .stage = WPK_STAGE_RUN,
         .attempt = 1,
         .artifact_sha256 = HASH,
         .build_ns = 150000000,
         .provider = "halide-cpu",
         .candidate = "a=c",
         .policy = policy,
         .accuracy = WPK_ACCURACY_STANDARD},
    };
    struct wpk_message message = {.kind = WPK_MESSAGE_WORK,
                                  .session = 1,
                                  .ops = &op,
                                  .op_count = 1,
                                  .targets = &target,
                                  .target_count = 1,
                                  .work = work,
                                  .work_count = 2};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_string_equal(back.targets[back.work[0].target].model, "B");
    assert_int_equal(back.work[0].stage, WPK_STAGE_BUILD);
    assert_true(back.work[0].lease == UINT64_MAX);
    assert_string_equal(back.work[0].artifact_sha256, "");
    assert_string_equal(back.work[1].artifact_sha256, HASH);
    assert_int_equal(back.work[1].build_ns, 150000000);
    wpk_message_fini(&back);
    wpk_buf_reset(&frame);
    message.target_count = 0; /* what is built for is nowhere said */
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, NULL), WPK_EINVAL);
    wpk_buf_fini(&frame);
}

static void the_small_ones(void **state)
{
    (void)state;
    enum wpk_ack acks[] = {WPK_ACK_RECORDED, WPK_ACK_UNKNOWN};
    wpk_work_id id = {1, WPK_WORK_VERIFY, 2};
    check(&(struct wpk_message){
        .kind = WPK_MESSAGE_POLL, .want = 8, .wait_ms = 5000, .running = UINT64_MAX});
    check(&(struct wpk_message){.kind = WPK_MESSAGE_GET_ARTIFACT, .sha256 = HASH});
    check(&(struct wpk_message){
        .kind = WPK_MESSAGE_WELCOME, .session = 5, .lease_ms = 15000, .server = "wpkd 2"});
    check(&(struct wpk_message){.kind = WPK_MESSAGE_ACK, .acks = acks, .ack_count = 2});
    check(&(struct wpk_message){
        .kind = WPK_MESSAGE_GIVE_BACK, .given_back = &id, .given_back_count = 1});
    check(&(struct wpk_message){
        .kind = WPK_MESSAGE_ERROR, .err = WPK_EMISMATCH, .text = "too old", .retry_ms = 1000});
}

static void artifacts_carry_bytes(void **state)
{
    (void)state;
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = 2,
                                  .sha256 = HASH,
                                  .made_for = {3, WPK_WORK_PLAIN, 2},
                                  .bytes = "\0\x7f"
                                           "ELF",
                                  .bytes_size = 5};
    struct wpk_buf frame = {0};
    struct wpk_message back = {0};
    round_trip(&message, &back, &frame);
    assert_int_equal(back.bytes_size, 5);
    assert_memory_equal(back.bytes, message.bytes, 5);
    assert_true(wpk_work_id_equal(back.made_for, message.made_for));
    wpk_message_fini(&back);
    wpk_buf_fini(&frame);
}

static void make_frame(const char *json, const char *after, struct wpk_buf *frame)
{
    size_t size = strlen(json);
    for (int shift = 0; shift < 32; shift += 8) {
        wpk_buf_append_byte(frame, (char)(size >> shift & 0xff));
    }
    wpk_buf_append(frame, json, size);
    wpk_buf_append(frame, after, strlen(after));
    assert_int_equal(wpk_buf_status(frame), WPK_OK);
}

static wpk_err decode_text(const char *json, const char *after)
{
    struct wpk_buf frame = {0};
    struct wpk_message message = {0};
    make_frame(json, after, &frame);
    wpk_err err = wpk_message_decode(frame.data, frame.size, &message, NULL);
    wpk_message_fini(&message);
    wpk_buf_fini(&frame);
    return err;
}

/* One frame of each kind, byte for byte: a change of these is a change of the protocol. */
static const char *const stable_frames[] = {
    "{\"version\":8,\"type\":\"hello\",\"session\":\"0\",\"holding\":[{\"search\":\"1\","
    "\"kind\":\"trial\",\"index\":1}],\"name\":\"host/1\",\"device\":{\"kind\":\"cpu\","
    "\"model\":\"CPU\",\"flags\":[\"sse4_1\",\"avx\",\"avx2\",\"fma\",\"f16c\"],\"core_count\":2,"
    "\"l1_bytes\":32768,\"l2_bytes\":1048576,\"l3_bytes\":33554432,"
    "\"peak_flops_per_s\":0,\"peak_bytes_per_s\":0,"
    "\"instance\":\"host/cpu0\"},\"environment\":\"codegen=1\","
    "\"providers\":[{\"name\":\"halide-cpu\",\"vendor\":false}],"
    "\"back_ends\":[{\"name\":\"c\",\"version\":\"gcc-12.2.0\",\"missing\":\"\"}],"
    "\"program\":\"wpk-worker 1\","
    "\"token\":\"\",\"builds\":true,\"runs\":true,\"slots\":2,\"labels\":{}}",
    "{\"version\":8,\"type\":\"poll\",\"session\":\"18446744073709551615\",\"want\":8,"
    "\"wait_ms\":5000,\"holding\":[{\"search\":\"1\",\"kind\":\"verify\",\"index\":0}],"
    "\"running\":\"7\"}",
    "{\"version\":8,\"type\":\"results\",\"session\":\"1\",\"results\":[{\"search\":\"1\","
    "\"kind\":\"trial\",\"index\":0,\"lease\":\"7\",\"stage\":\"whole\",\"attempt\":1,"
    "\"record\":{\"outcome\":\"ok\","
    "\"timing\":{\"sample_ns\":[588001,590125],\"median_ns\":590125,\"min_ns\":588001,"
    "\"mad_ns\":912,\"repeat_count\":2,\"censored\":false},\"anchor_ns\":1000,\"build_ns\":1,"
    "\"verify_ns\":2,\"measure_ns\":3,\"error\":{\"max\":0.5,\"tolerance\":1,\"ratio\":0.5,"
    "\"of_rms\":1e-06,\"times_direct\":1.5},\"constants_bytes\":64,\"unseen\":\"t1\","
    "\"schedule\":\"wpk-schedule 2\\n\",\"schedule_sha256\":\"" HASH "\","
    "\"artifact\":{\"sha256\":\"" HASH "\"},\"detail\":\"x\"}}]}",
    "{\"version\":8,\"type\":\"put_artifact\",\"session\":\"1\",\"search\":\"1\",\"kind\":"
    "\"trial\","
    "\"index\":7,\"sha256\":\"" HASH "\"}",
    "{\"version\":8,\"type\":\"get_artifact\",\"session\":\"1\",\"sha256\":\"" HASH "\"}",
    "{\"version\":8,\"type\":\"give_back\",\"session\":\"1\",\"leases\":[{\"search\":\"1\","
    "\"kind\":\"trial\",\"index\":1}],\"reason\":\"the GPU is gone\"}",
    "{\"version\":8,\"type\":\"welcome\",\"session\":\"5\",\"lease_ms\":20000,\"server\":\"wpkd "
    "1\"}",
    "{\"version\":8,\"type\":\"work\",\"session\":\"1\",\"ops\":[{\"text\":\"input X f32[4]\\n\","
    "\"layouts\":\"any\"}],\"targets\":[],\"work\":[{\"search\":\"1\",\"kind\":\"trial\","
    "\"index\":0,\"lease\":\"7\",\"stage\":\"whole\",\"attempt\":1,\"op\":0,\"policy\":{"
    "\"threads\":1,\"conditions\":\"warm\","
    "\"time_ns_min\":20000000,\"sample_count\":10,\"race_ratio\":1.3},"
    "\"provider\":\"halide-cpu\",\"candidate\":\"cpu-1 a=b\",\"incumbent_ns\":5,"
    "\"keep_artifact\":true,\"accuracy\":\"standard\"},{\"search\":\"1\",\"kind\":\"final\","
    "\"index\":0,\"lease\":\"8\",\"stage\":\"whole\",\"attempt\":1,"
    "\"op\":0,\"policy\":{\"threads\":1,\"conditions\":\"warm\",\"time_ns_min\":20000000,"
    "\"sample_count\":10,\"race_ratio\":1.3},\"round_count\":15,"
    "\"contenders\":[{\"provider\":\"onednn\",\"artifact\":\"\"}]}],\"leave\":false}",
    "{\"version\":8,\"type\":\"ack\",\"session\":\"1\",\"results\":[\"recorded\",\"unknown\"]}",
    "{\"version\":8,\"type\":\"artifact\",\"session\":\"1\",\"sha256\":\"" HASH "\"}",
    "{\"version\":8,\"type\":\"error\",\"session\":\"1\",\"code\":\"ENOENT\",\"text\":\"hello?\","
    "\"retry_ms\":5}",
};

static void frames_are_stable(void **state)
{
    (void)state;
    bool seen[WPK_MESSAGE_COUNT] = {false};
    for (size_t i = 0; i < sizeof stable_frames / sizeof stable_frames[0]; i++) {
        struct wpk_buf frame = {0};
        struct wpk_buf again = {0};
        struct wpk_message message = {0};
        make_frame(stable_frames[i], "", &frame);
        assert_int_equal(wpk_message_decode(frame.data, frame.size, &message, NULL), WPK_OK);
        seen[message.kind] = true;
        assert_int_equal(wpk_message_encode(&message, &again), WPK_OK);
        assert_int_equal(again.size, frame.size);
        assert_memory_equal(again.data, frame.data, frame.size);
        wpk_message_fini(&message);
        wpk_buf_fini(&frame);
        wpk_buf_fini(&again);
    }
    for (int kind = 0; kind < WPK_MESSAGE_COUNT; kind++) {
        assert_true(seen[kind]);
    }
}

/* The error for a peer of another version names both; the frame of every kind of message has the
 * version, so that no message of such a peer is misread. */
static void rejects_other_versions(void **state)
{
    (void)state;
    static const int versions[] = {0, 4, WPK_PROTOCOL_VERSION + 1};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        for (int kind = 0; kind < WPK_MESSAGE_COUNT; kind++) {
            char json[96], words[64];
            struct wpk_buf frame = {0};
            struct wpk_message message = {0};
            struct wpk_diag diag = {0};
            snprintf(json, sizeof json, "{\"version\":%d,\"type\":\"%s\",\"session\":\"1\"}",
                     versions[i], wpk_message_kind_name((enum wpk_message_kind)kind));
            make_frame(json, "", &frame);
            assert_int_equal(wpk_message_decode(frame.data, frame.size, &message, &diag),
                             WPK_EMISMATCH);
            snprintf(words, sizeof words, "version %d is not spoken here, only %d:", versions[i],
                     WPK_PROTOCOL_VERSION);
            assert_non_null(strstr(diag.text, words));
            wpk_message_fini(&message);
            wpk_buf_fini(&frame);
        }
    }
}

static void rejects(void **state)
{
    (void)state;
    const char *poll = "{\"version\":8,\"type\":\"poll\",\"session\":\"1\",\"want\":1,"
                       "\"wait_ms\":0,\"holding\":[],\"running\":\"0\"}";
    assert_int_equal(decode_text(poll, ""), WPK_OK);
    assert_int_equal(decode_text(poll, "x"), WPK_EPARSE);
    assert_int_not_equal(decode_text("{\"version\":8,\"type\":\"dance\",\"session\":\"1\"}", ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":8,\"type\":\"poll\",\"session\":\"1\","
                                     "\"want\":1,\"wait_ms\":0,\"holding\":[],\"more\":1}",
                                     ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":8,\"type\":\"get_artifact\",\"session\":\"1\","
                                     "\"sha256\":\"../../etc/passwd\"}",
                                     ""),
                         WPK_OK);
    assert_int_not_equal(decode_text("{\"version\":8,\"type\":\"work\",\"session\":\"1\",\"ops\":"
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
    result.stage = WPK_STAGE_BUILD; /* which times nothing, but has something to show */
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, NULL), WPK_EINVAL);
    wpk_buf_reset(&frame);
    memcpy(result.record.artifact_sha256, HASH, sizeof HASH);
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    assert_int_equal(wpk_message_decode(frame.data, frame.size, &back, NULL), WPK_OK);
    assert_int_equal(back.results[0].stage, WPK_STAGE_BUILD);
    wpk_message_fini(&back);
    wpk_buf_reset(&frame);
    result.stage = WPK_STAGE_WHOLE;
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
        cmocka_unit_test(the_longest_candidate),
        cmocka_unit_test(stages_name_what_they_need),
        cmocka_unit_test(frames_are_stable),
        cmocka_unit_test(the_small_ones),
        cmocka_unit_test(artifacts_carry_bytes),
        cmocka_unit_test(rejects_other_versions),
        cmocka_unit_test(rejects),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(ok_is_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
