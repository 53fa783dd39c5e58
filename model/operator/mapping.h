/* SPDX-License-Identifier: Apache-2.0 */
/* How a node's elements come from those of its inputs, and which nodes are computed together.
 *
 * The types are derived from the indices of the node's loads, never from its name.
 *
 *   source  Niu et al., "DNNFusion: Accelerating Deep Neural Networks Execution with Advanced
 *           Operator Fusion", PLDI 2021: five mapping types, and a table of their pairs. Here a
 *           node that computes has the type one-to-one if it is no reduction, however it reads. */
#ifndef WPK_MODEL_OPERATOR_MAPPING_H
#define WPK_MODEL_OPERATOR_MAPPING_H

#include "model/graph.h"
#include "model/operator/lower.h"

enum wpk_mapping {
    WPK_MAPPING_ONE_TO_ONE,   /* one element of each operand makes one */
    WPK_MAPPING_SHUFFLE,      /* all elements once, with the axes in another order */
    WPK_MAPPING_REORGANIZE,   /* some elements, each once: a slice, a reshape, zeros around */
    WPK_MAPPING_ONE_TO_MANY,  /* one element goes to several places: a broadcast, a resize */
    WPK_MAPPING_MANY_TO_MANY, /* a reduction, a window, or several stages */
    WPK_MAPPING_COUNT,
};

enum wpk_fusion {
    WPK_FUSION_NO,
    WPK_FUSION_MEASURE, /* only where measured to be faster */
    WPK_FUSION_YES,
};

/* Whether a group of nodes of type `first` is computed with what reads its result as `second`. */
enum wpk_fusion wpk_mapping_fusion(enum wpk_mapping first, enum wpk_mapping second);

/* The type of two groups that are computed together. */
enum wpk_mapping wpk_mapping_join(enum wpk_mapping first, enum wpk_mapping second);

/* The type of a node: shuffle, reorganize and one-to-many only move elements.
 *   errors  as wpk_graph_lower: WPK_MAPPING_MANY_TO_MANY */
enum wpk_mapping wpk_graph_mapping(const struct wpk_graph *graph, int node);

/* The same of how a node reads one value.   errors  the same */
enum wpk_mapping wpk_graph_read_mapping(const struct wpk_graph *graph, int node, int value);

/* True if the node reads value `value` and never outside of it; with `or_zero`: or zeros there. */
bool wpk_graph_reads_inside(const struct wpk_graph *graph, int node, int value, bool or_zero);

/* True if the node's output is its input with zeros around it. */
bool wpk_graph_is_padding(const struct wpk_graph *graph, int node);

/* True if the node only moves elements, each index being a sum of multiples of axes, and reads
 * nothing outside of its input. */
bool wpk_graph_is_movement(const struct wpk_graph *graph, int node);

/* Nodes that multiply a value by constants and add constants. */

#define WPK_AFFINE_ALL (-1) /* the same factor and addend for all elements */

/* A node's output is factor[k] * x + addend[k] at element k of dimension `dim`. */
struct wpk_graph_affine {
    int x; /* value that another node computes */
    int dim;
    int64_t count;
    double *factor; /* owned; [count] */
    double *addend; /* owned; [count] */
};

/* Find factors and addends of a node. Shapes in the graph change while it runs, and are put back.
 *   owns    caller calls wpk_graph_affine_fini, after failures too
 *   errors  WPK_ENOENT  the node is not affine in one value; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_affine_find(struct wpk_graph *graph, int node,
                                             struct wpk_graph_affine *out);
void wpk_graph_affine_fini(struct wpk_graph_affine *affine);

/* Nodes that take a range of one axis. */

/* Make a Slice of [begin, end) of value `from` along `dim`; its output is outputs[0] of `of`, whose
 * name it has. It is not part of the graph yet.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_make_slice(struct wpk_graph *graph,
                                            const struct wpk_graph_node *of, int from, int dim,
                                            int64_t begin, int64_t end, struct wpk_graph_node *out);

/* Add a constant list of integers.
 *   shape   integers [count]
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_add_integers(struct wpk_graph *graph, const int64_t *integers,
                                              int count, int *out);

#endif
