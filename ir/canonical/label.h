/* SPDX-License-Identifier: Apache-2.0 */
/* Labels by which the parts of a program are ordered. They depend on structure alone, not on names
 * or on the order of operands. The program is in normal form (ir/canonical/canonical.h).
 *
 * A node's label hashes its operation and its operands' labels, commutative operands as a multiset;
 * a chain of one associative operation counts as one node with many operands. Inputs, and the
 * reduction axes of one stage, are told apart by colour refinement: the label of each takes in
 * where it is read, that is the operations and operands on the way from the output, until a round
 * tells no more of them apart. In a further round each takes in the label of the whole (program or
 * stage) with only this one marked. Parts that are still equal are taken to be symmetric: one of
 * those with the smallest label is marked, and refinement goes on.
 *
 * Labels order parts and never merge them: two parts may have one label, by chance or because
 * somebody constructed them so, and stay two parts. Their order is then the order of writing, so
 * that two spellings of one program may have two canonical forms: a search is then run twice, but
 * no wrong kernel is served. The same holds for programs built like strongly regular graphs, in
 * which parts with equal labels need not be symmetric. */
#ifndef WPK_IR_CANONICAL_LABEL_H
#define WPK_IR_CANONICAL_LABEL_H

#include "ir/program.h"

struct wpk_labels {
    const struct wpk_program *program;
    bool family;                    /* labels do not depend on extents */
    const struct wpk_labels *exact; /* of the same program, or NULL: see wpk_labels_init */
    bool live[WPK_STAGES_MAX];      /* some output depends on the stage */
    bool used[WPK_TENSORS_MAX];
    uint64_t tensor[WPK_TENSORS_MAX];
    uint64_t axis[WPK_STAGES_MAX][WPK_AXES_MAX];
    uint64_t *node;       /* owned, [node_count] */
    uint64_t *context;    /* owned, [node_count] label of a node's position in its stage */
    unsigned *generation; /* owned, [node_count] node[i] is valid when it is `current` */
    unsigned current;
    bool *frozen; /* owned, [node_count] the node is a chain of literals only */
};

/* Label all parts of `program`. `exact` NULL: by structure and extents. Otherwise `exact` has those
 * labels, and the new ones do not depend on extents, except that `exact` orders parts whose new
 * labels are equal: so the order of extents does not depend on how the program was written.
 *   owns    caller calls wpk_labels_fini after success; program and exact are borrowed until then
 *   errors  WPK_ENOMEM */
wpk_err wpk_labels_init(struct wpk_labels *labels, const struct wpk_program *program,
                        const struct wpk_labels *exact);
void wpk_labels_fini(struct wpk_labels *labels);

/* The label of a node of stage `s`. */
uint64_t wpk_labels_node(struct wpk_labels *labels, int s, int node);

/* True if the operands of this node are ordered by label. The operands of a chain of literals keep
 * their order: in another one some might be folded. */
bool wpk_labels_sorts(const struct wpk_labels *labels, int node);
/* Visit the operands of such a node; a chain's operands count as its own. */
typedef void (*wpk_chain_visit)(int node, void *user);
void wpk_labels_walk_chain(const struct wpk_labels *labels, int node, wpk_chain_visit visit,
                           void *user);

#endif
