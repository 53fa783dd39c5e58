/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/point.h"

#include <stdlib.h>
#include <string.h>

void wpk_cuda_put_barrier(struct wpk_c_kernel *k)
{
    if (k->launch->awaited) {
        wpk_c_line(&k->text, "asm volatile(\"cp.async.wait_all;\" ::: \"memory\");");
    }
    wpk_c_line(&k->text, "__syncthreads();");
    k->launch->pending = k->launch->awaited = false;
}

/* "if (it is not past an end)" */
static void put_guards(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                       const struct wpk_cuda_iteration *space)
{
    int conditions = 0;
    for (int g = 0; g < space->guard_count; g++) {
        int64_t low = 0, high = 0;
        struct wpk_form past =
            wpk_form_add(&k->forms, &space->at[space->guard[g].axis], &space->guard[g].end, -1);
        wpk_form_range(&k->forms, &past, &low, &high);
        if (high < 0) {
            continue;
        }
        if (conditions++ == 0) {
            wpk_c_indent(&k->text);
            wpk_c_put(&k->text, "if (");
        } else {
            wpk_c_put(&k->text, " && ");
        }
        wpk_c_put_form(&k->text, &past);
        wpk_c_put(&k->text, " < 0");
    }
    if (conditions > 0) {
        wpk_c_put(&k->text, ")\n");
    }
    if (d->single) {
        wpk_c_line(&k->text, "if (threadIdx.x == 0)");
    } else if (d->width > 1 && !d->own) {
        struct wpk_form first = wpk_form_atom(wpk_cuda_part(k, 1, d->width), 1);
        wpk_c_indent(&k->text);
        wpk_c_put(&k->text, "if (");
        wpk_c_put_form(&k->text, &first);
        wpk_c_put(&k->text, " == 0)\n");
    }
}

/* Print the move of one element, or of those along `lanes`; false: it is none. */
static bool print_move(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int lanes,
                       const struct wpk_cuda_iteration *space)
{
    struct wpk_cuda_move *move = malloc(sizeof(*move));
    bool found = move != NULL && wpk_cuda_find_move(k, d->stage, space->at, lanes, move);
    if (found) {
        put_guards(k, d, space);
        wpk_cuda_put_move(k, move);
    }
    free(move);
    return found;
}

void wpk_cuda_print_point(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d,
                          const struct wpk_cuda_iteration *space)
{
    if (k->launch->async && !print_move(k, d, -1, space)) {
        wpk_c_refuse(k, "only elements of f32 that are moved from global memory as they are, with "
                        "zeros outside, are copied by async");
    } else if (!k->launch->async) {
        put_guards(k, d, space);
        wpk_c_print_point(k, d->stage, d->update, space->at);
    }
}

/* Guards of an axis leave out all of its lanes, or none. */
static bool are_guards_whole(struct wpk_c_kernel *k, const struct wpk_cuda_iteration *space,
                             int axis, int64_t lanes)
{
    bool whole = true;
    for (int g = 0; g < space->guard_count; g++) {
        const struct wpk_cuda_guard *guard = &space->guard[g];
        int64_t rest = 1;
        struct wpk_form past = wpk_form_add(&k->forms, &space->at[axis], &guard->end, -1);
        whole = whole && (guard->axis != axis ||
                          (wpk_form_split(&k->forms, &past, lanes, &rest) && rest == 0));
    }
    return whole;
}

/* Compute neighbours along an axis, and store them together; false: nothing is printed. */
static bool print_together(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int axis,
                           const struct wpk_cuda_iteration *space)
{
    struct wpk_c_value value[WPK_CUDA_VECTOR];
    struct wpk_c_point point = {.stage = d->stage};
    struct wpk_form at;
    memcpy(point.axis, space->at, sizeof(point.axis));
    if (k->launch->async || d->single ||
        !wpk_cuda_are_together(k, d->stage->output, point.axis, axis, &at)) {
        return false;
    }
    put_guards(k, d, space);
    wpk_c_line(&k->text, "{");
    wpk_cuda_begin_fetch(k, d, axis, space->at);
    for (int lane = 0; lane < WPK_CUDA_VECTOR; lane++) {
        wpk_c_point_begin(k, d->stage, 1, &point);
        value[lane] = wpk_c_evaluate(k, &point, d->stage->expr);
        point.axis[axis].constant++;
    }
    k->launch->fetched_count = 0;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "*(float4 *)&");
    wpk_c_storage_put_element(k, d->stage->output, &at);
    wpk_c_put(&k->text, " = make_float4(");
    for (int lane = 0; lane < WPK_CUDA_VECTOR; lane++) {
        wpk_c_put(&k->text, lane > 0 ? ", " : "");
        wpk_c_put_value(&k->text, &value[lane], 1);
    }
    wpk_c_put(&k->text, ")");
    wpk_c_end(&k->text);
    wpk_c_line(&k->text, "}");
    return true;
}

void wpk_cuda_print_lanes(struct wpk_c_kernel *k, const struct wpk_cuda_definition *d, int i,
                          const struct wpk_cuda_iteration *space)
{
    int axis = d->loop[i].axis;
    int64_t lanes = space->span[axis];
    struct wpk_cuda_iteration *inner = WPK_DEMAND(malloc(sizeof(*inner)));
    *inner = *space;
    inner->span[axis] = 1;
    bool four = lanes == WPK_CUDA_VECTOR && are_guards_whole(k, space, axis, lanes);
    if (four && d->update && d->own) {
        put_guards(k, d, space);
        /* Print the terms of four neighbours, which have no guards, with their loads before
         * them. */
        struct wpk_form at[WPK_AXES_MAX];
        memcpy(at, inner->at, sizeof(at));
        wpk_c_line(&k->text, "{");
        wpk_cuda_begin_fetch(k, d, axis, at);
        for (int lane = 0; lane < WPK_CUDA_VECTOR; lane++) {
            wpk_c_print_point(k, d->stage, d->update, at);
            at[axis].constant++;
        }
        k->launch->fetched_count = 0;
        wpk_c_line(&k->text, "}");
    } else if (!four || d->update ||
               (!print_move(k, d, axis, inner) && !print_together(k, d, axis, inner))) {
        for (int64_t lane = 0; lane < lanes; lane++) {
            wpk_cuda_print_point(k, d, inner);
            inner->at[axis].constant++;
        }
    }
    free(inner);
}
