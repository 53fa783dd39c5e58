/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/check.h"

#include "nest/check_loops.h"
#include "nest/output.h"

#include <stdlib.h>
#include <string.h>

/* ---- places */

static bool reads(const struct wpk_program *program, const struct wpk_stage *stage,
                  const bool *tensors)
{
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count && i < WPK_LOADS_MAX; i++) {
        if (tensors[program->nodes[loads[i]].tensor]) {
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
static wpk_err check_slide(const struct wpk_nest_subject *s)
{
    const struct wpk_nest_place *place = &s->entry->place;
    if (!s->entry->slides) {
        return WPK_OK;
    }
    if (place->entry < 0 || s->entry->inlined || s->entry->bounded) {
        return wpk_nest_refuse(
            s, -1,
            "what slides is in a loop, and has no extent: each iteration computes "
            "what the one before did not");
    }
    const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = s->entry->slide + 1; i <= place->loop; i++) {
        if (wpk_nest_at(s->nest, loops, i)->binding != WPK_BIND_SERIAL) {
            return wpk_nest_refuse(
                s, -1, "the loops from the one that it slides in to its place are serial");
        }
    }
    return s->entry->slide < place->loop
               ? WPK_OK
               : wpk_nest_refuse(s, -1,
                                 "it slides in a loop around its place: choose one further out");
}

/* Values are on their way while loops around run one after the other, whole: every iteration is
 * known to come, and all that is computed in the loop is on its way alike. */
static wpk_err check_depth(const struct wpk_nest_subject *s)
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
        return wpk_nest_refuse(s, -1,
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
            return wpk_nest_refuse(
                s, -1,
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
            return wpk_nest_refuse(
                s, -1, "all that is computed in these loops has the same place and depth");
        }
    }
    return iterations >= s->entry->depth
               ? WPK_OK
               : wpk_nest_refuse(s, -1, "the loops have %lld iterations, less than the depth",
                                 (long long)iterations);
}

static wpk_err check_place(const struct wpk_nest_subject *s)
{
    const struct wpk_nest_place *place = &s->entry->place;
    const struct wpk_tensor *tensor = &s->nest->program->tensors[s->stage->output];
    bool output = tensor->role == WPK_ROLE_OUTPUT;
    if (s->entry->inlined) {
        return output || s->stage->reduction != WPK_REDUCE_NONE
                   ? wpk_nest_refuse(s, -1,
                                     "an output or a reduction cannot be inline: write root, or in "
                                     "STAGE LOOP")
                   : WPK_OK;
    }
    if (place->entry < 0) {
        return WPK_OK;
    }
    if (output) {
        return wpk_nest_refuse(s, -1, "an output is computed before everything: write root");
    }
    const struct wpk_nest_entry *reader = &s->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int i = 0; i <= place->loop; i++) {
        if (wpk_nest_at(s->nest, loops, i)->binding == WPK_BIND_LANES) {
            return wpk_nest_refuse(s, -1,
                                   "nothing is computed inside lanes: choose a loop further out");
        }
    }
    for (int i = place->loop + 1; i < loops->count; i++) {
        if (place->loop >= 0 &&
            wpk_nest_at(s->nest, loops, place->loop)->binding == WPK_BIND_PARALLEL &&
            wpk_nest_at(s->nest, loops, i)->binding == WPK_BIND_PARALLEL) {
            char name[WPK_NEST_NAME_MAX];
            wpk_nest_name_loop(s->nest, reader, loops, i, name);
            return wpk_nest_refuse(
                s, -1,
                "the parallel loops of %s run as one, of which %s is further in: choose "
                "that, or make it serial",
                s->nest->program->tensors[wpk_nest_stage(s->nest, reader)->output].name, name);
        }
    }
    const struct wpk_nest_entry *outside =
        find_outsider(s->nest, (int)(s->entry - s->nest->entry), s->stage->output, place);
    if (outside != NULL) {
        int read = wpk_nest_stage(s->nest, outside)->output;
        return wpk_nest_refuse(
            s, -1, "%s reads it outside of that loop: choose a loop around both, or root",
            s->nest->program->tensors[read].name);
    }
    return WPK_OK;
}

/* ---- what is computed */

/* The region is found anew, in `scratch`, a copy of the nest. */
static wpk_err check_extent(const struct wpk_nest_subject *s, struct wpk_nest *scratch)
{
    int e = (int)(s->entry - s->nest->entry);
    struct wpk_nest_entry *found = &scratch->entry[e];
    if (!s->entry->bounded) {
        return WPK_OK;
    }
    scratch->entry_count = e + 1;
    wpk_nest_find_region(scratch);
    if (scratch->full) {
        return wpk_nest_refuse(s, -1,
                               "iterations need parts of different sizes: choose another loop, or "
                               "root, or leave the extent out");
    }
    for (int a = 0; a < s->stage->rank; a++) {
        if (found->extent[a] != s->entry->extent[a]) {
            return wpk_nest_refuse(s, -1, "an extent of %lld of %s is needed there, not %lld",
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

/* An upper bound of the bytes of an entry, whose extents are in `found`. */
static int64_t stored_bytes(const struct wpk_nest_subject *s, const struct wpk_nest_entry *found)
{
    int64_t bytes = (int64_t)wpk_dtype_size(s->nest->program->tensors[s->stage->output].dtype);
    for (int a = 0; a < s->stage->rank; a++) {
        int64_t pure = past_end(s->nest, found, &found->pure, a);
        int64_t update = past_end(s->nest, found, &found->update, a);
        int64_t align = s->entry->align[a] > 1 ? s->entry->align[a] : 1;
        int64_t before = found->grain[a] % align == 0 ? 0 : align - 1;
        int64_t extent = found->extent[a] + (pure > update ? pure : update) + before;
        wpk_nest_multiply(&bytes, (extent + align - 1) / align * align);
    }
    return bytes;
}

/* Entries on the stack may all be there at once. A sliding entry is kept for all iterations inside
 * a loop further out: the region there is found in `scratch`.
 *   total  bytes of the entries before */
static wpk_err check_scope(const struct wpk_nest_subject *s, struct wpk_nest *scratch,
                           int64_t *total)
{
    int e = (int)(s->entry - s->nest->entry);
    struct wpk_nest_entry found = *s->entry;
    if (s->entry->scope == WPK_SCOPE_OUTPUT) {
        const char *reason = wpk_nest_refuses_output(s->nest, e);
        return reason == NULL ? WPK_OK : wpk_nest_refuse(s, -1, "%s: write scope heap", reason);
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
    int64_t bytes = stored_bytes(s, &found);
    *total += bytes;
    if (bytes > WPK_NEST_STACK_BYTES_MAX) {
        return wpk_nest_refuse(s, -1, "%lld bytes do not fit on the stack: write scope heap",
                               (long long)bytes);
    }
    return *total > WPK_NEST_STACK_BYTES_MAX
               ? wpk_nest_refuse(
                     s, -1,
                     "%lld bytes of this stage and those above do not fit on the stack: write "
                     "scope heap",
                     (long long)*total)
               : WPK_OK;
}

static wpk_err check_entry(struct wpk_nest_subject *s, struct wpk_nest *scratch, int64_t *stack)
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
            return wpk_nest_refuse(
                s, -1, "an extent of %lld of %s is no multiple of %lld: leave align out",
                (long long)s->entry->extent[a], s->stage->axes[a].name, (long long)align);
        }
    }
    bool stored = s->entry->scope != WPK_SCOPE_ANY || s->entry->reordered;
    if (output && (stored || s->entry->bounded || aligned)) {
        return wpk_nest_refuse(
            s, -1,
            "an output has the caller's storage: leave scope, extent, align and stored "
            "out");
    }
    if (s->entry->expanded && (s->stage->reduction != WPK_REDUCE_SUM || output)) {
        return wpk_nest_refuse(s, -1, "only the sum of an intermediate tensor is expanded");
    }
    if (s->entry->expanded && !wpk_nest_may_expand(s->stage)) {
        return wpk_nest_refuse(s, -1, "too many terms to be expanded: write init and update");
    }
    s->loops = &s->entry->pure;
    err = wpk_nest_check_loops(s);
    if (err == WPK_OK && wpk_nest_has_update(s->nest, s->entry)) {
        s->loops = &s->entry->update;
        err = wpk_nest_check_loops(s);
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
        struct wpk_nest_subject subject = {.nest = nest, .entry = entry, .diag = diag};
        WPK_ASSERT(entry->kind == WPK_NEST_STAGE);
        subject.stage = wpk_nest_stage(nest, entry);
        err = check_entry(&subject, scratch, &stack);
    }
    free(scratch);
    return err;
}
