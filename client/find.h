/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a kernel by a fingerprint, by its first digits as tables show them, or by the name of an
 * operator in a job. */
#ifndef WPK_CLIENT_FIND_H
#define WPK_CLIENT_FIND_H

#include "client/session.h"

#define WPK_FIND_DIGITS_MIN 8 /* fewest digits that stand for a fingerprint */

/* True if the text may be a fingerprint or the beginning of one. */
bool wpk_find_is_fingerprint(const char *text);

/* Find out whether `what` names a file: "-", or a file that exists.
 *   errors  WPK_EINVAL `what` looks like a path, and there is no such file */
wpk_err wpk_find_file(const char *what, bool *is_file, struct wpk_diag *diag);

/* Fetch every kernel that is served of an operator, newest first, into the arena.
 *   errors  WPK_ENOENT none; WPK_EINVAL several fingerprints begin with these digits, and `diag`
 *           lists them; those of wpk_list_fetch */
wpk_err wpk_find_by_fingerprint(struct wpk_session *session, const char *fingerprint,
                                struct wpk_arena *arena, struct wpk_api_kernel **out, int *count,
                                struct wpk_diag *diag);

/* Which of an operator's kernels is wanted. NULL and 0 stand for the value of the newest kernel. */
struct wpk_find_wanted {
    const char *layouts;
    int threads;
    const char *accuracy;   /* class that the error has to fit, as schema/accuracy.h writes it */
    const char *conditions; /* as schema/record.h writes them */
    const char *job;        /* what it found is wanted, whatever is served; with a name alone */
};

#define WPK_FIND_OPTION_ROWS(w)                                                                    \
    WPK_ARGS_TEXT("accuracy", "strict|standard|fast",                                              \
                  "or times_direct=K: the fastest whose error fits", &(w).accuracy),               \
        WPK_ARGS_TEXT("conditions", "warm|cold-constants|cold", "the fastest that was timed so",   \
                      &(w).conditions),                                                            \
        WPK_ARGS_TEXT("job", "JOB", "what this job found, though a faster one is served",          \
                      &(w).job)

/* Choose among the kernels of one operator. The newest one that is as wanted decides the key; the
 * choice is among kernels that differ from it in their class alone. A kernel that is pinned in the
 * wanted class wins, else the fastest whose error fits the class. If none fits, the newest one of a
 * wider class is chosen as `is_too_wide`: the vendor's implementation or the plain kernel in its
 * choice may fit. The chosen kernel's `found_for` becomes the wanted class.
 *   shape   kernels [count], count >= 1, newest first
 *   errors  WPK_EINVAL, WPK_ERANGE a class or conditions that do not exist; WPK_ENOENT none fits */
wpk_err wpk_find_best(struct wpk_api_kernel *kernels, int count,
                      const struct wpk_find_wanted *wanted, const struct wpk_api_kernel **out,
                      struct wpk_diag *diag);

/* WPK_ENOENT: the operator of the kernel is served, but not as asked. */
wpk_err wpk_find_none(const struct wpk_api_kernel *kernel, struct wpk_diag *diag);

/* Find the kernel of an operator. A fingerprint finds the best kernel that is served. A name finds
 * the kernel that is served now of the operator in the newest job, else the one the job found.
 * With wanted->job a name finds what that job found.
 *   errors  those of wpk_find_by_fingerprint and wpk_find_best */
wpk_err wpk_find_kernel(struct wpk_session *session, const char *what,
                        const struct wpk_find_wanted *wanted, struct wpk_arena *arena,
                        const struct wpk_api_kernel **out, struct wpk_diag *diag);

#endif
