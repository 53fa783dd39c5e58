/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that the tensor IR cannot say, because data decides where elements are read: the plan
 * computes them by plain functions (schema/model_plan.h, wpk_model_plan_host). */
#ifndef WPK_GRAPH_HOST_H
#define WPK_GRAPH_HOST_H

#include "graph/graph.h"
#include "schema/model_plan.h"

/* True if a node whose inputs' shapes are known is computed so; fill in how. */
bool wpk_graph_host(const struct wpk_graph *graph, int node, struct wpk_model_plan_host *out);

/* Compute one of cells (schema/convert.h).
 *   shape   x, indices: inputs 0 and 1, which have these types, row-major; indices NULL: there are
 *           none; out: the output
 *   errors  WPK_ERANGE an index that is out of its axis, or another number of elements that are
 *           not 0 */
WPK_MUST_CHECK wpk_err wpk_graph_host_interpret(const struct wpk_model_plan_host *host,
                                                const struct wpk_graph_value *type, const double *x,
                                                const struct wpk_graph_value *index_type,
                                                const double *indices, double *out,
                                                struct wpk_diag *diag);

#endif
