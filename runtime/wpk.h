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
 * outputs lie in the layout that wpk_kernel_input and wpk_kernel_output tell; with layouts "fixed"
 * this layout is row-major. wpk_tensor_pack and wpk_tensor_unpack convert. The caller zeroes the
 * padding elements of inputs: kernels read padding and never write it. */
#ifndef WPK_RUNTIME_WPK_H
#define WPK_RUNTIME_WPK_H

#include "common/err.h"
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

/* One argument of a kernel. */
struct wpk_argument {
    const char *name; /* the user's; of a kernel opened without a choice, the canonical one */
    struct wpk_tensor_type type;
};

/* Data for one argument. */
struct wpk_tensor_data {
    const char *name; /* as wpk_kernel_input/output/constant tell it; tensors have no order */
    void *data;       /* aligned to the element's size at least; to 64 bytes is fastest */
    size_t size;      /* bytes at `data`: must equal the argument's */
};

struct wpk_context_options {
    int threads; /* 0: at least as many as the kernel was made for. A vendor's library always uses
                    the choice's number, and places its threads itself */
    /* [threads]: CPUs to pin threads to; cpus[0] is the caller's, who pins itself. NULL: the other
     * threads are pinned to distinct CPUs of the caller's mask, without the caller's own. */
    const int *cpus;
};

struct wpk_open_options {
    /* The CPU that kernels have to fit, as in "cpu/AMD EPYC 9B45/zen4"; NULL: the
     * machine that this process runs on. A GPU's kernel has to fit the GPU of the process. */
    const char *device_class;
    /* 64 hexadecimal digits: the key of the wpkd whose kernels may run, as `wpkctl get
     * --public-key` prints it. NULL: everyone who can write the file is trusted. */
    const char *public_key;
    bool any_model; /* signed kernels may run on any device class that has what they need */
    /* for wpk_open alone: */
    const char *library_dir; /* directory of vendors' libraries; NULL: the system's path */
    /* Take an entry only after it has passed the choice's self-test. A kernel that the GPU's driver
     * compiles from PTX always has to pass. */
    bool self_test;
};

/* Which entry of a choice a kernel is. */
struct wpk_choice_taken {
    int index;          /* in the choice's chain, from 0; -1: opened without a choice */
    const char *kind;   /* "kernel", "vendor" or "plain"; "" without a choice */
    const char *reason; /* why the entries before this one were not taken, a line each; "" */
};

/* Open the first entry of a choice (c6.so.choice, as `wpkctl get` writes it) that works here. Such
 * an entry fits this device, its file has the hash that the choice names, its library has the
 * version that was measured and, if the options ask for it, it passes the self-test. Arguments have
 * the names of the choice. With a public key PATH.sig must be the key's signature of the choice,
 * whose hashes then stand for signatures of the files.
 *
 *   shape   options: NULL for none
 *   owns    as wpk_kernel_open
 *   errors  WPK_EEXHAUSTED no entry could be taken: `diag` says why
 *           WPK_ENOENT     no such choice; WPK_ENOMEM
 *           WPK_ECORRUPT   the file is not a choice; WPK_EMISMATCH a choice of another version
 *           WPK_EACCES     the choice is not signed by that key, or was changed since
 *           WPK_EUNSUPPORTED the options ask for a self-test, and the choice has none
 *           WPK_EINVAL     the public key or the device class is malformed
 *           WPK_EIO, WPK_ESYSTEM the choice could not be read */
WPK_API wpk_err wpk_open(const char *path, const struct wpk_open_options *options,
                         struct wpk_kernel **out, struct wpk_diag *diag);
/* The entry that was taken; its texts live as long as the kernel. */
WPK_API struct wpk_choice_taken wpk_kernel_choice(const struct wpk_kernel *kernel);

/* Load a kernel's shared object and check that it fits: ABI version, the device's instruction
 * set, integrity of the file.
 *
 * `wpkctl get` writes two files beside it: PATH.manifest is what wpkd recorded of this object,
 * PATH.sig the signature of the manifest. If PATH.manifest is there, it must name the object. With
 * a public key both files must be there, the signature must be the key's, and the device must be of
 * the class that the kernel was measured on. The bytes that run are then those that were checked,
 * even if the file changes meanwhile.
 *
 *   shape   options: NULL for none
 *   owns    caller calls wpk_kernel_close, after every context's last run; options are not kept
 *   errors  WPK_ENOENT     no such file
 *           WPK_ECORRUPT   not a kernel, damaged, or not the object that its manifest names
 *           WPK_EMISMATCH  another ABI, or the kernel does not fit the device
 *           WPK_EACCES     not signed by that key, or a signed file was changed
 *           WPK_EINVAL     the public key or the device class is malformed
 *           WPK_ENOMEM; WPK_EIO, WPK_ESYSTEM a file could not be read, or the object could not be
 *           kept in memory
 */
WPK_API wpk_err wpk_kernel_open(const char *path, const struct wpk_open_options *options,
                                struct wpk_kernel **out, struct wpk_diag *diag);
WPK_API void wpk_kernel_close(struct wpk_kernel *kernel);

/* Run the kernel's prepare program on the constants (packing, transforms) and keep the result.
 * Constants are copied as needed: the caller may free them afterwards. A kernel without constants
 * may also have something to prepare; call this function with a count of 0.
 *
 *   errors  WPK_EINVAL missing, unknown or wrongly sized constant; WPK_ENOMEM
 */
WPK_API wpk_err wpk_kernel_prepare(struct wpk_kernel *kernel,
                                   const struct wpk_tensor_data *constants, size_t count,
                                   struct wpk_diag *diag);

WPK_API wpk_err wpk_context_new(const struct wpk_context_options *options,
                                struct wpk_context **out);
WPK_API void wpk_context_free(struct wpk_context *context);
/* Why the context's last run failed: an index that is out of its axis, with the tensor and the
 * element, or the driver's reason of a GPU's kernel; "" if there is none. The text lives until the
 * context is used again. */
WPK_API const char *wpk_context_trouble(const struct wpk_context *context);

/* Run the kernel once. A call costs less than a microsecond more than the bare function. The first
 * run of a kernel in a context reserves and touches scratch memory. A GPU's kernel takes tensors in
 * host memory here, too; the call copies them and waits for the result.
 *
 *   errors  WPK_EINVAL wrong count, name, size or alignment, or not prepared; WPK_ENOMEM;
 *           WPK_ESYSTEM a thread could not be started, or the GPU failed; WPK_EUNSUPPORTED the
 *           vendor's library or the GPU's driver refuses
 */
WPK_API wpk_err wpk_kernel_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                               const struct wpk_tensor_data *inputs, size_t input_count,
                               const struct wpk_tensor_data *outputs, size_t output_count);

/* Launch a GPU's kernel on tensors in device memory, and do not wait. The device's primary context,
 * which is the one of the CUDA runtime, must be current. The context's scratch memory is used until
 * the stream has done the launch: calls of one context go to one stream.
 *
 *   shape   stream: a CUstream or cudaStream_t; data of the tensors: device addresses, multiples of
 *           16 as those of cuMemAlloc are, of tensors in the layouts of wpk_kernel_input and
 *           wpk_kernel_output
 *   errors  WPK_EUNSUPPORTED the kernel runs on CPUs; those of wpk_kernel_run
 */
WPK_API wpk_err wpk_kernel_launch(const struct wpk_kernel *kernel, struct wpk_context *context,
                                  void *stream, const struct wpk_tensor_data *inputs,
                                  size_t input_count, const struct wpk_tensor_data *outputs,
                                  size_t output_count);

WPK_API size_t wpk_kernel_input_count(const struct wpk_kernel *kernel);
WPK_API size_t wpk_kernel_output_count(const struct wpk_kernel *kernel);
WPK_API size_t wpk_kernel_constant_count(const struct wpk_kernel *kernel);
/* One argument; `index` is below the count. The result lives as long as the kernel. */
WPK_API const struct wpk_argument *wpk_kernel_input(const struct wpk_kernel *kernel, size_t index);
WPK_API const struct wpk_argument *wpk_kernel_output(const struct wpk_kernel *kernel, size_t index);
WPK_API const struct wpk_argument *wpk_kernel_constant(const struct wpk_kernel *kernel,
                                                       size_t index);
/* The name of the input whose memory the only output may be, at the same address; NULL: outputs
 * overlap no input. */
WPK_API const char *wpk_kernel_in_place(const struct wpk_kernel *kernel);
/* The manifest: JSON with operator, layouts, schedule and versions. Of a vendor's: the recipe. */
WPK_API const char *wpk_kernel_manifest(const struct wpk_kernel *kernel);

/* ---- models
 *
 *     wpk_model_open("model.wpk", NULL, &model, NULL);
 *     wpk_model_context_new(model, 0, NULL, &context);
 *     wpk_model_run(context, inputs, 1, outputs, 1);
 *
 * A model is the plan that `wpkctl tune MODEL.onnx -o FILE.wpk` writes. It was tuned for one set of
 * shapes of its inputs, or for several (`--shape` repeated), which share kernels and constants of
 * the file. An open model may be shared between threads; a context serves one run at a time. Inputs
 * and outputs are dense and row-major. */

struct wpk_model;
struct wpk_model_context;

/* Load a plan: check it, load the kernel of each step and prepare its constants, for the first set
 * of shapes. The first context of another set does so for that one.
 *
 *   shape   options: NULL for none; `device_class` and no other is used
 *   owns    caller calls wpk_model_close, after every context is freed
 *   errors  WPK_ENOENT, WPK_EACCES, WPK_EIO the file cannot be read
 *           WPK_ECORRUPT  not a plan, cut short, or changed
 *           WPK_EMISMATCH a plan of another version, or a kernel that does not fit the device
 *           WPK_EINVAL    the device class is malformed
 *           WPK_ENOMEM; WPK_ESYSTEM a kernel could not be kept in memory
 */
WPK_API wpk_err wpk_model_open(const char *path, const struct wpk_open_options *options,
                               struct wpk_model **out, struct wpk_diag *diag);
WPK_API void wpk_model_close(struct wpk_model *model);

WPK_API size_t wpk_model_input_count(const struct wpk_model *model);
WPK_API size_t wpk_model_output_count(const struct wpk_model *model);
/* Sets of shapes of the inputs that it was tuned for; at least 1. */
WPK_API size_t wpk_model_shape_count(const struct wpk_model *model);
#define WPK_MODEL_NO_SHAPE ((size_t)-1)
/* The first set of shapes in which these inputs have these extents; WPK_MODEL_NO_SHAPE: none.
 *   shape   inputs [input_count]: some or all of the model's */
WPK_API size_t wpk_model_find_shape(const struct wpk_model *model,
                                    const struct wpk_argument *inputs, size_t input_count);
/* Steps: calls of kernels, each once in a run, or in a loop several times. */
WPK_API size_t wpk_model_step_count(const struct wpk_model *model, size_t shape);
/* Threads that its kernels were made for. */
WPK_API size_t wpk_model_threads(const struct wpk_model *model);
/* One input or output in the set `shape`, both below their counts. The result lives as long as the
 * model. */
WPK_API const struct wpk_argument *wpk_model_input(const struct wpk_model *model, size_t shape,
                                                   size_t index);
/* The smallest and the largest value of an input's elements for which the model is of use, as far
 * as its graph says: masks are 0 or 1, indices lie inside their axes. For tests and timing. */
WPK_API void wpk_model_input_domain(const struct wpk_model *model, size_t shape, size_t index,
                                    double *low, double *high);
WPK_API const struct wpk_argument *wpk_model_output(const struct wpk_model *model, size_t shape,
                                                    size_t index);

/* One step of the plan, for people. Operations, bytes and times are those of one call, the times
 * from when the kernel was tuned. */
struct wpk_model_step {
    const char *node;   /* the nodes of the model that it computes */
    const char *kernel; /* several steps may have one kernel */
    uint64_t calls;     /* in one run; >= 1 */
    const char *op;     /* the kernel's program, in whole form (docs/notation.md); "": a function of
                         * libwpk computes the step, or its set of shapes was not loaded yet */
    double flops;       /* operations that the equations need */
    double bytes;       /* every input and output once */
    uint64_t tuned_ns;  /* 0: not timed */
    const char *vendor; /* the fastest library that was timed beside it; "": none */
    uint64_t vendor_ns;
};

/* Step `index`, below the count. Texts live as long as the model. */
WPK_API struct wpk_model_step wpk_model_step(const struct wpk_model *model, size_t shape,
                                             size_t index);

/* Make what one run at a time needs, in the set `shape`: memory and threads.
 *
 *   shape   options: NULL for none
 *   owns    caller calls wpk_model_context_free
 *   errors  WPK_ENOMEM; those of wpk_kernel_run; of a set's first context, those of wpk_model_open
 */
WPK_API wpk_err wpk_model_context_new(struct wpk_model *model, size_t shape,
                                      const struct wpk_context_options *options,
                                      struct wpk_model_context **out);
WPK_API void wpk_model_context_free(struct wpk_model_context *context);
/* Bytes of memory that the context holds, and the kernels and prepared constants of its set of
 * shapes. A constant that n open sets of shapes have in common counts for an n-th. Scratch memory
 * is among them once the context has run. */
WPK_API size_t wpk_model_context_size(const struct wpk_model_context *context);

/* Computes one of a loop's parts. */
typedef void (*wpk_loop_part)(void *user, size_t part);
/* Calls part(user, i) once for each i below `count`, in any order, on the calling thread and on any
 * others, and returns when all calls have. */
typedef void (*wpk_loop_runner)(void *host, wpk_loop_part part, void *user, size_t count);

/* Run the loops of later runs on the threads of `runner`, which the thread that runs the model
 * calls; the context ends its own threads. `count` is the number of threads that the context was
 * made for. */
WPK_API void wpk_model_context_use_threads(struct wpk_model_context *context,
                                           wpk_loop_runner runner, void *host);

/* Run the model once. The first run of a context reserves and touches scratch memory; later ones
 * allocate nothing.
 *
 *   shape   inputs [input_count], outputs [output_count]: all of the model's, in any order
 *   owns    caller owns all memory; inputs and outputs do not overlap
 *   errors  WPK_EINVAL wrong count, name, size or alignment; WPK_ERANGE an index in the data is out
 *           of its axis, or another number of elements is not 0 than the plan was made for; those
 *           of wpk_kernel_run
 */
WPK_API wpk_err wpk_model_run(struct wpk_model_context *context,
                              const struct wpk_tensor_data *inputs, size_t input_count,
                              const struct wpk_tensor_data *outputs, size_t output_count);

/* The step at which the context's last run failed, and why; "": none did.
 *   owns  valid until the context's next run */
WPK_API const char *wpk_model_context_failure(const struct wpk_model_context *context);

/* Do the same and time each step, all its calls together: two readings of the monotonic clock a
 * call.
 *
 *   shape   step_ns [step count]
 *   unit    ns; errors as wpk_model_run */
WPK_API wpk_err wpk_model_profile(struct wpk_model_context *context,
                                  const struct wpk_tensor_data *inputs, size_t input_count,
                                  const struct wpk_tensor_data *outputs, size_t output_count,
                                  uint64_t *step_ns);

/* A tensor of a step, as the step's kernel has it. */
struct wpk_model_tensor {
    const struct wpk_argument *argument; /* its layout says where elements lie */
    enum wpk_model_tensor_role {
        WPK_MODEL_TENSOR_INPUT,
        WPK_MODEL_TENSOR_CONSTANT,
        WPK_MODEL_TENSOR_OUTPUT,
    } role;
    int value; /* its number in the plan: several steps may have it */
    const void *data;
};

/* Called before each step, and with `is_done` after it, when its outputs are there; of a loop in
 * its first and its last iteration.
 *   shape   tensors [count]: the inputs, constants and outputs of the step's kernel, in this order;
 *           0 for a step without a kernel
 *   owns    tensors and data are valid during the call */
typedef void (*wpk_model_watcher)(void *user, size_t step, bool is_done,
                                  const struct wpk_model_tensor *tensors, size_t count);

/* Fill the context's memory with NaN, run the model once, and show each step to `watcher`.
 *   errors  as wpk_model_run; WPK_ENOMEM */
WPK_API wpk_err wpk_model_watch(struct wpk_model_context *context,
                                const struct wpk_tensor_data *inputs, size_t input_count,
                                const struct wpk_tensor_data *outputs, size_t output_count,
                                wpk_model_watcher watcher, void *user);

#ifdef __cplusplus
}
#endif
#endif
