/* SPDX-License-Identifier: Apache-2.0 */
/* bench-launch: the host's time of wpk_kernel_launch(), over a driver whose calls do nothing. */
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"
#include "runtime/kernel/manifest.h"
#include "runtime/kernel/trust.h"
#include "runtime/link.h"
#include "runtime/wpk.h"
#include "schema/launch_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCHES 20
#define CALLS 100000 /* of a batch */
#define ELEMENTS 64
#define PATH_MAX_BYTES 96

static const char usage[] =
    "usage: bench-launch\n"
    "  ns of the host for a call of wpk_kernel_launch, over a driver whose calls do nothing, for\n"
    "  kernels with several launches and tensors: fastest of 20 batches of 100000 calls\n";

static void check(wpk_err err, const char *doing, const struct wpk_diag *diag)
{
    if (err != WPK_OK) {
        const char *text = diag != NULL && diag->text[0] != '\0' ? diag->text : wpk_err_text(err);
        fprintf(stderr, "bench-launch: %s: %s\n", doing, text);
        exit(1);
    }
}

static void write_file(const char *directory, const char *name, const void *data, size_t size)
{
    char path[PATH_MAX_BYTES];
    struct wpk_diag diag = {0};
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    check(wpk_fs_write(path, data, size, 0644, &diag), path, &diag);
}

/* All tensors but the last are inputs. */
static void write_manifest(const char *directory, int tensors)
{
    static struct wpk_manifest manifest;
    char *text = NULL;
    manifest = (struct wpk_manifest){.op = strdup("made by hand"),
                                     .algorithm = strdup("direct"),
                                     .candidate = strdup(""),
                                     .schedule = strdup("wpk-schedule 2\n"),
                                     .needs = {.cuda = true, .capability = 50, .emulated = true},
                                     .threads = 1};
    memset(manifest.fingerprint, 'a', sizeof(manifest.fingerprint) - 1);
    snprintf(manifest.version_wpk, sizeof(manifest.version_wpk), "%s", WPK_VERSION);
    snprintf(manifest.version_codegen, sizeof(manifest.version_codegen), "by-hand");
    for (int i = 0; i < tensors; i++) {
        struct wpk_named_tensor *out = i < tensors - 1 ? &manifest.inputs[manifest.input_count++]
                                                       : &manifest.outputs[manifest.output_count++];
        snprintf(out->name, sizeof(out->name), "tensor_%d", i);
        out->type = (struct wpk_tensor_type){
            .dtype = WPK_F32, .rank = 1, .extent = {ELEMENTS}, .layout = wpk_layout_row_major(1)};
        memcpy(manifest.main[manifest.main_count++], out->name, WPK_NAME_MAX);
    }
    check(wpk_manifest_encode(&manifest, &text), "the manifest", NULL);
    write_file(directory, "manifest", text, strlen(text));
    free(text);
    wpk_manifest_fini(&manifest);
}

static void write_images(const char *directory, int launches, int tensors)
{
    struct wpk_launch_plan plan = {.architecture = "sm_50", .argument_count = tensors};
    struct wpk_buf image = {0};
    for (int i = 0; i < launches; i++) {
        plan.launch[plan.launch_count++] =
            (struct wpk_launch_step){.entry = "k", .blocks = {1, 1, 1}, .threads = {1, 1, 1}};
        for (int t = 0; t < tensors; t++) {
            const struct wpk_launch_parameter parameter = {.tensor = t, .bytes = 8};
            check(wpk_launch_plan_add(&plan, parameter), "the plan", NULL);
        }
    }
    const struct wpk_launch_code code = {.ptx = "no code\n", .ptx_size = strlen("no code\n")};
    check(wpk_launch_plan_encode(&plan, &code, &image), "the image", NULL);
    write_file(directory, "main.image", image.data, image.size);
    write_file(directory, "prepare.image", "", 0);
    wpk_buf_fini(&image);
}

static void link_kernel(const char *directory)
{
    const char *const *command = wpk_link_command(WPK_LINK_IMAGES);
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (chdir(directory) == 0) {
            execvp(command[0], (char *const *)command);
        }
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        check(WPK_ESYSTEM, "linking the kernel", NULL);
    }
}

static struct wpk_kernel *make_kernel(int launches, int tensors)
{
    char directory[] = "/tmp/wpk-launch-XXXXXX", path[PATH_MAX_BYTES];
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};
    check(mkdtemp(directory) != NULL ? WPK_OK : WPK_ESYSTEM, directory, NULL);
    check(wpk_link_write_parts(directory, &diag), directory, &diag);
    write_manifest(directory, tensors);
    write_images(directory, launches, tensors);
    link_kernel(directory);
    snprintf(path, sizeof(path), "%s/kernel.so", directory);
    check(wpk_seal_write(path, &diag), path, &diag);
    check(wpk_kernel_open(path, NULL, &kernel, &diag), "opening the kernel", &diag);
    check(wpk_kernel_prepare(kernel, NULL, 0, &diag), "preparing the kernel", &diag);
    check(wpk_fs_remove_tree(directory, &diag), directory, &diag);
    return kernel;
}

/* The fastest batch's ns a call. `sets`: of tensors, which calls take in turns. */
static double time_calls(const struct wpk_kernel *kernel, int tensors, int sets)
{
    struct wpk_tensor_data data[2][WPK_LAUNCH_ARGUMENTS_MAX];
    struct wpk_context *context = NULL;
    uint64_t best = UINT64_MAX;
    size_t inputs = (size_t)tensors - 1;
    check(wpk_context_new(NULL, &context), "a context", NULL);
    for (size_t set = 0; set < 2; set++) {
        for (size_t i = 0; i < (size_t)tensors; i++) {
            const struct wpk_argument *argument =
                i < inputs ? wpk_kernel_input(kernel, i) : wpk_kernel_output(kernel, 0);
            uintptr_t address = (set * (size_t)tensors + i + 1) << 12;
            data[set][i] =
                (struct wpk_tensor_data){.name = argument->name,
                                         .data = (void *)address, // NOLINT: an address of a device
                                         .size = ELEMENTS * sizeof(float)};
        }
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start = wpk_clock_ns();
        for (int i = 0; i < CALLS; i++) {
            const struct wpk_tensor_data *set = data[i % sets];
            check(wpk_kernel_launch(kernel, context, NULL, set, inputs, set + inputs, 1),
                  "a launch", NULL);
        }
        uint64_t ns = wpk_clock_ns() - start;
        best = ns < best ? ns : best;
    }
    wpk_context_free(context);
    return (double)best / CALLS;
}

int main(int argc, char **argv)
{
    static const struct {
        int launches, tensors;
    } kernels[] = {{1, 2}, {1, 4}, {1, 8}, {1, 20}, {2, 4}, {3, 4}, {5, 4}};
    bench_usage_help(argc, argv, usage);
    if (argc != 1) {
        fputs(usage, stderr);
        return 2;
    }
    printf("ns a call:          same addresses  other addresses\nlaunches  tensors\n");
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        struct wpk_kernel *kernel = make_kernel(kernels[i].launches, kernels[i].tensors);
        double same = time_calls(kernel, kernels[i].tensors, 1);
        double other = time_calls(kernel, kernels[i].tensors, 2);
        printf("%8d  %7d  %14.0f  %15.0f\n", kernels[i].launches, kernels[i].tensors, same, other);
        wpk_kernel_close(kernel);
    }
    return 0;
}
