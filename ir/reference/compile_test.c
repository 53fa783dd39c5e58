/* SPDX-License-Identifier: Apache-2.0 */
/* Indices and products that the tape treats in its own way. */
#include "tests/reference_check.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Rows of 3x3 patches as a matrix: / and % in the indices, then a matrix product. */
static void test_divided_indices(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(4, 8, 8));
    int w = tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 2, EXTENTS(5, 36));
    int m = tensor(&p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(64, 36));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(5, 64));
    int nine = wpk_node_int(&p, 9);
    int three = wpk_node_int(&p, 3);
    int eight = wpk_node_int(&p, 8);
    int one = wpk_node_int(&p, 1);
    struct wpk_stage *s = stage(&p, m);
    int patch = op2(&p, WPK_BINARY_MOD, ax(&p, 1), nine);
    int row = op2(&p, WPK_BINARY_ADD, op2(&p, WPK_BINARY_DIV, ax(&p, 0), eight),
                  op2(&p, WPK_BINARY_SUB, op2(&p, WPK_BINARY_DIV, patch, three), one));
    int column = op2(&p, WPK_BINARY_ADD, op2(&p, WPK_BINARY_MOD, ax(&p, 0), eight),
                     op2(&p, WPK_BINARY_SUB, op2(&p, WPK_BINARY_MOD, patch, three), one));
    s->expr = wpk_node_load(&p, x, INDICES(op2(&p, WPK_BINARY_DIV, ax(&p, 1), nine), row, column),
                            zero(&p, WPK_F32));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(36));
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, w, INDICES(ax(&p, 0), ax(&p, 2)), -1),
                  wpk_node_load(&p, m, INDICES(ax(&p, 1), ax(&p, 2)), -1));
    wpk_check_reference(&p, 5);
    wpk_program_fini(&p);
}

/* A blocked operand inside a contraction: the block's remainder is not affine. */
static void test_blocked_product(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(7, 3, 16));
    int b = tensor(&p, "B", WPK_ROLE_CONSTANT, WPK_F32, 3, EXTENTS(3, 48, 16));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(7, 48));
    int block = wpk_node_int(&p, 16);
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(48));
    int quotient = op2(&p, WPK_BINARY_DIV, ax(&p, 2), block);
    int rest = op2(&p, WPK_BINARY_MOD, ax(&p, 2), block);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, a, INDICES(ax(&p, 0), quotient, rest), -1),
                  wpk_node_load(&p, b,
                                INDICES(op2(&p, WPK_BINARY_DIV, ax(&p, 1), block), ax(&p, 2),
                                        op2(&p, WPK_BINARY_MOD, ax(&p, 1), block)),
                                -1));
    wpk_check_reference(&p, 6);
    wpk_program_fini(&p);
}

/* F(2,3) in one dimension with its matrices as literals, zeros in them. */
static void test_literal_transforms(void **state)
{
    (void)state;
    static const double bt[16] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
    static const double g[12] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
    static const double at[8] = {1, 1, 1, 0, 0, 1, -1, -1};
    struct wpk_program p = {0};
    int64_t tiles = 30;
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(2 * tiles + 2));
    int w = tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 1, EXTENTS(3));
    int lb = wpk_program_add_literal(&p, "BT", WPK_F32, 2, EXTENTS(4, 4), bt);
    int lg = wpk_program_add_literal(&p, "G", WPK_F32, 2, EXTENTS(4, 3), g);
    int la = wpk_program_add_literal(&p, "AT", WPK_F32, 2, EXTENTS(2, 4), at);
    int u = tensor(&p, "U", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(4));
    int v = tensor(&p, "V", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(4, tiles));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(2 * tiles));
    struct wpk_stage *s = stage(&p, u);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(3));
    int ij[3] = {ax(&p, 0), ax(&p, 1), ax(&p, 2)};
    s->expr =
        op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, lg, ij, -1), wpk_node_load(&p, w, ij + 1, -1));
    s = stage(&p, v);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(4));
    int tile = slide(&p, 2, 1, 2, 0);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, lb, INDICES(ax(&p, 0), ax(&p, 2)), -1),
                  wpk_node_load(&p, x, &tile, -1));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(4));
    int two = wpk_node_int(&p, 2);
    int half = op2(&p, WPK_BINARY_DIV, ax(&p, 0), two);
    int product = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, u, ij + 1, -1),
                      wpk_node_load(&p, v, INDICES(ax(&p, 1), half), -1));
    int odd = op2(&p, WPK_BINARY_MOD, ax(&p, 0), two);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, la, INDICES(odd, ax(&p, 1)), -1), product);
    wpk_check_reference(&p, 7);
    wpk_program_fini(&p);
}

/* A factor of the accumulator that something else uses too. */
static void test_shared_factor(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(40, 50));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(40));
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(50));
    int load = wpk_node_load(&p, x, INDICES(ax(&p, 0), ax(&p, 1)), -1);
    int shifted = op2(&p, WPK_BINARY_ADD, load, wpk_node_real(&p, WPK_F32, 0.25));
    s->expr = op2(&p, WPK_BINARY_MUL, load, shifted);
    wpk_check_reference(&p, 9);
    wpk_program_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divided_indices),
        cmocka_unit_test(test_blocked_product),
        cmocka_unit_test(test_literal_transforms),
        cmocka_unit_test(test_shared_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
