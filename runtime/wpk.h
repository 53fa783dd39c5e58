/* SPDX-License-Identifier: Apache-2.0 */
/* libwpk: load a tuned kernel, prepare its constants, run it.
 *
 *     struct wpk_kernel *kernel;
 *     wpk_open("c6.so.choice", NULL, &kernel, NULL);
 *     wpk_kernel_prepare(kernel, constants, 2, NULL);
 *     wpk_context_new(&(struct wpk_context_options){.threads = 1}, &context);
 *     wpk_kernel_run(kernel, context, inputs, 1, outputs, 1);
 *
 * A prepared kernel is immutable and may be shared between threads; a context serves one call at
 * a time. Constants are given dense and row-major as the operator declares them. Inputs and
 * outputs lie in the layout that wpk_kernel_input/output tell: with layouts "fixed" that is
 * row-major too; wpk_tensor_pack and wpk_tensor_unpack convert. Padding elements of inputs must
 * be zero and stay the caller's: kernels read but never write padding. */
#ifndef WPK_RUNTIME_WPK_H
#define WPK_RUNTIME_WPK_H

#include "common/err.h"
#include "schema/device.h"
#include "schema/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WPK_API __attribute__((visibility("default")))
#else
#define WPK_API
#endif

struct wpk_kernel;
struct wpk_context;

/* What a kernel says of one argument. */
struct wpk_argument {
    const char *name; /* the user's; opened without a choice, the canonical one */
    struct wpk_tensor_type type;
};

/* Data for one argument. */
struct wpk_tensor_data {
    const char *name; /* as wpk_kernel_input/output/constant tell it; tensors have no order */
    void *data;       /* aligned to 64 bytes is fastest; any alignment of the element works */
    size_t size;      /* bytes at `data`: must equal the argument's */
};

struct wpk_context_options {
    int threads; /* 0: as many as the kernel wants when it runs; a vendor's library always takes
                    the choice's number, and places its threads itself */
    /* [threads] to pin to; cpus[0] is the caller's, who pins itself. NULL: the threads beside the
     * caller are pinned to distinct CPUs of its mask, and keep off the one it runs on. */
    const int *cpus;
};

struct wpk_open_options {
    const struct wpk_device *device; /* NULL: the machine this runs on */
    /* 64 hexadecimal digits: of the one wpkd whose kernels are run, as `wpkctl get --public-key`
     * prints it. NULL: whoever can write the file is trusted. */
    const char *public_key;
    bool any_model; /* signed kernels: on a device of another class too, if it has what they need */
    /* wpk_open alone: */
    const char *library_dir; /* where vendors' libraries lie; NULL: the system's path */
    bool self_test;          /* compute the choice's self-test before anything is taken */
};

/* Which entry of a choice a kernel is. */
struct wpk_choice_taken {
    int index;          /* in the choice's chain, from 0; -1: it was not opened by a choice */
    const char *kind;   /* "kernel", "vendor" or "plain"; "" */
    const char *reason; /* why those before it were not taken, a line each; "" */
};

/* Open what a choice (c6.so.choice, as `wpkctl get` writes it) says is to be run here: the first
 * entry of its chain that fits this device, is what the choice names by its hash, finds its library
 * in the version it was measured with and, if asked for, passes the self-test. Arguments then have
 * the asker's names. With a public key PATH.sig must be the key's signature of the choice, which
 * vouches for the files it names.
 *
 *   shape   options: NULL for none
 *   owns    as wpk_kernel_open_with
 *   errors  WPK_EEXHAUSTED no entry could be taken: the diag says why
 *           WPK_ENOENT     no such choice
 *           WPK_ECORRUPT   it is no choice; WPK_EMISMATCH one of another version
 *           WPK_EACCES     not signed by that key, or changed since
 *           WPK_EUNSUPPORTED a self-test is asked for, and the choice has none
 *           WPK_ENOMEM
 */
WPK_API wpk_err wpk_open(const char *path, const struct wpk_open_options *options,
                         struct wpk_kernel **out, struct wpk_diag *diag);
/* Lives as long as the kernel. */
WPK_API struct wpk_choice_taken wpk_kernel_choice(const struct wpk_kernel *kernel);

/* Load a kernel's shared object and check that it fits: ABI version, the device's instruction
 * set, integrity of the file.
 *
 * `wpkctl get` writes two files beside it, PATH.manifest and PATH.sig: what wpkd recorded of this
 * very object, and its signature. If PATH.manifest is there, the object must be the one it names.
 * With a public key both must be there, the signature must be the key's, and the device of the
 * class that the kernel was measured on; and what is then run are the bytes that were checked,
 * whatever happens to the file meanwhile.
 *
 *   shape   options: NULL for none
 *   owns    caller calls wpk_kernel_close, after every context's last run; options are not kept
 *   errors  WPK_ENOENT     no such file
 *           WPK_ECORRUPT   no kernel, damaged, or not the object that its manifest names
 *           WPK_EMISMATCH  another ABI, or a device that it is not for
 *           WPK_EACCES     not signed by that key, or a signed file was changed
 *           WPK_EINVAL     the public key is none
 *           WPK_ENOMEM
 */
WPK_API wpk_err wpk_kernel_open_with(const char *path, const struct wpk_open_options *options,
                                     struct wpk_kernel **out, struct wpk_diag *diag);
/* The same with a device as the only option, which may be NULL. */
WPK_API wpk_err wpk_kernel_open(const char *path, const struct wpk_device *device,
                                struct wpk_kernel **out, struct wpk_diag *diag);
WPK_API void wpk_kernel_close(struct wpk_kernel *kernel);

/* Run the kernel's prepare program on the constants (packing, transforms) and keep the result.
 * Constants are copied as needed: the caller's memory may go afterwards. A kernel without any may
 * have something to prepare all the same: call it with a count of 0.
 *
 *   errors  WPK_EINVAL missing, unknown or wrongly sized constant; WPK_ENOMEM
 */
WPK_API wpk_err wpk_kernel_prepare(struct wpk_kernel *kernel,
                                   const struct wpk_tensor_data *constants, size_t count,
                                   struct wpk_diag *diag);

WPK_API wpk_err wpk_context_new(const struct wpk_context_options *options,
                                struct wpk_context **out);
WPK_API void wpk_context_free(struct wpk_context *context);

/* Run once. Costs less than a microsecond over the bare function. Scratch memory is reserved and
 * touched on a context's first run of a kernel.
 *
 *   errors  WPK_EINVAL wrong count, name or size; not prepared; WPK_ENOMEM scratch
 */
WPK_API wpk_err wpk_kernel_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                               const struct wpk_tensor_data *inputs, size_t input_count,
                               const struct wpk_tensor_data *outputs, size_t output_count);

WPK_API size_t wpk_kernel_input_count(const struct wpk_kernel *kernel);
WPK_API size_t wpk_kernel_output_count(const struct wpk_kernel *kernel);
WPK_API size_t wpk_kernel_constant_count(const struct wpk_kernel *kernel);
/* index below the count; the result lives as long as the kernel */
WPK_API const struct wpk_argument *wpk_kernel_input(const struct wpk_kernel *kernel, size_t index);
WPK_API const struct wpk_argument *wpk_kernel_output(const struct wpk_kernel *kernel, size_t index);
WPK_API const struct wpk_argument *wpk_kernel_constant(const struct wpk_kernel *kernel,
                                                       size_t index);
/* The manifest: JSON text with operator, layouts, schedule and versions. A vendor's: the recipe. */
WPK_API const char *wpk_kernel_manifest(const struct wpk_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
