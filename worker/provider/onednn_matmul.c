/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, in batches or not: each axis belongs to both factors and the output (batch), to
 * one of the factors and the output, or to both factors alone. */
#include "worker/provider/onednn_pattern.h"

/* The axes of the stage by their part in the product; -1: none. */
struct product_axes {
    int batch[WPK_AXES_MAX];
    int batch_count;
    int m, n, k;
};

static bool sort_axes(const struct wpk_stage *stage, const int *in_a, const int *in_b,
                      struct product_axes *out)
{
    *out = (struct product_axes){.m = -1, .n = -1, .k = -1};
    for (int i = 0; i < stage->axis_count; i++) {
        bool reduced = i >= stage->rank;
        int *place = reduced ? &out->k : in_b[i] < 0 ? &out->m : &out->n;
        if (in_a[i] < 0 && in_b[i] < 0) {
            return false;
        }
        if (reduced && (in_a[i] < 0 || in_b[i] < 0)) {
            return false;
        }
        if (!reduced && in_a[i] >= 0 && in_b[i] >= 0) {
            out->batch[out->batch_count++] = i;
            continue;
        }
        if (*place >= 0) {
            return false;
        }
        *place = i;
    }
    /* More would not fit the library's rank. */
    return out->k >= 0 && out->batch_count <= WPK_RECIPE_RANK_MAX - 2;
}

static void fill_factor(const struct wpk_program *program, const struct product_axes *axes,
                        const int *dim_of, int row, int column, struct wpk_recipe_operand *out)
{
    for (int i = 0; i < axes->batch_count; i++) {
        wpk_onednn_operand_add(program, out, dim_of[axes->batch[i]]);
    }
    wpk_onednn_operand_add(program, out, row < 0 ? -1 : dim_of[row]);
    wpk_onednn_operand_add(program, out, column < 0 ? -1 : dim_of[column]);
}

static bool multiply(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_node *a, const struct wpk_node *b, int bias,
                     struct wpk_recipe *op)
{
    int in_a[WPK_AXES_MAX];
    int in_b[WPK_AXES_MAX];
    int in_bias[WPK_AXES_MAX];
    int in_dst[WPK_AXES_MAX];
    struct product_axes axes;

    if (!wpk_onednn_plain_dims(program, stage, a, in_a) ||
        !wpk_onednn_plain_dims(program, stage, b, in_b) || !sort_axes(stage, in_a, in_b, &axes)) {
        return false;
    }
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_BIAS], -1);
    if (bias >= 0) {
        const struct wpk_node *load = &program->nodes[bias];
        if (!wpk_onednn_plain_dims(program, stage, load, in_bias)) {
            return false;
        }
        wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_BIAS], load->tensor);
        fill_factor(program, &axes, in_bias, axes.m, axes.n, &op->operand[WPK_RECIPE_BIAS]);
    }
    for (int i = 0; i < WPK_AXES_MAX; i++) {
        in_dst[i] = i < stage->rank ? i : -1;
    }
    op->kind = WPK_RECIPE_MATMUL;
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_SRC], a->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_WEIGHTS], b->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_DST], wpk_program_output(program));
    fill_factor(program, &axes, in_a, axes.m, axes.k, &op->operand[WPK_RECIPE_SRC]);
    fill_factor(program, &axes, in_b, axes.k, axes.n, &op->operand[WPK_RECIPE_WEIGHTS]);
    fill_factor(program, &axes, in_dst, axes.m, axes.n, &op->operand[WPK_RECIPE_DST]);
    return true;
}

/* The left factor is the one whose own axis comes first in the output: then a row-major output is
 * row-major to the library too. */
bool wpk_onednn_match_matmul(const struct wpk_program *program, const struct wpk_stage *stage,
                             int bias, struct wpk_recipe *op)
{
    const struct wpk_node *a = NULL;
    const struct wpk_node *b = NULL;
    int in_a[WPK_AXES_MAX];

    if (!wpk_onednn_factors(program, stage, &a, &b) || stage->rank == 0 ||
        !wpk_onednn_plain_dims(program, stage, a, in_a)) {
        return false;
    }
    bool swap = in_a[stage->rank - 1] >= 0;
    return multiply(program, stage, swap ? b : a, swap ? a : b, bias, op) ||
           multiply(program, stage, swap ? a : b, swap ? b : a, bias, op);
}
