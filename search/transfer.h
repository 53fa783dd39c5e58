/* SPDX-License-Identifier: Apache-2.0 */
/* Reusing a candidate that was found for one shape of an operator on another shape. */
#ifndef WPK_SEARCH_TRANSFER_H
#define WPK_SEARCH_TRANSFER_H

#include "search/space.h"

/* Check that the text of a candidate, found for another shape, is a legal candidate of this space,
 * and fill `out` with it. Every gene is taken as it stands: none is left out, added, rounded or
 * repaired, because a changed candidate has never been measured.
 *
 *   shape   out may be NULL
 *   errors  WPK_EMISMATCH the candidate does not fit, with the gene or the rule in `diag` */
WPK_MUST_CHECK wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                                      struct wpk_candidate *out, struct wpk_diag *diag);

#endif
