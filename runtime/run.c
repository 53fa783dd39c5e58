/* SPDX-License-Identifier: Apache-2.0 */
/* One call: match the user's tensors, point copies of the prebuilt buffers at them, run. */
#include "runtime/context.h"
#include "runtime/kernel.h"

static wpk_err run_vendor(const struct wpk_kernel *kernel, struct wpk_context *context,
                          void *const *in, void *const *out)
{
    void *data[WPK_RECIPE_TENSORS_MAX] = {NULL};

    for (size_t i = 0; i < kernel->inputs.count; i++) {
        data[kernel->inputs.source[i]] = in[i];
    }
    for (size_t i = 0; i < kernel->outputs.count; i++) {
        data[kernel->outputs.source[i]] = out[i];
    }
    return wpk_context_call_vendor(context, kernel->vendor, data);
}

wpk_err wpk_kernel_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                       const struct wpk_tensor_data *inputs, size_t input_count,
                       const struct wpk_tensor_data *outputs, size_t output_count)
{
    void *in[WPK_ABI_ARGUMENTS_MAX];
    void *out[WPK_ABI_ARGUMENTS_MAX];

    if (!kernel->prepared) {
        return WPK_EINVAL;
    }
    wpk_err err = wpk_arguments_match(&kernel->inputs, kernel->inputs.physical_size, inputs,
                                      input_count, in, NULL);
    if (err == WPK_OK) {
        err = wpk_arguments_match(&kernel->outputs, kernel->outputs.physical_size, outputs,
                                  output_count, out, NULL);
    }
    if (err != WPK_OK) {
        return err;
    }
    if (kernel->vendor != NULL) {
        return run_vendor(kernel, context, in, out);
    }
    return kernel->gpu != NULL ? wpk_kernel_gpu_run(kernel, context, in, out)
                               : wpk_kernel_call(kernel, context, in, out);
}

wpk_err wpk_kernel_call(const struct wpk_kernel *kernel, struct wpk_context *context,
                        void *const *in, void *const *out)
{
    struct wpk_abi_buffer buffers[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_abi_buffer *arguments[WPK_ABI_ARGUMENTS_MAX];
    size_t count = (size_t)kernel->manifest.main_count;

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
