/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate to a schedule: program + genes -> packed program + nest, without I/O. */
#ifndef WPK_TARGET_LOWER_H
#define WPK_TARGET_LOWER_H

#include "nest/schedule.h"
#include "search/space.h"

/* Make the schedule of a candidate.
 *   owns    caller calls wpk_schedule_fini
 *   errors  WPK_EINVAL the candidate breaks a rule; WPK_ENOMEM */
wpk_err wpk_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  struct wpk_schedule *out, struct wpk_diag *diag);

#endif
