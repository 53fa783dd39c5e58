/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel by what a person calls it: a fingerprint, its first digits as tables show them, or the
 * name of an operator in a job. */
#ifndef WPK_CLIENT_FIND_H
#define WPK_CLIENT_FIND_H

#include "client/session.h"

#define WPK_FIND_DIGITS_MIN 8 /* of a fingerprint that stand for it */

/* Could it be a fingerprint or the beginning of one? */
bool wpk_find_is_fingerprint(const char *text);

/* Every kernel that is served of the operator, newest first, in the arena.
 *   errors  WPK_ENOENT none; WPK_EINVAL several operators begin so, which `diag` lists; of
 *           wpk_list_fetch */
WPK_MUST_CHECK wpk_err wpk_find_by_fingerprint(struct wpk_session *session, const char *fingerprint,
                                               struct wpk_arena *arena, struct wpk_api_kernel **out,
                                               int *count, struct wpk_diag *diag);

/* The kernel of an operator: by its fingerprint the newest that is served; by a name what the
 * newest job with such an operator found, or what is served of it by now.   errors  as above */
WPK_MUST_CHECK wpk_err wpk_find_kernel(struct wpk_session *session, const char *what,
                                       struct wpk_arena *arena, const struct wpk_api_kernel **out,
                                       struct wpk_diag *diag);

#endif
