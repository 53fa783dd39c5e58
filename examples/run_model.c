/* SPDX-License-Identifier: Apache-2.0 */
/* Run a tuned model from C, with nothing but libwpk.
 *
 *     cc -O2 run_model.c $(pkg-config --cflags --libs wpk) -o run_model
 *     ./run_model model.wpk [THREADS]
 *
 * Inputs are filled with a pattern; the fastest of some runs is printed. Threads help only as far
 * as the model was tuned for them. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, under -std=c11 too */

#include "wpk/wpk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define RUN_COUNT 20

static void check(wpk_err err, const char *what, const struct wpk_diag *diag)
{
    if (err != WPK_OK) {
        fprintf(stderr, "%s: %s%s%s\n", what, wpk_err_text(err),
                diag != NULL && diag->text[0] != '\0' ? ": " : "", diag != NULL ? diag->text : "");
        exit(1);
    }
}

static void print_argument(const struct wpk_argument *argument)
{
    printf("%s %s[", argument->name, wpk_dtype_name(argument->type.dtype));
    for (int d = 0; d < argument->type.rank; d++) {
        printf("%s%lld", d > 0 ? "," : "", (long long)argument->type.extent[d]);
    }
    puts("]");
}

/* Memory for an argument; floats get a pattern between -1 and 1, other types zeros. */
static struct wpk_tensor_data new_tensor(const struct wpk_argument *argument)
{
    size_t size = wpk_tensor_type_bytes(&argument->type);
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64); /* a multiple of the alignment */

    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(memory, 0, size);
    for (size_t i = 0; argument->type.dtype == WPK_F32 && i < size / sizeof(float); i++) {
        ((float *)memory)[i] = (float)((int)(7 * i % 17) - 8) / 8;
    }
    return (struct wpk_tensor_data){.name = argument->name, .data = memory, .size = size};
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    struct wpk_diag diag = {0};
    struct wpk_model *model;
    struct wpk_model_context *context;
    const struct wpk_context_options options = {.threads =
                                                    argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1};
    double fastest = 1e30;

    if (argc < 2) {
        fprintf(stderr, "usage: run_model MODEL.wpk [THREADS]\n");
        return 2;
    }
    double started = now_us();
    check(wpk_model_open(argv[1], NULL, &model, &diag), argv[1], &diag);
    size_t input_count = wpk_model_input_count(model);
    size_t output_count = wpk_model_output_count(model);
    struct wpk_tensor_data *inputs = calloc(input_count + 1, sizeof(*inputs));
    struct wpk_tensor_data *outputs = calloc(output_count + 1, sizeof(*outputs));
    if (inputs == NULL || outputs == NULL) {
        return 1;
    }
    for (size_t i = 0; i < input_count; i++) {
        print_argument(wpk_model_input(model, 0, i));
        inputs[i] = new_tensor(wpk_model_input(model, 0, i));
    }
    for (size_t i = 0; i < output_count; i++) {
        print_argument(wpk_model_output(model, 0, i));
        outputs[i] = new_tensor(wpk_model_output(model, 0, i));
    }
    check(wpk_model_context_new(model, 0, &options, &context), "context", NULL);
    for (int run = 0; run < RUN_COUNT; run++) {
        double began = now_us();
        check(wpk_model_run(context, inputs, input_count, outputs, output_count), "run", NULL);
        double took = now_us() - began;
        if (run == 0) {
            struct rusage usage;
            getrusage(RUSAGE_SELF, &usage);
            printf("opened and run once after %.1f ms, peak memory %.1f MB\n",
                   (now_us() - started) / 1e3, (double)usage.ru_maxrss / 1024);
        }
        fastest = took < fastest ? took : fastest;
    }
    printf("%zu steps, fastest of %d runs: %.1f us\n", wpk_model_step_count(model, 0), RUN_COUNT,
           fastest);
    wpk_model_context_free(context);
    for (size_t i = 0; i < input_count; i++) {
        free(inputs[i].data);
    }
    for (size_t i = 0; i < output_count; i++) {
        free(outputs[i].data);
    }
    free(inputs);
    free(outputs);
    wpk_model_close(model);
    return 0;
}
