/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/loop.h"

#include "model/operator/expansion.h"
#include "model/operator/operator.h"

#include <stdlib.h>
#include <string.h>

enum { TRIPS, CONDITION, STATES }; /* inputs of a Loop; of its body the number, the condition */

struct unroll {
    struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    struct wpk_compose compose; /* of the nodes that put iterations together */
    struct wpk_diag *diag;
    int *actual;      /* [body->input_count] of an iteration, owned */
    int *results;     /* [body->output_count] of an iteration, owned */
    int *parts;       /* [scans * WPK_UNROLL_TIMES_MAX] of the outputs that have a row for each
                         iteration, owned */
    int first, count; /* of the body's inputs and the node's outputs: the states */
    int lead;         /* outputs of the body before its states */
    int scans;        /* outputs of the body behind its states */
    int times;        /* iterations so far */
};

/* Append a node of this operator. */
static int emit(struct unroll *u, const char *op, const int *inputs, int count,
                const struct wpk_graph_attribute *attributes, int attribute_count, int output)
{
    return wpk_compose_operator(&u->compose, "", op, u->node->name, inputs, count, attributes,
                                attribute_count, output);
}

static int mapped(const int *map, int count, int value)
{
    return value >= 0 && value < count && map[value] >= 0 ? map[value] : value;
}

/* Append a copy of a body's node; map[value] is what a value of the body is in this iteration. */
static wpk_err add_copy(const struct unroll *u, const struct wpk_graph_node *of, int *map,
                        int count)
{
    struct wpk_arena *arena = &u->graph->arena;
    struct wpk_graph_node node = *of;
    int *ends = WPK_ARENA_DEMAND(arena, int, (size_t)(of->input_count + of->output_count) + 1);
    struct wpk_graph_guard *guard = WPK_ARENA_DEMAND(arena, struct wpk_graph_guard, 1);
    wpk_err err = WPK_OK;

    for (int i = 0; i < of->input_count; i++) {
        ends[i] = mapped(map, count, of->inputs[i]);
    }
    for (int i = 0; err == WPK_OK && i < of->output_count; i++) {
        int *output = &ends[of->input_count + i];
        *output = -1;
        if (of->outputs[i] >= 0) {
            err = wpk_graph_add_value(u->graph, "", output);
        }
        if (err == WPK_OK && *output >= 0) {
            u->graph->values[*output].is_read = u->graph->values[of->outputs[i]].is_read;
            map[of->outputs[i]] = *output;
        }
    }
    if (err != WPK_OK) {
        return err;
    }
    node.inputs = ends;
    node.outputs = ends + of->input_count;
    if (of->guard != NULL) {
        *guard = (struct wpk_graph_guard){.condition = mapped(map, count, of->guard->condition),
                                          .wanted = of->guard->wanted};
        node.guard = guard;
    }
    return u->compose.to->add(u->graph, &node, u->compose.to->context);
}

/* Append the nodes of an iteration, and find what its outputs are. */
static wpk_err iterate(struct unroll *u)
{
    const struct wpk_graph_body *body = u->node->body;
    int count = u->graph->value_count; /* the body's values are among these */
    int *map = WPK_DEMAND(malloc(((size_t)count + 1) * sizeof(*map)));
    wpk_err err = WPK_OK;

    for (int v = 0; v < count; v++) {
        map[v] = -1;
    }
    for (int i = 0; i < body->input_count; i++) {
        map[body->inputs[i]] = u->actual[i];
    }
    for (int n = 0; err == WPK_OK && n < body->node_count; n++) {
        err = add_copy(u, &body->nodes[n], map, count);
    }
    for (int i = 0; err == WPK_OK && i < body->output_count; i++) {
        u->results[i] = mapped(map, count, body->outputs[i]);
        u->graph->values[u->results[i]].is_read = true;
    }
    free(map);
    for (int i = 0; err == WPK_OK && i < u->count; i++) {
        u->actual[u->first + i] = u->results[u->lead + i];
    }
    for (int i = 0; err == WPK_OK && i < u->scans; i++) {
        u->parts[i * WPK_UNROLL_TIMES_MAX + u->times] = u->results[u->lead + u->count + i];
    }
    u->times++;
    return err;
}

/* Put the rows of a scan's output together along an axis, the first one last if it is reversed. */
static wpk_err join(struct unroll *u, int scan, int64_t axis, bool is_reverse, int output)
{
    int *parts = u->parts + scan * WPK_UNROLL_TIMES_MAX;
    const struct wpk_graph_attribute axes = wpk_compose_integers(&u->compose, "axes", &axis, 1);
    const struct wpk_graph_attribute along = wpk_compose_integer("axis", axis);

    if (u->times == 0) {
        return wpk_fail(u->diag, WPK_EUNSUPPORTED,
                        "it has no iteration, and an output without elements");
    }
    for (int i = 0; i < u->times; i++) {
        parts[i] = emit(u, "Unsqueeze", &parts[i], 1, &axes, 1, -1);
    }
    for (int i = 0; is_reverse && i < u->times / 2; i++) {
        int swap = parts[i];
        parts[i] = parts[u->times - 1 - i];
        parts[u->times - 1 - i] = swap;
    }
    (void)emit(u, "Concat", parts, u->times, &along, 1, output);
    return u->compose.err;
}

static int64_t listed(const struct wpk_graph_node *node, const char *name, int index)
{
    const struct wpk_graph_attribute *list = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_INTS);

    return list != NULL && index < list->count ? list->integers[index] : 0;
}

/* Add the node's outputs, once all iterations are there. */
static wpk_err finish(struct unroll *u)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < u->node->output_count; i++) {
        int output = u->node->outputs[i];
        if (output < 0 ||
            (!u->graph->values[output].is_read && !u->graph->values[output].is_output)) {
            continue;
        }
        if (i < u->count) {
            (void)emit(u, "Identity", &u->actual[u->first + i], 1, NULL, 0, output);
            err = u->compose.err;
        } else {
            int scan = i - u->count;
            err = join(u, scan, listed(u->node, "scan_output_axes", scan),
                       listed(u->node, "scan_output_directions", scan) != 0, output);
        }
    }
    return err;
}

/* ---- Loop */

/* The value of a scalar constant; `otherwise` for -1.   returns  false: it is none */
static bool read_scalar(const struct unroll *u, int value, double otherwise, double *out)
{
    *out = otherwise;
    if (value < 0) {
        return true;
    }
    const struct wpk_graph_value *found = &u->graph->values[value];
    if (found->data == NULL || !found->is_typed || wpk_graph_elements(found) != 1) {
        return false;
    }
    *out = wpk_graph_element(found, 0);
    return true;
}

static wpk_err add_scalar(struct unroll *u, enum wpk_dtype dtype, int64_t number, int *out)
{
    int64_t *data = WPK_ARENA_DEMAND(&u->graph->arena, int64_t, 1);

    *data = number; /* little-endian: a bool is its first byte */
    *out = wpk_compose_constant(&u->compose, dtype, 0, NULL, data);
    return u->compose.err;
}

static wpk_err unroll_loop(struct unroll *u)
{
    const struct wpk_graph_node *node = u->node;
    int own[] = {node->input_count > TRIPS ? node->inputs[TRIPS] : -1,
                 node->input_count > CONDITION ? node->inputs[CONDITION] : -1};
    double trips = 0, goes_on = 0;
    wpk_err err = WPK_OK;

    if (!read_scalar(u, own[TRIPS], WPK_UNROLL_TIMES_MAX + 1, &trips) ||
        !read_scalar(u, own[CONDITION], 1, &goes_on)) {
        return wpk_fail(u->diag, WPK_EUNSUPPORTED,
                        "data decides how often it runs: its trip count and condition must follow "
                        "from constants and shapes");
    }
    u->actual[CONDITION] = own[CONDITION];
    if (u->actual[CONDITION] < 0) {
        err = add_scalar(u, WPK_BOOL, 1, &u->actual[CONDITION]);
    }
    for (int i = STATES; i < node->input_count; i++) {
        u->actual[i] = node->inputs[i];
    }
    while (err == WPK_OK && u->times < trips && goes_on != 0) {
        if (u->times == WPK_UNROLL_TIMES_MAX) {
            return wpk_fail(u->diag, WPK_EUNSUPPORTED, "it runs more than 1024 times");
        }
        err = add_scalar(u, WPK_I64, u->times, &u->actual[TRIPS]);
        err = err == WPK_OK ? iterate(u) : err;
        if (err == WPK_OK && !read_scalar(u, u->results[0], 0, &goes_on)) {
            return wpk_fail(u->diag, WPK_EUNSUPPORTED,
                            "data decides how often it runs: its condition after an iteration does "
                            "not follow from constants and shapes");
        }
        u->actual[CONDITION] = u->results[0];
    }
    return err;
}

/* ---- Scan */

/* Append what iteration `index` reads of the node's input number `input`. */
static wpk_err take_row(struct unroll *u, int input, int64_t axis, int64_t index, int *out)
{
    const int64_t end = index + 1;
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integers(&u->compose, "axes", &axis, 1),
        wpk_compose_integers(&u->compose, "starts", &index, 1),
        wpk_compose_integers(&u->compose, "ends", &end, 1)};
    int row = emit(u, "Slice", &u->node->inputs[input], 1, attributes, 3, -1);

    *out = emit(u, "Squeeze", &row, 1, attributes, 1, -1);
    return u->compose.err;
}

static wpk_err unroll_scan(struct unroll *u)
{
    const struct wpk_graph_node *node = u->node;
    int rows = node->input_count - u->count;
    int64_t times = -1;
    wpk_err err = WPK_OK;

    for (int i = 0; i < rows; i++) {
        const struct wpk_graph_value *x = wpk_graph_input(u->graph, node, u->count + i);
        int axis = 0;
        err = wpk_operator_axis(listed(node, "scan_input_axes", i), x->rank, &axis, u->diag);
        if (err != WPK_OK) {
            return err;
        }
        if (times >= 0 && x->extent[axis] != times) {
            return wpk_fail(u->diag, WPK_EPARSE, "its inputs have different numbers of rows");
        }
        times = x->extent[axis];
    }
    if (times > WPK_UNROLL_TIMES_MAX) {
        return wpk_fail(u->diag, WPK_EUNSUPPORTED, "it runs more than 1024 times");
    }
    memcpy(u->actual, node->inputs, (size_t)u->count * sizeof(int));
    while (err == WPK_OK && u->times < times) {
        for (int i = 0; err == WPK_OK && i < rows; i++) {
            bool is_reverse = listed(node, "scan_input_directions", i) != 0;
            err = take_row(u, u->count + i, listed(node, "scan_input_axes", i),
                           is_reverse ? times - 1 - u->times : u->times, &u->actual[u->count + i]);
        }
        err = err == WPK_OK ? iterate(u) : err;
    }
    return err;
}

/* Find the states, and check that the node and its body have as many inputs and outputs. */
static wpk_err describe(struct unroll *u)
{
    const struct wpk_graph_node *node = u->node;
    const struct wpk_graph_body *body = node->body;
    bool is_loop = strcmp(node->op, "Loop") == 0;

    u->first = is_loop ? STATES : 0;
    u->lead = is_loop ? 1 : 0;
    u->count =
        node->input_count - (is_loop ? STATES : (int)wpk_graph_int(node, "num_scan_inputs", 0));
    u->count = is_loop && u->count < 0 ? 0 : u->count; /* both of its own may be left out */
    u->scans = body->output_count - u->lead - u->count;
    bool fits = u->count >= 0 && u->count <= node->input_count && u->scans >= 0 &&
                body->input_count == (is_loop ? STATES + u->count : node->input_count) &&
                node->output_count <= u->count + u->scans &&
                (is_loop || u->count < node->input_count);
    for (int i = u->first; fits && i < node->input_count; i++) {
        fits = node->inputs[i] >= 0;
    }
    if (!is_loop && u->graph->opset < 9) {
        return wpk_fail(u->diag, WPK_EUNSUPPORTED, "a Scan is supported since opset 9");
    }
    return fits ? WPK_OK
                : wpk_fail(u->diag, WPK_EPARSE, "its inputs and outputs are not those of its body");
}

wpk_err wpk_graph_unroll(struct wpk_graph *graph, const struct wpk_graph_node *node,
                         const struct wpk_unroll *to, struct wpk_diag *diag)
{
    struct unroll u = {.graph = graph,
                       .node = node,
                       .compose = {.graph = graph, .name = node->name, .to = to},
                       .diag = diag};
    wpk_err err = describe(&u);

    if (err != WPK_OK) {
        return err;
    }
    u.actual = WPK_DEMAND(calloc((size_t)node->body->input_count + 1, sizeof(int)));
    u.results = WPK_DEMAND(calloc((size_t)node->body->output_count + 1, sizeof(int)));
    u.parts = WPK_DEMAND(calloc((size_t)(u.scans + 1) * WPK_UNROLL_TIMES_MAX, sizeof(int)));
    err = strcmp(node->op, "Loop") == 0 ? unroll_loop(&u) : unroll_scan(&u);
    err = err == WPK_OK ? finish(&u) : err;
    free(u.actual);
    free(u.results);
    free(u.parts);
    return err;
}
