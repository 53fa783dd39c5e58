/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/reach.h"

#include <string.h>

/* Loops up to the place cover the output exactly once, and none inside writes an element twice. */
static bool writes_once(const struct wpk_nest *nest, const struct wpk_nest_entry *output, int place)
{
    for (int i = 0; i < output->pure.count; i++) {
        enum wpk_tail tail = wpk_nest_at(nest, &output->pure, i)->tail;
        bool once = tail == WPK_TAIL_EXACT || tail == WPK_TAIL_GUARD || tail == WPK_TAIL_PREDICATE;
        if (!once || (i <= place && tail != WPK_TAIL_EXACT)) {
            return false;
        }
    }
    return true;
}

static bool goes_past(const struct wpk_nest *nest, const struct wpk_nest_loops *loops)
{
    for (int i = 0; i < loops->count; i++) {
        if (wpk_nest_at(nest, loops, i)->tail == WPK_TAIL_ROUND) {
            return true;
        }
    }
    return false;
}

/* True if the stage reads the tensor. `same`: at its own point only. */
static bool reads(const struct wpk_program *program, const struct wpk_stage *stage, int tensor,
                  bool *same)
{
    bool found = false;
    *same = true;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        if (load.node->tensor != tensor) {
            continue;
        }
        found = true;
        for (int d = 0; d < program->tensors[tensor].rank; d++) {
            *same = *same && wpk_index_axis(program, load.node->index[d]) == d;
        }
    }
    return found;
}

/* A bool output is kept as u8. */
static bool are_alike(const struct wpk_tensor *a, const struct wpk_tensor *b)
{
    bool alike = a->dtype == b->dtype && a->dtype != WPK_BOOL && a->rank == b->rank;
    for (int d = 0; d < a->rank && alike; d++) {
        alike = a->extent[d] == b->extent[d];
    }
    return alike;
}

/* True if the reader is computed before the loops inside the place. */
static bool comes_before(const struct wpk_nest *nest, int reader,
                         const struct wpk_nest_place *place)
{
    const struct wpk_nest_entry *entry = &nest->entry[reader];
    while (entry->place.entry >= 0 && entry->place.entry != place->entry) {
        entry = &nest->entry[entry->place.entry];
    }
    return !nest->entry[reader].inlined && entry->place.entry == place->entry &&
           entry->place.loop == place->loop;
}

static const char *refuse_readers(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                                  int tensor)
{
    int output = entry->place.entry;
    bool read = false;
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *other = &nest->entry[e];
        bool same;
        if (other->kind == WPK_NEST_COPY ||
            !reads(nest->program, wpk_nest_stage(nest, other), tensor, &same)) {
            continue;
        }
        if (e == output && !same) {
            return "the output reads it at other points than its own";
        }
        if (e != output && !comes_before(nest, e, &entry->place)) {
            return "a stage reads it while the output is computed";
        }
        read = read || e == output;
    }
    return read ? NULL : "the output does not read it itself";
}

const char *wpk_nest_refuses_output(const struct wpk_nest *nest, int number)
{
    const struct wpk_nest_entry *entry = &nest->entry[number];
    if (entry->place.entry < 0 || entry->place.update || entry->inlined ||
        entry->kind != WPK_NEST_STAGE) {
        return "it is not computed in an output";
    }
    const struct wpk_nest_entry *output = &nest->entry[entry->place.entry];
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry), *to = wpk_nest_stage(nest, output);
    const struct wpk_tensor *a = &nest->program->tensors[stage->output];
    const struct wpk_tensor *b = &nest->program->tensors[to->output];
    if (b->role != WPK_ROLE_OUTPUT || to->reduction != WPK_REDUCE_NONE) {
        return "it is not computed in an output that is no reduction";
    }
    bool narrows = stage->reduction != WPK_REDUCE_NONE && stage->accumulator != a->dtype;
    if (!are_alike(a, b) || narrows) {
        return "it has not the output's type and extents";
    }
    if (entry->bounded || entry->slides || entry->expanded || entry->reordered ||
        goes_past(nest, &entry->pure) || goes_past(nest, &entry->update)) {
        return "extent, slide, stored, expanded and round need storage of their own";
    }
    for (int d = 0; d < a->rank; d++) {
        int64_t covered = wpk_nest_covered(nest, output, &output->pure, entry->place.loop, d);
        if (entry->align[d] > 1 || entry->extent[d] != covered) {
            return "more of it is computed in an iteration than of the output";
        }
    }
    if (!writes_once(nest, output, entry->place.loop)) {
        return "the output's loops need exact steps up to its place, and no shift inside";
    }
    for (int e = 0; e < number; e++) {
        if (nest->entry[e].scope == WPK_SCOPE_OUTPUT &&
            nest->entry[e].place.entry == entry->place.entry) {
            return "another stage is in this output";
        }
    }
    return refuse_readers(nest, entry, stage->output);
}

bool wpk_program_may_use_output(const struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        const struct wpk_tensor *tensor = &program->tensors[stage->output];
        bool by_output = false, by_reduction = false;
        for (int r = 0; r < program->stage_count; r++) {
            const struct wpk_stage *reader = &program->stages[r];
            const struct wpk_tensor *written = &program->tensors[reader->output];
            bool same;
            if (!reads(program, reader, stage->output, &same)) {
                continue;
            }
            bool reduces = reader->reduction != WPK_REDUCE_NONE;
            by_reduction = by_reduction || reduces;
            by_output = by_output || (!reduces && same && written->role == WPK_ROLE_OUTPUT &&
                                      are_alike(tensor, written));
        }
        if (stage->reduction == WPK_REDUCE_NONE && by_output && by_reduction) {
            return true;
        }
    }
    return false;
}

/* True if something else than the entry of the output reads the tensor, or keeps values in the
 * output's memory. */
static bool is_touched_elsewhere(const struct wpk_nest *nest, int output, int tensor)
{
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        bool same;
        if (entry->scope == WPK_SCOPE_OUTPUT) {
            return true;
        }
        if (entry->kind == WPK_NEST_COPY
                ? entry->packing.tensor == tensor
                : e != output && reads(nest->program, wpk_nest_stage(nest, entry), tensor, &same)) {
            return true;
        }
    }
    return false;
}

/* The entry that computes the only output, by itself and not from a sum of its own; -1: none. */
static int find_output(const struct wpk_nest *nest)
{
    int found = -1;

    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->kind == WPK_NEST_COPY) {
            continue;
        }
        const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
        if (nest->program->tensors[stage->output].role != WPK_ROLE_OUTPUT) {
            continue;
        }
        if (found >= 0 || entry->kind != WPK_NEST_STAGE || entry->place.entry >= 0 ||
            stage->reduction != WPK_REDUCE_NONE || entry->bounded || entry->slides) {
            return -1;
        }
        found = e;
    }
    return found;
}

int wpk_nest_in_place(const struct wpk_nest *nest)
{
    const struct wpk_program *p = nest->program;
    int output = find_output(nest);

    if (output < 0 || !writes_once(nest, &nest->entry[output], -1)) {
        return -1;
    }
    const struct wpk_stage *stage = wpk_nest_stage(nest, &nest->entry[output]);
    const struct wpk_tensor *to = &p->tensors[stage->output];
    for (int t = 0; t < p->tensor_count; t++) {
        const struct wpk_tensor *from = &p->tensors[t];
        bool same = false;
        if (from->role == WPK_ROLE_INPUT && are_alike(from, to) &&
            memcmp(from->pad_before, to->pad_before, (size_t)to->rank * sizeof(int64_t)) == 0 &&
            memcmp(from->pad_after, to->pad_after, (size_t)to->rank * sizeof(int64_t)) == 0 &&
            reads(p, stage, t, &same) && same && !is_touched_elsewhere(nest, output, t)) {
            return t;
        }
    }
    return -1;
}
