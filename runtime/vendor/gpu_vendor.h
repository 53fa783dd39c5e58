/* SPDX-License-Identifier: Apache-2.0 */
/* Vendors' libraries on GPUs. A library is opened at run time, and stays open; a primitive of it is
 * a program of a kernel (runtime/gpu/gpu_program.h).
 *
 * A library that has the symbol WPK_GPU_VENDOR_EMULATED is for the emulated GPU, and any other is
 * for GPUs: so whoever opens a recipe need not say which. */
#ifndef WPK_RUNTIME_VENDOR_GPU_VENDOR_H
#define WPK_RUNTIME_VENDOR_GPU_VENDOR_H

#include "common/cublaslt_calls.h"
#include "schema/recipe.h"

struct wpk_gpu_primitive;

#define WPK_GPU_VENDOR_VERSION_MAX 32
#define WPK_GPU_VENDOR_EMULATED "wpk_vendor_emulated"
#define WPK_GPU_VENDOR_ALIGNMENT 16 /* bytes: of tensors that libwpk is given */
#define WPK_GPU_VENDOR_WORKSPACE_MAX ((size_t)256 << 20) /* bytes */

/* An open library. */
struct wpk_gpu_vendor {
    const char *name;                         /* the provider's */
    char version[WPK_GPU_VENDOR_VERSION_MAX]; /* "12.9.1" */
    bool emulated;
    /* Make a primitive; the GPU's context is current. `out` has the recipe, a copy. `any`: the
     * caller will change the algorithm; else only the recipe's is made ready.
     *   owns    caller calls its `free`
     *   errors  WPK_EUNSUPPORTED the library does not compute it in one call; WPK_ENOMEM,
     *           WPK_ESYSTEM */
    wpk_err (*make)(const struct wpk_gpu_vendor *vendor, const struct wpk_recipe *recipe, bool any,
                    struct wpk_gpu_primitive **out, struct wpk_diag *diag);
};

/* The first member of each vendor's primitive. */
struct wpk_gpu_primitive {
    const struct wpk_gpu_vendor *vendor;
    struct wpk_recipe recipe; /* with the algorithm that is used */
    int algorithm_count;      /* that the library has for it; >= 1 */
    /* Bytes of device memory that an algorithm needs; >= 1. */
    size_t (*workspace)(const struct wpk_gpu_primitive *self, int algorithm);
    /* Compute in a stream, and do not wait.
     *   shape   pointers [recipe tensors + 1]: device addresses of their memory, the last one of
     *           the workspace
     *   errors  WPK_EUNSUPPORTED, WPK_ENOMEM, WPK_ESYSTEM with the library's number */
    wpk_err (*launch)(struct wpk_gpu_primitive *self, void *stream, const uint64_t *pointers,
                      struct wpk_diag *diag);
    void (*free)(struct wpk_gpu_primitive *self);
};

/* The names of all vendors.   shape   *out [returned number] */
int wpk_gpu_vendor_names(const char *const **out);
bool wpk_gpu_vendor_is(const char *name);

/* Open a vendor's library: from a directory, or (NULL) as the loader finds it, else from
 * /usr/local/cuda/lib64. The first call for a vendor decides.
 *   owns    the process
 *   errors  WPK_ENOENT there is none; WPK_EUNSUPPORTED no such vendor, or it lacks a function */
wpk_err wpk_gpu_vendor_open(const char *name, const char *directory,
                            const struct wpk_gpu_vendor **out, struct wpk_diag *diag);

/* ---- for the files of the vendors */

struct wpk_gpu_vendor_symbol {
    const char *name;
    void (**slot)(void);
};

/* Open the first of the files that is there, and find its functions; set vendor->emulated.
 *   shape   files: NULL at the end; symbols [count]
 *   errors  those of wpk_gpu_vendor_open */
wpk_err wpk_gpu_vendor_load(const char *const *files, const char *directory,
                            const struct wpk_gpu_vendor_symbol *symbols, size_t count,
                            struct wpk_gpu_vendor *vendor, struct wpk_diag *diag);

/* cuDNN, NVIDIA's library of convolutions, by its backend interface, in f32: engines that round
 * operands to TF32 are left out. */

#define WPK_CUDNN_NAME "cudnn" /* the provider */

/* Open the library; called once.   errors  those of wpk_gpu_vendor_open */
wpk_err wpk_cudnn_open(const char *directory, struct wpk_gpu_vendor *out, struct wpk_diag *diag);

/* cuBLASLt, NVIDIA's library of matrix products, in f32: neither operands nor sums are rounded to a
 * shorter type. */

#define WPK_CUBLASLT_NAME "cublaslt" /* the provider */

/* Open the library; called once.   errors  those of wpk_gpu_vendor_open */
wpk_err wpk_cublaslt_open(const char *directory, struct wpk_gpu_vendor *out, struct wpk_diag *diag);

/* Algorithms of cuBLASLt that its heuristic does not name. */

#define WPK_CUBLASLT_CALL_FIELD(name, result, parameters) result(*name) parameters;

struct wpk_cublaslt_calls {
    WPK_CUBLASLT_CALL_LIST(WPK_CUBLASLT_CALL_FIELD)
};

/* A product in f32; the descriptors are borrowed. */
struct wpk_cublaslt_problem {
    const struct wpk_cublaslt_calls *calls;
    void *handle, *product, *a, *b, *d;
};

#endif
