/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products whose terms join one after the other, in the order of the reduction axes, and
 * round each time.
 *
 * Lanes along an output axis keep that order by themselves: each lane has a point of its own. Lanes
 * along the last reduction axis hold consecutive terms, which are folded step by step. Lanes along
 * another reduction axis hold terms that lie apart: they wait in `terms` until all are there. */
#include "ir/reference/tape.h"

#include <stdlib.h>
#include <string.h>

#define TERMS_MAX ((int64_t)1 << 22) /* 32 MiB of doubles */

static bool lane_is_reduced(const struct wpk_tape *tape)
{
    return tape->lane_axis >= tape->stage->rank;
}

static bool sums_f32(const struct wpk_tape *tape)
{
    return tape->stage->reduction == WPK_REDUCE_SUM && tape->stage->accumulator == WPK_F32;
}

static int64_t count_terms(const struct wpk_stage *stage)
{
    int64_t count = 1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        count = count > TERMS_MAX ? count : count * stage->axes[a].extent;
    }
    return count;
}

bool wpk_order_fits(const struct wpk_stage *stage)
{
    return count_terms(stage) <= TERMS_MAX;
}

wpk_err wpk_order_new(struct wpk_tape *tape)
{
    const struct wpk_stage *stage = tape->stage;
    if (!tape->ordered || !lane_is_reduced(tape) || tape->lane_axis == stage->axis_count - 1) {
        return WPK_OK;
    }
    WPK_ASSERT(wpk_order_fits(stage));
    int64_t stride = 1;
    for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
        tape->term_stride[a] = stride;
        stride *= stage->axes[a].extent;
    }
    tape->term_count = stride;
    tape->terms = malloc((size_t)stride * sizeof *tape->terms);
    return tape->terms != NULL ? WPK_OK : WPK_ENOMEM;
}

static double identity(const struct wpk_tape *tape)
{
    return tape->stage->reduction == WPK_REDUCE_PROD ? 1.0 : 0.0;
}

void wpk_order_begin(struct wpk_tape *tape)
{
    tape->total = identity(tape);
    for (int i = 0; i < tape->lanes_most; i++) {
        tape->sum[i] = identity(tape);
        tape->sum_f32[i] = 0.0f;
    }
}

static void add_terms(struct wpk_tape *tape, const double *row)
{
    const struct wpk_stage *stage = tape->stage;
    if (!lane_is_reduced(tape)) {
        wpk_lanes_join(stage->reduction, stage->accumulator, tape->lanes, row, tape->sum);
        return;
    }
    if (tape->terms == NULL) {
        tape->total =
            wpk_lanes_fold(stage->reduction, stage->accumulator, tape->lanes, row, tape->total);
        return;
    }
    double *at = tape->terms;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        at += tape->axis_value[a] * tape->term_stride[a];
    }
    for (int i = 0; i < tape->lanes; i++) {
        at[i * tape->term_stride[tape->lane_axis]] = row[i];
    }
}

void wpk_order_add(struct wpk_tape *tape, const double *a, const double *b)
{
    if (b == NULL) {
        add_terms(tape, a);
        return;
    }
    bool uniform = tape->sparse; /* the first factor is one number */
    if (!lane_is_reduced(tape) && sums_f32(tape)) {
        wpk_lanes_multiply_add_f32(tape->lanes, uniform, a, b, tape->sum_f32);
        return;
    }
    double row[WPK_TAPE_LANES];
    for (int i = 0; i < tape->lanes; i++) {
        row[i] = a[uniform ? 0 : i] * b[i];
    }
    wpk_lanes_round(tape->stage->accumulator, tape->lanes, row);
    add_terms(tape, row);
}

void wpk_order_end(struct wpk_tape *tape)
{
    const struct wpk_stage *stage = tape->stage;
    if (tape->terms != NULL) {
        tape->total = wpk_lanes_fold(stage->reduction, stage->accumulator, tape->term_count,
                                     tape->terms, identity(tape));
    }
    if (lane_is_reduced(tape)) {
        tape->sum[0] = tape->total;
    } else if (sums_f32(tape) && tape->factor[1] >= 0) {
        for (int i = 0; i < tape->lanes; i++) {
            tape->sum[i] = (double)tape->sum_f32[i];
        }
    }
}
