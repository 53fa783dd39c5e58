/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, the compiler of CUDA C: a library that is opened when it is needed, and needs neither
 * headers nor a GPU. */
#ifndef WPK_TARGET_GPU_NVRTC_H
#define WPK_TARGET_GPU_NVRTC_H

#include "common/buf.h"
#include "common/err.h"

#include <stdbool.h>

#define WPK_CUDA_NVRTC_VERSION_MAX 24
#define WPK_CUDA_DIRECTORY_VARIABLE "WPK_CUDA_DIR" /* of the environment: see below */
#define WPK_CUDA_NVRTC_CALLS_MAX 12

/* = {0} is closed. */
struct wpk_cuda_nvrtc {
    void *library;
    void *builtins; /* that the library opens by name; NULL: it has to find them itself */
    void (*call[WPK_CUDA_NVRTC_CALLS_MAX])(void); /* target/gpu/nvrtc.c casts them */
    char version[WPK_CUDA_NVRTC_VERSION_MAX];     /* "nvrtc-12.9" */
};

/* Look for NVRTC and ptxas in this CUDA toolkit alone, for the whole process: a program calls it
 * first of all, with the value of its environment's variable. NULL: where they are found.
 *   owns  `directory` stays the caller's, and outlives all calls */
void wpk_cuda_set_toolkit(const char *directory);
const char *wpk_cuda_toolkit(void);

/* Open the library in `directory`; if that is NULL, in lib64 or lib of the toolkit; if
 * none is set, where `make setup-gpu` puts it, in /usr/local/cuda/lib64, or where dlopen finds it.
 *   errors  WPK_ENOENT there is none, and `diag` says how to get it; WPK_EUNSUPPORTED it lacks a
 *           function */
wpk_err wpk_cuda_nvrtc_open(struct wpk_cuda_nvrtc *nvrtc, const char *directory,
                            struct wpk_diag *diag);
void wpk_cuda_nvrtc_close(struct wpk_cuda_nvrtc *nvrtc);

/* True for an architecture as in "sm_90": two or three digits, and no letter behind them. */
bool wpk_cuda_nvrtc_knows(const struct wpk_cuda_nvrtc *nvrtc, const char *architecture);

/* Compile a module of CUDA C for one architecture: append its machine code to `cubin`
 * (common/cubin.h), which may be NULL, and its PTX to `ptx`.
 *
 *   unit    strict: each operation rounds; else a product and a sum may round once
 *   errors  WPK_EINVAL the architecture is none of NVRTC's; WPK_EUNSUPPORTED the module is refused,
 *           with the compiler's first message; WPK_ENOMEM */
wpk_err wpk_cuda_nvrtc_compile(const struct wpk_cuda_nvrtc *nvrtc, const char *text,
                               const char *architecture, bool strict, struct wpk_buf *cubin,
                               struct wpk_buf *ptx, struct wpk_diag *diag);

#endif
