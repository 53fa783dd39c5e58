/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of one run of a kernel or of a model. They are read from NumPy files, laid out as a
 * kernel wants them, and written back. */
#ifndef WPK_CLIENT_RUN_TENSORS_H
#define WPK_CLIENT_RUN_TENSORS_H

#include "common/args.h"
#include "common/json.h"
#include "runtime/wpk.h"
#include "schema/draw.h"

/* One argument with its data. */
struct wpk_run_tensor {
    const char *name;            /* borrowed */
    struct wpk_tensor_type type; /* of a kernel's with its layout */
    const char *path;            /* of its file; NULL: no file */
    void *dense;                 /* owned; row-major, as the operator declares it */
    void *physical;              /* owned; of a kernel, in its layout; NULL for constants */
    double *cells;               /* owned; of a model: `dense` as cells (schema/convert.h) */
    struct wpk_domain domain;    /* of a model's inputs: what they are drawn from */
};

/* `= {0}` holds no tensors. */
struct wpk_run_tensors {
    struct wpk_run_tensor *tensor; /* owned; inputs, constants, outputs */
    int input_count;
    int constant_count;
    int output_count;
};

/* Make room for so many tensors.
 *   owns    caller calls wpk_run_tensors_fini, after failures too, here and below */
void wpk_run_tensors_init(struct wpk_run_tensors *tensors, int input_count, int constant_count,
                          int output_count);
void wpk_run_tensors_fini(struct wpk_run_tensors *tensors);
/* Set name and type, and allocate `dense`.   errors  WPK_ENOMEM */
wpk_err wpk_run_tensor_init(struct wpk_run_tensor *tensor, const char *name,
                            const struct wpk_tensor_type *type);
/* Set the paths of inputs, constants and outputs; "FILE" alone if there is one tensor.
 *   shape   inputs, outputs: "NAME=FILE", borrowed
 *   errors  WPK_EINVAL an unknown name, or one that is given twice */
wpk_err wpk_run_tensors_set_paths(struct wpk_run_tensors *tensors,
                                  const struct wpk_option_list *inputs,
                                  const struct wpk_option_list *outputs, struct wpk_diag *diag);
/* Read the tensor's file into `dense`, if it has one; `kind`: "input", "constant".
 *   errors  WPK_EINVAL it has none, and is not to be drawn; those of wpk_run_read_npy */
wpk_err wpk_run_tensor_read(const struct wpk_run_tensor *tensor, const char *kind, bool draw,
                            struct wpk_diag *diag);
/* Write the outputs that have a file.   errors  those of wpk_fs_write; WPK_ENOMEM */
wpk_err wpk_run_tensors_write(const struct wpk_run_tensors *tensors, struct wpk_diag *diag);
/* Say where the outputs are: as text, and as the array "outputs". */
void wpk_run_tensors_print(const struct wpk_run_tensors *tensors);
void wpk_run_tensors_put(const struct wpk_run_tensors *tensors, struct wpk_json_writer *w);

/* Read and check the file of every input and constant of a kernel, and allocate the outputs.
 *
 *   shape   draw: draw what has no file (schema/draw.h), by its name
 *   errors  WPK_EINVAL  those of the functions above, a file of another shape, type or order:
 *           `diag` names what was expected; those of wpk_fs_read; WPK_ENOMEM */
wpk_err wpk_run_tensors_read(const struct wpk_kernel *kernel, const struct wpk_option_list *inputs,
                             const struct wpk_option_list *outputs, bool draw,
                             struct wpk_run_tensors *out, struct wpk_diag *diag);
/* Prepare the constants, run the kernel once, and fill `dense` of the outputs.
 *   errors  those of wpk_kernel_prepare, wpk_context_new and wpk_kernel_run; WPK_ENOMEM */
wpk_err wpk_run_tensors_run(struct wpk_kernel *kernel, struct wpk_run_tensors *tensors,
                            struct wpk_diag *diag);

/* Read a NumPy file into `out`, row-major; `diag` names the tensor. Write one.
 *   errors  WPK_EINVAL no such file, or of another shape, type or order; those of wpk_fs_read and
 *           wpk_fs_write; WPK_ENOMEM */
wpk_err wpk_run_read_npy(const char *path, const char *name, const struct wpk_tensor_type *type,
                         void *out, struct wpk_diag *diag);
wpk_err wpk_run_write_npy(const char *path, const struct wpk_tensor_type *type, const void *data,
                          struct wpk_diag *diag);

#endif
