/* SPDX-License-Identifier: Apache-2.0 */
/* Launch a GPU's kernel on tensors that are on the device already, in a stream of one's own.
 *
 *     cc -O2 run_kernel_cuda.c $(pkg-config --cflags --libs wpk) -ldl -o run_kernel_cuda
 *     ./run_kernel_cuda c6.so.choice [DRIVER]
 *
 * DRIVER is the driver's library, by default libcuda.so.1, of which a real program would include
 * cuda.h and link with -lcuda. For a kernel of `wpkctl tune --gpu emulated` it is
 * libwpk-cuda-emulated.so. The result is compared with that of wpk_kernel_run(), which takes
 * tensors in host memory. Constants and inputs are filled with multiples of 1/8. */
#include "wpk/wpk.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS_MAX 40

/* As cuda.h declares them, with handles as pointers. */
typedef int (*cu_init)(unsigned flags);
typedef int (*cu_context)(void **context, int device);
typedef int (*cu_push)(void *context);
typedef int (*cu_alloc)(uint64_t *address, size_t size);
typedef int (*cu_to_device)(uint64_t to, const void *from, size_t size, void *stream);
typedef int (*cu_to_host)(void *to, uint64_t from, size_t size, void *stream);
typedef int (*cu_stream)(void **stream, unsigned flags);
typedef int (*cu_wait)(void *stream);

static void check(int failed, const char *what, const char *why)
{
    if (failed != 0) {
        fprintf(stderr, "%s: %s\n", what, why);
        exit(1);
    }
}

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    check(symbol == NULL, name, "not in the driver's library");
    return symbol;
}

static float *new_pattern(size_t size)
{
    float *values = malloc(size);
    check(values == NULL, "memory", "none is left");
    for (size_t i = 0; i < size / sizeof(float); i++) {
        values[i] = (float)((int)(7 * i % 17) - 8) / 8;
    }
    return values;
}

static struct wpk_kernel *open_kernel(const char *path)
{
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};
    struct wpk_tensor_data constants[TENSORS_MAX];
    check(wpk_open(path, NULL, &kernel, &diag) != WPK_OK, path, diag.text);
    for (size_t i = 0; i < wpk_kernel_constant_count(kernel); i++) {
        const struct wpk_argument *argument = wpk_kernel_constant(kernel, i);
        size_t size = (size_t)wpk_tensor_type_elements(&argument->type) * sizeof(float);
        constants[i] = (struct wpk_tensor_data){argument->name, new_pattern(size), size};
    }
    check(wpk_kernel_prepare(kernel, constants, wpk_kernel_constant_count(kernel), &diag) != WPK_OK,
          "prepare", diag.text);
    return kernel;
}

int main(int argc, char **argv)
{
    struct wpk_tensor_data host[2][TENSORS_MAX], device[2][TENSORS_MAX]; /* inputs, outputs */
    struct wpk_context *context = NULL;
    void *primary = NULL, *stream = NULL;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: run_kernel_cuda KERNEL.so.choice [DRIVER]\n");
        return 2;
    }
    const char *name = argc > 2 ? argv[2] : "libcuda.so.1";
    void *driver = dlopen(name, RTLD_NOW);
    check(driver == NULL, name, "no such library");
    cu_to_device to_device = (cu_to_device)find(driver, "cuMemcpyHtoDAsync_v2");
    cu_to_host to_host = (cu_to_host)find(driver, "cuMemcpyDtoHAsync_v2");
    cu_alloc allocate = (cu_alloc)find(driver, "cuMemAlloc_v2");
    struct wpk_kernel *kernel = open_kernel(argv[1]);
    check(wpk_context_new(NULL, &context) != WPK_OK, "context", "none");
    /* wpk uses the primary context, as the CUDA runtime does. */
    check(((cu_init)find(driver, "cuInit"))(0), "cuInit", "failed");
    check(((cu_context)find(driver, "cuDevicePrimaryCtxRetain"))(&primary, 0), "context", "failed");
    check(((cu_push)find(driver, "cuCtxPushCurrent_v2"))(primary), "cuCtxPushCurrent", "failed");
    check(((cu_stream)find(driver, "cuStreamCreate"))(&stream, 0), "cuStreamCreate", "failed");

    size_t count[2] = {wpk_kernel_input_count(kernel), wpk_kernel_output_count(kernel)};
    for (int out = 0; out < 2; out++) {
        for (size_t i = 0; i < count[out]; i++) {
            const struct wpk_argument *argument =
                out ? wpk_kernel_output(kernel, i) : wpk_kernel_input(kernel, i);
            size_t size = wpk_tensor_type_bytes(&argument->type);
            uint64_t address = 0;
            host[out][i] = (struct wpk_tensor_data){argument->name, new_pattern(size), size};
            check(allocate(&address, size), "cuMemAlloc", "failed");
            check(to_device(address, host[out][i].data, size, stream), "copy", "failed");
            device[out][i] = host[out][i];
            device[out][i].data = (void *)(uintptr_t)address;
        }
    }
    check(wpk_kernel_launch(kernel, context, stream, device[0], count[0], device[1], count[1]) !=
              WPK_OK,
          "launch", wpk_context_trouble(context));
    check(wpk_kernel_run(kernel, context, host[0], count[0], host[1], count[1]) != WPK_OK, "run",
          wpk_context_trouble(context));
    for (size_t i = 0; i < count[1]; i++) {
        float *values = new_pattern(host[1][i].size);
        check(to_host(values, (uint64_t)(uintptr_t)device[1][i].data, host[1][i].size, stream),
              "copy", "failed");
        check(((cu_wait)find(driver, "cuStreamSynchronize"))(stream), "the kernel", "failed");
        bool same = memcmp(values, host[1][i].data, host[1][i].size) == 0;
        printf("%s: launch and run have %s\n", host[1][i].name,
               same ? "the same bits" : "other bits");
        check(!same, host[1][i].name, "differs");
        free(values);
    }
    wpk_context_free(context);
    wpk_kernel_close(kernel);
    return 0;
}
