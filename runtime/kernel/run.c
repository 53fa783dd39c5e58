/* SPDX-License-Identifier: Apache-2.0 */
/* One call: match the user's tensors, point copies of the prebuilt buffers at them, run. */
#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"
#include "schema/index_check.h"

#include <stdlib.h>
#include <string.h>

wpk_err wpk_kernel_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                       const struct wpk_tensor_data *inputs, size_t input_count,
                       const struct wpk_tensor_data *outputs, size_t output_count)
{
    void *in[WPK_ABI_ARGUMENTS_MAX];
    void *out[WPK_ABI_ARGUMENTS_MAX];

    wpk_err err = wpk_kernel_match(kernel, inputs, input_count, in, outputs, output_count, out);
    if (err != WPK_OK) {
        return err;
    }
    if (kernel->vendor != NULL) {
        void *data[WPK_RECIPE_TENSORS_MAX] = {NULL};
        for (size_t i = 0; i < kernel->inputs.count; i++) {
            data[kernel->inputs.source[i]] = in[i];
        }
        for (size_t i = 0; i < kernel->outputs.count; i++) {
            data[kernel->outputs.source[i]] = out[i];
        }
        return wpk_context_call_vendor(context, kernel->vendor, data);
    }
    return kernel->gpu != NULL ? wpk_kernel_gpu_run(kernel, context, in, out)
                               : wpk_kernel_call(kernel, context, in, out);
}

/* Elements that lie apart, or in another order, are made dense first. `dense`: constants are. */
static wpk_err check_index(const struct wpk_manifest_index *index,
                           const struct wpk_tensor_type *type, bool dense, void *data,
                           const char *name, struct wpk_diag *diag)
{
    void *copy = NULL;

    if (!dense && !wpk_layout_is_row_major(&type->layout)) {
        copy = malloc((size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype));
        if (copy == NULL) {
            return WPK_ENOMEM;
        }
        wpk_tensor_unpack(type, data, copy);
    }
    wpk_err err =
        wpk_index_check(name, type->dtype, copy != NULL ? copy : data, &index->bound, diag);
    free(copy);
    return err;
}

wpk_err wpk_kernel_check_indices(const struct wpk_kernel *kernel,
                                 const struct wpk_argument_list *list, void *const *data,
                                 const char *const *names, struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    bool dense = list == &kernel->constants;
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < manifest->index_count; i++) {
        for (size_t a = 0; err == WPK_OK && a < list->count; a++) {
            const struct wpk_named_tensor *tensor =
                dense ? &manifest->constants[list->source[a]] : &manifest->inputs[list->source[a]];
            if (strcmp(tensor->name, manifest->indices[i].tensor) == 0) {
                err = check_index(&manifest->indices[i], &tensor->type, dense, data[a],
                                  names != NULL ? names[a] : list->name[a], diag);
            }
        }
    }
    return err;
}

wpk_err wpk_kernel_call(const struct wpk_kernel *kernel, struct wpk_context *context,
                        void *const *in, void *const *out)
{
    struct wpk_abi_buffer buffers[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_abi_buffer *arguments[WPK_ABI_ARGUMENTS_MAX];
    size_t count = (size_t)kernel->manifest.main_count;

    wpk_err err =
        wpk_kernel_check_indices(kernel, &kernel->inputs, in, NULL, wpk_context_diag(context));
    if (err != WPK_OK) {
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        const struct wpk_slot *slot = &kernel->main[i];
        buffers[i] = slot->buffer;
        if (slot->kind == WPK_SLOT_INPUT) {
            buffers[i].host = in[slot->index];
        } else if (slot->kind == WPK_SLOT_OUTPUT) {
            buffers[i].host = (uint8_t *)out[slot->index] + slot->offset;
        }
        arguments[i] = &buffers[i];
    }
    return wpk_context_call(context, kernel->manifest.threads, kernel->descriptor->run, arguments,
                            count);
}
