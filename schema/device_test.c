/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/device.h"

#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void probe_says_something_usable(void **state)
{
    struct wpk_device device;

    (void)state;
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &device), WPK_OK);
    assert_string_equal(device.kind, "cpu");
    assert_true(device.model[0] != '\0');
    assert_true(device.core_count >= 1);
    assert_true(device.cpu.l1_bytes >= 8 << 10);
    assert_true(device.cpu.l2_bytes >= device.cpu.l1_bytes);
    assert_true(device.cpu.vector_bytes >= 16);
    assert_true(device.cpu.vector_registers >= 16);
    assert_non_null(strchr(device.instance, '/'));
}

static void probe_claims_no_more_than_allowed(void **state)
{
    struct wpk_device device;

    (void)state;
    for (int i = 0; i < WPK_CPU_LEVEL_COUNT; i++) {
        wpk_cpu_flags most = wpk_cpu_level_flags((enum wpk_cpu_level)i);
        assert_int_equal(wpk_device_probe(most, &device), WPK_OK);
        assert_true(wpk_cpu_flags_fit(device.cpu.flags, most));
    }
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_SSE41, &device), WPK_OK);
    assert_int_equal(device.cpu.flags, WPK_CPU_SET_SSE41);
    assert_int_equal(device.cpu.vector_bytes, 16);
}

/* ---- known CPUs */

#define COOPER_LAKE (WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_VNNI | WPK_CPU_AVX512_BF16)
#define SAPPHIRE_RAPIDS ((WPK_CPU_SET_ZEN4 & ~WPK_CPU_SSE4A) | WPK_CPU_AVX_VNNI)
#define ICE_LAKE (SAPPHIRE_RAPIDS & ~WPK_CPU_AVX512_BF16 & ~WPK_CPU_AVX_VNNI)
#define ALDER_LAKE (WPK_CPU_SET_AVX2 | WPK_CPU_AVX_VNNI)
#define KNIGHTS_LANDING (WPK_CPU_SET_AVX2 | WPK_CPU_AVX512F | WPK_CPU_AVX512CD)

/* The class has what code generators use: AVX-VNNI, say, does not split it. */
static void classes_name_the_level(void **state)
{
    static const struct {
        wpk_cpu_flags flags;
        const char *class;
        int vector_bytes;
    } cpus[] = {
        {0, "cpu/Some CPU 9/none", 16},
        {WPK_CPU_SET_SSE41, "cpu/Some CPU 9/sse41", 16},
        {WPK_CPU_SET_AVX, "cpu/Some CPU 9/avx", 32},
        {WPK_CPU_SET_AVX2 & ~WPK_CPU_FMA, "cpu/Some CPU 9/avx", 32},
        {WPK_CPU_SET_AVX2, "cpu/Some CPU 9/avx2", 32},
        {ALDER_LAKE, "cpu/Some CPU 9/avx2", 32},
        {KNIGHTS_LANDING, "cpu/Some CPU 9/avx2", 32},
        {WPK_CPU_SET_AVX512, "cpu/Some CPU 9/avx512", 64},
        {COOPER_LAKE, "cpu/Some CPU 9/avx512bf16", 64},
        {ICE_LAKE, "cpu/Some CPU 9/avx512vnni", 64},
        {SAPPHIRE_RAPIDS, "cpu/Some CPU 9/avx512bf16", 64},
        {WPK_CPU_SET_ZEN4, "cpu/Some CPU 9/zen4", 64},
        {WPK_CPU_SET_ZEN4 | WPK_CPU_AVX_VNNI, "cpu/Some CPU 9/zen4", 64}, /* Zen 5 */
    };
    struct wpk_device device = {.kind = "cpu", .model = "Some CPU 9"};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
        wpk_device_claim(cpus[i].flags, &device);
        wpk_device_class(&device, text, sizeof(text));
        assert_string_equal(text, cpus[i].class);
        assert_int_equal(device.cpu.vector_bytes, cpus[i].vector_bytes);
    }
}

/* A document that is the device. */
static wpk_err read_device(const char *text, struct wpk_device *out, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(text, strlen(text), 0, &r, diag);
    if (err == WPK_OK) {
        wpk_device_get(r, NULL, out);
        err = wpk_json_status(r);
        wpk_json_close(r);
    }
    return err;
}

static void json_round_trips(void **state)
{
    struct wpk_device device;
    struct wpk_device back = {.cuda = {.capability = 90, .sm_count = 132, .driver = 1}};
    struct wpk_json_reader *r = NULL;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};

    (void)state;
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &device), WPK_OK);
    device.peak_flops_per_s = 143.75e9;
    wpk_device_put(w, "device", &device);
    assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
    assert_int_equal(wpk_json_open(text.data, text.size, 0, &r, NULL), WPK_OK);
    wpk_device_get(r, "device", &back);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
    wpk_json_writer_free(w);
    assert_string_equal(back.model, device.model);
    assert_string_equal(back.instance, device.instance);
    assert_true(back.cuda.capability == 0 && back.cuda.sm_count == 0 && back.cuda.driver == 0);
    assert_int_equal(back.cpu.flags, device.cpu.flags);
    assert_int_equal(back.core_count, device.core_count);
    assert_int_equal(back.cpu.l1_bytes, device.cpu.l1_bytes);
    assert_int_equal(back.cpu.l2_bytes, device.cpu.l2_bytes);
    assert_int_equal(back.cpu.l3_bytes, device.cpu.l3_bytes);
    assert_int_equal(back.cpu.vector_bytes, device.cpu.vector_bytes);
    assert_int_equal(back.cpu.vector_registers, device.cpu.vector_registers);
    assert_true(back.peak_flops_per_s == device.peak_flops_per_s);
    wpk_buf_fini(&text);
}

static void json_is_strict(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"kind\":\"cpu\"}",
        "{\"kind\":\"cpu\",\"model\":\"m\",\"flags\":[\"mmx\"],\"core_count\":1,"
        "\"l1_bytes\":1,\"l2_bytes\":1,\"l3_bytes\":1,\"peak_flops_per_s\":0,"
        "\"peak_bytes_per_s\":0,\"instance\":\"h\"}",
        "{\"kind\":\"cpu\",\"model\":\"m\",\"flags\":[\"avx\"],\"core_count\":0,"
        "\"l1_bytes\":1,\"l2_bytes\":1,\"l3_bytes\":1,\"peak_flops_per_s\":0,"
        "\"peak_bytes_per_s\":0,\"instance\":\"h\"}",
    };
    struct wpk_device device;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wpk_diag diag = {0};
        assert_int_not_equal(read_device(bad[i], &device, &diag), WPK_OK);
        assert_true(diag.text[0] != '\0');
    }
}

static void class_leads_back_to_what_it_says(void **state)
{
    static const char *const bad[] = {"",
                                      "cpu",
                                      "cpu/avx2",
                                      "cpu/model/mmx",
                                      "cpu/model/",
                                      "a kind of sixteen/model/avx",
                                      "cpu/model/avx2+typo",
                                      "cpu/model/avx2+",
                                      "cpu/model/avx2+avx_vnni",
                                      "cpu/model/avx+avx2"};
    struct wpk_device device;
    struct wpk_device back;
    char text[2 * WPK_DEVICE_TEXT_MAX];
    char again[2 * WPK_DEVICE_TEXT_MAX];

    (void)state;
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &device), WPK_OK);
    snprintf(device.model, sizeof(device.model), "a/b c");
    wpk_device_class(&device, text, sizeof(text));
    assert_int_equal(wpk_device_of_class(text, &back), WPK_OK);
    wpk_device_class(&back, again, sizeof(again));
    assert_string_equal(again, text);
    assert_int_equal(back.cpu.vector_bytes, device.cpu.vector_bytes);
    assert_int_equal(back.cpu.vector_registers, device.cpu.vector_registers);
    assert_int_equal(wpk_device_of_class("cpu/m/zen4", &back), WPK_OK);
    assert_int_equal(back.cpu.flags, WPK_CPU_SET_ZEN4);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(wpk_device_of_class(bad[i], &back), WPK_EPARSE);
    }
}

/* ---- GPUs */

static void gpus_have_classes_and_json(void **state)
{
    static const char *const bad[] = {"cuda/",           "cuda/m",          "cuda/m/sm_90",
                                      "cuda//sm_90/1",   "cuda/m/sm_9/1",   "cuda/m/sm_90/0",
                                      "cuda/m/sm_90/x",  "cuda/m/sm_90a/1", "cuda/m/sm_090/1",
                                      "cuda/m/sm_90/1/", "cuda/sm_90/1",    "cuda/m/sm_90/99999"};
    struct wpk_device device = {0}, back = {.cpu = {.flags = WPK_CPU_SET_AVX2, .l1_bytes = 1}};
    struct wpk_diag diag = {0};
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_json_reader *r = NULL;
    struct wpk_buf text = {0};
    char class_text[2 * WPK_DEVICE_TEXT_MAX];

    (void)state;
    assert_int_equal(wpk_device_emulate("sm_90", 132, &device, &diag), WPK_OK);
    assert_true(wpk_device_is_cuda(&device) && wpk_device_is_emulated(&device));
    wpk_device_class(&device, class_text, sizeof(class_text));
    assert_string_equal(class_text, "cuda/emulated/sm_90/132");
    wpk_device_put(w, "device", &device);
    assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
    assert_int_equal(wpk_json_open(text.data, text.size, 0, &r, NULL), WPK_OK);
    wpk_device_get(r, "device", &back);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
    wpk_json_writer_free(w);
    wpk_buf_fini(&text);
    assert_memory_equal(&back, &device, sizeof(back));
    assert_int_equal(wpk_device_of_class("cuda/NVIDIA H200/x/sm_90/132", &back), WPK_OK);
    assert_string_equal(back.model, "NVIDIA H200/x");
    assert_false(wpk_device_is_emulated(&back));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(wpk_device_of_class(bad[i], &back), WPK_EPARSE);
    }
    assert_int_equal(wpk_device_emulate("gfx90", 132, &device, &diag), WPK_EINVAL);
    assert_int_equal(wpk_device_emulate("sm_90", 0, &device, &diag), WPK_ERANGE);
    assert_int_not_equal(read_device("{\"kind\":\"cuda\",\"model\":\"m\",\"capability\":90,"
                                     "\"sm_count\":0,\"instance\":\"h\"}",
                                     &back, NULL),
                         WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_says_something_usable),
        cmocka_unit_test(probe_claims_no_more_than_allowed),
        cmocka_unit_test(classes_name_the_level),
        cmocka_unit_test(gpus_have_classes_and_json),
        cmocka_unit_test(class_leads_back_to_what_it_says),
        cmocka_unit_test(json_round_trips),
        cmocka_unit_test(json_is_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
