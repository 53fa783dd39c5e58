/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct heads {
    const char *json;
    int heads, queries, keys, size;
    double scale;
    bool mask;
};

static double score(const struct wpk_expanded *e, const struct heads *c, int h, int i, int j)
{
    const double *q = wpk_expanded_values(e, "Q") + (h * c->queries + i) * c->size;
    const double *k = wpk_expanded_values(e, "K") + (h * c->keys + j) * c->size;
    double sum = 0;
    for (int d = 0; d < c->size; d++) {
        sum += q[d] * k[d];
    }
    return c->scale * sum + (c->mask ? wpk_expanded_values(e, "M")[i * c->keys + j] : 0);
}

static void expect_row(const struct wpk_expanded *e, const struct heads *c, int h, int i)
{
    for (int d = 0; d < c->size; d++) {
        double total = 0, sum = 0;
        for (int j = 0; j < c->keys; j++) {
            const double weight = exp(score(e, c, h, i, j));
            total += weight;
            sum += weight * wpk_expanded_values(e, "V")[(h * c->keys + j) * c->size + d];
        }
        wpk_expanded_expect(e, (h * c->queries + i) * c->size + d, sum / total);
    }
}

static void test_attention(void **state)
{
    static const struct heads cases[] = {
        {"{'type':'attention','shape':[2,5,4]}", 2, 5, 5, 4, 0.5, false},
        {"{'type':'attention','shape':[1,3,4],'keys':6,'mask':true}", 1, 3, 6, 4, 0.5, true},
        {"{'type':'attention','shape':[2,3,2],'scale':0.25,'dtype':'f64'}", 2, 3, 3, 2, 0.25,
         false},
    };
    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        struct wpk_expanded e;
        wpk_expanded_init(&e, cases[t].json);
        assert_int_equal(wpk_program_find_tensor(&e.program, "M") >= 0, cases[t].mask);
        for (int h = 0; h < cases[t].heads; h++) {
            for (int i = 0; i < cases[t].queries; i++) {
                expect_row(&e, &cases[t], h, i);
            }
        }
        wpk_expanded_fini(&e);
    }
}

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'attention','shape':[5,4]}", WPK_EINVAL, "shape", "3"},
        {"{'type':'attention','shape':[2,5,4],'keys':0}", WPK_ERANGE, "keys", ""},
        {"{'type':'attention','shape':[2,5,4],'dtype':'i8'}", WPK_EINVAL, "dtype", ""},
        {"{'type':'attention','shape':[2,5,4],'axis':1}", WPK_EINVAL, "axis", ""},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
