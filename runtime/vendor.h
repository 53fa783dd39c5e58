/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's library computes what a recipe says.
 *
 *      recipe ──open──▶ vendor ──prepare──▶ vendor, its constants packed
 *                                              └──call_new──▶ call ──run──▶ ...
 *
 * A prepared vendor is immutable and shared: calls count as its users, so it lives until the last
 * of them is freed. A call serves one thread at a time. The library is found at run time by the
 * provider's own file name, in a directory that the host names or on the system's path; it stays
 * loaded, because its threads may still be on their way to sleep inside it. */
#ifndef WPK_RUNTIME_VENDOR_H
#define WPK_RUNTIME_VENDOR_H

#include "runtime/memory.h"
#include "schema/recipe.h"

struct wpk_vendor;
struct wpk_vendor_call;

struct wpk_vendor_options {
    const char *provider;    /* "onednn" */
    const char *version;     /* that the library must have; NULL: any */
    const char *library_dir; /* NULL: the system's path */
    int threads;             /* >= 1 */
};

/* Make the primitive.
 *
 *   owns    caller calls wpk_vendor_release; the recipe is copied
 *   errors  WPK_ENOENT no such library; WPK_EMISMATCH another version or interface;
 *           WPK_EUNSUPPORTED no such provider or primitive; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_vendor_open(const struct wpk_recipe *recipe,
                                       const struct wpk_vendor_options *options,
                                       struct wpk_vendor **out, struct wpk_diag *diag);
struct wpk_vendor *wpk_vendor_share(struct wpk_vendor *vendor);
void wpk_vendor_release(struct wpk_vendor *vendor);

/* Let inputs and outputs of `recipe` lie as the primitive chose, where the recipe lets it choose
 * and a layout can say so (schema/tensor.h); others stay as they are, to be converted. */
WPK_MUST_CHECK wpk_err wpk_vendor_settle(const struct wpk_vendor *vendor,
                                         struct wpk_recipe *recipe);

/* Pack the constants.
 *   shape   dense [recipe tensors]: row-major arrays of the constants
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_vendor_prepare(struct wpk_vendor *vendor, const void *const *dense);

/* Where the packed constants lie. Gives their number.
 *   shape   out [WPK_RECIPE_ROLE_COUNT] */
size_t wpk_vendor_constants(const struct wpk_vendor *vendor, struct wpk_span *out);

/*   owns    caller calls wpk_vendor_call_free
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_vendor_call_new(struct wpk_vendor *vendor, struct wpk_vendor_call **out);
void wpk_vendor_call_free(struct wpk_vendor_call *call);
/* Whose call it is. */
const struct wpk_vendor *wpk_vendor_call_vendor(const struct wpk_vendor_call *call);

/* Compute, and wait until it is done.
 *   shape   data [recipe tensors]: inputs and outputs, in their layouts */
WPK_MUST_CHECK wpk_err wpk_vendor_call_run(struct wpk_vendor_call *call, void *const *data);

/* Append the entry of a choice that runs it: JSON.   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_vendor_entry(const struct wpk_vendor *vendor, struct wpk_buf *out);

/* The implementation the library chose and its version, such as "jit:avx512_core, oneDNN 3.2.0". */
const char *wpk_vendor_detail(const struct wpk_vendor *vendor);

#endif
