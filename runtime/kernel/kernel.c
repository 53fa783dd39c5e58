/* SPDX-License-Identifier: Apache-2.0 */
/* Loads kernels. Code of the object runs only after its seal, hash and signature were checked. */
#include "runtime/kernel/kernel.h"

#include "common/crypto.h"
#include "runtime/kernel/context.h"
#include "runtime/kernel/trust.h"
#include "runtime/scratch.h"
#include "schema/launch_plan.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Check what the kernel needs; *device becomes the GPU of a GPU's kernel. */
static wpk_err check_device(struct wpk_kernel *kernel, const struct wpk_device **device,
                            struct wpk_diag *diag)
{
    const struct wpk_manifest_needs *needs = &kernel->manifest.needs;

    if (!needs->cuda && *device == NULL) {
        return WPK_OK;
    }
    if (!needs->cuda) {
        char missing[WPK_CPU_FLAGS_TEXT_MAX];
        if (wpk_cpu_flags_fit(needs->flags, (*device)->cpu.flags)) {
            return WPK_OK;
        }
        wpk_cpu_flags_list(needs->flags & ~(*device)->cpu.flags, missing);
        return wpk_fail(diag, WPK_EMISMATCH, "the kernel needs %s, which the machine lacks",
                        missing);
    }
    wpk_err err = wpk_kernel_gpu_open(kernel, diag);
    if (err != WPK_OK) {
        return err;
    }
    *device = wpk_gpu_device(kernel->gpu);
    if (needs->capability > (*device)->cuda.capability) {
        return wpk_fail(diag, WPK_EMISMATCH, "the kernel needs sm_%d, the GPU is sm_%d",
                        needs->capability, (*device)->cuda.capability);
    }
    return WPK_OK;
}

static wpk_err open_object(struct wpk_kernel *kernel, const char *path, const struct wpk_buf *bytes,
                           bool freeze, struct wpk_diag *diag)
{
    const struct wpk_abi_descriptor *descriptor = NULL;

    if (freeze) {
        char frozen[WPK_TRUST_PATH_MAX];
        wpk_err err = wpk_trust_freeze(bytes, &kernel->frozen_fd, frozen, diag);
        if (err != WPK_OK) {
            return err;
        }
        kernel->frozen = true;
        kernel->object = dlopen(frozen, RTLD_NOW | RTLD_LOCAL);
    } else {
        /* A bare name would be looked for in the library path. */
        char *absolute = realpath(path, NULL);
        void *object = absolute == NULL ? NULL : dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
        free(absolute);
        kernel->object = object;
    }
    if (kernel->object == NULL) {
        return wpk_fail(diag, WPK_ECORRUPT, "cannot load the kernel: %s", dlerror());
    }
    descriptor = dlsym(kernel->object, WPK_ABI_SYMBOL);
    if (descriptor == NULL) {
        return wpk_fail(diag, WPK_ECORRUPT, "%s is not a kernel: no %s in it", path,
                        WPK_ABI_SYMBOL);
    }
    if (descriptor->abi_version != WPK_ABI_VERSION) {
        return wpk_fail(diag, WPK_EMISMATCH, "the kernel has ABI %u, this is ABI %d",
                        descriptor->abi_version, WPK_ABI_VERSION);
    }
    size_t size = (size_t)(descriptor->manifest_end - descriptor->manifest);
    if (size > WPK_MANIFEST_SIZE_MAX || (descriptor->run == NULL) == (descriptor->image == NULL)) {
        return wpk_fail(diag, WPK_ECORRUPT, "the kernel's descriptor is damaged");
    }
    kernel->descriptor = descriptor;
    return WPK_OK;
}

static wpk_err read_manifest(struct wpk_kernel *kernel, struct wpk_diag *diag)
{
    const struct wpk_abi_descriptor *descriptor = kernel->descriptor;
    size_t size = (size_t)(descriptor->manifest_end - descriptor->manifest);

    kernel->manifest_text = malloc(size + 1);
    if (kernel->manifest_text == NULL) {
        return WPK_ENOMEM;
    }
    memcpy(kernel->manifest_text, descriptor->manifest, size);
    kernel->manifest_text[size] = '\0';
    wpk_err err = wpk_manifest_decode(kernel->manifest_text, size, &kernel->manifest, diag);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM || err == WPK_EMISMATCH ? err : WPK_ECORRUPT;
    }
    if (kernel->manifest.needs.cuda != (descriptor->image != NULL)) {
        return wpk_fail(diag, WPK_ECORRUPT, "manifest and code disagree on the kind of device");
    }
    bool prepares =
        descriptor->prepare != NULL || descriptor->prepare_image != descriptor->prepare_image_end;
    if (prepares != (kernel->manifest.prepare_count > 0)) {
        return wpk_fail(diag, WPK_ECORRUPT, "manifest and code disagree on what is prepared");
    }
    return WPK_OK;
}

static void list_fill(struct wpk_argument_list *list, const struct wpk_named_tensor *tensors,
                      int count)
{
    for (int i = 0; i < count; i++) {
        wpk_argument_list_add(list, &tensors[i], i);
    }
}

static wpk_err fill_slot(struct wpk_kernel *kernel, const char *name, struct wpk_slot *slot)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    const struct wpk_named_tensor *tensor = wpk_manifest_find(manifest, name);

    WPK_ASSERT(tensor != NULL);
    slot->kind = WPK_SLOT_FIXED;
    if (tensor >= manifest->inputs && tensor < manifest->inputs + manifest->input_count) {
        slot->kind = WPK_SLOT_INPUT;
        slot->index = (int)(tensor - manifest->inputs);
    } else if (tensor >= manifest->outputs && tensor < manifest->outputs + manifest->output_count) {
        slot->kind = WPK_SLOT_OUTPUT;
        slot->index = (int)(tensor - manifest->outputs);
    }
    wpk_err err = wpk_buffer_describe(&tensor->type, slot->dim, &slot->buffer);
    if (err == WPK_OK && slot->kind == WPK_SLOT_OUTPUT && kernel->gpu == NULL &&
        tensor->type.layout.block == 0) {
        /* A kernel gets of an output what is no border, with the strides of all. */
        const struct wpk_layout *layout = &tensor->type.layout;
        size_t element = wpk_dtype_size(tensor->type.dtype);
        for (int i = 0; i < slot->buffer.dimensions; i++) {
            struct wpk_abi_dim *dim = &slot->dim[i];
            int axis = layout->axis[slot->buffer.dimensions - 1 - i];
            slot->offset += (size_t)layout->pad_before[axis] * (size_t)dim->stride * element;
            dim->min = 0;
            dim->extent -= (int32_t)(layout->pad_before[axis] + layout->pad_after[axis]);
        }
    }
    return err;
}

wpk_err wpk_kernel_lay_out(struct wpk_kernel *kernel, struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;

    list_fill(&kernel->inputs, manifest->inputs, manifest->input_count);
    list_fill(&kernel->outputs, manifest->outputs, manifest->output_count);
    list_fill(&kernel->constants, manifest->constants, manifest->constant_count);
    for (int i = 0; i < manifest->main_count; i++) {
        wpk_err err = fill_slot(kernel, manifest->main[i], &kernel->main[i]);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "tensor '%s' is too large", manifest->main[i]);
            return err;
        }
    }
    kernel->prepared = manifest->constant_count == 0 && manifest->prepared_count == 0;
    if (kernel->gpu != NULL) {
        wpk_kernel_gpu_settle(kernel);
    }
    return WPK_OK;
}

/* Check that the signed manifest is of this object: it names the file's hash, and the file's own
 * manifest says what it computes. A kernel that was measured on another device may run here, at an
 * unknown speed. */
static wpk_err check_vouched(const struct wpk_kernel *kernel,
                             const struct wpk_kernel_manifest *vouched,
                             const struct wpk_device *device,
                             const struct wpk_open_options *options, struct wpk_diag *diag)
{
    char here[sizeof(vouched->device)];

    if (strcmp(vouched->fingerprint, kernel->manifest.fingerprint) != 0 ||
        vouched->threads != kernel->manifest.threads) {
        return wpk_fail(diag, WPK_ECORRUPT, "the manifest is of another operator than the object");
    }
    wpk_device_class(device, here, sizeof(here));
    if (options->public_key != NULL && !options->any_model && strcmp(vouched->device, here) != 0) {
        return wpk_fail(diag, WPK_EMISMATCH, "the kernel was measured on %s, this is %s",
                        vouched->device, here);
    }
    return WPK_OK;
}

static wpk_err check_origin(const char *path, const struct wpk_buf *bytes,
                            const struct wpk_kernel_origin *origin, struct wpk_diag *diag)
{
    char sha256[WPK_SHA256_HEX_SIZE];

    wpk_crypto_sha256_hex(bytes->data, bytes->size, sha256);
    if (strcmp(sha256, origin->sha256) != 0) {
        return wpk_fail(diag, WPK_ECORRUPT, "%s is not the object that the choice names", path);
    }
    return WPK_OK;
}

/* `bytes` is the file, its seal checked. A choice vouches for it by its hash; the manifest beside
 * it then says no more than which device it was measured on. */
static wpk_err open_checked(struct wpk_kernel *kernel, const char *path,
                            const struct wpk_buf *bytes, const struct wpk_kernel_request *request,
                            struct wpk_diag *diag)
{
    const struct wpk_open_options *options = request->options;
    const struct wpk_kernel_origin *origin = request->origin;
    const struct wpk_device *device = request->device;
    struct wpk_kernel_manifest vouched;
    bool found = false;

    wpk_err err = origin != NULL ? check_origin(path, bytes, origin, diag) : WPK_OK;
    if (err == WPK_OK && (origin == NULL || !origin->plain)) {
        err = wpk_trust_check(path, origin != NULL ? NULL : options->public_key, bytes, &vouched,
                              &found, diag);
    }
    err = err == WPK_OK ? open_object(kernel, path, bytes, options->public_key != NULL, diag) : err;
    err = err == WPK_OK ? read_manifest(kernel, diag) : err;
    err = err == WPK_OK ? check_device(kernel, &device, diag) : err;
    if (err == WPK_OK && found) {
        err = check_vouched(kernel, &vouched, device, options, diag);
    }
    if (err == WPK_OK && origin != NULL &&
        strcmp(origin->fingerprint, kernel->manifest.fingerprint) != 0) {
        err = wpk_fail(diag, WPK_EMISMATCH, "%s computes another operator than the choice is for",
                       path);
    }
    return err == WPK_OK ? wpk_kernel_lay_out(kernel, diag) : err;
}

wpk_err wpk_kernel_device(const struct wpk_open_options *options, struct wpk_device *out,
                          struct wpk_diag *diag)
{
    const char *text = options != NULL ? options->device_class : NULL;
    struct wpk_device device;

    if (text == NULL) {
        return wpk_device_probe(WPK_CPU_FLAGS_ALL, out);
    }
    if (wpk_device_of_class(text, &device) != WPK_OK || strcmp(device.kind, "cpu") != 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "'%.100s' is no CPU's device class, such as cpu/AMD EPYC 9B45/avx2", text);
    }
    *out = device;
    return WPK_OK;
}

/* Give the kernel that was opened to the caller, or close it.
 *   owns    takes the kernel, which may be NULL after a failure */
static wpk_err finish(struct wpk_kernel *kernel, wpk_err err, struct wpk_kernel **out)
{
    if (err != WPK_OK) {
        wpk_kernel_close(kernel);
        return err;
    }
    kernel->taken = (struct wpk_choice_taken){.index = -1, .kind = "", .reason = ""};
    if (kernel->descriptor->bind != NULL) {
        kernel->descriptor->bind(wpk_context_host());
    }
    *out = kernel;
    return WPK_OK;
}

wpk_err wpk_kernel_load(const char *path, const struct wpk_kernel_request *request,
                        struct wpk_kernel **out, struct wpk_diag *diag)
{
    struct wpk_buf bytes;

    wpk_err err = wpk_seal_read(path, &bytes, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));
    err = kernel == NULL ? WPK_ENOMEM : open_checked(kernel, path, &bytes, request, diag);
    wpk_buf_fini(&bytes);
    return finish(kernel, err, out);
}

/* `bytes`: the object; NULL if kernel->descriptor is known. */
static wpk_err open_bytes(struct wpk_kernel *kernel, const struct wpk_buf *bytes,
                          const struct wpk_device *device, struct wpk_diag *diag)
{
    wpk_err err = bytes != NULL ? open_object(kernel, "the object", bytes, true, diag) : WPK_OK;
    err = err == WPK_OK ? read_manifest(kernel, diag) : err;
    err = err == WPK_OK ? check_device(kernel, &device, diag) : err;
    return err == WPK_OK ? wpk_kernel_lay_out(kernel, diag) : err;
}

wpk_err wpk_kernel_load_bytes(const void *bytes, size_t size, const struct wpk_device *device,
                              struct wpk_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_buf object = {.data = (char *)bytes, .size = size}; /* read only */
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));

    wpk_err err = kernel == NULL ? WPK_ENOMEM : open_bytes(kernel, &object, device, diag);
    return finish(kernel, err, out);
}

wpk_err wpk_kernel_load_again(const struct wpk_kernel *first, const struct wpk_device *device,
                              struct wpk_kernel **out, struct wpk_diag *diag)
{
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel == NULL) {
        return WPK_ENOMEM;
    }
    kernel->descriptor = first->descriptor;
    return finish(kernel, open_bytes(kernel, NULL, device, diag), out);
}

static wpk_err append_ptx(const struct wpk_abi_descriptor *descriptor, struct wpk_buf *out,
                          struct wpk_diag *diag)
{
    struct wpk_launch_code code;

    if (descriptor->image == NULL) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "the kernel is for no GPU: it has no PTX");
    }
    struct wpk_launch_plan *plan = calloc(1, sizeof(*plan)); /* too large for a stack */
    wpk_err err = plan == NULL
                      ? WPK_ENOMEM
                      : wpk_launch_plan_decode(descriptor->image,
                                               (size_t)(descriptor->image_end - descriptor->image),
                                               plan, &code, diag);
    free(plan);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM || err == WPK_EMISMATCH ? err : WPK_ECORRUPT;
    }
    wpk_buf_append(out, code.ptx, code.ptx_size);
    return wpk_buf_status(out);
}

wpk_err wpk_kernel_ptx(const struct wpk_buf *bytes, struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_kernel *kernel = calloc(1, sizeof(*kernel));

    wpk_err err =
        kernel == NULL ? WPK_ENOMEM : open_object(kernel, "the object", bytes, true, diag);
    err = err == WPK_OK ? append_ptx(kernel->descriptor, out, diag) : err;
    wpk_kernel_close(kernel);
    return err;
}

wpk_err wpk_kernel_open(const char *path, const struct wpk_open_options *options,
                        struct wpk_kernel **out, struct wpk_diag *diag)
{
    static const struct wpk_open_options none = {0};
    struct wpk_device device;
    const struct wpk_kernel_request request = {.options = options == NULL ? &none : options,
                                               .device = &device};

    wpk_err err = wpk_kernel_device(options, &device, diag);
    return err == WPK_OK ? wpk_kernel_load(path, &request, out, diag) : err;
}

void wpk_kernel_close(struct wpk_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    wpk_vendor_release(kernel->vendor);
    wpk_gpu_release(kernel->gpu);
    free(kernel->reason);
    wpk_memory_give(kernel->fixed);
    wpk_manifest_fini(&kernel->manifest);
    free(kernel->manifest_text);
    if (kernel->object != NULL) {
        dlclose(kernel->object);
    }
    if (kernel->frozen) {
        (void)close(kernel->frozen_fd);
    }
    free(kernel);
}

size_t wpk_kernel_input_count(const struct wpk_kernel *kernel)
{
    return kernel->inputs.count;
}

size_t wpk_kernel_output_count(const struct wpk_kernel *kernel)
{
    return kernel->outputs.count;
}

size_t wpk_kernel_constant_count(const struct wpk_kernel *kernel)
{
    return kernel->constants.count;
}

static const struct wpk_argument *list_get(const struct wpk_argument_list *list, size_t index)
{
    WPK_ASSERT(index < list->count);
    return &list->argument[index];
}

const struct wpk_argument *wpk_kernel_input(const struct wpk_kernel *kernel, size_t index)
{
    return list_get(&kernel->inputs, index);
}

const struct wpk_argument *wpk_kernel_output(const struct wpk_kernel *kernel, size_t index)
{
    return list_get(&kernel->outputs, index);
}

const struct wpk_argument *wpk_kernel_constant(const struct wpk_kernel *kernel, size_t index)
{
    return list_get(&kernel->constants, index);
}

struct wpk_choice_taken wpk_kernel_choice(const struct wpk_kernel *kernel)
{
    return kernel->taken;
}

const char *wpk_kernel_in_place(const struct wpk_kernel *kernel)
{
    for (size_t i = 0; i < kernel->inputs.count; i++) {
        int source = kernel->inputs.source[i];
        if (kernel->vendor == NULL && kernel->manifest.in_place[0] != '\0' &&
            strcmp(kernel->manifest.inputs[source].name, kernel->manifest.in_place) == 0) {
            return kernel->inputs.name[i];
        }
    }
    return NULL;
}

const char *wpk_kernel_manifest(const struct wpk_kernel *kernel)
{
    return kernel->manifest_text;
}
