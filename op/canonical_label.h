/* SPDX-License-Identifier: Apache-2.0 */
/* Labels that give the parts of a program an order: they depend on structure alone, never on names
 * or on how operands were ordered. The program is in normal form (canonical_normal.h).
 *
 * A node's label hashes its operation and its operands' labels, commutative operands as a
 * multiset; a chain of one associative operation counts as one node with many operands. What
 * remains is to tell inputs, and reduction axes of one stage, apart, by colour refinement: the
 * label of each takes in where it is read, that is the operations and operands on the way from
 * the output, until no round tells more apart. In one round each takes in the label of the whole
 * (program, stage) with just this one marked. Those still equal are taken for symmetric; one of
 * those with the smallest label is set apart, and refinement goes on.
 *
 * Labels order and never merge: two different things with one label, which 64 bits allow and
 * which can be constructed, stay two things. Their order is then the one they were written in, so
 * that two spellings of the program may differ: a search is run twice, never a wrong kernel
 * served. The same holds for contrived programs, built like strongly regular graphs, in which
 * equal labels do not mean symmetry. */
#ifndef WPK_OP_CANONICAL_LABEL_H
#define WPK_OP_CANONICAL_LABEL_H

#include "op/program.h"

struct wpk_labels {
    const struct wpk_program *program;
    bool family;                    /* extents do not count */
    const struct wpk_labels *exact; /* of the same program, or NULL: see wpk_labels_init */
    bool live[WPK_STAGES_MAX];      /* some output depends on it */
    bool used[WPK_TENSORS_MAX];
    uint64_t tensor[WPK_TENSORS_MAX];
    uint64_t axis[WPK_STAGES_MAX][WPK_AXES_MAX];
    uint64_t *node;       /* owned, [node_count] */
    uint64_t *context;    /* owned, [node_count] where in its stage a node stands */
    unsigned *generation; /* owned, [node_count] node[i] is valid when it is `current` */
    unsigned current;
    bool *frozen; /* owned, [node_count] a chain of literals alone */
};

/* Label everything of `program`. With `exact`, the program's labels by everything, label by what
 * it shares with its family: extents do not count, but say which of several equal things comes
 * first, so that the order of the program's own extents does not depend on how it was written.
 *   errors  WPK_ENOMEM; caller calls wpk_labels_fini after success */
wpk_err wpk_labels_init(struct wpk_labels *labels, const struct wpk_program *program,
                        const struct wpk_labels *exact);
void wpk_labels_fini(struct wpk_labels *labels);

/* The label of a node of stage `s`. */
uint64_t wpk_labels_node(struct wpk_labels *labels, int s, int node);

/* Do the operands of this node come in an order of their own? Those of a chain of literals stay as
 * they are: in another order some might be folded. */
bool wpk_labels_sorts(const struct wpk_labels *labels, int node);
/* Visit the operands of such a node, chains flattened. */
typedef void (*wpk_chain_visit)(int node, void *user);
void wpk_labels_walk_chain(const struct wpk_labels *labels, int node, wpk_chain_visit visit,
                           void *user);

#endif
