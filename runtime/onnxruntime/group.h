/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed group, and whatever can serve a call of it: a plan for its shapes, else the twin. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_GROUP_H
#define WPK_RUNTIME_ONNXRUNTIME_GROUP_H

#include "runtime/onnxruntime/plans.h"
#include "runtime/onnxruntime/twin.h"

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
