/* SPDX-License-Identifier: Apache-2.0 */
/* A provider implements operators: it runs our kernels, or a vendor's library. The runner verifies
 * and times all providers in the same way, through these functions.
 *
 *     open ──▶ set (each input and constant) ──▶ prepare ──▶ poison ──▶ run ... ──▶ check, get
 *
 * Tensors are named by their id in the operator's program, as the user wrote it. `set` and `get`
 * pass values dense and row-major, without padding, in the tensor's own type; they convert from and
 * to the provider's layout, and only `run` is timed. After prepare, inputs may be set again;
 * constants may not.
 *
 * A provider lives in one child process of the runner; its crash ends that child only. A provider
 * starts its own threads. The runner binds the process to as many CPUs before `open`, or, for one
 * thread, while it times.
 *
 * To add a provider, write how it opens in worker/provider_NAME.c, call that in provider_kernel.c,
 * and name it among the vendors in main.c.
 * docs/hacking.md names the files in other folders. */
#ifndef WPK_WORKER_PROVIDER_PROVIDER_H
#define WPK_WORKER_PROVIDER_PROVIDER_H

#include "common/err.h"
#include "ir/program.h"
#include "runtime/wpk.h"
#include "schema/record.h"

struct wpk_gpu_primitive;
struct wpk_kernel;
struct wpk_provider;

#define WPK_PROVIDER_DETAIL_MAX 256
#define WPK_PROVIDER_EXCLUDED_MAX 256 /* algorithms of a vendor that can be passed over */
#define WPK_PROVIDER_KERNEL_NAME "kernel"

/* Memory for inputs and outputs: the runner puts each tensor between guard pages. Every slot is
 * required. Memory is zeroed and aligned to `element` bytes, a power of two, or more; the provider
 * gives it back at close. */
struct wpk_provider_memory {
    void *(*take)(void *user, size_t size, size_t element); /* NULL: out of memory */
    void (*give)(void *user, void *memory);
    void *user;
};

struct wpk_provider_request {
    const struct wpk_program *program; /* the original operator; outlives the provider */
    const char *layouts;               /* of inputs and outputs: "fixed" (row-major) or "any" */
    const char *artifact_path;         /* our kernel's shared object; vendors ignore it */
    const char *library_dir; /* of the vendor's shared library; NULL: found by the system */
    int threads;             /* >= 1 */
    const bool *excluded;    /* algorithms of a vendor that are passed over: [EXCLUDED_MAX]; NULL */
    bool timed;              /* runs are timed: on a CPU, on memory as users have it; see `check` */
    const struct wpk_provider_memory *memory; /* outlives the provider */
};

/* No function keeps a pointer to data that it is given. */

/* Load the kernel of our back ends ("kernel") or of the named vendor, and take memory for its
 * inputs and outputs. libwpk finds a vendor's library at run time, so no program links it.
 *   owns    caller calls close
 *   errors  WPK_EUNSUPPORTED the provider does not implement this operator or layout, or
 *           there is none of that name
 *           WPK_ENOENT, WPK_EMISMATCH, WPK_ECORRUPT library or artifact; WPK_ENOMEM */
wpk_err wpk_provider_open(const char *name, const struct wpk_provider_request *request,
                          struct wpk_provider **out, struct wpk_diag *diag);
void wpk_provider_close(struct wpk_provider *provider);
bool wpk_provider_is_ours(const struct wpk_provider *provider);
/* True if runs are timed by the device's clock, not by the host's. */
bool wpk_provider_has_clock(const struct wpk_provider *provider);

/* Give an input or constant its values.
 *   shape   dense [extent...] row-major
 *   errors  WPK_EINVAL the kernel has no such argument; WPK_ENOMEM */
wpk_err wpk_provider_set(struct wpk_provider *provider, int tensor, const void *dense,
                         struct wpk_diag *diag);
/* Give the memory of inputs and outputs back and take it again; the caller then sets the inputs
 * again. The first call also copies each prepared constant between guards of its own. Each
 * call moves tensors in a GPU's memory to the next multiple of 16 bytes, or back. Called only for
 * our kernels: a vendor's need more alignment than that of an element.
 *   errors  WPK_ENOMEM */
wpk_err wpk_provider_move(struct wpk_provider *provider);
/* Pack or transform the constants, all of which have been set. */
wpk_err wpk_provider_prepare(struct wpk_provider *provider, struct wpk_diag *diag);

/* Fill the elements of the outputs with `byte`, and their padding with zeros. */
void wpk_provider_poison(struct wpk_provider *provider, unsigned char byte);
/* Compute the outputs once, and do nothing else: this call is timed. */
wpk_err wpk_provider_run(struct wpk_provider *provider);

/* Measure `count` runs on the device's own clock, on the inputs of the last run; called only if
 * `has_clock`.
 *   unit    ns: of all together */
wpk_err wpk_provider_time(struct wpk_provider *provider, int count, double *ns);
/* True if the device's clocks were lowered lately, because it is hot or its power brake is set;
 * called only if `has_clock`. */
bool wpk_provider_throttled(struct wpk_provider *provider);
/* Why the last run failed, in the device's words; "": it says nothing. */
const char *wpk_provider_trouble(const struct wpk_provider *provider);

/* Evict from the caches what the next run shall fetch from memory. COLD_CONSTANTS: evict the
 * prepared constants, then read inputs and outputs. COLD: evict all of them. WARM never comes.
 * With `has_clock`: from now on `time` measures calls each of which finds as little.
 *   errors  WPK_ENOMEM, WPK_ESYSTEM */
wpk_err wpk_provider_cool(struct wpk_provider *provider, enum wpk_conditions conditions);
/* The size of the prepared constants in bytes; 0: there are none. */
uint64_t wpk_provider_constants_bytes(const struct wpk_provider *provider);
/* The needs of a launch of a GPU's kernel. */
struct wpk_launch_use wpk_provider_launch(const struct wpk_provider *provider);

/* Check that the padding of inputs and outputs is still zero and that inputs are as set. Of a
 * GPU's memory also that constants are as prepared and that the kernel wrote nothing beside a
 * tensor; on an emulated GPU, which checks the bounds of each access itself, `timed` ones have
 * no borders there.
 *   errors  WPK_ECORRUPT with the tensor's name in `diag` */
wpk_err wpk_provider_check(struct wpk_provider *provider, struct wpk_diag *diag);
/* Read an output.
 *   shape   dense [extent...] row-major
 *   errors  WPK_ENOENT `tensor` is not an output */
wpk_err wpk_provider_get(struct wpk_provider *provider, int tensor, void *dense);

/* A text for people: the layouts of inputs and outputs, or a vendor's implementation and
 * version. It lives as long as the provider. */
const char *wpk_provider_detail(const struct wpk_provider *provider);
/* The number of the algorithm that a vendor with a choice took when it was prepared; -1: there
 * is no choice. */
int wpk_provider_algorithm(const struct wpk_provider *provider);
/* The entry of a choice (schema/choice.h) that runs this vendor's kernel, as JSON; NULL for our
 * kernels. It lives as long as the provider. */
const char *wpk_provider_recipe(const struct wpk_provider *provider);

/* Where the vendors on GPUs meet provider_kernel.c. */

/* Make a kernel of the vendor's primitive for the request's operator.
 *   errors  WPK_EUNSUPPORTED the vendor does not compute the operator; WPK_ENOENT no library;
 *           WPK_ENOMEM */
wpk_err wpk_provider_gpu_kernel(const char *vendor, const struct wpk_provider_request *request,
                                struct wpk_kernel **out, struct wpk_diag *diag);

/* Measure `count` runs together. */
typedef wpk_err (*wpk_provider_gpu_time)(void *user, int count, double *ns);

/* Let the primitive use the fastest of its algorithms, of those that run.
 *   shape   excluded: [WPK_PROVIDER_EXCLUDED_MAX], which algorithms are passed over; NULL: none
 *   errors  WPK_EUNSUPPORTED none does; another error of a run: the device failed */
wpk_err wpk_provider_gpu_choose(struct wpk_gpu_primitive *primitive, const bool *excluded,
                                wpk_provider_gpu_time time, void *user, struct wpk_diag *diag);

/* oneDNN's kernel for an operator. */

#define WPK_PROVIDER_ONEDNN_NAME "onednn"

/* Open the kernel of the oneDNN primitive that computes the request's program.
 *   owns    caller calls wpk_kernel_close
 *   errors  see wpk_provider_open */
wpk_err wpk_provider_onednn_kernel(const struct wpk_provider_request *request,
                                   struct wpk_kernel **out, struct wpk_diag *diag);

/* State of the GPU that is number 0 for this process, from NVIDIA's management library. The library
 * is opened when it is first needed, and stays open; a machine may have none. */

/* True if the GPU's clocks are lowered now: it is too hot, or its power brake is set. False, too,
 * where nothing can be asked. A load at the power limit, idleness and set clocks do not count. */
bool wpk_nvml_is_throttled(bool emulated);

/* Temperature, power limit, and whether the GPU is throttled, as a text for people; or why they are
 * not known. */
void wpk_nvml_describe(bool emulated, char *out, size_t size);

#endif
