/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/nest.h"

#include "ir/instruction/instruction.h"

#include <stdio.h>
#include <string.h>

#define EXPANDED_TERMS_MAX 64

struct wpk_nest_entry *wpk_nest_add(struct wpk_nest *nest, enum wpk_nest_kind kind, int stage)
{
    bool room = nest->entry_count < WPK_NEST_ENTRIES_MAX;
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - !room];
    nest->entry_count += room;
    nest->full = nest->full || !room;
    memset(entry, 0, sizeof(*entry));
    entry->kind = kind;
    entry->stage = stage;
    entry->place.entry = -1;
    entry->pure.first = nest->loop_count;
    entry->update.first = nest->loop_count;
    return entry;
}

void wpk_nest_add_loop(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_nest_loop *loop)
{
    if (nest->loop_count == WPK_NEST_LOOPS_MAX) {
        nest->full = true;
        return;
    }
    loops->first = loops->count == 0 ? nest->loop_count : loops->first;
    WPK_ASSERT(loops->first + loops->count == nest->loop_count);
    nest->loop[nest->loop_count++] = *loop;
    loops->count++;
}

const struct wpk_nest_loop *wpk_nest_at(const struct wpk_nest *nest,
                                        const struct wpk_nest_loops *loops, int loop)
{
    WPK_ASSERT(loop >= 0 && loop < loops->count);
    return &nest->loop[loops->first + loop];
}

const struct wpk_stage *wpk_nest_stage(const struct wpk_nest *nest,
                                       const struct wpk_nest_entry *entry)
{
    WPK_ASSERT(entry->stage >= 0 && entry->stage < nest->program->stage_count);
    return &nest->program->stages[entry->stage];
}

int64_t wpk_nest_covered(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                         const struct wpk_nest_loops *loops, int loop, int axis)
{
    int64_t covered = entry->extent[axis];
    for (int i = 0; i <= loop; i++) {
        const struct wpk_nest_loop *around = wpk_nest_at(nest, loops, i);
        covered = around->axis == axis ? around->step : covered;
    }
    return covered;
}

int64_t wpk_nest_iterations(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                            const struct wpk_nest_loops *loops, int loop)
{
    const struct wpk_nest_loop *l = wpk_nest_at(nest, loops, loop);
    int64_t span = wpk_nest_covered(nest, entry, loops, loop - 1, l->axis);
    return (span + l->step - 1) / l->step;
}

void wpk_nest_name_loop(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_loops *loops, int loop, char out[WPK_NEST_NAME_MAX])
{
    int axis = wpk_nest_at(nest, loops, loop)->axis, around = 0;
    for (int i = 0; i < loop; i++) {
        around += wpk_nest_at(nest, loops, i)->axis == axis;
    }
    const char *name = wpk_nest_stage(nest, entry)->axes[axis].name;
    if (around == 0) {
        snprintf(out, WPK_NEST_NAME_MAX, "%s", name);
    } else {
        snprintf(out, WPK_NEST_NAME_MAX, "%s.%d", name, around);
    }
}

bool wpk_bind_is_block(enum wpk_loop_binding binding)
{
    return binding >= WPK_BIND_BLOCK_Z && binding <= WPK_BIND_BLOCK_X;
}

bool wpk_bind_is_thread(enum wpk_loop_binding binding)
{
    return binding >= WPK_BIND_THREAD_Z && binding <= WPK_BIND_THREAD_X;
}

bool wpk_nest_is_shared_out(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                            int loop)
{
    const struct wpk_nest_loop *l = wpk_nest_at(nest, &entry->update, loop);
    return entry->update.atomic && l->axis >= wpk_nest_stage(nest, entry)->rank &&
           (wpk_bind_is_block(l->binding) || wpk_bind_is_thread(l->binding));
}

/* The entry that is computed before everything and that the entry is computed in. */
static const struct wpk_nest_entry *launch_of(const struct wpk_nest *nest,
                                              const struct wpk_nest_entry *entry)
{
    while (entry->place.entry >= 0 && entry->place.loop >= 0) {
        entry = &nest->entry[entry->place.entry];
    }
    return entry;
}

int64_t wpk_nest_width(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    const struct wpk_nest_entry *launch = launch_of(nest, entry);
    int64_t found = 1;
    for (int e = 0; e < nest->entry_count && found > 0; e++) {
        const struct wpk_nest_entry *other = &nest->entry[e];
        int64_t width = 1;
        if (other->inlined || !other->update.atomic || launch_of(nest, other) != launch) {
            continue;
        }
        for (int i = 0; i < other->update.count; i++) {
            bool along = wpk_nest_is_shared_out(nest, other, i) &&
                         wpk_nest_at(nest, &other->update, i)->binding == WPK_BIND_THREAD_X;
            width *= along ? wpk_nest_iterations(nest, other, &other->update, i) : 1;
        }
        found = width == 1 || found == width ? found : found == 1 ? width : 0;
    }
    return found;
}

bool wpk_nest_is_rolled(const struct wpk_nest_loop *loop)
{
    return loop->binding != WPK_BIND_UNROLL && loop->binding != WPK_BIND_LANES &&
           loop->binding != WPK_BIND_DOT;
}

bool wpk_nest_has_update(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    return entry->stage >= 0 && !entry->expanded &&
           wpk_nest_stage(nest, entry)->reduction != WPK_REDUCE_NONE;
}

static const char *const tail_names[] = {WPK_TAIL_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_tail_name, enum wpk_tail, tail_names)

static const char *const bind_names[] = {WPK_BIND_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_bind_name, enum wpk_loop_binding, bind_names)

static const char *const scope_names[] = {WPK_SCOPE_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_scope_name, enum wpk_scope, scope_names)

static const char *const copy_names[] = {WPK_COPY_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_copy_by_name, enum wpk_copy_by, copy_names)

bool wpk_nest_may_expand(const struct wpk_stage *stage)
{
    return wpk_stage_terms(stage) <= EXPANDED_TERMS_MAX;
}

/* ---- identity */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

static uint64_t mix_loops(uint64_t hash, const struct wpk_nest *nest,
                          const struct wpk_nest_loops *loops)
{
    hash = mix(hash, (uint64_t)loops->count << 1 | loops->atomic);
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        uint64_t word = (uint64_t)loop->axis << 16 | (uint64_t)loop->binding << 8 |
                        (uint64_t)loop->inside << 7 | (uint64_t)loop->tail << 1 | loop->whole;
        hash = mix(mix(hash, word), (uint64_t)loop->step);
        const char *name =
            loop->binding == WPK_BIND_DOT ? wpk_instruction_at(loop->instruction)->name : "";
        for (; *name != '\0'; name++) {
            hash = mix(hash, (uint64_t)(unsigned char)*name);
        }
    }
    return hash;
}

static uint64_t mix_copy(uint64_t hash, const struct wpk_packing *packing)
{
    hash = mix(hash, (uint64_t)packing->tensor << 8 | (uint64_t)packing->dim_count);
    for (int d = 0; d < packing->dim_count; d++) {
        hash = mix(mix(hash, (uint64_t)packing->dim[d]), (uint64_t)packing->block[d]);
    }
    return hash;
}

static uint64_t mix_storage(uint64_t hash, const struct wpk_nest *nest,
                            const struct wpk_nest_entry *entry)
{
    int rank = wpk_nest_stage(nest, entry)->rank;
    hash = mix(hash, (uint64_t)entry->depth << 32 | (uint64_t)entry->row_padding);
    hash = mix(hash, (uint64_t)entry->by);
    if (entry->spacing > 0) {
        hash = mix(hash, (uint64_t)entry->spaced << 32 | (uint64_t)entry->spacing);
    }
    hash = mix(hash, (uint64_t)entry->scope << 8 |
                         (entry->slides ? (uint64_t)entry->slide + 1 : 0) << 16 |
                         (uint64_t)entry->expanded << 1 | entry->reordered);
    for (int a = 0; a < rank; a++) {
        hash = mix(hash, (uint64_t)(entry->align[a] > 1 ? entry->align[a] : 0));
        hash = mix(hash, entry->reordered ? (uint64_t)entry->storage[a] + 1 : 0);
    }
    return hash;
}

/* An inlined entry says nothing, and what is needed of an entry is said where it is exact. */
static uint64_t mix_entry(uint64_t hash, const struct wpk_nest *nest,
                          const struct wpk_nest_entry *entry)
{
    const struct wpk_nest_place *place = &entry->place;
    bool root = place->entry < 0 || place->loop < 0;
    hash = mix(hash, (uint64_t)entry->kind << 32 | (uint32_t)entry->stage);
    hash = mix(hash, root ? 0
                          : (uint64_t)(place->entry + 1) << 16 | (uint64_t)place->loop << 1 |
                                place->update);
    if (entry->kind == WPK_NEST_COPY) {
        hash = mix_copy(hash, &entry->packing);
    } else if (entry->bounded) {
        int rank = wpk_nest_stage(nest, entry)->rank;
        for (int a = 0; a < rank; a++) {
            hash = mix(hash, (uint64_t)entry->extent[a]);
        }
        hash = mix(mix(hash, entry->expanded), (uint64_t)entry->block);
    }
    if (entry->kind != WPK_NEST_COPY) {
        hash = mix_storage(hash, nest, entry);
    }
    return mix_loops(mix_loops(hash, nest, &entry->pure), nest, &entry->update);
}

uint64_t wpk_nest_hash(const struct wpk_nest *nest)
{
    uint64_t hash = 0;
    for (int e = 0; e < nest->entry_count; e++) {
        hash = nest->entry[e].inlined ? hash : mix_entry(hash, nest, &nest->entry[e]);
    }
    return hash;
}
