/* SPDX-License-Identifier: Apache-2.0 */
#include "target/halide/halide.h"

#include "target/gpu/print.h"

/* The loop that is unrolled or in lanes over all that is needed of an axis, which is not as much in
 * every iteration of the loops around; -1: none. */
static int find_uncut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                      const struct wpk_nest_loops *loops)
{
    unsigned cut = 0;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        bool varies = loop->axis < wpk_nest_stage(nest, entry)->rank &&
                      ((entry->place.entry >= 0 && entry->align[loop->axis] > 1) ||
                       (!entry->bounded && entry->least[loop->axis] != entry->extent[loop->axis]));
        if (varies && !wpk_nest_is_rolled(loop) && (cut >> loop->axis & 1) == 0) {
            return i;
        }
        cut |= 1U << loop->axis;
    }
    return -1;
}

bool wpk_halide_is_cut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    return entry->inlined || entry->place.entry < 0 ||
           (find_uncut(nest, entry, &entry->pure) < 0 &&
            find_uncut(nest, entry, &entry->update) < 0);
}

/* Halide unrolls loops, and makes vectors of them, whose extents are numbers. */
static bool are_cut(const struct wpk_nest *nest, struct wpk_diag *diag)
{
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        for (int update = 0; update <= 1 && entry->place.entry >= 0 && !entry->inlined; update++) {
            const struct wpk_nest_loops *loops = update != 0 ? &entry->update : &entry->pure;
            int i = find_uncut(nest, entry, loops);
            if (i < 0) {
                continue;
            }
            char name[WPK_NEST_NAME_MAX];
            const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
            wpk_nest_name_loop(nest, entry, loops, i, name);
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "stage %s loop %s: iterations around it need more or less: write "
                            "serial %s step N guard around it, or extent and no align",
                            nest->program->tensors[wpk_nest_stage(nest, entry)->output].name, name,
                            name);
            return false;
        }
    }
    return true;
}

/* ---- blocks and threads */

static bool refuse(const struct wpk_schedule *schedule, const struct wpk_position *at,
                   struct wpk_diag *diag, const char *why)
{
    wpk_diag_set_at(diag, at->line, at->column, "the back end %s %s", schedule->by, why);
    return false;
}

/* The loops of a definition that is computed before everything: those over blocks are outermost. */
static bool accepts_root(const struct wpk_schedule *schedule, const struct wpk_nest_loops *loops,
                         struct wpk_diag *diag)
{
    bool other = false;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(schedule->nest, loops, i);
        bool block = wpk_bind_is_block(loop->binding);
        if (block && other) {
            return refuse(schedule, &loop->at, diag,
                          "launches once: write the loops over blocks outside of all others");
        }
        other = other || !block;
    }
    return true;
}

static bool has_threads(const struct wpk_nest *nest, const struct wpk_nest_loops *loops, int end)
{
    for (int i = 0; i < end; i++) {
        if (wpk_bind_is_thread(wpk_nest_at(nest, loops, i)->binding)) {
            return true;
        }
    }
    return false;
}

/* True if the entry is computed inside loops over blocks, but has no loop over threads and is in
 * none. */
static bool is_of_block(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    const struct wpk_nest_place *place = &entry->place;
    if (place->entry < 0 || has_threads(nest, &entry->pure, entry->pure.count)) {
        return false;
    }
    while (place->entry >= 0) {
        const struct wpk_nest_entry *reader = &nest->entry[place->entry];
        const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
        if (has_threads(nest, loops, place->loop + 1)) {
            return false;
        }
        place = &reader->place;
    }
    return true;
}

/* True if the place is inside one of several fused loops, but not inside the last. */
static bool is_between(const struct wpk_nest *nest, const struct wpk_nest_place *place)
{
    const struct wpk_nest_entry *reader = &nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    enum wpk_loop_binding at = wpk_nest_at(nest, loops, place->loop)->binding;
    for (int i = place->loop + 1; i < loops->count; i++) {
        enum wpk_loop_binding inner = wpk_nest_at(nest, loops, i)->binding;
        if ((wpk_bind_is_block(at) && inner == at) ||
            (wpk_bind_is_thread(at) && wpk_bind_is_thread(inner))) {
            return true;
        }
    }
    return false;
}

static bool accepts_entry(const struct wpk_schedule *schedule, const struct wpk_nest_entry *entry,
                          struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    for (int i = 0; i < entry->update.count; i++) {
        if (wpk_nest_is_shared_out(nest, entry, i)) {
            return refuse(schedule, &wpk_nest_at(nest, &entry->update, i)->at, diag,
                          "adds up no parts of blocks or threads: write serial");
        }
    }
    if (entry->spacing > 0) {
        return refuse(schedule, &entry->at, diag,
                      "stores what lies together one after the other: leave spaced out");
    }
    if (entry->depth > 0) {
        return refuse(schedule, &entry->at, diag, "copies nothing ahead: leave depth out");
    }
    if (entry->by == WPK_COPY_ASYNC) {
        return refuse(schedule, &entry->at, diag,
                      "has no asynchronous copies: write by load, or leave by out");
    }
    if (entry->place.entry >= 0 && is_between(nest, &entry->place)) {
        return refuse(schedule, &entry->at, diag,
                      "has no place between loops over threads: write the innermost of them");
    }
    if (entry->scope != WPK_SCOPE_SHARED && is_of_block(nest, entry)) {
        return refuse(schedule, &entry->at, diag,
                      "computes what has no loop over threads by one of them: write scope shared, "
                      "or thread.x");
    }
    return entry->place.entry >= 0 || (accepts_root(schedule, &entry->pure, diag) &&
                                       accepts_root(schedule, &entry->update, diag));
}

static bool accepts_grid(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    for (int e = 0; e < nest->entry_count; e++) {
        if (!nest->entry[e].inlined && !accepts_entry(schedule, &nest->entry[e], diag)) {
            return false;
        }
    }
    return true;
}

bool wpk_halide_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    return wpk_cuda_accepts(schedule, diag) && accepts_grid(schedule, diag);
}

/* ---- CPUs */

/* Halide has a call for every word of a nest, but blocks and threads need a device to run on. */
bool wpk_halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    if (!are_cut(nest, diag)) {
        return false;
    }
    for (int i = 0; i < nest->loop_count; i++) {
        const struct wpk_nest_loop *loop = &nest->loop[i];
        if (loop->binding == WPK_BIND_DOT) {
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "dot needs the back end c: write by c, or unroll outside of lanes");
            return false;
        }
        if (wpk_bind_is_block(loop->binding) || wpk_bind_is_thread(loop->binding)) {
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "%s needs a target of a GPU: write parallel, serial or unroll",
                            wpk_bind_name(loop->binding));
            return false;
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->scope == WPK_SCOPE_OUTPUT) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "scope output needs the back end c: write by c, or scope heap");
            return false;
        }
        if (entry->scope == WPK_SCOPE_SHARED || entry->scope == WPK_SCOPE_GLOBAL) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "scope %s needs a target of a GPU: write stack or heap",
                            wpk_scope_name(entry->scope));
            return false;
        }
    }
    return true;
}
