/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that the tensor IR cannot say, because data decides where elements are written: the plan
 * computes them by plain functions (schema/model_plan.h, wpk_model_plan_host). */
#ifndef WPK_MODEL_OPERATOR_HOST_H
#define WPK_MODEL_OPERATOR_HOST_H

#include "ir/data_index.h"
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

/* The values that a model's inputs are drawn from, for tests and timing: indices inside their axes,
 * masks of 0 and 1, operands in the domains of functions (ir/data_index.h). */

/* Find the domains of the inputs of a graph whose shapes were inferred without problems.
 *   shape   out [input_count]
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_domains(const struct wpk_graph *graph, struct wpk_domain *out);

#endif
