/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded kernel, as the files of this folder see it. */
#ifndef WPK_RUNTIME_KERNEL_H
#define WPK_RUNTIME_KERNEL_H

#include "runtime/abi.h"
#include "runtime/manifest.h"
#include "runtime/vendor.h"
#include "runtime/wpk.h"
#include "schema/choice.h"

/* What stands at a place of main's arguments. */
enum wpk_slot_kind {
    WPK_SLOT_INPUT,
    WPK_SLOT_OUTPUT,
    WPK_SLOT_FIXED, /* a constant or prepared tensor: its memory is the kernel's */
};

struct wpk_slot {
    enum wpk_slot_kind kind;
    int index;                    /* in the kernel's inputs or outputs */
    struct wpk_abi_buffer buffer; /* host is NULL unless FIXED and prepared */
    struct wpk_abi_dim dim[WPK_RANK_MAX];
};

/* Arguments of one kind, as the user names and orders them. */
struct wpk_argument_list {
    struct wpk_argument argument[WPK_ABI_ARGUMENTS_MAX];
    char name[WPK_ABI_ARGUMENTS_MAX][WPK_NAME_MAX]; /* what argument[].name points to */
    size_t physical_size[WPK_ABI_ARGUMENTS_MAX];    /* bytes, with padding */
    size_t logical_size[WPK_ABI_ARGUMENTS_MAX];     /* without */
    int source[WPK_ABI_ARGUMENTS_MAX];              /* the manifest's or recipe's tensor */
    size_t count;
};

/* Immutable once prepared: any number of threads then read it. Either code of ours, or a vendor's
 * primitive, to which `descriptor`, `manifest`, `main` and `fixed` are unknown. */
struct wpk_kernel {
    struct wpk_vendor *vendor; /* owned; NULL: our code */
    void *object;   /* of dlopen */
    bool frozen;    /* loaded from memory, not from the file */
    int frozen_fd;  /* owned; its path is the object's name to dlopen, so nobody else may get it */
    const struct wpk_abi_descriptor *descriptor;
    char *manifest_text; /* owned; NUL-terminated; a vendor's: the recipe */
    struct wpk_manifest manifest;
    struct wpk_argument_list inputs, outputs, constants;
    struct wpk_slot main[WPK_ABI_ARGUMENTS_MAX]; /* [manifest.main_count] */
    void *fixed;   /* owned; one block for all constants and prepared tensors */
    bool prepared; /* true from the start where there is nothing to prepare */
    struct wpk_choice_taken taken;
    char *reason; /* owned; what taken.reason points to, NULL: "" */
};

/* What a choice says of the file that is loaded. */
struct wpk_kernel_origin {
    const char *sha256;
    const char *fingerprint;
    bool plain; /* fast or not: for devices of any class */
};

/* Load our code.
 *   shape   origin: NULL for none
 *   errors  see wpk_kernel_open_with */
WPK_MUST_CHECK wpk_err wpk_kernel_load(const char *path, const struct wpk_open_options *options,
                                       const struct wpk_kernel_origin *origin,
                                       struct wpk_kernel **out, struct wpk_diag *diag);
/* Let a vendor's primitive be a kernel.   errors  see wpk_vendor_open */
WPK_MUST_CHECK wpk_err wpk_kernel_of_recipe(const struct wpk_recipe *recipe,
                                            const struct wpk_vendor_options *options,
                                            struct wpk_kernel **out, struct wpk_diag *diag);
/* Name and order the arguments as the choice does.
 *   errors  WPK_EMISMATCH the kernel has other tensors than the choice binds */
WPK_MUST_CHECK wpk_err wpk_kernel_bind(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                                       struct wpk_diag *diag);

void wpk_argument_list_add(struct wpk_argument_list *list, const struct wpk_named_tensor *tensor,
                           int source);

/* Run the kernel on the inputs of the choice's self-test. Prepares the kernel.
 *   errors  WPK_ECORRUPT the result is wrong; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_self_test_run(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                                         struct wpk_diag *diag);

/* Memory that a call reads beside its inputs: constants as they are prepared, ours or a vendor's.
 * Gives their number; the kernel is prepared.
 *   shape   out [WPK_ABI_ARGUMENTS_MAX] */
size_t wpk_kernel_constants(const struct wpk_kernel *kernel, struct wpk_span *out);
/* Let our code read copies of them, made by the caller: each aligned to 64 bytes and followed by
 * WPK_MEMORY_SLACK zero bytes, alive as long as the kernel runs. For verification: nobody else
 * knows where they end.
 *   shape   copies [number of constants], in their order */
void wpk_kernel_move_constants(struct wpk_kernel *kernel, void *const *copies);

/* Describe a tensor as generated code expects it: dimensions innermost first, starting at minus
 * the padding, so that logical index 0 is index 0. `host` stays NULL.
 *
 *   shape   dim [WPK_RANK_MAX]
 *   errors  WPK_ERANGE more elements than a 32-bit index reaches
 */
WPK_MUST_CHECK wpk_err wpk_buffer_describe(const struct wpk_tensor_type *type,
                                           struct wpk_abi_dim *dim, struct wpk_abi_buffer *out);

/* Find for each argument of `list` its data, by name.
 *
 *   shape   data [count], found [list->count]; size [list->count] bytes each must have
 *   errors  WPK_EINVAL a missing, nameless, unknown, repeated, wrongly sized or misaligned one
 */
WPK_MUST_CHECK wpk_err wpk_arguments_match(const struct wpk_argument_list *list, const size_t *size,
                                           const struct wpk_tensor_data *data, size_t count,
                                           void **found, struct wpk_diag *diag);

#endif
