/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between a kernel's shared object and its loader.
 *
 * A kernel for a GPU is a shared object of data alone: its descriptor has the manifest and, of each
 * of its two programs, the image (schema/launch_plan.h) instead of functions.
 *
 * A CPU's shared object is linked from three parts: the generated objects (symbols `wpk_main` and,
 * if constants are prepared, `wpk_prepare`), one fixed stub (runtime/stub.c, compiled once when wpk
 * is built) and the manifest as binary data (`ld -b binary manifest`). The object exports
 * `wpk_descriptor` only; nothing but libc and libm stays undefined in it. The stub defines the
 * generator's hooks (allocation, parallel loops, errors) as hidden symbols; each hook calls the
 * function of the same purpose in the table given at bind. */
#ifndef WPK_RUNTIME_ABI_H
#define WPK_RUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_ABI_VERSION 4
#define WPK_ABI_ARGUMENTS_MAX 40

/* Runs one iteration of a parallel loop; `closure` is the kernel's. Returns 0 or the kernel's error
 * code. */
typedef int (*wpk_abi_task)(void *user, int index, uint8_t *closure);

/* Functions that the loader provides. `user` is the pointer that was passed to run or prepare. */
struct wpk_abi_host {
    uint32_t abi_version;
    /* Memory is aligned to 64 bytes; the kernel gives it back, in any order, before the call
     * returns. Generated code does not check for NULL. When memory is short, scratch_take does not
     * return: it jumps out of run or prepare. */
    void *(*scratch_take)(void *user, size_t size);
    void (*scratch_give)(void *user, void *memory);
    /* Runs task(user, i, closure) for min <= i < min + extent. After an error of a task it returns
     * the error, or jumps out of run or prepare; else it returns 0. */
    int (*parallel_for)(void *user, wpk_abi_task task, int min, int extent, uint8_t *closure);
    void (*error)(void *user, const char *message);
};

/* A tensor argument. The struct has the layout of Halide 21's halide_buffer_t, checked where the
 * stub is compiled. Dimensions are innermost first. */
struct wpk_abi_dim {
    int32_t min, extent, stride;
    uint32_t flags;
};
struct wpk_abi_buffer {
    uint64_t device;
    const void *device_interface;
    uint8_t *host; /* address of element [min, min, ...] */
    uint64_t flags;
    uint8_t type_code; /* 0 int, 1 uint, 2 float, 4 bfloat */
    uint8_t type_bits;
    uint16_t type_lanes; /* 1 */
    int32_t dimensions;
    struct wpk_abi_dim *dim;
    void *padding;
};

/* Returns 0, or an error code after a call of host.error().
 *   shape   arguments [argument_count], in the manifest's order */
typedef int (*wpk_abi_function)(void *user, struct wpk_abi_buffer *const *arguments,
                                size_t argument_count);

/* Texts end before the pointer whose name ends in `_end`. */
struct wpk_abi_descriptor {
    uint32_t abi_version;
    uint32_t reserved;
    const char *manifest, *manifest_end;           /* JSON */
    void (*bind)(const struct wpk_abi_host *host); /* once, before the first run; GPU: NULL */
    wpk_abi_function run;                          /* GPU: NULL */
    wpk_abi_function prepare; /* NULL: constants are used as they are, or it is a GPU's kernel */
    const char *image, *image_end;                 /* CPU: NULL */
    const char *prepare_image, *prepare_image_end; /* empty: constants are used as they are */
};

#define WPK_ABI_SYMBOL "wpk_descriptor"

#ifdef __cplusplus
}
#endif
#endif
