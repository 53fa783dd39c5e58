/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between a kernel's shared object and whoever loads it.
 *
 * A shared object is linked from: the generated objects (symbols `wpk_main` and, if constants are
 * prepared, `wpk_prepare`), one fixed stub (runtime/stub.c, compiled once when wpk is built) and
 * the manifest as binary data (`ld -b binary manifest`). It exports `wpk_descriptor` only and has
 * no undefined symbols: the stub defines the generator's hooks (allocation, parallel loops,
 * errors) hidden and passes them on to the table given at bind. */
#ifndef WPK_RUNTIME_ABI_H
#define WPK_RUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_ABI_VERSION 1
#define WPK_ABI_ARGUMENTS_MAX 40

/* One task of a parallel loop: closure is the kernel's. Returns 0 or an error of the kernel. */
typedef int (*wpk_abi_task)(void *user, int index, uint8_t *closure);

/* What the loader provides. `user` is what was passed to run or prepare. */
struct wpk_abi_host {
    uint32_t abi_version;
    /* 64-byte aligned and rounded up; freed in any order before the call returns. Generated code
     * does not look for NULL: out of memory, the host does not return but leaves run or prepare */
    void *(*scratch_take)(void *user, size_t size);
    void (*scratch_give)(void *user, void *memory);
    /* runs task(user, i, closure) for min <= i < min + extent, returns the first error or 0 */
    int (*parallel_for)(void *user, wpk_abi_task task, int min, int extent, uint8_t *closure);
    void (*error)(void *user, const char *message);
};

/* A tensor argument. Same layout as Halide 21's halide_buffer_t, checked where the stub is
 * compiled; dimensions innermost first. */
struct wpk_abi_dim {
    int32_t min, extent, stride;
    uint32_t flags;
};
struct wpk_abi_buffer {
    uint64_t device;
    const void *device_interface;
    uint8_t *host; /* of element [min, min, ...] */
    uint64_t flags;
    uint8_t type_code; /* 0 int, 1 uint, 2 float, 4 bfloat */
    uint8_t type_bits;
    uint16_t type_lanes; /* 1 */
    int32_t dimensions;
    struct wpk_abi_dim *dim;
    void *padding;
};

/* arguments: [argument_count] in the manifest's order. Returns 0, or an error after error(). */
typedef int (*wpk_abi_function)(void *user, struct wpk_abi_buffer *const *arguments,
                                size_t argument_count);

struct wpk_abi_descriptor {
    uint32_t abi_version;
    uint32_t reserved;
    const char *manifest; /* JSON, not NUL-terminated */
    size_t manifest_size;
    void (*bind)(const struct wpk_abi_host *host); /* once, before the first run */
    wpk_abi_function run;
    wpk_abi_function prepare; /* NULL: constants are used as they are */
};

#define WPK_ABI_SYMBOL "wpk_descriptor"

#ifdef __cplusplus
}
#endif
#endif
