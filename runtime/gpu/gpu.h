/* SPDX-License-Identifier: Apache-2.0 */
/* Runs images of launches (schema/launch_plan.h) on a GPU.
 *
 *      images ──open──▶ gpu ──prepare──▶ gpu, its constants on the device
 *                                            └──call_new──▶ call ──run, launch, time──▶ ...
 *
 * A `struct wpk_gpu` is what one kernel has in a device's primary context: modules, functions and
 * constants. A prepared one is immutable and shared: each call is one of its users, so that it
 * lives until its last call is freed. A call has device memory of its own and serves one thread at
 * a time. */
#ifndef WPK_RUNTIME_GPU_GPU_H
#define WPK_RUNTIME_GPU_GPU_H

#include "runtime/scratch.h"
#include "runtime/vendor/gpu_vendor.h"
#include "schema/device.h"

#define WPK_GPU_ALIGNMENT 16 /* bytes: of tensors in device memory */

struct wpk_gpu;
struct wpk_gpu_call;

struct wpk_gpu_options {
    bool emulated;
    struct wpk_span image;         /* of the main program */
    struct wpk_span prepare_image; /* size 0: there is no prepare program */
    /* A vendor's primitive in place of images; NULL: none. */
    const struct wpk_gpu_vendor *vendor;
    const struct wpk_recipe *recipe;
    bool any_algorithm; /* the caller will change the recipe's */
};

/* Load the images' modules, or make the primitive.
 *   owns    caller calls wpk_gpu_release
 *   errors  WPK_ENOENT no driver or device; WPK_ECORRUPT a damaged image; WPK_EMISMATCH, one of
 *           another version; WPK_EUNSUPPORTED the driver refuses the code; WPK_ESYSTEM another
 *           error of the driver; WPK_ENOMEM */
wpk_err wpk_gpu_open(const struct wpk_gpu_options *options, struct wpk_gpu **out,
                     struct wpk_diag *diag);
/* Count one more user, and one user less; the last release frees it. */
void wpk_gpu_release(struct wpk_gpu *gpu);

/* The vendor's primitive; NULL: the kernel is ours. */
struct wpk_gpu_primitive *wpk_gpu_primitive(const struct wpk_gpu *gpu);
const struct wpk_device *wpk_gpu_device(const struct wpk_gpu *gpu);
/* The most that a launch of the main program needs: registers and bytes of local memory of a
 * thread, 0 where they are not known, and bytes of shared memory of a block. */
void wpk_gpu_launch_use(const struct wpk_gpu *gpu, int *registers, int64_t *local_bytes,
                        int64_t *shared_bytes);
/* True if the driver compiled the kernel, or its prepare program, from PTX: these bits were not
 * verified. */
bool wpk_gpu_is_by_driver(const struct wpk_gpu *gpu);
/* Check that the two programs have these arguments, and no other.
 *   shape   main_bytes [main_count], prepare_bytes [prepare_count]; 0: there is no prepare program
 *   errors  WPK_ECORRUPT with the difference */
wpk_err wpk_gpu_check_arguments(const struct wpk_gpu *gpu, const size_t *main_bytes, int main_count,
                                const size_t *prepare_bytes, int prepare_count,
                                struct wpk_diag *diag);

/* Copy a tensor to device memory that lives as long as `gpu`.
 *   errors  WPK_ENOMEM; WPK_ESYSTEM with the driver's reason */
wpk_err wpk_gpu_upload(struct wpk_gpu *gpu, const void *data, size_t size, uint64_t *address,
                       struct wpk_diag *diag);
/* Run the prepare program once, and wait.
 *   shape   pointers [prepare_count]: device addresses of whole tensors, padding included
 *   errors  WPK_ENOMEM; WPK_ESYSTEM with the driver's reason */
wpk_err wpk_gpu_prepare(struct wpk_gpu *gpu, const uint64_t *pointers, struct wpk_diag *diag);

/* From now on what the kernel has in device memory is guarded, for whoever verifies it: calls and
 * constants that are made later lie between borders of NaN, scratch is NaN before each run, and
 * wpk_gpu_call_check() compares. Measured calls are as without.
 *   unit  shift: bytes behind a multiple of 256 at which the tensors of later calls begin, a
 *         multiple of WPK_GPU_ALIGNMENT below 256 */
void wpk_gpu_guard(struct wpk_gpu *gpu, size_t shift);

/* One argument of a call of the main program. */
struct wpk_gpu_argument {
    uint64_t address; /* of a constant; 0: the caller gives the tensor */
    size_t size;      /* bytes of the tensor, padding included */
    bool written;
};

/* Say what calls take, before the first one is made.   shape  arguments [argument_count], copied */
void wpk_gpu_settle(struct wpk_gpu *gpu, const struct wpk_gpu_argument *arguments);

/* Make a call with scratch memory.
 *   owns    caller calls wpk_gpu_call_free
 *   errors  WPK_ENOMEM, WPK_ESYSTEM */
wpk_err wpk_gpu_call_new(struct wpk_gpu *gpu, struct wpk_gpu_call **out, struct wpk_diag *diag);
void wpk_gpu_call_free(struct wpk_gpu_call *call);
const struct wpk_gpu *wpk_gpu_call_of(const struct wpk_gpu_call *call);

/* Run on tensors in host memory: copy them to the device, launch, copy what is written back, wait.
 * Outputs are copied to the device, too, so that what the kernel leaves out stays as it was.
 *   shape   data [argument_count]; not read for constants
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED, WPK_ESYSTEM: see wpk_gpu_call_trouble */
wpk_err wpk_gpu_call_run(struct wpk_gpu_call *call, void *const *data);
enum wpk_gpu_part { WPK_GPU_PART_ARGUMENT, WPK_GPU_PART_UPLOAD, WPK_GPU_PART_SCRATCH };

/* A byte that is not as it was. */
struct wpk_gpu_damage {
    enum wpk_gpu_part part;
    int index;   /* among the arguments, the uploads, or the scratch tensors */
    int64_t at;  /* offset from the part's first byte; below 0 or from `size` on: of its border */
    size_t size; /* bytes of the part */
};

/* Compare what runs of a guarded kernel leave alone: borders, constants, and arguments that are
 * not written, with what the last run was given.
 *   shape   data: as wpk_gpu_call_run was given it
 *   errors  WPK_ECORRUPT with the first difference in *out; WPK_ENOMEM, WPK_ESYSTEM */
wpk_err wpk_gpu_call_check(struct wpk_gpu_call *call, void *const *data,
                           struct wpk_gpu_damage *out);
/* Launch on tensors in device memory, in a stream of the caller's; do not wait.
 *   shape   data [argument_count]: addresses of whole tensors, padding included
 *   errors  WPK_EUNSUPPORTED, WPK_ESYSTEM: the driver refuses the launch */
wpk_err wpk_gpu_call_launch(struct wpk_gpu_call *call, void *stream, const uint64_t *data);
/* Measure on the device's own clock how long `repeats` calls take, on the data of the last run.
 *   unit    ns: of all together
 *   errors  those of wpk_gpu_call_run */
wpk_err wpk_gpu_call_time(struct wpk_gpu_call *call, int repeats, double *ns);
/* From now on each measured call takes another one of so many copies of the arguments that they
 * exceed twice the second-level cache: it finds nothing there of what the calls before it read.
 * The data is that of the last run. `constants_only`: the caller's tensors stay the same ones.
 *   errors  WPK_ENOMEM: the device has not enough memory; those of wpk_gpu_call_run */
wpk_err wpk_gpu_call_rotate(struct wpk_gpu_call *call, bool constants_only);
/* The driver's reason for the call's last failure; "" if there was none. */
const char *wpk_gpu_call_trouble(const struct wpk_gpu_call *call);

#endif
