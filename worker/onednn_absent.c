/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for onednn.c where the headers were not there when wpk was built. */
#include "worker/onednn.h"

wpk_err wpk_onednn_open(const struct wpk_onednn_op *op, const enum wpk_dtype *dtype,
                        const struct wpk_onednn_options *options, struct wpk_onednn **out,
                        struct wpk_diag *diag)
{
    (void)op;
    (void)dtype;
    (void)options;
    (void)out;
    wpk_diag_set(diag, "this wpk was built without oneDNN");
    return WPK_EUNSUPPORTED;
}

void wpk_onednn_close(struct wpk_onednn *onednn)
{
    WPK_ASSERT(onednn == NULL);
}

/* The rest needs an open one, which there never is. */
size_t wpk_onednn_size(const struct wpk_onednn *onednn, enum wpk_onednn_role role)
{
    (void)role;
    WPK_ASSERT(onednn == NULL);
    return 0;
}

wpk_err wpk_onednn_attach(struct wpk_onednn *onednn, enum wpk_onednn_role role, void *memory)
{
    (void)onednn;
    (void)role;
    (void)memory;
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_onednn_put(struct wpk_onednn *onednn, enum wpk_onednn_role role, const void *dense)
{
    (void)onednn;
    (void)role;
    (void)dense;
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_onednn_get(struct wpk_onednn *onednn, enum wpk_onednn_role role, void *dense)
{
    (void)onednn;
    (void)role;
    (void)dense;
    return WPK_EUNSUPPORTED;
}

wpk_err wpk_onednn_run(struct wpk_onednn *onednn)
{
    (void)onednn;
    return WPK_EUNSUPPORTED;
}

const char *wpk_onednn_detail(const struct wpk_onednn *onednn)
{
    (void)onednn;
    return "";
}
