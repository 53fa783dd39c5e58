/* SPDX-License-Identifier: Apache-2.0 */
/* From a node to a program: its operator's equation, with the node's extents and attributes. */
#ifndef WPK_MODEL_OPERATOR_LOWER_H
#define WPK_MODEL_OPERATOR_LOWER_H

#include "ir/program.h"
#include "model/graph.h"
#include "model/operator/operator.h"
#include "schema/model_plan.h"

/* A node's program. Tensor Y is the node's output 0. */
struct wpk_lowered {
    struct wpk_program program;
    struct wpk_buf text; /* the equations in notation */
    int operand_count;
    int operand[WPK_OPERATOR_INPUTS_MAX]; /* value that program.tensors[i] is: X, X1, ... */
};

/* Lower a node of a graph whose shapes were inferred without problems. The graph keeps the result
 * until the node is lowered again with another operator, other attributes, or inputs of other
 * types, shapes or constants.
 *
 *   owns    *out is borrowed from the graph
 *   errors  WPK_EUNSUPPORTED, WPK_ERANGE with a reason; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_graph_lower(const struct wpk_graph *graph, int node,
                                       const struct wpk_lowered **out, struct wpk_diag *diag);
/* The same; NULL: the node has no program. */
const struct wpk_lowered *wpk_graph_lowered(const struct wpk_graph *graph, int node);

/* Free what wpk_graph_fuse made. */
void wpk_lowered_fini(struct wpk_lowered *lowered);

/* Nodes that the tensor IR cannot say, because data decides where elements are written: the plan
 * computes them by plain functions (schema/model_plan.h, wpk_model_plan_host). */

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
