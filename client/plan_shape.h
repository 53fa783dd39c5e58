/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a plan's sets of shapes a command means. */
#ifndef WPK_CLIENT_PLAN_SHAPE_H
#define WPK_CLIENT_PLAN_SHAPE_H

#include "common/args.h"
#include "runtime/wpk.h"
#include "schema/model_plan.h"

#define WPK_PLAN_SHAPE_OPTION_ROW(shapes)                                                          \
    WPK_ARGS_LIST("shape", "INPUT=EXTENT,...",                                                     \
                  "which of a plan's sets of shapes, if it has several (repeatable)", &(shapes))

/* The inputs of a plan in each of its sets. */
struct wpk_plan_shapes {
    struct wpk_argument *inputs; /* owned; [count][input_count]; names are borrowed */
    int count;
    int input_count;
};

/* Fill in the sets of an open plan.
 *   owns    caller frees `inputs`
 *   errors  WPK_ENOMEM */
wpk_err wpk_plan_shapes_of_model(const struct wpk_model *model, struct wpk_plan_shapes *out);

/* True if "NAME=EXTENT,..." is of an input of the plan. */
bool wpk_plan_shapes_has(const struct wpk_plan_shapes *sets, const char *shape);

/* The first set in which the inputs have the extents of `shapes` and of their files.
 *   shape   shapes: "INPUT=EXTENT,..."; files: "INPUT=FILE.npy", and other names
 *   errors  WPK_EINVAL none: `diag` lists those that there are; those of reading a file */
wpk_err wpk_plan_shapes_choose(const struct wpk_plan_shapes *sets,
                               const struct wpk_option_list *shapes,
                               const struct wpk_option_list *files, size_t *out,
                               struct wpk_diag *diag);

#endif
