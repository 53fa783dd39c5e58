/* SPDX-License-Identifier: Apache-2.0 */
/* A factor of x is followed backwards through the nodes that compute x: through sums (each term is
 * multiplied), products (one operand is), and nodes that only move elements, until constants are
 * reached. The equations decide, whatever the nodes are called. */
#include "model/rewrite/rewrite.h"

#include "model/operator/lower.h"
#include "model/operator/mapping.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8   /* nodes that are followed backwards */
#define PLACES_MAX 16 /* constants that are multiplied */

enum { DATA, WEIGHTS, BIAS }; /* inputs of a convolution */

/* A constant input of a node that is multiplied along its dimension `dim`. */
struct place {
    int node;
    int input;
    int dim;
};

struct absorption {
    struct wpk_graph *graph;
    int *uses;     /* owned; [value_count] by nodes, and as an output of the model */
    bool *removed; /* owned; [node_count] */
    struct wpk_graph_affine affine;
    struct place places[PLACES_MAX];
    int place_count;
    bool goes_on; /* from node to node, not only to the constants of the first */
};

static bool all_are(const double *numbers, int64_t count, double value)
{
    for (int64_t k = 0; k < count; k++) {
        if (numbers[k] != value) {
            return false;
        }
    }
    return true;
}

/* ---- where the factor goes */

/* A node's equation, backwards. */
struct equation {
    int node;
    int depth;
    const struct wpk_lowered *lowered;
};

static bool multiply_value(struct absorption *a, int value, int dim, int depth);
static bool multiply_tensor(struct absorption *a, const struct equation *e, int tensor, int dim);

/* How often a tensor is loaded. */
struct tally {
    int tensor;
    int count;
};

static void count_load(const struct wpk_program *p, int node, void *user)
{
    struct tally *tally = user;

    tally->count += p->nodes[node].kind == WPK_NODE_LOAD && p->nodes[node].tensor == tally->tensor;
}

static int count_loads(const struct wpk_program *p, int tensor)
{
    struct tally tally = {.tensor = tensor};

    for (int s = 0; s < p->stage_count; s++) {
        wpk_node_walk(p, p->stages[s].expr, true, count_load, &tally);
    }
    return tally.count;
}

/* The one input of the node that is the value; -1: there are several. */
static int find_input(const struct wpk_graph_node *node, int value)
{
    int found = -1;

    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == value && found >= 0) {
            return -1;
        }
        found = node->inputs[i] == value ? i : found;
    }
    return found;
}

static bool multiply_load(struct absorption *a, const struct equation *e,
                          const struct wpk_node *load, int axis)
{
    const struct wpk_program *p = &e->lowered->program;
    int dim = axis >= 0 ? wpk_trace_load(p, load, axis) : WPK_AFFINE_ALL;

    if ((axis >= 0 && dim < 0) || count_loads(p, load->tensor) != 1 ||
        (load->outside >= 0 && !wpk_load_is_zero_outside(p, load))) {
        return false;
    }
    if (load->tensor >= e->lowered->operand_count) {
        return multiply_tensor(a, e, load->tensor, dim);
    }
    int value = e->lowered->operand[load->tensor];
    if (a->graph->values[value].data == NULL) {
        return a->goes_on && multiply_value(a, value, dim, e->depth + 1);
    }
    int input = find_input(&a->graph->nodes[e->node], value);
    if (input < 0 || a->place_count == PLACES_MAX || a->graph->values[value].dtype != WPK_F32) {
        return false;
    }
    a->places[a->place_count++] = (struct place){.node = e->node, .input = input, .dim = dim};
    return true;
}

/* `axis`: the stage's axis that the factor is indexed by. */
static bool multiply(struct absorption *a, const struct equation *e, int id, int axis)
{
    const struct wpk_node *node = &e->lowered->program.nodes[id];
    int count = a->place_count;

    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return wpk_dtype_is_float(node->dtype) && node->value == 0;
    case WPK_NODE_LOAD:
        return multiply_load(a, e, node, axis);
    case WPK_NODE_UNARY:
        return node->op == WPK_UNARY_NEG && multiply(a, e, node->arg[0], axis);
    case WPK_NODE_BINARY:
        if (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB) {
            return multiply(a, e, node->arg[0], axis) && multiply(a, e, node->arg[1], axis);
        }
        if ((node->op == WPK_BINARY_MUL || node->op == WPK_BINARY_DIV) &&
            multiply(a, e, node->arg[0], axis)) {
            return true;
        }
        a->place_count = count;
        return node->op == WPK_BINARY_MUL && multiply(a, e, node->arg[1], axis);
    default:
        return false;
    }
}

static bool multiply_tensor(struct absorption *a, const struct equation *e, int tensor, int dim)
{
    const struct wpk_program *p = &e->lowered->program;
    int writer = wpk_program_writer(p, tensor);

    return writer >= 0 && p->tensors[tensor].dtype == WPK_F32 &&
           (p->stages[writer].reduction == WPK_REDUCE_NONE ||
            p->stages[writer].reduction == WPK_REDUCE_SUM) &&
           multiply(a, e, p->stages[writer].expr, dim);
}

static bool multiply_value(struct absorption *a, int value, int dim, int depth)
{
    int node = a->graph->values[value].writer;

    if (node < 0 || a->uses[value] != 1 || depth > DEPTH_MAX) {
        return false;
    }
    const struct wpk_lowered *lowered = wpk_graph_lowered(a->graph, node);
    const struct equation e = {.node = node, .depth = depth, .lowered = lowered};
    return lowered != NULL && wpk_program_loads_fit(&lowered->program) &&
           multiply_tensor(a, &e, wpk_program_output(&lowered->program), dim);
}

/* ---- new constants */

/* A constant of the type and shape of `like`.   owns  by the graph */
static wpk_err add_constant(struct wpk_graph *graph, const struct wpk_graph_value *like, int *out,
                            float **data)
{
    struct wpk_graph_value value = *like;

    wpk_err err = wpk_graph_add_value(graph, "", out);
    *data = WPK_ARENA_DEMAND(&graph->arena, float, (size_t)wpk_graph_elements(&value));
    if (err != WPK_OK) {
        return err;
    }
    value.name = "";
    value.writer = -1;
    value.is_output = false;
    value.size = (size_t)wpk_graph_elements(&value) * sizeof(float);
    value.data = *data;
    graph->values[*out] = value;
    return WPK_OK;
}

/* Put a value in the place of a node's input; the input behind the last is added. */
static void set_input(struct wpk_graph *graph, int node, int input, int value)
{
    struct wpk_graph_node *n = &graph->nodes[node];
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)n->input_count + 1);

    memcpy(inputs, n->inputs, (size_t)n->input_count * sizeof(int));
    inputs[input] = value;
    n->input_count += input == n->input_count;
    n->inputs = inputs;
}

/* Which number of the factor is that of element `i`. */
static int64_t number_of(const struct wpk_graph_value *value, int dim, int64_t i)
{
    if (dim < 0) {
        return 0;
    }
    for (int d = value->rank - 1; d > dim; d--) {
        i /= value->extent[d];
    }
    return i % value->extent[dim];
}

/* True if all constants can be multiplied: no product overflows, or becomes zero. */
static bool products_fit(const struct absorption *a)
{
    for (int i = 0; i < a->place_count; i++) {
        const struct place *place = &a->places[i];
        const struct wpk_graph_value *value =
            &a->graph->values[a->graph->nodes[place->node].inputs[place->input]];
        for (int64_t e = 0; e < wpk_graph_elements(value); e++) {
            double one = wpk_graph_element(value, e);
            double factor = a->affine.factor[number_of(value, place->dim, e)];
            double product = fabs(one * factor);
            if (isfinite(one) &&
                (product > FLT_MAX || (product < FLT_MIN && factor != 0 && fabs(one) >= FLT_MIN))) {
                return false;
            }
        }
    }
    return true;
}

/* Multiply a constant input, and add to it. */
static wpk_err change_constant(struct absorption *a, const struct place *place,
                               const double *factor, const double *addend)
{
    int old = a->graph->nodes[place->node].inputs[place->input];
    int number = -1;
    float *data = NULL;

    wpk_err err = add_constant(a->graph, &a->graph->values[old], &number, &data);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_graph_value *from = &a->graph->values[old];
    for (int64_t i = 0; i < wpk_graph_elements(from); i++) {
        int64_t k = number_of(from, place->dim, i);
        double value = wpk_graph_element(from, i);
        data[i] =
            (float)(value * (factor != NULL ? factor[k] : 1) + (addend != NULL ? addend[k] : 0));
    }
    set_input(a->graph, place->node, place->input, number);
    return WPK_OK;
}

/* ---- where the addend goes */

/* A term of the sum that is a constant with one number for each element of dimension `dim`. */
static bool find_bias(const struct absorption *a, const struct equation *e, int id, int dim,
                      struct place *out)
{
    const struct wpk_program *p = &e->lowered->program;
    const struct wpk_node *node = &p->nodes[id];

    if (node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_ADD) {
        return find_bias(a, e, node->arg[0], dim, out) || find_bias(a, e, node->arg[1], dim, out);
    }
    if (node->kind != WPK_NODE_LOAD || node->tensor >= e->lowered->operand_count || dim < 0 ||
        count_loads(p, node->tensor) != 1) {
        return false;
    }
    int value = e->lowered->operand[node->tensor];
    out->node = e->node;
    out->dim = wpk_trace_load(p, node, dim);
    out->input = find_input(&a->graph->nodes[e->node], value);
    return out->dim >= 0 && out->input >= 0 && a->graph->values[value].data != NULL &&
           a->graph->values[value].dtype == WPK_F32 &&
           wpk_graph_elements(&a->graph->values[value]) == a->affine.count;
}

/* Add the addend to a constant that is added already, or give a convolution a bias.
 *   errors  WPK_ENOENT  there is no place for it */
static wpk_err add_to_bias(struct absorption *a)
{
    struct wpk_graph *graph = a->graph;
    int node = graph->values[a->affine.x].writer;
    const struct wpk_operator *op =
        wpk_operator_find(graph->nodes[node].op, graph->nodes[node].domain);
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    const struct equation e = {.node = node, .lowered = lowered};
    struct place place;
    float *data = NULL;
    int bias = -1;

    bool found = p != NULL && wpk_program_loads_fit(p) &&
                 p->stages[p->stage_count - 1].reduction == WPK_REDUCE_NONE &&
                 find_bias(a, &e, p->stages[p->stage_count - 1].expr, a->affine.dim, &place);
    if (found) {
        return change_constant(a, &place, NULL, a->affine.addend);
    }
    bool takes_bias = op->kind == WPK_KIND_CONV || op->kind == WPK_KIND_CONV_TRANSPOSE;
    if (!takes_bias || graph->nodes[node].input_count > BIAS || a->affine.dim != 1) {
        return WPK_ENOENT;
    }
    struct wpk_graph_value like = {.dtype = WPK_F32,
                                   .is_typed = true,
                                   .is_shaped = true,
                                   .is_read = true,
                                   .rank = 1,
                                   .extent = {a->affine.count}};
    wpk_err err = add_constant(graph, &like, &bias, &data);
    for (int64_t k = 0; err == WPK_OK && k < a->affine.count; k++) {
        data[k] = (float)a->affine.addend[k];
    }
    if (err == WPK_OK) {
        set_input(graph, node, BIAS, bias);
    }
    return err;
}

/* The addend has no place: the node becomes x + addend. */
static wpk_err become_add(struct absorption *a, int node)
{
    struct wpk_graph *graph = a->graph;
    struct wpk_graph_node *n = &graph->nodes[node];
    struct wpk_graph_value like = graph->values[a->affine.x];
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, 2);
    float *data = NULL;

    for (int d = 0; d < like.rank; d++) {
        like.extent[d] = d == a->affine.dim ? like.extent[d] : 1;
    }
    inputs[0] = a->affine.x;
    wpk_err err = add_constant(graph, &like, &inputs[1], &data);
    for (int64_t k = 0; err == WPK_OK && k < a->affine.count; k++) {
        data[k] = (float)a->affine.addend[k];
    }
    n->op = "Add";
    n->domain = "";
    n->inputs = inputs;
    n->input_count = 2;
    n->attributes = NULL;
    n->attribute_count = 0;
    return err;
}

/* ---- the graph */

static wpk_err absorb(struct absorption *a, int node)
{
    const struct wpk_graph_affine *affine = &a->affine;
    bool has_factor = !all_are(affine->factor, affine->count, 1);
    bool has_addend = !all_are(affine->addend, affine->count, 0);
    int into = has_addend ? a->graph->values[affine->x].writer : -1;
    bool fits = !has_factor;
    wpk_err err = WPK_OK;

    for (int pass = 0; !fits && pass < 2; pass++) {
        a->place_count = 0;
        a->goes_on = pass == 1;
        fits = multiply_value(a, affine->x, affine->dim, 0) && products_fit(a);
    }
    if (!fits) {
        return WPK_OK;
    }
    for (int i = 0; err == WPK_OK && has_factor && i < a->place_count; i++) {
        into = a->places[0].node;
        err = change_constant(a, &a->places[i], affine->factor, NULL);
    }
    if (err == WPK_OK && has_addend) {
        err = add_to_bias(a);
    }
    if (err == WPK_ENOENT) {
        return has_factor ? become_add(a, node) : WPK_OK;
    }
    struct wpk_graph *graph = a->graph;
    if (err == WPK_OK && into < 0) { /* the node is x itself */
        err = wpk_graph_add_note(graph, graph->nodes[node].name, "changes no element");
    } else if (err == WPK_OK) {
        err = wpk_graph_add_note(graph, graph->nodes[node].name, "folded into the weights of %s",
                                 graph->nodes[into].name);
    }
    if (err == WPK_OK) {
        /* Let the node that computes x write this node's output instead. */
        int writer = graph->values[a->affine.x].writer;
        graph->nodes[writer].outputs = graph->nodes[node].outputs;
        graph->values[a->affine.x].writer = -1;
        graph->values[graph->nodes[node].outputs[0]].writer = writer;
        a->removed[node] = true;
    }
    return err;
}

wpk_err wpk_graph_absorb(struct wpk_graph *graph)
{
    struct absorption a = {.graph = graph, .uses = wpk_graph_count_uses(graph)};

    a.removed = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*a.removed)));
    wpk_err err = WPK_OK;
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        err = wpk_graph_affine_find(graph, n, &a.affine);
        if (err == WPK_OK && a.uses[a.affine.x] != 1) {
            err = WPK_ENOENT;
        }
        err = err == WPK_OK ? absorb(&a, n) : err;
        err = err == WPK_ENOENT ? WPK_OK : err;
        wpk_graph_affine_fini(&a.affine);
    }
    if (err == WPK_OK) {
        /* Take out the nodes that are marked. */
        int count = 0;
        for (int n = 0; n < graph->node_count; n++) {
            if (a.removed[n]) {
                continue;
            }
            graph->nodes[count] = graph->nodes[n];
            graph->values[graph->nodes[count].outputs[0]].writer = count;
            count++;
        }
        graph->node_count = count;
    }
    free(a.uses);
    free(a.removed);
    return err;
}
