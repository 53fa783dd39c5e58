/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference: the type and extents of every value, and everything that is not supported. */
#ifndef WPK_MODEL_OPERATOR_SHAPE_H
#define WPK_MODEL_OPERATOR_SHAPE_H

#include "model/graph.h"

/* Fix the extents of a model input, as "x=1,3,224,224" says.
 *   errors  WPK_EINVAL  no such input, another rank, or another extent than the file fixes */
WPK_MUST_CHECK wpk_err wpk_graph_set_shape(struct wpk_graph *graph, const char *text,
                                           struct wpk_diag *diag);

/* Fix the extents of value `input`, a model input. `option` is the option's name in `diag`.
 *   shape   extent [rank], each >= 0
 *   errors  WPK_EINVAL  another rank, or another extent than the file fixes */
WPK_MUST_CHECK wpk_err wpk_graph_set_extents(struct wpk_graph *graph, int input,
                                             const int64_t *extent, int rank, const char *option,
                                             struct wpk_diag *diag);

/* Make value `input`, a model input of known type and extents, a constant.
 *   shape   data [size], the input's elements; copied
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_bind(struct wpk_graph *graph, int input, const void *data,
                                      size_t size);

/* Infer the types and extents of all values, fold what follows from constants and shapes, and check
 * that every other node has a program. All that stands in the way is appended to `problems`, a line
 * each: "node conv1 (Conv): ...". The consequences of a problem are not reported.
 *   errors  WPK_EUNSUPPORTED  there are problems; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_infer(struct wpk_graph *graph, struct wpk_buf *problems);

/* The same for one node, whose inputs are known.   errors  all that is a problem; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_infer_node(struct wpk_graph *graph, int index,
                                            struct wpk_diag *diag);

/* Nodes whose output follows from constants and shapes alone: exporters compute shapes in nodes. */

#define WPK_FOLD_SMALL 4096 /* elements that are folded whatever they are made of */
#define WPK_FOLD_GROWTH 4   /* of outputs against all inputs: a large Expand stays in kernels */
#define WPK_FOLD_GROWN_MAX ((int64_t)1 << 20)  /* elements that may be any growth */
#define WPK_FOLD_FILLED_MAX ((int64_t)1 << 26) /* elements of one number */
#define WPK_FOLD_WORK_FREE 1e8 /* operations of a graph's large nodes: half a second */
#define WPK_FOLD_WORK_A_BYTE                                                                       \
    16 /* and of each byte of its files: a small file cannot ask for more */
#define WPK_FOLD_READ_WORK_MAX 2e8 /* of all, while it is read */
#define WPK_FOLD_WORK_MAX 4e9      /* the same before it is tuned; and of one node */

/* Make the node's output constant data if it follows from constants and shapes. The shapes of its
 * inputs and its output are known. It is no error if it does not follow, or is too large.
 *   errors  those of wpk_graph_interpret_node; WPK_EINVAL an index beyond its axis */
WPK_MUST_CHECK wpk_err wpk_graph_fold(struct wpk_graph *graph, int node, struct wpk_diag *diag);

/* Fold what reading the graph left, up to WPK_FOLD_WORK_MAX operations together: a run computes
 * none of it.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_fold_rest(struct wpk_graph *graph);

/* Compute the node by the interpreter if all its inputs are constants, whatever their size, in at
 * most WPK_FOLD_WORK_MAX operations.
 *   errors  WPK_ENOENT  it takes more; WPK_ENOMEM; WPK_OK also where an input is no constant */
WPK_MUST_CHECK wpk_err wpk_graph_fold_large(struct wpk_graph *graph, int node);

/* Element types that are narrower than those that a model is computed in. Values of f16 and bf16
 * are read and written; what is computed of them is f32, and stays so from node to node. */

/* True if a value of `dtype` is one that a file declares to be of this ONNX element type. */
bool wpk_precision_declares(int element_type, enum wpk_dtype dtype);

/* Make the node read its operands of f16 and bf16 as f32: casts are appended.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_widen(struct wpk_graph *graph, struct wpk_graph_node *node);

/* Let the node compute new values where the file declares outputs of the model as f16 or bf16.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_outputs(struct wpk_graph *graph, struct wpk_graph_node *node);
/* Append casts of these to the outputs that the node had before: `declared` [output_count].
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_narrow_outputs(struct wpk_graph *graph,
                                                    const struct wpk_graph_node *node,
                                                    const int *declared);

/* Append a product of operands of graph->math, with sums of f32, that takes the node's place; or of
 * constant weights of graph->weights, of which i8 have a scale for each column.
 *   errors  WPK_ENOENT nothing was appended: the node is no product of f32, or has few terms;
 *           WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_product(struct wpk_graph *graph,
                                             const struct wpk_graph_node *node);

/* The signal to noise ratio of the weights that were narrowed, in dB. */
double wpk_precision_loss(const struct wpk_graph *graph);

#endif
