/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's algorithm: where it applies, and that its matrices correlate. */
#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/derive/winograd.h"
#include "ir/notation/notation.h"
#include "tests/derive_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEED 20240611

static wpk_err winograd_of(const struct wpk_fixture_conv *conv, enum wpk_fixture_shape shape,
                           int64_t m)
{
    struct wpk_buf text = {0};
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    wpk_fixture_write(shape, conv, &text);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
    wpk_err err =
        wpk_derive_winograd(&program, wpk_contraction_find(&program), (const int64_t[]){m, m});
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
    return err;
}

static void test_winograd_applies_where_it_may(void **state)
{
    (void)state;
    const struct wpk_fixture_conv plain = {.n = 1,
                                           .c = 2,
                                           .k = 3,
                                           .h = 7,
                                           .w = 9,
                                           .r = 3,
                                           .s = 3,
                                           .stride = 1,
                                           .dilation = 1,
                                           .pad = 1};
    for (int shape = WPK_FIXTURE_CONV_2D; shape <= WPK_FIXTURE_DEPTHWISE; shape++) {
        for (int64_t m = 2; m <= 6; m++) {
            struct wpk_fixture_conv conv = plain;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m), WPK_OK);
            conv.stride = 2;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
            conv.stride = 1;
            conv.dilation = 2;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
            conv = plain;
            conv.r = conv.s = 1;
            assert_int_equal(winograd_of(&conv, (enum wpk_fixture_shape)shape, m),
                             WPK_EUNSUPPORTED);
        }
    }
    struct wpk_fixture_conv one = plain;
    one.r = 1; /* one pair is left: the 1-D form */
    assert_int_equal(winograd_of(&one, WPK_FIXTURE_CONV_2D, 4), WPK_OK);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_MATMUL, 4), WPK_EUNSUPPORTED);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_POOLING, 4), WPK_EUNSUPPORTED);
    assert_int_equal(winograd_of(&plain, WPK_FIXTURE_CONV_2D, 1), WPK_EUNSUPPORTED);
    struct wpk_fixture_conv wide = plain;
    wide.r = wide.s = 5; /* F(8,5) needs more points than there are */
    assert_int_not_equal(winograd_of(&wide, WPK_FIXTURE_CONV_2D, 8), WPK_OK);
}

static void test_winograd_matrices_correlate(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, SEED);
    enum { N = WPK_WINOGRAD_POINTS_MAX };
    for (int64_t m = 1; m <= N; m++) {
        for (int64_t r = 1; m + r - 1 <= N && r <= N; r++) {
            int64_t n = m + r - 1;
            double at[N * N], g[N * N], bt[N * N], data[N], filter[N];
            if (n < 2) {
                assert_int_equal(wpk_winograd_matrices(m, r, at, g, bt), WPK_ERANGE);
                continue;
            }
            assert_int_equal(wpk_winograd_matrices(m, r, at, g, bt), WPK_OK);
            for (int64_t i = 0; i < n; i++) {
                data[i] = 2 * wpk_rng_unit(&rng) - 1;
                filter[i] = 2 * wpk_rng_unit(&rng) - 1;
            }
            for (int64_t i = 0; i < m; i++) {
                double direct = 0, fast = 0, terms = 0;
                for (int64_t k = 0; k < r; k++) {
                    direct += data[i + k] * filter[k];
                }
                for (int64_t j = 0; j < n; j++) {
                    double u = 0, v = 0;
                    for (int64_t k = 0; k < r; k++) {
                        u += g[j * r + k] * filter[k];
                    }
                    for (int64_t k = 0; k < n; k++) {
                        v += bt[j * n + k] * data[k];
                    }
                    fast += at[i * n + j] * u * v;
                    terms += fabs(at[i * n + j] * u * v);
                }
                assert_true(fabs(fast - direct) <= 1e-11 * (1 + terms));
            }
        }
    }
    assert_int_equal(wpk_winograd_matrices(N, 2, NULL, NULL, NULL), WPK_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_winograd_matrices_correlate),
        cmocka_unit_test(test_winograd_applies_where_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
