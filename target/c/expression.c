/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes become values. A node that is used several times is computed once at a point.
 *
 * A load that may leave its tensor is a branch around what reads it: for all lanes at once if they
 * are inside or the branch is about no lane, else lane by lane. An inlined stage is read by
 * computing it. */
#include "ir/instruction/instruction.h"
#include "target/c/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wpk_c_point_begin(struct wpk_c_kernel *k, const struct wpk_stage *stage, int width,
                       struct wpk_c_point *point)
{
    point->stage = stage;
    point->width = width;
    point->serial = ++k->serial_count;
}

static void mark(struct wpk_c_kernel *k, int id)
{
    const struct wpk_node *node = &k->program->nodes[id];
    int count = node->kind == WPK_NODE_SELECT   ? 3
                : node->kind == WPK_NODE_BINARY ? 2
                : node->kind == WPK_NODE_UNARY  ? 1
                                                : node->kind == WPK_NODE_CAST;
    if (k->used[id]) {
        return;
    }
    k->used[id] = true;
    for (int i = 0; i < count; i++) {
        mark(k, node->arg[i]);
    }
    int writer = node->kind == WPK_NODE_LOAD ? wpk_program_writer(k->program, node->tensor) : -1;
    if (writer >= 0 && k->nest->entry[k->entry_of[writer]].inlined) {
        mark(k, k->program->stages[writer].expr);
    }
}

void wpk_c_find_used(struct wpk_c_kernel *k, const struct wpk_stage *stage)
{
    memset(k->used, 0, (size_t)k->program->node_count * sizeof(*k->used));
    mark(k, stage->expr);
}

/* ---- indices */

static bool index_of_binary(struct wpk_c_kernel *k, const struct wpk_node *node,
                            const struct wpk_form *a, const struct wpk_form *b,
                            struct wpk_form *out)
{
    switch (node->op) {
    case WPK_BINARY_ADD:
        *out = wpk_form_add(&k->forms, a, b, 1);
        return true;
    case WPK_BINARY_SUB:
        *out = wpk_form_add(&k->forms, a, b, -1);
        return true;
    case WPK_BINARY_MUL:
        *out = wpk_form_is_number(a) ? wpk_form_scale(b, a->constant, 0)
                                     : wpk_form_scale(a, b->constant, 0);
        return wpk_form_is_number(a) || wpk_form_is_number(b);
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD:
        if (!wpk_form_is_number(b) || b->constant <= 0) {
            return false;
        }
        *out = node->op == WPK_BINARY_DIV ? wpk_form_divide(&k->forms, a, b->constant)
                                          : wpk_form_modulo(&k->forms, a, b->constant);
        return true;
    default:
        return false;
    }
}

/* The integer that an index reads: a variable, or a number. */
static struct wpk_form index_of_data(struct wpk_c_kernel *k, const struct wpk_c_point *point,
                                     int id)
{
    char name[WPK_FORM_NAME_MAX];
    k->in_index = false;
    struct wpk_c_value value = wpk_c_evaluate(k, point, id);
    k->in_index = true;
    if (value.kind == WPK_C_NUMBER) { /* of a literal */
        return wpk_form_number((int64_t)value.number);
    }
    snprintf(name, sizeof(name), "t%d", value.name);
    return value.kind == WPK_C_INDEX ? value.form : wpk_form_data(&k->forms, name, value.width > 1);
}

bool wpk_c_index(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id,
                 struct wpk_form *out)
{
    const struct wpk_node *node = &k->program->nodes[id];
    struct wpk_form a, b;
    if (k->in_index && (node->kind == WPK_NODE_LOAD || node->kind == WPK_NODE_CAST)) {
        *out = index_of_data(k, point, id);
        return true;
    }
    if (node->kind == WPK_NODE_AXIS) {
        *out = point->axis[node->axis];
        return true;
    }
    if (node->kind == WPK_NODE_LITERAL) {
        *out = wpk_form_number(node->integer);
        return node->dtype == WPK_I64;
    }
    return node->kind == WPK_NODE_BINARY && node->dtype == WPK_I64 &&
           wpk_c_index(k, point, node->arg[0], &a) && wpk_c_index(k, point, node->arg[1], &b) &&
           index_of_binary(k, node, &a, &b, out);
}

/* ---- loads */

/* A dimension of a load that may leave [first, last]. */
struct limit {
    struct wpk_form index;
    int64_t first, last;
};

struct limits {
    struct limit uniform[WPK_RANK_MAX], lanes[WPK_RANK_MAX];
    int uniform_count, lane_count;
    bool even;    /* the lanes' indices are at equal distances */
    bool outside; /* the load reads nothing of the tensor */
};

static void find_limits(struct wpk_c_kernel *k, const struct wpk_tensor *t,
                        const struct wpk_form *index, struct limits *out)
{
    *out = (struct limits){.even = true};
    for (int d = 0; d < t->rank; d++) {
        struct limit limit = {index[d], -t->pad_before[d], t->extent[d] + t->pad_after[d] - 1};
        int64_t low = 0, high = 0;
        wpk_form_range(&k->forms, &index[d], &low, &high);
        out->outside = out->outside || high < limit.first || low > limit.last;
        if (low >= limit.first && high <= limit.last) {
            continue;
        }
        if (wpk_form_is_uniform(&k->forms, &index[d])) {
            out->uniform[out->uniform_count++] = limit;
        } else {
            out->lanes[out->lane_count++] = limit;
            out->even = out->even && wpk_form_is_even(&k->forms, &index[d]);
        }
    }
}

static struct wpk_c_value read_inside(struct wpk_c_kernel *k, int tensor,
                                      const struct wpk_form *index, int width)
{
    int stage = wpk_program_writer(k->program, tensor);
    if (stage < 0 || !k->nest->entry[k->entry_of[stage]].inlined) {
        return wpk_c_storage_read(k, tensor, index, width);
    }
    struct wpk_c_point point;
    bool uniform = true;
    for (int d = 0; d < k->program->tensors[tensor].rank; d++) {
        point.axis[d] = index[d];
        uniform = uniform && wpk_form_is_uniform(&k->forms, &index[d]);
    }
    wpk_c_point_begin(k, &k->program->stages[stage], uniform ? 1 : width, &point);
    return wpk_c_evaluate(k, &point, point.stage->expr);
}

static void put_limit(struct wpk_c_kernel *k, const struct limit *limit, bool low, bool high,
                      const char *before)
{
    if (low) {
        wpk_c_put(&k->text, "%s", before);
        wpk_c_put_form(&k->text, &limit->index);
        wpk_c_put(&k->text, " >= %" PRId64, limit->first);
    }
    if (high) {
        wpk_c_put(&k->text, "%s", low ? " && " : before);
        wpk_c_put_form(&k->text, &limit->index);
        wpk_c_put(&k->text, " <= %" PRId64, limit->last);
    }
}

/* "if (all uniform limits are kept) {" */
static void open_branch(struct wpk_c_kernel *k, const struct limit *limits, int count)
{
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "if (");
    for (int i = 0; i < count; i++) {
        put_limit(k, &limits[i], true, true, i > 0 ? " && " : "");
    }
    wpk_c_put(&k->text, ") {\n");
    k->text.depth++;
}

/* "for each lane: if it is inside, read it" */
static void read_lanes(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                       const struct limits *limits, const struct wpk_c_value *result)
{
    char name[WPK_FORM_NAME_MAX];
    int width = k->forms.width, rank = k->program->tensors[tensor].rank;
    snprintf(name, sizeof(name), "lane%d", k->text.name_count++);
    struct wpk_form lane =
        wpk_form_atom(wpk_form_variable(&k->forms, name, 0, result->width - 1), 1);
    struct wpk_form at[WPK_RANK_MAX];
    struct limit limit[WPK_RANK_MAX];
    wpk_c_line(&k->text, "for (i64 %s = 0; %s < %d; %s++) {", name, name, result->width, name);
    for (int d = 0; d < rank; d++) {
        at[d] = wpk_form_at_lane(&k->forms, &index[d], &lane);
    }
    for (int i = 0; i < limits->lane_count; i++) {
        limit[i] = limits->lanes[i];
        limit[i].index = wpk_form_at_lane(&k->forms, &limit[i].index, &lane);
    }
    k->forms.width = 1;
    open_branch(k, limit, limits->lane_count);
    struct wpk_c_value value = read_inside(k, tensor, at, 1);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "t%d[%s] = %s", result->name, name, result->dtype == WPK_BOOL ? "-" : "");
    wpk_c_put_value(&k->text, &value, 1);
    wpk_c_end(&k->text);
    wpk_c_line(&k->text, "}");
    wpk_c_line(&k->text, "}");
    k->forms.width = width;
}

/* "if (the first and the last lane are inside) {" */
static void open_whole(struct wpk_c_kernel *k, const struct limits *limits, int width)
{
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "if (");
    for (int i = 0; i < limits->lane_count; i++) {
        for (int end = 0; end < 2; end++) {
            struct limit limit = limits->lanes[i];
            bool rises = limit.index.lane > 0;
            struct wpk_form lane = wpk_form_number(end == 0 ? 0 : width - 1);
            limit.index = wpk_form_at_lane(&k->forms, &limit.index, &lane);
            put_limit(k, &limit, rises == (end == 0), rises != (end == 0),
                      i + end > 0 ? " && " : "");
        }
    }
    wpk_c_put(&k->text, ") {\n");
    k->text.depth++;
}

static struct wpk_c_value read_limited(struct wpk_c_kernel *k, int tensor,
                                       const struct wpk_form *index, const struct limits *limits,
                                       const struct wpk_c_value *outside, int width)
{
    bool lanes = limits->lane_count > 0;
    for (int d = 0; d < k->program->tensors[tensor].rank; d++) {
        lanes = lanes || !wpk_form_is_uniform(&k->forms, &index[d]);
    }
    struct wpk_c_value result = {
        .kind = WPK_C_NAME, .dtype = outside->dtype, .width = lanes ? width : 1, .mask_bytes = 4};
    result.name = k->text.name_count++;
    wpk_c_indent(&k->text);
    wpk_c_put_type(&k->text, wpk_c_value_type(&result), result.width);
    wpk_c_put(&k->text, " t%d = ", result.name);
    wpk_c_put_value(&k->text, outside, result.width);
    wpk_c_end(&k->text);
    if (limits->uniform_count > 0) {
        open_branch(k, limits->uniform, limits->uniform_count);
    }
    if (limits->lane_count > 0 && limits->even) {
        open_whole(k, limits, width);
    }
    if (limits->lane_count == 0 || limits->even) {
        struct wpk_c_value value = read_inside(k, tensor, index, width);
        wpk_c_indent(&k->text);
        wpk_c_put(&k->text, "t%d = ", result.name);
        if (result.dtype == WPK_BOOL && result.width > 1) {
            wpk_c_put_mask(&k->text, &value, result.width, result.mask_bytes);
        } else {
            wpk_c_put_value(&k->text, &value, result.width);
        }
        wpk_c_end(&k->text);
    }
    if (limits->lane_count > 0 && limits->even) {
        wpk_c_line(&k->text, "} else {");
    }
    if (limits->lane_count > 0) {
        read_lanes(k, tensor, index, limits, &result);
    }
    if (limits->lane_count > 0 && limits->even) {
        wpk_c_line(&k->text, "}");
    }
    if (limits->uniform_count > 0) {
        wpk_c_line(&k->text, "}");
    }
    return result;
}

static struct wpk_c_value load(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id)
{
    const struct wpk_node *node = &k->program->nodes[id];
    const struct wpk_tensor *t = &k->program->tensors[node->tensor];
    struct wpk_form index[WPK_RANK_MAX];
    bool numbers = true;
    int64_t element = 0;
    for (int d = 0; d < t->rank; d++) {
        bool outer = k->in_index;
        k->in_index = true;
        bool is_index = wpk_c_index(k, point, node->index[d], &index[d]);
        k->in_index = outer;
        if (!is_index) {
            wpk_c_refuse(k, "an index is no sum of axes");
            return wpk_c_real(node->dtype, 0);
        }
        numbers = numbers && wpk_form_is_number(&index[d]);
        element = element * t->extent[d] + index[d].constant;
    }
    struct limits limits = {.even = true};
    struct wpk_c_value outside;
    if (node->outside >= 0) {
        find_limits(k, t, index, &limits);
        outside = wpk_c_evaluate(k, point, node->outside);
    }
    if (limits.outside) {
        return outside;
    }
    if (t->role == WPK_ROLE_LITERAL && numbers) {
        return wpk_c_real(t->dtype, t->values[element]);
    }
    if (limits.uniform_count + limits.lane_count > 0) {
        return read_limited(k, node->tensor, index, &limits, &outside, point->width);
    }
    return read_inside(k, node->tensor, index, point->width);
}

bool wpk_c_load_indices(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id,
                        struct wpk_form *index)
{
    const struct wpk_node *node = &k->program->nodes[id];
    const struct wpk_tensor *t = &k->program->tensors[node->tensor];
    struct limits limits = {.even = true};
    for (int d = 0; d < t->rank; d++) {
        if (!wpk_c_index(k, point, node->index[d], &index[d])) {
            return false;
        }
    }
    if (node->outside >= 0) {
        find_limits(k, t, index, &limits);
    }
    int writer = wpk_program_writer(k->program, node->tensor);
    bool zero = limits.uniform_count == 0 || wpk_load_is_zero_outside(k->program, node);
    return t->role != WPK_ROLE_LITERAL && zero && limits.lane_count == 0 &&
           (writer < 0 || !k->nest->entry[k->entry_of[writer]].inlined);
}

int wpk_c_open_inside(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id)
{
    const struct wpk_node *node = &k->program->nodes[id];
    struct wpk_form index[WPK_RANK_MAX];
    struct limits limits = {.even = true};
    if (node->outside < 0 || !wpk_c_load_indices(k, point, id, index)) {
        return 0;
    }
    find_limits(k, &k->program->tensors[node->tensor], index, &limits);
    if (limits.uniform_count > 0) {
        open_branch(k, limits.uniform, limits.uniform_count);
    }
    return limits.uniform_count > 0;
}

/* ---- nodes */

static bool is_rounded(const struct wpk_c_kernel *k, int id)
{
    const struct wpk_node *node = &k->program->nodes[id];
    return node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_ROUND && node->dtype == WPK_F32;
}

/* The byte that the sum of a rounded float and a byte has; -1: it is none. */
static int find_shift(const struct wpk_c_kernel *k, const struct wpk_node *sum, int *rounded)
{
    const struct wpk_node *nodes = k->program->nodes;
    bool adds = sum->kind == WPK_NODE_BINARY && sum->op == WPK_BINARY_ADD;
    for (int i = 0; adds && i < 2; i++) {
        const struct wpk_node *cast = &nodes[sum->arg[i]];
        enum wpk_dtype of = cast->kind == WPK_NODE_CAST ? nodes[cast->arg[0]].dtype : WPK_F32;
        if ((of == WPK_U8 || of == WPK_I8) && is_rounded(k, sum->arg[1 - i])) {
            *rounded = sum->arg[1 - i];
            return cast->arg[0];
        }
    }
    return -1;
}

/* A quantizer: a float is rounded, shifted by a byte or not, and becomes a byte. Limits before the
 * rounding are the same as behind it, and what is within them is rounded by one addition. */
static bool quantize(struct wpk_c_kernel *k, const struct wpk_c_point *point,
                     const struct wpk_node *node, struct wpk_c_value *out)
{
    bool narrows = node->kind == WPK_NODE_CAST && (node->dtype == WPK_U8 || node->dtype == WPK_I8);
    if (!narrows || point->width == 1 || !is_rounded(k, node->arg[0])) {
        return false;
    }
    int rounded = node->arg[0];
    int shift = find_shift(k, &k->program->nodes[k->program->nodes[rounded].arg[0]], &rounded);
    struct wpk_c_value value = wpk_c_evaluate(k, point, k->program->nodes[rounded].arg[0]), by;
    if (shift >= 0) {
        by = wpk_c_evaluate(k, point, shift);
    }
    *out = wpk_c_round_to_bytes(k, node->dtype, &value, shift >= 0 ? &by : NULL);
    return true;
}

/* Half of a byte as a float, with a number added: one of sixteen in a register. */
static bool pick_half(struct wpk_c_kernel *k, const struct wpk_c_point *point,
                      const struct wpk_node *node, struct wpk_c_value *out)
{
    const struct wpk_node *nodes = k->program->nodes, *sum = &nodes[node->arg[0]];
    enum wpk_instruction_part part;
    int id = node->arg[0];
    int64_t first = 0;
    if (node->kind != WPK_NODE_CAST || node->dtype != WPK_F32 || point->width != WPK_C_PICKS ||
        k->vector_bytes < WPK_C_PICKS * (int)sizeof(float)) {
        return false;
    }
    if (sum->kind == WPK_NODE_BINARY && nodes[sum->arg[1]].kind == WPK_NODE_LITERAL &&
        (sum->op == WPK_BINARY_ADD || sum->op == WPK_BINARY_SUB)) {
        first = nodes[sum->arg[1]].integer * (sum->op == WPK_BINARY_ADD ? 1 : -1);
        id = sum->arg[0];
    }
    int byte = wpk_instruction_part_of(k->program, id, &part);
    struct wpk_c_value index = wpk_c_evaluate(k, point, part == WPK_PART_LOW ? byte : id);
    bool picks = part != WPK_PART_WHOLE && index.kind == WPK_C_NAME && index.width == point->width;
    if (picks) {
        *out = wpk_c_begin(&k->text, WPK_F32, index.width);
        wpk_c_put_function(&k->text, WPK_C_PICK, WPK_C_F32, index.width);
        wpk_c_put(&k->text, "(t%d, %" PRId64 ")", index.name, first);
        wpk_c_end(&k->text);
    }
    return picks;
}

static struct wpk_c_value compute(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id)
{
    const struct wpk_node *node = &k->program->nodes[id];
    struct wpk_c_value arg[3], quantized;
    int count = node->kind == WPK_NODE_SELECT   ? 3
                : node->kind == WPK_NODE_BINARY ? 2
                : node->kind == WPK_NODE_UNARY  ? 1
                                                : node->kind == WPK_NODE_CAST;
    if (quantize(k, point, node, &quantized) || pick_half(k, point, node, &quantized)) {
        return quantized;
    }
    for (int i = 0; i < count; i++) {
        arg[i] = wpk_c_evaluate(k, point, node->arg[i]);
    }
    switch (node->kind) {
    case WPK_NODE_LITERAL: {
        struct wpk_form form = wpk_form_number(node->integer);
        return wpk_dtype_is_float(node->dtype) ? wpk_c_real(node->dtype, node->value)
                                               : wpk_c_integer(node->dtype, &form);
    }
    case WPK_NODE_AXIS:
        return wpk_c_integer(WPK_I64, &point->axis[node->axis]);
    case WPK_NODE_LOAD:
        return load(k, point, id);
    case WPK_NODE_UNARY:
        return wpk_c_unary(k, node, &arg[0]);
    case WPK_NODE_BINARY:
        return wpk_c_binary(k, (enum wpk_binary)node->op, &arg[0], &arg[1]);
    case WPK_NODE_SELECT:
        return wpk_c_select(k, node->dtype, &arg[0], &arg[1], &arg[2]);
    default:
        return wpk_c_cast(k, node->dtype, &arg[0]);
    }
}

struct wpk_c_value wpk_c_evaluate(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id)
{
    struct wpk_form form;
    if (k->known[id].serial == point->serial) {
        return k->known[id].value;
    }
    struct wpk_c_value value =
        wpk_c_index(k, point, id, &form) ? wpk_c_integer(WPK_I64, &form) : compute(k, point, id);
    k->known[id] = (struct wpk_c_known){.serial = point->serial, .value = value};
    return value;
}
