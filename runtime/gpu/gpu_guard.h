/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of kernels that are verified:
 *
 *     | border | tensor | border |        a multiple of 256 bytes, the tensor, 256 bytes
 *
 * Both borders are NaN: what is read there spoils a result, and what is written there is found. The
 * one behind begins with the byte after the tensor's last. The kernel's context is current in all
 * calls. */
#ifndef WPK_RUNTIME_GPU_GPU_GUARD_H
#define WPK_RUNTIME_GPU_GPU_GUARD_H

#include "runtime/gpu/gpu_state.h"

#define WPK_GPU_BORDER ((size_t)256) /* bytes; in front of a tensor, at least */

/* Allocate `size` bytes with `border` bytes in front and a border behind; 0: no borders.
 *   owns    caller calls wpk_gpu_guard_give
 *   errors  WPK_ENOMEM, WPK_ESYSTEM; *out stays as it was */
WPK_MUST_CHECK wpk_err wpk_gpu_guard_take(const struct wpk_gpu *gpu, size_t border, size_t size,
                                          const char *doing, uint64_t *out, struct wpk_diag *diag);
/* Free those that are not 0, and set them to 0. */
void wpk_gpu_guard_give(const struct wpk_gpu *gpu, size_t border, uint64_t *memory, int count);

/* Fill the call's scratch with NaN, but what is zero by the plan. */
WPK_MUST_CHECK wpk_err wpk_gpu_guard_poison(struct wpk_gpu_call *call);
/* Keep what the uploads are, the first time.   errors  WPK_ENOMEM, WPK_ESYSTEM */
WPK_MUST_CHECK wpk_err wpk_gpu_guard_copy(struct wpk_gpu *gpu, struct wpk_diag *diag);
/* Compare the borders of the prepare program's scratch.
 *   errors  WPK_ECORRUPT; WPK_ENOMEM, WPK_ESYSTEM */
WPK_MUST_CHECK wpk_err wpk_gpu_guard_check_prepared(const struct wpk_gpu *gpu,
                                                    const uint64_t *scratch, struct wpk_diag *diag);

#endif
