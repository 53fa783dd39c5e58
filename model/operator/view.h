/* SPDX-License-Identifier: Apache-2.0 */
/* Values whose elements lie in another value's memory: the outputs of a Reshape or of a Slice of
 * whole rows, the inputs of a Concat of whole rows, and what the iterations of a loop read and
 * write. The plan has no step that copies them. */
#ifndef WPK_MODEL_OPERATOR_VIEW_H
#define WPK_MODEL_OPERATOR_VIEW_H

#include "model/graph.h"

/* = {0} is empty. */
struct wpk_graph_views {
    int *of;         /* owned; [count] value whose memory a value is part of; -1: its own */
    int64_t *offset; /* owned; [count] elements before it there; in a loop, in iteration 0 */
    int64_t *step;   /* owned; [count] how many more there are in each iteration of its loop */
    int count;       /* values of the graph */
};

/* All values have memory of their own.   owns  caller calls wpk_graph_views_fini */
void wpk_graph_views_init(struct wpk_graph_views *views, const struct wpk_graph *graph);
void wpk_graph_views_fini(struct wpk_graph_views *views);

/* True if the node's output is now part of an input, or its inputs are parts of its output, so that
 * the node has nothing to compute. Parts of the model's inputs and of constants are none. */
bool wpk_graph_views_add(struct wpk_graph_views *views, const struct wpk_graph *graph, int node);

/* The value in whose memory `value` lies, and how many elements before it. */
int wpk_graph_views_root(const struct wpk_graph_views *views, int value, int64_t *offset);

/* How many elements further it lies there in each iteration of its loop; 0: no loop moves it. */
int64_t wpk_graph_views_step(const struct wpk_graph_views *views, int value);

/* True if the node's output has the elements of input 0 in their order. */
bool wpk_graph_keeps_elements(const struct wpk_graph_node *node);

#endif
