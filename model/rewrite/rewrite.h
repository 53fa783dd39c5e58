/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites a graph to one that computes the same with less work. */
#ifndef WPK_MODEL_REWRITE_REWRITE_H
#define WPK_MODEL_REWRITE_REWRITE_H

#include "ir/program.h"
#include "model/graph.h"
#include "model/operator/lower.h"
#include "model/operator/operator.h"

/* Leave out what no output depends on, move constant factors into weights, apply rules, let
 * nodes become one: the functions below, in this order. Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_rewrite(struct wpk_graph *graph);

/* Take out every node that computes factor * x + addend, element by element or channel by channel,
 * where the weights of the nodes that compute x, and their biases, can be multiplied by the factor:
 * batch normalization after a convolution, 1 / sqrt(d) after the product of Q and K. An addend
 * without a bias stays as an Add.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_absorb(struct wpk_graph *graph);

/* Let products and convolutions of the same values by different constants, such as those of Q, K
 * and V, be one, with the constants concatenated; so are the pointwise nodes after them. Slices
 * of the result stand for their outputs. Merged are only those of which the slices are no steps,
 * and whose readers are none that would be computed with them. Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_merge(struct wpk_graph *graph);

/* Take out the nodes that no output of the model depends on. Where all readers of a value take
 * parts of one axis (Slice, Split, Gather of one index), compute those parts alone: constants are
 * cut, and other operands get Slices, which go on towards the inputs. So a transformer's last layer
 * computes its first token only, if no other is read. A slice of a Concat reads its part of it.
 * Ids of nodes change.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_prune(struct wpk_graph *graph);

/* Equal expressions over nodes, of which one may be cheaper.
 *
 * An expression is written with ONNX's operators: "MatMul(MatMul(x, y), z)". A letter is a value,
 * the same one wherever it stands. All nodes of one operator have the same attributes, in both
 * expressions. The operands of an Add or Mul match in either order. */

#define WPK_RULE_NODES_MAX 8

struct wpk_rule {
    const char *name; /* "associativity" */
    const char *from;
    const char *to;
    bool never_negative; /* it holds only where x is never negative */
};

/* The table; *count is filled in. */
const struct wpk_rule *wpk_rules(int *count);

/* Apply rules wherever what they put in place takes fewer operations and no more bytes, or the
 * other way round; what depends on constants alone is computed. Inner nodes are read by the
 * expression only. Sums in `to` are of equal shapes. Ids of nodes change.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_apply_rules(struct wpk_graph *graph);

/* Follows an axis of a program's output backwards through its equations. */

#define WPK_TRACE_NONE (-1)  /* the axis has no part in it */
#define WPK_TRACE_MIXED (-2) /* another index has the axis, too */
#define WPK_TRACE_UNREAD (-3)

/* The dimension of the load that `axis` alone runs over, while no other index has it. */
int wpk_trace_load(const struct wpk_program *program, const struct wpk_node *load, int axis);

/* Find the dimension of each tensor that output axis `axis` runs over.
 *   shape   dims [tensor_count]; WPK_TRACE_NONE: read, but not by that axis
 *   returns false: a tensor is read by it in another way, or an expression has an axis */
bool wpk_trace_dims(const struct wpk_program *program, int axis, int *dims);

/* Nodes that become one, with those that read them: those that wpk_graph_merge() names. */

#define WPK_JOINT_MEMBERS_MAX 16
#define WPK_JOINT_LEVELS_MAX 8

/* Nodes of one equation: they become one node, the outputs of which follow each other in its. */
struct wpk_joint_level {
    int nodes[WPK_JOINT_MEMBERS_MAX];
    int dim;                                  /* output axis along which they follow */
    int operand_dim[WPK_OPERATOR_INPUTS_MAX]; /* of the inputs that do, too; -1: the same for all */
};

struct wpk_joint {
    struct wpk_graph *graph;
    int *uses; /* owned by whoever counts; [value_count] by nodes, and as an output of the model */
    int member_count;
    struct wpk_joint_level levels[WPK_JOINT_LEVELS_MAX]; /* each reads the one before */
    int level_count;
};

/* Put one node in the place of each level, and slices of the last one's output in the place of its
 * members' outputs. Ids of nodes change.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_joint_apply(struct wpk_joint *joint);

/* Several nodes as one program. */

#define WPK_FUSE_NODES_MAX 24
#define WPK_FUSE_OPERANDS_MAX 16

/* Lower nodes of a graph as wpk_graph_lower does one. Tensor Y is output 0 of the last node; the
 * outputs of the others are intermediates, and are put into the expressions that read them where
 * that computes nothing twice.
 *
 *   shape   nodes [count] ascending; 1 to WPK_FUSE_NODES_MAX
 *   owns    caller calls wpk_lowered_fini, after failures too
 *   errors  those of wpk_graph_lower; WPK_ENOSPC too large for a program, or more than
 *           WPK_FUSE_OPERANDS_MAX operands of several nodes */
WPK_MUST_CHECK wpk_err wpk_graph_fuse(const struct wpk_graph *graph, const int *nodes, int count,
                                      struct wpk_lowered *out, struct wpk_diag *diag);

/* Narrows values before they are moved. */

/* Compute a function of each element, whose result has fewer bytes, before a node that moves
 * elements, joins parts, or takes the largest of several, if nothing else reads that node: a
 * quantizer behind a Concat of convolutions becomes part of each convolution. The results are the
 * same to the bit. Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_narrow(struct wpk_graph *graph);

#endif
