/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits beside a loop over its elements. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, BLOCKS_MAX = 3, BLOCK = 16, ROWS = 18, K_MAX = BLOCKS_MAX * BLOCK };

struct product {
    int k, blocks, rows;
    bool has_zeros, quantizes;
    int w[N][BLOCKS_MAX * BLOCK], zero[N][BLOCKS_MAX];
    double scale[N][BLOCKS_MAX], x[ROWS * K_MAX], expected[ROWS * N];
};

/* Append bytes of two elements each, those of rows of `count` elements. */
static void pack(const int *elements, int rows, int count, struct wpk_buf *out)
{
    for (int i = 0; i < rows; i++) {
        for (int t = 0; t < count; t += 2) {
            int high = t + 1 < count ? elements[i * count + t + 1] : 0;
            wpk_buf_printf(out, "%s%d", i + t > 0 ? "," : "", elements[i * count + t] + 16 * high);
        }
    }
}

/* x quantized to i8, as MatMulNBits does at level 4: a scale for each block of a row. */
static double operand(const struct product *p, int row, int k)
{
    double most = 0;
    for (int t = k / BLOCK * BLOCK; t < k / BLOCK * BLOCK + BLOCK && t < p->k; t++) {
        most = fmax(most, fabs(p->x[row * p->k + t]));
    }
    double x = p->x[row * p->k + k], scale = most == 0 ? 1 : most / 127;
    return p->quantizes ? nearbyint(x / scale) * scale : x;
}

static void draw(struct product *p)
{
    wpk_model_case_draw(3, p->x, (int64_t)p->rows * p->k);
    memset(p->x, 0, sizeof(double) * BLOCK); /* a block without a scale */
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < p->blocks * BLOCK; k++) {
            p->w[j][k] = (7 * j + 5 * k + k / 3) % 16;
        }
        for (int b = 0; b < p->blocks; b++) {
            p->zero[j][b] = p->has_zeros ? (3 * j + b) % 16 : 8;
            p->scale[j][b] = 0.25 + j + 0.5 * b;
        }
    }
    for (int i = 0; i < p->rows * N; i++) {
        p->expected[i] = 0;
        for (int k = 0; k < p->k; k++) {
            int j = i % N, b = k / BLOCK;
            p->expected[i] += operand(p, i / N, k) * (p->w[j][k] - p->zero[j][b]) * p->scale[j][b];
        }
    }
}

static void expect(struct product *p, const char *attributes)
{
    char text[128], types[4][32];
    struct wpk_buf bytes = {0}, zeros = {0}, scales = {0};
    double found[ROWS * N];
    int elements[N * BLOCKS_MAX * BLOCK];
    draw(p);
    for (int j = 0; j < N; j++) {
        memcpy(elements + j * p->blocks * BLOCK, p->w[j], sizeof(int) * (size_t)p->blocks * BLOCK);
    }
    pack(elements, N * p->blocks, BLOCK, &bytes);
    for (int i = 0; i < N * p->blocks; i++) {
        elements[i] = p->zero[i / p->blocks][i % p->blocks];
        wpk_buf_printf(&scales, "%s%g", i > 0 ? "," : "", p->scale[i / p->blocks][i % p->blocks]);
    }
    pack(elements, N, p->blocks, &zeros);
    snprintf(types[0], sizeof(types[0]), "f32[%d,1,%d]", p->rows, p->k);
    snprintf(types[1], sizeof(types[1]), "u8[%d,%d,%d]", N, p->blocks, BLOCK / 2);
    snprintf(types[2], sizeof(types[2]), "f32[%d]", N * p->blocks);
    snprintf(types[3], sizeof(types[3]), "u8[%d]", N * ((p->blocks + 1) / 2));
    const struct wpk_model_input inputs[] = {
        {.type = types[0], .data = p->x},
        {.type = types[1], .values = wpk_buf_text(&bytes)},
        {.type = types[2], .values = wpk_buf_text(&scales)},
        {.type = p->has_zeros ? types[3] : NULL, .values = wpk_buf_text(&zeros)}};
    snprintf(text, sizeof(text), "K:i=%d N:i=%d bits:i=4 block_size:i=%d %s", p->k, N, BLOCK,
             attributes);
    assert_int_equal(wpk_model_case_compute("com.microsoft:MatMulNBits", 17, text, inputs,
                                            p->has_zeros ? 4 : 3, 0, found, ROWS * N),
                     p->rows * N);
    for (int i = 0; i < p->rows * N; i++) { /* scales are rounded to f32 */
        if (!(fabs(found[i] - p->expected[i]) <= 1e-5 * (1 + fabs(p->expected[i])))) {
            fail_msg("%s: %d is %g, not %g", text, i, found[i], p->expected[i]);
        }
    }
    wpk_buf_fini(&bytes);
    wpk_buf_fini(&zeros);
    wpk_buf_fini(&scales);
}

/* Few rows, many of them, a last block that is not whole; with zero points and without. */
static void test_weights_alone(void **state)
{
    (void)state;
    static struct product cases[] = {{.k = 48, .blocks = 3, .rows = 2},
                                     {.k = 48, .blocks = 3, .rows = 2, .has_zeros = true},
                                     {.k = 32, .blocks = 2, .rows = 18},
                                     {.k = 43, .blocks = 3, .rows = 2, .has_zeros = true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect(&cases[i], "");
    }
}

static void test_integers(void **state)
{
    (void)state;
    static struct product cases[] = {
        {.k = 48, .blocks = 3, .rows = 2, .quantizes = true},
        {.k = 48, .blocks = 3, .rows = 18, .quantizes = true, .has_zeros = true},
        {.k = 43, .blocks = 3, .rows = 2, .quantizes = true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect(&cases[i], "accuracy_level:i=4");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_alone),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
