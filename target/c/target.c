/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler flags for a target: the instructions, and how floating point is computed. */
#include "target/c/print.h"

#include "ir/instruction/instruction.h"

#define OPTION(suffix, text, option) "-m" option,
static const char *const options[WPK_CPU_FLAG_COUNT] = {WPK_CPU_FLAG_LIST(OPTION)};

/* The flags that expressions in C gain by, beside those of instructions that a nest names: the
 * printed text converts f16 bit by bit, and counts no leading zeros, so that neither F16C nor
 * AVX512CD is asked for. */
static const wpk_cpu_flags used = WPK_CPU_SET_AVX | WPK_CPU_AVX2 | WPK_CPU_FMA | WPK_CPU_AVX512F |
                                  WPK_CPU_AVX512BW | WPK_CPU_AVX512DQ | WPK_CPU_AVX512VL;

wpk_cpu_flags wpk_c_needs(const struct wpk_schedule *schedule)
{
    struct wpk_device device = {0};
    wpk_cpu_flags flags = used;
    for (int i = 0; schedule->nest != NULL && i < schedule->nest->loop_count; i++) {
        const struct wpk_nest_loop *loop = &schedule->nest->loop[i];
        flags |= loop->binding == WPK_BIND_DOT ? wpk_instruction_at(loop->instruction)->flags : 0;
    }
    wpk_target_read(schedule->target, &device);
    return device.cpu.flags & flags;
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
    const wpk_cpu_flags needs = wpk_c_needs(schedule);
    int count = 0;
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        flags[count++] = always[i];
    }
    flags[count++] =
        wpk_target_is_strict(schedule->target) ? "-ffp-contract=off" : "-ffp-contract=fast";
    for (int i = 0; i < WPK_CPU_FLAG_COUNT; i++) {
        if ((needs >> i & 1) != 0) {
            flags[count++] = options[i];
        }
    }
    flags[count] = NULL;
    WPK_ASSERT(count < WPK_C_FLAGS_MAX);
}
