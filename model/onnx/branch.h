/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of an If, and bodies of a Loop or Scan. The nodes of both branches are read into the
 * graph with a guard, and the If becomes one node for each output, with the condition and the two
 * values that it has to choose from as inputs. Shape inference (shape.c) leaves out the branch that
 * is not taken, where the condition follows from constants and shapes; else both are computed, and
 * a Where chooses. A body stays apart from the graph (unroll.h). */
#ifndef WPK_MODEL_ONNX_BRANCH_H
#define WPK_MODEL_ONNX_BRANCH_H

#include "model/onnx/reader.h"

/* The functions that read parts of a GraphProto. */
struct wpk_onnx_parts {
    wpk_err (*initializer)(struct wpk_onnx_reader *reader, struct wpk_protobuf message);
    wpk_err (*node)(struct wpk_onnx_reader *reader, struct wpk_protobuf message);
};

/* Add the nodes of an If, whose inputs and outputs are known; `message` is its NodeProto.
 *   errors  WPK_EPARSE a branch is missing, or has not as many outputs; those of the parts */
WPK_MUST_CHECK wpk_err wpk_onnx_branch_read(struct wpk_onnx_reader *reader,
                                            const struct wpk_graph_node *node,
                                            struct wpk_protobuf message,
                                            const struct wpk_onnx_parts *parts);

/* True for a node that has a body: a Loop or Scan. */
bool wpk_onnx_is_repeating(const struct wpk_graph_node *node);

/* Read the body of such a node.   owns  *out is the graph's
 *   errors  WPK_EPARSE the body is missing; those of the parts */
WPK_MUST_CHECK wpk_err wpk_onnx_body_read(struct wpk_onnx_reader *reader,
                                          const struct wpk_graph_node *node,
                                          struct wpk_protobuf message,
                                          const struct wpk_onnx_parts *parts,
                                          const struct wpk_graph_body **out);

#endif
