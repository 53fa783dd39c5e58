/* SPDX-License-Identifier: Apache-2.0 */
/* The loops are assembly, so that no compiler, flag or level of optimisation changes what is
 * measured. CPUID picks the machine's widest vectors, so that the binary runs anywhere. */
#include "common/machine.h"

#include "common/clock.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* An FMA's latency is at most 5 cycles and at most 2 start in each: 10 independent ones keep the
 * units full. 12 fit the 16 registers of AVX2 together with the factor and the term. */
#define ACCUMULATORS 12
#define STEPS 2048 /* per call of a loop: 5 to 10 us */
#define STREAM_BYTES_MAX ((size_t)256 << 20)
#define STREAM_CACHES 4 /* times the last-level cache, which keeps few lines of as much */
#define HUGE_PAGE ((size_t)2 << 20)

static const int flops_calls = 4000; /* in a row, of which none is the fastest so far: 30 ms */
static const int stream_passes = 5;

/* each run would lay it out in another way */
/* clang-format off */
#define EACH_ACCUMULATOR(X, r)                                                                     \
    X(r, "0")                                                                                      \
    X(r, "1") X(r, "2") X(r, "3") X(r, "4") X(r, "5") X(r, "6") X(r, "7") X(r, "8") X(r, "9")      \
        X(r, "10") X(r, "11")
/* clang-format on */

/* x = x * 0.5 + 0.5 converges to 1: neither denormal nor infinite */
#define FMA_BEGIN(r, i) "vmovaps %%" r "15, %%" r i "\n\t"
#define FMA_STEP(r, i) "vfmadd213ps %%" r "15, %%" r "14, %%" r i "\n\t"
#define SSE_BEGIN(r, i) "movaps %%" r "15, %%" r i "\n\t"
#define SSE_STEP(r, i) "mulps %%" r "14, %%" r i "\n\taddps %%" r "15, %%" r i "\n\t"
#define CLOBBERED                                                                                  \
    "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm14", "xmm15"

static const float halves[4] = {0.5F, 0.5F, 0.5F, 0.5F};

#define RUN_FMA(name, r)                                                                           \
    static void name(void)                                                                         \
    {                                                                                              \
        long steps = STEPS;                                                                        \
        __asm__ volatile("vbroadcastss %1, %%" r "14\n\t"                                          \
                         "vbroadcastss %1, %%" r "15\n\t" EACH_ACCUMULATOR(                        \
                             FMA_BEGIN, r) "1:\n\t" EACH_ACCUMULATOR(FMA_STEP, r) "dec %0\n\t"     \
                                                                                  "jnz 1b\n\t"     \
                                                                                  "vzeroupper"     \
                         : "+r"(steps)                                                             \
                         : "m"(halves[0])                                                          \
                         : CLOBBERED);                                                             \
    }
RUN_FMA(run_avx512, "zmm")
RUN_FMA(run_avx2, "ymm")

static void run_sse2(void)
{
    long steps = STEPS;
    __asm__ volatile("movups %1, %%xmm14\n\t"
                     "movups %1, %%xmm15\n\t" EACH_ACCUMULATOR(SSE_BEGIN, "xmm") //
                     "1:\n\t" EACH_ACCUMULATOR(SSE_STEP, "xmm")                  //
                     "dec %0\n\t"
                     "jnz 1b"
                     : "+r"(steps)
                     : "m"(halves)
                     : CLOBBERED);
}

static const struct loop {
    void (*run)(void);
    int lanes;
    bool fma;
    const char *name;
} loops[] = {
    {run_avx512, 16, true, "AVX-512"},
    {run_avx2, 8, true, "AVX2"},
    {run_sse2, 4, false, "SSE2"},
};

static double measure_flops(const struct loop *loop)
{
    uint64_t best_ns = UINT64_MAX;
    for (int calls = 0; calls < flops_calls; calls++) {
        const uint64_t start = wpk_clock_ns();
        loop->run();
        const uint64_t ns = wpk_clock_ns() - start;
        calls = ns < best_ns - best_ns / 1000 ? 0 : calls;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    const double flops = 2.0 * ACCUMULATORS * STEPS * loop->lanes;
    return flops * 1e9 / (double)(best_ns > 0 ? best_ns : 1);
}

/* 16 bytes a load is enough to be faster than any memory; a sanitizer would make it slower. */
typedef uint64_t pair __attribute__((vector_size(16)));

__attribute__((no_sanitize("address"), no_sanitize("undefined"))) static uint64_t
sum_all(const pair *data, size_t count)
{
    pair sum[4] = {{0}};
    for (size_t i = 0; i + 4 <= count; i += 4) {
        for (size_t j = 0; j < 4; j++) {
            sum[j] += data[i + j];
        }
    }
    const pair all = sum[0] + sum[1] + sum[2] + sum[3];
    return all[0] + all[1];
}

static wpk_err measure_stream(double *bytes_per_s)
{
    const size_t wanted = STREAM_CACHES * (size_t)wpk_caches_size(0, 3) / HUGE_PAGE * HUGE_PAGE;
    const size_t size = wanted > 0 && wanted < STREAM_BYTES_MAX ? wanted : STREAM_BYTES_MAX;
    pair *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return WPK_ENOMEM;
    }
    (void)madvise(data, size, MADV_HUGEPAGE); /* small pages take longer than all else */
    memset(data, 1, size); /* pages that were never written all read one page of zeros */
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < stream_passes; i++) {
        const uint64_t start = wpk_clock_ns();
        const volatile uint64_t sum = sum_all(data, size / sizeof(pair));
        (void)sum;
        const uint64_t ns = wpk_clock_ns() - start;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    munmap(data, size);
    *bytes_per_s = (double)size * 1e9 / (double)(best_ns > 0 ? best_ns : 1);
    return WPK_OK;
}

wpk_err wpk_peak_measure(struct wpk_peak *out)
{
    const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const struct loop *loop = &loops[__builtin_cpu_supports("avx512f") ? 0 : fma ? 1 : 2];
    struct wpk_peak peak = {.lanes = loop->lanes, .fma = loop->fma, .name = loop->name};
    const wpk_err err = measure_stream(&peak.bytes_per_s);
    if (err != WPK_OK) {
        return err;
    }
    peak.flops_per_s = measure_flops(loop);
    *out = peak;
    return WPK_OK;
}
