/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/accuracy.h"

#include "ir/reference/direct.h"
#include "ir/reference/reference.h"
#include "ir/reference/tape.h"

#include <float.h>
#include <math.h>

#define FRESH_SIGMAS 3.0
#define FLOOR_UNITS 0.25 /* of u rms(y64): an honest rounding alone errs by more */

double wpk_accuracy_unit(enum wpk_dtype dtype)
{
    static const double units[WPK_DTYPE_COUNT] = {
        [WPK_F64] = 0x1p-53, [WPK_F32] = 0x1p-24, [WPK_F16] = 0x1p-11, [WPK_BF16] = 0x1p-8};
    return units[dtype];
}

double wpk_accuracy_largest(enum wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_F64:
        return DBL_MAX;
    case WPK_F32:
        return (double)FLT_MAX;
    case WPK_F16:
        return 65504;
    case WPK_BF16:
        return 0x1.fep127;
    default:
        return (double)INFINITY;
    }
}

void wpk_accuracy_add(struct wpk_accuracy_sums *sums, const double *y, const double *y64,
                      const double *magnitude, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bool beside_step = magnitude != NULL && magnitude[i] >= WPK_REFERENCE_STEP;
        if (!isfinite(y64[i]) || beside_step) {
            continue;
        }
        double error = y[i] - y64[i];
        sums->error += isfinite(error) ? error * error : (double)INFINITY;
        sums->value += y64[i] * y64[i];
        sums->count++;
    }
}

static double rms(double sum, int64_t count)
{
    return count > 0 ? fmin(sqrt(sum / (double)count), DBL_MAX) : 0;
}

double wpk_accuracy_error(const struct wpk_accuracy_sums *sums)
{
    return rms(sums->error, sums->count);
}

static double ratio(double error, double to)
{
    if (error >= DBL_MAX) {
        return DBL_MAX; /* some value is no number */
    }
    return error > 0 ? fmin(error / to, DBL_MAX) : 0;
}

double wpk_accuracy_of_rms(const struct wpk_accuracy_sums *sums)
{
    return ratio(wpk_accuracy_error(sums), rms(sums->value, sums->count));
}

void wpk_accuracy_fold(struct wpk_accuracy_errors *errors, enum wpk_dtype output,
                       const struct wpk_accuracy_sums *sums, double direct)
{
    double unit = wpk_accuracy_unit(output);
    if (unit == 0 || direct == 0 || sums->count == 0) {
        return;
    }
    double floor = FLOOR_UNITS * unit * rms(sums->value, sums->count);
    double times = ratio(wpk_accuracy_error(sums), fmax(direct, floor));
    if (times >= errors->times_direct) {
        errors->times_direct = times;
        errors->count = sums->count;
    }
}

bool wpk_accuracy_stays_in(struct wpk_accuracy accuracy, const struct wpk_accuracy_errors *fresh)
{
    double noise = fresh->count > 0 ? FRESH_SIGMAS / sqrt((double)fresh->count) : 0;
    return fresh->times_direct <= accuracy.times_direct * (1 + noise);
}

wpk_err wpk_direct_run(const struct wpk_program *program, const struct wpk_reference_args *args,
                       uint64_t set, double *value, struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic rounded = {.rounds = true, .seed = set};
    return wpk_evaluate(program, args, &rounded, value, NULL, diag);
}

wpk_err wpk_direct_run_at(const struct wpk_program *program, const struct wpk_reference_args *args,
                          uint64_t set, const int64_t *points, int64_t count, double *value,
                          struct wpk_diag *diag)
{
    const struct wpk_tape_arithmetic rounded = {.rounds = true, .seed = set};
    return wpk_evaluate_at(program, args, &rounded, points, count, value, NULL, diag);
}
