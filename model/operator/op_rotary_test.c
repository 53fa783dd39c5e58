/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of elements that are turned by an angle, against a loop. */
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { B = 2, H = 2, S = 3, E = 6, P = 5, MAX = 256 }; /* P: rows of the caches */

/* The row of the caches of each batch and row. */
static const int position[B][S] = {{4, 0, 2}, {1, 1, 3}};

/* x [B, H, S, E]; caches [rows, turned / 2]. */
static void turn(const double *x, const double *cosines, const double *sines, int turned,
                 bool is_interleaved, bool has_positions, double *out)
{
    int half = turned / 2;
    for (int n = 0; n < B * H * S; n++) {
        int s = n % S, b = n / (S * H);
        int row = has_positions ? position[b][s] : b * S + s;
        const double *from = x + (ptrdiff_t)n * E;
        double *to = out + (ptrdiff_t)n * E;
        for (int e = 0; e < E; e++) {
            to[e] = from[e];
        }
        for (int j = 0; j < half; j++) {
            double c = cosines[row * half + j], d = sines[row * half + j];
            int first = is_interleaved ? 2 * j : j, second = is_interleaved ? 2 * j + 1 : j + half;
            to[first] = from[first] * c - from[second] * d;
            to[second] = from[first] * d + from[second] * c;
        }
    }
}

static void pairs_are_turned(void **state)
{
    (void)state;
    static double x[MAX], flat[MAX], cosines[MAX], sines[MAX], expected[MAX], found[MAX];
    wpk_model_case_draw(1, x, (int64_t)B * H * S * E);
    wpk_model_case_draw(2, cosines, MAX);
    wpk_model_case_draw(3, sines, MAX);
    for (int i = 0; i < 16; i++) {
        bool is_interleaved = i % 2 != 0, has_positions = i / 2 % 2 != 0, is_flat = i / 8 != 0;
        int turned = i / 4 % 2 != 0 ? 4 : E;
        char attributes[128], cache[32], type[32];
        snprintf(attributes, sizeof(attributes), "interleaved:i=%d%s%s", is_interleaved,
                 turned == E ? "" : " rotary_embedding_dim:i=4", is_flat ? " num_heads:i=2" : "");
        snprintf(cache, sizeof(cache), has_positions ? "f64[%d,%d]" : "f64[2,3,%d]",
                 has_positions ? P : turned / 2, turned / 2);
        snprintf(type, sizeof(type), is_flat ? "f64[2,3,12]" : "f64[2,2,3,6]");
        for (int n = 0; n < B * H * S * E; n++) { /* [batch, row, head, element] */
            int e = n % E, s = n / E % S, h = n / (E * S) % H, b = n / (E * S * H);
            flat[((b * S + s) * H + h) * E + e] = x[n];
        }
        const struct wpk_model_input inputs[] = {{.type = type, .data = is_flat ? flat : x},
                                                 {.type = cache, .data = cosines},
                                                 {.type = cache, .data = sines},
                                                 {.type = "i64[2,3]", .values = "4,0,2,1,1,3"}};
        int64_t count = wpk_model_case_compute("RotaryEmbedding", 23, attributes, inputs,
                                               has_positions ? 4 : 3, 0, found, MAX);
        assert_int_equal(count, B * H * S * E);
        turn(x, cosines, sines, turned, is_interleaved, has_positions, expected);
        for (int n = 0; n < B * H * S * E && is_flat; n++) {
            int e = n % E, s = n / E % S, h = n / (E * S) % H, b = n / (E * S * H);
            flat[n] = found[((b * S + s) * H + h) * E + e];
        }
        wpk_model_case_compare(attributes, is_flat ? flat : found, expected, count);
    }
}

static void caches_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[1,2,2] :f32[1,2,1]", "", "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[1,3,2] :f32[1,3,2]", "", "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[5,2] :f32[5,2]", "", "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[5,2] :f32[5,2] :f32[1,2]", "", "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,2,4] :f32[1,2,2] :f32[1,2,2]", "", "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,2,4] :f32[1,2,2] :f32[1,2,2]", "num_heads:i=3",
         "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[1,2,3] :f32[1,2,3]", "rotary_embedding_dim:i=6",
         "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f32[1,2,1] :f32[1,2,1]", "rotary_embedding_dim:i=3",
         "!do not fit"},
        {"RotaryEmbedding@23", ":f32[1,1,2,4] :f64[1,2,2] :f64[1,2,2]", "", "!do not fit"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_turned),
        cmocka_unit_test(caches_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
