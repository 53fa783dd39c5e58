/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter against a second one that walks the expression at every point and is too simple
 * to be wrong in the same way. */
#include "op/reference.h"

#include "common/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- the simple interpreter */

struct pair {
    double value, magnitude;
};

struct walk {
    const struct wpk_program *program;
    const double *value[WPK_TENSORS_MAX];
    const double *magnitude[WPK_TENSORS_MAX];
    int64_t axis[WPK_AXES_MAX];
};

static double wrapped(enum wpk_dtype dtype, double x)
{
    double modulus = dtype == WPK_I32 ? 0x1p32 : 0x1p8;
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
    if (wpk_dtype_is_float(to) || to == WPK_BOOL || !wpk_dtype_is_float(from)) {
        return wrapped(to, x);
    }
    double low = to == WPK_I8 ? -128.0 : to == WPK_U8 ? 0.0 : to == WPK_I32 ? -0x1p31 : -0x1p63;
    double high = to == WPK_I8    ? 127.0
                  : to == WPK_U8  ? 255.0
                  : to == WPK_I32 ? 0x1p31 - 1.0
                                  : 0x1p63;
    return fmin(fmax(nearbyint(x), low), high);
}

static double exact(double x)
{
    return isinf(x) ? 0.0 : fabs(x);
}

static struct pair walk_node(const struct walk *w, int node);

static struct pair walk_load(const struct walk *w, const struct wpk_node *n)
{
    const struct wpk_tensor *t = &w->program->tensors[n->tensor];
    int64_t offset = 0;
    bool inside = true;
    bool padding = true;
    for (int d = 0; d < t->rank; d++) {
        int64_t i = (int64_t)walk_node(w, n->index[d]).value;
        inside = inside && i >= 0 && i < t->extent[d];
        padding = padding && i >= -t->pad_before[d] && i < t->extent[d] + t->pad_after[d];
        offset = offset * t->extent[d] + i;
    }
    if (!inside) {
        double outside = padding || n->outside < 0 ? 0.0 : walk_node(w, n->outside).value;
        return (struct pair){outside, exact(outside)};
    }
    const double *m = w->magnitude[n->tensor];
    double value = w->value[n->tensor][offset];
    return (struct pair){value, m != NULL ? m[offset] : fabs(value)};
}

static struct pair walk_unary(const struct wpk_node *n, struct pair a)
{
    double x = a.value;
    double m = a.magnitude;
    double flat = 4096.0 * sqrt(m);
    switch ((enum wpk_unary)n->op) {
    case WPK_UNARY_NEG:
        return (struct pair){wrapped(n->dtype, -x), m};
    case WPK_UNARY_NOT:
        return (struct pair){x == 0.0, x == 0.0};
    case WPK_UNARY_EXP:
        return (struct pair){exp(x), exp(x) * (1.0 + m)};
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
        double s = 0.5 + 0.5 * tanh(0.5 * x);
        return (struct pair){s, s + s * (1.0 - s) * m};
    }
    case WPK_UNARY_ABS:
        return (struct pair){wrapped(n->dtype, fabs(x)), m};
    case WPK_UNARY_FLOOR:
        return (struct pair){floor(x), m};
    case WPK_UNARY_CEIL:
        return (struct pair){ceil(x), m};
    case WPK_UNARY_ROUND:
        return (struct pair){nearbyint(x), m};
    case WPK_UNARY_SIN:
        return (struct pair){sin(x), 1.0 + fabs(cos(x)) * m};
    case WPK_UNARY_COS:
        return (struct pair){cos(x), 1.0 + fabs(sin(x)) * m};
    case WPK_UNARY_COUNT:
        break;
    }
    fail_msg("unary %d", n->op);
    return a;
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

static struct pair walk_arithmetic(const struct wpk_node *n, struct pair a, struct pair b)
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
            return (struct pair){wrapped(n->dtype, (double)((int64_t)x * (int64_t)y)),
                                 a.magnitude * b.magnitude};
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
        return (struct pair){x - y * floor(x / y), a.magnitude + fabs(floor(x / y)) * b.magnitude};
    case WPK_BINARY_POW: {
        double p = pow(x, y);
        return (struct pair){is_float ? p : trunc(p),
                             fabs(p) + (x != 0.0 ? fabs(p * y / x) : 1.0) * a.magnitude +
                                 (x > 0.0 ? fabs(p * log(x)) : 0.0) * b.magnitude};
    }
    default:
        fail_msg("binary %d", n->op);
        return a;
    }
}

static struct pair walk_binary(const struct wpk_node *n, struct pair a, struct pair b)
{
    double x = a.value;
    double y = b.value;
    double truth;
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
        struct pair result = walk_arithmetic(n, a, b);
        result.value = wrapped(n->dtype, result.value);
        return result;
    }
    }
    return (struct pair){truth, truth};
}

static struct pair walk_node(const struct walk *w, int node)
{
    const struct wpk_node *n = &w->program->nodes[node];
    switch (n->kind) {
    case WPK_NODE_LITERAL: {
        double x = wpk_dtype_is_float(n->dtype) ? n->value : (double)n->integer;
        return (struct pair){x, exact(x)};
    }
    case WPK_NODE_AXIS:
        return (struct pair){(double)w->axis[n->axis], (double)w->axis[n->axis]};
    case WPK_NODE_LOAD:
        return walk_load(w, n);
    case WPK_NODE_UNARY:
        return walk_unary(n, walk_node(w, n->arg[0]));
    case WPK_NODE_BINARY:
        return walk_binary(n, walk_node(w, n->arg[0]), walk_node(w, n->arg[1]));
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
    bool to_bool = n->dtype == WPK_BOOL && w->program->nodes[n->arg[0]].dtype != WPK_BOOL;
    return (struct pair){x, to_bool ? x : a.magnitude};
}

static void combine(const struct wpk_stage *stage, struct pair term, struct pair *sum)
{
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
        /* i64 first: a product of two i32 is not a double */
        sum->value =
            wpk_dtype_is_float(stage->accumulator)
                ? sum->value * term.value
                : wrapped(stage->accumulator, (double)((int64_t)sum->value * (int64_t)term.value));
        sum->magnitude *= term.magnitude;
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
        bool reduces = stage->reduction != WPK_REDUCE_NONE;
        do {
            struct pair term = walk_node(w, stage->expr);
            term.value = converted(from, reduces ? stage->accumulator : to, term.value);
            combine(stage, term, &sum);
        } while (advance(stage, w->axis, stage->rank, stage->axis_count));
        value[point] = reduces ? converted(stage->accumulator, to, sum.value) : sum.value;
        magnitude[point++] = sum.magnitude;
    } while (advance(stage, w->axis, 0, stage->rank));
}

/* ---- comparing the two */

static double *random_values(struct wpk_rng *rng, const struct wpk_tensor *tensor)
{
    int64_t count = wpk_tensor_elements(tensor);
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        switch (tensor->dtype) {
        case WPK_BOOL:
            values[i] = (double)wpk_rng_below(rng, 2);
            break;
        case WPK_U8:
            values[i] = (double)wpk_rng_below(rng, 256);
            break;
        case WPK_I8:
            values[i] = (double)wpk_rng_between(rng, -128, 127);
            break;
        case WPK_I32:
            values[i] = (double)wpk_rng_between(rng, INT32_MIN, INT32_MAX);
            break;
        case WPK_I64:
            values[i] = (double)wpk_rng_between(rng, -1000, 1000);
            break;
        default:
            values[i] = 2.0 * wpk_rng_unit(rng) - 1.0;
        }
    }
    return values;
}

static int output_of(const struct wpk_program *program)
{
    int t = 0;
    while (program->tensors[t].role != WPK_ROLE_OUTPUT) {
        t++;
    }
    return t;
}

static void assert_close(const char *what, int64_t at, double got, double expected, double scale)
{
    if (got != expected && !(fabs(got - expected) <= 1e-12 * scale)) {
        fail_msg("%s of point %lld: %.17g, expected %.17g", what, (long long)at, got, expected);
    }
}

static void check_points(const struct wpk_program *program, const struct wpk_reference_args *args,
                         const double *value, const double *magnitude)
{
    const struct wpk_tensor *out = &program->tensors[output_of(program)];
    int64_t elements = wpk_tensor_elements(out);
    int64_t step = elements / 50 + 1;
    for (int64_t i = 0; i < elements; i += step) {
        int64_t point[WPK_RANK_MAX] = {0};
        int64_t rest = i;
        for (int d = out->rank - 1; d >= 0; d--) {
            point[d] = rest % out->extent[d];
            rest /= out->extent[d];
        }
        double v;
        double m;
        assert_int_equal(wpk_reference_run_at(program, args, point, 1, &v, &m, NULL), WPK_OK);
        assert_close("value at", i, v, value[i], magnitude[i]);
        assert_close("magnitude at", i, m, magnitude[i], magnitude[i]);
    }
}

static void check(const struct wpk_program *program, uint64_t seed)
{
    struct wpk_diag diag = {0};
    if (wpk_program_validate(program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed);
    struct walk w = {.program = program};
    struct wpk_reference_args args = {{0}};
    double *own[2 * WPK_TENSORS_MAX] = {0};
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        size_t bytes = (size_t)wpk_tensor_elements(tensor) * sizeof(double);
        if (tensor->role == WPK_ROLE_LITERAL) {
            w.value[t] = tensor->values;
        } else if (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT) {
            own[t] = random_values(&rng, tensor);
            w.value[t] = args.tensor[t] = own[t];
        } else {
            own[t] = malloc(bytes);
            own[WPK_TENSORS_MAX + t] = malloc(bytes);
            w.value[t] = own[t];
            w.magnitude[t] = own[WPK_TENSORS_MAX + t];
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        int t = program->stages[s].output;
        walk_stage(&w, &program->stages[s], own[t], own[WPK_TENSORS_MAX + t]);
    }
    int out = output_of(program);
    int64_t elements = wpk_tensor_elements(&program->tensors[out]);
    double *value = malloc((size_t)elements * 3 * sizeof *value);
    double *magnitude = value + elements;
    double *alone = magnitude + elements;
    assert_int_equal(wpk_reference_run(program, &args, value, magnitude, &diag), WPK_OK);
    assert_int_equal(wpk_reference_run(program, &args, alone, NULL, &diag), WPK_OK);
    for (int64_t i = 0; i < elements; i++) {
        double scale = w.magnitude[out][i];
        assert_close("value", i, value[i], w.value[out][i], scale);
        assert_close("magnitude", i, magnitude[i], scale, scale);
        assert_close("value alone", i, alone[i], w.value[out][i], scale);
    }
    check_points(program, &args, w.value[out], w.magnitude[out]);
    free(value);
    for (int i = 0; i < 2 * WPK_TENSORS_MAX; i++) {
        free(own[i]);
    }
}

/* ---- building programs */

#define EXTENTS(...) ((const int64_t[]){__VA_ARGS__})
#define INDICES(...) ((const int[]){__VA_ARGS__})

static int tensor(struct wpk_program *p, const char *name, enum wpk_role role, enum wpk_dtype dtype,
                  int rank, const int64_t *extent)
{
    return wpk_program_add_tensor(p, name, role, dtype, rank, extent);
}

static struct wpk_stage *stage(struct wpk_program *p, int output)
{
    int s = wpk_program_add_stage(p, output, NULL);
    assert_true(s >= 0);
    return &p->stages[s];
}

static void reduce(struct wpk_stage *s, enum wpk_reduction reduction, enum wpk_dtype accumulator,
                   int count, const int64_t *extent)
{
    static const char *const names[] = {"r0", "r1", "r2", "r3"};
    s->reduction = reduction;
    s->accumulator = accumulator;
    for (int i = 0; i < count; i++) {
        assert_true(wpk_stage_add_reduction_axis(s, names[i], extent[i]) >= 0);
    }
}

static int ax(struct wpk_program *p, int axis)
{
    return wpk_node_axis(p, axis);
}

static int op2(struct wpk_program *p, enum wpk_binary op, int a, int b)
{
    return wpk_node_binary(p, op, a, b);
}

/* scale * a + b + shift */
static int slide(struct wpk_program *p, int64_t scale, int a, int b, int64_t shift)
{
    int sum =
        op2(p, WPK_BINARY_ADD, op2(p, WPK_BINARY_MUL, wpk_node_int(p, scale), ax(p, a)), ax(p, b));
    return op2(p, WPK_BINARY_ADD, sum, wpk_node_int(p, shift));
}

static int zero(struct wpk_program *p, enum wpk_dtype dtype)
{
    return wpk_node_real(p, dtype, 0.0);
}

/* ---- programs */

struct conv {
    int64_t size, in, out, kernel, stride, before;
    enum wpk_dtype dtype, accumulator;
};

static void build_conv(struct wpk_program *p, const struct conv *c)
{
    int64_t o = (c->size + 2 * c->before - c->kernel) / c->stride + 1;
    int x = tensor(p, "X", WPK_ROLE_INPUT, c->dtype, 4, EXTENTS(1, c->in, c->size, c->size));
    int w = tensor(p, "W", WPK_ROLE_CONSTANT, c->dtype, 4,
                   EXTENTS(c->out, c->in, c->kernel, c->kernel));
    int b = tensor(p, "B", WPK_ROLE_CONSTANT, c->accumulator, 1, EXTENTS(c->out));
    int t = tensor(p, "T", WPK_ROLE_INTERMEDIATE, c->accumulator, 4, EXTENTS(1, c->out, o, o));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, c->accumulator, 4, EXTENTS(1, c->out, o, o));
    struct wpk_stage *s = stage(p, t);
    reduce(s, WPK_REDUCE_SUM, c->accumulator, 3, EXTENTS(c->in, c->kernel, c->kernel));
    int row = slide(p, c->stride, 2, 5, -c->before);
    int column = slide(p, c->stride, 3, 6, -c->before);
    int lx = wpk_node_load(p, x, INDICES(ax(p, 0), ax(p, 4), row, column),
                           c->before > 0 ? zero(p, c->dtype) : -1);
    int lw = wpk_node_load(p, w, INDICES(ax(p, 1), ax(p, 4), ax(p, 5), ax(p, 6)), -1);
    int product = op2(p, WPK_BINARY_MUL, wpk_node_cast(p, c->accumulator, lx),
                      wpk_node_cast(p, c->accumulator, lw));
    s->expr = wpk_node_cast(p, c->accumulator, product);
    s = stage(p, y);
    int sum = op2(p, WPK_BINARY_ADD,
                  wpk_node_load(p, t, INDICES(ax(p, 0), ax(p, 1), ax(p, 2), ax(p, 3)), -1),
                  wpk_node_load(p, b, INDICES(ax(p, 1)), -1));
    s->expr =
        wpk_node_cast(p, c->accumulator, op2(p, WPK_BINARY_MAX, sum, zero(p, c->accumulator)));
}

static void test_convolutions(void **state)
{
    (void)state;
    static const struct conv cases[] = {
        {9, 3, 5, 3, 1, 1, WPK_F32, WPK_F32},   {9, 3, 5, 3, 2, 1, WPK_F32, WPK_F32},
        {12, 2, 70, 3, 1, 0, WPK_F32, WPK_F32}, {9, 40, 3, 5, 1, 2, WPK_F32, WPK_F32},
        {4, 2, 300, 1, 2, 0, WPK_F32, WPK_F32}, {70, 1, 1, 3, 1, 1, WPK_F32, WPK_F32},
        {6, 3, 4, 3, 1, 3, WPK_I8, WPK_I32},    {9, 3, 4, 3, 2, 1, WPK_U8, WPK_I32},
        {6, 3, 4, 3, 1, 1, WPK_I32, WPK_I32},   {6, 3, 40, 3, 1, 1, WPK_F16, WPK_F32},
        {6, 3, 4, 3, 1, 1, WPK_I8, WPK_I8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wpk_program p = {0};
        build_conv(&p, &cases[i]);
        check(&p, i);
        wpk_program_fini(&p);
    }
}

/* The zero border in the layout, not in the load. */
static void test_padded_input(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    build_conv(&p, &(struct conv){9, 3, 5, 3, 1, 1, WPK_F32, WPK_F32});
    for (int d = 2; d < 4; d++) {
        p.tensors[0].pad_before[d] = 1;
        p.tensors[0].pad_after[d] = d == 2 ? 1 : 0;
    }
    check(&p, 3);
    wpk_program_fini(&p);
}

/* What padding holds is read before `outside`. */
static void test_padding_before_outside(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(10));
    p.tensors[x].pad_before[0] = 1;
    p.tensors[x].pad_after[0] = 2;
    struct wpk_stage *s = stage(&p, y);
    int index = op2(&p, WPK_BINARY_SUB, ax(&p, 0), wpk_node_int(&p, 2));
    s->expr = wpk_node_load(&p, x, &index, wpk_node_real(&p, WPK_F32, 7.0));
    const double values[4] = {1, 2, 3, 4};
    const double expected[10] = {7, 0, 1, 2, 3, 4, 0, 0, 7, 7};
    struct wpk_reference_args args = {.tensor = {values}};
    double got[10];
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, NULL), WPK_OK);
    assert_memory_equal(got, expected, sizeof got);
    check(&p, 1);
    wpk_program_fini(&p);
}

static void build_softmax(struct wpk_program *p, int64_t rows, int64_t columns)
{
    int x = tensor(p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(rows, columns));
    int m = tensor(p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int d = tensor(p, "D", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(rows));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(rows, columns));
    struct wpk_stage *s = stage(p, m);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, &columns);
    int ij[2] = {ax(p, 0), ax(p, 1)};
    int lx = wpk_node_load(p, x, ij, -1);
    s->expr = lx;
    int e =
        wpk_node_unary(p, WPK_UNARY_EXP, op2(p, WPK_BINARY_SUB, lx, wpk_node_load(p, m, ij, -1)));
    s = stage(p, d);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &columns);
    s->expr = e;
    s = stage(p, y);
    s->expr = op2(p, WPK_BINARY_DIV, e, wpk_node_load(p, d, ij, -1));
}

static void test_softmax(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 700}, {300, 5}, {1, 257}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct wpk_program p = {0};
        build_softmax(&p, sizes[i][0], sizes[i][1]);
        check(&p, i);
        wpk_program_fini(&p);
    }
}

/* Max pooling reads -inf outside; its magnitude must stay finite. */
static void test_infinite_outside(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(3, 20));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(3, 11));
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_MAX, WPK_F32, 1, EXTENTS(3));
    s->expr = wpk_node_load(&p, x, INDICES(ax(&p, 0), slide(&p, 2, 1, 2, -2)),
                            wpk_node_real(&p, WPK_F32, -(double)INFINITY));
    check(&p, 1);
    double values[60];
    double value[33];
    double magnitude[33];
    for (int i = 0; i < 60; i++) {
        values[i] = i;
    }
    struct wpk_reference_args args = {.tensor = {values}};
    assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
    assert_true(magnitude[0] == 0.0 && value[0] == 0.0);
    assert_true(magnitude[1] == 2.0 && value[1] == 2.0);
    wpk_program_fini(&p);
}

/* Rows of 3x3 patches as a matrix: / and % in the indices, then a matrix product. */
static void test_divided_indices(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(4, 8, 8));
    int w = tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 2, EXTENTS(5, 36));
    int m = tensor(&p, "M", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(64, 36));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(5, 64));
    int nine = wpk_node_int(&p, 9);
    int three = wpk_node_int(&p, 3);
    int eight = wpk_node_int(&p, 8);
    int one = wpk_node_int(&p, 1);
    struct wpk_stage *s = stage(&p, m);
    int patch = op2(&p, WPK_BINARY_MOD, ax(&p, 1), nine);
    int row = op2(&p, WPK_BINARY_ADD, op2(&p, WPK_BINARY_DIV, ax(&p, 0), eight),
                  op2(&p, WPK_BINARY_SUB, op2(&p, WPK_BINARY_DIV, patch, three), one));
    int column = op2(&p, WPK_BINARY_ADD, op2(&p, WPK_BINARY_MOD, ax(&p, 0), eight),
                     op2(&p, WPK_BINARY_SUB, op2(&p, WPK_BINARY_MOD, patch, three), one));
    s->expr = wpk_node_load(&p, x, INDICES(op2(&p, WPK_BINARY_DIV, ax(&p, 1), nine), row, column),
                            zero(&p, WPK_F32));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(36));
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, w, INDICES(ax(&p, 0), ax(&p, 2)), -1),
                  wpk_node_load(&p, m, INDICES(ax(&p, 1), ax(&p, 2)), -1));
    check(&p, 5);
    wpk_program_fini(&p);
}

/* A blocked operand inside a contraction: the block's remainder is not affine. */
static void test_blocked_product(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 3, EXTENTS(7, 3, 16));
    int b = tensor(&p, "B", WPK_ROLE_CONSTANT, WPK_F32, 3, EXTENTS(3, 48, 16));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(7, 48));
    int block = wpk_node_int(&p, 16);
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(48));
    int quotient = op2(&p, WPK_BINARY_DIV, ax(&p, 2), block);
    int rest = op2(&p, WPK_BINARY_MOD, ax(&p, 2), block);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, a, INDICES(ax(&p, 0), quotient, rest), -1),
                  wpk_node_load(&p, b,
                                INDICES(op2(&p, WPK_BINARY_DIV, ax(&p, 1), block), ax(&p, 2),
                                        op2(&p, WPK_BINARY_MOD, ax(&p, 1), block)),
                                -1));
    check(&p, 6);
    wpk_program_fini(&p);
}

/* F(2,3) in one dimension with its matrices as literals, zeros in them. */
static void test_literal_transforms(void **state)
{
    (void)state;
    static const double bt[16] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
    static const double g[12] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
    static const double at[8] = {1, 1, 1, 0, 0, 1, -1, -1};
    struct wpk_program p = {0};
    int64_t tiles = 30;
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(2 * tiles + 2));
    int w = tensor(&p, "W", WPK_ROLE_CONSTANT, WPK_F32, 1, EXTENTS(3));
    int lb = wpk_program_add_literal(&p, "BT", WPK_F32, 2, EXTENTS(4, 4), bt);
    int lg = wpk_program_add_literal(&p, "G", WPK_F32, 2, EXTENTS(4, 3), g);
    int la = wpk_program_add_literal(&p, "AT", WPK_F32, 2, EXTENTS(2, 4), at);
    int u = tensor(&p, "U", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(4));
    int v = tensor(&p, "V", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(4, tiles));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(2 * tiles));
    struct wpk_stage *s = stage(&p, u);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(3));
    int ij[3] = {ax(&p, 0), ax(&p, 1), ax(&p, 2)};
    s->expr =
        op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, lg, ij, -1), wpk_node_load(&p, w, ij + 1, -1));
    s = stage(&p, v);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(4));
    int tile = slide(&p, 2, 1, 2, 0);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, lb, INDICES(ax(&p, 0), ax(&p, 2)), -1),
                  wpk_node_load(&p, x, &tile, -1));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(4));
    int two = wpk_node_int(&p, 2);
    int half = op2(&p, WPK_BINARY_DIV, ax(&p, 0), two);
    int product = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, u, ij + 1, -1),
                      wpk_node_load(&p, v, INDICES(ax(&p, 1), half), -1));
    int odd = op2(&p, WPK_BINARY_MOD, ax(&p, 0), two);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, la, INDICES(odd, ax(&p, 1)), -1), product);
    check(&p, 7);
    wpk_program_fini(&p);
}

static void build_reduction(struct wpk_program *p, enum wpk_reduction reduction,
                            enum wpk_dtype dtype, enum wpk_dtype accumulator, int64_t rows,
                            int64_t columns)
{
    int x = tensor(p, "X", WPK_ROLE_INPUT, dtype, 2, EXTENTS(rows, columns));
    int y = tensor(p, "Y", WPK_ROLE_OUTPUT, dtype, 0, NULL);
    struct wpk_stage *s = stage(p, y);
    reduce(s, reduction, accumulator, 2, EXTENTS(rows, columns));
    s->expr = wpk_node_cast(p, accumulator, wpk_node_load(p, x, INDICES(ax(p, 0), ax(p, 1)), -1));
}

/* To a scalar: the lanes themselves are reduced, and integers wrap on the way. */
static void test_full_reductions(void **state)
{
    (void)state;
    static const enum wpk_dtype types[][2] = {{WPK_F32, WPK_F32},
                                              {WPK_I32, WPK_I32},
                                              {WPK_I8, WPK_I32},
                                              {WPK_U8, WPK_U8},
                                              {WPK_I64, WPK_I64}};
    for (int r = WPK_REDUCE_SUM; r <= WPK_REDUCE_PROD; r++) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            if (r == WPK_REDUCE_PROD && types[i][0] == WPK_I64) {
                continue; /* exact below 2^53 only */
            }
            struct wpk_program p = {0};
            /* A product of hundreds of magnitudes leaves the doubles. */
            int64_t columns = r == WPK_REDUCE_PROD ? 9 : 700;
            build_reduction(&p, (enum wpk_reduction)r, types[i][0], types[i][1], 3, columns);
            check(&p, i);
            wpk_program_fini(&p);
        }
    }
}

/* So many terms that the sum leaves 2^53 unless it wraps on the way; odd, to lose its last bit. */
static void test_long_integer_sum(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_I32, 1, EXTENTS(1));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_I32, 0, NULL);
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_I32, 1, EXTENTS(6000001));
    s->expr = wpk_node_load(&p, x, INDICES(wpk_node_int(&p, 0)), -1);
    const double most = INT32_MAX;
    struct wpk_reference_args args = {.tensor = {&most}};
    double value;
    assert_int_equal(wpk_reference_run(&p, &args, &value, NULL, NULL), WPK_OK);
    assert_true(value == 0x1p31 - 6000001.0);
    wpk_program_fini(&p);
}

/* A factor of the accumulator that something else uses too. */
static void test_shared_factor(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(40, 50));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(40));
    struct wpk_stage *s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, EXTENTS(50));
    int load = wpk_node_load(&p, x, INDICES(ax(&p, 0), ax(&p, 1)), -1);
    int shifted = op2(&p, WPK_BINARY_ADD, load, wpk_node_real(&p, WPK_F32, 0.25));
    s->expr = op2(&p, WPK_BINARY_MUL, load, shifted);
    check(&p, 9);
    wpk_program_fini(&p);
}

/* Every operation, over a range of values, in float and in integers. */
static void test_operations(void **state)
{
    (void)state;
    static const enum wpk_dtype types[] = {WPK_F32, WPK_I32, WPK_I8, WPK_U8, WPK_I64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int op = 0; op < WPK_BINARY_AND; op++) {
            if (op == WPK_BINARY_POW && types[i] != WPK_F32) {
                continue;
            }
            struct wpk_program p = {0};
            bool truth = op >= WPK_BINARY_LT;
            int a = tensor(&p, "A", WPK_ROLE_INPUT, types[i], 1, EXTENTS(300));
            int b = tensor(&p, "B", WPK_ROLE_INPUT, types[i], 1, EXTENTS(300));
            int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, truth ? WPK_BOOL : types[i], 1, EXTENTS(300));
            struct wpk_stage *s = stage(&p, y);
            int i0 = ax(&p, 0);
            int la = wpk_node_load(&p, a, &i0, -1);
            if (op == WPK_BINARY_POW) { /* of positive numbers */
                la = wpk_node_unary(&p, WPK_UNARY_EXP, la);
            }
            int result = op2(&p, (enum wpk_binary)op, la, wpk_node_load(&p, b, &i0, -1));
            s->expr = wpk_node_cast(&p, truth ? WPK_BOOL : types[i], result);
            check(&p, i);
            wpk_program_fini(&p);
        }
    }
    for (int op = 0; op < WPK_UNARY_COUNT; op++) {
        if (op == WPK_UNARY_NOT) {
            continue;
        }
        struct wpk_program p = {0};
        int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(300));
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(300));
        struct wpk_stage *s = stage(&p, y);
        int i0 = ax(&p, 0);
        int la = wpk_node_load(&p, a, &i0, -1);
        if (op == WPK_UNARY_LOG || op == WPK_UNARY_SQRT || op == WPK_UNARY_RSQRT) {
            la = wpk_node_unary(&p, WPK_UNARY_EXP, la);
        } else {
            la = op2(&p, WPK_BINARY_MUL, la, wpk_node_real(&p, WPK_F32, 5.0));
        }
        s->expr = wpk_node_unary(&p, (enum wpk_unary)op, la);
        check(&p, (uint64_t)op);
        wpk_program_fini(&p);
    }
}

/* select, casts that saturate and casts that wrap, axis values, booleans. */
static void test_select_and_casts(void **state)
{
    (void)state;
    static const enum wpk_dtype types[] = {WPK_I8, WPK_U8, WPK_I32, WPK_I64, WPK_F32};
    for (size_t i = 0; i < 5; i++) {
        struct wpk_program p = {0};
        int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(3, 300));
        int b = tensor(&p, "B", WPK_ROLE_INPUT, WPK_I32, 2, EXTENTS(3, 300));
        int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, types[i], 2, EXTENTS(3, 300));
        struct wpk_stage *s = stage(&p, y);
        int at[2] = {ax(&p, 0), ax(&p, 1)};
        int big = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, a, at, -1),
                      wpk_node_real(&p, WPK_F32, 300.0));
        int even = op2(&p, WPK_BINARY_EQ, op2(&p, WPK_BINARY_MOD, at[1], wpk_node_int(&p, 2)),
                       wpk_node_int(&p, 0));
        int first = op2(&p, WPK_BINARY_LT, at[0], wpk_node_int(&p, 1));
        int either = op2(&p, WPK_BINARY_OR, wpk_node_unary(&p, WPK_UNARY_NOT, even), first);
        s->expr = wpk_node_select(&p, op2(&p, WPK_BINARY_AND, either, even),
                                  wpk_node_cast(&p, types[i], big),
                                  wpk_node_cast(&p, types[i], wpk_node_load(&p, b, at, -1)));
        check(&p, i);
        wpk_program_fini(&p);
    }
}

static void test_scalar(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 0, NULL);
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 0, NULL);
    struct wpk_stage *s = stage(&p, y);
    int la = wpk_node_load(&p, a, NULL, -1);
    s->expr = op2(&p, WPK_BINARY_MUL, la, op2(&p, WPK_BINARY_SUB, la, la));
    check(&p, 1);
    wpk_program_fini(&p);
}

/* An intermediate too large to be computed whole: points ask for boxes of it. */
static void test_points_of_large(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int64_t size = 260;
    int x = tensor(&p, "X", WPK_ROLE_INPUT, WPK_F32, 2, EXTENTS(size, size));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 2, EXTENTS(size, size));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 2, EXTENTS(size, size));
    int ij[2] = {ax(&p, 0), ax(&p, 1)};
    struct wpk_stage *s = stage(&p, t);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 1, &size);
    s->expr = op2(&p, WPK_BINARY_MUL, wpk_node_load(&p, x, INDICES(ij[0], ax(&p, 2)), -1),
                  wpk_node_load(&p, x, INDICES(ax(&p, 2), ij[1]), -1));
    s = stage(&p, y);
    reduce(s, WPK_REDUCE_SUM, WPK_F32, 2, EXTENTS(3, 3));
    s->expr = wpk_node_load(&p, t, INDICES(slide(&p, 1, 0, 2, -1), slide(&p, 1, 1, 3, -1)),
                            zero(&p, WPK_F32));
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 8);
    double *values = random_values(&rng, &p.tensors[x]);
    struct wpk_reference_args args = {.tensor = {values}};
    double *value = malloc((size_t)(2 * size * size) * sizeof *value);
    double *magnitude = value + size * size;
    assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
    check_points(&p, &args, value, magnitude);
    free(value);
    free(values);
    wpk_program_fini(&p);
}

/* Stages that the output does not need are not run: this one would read a missing input. */
static void test_dead_stage(void **state)
{
    (void)state;
    struct wpk_program p = {0};
    int a = tensor(&p, "A", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int b = tensor(&p, "B", WPK_ROLE_INPUT, WPK_F32, 1, EXTENTS(4));
    int t = tensor(&p, "T", WPK_ROLE_INTERMEDIATE, WPK_F32, 1, EXTENTS(4));
    int y = tensor(&p, "Y", WPK_ROLE_OUTPUT, WPK_F32, 1, EXTENTS(4));
    int i = ax(&p, 0);
    stage(&p, t)->expr = wpk_node_load(&p, b, &i, -1);
    stage(&p, y)->expr = wpk_node_unary(&p, WPK_UNARY_NEG, wpk_node_load(&p, a, &i, -1));
    const double values[4] = {1, 2, 3, 4};
    struct wpk_reference_args args = {.tensor = {values}};
    double got[4];
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, NULL), WPK_OK);
    assert_true(got[3] == -4.0);
    struct wpk_diag diag = {0};
    args.tensor[0] = NULL;
    assert_int_equal(wpk_reference_run(&p, &args, got, NULL, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "A"));
    wpk_program_fini(&p);
}

/* Not a test of time, which a loaded machine would fail; WPK_TIME prints what it takes. */
static void test_resnet_layer(void **state)
{
    (void)state;
    if (getenv("WPK_TIME") == NULL) {
        skip();
    }
    static const struct conv layers[] = {{28, 128, 128, 3, 1, 1, WPK_F32, WPK_F32},
                                         {7, 512, 512, 3, 1, 1, WPK_F32, WPK_F32},
                                         {56, 64, 64, 3, 1, 1, WPK_F32, WPK_F32},
                                         {224, 3, 64, 7, 2, 3, WPK_F32, WPK_F32}};
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        struct wpk_program p = {0};
        build_conv(&p, &layers[l]);
        struct wpk_rng rng;
        wpk_rng_seed(&rng, 1);
        struct wpk_reference_args args = {{0}};
        double *own[3];
        for (int t = 0; t < 3; t++) {
            args.tensor[t] = own[t] = random_values(&rng, &p.tensors[t]);
        }
        size_t elements = (size_t)wpk_tensor_elements(&p.tensors[4]);
        double *value = malloc(2 * elements * sizeof *value);
        double best[2] = {INFINITY, INFINITY};
        for (int i = 0; i < 6; i++) {
            clock_t start = clock();
            double *magnitude = i % 2 == 0 ? value + elements : NULL;
            assert_int_equal(wpk_reference_run(&p, &args, value, magnitude, NULL), WPK_OK);
            best[i % 2] = fmin(best[i % 2], (double)(clock() - start) / CLOCKS_PER_SEC);
        }
        print_message("layer %zu: %.3f s with magnitudes, %.3f s without\n", l, best[0], best[1]);
        free(value);
        for (int t = 0; t < 3; t++) {
            free(own[t]);
        }
        wpk_program_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),           cmocka_unit_test(test_padded_input),
        cmocka_unit_test(test_padding_before_outside), cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_infinite_outside),       cmocka_unit_test(test_divided_indices),
        cmocka_unit_test(test_blocked_product),        cmocka_unit_test(test_literal_transforms),
        cmocka_unit_test(test_full_reductions),        cmocka_unit_test(test_long_integer_sum),
        cmocka_unit_test(test_shared_factor),          cmocka_unit_test(test_operations),
        cmocka_unit_test(test_select_and_casts),       cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_points_of_large),        cmocka_unit_test(test_dead_stage),
        cmocka_unit_test(test_resnet_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
