/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions, and what the interpreter makes of them. */
#include "ir/instruction/instruction.h"

#include "ir/notation/notation.h"
#include "ir/reference/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_all_are_read(void **state)
{
    (void)state;
    assert_true(wpk_instruction_count() >= 2);
    for (int i = 0; i < wpk_instruction_count(); i++) {
        const struct wpk_instruction *instruction = wpk_instruction_at(i);
        assert_int_equal(wpk_instruction_find(instruction->name), i);
        assert_int_equal(wpk_program_validate(&instruction->program, NULL), WPK_OK);
    }
    const struct wpk_instruction *dot = wpk_instruction_at(wpk_instruction_find("vpdpbusd"));
    assert_int_equal(dot->lanes, 16);
    assert_int_equal(dot->terms, 4);
    assert_int_equal(dot->operand[0], WPK_U8);
    assert_int_equal(dot->operand[1], WPK_I8);
    assert_int_equal(dot->sum, WPK_I32);
    assert_true((dot->flags & WPK_CPU_AVX512_VNNI) != 0);
    assert_int_equal(wpk_instruction_find("vpdp"), -1);
}

/* The sum wraps. */
static void test_a_description_is_executed(void **state)
{
    (void)state;
    const struct wpk_instruction *dot = wpk_instruction_at(wpk_instruction_find("vpdpbusd"));
    double a[64], b[64], c[16], d[16];
    for (int i = 0; i < 64; i++) {
        a[i] = 255 - i;
        b[i] = i - 128;
        c[i % 16] = i % 16 == 3 ? -2147483648.0 : 1000;
    }
    const struct wpk_reference_args args = {.tensor = {a, b, c}};
    assert_int_equal(wpk_reference_run(&dot->program, &args, d, NULL, NULL), WPK_OK);
    for (int l = 0; l < 16; l++) {
        double sum = c[l];
        for (int t = 4 * l; t < 4 * l + 4; t++) {
            sum += a[t] * b[t];
        }
        assert_true(d[l] == (sum < -2147483648.0 ? sum + 4294967296.0 : sum));
    }
}

static void test_peaks(void **state)
{
    (void)state;
    static const char bytes[] = "input X u8[6,8]\ninput W i8[8]\noutput Y i32[6]\n"
                                "Y[i] = sum.i32(k:8) i32(X[i,k]) * i32(W[k])\n";
    static const char floats[] = "input X f32[6,8]\ninput W f32[8]\noutput Y f32[6]\n"
                                 "Y[i] = sum.f32(k:8) X[i,k] * W[k]\n";
    assert_true(wpk_operator_peak_times(bytes, WPK_CPU_SET_AVX512_VNNI) == 4);
    assert_true(wpk_operator_peak_times(bytes, WPK_CPU_SET_AVX512) == 1);
    assert_true(wpk_operator_peak_times(floats, WPK_CPU_FLAGS_ALL) == 1);
    assert_true(wpk_operator_peak_times("nonsense", WPK_CPU_FLAGS_ALL) == 1);
}

static void test_mistakes_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "flags avx2\ncost 1\n",
        "instruction x\nflags avx3\ncost 1\n",
        "instruction x\nflags avx2\ncost 0\n",
        "instruction x\nflags avx2\ncost 1\ninput A u8[4]\n",
        "instruction x\nflags avx2\ncost 1\ninput A u8[4]\noutput Y u8[4]\nY[i] = A[i]\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct wpk_instruction instruction;
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_instruction_parse(texts[i], &instruction, &diag), WPK_EPARSE);
        assert_true(diag.text[0] != '\0');
    }
}

static void test_where_one_fits(void **state)
{
    (void)state;
    static const struct {
        const char *terms;
        int products;
    } cases[] = {
        {"i32(X[i,k]) * i32(W[k])", 1},
        {"i32(W[k]) * i32(X[i,k])", 1},
        {"i32(X[i,k]) * i32(u8(W[k]))", 0},
        {"(i32(X[i,k]) + i32(W[k]))", 0},
        {"(i32(X[i,k]) % 16 * i32(W[k]) + i32(W[k]) * (i32(X[i,k]) / 16))", 2},
        {"(i32(X[i,k]) % 8 * i32(W[k]) + i32(X[i,k]) / 16 * i32(W[k]))", 0},
        {"i32(X[i,k]) * (i32(W[k]) / 16)", 0},
    };
    const struct wpk_instruction *dot = wpk_instruction_at(wpk_instruction_find("vpdpbusd"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_buf text = {0};
        struct wpk_instruction_product product[WPK_INSTRUCTION_PRODUCTS_MAX];
        wpk_buf_printf(&text,
                       "input X u8[6,8]\ninput W i8[8]\noutput Y i32[6]\n"
                       "Y[i] = sum.i32(k:8) %s\n",
                       cases[i].terms);
        struct wpk_diag diag = {0};
        wpk_err err = wpk_program_parse(wpk_buf_text(&text), &program, &diag);
        if (err != WPK_OK) {
            fail_msg("%s: %s", wpk_buf_text(&text), diag.text);
        }
        wpk_buf_fini(&text);
        int count = wpk_instruction_products(dot, &program, &program.stages[0], product);
        assert_int_equal(count, cases[i].products);
        for (int k = 0; k < count; k++) {
            assert_int_equal(program.nodes[product[k].load[0]].dtype, WPK_U8);
            assert_int_equal(product[k].part[0], count == 1 ? WPK_PART_WHOLE
                                                 : k == 0   ? WPK_PART_LOW
                                                            : WPK_PART_HIGH);
            assert_int_equal(product[k].part[1], WPK_PART_WHOLE);
        }
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_read),   cmocka_unit_test(test_a_description_is_executed),
        cmocka_unit_test(test_peaks),          cmocka_unit_test(test_mistakes_are_refused),
        cmocka_unit_test(test_where_one_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
