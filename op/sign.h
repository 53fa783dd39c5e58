/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a value's sign, wherever it is computed. */
#ifndef WPK_OP_SIGN_H
#define WPK_OP_SIGN_H

#include "op/program.h"

/* True if the node is never more than 0: a literal; an element minus the maximum of elements of
 * the same tensor that it is one of, in the same type; such a node times a positive literal. False
 * where nothing is known. The node may be -inf or NaN. */
bool wpk_is_nonpositive(const struct wpk_program *program, int node);

#endif
