/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/target.h"

#include <stdio.h>
#include <string.h>

#define STRICT "-strict_float"
#define CUDA "cuda-"
/* words that Halide does not have */
#define VNNI "avx512_vnni"
#define BF16 "avx512_bf16"
#define AVX512 "-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake"

void wpk_target_print(const struct wpk_device *device, bool strict, char out[WPK_TARGET_MAX])
{
    static const char *const features[WPK_CPU_LEVEL_COUNT] = {
        [WPK_CPU_LEVEL_NONE] = "",
        [WPK_CPU_LEVEL_SSE41] = "-sse41",
        [WPK_CPU_LEVEL_AVX] = "-sse41-avx",
        [WPK_CPU_LEVEL_AVX2] = "-sse41-avx-avx2-f16c-fma",
        [WPK_CPU_LEVEL_AVX512] = AVX512,
        [WPK_CPU_LEVEL_AVX512_VNNI] = (AVX512 "-" VNNI),
        [WPK_CPU_LEVEL_AVX512_BF16] = (AVX512 "-" VNNI "-" BF16),
        [WPK_CPU_LEVEL_ZEN4] = (AVX512 "-avx512_cannonlake-avx512_zen4"),
    };
    if (wpk_device_is_cuda(device)) {
        snprintf(out, WPK_TARGET_MAX, CUDA "sm_%d%s", device->cuda.capability,
                 strict ? STRICT : "");
        return;
    }
    snprintf(out, WPK_TARGET_MAX, "x86-64-linux%s%s",
             features[wpk_cpu_flags_level(device->cpu.flags)], strict ? STRICT : "");
}

wpk_err wpk_target_make_strict(const char *target, char out[WPK_TARGET_MAX])
{
    const char *added = strstr(target, STRICT) == NULL ? STRICT : "";
    int size = snprintf(out, WPK_TARGET_MAX, "%s%s", target, added);
    return size < 0 || size >= WPK_TARGET_MAX ? WPK_ENOSPC : WPK_OK;
}

bool wpk_target_is_strict(const char *target)
{
    return strstr(target, STRICT) != NULL;
}

bool wpk_target_is_gpu(const char *target)
{
    return wpk_begins(target, CUDA);
}

wpk_err wpk_target_architecture(const char *target, char *out, size_t size)
{
    const char *name = target + strlen(CUDA);
    if (!wpk_target_is_gpu(target) || strcspn(name, "-") >= size) {
        return WPK_EINVAL;
    }
    snprintf(out, size, "%.*s", (int)strcspn(name, "-"), name);
    return WPK_OK;
}

wpk_err wpk_target_spell(const char *target, char out[WPK_TARGET_MAX])
{
    static const int known[] = {86, 80, 75, 70, 61, 50};
    struct wpk_device device = {0};
    wpk_target_read(target, &device);
    if (!wpk_target_is_gpu(target)) {
        static const char *const own[] = {"-" VNNI, "-" BF16};
        snprintf(out, WPK_TARGET_MAX, "%s", target);
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
            char *word = strstr(out, own[i]);
            if (word != NULL) {
                memmove(word, word + strlen(own[i]), strlen(word + strlen(own[i])) + 1);
            }
        }
        return WPK_OK;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i] <= device.cuda.capability) {
            snprintf(out, WPK_TARGET_MAX, "x86-64-linux-sse41-cuda-cuda_capability_%d%s", known[i],
                     wpk_target_is_strict(target) ? STRICT : "");
            return WPK_OK;
        }
    }
    return WPK_EUNSUPPORTED;
}

/* Flags of the CPU that Halide has LLVM compile for (-mcpu) at each word of a target. */
static wpk_cpu_flags word_flags(const char *word)
{
    static const struct {
        const char *word;
        wpk_cpu_flags flags;
    } words[] = {
        {"sse41", WPK_CPU_SET_SSE41},
        {"avx", WPK_CPU_SET_AVX},
        {"f16c", WPK_CPU_SET_AVX | WPK_CPU_F16C},
        {"fma", WPK_CPU_SET_AVX | WPK_CPU_FMA},
        {"avx2", WPK_CPU_SET_AVX2},
        {VNNI, WPK_CPU_SET_AVX512_VNNI},
        {BF16, WPK_CPU_SET_AVX512_BF16},
        {"avx512_cannonlake", WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_IFMA | WPK_CPU_AVX512_VBMI},
        {"avx512_sapphirerapids",
         (WPK_CPU_SET_ZEN4 & ~(wpk_cpu_flags)WPK_CPU_SSE4A) | WPK_CPU_AVX_VNNI},
        {"avx512_zen4", WPK_CPU_SET_ZEN4},
        {"avx512_zen5", WPK_CPU_SET_ZEN4 | WPK_CPU_AVX_VNNI},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(word, words[i].word) == 0) {
            return words[i].flags;
        }
    }
    return wpk_begins(word, "avx512") ? WPK_CPU_SET_AVX512 : 0;
}

void wpk_target_read(const char *target, struct wpk_device *out)
{
    char architecture[16], word[32];
    int capability = 0;
    wpk_cpu_flags flags = 0;
    if (wpk_target_architecture(target, architecture, sizeof(architecture)) == WPK_OK &&
        sscanf(architecture, "sm_%3d", &capability) == 1) {
        *out = (struct wpk_device){.kind = "cuda", .cuda = {.capability = capability}};
        return;
    }
    snprintf(out->kind, sizeof(out->kind), "cpu");
    for (const char *p = target; *p != '\0'; p += strspn(p, "-")) {
        size_t length = strcspn(p, "-");
        snprintf(word, sizeof(word), "%.*s", (int)length, p);
        flags |= word_flags(word);
        p += length;
    }
    wpk_device_claim(flags, out);
}
