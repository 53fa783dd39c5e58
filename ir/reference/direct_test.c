/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/direct.h"

#include "ir/node.h"
#include "tests/random_program.h"
#include "tests/reference_check.h"
#include "tests/simple_interpreter.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SET 7

/* ---- values */

struct values {
    struct wpk_reference_args args;
    double *own[WPK_TENSORS_MAX];
};

static void draw(const struct wpk_program *program, uint64_t seed, struct values *out)
{
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed);
    *out = (struct values){0};
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT) {
            continue;
        }
        out->args.tensor[t] = out->own[t] = wpk_check_values(&rng, tensor);
        for (int64_t i = 0; i < wpk_tensor_elements(tensor); i++) {
            out->own[t][i] = wpk_dtype_round(tensor->dtype, out->own[t][i]);
        }
    }
}

static void release(struct values *values)
{
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(values->own[t]);
    }
}

static const struct wpk_tensor *output_of(const struct wpk_program *program)
{
    return &program->tensors[program->stages[program->stage_count - 1].output];
}

static double *run(const struct wpk_program *program, const struct values *values, uint64_t set)
{
    int64_t count = wpk_tensor_elements(output_of(program));
    double *value = malloc((size_t)count * sizeof *value);
    assert_non_null(value);
    assert_int_equal(wpk_direct_run(program, &values->args, set, value, NULL), WPK_OK);
    return value;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Points of the output, some at a time, give what the whole output has there. */
static void check_points(const struct wpk_program *program, const struct values *values,
                         const double *whole)
{
    const struct wpk_tensor *out = output_of(program);
    int64_t elements = wpk_tensor_elements(out);
    int64_t step = elements / 40 + 1;
    int64_t points[64 * WPK_RANK_MAX];
    double value[64];
    int64_t count = 0;
    for (int64_t i = elements - 1; i >= 0; i -= step) {
        int64_t rest = i;
        for (int d = out->rank - 1; d >= 0; d--) {
            points[count * out->rank + d] = rest % out->extent[d];
            rest /= out->extent[d];
        }
        count++;
    }
    assert_int_equal(wpk_direct_run_at(program, &values->args, SET, points, count, value, NULL),
                     WPK_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_true(same(value[i], whole[elements - 1 - i * step]));
    }
}

/* ---- against loops written by hand */

static void build_matmul(struct wpk_program *p, enum wpk_dtype dtype, enum wpk_dtype accumulator,
                         int64_t rows, int64_t columns, int64_t depth)
{
    int a = tensor(p, "A", WPK_ROLE_INPUT, dtype, 2, EXTENTS(rows, depth));
    int b = tensor(p, "B", WPK_ROLE_INPUT, dtype, 2, EXTENTS(depth, columns));
    int c = tensor(p, "C", WPK_ROLE_OUTPUT, dtype, 2, EXTENTS(rows, columns));
    struct wpk_stage *s = stage(p, c);
    reduce(s, WPK_REDUCE_SUM, accumulator, 1, &depth);
    int la = wpk_node_load(p, a, INDICES(ax(p, 0), ax(p, 2)), -1);
    int lb = wpk_node_load(p, b, INDICES(ax(p, 2), ax(p, 1)), -1);
    s->expr = wpk_node_cast(p, accumulator,
                            op2(p, WPK_BINARY_MUL, wpk_node_cast(p, accumulator, la),
                                wpk_node_cast(p, accumulator, lb)));
}

/* Tall, wide, deep: lanes along rows, columns, and the sum. */
static void test_matmul(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{5, 300, 40}, {300, 3, 40}, {1, 1, 3000}, {2, 2, 700}};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        int64_t rows = sizes[n][0], columns = sizes[n][1], depth = sizes[n][2];
        struct wpk_program p = {0};
        build_matmul(&p, WPK_F32, WPK_F32, rows, columns, depth);
        struct values v;
        draw(&p, n, &v);
        double *got = run(&p, &v, SET);
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++) {
                float sum = 0;
                for (int64_t k = 0; k < depth; k++) {
                    /* through memory: nothing to fuse */
                    volatile float product =
                        (float)v.own[0][i * depth + k] * (float)v.own[1][k * columns + j];
                    sum += product;
                }
                assert_true(got[i * columns + j] == (double)sum);
            }
        }
        check_points(&p, &v, got);
        free(got);
        release(&v);
        wpk_program_fini(&p);
    }
}

/* A product in f16 and one in bf16 with an accumulator just as narrow, rounded at every step. */
static void test_narrow_accumulators(void **state)
{
    (void)state;
    static const enum wpk_dtype types[] = {WPK_F16, WPK_BF16};
    for (int n = 0; n < 2; n++) {
        struct wpk_program p = {0};
        build_matmul(&p, types[n], types[n], 3, 20, 50);
        struct values v;
        draw(&p, (uint64_t)n, &v);
        double *got = run(&p, &v, SET);
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 20; j++) {
                double sum = 0;
                for (int k = 0; k < 50; k++) {
                    /* the program multiplies in f32 and casts */
                    double product = (double)(float)(v.own[0][i * 50 + k] * v.own[1][k * 20 + j]);
                    sum = wpk_dtype_round(types[n], sum + wpk_dtype_round(types[n], product));
                }
                assert_true(got[i * 20 + j] == sum);
            }
        }
        free(got);
        release(&v);
        wpk_program_fini(&p);
    }
}

/* Terms in the order channel, row, column, though lanes run along the channels of a point. */
static void test_convolution(void **state)
{
    (void)state;
    enum { CHANNELS = 70, OUT = 6, SIZE = 9 };
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(CHANNELS, SIZE, SIZE));
    int w = tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 4, EXTENTS(OUT, CHANNELS, 3, 3));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 3, EXTENTS(OUT, SIZE, SIZE));
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 3, EXTENTS(CHANNELS, 3, 3));
    int lx =
        wpk_node_load(&p, x, INDICES(ax(&p, 3), slide(&p, 1, 1, 4, -1), slide(&p, 1, 2, 5, -1)),
                      zero(&p, WPK_F32));
    int lw = wpk_node_load(&p, w, INDICES(ax(&p, 0), ax(&p, 3), ax(&p, 4), ax(&p, 5)), -1);
    s->expr = op2(&p, WPK_BINARY_MUL, lx, lw);
    struct values v;
    draw(&p, 1, &v);
    double *got = run(&p, &v, SET);
    for (int64_t i = 0; i < OUT * SIZE * SIZE; i++) {
        int64_t k = i / (SIZE * SIZE), row = i / SIZE % SIZE, column = i % SIZE;
        float sum = 0;
        for (int64_t t = 0; t < CHANNELS * 9; t++) {
            int64_t r = row + t / 3 % 3 - 1, c = column + t % 3 - 1;
            bool inside = r >= 0 && r < SIZE && c >= 0 && c < SIZE;
            double given = inside ? v.own[0][(t / 9 * SIZE + r) * SIZE + c] : 0;
            volatile float product = (float)given * (float)v.own[1][k * CHANNELS * 9 + t];
            sum += product;
        }
        assert_true(got[i] == (double)sum);
    }
    check_points(&p, &v, got);
    free(got);
    release(&v);
    wpk_program_fini(&p);
}

/* ---- functions */

static double ulp_f32(double value)
{
    int exponent;
    (void)frexp(value, &exponent);
    return ldexp(1, exponent - 24);
}

/* Every move from -2 to 2 occurs about as often, another set draws others, and what is exact in
 * every implementation stays. */
static void test_functions_move(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(COUNT));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(COUNT));
    int i = ax(&p, 0);
    stage(&p, y)->expr = wpk_node_unary(&p, WPK_UNARY_EXP, wpk_node_load(&p, x, &i, -1));
    struct values v;
    draw(&p, 3, &v);
    v.own[0][0] = -INFINITY;
    v.own[0][1] = INFINITY;
    v.own[0][2] = 80;
    double *got = run(&p, &v, SET);
    double *again = run(&p, &v, SET);
    double *other = run(&p, &v, SET + 1);
    assert_memory_equal(got, again, COUNT * sizeof *got);
    assert_true(got[0] == 0 && isinf(got[1]));
    int counts[5] = {0};
    int differ = 0;
    for (int n = 2; n < COUNT; n++) {
        double rounded = (double)(float)exp(v.own[0][n]);
        double units = (got[n] - rounded) / ulp_f32(rounded);
        assert_true(units == -2 || units == -1 || units == 0 || units == 1 || units == 2);
        counts[(int)units + 2]++;
        differ += got[n] != other[n];
    }
    for (int n = 0; n < 5; n++) {
        assert_in_range(counts[n], COUNT / 5 - 150, COUNT / 5 + 150);
    }
    assert_in_range(differ, COUNT * 4 / 5 - 200, COUNT * 4 / 5 + 200);
    check_points(&p, &v, got);
    free(got);
    free(again);
    free(other);
    release(&v);
    wpk_program_fini(&p);
}

/* A move leads nowhere that the function has no values. */
static void test_functions_keep_their_range(void **state)
{
    (void)state;
    enum { COUNT = 512 };
    static const enum wpk_unary ops[] = {WPK_UNARY_TANH, WPK_UNARY_ERF, WPK_UNARY_SIGMOID,
                                         WPK_UNARY_SIN, WPK_UNARY_COS};
    for (size_t n = 0; n < sizeof ops / sizeof *ops; n++) {
        struct wpk_program p = {0};
        int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(COUNT));
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(COUNT));
        int i = ax(&p, 0);
        stage(&p, y)->expr = wpk_node_unary(&p, ops[n], wpk_node_load(&p, x, &i, -1));
        struct values v;
        draw(&p, n, &v);
        for (int k = 0; k < COUNT; k++) {
            bool periodic = ops[n] == WPK_UNARY_SIN || ops[n] == WPK_UNARY_COS;
            v.own[0][k] = periodic ? (double)(float)(k * 1.5707963267948966) : 20.0 + k;
            v.own[0][k] = k == 0 ? 0 : v.own[0][k];
        }
        double *got = run(&p, &v, SET);
        for (int k = 0; k < COUNT; k++) {
            assert_true(fabs(got[k]) <= 1);
        }
        bool odd = ops[n] != WPK_UNARY_SIGMOID && ops[n] != WPK_UNARY_COS;
        assert_true(!odd || got[0] == 0);
        free(got);
        release(&v);
        wpk_program_fini(&p);
    }
}

static void build_softmax(struct wpk_program *p, enum wpk_dtype dtype, int64_t rows,
                          int64_t columns)
{
    int x = tensor(p, "X", WPK_ROLE_INPUT, dtype, 2, EXTENTS(rows, columns));
    int m = tensor(p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int e = tensor(p, "E", WPK_ROLE_INTERMEDIATE, dtype, 2, EXTENTS(rows, columns));
    int d = tensor(p, "D", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, dtype, 2, EXTENTS(rows, columns));
    int ij[2] = {ax(p, 0), ax(p, 1)};
    struct wpk_stage *s = stage(p, m);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, &columns);
    int lx = wpk_node_cast(p, WPK_F32, wpk_node_load(p, x, ij, -1));
    s->expr = lx;
    stage(p, e)->expr = wpk_node_cast(
        p, dtype,
        wpk_node_unary(p, WPK_UNARY_EXP, op2(p, WPK_BINARY_SUB, lx, wpk_node_load(p, m, ij, -1))));
    s = stage(p, d);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &columns);
    int le = wpk_node_cast(p, WPK_F32, wpk_node_load(p, e, ij, -1));
    s->expr = le;
    stage(p, y)->expr =
        wpk_node_cast(p, dtype, op2(p, WPK_BINARY_DIV, le, wpk_node_load(p, d, ij, -1)));
}

/* Tensors of 16 bits are rounded when they are stored: rows of 16 equal logits are exact, others
 * off by about the type's last place. */
static void test_softmax(void **state)
{
    (void)state;
    static const struct {
        enum wpk_dtype dtype;
        double off; /* at most, relative to the value */
    } cases[] = {{WPK_F32, 0x1p-20}, {WPK_F16, 0x1p-9}, {WPK_BF16, 0x1p-6}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct wpk_program p = {0};
        build_softmax(&p, cases[n].dtype, 40, 30);
        struct values v;
        draw(&p, n, &v);
        double *got = run(&p, &v, SET);
        double exact[40 * 30];
        assert_int_equal(wpk_reference_run(&p, &v.args, exact, NULL, NULL), WPK_OK);
        double most = 0;
        for (int i = 0; i < 40 * 30; i++) {
            most = fmax(most, fabs(got[i] - exact[i]) / exact[i]);
            assert_true(got[i] == wpk_dtype_round(cases[n].dtype, got[i]));
        }
        assert_true(most <= cases[n].off && most >= cases[n].off / 64);
        check_points(&p, &v, got);
        free(got);
        release(&v);
        wpk_program_fini(&p);
    }
}

/* ---- programs that nobody thought of */

static bool is_inexact(const struct wpk_node *node)
{
    static const int unary[] = {WPK_UNARY_EXP, WPK_UNARY_LOG,     WPK_UNARY_RSQRT, WPK_UNARY_TANH,
                                WPK_UNARY_ERF, WPK_UNARY_SIGMOID, WPK_UNARY_SIN,   WPK_UNARY_COS};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        if (node->kind == WPK_NODE_UNARY && node->op == unary[i]) {
            return true;
        }
    }
    return node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_POW &&
           wpk_dtype_is_float(node->dtype);
}

/* Functions become operations that are correctly rounded. */
static void remove_functions(struct wpk_program *program)
{
    for (int i = 0; i < program->node_count; i++) {
        struct wpk_node *node = &program->nodes[i];
        if (is_inexact(node)) {
            node->op = node->kind == WPK_NODE_UNARY ? (int)WPK_UNARY_NEG : (int)WPK_BINARY_SUB;
        }
    }
}

/* Bit for bit what a walk of the expression with a rounding at each node gives. */
static void test_random_programs(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 11);
    for (int n = 0; n < 400; n++) {
        const struct wpk_random_options options = {.products = n % 2 == 0, .data = n % 3 == 0};
        struct wpk_program p;
        struct values v;
        wpk_random_program(&rng, &options, &p);
        remove_functions(&p);
        draw(&p, (uint64_t)n, &v);
        struct wpk_simple_values expected;
        wpk_simple_run_rounded(&p, v.args.tensor, &expected);
        double *got = run(&p, &v, SET);
        const double *right = expected.value[p.stages[p.stage_count - 1].output];
        for (int64_t i = 0; i < wpk_tensor_elements(output_of(&p)); i++) {
            if (!same(got[i], right[i])) {
                fail_msg("program %d, point %lld: %.17g, expected %.17g", n, (long long)i, got[i],
                         right[i]);
            }
        }
        check_points(&p, &v, got);
        wpk_simple_values_fini(&expected);
        free(got);
        release(&v);
        wpk_program_fini(&p);
    }
}

/* All floating types to f64: direct evaluation is then the reference, up to the last places. */
static void widen(struct wpk_program *program)
{
    for (int t = 0; t < program->tensor_count; t++) {
        struct wpk_tensor *tensor = &program->tensors[t];
        tensor->dtype = wpk_dtype_is_float(tensor->dtype) ? WPK_F64 : tensor->dtype;
    }
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_stage *stage = &program->stages[s];
        bool widens = stage->reduction != WPK_REDUCE_NONE && wpk_dtype_is_float(stage->accumulator);
        stage->accumulator = widens ? WPK_F64 : stage->accumulator;
    }
    for (int i = 0; i < program->node_count; i++) {
        struct wpk_node *node = &program->nodes[i];
        node->dtype = wpk_dtype_is_float(node->dtype) ? WPK_F64 : node->dtype;
    }
}

static void test_random_programs_in_f64(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 12);
    for (int n = 0; n < 200; n++) {
        const struct wpk_random_options options = {.smooth = true, .products = n % 2 == 0};
        struct wpk_program p;
        struct values v;
        wpk_random_program(&rng, &options, &p);
        widen(&p);
        draw(&p, (uint64_t)n, &v);
        int64_t count = wpk_tensor_elements(output_of(&p));
        double *value = malloc((size_t)count * 2 * sizeof *value);
        double *magnitude = value + count;
        assert_int_equal(wpk_reference_run(&p, &v.args, value, magnitude, NULL), WPK_OK);
        double *got = run(&p, &v, SET);
        double *again = run(&p, &v, SET);
        for (int64_t i = 0; i < count; i++) {
            double allowed = 1e-12 * magnitude[i];
            assert_true(same(got[i], again[i]));
            if (isfinite(allowed) && fabs(got[i] - value[i]) > allowed) {
                fail_msg("program %d, point %lld: %.17g, expected %.17g", n, (long long)i, got[i],
                         value[i]);
            }
        }
        check_points(&p, &v, got);
        free(got);
        free(again);
        free(value);
        release(&v);
        wpk_program_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_narrow_accumulators),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_functions_move),
        cmocka_unit_test(test_functions_keep_their_range),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_random_programs_in_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
