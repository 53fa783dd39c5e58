/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include <malloc.h>
#include <stdlib.h>

struct ep_group {
    struct ort_compute_info info; /* first: ONNX Runtime has a pointer to it */
    struct wpk_twin *twin;
    struct wpk_plans *plans; /* NULL: there are none */
};

/* A group has no state besides itself. ONNX Runtime asks for one once it has dropped the constants
 * that the twin copied, and the twin those that it packed: libc would keep that memory, as much
 * again as the constants. */
static struct ort_status *create_state(struct ort_compute_info *info,
                                       struct ort_compute_context *context, void **state)
{
    malloc_trim(0);
    *state = info;
    return NULL;
}

static void release_state(struct ort_compute_info *info, void *state)
{
}

static struct ort_status *compute(struct ort_compute_info *info, void *state,
                                  struct ort_kernel_context *context)
{
    const struct ep_group *group = (const struct ep_group *)info;
    return group->plans != NULL ? wpk_plans_run(group->plans, context)
                                : wpk_twin_run(group->twin, context);
}

struct ort_status *wpk_group_make(const struct wpk_ort *ort, const struct ort_graph *graph,
                                  const struct ort_node *fused,
                                  const struct wpk_twin_options *options,
                                  const struct wpk_plans_options *plans,
                                  struct ort_compute_info **out)
{
    struct ep_group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return wpk_ort_fail(ort, "out of memory");
    }
    group->info = (struct ort_compute_info){.version = WPK_ORT_VERSION,
                                            .CreateState = create_state,
                                            .Compute = compute,
                                            .ReleaseState = release_state};
    struct ort_status *status = wpk_twin_new(ort, graph, fused, options, &group->twin);
    if (status != NULL) {
        free(group);
    } else {
        group->plans = wpk_plans_new(ort, graph, group->twin, plans);
        *out = &group->info;
    }
    return status;
}

void wpk_group_release(struct ort_compute_info *info)
{
    struct ep_group *group = (struct ep_group *)info;
    if (group != NULL) {
        wpk_plans_free(group->plans);
        wpk_twin_free(group->twin);
        free(group);
    }
}
