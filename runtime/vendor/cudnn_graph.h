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

/* Plans of cuDNN that compute a graph: an engine with its knobs. */

#define WPK_CUDNN_PLANS_MAX 256

struct wpk_cudnn_plan {
    void *config; /* of an engine; the pool's */
    void *plan;   /* the pool's; NULL: not built */
    int64_t workspace_bytes;
};

/* Append the plans, not built, of the engines that the heuristics name for a graph of these
 * operations, the presumably fastest first; with `all` then those of every engine as it is, and
 * with each value of each of its knobs, one knob at a time. Engines that compute in less than f32
 * have none. An error of the library is no plan.
 *   shape   operation [count]; plans [WPK_CUDNN_PLANS_MAX], of which *plan_count are there */
void wpk_cudnn_find_plans(struct wpk_cudnn_pool *pool, void *const *operation, int count, bool all,
                          struct wpk_cudnn_plan *plans, int *plan_count);
/* Build a plan, which may compile code. False: the library cannot, or the plan wants more than
 * `workspace_max` bytes. */
bool wpk_cudnn_build(struct wpk_cudnn_pool *pool, struct wpk_cudnn_plan *plan,
                     int64_t workspace_max);

/* Execute in the handle's stream.   shape   uid, pointer [count] */
int wpk_cudnn_execute(const struct wpk_cudnn_pool *pool, const struct wpk_cudnn_plan *plan,
                      const int64_t *uid, void *const *pointer, int count, void *workspace);

#endif
