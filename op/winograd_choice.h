/* SPDX-License-Identifier: Apache-2.0 */
/* Which sizes of tiles are worth a trial. */
#ifndef WPK_OP_WINOGRAD_CHOICE_H
#define WPK_OP_WINOGRAD_CHOICE_H

#include "op/derive.h"

#define WPK_WINOGRAD_CHOICES_MAX 8

struct wpk_winograd_choice {
    int64_t m[WPK_WINOGRAD_PAIRS_MAX];
    double operations; /* expected, 1: direct evaluation's */
    /* Expected errors, 1: direct evaluation's. The squares of both add up. */
    double error;      /* of sums whose terms are added one after the other */
    double error_rest; /* of the transforms, however exact the sums */
};

/* Fill `out` with sizes of tiles for wpk_derive_winograd_per_axis, most accurate first: each is
 * cheaper by 4 % or more than all that are more accurate, direct evaluation among them.
 *   shape    out [WPK_WINOGRAD_CHOICES_MAX]
 *   returns  their number; 0 where minimal filtering does not apply or does not pay */
int wpk_winograd_choices(struct wpk_program *program, struct wpk_winograd_choice *out);

#endif
