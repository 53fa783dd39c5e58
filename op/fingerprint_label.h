/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the fingerprint: labels that depend on structure alone, never on names or order.
 *
 * A node's label hashes its operation and its operands' labels, commutative operands as a
 * multiset; chains of one associative operation count as one node with many operands, and affine
 * indices as sums of axes. What remains is to tell inputs, and reduction axes of one stage, apart.
 * Each gets the label of the whole (program, stage) with just this one marked, until no round
 * tells more apart; those still equal are symmetric, so any one of them may be set apart next.
 * (Contrived programs exist, built like strongly regular graphs, for which equal labels do not
 * mean symmetry. Then two orders may give two fingerprints: a search is run twice, never a wrong
 * kernel served.) */
#ifndef WPK_OP_FINGERPRINT_LABEL_H
#define WPK_OP_FINGERPRINT_LABEL_H

#include "op/program.h"

/* Operands of a node after flattening: chains are followed into operands of at most half this. */
#define WPK_LABEL_OPERANDS_MAX 128

struct wpk_labels {
    const struct wpk_program *program;
    bool family;               /* extents do not count */
    const struct wpk_labels *exact; /* of the same program, or NULL: see wpk_labels_init */
    bool live[WPK_STAGES_MAX]; /* some output depends on it */
    bool used[WPK_TENSORS_MAX];
    uint64_t tensor[WPK_TENSORS_MAX];
    uint64_t axis[WPK_STAGES_MAX][WPK_AXES_MAX];
    /* Of the nodes of one stage at a time; owned, [node_count]. */
    uint64_t *node;
    unsigned *generation; /* node[i] is valid when generation[i] == current */
    unsigned current;
    int *leaves; /* operands of the chain a node heads; 0: not counted yet */
};

/* Label everything of `program`; afterwards equal labels mean "the same". With `exact`, the
 * program's labels by everything, label by what it shares with its family: extents do not count,
 * but say which of several equal things comes first, so that the order of the program's own
 * extents does not depend on how it was written.
 *   errors  WPK_ENOMEM; caller calls wpk_labels_fini after success */
wpk_err wpk_labels_init(struct wpk_labels *labels, const struct wpk_program *program,
                        const struct wpk_labels *exact);
void wpk_labels_fini(struct wpk_labels *labels);

/* Make node labels those of this stage. */
void wpk_labels_enter(struct wpk_labels *labels);
/* The label of a node of stage `s`, which was entered last. */
uint64_t wpk_labels_node(struct wpk_labels *labels, int s, int node);

/* Operands of a binary node, chains flattened: fills `operands`, returns how many. */
int wpk_labels_operands(struct wpk_labels *labels, int node, int operands[WPK_LABEL_OPERANDS_MAX]);
bool wpk_labels_commutes(enum wpk_binary op);
/* An i64 node that is a sum of axes. */
bool wpk_labels_affine(const struct wpk_program *program, int node, struct wpk_affine *out);

#endif
