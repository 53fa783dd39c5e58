/* SPDX-License-Identifier: Apache-2.0 */
/* With G = X W + b for all steps at once, a step is
 *
 *     RNN   H' = tanh(G + H R)
 *     GRU   z, r = sigmoid(G + H R);  h = tanh(G + r (H R + c)), or tanh(G + (r H) R + c);
 *           H' = (1 - z) h + z H
 *     LSTM  i, o, f = sigmoid(G + H R);  C' = f C + i tanh(G + H R);  H' = o tanh(C')
 *
 * where each letter takes its own part of G, R and c. Weights that are constants are used
 * where they lie. The steps of a direction are the iterations of a loop. */
#include "graph/recurrent.h"

#include "graph/loop.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { Y, Y_H, Y_C };
enum { NAME_SIZE = 160 };

struct recurrent {
    struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    struct wpk_diag *diag;
    wpk_err err; /* the first failure; what comes after it does nothing */
    int64_t steps, batch, width, hidden, directions;
    int gates;     /* per element of the state */
    bool is_after; /* GRU: the reset gate is applied to the product */
    bool is_batch_first;
    int loop; /* of which nodes are added; 0: none */
    int all_h[2],
        all_c[2];       /* of a direction: the states between the steps, [steps+1,batch,hidden] */
    bool is_reverse[2]; /* the last state is the first there */
};

/* A state of a direction: what the loop reads, and how it starts. */
struct state {
    int start; /* the value before the loop */
    int now;   /* in the loop */
};

/* The operands of all steps of a direction; -1: none. */
struct weights {
    int recurrence;
    int fresh;       /* GRU, not `is_after`: the last rows of R, the others being `recurrence` */
    int bias;        /* GRU, `is_after`: of the recurrence */
    int peephole[3]; /* LSTM: of i, o, f */
};

bool wpk_graph_is_recurrent(const struct wpk_graph_node *node)
{
    return node->domain[0] == '\0' &&
           (strcmp(node->op, "RNN") == 0 || strcmp(node->op, "GRU") == 0 ||
            strcmp(node->op, "LSTM") == 0);
}

/* ---- nodes and constants */

static const char *copy_name(struct recurrent *r, const char *part)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%.120s.%s", r->node->name, part);
    const char *copy = wpk_arena_copy_text(&r->graph->arena, name);
    r->err = copy == NULL && r->err == WPK_OK ? WPK_ENOMEM : r->err;
    return copy != NULL ? copy : "";
}

/* Append a node that computes `output`, or a new value if that is -1. Returns the value. */
static int add_node(struct recurrent *r, const char *op, const char *name, const int *inputs,
                    int input_count, const struct wpk_graph_attribute *attributes,
                    int attribute_count, int output)
{
    struct wpk_arena *arena = &r->graph->arena;
    struct wpk_graph_node node = {.name = name,
                                  .op = op,
                                  .domain = "",
                                  .input_count = input_count,
                                  .output_count = 1,
                                  .part_count = 1,
                                  .attribute_count = attribute_count,
                                  .loop = r->loop,
                                  .times = r->loop > 0 ? r->steps : 0};

    if (r->err == WPK_OK && output < 0) {
        r->err = wpk_graph_add_value(r->graph, "", &output);
    }
    int *ends = WPK_ARENA_NEW(arena, int, (size_t)input_count + 1);
    struct wpk_graph_attribute *copies =
        WPK_ARENA_NEW(arena, struct wpk_graph_attribute, (size_t)attribute_count + 1);
    if (r->err == WPK_OK && (ends == NULL || copies == NULL)) {
        r->err = WPK_ENOMEM;
    }
    if (r->err != WPK_OK) {
        return 0;
    }
    for (int i = 0; i < input_count; i++) {
        ends[i] = inputs[i];
        r->graph->values[inputs[i]].is_read = true;
    }
    ends[input_count] = output;
    for (int i = 0; i < attribute_count; i++) {
        copies[i] = attributes[i];
    }
    node.inputs = ends;
    node.outputs = ends + input_count;
    node.attributes = copies;
    r->graph->values[output].writer = r->graph->node_count;
    r->err = wpk_graph_add_node(r->graph, &node);
    return output;
}

static int add_unary(struct recurrent *r, const char *op, int x)
{
    return add_node(r, op, "", &x, 1, NULL, 0, -1);
}

static int add_binary(struct recurrent *r, const char *op, const char *name, int x, int y)
{
    return add_node(r, op, name, (int[]){x, y}, 2, NULL, 0, -1);
}

static int add_constant(struct recurrent *r, enum wpk_dtype dtype, int rank, const int64_t *extent,
                        const void *data)
{
    int value = 0;

    if (r->err == WPK_OK) {
        r->err = wpk_graph_add_value(r->graph, "", &value);
    }
    if (r->err != WPK_OK) {
        return 0;
    }
    struct wpk_graph_value *out = &r->graph->values[value];
    out->dtype = dtype;
    out->is_typed = true;
    out->is_shaped = true;
    out->rank = rank;
    memcpy(out->extent, extent, (size_t)rank * sizeof(int64_t));
    out->data = data;
    out->size = (size_t)wpk_graph_elements(out) * wpk_dtype_size(dtype);
    return value;
}

static int reshape(struct recurrent *r, int x, const char *name, int rank, const int64_t *extent,
                   int output)
{
    int64_t *copy = WPK_ARENA_NEW(&r->graph->arena, int64_t, WPK_RANK_MAX);

    if (copy == NULL) {
        r->err = r->err == WPK_OK ? WPK_ENOMEM : r->err;
        return 0;
    }
    memcpy(copy, extent, (size_t)rank * sizeof(int64_t));
    int shape = add_constant(r, WPK_I64, 1, (int64_t[]){rank}, copy);
    return add_node(r, "Reshape", name, (int[]){x, shape}, 2, NULL, 0, output);
}

static struct wpk_graph_attribute ints(struct recurrent *r, const char *name, const int64_t *values,
                                       int count)
{
    int64_t *copy = WPK_ARENA_NEW(&r->graph->arena, int64_t, WPK_RANK_MAX);

    if (copy == NULL) {
        r->err = r->err == WPK_OK ? WPK_ENOMEM : r->err;
        return (struct wpk_graph_attribute){.name = name};
    }
    memcpy(copy, values, (size_t)count * sizeof(*copy));
    return (struct wpk_graph_attribute){
        .name = name, .kind = WPK_ATTRIBUTE_INTS, .integers = copy, .count = count};
}

static struct wpk_graph_attribute integer(const char *name, int64_t value)
{
    return (struct wpk_graph_attribute){.name = name, .kind = WPK_ATTRIBUTE_INT, .integer = value};
}

static int transpose(struct recurrent *r, int x, int rank, const int64_t *order, int output)
{
    const struct wpk_graph_attribute perm = ints(r, "perm", order, rank);

    return add_node(r, "Transpose", "", &x, 1, &perm, 1, output);
}

/* Elements [begin, end) of an axis. */
static int slice(struct recurrent *r, int x, int64_t axis, int64_t begin, int64_t end)
{
    const struct wpk_graph_attribute attributes[] = {
        ints(r, "axes", &axis, 1), ints(r, "starts", &begin, 1), ints(r, "ends", &end, 1)};

    return add_node(r, "Slice", "", &x, 1, attributes, 3, -1);
}

/* An operand [directions, rows, ...] becomes its rows [first, first + count) of a direction. */
static int part_of(struct recurrent *r, int input, int64_t direction, int64_t first, int64_t count)
{
    const int value = r->node->inputs[input];
    const struct wpk_graph_value whole = r->graph->values[value];
    int64_t extent[WPK_RANK_MAX] = {count};
    int64_t row = 1;

    for (int d = 2; d < whole.rank; d++) {
        extent[d - 1] = whole.extent[d];
        row *= whole.extent[d];
    }
    if (whole.data != NULL) {
        size_t at = (size_t)((direction * whole.extent[1] + first) * row) * sizeof(float);
        return add_constant(r, WPK_F32, whole.rank - 1, extent, (const char *)whole.data + at);
    }
    int part = r->directions > 1 ? slice(r, value, 0, direction, direction + 1) : value;
    part = count < whole.extent[1] ? slice(r, part, 1, first, first + count) : part;
    return reshape(r, part, "", whole.rank - 1, extent, -1);
}

/* The part of a value [batch, gates * hidden] that is gate number `gate`. */
static int gate_of(struct recurrent *r, int x, int gate)
{
    return slice(r, x, 1, gate * r->hidden, (gate + 1) * r->hidden);
}

/* x y^T + z; z: -1 for none. */
static int product(struct recurrent *r, const char *name, int x, int y, int z)
{
    const struct wpk_graph_attribute transposed = integer("transB", 1);

    return add_node(r, "Gemm", name, (int[]){x, y, z}, z < 0 ? 2 : 3, &transposed, 1, -1);
}

/* The values of all directions, one after the other along an axis. */
static int concatenate(struct recurrent *r, const int *values, int64_t along, int output)
{
    const struct wpk_graph_attribute axis = integer("axis", along);

    return add_node(r, "Concat", "", values, (int)r->directions, &axis, 1, output);
}

/* ---- loops: graph/loop.h */

static int add_boundary(struct recurrent *r, const char *op, const int *inputs, int input_count,
                        const struct wpk_graph_attribute *attributes, int attribute_count)
{
    int first = r->graph->node_count;
    int value = add_node(r, op, "", inputs, input_count, attributes, attribute_count, -1);

    if (r->err == WPK_OK) {
        r->graph->nodes[first].domain = WPK_LOOP_DOMAIN;
    }
    return value;
}

/* What each step reads of `x`, [batch,width]. */
static int read_part(struct recurrent *r, int x, int64_t width, int64_t offset, int64_t step)
{
    const int64_t shape[] = {r->batch, width};
    const struct wpk_graph_attribute attributes[] = {
        integer("offset", offset), integer("step", step), ints(r, "shape", shape, 2)};

    return add_boundary(r, "Read", &x, 1, attributes, 3);
}

static void read_state(struct recurrent *r, struct state *state, bool is_reverse)
{
    int64_t size = r->batch * r->hidden;

    state->now = read_part(r, state->start, r->hidden, 0, is_reverse ? -size : size);
}

static int store_state(struct recurrent *r, const struct state *state, bool is_reverse)
{
    const struct wpk_graph_attribute reverse = integer("reverse", is_reverse);

    return add_boundary(r, "Store", (int[]){state->now, state->start}, 2, &reverse, 1);
}

/* ---- steps */

static void step_rnn(struct recurrent *r, const struct weights *w, int gates, int *h)
{
    int sum = product(r, copy_name(r, "sum"), *h, w->recurrence, gates);

    *h = add_unary(r, "Tanh", sum);
}

static void step_gru(struct recurrent *r, const struct weights *w, int gates, int *h)
{
    int fresh = gate_of(r, gates, 2);
    int sum = product(r, copy_name(r, "sum"), *h, w->recurrence,
                      r->is_after ? w->bias : slice(r, gates, 1, 0, 2 * r->hidden));
    int z = gate_of(r, sum, 0);
    int reset = gate_of(r, sum, 1);

    if (r->is_after) {
        z = add_binary(r, "Add", "", gate_of(r, gates, 0), z);
        reset = add_unary(r, "Sigmoid", add_binary(r, "Add", "", gate_of(r, gates, 1), reset));
        fresh =
            add_binary(r, "Add", "", fresh, add_binary(r, "Mul", "", reset, gate_of(r, sum, 2)));
    } else {
        reset = add_binary(r, "Mul", copy_name(r, "reset"), add_unary(r, "Sigmoid", reset), *h);
        fresh = product(r, copy_name(r, "fresh"), reset, w->fresh, fresh);
    }
    z = add_unary(r, "Sigmoid", z);
    fresh = add_unary(r, "Tanh", fresh);
    /* (1 - z) fresh + z H = fresh + z (H - fresh) */
    int change = add_binary(r, "Mul", "", z, add_binary(r, "Sub", "", *h, fresh));
    *h = add_binary(r, "Add", copy_name(r, "h"), fresh, change);
}

/* A gate of an LSTM, with what it sees of state `c`. */
static int open_gate(struct recurrent *r, const struct weights *w, int sum, int gate, int c)
{
    int x = gate_of(r, sum, gate);

    if (w->peephole[gate] >= 0) {
        x = add_binary(r, "Add", "", x, add_binary(r, "Mul", "", w->peephole[gate], c));
    }
    return add_unary(r, "Sigmoid", x);
}

static void step_lstm(struct recurrent *r, const struct weights *w, int gates, int *h, int *c)
{
    int sum = product(r, copy_name(r, "sum"), *h, w->recurrence, gates);
    int keep = add_binary(r, "Mul", "", open_gate(r, w, sum, 2, *c), *c);
    int take = add_binary(r, "Mul", "", open_gate(r, w, sum, 0, *c),
                          add_unary(r, "Tanh", gate_of(r, sum, 3)));

    *c = add_binary(r, "Add", copy_name(r, "c"), keep, take);
    *h = add_binary(r, "Mul", copy_name(r, "h"), open_gate(r, w, sum, 1, *c),
                    add_unary(r, "Tanh", *c));
}

static bool has(const struct recurrent *r, int input)
{
    return wpk_graph_input(r->graph, r->node, input) != NULL;
}

static struct weights find_weights(struct recurrent *r, int64_t direction)
{
    int64_t rows = r->hidden * (r->gates == 3 && !r->is_after ? 2 : r->gates);
    struct weights w = {.fresh = -1, .bias = -1, .peephole = {-1, -1, -1}};

    w.recurrence = part_of(r, R, direction, 0, rows);
    if (rows < r->gates * r->hidden) {
        w.fresh = part_of(r, R, direction, rows, r->hidden);
    }
    if (r->is_after && has(r, B)) {
        w.bias = part_of(r, B, direction, 3 * r->hidden, 3 * r->hidden);
    }
    for (int g = 0; g < 3 && has(r, PEEPHOLES); g++) {
        w.peephole[g] = part_of(r, PEEPHOLES, direction, g * r->hidden, r->hidden);
    }
    return w;
}

/* The state before the first step: an input [directions,batch,hidden], or zeros. */
static int initial(struct recurrent *r, int input, int64_t direction)
{
    const int64_t extent[] = {r->batch, r->hidden};

    if (wpk_graph_input(r->graph, r->node, input) == NULL) {
        float *zeros = WPK_ARENA_NEW(&r->graph->arena, float, (size_t)(r->batch * r->hidden));
        r->err = zeros == NULL && r->err == WPK_OK ? WPK_ENOMEM : r->err;
        return add_constant(r, WPK_F32, 2, extent, zeros);
    }
    int axis = r->is_batch_first ? 1 : 0;
    int whole = r->node->inputs[input];
    int part = r->directions > 1 ? slice(r, whole, axis, direction, direction + 1) : whole;
    return reshape(r, part, "", 2, extent, -1);
}

/* The bias of the product of the inputs: the sum of both biases of the node, without those that the
 * step itself adds; -1: none. */
static int first_bias(struct recurrent *r, int64_t direction)
{
    int64_t count = r->gates * r->hidden;

    if (!has(r, B)) {
        return -1;
    }
    int own = part_of(r, B, direction, 0, count);
    return r->is_after ? own
                       : add_binary(r, "Add", "", own, part_of(r, B, direction, count, count));
}

/* The steps of a direction: `gates` is [steps * batch, ...] for all of them. */
static void expand_steps(struct recurrent *r, int64_t direction, int gates)
{
    const bool is_reverse = r->is_reverse[direction];
    const int64_t row = r->batch * r->gates * r->hidden; /* elements of a step */
    const struct weights w = find_weights(r, direction);
    const int outer_h = initial(r, INITIAL_H, direction);
    struct state h = {.start = add_boundary(r, "Enter", &outer_h, 1, NULL, 0)};
    struct state c = {.start = -1};
    int all_c = -1;

    if (r->gates == 4) {
        const int outer_c = initial(r, INITIAL_C, direction);
        c.start = add_boundary(r, "Enter", &outer_c, 1, NULL, 0);
    }
    r->loop = ++r->graph->loop_count;
    int own = read_part(r, gates, r->gates * r->hidden, is_reverse ? (r->steps - 1) * row : 0,
                        is_reverse ? -row : row);
    read_state(r, &h, is_reverse);
    if (r->gates == 1) {
        step_rnn(r, &w, own, &h.now);
    } else if (r->gates == 3) {
        step_gru(r, &w, own, &h.now);
    } else {
        read_state(r, &c, is_reverse);
        step_lstm(r, &w, own, &h.now, &c.now);
        all_c = store_state(r, &c, is_reverse);
    }
    int all_h = store_state(r, &h, is_reverse);
    r->loop = 0;
    r->all_h[direction] =
        add_boundary(r, "Result", (int[]){all_h, all_c}, all_c >= 0 ? 2 : 1, NULL, 0);
    r->all_c[direction] =
        all_c >= 0 ? add_boundary(r, "Result", (int[]){all_c, all_h}, 2, NULL, 0) : -1;
}

static void expand_direction(struct recurrent *r, int x, int64_t direction)
{
    const int64_t rows[] = {r->steps * r->batch, r->width};
    int gates =
        product(r, copy_name(r, direction == 0 ? "inputs" : "inputs_reverse"),
                reshape(r, x, "", 2, rows, -1), part_of(r, W, direction, 0, r->gates * r->hidden),
                first_bias(r, direction));

    expand_steps(r, direction, gates);
}

static bool is_wanted(const struct recurrent *r, int output)
{
    return output < r->node->output_count && r->node->outputs[output] >= 0;
}

/* The states behind the steps, [steps,directions,batch,hidden]. */
static void add_sequence(struct recurrent *r)
{
    const int64_t extent[] = {r->steps, 1, r->batch, r->hidden};
    const int64_t order[] = {2, 0, 1, 3};
    const int y = r->node->outputs[Y];
    const int last = r->is_batch_first ? -1 : y; /* of the nodes but a Transpose */
    int all[2] = {0};

    for (int64_t d = 0; d < r->directions; d++) {
        int64_t first = r->is_reverse[d] ? 0 : 1;
        int states = slice(r, r->all_h[d], 0, first, first + r->steps);
        bool is_alone = r->directions == 1;
        all[d] = reshape(r, states, is_alone ? r->node->name : "", 4, extent, is_alone ? last : -1);
    }
    if (r->directions > 1) {
        all[0] = concatenate(r, all, 1, last);
    }
    if (r->is_batch_first) {
        (void)transpose(r, all[0], 4, order, y);
    }
}

/* The states behind the last step, [directions,batch,hidden]. */
static void add_last(struct recurrent *r, const int *states, int y)
{
    const int64_t order[] = {1, 0, 2};
    int all[2] = {0};

    for (int64_t d = 0; d < r->directions; d++) {
        int64_t at = r->is_reverse[d] ? 0 : r->steps;
        all[d] = slice(r, states[d], 0, at, at + 1);
    }
    int last = concatenate(r, all, 0, r->is_batch_first ? -1 : y);
    if (r->is_batch_first) {
        (void)transpose(r, last, 3, order, y);
    }
}

static void add_outputs(struct recurrent *r)
{
    if (is_wanted(r, Y)) {
        add_sequence(r);
    }
    if (is_wanted(r, Y_H)) {
        add_last(r, r->all_h, r->node->outputs[Y_H]);
    }
    if (is_wanted(r, Y_C)) {
        add_last(r, r->all_c, r->node->outputs[Y_C]);
    }
}

/* ---- checks */

static wpk_err refuse(struct recurrent *r, const char *why)
{
    wpk_diag_set(r->diag, "%s", why);
    return WPK_EUNSUPPORTED;
}

static bool has_usual_activations(const struct recurrent *r)
{
    const char *usual = r->gates == 1   ? "tanh"
                        : r->gates == 3 ? "sigmoid,tanh"
                                        : "sigmoid,tanh,tanh";
    const char *given = wpk_graph_text(r->node, "activations", "");
    size_t length = strlen(usual);

    for (int64_t d = 0; given[0] != '\0' && d < r->directions; d++) {
        if (strncasecmp(given, usual, length) != 0 ||
            given[length] != (d + 1 < r->directions ? ',' : '\0')) {
            return false;
        }
        given += length + 1;
    }
    return true;
}

static wpk_err check_operand(struct recurrent *r, int input, const char *name, int rank,
                             const int64_t *extent)
{
    const struct wpk_graph_value *value = wpk_graph_input(r->graph, r->node, input);

    if (value == NULL && input > R) {
        return WPK_OK;
    }
    bool fits = value != NULL && value->is_typed && value->dtype == WPK_F32 && value->rank == rank;
    for (int d = 0; fits && d < rank; d++) {
        fits = value->extent[d] == extent[d];
    }
    if (!fits) {
        wpk_diag_set(r->diag, "its input %s does not fit", name);
    }
    return fits ? WPK_OK : WPK_EINVAL;
}

static wpk_err check_operands(struct recurrent *r)
{
    const int64_t rows = r->gates * r->hidden;
    const int64_t state[] = {r->is_batch_first ? r->batch : r->directions,
                             r->is_batch_first ? r->directions : r->batch, r->hidden};
    const struct {
        int input;
        const char *name;
        int rank;
        int64_t extent[3];
    } operands[] = {
        {W, "W", 3, {r->directions, rows, r->width}},
        {R, "R", 3, {r->directions, rows, r->hidden}},
        {B, "B", 2, {r->directions, 2 * rows}},
        {INITIAL_H, "initial_h", 3, {state[0], state[1], state[2]}},
        {INITIAL_C, "initial_c", 3, {state[0], state[1], state[2]}},
        {PEEPHOLES, "P", 2, {r->directions, 3 * r->hidden}},
    };
    wpk_err err = WPK_OK;

    for (size_t i = 0; err == WPK_OK && i < sizeof(operands) / sizeof(operands[0]); i++) {
        err = check_operand(r, operands[i].input, operands[i].name, operands[i].rank,
                            operands[i].extent);
    }
    return err;
}

static wpk_err check(struct recurrent *r)
{
    const struct wpk_graph_value *lengths = wpk_graph_input(r->graph, r->node, LENGTHS);

    if (wpk_graph_int(r->node, "input_forget", 0) != 0 ||
        wpk_graph_attribute(r->node, "clip", WPK_ATTRIBUTE_FLOAT) != NULL) {
        return refuse(r, "clip and input_forget are not supported");
    }
    if (!has_usual_activations(r)) {
        return refuse(r, "activations other than the usual ones are not supported");
    }
    for (int64_t b = 0; lengths != NULL && b < r->batch; b++) {
        if (lengths->data == NULL || lengths->rank != 1 || lengths->extent[0] != r->batch ||
            wpk_graph_element(lengths, b) != (double)r->steps) {
            return refuse(r, "sequences of different lengths are not supported");
        }
    }
    return check_operands(r);
}

/* Find the sizes, and X with its steps first. */
static wpk_err describe(struct recurrent *r, int *out)
{
    const struct wpk_graph_value *x = wpk_graph_input(r->graph, r->node, X);
    const struct wpk_graph_value *weights = wpk_graph_input(r->graph, r->node, R);
    const int64_t order[] = {1, 0, 2};

    r->gates = r->node->op[0] == 'R' ? 1 : r->node->op[0] == 'G' ? 3 : 4;
    r->is_after = r->gates == 3 && wpk_graph_int(r->node, "linear_before_reset", 0) != 0;
    r->is_batch_first = wpk_graph_int(r->node, "layout", 0) != 0;
    r->directions = strcmp(wpk_graph_text(r->node, "direction", ""), "bidirectional") == 0 ? 2 : 1;
    if (x == NULL || weights == NULL || x->rank != 3 || weights->rank != 3 || !x->is_typed ||
        x->dtype != WPK_F32) {
        wpk_diag_set(r->diag, "its inputs X and R must be f32 with three dimensions");
        return WPK_EINVAL;
    }
    r->steps = x->extent[r->is_batch_first ? 1 : 0];
    r->batch = x->extent[r->is_batch_first ? 0 : 1];
    r->width = x->extent[2];
    r->hidden = weights->extent[2];
    if (r->steps < 1 || r->batch < 1 || r->width < 1 || r->hidden < 1) {
        wpk_diag_set(r->diag, "a tensor with no elements");
        return WPK_EINVAL;
    }
    wpk_err err = check(r);
    *out = r->node->inputs[X];
    if (err == WPK_OK && r->is_batch_first) {
        *out = transpose(r, *out, 3, order, -1);
    }
    return err;
}

wpk_err wpk_graph_expand_recurrent(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                   struct wpk_diag *diag)
{
    struct recurrent r = {.graph = graph, .node = node, .diag = diag};
    bool is_reverse = strcmp(wpk_graph_text(node, "direction", ""), "reverse") == 0;
    int x = -1;

    wpk_err err = describe(&r, &x);
    if (err != WPK_OK) {
        return err;
    }
    for (int64_t d = 0; d < r.directions; d++) {
        r.is_reverse[d] = is_reverse || d == 1;
        expand_direction(&r, x, d);
    }
    add_outputs(&r);
    return r.err;
}
