/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random_program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POINTS_MAX 4000 /* of one stage */
#define SHORT_STAGES 4

struct generator {
    struct wpk_rng *rng;
    struct wpk_random_options options;
    struct wpk_program *program;
    struct wpk_stage draft; /* the stage at work; its axes are known before its expression */
    int64_t used[WPK_TENSORS_MAX];
    bool hidden[WPK_TENSORS_MAX]; /* only the stage that follows may read it */
};

static int64_t between(struct generator *g, int64_t low, int64_t high)
{
    return wpk_rng_between(g->rng, low, high);
}

static bool chance(struct generator *g, double probability)
{
    return wpk_rng_chance(g->rng, probability);
}

static enum wpk_dtype random_dtype(struct generator *g)
{
    static const enum wpk_dtype floats[] = {WPK_F64, WPK_F16, WPK_BF16};
    static const enum wpk_dtype others[] = {WPK_F64, WPK_F16, WPK_BF16, WPK_I8,  WPK_U8,
                                            WPK_I16, WPK_I32, WPK_I64,  WPK_BOOL};
    if (chance(g, 0.6)) {
        return WPK_F32;
    }
    return g->options.smooth ? floats[between(g, 0, 2)] : others[between(g, 0, 8)];
}

/* ---- given tensors */

static void add_literal(struct generator *g)
{
    double values[9];
    for (int i = 0; i < 9; i++) {
        values[i] = (double)between(g, -8, 8) / 4;
    }
    (void)wpk_program_add_literal(g->program, "L", WPK_F32, 2, (int64_t[]){3, 3}, values);
}

static void add_given(struct generator *g)
{
    int count = (int)between(g, 1, 3);
    for (int i = 0; i < count; i++) {
        char name[8];
        int64_t extent[4];
        int rank = chance(g, 0.1) ? 0 : (int)between(g, 1, 4);
        for (int d = 0; d < rank; d++) {
            extent[d] = between(g, 1, 9);
        }
        snprintf(name, sizeof name, "%c", 'A' + i);
        enum wpk_dtype dtype = random_dtype(g);
        enum wpk_role role = chance(g, 0.3) ? WPK_ROLE_CONSTANT : WPK_ROLE_INPUT;
        int id = wpk_program_add_tensor(g->program, name, role, dtype, rank, extent);
        struct wpk_tensor *tensor = &g->program->tensors[id];
        bool padded = !g->options.without_pads && chance(g, 0.15);
        for (int d = 0; d < rank && padded; d++) {
            tensor->pad_before[d] = between(g, 0, 2);
            tensor->pad_after[d] = between(g, 0, 2);
        }
    }
    if (chance(g, 0.2)) {
        add_literal(g);
    }
    if (g->options.data) { /* indices of any axis of two elements or more */
        (void)wpk_program_add_literal(g->program, "N", chance(g, 0.5) ? WPK_I32 : WPK_I64, 1,
                                      (int64_t[]){5}, (double[]){1, -2, 0, -1, 1});
    }
}

/* Some tensor that any stage may read. */
static int pick_tensor(struct generator *g)
{
    int id;
    do {
        id = (int)between(g, 0, g->program->tensor_count - 1);
    } while (g->hidden[id]);
    return id;
}

/* ---- indices */

static int binary(struct generator *g, enum wpk_binary op, int a, int b)
{
    return wpk_node_binary(g->program, op, a, b);
}

static int integer(struct generator *g, int64_t value)
{
    return wpk_node_int(g->program, value);
}

/* An axis as long as the dimension if there is one and luck will have it, else any. */
static int pick_axis(struct generator *g, int64_t extent)
{
    int first = (int)between(g, 0, g->draft.axis_count - 1);
    for (int i = 0; i < g->draft.axis_count && chance(g, 0.8); i++) {
        int axis = (first + i) % g->draft.axis_count;
        if (g->draft.axes[axis].extent == extent) {
            return axis;
        }
    }
    return first;
}

/* Each draw is a statement of its own: compilers evaluate arguments in any order. */
static int strided_window(struct generator *g, int axis)
{
    int shift = integer(g, between(g, 0, 2));
    int within = wpk_node_axis(g->program, pick_axis(g, 3));
    int step = integer(g, between(g, 1, 3));
    return binary(g, WPK_BINARY_ADD, binary(g, WPK_BINARY_MUL, step, axis),
                  binary(g, WPK_BINARY_SUB, within, shift));
}

static int finish_load(struct generator *g, int id, const int *index);

/* An element of N, in place of an index. */
static int random_data(struct generator *g, int64_t extent)
{
    int tensor = wpk_program_find_tensor(g->program, "N");
    int index = wpk_node_axis(g->program, pick_axis(g, 5));
    int data = wpk_node_cast(g->program, WPK_I64, finish_load(g, tensor, &index));
    return binary(g, WPK_BINARY_MOD, data, integer(g, extent));
}

static int random_index(struct generator *g, int64_t extent)
{
    if (g->options.data && extent > 1 && g->draft.axis_count > 0 && chance(g, 0.15)) {
        return random_data(g, extent);
    }
    if (g->draft.axis_count == 0 || chance(g, 0.05)) {
        return integer(g, between(g, 0, extent - 1));
    }
    int axis = wpk_node_axis(g->program, pick_axis(g, extent));
    switch (between(g, 0, 9)) {
    case 0:
        return strided_window(g, axis);
    case 1:
        return binary(g, WPK_BINARY_DIV, axis, integer(g, between(g, 1, 4)));
    case 2:
        return binary(g, WPK_BINARY_MOD, axis, integer(g, between(g, 1, 4)));
    case 3: /* backwards */
        return binary(g, WPK_BINARY_SUB, integer(g, extent - 1), axis);
    case 4: {
        int64_t divisor = between(g, 2, 5);
        int shifted = binary(g, WPK_BINARY_ADD, axis, integer(g, between(g, -3, 3)));
        return binary(g, WPK_BINARY_MOD, binary(g, WPK_BINARY_DIV, shifted, integer(g, 2)),
                      integer(g, divisor));
    }
    case 5:
        return binary(g, WPK_BINARY_ADD, axis, integer(g, between(g, -2, 2)));
    default:
        return axis;
    }
}

/* A load, with a value for outside where it can leave the tensor. */
static int finish_load(struct generator *g, int id, const int *index)
{
    struct wpk_tensor *tensor = &g->program->tensors[id];
    int outside = -1;
    g->used[id]++;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t low, high;
        wpk_index_range(g->program, &g->draft, index[d], &low, &high);
        if (low < -tensor->pad_before[d] || high >= tensor->extent[d] + tensor->pad_after[d]) {
            outside = 0;
        }
    }
    if (outside == 0) {
        double value = chance(g, 0.7) ? 0 : (double)between(g, -6, 6) / 4;
        bool maximum = g->draft.reduction == WPK_REDUCE_MAX && chance(g, 0.3);
        double least = tensor->dtype == WPK_F16 ? -65504 : -1e30;
        value = wpk_dtype_is_float(tensor->dtype) && maximum ? least : value;
        outside = wpk_node_real(g->program, tensor->dtype, value);
    }
    return wpk_node_load(g->program, id, index, outside);
}

static int random_load(struct generator *g, int id)
{
    int index[WPK_RANK_MAX];
    for (int d = 0; d < g->program->tensors[id].rank; d++) {
        index[d] = random_index(g, g->program->tensors[id].extent[d]);
    }
    return finish_load(g, id, index);
}

/* ---- products, as algorithms are derived for */

/* An axis not used so far that fits the dimension, if there is one and luck will have it. */
static int fresh_axis(struct generator *g, int64_t extent, bool *used)
{
    int count = g->draft.axis_count, first = (int)between(g, 0, count - 1);
    for (int i = 0; i < count; i++) {
        int axis = (first + i) % count;
        if (!used[axis] && (g->draft.axes[axis].extent <= extent || chance(g, 0.1))) {
            used[axis] = true;
            return axis;
        }
    }
    return first;
}

/* One operand: a dimension indexed by the window, the others by axes. */
static int random_operand(struct generator *g, int window, bool *used)
{
    int id = pick_tensor(g), index[WPK_RANK_MAX];
    int rank = g->program->tensors[id].rank, at = rank > 0 ? (int)between(g, 0, rank - 1) : 0;
    for (int d = 0; d < rank; d++) {
        int64_t extent = g->program->tensors[id].extent[d];
        index[d] = d == at           ? window
                   : chance(g, 0.05) ? random_index(g, extent)
                                     : wpk_node_axis(g->program, fresh_axis(g, extent, used));
    }
    return finish_load(g, id, index);
}

/* sum(r) data[stride * y + r - shift, ..] * weight[r, ..] */
static int random_product(struct generator *g)
{
    int y = (int)between(g, 0, g->draft.rank - 1);
    int r = (int)between(g, g->draft.rank, g->draft.axis_count - 1);
    bool by_data[WPK_AXES_MAX] = {false}, by_weight[WPK_AXES_MAX] = {false};
    int64_t stride = chance(g, 0.6) ? 1 : between(g, 2, 3);
    by_data[y] = by_data[r] = by_weight[y] = by_weight[r] = true;
    int reduced = wpk_node_axis(g->program, r);
    int window = binary(g, WPK_BINARY_ADD,
                        binary(g, WPK_BINARY_MUL, integer(g, stride), wpk_node_axis(g->program, y)),
                        binary(g, WPK_BINARY_SUB, reduced, integer(g, between(g, 0, 2))));
    int data = random_operand(g, window, by_data);
    return binary(g, WPK_BINARY_MUL, data, random_operand(g, reduced, by_weight));
}

/* ---- expressions */

static int random_expr(struct generator *g, int depth);

static int random_leaf(struct generator *g)
{
    int kind = (int)between(g, 0, 11);
    if (kind == 0) {
        return wpk_node_real(g->program, WPK_F32, (double)between(g, -20, 20) / 8);
    }
    if (kind == 1) {
        return integer(g, between(g, -3, 3));
    }
    if (kind == 2 && g->draft.axis_count > 0) {
        return wpk_node_axis(g->program, pick_axis(g, 0));
    }
    return random_load(g, pick_tensor(g));
}

static int unary(struct generator *g, enum wpk_unary op, int a)
{
    return wpk_node_unary(g->program, op, a);
}

/* |x| + 1: what may be divided by and taken the logarithm of */
static int positive(struct generator *g, int a)
{
    return binary(g, WPK_BINARY_ADD, unary(g, WPK_UNARY_ABS, a), integer(g, 1));
}

static int random_function(struct generator *g, int a)
{
    static const enum wpk_unary tame[] = {WPK_UNARY_NEG,     WPK_UNARY_TANH,  WPK_UNARY_ERF,
                                          WPK_UNARY_SIGMOID, WPK_UNARY_ABS,   WPK_UNARY_SIN,
                                          WPK_UNARY_COS,     WPK_UNARY_FLOOR, WPK_UNARY_CEIL,
                                          WPK_UNARY_ROUND,   WPK_UNARY_TRUNC};
    int kind = (int)between(g, 0, g->options.smooth ? 10 : 13);
    switch (kind) {
    case 0:
        return unary(g, WPK_UNARY_EXP, binary(g, WPK_BINARY_MIN, a, integer(g, 2)));
    case 1:
        return unary(g, WPK_UNARY_LOG, positive(g, a));
    case 2:
        return unary(g, WPK_UNARY_SQRT, positive(g, a));
    case 3:
        return unary(g, WPK_UNARY_RSQRT, positive(g, a));
    default:
        return unary(g, tame[kind - 4], a);
    }
}

/* The bound that an axis is compared with: another axis, as in a causal mask, or a number. */
static int random_bound(struct generator *g)
{
    return chance(g, 0.5) ? wpk_node_axis(g->program, pick_axis(g, 0))
                          : integer(g, between(g, 0, 6));
}

static int random_select(struct generator *g, int depth)
{
    static const enum wpk_binary compare[] = {WPK_BINARY_LT, WPK_BINARY_LE, WPK_BINARY_EQ,
                                              WPK_BINARY_NE};
    /* a condition on an axis is exact, whatever the values */
    bool on_axis = g->draft.axis_count > 0 && (g->options.smooth || chance(g, 0.5));
    if (g->options.smooth && !on_axis) {
        return random_expr(g, depth - 1);
    }
    int left = on_axis ? wpk_node_axis(g->program, pick_axis(g, 0)) : random_expr(g, depth - 1);
    int right = on_axis ? random_bound(g) : random_expr(g, depth - 1);
    int condition = binary(g, compare[between(g, 0, 3)], left, right);
    if (chance(g, 0.3)) {
        int other = binary(g, WPK_BINARY_LT, left, integer(g, 1));
        condition = binary(g, chance(g, 0.5) ? WPK_BINARY_AND : WPK_BINARY_OR, condition, other);
    }
    if (chance(g, 0.2)) {
        condition = unary(g, WPK_UNARY_NOT, condition);
    }
    int yes = random_expr(g, depth - 1);
    int no = random_expr(g, depth - 1);
    return wpk_node_select(g->program, condition, yes, no);
}

/* A mask of the whole expression by its axes: of a sum's terms, of what a maximum is taken of, or
 * of a reduction that the stage reads. */
static int mask(struct generator *g, int expr)
{
    if (g->draft.axis_count == 0) {
        return expr;
    }
    int axis = wpk_node_axis(g->program, pick_axis(g, 0));
    int bound = random_bound(g);
    int condition = binary(g, chance(g, 0.5) ? WPK_BINARY_LE : WPK_BINARY_LT, axis, bound);
    int masked = wpk_node_real(g->program, WPK_F32, chance(g, 0.7) ? 0 : -8);
    return wpk_node_select(g->program, condition, expr, masked);
}

static int random_binary(struct generator *g, int depth)
{
    int a = random_expr(g, depth - 1);
    int b = random_expr(g, depth - 1);
    switch (between(g, 0, g->options.smooth ? 6 : 8)) {
    case 0:
        return binary(g, WPK_BINARY_ADD, a, b);
    case 1:
        return binary(g, WPK_BINARY_SUB, a, b);
    case 2:
        return binary(g, WPK_BINARY_DIV, a, positive(g, b));
    case 3:
        return binary(g, WPK_BINARY_MIN, a, b);
    case 4:
        return binary(g, WPK_BINARY_MAX, a, b);
    case 7:
        return binary(g, WPK_BINARY_MOD, a, positive(g, b));
    case 8:
        return wpk_node_cast(g->program, random_dtype(g), a);
    default:
        return binary(g, WPK_BINARY_MUL, a, b);
    }
}

static int random_expr(struct generator *g, int depth)
{
    if (depth <= 0 || chance(g, 0.15)) {
        return random_leaf(g);
    }
    int kind = (int)between(g, 0, 9);
    return kind == 0   ? random_select(g, depth)
           : kind <= 2 ? random_function(g, random_expr(g, depth - 1))
                       : random_binary(g, depth);
}

/* ---- stages */

static void draft_axes(struct generator *g)
{
    static const enum wpk_reduction reductions[] = {WPK_REDUCE_SUM, WPK_REDUCE_SUM, WPK_REDUCE_MAX,
                                                    WPK_REDUCE_MIN, WPK_REDUCE_PROD};
    int64_t points = 1;
    int rank = (int)between(g, 0, 4);
    int reduced = chance(g, 0.5) ? (int)between(g, 1, 3) : 0;
    memset(&g->draft, 0, sizeof g->draft);
    for (int a = 0; a < rank + reduced; a++) {
        char name[8];
        int64_t extent = between(g, 1, 9);
        extent = extent * points > POINTS_MAX ? 1 : extent;
        points *= extent;
        snprintf(name, sizeof name, "%c", (a < rank ? 'i' : 'r') + (a < rank ? a : a - rank));
        (void)wpk_stage_add_reduction_axis(&g->draft, name, extent);
    }
    g->draft.rank = rank;
    g->draft.reduction = reduced > 0 ? reductions[between(g, 0, 4)] : WPK_REDUCE_NONE;
    if (reduced > 0 && g->options.products && chance(g, 0.7)) {
        g->draft.reduction = WPK_REDUCE_SUM;
    }
}

/* Every tensor not used so far, added to the expression of the last stage. */
static int use_all(struct generator *g, int expr)
{
    for (int t = 0; t < g->program->tensor_count; t++) {
        if (g->used[t] == 0) {
            expr = binary(g, WPK_BINARY_ADD, expr, random_load(g, t));
        }
    }
    return expr;
}

static void add_stage(struct generator *g, int number, bool last)
{
    int64_t extent[WPK_RANK_MAX];
    const char *names[WPK_RANK_MAX];
    char name[8];
    draft_axes(g);
    for (int a = 0; a < g->draft.rank; a++) {
        extent[a] = g->draft.axes[a].extent;
        names[a] = g->draft.axes[a].name;
    }
    bool product = g->options.products && g->draft.reduction == WPK_REDUCE_SUM &&
                   g->draft.rank > 0 && chance(g, 0.9);
    int expr = product ? random_product(g) : random_expr(g, (int)between(g, 0, 3));
    expr = last ? use_all(g, expr) : expr;
    expr = chance(g, 0.2) ? mask(g, expr) : expr;
    snprintf(name, sizeof name, last ? "Y" : "T%d", number);
    bool given_out = last || (g->options.outputs && chance(g, 0.4));
    int output = wpk_program_add_tensor(g->program, name,
                                        given_out ? WPK_ROLE_OUTPUT : WPK_ROLE_INTERMEDIATE,
                                        random_dtype(g), g->draft.rank, extent);
    int id = wpk_program_add_stage(g->program, output, names);
    WPK_ASSERT(id >= 0);
    struct wpk_stage *stage = &g->program->stages[id];
    enum wpk_dtype dtype = g->program->tensors[output].dtype;
    for (int a = g->draft.rank; a < g->draft.axis_count; a++) {
        (void)wpk_stage_add_reduction_axis(stage, g->draft.axes[a].name, g->draft.axes[a].extent);
    }
    stage->reduction = g->draft.reduction;
    if (stage->reduction != WPK_REDUCE_NONE) {
        dtype = chance(g, 0.8) ? WPK_F32 : random_dtype(g);
        stage->accumulator = dtype;
    }
    stage->expr = wpk_node_cast(g->program, dtype, expr);
}

/* Long programs keep their values small: the last stage's are cut off, and it is the cut ones that
 * later stages read. */
static void add_limits(struct generator *g, int number)
{
    int source = g->program->tensor_count - 1, index[WPK_RANK_MAX];
    const struct wpk_tensor *tensor = &g->program->tensors[source];
    char name[8];
    snprintf(name, sizeof name, "S%d", number);
    int output = wpk_program_add_tensor(g->program, name, WPK_ROLE_INTERMEDIATE, tensor->dtype,
                                        tensor->rank, tensor->extent);
    int id = wpk_program_add_stage(g->program, output, NULL);
    WPK_ASSERT(id >= 0);
    for (int d = 0; d < g->program->tensors[source].rank; d++) {
        index[d] = wpk_node_axis(g->program, d);
    }
    int value = wpk_node_load(g->program, source, index, -1);
    value =
        binary(g, WPK_BINARY_MAX, binary(g, WPK_BINARY_MIN, value, integer(g, 4)), integer(g, -4));
    enum wpk_dtype dtype = g->program->tensors[output].dtype;
    g->program->stages[id].expr = wpk_node_cast(g->program, dtype, value);
    g->used[source]++;
    g->hidden[source] = true;
}

void wpk_random_program(struct wpk_rng *rng, const struct wpk_random_options *options,
                        struct wpk_program *out)
{
    struct generator g = {.rng = rng, .program = out};
    struct wpk_diag diag = {0};
    memset(out, 0, sizeof *out);
    if (options != NULL) {
        g.options = *options;
    }
    bool is_long = g.options.stages_max > SHORT_STAGES;
    add_given(&g);
    int count = (int)between(&g, 1, is_long ? g.options.stages_max : SHORT_STAGES);
    while (out->stage_count < count) {
        int number = out->stage_count;
        add_stage(&g, number, number == count - 1);
        if (is_long && out->stage_count + 1 < count) {
            add_limits(&g, number);
        }
    }
    wpk_err err = wpk_program_validate(out, &diag);
    if (err != WPK_OK) {
        fprintf(stderr, "random program: %s\n", diag.text);
    }
    WPK_ASSERT(err == WPK_OK);
}
