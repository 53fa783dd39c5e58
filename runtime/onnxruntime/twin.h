/* SPDX-License-Identifier: Apache-2.0 */
/* A claimed group as a session of its own on ONNX Runtime's CPU provider: ONNX Runtime's answer, at
 * ONNX Runtime's speed.
 *
 * Inputs are handed through as they are. An output whose extents follow from the inputs' is written
 * where the outer session wants it; any other is copied there once. Runs may overlap. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_TWIN_H
#define WPK_RUNTIME_ONNXRUNTIME_TWIN_H

#include "common/arena.h"
#include "common/buf.h"
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

/* Compute outputs of given inputs.
 *   shape   inputs: all of the group's; outputs: all of them, NULL or to be written into
 *   owns    caller releases the outputs, after failures too */
struct ort_status *wpk_twin_compute(const struct wpk_twin *twin,
                                    const struct ort_value *const *inputs,
                                    struct ort_value **outputs);

/* Compute the group's outputs in `context` from its inputs. */
struct ort_status *wpk_twin_run(const struct wpk_twin *twin, struct ort_kernel_context *context);

/* The constants of a twin.
 *
 * ONNX Runtime releases the constants of a claimed group that was compiled. A constant that lies
 * in a file of its own (ONNX's "external data") is mapped, as ONNX Runtime maps it; any other is
 * copied once, into memory that the twin's session frees as soon as it has packed the constant. */

/* Files that constants are mapped from; they outlive the session. `= {0}` is empty. */
struct wpk_constant_files {
    struct wpk_constant_mapping *mappings; /* owned, [count] */
    size_t count;
};

/* Unmap all. */
void wpk_constant_files_fini(struct wpk_constant_files *files);

/* Add the constant `info` to `graph` under its name.
 *
 *   model_path  the model's file, beside which files of constants lie; "" for one out of memory
 */
struct ort_status *wpk_constant_add(const struct wpk_ort *ort, struct wpk_arena *arena,
                                    const struct ort_value_info *info, const char *model_path,
                                    struct wpk_constant_files *files, struct ort_graph *graph);

/* A claimed group's graph for a model of its own, made through ONNX Runtime's model editor. */

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

/* The inputs of a twin as an ONNX file in memory, to which the model editor adds the rest.
 *
 * The model editor's own declarations mix up symbols: each extent that is not a number gets that of
 * axis 0 (https://github.com/microsoft/onnxruntime/pull/28307). With wrong symbols inference takes
 * extents for equal that are not, and with none some fusions do not happen. */

/* Append a model with the operator sets of `graph`, with `values` as inputs, and nothing else.
 *
 *   shape   values, types [count]
 */
struct ort_status *wpk_inputs_encode(const struct wpk_ort *ort, struct wpk_arena *arena,
                                     const struct ort_graph *graph,
                                     const struct ort_value_info **values,
                                     const struct wpk_ort_type *types, size_t count,
                                     struct wpk_buf *out);

/* The extents of a group's output, as far as they follow from those of the inputs.
 *
 * ONNX Runtime infers extents as numbers and symbols: x [n, 8] gives y [n, 16]. An output is known
 * if each symbol is an extent of an input, of one axis alone: ONNX Runtime does not check that the
 * axes of a symbol agree. An output is unknown whose extents depend on data, or on something that
 * inference does not follow. */

struct wpk_extent {
    int64_t number; /* -1: that of an input's axis */
    size_t input, axis;
};

struct wpk_extents {
    bool is_known;
    size_t rank;
    struct wpk_extent *axes; /* [rank] */
};

/* Find out what is known of an output.
 *
 *   shape   inputs [input_count]; output: inferred from these
 *   owns    memory is the arena's
 */
struct ort_status *wpk_extents_init(struct wpk_extents *extents, const struct wpk_ort *ort,
                                    struct wpk_arena *arena, const struct wpk_ort_type *inputs,
                                    size_t input_count, const struct wpk_ort_type *output);

/* Write a known output's extents for one call into out [rank]. */
struct ort_status *wpk_extents_read(const struct wpk_extents *extents, const struct wpk_ort *ort,
                                    const struct ort_value *const *inputs, int64_t *out);

#endif
