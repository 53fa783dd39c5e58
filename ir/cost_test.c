/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/cost.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define EXTENTS(...) ((const int64_t[]){__VA_ARGS__})
#define INDICES(...) ((const int[]){__VA_ARGS__})

static struct wpk_stage *new_stage(struct wpk_program *p, int output, enum wpk_reduction reduction,
                                   int count, const int64_t *extent)
{
    static const char *const names[] = {"c", "r", "s"};
    int s = wpk_program_add_stage(p, output, NULL);
    assert_true(s >= 0);
    p->stages[s].reduction = reduction;
    p->stages[s].accumulator = WPK_F32;
    for (int i = 0; i < count; i++) {
        assert_true(wpk_stage_add_reduction_axis(&p->stages[s], names[i], extent[i]) >= 0);
    }
    return &p->stages[s];
}

static int ax(struct wpk_program *p, int axis)
{
    return wpk_node_axis(p, axis);
}

/* ResNet-18's 28x28, 128 -> 128, 3x3 with bias and ReLU. */
static void test_convolution(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 4, EXTENTS(1, 128, 28, 28));
    int w = wpk_program_add_tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 4, EXTENTS(128, 128, 3, 3));
    int b = wpk_program_add_tensor(&p, "B", WPK_ROLE_CONSTANT, WPK_F32, 1, EXTENTS(128));
    int t =
        wpk_program_add_tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 4, EXTENTS(1, 128, 28, 28));
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 4, EXTENTS(1, 128, 28, 28));
    p.tensors[x].pad_before[2] = 1; /* padding is not traffic */
    struct wpk_stage *s = new_stage(&p, t, WPK_REDUCE_SUM, 3, EXTENTS(128, 3, 3));
    int row = wpk_node_binary(&p, WPK_BINARY_ADD, ax(&p, 2), ax(&p, 5));
    int column = wpk_node_binary(&p, WPK_BINARY_ADD, ax(&p, 3), ax(&p, 6));
    int lx = wpk_node_load(&p, x, INDICES(ax(&p, 0), ax(&p, 4), row, column),
                           wpk_node_real(&p, WPK_F32, 0.0));
    s->expr = wpk_node_binary(
        &p, WPK_BINARY_MUL, lx,
        wpk_node_load(&p, w, INDICES(ax(&p, 1), ax(&p, 4), ax(&p, 5), ax(&p, 6)), -1));
    s = new_stage(&p, y, WPK_REDUCE_NONE, 0, NULL);
    int point[4] = {ax(&p, 0), ax(&p, 1), ax(&p, 2), ax(&p, 3)};
    int sum = wpk_node_binary(&p, WPK_BINARY_ADD, wpk_node_load(&p, t, point, -1),
                              wpk_node_load(&p, b, point + 1, -1));
    s->expr = wpk_node_binary(&p, WPK_BINARY_MAX, sum, wpk_node_real(&p, WPK_F32, 0.0));

    struct wpk_cost cost;
    wpk_cost(&p, &cost);
    const double points = 28.0 * 28.0 * 128.0;
    assert_true(cost.iterations == points * 128.0 * 9.0 + points);
    assert_true(cost.elements == 2.0 * points);
    assert_true(cost.flops == 2.0 * points * 128.0 * 9.0 + 2.0 * points);
    assert_true(cost.bytes_min == 4.0 * (2.0 * points + 128.0 * 128.0 * 9.0 + 128.0));
    assert_true(cost.bytes_constants == 4.0 * (128.0 * 128.0 * 9.0 + 128.0));
    assert_true(cost.bytes_intermediate == 4.0 * points);
    wpk_stage_cost(&p, 1, &cost);
    assert_true(cost.flops == 2.0 * points);
    assert_true(cost.iterations == points);
    assert_true(cost.elements == points);
    wpk_program_fini(&p);
}

/* exp counts 1, a shared node once, casts nothing. */
static void test_softmax_denominator(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F16, 2, EXTENTS(10, 100));
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(10));
    struct wpk_stage *s = new_stage(&p, y, WPK_REDUCE_SUM, 1, EXTENTS(100));
    int lx = wpk_node_cast(&p, WPK_F32, wpk_node_load(&p, x, INDICES(ax(&p, 0), ax(&p, 1)), -1));
    int e = wpk_node_unary(&p, WPK_UNARY_EXP, lx);
    s->expr = wpk_node_binary(&p, WPK_BINARY_MUL, e, e);
    struct wpk_cost cost;
    wpk_cost(&p, &cost);
    assert_true(cost.flops == 1000.0 * 3.0); /* exp, product, sum */
    assert_true(cost.bytes_min == 2.0 * 1000.0 + 4.0 * 10.0);
    wpk_program_fini(&p);
}

static void test_matmul(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = wpk_program_add_tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(64, 32));
    int b = wpk_program_add_tensor(&p, "B", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(32, 16));
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(64, 16));
    struct wpk_stage *s = new_stage(&p, y, WPK_REDUCE_SUM, 1, EXTENTS(32));
    s->expr =
        wpk_node_binary(&p, WPK_BINARY_MUL, wpk_node_load(&p, a, INDICES(ax(&p, 0), ax(&p, 2)), -1),
                        wpk_node_load(&p, b, INDICES(ax(&p, 2), ax(&p, 1)), -1));
    struct wpk_cost cost;
    wpk_cost(&p, &cost);
    assert_true(cost.flops == 2.0 * 64.0 * 32.0 * 16.0);
    assert_true(cost.bytes_intermediate == 0.0);
    wpk_program_fini(&p);
}

static void test_roofline(void **state)
{
    (void)state;
    const struct wpk_cost cost = {.flops = 2e9, .bytes_min = 3e8};
    const struct wpk_roofline computes = {.flops_per_s = 1e11, .bytes_per_s = 1e11};
    const struct wpk_roofline moves = {.flops_per_s = 1e12, .bytes_per_s = 1e10};
    assert_true(wpk_cost_roofline_ns(&cost, cost.bytes_min, &computes) > 2e7 - 1.0);
    assert_true(wpk_cost_roofline_ns(&cost, cost.bytes_min, &computes) < 2e7 + 1.0);
    assert_true(wpk_cost_roofline_ns(&cost, cost.bytes_min, &moves) > 3e7 - 1.0);
    assert_true(wpk_cost_roofline_ns(&cost, cost.bytes_min, &moves) < 3e7 + 1.0);
}

/* Bytes from memory: what the conditions name, and what is too much for the cache. */
static void test_memory_bytes(void **state)
{
    (void)state;
    const struct wpk_cost cost = {.bytes_min = 100, .bytes_constants = 70};
    static const double caches[] = {200, 100, 99, 30, 29};
    static const double want[][WPK_CONDITIONS_COUNT] = {/* warm, cold-constants, cold */
                                                        {0, 70, 100},
                                                        {0, 70, 100},
                                                        {100, 70, 100},
                                                        {100, 70, 100},
                                                        {100, 100, 100}};
    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        for (int c = 0; c < WPK_CONDITIONS_COUNT; c++) {
            double bytes = wpk_cost_memory_bytes(&cost, (enum wpk_conditions)c, caches[i]);
            assert_true(bytes == want[i][c]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution),  cmocka_unit_test(test_softmax_denominator),
        cmocka_unit_test(test_matmul),       cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_memory_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
