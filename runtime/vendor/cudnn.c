/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN, with a bias for each channel and relu.
 *
 *      fused      { y <- relu(x * w + b) }                  one plan, where an engine has it
 *      apart      { t <- x * w }  { y <- relu(t + b) }      two plans, t in the workspace
 *
 * All fused plans come first in the list of algorithms, then a convolution's with one plan for the
 * rest. A plan is built if it may be used: building may compile code. */
#include "runtime/vendor/gpu_vendor.h"

#include "common/clock.h"
#include "runtime/vendor/cudnn_graph.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PER_GROUP 1000 /* statuses: 3000 to 3999 say what is not supported */
#define PER_MAJOR 10000
#define PER_MINOR 100
#define SPATIAL_MIN 2 /* dimensions that the library wants */
#define SPATIAL_MAX 3
#define BUILDING_NS_MAX (10 * WPK_NS_PER_S) /* of all plans */
#define ALIGNMENT ((size_t)256)             /* of what follows in the workspace */

/* Tensors of graphs; the first are the recipe's roles. */
enum { APART = WPK_RECIPE_DST + 1, SUM, BIASED, TENSORS };

struct convolution {
    struct wpk_gpu_primitive base; /* first */
    struct wpk_cudnn_pool pool;
    struct wpk_cudnn_tensor tensor[TENSORS];
    struct wpk_cudnn_window window;
    bool has_bias, has_relu;
    struct wpk_cudnn_plan fused[WPK_CUDNN_PLANS_MAX], alone[WPK_CUDNN_PLANS_MAX];
    int fused_count, alone_count;
    struct wpk_cudnn_plan rest; /* of plans in `alone` */
    size_t apart_bytes;         /* of the tensor between two plans */
    pthread_mutex_t lock;       /* guards the handle's stream */
};

/* Set once, before the first primitive is made. */
static struct wpk_cudnn_calls library;

static wpk_err translate(int status, const char *doing, struct wpk_diag *diag)
{
    switch (status) {
    case WPK_CUDNN_STATUS_SUCCESS:
        return WPK_OK;
    case WPK_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case WPK_CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
        return wpk_fail(diag, WPK_ENOMEM, "%s: cuDNN is out of memory", doing);
    default:
        wpk_diag_set(diag, "%s: cuDNN status %d", doing, status);
        return status / PER_GROUP == WPK_CUDNN_STATUS_NOT_SUPPORTED / PER_GROUP ? WPK_EUNSUPPORTED
                                                                                : WPK_ESYSTEM;
    }
}

/* ---- from a recipe to tensors */

/* The operand with two spatial dimensions at least, and filters of all groups in one dimension. */
static bool view(const struct wpk_recipe_operand *operand, int spatial, int64_t uid,
                 struct wpk_cudnn_tensor *out)
{
    int skipped = operand->rank - 2 - spatial; /* 1: there are groups */
    *out = (struct wpk_cudnn_tensor){.uid = uid};
    for (int d = skipped; d < operand->rank; d++) {
        if (d == operand->rank - spatial && spatial < SPATIAL_MIN) {
            out->extent[out->rank] = 1;
            out->stride[out->rank++] = operand->extent[d] * operand->stride[d];
        }
        out->extent[out->rank] = operand->extent[d];
        out->stride[out->rank++] = operand->stride[d];
    }
    if (skipped == 1) {
        out->extent[0] *= operand->extent[0];
    }
    return operand->block == 0 && !operand->chosen &&
           (skipped == 0 ||
            (skipped == 1 && operand->stride[0] == operand->extent[1] * operand->stride[1]));
}

static void read_window(const struct wpk_recipe *recipe, struct wpk_cudnn_window *out)
{
    int added = recipe->spatial < SPATIAL_MIN ? SPATIAL_MIN - recipe->spatial : 0;
    out->spatial = recipe->spatial + added;
    for (int i = 0; i < out->spatial; i++) {
        int d = i - added;
        out->before[i] = d < 0 ? 0 : recipe->pad_before[d];
        out->after[i] = d < 0 ? 0 : recipe->pad_after[d];
        out->stride[i] = d < 0 ? 1 : recipe->stride[d];
        out->dilation[i] = d < 0 ? 1 : recipe->dilation[d];
    }
}

/* One value a channel, as a tensor of the result's rank. */
static bool view_bias(const struct wpk_recipe_operand *bias, const struct wpk_cudnn_tensor *result,
                      struct wpk_cudnn_tensor *out)
{
    *out = (struct wpk_cudnn_tensor){.uid = WPK_RECIPE_BIAS + 1, .rank = result->rank};
    for (int d = 0; d < result->rank; d++) {
        out->extent[d] = d == 1 ? result->extent[1] : 1;
        out->stride[d] = d == 0 ? result->extent[1] : 1;
    }
    return bias->rank == 1 && bias->extent[0] == result->extent[1] && bias->stride[0] == 1;
}

static bool read_recipe(struct convolution *self)
{
    const struct wpk_recipe *recipe = &self->base.recipe;
    const struct wpk_recipe_operand *bias = &recipe->operand[WPK_RECIPE_BIAS];
    struct wpk_cudnn_tensor *tensor = self->tensor, *result = &tensor[WPK_RECIPE_DST];
    self->has_relu = recipe->post_count == 1 && recipe->post[0].function == WPK_RECIPE_RELU;
    self->has_bias = bias->tensor >= 0;
    if (recipe->kind != WPK_RECIPE_CONVOLUTION || !wpk_recipe_is_f32(recipe) ||
        recipe->post_count != (self->has_relu ? 1 : 0) || recipe->spatial < 1 ||
        recipe->spatial > SPATIAL_MAX) {
        return false;
    }
    for (int role = 0; role < APART; role++) {
        if (role != WPK_RECIPE_BIAS &&
            !view(&recipe->operand[role], recipe->spatial, role + 1, &tensor[role])) {
            return false;
        }
    }
    read_window(recipe, &self->window);
    size_t last = 0;
    for (int d = 0; d < result->rank; d++) {
        last += (size_t)(result->extent[d] - 1) * (size_t)result->stride[d];
    }
    self->apart_bytes = ((last + 1) * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (int i = APART; i < TENSORS; i++) {
        tensor[i] = *result;
        tensor[i].uid = i + 1;
        tensor[i].is_virtual = i != APART;
    }
    return !self->has_bias || view_bias(bias, result, &tensor[WPK_RECIPE_BIAS]);
}

/* ---- plans */

/* The operations behind the convolution, whose result is `x`.
 *   shape   operation [*count ...]: appended */
static int add_rest(struct convolution *self, void *const *made, void *x, void **operation,
                    int *count)
{
    void *biased = self->has_relu ? made[BIASED] : made[WPK_RECIPE_DST];
    int status = WPK_CUDNN_STATUS_SUCCESS;
    if (self->has_bias) {
        status = wpk_cudnn_pointwise_make(&self->pool, x, made[WPK_RECIPE_BIAS], biased,
                                          &operation[(*count)++]);
        x = biased;
    }
    if (self->has_relu && status == WPK_CUDNN_STATUS_SUCCESS) {
        status = wpk_cudnn_pointwise_make(&self->pool, x, NULL, made[WPK_RECIPE_DST],
                                          &operation[(*count)++]);
    }
    return status;
}

/* Find the plans of a convolution to tensor `to`, with the rest in one graph if that is no real
 * tensor. */
static int find_from(struct convolution *self, void *const *made, int to,
                     struct wpk_cudnn_plan *plans, int *plan_count)
{
    void *operation[WPK_CUDNN_OPERATIONS_MAX] = {NULL};
    int count = 1;
    int status = wpk_cudnn_convolution_make(&self->pool, &self->window, made[WPK_RECIPE_SRC],
                                            made[WPK_RECIPE_WEIGHTS], made[to], &operation[0]);
    if (status == WPK_CUDNN_STATUS_SUCCESS && to == SUM) {
        status = add_rest(self, made, made[SUM], operation, &count);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        wpk_cudnn_find_plans(&self->pool, operation, count, true, plans, plan_count);
    }
    return status;
}

static int find_apart(struct convolution *self, void *const *made)
{
    void *operation[WPK_CUDNN_OPERATIONS_MAX] = {NULL};
    struct wpk_cudnn_plan rest[WPK_CUDNN_PLANS_MAX];
    int count = 0, rest_count = 0;
    int status = add_rest(self, made, made[APART], operation, &count);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        wpk_cudnn_find_plans(&self->pool, operation, count, false, rest, &rest_count);
    }
    for (int i = 0; i < rest_count && self->rest.plan == NULL; i++) {
        if (wpk_cudnn_build(&self->pool, &rest[i], WPK_GPU_VENDOR_WORKSPACE_MAX)) {
            self->rest = rest[i];
        }
    }
    return self->rest.plan != NULL ? find_from(self, made, APART, self->alone, &self->alone_count)
                                   : status;
}

static int find_plans(struct convolution *self)
{
    void *made[TENSORS] = {NULL};
    int status = WPK_CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < TENSORS && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        if (i != WPK_RECIPE_BIAS || self->has_bias) {
            status = wpk_cudnn_tensor_make(&self->pool, &self->tensor[i], &made[i]);
        }
    }
    if (status != WPK_CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (!self->has_bias && !self->has_relu) {
        return find_from(self, made, WPK_RECIPE_DST, self->fused, &self->fused_count);
    }
    status = find_from(self, made, SUM, self->fused, &self->fused_count);
    int apart = find_apart(self, made);
    return self->fused_count > 0 ? status : apart;
}

/* The plan of a convolution, fused or not, that an algorithm begins with. */
static struct wpk_cudnn_plan *plan_of(struct convolution *self, int algorithm)
{
    return algorithm < self->fused_count ? &self->fused[algorithm]
                                         : &self->alone[algorithm - self->fused_count];
}

static size_t find_workspace(const struct wpk_gpu_primitive *base, int algorithm)
{
    struct convolution *self = (struct convolution *)(void *)(uintptr_t)base; // NOLINT: only read
    int64_t bytes = plan_of(self, algorithm)->workspace_bytes;
    if (algorithm >= self->fused_count) {
        int64_t rest = self->rest.workspace_bytes;
        bytes = (int64_t)self->apart_bytes + (rest > bytes ? rest : bytes);
    }
    return bytes > 0 ? (size_t)bytes : 1;
}

/* Build the recipe's plan, or all, for as long as there is time. */
static bool build_plans(struct convolution *self, bool any)
{
    uint64_t end = wpk_clock_ns() + BUILDING_NS_MAX;
    bool built = false;
    for (int i = 0; i < self->base.algorithm_count; i++) {
        if (any ? wpk_clock_ns() < end : i == self->base.recipe.algorithm) {
            built |= wpk_cudnn_build(&self->pool, plan_of(self, i), WPK_GPU_VENDOR_WORKSPACE_MAX);
        }
    }
    return built;
}

static wpk_err make(struct convolution *self, bool any, struct wpk_diag *diag)
{
    int status = library.cudnnCreate(&self->pool.handle);
    status = status == WPK_CUDNN_STATUS_SUCCESS ? find_plans(self) : status;
    self->base.algorithm_count = self->fused_count + self->alone_count;
    wpk_err err = translate(status, "asking cuDNN for a convolution", diag);
    if (err == WPK_OK &&
        (self->base.recipe.algorithm >= self->base.algorithm_count || !build_plans(self, any))) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "of %d engines that cuDNN has for this convolution in f32, number %d has "
                        "no plan",
                        self->base.algorithm_count, self->base.recipe.algorithm);
    }
    return err;
}

static void free_convolution(struct wpk_gpu_primitive *base)
{
    struct convolution *self = (struct convolution *)(void *)base;
    wpk_cudnn_pool_fini(&self->pool);
    if (self->pool.handle != NULL) {
        (void)library.cudnnDestroy(self->pool.handle);
    }
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* ---- launches */

/* Execute a plan on these tensors.   shape   list [count]; address [TENSORS] */
static int execute(const struct convolution *self, const struct wpk_cudnn_plan *plan,
                   const int *list, int count, void *const *address, void *workspace)
{
    int64_t uid[TENSORS];
    void *pointer[TENSORS];
    int given = 0;
    for (int i = 0; i < count; i++) {
        if (list[i] != WPK_RECIPE_BIAS || self->has_bias) {
            uid[given] = self->tensor[list[i]].uid;
            pointer[given++] = address[list[i]];
        }
    }
    return wpk_cudnn_execute(&self->pool, plan, uid, pointer, given, workspace);
}

static int compute(struct convolution *self, const uint64_t *pointers)
{
    static const int fused[] = {WPK_RECIPE_SRC, WPK_RECIPE_WEIGHTS, WPK_RECIPE_BIAS,
                                WPK_RECIPE_DST},
                     alone[] = {WPK_RECIPE_SRC, WPK_RECIPE_WEIGHTS, APART},
                     rest[] = {APART, WPK_RECIPE_BIAS, WPK_RECIPE_DST};
    const struct wpk_recipe *recipe = &self->base.recipe;
    void *address[TENSORS] = {NULL};
    for (int role = 0; role < APART; role++) {
        int tensor = recipe->operand[role].tensor;
        uint64_t at = tensor >= 0 ? pointers[tensor] : 0;
        address[role] = (void *)(uintptr_t)at; // NOLINT: an address of a device
    }
    char *workspace = (char *)(uintptr_t)pointers[recipe->tensor_count]; // NOLINT
    const struct wpk_cudnn_plan *plan = plan_of(self, recipe->algorithm);
    if (plan->plan == NULL) {
        return WPK_CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (recipe->algorithm < self->fused_count) {
        return execute(self, plan, fused, 4, address, workspace);
    }
    address[APART] = workspace;
    workspace += self->apart_bytes;
    int status = execute(self, plan, alone, 3, address, workspace);
    return status == WPK_CUDNN_STATUS_SUCCESS
               ? execute(self, &self->rest, rest, 3, address, workspace)
               : status;
}

static wpk_err launch(struct wpk_gpu_primitive *base, void *stream, const uint64_t *pointers,
                      struct wpk_diag *diag)
{
    struct convolution *self = (struct convolution *)(void *)base;
    pthread_mutex_lock(&self->lock);
    int status = library.cudnnSetStream(self->pool.handle, stream);
    status = status == WPK_CUDNN_STATUS_SUCCESS ? compute(self, pointers) : status;
    pthread_mutex_unlock(&self->lock);
    return translate(status, "cudnnBackendExecute", diag);
}

/* ---- the library */

static wpk_err make_primitive(const struct wpk_gpu_vendor *vendor, const struct wpk_recipe *recipe,
                              bool any, struct wpk_gpu_primitive **out, struct wpk_diag *diag)
{
    struct convolution *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->base = (struct wpk_gpu_primitive){.vendor = vendor,
                                            .recipe = *recipe,
                                            .workspace = find_workspace,
                                            .launch = launch,
                                            .free = free_convolution};
    self->pool.calls = &library;
    pthread_mutex_init(&self->lock, NULL);
    wpk_err err = WPK_OK;
    if (!read_recipe(self)) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "this is no convolution of f32 tensors that cuDNN computes");
    }
    err = err == WPK_OK ? make(self, any, diag) : err;
    if (err != WPK_OK) {
        free_convolution(&self->base);
        return err;
    }
    *out = &self->base;
    return WPK_OK;
}

wpk_err wpk_cudnn_open(const char *directory, struct wpk_gpu_vendor *out, struct wpk_diag *diag)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
#define SYMBOL(name, result, parameters) {#name, (void (**)(void))(void *)&library.name},
    const struct wpk_gpu_vendor_symbol symbols[] = {WPK_CUDNN_CALL_LIST(SYMBOL)};
#undef SYMBOL
    wpk_err err = wpk_gpu_vendor_load(files, directory, symbols,
                                      sizeof(symbols) / sizeof(symbols[0]), out, diag);
    if (err == WPK_OK) {
        size_t version = library.cudnnGetVersion();
        out->name = WPK_CUDNN_NAME;
        out->make = make_primitive;
        snprintf(out->version, sizeof(out->version), "%zu.%zu.%zu", version / PER_MAJOR,
                 version / PER_MINOR % PER_MINOR, version % PER_MINOR);
    }
    return err;
}
