/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a twin as an ONNX file in memory, to which the model editor adds the rest.
 *
 * The model editor's own declarations mix up symbols: each extent that is not a number gets that of
 * axis 0 (https://github.com/microsoft/onnxruntime/pull/28307). With wrong symbols inference takes
 * extents for equal that are not, and with none some fusions do not happen. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_INPUTS_H
#define WPK_RUNTIME_ONNXRUNTIME_INPUTS_H

#include "common/buf.h"
#include "runtime/onnxruntime/ort.h"

/* Append a model with the operator sets of `graph`, with `values` as inputs, and nothing else.
 *
 *   shape   values, types [count]
 */
struct ort_status *wpk_inputs_encode(const struct wpk_ort *ort, struct wpk_arena *arena,
                                     const struct ort_graph *graph,
                                     const struct ort_value_info **values,
                                     const struct wpk_ort_type *types, size_t count,
                                     struct wpk_buf *out);

#endif
