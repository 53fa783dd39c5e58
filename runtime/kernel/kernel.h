/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded kernel, as the files of this folder see it. */
#ifndef WPK_RUNTIME_KERNEL_KERNEL_H
#define WPK_RUNTIME_KERNEL_KERNEL_H

#include "runtime/abi.h"
#include "runtime/gpu/gpu.h"
#include "runtime/kernel/manifest.h"
#include "runtime/vendor/vendor.h"
#include "runtime/wpk.h"
#include "schema/choice.h"
#include "schema/device.h"

/* The kind of one argument of `main`. */
enum wpk_slot_kind {
    WPK_SLOT_INPUT,
    WPK_SLOT_OUTPUT,
    WPK_SLOT_FIXED, /* a constant or prepared tensor, in the kernel's memory */
};

struct wpk_slot {
    enum wpk_slot_kind kind;
    int index;                    /* in the kernel's inputs or outputs */
    size_t offset;                /* bytes from the tensor's memory to what the kernel gets */
    struct wpk_abi_buffer buffer; /* host is NULL unless FIXED and prepared */
    struct wpk_abi_dim dim[WPK_RANK_MAX];
};

/* Arguments of one kind, with the user's names and in the user's order. */
struct wpk_argument_list {
    struct wpk_argument argument[WPK_ABI_ARGUMENTS_MAX];
    char name[WPK_ABI_ARGUMENTS_MAX][WPK_NAME_MAX]; /* argument[].name points here */
    size_t physical_size[WPK_ABI_ARGUMENTS_MAX];    /* bytes, padding included */
    size_t logical_size[WPK_ABI_ARGUMENTS_MAX];     /* bytes, without padding */
    int source[WPK_ABI_ARGUMENTS_MAX];              /* index in the manifest or recipe */
    size_t count;
};

/* A kernel is either a shared object of ours or a vendor's primitive. A primitive leaves
 * `descriptor` and `fixed` empty, and on the CPU `manifest` and `main`, too. A prepared kernel is
 * immutable: any number of threads may read it. Of a GPU's kernel `fixed` is empty, and the buffers
 * of fixed slots have the device's addresses of elements [0, 0, ...]. */
struct wpk_kernel {
    struct wpk_vendor *vendor; /* owned; NULL: our code */
    struct wpk_gpu *gpu;       /* owned; NULL: it runs on the CPU */
    void *object;              /* of dlopen; NULL: another kernel's, whose code this one shares */
    bool frozen;               /* loaded from memory, not from the file */
    int frozen_fd; /* owned; dlopen knows the object by this number: close after dlclose */
    const struct wpk_abi_descriptor *descriptor;
    char *manifest_text; /* owned; NUL-terminated; of a vendor's primitive the recipe */
    struct wpk_manifest manifest;
    struct wpk_argument_list inputs, outputs, constants;
    struct wpk_slot main[WPK_ABI_ARGUMENTS_MAX]; /* [manifest.main_count] */
    void *fixed;   /* owned; what the fixed slots have; NULL: nothing, or the caller's */
    bool prepared; /* true from the start if the kernel has nothing to prepare */
    struct wpk_choice_taken taken;
    char *reason; /* owned; taken.reason points here; NULL: "" */
};

/* The data that a choice has on a file that it names. */
struct wpk_kernel_origin {
    const char *sha256;
    const char *fingerprint;
    bool plain; /* the plain kernel: it may run on every device class */
};

/* A request to load a kernel's file. */
struct wpk_kernel_request {
    const struct wpk_open_options *options; /* but for the device class, which became `device` */
    const struct wpk_device *device;
    const struct wpk_kernel_origin *origin; /* NULL: no choice names the file */
};

/* Describe the CPU that the options name (NULL: none).
 *   errors  WPK_EINVAL the text is no CPU's device class; WPK_ESYSTEM */
wpk_err wpk_kernel_device(const struct wpk_open_options *options, struct wpk_device *out,
                          struct wpk_diag *diag);
/* Load a shared object of ours.
 *   errors  see wpk_kernel_open */
wpk_err wpk_kernel_load(const char *path, const struct wpk_kernel_request *request,
                        struct wpk_kernel **out, struct wpk_diag *diag);
/* Load a shared object of ours from memory; the caller vouches for it.
 *   shape   device NULL: it is only looked at, and may be one that this CPU cannot run
 *   errors  see wpk_kernel_open */
wpk_err wpk_kernel_load_bytes(const void *bytes, size_t size, const struct wpk_device *device,
                              struct wpk_kernel **out, struct wpk_diag *diag);
/* Append the PTX of the main program of a GPU's kernel, whose shared object is in memory; the
 * caller vouches for it. No GPU is opened.
 *   errors  WPK_EUNSUPPORTED the kernel is for no GPU; WPK_ECORRUPT, WPK_EMISMATCH no kernel of
 *           this version; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_kernel_ptx(const struct wpk_buf *bytes, struct wpk_buf *out, struct wpk_diag *diag);
/* Bytes that wpk_kernel_prepare_in needs; 0 for a vendor's or a GPU's kernel. */
size_t wpk_kernel_fixed_size(const struct wpk_kernel *kernel);
/* As wpk_kernel_prepare, in memory of the caller's. WPK_MEMORY_SLACK bytes past each constant may
 * be read.
 *   shape   memory [wpk_kernel_fixed_size] of zeros, aligned to WPK_MEMORY_ALIGNMENT; NULL: the
 *           kernel takes its own, and reads nothing past the constants
 *   owns    caller frees it after closing the kernel */
wpk_err wpk_kernel_prepare_in(struct wpk_kernel *kernel, const struct wpk_tensor_data *constants,
                              size_t count, void *memory, struct wpk_diag *diag);
/* Load the object of `first`, which was loaded from memory, once more: its code is shared, its
 * constants are not. Close `first` after it.
 *   errors  see wpk_kernel_open */
wpk_err wpk_kernel_load_again(const struct wpk_kernel *first, const struct wpk_device *device,
                              struct wpk_kernel **out, struct wpk_diag *diag);
/* Make lists and slots of the arguments that the manifest has.
 *   errors  WPK_ERANGE a tensor is too large */
wpk_err wpk_kernel_lay_out(struct wpk_kernel *kernel, struct wpk_diag *diag);
/* Make a kernel of a vendor's primitive, on the CPU or, of a GPU's vendor, on GPU 0.
 *   errors  see wpk_vendor_open; those of wpk_gpu_open */
wpk_err wpk_kernel_of_recipe(const struct wpk_recipe *recipe,
                             const struct wpk_vendor_options *options, struct wpk_kernel **out,
                             struct wpk_diag *diag);
/* Name and order the arguments as the choice does.
 *   errors  WPK_EMISMATCH the kernel's tensors are not those that the choice binds */
wpk_err wpk_kernel_bind(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                        struct wpk_diag *diag);

/* Load the images of a GPU's kernel, whose manifest has been read.
 *   errors  those of wpk_gpu_open; WPK_ECORRUPT manifest and images disagree */
wpk_err wpk_kernel_gpu_open(struct wpk_kernel *kernel, struct wpk_diag *diag);
/* True if it is a GPU's, and the driver compiled it from PTX (runtime/gpu/gpu.h). */
bool wpk_kernel_is_by_driver(const struct wpk_kernel *kernel);
/* Copy constants and prepared tensors to the device, and run the prepare program there.
 *   shape   block: both, on the host, each at its place; places in the order of the manifest
 *   errors  WPK_ENOMEM; WPK_ESYSTEM with the driver's reason */
wpk_err wpk_kernel_gpu_prepare(struct wpk_kernel *kernel, const uint8_t *block,
                               const size_t *constant_place, const size_t *prepared_place,
                               struct wpk_diag *diag);
/* Tell kernel->gpu what a call of the main program takes: sizes, offsets and constants. */
void wpk_kernel_gpu_settle(const struct wpk_kernel *kernel);
/* Run a prepared kernel.   shape   in, out: in the order of the kernel's inputs and outputs
 *   errors  those of wpk_gpu_call_run */
wpk_err wpk_kernel_gpu_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                           void *const *in, void *const *out);
/* The same of a CPU's kernel.   errors  those of wpk_context_call */
wpk_err wpk_kernel_call(const struct wpk_kernel *kernel, struct wpk_context *context,
                        void *const *in, void *const *out);

/* After a run of a kernel that is guarded (runtime/gpu/gpu.h): compare the device's memory.
 *   shape   as wpk_kernel_gpu_run
 *   errors  WPK_ECORRUPT with the tensor and the byte in `diag`; those of wpk_gpu_call_check */
wpk_err wpk_kernel_gpu_check(const struct wpk_kernel *kernel, struct wpk_context *context,
                             void *const *in, void *const *out, struct wpk_diag *diag);

/* Append the choice's entry for a vendor's kernel, as JSON; of another one, nothing.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_kernel_entry(const struct wpk_kernel *kernel, struct wpk_buf *out);

void wpk_argument_list_add(struct wpk_argument_list *list, const struct wpk_named_tensor *tensor,
                           int source);

/* Prepare the kernel, and run it on the inputs of the choice's self-test.
 *   errors  WPK_ECORRUPT the result is wrong; of wpk_kernel_prepare and wpk_kernel_run */
wpk_err wpk_self_test_run(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                          struct wpk_diag *diag);

/* Find the memory that a call reads besides its inputs: prepared constants, ours or a vendor's.
 * Returns their number; of a GPU's kernel, `data` is NULL. The kernel must be prepared.
 *   shape   out [WPK_ABI_ARGUMENTS_MAX] */
size_t wpk_kernel_constants(const struct wpk_kernel *kernel, struct wpk_span *out);
/* Let a kernel of ours read the caller's copies of these constants. Verification uses it to put
 * guard pages beside them. Each copy is aligned to 64 bytes and followed by WPK_MEMORY_SLACK zero
 * bytes; the copies must outlive the kernel's runs.
 *   shape   copies [number of constants], in the order of wpk_kernel_constants */
void wpk_kernel_move_constants(struct wpk_kernel *kernel, void *const *copies);

/* Describe a tensor as generated code expects it: dimensions innermost first, starting at minus
 * the padding, so that logical index 0 is index 0. `host` stays NULL.
 *
 *   shape   dim [WPK_RANK_MAX]
 *   errors  WPK_ERANGE more elements than a 32-bit index reaches
 */
wpk_err wpk_buffer_describe(const struct wpk_tensor_type *type, struct wpk_abi_dim *dim,
                            struct wpk_abi_buffer *out);

/* Check the indices among the tensors of `list` (runtime/kernel/manifest.h).
 *   shape   data [list->count]; names [list->count], for errors; NULL: those of the list
 *   errors  WPK_ERANGE with the tensor, the element and its value in `diag`; WPK_ENOMEM */
wpk_err wpk_kernel_check_indices(const struct wpk_kernel *kernel,
                                 const struct wpk_argument_list *list, void *const *data,
                                 const char *const *names, struct wpk_diag *diag);

/* Find the data of a prepared kernel's inputs and outputs.
 *   shape   in, out: in the order of the kernel's lists
 *   errors  WPK_EINVAL it is not prepared; those of wpk_arguments_match */
wpk_err wpk_kernel_match(const struct wpk_kernel *kernel, const struct wpk_tensor_data *inputs,
                         size_t input_count, void **in, const struct wpk_tensor_data *outputs,
                         size_t output_count, void **out);

/* Find the data of each argument of `list` by its name.
 *
 *   shape   data [count]; found [list->count]; size [list->count]: bytes that each must have
 *   errors  WPK_EINVAL an argument is missing, nameless, unknown, repeated, wrongly sized or
 *           misaligned
 */
wpk_err wpk_arguments_match(const struct wpk_argument_list *list, const size_t *size,
                            const struct wpk_tensor_data *data, size_t count, void **found,
                            struct wpk_diag *diag);

#endif
