/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/recipe.h"

#include <string.h>

static const char *const kind_names[] = {WPK_RECIPE_KIND_LIST(WPK_LIST_TEXT)};
static const char *const function_names[] = {WPK_RECIPE_FUNCTION_LIST(WPK_LIST_TEXT)};
static const char *const binary_names[] = {WPK_RECIPE_BINARY_LIST(WPK_LIST_TEXT)};
static const char *const role_names[] = {WPK_RECIPE_ROLE_LIST(WPK_LIST_TEXT)};
static const char *const use_names[] = {"inputs", "constants", "outputs"};

#define WINDOW_KINDS                                                                               \
    (WPK_IS(WPK_RECIPE_CONVOLUTION) | WPK_IS(WPK_RECIPE_POOL_MAX) |                                \
     WPK_IS(WPK_RECIPE_POOL_AVERAGE) | WPK_IS(WPK_RECIPE_POOL_AVERAGE_INSIDE))

bool wpk_recipe_is_f32(const struct wpk_recipe *recipe)
{
    for (int i = 0; i < recipe->tensor_count; i++) {
        if (recipe->tensor[i].type.dtype != WPK_F32) {
            return false;
        }
    }
    return true;
}

bool wpk_recipe_has_window(const struct wpk_recipe *recipe)
{
    return (WPK_IS(recipe->kind) & WINDOW_KINDS) != 0;
}

/* ---- checks */

/* The index behind the last element; the elements of the tensor's memory plus one when it lies
 * further out. Extents were bounded one by one. */
static int64_t find_end(const struct wpk_recipe_operand *operand, int64_t size)
{
    int64_t last = operand->block > 0 ? operand->block - 1 : 0;
    int64_t elements = 1;

    for (int d = 0; d < operand->rank; d++) {
        int64_t extent = operand->extent[d];
        if (extent > WPK_ELEMENTS_MAX / elements) {
            return size + 1;
        }
        elements *= extent;
        if (operand->block > 0 && d == operand->block_dim) {
            extent = (extent + operand->block - 1) / operand->block;
        }
        if (extent > 1 && operand->stride[d] > size / (extent - 1)) {
            return size + 1;
        }
        last += (extent - 1) * operand->stride[d];
    }
    return last < size ? last + 1 : size + 1;
}

/* An operand is a view of a tensor, and only dst of an output. */
static void check_operand(struct wpk_json_reader *r, const struct wpk_recipe *recipe, int role)
{
    const struct wpk_recipe_operand *operand = &recipe->operand[role];
    const char *name = role_names[role];
    if (operand->tensor < 0) {
        return;
    }
    if (operand->tensor >= recipe->tensor_count) {
        wpk_json_fail(r, name, WPK_EINVAL, "there is no tensor %d", operand->tensor);
        return;
    }
    const struct wpk_named_tensor *tensor = &recipe->tensor[operand->tensor];
    const struct wpk_tensor_type *type = &tensor->type;
    int64_t size = (int64_t)(wpk_tensor_type_bytes(type) / wpk_dtype_size(type->dtype));
    if (operand->block > 0 && operand->block_dim >= operand->rank) {
        wpk_json_fail(r, name, WPK_ERANGE, "dim %d of %d is blocked", operand->block_dim,
                      operand->rank);
    } else if ((recipe->use[operand->tensor] == WPK_RECIPE_OUTPUT) != (role == WPK_RECIPE_DST)) {
        wpk_json_fail(r, name, WPK_EINVAL, "'%s' cannot be the primitive's %s", tensor->name, name);
    } else if (find_end(operand, size) > size) {
        wpk_json_fail(r, name, WPK_ERANGE, "the operand leaves '%s'", tensor->name);
    }
}

/* True if a scale or a zero point is there once for each channel of dst, or once, without gaps. */
static bool is_vector(const struct wpk_recipe *recipe, int role)
{
    const struct wpk_recipe_operand *operand = &recipe->operand[role];
    const struct wpk_recipe_operand *dst = &recipe->operand[WPK_RECIPE_DST];
    int channel = recipe->kind == WPK_RECIPE_MATMUL ? dst->rank - 1 : 1;
    if (operand->tensor < 0 || operand->tensor >= recipe->tensor_count) {
        return false;
    }
    bool is_scale = role == WPK_RECIPE_SCALE;
    bool is_typed = !is_scale || recipe->tensor[operand->tensor].type.dtype == WPK_F32;
    return is_typed && operand->rank == 1 && operand->block == 0 && operand->stride[0] == 1 &&
           !operand->chosen && !wpk_recipe_is_f32(recipe) &&
           (operand->extent[0] == 1 || (is_scale && channel >= 0 && channel < dst->rank &&
                                        operand->extent[0] == dst->extent[channel]));
}

/* Check that the recipe has the operands that its primitive needs, and no others. */
static void check_operands(struct wpk_json_reader *r, void *object)
{
    const struct wpk_recipe *recipe = object;
    bool product = recipe->kind == WPK_RECIPE_CONVOLUTION || recipe->kind == WPK_RECIPE_MATMUL ||
                   recipe->kind == WPK_RECIPE_BINARY;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        bool needed = role == WPK_RECIPE_SRC || role == WPK_RECIPE_DST ||
                      (role == WPK_RECIPE_WEIGHTS && product);
        bool allowed = needed || recipe->kind == WPK_RECIPE_LAYERNORM ||
                       (role == WPK_RECIPE_BIAS && product && recipe->kind != WPK_RECIPE_BINARY) ||
                       (role > WPK_RECIPE_DST && product && recipe->kind != WPK_RECIPE_BINARY &&
                        is_vector(recipe, role));
        check_operand(r, recipe, role);
        if (needed && recipe->operand[role].tensor < 0) {
            wpk_json_fail(r, role_names[role], WPK_EINVAL, "the primitive needs it");
        } else if (!allowed && recipe->operand[role].tensor >= 0) {
            wpk_json_fail(r, role_names[role], WPK_EINVAL, "the primitive has none");
        }
    }
    if (recipe->kind == WPK_RECIPE_ELTWISE && recipe->post_count == 0) {
        wpk_json_fail(r, "posts", WPK_EINVAL, "an eltwise primitive needs its function");
    }
}

static void check_axis(struct wpk_json_reader *r, void *object)
{
    const struct wpk_recipe *recipe = object;
    if (recipe->kind == WPK_RECIPE_SOFTMAX &&
        recipe->axis >= recipe->operand[WPK_RECIPE_SRC].rank) {
        wpk_json_fail(r, "axis", WPK_ERANGE, "src has no axis %d", recipe->axis);
    }
}

static void clear_operands(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_recipe *recipe = object;
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        recipe->operand[role].tensor = -1;
    }
}

static void set_spatial(struct wpk_json_reader *r, void *object)
{
    struct wpk_recipe *recipe = object;
    recipe->spatial = recipe->operand[WPK_RECIPE_SRC].rank - 2;
    if (recipe->spatial < 1) {
        wpk_json_fail(r, "src", WPK_EINVAL, "a window needs a spatial dimension");
    }
}

/* ---- tables */

static void put_tensors(struct wpk_json_writer *w, const char *key, const void *object)
{
    const struct wpk_recipe *recipe = object;
    int use = wpk_list_find(use_names, 3, key);
    wpk_json_begin_array(w, key);
    for (int i = 0; i < recipe->tensor_count; i++) {
        if ((int)recipe->use[i] == use) {
            wpk_fields_put(w, NULL, wpk_named_tensor_fields, &recipe->tensor[i]);
        }
    }
    wpk_json_end(w);
}

static void get_tensors(struct wpk_json_reader *r, const char *key, void *object)
{
    struct wpk_recipe *recipe = object;
    const struct wpk_fields_in in = {.r = r};
    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        struct wpk_named_tensor tensor = {0};
        wpk_fields_get_here(&in, wpk_named_tensor_fields, &tensor);
        if (recipe->tensor_count == WPK_RECIPE_TENSORS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d tensors", WPK_RECIPE_TENSORS_MAX);
        } else if (WPK_FIND(struct wpk_named_tensor, name, recipe->tensor, recipe->tensor_count,
                            tensor.name) >= 0) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' stands here twice", tensor.name);
        } else {
            recipe->use[recipe->tensor_count] =
                (enum wpk_recipe_use)wpk_list_find(use_names, 3, key);
            recipe->tensor[recipe->tensor_count++] = tensor;
        }
    }
    wpk_json_leave(r);
}

#define TENSORS(key)                                                                               \
    .name = (key), .kind = WPK_FIELD_KIND_CUSTOM, .put = put_tensors, .get = get_tensors

static const struct wpk_field block_fields[] = {
    {WPK_FIELD_INT("dim", recipe_operand, block_dim, 0, WPK_RECIPE_RANK_MAX - 1)},
    {WPK_FIELD_INT("size", recipe_operand, block, 2, 64)},
    {WPK_FIELD_END},
};

static const struct wpk_field operand_fields[] = {
    {WPK_FIELD_ARRAY("extents", recipe_operand, extent, rank,
                     WPK_ITEM(INT, int64_t, 1, WPK_ELEMENTS_MAX), .min = 1)},
    {WPK_FIELD_ARRAY("strides", recipe_operand, stride, rank,
                     WPK_ITEM(INT, int64_t, 0, WPK_ELEMENTS_MAX), .is_counted = true)},
    {WPK_FIELD_INT("tensor", recipe_operand, tensor, 0, WPK_RECIPE_TENSORS_MAX - 1)},
    {WPK_FIELD_PART("block", block_fields, WPK_OPTIONAL)},
    {WPK_FIELD(BOOL, "chosen", recipe_operand, chosen)},
    {WPK_FIELD_END},
};

#define OPERAND(name, role)                                                                        \
    WPK_FIELD_OBJECT(name, recipe, operand[WPK_RECIPE_##role], operand_fields, WPK_OPTIONAL)

#define WINDOW(name, member, least)                                                                \
    WPK_FIELD_ARRAY(name, recipe, member, spatial,                                                 \
                    WPK_ITEM(INT, int64_t, least, WPK_RECIPE_WINDOW_MAX), .is_counted = true)

static const struct wpk_field window_fields[] = {
    {WPK_FIELD_CHECK(set_spatial)},
    {WINDOW("kernel", kernel, 1)},
    {WINDOW("strides", stride, 1)},
    {WINDOW("dilations", dilation, 1)},
    {WINDOW("before", pad_before, 0)},
    {WINDOW("after", pad_after, 0)},
    {WPK_FIELD_END},
};

static const struct wpk_field post_fields[] = {
    {WPK_FIELD_CHOICE("function", recipe_post, function, function_names)},
    {WPK_FIELD_REAL("alpha", recipe_post, alpha, -1e300, 1e300)},
    {WPK_FIELD_REAL("beta", recipe_post, beta, -1e300, 1e300)},
    {WPK_FIELD_END},
};

const struct wpk_field wpk_recipe_fields[] = {
    {WPK_FIELD_VERSION(WPK_RECIPE_VERSION, "tune it again")},
    {WPK_FIELD_CHOICE("primitive", recipe, kind, kind_names)},
    {WPK_FIELD_WHEN(recipe, kind, WPK_IS(WPK_RECIPE_SOFTMAX),
                    WPK_ROWS({WPK_FIELD_INT("axis", recipe, axis, 0, WPK_RECIPE_RANK_MAX - 1)}))},
    {WPK_FIELD_WHEN(recipe, kind, WPK_IS(WPK_RECIPE_LAYERNORM),
                    WPK_ROWS({WPK_FIELD_REAL("epsilon", recipe, epsilon, 0, 1)}))},
    {WPK_FIELD_WHEN(recipe, kind, WPK_IS(WPK_RECIPE_BINARY),
                    WPK_ROWS({WPK_FIELD_CHOICE("binary", recipe, binary, binary_names)}))},
    {TENSORS("inputs")},
    {TENSORS("constants")},
    {TENSORS("outputs")},
    {WPK_FIELD_CHECK(clear_operands)},
    {OPERAND("src", SRC)},
    {OPERAND("weights", WEIGHTS)},
    {OPERAND("bias", BIAS)},
    {OPERAND("dst", DST)},
    {OPERAND("scale", SCALE)},
    {OPERAND("zero", ZERO)},
    {WPK_FIELD_WHEN(recipe, kind, WINDOW_KINDS,
                    WPK_ROWS({WPK_FIELD_PART("window", window_fields)}))},
    {WPK_FIELD_WHEN(recipe, kind, WPK_IS(WPK_RECIPE_MATMUL) | WPK_IS(WPK_RECIPE_CONVOLUTION),
                    WPK_ROWS({WPK_FIELD_INT("algorithm", recipe, algorithm, 1,
                                            WPK_RECIPE_ALGORITHM_MAX, WPK_OPTIONAL)}))},
    {WPK_FIELD_ARRAY("posts", recipe, post, post_count, post_fields)},
    {WPK_FIELD_CHECK(check_operands)},
    {WPK_FIELD_CHECK(check_axis)},
    {WPK_FIELD_END},
};
