/* SPDX-License-Identifier: Apache-2.0 */
/* An axis is split at its register tile first, then within it from the outside, then the loops over
 * tiles from the inside: blocks are of whole tiles (nest/nest.h). */
#include "target/halide/directive.h"

#include "nest/target.h"
#include "target/gpu/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_Z_MAX 64 /* every architecture */

/* One definition of a stage, and where its directives go. */
struct draft {
    const struct wpk_nest *nest;
    struct wpk_directives *out;
    const struct wpk_nest_entry *entry;
    const struct wpk_nest_loops *loops;
    bool update;
    bool device;                           /* the schedule is for one with blocks of threads */
    bool private;                          /* what has no scope is each thread's, as in CUDA C */
    bool linear[2 * WPK_NEST_ENTRIES_MAX]; /* by launch_of(): all loops over threads run as one */
};

/* The loops over one axis, outermost first; those before `tile` are cut into blocks of its tiles,
 * and the register tile lies inside it.
 *   shape  loop [count] */
struct axis_loops {
    int loop[WPK_LOOPS_MAX];
    int count;
    int tile; /* -1: the register tile is the whole axis */
};

/* ---- the list */

void wpk_directives_fini(struct wpk_directives *directives)
{
    if (directives != NULL) {
        free(directives->item);
        *directives = (struct wpk_directives){.count = 0};
    }
}

static const char *const directive_names[] = {WPK_DIRECTIVE_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_directive_name, enum wpk_directive_kind, directive_names)

static struct wpk_directive *emit(struct draft *draft, enum wpk_directive_kind kind)
{
    struct wpk_directives *out = draft->out;
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 32 : 2 * out->capacity;
        out->item = WPK_DEMAND(realloc(out->item, (size_t)out->capacity * sizeof(*out->item)));
    }
    struct wpk_directive *directive = &out->item[out->count++];
    memset(directive, 0, sizeof(*directive));
    directive->kind = kind;
    directive->stage = draft->entry->stage;
    directive->update = draft->update;
    return directive;
}

static void add_name(struct wpk_directive *directive, const char *name)
{
    WPK_ASSERT(directive->loop_count < WPK_LOOPS_MAX);
    snprintf(directive->loop[directive->loop_count++], WPK_LOOP_NAME_MAX, "%s", name);
}

static void emit_loop(struct draft *draft, enum wpk_directive_kind kind, const char *loop,
                      int64_t factor)
{
    struct wpk_directive *directive = emit(draft, kind);
    add_name(directive, loop);
    directive->factor = factor;
}

/* ---- names */

static struct axis_loops loops_of(const struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                                  int axis)
{
    struct axis_loops out = {.count = 0, .tile = -1};
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        if (loop->axis == axis) {
            WPK_ASSERT(out.count < WPK_LOOPS_MAX);
            out.tile = wpk_nest_is_rolled(loop) ? out.count : out.tile;
            out.loop[out.count++] = i;
        }
    }
    return out;
}

static void name_axis_loop(const char *axis, char letter, char out[WPK_LOOP_NAME_MAX])
{
    snprintf(out, WPK_LOOP_NAME_MAX, "%s.%c", axis, letter);
}

/* The loop number `at` of an axis: its letter says where it stands. */
static void name_of(const struct axis_loops *axis, const char *name, int at,
                    char out[WPK_LOOP_NAME_MAX])
{
    int inner = axis->count - 1 - axis->tile; /* loops of the register tile */
    if (axis->count == 1) {
        snprintf(out, WPK_LOOP_NAME_MAX, "%s", name);
    } else if (at < axis->tile) {
        name_axis_loop(name, (char)('B' + axis->tile - 1 - at), out);
    } else if (at == axis->tile) {
        name_axis_loop(name, axis->tile > 0 && inner > 0 ? 'S' : 'T', out);
    } else {
        name_axis_loop(name, inner == 1 ? 'I' : at == axis->count - 1 ? 'V' : 'U', out);
    }
}

static const char *axis_name(const struct draft *draft, int axis)
{
    return wpk_nest_stage(draft->nest, draft->entry)->axes[axis].name;
}

static void name_loop(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                      const struct wpk_nest_loops *loops, int i, char out[WPK_LOOP_NAME_MAX])
{
    int a = wpk_nest_at(nest, loops, i)->axis, at = 0;
    struct axis_loops axis = loops_of(nest, loops, a);
    while (axis.loop[at] != i) {
        at++;
    }
    name_of(&axis, wpk_nest_stage(nest, entry)->axes[a].name, at, out);
}

/* ---- splits */

/* Split at `loop` of the nest, whose iterations become `outer`. */
static void emit_split(struct draft *draft, const char *name, const char *outer, const char *inner,
                       const struct wpk_nest_loop *loop, int64_t factor)
{
    struct wpk_directive *split = emit(draft, WPK_DIRECTIVE_SPLIT);
    add_name(split, name);
    add_name(split, outer);
    add_name(split, inner);
    split->factor = factor;
    split->tail = loop->tail;
}

/* On a device a block's elements are cut first, which begin anywhere where the last one moves
 * inwards. A single iteration has nowhere to move to. */
static void split_inwards(struct draft *draft, int a)
{
    int64_t covered = draft->entry->extent[a];
    struct axis_loops axis = loops_of(draft->nest, draft->loops, a);
    const char *name = axis_name(draft, a);
    char whole[WPK_LOOP_NAME_MAX], outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
    snprintf(whole, sizeof(whole), "%s", name);
    for (int i = 0; i < axis.count - 1; i++) {
        struct wpk_nest_loop loop = *wpk_nest_at(draft->nest, draft->loops, axis.loop[i]);
        bool stays = loop.tail == WPK_TAIL_SHIFT && covered < loop.step;
        loop.tail = stays ? WPK_TAIL_GUARD : loop.tail;
        covered = loop.step;
        name_of(&axis, name, i, outer);
        name_of(&axis, name, i + 1, inner);
        emit_split(draft, whole, outer, inner, &loop, loop.step);
        snprintf(whole, sizeof(whole), "%s", inner);
    }
}

static void split_axis(struct draft *draft, int a)
{
    struct axis_loops axis = loops_of(draft->nest, draft->loops, a);
    const char *name = axis_name(draft, a);
    int tile = axis.tile, last = axis.count - 1;
    char whole[WPK_LOOP_NAME_MAX], outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
    char tiles[WPK_LOOP_NAME_MAX];
    snprintf(whole, sizeof(whole), "%s", name);
    snprintf(tiles, sizeof(tiles), "%s", name);
    if (tile >= 0 && tile < last) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, draft->loops, axis.loop[tile]);
        name_axis_loop(name, 'T', tiles);
        name_axis_loop(name, 'I', inner);
        emit_split(draft, name, tiles, inner, loop, loop->step);
        snprintf(whole, sizeof(whole), "%s", inner);
    }
    for (int i = tile + 1; i < last; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, draft->loops, axis.loop[i]);
        name_of(&axis, name, i, outer);
        name_of(&axis, name, i + 1, inner);
        emit_split(draft, whole, outer, inner, loop, loop->step);
        snprintf(whole, sizeof(whole), "%s", inner);
    }
    for (int i = tile - 1; i >= 0; i--) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, draft->loops, axis.loop[i]);
        const struct wpk_nest_loop *in = wpk_nest_at(draft->nest, draft->loops, axis.loop[i + 1]);
        name_of(&axis, name, i, outer);
        name_of(&axis, name, i + 1, inner);
        emit_split(draft, tiles, outer, inner, loop, loop->step / in->step);
        snprintf(tiles, sizeof(tiles), "%s", outer);
    }
}

/* ---- order and bindings */

static void emit_reorder(struct draft *draft)
{
    if (draft->loops->count < 2) {
        return;
    }
    struct wpk_directive *reorder = emit(draft, WPK_DIRECTIVE_REORDER);
    for (int i = draft->loops->count - 1; i >= 0; i--) {
        char name[WPK_LOOP_NAME_MAX];
        name_loop(draft->nest, draft->entry, draft->loops, i, name);
        add_name(reorder, name);
    }
}

/* Loops of these bindings run as one. */
static const struct {
    enum wpk_directive_kind kind;
    const char *name; /* of that one */
} joined[WPK_BIND_COUNT] = {
    [WPK_BIND_PARALLEL] = {WPK_DIRECTIVE_PARALLEL, "jobs"},
    [WPK_BIND_BLOCK_Z] = {WPK_DIRECTIVE_GPU_BLOCKS, "block_z"},
    [WPK_BIND_BLOCK_Y] = {WPK_DIRECTIVE_GPU_BLOCKS, "block_y"},
    [WPK_BIND_BLOCK_X] = {WPK_DIRECTIVE_GPU_BLOCKS, "block_x"},
    [WPK_BIND_THREAD_Z] = {WPK_DIRECTIVE_GPU_THREADS, "thread_z"},
    [WPK_BIND_THREAD_Y] = {WPK_DIRECTIVE_GPU_THREADS, "thread_y"},
    [WPK_BIND_THREAD_X] = {WPK_DIRECTIVE_GPU_THREADS, "thread_x"},
};

/* The launch that a definition of an entry belongs to: the root around it, and which of its
 * definitions. */
static int launch_of(const struct wpk_nest *nest, int entry, bool update)
{
    while (nest->entry[entry].place.entry >= 0) {
        update = nest->entry[entry].place.update;
        entry = nest->entry[entry].place.entry;
    }
    return 2 * entry + update;
}

/* Raise `most` to the threads that a definition has along each dimension, the innermost first. */
static void count_threads(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                          const struct wpk_nest_loops *loops, int64_t most[3])
{
    enum wpk_loop_binding before = WPK_BIND_SERIAL;
    int64_t count = 1;
    int dim = -1;
    for (int i = loops->count - 1; i >= 0; i--) {
        enum wpk_loop_binding binding = wpk_nest_at(nest, loops, i)->binding;
        if (wpk_bind_is_thread(binding)) {
            dim += binding != before;
            count = (binding != before ? 1 : count) * wpk_nest_iterations(nest, entry, loops, i);
            before = binding;
            most[dim] = count > most[dim] ? count : most[dim];
        }
    }
}

/* A block has as many threads along each dimension as any definition of the launch. Where these are
 * more than blocks may have, all definitions cut one number of a thread. */
static void find_linear(struct draft *draft)
{
    const struct wpk_nest *nest = draft->nest;
    for (int l = 0; l < 2 * nest->entry_count; l++) {
        int64_t most[3] = {1, 1, 1};
        for (int e = l / 2; e < nest->entry_count; e++) {
            const struct wpk_nest_entry *entry = &nest->entry[e];
            for (int update = 0; update <= 1 && !entry->inlined; update++) {
                if (launch_of(nest, e, update != 0) == l) {
                    count_threads(nest, entry, update != 0 ? &entry->update : &entry->pure, most);
                }
            }
        }
        draft->linear[l] =
            most[0] * most[1] * most[2] > WPK_CUDA_THREADS_MAX || most[2] > THREADS_Z_MAX;
    }
}

static bool is_linear(const struct draft *draft, const struct wpk_nest_entry *entry, bool update)
{
    return draft->linear[launch_of(draft->nest, (int)(entry - draft->nest->entry), update)];
}

static bool are_joined(enum wpk_loop_binding a, enum wpk_loop_binding b, bool linear)
{
    return a == b || (linear && wpk_bind_is_thread(a) && wpk_bind_is_thread(b));
}

static int count_joined(const struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                        enum wpk_loop_binding binding, bool linear)
{
    int count = 0;
    for (int i = 0; i < loops->count; i++) {
        count += are_joined(wpk_nest_at(nest, loops, i)->binding, binding, linear);
    }
    return count;
}

/* The loop that the innermost one becomes when it has taken in all but `left`. */
static void name_joined(enum wpk_loop_binding binding, bool linear, int left,
                        char out[WPK_LOOP_NAME_MAX])
{
    bool thread = linear && wpk_bind_is_thread(binding);
    name_axis_loop(thread ? "threads" : joined[binding].name, (char)('P' + left), out);
}

/* The innermost loop takes in the others, from the inside outwards. */
static void emit_joined(struct draft *draft, enum wpk_loop_binding binding)
{
    bool linear = is_linear(draft, draft->entry, draft->update);
    char taken[WPK_LOOP_NAME_MAX] = "";
    int left = count_joined(draft->nest, draft->loops, binding, linear);
    for (int i = draft->loops->count - 1; i >= 0; i--) {
        char name[WPK_LOOP_NAME_MAX];
        if (!are_joined(wpk_nest_at(draft->nest, draft->loops, i)->binding, binding, linear)) {
            continue;
        }
        name_loop(draft->nest, draft->entry, draft->loops, i, name);
        left--;
        if (taken[0] != '\0') {
            struct wpk_directive *fuse = emit(draft, WPK_DIRECTIVE_FUSE);
            add_name(fuse, taken);
            add_name(fuse, name);
            name_joined(binding, linear, left, name);
            add_name(fuse, name);
        }
        snprintf(taken, sizeof(taken), "%s", name);
    }
    if (taken[0] != '\0') {
        emit_loop(draft, joined[binding].kind, taken, 0);
    }
}

/* On a device, a definition before everything that has no blocks is computed by one thread. */
static bool is_single_thread(const struct draft *draft)
{
    bool single = draft->device && draft->entry->place.entry < 0;
    for (int i = 0; i < draft->loops->count; i++) {
        single = single && !wpk_bind_is_block(wpk_nest_at(draft->nest, draft->loops, i)->binding);
    }
    return single;
}

static void emit_definition(struct draft *draft, bool update)
{
    const struct wpk_nest_entry *entry = draft->entry;
    const struct wpk_stage *stage = wpk_nest_stage(draft->nest, entry);
    draft->update = update;
    draft->loops = update ? &entry->update : &entry->pure;
    for (int a = 0; a < stage->axis_count; a++) {
        if (draft->device) {
            split_inwards(draft, a);
        } else {
            split_axis(draft, a);
        }
    }
    emit_reorder(draft);
    if (draft->loops->atomic) {
        (void)emit(draft, WPK_DIRECTIVE_ATOMIC);
    }
    for (int i = draft->loops->count - 1; i >= 0; i--) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, draft->loops, i);
        char name[WPK_LOOP_NAME_MAX];
        name_loop(draft->nest, draft->entry, draft->loops, i, name);
        if (loop->whole) {
            emit_loop(draft, WPK_DIRECTIVE_NO_PARTITION, name, 0);
        }
        if (loop->binding == WPK_BIND_LANES) {
            emit_loop(draft, WPK_DIRECTIVE_VECTORIZE, name, 0);
        } else if (loop->binding == WPK_BIND_UNROLL) {
            emit_loop(draft, WPK_DIRECTIVE_UNROLL, name, 0);
        }
    }
    int last = is_linear(draft, entry, update) ? WPK_BIND_THREAD_Z : WPK_BIND_THREAD_X;
    for (int b = WPK_BIND_PARALLEL; b <= last; b++) {
        emit_joined(draft, (enum wpk_loop_binding)b);
    }
    if (is_single_thread(draft)) {
        (void)emit(draft, WPK_DIRECTIVE_GPU_SINGLE_THREAD);
    }
    draft->update = false;
}

/* ---- places and storage */

/* Of a loop of the stage that the entry's place is in. */
static void emit_at(struct draft *draft, enum wpk_directive_kind kind, int loop)
{
    const struct wpk_nest *nest = draft->nest;
    const struct wpk_nest_place *place = &draft->entry->place;
    const struct wpk_nest_entry *reader = &nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    char name[WPK_LOOP_NAME_MAX];
    enum wpk_loop_binding binding = wpk_nest_at(nest, loops, loop)->binding;
    bool linear = is_linear(draft, reader, place->update);
    if (joined[binding].name != NULL && count_joined(nest, loops, binding, linear) > 1) {
        name_joined(binding, linear, 0, name);
    } else {
        name_loop(nest, reader, loops, loop, name);
    }
    struct wpk_directive *at = emit(draft, kind);
    add_name(at, nest->program->tensors[wpk_nest_stage(nest, reader)->output].name);
    add_name(at, name);
}

static void emit_place(struct draft *draft)
{
    const struct wpk_nest *nest = draft->nest;
    const struct wpk_nest_place *place = &draft->entry->place;
    const struct wpk_program *program = nest->program;
    if (place->entry < 0) {
        int tensor = wpk_nest_stage(nest, draft->entry)->output;
        if (program->tensors[tensor].role != WPK_ROLE_OUTPUT) {
            (void)emit(draft, WPK_DIRECTIVE_COMPUTE_ROOT);
        }
        return;
    }
    emit_at(draft, WPK_DIRECTIVE_COMPUTE_AT, place->loop);
    if (draft->entry->slides) {
        emit_at(draft, WPK_DIRECTIVE_STORE_AT, draft->entry->slide);
    }
}

static void emit_storage(struct draft *draft)
{
    const struct wpk_nest_entry *entry = draft->entry;
    int rank = wpk_nest_stage(draft->nest, entry)->rank;
    for (int a = 0; a < rank; a++) { /* the last one is the first that Halide obeys */
        if (entry->align[a] > 1) {
            emit_loop(draft, WPK_DIRECTIVE_ALIGN_BOUNDS, axis_name(draft, a), entry->align[a]);
        }
    }
    for (int a = 0; a < rank && entry->bounded; a++) {
        emit_loop(draft, WPK_DIRECTIVE_BOUND_EXTENT, axis_name(draft, a), entry->extent[a]);
    }
    if (entry->reordered) {
        struct wpk_directive *order = emit(draft, WPK_DIRECTIVE_REORDER_STORAGE);
        for (int a = rank - 1; a >= 0; a--) {
            add_name(order, axis_name(draft, entry->storage[a]));
        }
    }
    if (entry->row_padding > 0) {
        int axis = entry->reordered ? entry->storage[rank - 1] : rank - 1;
        emit_loop(draft, WPK_DIRECTIVE_ALIGN_STORAGE, axis_name(draft, axis),
                  entry->extent[axis] + entry->row_padding);
    }
    enum wpk_scope scope = entry->scope;
    if (draft->private && scope == WPK_SCOPE_ANY && entry->place.entry >= 0) {
        scope = WPK_SCOPE_REGISTER;
    }
    if (scope != WPK_SCOPE_ANY) {
        emit_loop(draft, WPK_DIRECTIVE_STORE_IN, wpk_scope_name(scope), 0);
    }
}

void wpk_directives_make(const struct wpk_schedule *schedule, struct wpk_directives *out)
{
    const struct wpk_nest *nest = schedule->nest;
    struct draft draft = {.nest = nest,
                          .out = out,
                          .device = wpk_target_is_gpu(schedule->target),
                          .private = wpk_target_is_gpu(schedule->target)};
    *out = (struct wpk_directives){.count = 0};
    find_linear(&draft);
    for (int e = 0; e < nest->entry_count; e++) {
        draft.entry = &nest->entry[e];
        if (draft.entry->inlined) {
            continue;
        }
        emit_place(&draft);
        emit_storage(&draft);
        emit_definition(&draft, false);
        if (wpk_nest_has_update(nest, draft.entry)) {
            emit_definition(&draft, true);
        }
    }
}
