/* SPDX-License-Identifier: Apache-2.0 */
/* Halide replays the nests that CUDA C is printed of: the kernels of both back ends, of the same
 * candidates, compute on the emulator what the reference does, without a fault.
 * WPK_TEST_CANDIDATES sets how many candidates each program has. */
#include "target/codegen.h"
#include "target/halide/halide.h"
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONSTRUCTED 3
#define DRAWS 10 /* for each candidate that is wanted: many are refused */
#define LEGALITY_DRAWS 30

static struct {
    struct wpk_cuda_nvrtc nvrtc; /* closed: CUDA C is not compiled */
    struct wpk_cuda_subject k;
    struct wpk_launch_plan plan; /* by Halide */
    struct wpk_buf ptx;
    uint32_t local; /* bytes of a thread, the most of all of them */
} subject;          /* large */

/* The tensors of Halide's launches: the arguments, then memory of its own. */
static void find_pointers(uint64_t pointers[WPK_LAUNCH_TENSORS_MAX])
{
    const struct wpk_cuda_subject *k = &subject.k;
    int count = 0;
    for (int i = 0; i < k->plan.argument_count; i++) {
        const struct wpk_tensor *t = &k->schedule.main.tensors[k->plan.argument[i]];
        if (t->role != WPK_ROLE_INTERMEDIATE) {
            pointers[count++] = k->address[i];
        }
    }
    assert_int_equal(count, subject.plan.argument_count);
    for (int i = 0; i < subject.plan.scratch_count; i++) {
        size_t bytes = (size_t)subject.plan.scratch[i].bytes;
        assert_int_equal(wpk_device_memory_new(&subject.k.memory, bytes, &pointers[count]), WPK_OK);
        memset((void *)(uintptr_t)pointers[count], 0xff, bytes); // NOLINT: a host's address
        count++;
    }
}

static void launch(const struct wpk_launch_step *step, const uint64_t *pointers,
                   struct wpk_kernel_fault_report *report)
{
    uint64_t parameters[WPK_LAUNCH_PARAMETERS_MAX];
    const struct wpk_launch_parameter *from = &subject.plan.parameter[step->parameter_first];
    struct wpk_launch one = {.ptx = &subject.k.ptx,
                             .entry = wpk_ptx_find(&subject.k.ptx, step->entry),
                             .shared_size = (uint32_t)step->added_bytes,
                             .parameters = parameters,
                             .order = subject.k.order,
                             .memory = &subject.k.memory};
    assert_non_null(one.entry);
    assert_int_equal(one.entry->parameter_count, step->parameter_count);
    assert_int_equal(one.entry->threads_max,
                     step->threads[0] * step->threads[1] * step->threads[2]);
    for (int d = 0; d < 3; d++) {
        one.grid[d] = (uint32_t)step->blocks[d];
        one.block[d] = (uint32_t)step->threads[d];
    }
    for (int i = 0; i < step->parameter_count; i++) {
        uint64_t value =
            (from[i].tensor >= 0 ? pointers[from[i].tensor] : 0) + (uint64_t)from[i].value;
        const struct wpk_ptx_parameter *to = &one.entry->parameter[i];
        assert_int_equal(to->size, from[i].bytes);
        memcpy((char *)parameters + to->offset, &value, to->size);
    }
    assert_int_equal(wpk_launch_run(&one, &subject.k.counts, report), WPK_OK);
}

static void fail_with(const char *by, const char *text)
{
    struct wpk_buf schedule = {0};
    (void)wpk_schedule_print(&subject.k.schedule, &schedule);
    print_error("%s", wpk_buf_text(&schedule));
    wpk_buf_fini(&schedule);
    fail_msg("%s: %s", by, text);
}

static void check(const char *by, const struct wpk_kernel_fault_report *report, double tolerance)
{
    struct wpk_diag diag = {0};
    char text[WPK_DIAG_TEXT_MAX];
    if (report->fault != WPK_KERNEL_FAULT_NONE) {
        snprintf(text, sizeof(text), "%s, block %u, thread %d, line %d",
                 wpk_kernel_fault_text(report->fault), report->block[0], report->thread,
                 report->line);
        fail_with(by, text);
    }
    if (!wpk_cuda_subject_agrees(&subject.k, tolerance, &diag)) {
        fail_with(by, diag.text);
    }
}

static void run_cuda(double tolerance)
{
    struct wpk_kernel_fault_report report = {0};
    if (subject.nvrtc.library != NULL) {
        wpk_cuda_subject_compile(&subject.nvrtc, &subject.k);
        assert_int_equal(wpk_cuda_subject_launch(&subject.k, &report), WPK_OK);
        check("cuda", &report, tolerance);
        wpk_ptx_fini(&subject.k.ptx);
    }
}

static void run_halide(double tolerance)
{
    uint64_t pointers[WPK_LAUNCH_TENSORS_MAX];
    struct wpk_kernel_fault_report report = {0};
    struct wpk_diag diag = {0};
    if (wpk_halide_cuda_compile(&subject.k.schedule, "k", &subject.plan, &subject.ptx, &diag) !=
            WPK_OK ||
        wpk_ptx_parse(wpk_buf_text(&subject.ptx), &subject.k.ptx, &diag) != WPK_OK) {
        fail_with("halide-cuda", diag.text);
    }
    for (int i = 0; i < subject.k.ptx.entry_count; i++) {
        uint32_t local = subject.k.ptx.entry[i].local_size;
        subject.local = local > subject.local ? local : subject.local;
    }
    find_pointers(pointers);
    for (int i = 0; i < subject.plan.launch_count && report.fault == WPK_KERNEL_FAULT_NONE; i++) {
        launch(&subject.plan.launch[i], pointers, &report);
    }
    check("halide-cuda", &report, tolerance);
    wpk_buf_reset(&subject.ptx);
}

/* Build the schedule in `subject` by both back ends; false: Halide's refuses it. */
static bool expect_same(double tolerance, struct wpk_rng *rng)
{
    struct wpk_schedule *schedule = &subject.k.schedule;
    struct wpk_diag diag = {0};
    for (int e = 0; e < schedule->nest->entry_count; e++) {
        schedule->nest->entry[e].depth = 0; /* copies ahead are CUDA C's alone */
    }
    snprintf(schedule->by, sizeof(schedule->by), "halide-cuda");
    wpk_err err = wpk_codegen_check(schedule, &diag);
    if (err == WPK_OK) {
        wpk_cuda_subject_print(&subject.k);
        wpk_cuda_subject_fill(&subject.k, rng);
        run_cuda(tolerance);
        wpk_cuda_subject_erase(&subject.k);
        run_halide(tolerance);
    }
    wpk_cuda_subject_fini(&subject.k);
    return err == WPK_OK;
}

static const struct {
    const char *text;
    double tolerance;
    const char *algorithm; /* "": any */
    bool strict;           /* no threads share terms */
    int count;             /* candidates */
    bool registers;        /* Halide's threads have all that is theirs in registers */
} programs[] = {
    {"input A f32[49,37]\nconstant B f32[70,37]\ninput C f32[70]\nintermediate T f32[49,70]\n"
     "output Y f32[49,70]\nT[i,j] = sum.f32(k:37) A[i,k] * B[j,k]\n"
     "Y[i,j] = max(T[i,j] + C[j], 0)\n",
     0, "", false, 2, true},
    {WPK_CUDA_CONVOLUTION("1", "16", "12", "16"), 0, "im2col", false, 1, true},
    {WPK_CUDA_CONVOLUTION("1", "8", "32", "16"), 0, "direct", false, 3, false}, /* aligned boxes */
    {"input X f32[2,3,9,11]\noutput Y f32[2,3,5,6]\n"
     "Y[n,c,y,x] = max.f32(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n",
     0, "", false, 1, false},
    {"input X f32[13,192]\nintermediate M f32[13]\nintermediate E f32[13,192]\n"
     "intermediate D f32[13]\noutput Y f32[13,192]\nM[i] = max.f32(k:192) X[i,k]\n"
     "E[i,k] = exp(X[i,k] - M[i])\nD[i] = sum.f32(k:192) E[i,k]\nY[i,k] = E[i,k] / D[i]\n",
     1e-5, "", true, 1, true},
    {"input X f32[45,70]\noutput Y f32[70,45]\nY[j,i] = X[i,j]\n", 0, "", false, 1, true},
    {"input X f32[5000]\noutput Y f32[]\nY[] = sum.f32(k:5000) X[k]\n", 0, "", true, 1, true},
    {WPK_CUDA_CONVOLUTION("1", "16", "7", "16"), 0, "winograd(2)", false, 1, false},
    {"input X f32[30,40]\nliteral L f32[3] = 0.5,-2,3\noutput Y f32[30,40]\n"
     "Y[i,j] = X[i,j] * L[j % 3]\n",
     0, "", false, 1, true},
};

#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static void check_program(size_t p, struct wpk_rng *rng)
{
    struct wpk_space space;
    struct wpk_candidate made[CONSTRUCTED], drawn;
    struct wpk_diag diag = {0};
    const char *given = getenv("WPK_TEST_CANDIDATES");
    int wanted = given == NULL ? programs[p].count : (int)strtol(given, NULL, 10);
    int constructed = 0, built = 0;
    subject.local = 0;
    wpk_cuda_derive(programs[p].text, programs[p].strict, &space);
    if (programs[p].algorithm[0] != '\0') {
        assert_int_equal(wpk_space_pin(&space, "algorithm", programs[p].algorithm, &diag), WPK_OK);
    }
    assert_int_equal(wpk_space_construct(&space, made, CONSTRUCTED, &constructed), WPK_OK);
    for (int i = 0; i < DRAWS * wanted && built < wanted; i++) {
        if (i >= constructed) {
            assert_int_equal(wpk_space_draw(&space, rng, &drawn), WPK_OK);
        }
        assert_int_equal(
            wpk_lower(&space, i < constructed ? &made[i] : &drawn, &subject.k.schedule, &diag),
            WPK_OK);
        subject.k.order = (enum wpk_launch_order)(i % WPK_LAUNCH_ORDERS);
        built += expect_same(programs[p].tolerance, rng);
    }
    assert_int_equal(built, wanted);
    assert_true(!programs[p].registers || given != NULL || subject.local == 0);
    wpk_space_fini(&space);
}

static void test_candidates(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 2);
    if (wpk_cuda_nvrtc_open(&subject.nvrtc, NULL, NULL) != WPK_OK) {
        print_message("NVRTC is missing: by halide-cuda alone\n");
    }
    for (size_t p = 0; p < PROGRAMS; p++) {
        check_program(p, &rng);
    }
    wpk_cuda_nvrtc_close(&subject.nvrtc);
    wpk_buf_fini(&subject.ptx);
}

/* A candidate of a search is legal by Halide where Halide accepts its nest, and nowhere else. */
static void test_legality(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int counts[2] = {0};
    wpk_rng_seed(&rng, 4);
    for (size_t p = 0; p < PROGRAMS; p++) {
        struct wpk_space one, both;
        struct wpk_diag diag = {0};
        wpk_cuda_derive(programs[p].text, false, &one);
        one.options.back_ends = WPK_BACK_ENDS_ALL;
        assert_int_equal(wpk_space_derive(&one.program, &one.options, &both, &diag), WPK_OK);
        for (int i = 0; i < LEGALITY_DRAWS; i++) {
            struct wpk_candidate drawn;
            assert_int_equal(wpk_space_draw(&both, &rng, &drawn), WPK_OK);
            drawn.gene[drawn.gene_count - 1] = 0;
            assert_int_equal(wpk_lower(&both, &drawn, &subject.k.schedule, &diag), WPK_OK);
            drawn.gene[drawn.gene_count - 1] = 1;
            const char *by = wpk_candidate_back_end(&both, &drawn);
            snprintf(subject.k.schedule.by, sizeof(subject.k.schedule.by), "%s", by);
            assert_string_equal(by, "halide-cuda");
            bool accepted = wpk_codegen_check(&subject.k.schedule, &diag) == WPK_OK;
            if (wpk_space_is_legal(&both, &drawn) != accepted) {
                fail_with("halide-cuda", accepted ? "it is accepted, but not legal" : diag.text);
            }
            counts[accepted]++;
            wpk_schedule_fini(&subject.k.schedule);
        }
        wpk_space_fini(&both);
        wpk_space_fini(&one);
    }
    assert_true(counts[0] > LEGALITY_DRAWS && counts[1] > LEGALITY_DRAWS);
}

/* Rows of an input begin behind three elements of padding: four elements are not accessed at once
 * there, though they are copied and stored in lanes. */
static void test_padding(void **state)
{
    (void)state;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    wpk_cuda_subject_parse(WPK_CUDA_HEAD
                           "layout X f32[8,64] 0,1 pad 0:0,1:3\nlayout Y f32[8,64] 0,1\nprogram\n"
                           "input X f32[8,64] pad 0:0,1:3\nintermediate S f32[8,64]\n"
                           "output Y f32[8,64]\nS[i,j] = X[i,j]\nY[i,j] = S[i,63-j] * 2\nend\n",
                           "stage Y root\nblock.x i\nthread.x j step 4 exact\nlanes j.1\n"
                           "stage S in Y i\nscope shared\nthread.x j step 4 exact\nlanes j.1\n",
                           &subject.k.schedule);
    assert_true(expect_same(0, &rng));
    wpk_buf_fini(&subject.ptx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_legality),
        cmocka_unit_test(test_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
