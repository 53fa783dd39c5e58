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
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX512, &device), WPK_OK);
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
    for (int isa = 0; isa < WPK_ISA_COUNT; isa++) {
        assert_int_equal(wpk_device_probe((enum wpk_isa)isa, &device), WPK_OK);
        assert_true((int)device.cpu.isa <= isa);
        assert_true(isa == WPK_ISA_AVX512 || (!device.cpu.bf16 && !device.cpu.vnni));
    }
    assert_int_equal(wpk_device_probe(WPK_ISA_SSE41, &device), WPK_OK);
    assert_int_equal(device.cpu.vector_bytes, 16);
}

/* ---- known CPUs */

#define HASWELL (WPK_CPU_AVX | WPK_CPU_AVX2 | WPK_CPU_FMA | WPK_CPU_F16C)
#define SKYLAKE_X                                                                                  \
    (HASWELL | WPK_CPU_AVX512F | WPK_CPU_AVX512CD | WPK_CPU_AVX512BW | WPK_CPU_AVX512DQ |          \
     WPK_CPU_AVX512VL)
#define COOPER_LAKE (SKYLAKE_X | WPK_CPU_AVX512VNNI | WPK_CPU_AVX512BF16)
#define ICE_LAKE                                                                                   \
    (SKYLAKE_X | WPK_CPU_AVX512VNNI | WPK_CPU_AVX512IFMA | WPK_CPU_AVX512VBMI |                    \
     WPK_CPU_AVX512VBMI2 | WPK_CPU_AVX512BITALG | WPK_CPU_AVX512VPOPCNTDQ)
#define SAPPHIRE_RAPIDS (ICE_LAKE | WPK_CPU_AVX512BF16)
#define ZEN_4 (SAPPHIRE_RAPIDS | WPK_CPU_SSE4A) /* Zen 5, too */
#define KNIGHTS_LANDING (HASWELL | WPK_CPU_AVX512F | WPK_CPU_AVX512CD)

static void cpus_claim_what_they_have(void **state)
{
    static const struct {
        const char *name;
        uint64_t flags;
        enum wpk_isa isa;
        bool bf16, vnni;
    } cpus[] = {
        {"plain SSE4.1", 0, WPK_ISA_SSE41, false, false},
        {"Sandy Bridge", WPK_CPU_AVX, WPK_ISA_AVX, false, false},
        {"Haswell", HASWELL, WPK_ISA_AVX2, false, false},
        {"Haswell without FMA", HASWELL & ~(uint64_t)WPK_CPU_FMA, WPK_ISA_AVX, false, false},
        {"Knights Landing", KNIGHTS_LANDING, WPK_ISA_AVX2, false, false},
        {"Skylake-X", SKYLAKE_X, WPK_ISA_AVX512, false, false},
        {"Cooper Lake", COOPER_LAKE, WPK_ISA_AVX512, false, true},
        {"Ice Lake", ICE_LAKE, WPK_ISA_AVX512, false, true},
        {"Sapphire Rapids", SAPPHIRE_RAPIDS, WPK_ISA_AVX512, false, true},
        {"Zen 4", ZEN_4, WPK_ISA_AVX512, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
        for (int max = 0; max < WPK_ISA_COUNT; max++) {
            struct wpk_device device = {0};
            wpk_device_claim(cpus[i].flags, (enum wpk_isa)max, &device);
            bool whole = max == WPK_ISA_AVX512;
            enum wpk_isa isa = max < (int)cpus[i].isa ? (enum wpk_isa)max : cpus[i].isa;
            if (device.cpu.isa != isa || device.cpu.bf16 != (whole && cpus[i].bf16) ||
                device.cpu.vnni != (whole && cpus[i].vnni)) {
                fail_msg("%s, at most %s", cpus[i].name, wpk_isa_name((enum wpk_isa)max));
            }
        }
    }
}

static void isa_names_round_trip(void **state)
{
    enum wpk_isa isa;

    (void)state;
    for (int i = 0; i < WPK_ISA_COUNT; i++) {
        assert_int_equal(wpk_isa_parse(wpk_isa_name((enum wpk_isa)i), &isa), WPK_OK);
        assert_int_equal(isa, i);
    }
    assert_int_equal(wpk_isa_parse("avx1024", &isa), WPK_ENOENT);
}

static void class_names_what_kernels_depend_on(void **state)
{
    struct wpk_device device = {
        .kind = "cpu", .model = "Some CPU 9", .cpu = {.isa = WPK_ISA_AVX512, .bf16 = 1, .vnni = 1}};
    char text[256];

    (void)state;
    wpk_device_class(&device, text, sizeof(text));
    assert_string_equal(text, "cpu/Some CPU 9/avx512+bf16+vnni");
    device.cpu.bf16 = device.cpu.vnni = 0;
    device.cpu.isa = WPK_ISA_AVX2;
    wpk_device_class(&device, text, sizeof(text));
    assert_string_equal(text, "cpu/Some CPU 9/avx2");
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
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX512, &device), WPK_OK);
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
    assert_int_equal(back.cpu.isa, device.cpu.isa);
    assert_int_equal(back.cpu.bf16, device.cpu.bf16);
    assert_int_equal(back.cpu.vnni, device.cpu.vnni);
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
        "{\"kind\":\"cpu\",\"model\":\"m\",\"isa\":\"mmx\",\"bf16\":false,\"vnni\":false,"
        "\"core_count\":1,\"l1_bytes\":1,\"l2_bytes\":1,\"l3_bytes\":1,\"vector_bytes\":16,"
        "\"vector_registers\":16,\"peak_flops_per_s\":0,\"peak_bytes_per_s\":0,"
        "\"instance\":\"h\"}",
        "{\"kind\":\"cpu\",\"model\":\"m\",\"isa\":\"avx\",\"bf16\":false,\"vnni\":false,"
        "\"core_count\":1,\"l1_bytes\":1,\"l2_bytes\":1,\"l3_bytes\":1,\"vector_bytes\":2,"
        "\"vector_registers\":16,\"peak_flops_per_s\":0,\"peak_bytes_per_s\":0,"
        "\"instance\":\"h\"}",
        "{\"kind\":\"cpu\",\"model\":\"m\",\"isa\":\"avx\",\"bf16\":false,\"vnni\":false,"
        "\"core_count\":0,\"l1_bytes\":1,\"l2_bytes\":1,\"l3_bytes\":1,\"vector_bytes\":16,"
        "\"vector_registers\":16,\"peak_flops_per_s\":0,\"peak_bytes_per_s\":0,"
        "\"instance\":\"h\"}",
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
                                      "cpu/model/avx512+vnni+bf16",
                                      "cpu/model/avx512+bf16+bf16",
                                      "cpu/model/avx512+bf16+vnni+"};
    struct wpk_device device;
    struct wpk_device back;
    char text[2 * WPK_DEVICE_TEXT_MAX];
    char again[2 * WPK_DEVICE_TEXT_MAX];

    (void)state;
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX2, &device), WPK_OK);
    snprintf(device.model, sizeof(device.model), "a/b c");
    wpk_device_class(&device, text, sizeof(text));
    assert_int_equal(wpk_device_of_class(text, &back), WPK_OK);
    wpk_device_class(&back, again, sizeof(again));
    assert_string_equal(again, text);
    assert_int_equal(back.cpu.vector_bytes, device.cpu.vector_bytes);
    assert_int_equal(back.cpu.vector_registers, device.cpu.vector_registers);
    assert_int_equal(wpk_device_of_class("cpu/m/avx512+bf16+vnni", &back), WPK_OK);
    assert_true(back.cpu.bf16 && back.cpu.vnni && back.cpu.isa == WPK_ISA_AVX512);
    assert_int_equal(wpk_device_of_class("cpu/m/avx512+vnni", &back), WPK_OK);
    assert_true(!back.cpu.bf16 && back.cpu.vnni);
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
    struct wpk_device device = {0}, back = {.cpu = {.isa = WPK_ISA_AVX2, .l1_bytes = 1}};
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
        cmocka_unit_test(cpus_claim_what_they_have),
        cmocka_unit_test(isa_names_round_trip),
        cmocka_unit_test(class_names_what_kernels_depend_on),
        cmocka_unit_test(gpus_have_classes_and_json),
        cmocka_unit_test(class_leads_back_to_what_it_says),
        cmocka_unit_test(json_round_trips),
        cmocka_unit_test(json_is_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
