/* SPDX-License-Identifier: Apache-2.0 */
/* Equal expressions over nodes, of which one may be cheaper.
 *
 * An expression is written with ONNX's operators: "MatMul(MatMul(x, y), z)". A letter is a value,
 * the same one wherever it stands. All nodes of one operator have the same attributes, in both
 * expressions. The operands of an Add or Mul match in either order. */
#ifndef WPK_MODEL_REWRITE_RULE_H
#define WPK_MODEL_REWRITE_RULE_H

#include "model/graph.h"

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

#endif
