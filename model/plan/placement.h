/* SPDX-License-Identifier: Apache-2.0 */
/* Where values lie in one block of memory, so that those that live at the same time do not meet. */
#ifndef WPK_MODEL_PLAN_PLACEMENT_H
#define WPK_MODEL_PLAN_PLACEMENT_H

#include "common/err.h"

#include <stdint.h>

struct wpk_placement {
    int64_t size;   /* bytes, a multiple of the alignment that the caller wants */
    int first;      /* the step that writes it */
    int last;       /* the last step that reads it; >= first */
    int64_t offset; /* set by wpk_placement_solve */
};

/* Set the offsets: the largest value first, each at the lowest place that is free while it lives.
 *
 *   shape   list [count]
 *   unit    returns the bytes of the block in *size
 *   errors  WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_placement_solve(struct wpk_placement *list, int count, int64_t *size);

#endif
