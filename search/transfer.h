/* SPDX-License-Identifier: Apache-2.0 */
/* Reusing a candidate that was found for one shape of an operator, or with other borders of its
 * tensors, on another one. */
#ifndef WPK_SEARCH_TRANSFER_H
#define WPK_SEARCH_TRANSFER_H

#include "search/space.h"

/* Check that the text of a candidate, found for another shape, is a legal candidate of this space,
 * and fill `out` with it. Every gene is taken as it stands: none is left out, added, rounded or
 * repaired, because a changed candidate has never been measured.
 *
 *   shape   out may be NULL
 *   errors  WPK_EMISMATCH the candidate does not fit, with the gene or the rule in `diag` */
wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                       struct wpk_candidate *out, struct wpk_diag *diag);

/* Make a legal candidate of this space that is as near to the text of one of another shape as it
 * can be: of the same algorithm, and of the same layout if there is one. Of a size that is no
 * choice here the nearest one is taken, by the logarithm; other genes that are not the same here
 * stay as they are in the variant's first constructed candidate. Then the candidate is repaired.
 *
 *   errors  WPK_EMISMATCH another version, or no such algorithm, with the reason in `diag`;
 *           WPK_EEXHAUSTED no legal candidate was found; WPK_ENOMEM */
wpk_err wpk_space_adapt(const struct wpk_space *space, const char *candidate,
                        struct wpk_candidate *out, struct wpk_diag *diag);

#endif
