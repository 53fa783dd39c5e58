/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/node.h"
#include "tests/random_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t ten[1] = {10};

/* Y[i] = X[i] over ten elements of f32; the caller changes one thing. */
static struct wpk_program make_copy(void)
{
    struct wpk_program p = {0};
    int x = wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, ten);
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, ten);
    int index[1] = {wpk_node_axis(&p, 0)};
    int stage = wpk_program_add_stage(&p, y, NULL);
    p.stages[stage].expr = wpk_node_load(&p, x, index, -1);
    return p;
}

static void copies_are_equal_and_apart(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 50; i++) {
        struct wpk_program p, copy;
        wpk_random_program(&rng, NULL, &p);
        assert_int_equal(wpk_program_copy(&p, &copy), WPK_OK);
        assert_int_equal(wpk_program_validate(&copy, NULL), WPK_OK);
        assert_int_equal(copy.node_count, p.node_count);
        assert_memory_equal(copy.nodes, p.nodes, (size_t)p.node_count * sizeof *p.nodes);
        wpk_program_fini(&p);
        assert_int_equal(wpk_program_validate(&copy, NULL), WPK_OK);
        wpk_program_fini(&copy);
        wpk_program_fini(&copy);
    }
}

static void broken_invariants_are_found(void **state)
{
    (void)state;
    enum {
        GOOD,
        NAME,
        TWICE,
        EXTENT,
        AXES,
        NO_EXPR,
        TYPE,
        WRITTEN,
        ORDER,
        OUTSIDE,
        CYCLE,
        FULL,
        KINDS
    };
    for (int broken = GOOD; broken < KINDS; broken++) {
        struct wpk_program p = make_copy();
        struct wpk_diag diag = {0};
        struct wpk_node *load = &p.nodes[p.stages[0].expr];
        switch (broken) {
        case NAME:
            p.tensors[0].name[0] = ' ';
            break;
        case TWICE:
            p.tensors[0].name[0] = 'Y';
            break;
        case EXTENT:
            p.tensors[0].extent[0] = 0;
            break;
        case AXES:
            p.stages[0].axes[0].extent = 11;
            break;
        case NO_EXPR:
            p.stages[0].expr = -1;
            break;
        case TYPE:
            p.tensors[1].dtype = WPK_F64;
            break;
        case WRITTEN:
            p.tensors[1].role = WPK_ROLE_INPUT;
            break;
        case ORDER:
            load->tensor = 1;
            break;
        case OUTSIDE:
            p.tensors[0].extent[0] = 9;
            break;
        case CYCLE:
            load->index[0] = p.stages[0].expr;
            break;
        case FULL:
            p.full = true;
            break;
        default:
            break;
        }
        wpk_err expected = broken == GOOD ? WPK_OK : broken == FULL ? WPK_ENOSPC : WPK_EINVAL;
        if (wpk_program_validate(&p, &diag) != expected) {
            fail_msg("case %d: %s", broken, diag.text);
        }
        assert_int_equal(diag.text[0] != '\0', broken != GOOD);
        wpk_program_fini(&p);
    }
}

static void limits_are_sticky(void **state)
{
    (void)state;
    struct wpk_program p = make_copy();
    for (int i = 0; i < WPK_NODES_MAX; i++) {
        (void)wpk_node_int(&p, i);
    }
    assert_int_equal(wpk_node_int(&p, 1), -1);
    assert_int_equal(wpk_node_binary(&p, WPK_BINARY_ADD, -1, 0), -1);
    assert_int_equal(wpk_program_validate(&p, NULL), WPK_ENOSPC);
    wpk_program_fini(&p);
    assert_int_equal(p.node_count, 0);
}

static void literals_are_folded(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int two = wpk_node_real(&p, WPK_F32, 2);
    int three = wpk_node_int(&p, 3);
    int six = wpk_node_binary(&p, WPK_BINARY_MUL, two, three);
    assert_int_equal(p.nodes[six].kind, WPK_NODE_LITERAL);
    assert_int_equal(p.nodes[six].dtype, WPK_F32);
    assert_true(p.nodes[six].value == 6);
    int floored = wpk_node_binary(&p, WPK_BINARY_DIV, wpk_node_int(&p, -7), wpk_node_int(&p, 2));
    assert_int_equal(p.nodes[floored].integer, -4);
    int rest = wpk_node_binary(&p, WPK_BINARY_MOD, wpk_node_int(&p, -7), wpk_node_int(&p, 4));
    assert_int_equal(p.nodes[rest].integer, 1);
    /* the quotient times the divisor lies outside of i64, the remainder does not */
    int least = wpk_node_binary(&p, WPK_BINARY_MOD, wpk_node_int(&p, INT64_MIN), three);
    assert_int_equal(p.nodes[least].integer, 1);
    int axis = wpk_node_axis(&p, 0);
    assert_int_equal(wpk_node_binary(&p, WPK_BINARY_ADD, axis, wpk_node_int(&p, 0)), axis);
    assert_int_equal(wpk_node_binary(&p, WPK_BINARY_MUL, wpk_node_int(&p, 1), axis), axis);
    int big = wpk_node_int(&p, INT64_MAX);
    int overflow = wpk_node_binary(&p, WPK_BINARY_MUL, big, three);
    assert_int_equal(p.nodes[overflow].kind, WPK_NODE_BINARY);
    wpk_program_fini(&p);
}

/* As the same casts do at run time: integers wrap, what has a fraction is rounded and saturates. */
static void literals_are_cast(void **state)
{
    (void)state;
    static const struct {
        int64_t from;
        enum wpk_dtype to;
        int64_t expected;
    } integers[] = {{300, WPK_I8, 44},
                    {-129, WPK_I8, 127},
                    {-1, WPK_U8, 255},
                    {0x100000001, WPK_I32, 1},
                    {0x80000000, WPK_I32, INT32_MIN},
                    {256, WPK_BOOL, 1}};
    struct wpk_program p = {0};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        int cast = wpk_node_cast(&p, integers[i].to, wpk_node_int(&p, integers[i].from));
        assert_int_equal(p.nodes[cast].kind, WPK_NODE_LITERAL);
        assert_int_equal(p.nodes[cast].integer, integers[i].expected);
    }
    int real = wpk_node_real(&p, WPK_F32, 300.5);
    assert_int_equal(p.nodes[wpk_node_cast(&p, WPK_I8, real)].integer, 127);
    assert_int_equal(p.nodes[wpk_node_cast(&p, WPK_I32, real)].integer, 300);
    wpk_program_fini(&p);
}

/* (y - 1) + (r + 3) is y + r + 2 however it was put together. */
static void shifts_are_gathered(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int y = wpk_node_axis(&p, 0);
    int r = wpk_node_axis(&p, 1);
    int left = wpk_node_binary(&p, WPK_BINARY_SUB, y, wpk_node_int(&p, 1));
    int right = wpk_node_binary(&p, WPK_BINARY_ADD, wpk_node_int(&p, 3), r);
    const struct wpk_node *sum = &p.nodes[wpk_node_binary(&p, WPK_BINARY_ADD, left, right)];
    assert_int_equal(sum->op, WPK_BINARY_ADD);
    assert_int_equal(p.nodes[sum->arg[1]].integer, 2);
    assert_int_equal(p.nodes[sum->arg[0]].arg[0], y);
    assert_int_equal(p.nodes[sum->arg[0]].arg[1], r);
    wpk_program_fini(&p);
}

static void operands_meet_in_one_type(void **state)
{
    (void)state;
    static const struct {
        enum wpk_binary op;
        enum wpk_dtype a, b, result;
    } cases[] = {
        {WPK_BINARY_MUL, WPK_I8, WPK_I8, WPK_I32},    {WPK_BINARY_MUL, WPK_U8, WPK_I8, WPK_I32},
        {WPK_BINARY_ADD, WPK_F16, WPK_F16, WPK_F32},  {WPK_BINARY_ADD, WPK_BF16, WPK_F64, WPK_F64},
        {WPK_BINARY_MAX, WPK_F16, WPK_F16, WPK_F16},  {WPK_BINARY_MIN, WPK_I8, WPK_U8, WPK_I32},
        {WPK_BINARY_SUB, WPK_I64, WPK_F32, WPK_F32},  {WPK_BINARY_ADD, WPK_BOOL, WPK_BOOL, WPK_I32},
        {WPK_BINARY_LT, WPK_I32, WPK_F32, WPK_BOOL},  {WPK_BINARY_POW, WPK_I32, WPK_I32, WPK_F32},
        {WPK_BINARY_MAX, WPK_F16, WPK_BF16, WPK_F32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wpk_program p = {0};
        int a = wpk_program_add_tensor(&p, "A", WPK_ROLE_INPUT, cases[i].a, 0, NULL);
        int b = wpk_program_add_tensor(&p, "B", WPK_ROLE_INPUT, cases[i].b, 0, NULL);
        int x = wpk_node_load(&p, a, NULL, -1);
        int y = wpk_node_load(&p, b, NULL, -1);
        int node = wpk_node_binary(&p, cases[i].op, x, y);
        assert_int_equal(p.nodes[node].dtype, cases[i].result);
        assert_int_equal(p.nodes[p.nodes[node].arg[0]].dtype, p.nodes[p.nodes[node].arg[1]].dtype);
        wpk_program_fini(&p);
    }
}

static void literals_take_the_type_they_meet(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = wpk_node_load(&p, wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_I8, 0, NULL),
                          NULL, -1);
    int fits = wpk_node_binary(&p, WPK_BINARY_MAX, x, wpk_node_int(&p, 0));
    assert_int_equal(p.nodes[fits].dtype, WPK_I8);
    /* 300 is no i8, and cutting it would change what the comparison says */
    int wide = wpk_node_binary(&p, WPK_BINARY_LT, x, wpk_node_int(&p, 300));
    assert_int_equal(p.nodes[p.nodes[wide].arg[1]].integer, 300);
    int scaled = wpk_node_binary(&p, WPK_BINARY_MUL, wpk_node_real(&p, WPK_F64, 0.5), x);
    assert_int_equal(p.nodes[scaled].dtype, WPK_F32);
    wpk_program_fini(&p);
}

static void values_are_rounded_to_their_type(void **state)
{
    (void)state;
    assert_true(wpk_dtype_round(WPK_F16, 2049) == 2048);
    assert_true(wpk_dtype_round(WPK_F16, 2051) == 2052);
    assert_true(wpk_dtype_round(WPK_F16, 65504) == 65504);
    assert_true(isinf(wpk_dtype_round(WPK_F16, 65520)));
    assert_true(wpk_dtype_round(WPK_F16, 0x1p-24) == 0x1p-24);
    assert_true(wpk_dtype_round(WPK_F16, 0x1p-25) == 0);
    assert_true(wpk_dtype_round(WPK_BF16, 257) == 256);
    assert_true(wpk_dtype_round(WPK_BF16, 0x1p-133) == 0x1p-133);
    assert_true(wpk_dtype_round(WPK_I8, 2.5) == 2);
    assert_true(wpk_dtype_round(WPK_I8, 3.5) == 4);
    assert_true(wpk_dtype_round(WPK_I8, -1e9) == -128);
    assert_true(wpk_dtype_round(WPK_U8, -3) == 0);
}

/* ---- indices */

/* 3 * i + j / 2 - 5 in a stage with i < 4, j < 6 */
static void ranges_and_affine_forms(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    struct wpk_stage stage = {0};
    struct wpk_affine affine;
    int64_t low, high;
    (void)wpk_stage_add_reduction_axis(&stage, "i", 4);
    (void)wpk_stage_add_reduction_axis(&stage, "j", 6);
    int i = wpk_node_axis(&p, 0);
    int j = wpk_node_axis(&p, 1);
    int shifted = wpk_node_binary(&p, WPK_BINARY_SUB,
                                  wpk_node_binary(&p, WPK_BINARY_MUL, i, wpk_node_int(&p, 3)),
                                  wpk_node_int(&p, 5));
    assert_true(wpk_index_affine(&p, shifted, &affine));
    assert_int_equal(affine.coefficient[0], 3);
    assert_int_equal(affine.constant, -5);
    int half = wpk_node_binary(&p, WPK_BINARY_DIV, j, wpk_node_int(&p, 2));
    int both = wpk_node_binary(&p, WPK_BINARY_ADD, shifted, half);
    assert_false(wpk_index_affine(&p, both, &affine));
    wpk_index_range(&p, &stage, both, &low, &high);
    assert_int_equal(low, -5);
    assert_int_equal(high, 6);
    assert_int_equal(wpk_index_axis(&p, j), 1);
    assert_int_equal(wpk_index_axis(&p, half), -1);
    int rest = wpk_node_binary(&p, WPK_BINARY_MOD, shifted, wpk_node_int(&p, 4));
    wpk_index_range(&p, &stage, rest, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 3);
    wpk_program_fini(&p);
}

/* No value of an index lies outside of the range that is claimed, and its affine form gives the
 * value. */
static int64_t value_at(const struct wpk_program *p, int node, const int64_t *axes)
{
    const struct wpk_node *n = &p->nodes[node];
    if (n->kind == WPK_NODE_LITERAL) {
        return n->integer;
    }
    if (n->kind == WPK_NODE_AXIS) {
        return axes[n->axis];
    }
    int64_t a = value_at(p, n->arg[0], axes);
    int64_t b = value_at(p, n->arg[1], axes);
    int64_t floored = n->op == WPK_BINARY_DIV || n->op == WPK_BINARY_MOD
                          ? (int64_t)floor((double)a / (double)b)
                          : 0;
    return n->op == WPK_BINARY_ADD   ? a + b
           : n->op == WPK_BINARY_SUB ? a - b
           : n->op == WPK_BINARY_MUL ? a * b
           : n->op == WPK_BINARY_DIV ? floored
                                     : a - floored * b;
}

static void check_index(const struct wpk_program *p, const struct wpk_stage *stage, int node,
                        struct wpk_rng *rng)
{
    int64_t low, high;
    struct wpk_affine affine;
    bool is_affine = wpk_index_affine(p, node, &affine);
    wpk_index_range(p, stage, node, &low, &high);
    for (int trial = 0; trial < 20; trial++) {
        int64_t axes[WPK_AXES_MAX] = {0};
        for (int a = 0; a < stage->axis_count; a++) {
            axes[a] = wpk_rng_between(rng, 0, stage->axes[a].extent - 1);
        }
        int64_t value = value_at(p, node, axes);
        assert_in_range(value - low, 0, high - low);
        int64_t sum = affine.constant;
        for (int a = 0; a < stage->axis_count; a++) {
            sum += affine.coefficient[a] * axes[a];
        }
        assert_true(!is_affine || sum == value);
    }
}

static void ranges_hold_what_is_computed(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 7);
    for (int i = 0; i < 300; i++) {
        struct wpk_program p;
        wpk_random_program(&rng, NULL, &p);
        for (int s = 0; s < p.stage_count; s++) {
            int loads[64];
            int count = wpk_stage_loads(&p, &p.stages[s], loads, 64);
            for (int l = 0; l < count; l++) {
                const struct wpk_node *load = &p.nodes[loads[l]];
                for (int d = 0; d < p.tensors[load->tensor].rank; d++) {
                    check_index(&p, &p.stages[s], load->index[d], &rng);
                }
            }
        }
        wpk_program_fini(&p);
    }
}

static void alignment_is_the_period_of_divisions(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 3, (int64_t[]){9, 9, 99});
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, (int64_t[]){8, 8});
    int i = wpk_node_axis(&p, 0);
    int j = wpk_node_axis(&p, 1);
    int quarter = wpk_node_binary(&p, WPK_BINARY_DIV, i, wpk_node_int(&p, 4));
    int index[3] = {
        wpk_node_binary(&p, WPK_BINARY_MOD, quarter, wpk_node_int(&p, 3)),
        wpk_node_binary(&p, WPK_BINARY_DIV,
                        wpk_node_binary(&p, WPK_BINARY_MUL, j, wpk_node_int(&p, 2)),
                        wpk_node_int(&p, 6)),
        j,
    };
    int stage = wpk_program_add_stage(&p, y, NULL);
    p.stages[stage].expr = wpk_node_load(&p, x, index, -1);
    assert_int_equal(wpk_axis_alignment(&p, &p.stages[stage], 0), 12);
    assert_int_equal(wpk_axis_alignment(&p, &p.stages[stage], 1), 3);
    wpk_program_fini(&p);
}

/* Indices i / n and i % n read one element after the other along i, unless rows have other elements
 * between them. */
static void rows_may_be_read_as_one(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = wpk_program_add_tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 3, (int64_t[]){2, 5, 12});
    int y = wpk_program_add_tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, (int64_t[]){2, 60});
    int i = wpk_node_axis(&p, 1);
    int n = wpk_node_int(&p, 12);
    int quotient = wpk_node_binary(&p, WPK_BINARY_DIV, i, n);
    int index[3] = {wpk_node_axis(&p, 0), quotient, wpk_node_binary(&p, WPK_BINARY_MOD, i, n)};
    int stage = wpk_program_add_stage(&p, y, NULL);
    int load = p.stages[stage].expr = wpk_node_load(&p, x, index, -1);
    const struct wpk_stage *reader = &p.stages[stage];
    assert_int_equal(wpk_load_flat_dim(&p, &p.nodes[load]), 1);
    assert_int_equal(wpk_axis_alignment(&p, reader, 1), 12);
    assert_int_equal(wpk_axis_tile_alignment(&p, reader, 1), 1);
    p.tensors[x].pad_after[1] = 1;
    assert_int_equal(wpk_load_flat_dim(&p, &p.nodes[load]), 1);
    p.tensors[x].pad_after[2] = 1;
    assert_int_equal(wpk_load_flat_dim(&p, &p.nodes[load]), -1);
    assert_int_equal(wpk_axis_tile_alignment(&p, reader, 1), 12);
    p.tensors[x].pad_after[2] = 0;
    p.tensors[x].extent[2] = 13; /* one element of each row is not read */
    assert_int_equal(wpk_load_flat_dim(&p, &p.nodes[load]), -1);
    p.tensors[x].extent[2] = 12;
    p.nodes[load].index[2] = p.nodes[load].index[0];
    assert_int_equal(wpk_load_flat_dim(&p, &p.nodes[load]), -1);
    wpk_program_fini(&p);
}

/* An axis may become an expression, within the same program too. */
static void copied_expressions_are_renamed(void **state)
{
    (void)state;
    struct wpk_program p = make_copy();
    int shifted = wpk_node_binary(&p, WPK_BINARY_ADD, wpk_node_axis(&p, 0), wpk_node_int(&p, -2));
    int axis_map[WPK_AXES_MAX] = {shifted};
    int copy = wpk_node_copy(&p, &p, p.stages[0].expr, NULL, axis_map);
    struct wpk_affine affine;
    assert_true(wpk_index_affine(&p, p.nodes[copy].index[0], &affine));
    assert_int_equal(affine.coefficient[0], 1);
    assert_int_equal(affine.constant, -2);
    p.stages[0].expr = copy;
    assert_true(wpk_load_may_leave(&p, &p.stages[0], copy));
    assert_int_equal(wpk_program_validate(&p, NULL), WPK_EINVAL);
    p.tensors[0].pad_before[0] = 2;
    assert_false(wpk_load_may_leave(&p, &p.stages[0], copy));
    assert_int_equal(wpk_program_validate(&p, NULL), WPK_OK);
    wpk_program_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_equal_and_apart),
        cmocka_unit_test(broken_invariants_are_found),
        cmocka_unit_test(limits_are_sticky),
        cmocka_unit_test(literals_are_folded),
        cmocka_unit_test(literals_are_cast),
        cmocka_unit_test(shifts_are_gathered),
        cmocka_unit_test(operands_meet_in_one_type),
        cmocka_unit_test(literals_take_the_type_they_meet),
        cmocka_unit_test(values_are_rounded_to_their_type),
        cmocka_unit_test(ranges_and_affine_forms),
        cmocka_unit_test(ranges_hold_what_is_computed),
        cmocka_unit_test(alignment_is_the_period_of_divisions),
        cmocka_unit_test(rows_may_be_read_as_one),
        cmocka_unit_test(copied_expressions_are_renamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
