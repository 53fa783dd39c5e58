/* SPDX-License-Identifier: Apache-2.0 */
#include "op/nest.h"

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

bool wpk_nest_may_expand(const struct wpk_stage *stage)
{
    int64_t terms = 1;
    for (int a = stage->rank; a < stage->axis_count && terms <= EXPANDED_TERMS_MAX; a++) {
        terms *= stage->axes[a].extent;
    }
    return terms <= EXPANDED_TERMS_MAX;
}
