/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/shape.h"

#include "ir/node.h"
#include "model/operator/expand_quantize.h"
#include "model/operator/expansion.h"
#include "model/operator/inference.h"
#include "model/operator/loop.h"
#include "model/operator/lower.h"
#include "model/operator/operator.h"
#include "model/operator/operator_forms.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the graph */

static wpk_err check_size(const struct wpk_graph_value *value, struct wpk_diag *diag)
{
    int64_t count = 1;

    for (int d = 0; d < value->rank; d++) {
        if (value->extent[d] < 1 || value->extent[d] > WPK_ELEMENTS_MAX / count) {
            return wpk_fail(diag, WPK_EINVAL,
                            value->extent[d] < 1 ? "a tensor with no elements"
                                                 : "a tensor with more than 2^33 elements");
        }
        count *= value->extent[d];
    }
    return WPK_OK;
}

/* Inputs that only say axes, shapes or limits may be of other types than the data. */
static wpk_err check_types(const struct wpk_inference *in)
{
    bool is_data = in->op->kind <= WPK_KIND_SAME || in->op->kind == WPK_KIND_CONV ||
                   in->op->kind == WPK_KIND_MATMUL || in->op->kind == WPK_KIND_GEMM ||
                   in->op->kind == WPK_KIND_CONCAT || in->op->kind == WPK_KIND_EINSUM ||
                   in->op->kind == WPK_KIND_VARIADIC || in->op->kind == WPK_KIND_CONV_TRANSPOSE ||
                   in->op->kind == WPK_KIND_SELECT;
    const struct wpk_graph_value *first =
        in->op->kind == WPK_KIND_SELECT ? wpk_graph_input(in->graph, in->node, 1) : in->x;

    for (int i = 0; i < in->node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(in->graph, in->node, i);
        if (input == NULL) {
            continue;
        }
        if (!input->is_typed) {
            return wpk_fail(in->diag, WPK_EUNSUPPORTED, "its input %s has the element type %s%s",
                            input->name, wpk_graph_element_type_name(input->element_type),
                            wpk_graph_element_type_advice(input->element_type));
        }
        if (i == 0 && in->op->kind == WPK_KIND_SELECT) {
            continue; /* the condition */
        }
        if (is_data && in->op->output != WPK_OUTPUT_SUM && input->dtype != first->dtype &&
            strcmp(in->node->op, "Dropout") != 0 && strcmp(in->node->op, "Pow") != 0) {
            return wpk_fail(in->diag, WPK_EUNSUPPORTED, "its inputs have the types %s and %s",
                            wpk_dtype_name(first->dtype), wpk_dtype_name(input->dtype));
        }
    }
    return WPK_OK;
}

static wpk_err infer_type(const struct wpk_inference *in)
{
    bool is_mask = in->op->output == WPK_OUTPUT_MASK && in->node->part == 1;
    bool is_where = in->op->output == WPK_OUTPUT_WHERE && in->node->part == 1;
    in->out->dtype = in->op->output == WPK_OUTPUT_BOOL || is_mask   ? WPK_BOOL
                     : in->op->output == WPK_OUTPUT_SUM             ? wpk_dtype_wide(in->x->dtype)
                     : in->op->output == WPK_OUTPUT_I64 || is_where ? WPK_I64
                                                                    : in->x->dtype;
    if (in->op->kind == WPK_KIND_SELECT || in->op->output == WPK_OUTPUT_AS_SECOND) {
        in->out->dtype = wpk_graph_input(in->graph, in->node, 1)->dtype;
    }
    if (in->op->output == WPK_OUTPUT_AS_THIRD) {
        in->out->dtype = wpk_graph_input(in->graph, in->node, 2)->dtype;
    }
    if (in->op->kind == WPK_KIND_CONSTANT_OF_SHAPE) {
        const struct wpk_graph_attribute *value =
            wpk_graph_attribute(in->node, "value", WPK_ATTRIBUTE_TENSOR);
        in->out->dtype = value != NULL ? in->graph->values[value->tensor].dtype : WPK_F32;
    }
    const char *attribute = in->op->output == WPK_OUTPUT_DTYPE ? "dtype" : "to";
    bool is_typed = wpk_graph_attribute(in->node, attribute, WPK_ATTRIBUTE_INT) != NULL;
    if (in->op->kind == WPK_KIND_CAST || (in->op->output == WPK_OUTPUT_DTYPE && is_typed)) {
        int64_t to = wpk_graph_int(in->node, attribute, 0);
        if (to < 0 || to > INT_MAX || wpk_graph_dtype((int)to, &in->out->dtype) != WPK_OK) {
            int type = to < 0 || to > INT_MAX ? -1 : (int)to;
            return wpk_fail(in->diag, WPK_EUNSUPPORTED, "the element type %s is not supported%s",
                            wpk_graph_element_type_name(type), wpk_graph_element_type_advice(type));
        }
    }
    return WPK_OK;
}

static bool is_known(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(graph, node, i);
        if (input != NULL && !input->is_shaped) {
            return false;
        }
    }
    return true;
}

static wpk_err check_program(const struct wpk_graph *graph, int node, struct wpk_diag *diag)
{
    const struct wpk_lowered *lowered;
    struct wpk_model_plan_host host;

    if (wpk_graph_is_boundary(&graph->nodes[node]) || wpk_graph_host(graph, node, &host)) {
        return WPK_OK;
    }
    return wpk_graph_lower(graph, node, &lowered, diag);
}

/* A Concat without its parts that have no elements, if others remain. */
static void drop_empty_parts(struct wpk_graph *graph, struct wpk_graph_node *node)
{
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)node->input_count);
    int count = 0;

    for (int i = 0; i < node->input_count; i++) {
        const struct wpk_graph_value *part = wpk_graph_input(graph, node, i);
        if (part == NULL || part->data == NULL || wpk_graph_elements(part) > 0) {
            inputs[count++] = node->inputs[i];
        }
    }
    if (count > 0 && count < node->input_count) {
        node->inputs = inputs;
        node->input_count = count;
    }
}

/* An output of the model has the type that the file says. */
static wpk_err check_declared(const struct wpk_graph_value *out, struct wpk_diag *diag)
{
    if (out->element_type != 0 && !wpk_precision_declares(out->element_type, out->dtype)) {
        return wpk_fail(diag, WPK_EINVAL, "its output %s is declared as %s, and is %s", out->name,
                        wpk_graph_element_type_name(out->element_type), wpk_dtype_name(out->dtype));
    }
    return WPK_OK;
}

/* Operators whose older versions compute something else.   errors  WPK_EUNSUPPORTED */
static wpk_err check_version(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                             struct wpk_diag *diag)
{
    static const struct {
        const char *op;
        int64_t since;
    } changed[] = {{"AveragePool", 7}, {"BatchNormalization", 7},
                   {"Concat", 4},      {"Dropout", 7},
                   {"Gemm", 7},        {"Selu", 6}};

    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        if (graph->opset < changed[i].since && strcmp(node->op, changed[i].op) == 0) {
            return wpk_fail(diag, WPK_EUNSUPPORTED,
                            "opset %lld; this operator is supported since opset %lld",
                            (long long)graph->opset, (long long)changed[i].since);
        }
    }
    return WPK_OK;
}

wpk_err wpk_graph_infer_node(struct wpk_graph *graph, int index, struct wpk_diag *diag)
{
    const struct wpk_graph_node *node = &graph->nodes[index];
    struct wpk_inference in = {.graph = graph, .node = node, .diag = diag};

    in.op = wpk_operator_find(node->op, node->domain);
    if (in.op == NULL) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the operator %s%s%s is not supported",
                        node->domain, node->domain[0] != '\0' ? "." : "", node->op);
    }
    wpk_err err = check_version(graph, node, diag);
    err = err == WPK_OK ? wpk_operator_check(in.op, node, diag) : err;
    if (err != WPK_OK || !is_known(graph, node)) {
        return err;
    }
    if (in.op->kind == WPK_KIND_CONCAT) {
        drop_empty_parts(graph, &graph->nodes[index]);
    }
    struct wpk_graph_value out = graph->values[node->outputs[0]];
    if (!out.is_fixed) { /* it may be inferred again, for other inputs */
        out.rank = 0;
        memset(out.extent, 0, sizeof(out.extent));
    }
    in.x = &graph->values[node->inputs[0]];
    in.out = &out;
    err = err == WPK_OK ? check_types(&in) : err;
    for (int i = 0; err == WPK_OK && i < in.op->input_min; i++) {
        /* The shape that is asked for may have no elements: a scalar. */
        bool is_shape =
            (i == 1 && (in.op->kind == WPK_KIND_RESHAPE || in.op->kind == WPK_KIND_EXPAND)) ||
            in.op->kind == WPK_KIND_CONSTANT_OF_SHAPE;
        err = !is_shape ? check_size(&graph->values[node->inputs[i]], diag) : WPK_OK;
    }
    if (err == WPK_OK) {
        wpk_err (*infer)(const struct wpk_inference *) = wpk_operator_forms[in.op->kind].infer;
        err = infer != NULL ? infer(&in) : WPK_EUNSUPPORTED;
    }
    bool is_empty = in.op->kind == WPK_KIND_CONSTANT_OF_SHAPE && wpk_graph_elements(&out) == 0;
    if (err == WPK_OK && !is_empty) {
        err = check_size(&out, diag);
    }
    err = err == WPK_OK ? infer_type(&in) : err;
    err = err == WPK_OK ? check_declared(&out, diag) : err;
    if (err == WPK_OK) {
        out.is_typed = true;
        out.is_shaped = true;
        graph->values[node->outputs[0]] = out;
        err = in.op->kind == WPK_KIND_RESIZE ? wpk_resize_add_matrices(graph, index, diag) : WPK_OK;
    }
    err = err == WPK_OK ? wpk_graph_fold(graph, index, diag) : err;
    /* A folded node needs no program. */
    return err == WPK_OK && graph->values[node->outputs[0]].data == NULL
               ? check_program(graph, index, diag)
               : err;
}

static void infer_input(struct wpk_graph_value *value, struct wpk_buf *problems)
{
    int free_axis = -1;

    if (!value->is_typed) {
        wpk_buf_printf(problems, "input %s: the element type %s is not supported%s\n", value->name,
                       wpk_graph_element_type_name(value->element_type),
                       wpk_graph_element_type_advice(value->element_type));
    }
    for (int d = value->rank - 1; d >= 0; d--) {
        free_axis = value->free_dim[d] != NULL ? d : free_axis;
    }
    if (free_axis >= 0 || !value->is_shaped) {
        const char *name = free_axis >= 0 ? value->free_dim[free_axis] : "";
        wpk_buf_printf(problems, "input %s: its %s%s%s is not fixed; --shape %s=... fixes it\n",
                       value->name, free_axis >= 0 ? "extent" : "shape", name[0] != '\0' ? " " : "",
                       name, value->name);
        value->is_shaped = false;
    } else if (check_size(value, NULL) != WPK_OK) {
        wpk_buf_printf(problems, "input %s: more than 2^33 elements\n", value->name);
        value->is_shaped = false;
    }
}

#define PROBLEM_OPERATORS_MAX 256

/* The problem of the first refused node of an operator, and the count of its refused nodes. */
struct problem {
    const char *op;
    const char *node;
    const char *latest; /* node; those that one node of the file has become have one name */
    char *text;         /* owned */
    int count;
};

struct problems {
    struct problem list[PROBLEM_OPERATORS_MAX];
    int count;
};

static void add_problem(const struct wpk_graph_node *node, const char *text,
                        struct problems *problems)
{
    for (int i = 0; i < problems->count; i++) {
        struct problem *known = &problems->list[i];
        if (strcmp(known->op, node->op) == 0) {
            known->count += strcmp(known->latest, node->name) != 0;
            known->latest = node->name;
            return;
        }
    }
    if (problems->count < PROBLEM_OPERATORS_MAX) {
        problems->list[problems->count++] = (struct problem){.op = node->op,
                                                             .node = node->name,
                                                             .latest = node->name,
                                                             .text = WPK_DEMAND(strdup(text)),
                                                             .count = 1};
    }
}

/* Append a line for each operator, and free the list. */
static void print_problems(struct problems *problems, struct wpk_buf *out)
{
    for (int i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->list[i];
        wpk_buf_printf(out, "node %s (%s): %s", problem->node, problem->op, problem->text);
        if (problem->count > 1) {
            wpk_buf_printf(out, "; %d more of these nodes are refused", problem->count - 1);
        }
        wpk_buf_append_byte(out, '\n');
        free(problem->text);
    }
}

/* Infer the nodes from `first` on. */
static wpk_err infer_from(struct wpk_graph *graph, int first, struct problems *problems)
{
    for (int n = first; n < graph->node_count; n++) {
        struct wpk_diag diag = {.text = ""};
        wpk_err err = wpk_graph_infer_node(graph, n, &diag);
        if (err == WPK_ENOMEM) {
            return err;
        }
        if (err != WPK_OK) {
            add_problem(&graph->nodes[n], diag.text, problems);
        }
    }
    return WPK_OK;
}

/* ---- branches */

/* True if the node lies in a branch that is not taken, or reads what is computed there. */
static bool is_dead(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    bool dead = false;

    if (node->guard != NULL) {
        const struct wpk_graph_value *condition = &graph->values[node->guard->condition];
        dead =
            condition->is_dead || (condition->data != NULL && wpk_graph_elements(condition) == 1 &&
                                   (wpk_graph_element(condition, 0) != 0) != node->guard->wanted);
    }
    for (int i = 0; i < node->input_count && !wpk_graph_is_branching(node); i++) {
        dead = dead || (node->inputs[i] >= 0 && graph->values[node->inputs[i]].is_dead);
    }
    return dead;
}

/* The value of the branch that is taken, or a Where between both. */
static void choose(struct wpk_graph *graph, struct wpk_graph_node *node, struct problems *problems)
{
    const struct wpk_graph_value *condition = &graph->values[node->inputs[0]];
    const struct wpk_graph_value *one = &graph->values[node->inputs[1]];
    const struct wpk_graph_value *other = &graph->values[node->inputs[2]];

    if (condition->data != NULL && condition->dtype == WPK_BOOL &&
        wpk_graph_elements(condition) == 1) {
        node->inputs += wpk_graph_element(condition, 0) != 0 ? 1 : 2;
        node->input_count = 1;
        node->op = "Identity";
        return;
    }
    if (one->is_shaped && other->is_shaped && !wpk_graph_same_shape(one, other)) {
        add_problem(node,
                    "its branches have different shapes, and its condition does not follow from "
                    "constants and shapes",
                    problems);
    }
    node->op = "Where";
}

/* True if the node can be computed in groups of its inputs. */
static bool is_associative(const struct wpk_graph_node *node)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);

    return op != NULL && (op->kind == WPK_KIND_CONCAT ||
                          (op->kind == WPK_KIND_VARIADIC && strcmp(op->text, "mean") != 0));
}

/* Append a node of one group of inputs, with a value of its own.   shape  *out is the value */
static wpk_err add_group(struct wpk_graph *graph, const struct wpk_graph_node *of,
                         const int *inputs, int count, int *out)
{
    struct wpk_graph_node node = *of;
    int *outputs = WPK_ARENA_DEMAND(&graph->arena, int, 1);

    wpk_err err = wpk_graph_add_value(graph, "", out);
    if (err == WPK_OK) {
        outputs[0] = *out;
        graph->values[*out].writer = graph->node_count;
        node.inputs = inputs;
        node.input_count = count;
        node.outputs = outputs;
        err = wpk_graph_add_node(graph, &node);
    }
    return err;
}

#define GROUP_MAX 16 /* inputs of a node; a region has no more operands (rewrite.h) */

/* Append nodes of groups of the node's inputs until few enough remain, which it then has. */
static wpk_err add_groups(struct wpk_graph *graph, struct wpk_graph_node *node)
{
    wpk_err err = WPK_OK;

    while (err == WPK_OK && node->input_count > GROUP_MAX) {
        int groups = (node->input_count + GROUP_MAX - 1) / GROUP_MAX;
        int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)groups);
        for (int g = 0; err == WPK_OK && g < groups; g++) {
            int first = g * GROUP_MAX;
            int count =
                node->input_count - first < GROUP_MAX ? node->input_count - first : GROUP_MAX;
            err = add_group(graph, node, node->inputs + first, count, &inputs[g]);
        }
        node->inputs = inputs;
        node->input_count = groups;
    }
    return err;
}

/* Append the node, or those that it is made of. */
static wpk_err add_nodes(struct wpk_graph *graph, const struct wpk_graph_node *node,
                         struct problems *problems)
{
    struct wpk_diag diag = {.text = ""};

    int before = graph->node_count;
    wpk_err done = is_known(graph, node) ? wpk_expand_dequantized(graph, node) : WPK_ENOENT;
    if (done == WPK_ENOENT && is_known(graph, node)) {
        graph->node_count = before;
        done = wpk_precision_product(graph, node);
    }
    if (done != WPK_ENOENT) {
        return done;
    }
    graph->node_count = before;
    if (!wpk_graph_is_expanded(node)) {
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] >= 0) {
                graph->values[node->outputs[i]].writer = graph->node_count;
            }
        }
        return wpk_graph_add_node(graph, node);
    }
    int first = graph->node_count;
    wpk_err err = is_known(graph, node) ? wpk_graph_expand(graph, node, &diag) : WPK_OK;
    if (err == WPK_EUNSUPPORTED || err == WPK_EINVAL || err == WPK_EPARSE) {
        add_problem(node, diag.text, problems);
        graph->node_count = first;
        err = WPK_OK;
    }
    return err;
}

/* Append a node, or what it becomes, and infer the shapes. */
static wpk_err infer_added(struct wpk_graph *graph, struct wpk_graph_node *node, void *context)
{
    const struct wpk_unroll to = {infer_added, context};
    struct problems *problems = context;
    struct wpk_diag diag = {.text = ""};
    int first = graph->node_count;
    wpk_err err = WPK_OK;

    if (is_dead(graph, node)) {
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] >= 0) {
                graph->values[node->outputs[i]].is_dead = true;
                graph->values[node->outputs[i]].writer = -1;
            }
        }
        return WPK_OK;
    }
    node->guard = NULL;
    if (wpk_graph_is_branching(node)) {
        choose(graph, node, problems);
    }
    if (node->body != NULL) {
        if (!is_known(graph, node)) {
            return WPK_OK; /* what its inputs lack was said */
        }
        err = wpk_operator_check(wpk_operator_find(node->op, node->domain), node, &diag);
        err = err == WPK_OK ? wpk_graph_unroll(graph, node, &to, &diag) : err;
        if (err == WPK_ENOSPC) {
            err = wpk_fail(&diag, WPK_EUNSUPPORTED, "written out it has more than %d nodes",
                           WPK_GRAPH_NODES_MAX);
        }
        if (err == WPK_EUNSUPPORTED || err == WPK_EINVAL || err == WPK_EPARSE) {
            add_problem(node, diag.text, problems);
            err = WPK_OK;
        }
        return err;
    }
    if (node->input_count > GROUP_MAX && is_associative(node)) {
        err = add_groups(graph, node);
    }
    const int *declared = node->outputs;
    err = err == WPK_OK ? wpk_precision_widen(graph, node) : err;
    err = err == WPK_OK ? infer_from(graph, first, problems) : err;
    first = graph->node_count;
    err = err == WPK_OK ? wpk_precision_outputs(graph, node) : err;
    err = err == WPK_OK ? add_nodes(graph, node, problems) : err;
    err = err == WPK_OK ? wpk_precision_narrow_outputs(graph, node, declared) : err;
    return err == WPK_OK ? infer_from(graph, first, problems) : err;
}

static wpk_err infer_nodes(struct wpk_graph *graph, struct problems *problems)
{
    int count = 0;
    struct wpk_graph_node *nodes = wpk_graph_take_nodes(graph, &count);
    wpk_err err = WPK_OK;

    for (int n = 0; err == WPK_OK && n < count; n++) {
        err = infer_added(graph, &nodes[n], problems);
    }
    free(nodes);
    return err;
}

wpk_err wpk_graph_infer(struct wpk_graph *graph, struct wpk_buf *problems)
{
    size_t before = problems->size;

    for (int i = 0; i < graph->input_count; i++) {
        infer_input(&graph->values[graph->inputs[i]], problems);
    }
    struct problems *of_nodes = WPK_DEMAND(calloc(1, sizeof(*of_nodes)));
    wpk_err err = infer_nodes(graph, of_nodes);
    print_problems(of_nodes, problems);
    free(of_nodes);
    err = err == WPK_OK ? wpk_buf_status(problems) : err;
    return err == WPK_OK && problems->size > before ? WPK_EUNSUPPORTED : err;
}
