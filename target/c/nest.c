/* SPDX-License-Identifier: Apache-2.0 */
/* Loops, their tails, and the entries that are computed inside them (compute_at).
 *
 * A definition is printed from its outermost loop inwards. The span is the rest of an axis that
 * inner loops cover, mostly a number: a tail is then a copy of the body with other numbers. If a
 * block's last part is shorter and is no copy, its span is a variable that bounds the inner
 * loops. */
#include "ir/node.h"
#include "nest/reach.h"
#include "target/c/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORT_MAX 8 /* statements of a loop that is written out */

/* The rest of an axis that inner loops cover: `most` elements, or `variable` of them if that is not
 * -1. */
struct span {
    int64_t most;
    int64_t last;        /* of a variable span: its other value; -1: it may be any */
    int variable;        /* -1: the span is `most` */
    struct wpk_form end; /* of a variable span: where the axis ends when it is `last` */
};

/* Where a definition's loops are: each axis is at [at, at + span). */
struct space {
    struct wpk_form at[WPK_AXES_MAX];
    struct span span[WPK_AXES_MAX];
};

struct definition {
    int entry;
    bool update;
    const struct wpk_stage *stage;
    struct wpk_nest_loop loop[WPK_C_LOOPS_MAX]; /* those of axes without loops come first */
    int count;
    int added;                   /* loops before the nest's own */
    int lanes;                   /* the loop that becomes vectors, -1: none */
    int native;                  /* lanes of a machine's vector */
    int given[WPK_C_LOOPS_MAX];  /* the variable of a loop whose iteration a task is given; -1 */
    bool hosts[WPK_C_LOOPS_MAX]; /* entries are computed inside it */
};

static void print_loops(struct wpk_c_kernel *k, struct definition *d, int i,
                        const struct space *space);
static void print_entry(struct wpk_c_kernel *k, int e, const struct wpk_c_box *box);

/* ---- what is computed inside a loop */

static bool is_placed(const struct wpk_nest_entry *entry, const struct definition *d, int i)
{
    return !entry->inlined && entry->place.entry == d->entry && entry->place.update == d->update &&
           entry->place.loop == i - d->added && i >= d->added;
}

static void print_placed(struct wpk_c_kernel *k, struct definition *d, int i,
                         const struct space *space)
{
    struct wpk_nest_place place = {.entry = d->entry, .update = d->update, .loop = i - d->added};
    int count = k->nest->entry_count, first = k->storage_count;
    struct wpk_c_box *box = WPK_DEMAND(calloc((size_t)count, sizeof(*box)));
    box[d->entry].present = true;
    for (int a = 0; a < d->stage->axis_count; a++) {
        box[d->entry].low[a] = space->at[a];
        box[d->entry].size[a] = space->span[a].most;
    }
    wpk_c_find_boxes(k, &place, box);
    wpk_c_line(&k->text, "{");
    for (int e = count - 1; e > d->entry && k->refusal == NULL; e--) {
        if (is_placed(&k->nest->entry[e], d, i) && box[e].present) {
            print_entry(k, e, &box[e]);
        }
    }
    print_loops(k, d, i + 1, space);
    wpk_c_storage_end(k, first);
    wpk_c_line(&k->text, "}");
    free(box);
}

/* One iteration of loop i, at `space`. */
static void print_iteration(struct wpk_c_kernel *k, struct definition *d, int i,
                            const struct space *space)
{
    if (d->hosts[i]) {
        print_placed(k, d, i, space);
    } else {
        print_loops(k, d, i + 1, space);
    }
}

/* ---- loops that are written out */

static void set_span(struct span *span, int64_t most)
{
    *span = (struct span){.most = most, .last = most, .variable = -1};
}

static void print_unrolled(struct wpk_c_kernel *k, struct definition *d, int i,
                           const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    int64_t left = space->span[loop->axis].most;
    struct space inner = *space;
    while (left > 0 && k->refusal == NULL) {
        int64_t step = left < loop->step ? left : loop->step;
        set_span(&inner.span[loop->axis], step);
        print_iteration(k, d, i, &inner);
        inner.at[loop->axis].constant += step;
        left -= step;
    }
}

/* Vectors of the machine's width, and narrower ones for what is left. */
static void print_lanes(struct wpk_c_kernel *k, struct definition *d, int i,
                        const struct space *space)
{
    int a = d->loop[i].axis;
    int64_t left = space->span[a].most;
    struct space inner = *space;
    if (a >= d->stage->rank) {
        wpk_c_print_lanes_of_terms(k, d->stage, space->at, a, left, d->native);
        return;
    }
    while (left > 0 && k->refusal == NULL) {
        int width = d->native;
        while (width > left) {
            width /= 2;
        }
        inner.at[a].lane = width > 1;
        set_span(&inner.span[a], 1);
        k->forms.width = width;
        print_iteration(k, d, i, &inner);
        k->forms.width = 1;
        inner.at[a].constant += width;
        left -= width;
    }
}

/* ---- loops that stay */

static int new_variable(struct wpk_c_kernel *k, const char *axis, int64_t low, int64_t high)
{
    char name[WPK_FORM_NAME_MAX];
    snprintf(name, sizeof(name), "n%d_%.20s", k->text.name_count++, axis);
    if (k->live_count == WPK_C_LIVE_MAX) {
        wpk_c_refuse(k, "too many loops around each other");
        return 0;
    }
    int atom = wpk_form_variable(&k->forms, name, low, high);
    k->live[k->live_count++] = atom;
    return atom;
}

/* "for (i64 v = 0; v < count / step; v++) {"; the count is the span. Returns v. */
static int open_for(struct wpk_c_kernel *k, const struct definition *d, int i,
                    const struct span *span, bool rounds_up)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    int64_t most = (span->most + (rounds_up ? loop->step - 1 : 0)) / loop->step;
    int v = new_variable(k, d->stage->axes[loop->axis].name, 0, most - 1);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "for (i64 %s = 0; %s < ", wpk_c_atom_name(k, v), wpk_c_atom_name(k, v));
    if (span->variable < 0) {
        wpk_c_put(&k->text, "%" PRId64, most);
    } else if (rounds_up) {
        wpk_c_put(&k->text, "(%s + %" PRId64 ") / %" PRId64, wpk_c_atom_name(k, span->variable),
                  loop->step - 1, loop->step);
    } else {
        wpk_c_put(&k->text, "%s / %" PRId64, wpk_c_atom_name(k, span->variable), loop->step);
    }
    wpk_c_put(&k->text, "; %s++) {\n", wpk_c_atom_name(k, v));
    k->text.depth++;
    return v;
}

/* The last iteration moves inwards. Where iterations begin is counted in their common divisor, so
 * that indices of packed tensors can be divided. */
static void print_shifted(struct wpk_c_kernel *k, struct definition *d, int i,
                          const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    const struct span *span = &space->span[loop->axis];
    int live = k->live_count, given = d->given[i];
    int64_t unit = wpk_gcd(loop->step, span->most - loop->step);
    unit = span->variable < 0 ? unit : wpk_gcd(unit, span->last - loop->step);
    struct space inner = *space;
    int v = given >= 0 ? given : open_for(k, d, i, span, true);
    int at = new_variable(k, d->stage->axes[loop->axis].name, 0, (span->most - loop->step) / unit);
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "const i64 %s = wpk_least(%" PRId64 " * %s, ", wpk_c_atom_name(k, at),
              loop->step / unit, wpk_c_atom_name(k, v));
    if (span->variable < 0) {
        wpk_c_put(&k->text, "%" PRId64 ");\n", (span->most - loop->step) / unit);
    } else {
        wpk_c_put(&k->text, "(%s - %" PRId64 ") / %" PRId64 ");\n",
                  wpk_c_atom_name(k, span->variable), loop->step, unit);
    }
    wpk_c_advance(k, &inner.at[loop->axis], at, unit);
    set_span(&inner.span[loop->axis], loop->step);
    print_iteration(k, d, i, &inner);
    if (given < 0) {
        wpk_c_line(&k->text, "}");
    }
    k->live_count = live;
}

/* Print one loop with its tail: the span of an iteration is a variable that bounds the inner
 * loops. */
static void print_guarded(struct wpk_c_kernel *k, struct definition *d, int i,
                          const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    const struct span *span = &space->span[loop->axis];
    int64_t last = span->most % loop->step;
    int live = k->live_count, given = d->given[i];
    struct space inner = *space;
    struct span *rest = &inner.span[loop->axis];
    int v = given >= 0 ? given : open_for(k, d, i, span, true);
    int size = new_variable(k, d->stage->axes[loop->axis].name, last, loop->step);
    wpk_c_line(&k->text, "const i64 %s = wpk_least(%" PRId64 ", %" PRId64 " - %" PRId64 " * %s);",
               wpk_c_atom_name(k, size), loop->step, span->most, loop->step, wpk_c_atom_name(k, v));
    *rest = (struct span){.most = loop->step, .last = last, .variable = size};
    rest->end = wpk_form_scale(&space->at[loop->axis], 1, span->most);
    wpk_c_advance(k, &inner.at[loop->axis], v, loop->step);
    print_iteration(k, d, i, &inner);
    if (given < 0) {
        wpk_c_line(&k->text, "}");
    }
    k->live_count = live;
}

/* Print the tail of a variable span, after its whole steps. The tail's length is a number if both
 * spans are known, else a variable that bounds the inner loops. */
static void print_variable_tail(struct wpk_c_kernel *k, struct definition *d, int i,
                                const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    const struct span *span = &space->span[loop->axis];
    bool known = span->most % loop->step == 0 && span->last >= 0;
    int live = k->live_count;
    struct space inner = *space;
    if (loop->step == 1 || (known && span->last % loop->step == 0)) {
        return;
    }
    wpk_c_line(&k->text, "if (%s %% %" PRId64 " != 0) {", wpk_c_atom_name(k, span->variable),
               loop->step);
    if (known) {
        set_span(&inner.span[loop->axis], span->last % loop->step);
        inner.at[loop->axis] = wpk_form_scale(&span->end, 1, -(span->last % loop->step));
    } else {
        const char *axis = d->stage->axes[loop->axis].name;
        int rest = new_variable(k, axis, 1, loop->step - 1);
        int begin = new_variable(k, axis, 0, span->most - 1);
        wpk_c_line(&k->text, "const i64 %s = %s %% %" PRId64 ", %s = %s - %s;",
                   wpk_c_atom_name(k, rest), wpk_c_atom_name(k, span->variable), loop->step,
                   wpk_c_atom_name(k, begin), wpk_c_atom_name(k, span->variable),
                   wpk_c_atom_name(k, rest));
        wpk_c_advance(k, &inner.at[loop->axis], begin, 1);
        inner.span[loop->axis] =
            (struct span){.most = loop->step - 1, .last = -1, .variable = rest};
    }
    print_iteration(k, d, i, &inner);
    wpk_c_line(&k->text, "}");
    k->live_count = live;
}

/* Whole steps, then what is left, as another copy of the body. */
static void print_peeled(struct wpk_c_kernel *k, struct definition *d, int i,
                         const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    const struct span *span = &space->span[loop->axis];
    int64_t whole = span->most / loop->step, rest = span->most % loop->step;
    int live = k->live_count, given = d->given[i];
    struct space inner = *space;
    set_span(&inner.span[loop->axis], loop->step);
    if (given >= 0 && rest > 0 && whole > 0) {
        wpk_c_line(&k->text, "if (%s < %" PRId64 ") {", wpk_c_atom_name(k, given), whole);
        k->forms.atom[given].high = whole - 1;
        wpk_c_advance(k, &inner.at[loop->axis], given, loop->step);
        print_iteration(k, d, i, &inner);
        k->forms.atom[given].high = whole;
        wpk_c_line(&k->text, "} else {");
    } else if (given >= 0 && whole > 0) {
        wpk_c_advance(k, &inner.at[loop->axis], given, loop->step);
        print_iteration(k, d, i, &inner);
    } else if (whole > 1 || span->variable >= 0) {
        wpk_c_advance(k, &inner.at[loop->axis], open_for(k, d, i, span, false), loop->step);
        print_iteration(k, d, i, &inner);
        wpk_c_line(&k->text, "}");
    } else if (whole == 1) {
        print_iteration(k, d, i, &inner);
    }
    if (span->variable >= 0) {
        print_variable_tail(k, d, i, space);
    } else if (rest > 0) {
        inner = *space;
        set_span(&inner.span[loop->axis], rest);
        inner.at[loop->axis].constant += whole * loop->step;
        print_iteration(k, d, i, &inner);
    }
    if (given >= 0 && rest > 0 && whole > 0) {
        wpk_c_line(&k->text, "}");
    }
    k->live_count = live;
}

/* True if an inner serial or parallel loop splits the same axis again, and no entry is computed
 * between the two loops: an entry there would be computed for the longer span even if the span is
 * shorter. */
static bool is_cut_again(const struct definition *d, int i)
{
    bool cut = false;
    for (int j = i + 1; j < d->count && !d->hosts[j - 1] && !cut; j++) {
        bool stays =
            d->loop[j].binding == WPK_BIND_SERIAL || d->loop[j].binding == WPK_BIND_PARALLEL;
        cut = stays && d->loop[j].axis == d->loop[i].axis;
    }
    return cut;
}

/* True if the iterations are so few and short that they are unrolled. Indices then become
 * numbers. */
static bool is_short(const struct definition *d, int i, const struct space *space)
{
    const struct span *span = &space->span[d->loop[i].axis];
    int64_t statements = (span->most + d->loop[i].step - 1) / d->loop[i].step;
    bool all = statements <= SHORT_MAX && span->variable < 0 && d->given[i] < 0;
    for (int j = i + 1; j < d->count && all; j++) {
        const struct wpk_nest_loop *loop = &d->loop[j];
        int64_t most = space->span[loop->axis].most;
        for (int n = i; n < j; n++) {
            most = d->loop[n].axis == loop->axis ? d->loop[n].step : most;
        }
        int64_t step = j == d->lanes ? d->native : loop->step;
        all = !wpk_nest_is_rolled(loop);
        statements *= loop->binding == WPK_BIND_DOT ? 1 : (most + step - 1) / step;
    }
    return all && statements <= SHORT_MAX;
}

/* The index of the border without the axis. False: it does not step by one with the axis. */
static bool rest_of(struct wpk_c_kernel *k, const struct definition *d, const struct space *space,
                    const struct wpk_nest_border *border, int i, struct wpk_form *rest)
{
    int axis = d->loop[i].axis;
    struct wpk_affine affine;
    if (!wpk_index_affine(k->nest->program, border->index, &affine) ||
        affine.coefficient[axis] != 1) {
        return false;
    }
    for (int j = i + 1; j < d->count; j++) { /* its terms are not known here */
        if (d->loop[j].axis != axis && affine.coefficient[d->loop[j].axis] != 0) {
            return false;
        }
    }
    *rest = wpk_form_number(affine.constant);
    for (int a = 0; a < d->stage->axis_count; a++) {
        if (a != axis && affine.coefficient[a] != 0) {
            *rest = wpk_form_add(&k->forms, rest, &space->at[a], affine.coefficient[a]);
        }
    }
    return true;
}

/* A loop over the terms that no border of zeros makes 0. */
static void print_inside(struct wpk_c_kernel *k, struct definition *d, int i,
                         const struct space *space)
{
    int axis = d->loop[i].axis, live = k->live_count;
    int64_t extent = space->span[axis].most;
    struct wpk_nest_border border[WPK_NEST_BORDERS_MAX];
    struct space inner = *space;
    struct wpk_form rest;
    int count = wpk_nest_borders(k->nest->program, k->nest, d->entry, true, border);
    int begin = new_variable(k, d->stage->axes[axis].name, 0, extent);
    int end = new_variable(k, d->stage->axes[axis].name, 0, extent);
    int v = new_variable(k, d->stage->axes[axis].name, 0, extent - 1);
    wpk_c_line(&k->text, "i64 %s = 0, %s = %" PRId64 ";", wpk_c_atom_name(k, begin),
               wpk_c_atom_name(k, end), extent);
    for (int b = 0; b < count; b++) {
        if (rest_of(k, d, space, &border[b], i, &rest)) {
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "%s = wpk_most(%s, %" PRId64 " - (", wpk_c_atom_name(k, begin),
                      wpk_c_atom_name(k, begin), border[b].low);
            wpk_c_put_form(&k->text, &rest);
            wpk_c_put(&k->text, ")), %s = wpk_least(%s, %" PRId64 " - (", wpk_c_atom_name(k, end),
                      wpk_c_atom_name(k, end), border[b].high);
            wpk_c_put_form(&k->text, &rest);
            wpk_c_put(&k->text, "));\n");
        }
    }
    wpk_c_line(&k->text, "for (i64 %s = %s; %s < %s; %s++) {", wpk_c_atom_name(k, v),
               wpk_c_atom_name(k, begin), wpk_c_atom_name(k, v), wpk_c_atom_name(k, end),
               wpk_c_atom_name(k, v));
    wpk_c_advance(k, &inner.at[axis], v, 1);
    set_span(&inner.span[axis], 1);
    print_iteration(k, d, i, &inner);
    wpk_c_line(&k->text, "}");
    k->live_count = live;
}

static void print_serial(struct wpk_c_kernel *k, struct definition *d, int i,
                         const struct space *space)
{
    const struct wpk_nest_loop *loop = &d->loop[i];
    const struct span *span = &space->span[loop->axis];
    if (loop->inside && loop->step == 1 && span->variable < 0 && span->most > 1) {
        print_inside(k, d, i, space);
        return;
    }
    if (is_short(d, i, space)) {
        print_unrolled(k, d, i, space);
        return;
    }
    bool variable = span->variable >= 0, tail = span->most % loop->step != 0;
    tail = tail || (variable && (span->last < 0 || span->last % loop->step != 0));
    int64_t least = variable && span->last < span->most ? span->last : span->most;
    if (tail && loop->tail == WPK_TAIL_SHIFT && least >= loop->step) {
        print_shifted(k, d, i, space);
    } else if (tail && !variable && span->most > loop->step && is_cut_again(d, i)) {
        print_guarded(k, d, i, space);
    } else {
        print_peeled(k, d, i, space);
    }
}

/* ---- parallel loops */

/* How many loops from the parallel loop i on run as one, `last` the innermost of them: nothing is
 * computed between them. */
static int find_parallel(const struct definition *d, int i, const struct space *space,
                         int64_t *jobs, int *loops)
{
    int count = 0;
    *jobs = 1;
    for (int j = i; j < d->count; j++) {
        const struct span *span = &space->span[d->loop[j].axis];
        bool fresh = span->variable < 0;
        for (int n = 0; n < count; n++) {
            fresh = fresh && d->loop[loops[n]].axis != d->loop[j].axis;
        }
        if (d->loop[j].binding == WPK_BIND_PARALLEL && fresh) {
            *jobs *= (span->most + d->loop[j].step - 1) / d->loop[j].step;
            loops[count++] = j;
        }
        if (d->hosts[j]) {
            break;
        }
    }
    return count;
}

/* The iteration of each loop, from the task's number. */
static void give_iterations(struct wpk_c_kernel *k, struct definition *d, const struct space *space,
                            const int *loops, int count)
{
    int64_t inside = 1;
    for (int n = count - 1; n >= 0; n--) {
        const struct wpk_nest_loop *loop = &d->loop[loops[n]];
        int64_t most = (space->span[loop->axis].most + loop->step - 1) / loop->step;
        int v = new_variable(k, d->stage->axes[loop->axis].name, 0, most - 1);
        wpk_c_line(&k->text, "const i64 %s = index / %" PRId64 " %% %" PRId64 ";",
                   wpk_c_atom_name(k, v), inside, most);
        d->given[loops[n]] = v;
        inside *= most;
    }
}

static void print_parallel(struct wpk_c_kernel *k, struct definition *d, int i,
                           const struct space *space)
{
    int loops[WPK_C_LOOPS_MAX];
    int64_t jobs = 1;
    int count = find_parallel(d, i, space, &jobs, loops);
    if (k->function > 0 || count == 0 || jobs < 2 || jobs > INT32_MAX) {
        print_serial(k, d, i, space);
        return;
    }
    struct wpk_c_task task;
    wpk_c_task_begin(k, &task);
    give_iterations(k, d, space, loops, count);
    print_loops(k, d, i, space);
    wpk_c_task_end(k, &task, jobs);
    for (int n = 0; n < count; n++) {
        d->given[loops[n]] = -1;
    }
}

/* ---- definitions */

static void print_loops(struct wpk_c_kernel *k, struct definition *d, int i,
                        const struct space *space)
{
    if (k->refusal != NULL) {
        return;
    }
    if (i == d->count) {
        wpk_c_print_point(k, d->stage, d->update, space->at);
        return;
    }
    const struct wpk_nest_loop *loop = &d->loop[i];
    bool variable = space->span[loop->axis].variable >= 0;
    bool written = !wpk_nest_is_rolled(loop);
    if (loop->binding == WPK_BIND_DOT && !variable &&
        wpk_c_print_dot(k, d->stage, space->at, loop, space->span[loop->axis].most)) {
        return;
    }
    if (i == d->lanes && !variable) {
        print_lanes(k, d, i, space);
    } else if (written && !variable) {
        print_unrolled(k, d, i, space);
    } else if (loop->binding == WPK_BIND_PARALLEL && d->given[i] < 0) {
        print_parallel(k, d, i, space);
    } else {
        print_serial(k, d, i, space);
    }
}

/* The size of the widest element that a stage computes with; indices fit into 32 bits. */
static int widest(const struct wpk_c_kernel *k, const struct wpk_stage *stage)
{
    int bytes = wpk_c_type_bytes(wpk_c_type_of(k->program->tensors[stage->output].dtype));
    for (int i = 0; i < k->program->node_count; i++) {
        const struct wpk_node *node = &k->program->nodes[i];
        bool index = node->dtype == WPK_I64 &&
                     (node->kind == WPK_NODE_AXIS || node->kind == WPK_NODE_LITERAL ||
                      node->kind == WPK_NODE_BINARY);
        if (!k->used[i] || index) {
            continue;
        }
        int own = wpk_c_type_bytes(wpk_c_type_of(node->dtype));
        bytes = own > bytes ? own : bytes;
    }
    return bytes;
}

static void begin_definition(struct wpk_c_kernel *k, int e, bool update, struct definition *d)
{
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    *d = (struct definition){.entry = e, .update = update, .stage = stage, .lanes = -1};
    d->count = wpk_c_list_loops(k, e, update, d->loop, &d->added);
    for (int i = 0; i < d->count; i++) {
        d->lanes = d->loop[i].binding == WPK_BIND_LANES ? i : d->lanes;
        d->given[i] = -1;
        for (int p = e + 1; p < k->nest->entry_count; p++) {
            d->hosts[i] = d->hosts[i] || is_placed(&k->nest->entry[p], d, i);
        }
    }
    wpk_c_find_used(k, stage);
    d->native = k->vector_bytes / widest(k, stage);
}

static void print_definition(struct wpk_c_kernel *k, int e, bool update,
                             const struct wpk_c_box *box)
{
    struct definition *d = WPK_DEMAND(malloc(sizeof(*d)));
    struct space *space = WPK_DEMAND(malloc(sizeof(*space)));
    begin_definition(k, e, update, d);
    for (int a = 0; a < d->stage->axis_count; a++) {
        bool pure = a < d->stage->rank;
        space->at[a] = pure ? box->low[a] : wpk_form_number(0);
        set_span(&space->span[a], pure ? box->size[a] : d->stage->axes[a].extent);
    }
    print_loops(k, d, 0, space);
    free(space);
    free(d);
}

static void print_entry(struct wpk_c_kernel *k, int e, const struct wpk_c_box *box)
{
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[e].stage];
    struct wpk_position around = k->printing;
    k->printing = k->nest->entry[e].at;
    if (k->program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE) {
        wpk_c_storage_add(k, stage->output, box);
    }
    print_definition(k, e, false, box);
    if (stage->reduction != WPK_REDUCE_NONE) {
        print_definition(k, e, true, box);
    }
    k->printing = around;
}

void wpk_c_print_entries(struct wpk_c_kernel *k)
{
    int first = k->storage_count;
    for (int e = k->nest->entry_count - 1; e >= 0 && k->refusal == NULL; e--) {
        const struct wpk_nest_entry *entry = &k->nest->entry[e];
        const struct wpk_stage *stage = &k->program->stages[entry->stage];
        struct wpk_c_box *box = WPK_DEMAND(calloc(1, sizeof(*box)));
        bool root = entry->place.entry < 0 || entry->place.loop < 0;
        for (int a = 0; a < stage->rank; a++) {
            box->size[a] = stage->axes[a].extent;
        }
        if (root && !entry->inlined) {
            print_entry(k, e, box);
        }
        free(box);
    }
    wpk_c_storage_end(k, first);
}
