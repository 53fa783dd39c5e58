/* SPDX-License-Identifier: Apache-2.0 */
/* What was found for one shape of a family, tried on another. */
#ifndef WPK_SEARCH_TRANSFER_H
#define WPK_SEARCH_TRANSFER_H

#include "search/space.h"

/* Is the whole candidate, found for another shape, a legal point of this space? Every gene is read
 * as it stands; none is left out, added, rounded or repaired: a mixture of parameters that nobody
 * measured is worth nothing.
 *
 *   shape   out: the point, or NULL
 *   errors  WPK_EMISMATCH it is not, with the gene or the rule in `diag` */
WPK_MUST_CHECK wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                                      struct wpk_candidate *out, struct wpk_diag *diag);

#endif
