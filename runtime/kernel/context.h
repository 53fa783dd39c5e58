/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a call of generated code: scratch, threads, and an exit when memory is short. */
#ifndef WPK_RUNTIME_KERNEL_CONTEXT_H
#define WPK_RUNTIME_KERNEL_CONTEXT_H

#include "runtime/abi.h"
#include "runtime/gpu/gpu.h"
#include "runtime/vendor/vendor.h"
#include "runtime/wpk.h"

/* The table that kernels are bound to; its `user` is the context. */
const struct wpk_abi_host *wpk_context_host(void);

/* Call `function` with the number of threads that the context's options name. Where they name 0,
 * the number is the larger of `threads` and that of earlier calls.
 *
 *   errors  WPK_ENOMEM scratch or threads; WPK_ESYSTEM a thread could not be started;
 *           WPK_EINVAL the kernel returned an error
 */
wpk_err wpk_context_call(struct wpk_context *context, int threads, wpk_abi_function function,
                         struct wpk_abi_buffer *const *arguments, size_t count);

/* Let the vendor's library compute, on the library's own threads.
 *
 *   shape   data: see wpk_vendor_call_run
 *   errors  WPK_ENOMEM; WPK_EUNSUPPORTED the library returned an error */
wpk_err wpk_context_call_vendor(struct wpk_context *context, struct wpk_vendor *vendor,
                                void *const *data);

/* Run a GPU's kernel on tensors in host memory.
 *   shape   data [arguments of the main program]
 *   errors  those of wpk_gpu_call_run */
wpk_err wpk_context_call_gpu(struct wpk_context *context, struct wpk_gpu *gpu, void *const *data);
/* Launch a GPU's kernel; see wpk_gpu_call_launch. */
wpk_err wpk_context_launch(struct wpk_context *context, struct wpk_gpu *gpu, void *stream,
                           const uint64_t *data);
/* Compare what the call that ran last left alone; see wpk_gpu_call_check. */
wpk_err wpk_context_check(struct wpk_context *context, void *const *data,
                          struct wpk_gpu_damage *out);
/* Measured calls take arguments in turns; see wpk_gpu_call_rotate. */
wpk_err wpk_context_rotate(struct wpk_context *context, bool constants_only);
/* Measure `repeats` calls of the GPU's kernel that ran last; see wpk_gpu_call_time. */
wpk_err wpk_context_time(struct wpk_context *context, int repeats, double *ns);

/* Where to say why a call failed: what wpk_context_trouble() returns next. */
struct wpk_diag *wpk_context_diag(struct wpk_context *context);

/* Bound the scratch of each thread, for hosts and tests that need an allocation to fail.
 *   unit    size_max: bytes; 0: no bound */
void wpk_context_limit_scratch(struct wpk_context *context, size_t size_max);
/* See wpk_model_context_use_threads. */
void wpk_context_use_threads(struct wpk_context *context, wpk_loop_runner runner, void *host);
/* Bytes of scratch that later calls find ready. */
size_t wpk_context_scratch_size(const struct wpk_context *context);

#endif
