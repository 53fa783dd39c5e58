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

#endif
