/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate's nest, over the rewritten program: every decision was made before
 * (candidate_nest.h). */
#include "target/codegen.h"

#include "search/candidate_nest.h"
#include "search/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lowering {
    const struct wpk_nest *nest; /* the candidate's */
    struct wpk_schedule *out;
    char name[WPK_NEST_ENTRIES_MAX][WPK_NAME_MAX]; /* of the tensor that an entry writes */
};

/* The nest's copies and parts become stages. */
static wpk_err rewrite(struct lowering *l)
{
    struct wpk_program *program = &l->out->program;
    const struct wpk_program *from = l->nest->program;
    wpk_err err = WPK_OK;
    for (int e = 0; e < l->nest->entry_count && err == WPK_OK; e++) {
        const struct wpk_nest_entry *entry = &l->nest->entry[e];
        struct wpk_packing packing = entry->packing;
        if (entry->kind == WPK_NEST_STAGE) {
            int tensor = from->stages[entry->stage].output;
            snprintf(l->name[e], WPK_NAME_MAX, "%s", from->tensors[tensor].name);
        } else if (entry->kind == WPK_NEST_COPY) {
            packing.tensor = wpk_program_find_tensor(program, from->tensors[packing.tensor].name);
            err = wpk_derive_pack(program, &packing, l->name[e]);
        }
    }
    for (int e = l->nest->entry_count - 1; e > 0 && err == WPK_OK; e--) {
        const struct wpk_nest_entry *total = &l->nest->entry[e - 1];
        if (l->nest->entry[e].kind == WPK_NEST_PART) {
            int stage = wpk_program_find_stage(program, l->name[e - 1]);
            err = wpk_derive_block_reduction(program, stage, total->blocked, total->block,
                                             l->name[e]);
        }
    }
    return err;
}

/* ---- the schedule's nest */

/* The axis in the main program: a sum in blocks has the block's number in front, and its total sums
 * over that number alone. */
static int axis_of(const struct wpk_nest *nest, const struct wpk_nest_entry *entry, int axis)
{
    if (entry->kind == WPK_NEST_PART) {
        return axis + 1;
    }
    return entry->block > 0 && axis == entry->blocked ? wpk_nest_stage(nest, entry)->rank : axis;
}

/* The loops, outermost first, those of axes that are needed whole beside a reduction in lanes
 * included. */
static void take_loops(const struct wpk_nest *from, const struct wpk_nest_entry *entry, bool update,
                       struct wpk_nest *nest)
{
    struct wpk_nest_entry *taken = &nest->entry[nest->entry_count - 1];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    struct wpk_nest_loops *out = update ? &taken->update : &taken->pure;
    bool lanes = loops->atomic && wpk_nest_at(from, loops, 0)->binding == WPK_BIND_LANES;
    for (int a = 0; a < wpk_nest_stage(nest, taken)->rank && lanes; a++) {
        WPK_ASSERT(loops->count == 1);
        if (taken->extent[a] > 1) {
            wpk_nest_add_loop(nest, out, &(struct wpk_nest_loop){.axis = a, .step = 1});
        }
    }
    for (int i = 0; i < loops->count; i++) {
        struct wpk_nest_loop loop = *wpk_nest_at(from, loops, i);
        bool blocks = entry->block > 0 && loop.axis == entry->blocked;
        loop.step = blocks ? loop.step / entry->block : loop.step;
        loop.axis = axis_of(from, entry, loop.axis);
        wpk_nest_add_loop(nest, out, &loop);
    }
    out->atomic = loops->atomic;
}

static void take_entry(const struct lowering *l, int e, int stage, struct wpk_nest *nest)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_place *place = &entry->place;
    struct wpk_nest_entry *taken = wpk_nest_add(nest, WPK_NEST_STAGE, stage);
    taken->inlined = entry->inlined;
    taken->expanded = entry->expanded;
    taken->bounded = entry->bounded && !entry->inlined;
    taken->scope = entry->scope;
    taken->row_padding = entry->row_padding;
    taken->spaced = entry->spaced;
    taken->spacing = entry->spacing;
    taken->depth = entry->depth;
    taken->by = entry->by;
    if (entry->reordered && !entry->inlined) {
        /* A block's number is the outermost axis. */
        int rank = wpk_nest_stage(l->nest, entry)->rank, count = 0;
        taken->reordered = entry->reordered;
        if (entry->kind == WPK_NEST_PART) {
            taken->storage[count++] = 0;
        }
        for (int i = 0; i < rank; i++) {
            taken->storage[count++] = axis_of(l->nest, entry, entry->storage[i]);
        }
    }
    if (place->entry >= 0 && !entry->inlined) {
        int reader = nest->program->stage_count - 1 -
                     wpk_program_find_stage(nest->program, l->name[place->entry]);
        taken->place = *place;
        taken->place.entry = reader;
        if (place->loop < 0) { /* before the reader's loops: where the reader is */
            taken->place = nest->entry[reader].place;
        }
    }
    for (int a = 0; entry->kind == WPK_NEST_STAGE && a < wpk_nest_stage(l->nest, entry)->rank;
         a++) {
        taken->align[axis_of(l->nest, entry, a)] = entry->align[a];
    }
    wpk_nest_find_region(nest);
    take_loops(l->nest, entry, false, nest);
    take_loops(l->nest, entry, true, nest);
}

/* Readers come last in a program and first in a nest. */
static wpk_err take_nest(struct lowering *l)
{
    const struct wpk_program *main = &l->out->main;
    wpk_err err = wpk_schedule_add_nest(l->out);
    if (err != WPK_OK) {
        return err;
    }
    for (int s = main->stage_count - 1; s >= 0; s--) {
        int e = 0;
        while (wpk_program_find_stage(main, l->name[e]) != s) {
            e++;
            WPK_ASSERT(e < l->nest->entry_count);
        }
        take_entry(l, e, s, l->out->nest);
    }
    return l->out->nest->full ? WPK_ENOSPC : WPK_OK;
}

static wpk_err lower_nest(const struct wpk_nest *nest, struct wpk_schedule *out)
{
    struct lowering *l = WPK_DEMAND(calloc(1, sizeof(*l)));
    l->nest = nest;
    l->out = out;
    wpk_err err = wpk_program_copy(nest->program, &out->program);
    err = err == WPK_OK ? rewrite(l) : err;
    err = err == WPK_OK ? wpk_schedule_split(out) : err;
    err = err == WPK_OK ? take_nest(l) : err;
    free(l);
    return err;
}

static wpk_err describe_boundary(const struct wpk_space *space, const struct wpk_variant *variant,
                                 struct wpk_schedule *out)
{
    const struct wpk_program *original = &space->program;
    for (int t = 0; t < original->tensor_count; t++) {
        const struct wpk_tensor *tensor = &original->tensors[t];
        if (!wpk_tensor_is_given(tensor) && tensor->role != WPK_ROLE_OUTPUT) {
            continue;
        }
        struct wpk_boundary *boundary = &out->boundary[out->boundary_count++];
        snprintf(boundary->name, WPK_NAME_MAX, "%s", tensor->name);
        wpk_err err = wpk_variant_boundary(variant, original, t, &boundary->type);
        if (err != WPK_OK) {
            return err;
        }
    }
    return WPK_OK;
}

wpk_err wpk_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  struct wpk_schedule *out, struct wpk_diag *diag)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    memset(out, 0, sizeof(*out));
    if (!wpk_space_is_legal(space, candidate)) {
        return wpk_fail(diag, WPK_EINVAL, "the candidate breaks a rule of its space");
    }
    struct wpk_nest *nest = WPK_DEMAND(calloc(1, sizeof(*nest)));
    out->threads = space->options.threads;
    snprintf(out->by, sizeof(out->by), "%s", wpk_candidate_back_end(space, candidate));
    wpk_target_print(&space->options.device, space->options.strict, out->target);
    wpk_err err = wpk_candidate_nest(space, candidate, nest);
    err = err == WPK_OK ? describe_boundary(space, variant, out) : err;
    err = err == WPK_OK ? lower_nest(nest, out) : err;
    free(nest);
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    return err;
}
