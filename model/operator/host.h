/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that the tensor IR cannot say, because data decides where elements are written: the plan
 * computes them by plain functions (schema/model_plan.h, wpk_model_plan_host). */
#ifndef WPK_MODEL_OPERATOR_HOST_H
#define WPK_MODEL_OPERATOR_HOST_H

#include "model/graph.h"
#include "schema/model_plan.h"

#define WPK_HOST_INPUTS_MAX 3

/* True if a node whose inputs' shapes are known is computed so; fill in how. */
bool wpk_graph_host(const struct wpk_graph *graph, int node, struct wpk_model_plan_host *out);

/* Compute one of cells (schema/convert.h).
 *   shape   types, inputs [WPK_HOST_INPUTS_MAX]: the node's inputs, row-major, NULL where it has
 *           none; out: the output
 *   errors  WPK_ERANGE an index that is out of its axis, or another number of elements that are
 *           not 0 */
WPK_MUST_CHECK wpk_err wpk_graph_host_interpret(const struct wpk_model_plan_host *host,
                                                const struct wpk_graph_value *const *types,
                                                const double *const *inputs, double *out,
                                                struct wpk_diag *diag);

#endif
