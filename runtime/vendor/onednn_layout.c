/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the library's memory descriptors and our layouts.
 *
 * The library makes a blocked descriptor from a tag only. The table below has the tags whose
 * channels are in blocks, as the library's convolutions take them. */
#include "runtime/vendor/onednn_plan.h"

#include <string.h>

#define CHANNELS 1 /* dimension of src and dst */

static const struct {
    int rank;
    int64_t block;
    dnnl_format_tag_t tag;
} tags[] = {
    {3, 4, dnnl_aBc4b},     {3, 8, dnnl_aBc8b},    {3, 16, dnnl_aBc16b}, {4, 4, dnnl_aBcd4b},
    {4, 8, dnnl_aBcd8b},    {4, 16, dnnl_aBcd16b}, {5, 4, dnnl_aBcde4b}, {5, 8, dnnl_aBcde8b},
    {5, 16, dnnl_aBcde16b}, {4, 32, dnnl_aBcd32b},
};

static dnnl_data_type_t data_type(enum wpk_dtype dtype)
{
    static const dnnl_data_type_t types[WPK_DTYPE_COUNT] = {
        [WPK_F32] = dnnl_f32, [WPK_BF16] = dnnl_bf16, [WPK_F16] = dnnl_f16,
        [WPK_U8] = dnnl_u8,   [WPK_I8] = dnnl_s8,     [WPK_I32] = dnnl_s32,
    };
    return types[dtype]; /* dnnl_data_type_undef is 0 */
}

wpk_err wpk_onednn_describe(const struct wpk_onednn_library *library,
                            const struct wpk_recipe *recipe, int role, dnnl_memory_desc_t *out)
{
    const struct wpk_recipe_operand *view = &recipe->operand[role];
    dnnl_data_type_t type = data_type(recipe->tensor[view->tensor].type.dtype);

    if (type == dnnl_data_type_undef) {
        return WPK_EUNSUPPORTED;
    }
    if (view->block == 0) {
        return wpk_onednn_translate(library->memory_desc_create_with_strides(
            out, view->rank, view->extent, type, view->stride));
    }
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (tags[i].rank == view->rank && tags[i].block == view->block &&
            view->block_dim == CHANNELS) {
            return wpk_onednn_translate(library->memory_desc_create_with_tag(
                out, view->rank, view->extent, type, tags[i].tag));
        }
    }
    return WPK_EUNSUPPORTED;
}

/* ---- from the library's to ours */

/* Which of the tensor's axes a dimension of the view is, -1 where it is none; the tensor is
 * row-major in the view. */
static int find_axis(const struct wpk_tensor_type *type, int64_t extent, int64_t stride)
{
    int64_t step = 1;

    for (int axis = type->rank - 1; axis >= 0; axis--) {
        if (type->extent[axis] == extent && step == stride && extent > 1) {
            return axis;
        }
        step *= type->extent[axis];
    }
    return -1;
}

/* Read the layout of the library's descriptor; false if it has more than one inner block. */
static bool query(const struct wpk_onednn_library *library, const_dnnl_memory_desc_t desc,
                  struct wpk_recipe_operand *view)
{
    dnnl_dims_t *strides = NULL;
    dnnl_dims_t *blocks = NULL;
    dnnl_dims_t *dims = NULL;
    int count = 0;

    if (library->memory_desc_query(desc, dnnl_query_strides, &strides) != dnnl_success ||
        library->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &count) != dnnl_success ||
        count > 1) {
        return false;
    }
    memcpy(view->stride, *strides, sizeof(int64_t) * (size_t)view->rank);
    view->block = 0;
    if (count == 1) {
        if (library->memory_desc_query(desc, dnnl_query_inner_blks, &blocks) != dnnl_success ||
            library->memory_desc_query(desc, dnnl_query_inner_idxs, &dims) != dnnl_success) {
            return false;
        }
        view->block = (*blocks)[0];
        view->block_dim = (int)(*dims)[0];
    }
    return true;
}

/* The layout whose physical dimensions have the view's strides: axes sorted by them, largest first.
 *   shape   axis_of [view->rank] */
static bool find_layout(const struct wpk_recipe_operand *view, const int *axis_of,
                        struct wpk_tensor_type *type)
{
    struct wpk_layout layout = {.rank = type->rank};
    int64_t stride_of[WPK_RANK_MAX] = {0}; /* by axis; 0: has extent 1, and no place of its own */

    for (int d = 0; d < view->rank; d++) {
        if (axis_of[d] >= 0) {
            stride_of[axis_of[d]] = view->stride[d];
        }
    }
    /* Axes of extent 1 first, then the others by their strides, largest first. */
    for (int axis = 0; axis < layout.rank; axis++) {
        int64_t rank = stride_of[axis] == 0 ? INT64_MAX : stride_of[axis];
        int at = layout.dim_count++;
        while (at > 0 && stride_of[layout.axis[at - 1]] != 0 &&
               stride_of[layout.axis[at - 1]] < rank) {
            layout.axis[at] = layout.axis[at - 1];
            at--;
        }
        layout.axis[at] = axis;
    }
    if (view->block > 0) {
        if (axis_of[view->block_dim] < 0 || layout.dim_count == WPK_RANK_MAX) {
            return false;
        }
        layout.block = view->block;
        layout.block_axis = axis_of[view->block_dim];
        layout.axis[layout.dim_count++] = layout.block_axis;
    }
    type->layout = layout;
    int64_t dims[WPK_RANK_MAX];
    int64_t step = 1;
    wpk_tensor_type_dims(type, dims);
    for (int d = layout.dim_count - 1; d >= 0; d--) {
        bool inner = view->block > 0 && d == layout.dim_count - 1;
        int64_t want = stride_of[layout.axis[d]];
        if (!inner && dims[d] > 1 && want != step) {
            return false;
        }
        step *= dims[d];
    }
    return true;
}

static void settle(const struct wpk_vendor *self, int role, struct wpk_recipe *recipe)
{
    struct wpk_recipe_operand view = recipe->operand[role];
    struct wpk_tensor_type type = recipe->tensor[view.tensor].type;
    int axis_of[WPK_RECIPE_RANK_MAX];
    dnnl_memory_desc_t again = NULL;

    for (int d = 0; d < view.rank; d++) {
        axis_of[d] = find_axis(&type, view.extent[d], view.stride[d]);
        if (axis_of[d] < 0 && view.extent[d] > 1) {
            return;
        }
    }
    if (!query(&self->library, self->operand[role].inner, &view) ||
        !find_layout(&view, axis_of, &type)) {
        return;
    }
    view.chosen = false;
    struct wpk_recipe changed = *recipe;
    changed.operand[role] = view;
    changed.tensor[view.tensor].type = type;
    if (wpk_onednn_describe(&self->library, &changed, role, &again) == WPK_OK) {
        if (self->library.memory_desc_equal(again, self->operand[role].inner)) {
            *recipe = changed;
        }
        self->library.memory_desc_destroy(again);
    }
}

/* Two operands may be one tensor, which has one layout. */
static bool is_alone(const struct wpk_recipe *recipe, int role)
{
    int uses = 0;

    for (int other = 0; other < WPK_RECIPE_ROLE_COUNT; other++) {
        uses += recipe->operand[other].tensor == recipe->operand[role].tensor;
    }
    return uses == 1;
}

wpk_err wpk_vendor_settle(const struct wpk_vendor *self, struct wpk_recipe *recipe)
{
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        const struct wpk_recipe_operand *view = &recipe->operand[role];
        if (view->tensor >= 0 && view->chosen && !self->operand[role].constant &&
            is_alone(recipe, role)) {
            settle(self, role, recipe);
        }
    }
    return WPK_OK;
}
