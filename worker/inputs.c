/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inputs.h"

#include "common/rng.h"
#include "op/reference.h"

#include <stdlib.h>

#define CHUNK 1024

/* Magnitudes of set 0: a product is at most 16, so sums of a million terms stay below 2^24. */
#define SMALL_INTEGER 4

static double draw_integer(struct wpk_rng *rng, enum wpk_dtype dtype, bool positive)
{
    if (dtype == WPK_BOOL) {
        return (double)wpk_rng_below(rng, 2);
    }
    if (positive) {
        return (double)wpk_rng_between(rng, 1, SMALL_INTEGER);
    }
    bool is_unsigned = dtype == WPK_U8;
    return (double)wpk_rng_between(rng, is_unsigned ? 0 : -SMALL_INTEGER, SMALL_INTEGER);
}

/* Integer types use their range, as far as sums of products cannot leave 32 bits. */
static double draw_real(struct wpk_rng *rng, enum wpk_dtype dtype, bool positive)
{
    switch (dtype) {
    case WPK_BOOL:
        return (double)wpk_rng_below(rng, 2);
    case WPK_U8:
        return (double)wpk_rng_between(rng, positive ? 1 : 0, 255);
    case WPK_I8:
        return (double)wpk_rng_between(rng, positive ? 1 : -128, 127);
    case WPK_I32:
    case WPK_I64:
        return (double)wpk_rng_between(rng, positive ? 1 : -1000, 1000);
    default:
        return positive ? 0.125 + 0.875 * wpk_rng_unit(rng) : 2 * wpk_rng_unit(rng) - 1;
    }
}

static void fill(const struct wpk_tensor *tensor, const struct wpk_input_options *options,
                 struct wpk_rng *rng, char *out)
{
    double chunk[CHUNK];
    int64_t count = wpk_tensor_elements(tensor);
    size_t size = wpk_dtype_size(tensor->dtype);
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t now = count - done < CHUNK ? count - done : CHUNK;
        for (int64_t i = 0; i < now; i++) {
            chunk[i] = options->kind == WPK_INPUT_INTEGERS
                           ? draw_integer(rng, tensor->dtype, options->positive)
                           : draw_real(rng, tensor->dtype, options->positive);
        }
        wpk_reference_narrow(tensor->dtype, chunk, now, out + (size_t)done * size);
    }
}

static bool is_given(const struct wpk_tensor *tensor)
{
    return tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT;
}

wpk_err wpk_inputs_make(const struct wpk_program *program, const struct wpk_input_options *options,
                        struct wpk_inputs *out)
{
    struct wpk_inputs inputs = {0};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, options->seed);
    for (int i = 0; i < program->tensor_count; i++) {
        const struct wpk_tensor *tensor = &program->tensors[i];
        if (!is_given(tensor)) {
            continue;
        }
        /* A stream of its own for each tensor: adding one does not change the others. */
        struct wpk_rng own;
        wpk_rng_fork(&rng, &own);
        inputs.dense[i] =
            malloc((size_t)wpk_tensor_elements(tensor) * wpk_dtype_size(tensor->dtype));
        if (inputs.dense[i] == NULL) {
            wpk_inputs_fini(&inputs);
            return WPK_ENOMEM;
        }
        fill(tensor, options, &own, inputs.dense[i]);
    }
    *out = inputs;
    return WPK_OK;
}

wpk_err wpk_inputs_widen(const struct wpk_program *program, struct wpk_inputs *inputs)
{
    for (int i = 0; i < program->tensor_count; i++) {
        if (inputs->dense[i] == NULL || inputs->wide[i] != NULL) {
            continue;
        }
        int64_t count = wpk_tensor_elements(&program->tensors[i]);
        inputs->wide[i] = malloc((size_t)count * sizeof(double));
        if (inputs->wide[i] == NULL) {
            return WPK_ENOMEM;
        }
        wpk_reference_widen(program->tensors[i].dtype, inputs->dense[i], count, inputs->wide[i]);
    }
    return WPK_OK;
}

void wpk_inputs_fini(struct wpk_inputs *inputs)
{
    if (inputs == NULL) {
        return;
    }
    for (int i = 0; i < WPK_TENSORS_MAX; i++) {
        free(inputs->dense[i]);
        free(inputs->wide[i]);
    }
    *inputs = (struct wpk_inputs){0};
}
