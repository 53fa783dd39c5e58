/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are moved from global to shared memory as they are. A load that may leave its
 * tensor stores zeros there: the hardware's copies do that, too. Inlined stages that move elements
 * only say where they are. */
#include "target/gpu/kernel.h"

#include "target/gpu/point.h"

#include <inttypes.h>
#include <string.h>

static bool add_limits(struct wpk_c_kernel *k, const struct wpk_tensor *t,
                       const struct wpk_form *index, struct wpk_cuda_move *out)
{
    for (int d = 0; d < t->rank; d++) {
        struct wpk_cuda_limit limit = {index[d], -t->pad_before[d],
                                       t->extent[d] + t->pad_after[d] - 1};
        int64_t low = 0, high = 0;
        wpk_form_range(&k->forms, &index[d], &low, &high);
        if (low >= limit.first && high <= limit.last) {
            continue;
        }
        if (out->limit_count == WPK_CUDA_LIMITS_MAX) {
            return false;
        }
        out->limit[out->limit_count++] = limit;
    }
    return true;
}

/* Find what the node reads at the point. */
static bool find_source(struct wpk_c_kernel *k, const struct wpk_c_point *point, int id,
                        struct wpk_cuda_move *out)
{
    const struct wpk_node *node = &k->program->nodes[id];
    if (node->kind != WPK_NODE_LOAD ||
        (node->outside >= 0 && !wpk_load_is_zero_outside(k->program, node))) {
        return false;
    }
    const struct wpk_tensor *t = &k->program->tensors[node->tensor];
    struct wpk_c_point inner;
    for (int d = 0; d < t->rank; d++) {
        if (!wpk_c_index(k, point, node->index[d], &inner.axis[d])) {
            return false;
        }
    }
    if (node->outside >= 0 && !add_limits(k, t, inner.axis, out)) {
        return false;
    }
    int writer = wpk_program_writer(k->program, node->tensor);
    if (writer >= 0 && k->nest->entry[k->entry_of[writer]].inlined) {
        wpk_c_point_begin(k, &k->program->stages[writer], 1, &inner);
        return find_source(k, &inner, inner.stage->expr, out);
    }
    out->from = node->tensor;
    return t->dtype == WPK_F32 && t->role != WPK_ROLE_LITERAL &&
           !wpk_cuda_is_shared(k, node->tensor) && !wpk_cuda_is_private(k, node->tensor) &&
           wpk_c_storage_place(k, node->tensor, inner.axis, &out->from_at);
}

static bool find_one(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                     const struct wpk_form *axis, struct wpk_cuda_move *out)
{
    struct wpk_c_point point;
    *out = (struct wpk_cuda_move){.to = stage->output, .count = 1};
    if (stage->reduction != WPK_REDUCE_NONE || !wpk_cuda_is_shared(k, stage->output) ||
        k->program->tensors[stage->output].dtype != WPK_F32) {
        return false;
    }
    for (int a = 0; a < stage->rank; a++) {
        point.axis[a] = axis[a];
    }
    wpk_c_point_begin(k, stage, 1, &point);
    return find_source(k, &point, stage->expr, out) &&
           wpk_c_storage_place(k, stage->output, axis, &out->to_at);
}

bool wpk_cuda_is_even(const struct wpk_c_kernel *k, int tensor)
{
    const struct wpk_c_storage *s = k->storage[k->storage_of[tensor]];
    int64_t before = 0;
    for (int d = 0; d < s->rank && s->global; d++) {
        before += k->program->tensors[tensor].pad_before[d] * s->stride[d];
    }
    return before % WPK_CUDA_VECTOR == 0;
}

/* True if the element is at a multiple of 16 bytes of an f32 tensor. */
static bool begins_even(struct wpk_c_kernel *k, int tensor, const struct wpk_form *at)
{
    int64_t rest = 1;
    return wpk_cuda_is_even(k, tensor) && wpk_form_split(&k->forms, at, WPK_CUDA_VECTOR, &rest) &&
           rest == 0;
}

bool wpk_cuda_are_together(struct wpk_c_kernel *k, int tensor, const struct wpk_form *index,
                           int lanes, struct wpk_form *at)
{
    struct wpk_form next[WPK_RANK_MAX], other;
    int rank = k->program->tensors[tensor].rank;
    bool together = k->program->tensors[tensor].dtype == WPK_F32 &&
                    !wpk_cuda_is_private(k, tensor) && wpk_c_storage_place(k, tensor, index, at) &&
                    begins_even(k, tensor, at);
    memcpy(next, index, (size_t)rank * sizeof(*next));
    for (int lane = 1; lane < WPK_CUDA_VECTOR && together; lane++) {
        next[lanes].constant++;
        together =
            wpk_c_storage_place(k, tensor, next, &other) && wpk_cuda_are_apart(k, at, &other, lane);
    }
    return together;
}

bool wpk_cuda_find_move(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                        const struct wpk_form *axis, int lanes, struct wpk_cuda_move *out)
{
    struct wpk_form at[WPK_AXES_MAX];
    bool found = find_one(k, stage, axis, out);
    if (!found || lanes < 0) {
        return found;
    }
    for (int a = 0; a < stage->rank; a++) {
        at[a] = axis[a];
    }
    found = begins_even(k, out->to, &out->to_at) && begins_even(k, out->from, &out->from_at);
    for (int lane = 1; lane < WPK_CUDA_VECTOR && found; lane++) {
        struct wpk_cuda_move next;
        at[lanes].constant++;
        found = find_one(k, stage, at, &next) &&
                wpk_cuda_are_apart(k, &out->to_at, &next.to_at, lane) &&
                wpk_cuda_are_apart(k, &out->from_at, &next.from_at, lane) &&
                next.limit_count == out->limit_count;
        for (int i = 0; i < out->limit_count && found; i++) {
            found = wpk_cuda_are_apart(k, &out->limit[i].index, &next.limit[i].index, 0);
        }
    }
    out->count = WPK_CUDA_VECTOR;
    return found;
}

/* ---- printing */

void wpk_cuda_put_move(struct wpk_c_kernel *k, const struct wpk_cuda_move *move)
{
    bool async = k->launch->async, limited = move->limit_count > 0;
    k->launch->any_moves = k->launch->any_moves || !async;
    k->launch->any_ahead = k->launch->any_ahead || async;
    k->launch->ahead = k->launch->ahead || async;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "wpk_%s%d%s(&", async ? "ahead" : "move", 4 * move->count,
              limited ? "_inside" : "");
    wpk_c_storage_put_element(k, move->to, &move->to_at);
    wpk_c_put(&k->text, ", &");
    wpk_c_storage_put_element(k, move->from, &move->from_at);
    wpk_c_put(&k->text, limited ? ", " : "");
    for (int i = 0; i < move->limit_count; i++) {
        const struct wpk_cuda_limit *limit = &move->limit[i];
        wpk_c_put(&k->text, i == 0 ? "" : " && ");
        wpk_c_put_form(&k->text, &limit->index);
        wpk_c_put(&k->text, " >= %" PRId64 " && ", limit->first);
        wpk_c_put_form(&k->text, &limit->index);
        wpk_c_put(&k->text, " <= %" PRId64, limit->last);
    }
    wpk_c_put(&k->text, ")");
    wpk_c_end(&k->text);
}

/* Four neighbours along an axis that are computed one after the other. The elements
 * that they read of a tensor in global memory are often four neighbours, too, from a multiple of 16
 * bytes on: one vector load fetches them before the four are computed. The four are printed twice:
 * the first time only those of their loads are noted that are in no branch. */

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
           begins_even(k, first->tensor, &first->at);
}

void wpk_cuda_begin_fetch(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int axis,
                          const struct wpk_form *at)
{
    struct wpk_cuda_launch *launch = k->launch;
    struct wpk_buf scratch = {0}, *out = k->text.out;
    launch->noted_count = launch->fetched_count = 0;
    k->text.out = &scratch;
    launch->noting_depth = k->text.depth + 1; /* a point is a block */
    struct wpk_form point[WPK_AXES_MAX];
    memcpy(point, at, sizeof(point));
    for (int lane = 0; lane < WPK_CUDA_VECTOR; lane++) {
        wpk_c_print_point(k, d->stage, d->update, point);
        point[axis].constant++;
    }
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
