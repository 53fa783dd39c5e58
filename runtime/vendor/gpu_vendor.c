/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/gpu_vendor.h"

#include <pthread.h>

static const char *const names[] = {WPK_CUBLASLT_NAME, WPK_CUDNN_NAME};

#define VENDORS (sizeof(names) / sizeof(names[0]))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static struct {
    struct wpk_gpu_vendor vendor;
    bool tried;
    wpk_err err;
    struct wpk_diag diag;
} opened[VENDORS];

int wpk_gpu_vendor_names(const char *const **out)
{
    *out = names;
    return (int)VENDORS;
}

bool wpk_gpu_vendor_is(const char *name)
{
    return wpk_list_find(names, VENDORS, name) >= 0;
}

wpk_err wpk_gpu_vendor_open(const char *name, const char *directory,
                            const struct wpk_gpu_vendor **out, struct wpk_diag *diag)
{
    static wpk_err (*const open[VENDORS])(const char *, struct wpk_gpu_vendor *,
                                          struct wpk_diag *) = {wpk_cublaslt_open, wpk_cudnn_open};
    int i = wpk_list_find(names, VENDORS, name);
    if (i < 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "this libwpk knows no provider %s on GPUs", name);
    }
    pthread_mutex_lock(&lock);
    if (!opened[i].tried) {
        opened[i].err = open[i](directory, &opened[i].vendor, &opened[i].diag);
        opened[i].tried = true;
    }
    pthread_mutex_unlock(&lock);
    if (opened[i].err != WPK_OK) {
        wpk_diag_set(diag, "%s", opened[i].diag.text);
        return opened[i].err;
    }
    *out = &opened[i].vendor;
    return WPK_OK;
}
