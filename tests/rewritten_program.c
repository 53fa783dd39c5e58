/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/rewritten_program.h"

#include "common/rng.h"

#include <stdio.h>
#include <string.h>

/* One rewriting under way. */
struct rewriting {
    const struct wpk_program *from;
    struct wpk_program *to;
    struct wpk_rng rng;
    int tensor[WPK_TENSORS_MAX]; /* id in `to` */
    int axis[WPK_AXES_MAX];      /* of the stage at hand */
};

static void permute(struct wpk_rng *rng, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = (int)wpk_rng_below(rng, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static bool commutes(enum wpk_binary op)
{
    return op == WPK_BINARY_ADD || op == WPK_BINARY_MUL || op == WPK_BINARY_MIN ||
           op == WPK_BINARY_MAX || op == WPK_BINARY_EQ || op == WPK_BINARY_NE ||
           op == WPK_BINARY_AND || op == WPK_BINARY_OR;
}

static int rewrite(struct rewriting *h, int node);

static bool is_literal(const struct wpk_program *program, int node)
{
    return program->nodes[node].kind == WPK_NODE_LITERAL;
}

/* True if the node is (a + b) + c, with no two constants that reordering would fold. */
static bool is_chain(const struct rewriting *h, const struct wpk_node *n)
{
    const struct wpk_node *left = &h->from->nodes[n->arg[0]];
    if (!commutes((enum wpk_binary)n->op) || n->op == WPK_BINARY_EQ || n->op == WPK_BINARY_NE ||
        left->kind != WPK_NODE_BINARY || left->op != n->op || left->dtype != n->dtype) {
        return false;
    }
    return is_literal(h->from, left->arg[0]) + is_literal(h->from, left->arg[1]) +
               is_literal(h->from, n->arg[1]) <
           2;
}

/* (a + b) + c sometimes becomes a + (b + c); operands change places; nothing stays shared. */
static int rewrite_binary(struct rewriting *h, const struct wpk_node *n)
{
    enum wpk_binary op = (enum wpk_binary)n->op;
    const struct wpk_node *left = &h->from->nodes[n->arg[0]];
    bool chain = is_chain(h, n);
    int a = rewrite(h, chain ? left->arg[0] : n->arg[0]);
    int b = chain ? rewrite(h, left->arg[1]) : rewrite(h, n->arg[1]);
    if (chain) {
        int c = rewrite(h, n->arg[1]);
        if (wpk_rng_chance(&h->rng, 0.5)) {
            a = wpk_node_binary(h->to, op, a, c);
        } else {
            b = wpk_node_binary(h->to, op, b, c);
        }
    }
    bool swap = commutes(op) && wpk_rng_chance(&h->rng, 0.5);
    return wpk_node_binary(h->to, op, swap ? b : a, swap ? a : b);
}

static int rewrite(struct rewriting *h, int node)
{
    const struct wpk_node *n = &h->from->nodes[node];
    int index[WPK_RANK_MAX];
    switch (n->kind) {
    case WPK_NODE_LITERAL:
        return n->dtype == WPK_I64
                   ? wpk_node_int(h->to, n->integer)
                   : wpk_node_real(h->to, n->dtype,
                                   wpk_dtype_is_float(n->dtype) ? n->value : (double)n->integer);
    case WPK_NODE_AXIS:
        return wpk_node_axis(h->to, h->axis[n->axis]);
    case WPK_NODE_LOAD:
        for (int d = 0; d < h->from->tensors[n->tensor].rank; d++) {
            index[d] = rewrite(h, n->index[d]);
        }
        return wpk_node_load(h->to, h->tensor[n->tensor], index,
                             n->outside < 0 ? -1 : rewrite(h, n->outside));
    case WPK_NODE_UNARY:
        return wpk_node_unary(h->to, (enum wpk_unary)n->op, rewrite(h, n->arg[0]));
    case WPK_NODE_BINARY:
        return rewrite_binary(h, n);
    case WPK_NODE_SELECT:
        index[0] = rewrite(h, n->arg[0]);
        index[1] = rewrite(h, n->arg[1]);
        return wpk_node_select(h->to, index[0], index[1], rewrite(h, n->arg[2]));
    case WPK_NODE_CAST:
        break;
    }
    return wpk_node_cast(h->to, n->dtype, rewrite(h, n->arg[0]));
}

static void add_tensor(struct rewriting *h, int t)
{
    const struct wpk_tensor *tensor = &h->from->tensors[t];
    char name[WPK_NAME_MAX];
    (void)snprintf(name, sizeof name, "n%u_%d", (unsigned)wpk_rng_below(&h->rng, 1000), t);
    h->tensor[t] = tensor->role == WPK_ROLE_LITERAL
                       ? wpk_program_add_literal(h->to, name, tensor->dtype, tensor->rank,
                                                 tensor->extent, tensor->values)
                       : wpk_program_add_tensor(h->to, name, tensor->role, tensor->dtype,
                                                tensor->rank, tensor->extent);
    WPK_ASSERT(h->tensor[t] >= 0);
    struct wpk_tensor *copy = &h->to->tensors[h->tensor[t]];
    memcpy(copy->pad_before, tensor->pad_before, sizeof copy->pad_before);
    memcpy(copy->pad_after, tensor->pad_after, sizeof copy->pad_after);
}

static void add_stage(struct rewriting *h, const struct wpk_stage *stage)
{
    int s = wpk_program_add_stage(h->to, h->tensor[stage->output], NULL);
    WPK_ASSERT(s >= 0);
    struct wpk_stage *copy = &h->to->stages[s];
    copy->reduction = stage->reduction;
    copy->accumulator = stage->accumulator;
    int order[WPK_AXES_MAX];
    permute(&h->rng, order, stage->axis_count - stage->rank);
    for (int a = 0; a < stage->axis_count; a++) {
        h->axis[a] = a;
    }
    for (int i = 0; i < stage->axis_count - stage->rank; i++) {
        int a = stage->rank + order[i];
        char name[WPK_NAME_MAX];
        (void)snprintf(name, sizeof name, "q%d", i);
        h->axis[a] = wpk_stage_add_reduction_axis(copy, name, stage->axes[a].extent);
    }
    copy->expr = rewrite(h, stage->expr);
    WPK_ASSERT(copy->expr >= 0);
}

static bool is_ready(const struct wpk_program *from, const struct wpk_stage *stage,
                     const bool *done)
{
    int loads[256];
    int count = wpk_stage_loads(from, stage, loads, 256);
    for (int i = 0; i < count; i++) {
        int writer = wpk_program_writer(from, from->nodes[loads[i]].tensor);
        if (writer >= 0 && !done[writer]) {
            return false;
        }
    }
    return true;
}

void wpk_rewritten_program(const struct wpk_program *from, uint64_t seed, struct wpk_program *to,
                           int *tensor_map)
{
    struct rewriting h = {.from = from, .to = to};
    wpk_rng_seed(&h.rng, seed);
    int order[WPK_TENSORS_MAX];
    permute(&h.rng, order, from->tensor_count);
    for (int i = 0; i < from->tensor_count; i++) {
        add_tensor(&h, order[i]);
    }
    bool done[WPK_STAGES_MAX] = {false};
    for (int left = from->stage_count; left > 0;) {
        int s = (int)wpk_rng_below(&h.rng, (uint64_t)from->stage_count);
        if (!done[s] && is_ready(from, &from->stages[s], done)) {
            add_stage(&h, &from->stages[s]);
            done[s] = true;
            left--;
        }
    }
    memcpy(tensor_map, h.tensor, sizeof h.tensor);
}
