/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the tile sizes of minimal filtering that are worth a trial. */
#ifndef WPK_IR_DERIVE_WINOGRAD_CHOICE_H
#define WPK_IR_DERIVE_WINOGRAD_CHOICE_H

#include "ir/derive/derive.h"

#define WPK_WINOGRAD_CHOICES_MAX 8

struct wpk_winograd_choice {
    int64_t m[WPK_WINOGRAD_PAIRS_MAX];
    double operations; /* expected; 1: as many as direct evaluation */
    /* Expected errors; 1: the error of direct evaluation. The squares of both add up. */
    double error;      /* of sums whose terms are added one after the other */
    double error_rest; /* of the transforms, whose error does not depend on the sums */
    double terms;      /* of each sum */
};

/* Fill `out` with tile sizes for wpk_derive_winograd_per_axis, most accurate first. Each is cheaper
 * by 4 % or more than all that are more accurate, direct evaluation included.
 *   shape   out [WPK_WINOGRAD_CHOICES_MAX]; returns how many were filled, 0 where minimal filtering
 *           does not apply or does not pay */
int wpk_winograd_choices(struct wpk_program *program, int stage, struct wpk_winograd_choice *out);

#endif
