/* SPDX-License-Identifier: Apache-2.0 */
#include "search/access.h"

#include "ir/cost.h"
#include "search/reuse.h"

#include <stdlib.h>
#include <string.h>

static const int64_t origin[WPK_AXES_MAX];

/* Vector instructions of what is no single one: polynomials, divisions by Newton's method or by a
 * unit that takes as long. From the assembly of pointwise kernels. */
static double unary_instructions(enum wpk_unary op)
{
    static const double counts[WPK_UNARY_COUNT] = {
        [WPK_UNARY_EXP] = 18,  [WPK_UNARY_LOG] = 25,  [WPK_UNARY_SQRT] = 8,
        [WPK_UNARY_RSQRT] = 8, [WPK_UNARY_TANH] = 28, [WPK_UNARY_SIGMOID] = 28,
        [WPK_UNARY_ERF] = 24,  [WPK_UNARY_SIN] = 40,  [WPK_UNARY_COS] = 40,
    };
    return counts[op] > 0 ? counts[op] : 1;
}

static double node_instructions(const struct wpk_node *node)
{
    switch (node->kind) {
    case WPK_NODE_UNARY:
        return unary_instructions((enum wpk_unary)node->op);
    case WPK_NODE_BINARY:
        return node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD ? 8
               : node->op == WPK_BINARY_POW                             ? 45
                                                                        : 1;
    case WPK_NODE_SELECT:
    case WPK_NODE_CAST:
        return 1;
    default:
        return 0;
    }
}

static void add_instructions(const struct wpk_program *program, int node, void *user)
{
    double *sum = user;
    *sum += node_instructions(&program->nodes[node]);
}

static void describe_dim(const struct wpk_program *program, int index, struct wpk_access_dim *out)
{
    struct wpk_affine affine;
    *out = (struct wpk_access_dim){.node = -1};
    if (!wpk_index_affine(program, index, &affine)) {
        out->node = index;
        return;
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        if (affine.coefficient[a] == 0) {
            continue;
        }
        if (out->term_count == WPK_ACCESS_TERMS_MAX) {
            out->node = index;
            return;
        }
        out->axis[out->term_count] = a;
        out->factor[out->term_count++] = affine.coefficient[a];
    }
    out->constant = affine.constant;
}

static void mark_axis(const struct wpk_program *program, int node, void *user)
{
    uint32_t *axes = user;
    if (program->nodes[node].kind == WPK_NODE_AXIS) {
        *axes |= UINT32_C(1) << program->nodes[node].axis;
    }
}

static double literal_density(const struct wpk_tensor *tensor)
{
    int64_t count = wpk_tensor_elements(tensor), used = 0;
    for (int64_t i = 0; i < count; i++) {
        used += tensor->values[i] != 0;
    }
    return count > 0 ? (double)used / (double)count : 1;
}

static bool describe_stage(const struct wpk_program *program, struct wpk_accesses *out, int number)
{
    const struct wpk_stage *stage = &program->stages[number];
    struct wpk_stage_access *facts = &out->stage[number];
    struct wpk_cost cost;
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    struct wpk_access *grown =
        realloc(out->access, (size_t)(out->access_count + count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    out->access = grown;
    *facts = (struct wpk_stage_access){.first = out->access_count, .density = 1};
    wpk_stage_cost(program, number, &cost);
    facts->flops = cost.flops;
    facts->operations = cost.flops / cost.iterations;
    wpk_node_walk(program, stage->expr, false, add_instructions, &facts->instructions);
    bool literal[WPK_AXES_MAX];
    wpk_reuse_mark_literal(program, stage, literal);
    facts->density = wpk_reuse_inside(program, stage, literal);
    const struct wpk_node *top = &program->nodes[stage->expr];
    facts->multiply_add = stage->reduction == WPK_REDUCE_SUM && top->kind == WPK_NODE_BINARY &&
                          top->op == WPK_BINARY_MUL;
    facts->instructions += stage->reduction != WPK_REDUCE_NONE && !facts->multiply_add;
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        const struct wpk_tensor *tensor = &program->tensors[load->tensor];
        if (tensor->role == WPK_ROLE_LITERAL) {
            facts->density *= literal_density(tensor);
            continue;
        }
        struct wpk_access *access = &out->access[out->access_count++];
        *access = (struct wpk_access){.tensor = load->tensor, .next = -1, .first = true};
        for (int k = facts->first; k < out->access_count - 1; k++) {
            struct wpk_access *before = &out->access[k];
            if (before->tensor == load->tensor && before->next < 0) {
                before->next = out->access_count - 1;
                access->first = false;
            }
        }
        facts->count++;
        int flat = wpk_load_flat_dim(program, load);
        for (int d = 0; d < tensor->rank; d++) {
            /* i stands for both: in a tile it has their vectors, beyond one the extent limits it */
            bool column = flat >= 0 && d == flat + 1;
            int index = column ? program->nodes[load->index[d]].arg[0] : load->index[d];
            describe_dim(program, index, &access->dim[d]);
            access->dim[d].flat = d == flat;
            wpk_node_walk(program, load->index[d], true, mark_axis, &access->dim[d].axes);
            access->axes |= access->dim[d].axes;
        }
    }
    return true;
}

wpk_err wpk_accesses_init(const struct wpk_program *program, struct wpk_accesses *out)
{
    *out = (struct wpk_accesses){0};
    for (int s = 0; s < program->stage_count; s++) {
        if (!describe_stage(program, out, s)) {
            wpk_accesses_fini(out);
            return WPK_ENOMEM;
        }
    }
    return WPK_OK;
}

void wpk_accesses_fini(struct wpk_accesses *accesses)
{
    if (accesses != NULL) {
        free(accesses->access);
        memset(accesses, 0, sizeof(*accesses));
    }
}

void wpk_access_range(const struct wpk_program *program, const struct wpk_access_dim *dim,
                      const int64_t *width, int64_t *low, int64_t *high)
{
    if (dim->node >= 0) {
        wpk_index_range_in(program, dim->node, origin, width, low, high);
        return;
    }
    *low = *high = dim->constant;
    for (int i = 0; i < dim->term_count; i++) {
        int64_t reach = dim->factor[i] * (width[dim->axis[i]] - 1);
        *low += reach < 0 ? reach : 0;
        *high += reach > 0 ? reach : 0;
    }
}

/* Indices of a dimension in a tile; `vector`: each stands for a vector. */
static int64_t count_dim(const struct wpk_program *program, const struct wpk_access_dim *dim,
                         const struct wpk_access_tile *tile, bool vector)
{
    int64_t most = 1, width = 1, low = 0, high = 0, all[WPK_AXES_MAX];
    for (int a = 0; a < WPK_AXES_MAX && dim->node >= 0; a++) {
        all[a] = tile->vectors[a] * (a == tile->lane_axis ? tile->lanes : 1);
        most *= (dim->axes >> a & 1) != 0 ? all[a] : 1;
    }
    if (dim->node >= 0) {
        wpk_index_range_in(program, dim->node, origin, all, &low, &high);
        return most < high - low + 1 ? most : high - low + 1;
    }
    for (int i = 0; i < dim->term_count; i++) {
        int64_t lanes = dim->axis[i] == tile->lane_axis ? tile->lanes : 1;
        int64_t count = tile->vectors[dim->axis[i]];
        most *= vector ? count : count * lanes;
        width += llabs(dim->factor[i]) * (count * lanes - 1) - (vector ? lanes - 1 : 0);
    }
    return most < width ? most : width;
}

double wpk_access_count(const struct wpk_program *program, const struct wpk_access *access,
                        const struct wpk_access_tile *tile, int contiguous, bool *single)
{
    const struct wpk_tensor *tensor = &program->tensors[access->tensor];
    double count = 1;
    *single = false;
    for (int d = 0; d < tensor->rank; d++) {
        const struct wpk_access_dim *dim = &access->dim[d];
        bool lanes = tile->lane_axis >= 0 && (dim->axes >> tile->lane_axis & 1) != 0, next = false;
        for (int i = 0; i < dim->term_count && lanes; i++) {
            next = next || (dim->axis[i] == tile->lane_axis && llabs(dim->factor[i]) == 1);
        }
        bool vector = next && d == contiguous;
        if (dim->flat) { /* the next one has all vectors */
            continue;
        }
        count *= dim->axes == 0 ? 1 : (double)count_dim(program, dim, tile, vector);
        *single = *single || (lanes && !vector);
    }
    return count;
}
