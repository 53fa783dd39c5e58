/* SPDX-License-Identifier: Apache-2.0 */
/* Follows an axis of a program's output backwards through its equations. */
#ifndef WPK_MODEL_REWRITE_TRACE_H
#define WPK_MODEL_REWRITE_TRACE_H

#include "ir/program.h"

#define WPK_TRACE_NONE (-1)  /* the axis has no part in it */
#define WPK_TRACE_MIXED (-2) /* another index has the axis, too */
#define WPK_TRACE_UNREAD (-3)

/* The dimension of the load that `axis` alone runs over, while no other index has it. */
int wpk_trace_load(const struct wpk_program *program, const struct wpk_node *load, int axis);

/* Find the dimension of each tensor that output axis `axis` runs over.
 *   shape   dims [tensor_count]; WPK_TRACE_NONE: read, but not by that axis
 *   returns false: a tensor is read by it in another way, or an expression has an axis */
bool wpk_trace_dims(const struct wpk_program *program, int axis, int *dims);

#endif
