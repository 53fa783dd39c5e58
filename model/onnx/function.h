/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a model file defines: a node that calls one stands for the function's nodes. */
#ifndef WPK_MODEL_ONNX_FUNCTION_H
#define WPK_MODEL_ONNX_FUNCTION_H

#include "model/onnx/reader.h"

/* Read the names of the model's functions into the reader.   errors  WPK_EPARSE, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_functions_read(struct wpk_onnx_reader *reader,
                                               struct wpk_protobuf model);

/* The function that the node calls; NULL: it is an operator. */
const struct wpk_onnx_function *wpk_onnx_function_find(const struct wpk_onnx_reader *reader,
                                                       const struct wpk_graph_node *node);

/* Read each of the function's nodes by `read`, as if they stood in place of `caller`.
 *   errors  WPK_EPARSE, WPK_EUNSUPPORTED with a reason; those of `read`; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_function_call(struct wpk_onnx_reader *reader,
                                              const struct wpk_onnx_function *function,
                                              const struct wpk_graph_node *caller,
                                              wpk_err (*read)(struct wpk_onnx_reader *reader,
                                                              struct wpk_protobuf node));

#endif
