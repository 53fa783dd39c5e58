/* SPDX-License-Identifier: Apache-2.0 */
/* How often one stage reads the elements of its operands: what decides which stages are computed
 * together (plan.h). */
#ifndef WPK_SEARCH_REUSE_H
#define WPK_SEARCH_REUSE_H

#include "ir/program.h"

/* Mark the axes of the stage that index literals; false: it loads none.
 *   shape   literal [WPK_AXES_MAX] */
bool wpk_reuse_mark_tables(const struct wpk_program *program, const struct wpk_stage *stage,
                           bool *literal);
/* Fill `literal` with the axes that index a literal, or whose unrolling folds multiplications by
 * the zeros outside of an operand. Such axes are covered whole.
 *   shape   literal [WPK_AXES_MAX] */
void wpk_reuse_mark_literal(const struct wpk_program *program, const struct wpk_stage *stage,
                            bool *literal);

/* The share of a stage's terms that are left when its literal axes are unrolled: those that read
 * nothing outside of an operand.
 *   shape   literal [axis_count], as above */
double wpk_reuse_inside(const struct wpk_program *program, const struct wpk_stage *stage,
                        const bool *literal);

/* Mark the axes that an index depends on; return how many were not marked before.
 *   shape   used [WPK_AXES_MAX] */
int wpk_reuse_mark_index(const struct wpk_program *program, int node, bool *used);

/* True if the stage reads each element of what `load` reads once only. Axes of literals do not
 * count: they are covered whole.
 *   shape   literal [axis_count], as above */
bool wpk_reuse_reads_once(const struct wpk_program *program, const struct wpk_stage *stage,
                          int load, const bool *literal);
/* True if each index of the load is an axis of the stage, each axis once. */
bool wpk_reuse_reads_one_to_one(const struct wpk_program *program, const struct wpk_stage *stage,
                                int load);

/* True if some reduction axis is none of a literal. */
bool wpk_reuse_has_plain_reduction(const struct wpk_stage *stage, const bool *literal);
/* True for a contraction with reuse, for which a register tile pays: an operand is read through a
 * window, or two operands each lack an output axis, and not the same ones. Or a constant stands
 * beside an operand that lacks an axis, as where a matrix meets one vector: the constant's copy
 * costs nothing, and is read in one stream. */
bool wpk_reuse_pays(const struct wpk_program *program, const struct wpk_stage *stage,
                    const bool *literal);

#endif
