/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that RNN, GRU and LSTM take by their names, as nodes. */
#ifndef WPK_MODEL_OPERATOR_ACTIVATION_H
#define WPK_MODEL_OPERATOR_ACTIVATION_H

#include "model/operator/compose.h"

#define WPK_ACTIVATIONS_MAX 6 /* of a node: three in both directions */

struct wpk_activation_function {
    int kind;
    float alpha, beta; /* of those that have them */
};

/* Read the attributes activations, activation_alpha and activation_beta of a node.
 *   shape   usual: names, separated by commas, of the functions where none are given
 *           out [count]
 *   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_activations_read(const struct wpk_graph_node *node, const char *usual,
                                            int count, struct wpk_activation_function *out,
                                            struct wpk_diag *diag);

/* Append what computes the function of x. */
int wpk_activation_apply(struct wpk_compose *c, const struct wpk_activation_function *activation,
                         int x);

#endif
