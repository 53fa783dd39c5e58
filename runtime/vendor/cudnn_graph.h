/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of cuDNN's operations. Functions return a cudnnStatus_t; descriptors are collected in a
 * pool, which destroys them. */
#ifndef WPK_RUNTIME_VENDOR_CUDNN_GRAPH_H
#define WPK_RUNTIME_VENDOR_CUDNN_GRAPH_H

#include "common/cudnn_calls.h"

#include <stdbool.h>

#define WPK_CUDNN_RANK_MAX 5
#define WPK_CUDNN_DESCRIPTORS_MAX 8192
#define WPK_CUDNN_OPERATIONS_MAX 3

#define WPK_CUDNN_CALL_FIELD(name, result, parameters) result(*name) parameters;

struct wpk_cudnn_calls {
    WPK_CUDNN_CALL_LIST(WPK_CUDNN_CALL_FIELD)
};

struct wpk_cudnn_pool {
    const struct wpk_cudnn_calls *calls;
    void *handle;
    void *descriptor[WPK_CUDNN_DESCRIPTORS_MAX]; /* owned */
    int count;
};

struct wpk_cudnn_tensor {
    int64_t uid;
    int rank;
    int64_t extent[WPK_CUDNN_RANK_MAX], stride[WPK_CUDNN_RANK_MAX];
    bool is_virtual; /* in no memory: between two operations */
};

/* [spatial] each */
struct wpk_cudnn_window {
    int spatial;
    int64_t before[WPK_CUDNN_RANK_MAX], after[WPK_CUDNN_RANK_MAX];
    int64_t stride[WPK_CUDNN_RANK_MAX], dilation[WPK_CUDNN_RANK_MAX];
};

void wpk_cudnn_pool_fini(struct wpk_cudnn_pool *pool);

int wpk_cudnn_tensor_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_tensor *tensor,
                          void **out);
/* y = w * x */
int wpk_cudnn_convolution_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_window *window,
                               void *x, void *w, void *y, void **out);
/* y = x + b, or y = max(x, 0) with `b` NULL */
int wpk_cudnn_pointwise_make(struct wpk_cudnn_pool *pool, void *x, void *b, void *y, void **out);

/* ---- descriptors */

/* Make one; the pool has it. */
int wpk_cudnn_make(struct wpk_cudnn_pool *pool, int type, void **out);
/* Set an attribute, unless something has failed before. */
void wpk_cudnn_set(const struct wpk_cudnn_pool *pool, int *status, void *descriptor, int name,
                   int type, int64_t count, const void *elements);
void wpk_cudnn_set_descriptor(const struct wpk_cudnn_pool *pool, int *status, void *descriptor,
                              int name, void *value);
/* Finalize it, unless something has failed before. */
int wpk_cudnn_finish(const struct wpk_cudnn_pool *pool, int status, void *descriptor);

#endif
