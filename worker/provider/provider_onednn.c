/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's kernel for an operator: its recipe, opened by libwpk as in users' programs. */
#include "runtime/kernel/kernel.h"
#include "worker/provider/onednn_pattern.h"
#include "worker/provider/provider.h"

#include <string.h>

static wpk_err make_recipe(const struct wpk_provider_request *request,
                           const struct wpk_vendor_options *options, struct wpk_recipe *out,
                           struct wpk_diag *diag)
{
    bool fixed = strcmp(request->layouts, "fixed") == 0;
    struct wpk_vendor *vendor = NULL;

    wpk_err err = wpk_onednn_match(request->program, out);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "none of oneDNN's primitives computes this operator");
        return err;
    }
    /* Mark the operands whose layout the primitive may choose.  Constants are packed once and
     * not per call, as our kernels pack theirs. Convolutions on plain layouts are slow: the
     * library is faster on every layer of ResNet-18 when its input and output are converted on
     * each call, so that is what it is given credit for. Matrix products take plain layouts as
     * they are. If layouts are free, the library chooses those of inputs and outputs. */
    bool convolution = out->kind == WPK_RECIPE_CONVOLUTION;
    bool product = convolution || out->kind == WPK_RECIPE_MATMUL;
    bool pooling = wpk_recipe_has_window(out) && !convolution;
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        struct wpk_recipe_operand *operand = &out->operand[role];
        bool constant = operand->tensor >= 0 && out->use[operand->tensor] == WPK_RECIPE_CONSTANT;
        if (role == WPK_RECIPE_WEIGHTS) {
            operand->chosen = product && (constant || !fixed);
        } else if (role == WPK_RECIPE_SRC || role == WPK_RECIPE_DST) {
            operand->chosen = fixed ? convolution : product || pooling;
        }
    }
    if (fixed) {
        return WPK_OK;
    }
    err = wpk_vendor_open(out, options, &vendor, diag);
    err = err == WPK_OK ? wpk_vendor_settle(vendor, out) : err;
    wpk_vendor_release(vendor);
    return err;
}

wpk_err wpk_provider_onednn_kernel(const struct wpk_provider_request *request,
                                   struct wpk_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_vendor_options options = {.provider = WPK_PROVIDER_ONEDNN_NAME,
                                               .library_dir = request->library_dir,
                                               .threads = request->threads};
    struct wpk_recipe recipe;

    wpk_err err = make_recipe(request, &options, &recipe, diag);
    return err == WPK_OK ? wpk_kernel_of_recipe(&recipe, &options, out, diag) : err;
}
