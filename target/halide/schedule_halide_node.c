/* SPDX-License-Identifier: Apache-2.0 */
/* Names and expressions of a schedule's Halide program. */
#include "target/halide/schedule_halide.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names */

const char *wpk_halide_type(enum wpk_dtype dtype)
{
    static const char *const names[WPK_DTYPE_COUNT] = {
        [WPK_F32] = "float",       [WPK_F64] = "double",  [WPK_F16] = "float16_t",
        [WPK_BF16] = "bfloat16_t", [WPK_I8] = "int8_t",   [WPK_U8] = "uint8_t",
        [WPK_I16] = "int16_t",     [WPK_I32] = "int32_t", [WPK_I64] = "int64_t",
        [WPK_BOOL] = "bool",
    };
    return names[dtype];
}

const char *wpk_halide_stage_name(const struct wpk_halide_writer *w, const struct wpk_stage *stage)
{
    return w->program->tensors[stage->output].name;
}

const char *wpk_halide_loop_name(const char *name, char *out)
{
    size_t size = strlen(name) + 1;
    for (size_t i = 0; i < size; i++) {
        out[i] = name[i] == '.' ? '$' : name[i];
    }
    return out;
}

void wpk_halide_put_variable(const struct wpk_halide_writer *w, const char *name)
{
    bool hides = wpk_program_find_tensor(w->program, name) >= 0;
    char known[WPK_LOOP_NAME_MAX];
    wpk_buf_printf(w->out, "%s%s", wpk_halide_loop_name(name, known), hides ? "_" : "");
}

bool wpk_halide_is_reduction_loop(const struct wpk_halide_writer *w, const struct wpk_stage *stage,
                                  const char *name)
{
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (strcmp(stage->axes[a].name, name) == 0) {
            return true;
        }
    }
    for (int i = 0; i < w->directives.count; i++) {
        const struct wpk_directive *d = &w->directives.item[i];
        bool cuts =
            d->kind == WPK_DIRECTIVE_SPLIT && d->update && &w->program->stages[d->stage] == stage;
        /* the parts of a loop have other names than itself: this ends */
        if (cuts && (strcmp(d->loop[1], name) == 0 || strcmp(d->loop[2], name) == 0)) {
            return strcmp(d->loop[0], name) != 0 &&
                   wpk_halide_is_reduction_loop(w, stage, d->loop[0]);
        }
    }
    return false;
}

void wpk_halide_put_loop(const struct wpk_halide_writer *w, const struct wpk_stage *stage,
                         bool update, const char *name)
{
    if (update && wpk_halide_is_reduction_loop(w, stage, name)) {
        char known[WPK_LOOP_NAME_MAX];
        wpk_buf_printf(w->out, "%s_%s", wpk_halide_stage_name(w, stage),
                       wpk_halide_loop_name(name, known));
    } else {
        wpk_halide_put_variable(w, name);
    }
}

/* ---- expressions */

void wpk_halide_put_real(struct wpk_halide_writer *w, enum wpk_dtype dtype, double value)
{
    char text[40];
    if (isinf(value)) {
        wpk_buf_printf(w->out, "cast<%s>(%sstd::numeric_limits<float>::infinity())",
                       wpk_halide_type(dtype), value < 0 ? "-" : "");
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    if (dtype == WPK_F32 && strtof(text, NULL) == (float)value) {
        snprintf(text, sizeof(text), "%.9g", value);
    }
    const char *point = strpbrk(text, ".en") == NULL ? ".0" : "";
    if (dtype == WPK_F32 || dtype == WPK_F64) {
        wpk_buf_printf(w->out, "%s%s%s", text, point, dtype == WPK_F64 ? "" : "f");
    } else {
        wpk_buf_printf(w->out, "cast<%s>(%s%sf)", wpk_halide_type(dtype), text, point);
    }
}

/* Wide literals: C++ has no literal for the least number of a type. */
static void put_integer(struct wpk_halide_writer *w, int64_t value)
{
    if (value >= -INT32_MAX && value <= INT32_MAX) {
        wpk_buf_printf(w->out, "%" PRId64, value);
    } else {
        wpk_buf_printf(w->out, "Expr(INT64_C(%" PRId64 ")%s)", value < 0 ? value + 1 : value,
                       value < 0 ? " - 1" : "");
    }
}

static void put_literal(struct wpk_halide_writer *w, const struct wpk_node *node)
{
    if (wpk_dtype_is_float(node->dtype)) {
        wpk_halide_put_real(w, node->dtype, node->value);
    } else if (node->dtype == WPK_I64) {
        put_integer(w, node->integer);
    } else {
        wpk_buf_printf(w->out, "cast<%s>(", wpk_halide_type(node->dtype));
        put_integer(w, node->integer);
        wpk_buf_append_byte(w->out, ')');
    }
}

/* The bounds in which a dimension may be read; false when the index cannot leave them. */
static bool may_leave(const struct wpk_halide_writer *w, const struct wpk_stage *stage,
                      const struct wpk_node *load, int d, int64_t *first, int64_t *last)
{
    const struct wpk_tensor *t = &w->program->tensors[load->tensor];
    int64_t low = 0, high = 0;
    *first = -t->pad_before[d];
    *last = t->extent[d] + t->pad_after[d] - 1;
    wpk_index_range(w->program, stage, load->index[d], &low, &high);
    return low < *first || high > *last;
}

/* An element of a literal as a choice between its values. */
static void put_choice(struct wpk_halide_writer *w, const struct wpk_stage *stage,
                       const struct wpk_node *load)
{
    const struct wpk_tensor *t = &w->program->tensors[load->tensor];
    int64_t stride = wpk_tensor_elements(t);
    wpk_buf_append_text(w->out, "mux(");
    for (int d = 0; d < t->rank; d++) {
        stride /= t->extent[d];
        wpk_buf_append_text(w->out, d > 0 ? " + " : "");
        wpk_halide_put_node(w, stage, load->index[d]);
        wpk_buf_printf(w->out, " * %" PRId64, stride);
    }
    for (int64_t i = 0; i < wpk_tensor_elements(t); i++) {
        wpk_buf_append_text(w->out, i > 0 ? ", " : ", {");
        wpk_halide_put_real(w, t->dtype, t->values[i]);
    }
    wpk_buf_append_text(w->out, "})");
}

static void put_load(struct wpk_halide_writer *w, const struct wpk_stage *stage,
                     const struct wpk_node *load)
{
    const struct wpk_tensor *t = &w->program->tensors[load->tensor];
    int64_t first = 0, last = 0;
    int leaving = 0;
    if (t->role == WPK_ROLE_LITERAL && stage->reduction == WPK_REDUCE_NONE) {
        put_choice(w, stage, load);
        return;
    }
    for (int d = 0; d < t->rank; d++) {
        if (may_leave(w, stage, load, d, &first, &last)) {
            wpk_buf_append_text(w->out, leaving++ == 0 ? "select(" : " && ");
            wpk_halide_put_node(w, stage, load->index[d]);
            wpk_buf_printf(w->out, " >= %" PRId64 " && ", first);
            wpk_halide_put_node(w, stage, load->index[d]);
            wpk_buf_printf(w->out, " <= %" PRId64, last);
        }
    }
    wpk_buf_printf(w->out, "%s%s(", leaving > 0 ? ", " : "", t->name);
    const uint16_t *limited = w->reach.limited[stage - w->program->stages];
    for (int d = t->rank - 1; d >= 0; d--) {
        bool leaves =
            may_leave(w, stage, load, d, &first, &last) || (limited[load->tensor] >> d & 1) != 0;
        wpk_buf_append_text(w->out, leaves ? "clamp(likely(" : "");
        wpk_halide_put_node(w, stage, load->index[d]);
        if (leaves) {
            wpk_buf_printf(w->out, "), %" PRId64 ", %" PRId64 ")", first, last);
        }
        wpk_buf_append_text(w->out, d > 0 ? ", " : "");
    }
    wpk_buf_append_byte(w->out, ')');
    if (leaving > 0) {
        wpk_buf_append_text(w->out, ", ");
        wpk_halide_put_node(w, stage, load->outside);
        wpk_buf_append_byte(w->out, ')');
    }
}

static void put_call(struct wpk_halide_writer *w, const struct wpk_stage *stage, const char *before,
                     int arg, const char *after)
{
    wpk_buf_append_text(w->out, before);
    wpk_halide_put_node(w, stage, arg);
    wpk_buf_append_text(w->out, after);
}

static void put_unary(struct wpk_halide_writer *w, const struct wpk_stage *stage,
                      const struct wpk_node *node)
{
    static const char *const notation[] = {WPK_UNARY_LIST(WPK_LIST_TEXT)};
    bool strict = node->strict && node->op == WPK_UNARY_NEG;
    bool is_unsigned = node->op == WPK_UNARY_ABS && !wpk_dtype_is_float(node->dtype);
    if (is_unsigned) {
        wpk_buf_printf(w->out, "cast<%s>(", wpk_halide_type(node->dtype));
    }
    wpk_buf_printf(w->out, "%s%s(", strict ? "strict_float(" : "", notation[node->op]);
    put_call(w, stage, "", node->arg[0], strict || is_unsigned ? "))" : ")");
}

/* Halide's remainder is never negative (target/halide/expression.cc). */
static bool floors(const struct wpk_program *program, const struct wpk_node *node)
{
    const struct wpk_node *right = &program->nodes[node->arg[1]];
    bool divides = node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD;
    bool is_signed =
        !wpk_dtype_is_float(node->dtype) && node->dtype != WPK_U8 && node->dtype != WPK_BOOL;
    return divides && is_signed && !(right->kind == WPK_NODE_LITERAL && right->integer > 0);
}

static void put_binary(struct wpk_halide_writer *w, const struct wpk_stage *stage,
                       const struct wpk_node *node)
{
    static const struct {
        const char *text;
        bool call;
    } notation[] = {
#define BINARY_TEXT(name, text, commutative, call) {text, call},
        WPK_BINARY_LIST(BINARY_TEXT)
#undef BINARY_TEXT
    };
    bool call = notation[node->op].call;
    const struct wpk_node *right = &w->program->nodes[node->arg[1]];
    if (node->op == WPK_BINARY_EQ && node->strict && right->kind == WPK_NODE_LITERAL &&
        isinf(right->value) && wpk_dtype_size(right->dtype) == 2) {
        /* Halide compares f16 with fast arithmetic: infinities are known by their bits. */
        const struct wpk_node *infinity = &w->program->nodes[node->arg[1]];
        size_t bits = 8 * wpk_dtype_size(infinity->dtype);
        wpk_buf_printf(w->out, "(reinterpret(UInt(%zu), ", bits);
        put_call(w, stage, "Expr(", node->arg[0], ")");
        wpk_buf_printf(w->out, ") == reinterpret(UInt(%zu), ", bits);
        wpk_halide_put_real(w, infinity->dtype, infinity->value);
        wpk_buf_append_text(w->out, "))");
        return;
    }
    if (floors(w->program, node)) {
        const char *sign = node->op == WPK_BINARY_DIV ? " / " : " % ";
        put_call(w, stage, "select(", node->arg[1], " < 0 && ");
        put_call(w, stage, "", node->arg[0], " % ");
        put_call(w, stage, "", node->arg[1], " != 0, ");
        put_call(w, stage, "", node->arg[0], sign);
        put_call(w, stage, "", node->arg[1], node->op == WPK_BINARY_DIV ? " - 1, " : " + ");
        if (node->op == WPK_BINARY_MOD) {
            put_call(w, stage, "", node->arg[1], ", ");
        }
        put_call(w, stage, "", node->arg[0], sign);
        put_call(w, stage, "", node->arg[1], ")");
        return;
    }
    wpk_buf_append_text(w->out, node->strict ? "strict_float(" : "");
    wpk_buf_printf(w->out, "%s(", call ? notation[node->op].text : "");
    wpk_halide_put_node(w, stage, node->arg[0]);
    wpk_buf_printf(w->out, call ? ", " : " %s ", notation[node->op].text);
    wpk_halide_put_node(w, stage, node->arg[1]);
    wpk_buf_append_text(w->out, node->strict ? "))" : ")");
}

static void put_cast(struct wpk_halide_writer *w, const struct wpk_stage *stage,
                     const struct wpk_node *node)
{
    enum wpk_dtype from = w->program->nodes[node->arg[0]].dtype;
    bool saturates =
        wpk_dtype_is_float(from) && !wpk_dtype_is_float(node->dtype) && node->dtype != WPK_BOOL;
    wpk_buf_printf(w->out, "%scast<%s>(", saturates ? "saturating_" : "",
                   wpk_halide_type(node->dtype));
    wpk_halide_put_node(w, stage, node->arg[0]);
    wpk_buf_append_byte(w->out, ')');
}

static void put_new(struct wpk_halide_writer *w, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *node = &w->program->nodes[id];
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        put_literal(w, node);
        break;
    case WPK_NODE_AXIS:
        wpk_halide_put_loop(w, stage, node->axis >= stage->rank, stage->axes[node->axis].name);
        break;
    case WPK_NODE_LOAD:
        put_load(w, stage, node);
        break;
    case WPK_NODE_UNARY:
        put_unary(w, stage, node);
        break;
    case WPK_NODE_BINARY:
        put_binary(w, stage, node);
        break;
    case WPK_NODE_CAST:
        put_cast(w, stage, node);
        break;
    case WPK_NODE_SELECT:
        if (wpk_node_has_axis(w->program, node->arg[0])) { /* see target/halide/expression.cc */
            put_call(w, stage, "select(cast<uint8_t>(", node->arg[0], ") != 0, ");
        } else {
            put_call(w, stage, "select(", node->arg[0], ", ");
        }
        wpk_halide_put_node(w, stage, node->arg[1]);
        put_call(w, stage, ", ", node->arg[2], ")");
        break;
    }
}

void wpk_halide_put_node(struct wpk_halide_writer *w, const struct wpk_stage *stage, int id)
{
    if (w->name[id] > 0) {
        wpk_buf_printf(w->out, "%s$%d", wpk_halide_stage_name(w, stage), w->name[id]);
    } else {
        put_new(w, stage, id);
    }
}

/* ---- shared nodes */

/* Counts the uses of the node and, the first time, of those below; not of indices, which are
 * short. */
static void count_uses(struct wpk_halide_writer *w, int id)
{
    const struct wpk_node *node = &w->program->nodes[id];
    if (w->uses[id]++ > 0) {
        return;
    }
    for (int i = 0; i < 3 && node->kind != WPK_NODE_LOAD; i++) {
        if (node->arg[i] >= 0) {
            count_uses(w, node->arg[i]);
        }
    }
}

void wpk_halide_put_shared(struct wpk_halide_writer *w, const struct wpk_stage *stage)
{
    int count = 0;
    memset(w->uses, 0, (size_t)w->program->node_count * sizeof(*w->uses));
    memset(w->name, 0, (size_t)w->program->node_count * sizeof(*w->name));
    count_uses(w, stage->expr);
    for (int id = 0; id <= stage->expr; id++) {
        const struct wpk_node *node = &w->program->nodes[id];
        bool is_short = node->kind == WPK_NODE_LITERAL || node->kind == WPK_NODE_AXIS ||
                        (node->kind == WPK_NODE_LOAD && node->outside < 0);
        if (w->uses[id] > 1 && !is_short) {
            wpk_buf_printf(w->out, "    Expr %s$%d = ", wpk_halide_stage_name(w, stage), ++count);
            put_new(w, stage, id);
            wpk_buf_append_text(w->out, ";\n");
            w->name[id] = count;
        }
    }
}
