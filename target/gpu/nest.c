/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a launch, and what is computed inside them.
 *
 * A loop over blocks or threads is a variable, not a loop: how many of its iterations there are is
 * known before. Where a loop over threads does not divide its axis, points past the end are left
 * out one by one, so that no barrier stands inside a condition. The last iteration of a loop over
 * blocks moves inwards. Serial loops have a tail that is a copy of the body, which all threads
 * run.
 *
 * Barriers are derived: one between a definition that writes shared memory and what reads it, and
 * one before it if threads may still read what it replaces. */
#include "ir/node.h"
#include "target/gpu/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_loops(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                        const struct wpk_cuda_iteration *space);
static void print_entry(struct wpk_c_kernel *k, int e, const struct wpk_c_box *box);

/* ---- what is computed inside a loop */

static bool is_shared(const struct wpk_c_kernel *k, int e)
{
    return wpk_cuda_is_shared(k, k->program->stages[k->nest->entry[e].stage].output);
}

/* The regions of the entries that are computed inside loop i, by entry.
 *   owns    the caller frees it */
static struct wpk_c_box *find_boxes(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                                    int i, const struct wpk_cuda_iteration *space)
{
    struct wpk_nest_place place = {.entry = d->entry, .update = d->update, .loop = i - d->added};
    struct wpk_c_box *box = WPK_DEMAND(calloc((size_t)k->nest->entry_count, sizeof(*box)));
    box[d->entry].present = true;
    for (int a = 0; a < d->stage->axis_count; a++) {
        box[d->entry].low[a] = space->at[a];
        box[d->entry].size[a] = space->span[a];
    }
    wpk_c_find_boxes(k, &place, box);
    return box;
}

static void print_placed(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                         const struct wpk_cuda_iteration *space)
{
    int count = k->nest->entry_count, first = k->storage_count;
    struct wpk_c_box *box = find_boxes(k, d, i, space);
    bool shares = false;
    wpk_c_line(&k->text, "{");
    for (int e = d->entry + 1; e < count; e++) {
        shares = shares || (wpk_cuda_is_placed(&k->nest->entry[e], d, i) && is_shared(k, e));
    }
    if (shares && (k->launch->repeats > 0 || k->launch->wrote)) {
        wpk_cuda_put_barrier(k);
    }
    for (int e = count - 1; e > d->entry && k->refusal == NULL; e--) {
        if (wpk_cuda_is_placed(&k->nest->entry[e], d, i) && box[e].present) {
            print_entry(k, e, &box[e]);
        }
    }
    if (k->launch->pending) {
        wpk_cuda_put_barrier(k);
    }
    print_loops(k, d, i + 1, space);
    wpk_c_storage_end(k, first);
    wpk_c_line(&k->text, "}");
    free(box);
}

/* One iteration of loop i, at `space`. */
static void print_iteration(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                            const struct wpk_cuda_iteration *space)
{
    if (d->hosts[i]) {
        print_placed(k, d, i, space);
    } else {
        print_loops(k, d, i + 1, space);
    }
}

/* ---- loops that stay, or are written out */

static int new_variable(struct wpk_c_kernel *k, const char *axis, int64_t high)
{
    char name[WPK_FORM_NAME_MAX];
    snprintf(name, sizeof(name), "n%d_%.20s", k->text.name_count++, axis);
    return wpk_form_variable(&k->forms, name, 0, high);
}

static int open_loop(struct wpk_c_kernel *k, const char *name, int64_t from, int64_t count)
{
    int v = new_variable(k, name, count - 1);
    wpk_c_line(&k->text, "for (i32 %s = %" PRId64 "; %s < %" PRId64 "; %s++) {",
               wpk_c_atom_name(k, v), from, wpk_c_atom_name(k, v), count, wpk_c_atom_name(k, v));
    return v;
}

static void print_unrolled(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                           const struct wpk_cuda_iteration *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    struct wpk_cuda_iteration *inner = WPK_DEMAND(malloc(sizeof(*inner)));
    *inner = *space;
    bool repeats = space->span[loop->axis] > loop->step;
    k->launch->repeats += repeats;
    for (int64_t left = space->span[loop->axis]; left > 0 && k->refusal == NULL;) {
        int64_t step = left < loop->step ? left : loop->step;
        inner->span[loop->axis] = step;
        print_iteration(k, d, i, inner);
        inner->at[loop->axis].constant += step;
        left -= step;
    }
    k->launch->repeats -= repeats;
    free(inner);
}

/* Whole steps, then what is left, as another copy of the body. */
static void print_serial(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                         const struct wpk_cuda_iteration *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    int64_t whole = space->span[loop->axis] / loop->step;
    int64_t rest = space->span[loop->axis] % loop->step;
    struct wpk_cuda_iteration *inner = WPK_DEMAND(malloc(sizeof(*inner)));
    *inner = *space;
    inner->span[loop->axis] = loop->step;
    bool repeats = whole + (rest > 0) > 1;
    k->launch->repeats += repeats;
    if (whole > 1) {
        int v = open_loop(k, d->stage->axes[loop->axis].name, 0, whole);
        wpk_c_advance(k, &inner->at[loop->axis], v, loop->step);
        print_iteration(k, d, i, inner);
        wpk_c_line(&k->text, "}");
    } else if (whole == 1) {
        print_iteration(k, d, i, inner);
    }
    if (rest > 0) {
        inner->at[loop->axis] = wpk_form_scale(&space->at[loop->axis], 1, whole * loop->step);
        inner->span[loop->axis] = rest;
        print_iteration(k, d, i, inner);
    }
    k->launch->repeats -= repeats;
    free(inner);
}

/* ---- loops that compute ahead
 *
 * The loops from the outermost to the place of what has a depth D run as one, of N iterations:
 *
 *     copy 0, ..., D - 2
 *     for n < N:  wait for copy n;  barrier;  copy n + D - 1, unless that is past the end;  compute
 *
 * Copy n goes to buffer n % D. The barrier is the only one: behind it all threads see copy n, and
 * none reads copy n - 1 any more, whose buffer is that of copy n + D - 1. The asynchronous ones of
 * a copy are a group, an empty one past the end: so it is always the newest D - 2 that are not
 * waited for. Copies by loads are there when the barrier is passed. */

struct ahead {
    int first, last; /* loops */
    int depth;
    bool async; /* some copies are asynchronous */
    int64_t iterations;
};

/* True if the entry, which has a depth, is copied asynchronously. */
static bool is_async(const struct wpk_c_kernel *k, const struct wpk_nest_entry *entry)
{
    return entry->by == WPK_COPY_ANY ? k->launch->can_async : entry->by == WPK_COPY_ASYNC;
}

/* Find the serial loops from loop i on whose entries are copied ahead. False: there are none. */
static bool find_ahead(const struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int i,
                       struct ahead *out)
{
    *out = (struct ahead){.first = i, .iterations = 1};
    for (int l = i; l < d->count && d->loop[l].binding == WPK_BIND_SERIAL && out->depth == 0; l++) {
        out->last = l;
        for (int p = d->entry + 1; p < k->nest->entry_count && d->hosts[l]; p++) {
            const struct wpk_nest_entry *entry = &k->nest->entry[p];
            bool placed = wpk_cuda_is_placed(entry, d, l) && entry->depth > 0;
            out->depth = placed ? entry->depth : out->depth;
            out->async = out->async || (placed && is_async(k, entry));
        }
    }
    return out->depth > 0;
}

/* Iteration `n` of them: where each axis begins. A quotient is a variable, so that indices have few
 * terms. */
static void step_ahead(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                       const struct ahead *ahead, const struct wpk_form *n,
                       struct wpk_cuda_iteration *space)
{
    int64_t inside = ahead->iterations;
    for (int l = ahead->first; l <= ahead->last; l++) {
        const struct wpk_nest_loop *loop = &d->loop[l];
        int64_t count = space->span[loop->axis] / loop->step;
        inside /= count;
        struct wpk_form at = wpk_form_divide(&k->forms, n, inside);
        at = wpk_form_modulo(&k->forms, &at, count);
        if (ahead->first < ahead->last && !wpk_form_is_number(&at)) {
            int v = new_variable(k, d->stage->axes[loop->axis].name, count - 1);
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "const i32 %s = ", wpk_c_atom_name(k, v));
            wpk_c_put_form(&k->text, &at);
            wpk_c_put(&k->text, ";\n");
            at = wpk_form_atom(v, 1);
        }
        space->at[loop->axis] = wpk_form_add(&k->forms, &space->at[loop->axis], &at, loop->step);
        space->span[loop->axis] = loop->step;
    }
}

/* Print iteration `n`: its copies if `copies`, else the loops that read them. */
static void print_stage(struct wpk_c_kernel *k, struct wpk_cuda_definition *d,
                        const struct ahead *ahead, const struct wpk_form *n, bool copies,
                        const struct wpk_cuda_iteration *space)
{
    struct wpk_cuda_iteration *inner = WPK_DEMAND(malloc(sizeof(*inner)));
    int first = k->storage_count;
    *inner = *space;
    /* Begin what belongs to iteration `n`, in its buffer. */
    wpk_c_line(&k->text, "{");
    step_ahead(k, d, ahead, n, inner);
    k->launch->depth = ahead->depth;
    k->launch->buffer = wpk_form_modulo(&k->forms, n, ahead->depth);
    struct wpk_c_box *box = find_boxes(k, d, ahead->last, inner);
    for (int e = k->nest->entry_count - 1; e > d->entry && k->refusal == NULL; e--) {
        if (wpk_cuda_is_placed(&k->nest->entry[e], d, ahead->last) && box[e].present) {
            wpk_c_storage_add(k, k->program->stages[k->nest->entry[e].stage].output, &box[e]);
            k->launch->async = copies && is_async(k, &k->nest->entry[e]);
            if (copies) {
                wpk_cuda_print_definition(k, e, false, &box[e]);
            }
        }
    }
    k->launch->async = false;
    k->launch->depth = 0;
    if (!copies) {
        print_loops(k, d, ahead->last + 1, inner);
    }
    wpk_c_storage_end(k, first);
    wpk_c_line(&k->text, "}");
    free(box);
    free(inner);
}

static void commit(struct wpk_c_kernel *k, const struct ahead *ahead)
{
    if (ahead->async) {
        wpk_c_line(&k->text, "asm volatile(\"cp.async.commit_group;\" ::: \"memory\");");
    }
}

static void print_pipeline(struct wpk_c_kernel *k, struct wpk_cuda_definition *d,
                           struct ahead *ahead, const struct wpk_cuda_iteration *space)
{
    int early = ahead->depth - 1;
    for (int l = ahead->first; l <= ahead->last; l++) {
        ahead->iterations *= space->span[d->loop[l].axis] / d->loop[l].step;
    }
    if (k->launch->repeats > 0 || k->launch->wrote) {
        wpk_cuda_put_barrier(k);
    }
    struct wpk_form n = wpk_form_atom(open_loop(k, "early", 0, early), 1);
    print_stage(k, d, ahead, &n, true, space);
    commit(k, ahead);
    wpk_c_line(&k->text, "}");
    int now = open_loop(k, "now", 0, ahead->iterations);
    n = wpk_form_atom(now, 1);
    if (ahead->async) {
        wpk_c_line(&k->text, "asm volatile(\"cp.async.wait_group %d;\" ::: \"memory\");",
                   early - 1);
    }
    wpk_cuda_put_barrier(k);
    wpk_c_line(&k->text, "if (%s < %" PRId64 ") {", wpk_c_atom_name(k, now),
               ahead->iterations - early);
    int later = new_variable(k, "later", ahead->iterations - 1);
    wpk_c_line(&k->text, "const i32 %s = %s + %d;", wpk_c_atom_name(k, later),
               wpk_c_atom_name(k, now), early);
    struct wpk_form next = wpk_form_atom(later, 1);
    print_stage(k, d, ahead, &next, true, space);
    wpk_c_line(&k->text, "}");
    commit(k, ahead);
    k->launch->repeats++;
    print_stage(k, d, ahead, &n, false, space);
    k->launch->repeats--;
    wpk_c_line(&k->text, "}");
    k->launch->wrote = true;
}

/* ---- blocks and threads */

/* The last block moves inwards. A loop with one iteration has no variable: its factor would hide
 * that an index is a multiple of something. */
static void print_block_loop(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                             const struct wpk_cuda_iteration *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    struct wpk_cuda_iteration inner = *space;
    int64_t span = space->span[loop->axis], step = loop->step < span ? loop->step : span;
    int64_t rest = span - step, unit = wpk_gcd(step, rest);
    inner.span[loop->axis] = step;
    if (d->most[i] == 1) {
        print_iteration(k, d, i, &inner);
        return;
    }
    int v = new_variable(k, d->stage->axes[loop->axis].name, rest / unit);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "const i32 %s = ", wpk_c_atom_name(k, v));
    if (rest % step != 0) {
        wpk_c_put(&k->text,
                  "wpk_least(%" PRId64 " * ((i32)blockIdx.x / %" PRId64 " %% %" PRId64 "), %" PRId64
                  ");\n",
                  step / unit, d->inside[i], d->most[i], rest / unit);
        wpk_c_advance(k, &inner.at[loop->axis], v, unit);
    } else {
        k->forms.atom[v].high = d->most[i] - 1;
        wpk_c_put(&k->text, "(i32)blockIdx.x / %" PRId64 " %% %" PRId64 ";\n", d->inside[i],
                  d->most[i]);
        wpk_c_advance(k, &inner.at[loop->axis], v, step);
    }
    print_iteration(k, d, i, &inner);
}

static void add_guard(struct wpk_c_kernel *k, struct wpk_cuda_iteration *space, int axis,
                      const struct wpk_form *end)
{
    if (space->guard_count == WPK_CUDA_GUARDS_MAX) {
        wpk_c_refuse(k, "too many loops over threads do not divide their axes");
        return;
    }
    space->guard[space->guard_count++] = (struct wpk_cuda_guard){.axis = axis, .end = *end};
}

static void print_thread_loop(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                              const struct wpk_cuda_iteration *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    struct wpk_cuda_iteration *inner = WPK_DEMAND(malloc(sizeof(*inner)));
    bool outermost = d->inside[i] * d->most[i] == d->threads;
    bool idle = outermost && d->threads < k->launch->surveyed && !d->own;
    *inner = *space;
    inner->span[loop->axis] = loop->step;
    wpk_c_advance(k, &inner->at[loop->axis], wpk_cuda_part(k, d->inside[i], d->most[i]),
                  loop->step);
    bool first = d->shares && !d->update; /* values of its own: there may be more */
    if (d->most[i] * loop->step > space->span[loop->axis] && !first) {
        struct wpk_form end = wpk_form_scale(&space->at[loop->axis], 1, space->span[loop->axis]);
        add_guard(k, inner, loop->axis, &end);
    }
    if (idle) {
        wpk_c_line(&k->text, "if (threadIdx.x < %" PRId64 ") {", d->threads);
    }
    k->launch->threads_depth++;
    print_iteration(k, d, i, inner);
    k->launch->threads_depth--;
    if (idle) {
        wpk_c_line(&k->text, "}");
    }
    free(inner);
}

/* ---- definitions */

static void print_loops(struct wpk_c_kernel *k, struct wpk_cuda_definition *d, int i,
                        const struct wpk_cuda_iteration *space)
{
    if (k->refusal != NULL) {
        return;
    }
    struct ahead ahead;
    if (i == d->count) {
        wpk_cuda_print_point(k, d, space);
    } else if (find_ahead(k, d, i, &ahead)) {
        print_pipeline(k, d, &ahead, space);
    } else if (wpk_bind_is_block(d->loop[i].binding)) {
        print_block_loop(k, d, i, space);
    } else if (wpk_bind_is_thread(d->loop[i].binding)) {
        print_thread_loop(k, d, i, space);
    } else if (d->loop[i].binding == WPK_BIND_SERIAL) {
        print_serial(k, d, i, space);
    } else if (d->loop[i].binding == WPK_BIND_LANES) {
        wpk_cuda_print_lanes(k, d, i, space);
    } else {
        print_unrolled(k, d, i, space);
    }
}

/* A part of all tiles comes before the next part: `launch->blocks` are tiles so far. */
static void share_out(struct wpk_c_kernel *k, struct wpk_cuda_definition *d)
{
    struct wpk_cuda_launch *launch = k->launch;
    bool guards = false;
    for (int i = 0; i < d->count; i++) {
        const struct wpk_nest_loop *loop = &d->loop[i];
        guards = guards || (wpk_bind_is_thread(loop->binding) && loop->tail != WPK_TAIL_EXACT &&
                            loop->axis < d->stage->rank);
    }
    if (launch->parts > 0 || guards) {
        wpk_c_refuse(k, "parts over blocks are for one stage of a launch, whose loops over threads "
                        "divide their axes");
        return;
    }
    launch->tiles = launch->blocks;
    launch->parts = d->most[d->added];
    d->inside[d->added] = launch->tiles;
}

/*   shape  size [axis_count] */
static void size_of(const struct wpk_stage *stage, const struct wpk_c_box *box, int64_t *size)
{
    for (int a = 0; a < stage->axis_count; a++) {
        size[a] = a < stage->rank ? box->size[a] : stage->axes[a].extent;
    }
}

void wpk_cuda_print_definition(struct wpk_c_kernel *k, int e, bool update,
                               const struct wpk_c_box *box)
{
    struct wpk_cuda_definition *d = WPK_DEMAND(malloc(sizeof(*d)));
    struct wpk_cuda_iteration *space = WPK_DEMAND(malloc(sizeof(*space)));
    struct wpk_cuda_launch *launch = k->launch;
    int64_t blocks = 1;
    wpk_cuda_begin_definition(k, e, update, d);
    size_of(d->stage, box, space->span);
    wpk_cuda_count_parallel(d, space->span, &blocks);
    space->guard_count = 0;
    for (int a = 0; a < d->stage->axis_count; a++) {
        space->at[a] = a < d->stage->rank ? box->low[a] : wpk_form_number(0);
    }
    bool threads = wpk_cuda_has_thread_loop(d, WPK_BIND_THREAD_Z, WPK_BIND_THREAD_X);
    if (launch->threads_depth > 0 && (threads || !d->own)) {
        wpk_c_refuse(k, "inside a loop over threads a stage has no threads and no shared "
                        "memory of its own: compute it in a loop around the threads");
    }
    d->single = !threads && !d->own;
    if (wpk_cuda_has_parts(d)) {
        share_out(k, d);
        blocks = launch->parts * launch->tiles;
    }
    launch->blocks = blocks > launch->blocks ? blocks : launch->blocks;
    launch->threads = d->threads > launch->threads ? d->threads : launch->threads;
    print_loops(k, d, 0, space);
    if (d->shares && d->update && k->refusal == NULL) {
        wpk_cuda_join_shares(k, d);
    }
    if (wpk_cuda_has_parts(d) && launch->parts > 1 && k->refusal == NULL) {
        wpk_cuda_join_parts(k, d);
    }
    free(space);
    free(d);
}

/* True if the definition reads shared memory, or an entry that is computed inside it may. */
static bool may_read_shared(struct wpk_c_kernel *k, int e, bool update)
{
    bool reads = update && is_shared(k, e);
    for (int p = e + 1; p < k->nest->entry_count; p++) {
        const struct wpk_nest_entry *entry = &k->nest->entry[p];
        reads = reads || (!entry->inlined && entry->place.entry == e);
    }
    wpk_c_find_used(k, &k->program->stages[k->nest->entry[e].stage]);
    for (int i = 0; i < k->program->node_count && !reads; i++) {
        const struct wpk_node *node = &k->program->nodes[i];
        reads = k->used[i] && node->kind == WPK_NODE_LOAD && wpk_cuda_is_shared(k, node->tensor);
    }
    return reads;
}

static void print_entry(struct wpk_c_kernel *k, int e, const struct wpk_c_box *box)
{
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    struct wpk_position around = k->printing;
    k->printing = k->nest->entry[e].at;
    wpk_c_storage_add(k, stage->output, box);
    for (int update = 0; update <= (stage->reduction != WPK_REDUCE_NONE); update++) {
        if (k->launch->pending && may_read_shared(k, e, update != 0)) {
            wpk_cuda_put_barrier(k);
        }
        k->launch->async = k->nest->entry[e].by == WPK_COPY_ASYNC;
        k->launch->awaited = k->launch->awaited || k->launch->async;
        wpk_cuda_print_definition(k, e, update != 0, box);
        k->launch->async = false;
        k->launch->wrote = k->launch->wrote || is_shared(k, e);
        k->launch->pending = k->launch->pending || is_shared(k, e);
    }
    k->printing = around;
}
