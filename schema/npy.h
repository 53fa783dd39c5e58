/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, one array each: versions 1 and 2 are read strictly, version 1 is written.
 *
 *   source  NumPy, numpy/lib/format.py, "Format Version 1.0": magic, version, size of the header,
 *           the header as a Python dictionary, the elements */
#ifndef WPK_SCHEMA_NPY_H
#define WPK_SCHEMA_NPY_H

#include "common/buf.h"
#include "schema/tensor.h"

#define WPK_NPY_DESCR_SIZE 16

/* An array as its file describes it. */
struct wpk_npy {
    char descr[WPK_NPY_DESCR_SIZE]; /* "<f4" */
    bool fortran_order;
    int rank;
    int64_t extent[WPK_RANK_MAX]; /* [rank], each >= 0, their product below WPK_ELEMENTS_MAX */
    const void *data;             /* borrowed from the bytes that were decoded; any alignment */
    size_t size;                  /* bytes at `data`: all that follow the header */
};

/* NumPy's name of an element type. NumPy lacks bf16, which is written as two bytes, "<u2". */
const char *wpk_npy_descr(enum wpk_dtype dtype);

/* Read the header. The caller compares the number of elements with the type that it expects
 * (wpk_npy_check).
 *   errors  WPK_EPARSE  not a .npy file, or not one that NumPy would write */
wpk_err wpk_npy_decode(const void *bytes, size_t size, struct wpk_npy *out, struct wpk_diag *diag);

/* Fill a tensor with the array, in C order and the tensor's type: any byte order, Fortran order,
 * and floats of another size are converted, and so are integers of a narrower type and bools.
 *   shape   out [extent...] row-major
 *   errors  WPK_EINVAL  another shape or type; `diag` names the expected and the found one;
 *           WPK_ENOMEM */
wpk_err wpk_npy_read(const struct wpk_npy *npy, const struct wpk_tensor_type *type, void *out,
                     struct wpk_diag *diag);

/* Append a file with the tensor.   shape  data: [extent...] row-major */
void wpk_npy_encode(const struct wpk_tensor_type *type, const void *data, struct wpk_buf *out);

#endif
