/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed group as a session of its own on ONNX Runtime's CPU provider: ONNX Runtime's answer, at
 * ONNX Runtime's speed.
 *
 * Inputs are handed through as they are. An output whose extents follow from the inputs' is written
 * where the outer session wants it; any other is copied there once. Runs may overlap. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_TWIN_H
#define WPK_RUNTIME_ONNXRUNTIME_TWIN_H

#include "runtime/onnxruntime/ort.h"

struct wpk_twin;

/* Options of the outer session that the twin has, too. */
struct wpk_twin_options {
    int thread_count;                        /* of a loop; 0: as many as there are cores */
    int optimization_level;                  /* of graphs; ONNX Runtime's numbers */
    const char *const *keys, *const *values; /* [entry_count], configuration entries */
    size_t entry_count;
};

/* Make the twin of a group.
 *
 *   graph   the group's nodes; not used after the call
 *   fused   the node that stands for the group
 *   owns    caller calls wpk_twin_free, while no run goes on
 */
struct ort_status *wpk_twin_new(const struct wpk_ort *ort, const struct ort_graph *graph,
                                const struct ort_node *fused,
                                const struct wpk_twin_options *options, struct wpk_twin **out);
void wpk_twin_free(struct wpk_twin *twin);

/* The names of the group's inputs and outputs. */
const char *const *wpk_twin_inputs(const struct wpk_twin *twin, size_t *count);
const char *const *wpk_twin_outputs(const struct wpk_twin *twin, size_t *count);

/* Compute new outputs of given inputs.
 *   shape   inputs: all of the group's; outputs: all of them, NULL before
 *   owns    caller releases the outputs, after failures too */
struct ort_status *wpk_twin_compute(const struct wpk_twin *twin,
                                    const struct ort_value *const *inputs,
                                    struct ort_value **outputs);

/* Compute the group's outputs in `context` from its inputs. */
struct ort_status *wpk_twin_run(const struct wpk_twin *twin, struct ort_kernel_context *context);

#endif
