/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt, NVIDIA's library of matrix products. It is opened at run time, and stays open. Products
 * are in f32: neither operands nor sums are rounded to a shorter type.
 *
 * A library that has the mark of common/cublaslt_calls.h is for the emulated GPU, and any other is
 * for GPUs: so whoever opens a recipe need not say which. */
#ifndef WPK_RUNTIME_CUBLASLT_H
#define WPK_RUNTIME_CUBLASLT_H

#include "common/cublaslt_calls.h"
#include "schema/recipe.h"

#define WPK_CUBLASLT_NAME "cublaslt" /* the provider */
#define WPK_CUBLASLT_VERSION_MAX 32

#define WPK_CUBLASLT_CALL_FIELD(name, result, parameters) result(*name) parameters;

/* Immutable once it is open. */
struct wpk_cublaslt_library {
    WPK_CUBLASLT_CALL_LIST(WPK_CUBLASLT_CALL_FIELD)
    bool emulated;
    char version[WPK_CUBLASLT_VERSION_MAX]; /* "12.9.1" */
};

/* Open the library: from a directory, or (NULL) as the loader finds it, else from
 * /usr/local/cuda/lib64. The first call decides.
 *   owns    the process
 *   errors  WPK_ENOENT there is none; WPK_EUNSUPPORTED it lacks a function */
WPK_MUST_CHECK wpk_err wpk_cublaslt_library_open(const char *directory,
                                                 const struct wpk_cublaslt_library **out,
                                                 struct wpk_diag *diag);

/* One product with the algorithms that the library names for it, of which one is used. */
struct wpk_cublaslt;

/* Make the product of a recipe; the GPU's context is current. The recipe's algorithm is used.
 *   owns    caller calls wpk_cublaslt_free; the recipe is copied
 *   errors  WPK_EUNSUPPORTED no product that the library computes in one call; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_cublaslt_new(const struct wpk_cublaslt_library *library,
                                        const struct wpk_recipe *recipe, struct wpk_cublaslt **out,
                                        struct wpk_diag *diag);
void wpk_cublaslt_free(struct wpk_cublaslt *self);

const struct wpk_cublaslt_library *wpk_cublaslt_library_of(const struct wpk_cublaslt *self);
/* The recipe, with the algorithm that is used. */
const struct wpk_recipe *wpk_cublaslt_recipe(const struct wpk_cublaslt *self);
int wpk_cublaslt_algorithm_count(const struct wpk_cublaslt *self);
/* Use another algorithm from now on.   shape  algorithm < algorithm_count */
void wpk_cublaslt_use(struct wpk_cublaslt *self, int algorithm);
/* Bytes of device memory that any of the algorithms needs; >= 1. */
size_t wpk_cublaslt_workspace(const struct wpk_cublaslt *self);

/* Compute in a stream, and do not wait.
 *   shape   pointers [recipe tensors + 1]: device addresses, the last one of the workspace
 *   errors  WPK_EUNSUPPORTED, WPK_ENOMEM, WPK_ESYSTEM with the library's number */
WPK_MUST_CHECK wpk_err wpk_cublaslt_launch(struct wpk_cublaslt *self, void *stream,
                                           const uint64_t *pointers, struct wpk_diag *diag);

#endif
