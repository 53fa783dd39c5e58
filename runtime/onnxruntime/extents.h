/* SPDX-License-Identifier: Apache-2.0 */
/* The extents of a group's output, as far as they follow from those of the inputs.
 *
 * ONNX Runtime infers extents as numbers and symbols: x [n, 8] gives y [n, 16]. An output is known
 * if each symbol is an extent of an input, of one axis alone: ONNX Runtime does not check that the
 * axes of a symbol agree. An output is unknown whose extents depend on data, or on something that
 * inference does not follow. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_EXTENTS_H
#define WPK_RUNTIME_ONNXRUNTIME_EXTENTS_H

#include "runtime/onnxruntime/ort.h"

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
