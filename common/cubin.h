/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a cubin: the ELF file of a GPU's machine code, as CUDA 12 writes it (ABI versions 7 and 8).
 *
 *   source  sections, flags and attributes are those that `readelf` and `cuobjdump --dump-elf` of
 *           CUDA 12.9 show: NVIDIA documents the tools, not the format */
#ifndef WPK_COMMON_CUBIN_H
#define WPK_COMMON_CUBIN_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WPK_CUBIN_HEAD_BYTES 64 /* by which wpk_cubin_bytes() knows the file's size */

/* A function that can be launched. */
struct wpk_cubin_function {
    int registers;           /* of a thread */
    int64_t local_bytes;     /* of local memory that a thread has: spilled registers, and arrays */
    int64_t shared_bytes;    /* that the function declares */
    int64_t parameter_bytes; /* of all parameters */
    int threads_max;         /* of a block, as __launch_bounds__ has it; 0: it does not say */
};

/* True if the bytes begin as a cubin does.   shape  data [size] */
bool wpk_cubin_is(const void *data, size_t size);

/* The bytes of the whole file, by its head; 0: it is no cubin.
 *   shape  head [WPK_CUBIN_HEAD_BYTES] */
size_t wpk_cubin_bytes(const void *head);

/* The capability that the code is for, as in 90.
 *   shape   cubin [size]
 *   errors  WPK_EPARSE it is no cubin of these versions, or ends too early */
wpk_err wpk_cubin_capability(const void *cubin, size_t size, int *out);

/* Describe a function.
 *   shape   cubin [size]; any bytes may be given
 *   errors  WPK_EPARSE as above; WPK_ENOENT there is no such function */
wpk_err wpk_cubin_find(const void *cubin, size_t size, const char *name,
                       struct wpk_cubin_function *out);

#endif
