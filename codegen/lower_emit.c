/* SPDX-License-Identifier: Apache-2.0 */
/* Adding directives and naming loops, for every file of the lowering. */
#include "codegen/lowering.h"

#include <stdio.h>
#include <string.h>

struct wpk_directive *wpk_lowering_emit(struct wpk_lowering *l, enum wpk_directive_kind kind,
                                        int entry, bool update)
{
    int stage = wpk_schedule_find_stage(&l->out->main, l->name[entry]);
    struct wpk_directive *directive =
        stage < 0 ? NULL : wpk_schedule_add(l->out, kind, stage, update);
    if (directive == NULL) {
        l->err = l->err == WPK_OK ? WPK_ENOSPC : l->err;
        memset(&l->nowhere, 0, sizeof(l->nowhere));
        return &l->nowhere;
    }
    return directive;
}

void wpk_lowering_emit_loop(struct wpk_lowering *l, enum wpk_directive_kind kind, int entry,
                            bool update, const char *loop)
{
    wpk_directive_operand(wpk_lowering_emit(l, kind, entry, update), loop);
}

void wpk_lowering_settle_reorder(struct wpk_lowering *l, const struct wpk_directive *reorder)
{
    if (l->err == WPK_OK && reorder->loop_count < 2) {
        WPK_ASSERT(reorder == &l->out->directives[l->out->directive_count - 1]);
        l->out->directive_count--;
    }
}

void wpk_directive_operand(struct wpk_directive *directive, const char *name)
{
    WPK_ASSERT(directive->loop_count < WPK_LOOPS_MAX);
    snprintf(directive->loop[directive->loop_count++], WPK_LOOP_NAME_MAX, "%s", name);
}

void wpk_directive_split(struct wpk_directive *directive, const char *loop, const char *outer,
                         const char *inner, int64_t factor, enum wpk_tail tail)
{
    wpk_directive_operand(directive, loop);
    wpk_directive_operand(directive, outer);
    wpk_directive_operand(directive, inner);
    directive->factor = factor;
    directive->tail = tail;
}

void wpk_loop_name(char out[WPK_LOOP_NAME_MAX], const char *axis, char suffix)
{
    snprintf(out, WPK_LOOP_NAME_MAX, "%s.%c", axis, suffix);
}
