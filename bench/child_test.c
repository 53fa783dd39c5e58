/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *fake_program;

static wpk_err ask_open(struct bench_child *child, const char *name, struct bench_reply *reply,
                        struct wpk_diag *diag)
{
    struct bench_request request = {
        .command = BENCH_OPEN,
        .what = {.op = {.kind = BENCH_RELU, .rows = 1, .columns = 64}, .threads = 1},
    };
    snprintf(request.what.op.name, sizeof(request.what.op.name), "%s", name);
    *reply = (struct bench_reply){0};
    return bench_child_ask(child, &request, reply, diag);
}

/* The state letter of /proc/PID/stat. */
static char process_state(pid_t pid)
{
    char path[64];
    char line[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    const char *after_name = strrchr(line, ')');
    assert_non_null(after_name);
    return after_name[2];
}

static void test_a_round_takes_the_peers_time(void **state)
{
    (void)state;
    struct bench_child child = {0};
    struct bench_reply reply;
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    assert_string_equal(child.version, "fake 1.0");
    assert_int_equal(ask_open(&child, "right", &reply, NULL), WPK_OK);
    assert_string_equal(reply.text, "thinking");
    assert_true(reply.error_ratio <= 1);
    const struct bench_request round = {.command = BENCH_ROUND, .budget_ns = 20000000};
    assert_int_equal(bench_child_ask(&child, &round, &reply, NULL), WPK_OK);
    assert_true(reply.samples >= 5);
    assert_true(reply.ns_min >= 1e6);
    assert_true(reply.ns_median >= reply.ns_min);
    bench_child_stop(&child);
}

/* Else its thread pool would spin on the cores that another peer is timed on. */
static void test_a_child_sleeps_between_requests(void **state)
{
    (void)state;
    struct bench_child child = {0};
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    for (int i = 0; i < 60000 && process_state(child.pid) != 'T'; i++) {
        usleep(1000);
    }
    assert_int_equal(process_state(child.pid), 'T');
    bench_child_stop(&child);
}

static void test_wrong_results_are_seen(void **state)
{
    (void)state;
    struct bench_child child = {0};
    struct bench_reply reply;
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    assert_int_equal(ask_open(&child, "wrong", &reply, NULL), WPK_OK);
    assert_true(reply.error_ratio > BENCH_OP_WRONG);
    bench_child_stop(&child);
}

/* One call a sample: five at least, each of a millisecond, and the memory is read in between. */
static void test_cold_rounds_are_timed(void **state)
{
    (void)state;
    struct bench_child child = {0};
    struct bench_reply reply;
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    assert_int_equal(ask_open(&child, "right", &reply, NULL), WPK_OK);
    assert_true(reply.accuracy.times_direct == 0);
    const struct bench_request round = {
        .command = BENCH_ROUND,
        .budget_ns = 1,
        .conditions = WPK_CONDITIONS_COLD_CONSTANTS,
    };
    assert_int_equal(bench_child_ask(&child, &round, &reply, NULL), WPK_OK);
    assert_int_equal(reply.samples, 5);
    assert_true(reply.ns_min >= 1e6);
    bench_child_stop(&child);
}

static void test_a_refusal_says_why_and_the_child_lives_on(void **state)
{
    (void)state;
    struct bench_child child = {0};
    struct bench_reply reply;
    struct wpk_diag diag = {0};
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    assert_int_equal(ask_open(&child, "refuses", &reply, &diag), WPK_EUNSUPPORTED);
    assert_string_equal(diag.text, "not today");
    assert_int_equal(ask_open(&child, "right", &reply, NULL), WPK_OK);
    bench_child_stop(&child);
}

static void test_a_death_is_reported_once_and_reaped(void **state)
{
    (void)state;
    struct bench_child child = {0};
    struct bench_reply reply;
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    assert_int_equal(ask_open(&child, "dies", &reply, NULL), WPK_ECLOSED);
    assert_int_equal(child.pid, 0);
    assert_int_equal(bench_child_start(&child, fake_program, 1, NULL), WPK_OK);
    bench_child_stop(&child);
    bench_child_stop(&child);
}

static void test_what_cannot_start_says_so(void **state)
{
    (void)state;
    struct bench_child child = {0};
    assert_int_equal(bench_child_start(&child, "/nonexistent/peer", 1, NULL), WPK_ENOENT);
    assert_int_equal(bench_child_start(&child, fake_program, 100000, NULL), WPK_ERANGE);
    assert_int_equal(child.pid, 0);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: child_test FAKE_PEER\n");
        return 2;
    }
    fake_program = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_takes_the_peers_time),
        cmocka_unit_test(test_a_child_sleeps_between_requests),
        cmocka_unit_test(test_wrong_results_are_seen),
        cmocka_unit_test(test_cold_rounds_are_timed),
        cmocka_unit_test(test_a_refusal_says_why_and_the_child_lives_on),
        cmocka_unit_test(test_a_death_is_reported_once_and_reaped),
        cmocka_unit_test(test_what_cannot_start_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
