/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a schedule: what of the machine the generated code may use, as Halide spells it,
 * without the flags of its runtime. Only target.c knows the spelling. */
#ifndef WPK_NEST_TARGET_H
#define WPK_NEST_TARGET_H

#include "schema/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_TARGET_MAX 256

/* Write the target of a device; `strict`: each floating operation rounds. */
void wpk_target_print(const struct wpk_device *device, bool strict, char out[WPK_TARGET_MAX]);
/* Write the same target with strict floating operations.   errors  WPK_ENOSPC */
wpk_err wpk_target_make_strict(const char *target, char out[WPK_TARGET_MAX]);
/* True if each floating operation rounds. */
bool wpk_target_is_strict(const char *target);
bool wpk_target_is_gpu(const char *target);
/* Write the target as Halide spells it: a GPU's with the newest architecture that Halide knows and
 * the GPU has.
 *   errors  WPK_EUNSUPPORTED Halide knows no GPU as old */
wpk_err wpk_target_spell(const char *target, char out[WPK_TARGET_MAX]);
/* Set what a target needs: of a CPU the flags and vectors, of a GPU kind and capability. A
 * target that was written by hand may name other CPUs than wpk_target_print() does. */
void wpk_target_read(const char *target, struct wpk_device *out);
/* Copy the architecture of a GPU's target: "sm_90".   errors  WPK_EINVAL it is not a GPU's */
wpk_err wpk_target_architecture(const char *target, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
