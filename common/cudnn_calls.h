/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's cuDNN that wpk calls: runtime/vendor/cudnn.c finds them in
 * libcudnn.so.9. They are those of the backend interface, whose descriptors have attributes by
 * number. Signatures are those of cudnn_graph.h, with handles as pointers without a type; each
 * function but cudnnGetVersion returns a cudnnStatus_t, of which 0 is success.
 *
 *   source  NVIDIA, cuDNN 9 backend API */
#ifndef WPK_COMMON_CUDNN_CALLS_H
#define WPK_COMMON_CUDNN_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* X(name, result, parameters) */
#define WPK_CUDNN_CALL_LIST(X)                                                                     \
    X(cudnnGetVersion, size_t, (void))                                                             \
    X(cudnnCreate, int, (void **handle))                                                           \
    X(cudnnDestroy, int, (void *handle))                                                           \
    X(cudnnSetStream, int, (void *handle, void *stream))                                           \
    X(cudnnBackendCreateDescriptor, int, (int type, void **descriptor))                            \
    X(cudnnBackendDestroyDescriptor, int, (void *descriptor))                                      \
    X(cudnnBackendSetAttribute, int,                                                               \
      (void *descriptor, int name, int type, int64_t count, const void *elements))                 \
    X(cudnnBackendGetAttribute, int,                                                               \
      (void *descriptor, int name, int type, int64_t count_max, int64_t *count, void *elements))   \
    X(cudnnBackendFinalize, int, (void *descriptor))                                               \
    X(cudnnBackendExecute, int, (void *handle, void *plan, void *pack))

/* name, number: constants of the header with this name */
#define WPK_CUDNN_CONSTANT_LIST(X)                                                                 \
    X(CUDNN_STATUS_SUCCESS, 0)                                                                     \
    X(CUDNN_STATUS_BAD_PARAM, 2000)                                                                \
    X(CUDNN_STATUS_NOT_SUPPORTED, 3000)                                                            \
    X(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)                                    \
    X(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004)                                  \
    X(CUDNN_STATUS_EXECUTION_FAILED, 5000)                                                         \
    X(CUDNN_DATA_FLOAT, 0)                                                                         \
    X(CUDNN_CROSS_CORRELATION, 1)                                                                  \
    X(CUDNN_POINTWISE_ADD, 0)                                                                      \
    X(CUDNN_POINTWISE_RELU_FWD, 100)                                                               \
    X(CUDNN_HEUR_MODE_FALLBACK, 2)                                                                 \
    X(CUDNN_HEUR_MODE_A, 3)                                                                        \
    X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                                         \
    X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                                                 \
    X(CUDNN_NUMERICAL_NOTE_TYPE_COUNT, 10)                                                         \
    X(CUDNN_TYPE_HANDLE, 0)                                                                        \
    X(CUDNN_TYPE_DATA_TYPE, 1)                                                                     \
    X(CUDNN_TYPE_BOOLEAN, 2)                                                                       \
    X(CUDNN_TYPE_INT64, 3)                                                                         \
    X(CUDNN_TYPE_FLOAT, 4)                                                                         \
    X(CUDNN_TYPE_VOID_PTR, 6)                                                                      \
    X(CUDNN_TYPE_CONVOLUTION_MODE, 7)                                                              \
    X(CUDNN_TYPE_HEUR_MODE, 8)                                                                     \
    X(CUDNN_TYPE_KNOB_TYPE, 9)                                                                     \
    X(CUDNN_TYPE_NUMERICAL_NOTE, 11)                                                               \
    X(CUDNN_TYPE_POINTWISE_MODE, 14)                                                               \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                                           \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                                                       \
    X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                                                     \
    X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                                          \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                       \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                                                      \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                                                  \
    X(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)                                                     \
    X(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, 8)                                                       \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)                                  \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                                            \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                                                 \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                                                   \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                                         \
    X(CUDNN_ATTR_POINTWISE_MODE, 0)                                                                \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                                           \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                                                       \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                                                  \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                                                   \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                                                    \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                                                    \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                                             \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                                                  \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                                          \
    X(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                                            \
    X(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 302)                                                      \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                                       \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                                               \
    X(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                                                       \
    X(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                                                      \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)                                     \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                                             \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                                             \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                           \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                                                   \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                                                   \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                                       \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                                          \
    X(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)                                          \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                                       \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                                            \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                                           \
    X(CUDNN_ATTR_TENSOR_STRIDES, 903)                                                              \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                                            \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                                           \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                                    \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                                                 \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                     \
    X(CUDNN_ATTR_KNOB_INFO_TYPE, 1200)                                                             \
    X(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, 1201)                                                    \
    X(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, 1202)                                                    \
    X(CUDNN_ATTR_KNOB_INFO_STRIDE, 1203)                                                           \
    X(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 1300)                                                     \
    X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301)                                                        \
    X(CUDNN_ATTR_ENGINE_KNOB_INFO, 1302)                                                           \
    X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)

#define WPK_CUDNN_ENUM(name, number) WPK_##name = number,
enum wpk_cudnn_constant { WPK_CUDNN_CONSTANT_LIST(WPK_CUDNN_ENUM) };

#endif
