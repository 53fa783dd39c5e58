/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a recipe with a vendor's library.
 *
 *      recipe ──open──▶ vendor ──prepare──▶ vendor, its constants packed
 *                                              └──call_new──▶ call ──run──▶ ...
 *
 * A `struct wpk_vendor` is one primitive. A prepared one is immutable and shared: each call is one
 * of its users, so it lives until its last call is freed. A call serves one thread at a time. The
 * library is loaded at run time, by the provider's own file name, from a directory that the host
 * names or from the system's path. It stays loaded, because its threads may still run its code. */
#ifndef WPK_RUNTIME_VENDOR_VENDOR_H
#define WPK_RUNTIME_VENDOR_VENDOR_H

#include "runtime/scratch.h"
#include "schema/recipe.h"

struct wpk_vendor;
struct wpk_vendor_call;

struct wpk_vendor_options {
    const char *provider;    /* "onednn" */
    const char *version;     /* the version that the library must have; NULL: any */
    const char *library_dir; /* NULL: the system's path */
    int threads;             /* >= 1 */
    bool any_algorithm;      /* on a GPU: the caller will change the recipe's */
};

/* Make the primitive of a recipe.
 *
 *   owns    caller calls wpk_vendor_release; the recipe is copied
 *   errors  WPK_ENOENT no such library; WPK_EMISMATCH another version or interface;
 *           WPK_EUNSUPPORTED no such provider or primitive; WPK_ENOMEM
 */
wpk_err wpk_vendor_open(const struct wpk_recipe *recipe, const struct wpk_vendor_options *options,
                        struct wpk_vendor **out, struct wpk_diag *diag);
/* Count one more user, and one user less; the last release frees the vendor. */
struct wpk_vendor *wpk_vendor_share(struct wpk_vendor *vendor);
void wpk_vendor_release(struct wpk_vendor *vendor);

/* Give the inputs and outputs of `recipe` the layouts that the primitive chose, where the recipe
 * leaves the choice to the primitive and schema/tensor.h can express it. All other operands keep
 * their layouts, and each call converts them. */
wpk_err wpk_vendor_settle(const struct wpk_vendor *vendor, struct wpk_recipe *recipe);

/* Pack the constants.
 *   shape   dense [recipe tensors]: row-major arrays of the constants
 *   errors  WPK_ENOMEM */
wpk_err wpk_vendor_prepare(struct wpk_vendor *vendor, const void *const *dense);

/* Find the packed constants; return their number.
 *   shape   out [WPK_RECIPE_ROLE_COUNT] */
size_t wpk_vendor_constants(const struct wpk_vendor *vendor, struct wpk_span *out);

/* Make a call, with memory of its own, and count it as a user of the vendor.
 *   owns    caller calls wpk_vendor_call_free
 *   errors  WPK_ENOMEM */
wpk_err wpk_vendor_call_new(struct wpk_vendor *vendor, struct wpk_vendor_call **out);
void wpk_vendor_call_free(struct wpk_vendor_call *call);
/* The vendor that the call is of. */
const struct wpk_vendor *wpk_vendor_call_vendor(const struct wpk_vendor_call *call);

/* Compute, and wait for the result.
 *   shape   data [recipe tensors]: inputs and outputs, in their layouts
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED the library returned an error */
wpk_err wpk_vendor_call_run(struct wpk_vendor_call *call, void *const *data);

/* Append the choice's entry for this vendor, as JSON.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_vendor_entry(const struct wpk_vendor *vendor, struct wpk_buf *out);

/* The implementation that the library chose, and the library's version, such as
 * "jit:avx512_core, oneDNN 3.2.0". */
const char *wpk_vendor_detail(const struct wpk_vendor *vendor);

#endif
