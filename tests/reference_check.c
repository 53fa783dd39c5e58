/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/reference_check.h"

#include "tests/simple_interpreter.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Relative to the magnitude, which is a bound itself and need not be exact. */
#define VALUE_CLOSE 1e-12
#define MAGNITUDE_CLOSE 1e-9

double *wpk_check_values(struct wpk_rng *rng, const struct wpk_tensor *tensor)
{
    int64_t count = wpk_tensor_elements(tensor);
    double *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        switch (tensor->dtype) {
        case WPK_BOOL:
            values[i] = (double)wpk_rng_below(rng, 2);
            break;
        case WPK_U8:
            values[i] = (double)wpk_rng_below(rng, 256);
            break;
        case WPK_I8:
            values[i] = (double)wpk_rng_between(rng, -128, 127);
            break;
        case WPK_I16:
            values[i] = (double)wpk_rng_between(rng, INT16_MIN, INT16_MAX);
            break;
        case WPK_I32:
            values[i] = (double)wpk_rng_between(rng, INT32_MIN, INT32_MAX);
            break;
        case WPK_I64: /* a fifth of any size: sums and products of them wrap */
            values[i] = wpk_rng_chance(rng, 0.2) ? (double)(int64_t)wpk_rng_next(rng)
                                                 : (double)wpk_rng_between(rng, -1000, 1000);
            break;
        default:
            values[i] = 2.0 * wpk_rng_unit(rng) - 1.0;
        }
    }
    return values;
}

static void assert_close(const char *what, int64_t at, double got, double expected,
                         double tolerance)
{
    /* the magnitudes of a long product overflow: then there is nothing to compare with */
    if (got != expected && isfinite(tolerance) && !(fabs(got - expected) <= tolerance)) {
        fail_msg("%s of point %lld: %.17g, expected %.17g", what, (long long)at, got, expected);
    }
}

void wpk_check_points(const struct wpk_program *program, const struct wpk_reference_args *args,
                      const double *value, const double *magnitude)
{
    const struct wpk_tensor *out = &program->tensors[wpk_program_output(program)];
    int64_t elements = wpk_tensor_elements(out);
    int64_t step = elements / 50 + 1;
    for (int64_t i = 0; i < elements; i += step) {
        int64_t point[WPK_RANK_MAX] = {0};
        int64_t rest = i;
        for (int d = out->rank - 1; d >= 0; d--) {
            point[d] = rest % out->extent[d];
            rest /= out->extent[d];
        }
        double v;
        double m;
        assert_int_equal(wpk_reference_run_at(program, args, point, 1, &v, &m, NULL), WPK_OK);
        assert_close("value at", i, v, value[i], VALUE_CLOSE * magnitude[i]);
        assert_close("magnitude at", i, m, magnitude[i], MAGNITUDE_CLOSE * magnitude[i]);
    }
}

/* The interpreter's values and magnitudes, together and the values alone. */
static void check_whole(const struct wpk_program *program, const struct wpk_reference_args *args,
                        const double *value, const double *magnitude)
{
    struct wpk_diag diag = {0};
    int64_t elements = wpk_tensor_elements(&program->tensors[wpk_program_output(program)]);
    double *got = malloc((size_t)elements * 3 * sizeof *got);
    assert_non_null(got);
    double *got_magnitude = got + elements;
    double *alone = got_magnitude + elements;
    assert_int_equal(wpk_reference_run(program, args, got, got_magnitude, &diag), WPK_OK);
    assert_int_equal(wpk_reference_run(program, args, alone, NULL, &diag), WPK_OK);
    for (int64_t i = 0; i < elements; i++) {
        assert_close("value", i, got[i], value[i], VALUE_CLOSE * magnitude[i]);
        assert_close("magnitude", i, got_magnitude[i], magnitude[i],
                     MAGNITUDE_CLOSE * magnitude[i]);
        assert_close("value alone", i, alone[i], value[i], VALUE_CLOSE * magnitude[i]);
    }
    free(got);
}

void wpk_check_reference(const struct wpk_program *program, uint64_t seed)
{
    struct wpk_diag diag = {0};
    if (wpk_program_validate(program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed);
    struct wpk_reference_args args = {.tensor = {NULL}};
    double *own[WPK_TENSORS_MAX] = {0};
    for (int t = 0; t < program->tensor_count; t++) {
        enum wpk_role role = program->tensors[t].role;
        if (role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT) {
            args.tensor[t] = own[t] = wpk_check_values(&rng, &program->tensors[t]);
        }
    }
    struct wpk_simple_values expected;
    wpk_simple_run(program, args.tensor, &expected);
    int out = wpk_program_output(program);
    check_whole(program, &args, expected.value[out], expected.magnitude[out]);
    wpk_check_points(program, &args, expected.value[out], expected.magnitude[out]);
    wpk_simple_values_fini(&expected);
    for (int t = 0; t < program->tensor_count; t++) {
        free(own[t]);
    }
}
