/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's counts of the first constructed kernels of an operator. Run it by hand:
 *
 *     build/tests/cuda_counts [--all] FILE [GENE=VALUE]... [STEM]
 *
 * FILE has an operator in whole form; of candidates with these genes the first one is taken. The
 * first few blocks of each launch are run, on an emulated H100, or all of them, with the seconds
 * that it takes; with STEM the kernel is left in STEM.cu and STEM.ptx, for a disassembler. */
#include "common/clock.h"
#include "common/fs.h"
#include "ir/notation/notation.h"
#include "target/codegen.h"
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS 2 /* of a launch that are run */
#define OP_SIZE_MAX (1 << 20)
#define SMS 132

static bool all;
static const char *op_path, *stem;
static char **pins;
static int pin_count;

static wpk_err pin_all(struct wpk_space *space, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < pin_count && err == WPK_OK; i++) {
        char *value = strchr(pins[i], '=');
        *value = '\0';
        err = wpk_space_pin(space, pins[i], value + 1, diag);
    }
    return err;
}

static void construct(struct wpk_schedule *out)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_buf op = {.size_max = OP_SIZE_MAX};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate best;
    struct wpk_diag diag = {0};
    char text[WPK_CANDIDATE_TEXT_MAX];
    double seconds = 0;
    int count = 0;
    if (wpk_device_emulate("sm_90", SMS, &options.device, &diag) != WPK_OK ||
        wpk_fs_read(op_path, OP_SIZE_MAX, &op, &diag) != WPK_OK ||
        wpk_program_parse(wpk_buf_text(&op), &program, &diag) != WPK_OK ||
        wpk_space_derive(&program, &options, &space, &diag) != WPK_OK ||
        pin_all(&space, &diag) != WPK_OK ||
        wpk_space_construct(&space, &best, 1, &count) != WPK_OK ||
        wpk_candidate_encode(&space, &best, text, sizeof(text)) != WPK_OK ||
        wpk_space_bound(&space, &best, &seconds) != WPK_OK ||
        wpk_lower(&space, &best, out, &diag) != WPK_OK) {
        fail_msg("%s: %s", op_path, diag.text);
    }
    printf("%s\n%.2f us by the model that ranks first candidates\n", text, 1e6 * seconds);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
    wpk_buf_fini(&op);
}

static void leave(const char *suffix, const struct wpk_buf *text)
{
    char path[512];
    struct wpk_diag diag = {0};
    snprintf(path, sizeof(path), "%s.%s", stem, suffix);
    if (wpk_fs_write(path, text->data, text->size, 0644, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static double ratio(uint64_t a, uint64_t b)
{
    return b == 0 ? 1 : (double)a / (double)b;
}

/* Print sectors over the least of the launch, and of each tensor that it accesses. */
static void print_traffic(const struct wpk_cuda_subject *k, const struct wpk_traffic *traffic)
{
    double sectors = 0, least = 0;
    for (size_t r = 0; r < traffic->range_count; r++) {
        sectors += (double)traffic->range[r].sectors;
        least += wpk_traffic_least(&traffic->range[r]);
    }
    printf("  global sectors %.3f of the least with holes:", least > 0 ? sectors / least : 1);
    for (size_t r = 0; r < traffic->range_count; r++) {
        const struct wpk_traffic_range *range = &traffic->range[r];
        const char *name = "parts";
        for (int i = 0; i < k->plan.argument_count; i++) {
            bool is = k->address[i] == range->from;
            name = is ? k->schedule.main.tensors[k->plan.argument[i]].name : name;
        }
        if (range->sectors > 0) {
            printf(" %s %llu/%.0f", name, (unsigned long long)range->sectors,
                   wpk_traffic_least(range));
        }
    }
    printf("\n");
}

static void count_first(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    int64_t blocks[WPK_LAUNCHES_MAX];
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 1);
    construct(&k.schedule);
    wpk_cuda_subject_print(&k);
    if (stem != NULL) {
        leave("cu", &k.text);
    }
    k.assembles = stem != NULL;
    wpk_cuda_subject_compile(&nvrtc, &k);
    if (stem != NULL) {
        leave("cubin", &k.cubin);
    }
    wpk_cuda_subject_fill(&k, &rng);
    for (int i = 0; i < k.plan.argument_count; i++) { /* not all blocks run, which write it */
        wpk_device_memory_store(&k.memory, k.address[i], wpk_cuda_subject_bytes(&k, i));
    }
    for (int i = 0; i < k.plan.step_count; i++) {
        blocks[i] = k.plan.step[i].blocks;
        k.plan.step[i].blocks = all || blocks[i] < BLOCKS ? blocks[i] : BLOCKS;
    }
    int steps = k.plan.step_count;
    for (int i = 0; i < steps; i++) {
        struct wpk_kernel_fault_report report;
        struct wpk_cuda_step first = k.plan.step[0];
        struct wpk_traffic traffic;
        assert_int_equal(wpk_traffic_init(&traffic, &k.memory), WPK_OK);
        k.traffic = &traffic;
        k.plan.step[0] = k.plan.step[i];
        k.plan.step_count = 1;
        k.counts = (struct wpk_launch_counts){0};
        uint64_t start = wpk_clock_ns();
        assert_int_equal(wpk_cuda_subject_launch(&k, &report), WPK_OK);
        if (all) {
            printf("%.2f s; ", (double)(wpk_clock_ns() - start) / 1e9);
        }
        printf("%s: %lld blocks of %lld threads (%.2f of %d SMs), shared wavefronts %.3f and "
               "global sectors %.3f of the least\n",
               k.plan.step[0].entry, (long long)blocks[i], (long long)k.plan.step[0].threads,
               (double)blocks[i] / SMS, SMS,
               ratio(k.counts.shared_wavefronts, k.counts.shared_least),
               ratio(k.counts.global_sectors, k.counts.global_least));
        if (all) { /* else others' elements would be holes */
            print_traffic(&k, &traffic);
        }
        wpk_traffic_fini(&traffic);
        assert_int_equal(report.fault, WPK_KERNEL_FAULT_NONE);
        k.plan.step[0] = first;
    }
    wpk_cuda_subject_fini(&k);
    wpk_cuda_nvrtc_close(&nvrtc);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(count_first)};
    all = argc > 1 && strcmp(argv[1], "--all") == 0;
    argc -= all;
    argv += all;
    if (argc < 2) {
        fprintf(stderr, "usage: cuda_counts [--all] FILE [GENE=VALUE]... [STEM]\n");
        return 2;
    }
    op_path = argv[1];
    pins = argv + 2;
    while (2 + pin_count < argc && strchr(pins[pin_count], '=') != NULL) {
        pin_count++;
    }
    stem = argc > 2 + pin_count ? pins[pin_count] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
