/* SPDX-License-Identifier: Apache-2.0 */
/* The validity of a nest whose entries are all stages of its program. */
#ifndef WPK_NEST_CHECK_H
#define WPK_NEST_CHECK_H

#include "nest/nest.h"

#define WPK_NEST_STATEMENTS_MAX 8192 /* unrolled, of one definition and the loops around it */
#define WPK_NEST_CODE_MAX 65536      /* their elements; the statements with the copies for tails */
#define WPK_NEST_STACK_BYTES_MAX (1 << 18) /* of all entries */
#define WPK_NEST_LANES_MAX 1024
#define WPK_NEST_DEPTH_MAX 32 /* loops of one definition */

/* Check the invariants of nest/nest.h, and that a back end can keep to the nest without computing
 * anything else than the program: every axis has its loops, steps divide where the tail says exact,
 * lanes are innermost, no serial loop is inside an unrolled one, nothing reads a stage outside of
 * the loop in which it is computed, bounded extents are what is needed, and unrolled statements
 * stay few. The error names the stage and the loop, with their position if they have one.
 *   errors  WPK_EINVAL; WPK_ENOMEM */
wpk_err wpk_nest_check(const struct wpk_nest *nest, struct wpk_diag *diag);

/* One definition of an entry whose nest is checked, and its loops. */

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

#endif
