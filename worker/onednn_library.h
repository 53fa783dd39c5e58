/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's C interface (version 3), looked up in a library that is opened by path. */
#ifndef WPK_WORKER_ONEDNN_LIBRARY_H
#define WPK_WORKER_ONEDNN_LIBRARY_H

#include "common/err.h"

#include <oneapi/dnnl/dnnl.h>

/* Every function used, without the prefix of all. */
#define WPK_ONEDNN_LIBRARY_LIST(X)                                                                 \
    X(version)                                                                                     \
    X(engine_create)                                                                               \
    X(engine_destroy)                                                                              \
    X(stream_create)                                                                               \
    X(stream_destroy)                                                                              \
    X(stream_wait)                                                                                 \
    X(memory_desc_create_with_strides)                                                             \
    X(memory_desc_create_with_tag)                                                                 \
    X(memory_desc_destroy)                                                                         \
    X(memory_desc_equal)                                                                           \
    X(memory_desc_get_size)                                                                        \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_post_ops)                                                                 \
    X(post_ops_create)                                                                             \
    X(post_ops_destroy)                                                                            \
    X(post_ops_append_eltwise)                                                                     \
    X(convolution_forward_primitive_desc_create)                                                   \
    X(matmul_primitive_desc_create)                                                                \
    X(softmax_forward_primitive_desc_create)                                                       \
    X(layer_normalization_forward_primitive_desc_create)                                           \
    X(pooling_forward_primitive_desc_create)                                                       \
    X(eltwise_forward_primitive_desc_create)                                                       \
    X(binary_primitive_desc_create)                                                                \
    X(reorder_primitive_desc_create)                                                               \
    X(primitive_desc_query)                                                                        \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_create)                                                                            \
    X(primitive_destroy)                                                                           \
    X(primitive_execute)

/* Not closed: the library's threads may still be on their way to sleep inside it. */
struct wpk_onednn_library {
    void *handle;
#define WPK_ONEDNN_LIBRARY_FIELD(name) __typeof__(dnnl_##name) *name;
    WPK_ONEDNN_LIBRARY_LIST(WPK_ONEDNN_LIBRARY_FIELD)
#undef WPK_ONEDNN_LIBRARY_FIELD
};

/* Its OpenMP will use so many threads; other builds take what the process's CPUs are.
 *   errors  WPK_ENOENT cannot be loaded; WPK_EMISMATCH not version 3 */
WPK_MUST_CHECK wpk_err wpk_onednn_library_open(struct wpk_onednn_library *library, const char *path,
                                               int threads, struct wpk_diag *diag);

#endif
