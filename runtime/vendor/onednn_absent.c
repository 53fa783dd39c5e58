/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of onednn.c in builds without oneDNN's headers. */
#include "runtime/vendor/vendor.h"

wpk_err wpk_vendor_open(const struct wpk_recipe *recipe WPK_UNUSED,
                        const struct wpk_vendor_options *options,
                        struct wpk_vendor **out WPK_UNUSED, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EUNSUPPORTED, "this libwpk was built without %s", options->provider);
}

/* The rest needs an open one, which there never is. */
struct wpk_vendor *wpk_vendor_share(struct wpk_vendor *vendor)
{
    return vendor;
}

void wpk_vendor_release(struct wpk_vendor *vendor)
{
    WPK_ASSERT(vendor == NULL);
}

wpk_err wpk_vendor_settle(const struct wpk_vendor *vendor WPK_UNUSED,
                          struct wpk_recipe *recipe WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_vendor_prepare(struct wpk_vendor *vendor WPK_UNUSED,
                           const void *const *dense WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_vendor_call_new(struct wpk_vendor *vendor WPK_UNUSED,
                            struct wpk_vendor_call **out WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}

size_t wpk_vendor_constants(const struct wpk_vendor *vendor WPK_UNUSED,
                            struct wpk_span *out WPK_UNUSED)
{
    return 0;
}

void wpk_vendor_call_free(struct wpk_vendor_call *call)
{
    WPK_ASSERT(call == NULL);
}

const struct wpk_vendor *wpk_vendor_call_vendor(const struct wpk_vendor_call *call)
{
    WPK_ASSERT(call == NULL);
    return NULL;
}

wpk_err wpk_vendor_call_run(struct wpk_vendor_call *call WPK_UNUSED, void *const *data WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_vendor_entry(const struct wpk_vendor *vendor WPK_UNUSED, struct wpk_buf *out WPK_UNUSED)
{
    return WPK_EUNSUPPORTED;
}

const char *wpk_vendor_detail(const struct wpk_vendor *vendor WPK_UNUSED)
{
    return "";
}
