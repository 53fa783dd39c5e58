/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/view.h"

#include "model/operator/loop.h"
#include "model/operator/lower.h"

#include <stdlib.h>
#include <string.h>

void wpk_graph_views_init(struct wpk_graph_views *views, const struct wpk_graph *graph)
{
    *views = (struct wpk_graph_views){.count = graph->value_count};
    views->of = WPK_DEMAND(calloc((size_t)views->count + 1, sizeof(*views->of)));
    views->offset = WPK_DEMAND(calloc((size_t)views->count + 1, sizeof(*views->offset)));
    views->step = WPK_DEMAND(calloc((size_t)views->count + 1, sizeof(*views->step)));
    for (int v = 0; v < views->count; v++) {
        views->of[v] = -1;
    }
}

void wpk_graph_views_fini(struct wpk_graph_views *views)
{
    free(views->of);
    free(views->offset);
    free(views->step);
    *views = (struct wpk_graph_views){.count = 0};
}

int wpk_graph_views_root(const struct wpk_graph_views *views, int value, int64_t *offset)
{
    *offset = 0;
    while (views->of[value] >= 0) {
        *offset += views->offset[value];
        value = views->of[value];
    }
    return value;
}

int64_t wpk_graph_views_step(const struct wpk_graph_views *views, int value)
{
    int64_t step = 0;

    for (; views->of[value] >= 0; value = views->of[value]) {
        step += views->step[value];
    }
    return step;
}

static void set(struct wpk_graph_views *views, int value, int of, int64_t offset)
{
    views->of[value] = of;
    views->offset[value] = offset;
}

/* The memory of the value is in the arena of a run, not the user's or the plan's data. */
static bool is_movable(const struct wpk_graph *graph, int root)
{
    return !graph->values[root].is_input && graph->values[root].data == NULL;
}

/* ---- the output is part of an input */

bool wpk_graph_keeps_elements(const struct wpk_graph_node *node)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);

    return op->kind == WPK_KIND_RESHAPE || op->kind == WPK_KIND_FLATTEN ||
           op->kind == WPK_KIND_SQUEEZE || op->kind == WPK_KIND_UNSQUEEZE ||
           (op->kind != WPK_KIND_EXPAND && op->kind != WPK_KIND_CAST &&
            op->output == WPK_OUTPUT_AS_INPUT && op->text != NULL &&
            strcmp(op->text, "Y[..] = X[..]") == 0);
}

/* True if the load reads elements of its tensor one after the other, as the stage's axes count. */
static bool is_consecutive(const struct wpk_program *p, const struct wpk_stage *stage,
                           const struct wpk_node *load, int64_t *begin)
{
    const struct wpk_tensor *tensor = &p->tensors[load->tensor];
    int64_t number[WPK_AXES_MAX] = {0}; /* of the element, as coefficients of the axes */
    int64_t stride = 1;

    *begin = 0;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        struct wpk_affine affine;
        if (!wpk_index_affine(p, load->index[d], &affine)) {
            return false;
        }
        for (int a = 0; a < stage->rank; a++) {
            number[a] += stride * affine.coefficient[a];
        }
        *begin += stride * affine.constant;
        stride *= tensor->extent[d];
    }
    stride = 1;
    for (int a = stage->rank - 1; a >= 0; a--) {
        if (stage->axes[a].extent > 1 && number[a] != stride) {
            return false;
        }
        stride *= stage->axes[a].extent;
    }
    return true;
}

static bool add_part(struct wpk_graph_views *views, const struct wpk_graph *graph, int output,
                     const struct wpk_lowered *lowered)
{
    const struct wpk_program *p = &lowered->program;
    const struct wpk_stage *stage = &p->stages[0];
    const struct wpk_node *load = &p->nodes[stage->expr];
    int64_t begin = 0;
    int64_t offset = 0;

    if (load->kind != WPK_NODE_LOAD || load->outside >= 0 ||
        !is_consecutive(p, stage, load, &begin)) {
        return false;
    }
    int input = lowered->operand[load->tensor];
    int root = wpk_graph_views_root(views, input, &offset);
    if (!is_movable(graph, root) || graph->values[input].is_part) {
        return false;
    }
    set(views, output, input, begin);
    return true;
}

/* ---- the inputs are parts of the output */

struct piece {
    int root;
    int64_t offset;
};

/* The operand that is read where output axis `axis` is in [low, high), whole and as it is. */
static bool find_piece(const struct wpk_graph_views *views, const struct wpk_graph *graph,
                       const struct wpk_lowered *lowered, const struct wpk_node *load, int axis,
                       int64_t low, int64_t high, struct piece *out)
{
    const struct wpk_program *p = &lowered->program;
    const struct wpk_stage *stage = &p->stages[0];
    const struct wpk_tensor *tensor = &p->tensors[load->tensor];
    int64_t before = 1;
    int64_t offset = 0;

    if (load->kind != WPK_NODE_LOAD || tensor->rank != stage->rank) {
        return false;
    }
    out->offset = low;
    for (int d = 0; d < tensor->rank; d++) {
        struct wpk_affine affine;
        struct wpk_affine own = {.constant = d == axis ? -low : 0};
        own.coefficient[d] = 1;
        bool is_own = wpk_index_affine(p, load->index[d], &affine) &&
                      memcmp(&affine, &own, sizeof(own)) == 0 &&
                      tensor->extent[d] == (d == axis ? high - low : stage->axes[d].extent);
        if (!is_own) {
            return false;
        }
        before *= d < axis ? tensor->extent[d] : 1;
        out->offset *= d > axis ? tensor->extent[d] : 1;
    }
    int value = lowered->operand[load->tensor];
    out->root = wpk_graph_views_root(views, value, &offset);
    if (graph->values[value].is_part) {
        int64_t whole = stage->axes[axis].extent;
        out->offset = 0; /* its type says where it lies */
        return out->root == value && graph->values[value].pad_before[axis] == low &&
               graph->values[value].pad_after[axis] == whole - high;
    }
    return before == 1 && offset == 0 && is_movable(graph, out->root) &&
           wpk_graph_elements(&graph->values[out->root]) ==
               wpk_graph_elements(&graph->values[value]);
}

/* "select(d1 < 64, X[d0,d1], ...)": the axis and the limit of a condition. */
static bool read_condition(const struct wpk_program *p, int node, int *axis, int64_t *limit)
{
    const struct wpk_node *less = &p->nodes[node];

    if (less->kind != WPK_NODE_BINARY || less->op != WPK_BINARY_LT ||
        p->nodes[less->arg[0]].kind != WPK_NODE_AXIS ||
        p->nodes[less->arg[1]].kind != WPK_NODE_LITERAL ||
        (*axis >= 0 && *axis != p->nodes[less->arg[0]].axis)) {
        return false;
    }
    *axis = p->nodes[less->arg[0]].axis;
    *limit = p->nodes[less->arg[1]].integer;
    return true;
}

static bool is_known(const struct piece *pieces, int count, int root)
{
    for (int i = 0; i < count; i++) {
        if (pieces[i].root == root) {
            return true;
        }
    }
    return false;
}

static bool add_pieces(struct wpk_graph_views *views, const struct wpk_graph *graph, int output,
                       const struct wpk_lowered *lowered)
{
    const struct wpk_program *p = &lowered->program;
    struct piece pieces[WPK_OPERATOR_INPUTS_MAX];
    int count = 0;
    int axis = -1;
    int64_t low = 0;
    int at = p->stages[0].expr;

    while (p->nodes[at].kind == WPK_NODE_SELECT && count + 1 < WPK_OPERATOR_INPUTS_MAX) {
        int64_t high = 0;
        if (!read_condition(p, p->nodes[at].arg[0], &axis, &high) ||
            !find_piece(views, graph, lowered, &p->nodes[p->nodes[at].arg[1]], axis, low, high,
                        &pieces[count]) ||
            is_known(pieces, count, pieces[count].root)) {
            return false;
        }
        count++;
        low = high;
        at = p->nodes[at].arg[2];
    }
    if (count == 0 ||
        !find_piece(views, graph, lowered, &p->nodes[at], axis, low, p->stages[0].axes[axis].extent,
                    &pieces[count]) ||
        is_known(pieces, count, pieces[count].root)) {
        return false;
    }
    for (int i = 0; i <= count; i++) {
        set(views, pieces[i].root, output, pieces[i].offset);
    }
    return true;
}

/* ---- the iterations of a loop */

static bool add_boundary(struct wpk_graph_views *views, const struct wpk_graph *graph,
                         const struct wpk_graph_node *node)
{
    switch (wpk_operator_find(node->op, node->domain)->kind) {
    case WPK_KIND_LOOP_READ:
        set(views, node->outputs[0], node->inputs[0], wpk_graph_loop_offset(graph, node));
        views->step[node->outputs[0]] = wpk_graph_loop_step(graph, node);
        return true;
    case WPK_KIND_LOOP_RESULT:
        set(views, node->outputs[0], node->inputs[0], 0);
        return true;
    default: {
        int64_t first = wpk_graph_loop_offset(graph, node);
        int64_t step = wpk_graph_loop_step(graph, node);
        const struct wpk_graph_value *next = &graph->values[node->inputs[0]];
        if (!(next->writer >= 0 && next->data == NULL && !next->is_output &&
              graph->nodes[next->writer].loop == node->loop && views->of[node->inputs[0]] < 0)) {
            return false;
        }
        set(views, node->inputs[0], node->outputs[0], first);
        views->step[node->inputs[0]] = step;
        set(views, node->inputs[1], node->outputs[0], first - step);
        return true;
    }
    }
}

bool wpk_graph_views_add(struct wpk_graph_views *views, const struct wpk_graph *graph, int node)
{
    const struct wpk_graph_node *n = &graph->nodes[node];

    if (wpk_graph_is_boundary(n)) {
        return add_boundary(views, graph, n);
    }
    if (wpk_graph_keeps_elements(n) && !graph->values[n->inputs[0]].is_part) {
        set(views, n->outputs[0], n->inputs[0], 0);
        return true;
    }
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    return lowered != NULL && lowered->program.stage_count == 1 &&
           lowered->program.stages[0].reduction == WPK_REDUCE_NONE &&
           (add_part(views, graph, n->outputs[0], lowered) ||
            add_pieces(views, graph, n->outputs[0], lowered));
}
