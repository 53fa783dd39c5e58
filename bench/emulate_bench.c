/* SPDX-License-Identifier: Apache-2.0 */
/* bench-emulate: how fast the emulator of GPUs runs a kernel, all checks on. Run it by hand:
 *
 *     build/bench/bench-emulate MODULE [N]
 *
 * MODULE has an entry like `product` in tests/gpu/testdata/kernels.cu; the product of N x N
 * matrices is computed once, and its elements are compared. */
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "tests/gpu/launch.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: bench-emulate MODULE [N]\n"
    "  thread instructions a second of the entry product of a module of PTX, for matrices of\n"
    "  N x N (256), a multiple of 32\n";

static float *allocate(struct wpk_device_memory *memory, size_t count)
{
    uint64_t address = 0;
    if (wpk_device_memory_new(memory, count * sizeof(float), &address) != WPK_OK) {
        fprintf(stderr, "bench-emulate: out of memory\n");
        exit(1);
    }
    wpk_device_memory_store(memory, address, count * sizeof(float));
    float *data = (float *)(uintptr_t)address; // NOLINT: a device address is a host's
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)(i * 7919 % 101) / 16 - 3; /* sums of products are exact */
    }
    return data;
}

static int count_wrong(const float *a, const float *b, const float *c, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++) {
                sum += a[i * n + k] * b[k * n + j];
            }
            wrong += c[i * n + j] != sum;
        }
    }
    return wrong;
}

static int run(const struct wpk_ptx *ptx, struct wpk_device_memory *memory, int n)
{
    size_t count = (size_t)n * (size_t)n;
    float *a = allocate(memory, count), *b = allocate(memory, count), *c = allocate(memory, count);
    struct wpk_launch_counts counts = {0};
    struct wpk_kernel_fault_report report = {0};
    const struct {
        uint64_t pointer[3];
        int n;
    } parameters = {{(uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)c}, n};
    const struct wpk_launch launch = {.ptx = ptx,
                                      .entry = wpk_ptx_find(ptx, "product"),
                                      .grid = {(uint32_t)n / 32, (uint32_t)n / 32, 1},
                                      .block = {64, 1, 1},
                                      .parameters = &parameters,
                                      .memory = memory};
    if (launch.entry == NULL || launch.entry->parameter_size != 28) {
        fprintf(stderr, "bench-emulate: there is no entry product like that of kernels.cu\n");
        return 2;
    }
    uint64_t start = wpk_clock_ns();
    wpk_err err = wpk_launch_run(&launch, &counts, &report);
    double seconds = (double)(wpk_clock_ns() - start) * 1e-9;
    if (err != WPK_OK || report.fault != WPK_KERNEL_FAULT_NONE) {
        fprintf(stderr, "bench-emulate: %s, line %d\n",
                err != WPK_OK ? wpk_err_text(err) : wpk_kernel_fault_text(report.fault),
                report.line);
        return 1;
    }
    int wrong = count_wrong(a, b, c, n);
    printf("%d x %d: %.3f s, %.2f x 10^9 thread instructions a second, %.1f shared wavefronts a "
           "request, %.1f sectors a global request, %d elements wrong\n",
           n, n, seconds, (double)counts.thread_instructions / seconds * 1e-9,
           (double)counts.shared_wavefronts / (double)counts.shared_requests,
           (double)counts.global_sectors / (double)counts.global_requests, wrong);
    return wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct wpk_ptx ptx = {0};
    struct wpk_device_memory memory = {0};
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    bench_usage_help(argc, argv, usage);
    long n = argc == 3 ? strtol(argv[2], NULL, 10) : 256;
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || n < 32 || n > 4096 || n % 32 != 0) {
        fputs(usage, stderr);
        return 2;
    }
    wpk_err err = wpk_fs_read(argv[1], (size_t)1 << 24, &text, &diag);
    if (err == WPK_OK) {
        err = wpk_ptx_parse(wpk_buf_text(&text), &ptx, &diag);
    }
    if (err == WPK_OK) {
        err = wpk_device_memory_init(&memory, (uint64_t)1 << 34);
    }
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        fprintf(stderr, "bench-emulate: %s: line %d: %s\n", argv[1], diag.line,
                diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        return 1;
    }
    int result = run(&ptx, &memory, (int)n);
    wpk_device_memory_fini(&memory);
    wpk_ptx_fini(&ptx);
    return result;
}
