/* SPDX-License-Identifier: Apache-2.0 */
/* One of oneDNN's primitives, made and executed. The library is opened by path: nothing links it,
 * and only onednn.c knows its interface.
 *
 * Threads are the library's own (OpenMP): as many as asked for, on the CPUs of the process. */
#ifndef WPK_WORKER_ONEDNN_H
#define WPK_WORKER_ONEDNN_H

#include "worker/onednn_match.h"

enum wpk_onednn_role {
    WPK_ONEDNN_SRC,
    WPK_ONEDNN_WEIGHTS,
    WPK_ONEDNN_BIAS,
    WPK_ONEDNN_DST,
    WPK_ONEDNN_ROLE_COUNT
};

struct wpk_onednn;

/* Who decides how src and dst lie. */
enum wpk_onednn_layouts {
    WPK_ONEDNN_AS_GIVEN,  /* as the operand says */
    WPK_ONEDNN_CHOSEN,    /* the library */
    WPK_ONEDNN_CONVERTED, /* as the operand says outside, the library inside: run converts */
};

struct wpk_onednn_options {
    const char *library_path;
    enum wpk_onednn_layouts layouts; /* of convolutions and matrix products; others: as given */
    bool weights_chosen; /* the library chooses the layout of weights: they are packed before */
    int threads;
};

/* Make the primitive.
 *
 *   shape   dtype [WPK_ONEDNN_ROLE_COUNT] of each operand that is used
 *   owns    caller closes; the operator is copied
 *   errors  WPK_ENOENT no such library; WPK_EMISMATCH another interface; WPK_EUNSUPPORTED the
 *           library has no such primitive; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_onednn_open(const struct wpk_onednn_op *op, const enum wpk_dtype *dtype,
                                       const struct wpk_onednn_options *options,
                                       struct wpk_onednn **out, struct wpk_diag *diag);
void wpk_onednn_close(struct wpk_onednn *onednn);

/* Bytes of the operand in the layout that the primitive wants; 0: it is not used. */
size_t wpk_onednn_size(const struct wpk_onednn *onednn, enum wpk_onednn_role role);

/* Tell where the operand lies: borrowed until close, of that size, aligned to 64 bytes. */
WPK_MUST_CHECK wpk_err wpk_onednn_attach(struct wpk_onednn *onednn, enum wpk_onednn_role role,
                                         void *memory);

/* Convert between the user's dense row-major array and the attached memory. */
WPK_MUST_CHECK wpk_err wpk_onednn_put(struct wpk_onednn *onednn, enum wpk_onednn_role role,
                                      const void *dense);
WPK_MUST_CHECK wpk_err wpk_onednn_get(struct wpk_onednn *onednn, enum wpk_onednn_role role,
                                      void *dense);

/* Compute, and wait until it is done. */
WPK_MUST_CHECK wpk_err wpk_onednn_run(struct wpk_onednn *onednn);

/* The implementation the library chose and its version, such as "jit:avx512_core, oneDNN 3.2.0". */
const char *wpk_onednn_detail(const struct wpk_onednn *onednn);

#endif
