/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/twin.h"

#include <string.h>

/* The only axis of the inputs with this symbol; false: there is none, or several. */
static bool find_axis(const struct wpk_ort_type *inputs, size_t input_count, const char *symbol,
                      struct wpk_extent *out)
{
    size_t found = 0;
    for (size_t i = 0; i < input_count && symbol[0] != '\0'; i++) {
        for (size_t axis = 0; axis < inputs[i].rank; axis++) {
            if (inputs[i].extents[axis] < 0 && strcmp(inputs[i].symbols[axis], symbol) == 0) {
                *out = (struct wpk_extent){.number = -1, .input = i, .axis = axis};
                found++;
            }
        }
    }
    return found == 1;
}

struct ort_status *wpk_extents_init(struct wpk_extents *extents, const struct wpk_ort *ort,
                                    struct wpk_arena *arena, const struct wpk_ort_type *inputs,
                                    size_t input_count, const struct wpk_ort_type *output)
{
    struct ort_status *status = NULL;
    /* Rank 0 may stand for a rank that was not inferred. */
    *extents = (struct wpk_extents){.is_known = output->rank > 0, .rank = output->rank};
    WPK_ORT_TAKE(arena, output->rank, extents->axes);
    for (size_t i = 0; i < output->rank; i++) {
        extents->axes[i].number = output->extents[i];
        extents->is_known &= output->extents[i] >= 0 ||
                             find_axis(inputs, input_count, output->symbols[i], &extents->axes[i]);
    }
done:
    return status;
}

struct ort_status *wpk_extents_read(const struct wpk_extents *extents, const struct wpk_ort *ort,
                                    const struct ort_value *const *inputs, int64_t *out)
{
    struct ort_status *status = NULL;
    struct wpk_ort_tensor input;
    for (size_t i = 0; i < extents->rank; i++) {
        const struct wpk_extent *extent = &extents->axes[i];
        out[i] = extent->number;
        if (extent->number < 0) {
            WPK_ORT_TRY(wpk_ort_tensor(ort, inputs[extent->input], &input));
            if (extent->axis >= input.rank) {
                WPK_ORT_TRY(wpk_ort_fail(ort, "an input has %zu axes", input.rank));
            }
            out[i] = input.extent[extent->axis];
        }
    }
done:
    return status;
}
