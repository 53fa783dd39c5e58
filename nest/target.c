/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/target.h"

#include <stdio.h>
#include <string.h>

#define STRICT "-strict_float"
#define CUDA "cuda-"

void wpk_target_print(const struct wpk_device *device, bool strict, char out[WPK_TARGET_MAX])
{
    static const char *const features[WPK_ISA_COUNT] = {
        [WPK_ISA_SSE41] = "sse41",
        [WPK_ISA_AVX] = "sse41-avx",
        [WPK_ISA_AVX2] = "sse41-avx-avx2-f16c-fma",
        [WPK_ISA_AVX512] = "sse41-avx-avx2-f16c-fma-avx512-avx512_skylake",
    };
    if (wpk_device_is_cuda(device)) {
        snprintf(out, WPK_TARGET_MAX, CUDA "sm_%d%s", device->cuda.capability,
                 strict ? STRICT : "");
        return;
    }
    /* what bf16 stands for: schema/device.h */
    bool newest = device->cpu.isa == WPK_ISA_AVX512 && device->cpu.bf16;
    snprintf(out, WPK_TARGET_MAX, "x86-64-linux-%s%s%s", features[device->cpu.isa],
             newest ? "-avx512_cannonlake-avx512_zen4" : "", strict ? STRICT : "");
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
    return strncmp(target, CUDA, strlen(CUDA)) == 0;
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
        snprintf(out, WPK_TARGET_MAX, "%s", target);
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

void wpk_target_read(const char *target, struct wpk_device *out)
{
    /* Of all that is beyond Skylake's, no device but one with bf16 says that it has it. */
    static const char *const beyond[] = {"cannonlake", "zen4", "zen5", "sapphirerapids"};
    char architecture[16];
    int capability = 0;
    if (wpk_target_architecture(target, architecture, sizeof(architecture)) == WPK_OK &&
        sscanf(architecture, "sm_%3d", &capability) == 1) {
        *out = (struct wpk_device){.kind = "cuda", .cuda = {.capability = capability}};
        return;
    }
    snprintf(out->kind, sizeof(out->kind), "cpu");
    out->cpu.isa = strstr(target, "avx512") != NULL ? WPK_ISA_AVX512
                   : strstr(target, "avx2") != NULL ? WPK_ISA_AVX2
                   : strstr(target, "avx") != NULL  ? WPK_ISA_AVX
                                                    : WPK_ISA_SSE41;
    out->cpu.bf16 = 0;
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        out->cpu.bf16 = out->cpu.bf16 || strstr(target, beyond[i]) != NULL;
    }
    out->cpu.vnni = out->cpu.bf16;
}
