/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions that the parts of lower.c share: a lowering under way, and adding directives.
 *
 * Names of loops: axis y has loops y.B (blocks), y.T (tiles), y.I (within the tile), which the
 * vector axis splits into y.U (vectors) and y.V (lanes); a reduction's unrolled loop is y.U inside
 * y.O. No axis has a dot in its name. */
#ifndef WPK_CODEGEN_LOWERING_H
#define WPK_CODEGEN_LOWERING_H

#include "codegen/schedule.h"

struct wpk_lowering {
    const struct wpk_nest *nest;
    struct wpk_schedule *out;
    char name[WPK_NEST_ENTRIES_MAX][WPK_NAME_MAX]; /* of the tensor that an entry writes */
    struct wpk_directive nowhere;                  /* takes the directives after a failure */
    wpk_err err;                                   /* the first failure */
};

/* Append a directive for the stage of an entry. Never returns NULL: a failure is noted in `err`. */
struct wpk_directive *wpk_lowering_emit(struct wpk_lowering *l, enum wpk_directive_kind kind,
                                        int entry, bool update);
/* The same for a directive whose only operand is a loop. */
void wpk_lowering_emit_loop(struct wpk_lowering *l, enum wpk_directive_kind kind, int entry,
                            bool update, const char *loop);
/* Remove `reorder`, the latest directive, when it names fewer than two loops. */
void wpk_lowering_settle_reorder(struct wpk_lowering *l, const struct wpk_directive *reorder);

void wpk_directive_operand(struct wpk_directive *directive, const char *name);
void wpk_directive_split(struct wpk_directive *directive, const char *loop, const char *outer,
                         const char *inner, int64_t factor, enum wpk_tail tail);
/* Write a loop's name: the axis's name, a dot, and the letter of the loop's kind. */
void wpk_loop_name(char out[WPK_LOOP_NAME_MAX], const char *axis, char suffix);

/* Add all directives of an entry, after those of the entries that read it. */
void wpk_lowering_entry(struct wpk_lowering *l, int entry);

#endif
