/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM step by step: directions, initial states, biases, layouts. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { T = 4, B = 2, I = 3, H = 2, GATES_MAX = 4, MAX = 512 };

/* Weights of one or two directions, as ONNX orders them. */
struct cell {
    double w[2 * GATES_MAX * H * I], r[2 * GATES_MAX * H * H], b[2 * 2 * GATES_MAX * H];
    double p[2 * 3 * H], h0[2 * B * H], c0[2 * B * H];
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* W x + R h + both biases, of row `row` of the gates of a direction. */
static double gate(const struct cell *c, int d, int gates, int row, const double *x,
                   const double *h, bool is_input_only, bool is_state_only)
{
    double sum = 0;
    for (int i = 0; i < I && !is_state_only; i++) {
        sum += c->w[(d * gates * H + row) * I + i] * x[i];
    }
    for (int i = 0; i < H && !is_input_only; i++) {
        sum += c->r[(d * gates * H + row) * H + i] * h[i];
    }
    sum += is_state_only ? 0 : c->b[d * 2 * gates * H + row];
    return sum + (is_input_only ? 0 : c->b[d * 2 * gates * H + gates * H + row]);
}

static void step_rnn(const struct cell *c, int d, const double *x, double *h)
{
    double next[H];
    for (int k = 0; k < H; k++) {
        next[k] = tanh(gate(c, d, 1, k, x, h, false, false));
    }
    memcpy(h, next, sizeof(next));
}

/* Gates z, r, h; `is_late`: linear_before_reset. */
static void step_gru(const struct cell *c, int d, const double *x, double *h, bool is_late)
{
    double next[H], reset[H], kept[H];
    for (int k = 0; k < H; k++) {
        reset[k] = sigmoid(gate(c, d, 3, H + k, x, h, false, false));
        kept[k] = reset[k] * h[k];
    }
    for (int k = 0; k < H; k++) {
        double z = sigmoid(gate(c, d, 3, k, x, h, false, false));
        double state = is_late ? reset[k] * gate(c, d, 3, 2 * H + k, x, h, false, true)
                               : gate(c, d, 3, 2 * H + k, x, kept, false, true);
        double hidden = tanh(gate(c, d, 3, 2 * H + k, x, h, true, false) + state);
        next[k] = (1 - z) * hidden + z * h[k];
    }
    memcpy(h, next, sizeof(next));
}

/* Gates i, o, f, c, with peepholes. */
static void step_lstm(const struct cell *c, int d, const double *x, double *h, double *state)
{
    const double *p = c->p + (ptrdiff_t)d * 3 * H;
    double next[H];
    for (int k = 0; k < H; k++) {
        double i = sigmoid(gate(c, d, 4, k, x, h, false, false) + p[k] * state[k]);
        double f = sigmoid(gate(c, d, 4, 2 * H + k, x, h, false, false) + p[2 * H + k] * state[k]);
        double new_state = f * state[k] + i * tanh(gate(c, d, 4, 3 * H + k, x, h, false, false));
        double o = sigmoid(gate(c, d, 4, H + k, x, h, false, false) + p[H + k] * new_state);
        next[k] = o * tanh(new_state);
        state[k] = new_state; /* nothing else reads element k of the state */
    }
    memcpy(h, next, sizeof(next));
}

enum kind { RNN, GRU, GRU_LATE, LSTM };

/* y [T, directions, B, H]; `backwards` of each direction. */
static void run(const struct cell *c, enum kind kind, int directions, bool first_backwards,
                const double *x, double *y, double *last)
{
    for (int d = 0; d < directions; d++) {
        for (int b = 0; b < B; b++) {
            double h[H], state[H];
            memcpy(h, c->h0 + (d * B + b) * (ptrdiff_t)H, sizeof(h));
            memcpy(state, c->c0 + (d * B + b) * (ptrdiff_t)H, sizeof(state));
            for (int n = 0; n < T; n++) {
                int t = (d == 1) != first_backwards ? T - 1 - n : n;
                const double *at = x + ((ptrdiff_t)t * B + b) * I;
                if (kind == RNN) {
                    step_rnn(c, d, at, h);
                } else if (kind == LSTM) {
                    step_lstm(c, d, at, h, state);
                } else {
                    step_gru(c, d, at, h, kind == GRU_LATE);
                }
                memcpy(y + (((ptrdiff_t)t * directions + d) * B + b) * H, h, sizeof(h));
            }
            memcpy(last + (d * B + b) * (ptrdiff_t)H, kind == LSTM ? state : h, sizeof(h));
        }
    }
}

static void check(enum kind kind, int directions, bool backwards)
{
    static struct cell c;
    static double x[T * B * I], found[MAX], expected[MAX], last[MAX];
    static const char *const ops[] = {"RNN", "GRU", "GRU", "LSTM"};
    static const int gate_counts[] = {1, 3, 3, 4};
    int gates = gate_counts[kind];
    char attributes[128], types[8][32];
    wpk_model_case_draw(1, x, (int64_t)T * B * I);
    wpk_model_case_draw(2, c.w, 2 * GATES_MAX * H * I);
    wpk_model_case_draw(3, c.r, 2 * GATES_MAX * H * H);
    wpk_model_case_draw(4, c.b, 2 * 2 * GATES_MAX * H);
    wpk_model_case_draw(5, c.p, 2 * 3 * H);
    wpk_model_case_draw(6, c.h0, 2 * B * H);
    wpk_model_case_draw(7, c.c0, 2 * B * H);
    run(&c, kind, directions, backwards, x, expected, last);
    snprintf(attributes, sizeof(attributes), "hidden_size:i=2 direction:s=%s%s",
             directions == 2 ? "bidirectional"
             : backwards     ? "reverse"
                             : "forward",
             kind == GRU_LATE ? " linear_before_reset:i=1" : "");
    snprintf(types[0], sizeof(types[0]), "f32[%d,%d,%d]", T, B, I);
    snprintf(types[1], sizeof(types[1]), "f32[%d,%d,%d]", directions, gates * H, I);
    snprintf(types[2], sizeof(types[2]), "f32[%d,%d,%d]", directions, gates * H, H);
    snprintf(types[3], sizeof(types[3]), "f32[%d,%d]", directions, 2 * gates * H);
    snprintf(types[5], sizeof(types[5]), "f32[%d,%d,%d]", directions, B, H);
    snprintf(types[7], sizeof(types[7]), "f32[%d,%d]", directions, 3 * H);
    const struct wpk_model_input inputs[] = {{.type = types[0], .data = x},
                                             {.type = types[1], .data = c.w},
                                             {.type = types[2], .data = c.r},
                                             {.type = types[3], .data = c.b},
                                             {.type = NULL},
                                             {.type = types[5], .data = c.h0},
                                             {.type = types[5], .data = c.c0},
                                             {.type = types[7], .data = c.p}};
    int count = kind == LSTM ? 8 : 6;
    int64_t all = wpk_model_case_compute(ops[kind], 14, attributes, inputs, count, 0, found, MAX);
    assert_int_equal(all, (int64_t)T * directions * B * H);
    wpk_model_case_compare(attributes, found, expected, all);
    all = wpk_model_case_compute(ops[kind], 14, attributes, inputs, count, kind == LSTM ? 2 : 1,
                                 found, MAX);
    assert_int_equal(all, (int64_t)directions * B * H);
    wpk_model_case_compare("last state", found, last, all);
}

static void check_directions(enum kind kind)
{
    check(kind, 1, false);
    check(kind, 1, true);
    check(kind, 2, false);
}

static void an_rnn_has_one_state(void **state)
{
    (void)state;
    check_directions(RNN);
}

static void a_gru_keeps_a_part_of_its_state(void **state)
{
    (void)state;
    check_directions(GRU);
    check_directions(GRU_LATE);
}

static void an_lstm_has_two_states_and_peepholes(void **state)
{
    (void)state;
    check_directions(LSTM);
}

/* Without biases and states, which are zero; relu sums the steps up. Weights are 1. */
static void inputs_may_be_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *type, *attributes;
        int part, count;
        double x[6], expected[6];
    } cases[] = {
        {"f32[3,1,1]", "", 0, 3, {1, 2, 3}, {1, 3, 6}},
        {"f32[3,1,1]", " direction:s=reverse", 0, 3, {1, 2, 3}, {6, 5, 3}},
        {"f32[3,1,1]", "", 1, 1, {1, 2, 3}, {6}},
        /* [batch, time, input], and the same of the output */
        {"f32[2,3,1]", " layout:i=1", 0, 6, {1, 2, 3, 10, 20, 30}, {1, 3, 6, 10, 30, 60}},
        {"f32[2,3,1]", " layout:i=1", 1, 2, {1, 2, 3, 10, 20, 30}, {6, 60}},
        {"f32[2,1,1]", " clip:f=2", 0, 2, {3, 3}, {2, 2}},
        {"f32[1,1,1]", "", 0, 1, {7}, {7}}, /* one step */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double found[6];
        char attributes[128];
        const struct wpk_model_input inputs[] = {{.type = cases[i].type, .data = cases[i].x},
                                                 {.type = "f32[1,1,1]", .values = "1"},
                                                 {.type = "f32[1,1,1]", .values = "1"}};
        snprintf(attributes, sizeof(attributes), "hidden_size:i=1 activations:S=Relu%s",
                 cases[i].attributes);
        assert_int_equal(
            wpk_model_case_compute("RNN", 14, attributes, inputs, 3, cases[i].part, found, 6),
            cases[i].count);
        wpk_model_case_compare(attributes, found, cases[i].expected, cases[i].count);
    }
}

static void cells_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"RNN@14", ":f32[3,1,2] :f32[1,1,1] :f32[1,1,1]", "hidden_size:i=1", "!RNN"},
        {"RNN@14", ":f32[3,1,1] :f32[1,2,1] :f32[1,1,1]", "hidden_size:i=1", "!RNN"},
        {"RNN@14", ":f32[3,1,1] :f32[1,1,1] :f32[1,1,1]",
         "hidden_size:i=1 direction:s=bidirectional", "!RNN"},
        {"RNN@14", ":f32[3,1,1] :f32[1,1,1] :f32[1,1,1]", "hidden_size:i=1 activations:S=NoSuch",
         "!NoSuch"},
        {"RNN@14", ":f32[3,1,1] :f32[1,1,1] :f32[1,1,1]", "hidden_size:i=1 direction:s=up",
         "!its direction is 'up'"},
        {"GRU@14", ":f32[3,1,1] :f32[1,2,1] :f32[1,2,1]", "hidden_size:i=1", "!GRU"},
        {"LSTM@14", ":f32[3,1,1] :f32[1,4,1] :f32[1,4,1] :f32[1,7]", "hidden_size:i=1", "!LSTM"},
        {"LSTM@14", ":f32[3,1] :f32[1,4,1] :f32[1,4,1]", "hidden_size:i=1", "!LSTM"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_rnn_has_one_state),
        cmocka_unit_test(a_gru_keeps_a_part_of_its_state),
        cmocka_unit_test(an_lstm_has_two_states_and_peepholes),
        cmocka_unit_test(inputs_may_be_left_out),
        cmocka_unit_test(cells_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
