/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's C interface (version 3), looked up in a library that is opened at run time. */
#ifndef WPK_RUNTIME_VENDOR_ONEDNN_LIBRARY_H
#define WPK_RUNTIME_VENDOR_ONEDNN_LIBRARY_H

#include "common/err.h"

#include <oneapi/dnnl/dnnl.h>

/* Every function used, without the prefix dnnl_. */
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
    X(memory_desc_query)                                                                           \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(memory_set_data_handle)                                                                      \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_post_ops)                                                                 \
    X(primitive_attr_set_scales_mask)                                                              \
    X(primitive_attr_set_zero_points_mask)                                                         \
    X(primitive_attr_set_scratchpad_mode)                                                          \
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

struct wpk_onednn_library {
    void *handle; /* never closed: the library's threads may still run its code */
#define WPK_ONEDNN_LIBRARY_FIELD(name) __typeof__(dnnl_##name) *name;
    WPK_ONEDNN_LIBRARY_LIST(WPK_ONEDNN_LIBRARY_FIELD)
#undef WPK_ONEDNN_LIBRARY_FIELD
    void (*set_threads)(int); /* OpenMP's, for the calling thread; NULL: a build without OpenMP */
    int (*get_threads)(void);
};

/* Load libdnnl.so.3 from `directory`; if that is NULL, from where dlopen finds it.
 *   errors  WPK_ENOENT cannot be loaded; WPK_EMISMATCH not version 3; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onednn_library_open(struct wpk_onednn_library *library,
                                               const char *directory, struct wpk_diag *diag);

/* Set how many threads the library uses for the next calls of this thread; return the number
 * before. A build without OpenMP takes its number from the process's CPUs: then nothing is set and
 * `threads` is returned. */
int wpk_onednn_library_limit(const struct wpk_onednn_library *library, int threads);

/* The library's status as one of our codes: WPK_OK, WPK_ENOMEM, else WPK_EUNSUPPORTED. */
wpk_err wpk_onednn_translate(dnnl_status_t status);

#endif
