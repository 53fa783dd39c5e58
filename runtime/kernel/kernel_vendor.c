/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's primitive as a kernel: oneDNN's on the CPU, or one on a GPU. */
#include "runtime/kernel/kernel.h"

#include "schema/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_lists(struct wpk_kernel *kernel, const struct wpk_recipe *recipe)
{
    struct wpk_argument_list *const lists[] = {[WPK_RECIPE_INPUT] = &kernel->inputs,
                                               [WPK_RECIPE_CONSTANT] = &kernel->constants,
                                               [WPK_RECIPE_OUTPUT] = &kernel->outputs};

    for (int i = 0; i < recipe->tensor_count; i++) {
        wpk_argument_list_add(lists[recipe->use[i]], &recipe->tensor[i], i);
    }
    kernel->prepared = kernel->constants.count == 0;
}

/* ---- on a GPU, where a primitive has the arguments of a kernel of ours */

static void fill_manifest(const struct wpk_recipe *recipe, bool emulated, struct wpk_manifest *out)
{
    struct wpk_named_tensor *const lists[] = {[WPK_RECIPE_INPUT] = out->inputs,
                                              [WPK_RECIPE_CONSTANT] = out->constants,
                                              [WPK_RECIPE_OUTPUT] = out->outputs};
    int *const counts[] = {[WPK_RECIPE_INPUT] = &out->input_count,
                           [WPK_RECIPE_CONSTANT] = &out->constant_count,
                           [WPK_RECIPE_OUTPUT] = &out->output_count};

    out->needs = (struct wpk_manifest_needs){.cuda = true, .emulated = emulated};
    out->threads = 1;
    for (int i = 0; i < recipe->tensor_count; i++) {
        enum wpk_recipe_use use = recipe->use[i];
        lists[use][(*counts[use])++] = recipe->tensor[i];
        memcpy(out->main[out->main_count++], recipe->tensor[i].name, WPK_NAME_MAX);
    }
}

static wpk_err open_on_gpu(struct wpk_kernel *kernel, const struct wpk_recipe *recipe,
                           const struct wpk_vendor_options *options, struct wpk_diag *diag)
{
    struct wpk_gpu_options gpu = {.recipe = recipe, .any_algorithm = options->any_algorithm};

    wpk_err err = wpk_gpu_vendor_open(options->provider, options->library_dir, &gpu.vendor, diag);
    /* Algorithms have other numbers in another version. */
    if (err == WPK_OK && options->version != NULL &&
        strcmp(options->version, gpu.vendor->version) != 0) {
        err = wpk_fail(diag, WPK_EMISMATCH, "%s %s is wanted, this is %s", options->provider,
                       options->version, gpu.vendor->version);
    }
    if (err == WPK_OK) {
        gpu.emulated = gpu.vendor->emulated;
        fill_manifest(recipe, gpu.emulated, &kernel->manifest);
        err = wpk_gpu_open(&gpu, &kernel->gpu, diag);
    }
    return err == WPK_OK ? wpk_kernel_lay_out(kernel, diag) : err;
}

wpk_err wpk_kernel_of_recipe(const struct wpk_recipe *recipe,
                             const struct wpk_vendor_options *options, struct wpk_kernel **out,
                             struct wpk_diag *diag)
{
    bool on_gpu = wpk_gpu_vendor_is(options->provider);
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));
    struct wpk_buf text = {0};

    if (kernel == NULL) {
        return WPK_ENOMEM;
    }
    kernel->taken = (struct wpk_choice_taken){.index = -1, .kind = "", .reason = ""};
    wpk_err err = on_gpu ? open_on_gpu(kernel, recipe, options, diag)
                         : wpk_vendor_open(recipe, options, &kernel->vendor, diag);
    if (err == WPK_OK && !on_gpu) {
        fill_lists(kernel, recipe);
    }
    err = err == WPK_OK ? wpk_fields_encode(wpk_recipe_fields, recipe, &text) : err;
    err = err == WPK_OK ? wpk_buf_take(&text, &kernel->manifest_text, NULL) : err;
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        wpk_kernel_close(kernel);
        return err;
    }
    *out = kernel;
    return WPK_OK;
}

wpk_err wpk_kernel_entry(const struct wpk_kernel *kernel, struct wpk_buf *out)
{
    struct wpk_gpu_primitive *primitive =
        kernel->gpu != NULL ? wpk_gpu_primitive(kernel->gpu) : NULL;

    if (primitive == NULL) {
        return kernel->vendor != NULL ? wpk_vendor_entry(kernel->vendor, out) : WPK_OK;
    }
    struct wpk_choice_entry entry = {.kind = WPK_CHOICE_VENDOR, .recipe = &primitive->recipe};
    snprintf(entry.provider, sizeof(entry.provider), "%s", primitive->vendor->name);
    snprintf(entry.version, sizeof(entry.version), "%s", primitive->vendor->version);
    return wpk_choice_entry_encode(&entry, out);
}
