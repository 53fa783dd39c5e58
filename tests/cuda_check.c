/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda_check.h"

#include "common/cubin.h"
#include "ir/notation/notation.h"
#include "ir/reference/reference.h"
#include "nest/nest.h"
#include "target/codegen.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void wpk_cuda_subject_parse(const char *head, const char *nest, struct wpk_schedule *out)
{
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, "%s%s", head, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), out, &diag) != WPK_OK ||
        wpk_nest_check(out->nest, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

void wpk_cuda_subject_print(struct wpk_cuda_subject *k)
{
    struct wpk_diag diag = {0};
    if (wpk_cuda_print(&k->schedule, "k", &k->text, &k->plan, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    if (getenv("WPK_TEST_SHOW") != NULL) {
        fprintf(stderr, "%s", wpk_buf_text(&k->text));
    }
}

void wpk_cuda_subject_compile(const struct wpk_cuda_nvrtc *nvrtc, struct wpk_cuda_subject *k)
{
    struct wpk_buf ptx = {0};
    struct wpk_diag diag = {0};
    const char *text = wpk_buf_text(&k->text);
    wpk_buf_reset(&k->cubin);
    if (wpk_cuda_nvrtc_compile(nvrtc, text, "sm_90", false, k->assembles ? &k->cubin : NULL, &ptx,
                               &diag) != WPK_OK) {
        fprintf(stderr, "%s", text);
        fail_msg("%s", diag.text);
    }
    if (wpk_ptx_parse(wpk_buf_text(&ptx), &k->ptx, &diag) != WPK_OK) {
        fail_msg("line %d of the PTX: %s", diag.line, diag.text);
    }
    wpk_buf_fini(&ptx);
}

static int64_t elements_of(const struct wpk_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++) {
        count *= t->pad_before[d] + t->extent[d] + t->pad_after[d];
    }
    return count;
}

/* The place of an element in padded memory. */
static int64_t place_of(const struct wpk_tensor *t, int64_t element)
{
    int64_t at = 0, stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        at += (element % t->extent[d] + t->pad_before[d]) * stride;
        element /= t->extent[d];
        stride *= t->pad_before[d] + t->extent[d] + t->pad_after[d];
    }
    return at;
}

static float *host(uint64_t address)
{
    return (float *)(uintptr_t)address; // NOLINT: a device address is a host's
}

/* Of parts nothing is known; tickets are 0. */
static void fill_parts(struct wpk_cuda_subject *k)
{
    size_t bytes = (size_t)k->plan.part_bytes;
    size_t tickets = (size_t)k->plan.ticket_count * sizeof(uint32_t);
    if (bytes > 0) {
        assert_int_equal(wpk_device_memory_new(&k->memory, bytes, &k->parts), WPK_OK);
        assert_int_equal(wpk_device_memory_new(&k->memory, tickets, &k->tickets), WPK_OK);
        memset(host(k->parts), 0xff, bytes);
        memset(host(k->tickets), 0, tickets);
        wpk_device_memory_store(&k->memory, k->tickets, tickets);
    }
}

void wpk_cuda_subject_fill(struct wpk_cuda_subject *k, struct wpk_rng *rng)
{
    assert_int_equal(wpk_device_memory_init(&k->memory, (uint64_t)1 << 30), WPK_OK);
    fill_parts(k);
    for (int i = 0; i < k->plan.argument_count; i++) {
        const struct wpk_tensor *t = &k->schedule.main.tensors[k->plan.argument[i]];
        bool read = t->role == WPK_ROLE_INPUT || t->role == WPK_ROLE_CONSTANT;
        int64_t count = elements_of(t) - k->missing[i];
        assert_int_equal(t->dtype, WPK_F32);
        assert_int_equal(
            wpk_device_memory_new(&k->memory, (uint64_t)count * sizeof(float), &k->address[i]),
            WPK_OK);
        for (int64_t e = 0; e < count; e++) {
            host(k->address[i])[e] = read ? 0 : NAN;
        }
        if (!read) {
            continue;
        }
        wpk_device_memory_store(&k->memory, k->address[i], (uint64_t)count * sizeof(float));
        double *values = malloc((size_t)wpk_tensor_elements(t) * sizeof(*values));
        assert_non_null(values);
        k->values[k->plan.argument[i]] = values;
        for (int64_t e = 0; e < wpk_tensor_elements(t); e++) {
            values[e] = (double)wpk_rng_between(rng, -64, 64) / 16;
            host(k->address[i])[place_of(t, e)] = (float)values[e];
        }
    }
}

size_t wpk_cuda_subject_bytes(const struct wpk_cuda_subject *k, int i)
{
    const struct wpk_tensor *t = &k->schedule.main.tensors[k->plan.argument[i]];
    return (size_t)(elements_of(t) - k->missing[i]) * sizeof(float);
}

void wpk_cuda_subject_erase(struct wpk_cuda_subject *k)
{
    for (int i = 0; i < k->plan.argument_count; i++) {
        const struct wpk_tensor *t = &k->schedule.main.tensors[k->plan.argument[i]];
        bool read = t->role == WPK_ROLE_INPUT || t->role == WPK_ROLE_CONSTANT;
        for (int64_t e = 0; e < elements_of(t) - k->missing[i] && !read; e++) {
            host(k->address[i])[e] = NAN;
        }
    }
}

uint64_t wpk_cuda_subject_origin(const struct wpk_cuda_subject *k, int i)
{
    const struct wpk_tensor *t = &k->schedule.main.tensors[k->plan.argument[i]];
    return k->address[i] + (uint64_t)place_of(t, 0) * sizeof(float);
}

/*   shape   parameters [step->taken_count] */
static void list_parameters(const struct wpk_cuda_subject *k, const struct wpk_cuda_step *step,
                            uint64_t *parameters)
{
    int count = k->plan.argument_count;
    for (int i = 0; i < step->taken_count; i++) {
        int taken = step->taken[i];
        parameters[i] = taken < count    ? wpk_cuda_subject_origin(k, taken)
                        : taken == count ? k->parts
                                         : k->tickets;
    }
}

wpk_err wpk_cuda_subject_launch(struct wpk_cuda_subject *k, struct wpk_kernel_fault_report *report)
{
    uint64_t parameters[WPK_TENSORS_MAX + 2];
    wpk_err err = WPK_OK;
    *report = (struct wpk_kernel_fault_report){0};
    for (int i = 0; i < k->plan.step_count && err == WPK_OK; i++) {
        const struct wpk_cuda_step *step = &k->plan.step[i];
        list_parameters(k, step, parameters);
        const struct wpk_launch one = {.ptx = &k->ptx,
                                       .entry = wpk_ptx_find(&k->ptx, step->entry),
                                       .grid = {(uint32_t)step->blocks, 1, 1},
                                       .block = {(uint32_t)step->threads, 1, 1},
                                       .parameters = parameters,
                                       .order = k->order,
                                       .memory = &k->memory,
                                       .traffic = k->traffic};
        assert_non_null(one.entry);
        err = wpk_launch_run(&one, &k->counts, report);
        if (report->fault != WPK_KERNEL_FAULT_NONE) {
            break;
        }
    }
    return err;
}

/* The value to which an error is relative; 0: each element's own. With Winograd's numbers large
 * products cancel: there it is the largest result. */
static double scale_of(const struct wpk_program *program, const double *value, int64_t count)
{
    double largest = 0;
    bool literal = false;
    for (int t = 0; t < program->tensor_count; t++) {
        literal = literal || program->tensors[t].role == WPK_ROLE_LITERAL;
    }
    for (int64_t e = 0; e < count && literal; e++) {
        largest = fmax(largest, fabs(value[e]));
    }
    return largest;
}

#define LITERAL_TOLERANCE 1e-5

bool wpk_cuda_subject_agrees(const struct wpk_cuda_subject *k, double tolerance,
                             struct wpk_diag *diag)
{
    const struct wpk_program *program = &k->schedule.main;
    struct wpk_reference_args args = {0};
    bool agrees = true;
    int output = 0;
    while (program->tensors[k->plan.argument[output]].role != WPK_ROLE_OUTPUT) {
        args.tensor[k->plan.argument[output]] = k->values[k->plan.argument[output]];
        output++;
    }
    const struct wpk_tensor *t = &program->tensors[k->plan.argument[output]];
    int64_t count = wpk_tensor_elements(t);
    double *value = calloc((size_t)count, sizeof(*value));
    assert_non_null(value);
    assert_int_equal(wpk_reference_run(program, &args, value, NULL, diag), WPK_OK);
    double scale = scale_of(program, value, count);
    tolerance = scale > 0 ? fmax(tolerance, LITERAL_TOLERANCE) : tolerance;
    for (int64_t e = 0; e < count && agrees; e++) {
        double got = (double)host(k->address[output])[place_of(t, e)];
        agrees = fabs(got - value[e]) <= tolerance * fmax(1, fmax(scale, fabs(value[e])));
        if (!agrees) {
            wpk_diag_set(diag, "element %lld of %s: %.9g, expected %.9g", (long long)e, t->name,
                         got, value[e]);
        }
    }
    free(value);
    return agrees;
}

void wpk_cuda_subject_open(struct wpk_cuda_nvrtc *nvrtc)
{
    struct wpk_diag diag = {0};
    if (wpk_cuda_nvrtc_open(nvrtc, NULL, &diag) != WPK_OK) {
        print_message("%s\n", diag.text);
        skip();
    }
}

void wpk_cuda_subject_fini(struct wpk_cuda_subject *k)
{
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(k->values[t]);
    }
    wpk_device_memory_fini(&k->memory);
    wpk_ptx_fini(&k->ptx);
    wpk_buf_fini(&k->cubin);
    wpk_schedule_fini(&k->schedule);
    wpk_buf_fini(&k->text);
    memset(k, 0, sizeof(*k));
}

/* ---- whole tests */

#define BARRIER "__syncthreads();"

/* Remove barrier number `missing`, from 0; false if there are fewer. */
static bool remove_barrier(char *text, int missing)
{
    char *at = strstr(text, BARRIER);
    for (int i = 0; i < missing && at != NULL; i++) {
        at = strstr(at + 1, BARRIER);
    }
    if (at != NULL) {
        memset(at, ' ', strlen(BARRIER));
    }
    return at != NULL;
}

/* All that a thread has is in registers, and the plan has the shared memory that the code has, as
 * PTX and as machine code. */
static void check_entries(const struct wpk_cuda_subject *k)
{
    struct wpk_cubin_function code;
    for (int i = 0; i < k->plan.step_count; i++) {
        const struct wpk_cuda_step *step = &k->plan.step[i];
        const struct wpk_ptx_entry *entry = wpk_ptx_find(&k->ptx, step->entry);
        assert_non_null(entry);
        assert_int_equal(entry->parameter_count, step->taken_count);
        assert_int_equal(entry->shared_size, step->shared_bytes);
        assert_int_equal(entry->local_size, 0);
        if (!k->assembles) {
            continue;
        }
        assert_int_equal(wpk_cubin_find(k->cubin.data, k->cubin.size, step->entry, &code), WPK_OK);
        assert_int_equal(code.parameter_bytes, 8 * step->taken_count);
        assert_int_equal(code.shared_bytes, step->shared_bytes);
        assert_int_equal(code.threads_max, step->threads);
        assert_true(code.registers > 0 && code.registers * step->threads <= 65536);
    }
}

void wpk_cuda_subject_run(const struct wpk_cuda_nvrtc *nvrtc, struct wpk_cuda_subject *k,
                          struct wpk_rng *rng, double tolerance)
{
    struct wpk_kernel_fault_report report;
    struct wpk_diag diag = {0};
    wpk_cuda_subject_print(k);
    wpk_cuda_subject_compile(nvrtc, k);
    check_entries(k);
    wpk_cuda_subject_fill(k, rng);
    assert_int_equal(wpk_cuda_subject_launch(k, &report), WPK_OK);
    if (report.fault != WPK_KERNEL_FAULT_NONE) {
        fail_msg("%s, block %u, thread %d, line %d", wpk_kernel_fault_text(report.fault),
                 report.block[0], report.thread, report.line);
    }
    if (!wpk_cuda_subject_agrees(k, tolerance, &diag)) {
        fail_msg("%s", diag.text);
    }
}

char wpk_cuda_expected[1 << 20];

void wpk_cuda_expect(const char *head, const char *nest, double tolerance,
                     struct wpk_launch_counts *counts)
{
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 1);
    wpk_cuda_subject_parse(head, nest, &k.schedule);
    k.assembles = true;
    wpk_cuda_subject_run(&nvrtc, &k, &rng, tolerance);
    *counts = k.counts;
    snprintf(wpk_cuda_expected, sizeof(wpk_cuda_expected), "%s", wpk_buf_text(&k.text));
    wpk_cuda_subject_fini(&k);
    wpk_cuda_nvrtc_close(&nvrtc);
}

void wpk_cuda_expect_barriers(const char *head, const char *nest, int expected)
{
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    bool found = true;
    int count = 0;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 3);
    for (; found; count += found) {
        struct wpk_kernel_fault_report report;
        wpk_cuda_subject_parse(head, nest, &k.schedule);
        wpk_cuda_subject_print(&k);
        found = remove_barrier((char *)k.text.data, count);
        wpk_cuda_subject_compile(&nvrtc, &k);
        wpk_cuda_subject_fill(&k, &rng);
        assert_int_equal(wpk_cuda_subject_launch(&k, &report), WPK_OK);
        if ((report.fault == WPK_KERNEL_FAULT_NONE) == found) {
            fail_msg("without barrier %d: %s", count, wpk_kernel_fault_text(report.fault));
        }
        wpk_cuda_subject_fini(&k);
    }
    assert_int_equal(count, expected);
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* ---- spaces */

void wpk_cuda_derive(const char *text, bool strict, struct wpk_space *space)
{
    struct wpk_space_options options = {.layouts = "any", .threads = 1, .strict = strict};
    struct wpk_program program;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, &diag), WPK_OK);
    if (wpk_program_parse(text, &program, &diag) != WPK_OK ||
        wpk_space_derive(&program, &options, space, &diag) != WPK_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    wpk_program_fini(&program);
}

void wpk_cuda_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    struct wpk_schedule *out)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    struct wpk_candidate back = {0};
    struct wpk_diag diag = {0};
    assert_true(wpk_space_is_legal(space, candidate));
    assert_int_equal(wpk_candidate_encode(space, candidate, text, sizeof(text)), WPK_OK);
    assert_int_equal(strncmp(text, "cuda-13 ", 8), 0);
    if (wpk_candidate_decode(space, text, &back, &diag) != WPK_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    assert_true(wpk_candidate_equal(candidate, &back));
    if (wpk_lower(space, candidate, out, &diag) != WPK_OK ||
        wpk_nest_check(out->nest, &diag) != WPK_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    assert_string_equal(out->target, "cuda-sm_90");
    assert_string_equal(out->by, "cuda");
}
