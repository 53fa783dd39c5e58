/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_check.h"

#include "op/accuracy.h"
#include "op/cost.h"
#include "op/direct.h"
#include "op/notation.h"
#include "op/reference.h"
#include "schema/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 65536
#define POINTS_MIN 256
#define ITERATIONS_MAX 4e9 /* of all points: some seconds */
#define DIRECT_SET 1       /* names the draw of direct's last places; any number does */

/* Everything as doubles, at the points that are compared. */
struct comparison {
    struct wpk_program program;
    struct wpk_reference_args args; /* owned arrays */
    int64_t count;
    int64_t *points;   /* owned; [count][rank] */
    double *reference; /* owned; [count] */
    double *direct;    /* owned; [count] */
    double *magnitude; /* owned; [count]: the sum of absolute terms */
    double *value;     /* owned; [count]: the kernel's */
};

static void fini(struct comparison *c)
{
    for (int i = 0; i < WPK_TENSORS_MAX; i++) {
        free((void *)(uintptr_t)c->args.tensor[i]);
    }
    free(c->points);
    free(c->reference);
    free(c->direct);
    free(c->magnitude);
    free(c->value);
    wpk_program_fini(&c->program);
}

static wpk_err widen_arguments(const struct wpk_run_tensors *tensors, struct comparison *c,
                               struct wpk_diag *diag)
{
    for (int i = 0; i < tensors->input_count + tensors->constant_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        const struct wpk_tensor_type *type = &tensor->argument->type;
        int id = wpk_program_find_tensor(&c->program, tensor->argument->name);
        if (id < 0) {
            wpk_diag_set(diag, "the kernel's operator has no tensor %s; get the kernel again",
                         tensor->argument->name);
            return WPK_ECORRUPT;
        }
        double *wide = malloc((size_t)wpk_tensor_type_elements(type) * sizeof(*wide));
        if (wide == NULL) {
            return WPK_ENOMEM;
        }
        wpk_convert_widen(type->dtype, tensor->dense, wpk_tensor_type_elements(type), wide);
        c->args.tensor[id] = wide;
    }
    return WPK_OK;
}

/* Points at even distances over the whole output. */
static wpk_err choose_points(const struct wpk_run_tensor *output, struct comparison *c)
{
    const struct wpk_tensor_type *type = &output->argument->type;
    int64_t elements = wpk_tensor_type_elements(type);
    struct wpk_cost cost = {0};

    wpk_cost(&c->program, &cost);
    double most = ITERATIONS_MAX / (cost.flops / (double)elements + 1);
    most = most < POINTS_MIN ? POINTS_MIN : most > POINTS_MAX ? POINTS_MAX : most;
    c->count = (double)elements < most ? elements : (int64_t)most;
    size_t count = (size_t)c->count;
    c->points = calloc(count * (size_t)(type->rank > 0 ? type->rank : 1), sizeof(*c->points));
    c->reference = calloc(count, sizeof(double));
    c->direct = calloc(count, sizeof(double));
    c->magnitude = calloc(count, sizeof(double));
    c->value = calloc(count, sizeof(double));
    if (c->points == NULL || c->reference == NULL || c->direct == NULL || c->magnitude == NULL ||
        c->value == NULL) {
        return WPK_ENOMEM;
    }
    for (int64_t i = 0; i < c->count; i++) {
        int64_t element = (int64_t)((double)i * ((double)elements / (double)c->count));
        const char *at =
            (const char *)output->dense + (size_t)element * wpk_dtype_size(type->dtype);
        wpk_convert_widen(type->dtype, at, 1, &c->value[i]);
        for (int d = type->rank - 1; d >= 0; d--) {
            c->points[i * type->rank + d] = element % type->extent[d];
            element /= type->extent[d];
        }
    }
    return WPK_OK;
}

/* NaN meets NaN, and an infinity the same one: those are no errors, anything else there is. */
static double error_of(double value, double wanted)
{
    if ((isnan(value) && isnan(wanted)) || value == wanted) {
        return 0;
    }
    return isfinite(value) && isfinite(wanted) ? fabs(value - wanted) : INFINITY;
}

/* What direct evaluation errs by on inputs of such size: rounding moves a sum by about half a unit
 * of the sum of its absolute terms. For inputs on which it is exact: multiples of 1/8, say. */
static double typical_error(const struct comparison *c, enum wpk_dtype dtype)
{
    double squares = 0;
    int64_t count = 0;

    for (int64_t i = 0; i < c->count; i++) {
        if (isfinite(c->magnitude[i]) && c->magnitude[i] < WPK_REFERENCE_STEP) {
            squares += c->magnitude[i] * c->magnitude[i];
            count++;
        }
    }
    return count > 0 ? wpk_accuracy_unit(dtype) / 2 * sqrt(squares / (double)count) : 0;
}

static void compare(const struct comparison *c, enum wpk_dtype dtype, struct wpk_accuracy accuracy,
                    struct wpk_run_check *out)
{
    struct wpk_accuracy_sums ours = {0};
    struct wpk_accuracy_sums direct = {0};
    struct wpk_accuracy_errors errors = {0};
    double largest = 0;

    wpk_accuracy_add(&ours, c->value, c->reference, c->magnitude, c->count);
    wpk_accuracy_add(&direct, c->direct, c->reference, c->magnitude, c->count);
    for (int64_t i = 0; i < c->count; i++) {
        largest = fmax(largest, error_of(c->value[i], c->reference[i]));
    }
    double rms = ours.count > 0 ? sqrt(ours.value / (double)ours.count) : 0;
    double yardstick = wpk_accuracy_error(&direct);
    yardstick = yardstick > 0 ? yardstick : typical_error(c, dtype);
    wpk_accuracy_fold(&errors, dtype, &ours, yardstick);
    *out = (struct wpk_run_check){
        .points = c->count,
        .rms = rms,
        .of_rms = wpk_accuracy_of_rms(&ours),
        .max_of_rms = largest > 0 ? fmin(largest / rms, DBL_MAX) : 0,
        .times_direct = errors.times_direct,
        .allowed = accuracy.times_direct * (1 + 3 / sqrt((double)c->count)),
    };
    /* Of integers, and of zeros alone, every bit has to be right. */
    out->passed = wpk_dtype_is_float(dtype) && yardstick > 0
                      ? out->times_direct <= out->allowed && isfinite(largest)
                      : largest == 0;
}

wpk_err wpk_run_check(const char *op, const struct wpk_run_tensors *tensors,
                      struct wpk_accuracy accuracy, struct wpk_run_check *out,
                      struct wpk_diag *diag)
{
    struct comparison *c = calloc(1, sizeof(*c)); /* a program is too large for a stack */
    const struct wpk_run_tensor *output =
        &tensors->tensor[tensors->input_count + tensors->constant_count];

    if (c == NULL) {
        return WPK_ENOMEM;
    }
    if (tensors->output_count != 1) {
        wpk_diag_set(diag,
                     "--check compares one output, and the kernel has %d; run it without --check",
                     tensors->output_count);
        free(c);
        return WPK_EUNSUPPORTED;
    }
    wpk_err err = wpk_program_parse(op, &c->program, diag);
    if (err == WPK_OK) {
        err = widen_arguments(tensors, c, diag);
    }
    if (err == WPK_OK) {
        err = choose_points(output, c);
    }
    if (err == WPK_OK) {
        err = wpk_reference_run_at(&c->program, &c->args, c->points, c->count, c->reference,
                                   c->magnitude, diag);
    }
    if (err == WPK_OK) {
        err = wpk_direct_run_at(&c->program, &c->args, DIRECT_SET, c->points, c->count, c->direct,
                                diag);
    }
    if (err == WPK_OK) {
        compare(c, output->argument->type.dtype, accuracy, out);
    }
    fini(c);
    free(c);
    return err;
}
