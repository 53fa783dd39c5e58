/* SPDX-License-Identifier: Apache-2.0 */
/* The stub of kernels for GPUs: a descriptor of what is linked beside it as binary data. The file
 * `prepare.image` is empty if the kernel prepares nothing. */
#include "runtime/abi.h"

/* The linker makes these from the files' names. */
extern const char _binary_manifest_start[], _binary_manifest_end[];
extern const char _binary_main_image_start[], _binary_main_image_end[];
extern const char _binary_prepare_image_start[], _binary_prepare_image_end[];

extern const struct wpk_abi_descriptor wpk_descriptor;

__attribute__((visibility("default"))) const struct wpk_abi_descriptor wpk_descriptor = {
    .abi_version = WPK_ABI_VERSION,
    .manifest = _binary_manifest_start,
    .manifest_end = _binary_manifest_end,
    .image = _binary_main_image_start,
    .image_end = _binary_main_image_end,
    .prepare_image = _binary_prepare_image_start,
    .prepare_image_end = _binary_prepare_image_end,
};
