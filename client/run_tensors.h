/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of one run of a kernel. They are read from NumPy files, laid out as the kernel wants
 * them, and written back. */
#ifndef WPK_CLIENT_RUN_TENSORS_H
#define WPK_CLIENT_RUN_TENSORS_H

#include "common/args.h"
#include "common/buf.h"
#include "runtime/wpk.h"

#define WPK_RUN_TENSORS_MAX 64

/* One argument with its data. */
struct wpk_run_tensor {
    const struct wpk_argument *argument; /* the kernel's */
    const char *name;                    /* the argument's */
    const char *path;                    /* of its file; NULL: no file */
    void *dense;                         /* owned; row-major, as the operator declares it */
    void *physical;                      /* owned; in the kernel's layout; NULL for constants */
};

/* `= {0}` holds no tensors. */
struct wpk_run_tensors {
    struct wpk_run_tensor tensor[WPK_RUN_TENSORS_MAX]; /* inputs, constants, outputs */
    int input_count;
    int constant_count;
    int output_count;
};

/* Read and check the file of every input and constant, and allocate the outputs.
 *
 *   shape   inputs, outputs: "NAME=FILE"; draw: draw what has no file (schema/draw.h), by its name
 *   owns    caller calls wpk_run_tensors_fini, after failures too; texts are borrowed
 *   errors  WPK_EINVAL  an unknown name, a tensor that has no file and is not drawn, a file of
 *           another shape, type or order: `diag` names what was expected; those of wpk_fs_read;
 *           WPK_ENOMEM */
wpk_err wpk_run_tensors_read(const struct wpk_kernel *kernel, const struct wpk_option_list *inputs,
                             const struct wpk_option_list *outputs, bool draw,
                             struct wpk_run_tensors *out, struct wpk_diag *diag);
void wpk_run_tensors_fini(struct wpk_run_tensors *tensors);

/* Prepare the constants, run the kernel once, and fill `dense` of the outputs.
 *   errors  those of wpk_kernel_prepare, wpk_context_new and wpk_kernel_run */
wpk_err wpk_run_tensors_run(struct wpk_kernel *kernel, struct wpk_run_tensors *tensors,
                            struct wpk_diag *diag);

/* Write the outputs that have a file.   errors  those of wpk_fs_write; WPK_ENOMEM */
wpk_err wpk_run_tensors_write(const struct wpk_run_tensors *tensors, struct wpk_diag *diag);

/* Read a NumPy file into `out`, row-major; `diag` names the tensor. Write one.
 *   errors  WPK_EINVAL no such file, or of another shape, type or order; those of wpk_fs_read and
 *           wpk_fs_write; WPK_ENOMEM */
wpk_err wpk_run_read_npy(const char *path, const char *name, const struct wpk_tensor_type *type,
                         void *out, struct wpk_diag *diag);
wpk_err wpk_run_write_npy(const char *path, const struct wpk_tensor_type *type, const void *data,
                          struct wpk_diag *diag);

#endif
