/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel by what a person calls it: a fingerprint, its first digits as tables show them, or the
 * name of an operator in a job. */
#ifndef WPK_CLIENT_FIND_H
#define WPK_CLIENT_FIND_H

#include "client/session.h"

#define WPK_FIND_DIGITS_MIN 8 /* of a fingerprint that stand for it */

/* Could it be a fingerprint or the beginning of one? */
bool wpk_find_is_fingerprint(const char *text);

/* Is it a file? What looks like the path of one has to be there.   errors  WPK_EINVAL it is not */
WPK_MUST_CHECK wpk_err wpk_find_file(const char *what, bool *is_file, struct wpk_diag *diag);

/* Every kernel that is served of the operator, newest first, in the arena.
 *   errors  WPK_ENOENT none; WPK_EINVAL several operators begin so, which `diag` lists; of
 *           wpk_list_fetch */
WPK_MUST_CHECK wpk_err wpk_find_by_fingerprint(struct wpk_session *session, const char *fingerprint,
                                               struct wpk_arena *arena, struct wpk_api_kernel **out,
                                               int *count, struct wpk_diag *diag);

/* Which of an operator's kernels is meant; NULL and 0: what the newest has. */
struct wpk_find_wanted {
    const char *layouts;
    int threads;
    const char *accuracy;   /* class that the error has to fit; of schema/accuracy.h */
    const char *conditions; /* of schema/record.h */
};

#define WPK_FIND_OPTION_ROWS(w)                                                                    \
    WPK_ARGS_TEXT("accuracy", "strict|standard|fast",                                              \
                  "or times_direct=K: the fastest whose error fits", &(w).accuracy),               \
        WPK_ARGS_TEXT("conditions", "warm|cold-constants|cold", "the fastest that was timed so",   \
                      &(w).conditions)

/* Of kernels of one operator, at least one, newest first: of the newest that is as wanted and those
 * that differ from it in their class alone, what its class pins, else the fastest whose error fits
 * the class.
 *   errors  WPK_EINVAL, WPK_ERANGE a class or conditions that do not exist; WPK_ENOENT none fits */
WPK_MUST_CHECK wpk_err wpk_find_best(const struct wpk_api_kernel *kernels, int count,
                                     const struct wpk_find_wanted *wanted,
                                     const struct wpk_api_kernel **out, struct wpk_diag *diag);

/* The kernel of an operator: by its fingerprint the best that is served; by a name what the newest
 * job with such an operator found, or what is served of it by now.   errors  as of both above */
WPK_MUST_CHECK wpk_err wpk_find_kernel(struct wpk_session *session, const char *what,
                                       const struct wpk_find_wanted *wanted,
                                       struct wpk_arena *arena, const struct wpk_api_kernel **out,
                                       struct wpk_diag *diag);

#endif
