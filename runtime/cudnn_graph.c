/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cudnn_graph.h"

#include "runtime/gpu_vendor.h"

#define RESULTS_MAX 64 /* of one heuristic */

void wpk_cudnn_pool_fini(struct wpk_cudnn_pool *pool)
{
    while (pool->count > 0) {
        (void)pool->calls->cudnnBackendDestroyDescriptor(pool->descriptor[--pool->count]);
    }
}

static int make(struct wpk_cudnn_pool *pool, int type, void **out)
{
    if (pool->count == WPK_CUDNN_DESCRIPTORS_MAX) {
        return WPK_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    int status = pool->calls->cudnnBackendCreateDescriptor(type, out);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        pool->descriptor[pool->count++] = *out;
    }
    return status;
}

/* Set an attribute, unless something has failed before. */
static void set(const struct wpk_cudnn_pool *pool, int *status, void *descriptor, int name,
                int type, int64_t count, const void *elements)
{
    if (*status == WPK_CUDNN_STATUS_SUCCESS) {
        *status = pool->calls->cudnnBackendSetAttribute(descriptor, name, type, count, elements);
    }
}

static void set_descriptor(const struct wpk_cudnn_pool *pool, int *status, void *descriptor,
                           int name, void *value)
{
    set(pool, status, descriptor, name, WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static int finish(const struct wpk_cudnn_pool *pool, int status, void *descriptor)
{
    return status == WPK_CUDNN_STATUS_SUCCESS ? pool->calls->cudnnBackendFinalize(descriptor)
                                              : status;
}

int wpk_cudnn_tensor_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_tensor *tensor,
                          void **out)
{
    const int type = WPK_CUDNN_DATA_FLOAT;
    const int64_t alignment = WPK_GPU_VENDOR_ALIGNMENT;
    int status = make(pool, WPK_CUDNN_BACKEND_TENSOR_DESCRIPTOR, out);
    set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_UNIQUE_ID, WPK_CUDNN_TYPE_INT64, 1,
        &tensor->uid);
    set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_DATA_TYPE, WPK_CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, WPK_CUDNN_TYPE_INT64, 1,
        &alignment);
    set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_DIMENSIONS, WPK_CUDNN_TYPE_INT64, tensor->rank,
        tensor->extent);
    set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_STRIDES, WPK_CUDNN_TYPE_INT64, tensor->rank,
        tensor->stride);
    if (tensor->is_virtual) {
        set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_IS_VIRTUAL, WPK_CUDNN_TYPE_BOOLEAN, 1,
            &tensor->is_virtual);
    }
    return finish(pool, status, *out);
}

static int make_window(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_window *window,
                       void **out)
{
    const int type = WPK_CUDNN_DATA_FLOAT, mode = WPK_CUDNN_CROSS_CORRELATION;
    const int64_t spatial = window->spatial;
    const struct {
        int name;
        const int64_t *values;
    } lists[] = {{WPK_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window->before},
                 {WPK_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window->after},
                 {WPK_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window->stride},
                 {WPK_CUDNN_ATTR_CONVOLUTION_DILATIONS, window->dilation}};
    int status = make(pool, WPK_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out);
    set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, WPK_CUDNN_TYPE_DATA_TYPE, 1,
        &type);
    set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_CONV_MODE, WPK_CUDNN_TYPE_CONVOLUTION_MODE,
        1, &mode);
    set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, WPK_CUDNN_TYPE_INT64, 1,
        &spatial);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        set(pool, &status, *out, lists[i].name, WPK_CUDNN_TYPE_INT64, spatial, lists[i].values);
    }
    return finish(pool, status, *out);
}

int wpk_cudnn_convolution_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_window *window,
                               void *x, void *w, void *y, void **out)
{
    const float one = 1, zero = 0;
    void *described = NULL;
    int status = make_window(pool, window, &described);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = make(pool, WPK_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, out);
    }
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                   described);
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    set(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        WPK_CUDNN_TYPE_FLOAT, 1, &one);
    set(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        WPK_CUDNN_TYPE_FLOAT, 1, &zero);
    return finish(pool, status, *out);
}

int wpk_cudnn_pointwise_make(struct wpk_cudnn_pool *pool, void *x, void *b, void *y, void **out)
{
    const int type = WPK_CUDNN_DATA_FLOAT;
    const int mode = b != NULL ? WPK_CUDNN_POINTWISE_ADD : WPK_CUDNN_POINTWISE_RELU_FWD;
    void *described = NULL;
    int status = make(pool, WPK_CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &described);
    set(pool, &status, described, WPK_CUDNN_ATTR_POINTWISE_MODE, WPK_CUDNN_TYPE_POINTWISE_MODE, 1,
        &mode);
    set(pool, &status, described, WPK_CUDNN_ATTR_POINTWISE_MATH_PREC, WPK_CUDNN_TYPE_DATA_TYPE, 1,
        &type);
    status = finish(pool, status, described);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = make(pool, WPK_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, out);
    }
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                   described);
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != NULL) {
        set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    }
    set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return finish(pool, status, *out);
}

/* ---- plans */

/* True if the configuration's engine computes in f32: on tensor cores, operands of that type are
 * TF32. */
static bool is_f32(struct wpk_cudnn_pool *pool, void *config)
{
    int notes[WPK_CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    void *engine = NULL;
    int status = make(pool, WPK_CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendGetAttribute(config, WPK_CUDNN_ATTR_ENGINECFG_ENGINE,
                                                       WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                                       &engine);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendGetAttribute(
            engine, WPK_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, WPK_CUDNN_TYPE_NUMERICAL_NOTE,
            WPK_CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
    }
    bool exact = status == WPK_CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; i < count && exact; i++) {
        exact = notes[i] != WPK_CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
                notes[i] != WPK_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    return exact;
}

bool wpk_cudnn_build(struct wpk_cudnn_pool *pool, struct wpk_cudnn_plan *plan,
                     int64_t workspace_max)
{
    int64_t count = 0;
    void *made = NULL;
    int status = make(pool, WPK_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made);
    set(pool, &status, made, WPK_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, WPK_CUDNN_TYPE_HANDLE, 1,
        &pool->handle);
    set_descriptor(pool, &status, made, WPK_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, plan->config);
    status = finish(pool, status, made);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendGetAttribute(
            made, WPK_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, WPK_CUDNN_TYPE_INT64, 1, &count,
            &plan->workspace_bytes);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS && plan->workspace_bytes <= workspace_max) {
        plan->plan = made;
    }
    return plan->plan != NULL;
}

static void find_by(struct wpk_cudnn_pool *pool, void *graph, int mode,
                    struct wpk_cudnn_plan *plans, int *plan_count)
{
    void *heuristic = NULL, *config[RESULTS_MAX] = {NULL};
    int64_t found = 0;
    int status = make(pool, WPK_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
    set_descriptor(pool, &status, heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(pool, &status, heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_MODE, WPK_CUDNN_TYPE_HEUR_MODE, 1,
        &mode);
    status = finish(pool, status, heuristic);
    for (int i = 0; i < RESULTS_MAX && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        status = make(pool, WPK_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]);
    }
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendGetAttribute(heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                       WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                       RESULTS_MAX, &found, config);
    }
    for (int64_t i = 0; i < found && status == WPK_CUDNN_STATUS_SUCCESS; i++) {
        if (*plan_count < WPK_CUDNN_PLANS_MAX && is_f32(pool, config[i])) {
            plans[(*plan_count)++] = (struct wpk_cudnn_plan){.config = config[i]};
        }
    }
}

void wpk_cudnn_find_plans(struct wpk_cudnn_pool *pool, void *const *operation, int count,
                          struct wpk_cudnn_plan *plans, int *plan_count)
{
    void *graph = NULL;
    int status = make(pool, WPK_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &graph);
    set(pool, &status, graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, WPK_CUDNN_TYPE_HANDLE, 1,
        &pool->handle);
    set(pool, &status, graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_OPS, WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR,
        count, operation);
    if (finish(pool, status, graph) == WPK_CUDNN_STATUS_SUCCESS) {
        find_by(pool, graph, WPK_CUDNN_HEUR_MODE_A, plans, plan_count);
        find_by(pool, graph, WPK_CUDNN_HEUR_MODE_FALLBACK, plans, plan_count);
    }
}

int wpk_cudnn_execute(const struct wpk_cudnn_pool *pool, const struct wpk_cudnn_plan *plan,
                      const int64_t *uid, void *const *pointer, int count, void *workspace)
{
    void *pack = NULL;
    int status =
        pool->calls->cudnnBackendCreateDescriptor(WPK_CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != WPK_CUDNN_STATUS_SUCCESS) {
        return status;
    }
    set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, WPK_CUDNN_TYPE_INT64, count,
        uid);
    set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, WPK_CUDNN_TYPE_VOID_PTR,
        count, pointer);
    set(pool, &status, pack, WPK_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, WPK_CUDNN_TYPE_VOID_PTR, 1,
        &workspace);
    status = finish(pool, status, pack);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = pool->calls->cudnnBackendExecute(pool->handle, plan->plan, pack);
    }
    (void)pool->calls->cudnnBackendDestroyDescriptor(pack);
    return status;
}
