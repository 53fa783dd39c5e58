/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler flags for a target: the instructions, and how floating point is computed. */
#include "target/c/target.h"

#include "target/c/print.h"

#include <string.h>

/* The flags of each instruction set, beside those of the ones before it. */
static const char *const instructions[WPK_ISA_COUNT][6] = {
    [WPK_ISA_SSE41] = {"-msse4.1"},
    [WPK_ISA_AVX] = {"-mavx"},
    [WPK_ISA_AVX2] = {"-mavx2", "-mfma", "-mf16c"},
    [WPK_ISA_AVX512] = {"-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl"},
};

int wpk_c_vector_bytes(enum wpk_isa isa)
{
    return isa == WPK_ISA_AVX512 ? 64 : isa == WPK_ISA_SSE41 ? 16 : 32;
}

/* NaN and infinities are what IEEE says; products and sums are fused unless the target is strict,
 * integers wrap. */
void wpk_c_flags(const struct wpk_schedule *schedule, const char *flags[WPK_C_FLAGS_MAX])
{
    static const char *const always[] = {"-std=gnu11",
                                         "-O2",
                                         "-fPIC",
                                         "-fvisibility=hidden",
                                         "-fno-math-errno",
                                         "-fno-trapping-math",
                                         "-fwrapv",
                                         "-fno-stack-protector",
                                         "-fno-asynchronous-unwind-tables"};
    struct wpk_device needed;
    int count = 0;
    wpk_target_read(schedule->target, &needed);
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        flags[count++] = always[i];
    }
    flags[count++] =
        wpk_target_is_strict(schedule->target) ? "-ffp-contract=off" : "-ffp-contract=fast";
    for (int isa = 0; isa <= (int)needed.cpu.isa; isa++) {
        for (int i = 0; i < 6 && instructions[isa][i] != NULL; i++) {
            flags[count++] = instructions[isa][i];
        }
    }
    flags[count] = NULL;
    WPK_ASSERT(count < WPK_C_FLAGS_MAX);
}
