/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simple_interpreter.h"

#include "ir/node.h"
#include "schema/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of an i64 the value is its cell (schema/convert.h). */
struct pair {
    double value, magnitude;
};

static double number(enum wpk_dtype dtype, double cell)
{
    return wpk_cell_number(dtype, cell);
}

struct walk {
    const struct wpk_program *program;
    const double *value[WPK_TENSORS_MAX];
    const double *magnitude[WPK_TENSORS_MAX];
    int64_t axis[WPK_AXES_MAX];
    bool rounds;
};

static double rounded(const struct walk *w, enum wpk_dtype dtype, double x)
{
    return w->rounds && wpk_dtype_is_float(dtype) ? wpk_dtype_round(dtype, x) : x;
}

static double wrapped(enum wpk_dtype dtype, double x)
{
    double modulus = dtype == WPK_I32 ? 0x1p32 : dtype == WPK_I16 ? 0x1p16 : 0x1p8;
    if (wpk_dtype_is_float(dtype) || dtype == WPK_I64) {
        return x;
    }
    if (dtype == WPK_BOOL) {
        return x != 0.0 ? 1.0 : 0.0;
    }
    double rest = fmod(x, modulus);
    rest += rest < 0.0 ? modulus : 0.0;
    return dtype != WPK_U8 && rest >= modulus / 2.0 ? rest - modulus : rest;
}

static double converted(enum wpk_dtype from, enum wpk_dtype to, double x)
{
    if (from == to) {
        return x;
    }
    if (from == WPK_I64) { /* the low bits */
        uint64_t low = (uint64_t)wpk_cell_integer(x) & 0xffffffff;
        return to == WPK_BOOL           ? wpk_cell_integer(x) != 0
               : wpk_dtype_is_float(to) ? number(from, x)
                                        : wrapped(to, (double)low);
    }
    if (to == WPK_I64) {
        return wpk_cell_of(wpk_convert_int64(nearbyint(x)));
    }
    if (wpk_dtype_is_float(to) || to == WPK_BOOL || !wpk_dtype_is_float(from)) {
        return wrapped(to, x);
    }
    double low = to == WPK_I8    ? -128.0
                 : to == WPK_U8  ? 0.0
                 : to == WPK_I16 ? -32768.0
                 : to == WPK_I32 ? -0x1p31
                                 : -0x1p63;
    double high = to == WPK_I8    ? 127.0
                  : to == WPK_U8  ? 255.0
                  : to == WPK_I16 ? 32767.0
                  : to == WPK_I32 ? 0x1p31 - 1.0
                                  : 0x1p63;
    return isnan(x) ? 0.0 : fmin(fmax(nearbyint(x), low), high);
}

static double exact(double x)
{
    return isinf(x) ? 0.0 : fabs(x);
}

/* An integer that rounding may make another is worth 2^80 for each step. */
static double cast_magnitude(enum wpk_dtype from, enum wpk_dtype to, struct pair a)
{
    double error = a.magnitude / 2097152.0;
    if (to == WPK_BOOL) {
        return number(from, a.value) != 0.0;
    }
    if (wpk_dtype_is_float(from) && !wpk_dtype_is_float(to) && a.magnitude < ldexp(1, 80)) {
        double steps = number(to, converted(from, to, a.value + error)) -
                       number(to, converted(from, to, a.value - error));
        return steps > 0.0 ? ldexp(steps, 80) : a.magnitude;
    }
    return a.magnitude;
}

static struct pair walk_node(const struct walk *w, int node);

static struct pair walk_load(const struct walk *w, const struct wpk_node *n)
{
    const struct wpk_tensor *t = &w->program->tensors[n->tensor];
    int64_t offset = 0;
    bool inside = true;
    bool padding = true;
    for (int d = 0; d < t->rank; d++) {
        int64_t i = wpk_cell_integer(walk_node(w, n->index[d]).value);
        inside = inside && i >= 0 && i < t->extent[d];
        padding = padding && i >= -t->pad_before[d] && i < t->extent[d] + t->pad_after[d];
        offset = offset * t->extent[d] + i;
    }
    if (!inside) {
        double outside = padding || n->outside < 0 ? 0.0 : walk_node(w, n->outside).value;
        return (struct pair){outside, exact(number(n->dtype, outside))};
    }
    const double *m = w->magnitude[n->tensor];
    double value = w->value[n->tensor][offset];
    return (struct pair){value, m != NULL ? m[offset] : exact(number(n->dtype, value))};
}

static struct pair walk_unary(const struct wpk_node *n, struct pair a)
{
    double x = a.value;
    double m = a.magnitude;
    double flat = 4096.0 * sqrt(m);
    if (n->dtype == WPK_I64) {
        uint64_t i = (uint64_t)wpk_cell_integer(x);
        bool negates = n->op == WPK_UNARY_NEG || (n->op == WPK_UNARY_ABS && (int64_t)i < 0);
        return (struct pair){negates ? wpk_cell_of((int64_t)(0 - i)) : x, m};
    }
    switch ((enum wpk_unary)n->op) {
    case WPK_UNARY_NEG:
        return (struct pair){wrapped(n->dtype, -x), m};
    case WPK_UNARY_NOT:
        return (struct pair){x == 0.0, x == 0.0};
    case WPK_UNARY_EXP:
        return (struct pair){exp(x), exp(x) * (1.0 + m) + ldexp(1.0, -102)};
    case WPK_UNARY_LOG:
        return (struct pair){log(x), fabs(log(x)) + m / fabs(x)};
    case WPK_UNARY_SQRT:
        return (struct pair){sqrt(x), sqrt(x) + (x > 0.0 ? fmin(m / 2.0 / sqrt(x), flat) : flat)};
    case WPK_UNARY_RSQRT:
        return (struct pair){pow(x, -0.5), pow(x, -0.5) + 0.5 * pow(x, -1.5) * m};
    case WPK_UNARY_TANH:
        return (struct pair){tanh(x), 1.0 + m / (cosh(x) * cosh(x))};
    case WPK_UNARY_ERF:
        return (struct pair){erf(x), 1.0 + 2.0 / sqrt(acos(-1.0)) * exp(-x * x) * m};
    case WPK_UNARY_SIGMOID: {
        double s = 1.0 / (1.0 + exp(-x));
        return (struct pair){s, s + s * (1.0 - s) * m};
    }
    case WPK_UNARY_ABS:
        return (struct pair){wrapped(n->dtype, fabs(x)), m};
    case WPK_UNARY_FLOOR:
        return (struct pair){floor(x), m};
    case WPK_UNARY_CEIL:
        return (struct pair){ceil(x), m};
    case WPK_UNARY_ROUND: {
        double error = m / 2097152.0;
        double steps = nearbyint(x + error) - nearbyint(x - error);
        bool exact_half = 2 * x == trunc(2 * x) && m == fabs(x);
        return (struct pair){nearbyint(x),
                             steps > 0 && !exact_half && m < ldexp(1, 80) ? ldexp(steps, 80) : m};
    }
    case WPK_UNARY_TRUNC: {
        double error = m / 2097152.0;
        double steps = trunc(x + error) - trunc(x - error);
        bool exact_integer = x == trunc(x) && m == fabs(x);
        return (struct pair){
            trunc(x), steps > 0 && !exact_integer && m < ldexp(1, 80) ? ldexp(steps, 80) : m};
    }
    case WPK_UNARY_SIN:
        return (struct pair){sin(x), 1.0 + fabs(cos(x)) * m};
    case WPK_UNARY_COS:
        return (struct pair){cos(x), 1.0 + fabs(sin(x)) * m};
    case WPK_UNARY_ISNAN:
        return (struct pair){isnan(x), isnan(x)};
    case WPK_UNARY_ISINF:
        return (struct pair){isinf(x) != 0, isinf(x) != 0};
    case WPK_UNARY_COUNT:
        break;
    }
    wpk_assert_failed("a unary operation", __FILE__, __LINE__);
}

static struct pair floor_divide(double x, double y, bool remainder)
{
    if (y == 0.0) {
        return (struct pair){0.0, 0.0};
    }
    int64_t a = (int64_t)x;
    int64_t b = (int64_t)y;
    int64_t q = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
    double result = (double)(remainder ? a - q * b : q);
    return (struct pair){result, fabs(result)};
}

/* A magnitude of integers stays below the mark. */
static double limited(double magnitude, double a, double b)
{
    bool sure = a < ldexp(1, 80) && b < ldexp(1, 80);
    return sure ? fmin(magnitude, magnitude < ldexp(1, 80) ? magnitude : ldexp(1, 79)) : magnitude;
}

static int64_t i64_of(enum wpk_binary op, uint64_t x, uint64_t y)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    if (op == WPK_BINARY_DIV || op == WPK_BINARY_MOD) {
        bool divides = op == WPK_BINARY_DIV;
        if (b == 0 || b == -1) {
            return b != 0 && divides ? (int64_t)(0 - x) : 0;
        }
        int64_t q = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
        return divides ? q : (int64_t)(x - (uint64_t)q * y);
    }
    return op == WPK_BINARY_ADD   ? (int64_t)(x + y)
           : op == WPK_BINARY_SUB ? (int64_t)(x - y)
           : op == WPK_BINARY_MUL ? (int64_t)(x * y)
           : op == WPK_BINARY_MIN ? (a < b ? a : b)
                                  : (a < b ? b : a);
}

static struct pair walk_i64(enum wpk_binary op, struct pair a, struct pair b)
{
    int64_t x = wpk_cell_integer(a.value), y = wpk_cell_integer(b.value);
    bool truth = op == WPK_BINARY_LT   ? x < y
                 : op == WPK_BINARY_LE ? x <= y
                 : op == WPK_BINARY_EQ ? x == y
                                       : x != y;
    if (op >= WPK_BINARY_LT) {
        return (struct pair){truth, truth};
    }
    int64_t z = i64_of(op, (uint64_t)x, (uint64_t)y);
    bool divides = op == WPK_BINARY_DIV || op == WPK_BINARY_MOD;
    bool limits = op == WPK_BINARY_MIN || op == WPK_BINARY_MAX;
    double magnitude = divides                ? fabs((double)z)
                       : op == WPK_BINARY_MUL ? a.magnitude * b.magnitude
                       : limits               ? fmax(a.magnitude, b.magnitude)
                                              : a.magnitude + b.magnitude;
    return (struct pair){wpk_cell_of(z), limited(magnitude, a.magnitude, b.magnitude)};
}

static double modulo(const struct walk *w, const struct wpk_node *n, double x, double y)
{
    double quotient = rounded(w, n->dtype, x / y);
    return x - rounded(w, n->dtype, y * floor(quotient));
}

/* The product of two i32, wrapped to 32 bits. */
static double product(double x, double y)
{
    return (double)(int32_t)(uint32_t)(uint64_t)((int64_t)x * (int64_t)y);
}

static struct pair walk_arithmetic(const struct walk *w, const struct wpk_node *n, struct pair a,
                                   struct pair b)
{
    double x = a.value;
    double y = b.value;
    bool is_float = wpk_dtype_is_float(n->dtype);
    switch ((enum wpk_binary)n->op) {
    case WPK_BINARY_ADD:
        return (struct pair){x + y, a.magnitude + b.magnitude};
    case WPK_BINARY_SUB:
        return (struct pair){x - y, a.magnitude + b.magnitude};
    case WPK_BINARY_MUL:
        if (!is_float) {
            return (struct pair){product(x, y),
                                 limited(a.magnitude * b.magnitude, a.magnitude, b.magnitude)};
        }
        return (struct pair){x * y, a.magnitude * b.magnitude};
    case WPK_BINARY_DIV:
        if (!is_float) {
            return floor_divide(x, y, false);
        }
        return (struct pair){x / y, a.magnitude / fabs(y) + fabs(x) * b.magnitude / (y * y)};
    case WPK_BINARY_MOD:
        if (!is_float) {
            return floor_divide(x, y, true);
        }
        return (struct pair){modulo(w, n, x, y), a.magnitude + fabs(floor(x / y)) * b.magnitude};
    case WPK_BINARY_POW: {
        double p = pow(x, y);
        return (struct pair){is_float ? p : trunc(p),
                             fabs(p) + (x != 0.0 ? fabs(p * y / x) : 1.0) * a.magnitude +
                                 (x > 0.0 ? fabs(p * log(x)) : 0.0) * b.magnitude};
    }
    default:
        wpk_assert_failed("a binary operation", __FILE__, __LINE__);
    }
}

static struct pair walk_binary(const struct walk *w, const struct wpk_node *n, struct pair a,
                               struct pair b)
{
    double x = a.value;
    double y = b.value;
    double truth;
    if (w->program->nodes[n->arg[0]].dtype == WPK_I64) {
        return walk_i64((enum wpk_binary)n->op, a, b);
    }
    switch ((enum wpk_binary)n->op) {
    case WPK_BINARY_MIN:
        return (struct pair){fmin(x, y), fmax(a.magnitude, b.magnitude)};
    case WPK_BINARY_MAX:
        return (struct pair){fmax(x, y), fmax(a.magnitude, b.magnitude)};
    case WPK_BINARY_LT:
        truth = x < y;
        break;
    case WPK_BINARY_LE:
        truth = x <= y;
        break;
    case WPK_BINARY_EQ:
        truth = x == y;
        break;
    case WPK_BINARY_NE:
        truth = x != y;
        break;
    case WPK_BINARY_AND:
        truth = x != 0.0 && y != 0.0;
        break;
    case WPK_BINARY_OR:
        truth = x != 0.0 || y != 0.0;
        break;
    default: {
        struct pair result = walk_arithmetic(w, n, a, b);
        result.value = wrapped(n->dtype, result.value);
        return result;
    }
    }
    return (struct pair){truth, truth};
}

static struct pair walk_unrounded(const struct walk *w, int node)
{
    const struct wpk_node *n = &w->program->nodes[node];
    switch (n->kind) {
    case WPK_NODE_LITERAL: {
        double x = wpk_dtype_is_float(n->dtype) ? n->value : (double)n->integer;
        return (struct pair){n->dtype == WPK_I64 ? wpk_cell_of(n->integer) : x, exact(x)};
    }
    case WPK_NODE_AXIS:
        return (struct pair){wpk_cell_of(w->axis[n->axis]), (double)w->axis[n->axis]};
    case WPK_NODE_LOAD:
        return walk_load(w, n);
    case WPK_NODE_UNARY:
        return walk_unary(n, walk_node(w, n->arg[0]));
    case WPK_NODE_BINARY:
        return walk_binary(w, n, walk_node(w, n->arg[0]), walk_node(w, n->arg[1]));
    case WPK_NODE_SELECT: {
        struct pair a = walk_node(w, n->arg[1]);
        struct pair b = walk_node(w, n->arg[2]);
        double chosen = walk_node(w, n->arg[0]).value != 0.0 ? a.value : b.value;
        return (struct pair){chosen, fmax(a.magnitude, b.magnitude)};
    }
    case WPK_NODE_CAST:
        break;
    }
    struct pair a = walk_node(w, n->arg[0]);
    double x = converted(w->program->nodes[n->arg[0]].dtype, n->dtype, a.value);
    return (struct pair){x, cast_magnitude(w->program->nodes[n->arg[0]].dtype, n->dtype, a)};
}

static struct pair walk_node(const struct walk *w, int node)
{
    struct pair result = walk_unrounded(w, node);
    result.value = rounded(w, w->program->nodes[node].dtype, result.value);
    return result;
}

static void combine(const struct wpk_stage *stage, struct pair term, struct pair *sum)
{
    static const enum wpk_binary operations[] = {[WPK_REDUCE_SUM] = WPK_BINARY_ADD,
                                                 [WPK_REDUCE_MAX] = WPK_BINARY_MAX,
                                                 [WPK_REDUCE_MIN] = WPK_BINARY_MIN,
                                                 [WPK_REDUCE_PROD] = WPK_BINARY_MUL};
    if (stage->reduction != WPK_REDUCE_NONE && stage->accumulator == WPK_I64) {
        *sum = walk_i64(operations[stage->reduction], *sum, term);
        return;
    }
    switch (stage->reduction) {
    case WPK_REDUCE_NONE:
        *sum = term;
        break;
    case WPK_REDUCE_SUM:
        sum->value = wrapped(stage->accumulator, sum->value + term.value);
        sum->magnitude += term.magnitude;
        break;
    case WPK_REDUCE_MAX:
        sum->value = fmax(sum->value, term.value);
        sum->magnitude = fmax(sum->magnitude, term.magnitude);
        break;
    case WPK_REDUCE_MIN:
        sum->value = fmin(sum->value, term.value);
        sum->magnitude = fmax(sum->magnitude, term.magnitude);
        break;
    case WPK_REDUCE_PROD:
        if (wpk_dtype_is_float(stage->accumulator)) {
            sum->value *= term.value;
            sum->magnitude *= term.magnitude;
        } else {
            sum->value = wrapped(stage->accumulator, product(sum->value, term.value));
            sum->magnitude =
                limited(sum->magnitude * term.magnitude, sum->magnitude, term.magnitude);
        }
        break;
    }
}

/* The next index below `extent` in axes [from, to); false after the last. */
static bool advance(const struct wpk_stage *stage, int64_t *axis, int from, int to)
{
    for (int a = to - 1; a >= from; a--) {
        if (++axis[a] < stage->axes[a].extent) {
            return true;
        }
        axis[a] = 0;
    }
    return false;
}

static void walk_stage(struct walk *w, const struct wpk_stage *stage, double *value,
                       double *magnitude)
{
    enum wpk_dtype to = w->program->tensors[stage->output].dtype;
    enum wpk_dtype from = w->program->nodes[stage->expr].dtype;
    int64_t point = 0;
    memset(w->axis, 0, sizeof w->axis);
    do {
        struct pair sum = {0.0, 0.0};
        sum.value = stage->reduction == WPK_REDUCE_MAX    ? -(double)INFINITY
                    : stage->reduction == WPK_REDUCE_MIN  ? (double)INFINITY
                    : stage->reduction == WPK_REDUCE_PROD ? 1.0
                                                          : 0.0;
        sum.magnitude = stage->reduction == WPK_REDUCE_PROD ? 1.0 : 0.0;
        if (stage->reduction != WPK_REDUCE_NONE && stage->accumulator == WPK_I64) {
            sum.value = wpk_cell_of(wpk_convert_int64(sum.value));
        }
        bool reduces = stage->reduction != WPK_REDUCE_NONE;
        do {
            struct pair term = walk_node(w, stage->expr);
            term.value = converted(from, reduces ? stage->accumulator : to, term.value);
            combine(stage, term, &sum);
            sum.value = rounded(w, reduces ? stage->accumulator : to, sum.value);
        } while (advance(stage, w->axis, stage->rank, stage->axis_count));
        value[point] = reduces ? converted(stage->accumulator, to, sum.value) : sum.value;
        value[point] = rounded(w, to, value[point]);
        magnitude[point++] = reduces ? cast_magnitude(stage->accumulator, to, sum) : sum.magnitude;
    } while (advance(stage, w->axis, 0, stage->rank));
}

static double *cells_of(const double *numbers, int64_t count)
{
    double *cells = malloc((size_t)count * sizeof(*cells));
    WPK_ASSERT(cells != NULL);
    for (int64_t i = 0; i < count; i++) {
        cells[i] = wpk_cell_of(wpk_convert_int64(numbers[i]));
    }
    return cells;
}

static void run(struct walk *w, const double *const *given, struct wpk_simple_values *out)
{
    const struct wpk_program *program = w->program;
    memset(out, 0, sizeof *out);
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        w->value[t] = tensor->role == WPK_ROLE_LITERAL ? tensor->values : given[t];
        bool is_written = wpk_program_writer(program, t) >= 0;
        if (tensor->dtype == WPK_I64 && !is_written && w->value[t] != NULL) {
            w->value[t] = out->value[t] = cells_of(w->value[t], wpk_tensor_elements(tensor));
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        int t = program->stages[s].output;
        size_t bytes = (size_t)wpk_tensor_elements(&program->tensors[t]) * sizeof(double);
        w->value[t] = out->value[t] = malloc(bytes);
        w->magnitude[t] = out->magnitude[t] = malloc(bytes);
        WPK_ASSERT(out->value[t] != NULL);
        WPK_ASSERT(out->magnitude[t] != NULL);
        walk_stage(w, &program->stages[s], out->value[t], out->magnitude[t]);
    }
    for (int t = 0; t < program->tensor_count; t++) {
        int64_t count = wpk_tensor_elements(&program->tensors[t]);
        for (int64_t i = 0; out->value[t] != NULL && i < count; i++) {
            out->value[t][i] = number(program->tensors[t].dtype, out->value[t][i]);
        }
    }
}

void wpk_simple_run(const struct wpk_program *program, const double *const *given,
                    struct wpk_simple_values *out)
{
    struct walk w = {.program = program};
    run(&w, given, out);
}

void wpk_simple_run_rounded(const struct wpk_program *program, const double *const *given,
                            struct wpk_simple_values *out)
{
    struct walk w = {.program = program, .rounds = true};
    run(&w, given, out);
}

void wpk_simple_values_fini(struct wpk_simple_values *values)
{
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(values->value[t]);
        free(values->magnitude[t]);
    }
    memset(values, 0, sizeof *values);
}
