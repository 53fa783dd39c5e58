/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that become one, with those that read them. merge.h says which. */
#ifndef WPK_MODEL_REWRITE_JOINT_H
#define WPK_MODEL_REWRITE_JOINT_H

#include "model/graph.h"
#include "model/operator/operator.h"

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

#endif
