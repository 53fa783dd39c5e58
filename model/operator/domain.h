/* SPDX-License-Identifier: Apache-2.0 */
/* The values that a model's inputs are drawn from, for tests and timing: indices inside their axes,
 * masks of 0 and 1, operands in the domains of functions (ir/domain.h). */
#ifndef WPK_MODEL_OPERATOR_DOMAIN_H
#define WPK_MODEL_OPERATOR_DOMAIN_H

#include "ir/domain.h"
#include "model/graph.h"

/* Find the domains of the inputs of a graph whose shapes were inferred without problems.
 *   shape   out [input_count]
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_domains(const struct wpk_graph *graph, struct wpk_domain *out);

#endif
