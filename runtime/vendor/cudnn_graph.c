/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/cudnn_graph.h"

#include "runtime/vendor/gpu_vendor.h"

void wpk_cudnn_pool_fini(struct wpk_cudnn_pool *pool)
{
    while (pool->count > 0) {
        (void)pool->calls->cudnnBackendDestroyDescriptor(pool->descriptor[--pool->count]);
    }
}

int wpk_cudnn_make(struct wpk_cudnn_pool *pool, int type, void **out)
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

void wpk_cudnn_set(const struct wpk_cudnn_pool *pool, int *status, void *descriptor, int name,
                   int type, int64_t count, const void *elements)
{
    if (*status == WPK_CUDNN_STATUS_SUCCESS) {
        *status = pool->calls->cudnnBackendSetAttribute(descriptor, name, type, count, elements);
    }
}

void wpk_cudnn_set_descriptor(const struct wpk_cudnn_pool *pool, int *status, void *descriptor,
                              int name, void *value)
{
    wpk_cudnn_set(pool, status, descriptor, name, WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

int wpk_cudnn_finish(const struct wpk_cudnn_pool *pool, int status, void *descriptor)
{
    return status == WPK_CUDNN_STATUS_SUCCESS ? pool->calls->cudnnBackendFinalize(descriptor)
                                              : status;
}

int wpk_cudnn_tensor_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_tensor *tensor,
                          void **out)
{
    const int type = WPK_CUDNN_DATA_FLOAT;
    const int64_t alignment = WPK_GPU_VENDOR_ALIGNMENT;
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_TENSOR_DESCRIPTOR, out);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_UNIQUE_ID, WPK_CUDNN_TYPE_INT64, 1,
                  &tensor->uid);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_DATA_TYPE, WPK_CUDNN_TYPE_DATA_TYPE, 1,
                  &type);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, WPK_CUDNN_TYPE_INT64,
                  1, &alignment);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_DIMENSIONS, WPK_CUDNN_TYPE_INT64,
                  tensor->rank, tensor->extent);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_STRIDES, WPK_CUDNN_TYPE_INT64,
                  tensor->rank, tensor->stride);
    if (tensor->is_virtual) {
        wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_TENSOR_IS_VIRTUAL, WPK_CUDNN_TYPE_BOOLEAN,
                      1, &tensor->is_virtual);
    }
    return wpk_cudnn_finish(pool, status, *out);
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
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                  WPK_CUDNN_TYPE_DATA_TYPE, 1, &type);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                  WPK_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                  WPK_CUDNN_TYPE_INT64, 1, &spatial);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        wpk_cudnn_set(pool, &status, *out, lists[i].name, WPK_CUDNN_TYPE_INT64, spatial,
                      lists[i].values);
    }
    return wpk_cudnn_finish(pool, status, *out);
}

int wpk_cudnn_convolution_make(struct wpk_cudnn_pool *pool, const struct wpk_cudnn_window *window,
                               void *x, void *w, void *y, void **out)
{
    const float one = 1, zero = 0;
    void *described = NULL;
    int status = make_window(pool, window, &described);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status =
            wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, out);
    }
    wpk_cudnn_set_descriptor(pool, &status, *out,
                             WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, described);
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                             x);
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                             w);
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                             y);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                  WPK_CUDNN_TYPE_FLOAT, 1, &one);
    wpk_cudnn_set(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                  WPK_CUDNN_TYPE_FLOAT, 1, &zero);
    return wpk_cudnn_finish(pool, status, *out);
}

int wpk_cudnn_pointwise_make(struct wpk_cudnn_pool *pool, void *x, void *b, void *y, void **out)
{
    const int type = WPK_CUDNN_DATA_FLOAT;
    const int mode = b != NULL ? WPK_CUDNN_POINTWISE_ADD : WPK_CUDNN_POINTWISE_RELU_FWD;
    void *described = NULL;
    int status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &described);
    wpk_cudnn_set(pool, &status, described, WPK_CUDNN_ATTR_POINTWISE_MODE,
                  WPK_CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    wpk_cudnn_set(pool, &status, described, WPK_CUDNN_ATTR_POINTWISE_MATH_PREC,
                  WPK_CUDNN_TYPE_DATA_TYPE, 1, &type);
    status = wpk_cudnn_finish(pool, status, described);
    if (status == WPK_CUDNN_STATUS_SUCCESS) {
        status = wpk_cudnn_make(pool, WPK_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, out);
    }
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                             described);
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != NULL) {
        wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    }
    wpk_cudnn_set_descriptor(pool, &status, *out, WPK_CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return wpk_cudnn_finish(pool, status, *out);
}
