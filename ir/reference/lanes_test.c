/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation in every type, and reductions of the lanes themselves. */
#include "tests/random_program.h"
#include "tests/reference_check.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void build_reduction(struct wpk_program *p, enum wpk_reduction reduction,
                            enum wpk_dtype dtype, enum wpk_dtype accumulator, int64_t rows,
                            int64_t columns)
{
    int x = tensor(p, "X", WPK_ROLE_INPUT, dtype, 2, EXTENTS(rows, columns));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, dtype, 0, NULL);
    struct wpk_stage *s = stage(p, y);
    reduce(s, reduction, accumulator, 2, EXTENTS(rows, columns));
    s->expr = wpk_node_cast(p, accumulator, wpk_node_load(p, x, INDICES(ax(p, 0), ax(p, 1)), -1));
}

/* To a scalar: the lanes themselves are reduced, and integers wrap on the way. */
static void test_full_reductions(void **state)
{
    (void)state;
    static const enum wpk_dtype types[][2] = {{WPK_F32, WPK_F32},
                                              {WPK_I32, WPK_I32},
                                              {WPK_I8, WPK_I32},
                                              {WPK_U8, WPK_U8},
                                              {WPK_I64, WPK_I64}};
    for (int r = WPK_REDUCE_SUM; r <= WPK_REDUCE_PROD; r++) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            if (r == WPK_REDUCE_PROD && types[i][0] == WPK_I64) {
                continue; /* exact below 2^53 only */
            }
            struct wpk_program p = {0};
            /* A product of hundreds of magnitudes leaves the doubles. */
            int64_t columns = r == WPK_REDUCE_PROD ? 9 : 700;
            build_reduction(&p, (enum wpk_reduction)r, types[i][0], types[i][1], 3, columns);
            wpk_check_reference(&p, i);
            wpk_program_fini(&p);
        }
    }
}

/* So many terms that the sum leaves 2^53 unless it wraps on the way; odd, to lose its last bit. */
static void test_long_integer_sum(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_I32, 1, EXTENTS(1));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_I32, 0, NULL);
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_I32, 1, EXTENTS(6000001));
    s->expr = wpk_node_load(&p, x, INDICES(wpk_node_int(&p, 0)), -1);
    const double most = INT32_MAX;
    struct wpk_reference_args args = {.tensor = {&most}};
    double value;
    assert_int_equal(wpk_reference_run(&p, &args, &value, NULL, NULL), WPK_OK);
    assert_true(value == 0x1p31 - 6000001.0);
    wpk_program_fini(&p);
}

/* Every operation, over a range of values, in float and in integers. */
static void test_operations(void **state)
{
    (void)state;
    static const enum wpk_dtype types[] = {WPK_F32, WPK_I32, WPK_I8, WPK_U8, WPK_I64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int op = 0; op < WPK_BINARY_AND; op++) {
            if (op == WPK_BINARY_POW && types[i] != WPK_F32) {
                continue;
            }
            struct wpk_program p = {0};
            bool truth = op >= WPK_BINARY_LT;
            int a = tensor(&p, "A", WPK_ROLE_INPUT, types[i], 1, EXTENTS(300));
            int b = tensor(&p, "B", WPK_ROLE_INPUT, types[i], 1, EXTENTS(300));
            int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, truth ? WPK_BOOL : types[i], 1, EXTENTS(300));
            struct wpk_stage *s = stage(&p, y);
            int i0 = ax(&p, 0);
            int la = wpk_node_load(&p, a, &i0, -1);
            if (op == WPK_BINARY_POW) { /* of positive numbers */
                la = wpk_node_unary(&p, WPK_UNARY_EXP, la);
            }
            int result = op2(&p, (enum wpk_binary)op, la, wpk_node_load(&p, b, &i0, -1));
            s->expr = wpk_node_cast(&p, truth ? WPK_BOOL : types[i], result);
            wpk_check_reference(&p, i);
            wpk_program_fini(&p);
        }
    }
    for (int op = 0; op < WPK_UNARY_COUNT; op++) {
        if (op == WPK_UNARY_NOT) {
            continue;
        }
        struct wpk_program p = {0};
        int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(300));
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(300));
        struct wpk_stage *s = stage(&p, y);
        int i0 = ax(&p, 0);
        int la = wpk_node_load(&p, a, &i0, -1);
        if (op == WPK_UNARY_LOG || op == WPK_UNARY_SQRT || op == WPK_UNARY_RSQRT) {
            la = wpk_node_unary(&p, WPK_UNARY_EXP, la);
        } else {
            la = op2(&p, WPK_BINARY_MUL, la, wpk_node_real(&p, WPK_F32, 5.0));
        }
        s->expr = wpk_node_cast(&p, WPK_F32, wpk_node_unary(&p, (enum wpk_unary)op, la));
        wpk_check_reference(&p, (uint64_t)op);
        wpk_program_fini(&p);
    }
}

/* select, casts that saturate and casts that wrap, axis values, booleans. */
static void test_select_and_casts(void **state)
{
    (void)state;
    static const enum wpk_dtype types[] = {WPK_I8, WPK_U8, WPK_I32, WPK_I64, WPK_F32};
    for (size_t i = 0; i < 5; i++) {
        struct wpk_program p = {0};
        int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(3, 300));
        int b = tensor(&p, "B", WPK_ROLE_INPUT, WPK_I32, 2, EXTENTS(3, 300));
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, types[i], 2, EXTENTS(3, 300));
        struct wpk_stage *s = stage(&p, y);
        int at[2] = {ax(&p, 0), ax(&p, 1)};
        int big = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, a, at, -1),
                      wpk_node_real(&p, WPK_F32, 300.0));
        int even = op2(&p, WPK_BINARY_EQ, op2(&p, WPK_BINARY_MOD, at[1], wpk_node_int(&p, 2)),
                       wpk_node_int(&p, 0));
        int first = op2(&p, WPK_BINARY_LT, at[0], wpk_node_int(&p, 1));
        int either = op2(&p, WPK_BINARY_OR, wpk_node_unary(&p, WPK_UNARY_NOT, even), first);
        s->expr = wpk_node_select(&p, op2(&p, WPK_BINARY_AND, either, even),
                                  wpk_node_cast(&p, types[i], big),
                                  wpk_node_cast(&p, types[i], wpk_node_load(&p, b, at, -1)));
        wpk_check_reference(&p, i);
        wpk_program_fini(&p);
    }
}

/* Both interpreters hold an i64 in a double, and may round what is beyond 2^53 differently. */
static bool holds_i64(const struct wpk_program *p)
{
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].dtype == WPK_I64) {
            return true;
        }
    }
    return false;
}

/* Beside a step rounding errors decide on the side: round(X / D) + Z may be off by one there, as a
 * quantizer is, and is exact elsewhere. */
static void test_beside_a_step(void **state)
{
    (void)state;
    static const struct {
        double x, d, value;
        bool marked;
    } cases[] = {
        {191, 2, 96, true},    /* 95.5, which a kernel may compute as 95.499996 */
        {285.3, 3, 95, false}, /* 95.1 */
        {95.5, 1, 96, true},
        {95, 1, 95, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wpk_program p = {0};
        int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 0, NULL);
        int d = tensor(&p, "D", WPK_ROLE_INPUT, WPK_F32, 0, NULL);
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_U8, 0, NULL);
        int ratio = wpk_node_binary(&p, WPK_BINARY_DIV, wpk_node_load(&p, x, NULL, -1),
                                    wpk_node_load(&p, d, NULL, -1));
        int sum = wpk_node_binary(&p, WPK_BINARY_ADD, wpk_node_unary(&p, WPK_UNARY_ROUND, ratio),
                                  wpk_node_real(&p, WPK_F32, 0));
        stage(&p, y)->expr = wpk_node_cast(&p, WPK_U8, sum);
        struct wpk_reference_args args = {.tensor = {&cases[i].x, &cases[i].d}};
        double value, magnitude;
        assert_int_equal(wpk_reference_run(&p, &args, &value, &magnitude, NULL), WPK_OK);
        assert_true(value == cases[i].value);
        assert_int_equal((int)(magnitude / WPK_REFERENCE_STEP), cases[i].marked);
        wpk_program_fini(&p);
    }
}

/* Programs that nobody thought of. */
static void test_random_programs(void **state)
{
    struct wpk_rng rng;
    (void)state;
    wpk_rng_seed(&rng, 3);
    for (uint64_t i = 0; i < 300; i++) {
        struct wpk_program p;
        wpk_random_program(&rng, &(struct wpk_random_options){.data = i % 2 == 0}, &p);
        if (!holds_i64(&p)) {
            wpk_check_reference(&p, i);
        }
        wpk_program_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_reductions), cmocka_unit_test(test_long_integer_sum),
        cmocka_unit_test(test_operations),      cmocka_unit_test(test_select_and_casts),
        cmocka_unit_test(test_beside_a_step),   cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
