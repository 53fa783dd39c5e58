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
    for (int i = 0; i < 2 * WPK_CPU_LEVEL_COUNT; i++) {
        struct wpk_device device = {0}, read = {0};
        char target[WPK_TARGET_MAX];
        wpk_device_claim(wpk_cpu_level_flags((enum wpk_cpu_level)(i / 2)), &device);
        wpk_target_print(&device, i % 2 == 1, target);
        wpk_target_read(target, &read);
        assert_int_equal(read.cpu.flags, device.cpu.flags);
        assert_int_equal(read.cpu.vector_bytes, device.cpu.vector_bytes);
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
    static const struct {
        const char *target;
        wpk_cpu_flags flags;
    } cases[] = {
        {"host", 0},
        {"x86-64-linux-avx2", WPK_CPU_SET_AVX2},
        {"x86-64-linux-avx-fma", WPK_CPU_SET_AVX | WPK_CPU_FMA},
        {"x86-64-linux-avx512_knl", WPK_CPU_SET_AVX512},
        {"x86-64-linux-avx512_cannonlake",
         WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_IFMA | WPK_CPU_AVX512_VBMI},
        {"x86-64-linux-avx512_zen5-strict_float", WPK_CPU_SET_ZEN4 | WPK_CPU_AVX_VNNI},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_device read = {0};
        wpk_target_read(cases[i].target, &read);
        assert_int_equal(read.cpu.flags, cases[i].flags);
    }
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
