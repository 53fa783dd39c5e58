/* SPDX-License-Identifier: Apache-2.0 */
/* What was found for one shape of a family, tried on another. */
#ifndef WPK_SEARCH_TRANSFER_H
#define WPK_SEARCH_TRANSFER_H

#include "search/space.h"

/* Is the whole candidate, found for another shape, a legal point of this space? Every gene is read
 * as it stands; none is left out, added, rounded or repaired: a mixture of parameters that nobody
 * measured is worth nothing. For several candidates derive the space once.
 *
 *   shape   out: the point, or NULL
 *   errors  WPK_EMISMATCH it is not, with the gene or the rule in `diag` */
WPK_MUST_CHECK wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                                      struct wpk_candidate *out, struct wpk_diag *diag);

/* The same for one candidate of a program on a device, with these threads and layouts. Deriving the
 * space is what it costs: milliseconds.
 *
 *   errors  besides: WPK_EUNSUPPORTED, WPK_EINVAL there is no space; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_candidate_fits(const struct wpk_program *program,
                                          const struct wpk_space_options *options,
                                          const char *candidate, struct wpk_diag *diag);

#endif
