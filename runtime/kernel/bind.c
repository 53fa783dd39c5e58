/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments have the manifest's or recipe's names when a kernel is loaded, and the choice's names
 * after a choice was bound. */
#include "runtime/kernel/kernel.h"

#include <string.h>

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
        wpk_diag_set(diag, "the choice binds %d tensors where the kernel has %zu", wanted->count,
                     before.count);
        return WPK_EMISMATCH;
    }
    list->count = 0;
    for (int i = 0; i < wanted->count; i++) {
        struct wpk_named_tensor tensor;
        size_t k = 0;
        while (k < before.count && strcmp(before.name[k], wanted->tensor[i].canonical) != 0) {
            k++;
        }
        if (k == before.count) {
            wpk_diag_set(diag, "the kernel has no tensor %s, which the choice binds to '%s'",
                         wanted->tensor[i].canonical, wanted->tensor[i].name);
            return WPK_EMISMATCH;
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
    if (err == WPK_OK) {
        err = bind_list(&kernel->constants, &choice->constants, constants, diag);
    }
    if (err == WPK_OK) {
        err = bind_list(&kernel->outputs, &choice->outputs, outputs, diag);
    }
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
