/* SPDX-License-Identifier: Apache-2.0 */
#include "client/follow.h"

#include "common/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_api_op searching(void)
{
    return (struct wpk_api_op){
        .name = "a-convolution-of-the-third-stage",
        .phase = "searching",
        .measured = 40,
        .failed = 10,
        .known = 30,
        .wanted = 200,
        .best = {.provider = "halide-cpu",
                 .algorithm = "winograd(6)",
                 .time = {.median_ns = 590100}},
        .baseline = {.provider = "onednn", .time = {.median_ns = 1180200, .mad_ns = 200000}},
    };
}

static const char *print(const struct wpk_api_job *job, int width)
{
    static char text[512];
    struct wpk_buf out = {0};

    wpk_follow_print(job, false, width, &out);
    snprintf(text, sizeof(text), "%s", wpk_buf_text(&out));
    wpk_buf_fini(&out);
    return text;
}

static void test_line_fits(void **state)
{
    struct wpk_api_op op = searching();
    struct wpk_api_job job = {.state = "running",
                              .reason = "",
                              .seconds = 10,
                              .seconds_left = 600,
                              .ops = &op,
                              .op_count = 1};

    (void)state;
    assert_string_equal(
        print(&job, 0),
        "a-convolution-of-the-third-stage: 50 of 200 tried, 10 failed, best 590.1 µs "
        "(winograd(6)), onednn 1.180 ms ± 17 %, 2.00x, about 1 min 15 s left");
    for (int width = 1; width < 160; width++) {
        assert_true(wpk_format_width(print(&job, width)) <= width);
    }
    assert_non_null(strstr(print(&job, 79), "50 of 200 tried, 10 failed"));
    op.name = "c6";
    assert_string_equal(print(&job, 79), "c6: 50 of 200 tried, 10 failed, best 590.1 µs, 2.00x, "
                                         "about 1 min 15 s left");
}

static void test_estimate(void **state)
{
    struct wpk_api_op ops[2] = {searching(), searching()};
    struct wpk_api_job job = {.state = "running",
                              .reason = "",
                              .seconds = 10,
                              .seconds_left = 600,
                              .ops = ops,
                              .op_count = 2};

    (void)state;
    assert_int_equal(wpk_follow_estimate(&job), 75); /* 40 trials in 10 s, 300 to go */
    ops[0].phase = "done";
    assert_int_equal(wpk_follow_estimate(&job), 37);
    job.seconds_left = 20;
    assert_int_equal(wpk_follow_estimate(&job), 20);
    ops[0].known = ops[1].known = 50;
    assert_int_equal(wpk_follow_estimate(&job), -1);
    assert_non_null(strstr(print(&job, 0), "at most 20 s left"));
}

/* The duration of a final is not known from the pace of trials. */
static void test_no_estimate_of_a_final(void **state)
{
    struct wpk_api_op ops[2] = {searching(), searching()};
    struct wpk_api_job job = {.state = "running",
                              .reason = "",
                              .seconds = 10,
                              .seconds_left = 600,
                              .ops = ops,
                              .op_count = 1};

    (void)state;
    ops[0].name = "c6";
    ops[0].measured = 190;
    ops[0].phase = "finals";
    assert_string_equal(print(&job, 79), "c6: 200 of 200 tried, 10 failed, best 590.1 µs, 2.00x, "
                                         "timing the finalists");
    ops[0].phase = "verifying";
    assert_null(strstr(print(&job, 0), "left"));
    job.op_count = 2; /* the other one's trials are still to come */
    assert_non_null(strstr(print(&job, 0), " left"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_fits),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_no_estimate_of_a_final),
    };

    return cmocka_run_group_tests_name("follow", tests, NULL, NULL);
}
