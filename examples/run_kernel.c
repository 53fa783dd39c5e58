/* SPDX-License-Identifier: Apache-2.0 */
/* Run a tuned kernel from C, with nothing but libwpk.
 *
 *     cc -O2 run_kernel.c $(pkg-config --cflags --libs wpk) -o run_kernel
 *     ./run_kernel c6.so.choice [THREADS]
 *
 * Inputs and constants are filled with a pattern that anyone can repeat: element i of the t-th
 * tensor, inputs first, counted row-major from 0, is ((7 * i + 3 * t) % 17 - 8) / 8. So the output
 * can be compared with any other implementation's: sums of products of these multiples of 1/8 are
 * exact unless the kernel transforms its tensors, as Winograd's do. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, under -std=c11 too */

#include "wpk/wpk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TENSORS_MAX 40
#define RUN_COUNT 50

static void check(wpk_err err, const char *what, const struct wpk_diag *diag)
{
    if (err != WPK_OK) {
        fprintf(stderr, "%s: %s%s%s\n", what, wpk_err_text(err),
                diag != NULL && diag->text[0] != '\0' ? ": " : "", diag != NULL ? diag->text : "");
        exit(1);
    }
}

static float *new_floats(size_t count)
{
    /* aligned_alloc wants a multiple of the alignment */
    float *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);

    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* The tensor as its operator declares it: dense and row-major. */
static float *new_pattern(const struct wpk_argument *argument, size_t tensor)
{
    size_t count = (size_t)wpk_tensor_type_elements(&argument->type);
    float *values = new_floats(count);

    if (argument->type.dtype != WPK_F32) {
        fprintf(stderr, "%s is %s; this example knows f32 only\n", argument->name,
                wpk_dtype_name(argument->type.dtype));
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)((int)((7 * i + 3 * tensor) % 17) - 8) / 8;
    }
    return values;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void print_output(const struct wpk_argument *argument, const float *values)
{
    size_t count = (size_t)wpk_tensor_type_elements(&argument->type);
    const size_t points[] = {0, 1 % count, count / 3, count / 2, count - 1};
    double sum = 0, magnitude = 0;

    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        magnitude += values[i] < 0 ? -values[i] : values[i];
    }
    printf("%s: sum %.6f, sum of magnitudes %.6f\n", argument->name, sum, magnitude);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        printf("  %s[%zu] = %.6f\n", argument->name, points[i], values[points[i]]);
    }
}

static void prepare(struct wpk_kernel *kernel)
{
    struct wpk_tensor_data constants[TENSORS_MAX];
    struct wpk_diag diag = {0};
    size_t count = wpk_kernel_constant_count(kernel);

    for (size_t i = 0; i < count; i++) {
        const struct wpk_argument *argument = wpk_kernel_constant(kernel, i);
        constants[i].name = argument->name;
        constants[i].data = new_pattern(argument, wpk_kernel_input_count(kernel) + i);
        constants[i].size = (size_t)wpk_tensor_type_elements(&argument->type) * sizeof(float);
    }
    check(wpk_kernel_prepare(kernel, constants, count, &diag), "prepare", &diag);
    for (size_t i = 0; i < count; i++) {
        free(constants[i].data); /* the kernel has its own copy */
    }
}

/* Tensors lie in the layout that the kernel wants. */
static void make_tensor(const struct wpk_argument *argument, struct wpk_tensor_data *out)
{
    char layout[256];

    out->name = argument->name;
    out->size = wpk_tensor_type_bytes(&argument->type);
    out->data = new_floats(out->size / sizeof(float));
    check(wpk_layout_encode(&argument->type.layout, layout, sizeof(layout)), "layout", NULL);
    printf("%-8s %s, layout %s\n", argument->name, wpk_dtype_name(argument->type.dtype), layout);
}

static void make_tensors(const struct wpk_kernel *kernel, struct wpk_tensor_data *inputs,
                         struct wpk_tensor_data *outputs)
{
    for (size_t i = 0; i < wpk_kernel_input_count(kernel); i++) {
        const struct wpk_argument *argument = wpk_kernel_input(kernel, i);
        float *dense = new_pattern(argument, i);
        make_tensor(argument, &inputs[i]);
        wpk_tensor_pack(&argument->type, dense, inputs[i].data);
        free(dense);
    }
    for (size_t i = 0; i < wpk_kernel_output_count(kernel); i++) {
        make_tensor(wpk_kernel_output(kernel, i), &outputs[i]);
    }
}

/* Open the kernel that a choice selects for this machine, or a single kernel file. */
static struct wpk_kernel *open_kernel(const char *path)
{
    const struct wpk_open_options options = {.self_test = true};
    const char *suffix = strrchr(path, '.');
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    if (suffix == NULL || strcmp(suffix, ".choice") != 0) {
        check(wpk_kernel_open(path, NULL, &kernel, &diag), path, &diag);
        return kernel;
    }
    check(wpk_open(path, &options, &kernel, &diag), path, &diag);
    struct wpk_choice_taken taken = wpk_kernel_choice(kernel);
    printf("entry %d of the choice: %s%s%s\n", taken.index, taken.kind,
           taken.reason[0] != '\0' ? ", because of\n" : "", taken.reason);
    return kernel;
}

int main(int argc, char **argv)
{
    struct wpk_context *context = NULL;
    struct wpk_context_options options = {0};
    struct wpk_tensor_data inputs[TENSORS_MAX], outputs[TENSORS_MAX];
    double fastest = 0;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: run_kernel KERNEL.so.choice|KERNEL.so [THREADS]\n");
        return 2;
    }
    options.threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0; /* 0: as it was tuned */
    struct wpk_kernel *kernel = open_kernel(argv[1]);
    prepare(kernel);
    check(wpk_context_new(&options, &context), "context", NULL);
    make_tensors(kernel, inputs, outputs);

    size_t input_count = wpk_kernel_input_count(kernel);
    size_t output_count = wpk_kernel_output_count(kernel);
    for (int i = 0; i < RUN_COUNT; i++) {
        double start = now_us();
        check(wpk_kernel_run(kernel, context, inputs, input_count, outputs, output_count), "run",
              NULL);
        double took = now_us() - start;
        fastest = i == 0 || took < fastest ? took : fastest;
    }
    printf("%d runs: the fastest took %.1f us\n", RUN_COUNT, fastest);
    for (size_t i = 0; i < output_count; i++) {
        const struct wpk_argument *argument = wpk_kernel_output(kernel, i);
        float *dense = new_floats((size_t)wpk_tensor_type_elements(&argument->type));
        wpk_tensor_unpack(&argument->type, outputs[i].data, dense);
        print_output(argument, dense);
        free(dense);
        free(outputs[i].data);
    }
    for (size_t i = 0; i < input_count; i++) {
        free(inputs[i].data);
    }
    wpk_context_free(context);
    wpk_kernel_close(kernel);
    return 0;
}
