/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: nodes that are computed several times, one iteration after the other.
 *
 * The nodes of a loop have its number and stand in the graph once, with the values of one
 * iteration. Operators of a domain that no file can name connect them with the other nodes:
 *
 *     Enter(x) -> start             before the loop: a copy of x, the state that iteration 0 reads
 *     Read(x) -> part               in the loop: iteration i reads elements offset + i * step of x,
 *                                   and those that follow, in extents `shape`; of a start, i
 *                                   states further
 *     Store(next, start) -> all     in the loop: start and the `next` of each iteration,
 *                                   [times + 1, ...]; the other way round if `reverse`
 *     Result(all, other) -> all     behind the loop, whose Stores it reads: one state, and the
 *                                   other one so that it is computed, too
 *
 * A state needs no copy: iteration i reads it in slot i of `all`, and writes slot i + 1. Each start
 * has one Store. Nodes behind the loop read Results alone.
 *
 * Only rewriting may put other nodes among those of a loop (wpk_graph_gather_loops). */
#ifndef WPK_MODEL_OPERATOR_LOOP_H
#define WPK_MODEL_OPERATOR_LOOP_H

#include "model/graph.h"

#define WPK_LOOP_DOMAIN "\001loop" /* names in files have no control characters */

/* True for the four operators above. */
bool wpk_graph_is_boundary(const struct wpk_graph_node *node);

/* How many elements further the node, a Read or Store, is in each iteration. */
int64_t wpk_graph_loop_step(const struct wpk_graph *graph, const struct wpk_graph_node *node);

/* Elements before what the node reads or writes in iteration 0: of a Read, in its input; of a
 * Store, in its output. */
int64_t wpk_graph_loop_offset(const struct wpk_graph *graph, const struct wpk_graph_node *node);

/* The Store of this start; -1: the value is none. */
int wpk_graph_loop_store(const struct wpk_graph *graph, int start);

/* The last node of the loop whose first one is `first`; their nodes are all of those between. */
int wpk_graph_loop_end(const struct wpk_graph *graph, int first);

/* Put the nodes of each loop side by side: it cannot fail. */
WPK_MUST_CHECK wpk_err wpk_graph_gather_loops(struct wpk_graph *graph);

/* Loop and Scan, written out: copies of the body's nodes for each iteration. */

#define WPK_UNROLL_TIMES_MAX 1024 /* iterations */

/* A callback that appends a node to the graph and infers its shape, or the nodes that it expands
 * to. */
struct wpk_unroll {
    wpk_err (*add)(struct wpk_graph *graph, struct wpk_graph_node *node, void *context);
    void *context;
};

/* Append what a node with a body computes. How often a Loop runs follows from constants and shapes:
 * its trip count, and its condition after each iteration.
 *   errors  WPK_EUNSUPPORTED, WPK_EPARSE with a reason; WPK_ENOSPC, WPK_ENOMEM; those of add */
WPK_MUST_CHECK wpk_err wpk_graph_unroll(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                        const struct wpk_unroll *to, struct wpk_diag *diag);

#endif
