/* SPDX-License-Identifier: Apache-2.0 */
/* Whole operators: convolutions, pooling, softmax, borders, points of something large. */
#include "ir/reference/reference.h"

#include "tests/reference_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct conv {
    int64_t size, in, out, kernel, stride, before;
    enum wpk_dtype dtype, accumulator;
};

static void build_conv(struct wpk_program *p, const struct conv *c)
{
    int64_t o = (c->size + 2 * c->before - c->kernel) / c->stride + 1;
    int x = tensor(p, "X", WPK_ROLE_INPUT, c->dtype, 4, EXTENTS(1, c->in, c->size, c->size));
    int w = tensor(p, "W", WPK_ROLE_CONSTANT, c->dtype, 4,
                   EXTENTS(c->out, c->in, c->kernel, c->kernel));
    int b = tensor(p, "B", WPK_ROLE_CONSTANT, c->accumulator, 1, EXTENTS(c->out));
    int t = tensor(p, "T", WPK_ROLE_INTERMEDIATE, c->accumulator, 4, EXTENTS(1, c->out, o, o));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, c->accumulator, 4, EXTENTS(1, c->out, o, o));
    struct wpk_stage *s = stage(p, t);
    reduce(s, WPK_REDUCE_SUM, c->accumulator, 3, EXTENTS(c->in, c->kernel, c->kernel));
    int row = slide(p, c->stride, 2, 5, -c->before);
    int column = slide(p, c->stride, 3, 6, -c->before);
    int lx = wpk_node_load(p, x, INDICES(ax(p, 0), ax(p, 4), row, column),
                           c->before > 0 ? zero(p, c->dtype) : -1);
    int lw = wpk_node_load(p, w, INDICES(ax(p, 1), ax(p, 4), ax(p, 5), ax(p, 6)), -1);
    int product = op2(p, WPK_BINARY_MUL, wpk_node_cast(p, c->accumulator, lx),
                      wpk_node_cast(p, c->accumulator, lw));
    s->expr = wpk_node_cast(p, c->accumulator, product);
    s = stage(p, y);
    int sum = op2(p, WPK_BINARY_ADD,
                  wpk_node_load(p, t, INDICES(ax(p, 0), ax(p, 1), ax(p, 2), ax(p, 3)), -1),
                  wpk_node_load(p, b, INDICES(ax(p, 1)), -1));
    s->expr =
        wpk_node_cast(p, c->accumulator, op2(p, WPK_BINARY_MAX, sum, zero(p, c->accumulator)));
}

static void test_convolutions(void **state)
{
    (void)state;
    static const struct conv cases[] = {
        {9, 3, 5, 3, 1, 1, WPK_F32, WPK_F32},   {9, 3, 5, 3, 2, 1, WPK_F32, WPK_F32},
        {12, 2, 70, 3, 1, 0, WPK_F32, WPK_F32}, {9, 40, 3, 5, 1, 2, WPK_F32, WPK_F32},
        {4, 2, 300, 1, 2, 0, WPK_F32, WPK_F32}, {70, 1, 1, 3, 1, 1, WPK_F32, WPK_F32},
        {6, 3, 4, 3, 1, 3, WPK_I8, WPK_I32},    {9, 3, 4, 3, 2, 1, WPK_U8, WPK_I32},
        {6, 3, 4, 3, 1, 1, WPK_I32, WPK_I32},   {6, 3, 40, 3, 1, 1, WPK_F16, WPK_F32},
        {6, 3, 4, 3, 1, 1, WPK_I8, WPK_I8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wpk_program p = {0};
        build_conv(&p, &cases[i]);
        wpk_check_reference(&p, i);
        wpk_program_fini(&p);
    }
}

/* The zero border in the layout, not in the load. */
static void test_padded_input(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    build_conv(&p, &(struct conv){9, 3, 5, 3, 1, 1, WPK_F32, WPK_F32});
    for (int d = 2; d < 4; d++) {
        p.tensors[0].pad_before[d] = 1;
        p.tensors[0].pad_after[d] = d == 2 ? 1 : 0;
    }
    wpk_check_reference(&p, 3);
    wpk_program_fini(&p);
}

/* An index inside the padding reads the padding's zero, not `outside`. */
static void test_padding_before_outside(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(10));
    p.tensors[x].pad_before[0] = 1;
    p.tensors[x].pad_after[0] = 2;
    struct wpk_stage *s = stage(&p, y);
    int index = op2(&p, WPK_BINARY_SUB, ax(&p, 0), wpk_node_int(&p, 2));
    s->expr = wpk_node_load(&p, x, &index, wpk_node_real(&p, WPK_F32, 7.0));
    const double values[4] = {1, 2, 3, 4};
    const double expected[10] = {7, 0, 1, 2, 3, 4, 0, 0, 7, 7};
    struct wpk_reference_args args = {.tensor = {values}};
    double got[10];
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, NULL), WPK_OK);
    assert_memory_equal(got, expected, sizeof got);
    wpk_check_reference(&p, 1);
    wpk_program_fini(&p);
}

static void build_softmax(struct wpk_program *p, int64_t rows, int64_t columns)
{
    int x = tensor(p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(rows, columns));
    int m = tensor(p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int d = tensor(p, "D", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(rows, columns));
    struct wpk_stage *s = stage(p, m);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, &columns);
    int ij[2] = {ax(p, 0), ax(p, 1)};
    int lx = wpk_node_load(p, x, ij, -1);
    s->expr = lx;
    int e =
        wpk_node_unary(p, WPK_UNARY_EXP, op2(p, WPK_BINARY_SUB, lx, wpk_node_load(p, m, ij, -1)));
    s = stage(p, d);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &columns);
    s->expr = e;
    s = stage(p, y);
    s->expr = op2(p, WPK_BINARY_DIV, e, wpk_node_load(p, d, ij, -1));
}

static void test_softmax(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 700}, {300, 5}, {1, 257}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct wpk_program p = {0};
        build_softmax(&p, sizes[i][0], sizes[i][1]);
        wpk_check_reference(&p, i);
        wpk_program_fini(&p);
    }
}

/* Max pooling reads -inf outside; its magnitude must stay finite. */
static void test_infinite_outside(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(3, 20));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(3, 11));
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, EXTENTS(3));
    s->expr = wpk_node_load(&p, x, INDICES(ax(&p, 0), slide(&p, 2, 1, 2, -2)),
                            wpk_node_real(&p, WPK_F32, -(double)INFINITY));
    wpk_check_reference(&p, 1);
    double values[60];
    double value[33];
    double magnitude[33];
    for (int i = 0; i < 60; i++) {
        values[i] = i;
    }
    struct wpk_reference_args args = {.tensor = {values}};
    assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
    assert_true(magnitude[0] == 0.0 && value[0] == 0.0);
    assert_true(magnitude[1] == 2.0 && value[1] == 2.0);
    wpk_program_fini(&p);
}

static void test_scalar(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 0, NULL);
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 0, NULL);
    struct wpk_stage *s = stage(&p, y);
    int la = wpk_node_load(&p, a, NULL, -1);
    s->expr = op2(&p, WPK_BINARY_MUL, la, op2(&p, WPK_BINARY_SUB, la, la));
    wpk_check_reference(&p, 1);
    wpk_program_fini(&p);
}

/* An intermediate too large to be computed whole: points ask for boxes of it. */
static void test_points_of_large(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int64_t size = 260;
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(size, size));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(size, size));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(size, size));
    int ij[2] = {ax(&p, 0), ax(&p, 1)};
    struct wpk_stage *s = stage(&p, t);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &size);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, x, INDICES(ij[0], ax(&p, 2)), -1),
                  wpk_node_load(&p, x, INDICES(ax(&p, 2), ij[1]), -1));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 2, EXTENTS(3, 3));
    s->expr = wpk_node_load(&p, t, INDICES(slide(&p, 1, 0, 2, -1), slide(&p, 1, 1, 3, -1)),
                            zero(&p, WPK_F32));
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 8);
    double *values = wpk_check_values(&rng, &p.tensors[x]);
    struct wpk_reference_args args = {.tensor = {values}};
    double *value = malloc((size_t)(2 * size * size) * sizeof *value);
    double *magnitude = value + size * size;
    assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
    wpk_check_points(&p, &args, value, magnitude);
    free(value);
    free(values);
    wpk_program_fini(&p);
}

/* Many points in one call: boxes that are kept from point to point serve the right ones. */
static void test_points_share_boxes(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int64_t size = 260; /* T is too large to be computed whole */
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(size, size));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(size, size));
    int u = tensor(&p, "U", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(size));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(size, size));
    int ij[2] = {ax(&p, 0), ax(&p, 1)};
    struct wpk_stage *s = stage(&p, t);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &size);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, x, INDICES(ij[0], ax(&p, 2)), -1),
                  wpk_node_load(&p, x, INDICES(ax(&p, 2), ij[1]), -1));
    s = stage(&p, u);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, EXTENTS(4));
    s->expr = wpk_node_load(&p, t, INDICES(ij[0], ax(&p, 1)), -1);
    s = stage(&p, y);
    s->expr = op2(&p, WPK_BINARY_SUB,
                  wpk_node_load(&p, t, INDICES(slide(&p, 1, 0, 1, -3), ij[1]), zero(&p, WPK_F32)),
                  wpk_node_load(&p, u, ij, -1));
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 8);
    double *values = wpk_check_values(&rng, &p.tensors[x]);
    struct wpk_reference_args args = {.tensor = {values}};
    double *value = malloc((size_t)(2 * size * size) * sizeof *value);
    double *magnitude = value + size * size;
    assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
    enum { COUNT = 400 };
    int64_t points[COUNT][2];
    double got[COUNT];
    for (int i = 0; i < COUNT; i++) {
        /* Few rows and columns: the point before often needed the same, or a part. */
        points[i][0] = wpk_rng_between(&rng, 100, 103);
        points[i][1] = wpk_rng_between(&rng, 0, 7);
    }
    assert_int_equal(wpk_reference_run_at(&p, &args, points[0], COUNT, got, NULL, NULL), WPK_OK);
    for (int i = 0; i < COUNT; i++) {
        int64_t at = points[i][0] * size + points[i][1];
        assert_true(fabs(got[i] - value[at]) <= 1e-12 * magnitude[at]);
    }
    free(value);
    free(values);
    wpk_program_fini(&p);
}

/* A sum over everything, too large to be computed whole, is computed once for all points. */
static void test_sum_of_all_is_computed_once(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    const double all = 4000.0 * 4000.0;
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4000));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 0, NULL);
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(4000));
    struct wpk_stage *s = stage(&p, t);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 2, EXTENTS(4000, 4000));
    s->expr = wpk_node_load(&p, x, INDICES(ax(&p, 0)), -1);
    s = stage(&p, y);
    s->expr = op2(&p, WPK_BINARY_DIV, wpk_node_load(&p, x, INDICES(ax(&p, 0)), -1),
                  wpk_node_load(&p, t, NULL, -1));
    static int64_t points[1000];
    static double values[4000];
    double got[1000];
    for (int i = 0; i < 4000; i++) {
        values[i] = i % 10;
        points[i % 1000] = i;
    }
    int64_t within = 0;
    assert_int_equal(wpk_reference_points_within(&p, points, 1000, all + 1000.0, &within, NULL),
                     WPK_OK);
    assert_int_equal(within, 1000);
    assert_int_equal(wpk_reference_points_within(&p, points, 1000, all + 10.0, &within, NULL),
                     WPK_OK);
    assert_int_equal(within, 10);
    assert_int_equal(wpk_reference_points_within(&p, points, 1000, all, &within, NULL), WPK_OK);
    assert_int_equal(within, 0);
    struct wpk_reference_args args = {.tensor = {values}};
    assert_int_equal(wpk_reference_run_at(&p, &args, points, 1000, got, NULL, NULL), WPK_OK);
    assert_true(got[7] == values[points[7]] / (4.5 * all));
    wpk_program_fini(&p);
}

/* Stages that the output does not need are not run: this one would read a missing input. */
static void test_dead_stage(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int b = tensor(&p, "B", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(4));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(4));
    int i = ax(&p, 0);
    stage(&p, t)->expr = wpk_node_load(&p, b, &i, -1);
    stage(&p, y)->expr = wpk_node_unary(&p, WPK_UNARY_NEG, wpk_node_load(&p, a, &i, -1));
    const double values[4] = {1, 2, 3, 4};
    struct wpk_reference_args args = {.tensor = {values}};
    double got[4];
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, NULL), WPK_OK);
    assert_true(got[3] == -4.0);
    struct wpk_diag diag = {0};
    args.tensor[0] = NULL;
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "A"));
    wpk_program_fini(&p);
}

/* Not a test of time, which a loaded machine would fail; WPK_TIME prints what it takes. */
static void test_resnet_layer(void **state)
{
    (void)state;
    if (getenv("WPK_TIME") == NULL) {
        print_message("runs with WPK_TIME only\n");
        skip();
    }
    static const struct conv layers[] = {{28, 128, 128, 3, 1, 1, WPK_F32, WPK_F32},
                                         {7, 512, 512, 3, 1, 1, WPK_F32, WPK_F32},
                                         {56, 64, 64, 3, 1, 1, WPK_F32, WPK_F32},
                                         {224, 3, 64, 7, 2, 3, WPK_F32, WPK_F32}};
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        struct wpk_program p = {0};
        build_conv(&p, &layers[l]);
        struct wpk_rng rng;
        wpk_rng_seed(&rng, 1);
        struct wpk_reference_args args = {.tensor = {NULL}};
        double *own[3];
        for (int t = 0; t < 3; t++) {
            args.tensor[t] = own[t] = wpk_check_values(&rng, &p.tensors[t]);
        }
        size_t elements = (size_t)wpk_tensor_elements(&p.tensors[4]);
        double *value = malloc(2 * elements * sizeof *value);
        double best[2] = {INFINITY, INFINITY};
        for (int i = 0; i < 6; i++) {
            clock_t start = clock();
            double *magnitude = i % 2 == 0 ? value + elements : NULL;
            assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
            best[i % 2] = fmin(best[i % 2], (double)(clock() - start) / CLOCKS_PER_SEC);
        }
        print_message("layer %zu: %.3f s with magnitudes, %.3f s without\n", l, best[0], best[1]);
        free(value);
        for (int t = 0; t < 3; t++) {
            free(own[t]);
        }
        wpk_program_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_padded_input),
        cmocka_unit_test(test_padding_before_outside),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_infinite_outside),
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_points_of_large),
        cmocka_unit_test(test_points_share_boxes),
        cmocka_unit_test(test_sum_of_all_is_computed_once),
        cmocka_unit_test(test_dead_stage),
        cmocka_unit_test(test_resnet_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
