/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that serve calls of a group, one for each set of shapes of the inputs and of elements of
 * those that decide on shapes.
 *
 *      miss ──▶ wanted ──▶ open ──▶ tried ──▶ serves ──▶ closed: others needed the memory, and the
 *                 │          │        │                  next call wants it once more
 *                 │          │        └─────▶ refused: it differs, or the twin is as fast
 *                 │          └──────────────▶ refused: it is of other inputs, or for another CPU
 *                 └ a file KEY.want says the shapes, and each minute a file KEY.N.calls how often
 *                   the twin was called; somebody writes KEY.wpk
 *
 * A thread of the group does all of that. A call only looks up what serves; the first one behind
 * `open` copies its inputs, on which plan and twin run in turns. A plan is for a whole model: a
 * group that lacks one of its inputs or outputs refuses it. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_PLANS_H
#define WPK_RUNTIME_ONNXRUNTIME_PLANS_H

#include "runtime/onnxruntime/twin.h"

struct wpk_plans;

/* Where plans are. */
struct wpk_plans_options {
    const char *folder; /* NULL: there are no plans */
    const char *model;  /* the first part of the files' names: stands for the model's bytes */
    int thread_count;   /* of a run */
    int size_mb_max;    /* MiB: plans that were used least recently are closed beyond it */
    int counts_calls;   /* 1: files say what was called without a plan, and for how long */
};

/* Watch for plans of a group.
 *   owns    caller calls wpk_plans_free before the twin ends; NULL: there are none */
struct wpk_plans *wpk_plans_new(const struct wpk_ort *ort, const struct ort_graph *graph,
                                const struct wpk_twin *twin,
                                const struct wpk_plans_options *options);
void wpk_plans_free(struct wpk_plans *plans);

/* Compute the group's outputs by the plan for these shapes, else by the twin. */
struct ort_status *wpk_plans_run(struct wpk_plans *plans, struct ort_kernel_context *context);

/* Set decides[i] for each input from whose elements the graph computes a shape, an axis or another
 * number that a plan has as a constant.
 *   shape   names, decides [count]: the group's inputs; decides: false before */
struct ort_status *wpk_shape_inputs_find(const struct wpk_ort *ort, const struct ort_graph *graph,
                                         const char *const *names, size_t count, bool *decides);

/* A claimed group, and whatever can serve a call of it: a plan for its shapes, else the twin. */

/* Make the group of `graph`, for which `fused` stands. *out has the functions that ONNX Runtime
 * calls.
 *
 *   owns    caller calls wpk_group_release
 */
struct ort_status *wpk_group_make(const struct wpk_ort *ort, const struct ort_graph *graph,
                                  const struct ort_node *fused,
                                  const struct wpk_twin_options *options,
                                  const struct wpk_plans_options *plans,
                                  struct ort_compute_info **out);
void wpk_group_release(struct ort_compute_info *info);

#endif
