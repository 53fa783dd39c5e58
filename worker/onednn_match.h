/* SPDX-License-Identifier: Apache-2.0 */
/* Which of oneDNN's primitives computes a program, if any: found in the program's structure, not
 * in the operator's name. Pure; knows nothing of the library but what its primitives mean.
 *
 * A match may be generous where a program is computed slightly differently from the primitive (a
 * variance as E[x^2] - E[x]^2): the runner verifies a vendor's result as it verifies ours. */
#ifndef WPK_WORKER_ONEDNN_MATCH_H
#define WPK_WORKER_ONEDNN_MATCH_H

#include "op/program.h"
#include "schema/recipe.h"

#define WPK_ONEDNN_SPATIAL_MAX 3

/* Find the recipe. Tensors have the program's names and are row-major; nothing is the primitive's
 * to choose.
 *   errors  WPK_EUNSUPPORTED no primitive computes it, as far as we can see */
WPK_MUST_CHECK wpk_err wpk_onednn_match(const struct wpk_program *program,
                                        struct wpk_recipe *out);

#endif
