/* SPDX-License-Identifier: Apache-2.0 */
/* Answers computed by processes of their own, and ops that none can be had for. */
#include "worker/runner/runner_ops.h"

#include "common/fs.h"
#include "ir/notation/notation.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define MAY_BE_SANITIZED 1 /* then there is no limit of address space */
#else
#define MAY_BE_SANITIZED 0
#endif

static const char good[] = "input X f32[8]\noutput Y f32[8]\nY[i] = X[i] * 2\n";
/* Seconds of work. */
static const char large[] =
    "input X f32[20000]\noutput Y f32[20000]\nY[i] = sum(k:20000) exp(X[i] - X[k])\n";
static const char nowhere_finite[] =
    "input X f32[8]\noutput Y f32[8]\nY[i] = log(X[i] * X[i] * 0 - 1)\n";

static char directory[64];

static int set_up(void **state)
{
    /* A runner keeps what it knows to its end: each test is one. */
    static struct wpk_runner_ops runners[4];
    static int count;
    struct wpk_runner_ops *ops = &runners[count++ % 4];
    memcpy(directory, "/tmp/wpk-ops-XXXXXX", sizeof("/tmp/wpk-ops-XXXXXX"));
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    wpk_runner_ops_init(ops, directory);
    *state = ops;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return wpk_fs_remove_tree(directory, NULL) == WPK_OK ? 0 : -1;
}

/* Ask until nobody computes any more. */
static wpk_err settle(struct wpk_runner_ops *ops, const char *text, struct wpk_runner_op *op,
                      struct wpk_diag *diag)
{
    struct pollfd polled[WPK_RUNNER_OPS_MAX * WPK_RUNNER_SETS];
    wpk_err err = wpk_runner_ops_get(ops, text, op, diag);
    int count;
    while ((count = wpk_runner_ops_poll(ops, polled, WPK_RUNNER_OPS_MAX * WPK_RUNNER_SETS)) > 0) {
        poll(polled, (nfds_t)count, -1);
        wpk_runner_ops_collect(ops);
        err = wpk_runner_ops_get(ops, text, op, diag);
    }
    return err;
}

static void test_answers_come(void **state)
{
    struct wpk_runner_op op = {0};
    assert_int_equal(settle(*state, good, &op, NULL), WPK_OK);
    assert_true(op.answers[WPK_RUNNER_REALS].whole && op.answers[WPK_RUNNER_REALS].count == 8);
    assert_int_equal(op.answers[WPK_RUNNER_INTEGERS].inputs.kind, WPK_INPUT_INTEGERS);
}

/* A set joins when the others leave a fault unseen, with constants of its own; a runner that starts
 * later finds it again. */
static void test_sets_join(void **state)
{
    static const char saturated[] =
        "input X f32[16,256]\nconstant W f32[256]\noutput Y f32[16]\nintermediate T f32[16]\n"
        "T[i] = sum(k:256) (X[i,k] * W[k]) * (X[i,k] * W[k])\nY[i] = tanh(T[i])\n";
    static struct wpk_runner_ops later;
    struct wpk_runner_op op = {0};
    assert_int_equal(settle(*state, good, &op, NULL), WPK_OK);
    assert_int_equal(op.answers[WPK_INPUT_SCALED].count, 0);
    assert_int_equal(op.answers[WPK_INPUT_LARGE].count, 0);
    wpk_runner_ops_init(&later, directory);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(settle(i == 0 ? *state : &later, saturated, &op, NULL), WPK_OK);
        assert_true(op.answers[WPK_INPUT_SCALED].count > 0);
        assert_int_equal(op.answers[WPK_INPUT_LARGE].count, 0);
        assert_string_equal(op.unseen, "");
        const float *own = op.inputs[WPK_INPUT_SCALED].dense[1];
        const float *others = op.inputs[WPK_INPUT_REALS].dense[1];
        assert_true(own != NULL && own[5] * 16 == others[5]);
        assert_ptr_equal(op.inputs[WPK_INPUT_RELU].dense[1], others);
    }
}

static void test_no_answers_is_said(void **state)
{
    struct wpk_runner_op op = {0};
    struct wpk_diag diag = {0};
    assert_int_equal(settle(*state, nowhere_finite, &op, &diag), WPK_EUNSUPPORTED);
    assert_true(diag.text[0] != '\0');
    assert_int_equal(settle(*state, good, &op, NULL), WPK_OK);
}

/* Not before the child has come to it. */
static struct rlimit wait_for_limit(pid_t pid, __rlimit_resource_t resource)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    for (int i = 0; i < 60000 && limit.rlim_cur == RLIM_INFINITY; i++) {
        poll(NULL, 0, 1);
        assert_int_equal(prlimit(pid, resource, NULL, &limit), 0);
    }
    return limit;
}

/* An op that takes all of the machine ends itself, once. */
static void test_computing_is_limited(void **state)
{
    struct wpk_runner_ops *ops = *state;
    struct wpk_runner_op op = {0};
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_runner_ops_get(ops, large, &op, &diag), WPK_EBUSY);
    const struct wpk_runner_set *set = &ops->known[0].sets[WPK_RUNNER_REALS];
    assert_true(set->pid > 1);
    assert_true(wait_for_limit(set->pid, RLIMIT_CPU).rlim_cur < 160);
    assert_true(MAY_BE_SANITIZED || wait_for_limit(set->pid, RLIMIT_AS).rlim_cur < RLIM_INFINITY);
    for (int k = 0; k < WPK_RUNNER_SETS; k++) {
        if (ops->known[0].sets[k].pid > 0) {
            kill(ops->known[0].sets[k].pid, SIGKILL);
        }
    }
    assert_int_equal(settle(ops, large, &op, &diag), WPK_EUNSUPPORTED);
    assert_true(diag.text[0] != '\0');
    assert_true(set->pid == 0 && !set->ready);
}

/* Runs of a large product take seconds each. */
static void test_timeouts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t least, most;
    } cases[] = {
        {good, 30000, 30000},
        {"input A f32[4096,4096]\nconstant B f32[4096,4096]\noutput Y f32[4096,4096]\n"
         "Y[i,j] = sum(k:4096) A[i,k] * B[k,j]\n",
         30000 + 20 * 3000, 90000}, /* 20 runs of 3 s */
        {"input A f32[9999,9999]\nconstant B f32[9999,9999]\noutput Y f32[9999,9999]\n"
         "Y[i,j] = sum(k:9999) A[i,k] * B[k,j]\n",
         90000, 90000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        assert_int_equal(wpk_program_parse(cases[i].text, &program, NULL), WPK_OK);
        assert_in_range(wpk_runner_ops_timeout_ms(&program, 30000), cases[i].least, cases[i].most);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sets_join, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_answers_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_computing_is_limited, set_up, tear_down),
        cmocka_unit_test(test_timeouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
