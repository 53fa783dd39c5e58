/* SPDX-License-Identifier: Apache-2.0 */
/* A target says what it needs: reading gives what was printed. */
#include "nest/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_what_is_printed_is_read(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * WPK_ISA_COUNT; i++) {
        struct wpk_device device = {.cpu = {.isa = (enum wpk_isa)(i / 4), .bf16 = i / 2 % 2}}, read;
        bool newest = device.cpu.isa == WPK_ISA_AVX512 && device.cpu.bf16;
        char target[WPK_TARGET_MAX];
        wpk_target_print(&device, i % 2 == 1, target);
        wpk_target_read(target, &read);
        assert_int_equal(read.cpu.isa, device.cpu.isa);
        assert_int_equal(read.cpu.bf16, newest);
        assert_int_equal(read.cpu.vnni, newest);
        assert_int_equal(strstr(target, "strict_float") != NULL, i % 2 == 1);
    }
}

static void test_strict(void **state)
{
    (void)state;
    char once[WPK_TARGET_MAX], twice[WPK_TARGET_MAX], longest[WPK_TARGET_MAX];
    assert_int_equal(wpk_target_make_strict("x86-64-linux-avx2", once), WPK_OK);
    assert_string_equal(once, "x86-64-linux-avx2-strict_float");
    assert_int_equal(wpk_target_make_strict(once, twice), WPK_OK);
    assert_string_equal(twice, once);
    memset(longest, 'x', sizeof longest);
    longest[WPK_TARGET_MAX - 1] = '\0';
    assert_int_equal(wpk_target_make_strict(longest, once), WPK_ENOSPC);
}

static void test_targets_written_by_hand(void **state)
{
    (void)state;
    struct wpk_device read;
    wpk_target_read("x86-64-linux-avx512_sapphirerapids", &read);
    assert_int_equal(read.cpu.isa, WPK_ISA_AVX512);
    assert_true(read.cpu.bf16 && read.cpu.vnni);
    wpk_target_read("host", &read);
    assert_int_equal(read.cpu.isa, WPK_ISA_SSE41);
    assert_false(read.cpu.bf16 || read.cpu.vnni);
}

/* A GPU that is newer than any that Halide knows runs what is for an older one. */
static void test_spelling(void **state)
{
    (void)state;
    char out[WPK_TARGET_MAX];
    assert_int_equal(wpk_target_spell("x86-64-linux-avx2-strict_float", out), WPK_OK);
    assert_string_equal(out, "x86-64-linux-avx2-strict_float");
    assert_int_equal(wpk_target_spell("cuda-sm_120-strict_float", out), WPK_OK);
    assert_string_equal(out, "x86-64-linux-sse41-cuda-cuda_capability_86-strict_float");
    assert_int_equal(wpk_target_spell("cuda-sm_62", out), WPK_OK);
    assert_string_equal(out, "x86-64-linux-sse41-cuda-cuda_capability_61");
    assert_int_equal(wpk_target_spell("cuda-sm_37", out), WPK_EUNSUPPORTED);
    assert_int_equal(wpk_target_spell("cuda-", out), WPK_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_is_read),
        cmocka_unit_test(test_strict),
        cmocka_unit_test(test_targets_written_by_hand),
        cmocka_unit_test(test_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
