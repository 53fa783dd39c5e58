/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of labelled scores against loops. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 2, C = 3, D = 4 };

static const int labels[N][D] = {{0, 2, 1, 1}, {2, 2, 0, 1}};
static const double weight[C] = {0.5, 2, 1.5};

struct rule {
    bool is_softmax, has_weights;
    int ignored; /* label; -1: none */
    const char *reduction;
};

/* The loss of each label, then what the reduction makes of them. */
static int expect(const double *x, const struct rule *rule, double *out)
{
    double sum = 0, weights = 0;
    for (int n = 0; n < N; n++) {
        for (int d = 0; d < D; d++) {
            double total = 0;
            for (int c = 0; c < C; c++) {
                total += exp(x[(n * C + c) * D + d]);
            }
            int label = labels[n][d];
            double score = x[(n * C + label) * D + d] - (rule->is_softmax ? log(total) : 0);
            double w = label == rule->ignored ? 0 : rule->has_weights ? weight[label] : 1;
            out[n * D + d] = w == 0 ? 0 : -score * w;
            sum += out[n * D + d];
            weights += w;
        }
    }
    if (strcmp(rule->reduction, "none") == 0) {
        return N * D;
    }
    out[0] = strcmp(rule->reduction, "sum") == 0 ? sum : sum / weights;
    return 1;
}

static void losses_are_weighed_and_reduced(void **state)
{
    (void)state;
    static const char *const reductions[] = {"none", "sum", "mean"};
    double x[N * C * D], found[N * C * D], expected[N * D];
    wpk_model_case_draw(8, x, (int64_t)N * C * D);
    for (int i = 0; i < 24; i++) {
        const struct rule rule = {.is_softmax = i % 2 != 0,
                                  .has_weights = i / 2 % 2 != 0,
                                  .ignored = i / 4 % 2 != 0 ? 1 : -1,
                                  .reduction = reductions[i / 8]};
        char attributes[64];
        snprintf(attributes, sizeof(attributes), "reduction:s=%s%s", rule.reduction,
                 rule.ignored >= 0 ? " ignore_index:i=1" : "");
        const struct wpk_model_input inputs[] = {{.type = "f64[2,3,4]", .data = x},
                                                 {.type = "i64[2,4]", .values = "0,2,1,1,2,2,0,1"},
                                                 {.type = "f64[3]", .values = "0.5,2,1.5"}};
        const char *op = rule.is_softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss";
        int count = expect(x, &rule, expected);
        assert_int_equal(wpk_model_case_compute(op, 13, attributes, inputs,
                                                rule.has_weights ? 3 : 2, 0, found, N * C * D),
                         count);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

static void the_second_output_is_the_log_softmax(void **state)
{
    (void)state;
    double x[6], found[6], expected[6];
    wpk_model_case_draw(9, x, 6);
    for (int n = 0; n < 2; n++) {
        double total = exp(x[3 * n]) + exp(x[3 * n + 1]) + exp(x[3 * n + 2]);
        for (int c = 0; c < 3; c++) {
            expected[3 * n + c] = x[3 * n + c] - log(total);
        }
    }
    const struct wpk_model_input inputs[] = {{.type = "f64[2,3]", .data = x},
                                             {.type = "i64[2]", .values = "0,2"}};
    assert_int_equal(
        wpk_model_case_compute("SoftmaxCrossEntropyLoss", 13, "", inputs, 2, 1, found, 6), 6);
    wpk_model_case_compare("log_prob", found, expected, 6);
}

/* exp of such scores is infinite: the largest is taken away first. */
static void large_scores_do_not_overflow(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"SoftmaxCrossEntropyLoss", "5000,5000:f64[1,2] 1:i64[1]", "", "f64[] 0.69314718055994531"},
        {"SoftmaxCrossEntropyLoss", "-5000,5000:f64[1,2] 0:i64[1]", "", "f64[] 10000"},
    };
    WPK_MODEL_CASES(cases);
}

static void labels_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"NegativeLogLikelihoodLoss", ":f32[2,3] :i64[3]", "", "!do not fit its scores"},
        {"NegativeLogLikelihoodLoss", ":f32[2,3] :i64[2,3]", "", "!do not fit its scores"},
        {"NegativeLogLikelihoodLoss", ":f32[2,3] :f32[2]", "", "!do not fit its scores"},
        {"NegativeLogLikelihoodLoss", ":f32[2] :i64[2]", "", "!do not fit its scores"},
        {"NegativeLogLikelihoodLoss", ":f32[2,3] :i64[2] :f32[2]", "", "!do not fit its scores"},
        {"NegativeLogLikelihoodLoss", ":f32[2,3] :i64[2] :f64[3]", "", "!do not fit its scores"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_weighed_and_reduced),
        cmocka_unit_test(the_second_output_is_the_log_softmax),
        cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
