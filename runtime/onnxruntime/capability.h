/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that the provider claims.
 *
 * Claimed are all nodes that a twin can hold (runtime/onnxruntime/twin.h): of ONNX's own domains or
 * ONNX Runtime's, without subgraphs, with tensors of numbers, with attributes that can be copied,
 * and not taken by another provider. Bodies of If, Loop and Scan are left to ONNX Runtime: they are
 * small and run often, and each run of a group has a fixed cost. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_CAPABILITY_H
#define WPK_RUNTIME_ONNXRUNTIME_CAPABILITY_H

#include "runtime/onnxruntime/ort.h"

/* Claim the nodes of `graph` in convex groups. ONNX Runtime asks several times and for several
 * graphs of a session: nothing is kept. An error claims nothing and is logged by ONNX Runtime. */
struct ort_status *wpk_capability_claim(const struct wpk_ort *ort, const struct ort_graph *graph,
                                        struct ort_support_info *info);

#endif
