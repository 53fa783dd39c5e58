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
#include "model/operator/expansion.h"

#include "model/operator/expand_quantize.h"

#include <string.h>

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };
enum { Y, Y_H, Y_C };
enum { F, G, H }; /* functions of the gates, of what is new, and of the state that is shown */

struct recurrent {
    struct wpk_expansion *e;
    struct wpk_compose *to; /* that of `e` */
    int64_t steps, batch, width, hidden, directions;
    int gates;     /* per element of the state */
    bool is_after; /* GRU: the reset gate is applied to the product */
    bool is_batch_first;
    bool is_quantized; /* LSTM: W and R are, as [directions, k, gates * hidden] */
    bool couples;      /* LSTM: the forget gate is what the input gate leaves */
    float clip;        /* of what the activations get; 0: none */
    struct wpk_activation_function
        functions[WPK_ACTIVATIONS_MAX]; /* [function_count] of each direction */
    int function_count;
    int all_h[2]; /* of a direction: the states between the steps, [steps+1,batch,hidden] */
    int all_c[2];
    bool is_reverse[2]; /* the last state is the first there */
    int mask;           /* [steps,batch]: the step is one of the sequence; -1: each is */
};

/* The operands of all steps of a direction; -1: none. */
struct weights {
    int recurrence;
    int fresh;       /* GRU, not `is_after`: the last rows of R, the others being `recurrence` */
    int bias;        /* GRU, `is_after`: of the recurrence */
    int peephole[3]; /* LSTM: of i, o, f */
    struct wpk_quantized_weights quantized; /* in the place of `recurrence` */
    const struct wpk_activation_function *functions;
};

/* The part of a value that is a direction's, along `axis`. */
static int of_direction(struct recurrent *r, int value, int axis, int64_t direction)
{
    return r->directions > 1 ? wpk_compose_slice(r->to, value, axis, direction, direction + 1)
                             : value;
}

/* An operand [directions, rows, ...] becomes its rows [first, first + count) of a direction. */
static int part_of(struct recurrent *r, int input, int64_t direction, int64_t first, int64_t count)
{
    const int value = r->e->node->inputs[input];
    const struct wpk_graph_value whole = r->e->graph->values[value];
    int64_t extent[WPK_RANK_MAX] = {count};
    int64_t row = 1;

    for (int d = 2; d < whole.rank; d++) {
        extent[d - 1] = whole.extent[d];
        row *= whole.extent[d];
    }
    if (whole.data != NULL) {
        size_t at = (size_t)((direction * whole.extent[1] + first) * row) * sizeof(float);
        return wpk_compose_constant(r->to, WPK_F32, whole.rank - 1, extent,
                                    (const char *)whole.data + at);
    }
    int part = of_direction(r, value, 0, direction);
    part = count < whole.extent[1] ? wpk_compose_slice(r->to, part, 1, first, first + count) : part;
    return wpk_compose_reshape(r->to, part, "", whole.rank - 1, extent, -1);
}

/* The part of a value [batch, gates * hidden] that is gate number `gate`. */
static int gate_of(struct recurrent *r, int x, int gate)
{
    return wpk_compose_slice(r->to, x, 1, gate * r->hidden, (gate + 1) * r->hidden);
}

/* Add the slice of `x`, [batch,width], that a step of the loop reads; returns its tensor. */
static int read_part(struct recurrent *r, int x, int64_t width, int64_t offset, int64_t step)
{
    const int64_t extent[] = {r->batch, width};

    return wpk_compose_read(r->to, x, offset, step, 2, extent);
}

static int read_state(struct recurrent *r, int start, bool is_reverse)
{
    int64_t size = r->batch * r->hidden;

    return read_part(r, start, r->hidden, 0, is_reverse ? -size : size);
}

/* The direction's function of x, of those that ONNX calls f, g and h. The specification clips what
 * any of them gets; ONNX Runtime does not clip a cell's state, and models were tested with it. */
static int activate(struct recurrent *r, const struct weights *w, int function, int x)
{
    const struct wpk_graph_attribute limits[] = {wpk_compose_real("min", -r->clip),
                                                 wpk_compose_real("max", r->clip)};

    if (r->clip > 0 && function != H) {
        x = wpk_compose_operator(r->to, "", "Clip", "", &x, 1, limits, 2, -1);
    }
    return wpk_activation_apply(r->to, &w->functions[function], x);
}

static int multiply(struct recurrent *r, const char *name, int x, int y)
{
    return wpk_compose_binary(r->to, "Mul", name, x, y);
}

static int add(struct recurrent *r, int x, int y)
{
    return wpk_compose_binary(r->to, "Add", "", x, y);
}

/* ---- quantized weights */

/* Elements [direction] of an operand [directions, ...], as [extent[0], ...]. */
static int direction_of(struct recurrent *r, int input, int64_t direction, int rank,
                        const int64_t *extent)
{
    return wpk_compose_reshape(r->to, of_direction(r, r->e->node->inputs[input], 0, direction), "",
                               rank, extent, -1);
}

/* Elements of a direction's scale or zero point; 0: it is left out. */
static int64_t parameters_of(const struct recurrent *r, int input)
{
    const struct wpk_graph_value *value = wpk_graph_input(r->e->graph, r->e->node, input);

    return value != NULL ? wpk_graph_elements(value) / r->directions : 0;
}

/* The weights of a product with k rows: W or R, with the scale and zero point that follow it. */
static struct wpk_quantized_weights quantized_weights(struct recurrent *r, int input,
                                                      int64_t direction, int64_t k)
{
    struct wpk_quantized_weights out;
    const int scale = input == W ? W_SCALE : R_SCALE;
    const int64_t n = r->gates * r->hidden;
    const int64_t scales = parameters_of(r, scale), zeros = parameters_of(r, scale + 1);
    const struct wpk_graph_value *whole = wpk_graph_input(r->e->graph, r->e->node, input);
    const struct wpk_graph_value *points = wpk_graph_input(r->e->graph, r->e->node, scale + 1);
    struct wpk_graph_value like = {.dtype = whole->dtype, .rank = 2, .extent = {k, n}};
    struct wpk_graph_value zero_like = {.rank = 1, .extent = {zeros}};
    size_t at = (size_t)(direction * k * n);
    int q = -1;
    int zero = zeros > 0 ? direction_of(r, scale + 1, direction, 1, &zeros) : -1;

    if (whole->data != NULL) {
        like.data = (const char *)whole->data + at;
        like.size = (size_t)(k * n);
        q = wpk_compose_constant(r->to, like.dtype, 2, like.extent, like.data);
    } else {
        q = direction_of(r, input, direction, 2, like.extent);
    }
    if (points != NULL) {
        zero_like.dtype = points->dtype;
        zero_like.size = (size_t)zeros;
        zero_like.data =
            points->data != NULL ? (const char *)points->data + direction * zeros : NULL;
    }
    wpk_err err = wpk_quantized_read(r->e, q, &like, zero, &zero_like, &out);
    r->to->err = r->to->err == WPK_OK ? err : r->to->err;
    out.scale = direction_of(r, scale, direction, 1, &scales);
    return out;
}

/* x times the weights, plus z (-1: none). */
static int multiply_quantized(struct recurrent *r, const struct wpk_quantized_weights *weights,
                              int x, int64_t rows, int z)
{
    int product = wpk_quantized_product(r->e, x, rows, weights);

    return z >= 0 ? add(r, product, z) : product;
}

/* ---- steps */

static int multiply_state(struct recurrent *r, const struct weights *w, int h, int z)
{
    if (r->is_quantized) {
        return multiply_quantized(r, &w->quantized, h, r->batch, z);
    }
    return wpk_compose_product(r->to, wpk_compose_name(r->to, "sum"), h, w->recurrence, z);
}

static void step_gru(struct recurrent *r, const struct weights *w, int gates, int *h)
{
    int fresh = gate_of(r, gates, 2);
    int sum = multiply_state(
        r, w, *h, r->is_after ? w->bias : wpk_compose_slice(r->to, gates, 1, 0, 2 * r->hidden));
    int z = gate_of(r, sum, 0);
    int reset = gate_of(r, sum, 1);

    if (r->is_after) {
        z = add(r, gate_of(r, gates, 0), z);
        reset = activate(r, w, F, add(r, gate_of(r, gates, 1), reset));
        fresh = add(r, fresh, multiply(r, "", reset, gate_of(r, sum, 2)));
    } else {
        reset = multiply(r, wpk_compose_name(r->to, "reset"), activate(r, w, F, reset), *h);
        fresh =
            wpk_compose_product(r->to, wpk_compose_name(r->to, "fresh"), reset, w->fresh, fresh);
    }
    z = activate(r, w, F, z);
    fresh = activate(r, w, G, fresh);
    /* (1 - z) fresh + z H = fresh + z (H - fresh) */
    int change = multiply(r, "", z, wpk_compose_binary(r->to, "Sub", "", *h, fresh));
    *h = wpk_compose_binary(r->to, "Add", wpk_compose_name(r->to, "h"), fresh, change);
}

/* A gate of an LSTM, with what it sees of state `c`. */
static int open_gate(struct recurrent *r, const struct weights *w, int sum, int gate, int c)
{
    int x = gate_of(r, sum, gate);

    if (w->peephole[gate] >= 0) {
        x = add(r, x, multiply(r, "", w->peephole[gate], c));
    }
    return activate(r, w, F, x);
}

static void step_lstm(struct recurrent *r, const struct weights *w, int gates, int *h, int *c)
{
    int sum = multiply_state(r, w, *h, gates);
    int input = open_gate(r, w, sum, 0, *c);
    int forget = r->couples
                     ? wpk_compose_binary(r->to, "Sub", "", wpk_compose_number(r->to, 1), input)
                     : open_gate(r, w, sum, 2, *c);
    int keep = multiply(r, "", forget, *c);
    int take = multiply(r, "", input, activate(r, w, G, gate_of(r, sum, 3)));

    *c = wpk_compose_binary(r->to, "Add", wpk_compose_name(r->to, "c"), keep, take);
    *h = multiply(r, wpk_compose_name(r->to, "h"), open_gate(r, w, sum, 1, *c),
                  activate(r, w, H, *c));
}

static bool has(const struct recurrent *r, int input)
{
    return wpk_graph_input(r->e->graph, r->e->node, input) != NULL;
}

static struct weights find_weights(struct recurrent *r, int64_t direction)
{
    int64_t rows = r->hidden * (r->gates == 3 && !r->is_after ? 2 : r->gates);
    struct weights w = {.fresh = -1,
                        .bias = -1,
                        .peephole = {-1, -1, -1},
                        .functions = r->functions + direction * r->function_count};

    if (r->is_quantized) {
        w.quantized = quantized_weights(r, R, direction, r->hidden);
    } else {
        w.recurrence = part_of(r, R, direction, 0, rows);
    }
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

    if (wpk_graph_input(r->e->graph, r->e->node, input) == NULL) {
        float *zeros = WPK_ARENA_NEW(&r->e->graph->arena, float, (size_t)(r->batch * r->hidden));
        r->to->err = zeros == NULL && r->to->err == WPK_OK ? WPK_ENOMEM : r->to->err;
        return wpk_compose_constant(r->to, WPK_F32, 2, extent, zeros);
    }
    int part = of_direction(r, r->e->node->inputs[input], r->is_batch_first ? 1 : 0, direction);
    return wpk_compose_reshape(r->to, part, "", 2, extent, -1);
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
    return r->is_after
               ? own
               : wpk_compose_binary(r->to, "Add", "", own, part_of(r, B, direction, count, count));
}

/* The value where `mask` holds, else `otherwise`. */
static int choose(struct recurrent *r, int mask, int value, int otherwise)
{
    return wpk_compose_operator(r->to, "", "Where", "", (int[]){mask, value, otherwise}, 3, NULL, 0,
                                -1);
}

/* Keep the state behind a sequence's end, which the other direction begins with. */
static void keep_ended(struct recurrent *r, bool is_reverse, const int before[2], int *h, int *c)
{
    if (r->mask < 0) {
        return;
    }
    int mask = read_part(r, r->mask, 1, is_reverse ? (r->steps - 1) * r->batch : 0,
                         is_reverse ? -r->batch : r->batch);
    *h = choose(r, mask, *h, before[0]);
    *c = *c >= 0 ? choose(r, mask, *c, before[1]) : -1;
}

/* The steps of a direction: `gates` is [steps * batch, ...] for all of them. */
static void expand_steps(struct recurrent *r, int64_t direction, int gates)
{
    struct wpk_compose *to = r->to;
    const bool is_reverse = r->is_reverse[direction];
    const int64_t row = r->batch * r->gates * r->hidden; /* elements of a step */
    const struct weights w = find_weights(r, direction);
    const bool has_c = r->gates == 4;
    int start_h =
        wpk_compose_enter(to, wpk_compose_name(to, "initial_h"), initial(r, INITIAL_H, direction));
    int start_c = has_c ? wpk_compose_enter(to, wpk_compose_name(to, "initial_c"),
                                            initial(r, INITIAL_C, direction))
                        : -1;
    int all_c = -1;

    to->loop = ++r->e->graph->loop_count;
    to->times = r->steps;
    int own = read_part(r, gates, r->gates * r->hidden, is_reverse ? (r->steps - 1) * row : 0,
                        is_reverse ? -row : row);
    int h = read_state(r, start_h, is_reverse);
    int c = has_c ? read_state(r, start_c, is_reverse) : -1;
    const int before[] = {h, c};
    if (r->gates == 1) {
        h = activate(r, &w, F, multiply_state(r, &w, h, own));
    } else if (r->gates == 3) {
        step_gru(r, &w, own, &h);
    } else {
        step_lstm(r, &w, own, &h, &c);
    }
    keep_ended(r, is_reverse, before, &h, &c);
    if (has_c) {
        all_c = wpk_compose_store(to, c, start_c, is_reverse);
    }
    int all_h = wpk_compose_store(to, h, start_h, is_reverse);
    to->loop = 0;
    r->all_h[direction] = wpk_compose_result(to, all_h, all_c);
    r->all_c[direction] = has_c ? wpk_compose_result(to, all_c, all_h) : -1;
}

static void expand_direction(struct recurrent *r, int x, int64_t direction)
{
    const int64_t rows[] = {r->steps * r->batch, r->width};
    int all = wpk_compose_reshape(r->to, x, "", 2, rows, -1);

    if (r->is_quantized) {
        const struct wpk_quantized_weights w = quantized_weights(r, W, direction, r->width);
        expand_steps(r, direction,
                     multiply_quantized(r, &w, all, rows[0], first_bias(r, direction)));
        return;
    }
    int gates = wpk_compose_product(
        r->to, wpk_compose_name(r->to, direction == 0 ? "inputs" : "inputs_reverse"), all,
        part_of(r, W, direction, 0, r->gates * r->hidden), first_bias(r, direction));

    expand_steps(r, direction, gates);
}

static bool is_wanted(const struct recurrent *r, int output)
{
    return output < r->e->node->output_count && r->e->node->outputs[output] >= 0;
}

/* The states behind the steps, [steps,directions,batch,hidden]. */
static void add_sequence(struct recurrent *r)
{
    const int64_t extent[] = {r->steps, 1, r->batch, r->hidden};
    const int64_t order[] = {2, 0, 1, 3};
    const int y = r->e->node->outputs[Y];
    const int last = r->is_batch_first ? -1 : y; /* of the nodes but a Transpose */
    int all[2] = {0};

    for (int64_t d = 0; d < r->directions; d++) {
        int64_t first = r->is_reverse[d] ? 0 : 1;
        int states = wpk_compose_slice(r->to, r->all_h[d], 0, first, first + r->steps);
        if (r->mask >= 0) {
            const int64_t rows[] = {r->steps, r->batch, 1};
            states = choose(r, wpk_compose_reshape(r->to, r->mask, "", 3, rows, -1), states,
                            wpk_compose_number(r->to, 0));
        }
        bool is_alone = r->directions == 1;
        all[d] = wpk_compose_reshape(r->to, states, is_alone ? r->e->node->name : "", 4, extent,
                                     is_alone ? last : -1);
    }
    if (r->directions > 1) {
        all[0] = wpk_compose_concat(r->to, all, (int)r->directions, 1, last);
    }
    if (r->is_batch_first) {
        (void)wpk_compose_transpose(r->to, all[0], 4, order, y);
    }
}

/* The states behind the last step, [directions,batch,hidden]. */
static void add_last(struct recurrent *r, const int *states, int y)
{
    const int64_t order[] = {1, 0, 2};
    int all[2] = {0};

    for (int64_t d = 0; d < r->directions; d++) {
        int64_t at = r->is_reverse[d] ? 0 : r->steps;
        all[d] = wpk_compose_slice(r->to, states[d], 0, at, at + 1);
    }
    int last = wpk_compose_concat(r->to, all, (int)r->directions, 0, r->is_batch_first ? -1 : y);
    if (r->is_batch_first) {
        (void)wpk_compose_transpose(r->to, last, 3, order, y);
    }
}

/* ---- checks */

static wpk_err check_operand(struct recurrent *r, int input, const char *name, int rank,
                             const int64_t *extent)
{
    const struct wpk_graph_value *value = wpk_graph_input(r->e->graph, r->e->node, input);

    if (value == NULL && input > R) {
        return WPK_OK;
    }
    bool is_narrow = r->is_quantized && (input == W || input == R);
    bool fits =
        value != NULL && value->is_typed && value->rank == rank &&
        (is_narrow ? value->dtype == WPK_U8 || value->dtype == WPK_I8 : value->dtype == WPK_F32);
    for (int d = 0; fits && d < rank; d++) {
        fits = value->extent[d] == extent[d];
    }
    if (!fits) {
        wpk_diag_set(r->e->diag, "its input %s does not fit", name);
    }
    return fits ? WPK_OK : WPK_EINVAL;
}

static wpk_err check_operands(struct recurrent *r)
{
    const bool turned = r->is_quantized;
    const int64_t rows = r->gates * r->hidden;
    const int64_t state[] = {r->is_batch_first ? r->batch : r->directions,
                             r->is_batch_first ? r->directions : r->batch, r->hidden};
    const struct {
        int input;
        const char *name;
        int rank;
        int64_t extent[3];
    } operands[] = {
        {W, "W", 3, {r->directions, turned ? r->width : rows, turned ? rows : r->width}},
        {R, "R", 3, {r->directions, turned ? r->hidden : rows, turned ? rows : r->hidden}},
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

/* Scales and zero points of a direction are one, or one for each column of its weights. */
static bool has_parameters(const struct recurrent *r)
{
    bool fit = true;

    for (int input = W_SCALE; r->is_quantized && input <= R_ZERO; input++) {
        const struct wpk_graph_value *value = wpk_graph_input(r->e->graph, r->e->node, input);
        bool is_scale = input == W_SCALE || input == R_SCALE;
        int64_t count = parameters_of(r, input);
        fit = fit && (value != NULL || !is_scale) &&
              (value == NULL || ((count == 1 || count == r->gates * r->hidden) &&
                                 (value->dtype == WPK_F32) == is_scale));
    }
    return fit;
}

static wpk_err check(struct recurrent *r)
{
    const struct wpk_graph_value *lengths = wpk_graph_input(r->e->graph, r->e->node, LENGTHS);

    if (lengths != NULL &&
        (lengths->rank != 1 || lengths->extent[0] != r->batch || lengths->dtype != WPK_I32)) {
        return wpk_expansion_refuse(r->e, "its sequence_lens are not one i32 for each sequence");
    }
    if (!has_parameters(r)) {
        return wpk_expansion_refuse(
            r->e, "its scales or zero points are not one, or one for each column of its "
                  "weights");
    }
    return check_operands(r);
}

/* Compare each step's number with the sequences' lengths, if one may be shorter than all steps. */
static void add_mask(struct recurrent *r)
{
    const struct wpk_graph_value *lengths = wpk_graph_input(r->e->graph, r->e->node, LENGTHS);
    bool is_shorter = lengths != NULL && lengths->data == NULL;
    int32_t *numbers = WPK_ARENA_NEW(&r->e->graph->arena, int32_t, (size_t)r->steps);

    for (int64_t b = 0; lengths != NULL && lengths->data != NULL && b < r->batch; b++) {
        is_shorter = is_shorter || wpk_graph_element(lengths, b) < (double)r->steps;
    }
    r->mask = -1;
    if (!is_shorter || numbers == NULL) {
        r->to->err = numbers == NULL ? WPK_ENOMEM : r->to->err;
        return;
    }
    for (int64_t t = 0; t < r->steps; t++) {
        numbers[t] = (int32_t)t;
    }
    int steps = wpk_compose_constant(r->to, WPK_I32, 2, (int64_t[]){r->steps, 1}, numbers);
    r->mask = wpk_compose_binary(r->to, "Less", wpk_compose_name(r->to, "mask"), steps,
                                 r->e->node->inputs[LENGTHS]);
}

/* Read the activation functions and their parameters from the node's attributes. */
static wpk_err read_functions(struct recurrent *r)
{
    static const char *const usual[] = {[1] = "Tanh,Tanh",
                                        [3] = "Sigmoid,Tanh,Sigmoid,Tanh",
                                        [4] = "Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh"};
    const char *names = usual[r->gates];

    r->couples = r->gates == 4 && wpk_graph_int(r->e->node, "input_forget", 0) != 0;
    r->clip = (float)wpk_graph_real(r->e->node, "clip", 0);
    r->function_count = r->gates == 1 ? 1 : r->gates == 3 ? 2 : 3;
    names += r->directions > 1 ? 0 : (strlen(names) + 1) / 2;
    return wpk_activations_read(r->e->node, names, r->function_count * (int)r->directions,
                                r->functions, r->e->diag);
}

/* Find the sizes, and X with its steps first. */
static wpk_err describe(struct recurrent *r, int *out)
{
    const struct wpk_graph_value *x = wpk_graph_input(r->e->graph, r->e->node, X);
    const struct wpk_graph_value *weights = wpk_graph_input(r->e->graph, r->e->node, R);
    const int64_t order[] = {1, 0, 2};

    r->gates = r->e->node->op[0] == 'R' ? 1 : r->e->node->op[0] == 'G' ? 3 : 4;
    r->is_quantized = r->e->node->op[0] == 'D';
    r->is_after = r->gates == 3 && wpk_graph_int(r->e->node, "linear_before_reset", 0) != 0;
    r->is_batch_first = wpk_graph_int(r->e->node, "layout", 0) != 0;
    r->directions =
        strcmp(wpk_graph_text(r->e->node, "direction", ""), "bidirectional") == 0 ? 2 : 1;
    if (x == NULL || weights == NULL || x->rank != 3 || weights->rank != 3 || !x->is_typed ||
        x->dtype != WPK_F32) {
        return wpk_fail(r->e->diag, WPK_EINVAL,
                        "its inputs X and R must be f32 with three dimensions");
    }
    r->steps = x->extent[r->is_batch_first ? 1 : 0];
    r->batch = x->extent[r->is_batch_first ? 0 : 1];
    r->width = x->extent[2];
    r->hidden = r->is_quantized ? weights->extent[1] : weights->extent[2];
    if (r->steps < 1 || r->batch < 1 || r->width < 1 || r->hidden < 1) {
        return wpk_fail(r->e->diag, WPK_EINVAL, "a tensor with no elements");
    }
    wpk_err err = check(r);
    err = err == WPK_OK ? read_functions(r) : err;
    *out = r->e->node->inputs[X];
    if (err == WPK_OK && r->is_batch_first) {
        *out = wpk_compose_transpose(r->to, *out, 3, order, -1);
    }
    return err;
}

wpk_err wpk_expand_recurrent(struct wpk_expansion *e)
{
    struct recurrent r = {.e = e, .to = &e->to};
    bool is_reverse = strcmp(wpk_graph_text(e->node, "direction", ""), "reverse") == 0;
    int x = -1;

    wpk_err err = describe(&r, &x);
    if (err != WPK_OK) {
        return err;
    }
    add_mask(&r);
    for (int64_t d = 0; d < r.directions; d++) {
        r.is_reverse[d] = is_reverse || d == 1;
        expand_direction(&r, x, d);
    }
    if (is_wanted(&r, Y)) {
        add_sequence(&r);
    }
    if (is_wanted(&r, Y_H)) {
        add_last(&r, r.all_h, r.e->node->outputs[Y_H]);
    }
    if (is_wanted(&r, Y_C)) {
        add_last(&r, r.all_c, r.e->node->outputs[Y_C]);
    }
    return WPK_OK;
}
