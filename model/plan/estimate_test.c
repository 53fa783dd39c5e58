/* SPDX-License-Identifier: Apache-2.0 */
/* Times of kernels before they are measured, of histories by hand. */
#include "model/plan/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KERNELS = 4 };

/* 1e9 operations and 1e10 bytes a second: a kernel of n thousand operations takes n us. */
static const struct wpk_tune_machine machine = {
    .roofline = {.flops_per_s = 1e9, .bytes_per_s = 1e10}, .cache_bytes = 1 << 20};

struct setup {
    struct wpk_tune_model model;
    struct wpk_job job;
    struct wpk_job_op ops[KERNELS];
};

static void begin(struct setup *s)
{
    static const double flops[KERNELS] = {1000, 2000, 3000, 4000};
    memset(s, 0, sizeof(*s));
    s->model.kernels = calloc(KERNELS, sizeof(*s->model.kernels));
    assert_non_null(s->model.kernels);
    s->model.kernel_count = KERNELS;
    s->job.ops = s->ops;
    s->job.op_count = KERNELS;
    for (int k = 0; k < KERNELS; k++) {
        s->model.kernels[k].cost = (struct wpk_cost){.flops = flops[k], .bytes_min = 80};
        s->ops[k].conditions = WPK_CONDITIONS_COLD;
    }
}

static void end(struct setup *s)
{
    free(s->model.kernels);
}

/* A history that says this of each kernel; ns 0: nothing. */
static wpk_err expect(void *user, const struct wpk_job *job, struct wpk_tune_expected *out,
                      struct wpk_diag *diag)
{
    (void)diag;
    if (user == NULL) {
        return WPK_ETIMEDOUT;
    }
    memcpy(out, user, (size_t)job->op_count * sizeof(*out));
    return WPK_OK;
}

static void no_history_is_the_roofline(void **state)
{
    (void)state;
    struct setup s;
    begin(&s);
    assert_int_equal(wpk_estimate_model(NULL, &s.job, &machine, &s.model, NULL), WPK_OK);
    for (int k = 0; k < KERNELS; k++) {
        assert_true(s.model.kernels[k].roofline_ns == 1000.0 * (k + 1));
        assert_true(s.model.kernels[k].expected.ns == 1000.0 * (k + 1));
        assert_int_equal(s.model.kernels[k].expected.from, WPK_TUNE_FROM_ROOFLINE);
    }
    end(&s);
}

/* Known kernels have a half, a quarter and a fifth of the roofline: others have a quarter, too. */
static void unknown_kernels_have_the_median_share(void **state)
{
    (void)state;
    struct setup s;
    static struct wpk_tune_expected known[KERNELS] = {{2000, WPK_TUNE_FROM_MEASURED},
                                                      {8000, WPK_TUNE_FROM_FAMILY},
                                                      {15000, WPK_TUNE_FROM_ELSEWHERE},
                                                      {0, WPK_TUNE_FROM_MEASURED}};
    const struct wpk_tune_source source = {.expect = expect, .user = known};
    begin(&s);
    assert_int_equal(wpk_estimate_model(&source, &s.job, &machine, &s.model, NULL), WPK_OK);
    for (int k = 0; k < 3; k++) {
        assert_true(s.model.kernels[k].expected.ns == known[k].ns);
        assert_int_equal(s.model.kernels[k].expected.from, known[k].from);
    }
    assert_true(s.model.kernels[3].expected.ns == 16000);
    assert_int_equal(s.model.kernels[3].expected.from, WPK_TUNE_FROM_ROOFLINE);
    end(&s);
}

/* A history of kernels that are faster than the roofline does not make others so. */
static void no_estimate_is_below_the_roofline(void **state)
{
    (void)state;
    struct setup s;
    static struct wpk_tune_expected known[KERNELS] = {{500, WPK_TUNE_FROM_MEASURED}};
    const struct wpk_tune_source source = {.expect = expect, .user = known};
    begin(&s);
    assert_int_equal(wpk_estimate_model(&source, &s.job, &machine, &s.model, NULL), WPK_OK);
    assert_true(s.model.kernels[0].expected.ns == 500);
    assert_true(s.model.kernels[1].expected.ns == 2000);
    end(&s);
}

static void a_history_that_fails_leaves_rooflines(void **state)
{
    (void)state;
    struct setup s;
    const struct wpk_tune_source source = {.expect = expect};
    begin(&s);
    assert_int_equal(wpk_estimate_model(&source, &s.job, &machine, &s.model, NULL), WPK_ETIMEDOUT);
    for (int k = 0; k < KERNELS; k++) {
        assert_int_equal(s.model.kernels[k].expected.from, WPK_TUNE_FROM_ROOFLINE);
        assert_true(s.model.kernels[k].expected.ns == 1000.0 * (k + 1));
    }
    end(&s);
}

/* A region that is called often counts as often. */
static void sums_are_of_calls(void **state)
{
    (void)state;
    struct setup s;
    struct wpk_estimate_sum sum;
    struct wpk_buf text = {0};
    int kernel[] = {0, 2, 0};
    struct wpk_graph_region regions[3] = {{.count = 2}, {.count = 1}, {.count = 5}};
    begin(&s);
    s.model.shapes[0].kernel = kernel;
    s.model.shapes[0].regions.list = regions;
    s.model.shapes[0].regions.count = 3;
    s.model.shape_count = 1;
    s.model.kernels[0].expected = (struct wpk_tune_expected){10, WPK_TUNE_FROM_MEASURED};
    s.model.kernels[0].roofline_ns = 4;
    s.model.kernels[2].expected = (struct wpk_tune_expected){100, WPK_TUNE_FROM_ROOFLINE};
    s.model.kernels[2].roofline_ns = 50;
    wpk_estimate_sum(&s.model, 0, &sum);
    assert_true(sum.ns == 7 * 10 + 100);
    assert_true(sum.roofline_ns == 7 * 4 + 50);
    assert_int_equal(sum.calls[WPK_TUNE_FROM_MEASURED], 7);
    assert_int_equal(sum.calls[WPK_TUNE_FROM_ROOFLINE], 1);
    wpk_estimate_print_steps(&sum, &text);
    assert_string_equal(wpk_buf_text(&text), "measured 7, roofline 1");
    wpk_buf_fini(&text);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_history_is_the_roofline),
        cmocka_unit_test(unknown_kernels_have_the_median_share),
        cmocka_unit_test(no_estimate_is_below_the_roofline),
        cmocka_unit_test(a_history_that_fails_leaves_rooflines),
        cmocka_unit_test(sums_are_of_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
