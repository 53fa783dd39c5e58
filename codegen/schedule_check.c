/* SPDX-License-Identifier: Apache-2.0 */
/* A model of every definition's loop nest, on which each directive is played before anything is
 * compiled. It knows less than Halide (regions at inner levels are bounded by the whole axis) and
 * refuses what Halide accepts and then drowns in: a serial loop inside an unrolled one repeats the
 * loop's code once for each iteration, and a loop cut again after it became lanes does the same. */
#include "codegen/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MAX 8192

enum loop_kind { LOOP_SERIAL, LOOP_PARALLEL, LOOP_UNROLLED, LOOP_LANES };

struct loop {
    char name[WPK_LOOP_NAME_MAX];
    int64_t extent; /* at most; exact if `known` */
    bool known;
    bool reduction;
    enum loop_kind kind;
};

/* The loops of one definition, innermost first. */
struct nest {
    struct loop loop[2 * WPK_LOOPS_MAX];
    int count;
    bool atomic;
};

struct model {
    const struct wpk_schedule *schedule;
    struct nest pure[WPK_STAGES_MAX];
    struct nest update[WPK_STAGES_MAX];
    bool expanded[WPK_STAGES_MAX]; /* there is no update */
    struct wpk_diag *diag;
    int at; /* the directive being played */
};

static wpk_err refuse(struct model *m, const char *why, const char *name)
{
    const struct wpk_directive *d = &m->schedule->directives[m->at];
    const struct wpk_program *program = &m->schedule->main;
    wpk_diag_set(m->diag, "directive %d (%s%s %s): %s %s", m->at + 1,
                 program->tensors[program->stages[d->stage].output].name, d->update ? ".0" : "",
                 wpk_directive_name(d->kind), why, name);
    return WPK_EINVAL;
}

static void add_loop(struct nest *nest, const struct wpk_axis *axis, bool known, bool reduction)
{
    struct loop *loop = &nest->loop[nest->count++];
    snprintf(loop->name, sizeof(loop->name), "%s", axis->name);
    loop->extent = axis->extent;
    loop->known = known;
    loop->reduction = reduction;
    loop->kind = LOOP_SERIAL;
}

static void init_model(struct model *m)
{
    const struct wpk_program *program = &m->schedule->main;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        bool whole = program->tensors[stage->output].role == WPK_ROLE_OUTPUT;
        for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
            add_loop(&m->update[s], &stage->axes[a], true, true);
        }
        for (int a = stage->rank - 1; a >= 0; a--) {
            add_loop(&m->pure[s], &stage->axes[a], whole, false);
            add_loop(&m->update[s], &stage->axes[a], whole, false);
        }
    }
}

static int find_loop(const struct nest *nest, const char *name)
{
    for (int i = 0; i < nest->count; i++) {
        if (strcmp(nest->loop[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static wpk_err play_split(struct model *m, struct nest *nest, const struct wpk_directive *d)
{
    int at = find_loop(nest, d->loop[0]);
    if (at < 0) {
        return refuse(m, "no loop", d->loop[0]);
    }
    struct loop old = nest->loop[at];
    if (old.kind != LOOP_SERIAL) {
        return refuse(m, "splits a loop that is no longer serial:", old.name);
    }
    for (int i = 1; i <= 2; i++) {
        if (find_loop(nest, d->loop[i]) >= 0) {
            return refuse(m, "there is already a loop", d->loop[i]);
        }
    }
    if (nest->count == 2 * WPK_LOOPS_MAX) {
        return refuse(m, "too many loops at", old.name);
    }
    if (d->tail == WPK_TAIL_EXACT && old.known && old.extent % d->factor != 0) {
        return refuse(m, "the factor does not divide the extent of", old.name);
    }
    if (old.reduction && d->tail == WPK_TAIL_SHIFT) {
        return refuse(m, "a reduction cannot be shifted:", old.name);
    }
    memmove(&nest->loop[at + 1], &nest->loop[at], (size_t)(nest->count - at) * sizeof(old));
    nest->count++;
    struct loop *inner = &nest->loop[at], *outer = &nest->loop[at + 1];
    snprintf(outer->name, sizeof(outer->name), "%s", d->loop[1]);
    snprintf(inner->name, sizeof(inner->name), "%s", d->loop[2]);
    outer->extent = (old.extent + d->factor - 1) / d->factor;
    inner->extent = d->factor;
    inner->known = true;
    inner->reduction = old.reduction;
    return WPK_OK;
}

static wpk_err play_fuse(struct model *m, struct nest *nest, const struct wpk_directive *d)
{
    int inner = find_loop(nest, d->loop[0]), outer = find_loop(nest, d->loop[1]);
    if (inner < 0 || outer < 0 || inner == outer) {
        return refuse(m, "no loop", inner < 0 ? d->loop[0] : d->loop[1]);
    }
    if (nest->loop[inner].kind != LOOP_SERIAL || nest->loop[outer].kind != LOOP_SERIAL) {
        return refuse(m, "fuses a loop that is no longer serial:", d->loop[0]);
    }
    struct loop *kept = &nest->loop[inner];
    kept->extent *= nest->loop[outer].extent;
    kept->known = kept->known && nest->loop[outer].known;
    snprintf(kept->name, sizeof(kept->name), "%s", d->loop[2]);
    memmove(&nest->loop[outer], &nest->loop[outer + 1],
            (size_t)(nest->count - outer - 1) * sizeof(*kept));
    nest->count--;
    return WPK_OK;
}

/* The loops named take the places that they have between them, in the order named. */
static wpk_err play_reorder(struct model *m, struct nest *nest, const struct wpk_directive *d)
{
    int place[WPK_LOOPS_MAX];
    struct loop moved[WPK_LOOPS_MAX];
    for (int i = 0; i < d->loop_count; i++) {
        place[i] = find_loop(nest, d->loop[i]);
        if (place[i] < 0) {
            return refuse(m, "no loop", d->loop[i]);
        }
        for (int k = 0; k < i; k++) {
            if (place[k] == place[i]) {
                return refuse(m, "a loop is named twice:", d->loop[i]);
            }
        }
        moved[i] = nest->loop[place[i]];
    }
    for (int i = 0; i < nest->count; i++) {
        for (int k = 0, rank = 0; k < d->loop_count; k++) {
            rank = 0;
            for (int j = 0; j < d->loop_count; j++) {
                rank += place[j] < i;
            }
            if (place[k] == i) {
                nest->loop[i] = moved[rank];
                break;
            }
        }
    }
    return WPK_OK;
}

static wpk_err play_mark(struct model *m, struct nest *nest, const struct wpk_directive *d,
                         enum loop_kind kind)
{
    int at = find_loop(nest, d->loop[0]);
    if (at < 0) {
        return refuse(m, "no loop", d->loop[0]);
    }
    struct loop *loop = &nest->loop[at];
    if (loop->kind != LOOP_SERIAL) {
        return refuse(m, "the loop is no longer serial:", loop->name);
    }
    if (loop->reduction && kind != LOOP_UNROLLED && !nest->atomic) {
        return refuse(m, "only an atomic update may do that to a reduction:", loop->name);
    }
    if (kind == LOOP_LANES && loop->extent > 1024) {
        return refuse(m, "too many lanes:", loop->name);
    }
    loop->kind = kind;
    return WPK_OK;
}

static wpk_err play_bound(struct model *m, const struct wpk_directive *d)
{
    struct nest *both[2] = {&m->pure[d->stage], &m->update[d->stage]};
    for (int i = 0; i < 2; i++) {
        int at = find_loop(both[i], d->loop[0]);
        if (at < 0) {
            return refuse(m, "no axis (bounds come before splits)", d->loop[0]);
        }
        if (d->kind == WPK_DIRECTIVE_BOUND_EXTENT) {
            both[i]->loop[at].extent = d->factor;
            both[i]->loop[at].known = true;
        }
        if (m->schedule->main.stages[d->stage].reduction == WPK_REDUCE_NONE) {
            break;
        }
    }
    return WPK_OK;
}

static wpk_err play_place(struct model *m, const struct wpk_directive *d)
{
    int stage = wpk_schedule_find_stage(&m->schedule->main, d->loop[0]);
    if (stage < 0) {
        return refuse(m, "no stage", d->loop[0]);
    }
    if (stage == d->stage) {
        return refuse(m, "computed inside itself:", d->loop[0]);
    }
    const struct nest *update = &m->update[stage];
    int at = find_loop(update, d->loop[1]);
    bool reduces = at >= 0 && update->loop[at].reduction; /* the update alone has that loop */
    if (!reduces && find_loop(&m->pure[stage], d->loop[1]) < 0) {
        return refuse(m, "no loop", d->loop[1]);
    }
    return WPK_OK;
}

static wpk_err play_expand(struct model *m, const struct wpk_directive *d)
{
    const struct wpk_stage *stage = &m->schedule->main.stages[d->stage];
    const struct wpk_tensor *tensor = &m->schedule->main.tensors[stage->output];
    if (stage->reduction != WPK_REDUCE_SUM || tensor->role == WPK_ROLE_OUTPUT) {
        return refuse(m, "only an intermediate sum is expanded", "");
    }
    return wpk_nest_may_expand(stage) ? WPK_OK : refuse(m, "too many terms are expanded", "");
}

static wpk_err play(struct model *m, const struct wpk_directive *d)
{
    struct nest *nest = d->update ? &m->update[d->stage] : &m->pure[d->stage];
    if (d->update && m->expanded[d->stage]) {
        return refuse(m, "the stage is expanded and has no update", "");
    }
    switch (d->kind) {
    case WPK_DIRECTIVE_SPLIT:
        return play_split(m, nest, d);
    case WPK_DIRECTIVE_FUSE:
        return play_fuse(m, nest, d);
    case WPK_DIRECTIVE_REORDER:
        return play_reorder(m, nest, d);
    case WPK_DIRECTIVE_VECTORIZE:
        return play_mark(m, nest, d, LOOP_LANES);
    case WPK_DIRECTIVE_UNROLL:
        return play_mark(m, nest, d, LOOP_UNROLLED);
    case WPK_DIRECTIVE_PARALLEL:
        return play_mark(m, nest, d, LOOP_PARALLEL);
    case WPK_DIRECTIVE_ATOMIC:
        if (m->schedule->main.stages[d->stage].reduction == WPK_REDUCE_NONE) {
            return refuse(m, "the stage does not reduce", "");
        }
        m->update[d->stage].atomic = true;
        return WPK_OK;
    case WPK_DIRECTIVE_EXPAND:
        return play_expand(m, d);
    case WPK_DIRECTIVE_COMPUTE_AT:
        return play_place(m, d);
    case WPK_DIRECTIVE_BOUND_EXTENT:
    case WPK_DIRECTIVE_ALIGN_BOUNDS:
        return play_bound(m, d);
    case WPK_DIRECTIVE_NO_PARTITION:
        return find_loop(nest, d->loop[0]) < 0 ? refuse(m, "no loop", d->loop[0]) : WPK_OK;
    case WPK_DIRECTIVE_STORE_IN:
        return strcmp(d->loop[0], "stack") == 0 || strcmp(d->loop[0], "heap") == 0 ||
                       strcmp(d->loop[0], "register") == 0
                   ? WPK_OK
                   : refuse(m, "no such memory:", d->loop[0]);
    default:
        return WPK_OK;
    }
}

static wpk_err check_nest(struct model *m, const struct nest *nest, int stage)
{
    const struct wpk_program *program = &m->schedule->main;
    const char *name = program->tensors[program->stages[stage].output].name;
    const char *serial = NULL;
    int64_t statements = 1;
    for (int i = 0; i < nest->count; i++) {
        const struct loop *loop = &nest->loop[i];
        if (loop->kind == LOOP_UNROLLED) {
            if (serial != NULL) {
                wpk_diag_set(m->diag, "%s: the serial loop %s stands inside the unrolled loop %s",
                             name, serial, loop->name);
                return WPK_EINVAL;
            }
            statements = statements > STATEMENTS_MAX ? statements : statements * loop->extent;
        } else if (loop->kind != LOOP_LANES && loop->extent > 1) {
            serial = loop->name;
        } else if (loop->kind == LOOP_LANES && serial != NULL) {
            wpk_diag_set(m->diag, "%s: the serial loop %s stands inside the lanes %s", name, serial,
                         loop->name);
            return WPK_EINVAL;
        }
    }
    if (statements > STATEMENTS_MAX) {
        wpk_diag_set(m->diag, "%s: %lld unrolled statements, more than %d", name,
                     (long long)statements, STATEMENTS_MAX);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

wpk_err wpk_schedule_check(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    struct model *m = calloc(1, sizeof(*m));
    wpk_err err = WPK_OK;
    if (m == NULL) {
        return WPK_ENOMEM;
    }
    m->schedule = schedule;
    m->diag = diag;
    init_model(m);
    for (int s = 0; s < schedule->main.stage_count; s++) {
        m->expanded[s] = wpk_schedule_expands(schedule, &schedule->main.stages[s]);
    }
    for (m->at = 0; m->at < schedule->directive_count && err == WPK_OK; m->at++) {
        err = play(m, &schedule->directives[m->at]);
    }
    for (int s = 0; s < schedule->main.stage_count && err == WPK_OK; s++) {
        err = check_nest(m, &m->pure[s], s);
        if (err == WPK_OK && schedule->main.stages[s].reduction != WPK_REDUCE_NONE &&
            !m->expanded[s]) {
            err = check_nest(m, &m->update[s], s);
        }
    }
    free(m);
    return err;
}
