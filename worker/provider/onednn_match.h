/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the oneDNN primitive that computes a program. It is found by the program's structure, not
 * by an operator's name, and without the library: only the meaning of its primitives is used.
 *
 * A match may be generous where a program is computed slightly differently from the primitive (a
 * variance as E[x^2] - E[x]^2): the runner verifies a vendor's result as it verifies ours. */
#ifndef WPK_WORKER_PROVIDER_ONEDNN_MATCH_H
#define WPK_WORKER_PROVIDER_ONEDNN_MATCH_H

#include "ir/program.h"
#include "schema/recipe.h"

#define WPK_ONEDNN_SPATIAL_MAX 3

/* Fill `out` with the recipe. Tensors have the program's names and are row-major; the recipe lets
 * the primitive choose no layout.
 *   errors  WPK_EUNSUPPORTED no primitive that is known here computes the program */
WPK_MUST_CHECK wpk_err wpk_onednn_match(const struct wpk_program *program,
                                        struct wpk_recipe *out);

#endif
