/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the user's tensors into the arguments of generated code. */
#include "runtime/kernel/kernel.h"

#include <string.h>

static const struct {
    uint8_t code;
    uint8_t bits;
} element_types[] = {
    [WPK_F32] = {2, 32}, [WPK_F64] = {2, 64}, [WPK_F16] = {2, 16}, [WPK_BF16] = {4, 16},
    [WPK_I8] = {0, 8},   [WPK_U8] = {1, 8},   [WPK_I16] = {0, 16}, [WPK_I32] = {0, 32},
    [WPK_I64] = {0, 64}, [WPK_BOOL] = {1, 1},
};

_Static_assert(sizeof(element_types) / sizeof(element_types[0]) == WPK_DTYPE_COUNT, "one each");

/* Where a physical dimension starts: the remainder of a blocked axis at 0, its quotient at minus
 * the blocks of padding, any other at minus its padding. */
static int64_t dim_min(const struct wpk_layout *layout, int d)
{
    int axis = layout->axis[d];

    if (layout->block == 0 || axis != layout->block_axis) {
        return -layout->pad_before[axis];
    }
    return d == layout->dim_count - 1 ? 0 : -(layout->pad_before[axis] / layout->block);
}

wpk_err wpk_buffer_describe(const struct wpk_tensor_type *type, struct wpk_abi_dim *dim,
                            struct wpk_abi_buffer *out)
{
    int64_t dims[WPK_RANK_MAX];
    int64_t stride = 1;
    int count = type->layout.dim_count;

    WPK_ASSERT(count <= WPK_RANK_MAX);
    wpk_tensor_type_dims(type, dims);
    for (int d = count - 1; d >= 0; d--) {
        int64_t min = dim_min(&type->layout, d);
        if (dims[d] > INT32_MAX / stride || min < INT32_MIN) {
            return WPK_ERANGE;
        }
        dim[count - 1 - d] = (struct wpk_abi_dim){
            .min = (int32_t)min, .extent = (int32_t)dims[d], .stride = (int32_t)stride};
        stride *= dims[d];
    }
    *out = (struct wpk_abi_buffer){.type_code = element_types[type->dtype].code,
                                   .type_bits = element_types[type->dtype].bits,
                                   .type_lanes = 1,
                                   .dimensions = count,
                                   .dim = dim};
    return WPK_OK;
}

/* The place in the list; list->count when there is none. `guess`: in lists that are in order. */
static size_t find(const struct wpk_argument_list *list, const struct wpk_tensor_data *data,
                   size_t guess)
{
    size_t i = 0;

    if (strcmp(list->argument[guess].name, data->name) == 0) {
        return guess;
    }
    while (i < list->count && strcmp(list->argument[i].name, data->name) != 0) {
        i++;
    }
    return i;
}

wpk_err wpk_arguments_match(const struct wpk_argument_list *list, const size_t *size,
                            const struct wpk_tensor_data *data, size_t count, void **found,
                            struct wpk_diag *diag)
{
    if (count != list->count) {
        return wpk_fail(diag, WPK_EINVAL, "%zu tensors given, %zu wanted", count, list->count);
    }
    for (size_t i = 0; i < count; i++) {
        found[i] = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (data[i].name == NULL) {
            return wpk_fail(diag, WPK_EINVAL,
                            "tensor %zu has no name: tensors are bound by their names", i);
        }
        size_t place = find(list, &data[i], i);
        if (place >= count) {
            return wpk_fail(diag, WPK_EINVAL, "no tensor is called '%s'", data[i].name);
        }
        const struct wpk_argument *argument = &list->argument[place];
        if (found[place] != NULL || data[i].data == NULL) {
            return wpk_fail(diag, WPK_EINVAL, "'%s' is given twice, or without data",
                            argument->name);
        }
        if (data[i].size != size[place]) {
            return wpk_fail(diag, WPK_EINVAL, "'%s' has %zu bytes, not %zu", argument->name,
                            size[place], data[i].size);
        }
        if ((uintptr_t)data[i].data % wpk_dtype_size(argument->type.dtype) != 0) {
            return wpk_fail(diag, WPK_EINVAL, "'%s' is not aligned to its elements",
                            argument->name);
        }
        found[place] = data[i].data;
    }
    return WPK_OK;
}

wpk_err wpk_kernel_match(const struct wpk_kernel *kernel, const struct wpk_tensor_data *inputs,
                         size_t input_count, void **in, const struct wpk_tensor_data *outputs,
                         size_t output_count, void **out)
{
    wpk_err err = kernel->prepared
                      ? wpk_arguments_match(&kernel->inputs, kernel->inputs.physical_size, inputs,
                                            input_count, in, NULL)
                      : WPK_EINVAL;
    return err == WPK_OK ? wpk_arguments_match(&kernel->outputs, kernel->outputs.physical_size,
                                               outputs, output_count, out, NULL)
                         : err;
}

/* Arguments have the manifest's or recipe's names when a kernel is loaded, and the choice's names
 * after a choice was bound. */

void wpk_argument_list_add(struct wpk_argument_list *list, const struct wpk_named_tensor *tensor,
                           int source)
{
    size_t i = list->count++;

    WPK_ASSERT(i < WPK_ABI_ARGUMENTS_MAX);
    memcpy(list->name[i], tensor->name, WPK_NAME_MAX);
    list->argument[i] = (struct wpk_argument){.name = list->name[i], .type = tensor->type};
    list->physical_size[i] = wpk_tensor_type_bytes(&tensor->type);
    list->logical_size[i] =
        (size_t)wpk_tensor_type_elements(&tensor->type) * wpk_dtype_size(tensor->type.dtype);
    list->source[i] = source;
}

/*   shape   place [list->count]: of each argument, where it was before */
static wpk_err bind_list(struct wpk_argument_list *list, const struct wpk_choice_list *wanted,
                         int *place, struct wpk_diag *diag)
{
    const struct wpk_argument_list before = *list;

    if ((size_t)wanted->count != before.count) {
        return wpk_fail(diag, WPK_EMISMATCH, "the choice binds %d tensors where the kernel has %zu",
                        wanted->count, before.count);
    }
    list->count = 0;
    for (int i = 0; i < wanted->count; i++) {
        struct wpk_named_tensor tensor;
        size_t k = 0;
        while (k < before.count && strcmp(before.name[k], wanted->tensor[i].canonical) != 0) {
            k++;
        }
        if (k == before.count) {
            return wpk_fail(diag, WPK_EMISMATCH,
                            "the kernel has no tensor %s, which the choice binds to '%s'",
                            wanted->tensor[i].canonical, wanted->tensor[i].name);
        }
        memcpy(tensor.name, wanted->tensor[i].name, WPK_NAME_MAX);
        tensor.type = before.argument[k].type;
        wpk_argument_list_add(list, &tensor, before.source[k]);
        place[k] = i;
    }
    return WPK_OK;
}

wpk_err wpk_kernel_bind(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                        struct wpk_diag *diag)
{
    int inputs[WPK_ABI_ARGUMENTS_MAX] = {0};
    int outputs[WPK_ABI_ARGUMENTS_MAX] = {0};
    int constants[WPK_ABI_ARGUMENTS_MAX] = {0};

    wpk_err err = bind_list(&kernel->inputs, &choice->inputs, inputs, diag);
    err = err == WPK_OK ? bind_list(&kernel->constants, &choice->constants, constants, diag) : err;
    err = err == WPK_OK ? bind_list(&kernel->outputs, &choice->outputs, outputs, diag) : err;
    for (int i = 0; i < kernel->manifest.main_count && err == WPK_OK; i++) {
        struct wpk_slot *slot = &kernel->main[i];
        if (slot->kind == WPK_SLOT_INPUT) {
            slot->index = inputs[slot->index];
        } else if (slot->kind == WPK_SLOT_OUTPUT) {
            slot->index = outputs[slot->index];
        }
    }
    return err;
}
