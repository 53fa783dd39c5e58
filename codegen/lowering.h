/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions that the parts of lower.c share: a lowering under way, and adding directives.
 *
 *      lower_pack.c      operands copied into the order of use
 *      lower_nest.c      the loops of a group's root, and where it is computed
 *      lower_member.c    the loops of the members, inside the root's innermost tile loop
 *
 * Every group's root gets the same kind of nest:
 *
 *     block loops        one for each axis that is cut into blocks, in the order `outer`
 *       tile loops       one for each axis, in the order `inner`
 *         the tile       unrolled, its vector axis in lanes
 *
 * Names: axis y has loops y.B (blocks), y.T (tiles), y.I (within the tile), which the vector axis
 * splits into y.U (vectors) and y.V (lanes). No axis has a dot in its name. */
#ifndef WPK_CODEGEN_LOWERING_H
#define WPK_CODEGEN_LOWERING_H

#include "codegen/schedule.h"
#include "search/genes.h"
#include "search/space.h"

/* The loops a root axis has been cut into; empty names are absent. */
struct wpk_axis_loops {
    char block[WPK_LOOP_NAME_MAX];
    char tile[WPK_LOOP_NAME_MAX];
    char unrolled[WPK_LOOP_NAME_MAX];
    char lanes[WPK_LOOP_NAME_MAX];
};

struct wpk_group_loops {
    struct wpk_axis_loops axis[WPK_RANK_MAX];
    const char *block_level; /* innermost block loop, "" when there is none */
    const char *tile_level;  /* innermost loop around the tile, "" when there is none */
};

struct wpk_lowering {
    const struct wpk_space *space;
    const struct wpk_variant *variant;
    const struct wpk_structure *structure; /* of the variant */
    struct wpk_schedule *out;
    struct wpk_decisions decisions[WPK_GROUPS_MAX];
    struct wpk_group_loops loops[WPK_GROUPS_MAX]; /* of the groups lowered so far */
    char partial[WPK_GROUPS_MAX][WPK_NAME_MAX]; /* tensor of the sums of blocks; "": no blocks */
    struct wpk_directive nowhere;                 /* takes the directives after a failure */
    wpk_err err;                                  /* the first failure */
};

/* Append a directive for the definition of a stage, which is named by the tensor that it writes, or
 * by its number in the variant's program. Never returns NULL: a failure is noted in `err`. */
struct wpk_directive *wpk_lowering_emit_named(struct wpk_lowering *l, enum wpk_directive_kind kind,
                                              const char *tensor, bool update);
struct wpk_directive *wpk_lowering_emit(struct wpk_lowering *l, enum wpk_directive_kind kind,
                                        int stage, bool update);
/* The same for a directive whose only operand is a loop. */
void wpk_lowering_emit_loop(struct wpk_lowering *l, enum wpk_directive_kind kind, int stage,
                            bool update, const char *loop);
/* Remove `reorder`, the latest directive, when it names fewer than two loops. */
void wpk_lowering_settle_reorder(struct wpk_lowering *l, const struct wpk_directive *reorder);

void wpk_directive_operand(struct wpk_directive *directive, const char *name);
void wpk_directive_split(struct wpk_directive *directive, const char *loop, const char *outer,
                         const char *inner, int64_t factor, enum wpk_tail tail);
/* Write a loop's name: the axis's name, a dot, and the letter of the loop's kind. */
void wpk_loop_name(char out[WPK_LOOP_NAME_MAX], const char *axis, char suffix);

/* Names of the packed operands that are not constants: stages of the main program copy them. */
struct wpk_packed_names {
    char name[WPK_GROUPS_MAX * WPK_PACKS_MAX][WPK_NAME_MAX];
    int count;
};

/* Rewrite out->program so that it packs the operands that the candidate packs.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_lowering_pack(struct wpk_lowering *l, struct wpk_packed_names *names);
/* Add the directives for the copy of one packed operand. Constants need none: they are prepared. */
void wpk_lowering_copy_packed(struct wpk_lowering *l, const char *name);

/* Add the directives for the root of group g, and fill loops[g]. The groups that read g are lowered
 * before it. */
void wpk_lowering_nest(struct wpk_lowering *l, int g);

/* Add the directives for member m of group g, of which a tile needs `region`.
 *   shape  region [the member's axis_count] */
void wpk_lowering_member(struct wpk_lowering *l, int g, int m, const int64_t *region);

#endif
