/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/node.h"
#include "ir/reference/reference.h"
#include "model/operator/mapping.h"
#include "model/rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 4   /* functions of an element that follow each other */
#define PASSES_MAX 16 /* nodes of a chain that a function passes */

/* The stage of a node that has one; NULL: it has none, or several. */
static const struct wpk_stage *only_stage(const struct wpk_lowered *lowered)
{
    return lowered != NULL && lowered->program.stage_count == 1 ? lowered->program.stages : NULL;
}

/* 1: the expression never falls where the loads of tensor 0 rise, -1: it never rises, 0: neither is
 * known. `*constant`: it does not depend on them, and is a load or a number. */
static int direction(const struct wpk_graph *graph, const struct wpk_lowered *lowered, int id,
                     bool *constant)
{
    const struct wpk_program *p = &lowered->program;
    const struct wpk_node *node = &p->nodes[id];
    bool fixed[2];

    *constant = node->kind == WPK_NODE_LITERAL || (node->kind == WPK_NODE_LOAD && node->tensor > 0);
    if (node->kind == WPK_NODE_LOAD) {
        return node->tensor == 0 ? 1 : 0;
    }
    if (node->kind == WPK_NODE_CAST) {
        bool wraps = !wpk_dtype_is_float(p->nodes[node->arg[0]].dtype) &&
                     wpk_dtype_size(node->dtype) < wpk_dtype_size(p->nodes[node->arg[0]].dtype);
        int inner = direction(graph, lowered, node->arg[0], constant);
        return wraps ? 0 : inner;
    }
    if (node->kind == WPK_NODE_UNARY) {
        return node->op == WPK_UNARY_ROUND ? direction(graph, lowered, node->arg[0], constant) : 0;
    }
    if (node->kind != WPK_NODE_BINARY) {
        return 0;
    }
    int left = direction(graph, lowered, node->arg[0], &fixed[0]);
    int right = direction(graph, lowered, node->arg[1], &fixed[1]);
    if (node->op == WPK_BINARY_ADD && fixed[0] != fixed[1]) {
        return fixed[0] ? right : left;
    }
    const struct wpk_node *by = &p->nodes[node->arg[1]];
    bool scales = (node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MUL) && fixed[1];
    double factor = by->value;
    if (scales && by->kind == WPK_NODE_LOAD) {
        factor = wpk_graph_element(&graph->values[lowered->operand[by->tensor]], 0);
    }
    return scales && factor > 0 ? left : 0;
}

/* True if the node is a function of each element of input 0 and of constants of one element. */
static bool is_function(const struct wpk_graph *graph, int node, int *rises)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_graph_value *x = wpk_graph_input(graph, n, 0);
    bool constant = false;

    if (x == NULL || x->data != NULL || n->output_count != 1 || n->loop != 0 ||
        strcmp(n->domain, WPK_EQUATION_DOMAIN) != 0 ||
        !wpk_graph_same_shape(x, &graph->values[n->outputs[0]])) {
        return false;
    }
    for (int i = 1; i < n->input_count; i++) {
        const struct wpk_graph_value *other = wpk_graph_input(graph, n, i);
        if (other == NULL || other->data == NULL || wpk_graph_elements(other) != 1) {
            return false;
        }
    }
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_stage *stage = only_stage(lowered);
    if (stage == NULL || stage->reduction != WPK_REDUCE_NONE ||
        lowered->operand[0] != n->inputs[0] ||
        wpk_graph_read_mapping(graph, node, n->inputs[0]) != WPK_MAPPING_ONE_TO_ONE) {
        return false;
    }
    *rises = direction(graph, lowered, stage->expr, &constant);
    return true;
}

/* True if the node takes elements of its inputs as they are, or the largest of several. */
static bool moves(const struct wpk_graph *graph, int node, int rises)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_graph_value *y = &graph->values[n->outputs[0]];
    const struct wpk_operator *op = wpk_operator_find(n->op, n->domain);
    bool joins = op->kind == WPK_KIND_CONCAT;
    int64_t elements = 0;

    for (int i = 0; i < n->input_count; i++) {
        const struct wpk_graph_value *x = wpk_graph_input(graph, n, i);
        if (x == NULL || (x->data != NULL && i == 0) || (joins && x->data != NULL)) {
            return false;
        }
        elements += x->data == NULL ? wpk_graph_elements(x) : 0;
        if (x->data == NULL && (x->rank != y->rank || x->dtype != y->dtype)) {
            return false;
        }
    }
    if (joins || wpk_graph_is_movement(graph, node)) {
        return elements <= wpk_graph_elements(y);
    }
    const struct wpk_stage *stage = only_stage(wpk_graph_lowered(graph, node));
    return rises > 0 && op->kind == WPK_KIND_MAX_POOL && stage != NULL &&
           stage->reduction == WPK_REDUCE_MAX;
}

/* The function as a node of another value, and what it computes. */
static wpk_err add_function(struct wpk_graph *graph, const struct wpk_graph_node *function, int x,
                            int *out)
{
    struct wpk_graph_node copy = *function;
    int *ends = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)function->input_count + 1);
    struct wpk_graph_attribute *attributes = WPK_ARENA_DEMAND(
        &graph->arena, struct wpk_graph_attribute, (size_t)function->attribute_count + 1);
    int64_t *shape = WPK_ARENA_DEMAND(&graph->arena, int64_t, WPK_RANK_MAX);

    wpk_err err = wpk_graph_add_value(graph, "", out);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_graph_value *y = &graph->values[*out];
    enum wpk_dtype dtype = graph->values[function->outputs[0]].dtype;
    *y = graph->values[x];
    y->name = "";
    y->element_type = 0;
    y->dtype = dtype;
    y->is_input = y->is_output = false;
    y->is_read = true;
    memcpy(shape, y->extent, sizeof(y->extent));
    for (int i = 0; i < function->attribute_count; i++) {
        attributes[i] = function->attributes[i];
        if (strcmp(attributes[i].name, "shape") == 0) {
            attributes[i].integers = shape;
        }
    }
    memcpy(ends, function->inputs, (size_t)function->input_count * sizeof(*ends));
    ends[0] = x;
    ends[function->input_count] = *out;
    copy.inputs = ends;
    copy.outputs = ends + function->input_count;
    copy.attributes = attributes;
    return wpk_graph_add_node(graph, &copy);
}

/* Nodes that are computed before the one that moves their results: the last one narrows. */
struct function {
    int nodes[2];
    int count;
};

/* Append the functions of each input of the moving node, then that node. */
static wpk_err swap(struct wpk_graph *graph, const struct wpk_graph_node *old, int moving,
                    const struct function *function)
{
    struct wpk_graph_node copy = old[moving];
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)copy.input_count + 1);
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < copy.input_count; i++) {
        inputs[i] = old[moving].inputs[i];
        bool is_data = inputs[i] >= 0 && graph->values[inputs[i]].data == NULL;
        for (int k = 0; err == WPK_OK && is_data && k < function->count; k++) {
            err = add_function(graph, &old[function->nodes[k]], inputs[i], &inputs[i]);
        }
    }
    copy.inputs = inputs;
    copy.outputs = old[function->nodes[function->count - 1]].outputs;
    return err == WPK_OK ? wpk_graph_add_node(graph, &copy) : err;
}

/* Let functions pass the nodes before them, by the number of each such node. */
static wpk_err pass_once(struct wpk_graph *graph, const struct function *functions,
                         const bool *is_passed)
{
    int count = 0;
    struct wpk_graph_node *old = wpk_graph_take_nodes(graph, &count);
    wpk_err err = WPK_OK;

    for (int n = 0; err == WPK_OK && n < count; n++) {
        if (functions[n].count > 0) {
            graph->values[old[n].outputs[0]].writer = -1;
            err = swap(graph, old, n, &functions[n]);
        } else if (!is_passed[n]) {
            err = wpk_graph_add_node(graph, &old[n]);
        }
    }
    wpk_graph_end_nodes(graph, old);
    return err;
}

/* The node before one that nothing else reads; -1: there is none. */
static int sole_writer(const struct wpk_graph *graph, const int *uses, int node)
{
    int input = graph->nodes[node].input_count > 0 ? graph->nodes[node].inputs[0] : -1;
    int before = input >= 0 && uses[input] == 1 ? graph->values[input].writer : -1;

    return before >= 0 && graph->nodes[before].loop == 0 ? before : -1;
}

/* Find functions that narrow, each with one before it that does not, and the node that moves what
 * they read; false: there is none. */
static bool find_functions(const struct wpk_graph *graph, const int *uses,
                           struct function *functions, bool *is_passed)
{
    bool any = false;

    for (int n = 0; n < graph->node_count; n++) {
        struct function found = {.nodes = {n}, .count = 1};
        int rises = 0, first = 0, before = sole_writer(graph, uses, n);
        if (before < 0 || !is_function(graph, n, &rises) ||
            wpk_dtype_size(graph->values[graph->nodes[n].outputs[0]].dtype) >=
                wpk_dtype_size(graph->values[graph->nodes[n].inputs[0]].dtype)) {
            continue;
        }
        if (is_function(graph, before, &first)) {
            found = (struct function){.nodes = {before, n}, .count = 2};
            before = sole_writer(graph, uses, before);
            rises *= first;
        }
        if (before >= 0 && !is_passed[before] && moves(graph, before, rises)) {
            functions[before] = found;
            is_passed[found.nodes[0]] = is_passed[n] = true;
            any = true;
        }
    }
    return any;
}

/* ---- functions that undo each other */

#define BYTES 256 /* the values of a type of a byte */

/* Compute a function of all values of a byte that were given to it, with floats in f32. */
static bool compute(const struct wpk_graph *graph, int node, double *x)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    struct wpk_reference_args args = {0};
    struct wpk_program p;
    double others[WPK_OPERATOR_INPUTS_MAX], y[BYTES];

    if (wpk_program_copy(&lowered->program, &p) != WPK_OK) {
        return false;
    }
    for (int t = 0; t < p.tensor_count; t++) {
        bool is_constant = t > 0 && t < lowered->operand_count;
        for (int d = 0; !is_constant && d < p.tensors[t].rank; d++) {
            p.tensors[t].extent[d] = d + 1 < p.tensors[t].rank ? 1 : BYTES;
        }
        if (is_constant) {
            others[t] = wpk_graph_element(&graph->values[lowered->operand[t]], 0);
        }
        args.tensor[t] = t == 0 ? x : &others[t];
    }
    for (int a = 0; a < p.stages[0].axis_count; a++) {
        p.stages[0].axes[a].extent = a + 1 < p.stages[0].axis_count ? 1 : BYTES;
    }
    bool done = wpk_reference_run(&p, &args, y, NULL, NULL) == WPK_OK;
    enum wpk_dtype dtype = graph->values[graph->nodes[node].outputs[0]].dtype;
    for (int i = 0; done && i < BYTES; i++) {
        x[i] = wpk_dtype_round(dtype, y[i]);
    }
    wpk_program_fini(&p);
    return done;
}

/* The value that the node's output is equal to: some nodes before compute its bytes from the
 * same bytes. -1: there is none. */
static int find_equal(const struct wpk_graph *graph, int node)
{
    const struct wpk_graph_value *y = &graph->values[graph->nodes[node].outputs[0]];
    int chain[CHAIN_MAX], count = 0, rises = 0;
    double x[BYTES];

    if ((y->dtype != WPK_U8 && y->dtype != WPK_I8) || y->is_output || y->rank == 0) {
        return -1;
    }
    for (int at = node; at >= 0 && count < CHAIN_MAX && is_function(graph, at, &rises);) {
        int input = graph->nodes[at].inputs[0];
        chain[count++] = at;
        at = graph->values[input].writer;
        if (graph->values[input].dtype == y->dtype && !graph->values[input].is_input) {
            bool same = true;
            for (int i = 0; i < BYTES; i++) {
                x[i] = y->dtype == WPK_U8 ? i : i - BYTES / 2;
            }
            while (same && count > 0) {
                same = compute(graph, chain[--count], x);
            }
            for (int i = 0; i < BYTES; i++) {
                same = same && x[i] == (y->dtype == WPK_U8 ? i : i - BYTES / 2);
            }
            return same ? input : -1;
        }
    }
    return -1;
}

/* Read what is equal in the place of what functions compute that undo each other. */
static wpk_err drop_equals(struct wpk_graph *graph)
{
    int *equal = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*equal)));
    bool any = false;

    for (int v = 0; v < graph->value_count; v++) {
        equal[v] = v;
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)node->input_count + 1);
        for (int i = 0; i < node->input_count; i++) {
            inputs[i] = node->inputs[i] < 0 ? -1 : equal[node->inputs[i]];
        }
        graph->nodes[n].inputs = inputs;
        int found = find_equal(graph, n);
        equal[node->outputs[0]] = found >= 0 ? found : node->outputs[0];
        any = any || found >= 0;
    }
    free(equal);
    return any ? wpk_graph_prune(graph) : WPK_OK;
}

wpk_err wpk_graph_narrow(struct wpk_graph *graph)
{
    bool any = true;
    wpk_err err = WPK_OK;

    for (int pass = 0; err == WPK_OK && any && pass < PASSES_MAX; pass++) {
        int *uses = wpk_graph_count_uses(graph);
        struct function *functions =
            WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*functions)));
        bool *is_passed = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*is_passed)));
        any = find_functions(graph, uses, functions, is_passed);
        err = any ? pass_once(graph, functions, is_passed) : err;
        free(uses);
        free(functions);
        free(is_passed);
    }
    return err == WPK_OK ? drop_equals(graph) : err;
}
