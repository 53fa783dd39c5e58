/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of cuDNN that compute a graph: an engine with its knobs. */
#ifndef WPK_RUNTIME_VENDOR_CUDNN_PLAN_H
#define WPK_RUNTIME_VENDOR_CUDNN_PLAN_H

#include "runtime/vendor/cudnn_graph.h"

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
