/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for a GPU: its images, constants and calls. */
#include "runtime/gpu/gpu.h"
#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"

#include <stdio.h>

/* The bytes of a program's arguments.
 *   shape   names, bytes [count] */
static void list_bytes(const struct wpk_manifest *manifest, const char (*names)[WPK_NAME_MAX],
                       int count, size_t *bytes)
{
    for (int i = 0; i < count; i++) {
        bytes[i] = wpk_tensor_type_bytes(&wpk_manifest_find(manifest, names[i])->type);
    }
}

wpk_err wpk_kernel_gpu_open(struct wpk_kernel *kernel, struct wpk_diag *diag)
{
    const struct wpk_abi_descriptor *descriptor = kernel->descriptor;
    const struct wpk_manifest *manifest = &kernel->manifest;
    const struct wpk_gpu_options options = {
        .emulated = manifest->needs.emulated,
        .image = {descriptor->image, (size_t)(descriptor->image_end - descriptor->image)},
        .prepare_image = {descriptor->prepare_image,
                          (size_t)(descriptor->prepare_image_end - descriptor->prepare_image)}};

    size_t main_bytes[WPK_ABI_ARGUMENTS_MAX], prepare_bytes[WPK_ABI_ARGUMENTS_MAX];

    list_bytes(manifest, manifest->main, manifest->main_count, main_bytes);
    list_bytes(manifest, manifest->prepare, manifest->prepare_count, prepare_bytes);
    wpk_err err = wpk_gpu_open(&options, &kernel->gpu, diag);
    return err == WPK_OK ? wpk_gpu_check_arguments(kernel->gpu, main_bytes, manifest->main_count,
                                                   prepare_bytes, manifest->prepare_count, diag)
                         : err;
}

bool wpk_kernel_is_by_driver(const struct wpk_kernel *kernel)
{
    return kernel->gpu != NULL && wpk_gpu_is_by_driver(kernel->gpu);
}

/* Copy a list's tensors out of `block` to the device.
 *   shape   place, address [count] */
static wpk_err upload(struct wpk_kernel *kernel, const struct wpk_named_tensor *tensors, int count,
                      const uint8_t *block, const size_t *place, uint64_t *address,
                      struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; i < count && err == WPK_OK; i++) {
        err = wpk_gpu_upload(kernel->gpu, block + place[i], wpk_tensor_type_bytes(&tensors[i].type),
                             &address[i], diag);
    }
    return err;
}

/* Where the tensor lies on the device. */
static uint64_t find_address(const struct wpk_manifest *manifest,
                             const struct wpk_named_tensor *tensor, const uint64_t *constants,
                             const uint64_t *prepared)
{
    bool constant =
        tensor >= manifest->constants && tensor < manifest->constants + manifest->constant_count;

    return constant ? constants[tensor - manifest->constants]
                    : prepared[tensor - manifest->prepared];
}

wpk_err wpk_kernel_gpu_prepare(struct wpk_kernel *kernel, const uint8_t *block,
                               const size_t *constant_place, const size_t *prepared_place,
                               struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    uint64_t constants[WPK_ABI_ARGUMENTS_MAX];
    uint64_t prepared[WPK_ABI_ARGUMENTS_MAX];
    uint64_t pointers[WPK_ABI_ARGUMENTS_MAX];

    wpk_err err = upload(kernel, manifest->constants, manifest->constant_count, block,
                         constant_place, constants, diag);
    if (err == WPK_OK) {
        err = upload(kernel, manifest->prepared, manifest->prepared_count, block, prepared_place,
                     prepared, diag);
    }
    if (err == WPK_OK && manifest->prepare_count > 0) {
        for (int i = 0; i < manifest->prepare_count; i++) {
            pointers[i] = find_address(manifest, wpk_manifest_find(manifest, manifest->prepare[i]),
                                       constants, prepared);
        }
        err = wpk_gpu_prepare(kernel->gpu, pointers, diag);
    }
    for (int i = 0; i < manifest->main_count && err == WPK_OK; i++) {
        if (kernel->main[i].kind == WPK_SLOT_FIXED) {
            kernel->main[i].buffer.device = find_address(
                manifest, wpk_manifest_find(manifest, manifest->main[i]), constants, prepared);
        }
    }
    wpk_kernel_gpu_settle(kernel);
    return err;
}

void wpk_kernel_gpu_settle(const struct wpk_kernel *kernel)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    struct wpk_gpu_argument out[WPK_ABI_ARGUMENTS_MAX];
    size_t bytes[WPK_ABI_ARGUMENTS_MAX];

    list_bytes(manifest, manifest->main, manifest->main_count, bytes);
    for (int i = 0; i < manifest->main_count; i++) {
        const struct wpk_slot *slot = &kernel->main[i];
        out[i] = (struct wpk_gpu_argument){.address = slot->buffer.device,
                                           .size = bytes[i],
                                           .written = slot->kind == WPK_SLOT_OUTPUT};
    }
    wpk_gpu_settle(kernel->gpu, out);
}

/* The caller's tensors in the order of the main program's arguments.
 *   shape   in, out: in the order of the kernel's inputs and outputs; data [main_count] */
static void order(const struct wpk_kernel *kernel, void *const *in, void *const *out, void **data)
{
    for (int i = 0; i < kernel->manifest.main_count; i++) {
        const struct wpk_slot *slot = &kernel->main[i];
        data[i] = slot->kind == WPK_SLOT_INPUT    ? in[slot->index]
                  : slot->kind == WPK_SLOT_OUTPUT ? out[slot->index]
                                                  : NULL;
    }
}

wpk_err wpk_kernel_gpu_run(const struct wpk_kernel *kernel, struct wpk_context *context,
                           void *const *in, void *const *out)
{
    void *data[WPK_ABI_ARGUMENTS_MAX];

    order(kernel, in, out, data);
    return wpk_context_call_gpu(context, kernel->gpu, data);
}

/* The name of an argument, or of a constant as it is uploaded. */
static const char *name_of(const struct wpk_manifest *manifest, const struct wpk_gpu_damage *damage)
{
    int i = damage->index;

    if (damage->part == WPK_GPU_PART_ARGUMENT) {
        return manifest->main[i];
    }
    return i < manifest->constant_count ? manifest->constants[i].name
                                        : manifest->prepared[i - manifest->constant_count].name;
}

wpk_err wpk_kernel_gpu_check(const struct wpk_kernel *kernel, struct wpk_context *context,
                             void *const *in, void *const *out, struct wpk_diag *diag)
{
    void *data[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_gpu_damage damage;

    order(kernel, in, out, data);
    wpk_err err = wpk_context_check(context, data, &damage);
    if (err == WPK_ECORRUPT) {
        char what[WPK_NAME_MAX + 16];
        long long at = (long long)damage.at, size = (long long)damage.size;
        if (damage.part == WPK_GPU_PART_SCRATCH) {
            snprintf(what, sizeof(what), "scratch %d", damage.index);
        } else {
            snprintf(what, sizeof(what), "'%s'", name_of(&kernel->manifest, &damage));
        }
        if (at < 0) {
            wpk_diag_set(diag, "the kernel wrote %lld bytes before %s", -at, what);
        } else if (at >= size) {
            wpk_diag_set(diag, "the kernel wrote %lld bytes past the end of %s", at - size, what);
        } else {
            wpk_diag_set(diag, "the kernel wrote to %s, which it only reads, at byte %lld", what,
                         at);
        }
    } else if (err != WPK_OK) {
        wpk_diag_set(diag, "%s", wpk_context_trouble(context));
    }
    return err;
}

wpk_err wpk_kernel_launch(const struct wpk_kernel *kernel, struct wpk_context *context,
                          void *stream, const struct wpk_tensor_data *inputs, size_t input_count,
                          const struct wpk_tensor_data *outputs, size_t output_count)
{
    void *in[WPK_ABI_ARGUMENTS_MAX];
    void *out[WPK_ABI_ARGUMENTS_MAX];
    void *data[WPK_ABI_ARGUMENTS_MAX];
    uint64_t address[WPK_ABI_ARGUMENTS_MAX];

    if (kernel->gpu == NULL) {
        return WPK_EUNSUPPORTED;
    }
    wpk_err err = wpk_kernel_match(kernel, inputs, input_count, in, outputs, output_count, out);
    if (err != WPK_OK) {
        return err;
    }
    order(kernel, in, out, data);
    for (int i = 0; i < kernel->manifest.main_count; i++) {
        address[i] = (uint64_t)(uintptr_t)data[i];
        if (address[i] % WPK_GPU_ALIGNMENT != 0) {
            return WPK_EINVAL;
        }
    }
    return wpk_context_launch(context, kernel->gpu, stream, address);
}
