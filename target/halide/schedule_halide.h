/* SPDX-License-Identifier: Apache-2.0 */
/* State and functions shared by schedule_halide.c, which writes declarations, definitions and
 * directives, and schedule_halide_node.c, which writes names and expressions. */
#ifndef WPK_TARGET_HALIDE_SCHEDULE_HALIDE_H
#define WPK_TARGET_HALIDE_SCHEDULE_HALIDE_H

#include "target/halide/directive.h"
#include "nest/reach.h"

#define WPK_HALIDE_NAMES_MAX 512

struct wpk_halide_writer {
    const struct wpk_schedule *schedule;
    const struct wpk_program *program; /* the main program, expanded */
    struct wpk_directives directives;
    struct wpk_buf *out;
    int *uses; /* [node_count] how often the stage uses a node */
    struct wpk_nest_reach reach;
    int *name; /* [node_count] number of the variable that a shared node of the stage is, or 0 */
    /* Names of variables declared so far. Stages share them; each stage has its own reductions. */
    char declared[WPK_HALIDE_NAMES_MAX][WPK_LOOP_NAME_MAX];
    int declared_count;
};

const char *wpk_halide_type(enum wpk_dtype dtype);
/* The name of the stage's Func: that of the tensor which the stage writes. */
const char *wpk_halide_stage_name(const struct wpk_halide_writer *w, const struct wpk_stage *stage);

/* Write a loop's name for Halide, with $ for each dot, and return `out`. Dots separate the parts of
 * Halide's own names.
 *   shape  out [WPK_LOOP_NAME_MAX] */
const char *wpk_halide_loop_name(const char *name, char *out);
/* Write a variable's name, changed where it would hide a tensor's. */
void wpk_halide_put_variable(const struct wpk_halide_writer *w, const char *name);
/* Write a loop of the stage's pure definition, or of its update. */
void wpk_halide_put_loop(const struct wpk_halide_writer *w, const struct wpk_stage *stage,
                         bool update, const char *name);
/* True if the name is a reduction axis of the stage, or a loop cut from one. */
bool wpk_halide_is_reduction_loop(const struct wpk_halide_writer *w, const struct wpk_stage *stage,
                                  const char *name);

void wpk_halide_put_real(struct wpk_halide_writer *w, enum wpk_dtype dtype, double value);
/* Write the variables that nodes are of which the stage has several uses. */
void wpk_halide_put_shared(struct wpk_halide_writer *w, const struct wpk_stage *stage);
/* Write the expression rooted at node `id` of the stage. */
void wpk_halide_put_node(struct wpk_halide_writer *w, const struct wpk_stage *stage, int id);

#endif
