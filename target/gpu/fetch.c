/* SPDX-License-Identifier: Apache-2.0 */
/* Four neighbours along an axis that are computed one after the other. The elements
 * that they read of a tensor in global memory are often four neighbours, too, from a multiple of 16
 * bytes on: one vector load fetches them before the four are computed. The four are printed twice:
 * the first time only those of their loads are noted that are in no branch. */
#include "target/gpu/point.h"

#include <stdlib.h>
#include <string.h>

/* True if the load and the next three elements are noted, and begin at a multiple of 16 bytes. */
static bool is_first(struct wpk_c_kernel *k, const struct wpk_cuda_fetch *first)
{
    const struct wpk_cuda_launch *launch = k->launch;
    int found = 0;
    for (int i = 0; i < launch->noted_count; i++) {
        for (int by = 0; by < WPK_CUDA_VECTOR && launch->noted[i].tensor == first->tensor; by++) {
            found += wpk_cuda_are_apart(k, &first->at, &launch->noted[i].at, by);
        }
    }
    return found == WPK_CUDA_VECTOR && k->program->tensors[first->tensor].dtype == WPK_F32 &&
           wpk_cuda_begins_even(k, first->tensor, &first->at);
}

static void print_points(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int axis,
                         const struct wpk_form *at)
{
    struct wpk_form point[WPK_AXES_MAX];
    memcpy(point, at, sizeof(point));
    for (int lane = 0; lane < WPK_CUDA_VECTOR; lane++) {
        wpk_c_print_point(k, d->stage, d->update, point);
        point[axis].constant++;
    }
}

void wpk_cuda_begin_fetch(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int axis,
                          const struct wpk_form *at)
{
    struct wpk_cuda_launch *launch = k->launch;
    struct wpk_buf scratch = {0}, *out = k->text.out;
    launch->noted_count = launch->fetched_count = 0;
    k->text.out = &scratch;
    launch->noting_depth = k->text.depth + 1; /* a point is a block */
    print_points(k, d, axis, at);
    launch->noting_depth = 0;
    k->text.out = out;
    wpk_buf_fini(&scratch);
    for (int i = 0; i < launch->noted_count; i++) {
        struct wpk_cuda_fetch *first = &launch->noted[i];
        if (launch->fetched_count < WPK_CUDA_FETCHED_MAX && is_first(k, first)) {
            first->name = k->text.name_count++;
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "const float4 f%d = *(const float4 *)&", first->name);
            wpk_c_storage_put_element(k, first->tensor, &first->at);
            wpk_c_end(&k->text);
            launch->fetched[launch->fetched_count++] = *first;
        }
    }
}

void wpk_cuda_end_fetch(struct wpk_c_kernel *k)
{
    k->launch->fetched_count = 0;
}
