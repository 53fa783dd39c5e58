/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine_message.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct ends {
    struct wpk_channel a, b;
    struct wpk_buf text;
};

static int open_ends(void **state)
{
    static struct ends ends;
    int pair[2];
    ends = (struct ends){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    wpk_channel_init(&ends.a, pair[0]);
    wpk_channel_init(&ends.b, pair[1]);
    wpk_buf_init(&ends.text, WPK_CHANNEL_MESSAGE_MAX);
    *state = &ends;
    return 0;
}

static int close_ends(void **state)
{
    struct ends *ends = *state;
    wpk_channel_fini(&ends->a);
    wpk_channel_fini(&ends->b);
    wpk_buf_fini(&ends->text);
    return 0;
}

static void test_whole_messages(void **state)
{
    struct ends *ends = *state;
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_ENOENT);
    assert_int_equal(wpk_channel_send(&ends->a, "one", 3), WPK_OK);
    assert_int_equal(wpk_channel_send(&ends->a, "", 0), WPK_OK);
    assert_int_equal(wpk_channel_send(&ends->a, "three", 5), WPK_OK);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    assert_string_equal(wpk_buf_text(&ends->text), "one");
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    assert_int_equal(ends->text.size, 0);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    assert_string_equal(wpk_buf_text(&ends->text), "three");
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_ENOENT);
}

static void test_message_in_pieces(void **state)
{
    struct ends *ends = *state;
    const char bytes[] = {5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_ENOENT);
        assert_int_equal(write(ends->a.fd, bytes + i, 1), 1);
    }
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    assert_string_equal(wpk_buf_text(&ends->text), "hello");
}

static void test_dead_peer(void **state)
{
    struct ends *ends = *state;
    assert_int_equal(wpk_channel_send(&ends->a, "last", 4), WPK_OK);
    wpk_channel_fini(&ends->a);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_ECLOSED);
    assert_int_equal(wpk_channel_send(&ends->b, "x", 1), WPK_ECLOSED);
    assert_int_equal(wpk_channel_send(&ends->a, "x", 1), WPK_ECLOSED);
}

static void test_announced_too_long(void **state)
{
    struct ends *ends = *state;
    const unsigned char size[] = {255, 255, 255, 255};
    assert_int_equal(write(ends->a.fd, size, 4), 4);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_ECORRUPT);
}

static void test_run_request(void **state)
{
    struct ends *ends = *state;
    const struct wpk_run_request sent = {
        .id = UINT64_MAX,
        .op = "output Y f32[1]\nY[i] = 1\n",
        .provider = "halide-cpu",
        .work = "12/trial/7",
        .layouts = "any",
        .artifact = "/tmp/a \"b\".so",
        .anchor = "/tmp/anchor.so",
        .incumbent_ratio = 1.25,
        .policy = {.threads = 2,
                   .conditions = WPK_CONDITIONS_COLD_CONSTANTS,
                   .time_ns_min = 12345678901234,
                   .sample_count = 9,
                   .race_ratio = 1.25},
        .rule = {.exact = true, .transforms = true, .times = 39.5},
        .incumbent_ns = 17,
        .accuracy = {.times_direct = 6},
        .fresh_seed = UINT64_MAX - 1,
        .timeout_ms = 10,
        .memory_bytes_max = (uint64_t)1 << 63,
    };
    assert_int_equal(WPK_ENGINE_SEND(&ends->a, .kind = WPK_ENGINE_MESSAGE_RUN, .run = sent),
                     WPK_OK);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    struct wpk_engine_message message;
    assert_int_equal(wpk_engine_message_read(&ends->text, &message), WPK_OK);
    assert_int_equal(message.kind, WPK_ENGINE_MESSAGE_RUN);
    const struct wpk_run_request got = message.run;
    assert_true(got.id == sent.id && got.fresh_seed == sent.fresh_seed);
    assert_true(got.accuracy.times_direct == 6);
    assert_string_equal(got.work, sent.work);
    assert_string_equal(got.op, sent.op);
    assert_string_equal(got.provider, sent.provider);
    assert_string_equal(got.layouts, sent.layouts);
    assert_string_equal(got.artifact, sent.artifact);
    assert_int_equal(got.policy.threads, 2);
    assert_int_equal(got.policy.conditions, WPK_CONDITIONS_COLD_CONSTANTS);
    assert_true(got.policy.time_ns_min == sent.policy.time_ns_min);
    assert_int_equal(got.policy.sample_count, 9);
    assert_true(got.policy.race_ratio == 1.25);
    assert_true(got.rule.exact && got.rule.transforms && got.rule.times == 39.5);
    assert_int_equal(got.incumbent_ns, 17);
    assert_int_equal(got.timeout_ms, 10);
    assert_true(got.memory_bytes_max == sent.memory_bytes_max);
}

static void test_result(void **state)
{
    struct ends *ends = *state;
    struct wpk_record sent[2] = {
        {.outcome = WPK_OUTCOME_RUN_CRASH, .log = "a\nb"},
        {.timing = {.sample_count = 1, .repeat_count = 1, .min_ns = 5, .median_ns = 6}}};
    assert_int_equal(wpk_engine_message_send_result(&ends->a, 3, sent, 2), WPK_OK);
    assert_int_equal(wpk_channel_receive(&ends->b, &ends->text), WPK_OK);
    struct wpk_engine_message message;
    struct wpk_record got[4] = {{0}};
    int count = 0;
    assert_int_equal(wpk_engine_message_read(&ends->text, &message), WPK_OK);
    assert_int_equal(message.id, 3);
    assert_int_equal(wpk_engine_message_read_result(&message, got, 4, &count), WPK_OK);
    assert_int_equal(count, 2);
    assert_string_equal(got[0].log, "a\nb");
    assert_int_equal(got[1].timing.min_ns, 5);
}

/* No texts, one without its end, bytes behind the last one, and another kind. */
static void test_nonsense_is_refused(void **state)
{
    struct ends *ends = *state;
    const struct wpk_engine_message op = {.kind = WPK_ENGINE_MESSAGE_OP, .text = "op"};
    const struct wpk_engine_message other = {.kind = WPK_ENGINE_MESSAGE_COUNT};
    const struct {
        const struct wpk_engine_message *message;
        size_t size;
        const char *rest;
        size_t rest_size;
    } bad[] = {{&op, sizeof op - 1, "", 0},
               {&op, sizeof op, "", 0},
               {&op, sizeof op, "op", 2},
               {&op, sizeof op, "op\0x", 4},
               {&other, sizeof other, "", 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wpk_engine_message message;
        wpk_buf_reset(&ends->text);
        wpk_buf_append(&ends->text, bad[i].message, bad[i].size);
        wpk_buf_append(&ends->text, bad[i].rest, bad[i].rest_size);
        assert_int_not_equal(wpk_engine_message_read(&ends->text, &message), WPK_OK);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)
    const struct CMUnitTest tests[] = {
        CASE(test_whole_messages),      CASE(test_message_in_pieces), CASE(test_dead_peer),
        CASE(test_announced_too_long),  CASE(test_run_request),       CASE(test_result),
        CASE(test_nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
