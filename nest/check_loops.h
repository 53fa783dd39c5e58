/* SPDX-License-Identifier: Apache-2.0 */
/* One definition of an entry whose nest is checked, and its loops. */
#ifndef WPK_NEST_CHECK_LOOPS_H
#define WPK_NEST_CHECK_LOOPS_H

#include "nest/check.h"

struct wpk_nest_subject {
    const struct wpk_nest *nest;
    const struct wpk_nest_entry *entry;
    const struct wpk_stage *stage;
    const struct wpk_nest_loops *loops; /* NULL: none of its definitions */
    struct wpk_diag *diag;
};

/* A size that is too large for any limit stays as it is. */
static inline void wpk_nest_multiply(int64_t *size, int64_t by)
{
    *size *= *size > INT32_MAX ? 1 : by;
}

/* Say what is wrong, of a loop, or -1: of the stage.   errors  WPK_EINVAL, always */
wpk_err wpk_nest_refuse(const struct wpk_nest_subject *s, int loop, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Every axis has its loops, whose steps and bindings are right, and which are not too many.
 *   errors  WPK_EINVAL */
wpk_err wpk_nest_check_loops(const struct wpk_nest_subject *s);

#endif
