/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule as the Halide program that halide.cc builds from it: what someone who knows Halide
 * reads to see what a kernel does, and can compile. It follows halide.cc line by line; where that
 * expands a function (tanh), this names it. */
#include "codegen/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 512

struct writer {
    const struct wpk_schedule *schedule;
    const struct wpk_program *program;
    struct wpk_buf *out;
    /* names declared so far: variables are one by name, reductions belong to a stage */
    char declared[NAMES_MAX][WPK_NAME_MAX];
    int declared_count;
};

static const char *type_name(enum wpk_dtype dtype)
{
    static const char *const names[WPK_DTYPE_COUNT] = {
        [WPK_F32] = "float",       [WPK_F64] = "double",  [WPK_F16] = "float16_t",
        [WPK_BF16] = "bfloat16_t", [WPK_I8] = "int8_t",   [WPK_U8] = "uint8_t",
        [WPK_I32] = "int32_t",     [WPK_I64] = "int64_t", [WPK_BOOL] = "bool",
    };
    return names[dtype];
}

static const char *tensor_name(const struct writer *w, int tensor)
{
    return w->program->tensors[tensor].name;
}

static const char *stage_name(const struct writer *w, const struct wpk_stage *stage)
{
    return tensor_name(w, stage->output);
}

/* A variable must not hide a tensor of the same name. */
static void put_variable(const struct writer *w, const char *name)
{
    bool hides = wpk_program_find_tensor(w->program, name) >= 0;
    wpk_buf_printf(w->out, "%s%s", name, hides ? "_" : "");
}

static bool is_reduction_loop(const struct writer *w, const struct wpk_stage *stage,
                              const char *name);

static void put_loop(const struct writer *w, const struct wpk_stage *stage, bool update,
                     const char *name)
{
    if (update && is_reduction_loop(w, stage, name)) {
        wpk_buf_printf(w->out, "%s_%s", stage_name(w, stage), name);
    } else {
        put_variable(w, name);
    }
}

/* ---- expressions */

static void put_node(struct writer *w, const struct wpk_stage *stage, int id);

static void put_real(struct writer *w, enum wpk_dtype dtype, double value)
{
    char text[40];
    if (isinf(value)) {
        wpk_buf_printf(w->out, "cast<%s>(%sstd::numeric_limits<float>::infinity())",
                       type_name(dtype), value < 0 ? "-" : "");
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
        wpk_buf_printf(w->out, "cast<%s>(%s%sf)", type_name(dtype), text, point);
    }
}

static void put_literal(struct writer *w, const struct wpk_node *node)
{
    if (wpk_dtype_is_float(node->dtype)) {
        put_real(w, node->dtype, node->value);
    } else if (node->dtype == WPK_I64) {
        wpk_buf_printf(w->out, "%" PRId64, node->integer);
    } else {
        wpk_buf_printf(w->out, "cast<%s>(%" PRId64 ")", type_name(node->dtype), node->integer);
    }
}

/* The bounds in which a dimension may be read; false when the index cannot leave them. */
static bool may_leave(const struct writer *w, const struct wpk_stage *stage,
                      const struct wpk_node *load, int d, int64_t *first, int64_t *last)
{
    const struct wpk_tensor *t = &w->program->tensors[load->tensor];
    int64_t low = 0, high = 0;
    *first = -t->pad_before[d];
    *last = t->extent[d] + t->pad_after[d] - 1;
    wpk_index_range(w->program, stage, load->index[d], &low, &high);
    return low < *first || high > *last;
}

/* Does a load yield something else than the tensor's type: a byte for a bool, the accumulator? */
static bool is_stored_otherwise(const struct writer *w, int tensor)
{
    const struct wpk_tensor *t = &w->program->tensors[tensor];
    int writer = wpk_program_writer(w->program, tensor);
    const struct wpk_stage *stage = writer < 0 ? NULL : &w->program->stages[writer];
    return stage == NULL ? t->dtype == WPK_BOOL
                         : stage->reduction != WPK_REDUCE_NONE && stage->accumulator != t->dtype;
}

static void put_load(struct writer *w, const struct wpk_stage *stage, const struct wpk_node *load)
{
    const struct wpk_tensor *t = &w->program->tensors[load->tensor];
    int64_t first = 0, last = 0;
    int leaving = 0;
    for (int d = 0; d < t->rank; d++) {
        if (may_leave(w, stage, load, d, &first, &last)) {
            wpk_buf_append_text(w->out, leaving++ == 0 ? "select(" : " && ");
            put_node(w, stage, load->index[d]);
            wpk_buf_printf(w->out, " >= %" PRId64 " && ", first);
            put_node(w, stage, load->index[d]);
            wpk_buf_printf(w->out, " <= %" PRId64, last);
        }
    }
    bool cast = is_stored_otherwise(w, load->tensor);
    wpk_buf_append_text(w->out, leaving > 0 ? ", " : "");
    if (cast) {
        wpk_buf_printf(w->out, "cast<%s>(", type_name(t->dtype));
    }
    wpk_buf_printf(w->out, "%s(", t->name);
    for (int d = t->rank - 1; d >= 0; d--) {
        bool leaves = may_leave(w, stage, load, d, &first, &last);
        wpk_buf_append_text(w->out, leaves ? "clamp(likely(" : "");
        put_node(w, stage, load->index[d]);
        if (leaves) {
            wpk_buf_printf(w->out, "), %" PRId64 ", %" PRId64 ")", first, last);
        }
        wpk_buf_append_text(w->out, d > 0 ? ", " : "");
    }
    wpk_buf_append_text(w->out, cast ? "))" : ")");
    if (leaving > 0) {
        wpk_buf_append_text(w->out, ", ");
        if (load->outside >= 0) {
            put_node(w, stage, load->outside);
        } else {
            wpk_buf_printf(w->out, "cast<%s>(0)", type_name(t->dtype));
        }
        wpk_buf_append_byte(w->out, ')');
    }
}

static void put_call(struct writer *w, const struct wpk_stage *stage, const char *before, int arg,
                     const char *after)
{
    wpk_buf_append_text(w->out, before);
    put_node(w, stage, arg);
    wpk_buf_append_text(w->out, after);
}

static void put_unary(struct writer *w, const struct wpk_stage *stage, const struct wpk_node *node)
{
    static const char *const notation[] = {
#define UNARY_TEXT(name, text) text,
        WPK_UNARY_LIST(UNARY_TEXT)
#undef UNARY_TEXT
    };
    char before[32];
    switch (node->op) {
    case WPK_UNARY_RSQRT:
        put_call(w, stage, "(1 / sqrt(", node->arg[0], "))");
        break;
    case WPK_UNARY_SIGMOID:
        put_call(w, stage, "(1 / (1 + exp(-", node->arg[0], ")))");
        break;
    default:
        snprintf(before, sizeof(before), "%s(", notation[node->op]);
        put_call(w, stage, before, node->arg[0], ")");
    }
}

static void put_binary(struct writer *w, const struct wpk_stage *stage, const struct wpk_node *node)
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
    wpk_buf_printf(w->out, "%s(", call ? notation[node->op].text : "");
    put_node(w, stage, node->arg[0]);
    wpk_buf_printf(w->out, call ? ", " : " %s ", notation[node->op].text);
    put_node(w, stage, node->arg[1]);
    wpk_buf_append_byte(w->out, ')');
}

static void put_cast(struct writer *w, const struct wpk_stage *stage, const struct wpk_node *node)
{
    enum wpk_dtype from = w->program->nodes[node->arg[0]].dtype;
    bool rounds =
        wpk_dtype_is_float(from) && !wpk_dtype_is_float(node->dtype) && node->dtype != WPK_BOOL;
    wpk_buf_printf(w->out, rounds ? "saturating_cast<%s>(round(" : "cast<%s>(",
                   type_name(node->dtype));
    put_node(w, stage, node->arg[0]);
    wpk_buf_append_text(w->out, rounds ? "))" : ")");
}

static void put_axis(struct writer *w, const struct wpk_stage *stage, int axis)
{
    put_loop(w, stage, axis >= stage->rank, stage->axes[axis].name);
}

static void put_node(struct writer *w, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *node = &w->program->nodes[id];
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        put_literal(w, node);
        break;
    case WPK_NODE_AXIS:
        put_axis(w, stage, node->axis);
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
        put_call(w, stage, "select(", node->arg[0], ", ");
        put_node(w, stage, node->arg[1]);
        put_call(w, stage, ", ", node->arg[2], ")");
        break;
    }
}

/* ---- declarations */

/* Is the name a reduction axis of the stage, or cut from one? */
static bool is_reduction_loop(const struct writer *w, const struct wpk_stage *stage,
                              const char *name)
{
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (strcmp(stage->axes[a].name, name) == 0) {
            return true;
        }
    }
    const struct wpk_schedule *s = w->schedule;
    for (int i = 0; i < s->directive_count && w->program == &s->main; i++) {
        const struct wpk_directive *d = &s->directives[i];
        bool cuts =
            d->kind == WPK_DIRECTIVE_SPLIT && d->update && &s->main.stages[d->stage] == stage;
        /* the parts of a loop have other names than itself: this ends */
        if (cuts && (strcmp(d->loop[1], name) == 0 || strcmp(d->loop[2], name) == 0)) {
            return strcmp(d->loop[0], name) != 0 && is_reduction_loop(w, stage, d->loop[0]);
        }
    }
    return false;
}

static void declare_variable(struct writer *w, const char *name)
{
    for (int i = 0; i < w->declared_count; i++) {
        if (strcmp(w->declared[i], name) == 0) {
            return;
        }
    }
    if (w->declared_count < NAMES_MAX) {
        snprintf(w->declared[w->declared_count++], WPK_NAME_MAX, "%s", name);
        wpk_buf_append_text(w->out, w->declared_count == 1 ? "    Var " : ", ");
        put_variable(w, name);
        wpk_buf_printf(w->out, "(\"%s\")", name);
    }
}

/* Every loop that is not a reduction's. */
static void declare_variables(struct writer *w)
{
    for (int s = 0; s < w->program->stage_count; s++) {
        for (int a = 0; a < w->program->stages[s].rank; a++) {
            declare_variable(w, w->program->stages[s].axes[a].name);
        }
    }
    for (int i = 0; i < w->schedule->directive_count; i++) {
        const struct wpk_directive *d = &w->schedule->directives[i];
        bool makes = d->kind == WPK_DIRECTIVE_SPLIT || d->kind == WPK_DIRECTIVE_FUSE;
        for (int k = 0; k < d->loop_count && makes; k++) {
            if (!d->update || !is_reduction_loop(w, &w->program->stages[d->stage], d->loop[k])) {
                declare_variable(w, d->loop[k]);
            }
        }
    }
    wpk_buf_append_text(w->out, w->declared_count > 0 ? ";\n" : "");
}

static void declare_input(struct writer *w, const struct wpk_tensor *t)
{
    int64_t stride = 1;
    wpk_buf_printf(w->out, "    ImageParam %s(type_of<%s>(), %d, \"%s\");\n", t->name,
                   type_name(t->dtype == WPK_BOOL ? WPK_U8 : t->dtype), t->rank, t->name);
    for (int d = t->rank - 1; d >= 0; d--) {
        int64_t extent = t->pad_before[d] + t->extent[d] + t->pad_after[d];
        wpk_buf_printf(w->out,
                       "    %s.dim(%d).set_bounds(%" PRId64 ", %" PRId64 ").set_stride(%" PRId64
                       ");\n",
                       t->name, t->rank - 1 - d, -t->pad_before[d], extent, stride);
        stride *= extent;
    }
}

static void declare_literal(struct writer *w, const struct wpk_tensor *t)
{
    int64_t count = wpk_tensor_elements(t);
    wpk_buf_printf(w->out, "    static %s %s_values[] = {", type_name(t->dtype), t->name);
    for (int64_t i = 0; i < count; i++) {
        wpk_buf_append_text(w->out, i > 0 ? ", " : "");
        put_real(w, t->dtype, t->values[i]);
    }
    wpk_buf_printf(w->out, "};\n    Buffer<%s> %s(%s_values", type_name(t->dtype), t->name,
                   t->name);
    for (int d = t->rank - 1; d >= 0; d--) {
        wpk_buf_printf(w->out, ", %" PRId64, t->extent[d]);
    }
    wpk_buf_append_text(w->out, ");\n");
}

/* ---- definitions */

static void put_arguments(struct writer *w, const struct wpk_stage *stage)
{
    wpk_buf_printf(w->out, "%s(", stage_name(w, stage));
    for (int a = stage->rank - 1; a >= 0; a--) {
        put_variable(w, stage->axes[a].name);
        wpk_buf_append_text(w->out, a > 0 ? ", " : "");
    }
    wpk_buf_append_byte(w->out, ')');
}

/* The stage's expression as `dtype`. */
static void put_value(struct writer *w, const struct wpk_stage *stage, enum wpk_dtype dtype)
{
    bool same = w->program->nodes[stage->expr].dtype == dtype;
    if (!same) {
        wpk_buf_printf(w->out, "cast<%s>(", type_name(dtype));
    }
    put_node(w, stage, stage->expr);
    wpk_buf_append_text(w->out, same ? "" : ")");
}

static void put_identity(struct writer *w, enum wpk_reduction reduction, enum wpk_dtype dtype)
{
    if (reduction == WPK_REDUCE_SUM || reduction == WPK_REDUCE_PROD) {
        wpk_buf_printf(w->out, "cast<%s>(%d)", type_name(dtype), reduction == WPK_REDUCE_PROD);
    } else if (wpk_dtype_is_float(dtype)) {
        put_real(w, dtype, reduction == WPK_REDUCE_MAX ? -INFINITY : INFINITY);
    } else {
        wpk_buf_printf(w->out, "type_of<%s>().%s()", type_name(dtype),
                       reduction == WPK_REDUCE_MAX ? "min" : "max");
    }
}

static void define_reduction(struct writer *w, const struct wpk_stage *stage, enum wpk_dtype dtype)
{
    const char *name = stage_name(w, stage);
    wpk_buf_printf(w->out, "    RDom %s_domain(", name);
    for (int a = stage->rank; a < stage->axis_count; a++) {
        wpk_buf_printf(w->out, "%s0, %" PRId64, a > stage->rank ? ", " : "", stage->axes[a].extent);
    }
    wpk_buf_append_text(w->out, ");\n    RVar ");
    for (int a = stage->rank; a < stage->axis_count; a++) {
        wpk_buf_printf(w->out, "%s%s_%s = %s_domain[%d]", a > stage->rank ? ", " : "", name,
                       stage->axes[a].name, name, a - stage->rank);
    }
    wpk_buf_append_text(w->out, ";\n    ");
    put_arguments(w, stage);
    wpk_buf_append_text(w->out, " = ");
    put_identity(w, stage->reduction, dtype);
    wpk_buf_append_text(w->out, ";\n    ");
    put_arguments(w, stage);
    bool chooses = stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN;
    wpk_buf_append_text(w->out, chooses                               ? " = "
                                : stage->reduction == WPK_REDUCE_PROD ? " *= "
                                                                      : " += ");
    if (chooses) {
        wpk_buf_append_text(w->out, stage->reduction == WPK_REDUCE_MAX ? "max(" : "min(");
        put_arguments(w, stage);
        wpk_buf_append_text(w->out, ", ");
    }
    put_value(w, stage, dtype);
    wpk_buf_append_text(w->out, chooses ? ");\n" : ";\n");
}

static void define_stage(struct writer *w, const struct wpk_stage *stage)
{
    const struct wpk_tensor *t = &w->program->tensors[stage->output];
    bool output = t->role == WPK_ROLE_OUTPUT;
    wpk_buf_printf(w->out, "\n    Func %s(\"%s\");\n", t->name, t->name);
    if (stage->reduction != WPK_REDUCE_NONE) {
        define_reduction(w, stage, output ? t->dtype : stage->accumulator);
    } else {
        wpk_buf_append_text(w->out, "    ");
        put_arguments(w, stage);
        wpk_buf_append_text(w->out, " = ");
        put_value(w, stage, output && t->dtype == WPK_BOOL ? WPK_U8 : t->dtype);
        wpk_buf_append_text(w->out, ";\n");
    }
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0 && output; d--) {
        wpk_buf_printf(w->out,
                       "    %s.output_buffer().dim(%d).set_bounds(0, %" PRId64
                       ").set_stride(%" PRId64 ");\n    %s.bound(",
                       t->name, t->rank - 1 - d, t->extent[d], stride, t->name);
        put_variable(w, stage->axes[d].name);
        wpk_buf_printf(w->out, ", 0, %" PRId64 ");\n", t->extent[d]);
        stride *= t->pad_before[d] + t->extent[d] + t->pad_after[d];
    }
}

/* ---- directives */

static bool is_of_definition(enum wpk_directive_kind kind)
{
    return kind == WPK_DIRECTIVE_SPLIT || kind == WPK_DIRECTIVE_FUSE ||
           kind == WPK_DIRECTIVE_REORDER || kind == WPK_DIRECTIVE_VECTORIZE ||
           kind == WPK_DIRECTIVE_UNROLL || kind == WPK_DIRECTIVE_PARALLEL ||
           kind == WPK_DIRECTIVE_ATOMIC || kind == WPK_DIRECTIVE_NO_PARTITION;
}

static void put_loops(struct writer *w, const struct wpk_directive *d)
{
    const struct wpk_stage *stage = &w->program->stages[d->stage];
    for (int i = 0; i < d->loop_count; i++) {
        wpk_buf_append_text(w->out, i > 0 ? ", " : "");
        put_loop(w, stage, d->update, d->loop[i]);
    }
}

static void put_directive(struct writer *w, const struct wpk_directive *d)
{
    static const char *const tails[WPK_TAIL_COUNT] = {
        [WPK_TAIL_EXACT] = "RoundUp",       [WPK_TAIL_GUARD] = "GuardWithIf",
        [WPK_TAIL_PREDICATE] = "Predicate", [WPK_TAIL_SHIFT] = "ShiftInwards",
        [WPK_TAIL_ROUND] = "RoundUp",
    };
    const struct wpk_stage *stage = &w->program->stages[d->stage];
    bool reduces = d->update && d->loop_count > 0 && is_reduction_loop(w, stage, d->loop[0]);
    switch (d->kind) {
    case WPK_DIRECTIVE_SPLIT:
        wpk_buf_append_text(w->out, ".split(");
        put_loops(w, d);
        wpk_buf_printf(w->out, ", %" PRId64 ", TailStrategy::%s)", d->factor,
                       reduces && d->tail == WPK_TAIL_EXACT ? "Auto" : tails[d->tail]);
        break;
    case WPK_DIRECTIVE_COMPUTE_AT:
        wpk_buf_printf(w->out, ".compute_at(%s, ", d->loop[0]);
        put_variable(w, d->loop[1]);
        wpk_buf_append_byte(w->out, ')');
        break;
    case WPK_DIRECTIVE_COMPUTE_INLINE:
        wpk_buf_append_text(w->out, ".compute_inline()");
        break;
    case WPK_DIRECTIVE_STORE_IN:
        wpk_buf_printf(w->out, ".store_in(MemoryType::%s)",
                       strcmp(d->loop[0], "stack") == 0      ? "Stack"
                       : strcmp(d->loop[0], "register") == 0 ? "Register"
                                                             : "Heap");
        break;
    case WPK_DIRECTIVE_NO_PARTITION:
        wpk_buf_append_text(w->out, ".partition(");
        put_loops(w, d);
        wpk_buf_append_text(w->out, ", Partition::Never)");
        break;
    default: /* the rest is spelled as in Halide */
        wpk_buf_printf(w->out, ".%s(", wpk_directive_name(d->kind));
        put_loops(w, d);
        if (d->factor > 0) {
            wpk_buf_printf(w->out, ", %" PRId64, d->factor);
        }
        wpk_buf_append_byte(w->out, ')');
    }
}

/* The variables that cuts of reduction loops make have to be there before they are used. */
static void declare_cuts(struct writer *w)
{
    for (int i = 0; i < w->schedule->directive_count; i++) {
        const struct wpk_directive *d = &w->schedule->directives[i];
        const struct wpk_stage *stage = &w->program->stages[d->stage];
        if (d->kind == WPK_DIRECTIVE_SPLIT && d->update &&
            is_reduction_loop(w, stage, d->loop[0])) {
            wpk_buf_printf(w->out, "    RVar %s_%s(\"%s\"), %s_%s(\"%s\");\n", stage_name(w, stage),
                           d->loop[1], d->loop[1], stage_name(w, stage), d->loop[2], d->loop[2]);
        }
    }
}

static void put_directives(struct writer *w)
{
    const struct wpk_directive *previous = NULL;
    bool previous_update = false;
    declare_cuts(w);
    for (int i = 0; i < w->schedule->directive_count; i++) {
        const struct wpk_directive *d = &w->schedule->directives[i];
        bool update = d->update && is_of_definition(d->kind);
        if (previous == NULL || previous->stage != d->stage || previous_update != update) {
            wpk_buf_printf(w->out, "%s    %s%s\n        ", previous == NULL ? "" : ";\n",
                           stage_name(w, &w->program->stages[d->stage]), update ? ".update()" : "");
        } else {
            wpk_buf_append_text(w->out, "\n        ");
        }
        put_directive(w, d);
        previous = d;
        previous_update = update;
    }
    wpk_buf_append_text(w->out, previous == NULL ? "" : ";\n");
}

/* The generated function's arguments: inputs, constants and prepared tensors in their order. */
static void put_ending(struct writer *w)
{
    wpk_buf_append_text(w->out, "\n    Pipeline({");
    for (int pass = 0, written = 0; pass < 2; pass++) {
        for (int t = 0; t < w->program->tensor_count; t++) {
            enum wpk_role role = w->program->tensors[t].role;
            if (pass == 0 ? role == WPK_ROLE_OUTPUT
                          : role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT) {
                wpk_buf_printf(w->out, "%s%s", written++ > 0 ? ", " : "", tensor_name(w, t));
            }
        }
        wpk_buf_append_text(w->out,
                            pass == 0 ? "})\n        .compile_to_object(\"kernel.o\", {" : "}");
        written = 0;
    }
    wpk_buf_printf(w->out,
                   ", \"wpk_main\",\n                           Target(\"%s-no_runtime\"));\n",
                   w->schedule->target);
}

wpk_err wpk_schedule_print_halide(const struct wpk_schedule *schedule, struct wpk_buf *out)
{
    struct writer w = {.schedule = schedule, .program = &schedule->main, .out = out};
    wpk_buf_printf(out,
                   "// %s, threads: %d. Dimensions are listed innermost first.\n"
                   "#include <Halide.h>\n#include <limits>\n\nusing namespace Halide;\n\n"
                   "int main()\n{\n",
                   schedule->target, schedule->threads);
    for (int t = 0; t < w.program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &w.program->tensors[t];
        if (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT) {
            declare_input(&w, tensor);
        } else if (tensor->role == WPK_ROLE_LITERAL) {
            declare_literal(&w, tensor);
        }
    }
    declare_variables(&w);
    for (int s = 0; s < w.program->stage_count; s++) {
        define_stage(&w, &w.program->stages[s]);
    }
    wpk_buf_append_byte(out, '\n');
    put_directives(&w);
    put_ending(&w);
    wpk_buf_append_text(out, "    return 0;\n}\n");
    return wpk_buf_status(out);
}
