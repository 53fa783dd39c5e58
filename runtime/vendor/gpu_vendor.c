/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/gpu_vendor.h"

#include <pthread.h>
#include <string.h>

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

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < VENDORS && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

bool wpk_gpu_vendor_is(const char *name)
{
    return find(name) < VENDORS;
}

wpk_err wpk_gpu_vendor_open(const char *name, const char *directory,
                            const struct wpk_gpu_vendor **out, struct wpk_diag *diag)
{
    static wpk_err (*const open[VENDORS])(const char *, struct wpk_gpu_vendor *,
                                          struct wpk_diag *) = {wpk_cublaslt_open, wpk_cudnn_open};
    size_t i = find(name);
    if (i == VENDORS) {
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
