/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/nest.h"

#include "ir/instruction/instruction.h"
#include "nest/reach.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One definition of an entry whose nest is checked, and its loops. */
struct subject {
    const struct wpk_nest *nest;
    const struct wpk_nest_entry *entry;
    const struct wpk_stage *stage;
    const struct wpk_nest_loops *loops; /* NULL: none of its definitions */
    struct wpk_diag *diag;
};

/* A size that is too large for any limit stays as it is. */
static void multiply(int64_t *size, int64_t by)
{
    *size *= *size > INT32_MAX ? 1 : by;
}

/* ---- places */

/* A serial loop inside an unrolled one could be compiled: its code is repeated for each iteration.
 * It is refused because compilers take too long, as are many unrolled statements. */

static bool is_update(const struct subject *s)
{
    return s->loops == &s->entry->update;
}

/* Say what is wrong, of a loop, or -1: of the stage.   errors  WPK_EINVAL, always */
static wpk_err refuse(const struct subject *s, int loop, const char *format, ...)
{
    char what[WPK_DIAG_TEXT_MAX / 2], name[WPK_NEST_NAME_MAX] = "";
    struct wpk_position at = s->entry->at;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (loop >= 0) {
        at = wpk_nest_at(s->nest, s->loops, loop)->at;
        wpk_nest_name_loop(s->nest, s->entry, s->loops, loop, name);
    }
    const char *section = !wpk_nest_has_update(s->nest, s->entry) || s->loops == NULL ? ""
                          : is_update(s)                                              ? " update"
                                                                                      : " init";
    wpk_diag_set_at(s->diag, at.line, at.column, "stage %s%s%s%s: %s",
                    s->nest->program->tensors[s->stage->output].name, section,
                    loop >= 0 ? " loop " : "", name, what);
    return WPK_EINVAL;
}

/* The extent that the step of loop `i` must divide for an exact tail: elements, or tiles outside
 * of the tile. 0: that is not known where an outer loop ends. */
static int64_t divided_by(const struct subject *s, int i, int64_t *step)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    int64_t span = wpk_nest_covered(s->nest, s->entry, s->loops, i - 1, loop->axis);
    int64_t extent = s->entry->extent[loop->axis];
    *step = loop->step;
    if (!wpk_nest_is_rolled(loop)) {
        return span;
    }
    if (loop->axis < s->stage->rank && !s->entry->bounded &&
        s->entry->least[loop->axis] != extent) {
        return 0;
    }
    for (int k = i + 1; k < s->loops->count; k++) {
        const struct wpk_nest_loop *inner = wpk_nest_at(s->nest, s->loops, k);
        if (inner->axis == loop->axis && wpk_nest_is_rolled(inner)) {
            *step = loop->step / inner->step;
            return (extent + inner->step - 1) / inner->step;
        }
    }
    return extent;
}

/* True if a loop further out is over the same axis, and loop `i` is of the register tile. */
static bool is_cut(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    bool cut = false;
    for (int k = 0; k < i; k++) {
        cut = cut || wpk_nest_at(s->nest, s->loops, k)->axis == loop->axis;
    }
    return cut && !wpk_nest_is_rolled(loop);
}

static wpk_err check_tail(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    bool reduction = loop->axis >= s->stage->rank;
    bool output = s->nest->program->tensors[s->stage->output].role == WPK_ROLE_OUTPUT;
    int64_t step = 1, extent = divided_by(s, i, &step);
    if (loop->tail == WPK_TAIL_EXACT && (step == 0 || extent % step != 0)) {
        return refuse(s, i, "the step %lld does not divide %lld: write guard or shift for exact",
                      (long long)loop->step,
                      (long long)wpk_nest_covered(s->nest, s->entry, s->loops, i - 1, loop->axis));
    }
    if (loop->tail == WPK_TAIL_EXACT && extent == 0 && step > 1) {
        return refuse(s, i, "less is needed where the loops around end: write guard for exact");
    }
    if (loop->tail == WPK_TAIL_SHIFT && is_update(s)) {
        return refuse(s, i, "a reduction cannot be shifted: write guard");
    }
    if (loop->tail == WPK_TAIL_SHIFT && output && extent < step) {
        return refuse(s, i, "the step is larger than %lld: write guard for shift",
                      (long long)wpk_nest_covered(s->nest, s->entry, s->loops, i - 1, loop->axis));
    }
    if (loop->tail == WPK_TAIL_ROUND && (reduction || output)) {
        return refuse(s, i, "an output or a reduction has nothing past its end: write guard");
    }
    if (loop->tail == WPK_TAIL_ROUND && is_update(s) && is_cut(s, i)) {
        return refuse(s, i, "rounded inside a tile, an update adds terms twice: write guard");
    }
    return WPK_OK;
}

/* Steps along the axis of loop `i`, and where it stands in the register tile. */
static wpk_err check_steps(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    const struct wpk_nest_loop *inner = NULL;
    for (int k = s->loops->count - 1; k > i; k--) {
        const struct wpk_nest_loop *other = wpk_nest_at(s->nest, s->loops, k);
        inner = other->axis == loop->axis ? other : inner;
    }
    if (inner == NULL) {
        return loop->step == 1 ? WPK_OK
                               : refuse(s, i, "the innermost loop over an axis has a step of 1");
    }
    if (inner->step > loop->step) {
        return refuse(s, i, "a loop further in has a larger step");
    }
    if (loop->binding == WPK_BIND_LANES) {
        return refuse(s, i, "lanes are not cut: give the lanes to the innermost loop of the axis");
    }
    if (!wpk_nest_is_rolled(loop) && wpk_nest_is_rolled(inner) &&
        !wpk_bind_is_thread(inner->binding)) {
        return refuse(s, i, "a loop that is unrolled stands around a loop over the same axis");
    }
    if (wpk_nest_is_rolled(loop) && wpk_nest_is_rolled(inner) && loop->step % inner->step != 0) {
        return refuse(s, i, "the step is no multiple of %lld, that of the loop further in",
                      (long long)inner->step);
    }
    return check_tail(s, i);
}

/* Below `update atomic` threads of a block may share the terms of an element: each adds up its own
 * in registers, then all of them have the total. */
static wpk_err check_shares(const struct subject *s, int i)
{
    const struct wpk_nest_place *place = &s->entry->place;
    return s->entry->scope == WPK_SCOPE_REGISTER && place->entry >= 0 && place->loop >= 0
               ? WPK_OK
               : refuse(s, i,
                        "threads share the terms of a stage in registers that is computed in a "
                        "loop over blocks: write scope register, and in STAGE LOOP");
}

/* Below `update atomic` the outermost loop may deal out the terms to blocks, whose parts are added
 * up. Each block has its part in registers, and nothing around it but loops over blocks. */
static wpk_err check_parts(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    const struct wpk_nest_place *place = &s->entry->place;
    if (s->loops->atomic && wpk_bind_is_thread(loop->binding)) {
        return check_shares(s, i);
    }
    if (!s->loops->atomic || loop->binding != WPK_BIND_BLOCK_X) {
        return refuse(s, i,
                      "the iterations of a reduction do not run in parallel: write serial, or "
                      "block.x or thread.x below 'update atomic'");
    }
    bool fits = i == 0 && loop->tail == WPK_TAIL_EXACT && place->entry >= 0 && !place->update &&
                s->entry->scope == WPK_SCOPE_REGISTER;
    const struct wpk_nest_entry *reader = fits ? &s->nest->entry[place->entry] : NULL;
    fits = fits && reader->place.entry < 0 && place->loop >= 0;
    for (int l = 0; fits && l <= place->loop; l++) {
        fits = wpk_bind_is_block(wpk_nest_at(s->nest, &reader->pure, l)->binding);
    }
    return fits ? WPK_OK
                : refuse(s, i,
                         "parts over blocks are the outermost loop, exact, of a stage in registers "
                         "that is computed in loops over blocks alone");
}

/* The terms of an instruction are the innermost loop of a sum of its operands' products, inside
 * lanes. */
static wpk_err check_dot(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    const struct wpk_instruction *instruction = wpk_instruction_at(loop->instruction);
    int64_t terms = wpk_nest_iterations(s->nest, s->entry, s->loops, i);
    struct wpk_instruction_product product[WPK_INSTRUCTION_PRODUCTS_MAX];
    if (!is_update(s) || loop->axis < s->stage->rank || s->loops->atomic ||
        i != s->loops->count - 1 || i == 0 ||
        wpk_nest_at(s->nest, s->loops, i - 1)->binding != WPK_BIND_LANES) {
        return refuse(s, i,
                      "dot is the innermost loop of an update, over an axis that is "
                      "summed, inside lanes");
    }
    if (terms > instruction->terms) {
        return refuse(s, i, "%lld terms, and %s adds %d: write a loop with step %d around",
                      (long long)terms, instruction->name, instruction->terms, instruction->terms);
    }
    return wpk_instruction_products(instruction, s->nest->program, s->stage, product) > 0
               ? WPK_OK
               : refuse(s, i, "%s sums products of %s and %s in %s: choose another binding",
                        instruction->name, wpk_dtype_name(instruction->operand[0]),
                        wpk_dtype_name(instruction->operand[1]), wpk_dtype_name(instruction->sum));
}

static wpk_err check_binding(const struct subject *s, int i)
{
    const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
    bool reduction = loop->axis >= s->stage->rank;
    int64_t lanes = wpk_nest_iterations(s->nest, s->entry, s->loops, i);
    if (loop->binding == WPK_BIND_LANES && i != s->loops->count - 1 &&
        wpk_nest_at(s->nest, s->loops, i + 1)->binding != WPK_BIND_DOT) {
        return refuse(s, i, "lanes are the innermost loop, but for dot");
    }
    if (loop->binding == WPK_BIND_DOT) {
        return check_dot(s, i);
    }
    if (loop->binding == WPK_BIND_LANES && lanes > WPK_NEST_LANES_MAX) {
        return refuse(s, i, "%lld lanes, more than %d", (long long)lanes, WPK_NEST_LANES_MAX);
    }
    if (loop->binding == WPK_BIND_LANES && reduction && !s->loops->atomic) {
        return refuse(s, i, "a reduction runs in lanes only below 'update atomic'");
    }
    bool spreads = loop->binding == WPK_BIND_PARALLEL || wpk_bind_is_block(loop->binding) ||
                   wpk_bind_is_thread(loop->binding);
    if (spreads && reduction) {
        return check_parts(s, i);
    }
    if (loop->inside && (!reduction || loop->binding != WPK_BIND_SERIAL || loop->step != 1 ||
                         lanes != s->stage->axes[loop->axis].extent)) {
        return refuse(s, i, "inside is for a serial loop over all terms of an axis");
    }
    return WPK_OK;
}

/* True if some loop around the entry is one of blocks. */
static bool is_in_blocks(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    const struct wpk_nest_place *place = &entry->place;
    if (place->entry < 0) {
        return false;
    }
    const struct wpk_nest_entry *reader = &nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = 0; i <= place->loop; i++) {
        if (wpk_bind_is_block(wpk_nest_at(nest, loops, i)->binding)) {
            return true;
        }
    }
    return is_in_blocks(nest, reader);
}

/* Blocks, then threads in them; of each first z, then y, then x, which is there if z or y is, or if
 * the threads along x share terms. Loops of one binding run as one. */
static wpk_err check_grid(const struct subject *s)
{
    bool placed = is_in_blocks(s->nest, s->entry), blocks = placed;
    int last = -1;
    for (int i = 0; i < s->loops->count; i++) {
        enum wpk_loop_binding binding = wpk_nest_at(s->nest, s->loops, i)->binding;
        bool block = wpk_bind_is_block(binding);
        bool parts = block && wpk_nest_at(s->nest, s->loops, i)->axis >= s->stage->rank;
        if (parts || (!block && !wpk_bind_is_thread(binding))) { /* check_parts() */
            continue;
        }
        bool follows = last < 0 || (!block && last <= WPK_BIND_BLOCK_X
                                        ? last == WPK_BIND_BLOCK_X
                                        : (int)binding == last + 1 || (int)binding == last);
        if (!follows || (block && placed) || (!block && !blocks)) {
            return refuse(s, i,
                          "blocks stand around threads, and of each z around y around x: "
                          "write block.x or thread.x where there is one");
        }
        blocks = blocks || block;
        last = (int)binding;
    }
    int64_t width = last == WPK_BIND_THREAD_Y ? wpk_nest_width(s->nest, s->entry) : 1;
    if (width == 0) {
        return refuse(s, -1,
                      "stages of one launch share terms among different numbers of thread.x: write "
                      "the same number, or thread.x here");
    }
    if (last >= 0 && last != WPK_BIND_BLOCK_X && last != WPK_BIND_THREAD_X && width == 1) {
        return refuse(s, -1, "block.y and thread.y stand around block.x and thread.x");
    }
    return WPK_OK;
}

/* How much code a definition becomes: its loops count, and those around its place. */
struct size {
    int64_t statements; /* unrolled */
    int64_t lanes;      /* of each */
    int64_t copies;     /* of all: those of tails */
};

static void count_loops(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_loops *loops, int count, struct size *size)
{
    for (int i = 0; i < count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        int64_t span = wpk_nest_covered(nest, entry, loops, i - 1, loop->axis);
        int64_t iterations = wpk_nest_iterations(nest, entry, loops, i);
        if (loop->binding == WPK_BIND_UNROLL) {
            multiply(&size->statements, iterations);
        } else if (loop->binding == WPK_BIND_LANES) {
            multiply(&size->lanes, iterations);
        } else if (span % loop->step != 0 && !(loop->whole && loop->tail == WPK_TAIL_SHIFT)) {
            multiply(&size->copies, 2);
        }
    }
}

static wpk_err check_size(const struct subject *s)
{
    struct size size = {1, 1, 1};
    const struct wpk_nest_place *place = &s->entry->place;
    count_loops(s->nest, s->entry, s->loops, s->loops->count, &size);
    while (place->entry >= 0) {
        const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
        count_loops(s->nest, reader, place->update ? &reader->update : &reader->pure,
                    place->loop + 1, &size);
        place = &reader->place;
    }
    if (size.statements > WPK_NEST_STATEMENTS_MAX) {
        return refuse(s, -1, "%lld statements are unrolled, more than %d",
                      (long long)size.statements, WPK_NEST_STATEMENTS_MAX);
    }
    if (size.statements * size.lanes > WPK_NEST_CODE_MAX) {
        return refuse(s, -1, "%lld elements are unrolled or in lanes, more than %d",
                      (long long)(size.statements * size.lanes), WPK_NEST_CODE_MAX);
    }
    if (size.statements * size.copies > WPK_NEST_CODE_MAX) {
        return refuse(s, -1,
                      "%lld statements are unrolled, with the copies for tails, more than %d: "
                      "unroll less, or choose steps that divide",
                      (long long)(size.statements * size.copies), WPK_NEST_CODE_MAX);
    }
    return WPK_OK;
}

/* From the innermost loop outwards. */
static wpk_err check_order(const struct subject *s)
{
    int serial = -1, parallel = -1;
    for (int i = s->loops->count - 1; i >= 0; i--) {
        const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, s->loops, i);
        int64_t iterations = wpk_nest_iterations(s->nest, s->entry, s->loops, i);
        if (loop->binding == WPK_BIND_UNROLL) {
            if (serial >= 0) {
                return refuse(s, serial, "it is inside a loop that is unrolled: put it outside");
            }
        } else if (loop->binding == WPK_BIND_PARALLEL) {
            if (parallel > i + 1 && serial > i && serial < parallel) {
                return refuse(s, serial, "it is between parallel loops: put it outside or inside");
            }
            parallel = i;
            serial = i;
        } else if (wpk_nest_is_rolled(loop) && !wpk_bind_is_thread(loop->binding) &&
                   iterations > 1) {
            serial = i;
        }
    }
    return check_size(s);
}

/* Every axis has its loops, whose steps and bindings are right, and which are not too many.
 *   errors  WPK_EINVAL */
static wpk_err check_loops(const struct subject *s)
{
    int axis_count = is_update(s) ? s->stage->axis_count : s->stage->rank;
    unsigned looped = 0;
    if (s->loops->count > WPK_NEST_DEPTH_MAX) {
        return refuse(s, WPK_NEST_DEPTH_MAX, "more than %d loops: leave out those of one iteration",
                      WPK_NEST_DEPTH_MAX);
    }
    for (int i = 0; i < s->loops->count; i++) {
        wpk_err err = check_steps(s, i);
        err = err == WPK_OK ? check_binding(s, i) : err;
        if (err != WPK_OK) {
            return err;
        }
        looped |= 1U << wpk_nest_at(s->nest, s->loops, i)->axis;
    }
    for (int a = 0; a < axis_count; a++) {
        if ((looped >> a & 1) == 0 && s->entry->extent[a] > 1) {
            return refuse(s, -1, "no loop over the axis %s: write serial %s",
                          s->stage->axes[a].name, s->stage->axes[a].name);
        }
    }
    wpk_err err = check_grid(s);
    return err == WPK_OK ? check_order(s) : err;
}

static bool reads(const struct wpk_program *program, const struct wpk_stage *stage,
                  const bool *tensors)
{
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        if (tensors[load.node->tensor]) {
            return true;
        }
    }
    return false;
}

/* The first entry outside of the place that reads the tensor, by itself or through entries that
 * are inlined in it; NULL: there is none. Readers come before what they read: a single pass
 * backwards meets each inlined entry after the entry that it reads. */
static const struct wpk_nest_entry *find_outsider(const struct wpk_nest *nest, int below,
                                                  int tensor, const struct wpk_nest_place *place)
{
    bool tensors[WPK_TENSORS_MAX] = {false};
    const struct wpk_nest_entry *outsider = NULL;
    tensors[tensor] = true;
    for (int e = below - 1; e >= 0; e--) {
        const struct wpk_nest_entry *reader = &nest->entry[e];
        const struct wpk_stage *stage = wpk_nest_stage(nest, reader);
        if (!reads(nest->program, stage, tensors)) {
            continue;
        }
        if (reader->inlined) {
            tensors[stage->output] = true;
        } else if (e != place->entry && !wpk_nest_is_inside(nest, reader, place)) {
            outsider = reader;
        }
    }
    return outsider;
}

/* Iterations come one after the other where values stay. */
static wpk_err check_slide(const struct subject *s)
{
    const struct wpk_nest_place *place = &s->entry->place;
    if (!s->entry->slides) {
        return WPK_OK;
    }
    if (place->entry < 0 || s->entry->inlined || s->entry->bounded) {
        return refuse(s, -1,
                      "what slides is in a loop, and has no extent: each iteration computes "
                      "what the one before did not");
    }
    const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = s->entry->slide + 1; i <= place->loop; i++) {
        if (wpk_nest_at(s->nest, loops, i)->binding != WPK_BIND_SERIAL) {
            return refuse(s, -1,
                          "the loops from the one that it slides in to its place are serial");
        }
    }
    return s->entry->slide < place->loop
               ? WPK_OK
               : refuse(s, -1, "it slides in a loop around its place: choose one further out");
}

/* Values are on their way while loops around run one after the other, whole: every iteration is
 * known to come, and all that is computed in the loop is on its way alike. */
static wpk_err check_depth(const struct subject *s)
{
    const struct wpk_nest_place *place = &s->entry->place;
    bool shared = s->entry->scope == WPK_SCOPE_SHARED;
    int64_t iterations = 1;
    bool padded = s->entry->row_padding > 0 || s->entry->spacing > 0;
    bool copies = s->entry->depth > 0 || s->entry->by != WPK_COPY_ANY;
    if (s->entry->inlined || (!copies && (shared || !padded))) {
        return WPK_OK;
    }
    if (!shared || place->entry < 0 || s->stage->reduction != WPK_REDUCE_NONE) {
        return refuse(s, -1,
                      "padded, spaced, depth and by are for a copy in a loop: write scope "
                      "shared");
    }
    if (s->entry->depth == 0) {
        return WPK_OK;
    }
    const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = 0; i <= place->loop; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(s->nest, loops, i);
        int64_t span = wpk_nest_covered(s->nest, reader, loops, i - 1, loop->axis);
        bool parts = i == 0 && wpk_bind_is_block(loop->binding) && reader->update.atomic;
        if ((loop->binding != WPK_BIND_SERIAL && !parts) || span % loop->step != 0 ||
            !place->update) {
            return refuse(s, -1,
                          "with a depth the loops from the first of the update to its place are "
                          "serial, and their steps divide");
        }
        iterations *= parts ? 1 : wpk_nest_iterations(s->nest, reader, loops, i);
    }
    for (int e = place->entry + 1; e < s->nest->entry_count; e++) {
        const struct wpk_nest_entry *other = &s->nest->entry[e];
        bool inside = !other->inlined && other->place.entry == place->entry &&
                      other->place.update && other->place.loop <= place->loop;
        if (inside && (other->place.loop < place->loop || other->depth != s->entry->depth)) {
            return refuse(s, -1,
                          "all that is computed in these loops has the same place and depth");
        }
    }
    return iterations >= s->entry->depth
               ? WPK_OK
               : refuse(s, -1, "the loops have %lld iterations, less than the depth",
                        (long long)iterations);
}

static wpk_err check_place(const struct subject *s)
{
    const struct wpk_nest_place *place = &s->entry->place;
    const struct wpk_tensor *tensor = &s->nest->program->tensors[s->stage->output];
    bool output = tensor->role == WPK_ROLE_OUTPUT;
    if (s->entry->inlined) {
        return output || s->stage->reduction != WPK_REDUCE_NONE
                   ? refuse(s, -1,
                            "an output or a reduction cannot be inline: write root, or in "
                            "STAGE LOOP")
                   : WPK_OK;
    }
    if (place->entry < 0) {
        return WPK_OK;
    }
    if (output) {
        return refuse(s, -1, "an output is computed before everything: write root");
    }
    const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = 0; i <= place->loop; i++) {
        if (wpk_nest_at(s->nest, loops, i)->binding == WPK_BIND_LANES) {
            return refuse(s, -1, "nothing is computed inside lanes: choose a loop further out");
        }
    }
    for (int i = place->loop + 1; i < loops->count; i++) {
        if (place->loop >= 0 &&
            wpk_nest_at(s->nest, loops, place->loop)->binding == WPK_BIND_PARALLEL &&
            wpk_nest_at(s->nest, loops, i)->binding == WPK_BIND_PARALLEL) {
            char name[WPK_NEST_NAME_MAX];
            wpk_nest_name_loop(s->nest, reader, loops, i, name);
            return refuse(s, -1,
                          "the parallel loops of %s run as one, of which %s is further in: choose "
                          "that, or make it serial",
                          s->nest->program->tensors[wpk_nest_stage(s->nest, reader)->output].name,
                          name);
        }
    }
    const struct wpk_nest_entry *outside =
        find_outsider(s->nest, (int)(s->entry - s->nest->entry), s->stage->output, place);
    if (outside != NULL) {
        int read = wpk_nest_stage(s->nest, outside)->output;
        return refuse(s, -1, "%s reads it outside of that loop: choose a loop around both, or root",
                      s->nest->program->tensors[read].name);
    }
    return WPK_OK;
}

/* ---- what is computed */

/* The region is found anew, in `scratch`, a copy of the nest. */
static wpk_err check_extent(const struct subject *s, struct wpk_nest *scratch)
{
    int e = (int)(s->entry - s->nest->entry);
    struct wpk_nest_entry *found = &scratch->entry[e];
    if (!s->entry->bounded) {
        return WPK_OK;
    }
    scratch->entry_count = e + 1;
    wpk_nest_find_region(scratch);
    if (scratch->full) {
        return refuse(s, -1,
                      "iterations need parts of different sizes: choose another loop, or "
                      "root, or leave the extent out");
    }
    for (int a = 0; a < s->stage->rank; a++) {
        if (found->extent[a] != s->entry->extent[a]) {
            return refuse(s, -1, "an extent of %lld of %s is needed there, not %lld",
                          (long long)found->extent[a], s->stage->axes[a].name,
                          (long long)s->entry->extent[a]);
        }
    }
    return WPK_OK;
}

/* Elements that the loops over an axis compute past its end. */
static int64_t past_end(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_loops *loops, int axis)
{
    int64_t past = 0;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        int64_t iterations = wpk_nest_iterations(nest, entry, loops, i);
        bool rounds = loop->tail == WPK_TAIL_EXACT || loop->tail == WPK_TAIL_ROUND ||
                      (loop->tail == WPK_TAIL_SHIFT && iterations == 1);
        if (loop->axis == axis && rounds) {
            past += iterations * loop->step - wpk_nest_covered(nest, entry, loops, i - 1, axis);
        }
    }
    return past;
}

/* Entries on the stack may all be there at once. A sliding entry is kept for all iterations inside
 * a loop further out: the region there is found in `scratch`.
 *   total  bytes of the entries before */
static wpk_err check_scope(const struct subject *s, struct wpk_nest *scratch, int64_t *total)
{
    int e = (int)(s->entry - s->nest->entry);
    struct wpk_nest_entry found = *s->entry;
    if (s->entry->scope == WPK_SCOPE_OUTPUT) {
        const char *reason = wpk_nest_refuses_output(s->nest, e);
        return reason == NULL ? WPK_OK : refuse(s, -1, "%s: write scope heap", reason);
    }
    if (s->entry->inlined ||
        (s->entry->scope != WPK_SCOPE_STACK && s->entry->scope != WPK_SCOPE_REGISTER)) {
        return WPK_OK;
    }
    if (s->entry->slides) {
        scratch->entry_count = e + 1;
        scratch->entry[e].place.loop = s->entry->slide;
        wpk_nest_find_region(scratch);
        found = scratch->entry[e];
        scratch->entry[e] = *s->entry;
    }
    /* An upper bound of the bytes of an entry, whose extents are in `found`. */
    int64_t bytes = (int64_t)wpk_dtype_size(s->nest->program->tensors[s->stage->output].dtype);
    for (int a = 0; a < s->stage->rank; a++) {
        int64_t pure = past_end(s->nest, &found, &found.pure, a);
        int64_t update = past_end(s->nest, &found, &found.update, a);
        int64_t align = s->entry->align[a] > 1 ? s->entry->align[a] : 1;
        int64_t before = found.grain[a] % align == 0 ? 0 : align - 1;
        int64_t extent = found.extent[a] + (pure > update ? pure : update) + before;
        multiply(&bytes, (extent + align - 1) / align * align);
    }
    *total += bytes;
    if (bytes > WPK_NEST_STACK_BYTES_MAX) {
        return refuse(s, -1, "%lld bytes do not fit on the stack: write scope heap",
                      (long long)bytes);
    }
    return *total > WPK_NEST_STACK_BYTES_MAX
               ? refuse(s, -1,
                        "%lld bytes of this stage and those above do not fit on the stack: write "
                        "scope heap",
                        (long long)*total)
               : WPK_OK;
}

static wpk_err check_entry(struct subject *s, struct wpk_nest *scratch, int64_t *stack)
{
    const struct wpk_tensor *tensor = &s->nest->program->tensors[s->stage->output];
    bool output = tensor->role == WPK_ROLE_OUTPUT;
    s->loops = NULL;
    wpk_err err = check_place(s);
    err = err == WPK_OK ? check_slide(s) : err;
    err = err == WPK_OK ? check_depth(s) : err;
    err = err == WPK_OK ? check_extent(s, scratch) : err;
    err = err == WPK_OK ? check_scope(s, scratch, stack) : err;
    if (err != WPK_OK || s->entry->inlined) {
        return err;
    }
    bool aligned = false;
    for (int a = 0; a < s->stage->rank; a++) {
        int64_t align = s->entry->align[a];
        aligned = aligned || align > 1;
        if (align > 1 && s->entry->bounded && s->entry->extent[a] % align != 0) {
            return refuse(s, -1, "an extent of %lld of %s is no multiple of %lld: leave align out",
                          (long long)s->entry->extent[a], s->stage->axes[a].name, (long long)align);
        }
    }
    bool stored = s->entry->scope != WPK_SCOPE_ANY || s->entry->reordered;
    if (output && (stored || s->entry->bounded || aligned)) {
        return refuse(s, -1,
                      "an output has the caller's storage: leave scope, extent, align and stored "
                      "out");
    }
    if (s->entry->expanded && (s->stage->reduction != WPK_REDUCE_SUM || output)) {
        return refuse(s, -1, "only the sum of an intermediate tensor is expanded");
    }
    if (s->entry->expanded && !wpk_nest_may_expand(s->stage)) {
        return refuse(s, -1, "too many terms to be expanded: write init and update");
    }
    s->loops = &s->entry->pure;
    err = check_loops(s);
    if (err == WPK_OK && wpk_nest_has_update(s->nest, s->entry)) {
        s->loops = &s->entry->update;
        err = check_loops(s);
    }
    return err;
}

wpk_err wpk_nest_check(const struct wpk_nest *nest, struct wpk_diag *diag)
{
    struct wpk_nest *scratch = malloc(sizeof(*scratch));
    if (scratch == NULL) {
        return WPK_ENOMEM;
    }
    memcpy(scratch, nest, sizeof(*scratch));
    scratch->tile.place.entry = -1;
    wpk_err err = WPK_OK;
    int64_t stack = 0;
    for (int e = 0; e < nest->entry_count && err == WPK_OK; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        struct subject subject = {.nest = nest, .entry = entry, .diag = diag};
        WPK_ASSERT(entry->kind == WPK_NEST_STAGE);
        subject.stage = wpk_nest_stage(nest, entry);
        err = check_entry(&subject, scratch, &stack);
    }
    free(scratch);
    return err;
}
