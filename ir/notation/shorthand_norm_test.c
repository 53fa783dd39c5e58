/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A tensor seen as [outer, middle, inner], the middle being what is reduced. */
struct view {
    const char *json;
    int outer, middle, inner;
};

static void test_softmax(void **state)
{
    static const struct view cases[] = {
        {"{'type':'softmax','shape':[3,5]}", 3, 5, 1},
        {"{'type':'softmax','shape':[7]}", 1, 7, 1},
        {"{'type':'softmax','shape':[2,3,4],'axis':0}", 1, 2, 12},
        {"{'type':'softmax','shape':[2,3,4],'axis':1}", 2, 3, 4},
        {"{'type':'softmax','shape':[2,3,4],'axis':-2,'dtype':'f64'}", 2, 3, 4},
    };
    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const struct view *v = &cases[t];
        struct wpk_expanded e;
        wpk_expanded_init(&e, v->json);
        const double *x = wpk_expanded_values(&e, "X");
        for (int o = 0; o < v->outer; o++) {
            for (int i = 0; i < v->inner; i++) {
                double sum = 0;
                for (int m = 0; m < v->middle; m++) {
                    sum += exp(x[(o * v->middle + m) * v->inner + i]);
                }
                for (int m = 0; m < v->middle; m++) {
                    int at = (o * v->middle + m) * v->inner + i;
                    wpk_expanded_expect(&e, at, exp(x[at]) / sum);
                }
            }
        }
        wpk_expanded_fini(&e);
    }
}

static void test_layernorm(void **state)
{
    static const struct {
        struct view view;
        double epsilon;
        bool scale, bias;
    } cases[] = {
        {{"{'type':'layernorm','shape':[3,8]}", 3, 8, 1}, 1e-5, true, true},
        {{"{'type':'layernorm','shape':[2,3,4],'axis':1,'eps':0.5}", 2, 12, 1}, 0.5, true, true},
        {{"{'type':'layernorm','shape':[2,3,4],'axis':-3,'scale':false}", 1, 24, 1},
         1e-5,
         false,
         true},
        {{"{'type':'layernorm','shape':[4,6],'scale':false,'bias':false}", 4, 6, 1},
         1e-5,
         false,
         false},
    };
    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const struct view *v = &cases[t].view;
        struct wpk_expanded e;
        wpk_expanded_init(&e, v->json);
        const double *x = wpk_expanded_values(&e, "X");
        assert_int_equal(wpk_program_find_tensor(&e.program, "S") >= 0, cases[t].scale);
        assert_int_equal(wpk_program_find_tensor(&e.program, "B") >= 0, cases[t].bias);
        for (int o = 0; o < v->outer; o++) {
            const double *row = x + o * v->middle;
            double mean = 0, variance = 0;
            for (int m = 0; m < v->middle; m++) {
                mean += row[m] / v->middle;
            }
            for (int m = 0; m < v->middle; m++) {
                variance += (row[m] - mean) * (row[m] - mean) / v->middle;
            }
            for (int m = 0; m < v->middle; m++) {
                double scale = cases[t].scale ? wpk_expanded_values(&e, "S")[m] : 1;
                double bias = cases[t].bias ? wpk_expanded_values(&e, "B")[m] : 0;
                double centred = (row[m] - mean) / sqrt(variance + cases[t].epsilon);
                wpk_expanded_expect(&e, o * v->middle + m, centred * scale + bias);
            }
        }
        wpk_expanded_fini(&e);
    }
}

static double reduced(const char *reduction, const double *x, int count, int stride)
{
    double sum = 0, product = 1, low = INFINITY, high = -INFINITY;
    for (int i = 0; i < count; i++) {
        sum += x[i * stride];
        product *= x[i * stride];
        low = fmin(low, x[i * stride]);
        high = fmax(high, x[i * stride]);
    }
    return strcmp(reduction, "sum") == 0    ? sum
           : strcmp(reduction, "mean") == 0 ? sum / count
           : strcmp(reduction, "prod") == 0 ? product
           : strcmp(reduction, "min") == 0  ? low
                                            : high;
}

static void test_reduce(void **state)
{
    static const struct {
        struct view view;
        const char *reduction;
        int rank; /* of Y */
    } cases[] = {
        {{"{'type':'reduce','shape':[4,5],'axes':[1],'reduction':'sum'}", 4, 5, 1}, "sum", 1},
        {{"{'type':'reduce','shape':[2,3,4],'axes':[1],'reduction':'mean'}", 2, 3, 4}, "mean", 2},
        {{"{'type':'reduce','shape':[2,3,4],'axes':[-1,1],'reduction':'max','keep_dims':true}", 2,
          12, 1},
         "max",
         3},
        {{"{'type':'reduce','shape':[2,3,4],'axes':[0],'reduction':'min'}", 1, 2, 12}, "min", 2},
        {{"{'type':'reduce','shape':[2,3],'axes':[0,1],'reduction':'prod'}", 1, 6, 1}, "prod", 0},
        {{"{'type':'reduce','shape':[6],'axes':[0],'reduction':'sum','dtype':'i32'}", 1, 6, 1},
         "sum",
         0},
    };
    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const struct view *v = &cases[t].view;
        struct wpk_expanded e;
        wpk_expanded_init(&e, v->json);
        const double *x = wpk_expanded_values(&e, "X");
        assert_int_equal(wpk_expanded_tensor(&e, "Y")->rank, cases[t].rank);
        for (int o = 0; o < v->outer; o++) {
            for (int i = 0; i < v->inner; i++) {
                const double *first = x + o * v->middle * v->inner + i;
                wpk_expanded_expect(&e, o * v->inner + i,
                                    reduced(cases[t].reduction, first, v->middle, v->inner));
            }
        }
        wpk_expanded_fini(&e);
    }
}

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'softmax'}", WPK_EINVAL, "shape", "is missing"},
        {"{'type':'softmax','shape':[]}", WPK_EINVAL, "shape", "0 extents instead of 1"},
        {"{'type':'softmax','shape':[2,3],'axis':2}", WPK_ERANGE, "axis", ""},
        {"{'type':'softmax','shape':[2,3],'axis':-3}", WPK_ERANGE, "axis", ""},
        {"{'type':'softmax','shape':[2,3],'dtype':'i8'}", WPK_EINVAL, "dtype", "floating"},
        {"{'type':'softmax','shape':[1,1,1,1,1,1,1,1,1,1,1]}", WPK_ERANGE, "shape", ""},
        {"{'type':'layernorm','shape':[2,3],'eps':-1}", WPK_ERANGE, "eps", ""},
        {"{'type':'layernorm','shape':[2,3],'epsilon':1}", WPK_EINVAL, "epsilon", "unknown field"},
        {"{'type':'layernorm','shape':[2,3],'axis':0.5}", WPK_EINVAL, "axis", "must be an integer"},
        {"{'type':'layernorm','shape':[2,3],'dtype':'u8'}", WPK_EINVAL, "dtype", "floating"},
        {"{'type':'reduce','shape':[2,3],'axes':[],'reduction':'sum'}", WPK_EINVAL, "axes",
         "at least one"},
        {"{'type':'reduce','shape':[2,3],'axes':[1,-1],'reduction':'sum'}", WPK_EINVAL, "axes",
         "axis 1 is named twice"},
        {"{'type':'reduce','shape':[2,3],'axes':[2],'reduction':'sum'}", WPK_ERANGE, "axes[0]", ""},
        {"{'type':'reduce','shape':[2,3],'axes':[1],'reduction':'avg'}", WPK_EINVAL, "reduction",
         "must be one of"},
        {"{'type':'reduce','shape':[2,3],'axes':[1]}", WPK_EINVAL, "reduction", "is missing"},
        {"{'type':'reduce','shape':[2,3],'axes':[1],'reduction':'mean','dtype':'i32'}", WPK_EINVAL,
         "dtype", "floating"},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layernorm),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
