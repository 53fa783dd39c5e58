/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed group's graph for a model of its own, made through ONNX Runtime's model editor. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_COPY_H
#define WPK_RUNTIME_ONNXRUNTIME_COPY_H

#include "common/arena.h"
#include "runtime/onnxruntime/constant.h"

/* Whether a node of this operator can be copied with an attribute of this type. */
bool wpk_copy_takes(const char *op_type, int attribute_type);

/* Make a model of the nodes, constants and outputs of `graph`; it has neither inputs nor operator
 * sets, which come from inputs.h.
 *
 *   shape   outputs [output_count]: of the node that stands for the group, without NULL
 *   owns    caller releases *out; `files` outlives sessions of it; `arena` serves the call
 *
 * Outputs keep their types and ranks. Their extents are left to inference: a model's file may state
 * wrong ones, which ONNX Runtime tolerates. */
struct ort_status *wpk_copy_model(const struct wpk_ort *ort, struct wpk_arena *arena,
                                  const struct ort_graph *graph,
                                  const struct ort_value_info **outputs, size_t output_count,
                                  struct wpk_constant_files *files, struct ort_model **out);

#endif
