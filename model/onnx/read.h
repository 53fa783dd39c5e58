/* SPDX-License-Identifier: Apache-2.0 */
/* From an ONNX file to a graph. The file is mapped, and weights stay where they lie in it. */
#ifndef WPK_MODEL_ONNX_READ_H
#define WPK_MODEL_ONNX_READ_H

#include "model/graph.h"

#define WPK_ONNX_OPSET_MIN 1
#define WPK_ONNX_OPSET_MAX 28

/* Read a model. A node Constant becomes constant data. Whether the operators are supported is
 * found by shape inference. External data must lie in the model's folder.
 *
 *   owns    caller calls wpk_graph_fini, after failures too
 *   errors  WPK_EPARSE  not an ONNX model, cut short, or not valid; WPK_EUNSUPPORTED  its opset, or
 *           what it consists of; WPK_ERANGE  too large; WPK_ENOENT, WPK_EACCES, WPK_EIO of files;
 *           `diag` names the file and the node or tensor
 *   source  onnx/onnx.proto (numbers of fields), docs/IR.md, docs/ExternalData.md
 */
WPK_MUST_CHECK wpk_err wpk_onnx_read(const char *path, struct wpk_graph *out,
                                     struct wpk_diag *diag);

#endif
