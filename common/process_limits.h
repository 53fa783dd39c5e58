/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the process that its user may have set lower than it needs. */
#ifndef WPK_COMMON_PROCESS_LIMITS_H
#define WPK_COMMON_PROCESS_LIMITS_H

#include "common/err.h"

#define WPK_LIMITS_STACK ((size_t)8 << 20)
#define WPK_LIMITS_STACK_MIN ((size_t)1 << 20)

/* Give the process, its threads and its children a stack of WPK_LIMITS_STACK bytes, if the hard
 * limit permits it: programs of operators lie on it. If the soft limit is raised, the program is
 * started again, because threads take the limit that the start found. To be called first in main.
 *
 *   errors  WPK_ESYSTEM  less than WPK_LIMITS_STACK_MIN is possible
 */
WPK_MUST_CHECK wpk_err wpk_limits_raise_stack(char **argv, struct wpk_diag *diag);

#endif
