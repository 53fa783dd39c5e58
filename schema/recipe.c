/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/recipe.h"

#include <string.h>

static const char *const kind_names[] = {WPK_RECIPE_KIND_LIST(WPK_LIST_TEXT)};
static const char *const function_names[] = {WPK_RECIPE_FUNCTION_LIST(WPK_LIST_TEXT)};
static const char *const binary_names[] = {WPK_RECIPE_BINARY_LIST(WPK_LIST_TEXT)};
static const char *const role_names[] = {WPK_RECIPE_ROLE_LIST(WPK_LIST_TEXT)};
static const char *const use_names[] = {"inputs", "constants", "outputs"};

/* The window's arrays with their names, in the order of the struct. */
struct window_field {
    const char *name;
    size_t offset;
    int64_t min;
};
static const struct window_field window_fields[] = {
    {"kernel", offsetof(struct wpk_recipe, kernel), 1},
    {"strides", offsetof(struct wpk_recipe, stride), 1},
    {"dilations", offsetof(struct wpk_recipe, dilation), 1},
    {"before", offsetof(struct wpk_recipe, pad_before), 0},
    {"after", offsetof(struct wpk_recipe, pad_after), 0},
};
#define WINDOW_FIELDS (sizeof(window_fields) / sizeof(window_fields[0]))

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
    return recipe->kind == WPK_RECIPE_CONVOLUTION || recipe->kind == WPK_RECIPE_POOL_MAX ||
           recipe->kind == WPK_RECIPE_POOL_AVERAGE ||
           recipe->kind == WPK_RECIPE_POOL_AVERAGE_INSIDE;
}

/* ---- out */

static wpk_err put_tensors(struct wpk_json_writer *w, const struct wpk_recipe *recipe, int use)
{
    struct wpk_named_tensor list[WPK_RECIPE_TENSORS_MAX];
    int count = 0;

    for (int i = 0; i < recipe->tensor_count; i++) {
        if ((int)recipe->use[i] == use) {
            list[count++] = recipe->tensor[i];
        }
    }
    return wpk_named_tensors_put(w, use_names[use], list, count);
}

static void put_operand(struct wpk_json_writer *w, const struct wpk_recipe *recipe, int role)
{
    const struct wpk_recipe_operand *operand = &recipe->operand[role];

    if (operand->tensor < 0) {
        return;
    }
    wpk_json_begin_object(w, role_names[role]);
    wpk_json_put_text(w, "tensor", recipe->tensor[operand->tensor].name);
    wpk_json_put_ints(w, "extents", operand->extent, (size_t)operand->rank);
    wpk_json_put_ints(w, "strides", operand->stride, (size_t)operand->rank);
    if (operand->block > 0) {
        wpk_json_begin_object(w, "block");
        wpk_json_put_int(w, "dim", operand->block_dim);
        wpk_json_put_int(w, "size", operand->block);
        wpk_json_end(w);
    }
    wpk_json_put_bool(w, "chosen", operand->chosen);
    wpk_json_end(w);
}

static void put_window(struct wpk_json_writer *w, const struct wpk_recipe *recipe)
{
    wpk_json_begin_object(w, "window");
    for (size_t i = 0; i < WINDOW_FIELDS; i++) {
        const int64_t *values =
            (const int64_t *)(const void *)((const char *)recipe + window_fields[i].offset);
        wpk_json_put_ints(w, window_fields[i].name, values, (size_t)recipe->spatial);
    }
    wpk_json_end(w);
}

static wpk_err put_members(struct wpk_json_writer *w, const struct wpk_recipe *recipe)
{
    wpk_err err = WPK_OK;

    wpk_json_put_int(w, "version", WPK_RECIPE_VERSION);
    wpk_json_put_text(w, "primitive", kind_names[recipe->kind]);
    for (int use = WPK_RECIPE_INPUT; use <= WPK_RECIPE_OUTPUT && err == WPK_OK; use++) {
        err = put_tensors(w, recipe, use);
    }
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        put_operand(w, recipe, role);
    }
    if (wpk_recipe_has_window(recipe)) {
        put_window(w, recipe);
    }
    if (recipe->kind == WPK_RECIPE_SOFTMAX) {
        wpk_json_put_int(w, "axis", recipe->axis);
    }
    if (recipe->kind == WPK_RECIPE_LAYERNORM) {
        wpk_json_put_real(w, "epsilon", recipe->epsilon);
    }
    if (recipe->kind == WPK_RECIPE_BINARY) {
        wpk_json_put_text(w, "binary", binary_names[recipe->binary]);
    }
    if (recipe->algorithm > 0) {
        wpk_json_put_int(w, "algorithm", recipe->algorithm);
    }
    wpk_json_begin_array(w, "posts");
    for (int i = 0; i < recipe->post_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "function", function_names[recipe->post[i].function]);
        wpk_json_put_real(w, "alpha", recipe->post[i].alpha);
        wpk_json_put_real(w, "beta", recipe->post[i].beta);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return err;
}

wpk_err wpk_recipe_put(struct wpk_json_writer *w, const char *key, const struct wpk_recipe *recipe)
{
    wpk_json_begin_object(w, key);
    wpk_err err = put_members(w, recipe);
    wpk_json_end(w);
    return err;
}

wpk_err wpk_recipe_encode(const struct wpk_recipe *recipe, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_err err = put_members(w, recipe);
    if (err == WPK_OK) {
        err = wpk_json_print(w, false, out);
    }
    wpk_json_writer_free(w);
    return err;
}

/* ---- in */

static int find_tensor(const struct wpk_recipe *recipe, const char *name)
{
    for (int i = 0; i < recipe->tensor_count; i++) {
        if (strcmp(recipe->tensor[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void get_tensors(struct wpk_json_reader *r, int use, struct wpk_recipe *recipe)
{
    wpk_json_enter_array(r, use_names[use]);
    while (wpk_json_next(r)) {
        struct wpk_named_tensor tensor = {0};
        wpk_named_tensor_get(r, &tensor);
        if (recipe->tensor_count == WPK_RECIPE_TENSORS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d tensors", WPK_RECIPE_TENSORS_MAX);
        } else if (find_tensor(recipe, tensor.name) >= 0) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' stands here twice", tensor.name);
        } else {
            recipe->use[recipe->tensor_count] = (enum wpk_recipe_use)use;
            recipe->tensor[recipe->tensor_count++] = tensor;
        }
    }
    wpk_json_leave(r);
}

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

static void get_block(struct wpk_json_reader *r, struct wpk_recipe_operand *operand)
{
    if (!wpk_json_has(r, "block")) {
        return;
    }
    wpk_json_enter(r, "block");
    WPK_JSON_ALLOW(r, "dim", "size");
    operand->block_dim =
        (int)wpk_json_get_int(r, "dim", 0, operand->rank > 0 ? operand->rank - 1 : 0);
    operand->block = wpk_json_get_int(r, "size", 2, 64);
    wpk_json_leave(r);
}

static void get_operand(struct wpk_json_reader *r, int role, struct wpk_recipe *recipe)
{
    struct wpk_recipe_operand *operand = &recipe->operand[role];
    char name[WPK_NAME_MAX];

    operand->tensor = -1;
    if (!wpk_json_has(r, role_names[role])) {
        return;
    }
    wpk_json_enter(r, role_names[role]);
    WPK_JSON_ALLOW(r, "tensor", "extents", "strides", "block", "chosen");
    wpk_json_get_copy(r, "tensor", name, sizeof(name));
    operand->rank = (int)wpk_json_get_ints(r, "extents", 1, WPK_ELEMENTS_MAX, operand->extent,
                                           WPK_RECIPE_RANK_MAX);
    size_t strides =
        wpk_json_get_ints(r, "strides", 0, WPK_ELEMENTS_MAX, operand->stride, WPK_RECIPE_RANK_MAX);
    if (operand->rank == 0 || strides != (size_t)operand->rank) {
        wpk_json_fail(r, "strides", WPK_EINVAL, "an operand has extents and as many strides");
    }
    get_block(r, operand);
    operand->chosen = wpk_json_get_bool(r, "chosen");
    int tensor = find_tensor(recipe, name);
    if (wpk_json_status(r) == WPK_OK && tensor < 0) {
        wpk_json_fail(r, "tensor", WPK_EINVAL, "no tensor is called '%s'", name);
    }
    if (wpk_json_status(r) == WPK_OK) {
        const struct wpk_tensor_type *type = &recipe->tensor[tensor].type;
        int64_t size = (int64_t)(wpk_tensor_type_bytes(type) / wpk_dtype_size(type->dtype));
        operand->tensor = tensor;
        if ((recipe->use[tensor] == WPK_RECIPE_OUTPUT) != (role == WPK_RECIPE_DST)) {
            wpk_json_fail(r, "tensor", WPK_EINVAL, "'%s' cannot be the primitive's %s", name,
                          role_names[role]);
        } else if (find_end(operand, size) > size) {
            wpk_json_fail(r, "strides", WPK_ERANGE, "the operand leaves '%s'", name);
        }
    }
    wpk_json_leave(r);
}

static void get_window(struct wpk_json_reader *r, struct wpk_recipe *recipe)
{
    recipe->spatial = recipe->operand[WPK_RECIPE_SRC].rank - 2;
    wpk_json_enter(r, "window");
    WPK_JSON_ALLOW(r, "kernel", "strides", "dilations", "before", "after");
    for (size_t i = 0; i < WINDOW_FIELDS; i++) {
        const struct window_field *field = &window_fields[i];
        int64_t *values = (int64_t *)(void *)((char *)recipe + field->offset);
        size_t count = wpk_json_get_ints(r, field->name, field->min, WPK_RECIPE_WINDOW_MAX, values,
                                         WPK_RECIPE_RANK_MAX);
        if (recipe->spatial < 1 || count != (size_t)recipe->spatial) {
            wpk_json_fail(r, field->name, WPK_EINVAL, "one value for each spatial dimension");
        }
    }
    wpk_json_leave(r);
}

static void get_posts(struct wpk_json_reader *r, struct wpk_recipe *recipe)
{
    wpk_json_enter_array(r, "posts");
    while (wpk_json_next(r)) {
        struct wpk_recipe_post post;
        WPK_JSON_ALLOW(r, "function", "alpha", "beta");
        post.function = (enum wpk_recipe_function)wpk_json_get_choice(r, "function", function_names,
                                                                      WPK_RECIPE_FUNCTION_COUNT);
        post.alpha = wpk_json_get_real(r, "alpha", -1e300, 1e300);
        post.beta = wpk_json_get_real(r, "beta", -1e300, 1e300);
        if (recipe->post_count == WPK_RECIPE_POSTS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d functions", WPK_RECIPE_POSTS_MAX);
        } else {
            recipe->post[recipe->post_count++] = post;
        }
    }
    wpk_json_leave(r);
}

/* Check that the recipe has the operands that its primitive needs, and no others. */
static void check_operands(struct wpk_json_reader *r, const struct wpk_recipe *recipe)
{
    bool product = recipe->kind == WPK_RECIPE_CONVOLUTION || recipe->kind == WPK_RECIPE_MATMUL ||
                   recipe->kind == WPK_RECIPE_BINARY;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        bool needed = role == WPK_RECIPE_SRC || role == WPK_RECIPE_DST ||
                      (role == WPK_RECIPE_WEIGHTS && product);
        bool allowed = needed || recipe->kind == WPK_RECIPE_LAYERNORM ||
                       (role == WPK_RECIPE_BIAS && product && recipe->kind != WPK_RECIPE_BINARY);
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

static void check_members(struct wpk_json_reader *r, const struct wpk_recipe *recipe)
{
    const char *names[16] = {"version", "primitive", "inputs", "constants", "outputs",
                             "src",     "weights",   "bias",   "dst",       "posts"};
    int count = 10;

    if (wpk_recipe_has_window(recipe)) {
        names[count++] = "window";
    }
    if (recipe->kind == WPK_RECIPE_SOFTMAX) {
        names[count++] = "axis";
    }
    if (recipe->kind == WPK_RECIPE_MATMUL || recipe->kind == WPK_RECIPE_CONVOLUTION) {
        names[count++] = "algorithm";
    }
    if (recipe->kind == WPK_RECIPE_LAYERNORM) {
        names[count++] = "epsilon";
    }
    if (recipe->kind == WPK_RECIPE_BINARY) {
        names[count++] = "binary";
    }
    wpk_json_allow(r, names);
}

static void get_members(struct wpk_json_reader *r, struct wpk_recipe *recipe)
{
    recipe->kind = (enum wpk_recipe_kind)wpk_json_get_choice(r, "primitive", kind_names,
                                                             WPK_RECIPE_KIND_COUNT);
    check_members(r, recipe);
    for (int use = WPK_RECIPE_INPUT; use <= WPK_RECIPE_OUTPUT; use++) {
        get_tensors(r, use, recipe);
    }
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        get_operand(r, role, recipe);
    }
    if (wpk_recipe_has_window(recipe)) {
        get_window(r, recipe);
    }
    if (recipe->kind == WPK_RECIPE_SOFTMAX) {
        int rank = recipe->operand[WPK_RECIPE_SRC].rank;
        recipe->axis = (int)wpk_json_get_int(r, "axis", 0, rank > 0 ? rank - 1 : 0);
    }
    if (wpk_json_has(r, "algorithm")) {
        recipe->algorithm = (int)wpk_json_get_int(r, "algorithm", 1, WPK_RECIPE_ALGORITHM_MAX);
    }
    if (recipe->kind == WPK_RECIPE_LAYERNORM) {
        recipe->epsilon = wpk_json_get_real(r, "epsilon", 0, 1);
    }
    if (recipe->kind == WPK_RECIPE_BINARY) {
        recipe->binary = (enum wpk_recipe_binary)wpk_json_get_choice(r, "binary", binary_names,
                                                                     WPK_RECIPE_BINARY_COUNT);
    }
    get_posts(r, recipe);
    check_operands(r, recipe);
}

static void get_versioned(struct wpk_json_reader *r, struct wpk_recipe *out)
{
    struct wpk_recipe recipe = {0};

    int64_t version = wpk_json_get_int(r, "version", 1, WPK_JSON_INT_MAX);
    if (wpk_json_status(r) == WPK_OK && version != WPK_RECIPE_VERSION) {
        wpk_json_fail(r, "version", WPK_EMISMATCH, "the recipe has version %lld, not %d",
                      (long long)version, WPK_RECIPE_VERSION);
    }
    if (wpk_json_status(r) == WPK_OK) {
        get_members(r, &recipe);
    }
    if (wpk_json_status(r) == WPK_OK) {
        *out = recipe;
    }
}

void wpk_recipe_get(struct wpk_json_reader *r, const char *key, struct wpk_recipe *out)
{
    wpk_json_enter(r, key);
    get_versioned(r, out);
    wpk_json_leave(r);
}

wpk_err wpk_recipe_decode(const char *text, size_t size, struct wpk_recipe *out,
                          struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_json_open(text, size, WPK_RECIPE_SIZE_MAX, &r, diag);
    if (err == WPK_OK) {
        get_versioned(r, out);
        err = wpk_json_status(r);
        wpk_json_close(r);
    }
    return err;
}
