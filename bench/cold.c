/* SPDX-License-Identifier: Apache-2.0 */
/* Times one kernel under warm and cold conditions, and compares two ways to make prepared constants
 * cold. The worker streams twice the last-level cache and flushes the constants' lines.
 * bench-compare only streams, because libraries do not tell where their constants lie. Samples take
 * turns.
 *
 * The program fails if the two ways differ by more than 5 %, or if constants larger than a core's
 * own caches are read from memory as fast as from the last-level cache. Run it on an idle machine,
 * because other programs evict warm data, and with constants that fit the last-level cache. */
#include "bench/stats.h"
#include "bench/usage.h"
#include "common/clock.h"
#include "common/machine.h"
#include "runtime/kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 1000
#define ROUNDS_DEFAULT 60
#define DIFFERENCE_MAX 0.05
#define SLOWER_MIN 1.1
#define LARGE_BYTES (8U << 20) /* beyond a core's own caches */

static const char usage[] =
    "usage: bench-cold KERNEL.so [ROUNDS]\n"
    "  a kernel under warm and cold conditions, and the two ways to make constants cold;\n"
    "  ROUNDS is 1 to 1000 (60)\n";

enum way { WARM, FLUSHED, STREAMED, WAYS };

static const char *const way_names[WAYS] = {"warm", "streamed, flushed", "streamed"};

struct cold {
    struct wpk_kernel *kernel;
    struct wpk_context *context;
    struct wpk_tensor_data constants[WPK_ABI_ARGUMENTS_MAX]; /* data owned */
    struct wpk_tensor_data inputs[WPK_ABI_ARGUMENTS_MAX];    /* data owned */
    struct wpk_tensor_data outputs[WPK_ABI_ARGUMENTS_MAX];   /* data owned */
    struct wpk_span spans[WPK_ABI_ARGUMENTS_MAX];
    size_t constant_count, input_count, output_count, span_count;
    double samples[WAYS][ROUNDS_MAX];
};

/* Zeros are as fast to compute with as other numbers; denormals and NaN would not be. */
static wpk_err fill(const struct wpk_kernel *kernel, size_t count,
                    const struct wpk_argument *(*get)(const struct wpk_kernel *, size_t),
                    bool padded, struct wpk_tensor_data *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct wpk_argument *argument = get(kernel, i);
        const size_t dense = (size_t)wpk_tensor_type_elements(&argument->type) *
                             wpk_dtype_size(argument->type.dtype);
        out[i].name = argument->name;
        out[i].size = padded ? wpk_tensor_type_bytes(&argument->type) : dense;
        out[i].data = aligned_alloc(64, (out[i].size + 63) / 64 * 64);
        if (out[i].data == NULL) {
            return WPK_ENOMEM;
        }
        memset(out[i].data, 0, out[i].size);
    }
    return WPK_OK;
}

static wpk_err open_kernel(struct cold *cold, const char *path, struct wpk_diag *diag)
{
    wpk_err err = wpk_kernel_open(path, NULL, &cold->kernel, diag);
    if (err != WPK_OK) {
        return err;
    }
    cold->constant_count = wpk_kernel_constant_count(cold->kernel);
    cold->input_count = wpk_kernel_input_count(cold->kernel);
    cold->output_count = wpk_kernel_output_count(cold->kernel);
    err = fill(cold->kernel, cold->constant_count, wpk_kernel_constant, false, cold->constants);
    if (err == WPK_OK) {
        err = fill(cold->kernel, cold->input_count, wpk_kernel_input, true, cold->inputs);
    }
    if (err == WPK_OK) {
        err = fill(cold->kernel, cold->output_count, wpk_kernel_output, true, cold->outputs);
    }
    if (err == WPK_OK) {
        err = wpk_kernel_prepare(cold->kernel, cold->constants, cold->constant_count, diag);
    }
    if (err == WPK_OK) {
        cold->span_count = wpk_kernel_constants(cold->kernel, cold->spans);
        err = wpk_context_new(&(struct wpk_context_options){.threads = 1}, &cold->context);
    }
    return err;
}

static wpk_err cool(const struct cold *cold, enum way way)
{
    wpk_err err = way == WARM ? WPK_OK : wpk_caches_stream();
    for (size_t i = 0; way == FLUSHED && i < cold->span_count; i++) {
        (void)wpk_caches_flush(cold->spans[i].data, cold->spans[i].size);
    }
    for (size_t i = 0; i < cold->input_count; i++) {
        wpk_caches_read(cold->inputs[i].data, cold->inputs[i].size);
    }
    for (size_t i = 0; i < cold->output_count; i++) {
        wpk_caches_read(cold->outputs[i].data, cold->outputs[i].size);
    }
    return err;
}

static wpk_err run(const struct cold *cold)
{
    return wpk_kernel_run(cold->kernel, cold->context, cold->inputs, cold->input_count,
                          cold->outputs, cold->output_count);
}

static wpk_err take_sample(struct cold *cold, enum way way, int round)
{
    wpk_err err = run(cold); /* what the call before leaves, whichever way came before */
    if (err == WPK_OK) {
        err = cool(cold, way);
    }
    const uint64_t start = wpk_clock_now_ns(wpk_clock_system());
    if (err == WPK_OK) {
        err = run(cold);
    }
    cold->samples[way][round] = (double)(wpk_clock_now_ns(wpk_clock_system()) - start);
    return err;
}

static wpk_err measure(struct cold *cold, int rounds)
{
    wpk_err err = WPK_OK;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WAYS && err == WPK_OK; i++) {
            err = take_sample(cold, (enum way)((round + i) % WAYS), round);
        }
    }
    return err;
}

static bool report(struct cold *cold, int rounds)
{
    double ns[WAYS];
    size_t bytes = 0;
    for (size_t i = 0; i < cold->span_count; i++) {
        bytes += cold->spans[i].size;
    }
    printf("prepared constants: %.1f MB\n", (double)bytes / 1e6);
    for (int way = 0; way < WAYS; way++) {
        bench_stats_sort(cold->samples[way], rounds);
        ns[way] = bench_stats_median(cold->samples[way], rounds);
        printf("%-18s %10.1f us median, %.1f us least, of %d\n", way_names[way], ns[way] / 1e3,
               cold->samples[way][0] / 1e3, rounds);
    }
    const double difference = ns[STREAMED] / ns[FLUSHED] - 1;
    const bool agree = difference <= DIFFERENCE_MAX && difference >= -DIFFERENCE_MAX;
    const bool slower = bytes < LARGE_BYTES || ns[FLUSHED] >= SLOWER_MIN * ns[WARM];
    printf("flushed / warm %.3f%s; streamed / flushed %.3f%s\n", ns[FLUSHED] / ns[WARM],
           slower ? "" : " (not slower: not evicted, or not cached before)", 1 + difference,
           agree ? "" : " (they differ by more than 5 %)");
    return agree && slower;
}

static void close_kernel(struct cold *cold)
{
    wpk_context_free(cold->context);
    wpk_kernel_close(cold->kernel);
    for (size_t i = 0; i < WPK_ABI_ARGUMENTS_MAX; i++) {
        free(cold->constants[i].data);
        free(cold->inputs[i].data);
        free(cold->outputs[i].data);
    }
}

int main(int argc, char **argv)
{
    static struct cold cold;
    struct wpk_diag diag = {0};
    bench_usage_help(argc, argv, usage);
    const long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : ROUNDS_DEFAULT;
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || rounds < 1 || rounds > ROUNDS_MAX) {
        fputs(usage, stderr);
        return 2;
    }
    wpk_err err = open_kernel(&cold, argv[1], &diag);
    if (err == WPK_OK) {
        err = measure(&cold, (int)rounds);
    }
    bool good = false;
    if (err == WPK_OK) {
        good = report(&cold, (int)rounds);
    } else {
        fprintf(stderr, "bench-cold: %s: %s %s\n", argv[1], wpk_err_text(err), diag.text);
    }
    close_kernel(&cold);
    return good ? 0 : 1;
}
