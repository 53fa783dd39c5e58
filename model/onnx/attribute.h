/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes. */
#ifndef WPK_MODEL_ONNX_ATTRIBUTE_H
#define WPK_MODEL_ONNX_ATTRIBUTE_H

#include "model/onnx/reader.h"

/* Read an AttributeProto.   errors  WPK_EPARSE, WPK_EUNSUPPORTED, those of wpk_onnx_tensor */
WPK_MUST_CHECK wpk_err wpk_onnx_attribute(struct wpk_onnx_reader *reader,
                                          struct wpk_protobuf message,
                                          struct wpk_graph_attribute *out);

#endif
