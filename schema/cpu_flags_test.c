/* SPDX-License-Identifier: Apache-2.0 */
/* Code runs where what it needs is a subset of what the device has. */
#include "schema/cpu_flags.h"

#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ICE_LAKE (WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_VNNI | WPK_CPU_AVX512_VBMI)

static void subsets_fit(void **state)
{
    static const struct {
        wpk_cpu_flags needs, has;
        bool fits;
        const char *missing;
    } cases[] = {
        {0, 0, true, ""},
        {WPK_CPU_SET_AVX2, WPK_CPU_SET_AVX2, true, ""},
        {WPK_CPU_SET_AVX2, WPK_CPU_SET_ZEN4, true, ""},
        {WPK_CPU_SET_AVX512, ICE_LAKE, true, ""},
        {ICE_LAKE, WPK_CPU_SET_AVX512, false, "avx512vbmi, avx512_vnni"},
        /* neither contains the other: no order says this */
        {WPK_CPU_SET_AVX2 | WPK_CPU_AVX_VNNI, WPK_CPU_SET_ZEN4, false, "avx_vnni"},
        {WPK_CPU_SET_ZEN4, ICE_LAKE, false,
         "avx512ifma, avx512_vbmi2, avx512_bitalg, avx512_vpopcntdq, avx512_bf16, sse4a"},
        {WPK_CPU_NEON | WPK_CPU_SVE, WPK_CPU_NEON | WPK_CPU_DOTPROD, false, "sve"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char missing[WPK_CPU_FLAGS_TEXT_MAX];
        assert_int_equal(wpk_cpu_flags_fit(cases[i].needs, cases[i].has), cases[i].fits);
        wpk_cpu_flags_list(cases[i].needs & ~cases[i].has, missing);
        assert_string_equal(missing, cases[i].missing);
    }
}

static void a_level_needs_all_of_its_flags(void **state)
{
    static const struct {
        wpk_cpu_flags flags;
        enum wpk_cpu_level level;
    } cases[] = {
        {0, WPK_CPU_LEVEL_NONE},
        {WPK_CPU_NEON, WPK_CPU_LEVEL_NONE},
        {WPK_CPU_SET_AVX2 & ~WPK_CPU_FMA, WPK_CPU_LEVEL_AVX},
        {WPK_CPU_SET_AVX2 | WPK_CPU_AVX512F | WPK_CPU_AVX512CD, WPK_CPU_LEVEL_AVX2},
        {ICE_LAKE, WPK_CPU_LEVEL_AVX512_VNNI},
        {WPK_CPU_SET_ZEN4 & ~WPK_CPU_SSE4A, WPK_CPU_LEVEL_AVX512_BF16},
        {WPK_CPU_FLAGS_ALL, WPK_CPU_LEVEL_ZEN4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wpk_cpu_flags_level(cases[i].flags), cases[i].level);
    }
    for (int i = 0; i < WPK_CPU_LEVEL_COUNT; i++) {
        wpk_cpu_flags flags = wpk_cpu_level_flags((enum wpk_cpu_level)i);
        assert_int_equal(wpk_cpu_flags_level(flags), i);
        assert_true(i == 0 ||
                    wpk_cpu_flags_fit(wpk_cpu_level_flags((enum wpk_cpu_level)(i - 1)), flags));
    }
}

static void texts_round_trip(void **state)
{
    static const char *const good[] = {"none",          "none+neon+dotprod",     "sse41", "avx+fma",
                                       "avx2+avx_vnni", "avx512vnni+avx512vbmi", "zen4"};
    static const char *const bad[] = {"",
                                      "+",
                                      "avx1024",
                                      "avx2+",
                                      "avx2+typo",
                                      "avx2+avx",
                                      "avx_vnni",
                                      "avx512vnni+avx512vbmi+avx512ifma",
                                      "avx512vnni+avx512vbmi+avx512vbmi",
                                      "AVX2"};
    wpk_cpu_flags flags;
    char text[WPK_CPU_FLAGS_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(wpk_cpu_flags_parse(good[i], &flags), WPK_OK);
        wpk_cpu_flags_print(flags, text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(wpk_cpu_flags_parse(bad[i], &flags), WPK_EPARSE);
    }
    wpk_cpu_flags_list(WPK_CPU_FLAGS_ALL, text);
    assert_string_equal(text + strlen(text) - 3, "sve"); /* all of them fit */
}

static wpk_err read_flags(const char *text, wpk_cpu_flags *out, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(text, strlen(text), 0, &r, diag);
    if (err == WPK_OK) {
        wpk_cpu_flags_get(r, "flags", out);
        err = wpk_json_status(r);
        wpk_json_close(r);
    }
    return err;
}

static void json_lists_names(void **state)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_cpu_flags flags = 0;
    (void)state;
    const wpk_cpu_flags set = WPK_CPU_SET_AVX | WPK_CPU_AVX512_VNNI;
    wpk_cpu_flags_put(w, "flags", &set);
    assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
    wpk_json_writer_free(w);
    assert_string_equal(text.data, "{\"flags\":[\"sse4_1\",\"avx\",\"avx512_vnni\"]}");
    assert_int_equal(read_flags(text.data, &flags, &diag), WPK_OK);
    assert_int_equal(flags, WPK_CPU_SET_AVX | WPK_CPU_AVX512_VNNI);
    wpk_buf_fini(&text);
    assert_int_equal(read_flags("{\"flags\":[\"amx_tile\"]}", &flags, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "avx512_vnni")); /* one of those that are known */
    assert_int_equal(read_flags("{}", &flags, &diag), WPK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subsets_fit),
        cmocka_unit_test(a_level_needs_all_of_its_flags),
        cmocka_unit_test(texts_round_trip),
        cmocka_unit_test(json_lists_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
