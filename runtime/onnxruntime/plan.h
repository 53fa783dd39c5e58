/* SPDX-License-Identifier: Apache-2.0 */
/* One plan of a group: opened, bound to the group's tensors, tried beside the twin. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_PLAN_H
#define WPK_RUNTIME_ONNXRUNTIME_PLAN_H

#include "runtime/onnxruntime/twin.h"
#include "runtime/wpk.h"

#define WPK_PLAN_ENDS_MAX 64 /* inputs, or outputs, of a group with plans */

/* The group, as all its plans know it. */
struct wpk_plan_group {
    const struct wpk_ort *ort;
    const struct wpk_twin *twin;
    size_t input_count, output_count;
    const char *const *input_names, *const *output_names; /* the twin's */
    int thread_count;                                     /* of a run */
};

/* = {0} is closed. */
struct wpk_ort_plan {
    struct wpk_model *model;
    struct wpk_model_context *idle;                                /* NULL: a call has it */
    int of_input[WPK_PLAN_ENDS_MAX], of_output[WPK_PLAN_ENDS_MAX]; /* by the plan's: the group's */
};

/* True if ONNX's number of an element's type is that of `dtype`. */
bool wpk_plan_is_of(int element, enum wpk_dtype dtype);

/* Open a plan's file. The plan's inputs are among the group's, and the outputs are the group's.
 *   owns    caller calls wpk_plan_close, after failures too
 *   errors  WPK_EMISMATCH it is of another group; those of wpk_model_open and
 *           wpk_model_context_new */
wpk_err wpk_plan_open(const struct wpk_plan_group *group, const char *path,
                      struct wpk_ort_plan *out);
void wpk_plan_close(struct wpk_ort_plan *plan);

/* List the tensors of a run of the plan; false: it is for other shapes or types.
 *   shape   inputs [group->input_count], outputs [group->output_count]; data [count of the plan's
 *           inputs, then outputs] */
bool wpk_plan_bind(const struct wpk_plan_group *group, const struct wpk_ort_plan *plan,
                   const struct wpk_ort_tensor *inputs, void *const *outputs,
                   struct wpk_tensor_data *data);

struct wpk_plan_trial {
    bool agrees, is_faster;
    double plan_ns, twin_ns; /* of a run */
};

/* Run plan and twin in turns on these inputs; false: one of them cannot run. */
bool wpk_plan_try(const struct wpk_plan_group *group, struct wpk_ort_plan *plan,
                  const struct wpk_ort_tensor *given, struct wpk_plan_trial *trial);

#endif
