/* SPDX-License-Identifier: Apache-2.0 */
/* From a node to a program: its operator's equation, with the node's extents and attributes. */
#ifndef WPK_MODEL_OPERATOR_LOWER_H
#define WPK_MODEL_OPERATOR_LOWER_H

#include "ir/program.h"
#include "model/graph.h"
#include "model/operator/operator.h"

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

#endif
