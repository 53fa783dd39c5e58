/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's primitive as a kernel. */
#include "runtime/kernel.h"

#include <stdlib.h>

static wpk_err fill(struct wpk_kernel *kernel, const struct wpk_recipe *recipe)
{
    struct wpk_argument_list *const lists[] = {[WPK_RECIPE_INPUT] = &kernel->inputs,
                                               [WPK_RECIPE_CONSTANT] = &kernel->constants,
                                               [WPK_RECIPE_OUTPUT] = &kernel->outputs};
    struct wpk_buf text = {0};

    for (int i = 0; i < recipe->tensor_count; i++) {
        wpk_argument_list_add(lists[recipe->use[i]], &recipe->tensor[i], i);
    }
    kernel->prepared = kernel->constants.count == 0;
    kernel->taken = (struct wpk_choice_taken){.index = -1, .kind = "", .reason = ""};
    wpk_err err = wpk_recipe_encode(recipe, &text);
    if (err == WPK_OK) {
        err = wpk_buf_take(&text, &kernel->manifest_text, NULL);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_kernel_of_recipe(const struct wpk_recipe *recipe,
                             const struct wpk_vendor_options *options, struct wpk_kernel **out,
                             struct wpk_diag *diag)
{
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_vendor_open(recipe, options, &kernel->vendor, diag);
    if (err == WPK_OK) {
        err = fill(kernel, recipe);
    }
    if (err != WPK_OK) {
        wpk_kernel_close(kernel);
        return err;
    }
    *out = kernel;
    return WPK_OK;
}
