/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a model file, and of its files of external data. */
#ifndef WPK_MODEL_ONNX_TENSOR_H
#define WPK_MODEL_ONNX_TENSOR_H

#include "model/onnx/reader.h"

/* Read a TensorProto into a new value that is a constant, under its name or, for attributes,
 * without one.
 *   errors  WPK_EPARSE, WPK_EUNSUPPORTED, WPK_ERANGE, those of external data; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_tensor(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                                       bool is_attribute, int *out);

#endif
