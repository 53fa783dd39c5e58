/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms and windows against their definitions. */
#include "tests/model_case.h"

#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX 256

/* Element `k` of the transform of `count` numbers, of which `length` are taken, or zeros behind. */
static double complex transform(const double complex *x, int count, int length, int k, int sign)
{
    double complex sum = 0;
    for (int n = 0; n < count && n < length; n++) {
        double angle = 2 * 3.14159265358979323846 * k * n / length;
        sum += x[n] * (cos(angle) + sign * sin(angle) * I);
    }
    return sign > 0 ? sum / length : sum;
}

/* Transform the middle axis of x [2, count, 3, parts]. */
static void check_dft(int count, int length, int parts, bool is_inverse, bool is_half)
{
    double x[MAX], found[MAX], expected[MAX];
    char type[32], attributes[64], number[16];
    int to = is_half ? length / 2 + 1 : length;
    wpk_model_case_draw((unsigned)(count * 7 + parts), x, MAX);
    for (int line = 0; line < 6; line++) {
        double complex row[MAX];
        for (int n = 0; n < count; n++) {
            const double *at = x + (ptrdiff_t)((line / 3 * count + n) * 3 + line % 3) * parts;
            row[n] = at[0] + (parts == 2 ? at[1] : 0) * I;
        }
        for (int k = 0; k < to; k++) {
            double complex y = transform(row, count, length, k, is_inverse ? 1 : -1);
            double *at = expected + (ptrdiff_t)((line / 3 * to + k) * 3 + line % 3) * 2;
            at[0] = creal(y);
            at[1] = cimag(y);
        }
    }
    snprintf(type, sizeof(type), "f64[2,%d,3,%d]", count, parts);
    snprintf(attributes, sizeof(attributes), "inverse:i=%d onesided:i=%d", is_inverse, is_half);
    snprintf(number, sizeof(number), "%d", length);
    const struct wpk_model_input inputs[] = {{.type = type, .data = x},
                                             {.type = "i64[]", .values = number},
                                             {.type = "i64[]", .values = "1"}};
    assert_int_equal(wpk_model_case_compute("DFT", 20, attributes, inputs, 3, 0, found, MAX),
                     6 * to * 2);
    wpk_model_case_compare(attributes, found, expected, (int64_t)6 * to * 2);
}

static void transforms_are_sums_of_turned_numbers(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 2; parts++) {
        for (int length = 1; length <= 7; length++) { /* cut, whole, and with zeros behind */
            check_dft(5, length, parts, false, false);
            check_dft(5, length, parts, true, false);
        }
    }
    for (int length = 1; length <= 7; length++) {
        check_dft(5, length, 1, false, true); /* of real numbers a half says all */
    }
}

/* A half, whose other elements are the conjugates, becomes real numbers; a half that has more
 * elements than the length needs is cut. */
static void a_half_is_turned_back_into_real_numbers(void **state)
{
    (void)state;
    for (int length = 1; length <= 8; length++) {
        for (int more = 0; more <= 3; more++) {
            int half = length / 2 + 1, count = half + more;
            double x[8], parts[2 * 8], found[8];
            double complex row[8];
            char type[32], number[16];
            wpk_model_case_draw(11, x, length);
            wpk_model_case_draw(12, parts, 16); /* those behind the half are of no use */
            for (int n = 0; n < length; n++) {
                row[n] = x[n];
            }
            for (int k = 0; k < half; k++) {
                double complex y = transform(row, length, length, k, -1);
                parts[2 * k] = creal(y);
                parts[2 * k + 1] = cimag(y);
            }
            snprintf(type, sizeof(type), "f64[1,%d,2]", count);
            snprintf(number, sizeof(number), "%d", length);
            const struct wpk_model_input inputs[] = {{.type = type, .data = parts},
                                                     {.type = "i64[]", .values = number}};
            assert_int_equal(wpk_model_case_compute("DFT", 20, "inverse:i=1 onesided:i=1", inputs,
                                                    2, 0, found, 8),
                             length);
            wpk_model_case_compare(number, found, x, length);
        }
    }
}

/* Frames of 4 of 11, 3 apart: [1, 3, 4 or 3, 2]. */
static void frames_are_weighed_and_transformed(void **state)
{
    (void)state;
    enum { COUNT = 11, LENGTH = 4, STEP = 3, FRAMES = 3 };
    double x[COUNT], window[LENGTH], found[MAX], expected[MAX];
    wpk_model_case_draw(13, x, COUNT);
    wpk_model_case_draw(14, window, LENGTH);
    for (int i = 0; i < 4; i++) {
        bool is_half = i % 2 == 0, has_window = i / 2 != 0;
        int to = is_half ? LENGTH / 2 + 1 : LENGTH;
        for (int f = 0; f < FRAMES; f++) {
            double complex row[LENGTH];
            for (int n = 0; n < LENGTH; n++) {
                row[n] = x[f * STEP + n] * (has_window ? window[n] : 1);
            }
            for (int k = 0; k < to; k++) {
                double complex y = transform(row, LENGTH, LENGTH, k, -1);
                expected[(f * to + k) * 2] = creal(y);
                expected[(f * to + k) * 2 + 1] = cimag(y);
            }
        }
        const struct wpk_model_input inputs[] = {
            {.type = "f64[1,11]", .data = x},
            {.type = "i64[]", .values = "3"},
            {.type = has_window ? "f64[4]" : NULL, .data = window},
            {.type = "i64[]", .values = "4"}};
        int64_t count = wpk_model_case_compute(
            "STFT", 17, is_half ? "onesided:i=1" : "onesided:i=0", inputs, 4, 0, found, MAX);
        assert_int_equal(count, FRAMES * to * 2);
        wpk_model_case_compare("STFT", found, expected, count);
    }
}

static void windows_are_cosines(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        double a, b, c;
    } windows[] = {{"HannWindow", 0.5, 0.5, 0},
                   {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
                   {"BlackmanWindow", 0.42, 0.5, 0.08}};
    for (int i = 0; i < 6; i++) {
        for (int size = 2; size <= 7; size += 5) {
            struct wpk_buf inputs = {0}, expected = {0};
            bool is_periodic = i % 2 == 0;
            wpk_buf_printf(&inputs, "%d:i64[]", size);
            wpk_buf_printf(&expected, "f64[%d] ", size);
            for (int n = 0; n < size; n++) {
                double angle = 2 * 3.14159265358979323846 * n / (is_periodic ? size : size - 1);
                double value = windows[i / 2].a - windows[i / 2].b * cos(angle) +
                               windows[i / 2].c * cos(2 * angle);
                wpk_buf_printf(&expected, "%s%.17g", n > 0 ? "," : "", value);
            }
            const struct wpk_model_case cases[] = {
                {windows[i / 2].op, wpk_buf_text(&inputs),
                 is_periodic ? "output_datatype:i=11" : "output_datatype:i=11 periodic:i=0",
                 wpk_buf_text(&expected)}};
            WPK_MODEL_CASES(cases);
            wpk_buf_fini(&inputs);
            wpk_buf_fini(&expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms_are_sums_of_turned_numbers),
        cmocka_unit_test(a_half_is_turned_back_into_real_numbers),
        cmocka_unit_test(frames_are_weighed_and_transformed),
        cmocka_unit_test(windows_are_cosines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
