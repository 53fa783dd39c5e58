/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule as the C++ of the Halide program that halide.cc builds from it: people can read what a
 * kernel does, and compile it. This file follows halide.cc line by line. */
#include "target/halide/schedule_halide.h"

#include "nest/expand.h"
#include "nest/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- declarations */

static void declare_variable(struct wpk_halide_writer *w, const char *name)
{
    for (int i = 0; i < w->declared_count; i++) {
        if (strcmp(w->declared[i], name) == 0) {
            return;
        }
    }
    if (w->declared_count < WPK_HALIDE_NAMES_MAX) {
        snprintf(w->declared[w->declared_count++], WPK_LOOP_NAME_MAX, "%s", name);
        wpk_buf_append_text(w->out, w->declared_count == 1 ? "    Var " : ", ");
        wpk_halide_put_variable(w, name);
        char known[WPK_LOOP_NAME_MAX];
        wpk_buf_printf(w->out, "(\"%s\")", wpk_halide_loop_name(name, known));
    }
}

static void declare_input(struct wpk_halide_writer *w, const struct wpk_tensor *t)
{
    int64_t stride = 1;
    wpk_buf_printf(w->out, "    ImageParam %s(type_of<%s>(), %d, \"%s\");\n", t->name,
                   wpk_halide_type(t->dtype), t->rank, t->name);
    for (int d = t->rank - 1; d >= 0; d--) {
        int64_t extent = t->pad_before[d] + t->extent[d] + t->pad_after[d];
        wpk_buf_printf(w->out,
                       "    %s.dim(%d).set_bounds(%" PRId64 ", %" PRId64 ").set_stride(%" PRId64
                       ");\n",
                       t->name, t->rank - 1 - d, -t->pad_before[d], extent, stride);
        stride *= extent;
    }
}

static void declare_literal(struct wpk_halide_writer *w, const struct wpk_tensor *t)
{
    int64_t count = wpk_tensor_elements(t);
    wpk_buf_printf(w->out, "    static %s %s_values[] = {", wpk_halide_type(t->dtype), t->name);
    for (int64_t i = 0; i < count; i++) {
        wpk_buf_append_text(w->out, i > 0 ? ", " : "");
        wpk_halide_put_real(w, t->dtype, t->values[i]);
    }
    wpk_buf_printf(w->out, "};\n    Buffer<%s> %s(%s_values", wpk_halide_type(t->dtype), t->name,
                   t->name);
    for (int d = t->rank - 1; d >= 0; d--) {
        wpk_buf_printf(w->out, ", %" PRId64, t->extent[d]);
    }
    wpk_buf_append_text(w->out, ");\n");
}

/* ---- definitions */

static void put_arguments(struct wpk_halide_writer *w, const struct wpk_stage *stage)
{
    wpk_buf_printf(w->out, "%s(", wpk_halide_stage_name(w, stage));
    for (int a = stage->rank - 1; a >= 0; a--) {
        wpk_halide_put_variable(w, stage->axes[a].name);
        wpk_buf_append_text(w->out, a > 0 ? ", " : "");
    }
    wpk_buf_append_byte(w->out, ')');
}

static void define_reduction(struct wpk_halide_writer *w, const struct wpk_stage *stage)
{
    const char *name = wpk_halide_stage_name(w, stage);
    bool strict = stage->strict;
    wpk_buf_printf(w->out, "    RDom %s_domain(", name);
    for (int a = stage->rank; a < stage->axis_count; a++) {
        wpk_buf_printf(w->out, "%s0, %" PRId64, a > stage->rank ? ", " : "", stage->axes[a].extent);
    }
    wpk_buf_append_text(w->out, ");\n    RVar ");
    for (int a = stage->rank; a < stage->axis_count; a++) {
        wpk_buf_printf(w->out, "%s%s_%s = %s_domain[%d]", a > stage->rank ? ", " : "", name,
                       stage->axes[a].name, name, a - stage->rank);
    }
    wpk_buf_append_text(w->out, ";\n");
    wpk_halide_put_shared(w, stage);
    /* The terms that loops `inside` leave out. */
    const struct wpk_nest *nest = w->schedule->nest;
    struct wpk_nest_border border[WPK_NEST_BORDERS_MAX];
    int entry = nest->entry_count - 1 - (int)(stage - w->program->stages);
    int count = wpk_nest_borders(w->program, nest, entry, true, border);
    for (int b = 0; b < count; b++) {
        wpk_buf_printf(w->out, "    %s_domain.where(", wpk_halide_stage_name(w, stage));
        wpk_halide_put_node(w, stage, border[b].index);
        wpk_buf_printf(w->out, " >= %" PRId64 " && ", border[b].low);
        wpk_halide_put_node(w, stage, border[b].index);
        wpk_buf_printf(w->out, " < %" PRId64 ");\n", border[b].high);
    }
    wpk_buf_append_text(w->out, "    ");
    put_arguments(w, stage);
    wpk_buf_append_text(w->out, " = ");
    wpk_halide_put_node(w, stage, stage->identity);
    wpk_buf_append_text(w->out, ";\n    ");
    put_arguments(w, stage);
    bool maximum = stage->reduction == WPK_REDUCE_MAX;
    const char *before = maximum ? "max(" : stage->reduction == WPK_REDUCE_MIN ? "min(" : "";
    const char *between = *before != '\0'                       ? ", "
                          : stage->reduction == WPK_REDUCE_PROD ? " * "
                                                                : " + ";
    wpk_buf_printf(w->out, " = %s%s", strict ? "strict_float(" : "", before);
    put_arguments(w, stage);
    wpk_buf_append_text(w->out, between);
    wpk_halide_put_node(w, stage, stage->expr);
    wpk_buf_printf(w->out, "%s%s;\n", *before != '\0' ? ")" : "", strict ? ")" : "");
}

static void define_stage(struct wpk_halide_writer *w, const struct wpk_stage *stage)
{
    const struct wpk_tensor *t = &w->program->tensors[stage->output];
    bool output = t->role == WPK_ROLE_OUTPUT;
    wpk_buf_printf(w->out, "\n    Func %s(\"%s\");\n", t->name, t->name);
    if (stage->reduction != WPK_REDUCE_NONE) {
        define_reduction(w, stage);
    } else {
        wpk_halide_put_shared(w, stage);
        wpk_buf_append_text(w->out, "    ");
        put_arguments(w, stage);
        wpk_buf_append_text(w->out, " = ");
        wpk_halide_put_node(w, stage, stage->expr);
        wpk_buf_append_text(w->out, ";\n");
    }
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0 && output; d--) {
        wpk_buf_printf(w->out,
                       "    %s.output_buffer().dim(%d).set_bounds(0, %" PRId64
                       ").set_stride(%" PRId64 ");\n    %s.bound(",
                       t->name, t->rank - 1 - d, t->extent[d], stride, t->name);
        wpk_halide_put_variable(w, stage->axes[d].name);
        wpk_buf_printf(w->out, ", 0, %" PRId64 ");\n", t->extent[d]);
        stride *= t->pad_before[d] + t->extent[d] + t->pad_after[d];
    }
}

/* ---- directives */

static bool is_of_definition(enum wpk_directive_kind kind)
{
    return kind == WPK_DIRECTIVE_SPLIT || kind == WPK_DIRECTIVE_FUSE ||
           kind == WPK_DIRECTIVE_REORDER || kind == WPK_DIRECTIVE_VECTORIZE ||
           kind == WPK_DIRECTIVE_UNROLL || kind == WPK_DIRECTIVE_GPU_BLOCKS ||
           kind == WPK_DIRECTIVE_GPU_THREADS || kind == WPK_DIRECTIVE_PARALLEL ||
           kind == WPK_DIRECTIVE_GPU_SINGLE_THREAD || kind == WPK_DIRECTIVE_ATOMIC ||
           kind == WPK_DIRECTIVE_NO_PARTITION;
}

static void put_loops(struct wpk_halide_writer *w, const struct wpk_directive *d)
{
    const struct wpk_stage *stage = &w->program->stages[d->stage];
    for (int i = 0; i < d->loop_count; i++) {
        wpk_buf_append_text(w->out, i > 0 ? ", " : "");
        wpk_halide_put_loop(w, stage, d->update, d->loop[i]);
    }
}

static void put_directive(struct wpk_halide_writer *w, const struct wpk_directive *d)
{
    static const char *const tails[WPK_TAIL_COUNT] = {
        [WPK_TAIL_EXACT] = "RoundUp",       [WPK_TAIL_GUARD] = "GuardWithIf",
        [WPK_TAIL_PREDICATE] = "Predicate", [WPK_TAIL_SHIFT] = "ShiftInwards",
        [WPK_TAIL_ROUND] = "RoundUp",
    };
    const struct wpk_stage *stage = &w->program->stages[d->stage];
    switch (d->kind) {
    case WPK_DIRECTIVE_SPLIT:
        wpk_buf_append_text(w->out, ".split(");
        put_loops(w, d);
        wpk_buf_printf(w->out, ", %" PRId64 ", TailStrategy::%s)", d->factor,
                       d->update && d->tail == WPK_TAIL_EXACT ? "Auto" : tails[d->tail]);
        break;
    case WPK_DIRECTIVE_COMPUTE_AT:
    case WPK_DIRECTIVE_STORE_AT:
        wpk_buf_printf(w->out, ".%s(%s, ", wpk_directive_name(d->kind), d->loop[0]);
        stage = &w->program->stages[wpk_program_find_stage(w->program, d->loop[0])];
        wpk_halide_put_loop(w, stage, true, d->loop[1]);
        wpk_buf_append_byte(w->out, ')');
        break;
    case WPK_DIRECTIVE_STORE_IN:
        wpk_buf_printf(w->out, ".store_in(MemoryType::%s)",
                       strcmp(d->loop[0], "stack") == 0      ? "Stack"
                       : strcmp(d->loop[0], "register") == 0 ? "Register"
                       : strcmp(d->loop[0], "shared") == 0   ? "GPUShared"
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
static void declare_cuts(struct wpk_halide_writer *w)
{
    for (int i = 0; i < w->directives.count; i++) {
        const struct wpk_directive *d = &w->directives.item[i];
        const struct wpk_stage *stage = &w->program->stages[d->stage];
        if (d->kind == WPK_DIRECTIVE_SPLIT && d->update &&
            wpk_halide_is_reduction_loop(w, stage, d->loop[0])) {
            char outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
            const char *name = wpk_halide_stage_name(w, stage);
            (void)wpk_halide_loop_name(d->loop[1], outer);
            (void)wpk_halide_loop_name(d->loop[2], inner);
            wpk_buf_printf(w->out, "    RVar %s_%s(\"%s\"), %s_%s(\"%s\");\n", name, outer, outer,
                           name, inner, inner);
        }
    }
}

static void put_directives(struct wpk_halide_writer *w)
{
    const struct wpk_directive *previous = NULL;
    bool previous_update = false;
    declare_cuts(w);
    for (int i = 0; i < w->directives.count; i++) {
        const struct wpk_directive *d = &w->directives.item[i];
        bool update = d->update && is_of_definition(d->kind);
        if (previous == NULL || previous->stage != d->stage || previous_update != update) {
            wpk_buf_printf(w->out, "%s    %s%s\n        ", previous == NULL ? "" : ";\n",
                           wpk_halide_stage_name(w, &w->program->stages[d->stage]),
                           update ? ".update()" : "");
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
static void put_ending(struct wpk_halide_writer *w)
{
    wpk_buf_append_text(w->out, "\n    Pipeline({");
    for (int pass = 0, written = 0; pass < 2; pass++) {
        for (int t = 0; t < w->program->tensor_count; t++) {
            const struct wpk_tensor *tensor = &w->program->tensors[t];
            if (pass == 0 ? tensor->role == WPK_ROLE_OUTPUT : wpk_tensor_is_given(tensor)) {
                wpk_buf_printf(w->out, "%s%s", written++ > 0 ? ", " : "", tensor->name);
            }
        }
        wpk_buf_append_text(w->out,
                            pass == 0 ? "})\n        .compile_to_object(\"kernel.o\", {" : "}");
        written = 0;
    }
    char target[WPK_TARGET_MAX];
    if (wpk_target_spell(w->schedule->target, target) != WPK_OK) {
        snprintf(target, sizeof(target), "%s", w->schedule->target);
    }
    wpk_buf_printf(w->out,
                   ", \"wpk_main\",\n                           Target(\"%s-no_runtime\"));\n",
                   target);
}

static void put_program(struct wpk_halide_writer *w)
{
    const struct wpk_schedule *schedule = w->schedule;
    const char *strict =
        !wpk_program_is_strict(w->program)
            ? ""
            : "// strict_float means the one operation in it. A lowering pass, which is "
              "not shown, adds up\n// lanes pairwise, as Halide does without it.\n";
    wpk_buf_printf(w->out,
                   "// %s, threads: %d. Dimensions are listed innermost first.\n%s"
                   "#include <Halide.h>\n#include <limits>\n\nusing namespace Halide;\n\n"
                   "int main()\n{\n",
                   schedule->target, schedule->threads, strict);
    for (int t = 0; t < w->program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &w->program->tensors[t];
        if (wpk_tensor_is_given(tensor)) {
            declare_input(w, tensor);
        } else if (tensor->role == WPK_ROLE_LITERAL) {
            declare_literal(w, tensor);
        }
    }
    /* Every loop that is not a reduction's. */
    for (int s = 0; s < w->program->stage_count; s++) {
        for (int a = 0; a < w->program->stages[s].rank; a++) {
            declare_variable(w, w->program->stages[s].axes[a].name);
        }
    }
    for (int i = 0; i < w->directives.count; i++) {
        const struct wpk_directive *d = &w->directives.item[i];
        bool makes = d->kind == WPK_DIRECTIVE_SPLIT || d->kind == WPK_DIRECTIVE_FUSE;
        for (int k = 0; k < d->loop_count && makes; k++) {
            if (!d->update ||
                !wpk_halide_is_reduction_loop(w, &w->program->stages[d->stage], d->loop[k])) {
                declare_variable(w, d->loop[k]);
            }
        }
    }
    wpk_buf_append_text(w->out, w->declared_count > 0 ? ";\n" : "");
    for (int s = 0; s < w->program->stage_count; s++) {
        define_stage(w, &w->program->stages[s]);
    }
    wpk_buf_append_byte(w->out, '\n');
    put_directives(w);
    put_ending(w);
    wpk_buf_append_text(w->out, "    return 0;\n}\n");
}

wpk_err wpk_schedule_print_halide(const struct wpk_schedule *schedule, struct wpk_buf *out)
{
    struct wpk_program program;
    struct wpk_halide_writer w = {.schedule = schedule, .program = &program, .out = out};
    wpk_err err = wpk_schedule_expand(schedule, &program);
    if (err != WPK_OK) {
        return err;
    }
    wpk_directives_make(schedule, &w.directives);
    w.uses = WPK_DEMAND(calloc((size_t)program.node_count, sizeof(*w.uses)));
    w.name = WPK_DEMAND(calloc((size_t)program.node_count, sizeof(*w.name)));
    err = wpk_nest_find_reach(schedule->nest, &program, &w.reach);
    if (err == WPK_OK) {
        put_program(&w);
        err = wpk_buf_status(out);
    }
    wpk_directives_fini(&w.directives);
    free(w.uses);
    free(w.name);
    wpk_program_fini(&program);
    return err;
}
