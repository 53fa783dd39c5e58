/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of providers: provider_kernel.c has their functions, but provider_kernel_gpu.c how
 * they run and what is other on a GPU. */
#ifndef WPK_WORKER_PROVIDER_PROVIDER_STATE_H
#define WPK_WORKER_PROVIDER_PROVIDER_STATE_H

#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"
#include "worker/provider/provider.h"

#define WPK_PROVIDER_ARGUMENTS_MAX 40 /* of one kind; runtime/abi.h allows no more in all */

/* An input or output: the kernel's argument, and its memory in the kernel's layout. */
struct wpk_provider_place {
    int tensor; /* id in the operator's program */
    const struct wpk_tensor_type *type;
    void *physical;
    void *as_set; /* inputs: a copy to compare with; owned */
};

struct wpk_provider_constant {
    int tensor;
    void *dense; /* owned; until prepared */
};

struct wpk_provider {
    bool is_ours;
    const struct wpk_program *program;
    const struct wpk_provider_memory *memory;
    struct wpk_kernel *kernel;
    struct wpk_context *context;
    struct wpk_provider_place inputs[WPK_PROVIDER_ARGUMENTS_MAX];
    struct wpk_provider_place outputs[WPK_PROVIDER_ARGUMENTS_MAX];
    struct wpk_provider_constant constants[WPK_PROVIDER_ARGUMENTS_MAX];
    struct wpk_tensor_data input_data[WPK_PROVIDER_ARGUMENTS_MAX];
    struct wpk_tensor_data output_data[WPK_PROVIDER_ARGUMENTS_MAX];
    size_t input_count;
    size_t output_count;
    size_t constant_count;
    void *copies[WPK_ABI_ARGUMENTS_MAX]; /* of prepared constants, where they have been moved */
    size_t copy_count;
    size_t shift; /* of tensors in a GPU's memory */
    char detail[WPK_PROVIDER_DETAIL_MAX];
    struct wpk_buf recipe;
    bool has_run;
    const bool *excluded; /* of a vendor's algorithms: the request's */
    int model_algorithm;  /* of a vendor's primitive: that model_ns is of */
    double model_ns; /* of an emulated GPU's run, which takes as long each time; 0: not known */
};

/* ---- of a kernel on a GPU */

/* Choose the algorithm of a vendor's primitive.   errors  those of wpk_provider_gpu_choose */
wpk_err wpk_provider_gpu_prepare(struct wpk_provider *self, struct wpk_diag *diag);
/* Take device memory anew, at the next multiple of 16 bytes or back.   errors  WPK_ENOMEM */
wpk_err wpk_provider_gpu_move(struct wpk_provider *self);
/* `wpk_provider_check` of device memory.   errors  those of wpk_kernel_gpu_check */
wpk_err wpk_provider_gpu_check(struct wpk_provider *self, struct wpk_diag *diag);

#endif
