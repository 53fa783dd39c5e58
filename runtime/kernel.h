/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded kernel, as the files of this folder see it. */
#ifndef WPK_RUNTIME_KERNEL_H
#define WPK_RUNTIME_KERNEL_H

#include "runtime/abi.h"
#include "runtime/manifest.h"
#include "runtime/wpk.h"

/* What stands at a place of main's arguments. */
enum wpk_slot_kind {
    WPK_SLOT_INPUT,
    WPK_SLOT_OUTPUT,
    WPK_SLOT_FIXED, /* a constant or prepared tensor: its memory is the kernel's */
};

struct wpk_slot {
    enum wpk_slot_kind kind;
    int index;                    /* in the manifest's inputs or outputs */
    struct wpk_abi_buffer buffer; /* host is NULL unless FIXED and prepared */
    struct wpk_abi_dim dim[WPK_RANK_MAX];
};

/* Arguments of one kind. */
struct wpk_argument_list {
    struct wpk_argument argument[WPK_ABI_ARGUMENTS_MAX];
    size_t physical_size[WPK_ABI_ARGUMENTS_MAX]; /* bytes, with padding */
    size_t count;
};

/* Immutable once prepared: any number of threads then read it. */
struct wpk_kernel {
    void *object;   /* of dlopen */
    bool frozen;    /* loaded from memory, not from the file */
    int frozen_fd;  /* owned; its path is the object's name to dlopen, so nobody else may get it */
    const struct wpk_abi_descriptor *descriptor;
    char *manifest_text; /* owned; NUL-terminated */
    struct wpk_manifest manifest;
    struct wpk_argument_list inputs, outputs, constants;
    struct wpk_slot main[WPK_ABI_ARGUMENTS_MAX]; /* [manifest.main_count] */
    void *fixed;   /* owned; one block for all constants and prepared tensors */
    bool prepared; /* true from the start where there is nothing to prepare */
};

/* Describe a tensor as generated code expects it: dimensions innermost first, starting at minus
 * the padding, so that logical index 0 is index 0. `host` stays NULL.
 *
 *   shape   dim [WPK_RANK_MAX]
 *   errors  WPK_ERANGE more elements than a 32-bit index reaches
 */
WPK_MUST_CHECK wpk_err wpk_buffer_describe(const struct wpk_tensor_type *type,
                                           struct wpk_abi_dim *dim, struct wpk_abi_buffer *out);

/* Find for each argument of `list` its data: by name, or by position where there is none.
 *
 *   shape   data [count], found [list->count]; size [list->count] bytes each must have
 *   errors  WPK_EINVAL a missing, unknown, repeated, wrongly sized or misaligned one
 */
WPK_MUST_CHECK wpk_err wpk_arguments_match(const struct wpk_argument_list *list, const size_t *size,
                                           const struct wpk_tensor_data *data, size_t count,
                                           void **found, struct wpk_diag *diag);

#endif
