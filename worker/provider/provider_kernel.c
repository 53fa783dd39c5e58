/* SPDX-License-Identifier: Apache-2.0 */
/* Every provider runs kernels through libwpk alone, so that the kernels that are verified and timed
 * are those that users get. */
#include "common/machine.h"
#include "runtime/kernel/kernel.h"
#include "runtime/scratch.h"
#include "runtime/vendor/gpu_vendor.h"
#include "worker/provider/provider.h"
#include "worker/provider/provider_state.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The operator's tensor of that name; it must be declared as the kernel declares it. */
static wpk_err find_tensor(const struct wpk_provider *self, const struct wpk_argument *argument,
                           int *out, struct wpk_diag *diag)
{
    int id = wpk_program_find_tensor(self->program, argument->name);
    bool same = id >= 0;

    if (same) {
        const struct wpk_tensor *tensor = &self->program->tensors[id];
        same = tensor->dtype == argument->type.dtype && tensor->rank == argument->type.rank &&
               memcmp(tensor->extent, argument->type.extent,
                      sizeof(int64_t) * (size_t)tensor->rank) == 0;
    }
    if (!same) {
        return wpk_fail(diag, WPK_EMISMATCH, "the kernel's '%s' is not the operator's",
                        argument->name);
    }
    *out = id;
    return WPK_OK;
}

/* Memory for one input or output, zeroed: so its padding is.   shape  data->size is set */
static wpk_err take_place(struct wpk_provider *self, struct wpk_provider_place *place,
                          struct wpk_tensor_data *data)
{
    size_t element = wpk_dtype_size(place->type->dtype);
    place->physical = self->memory->take(self->memory->user, data->size, element);
    data->data = place->physical;
    return place->physical != NULL ? WPK_OK : WPK_ENOMEM;
}

/* In the order and with the borders that the operator declares. */
static bool is_as_declared(const struct wpk_tensor *tensor, const struct wpk_layout *layout)
{
    bool same = layout->block == 0;

    for (int d = 0; d < tensor->rank; d++) {
        same = same && layout->axis[d] == d && layout->pad_before[d] == tensor->pad_before[d] &&
               layout->pad_after[d] == tensor->pad_after[d];
    }
    return same;
}

static wpk_err open_place(struct wpk_provider *self, const struct wpk_argument *argument,
                          bool fixed, struct wpk_provider_place *place,
                          struct wpk_tensor_data *data, struct wpk_diag *diag)
{
    char layout[256];
    size_t length = strlen(self->detail);
    size_t size = wpk_tensor_type_bytes(&argument->type);
    wpk_err err = find_tensor(self, argument, &place->tensor, diag);

    if (err != WPK_OK) {
        return err;
    }
    if (fixed && !is_as_declared(&self->program->tensors[place->tensor], &argument->type.layout)) {
        return wpk_fail(diag, WPK_EMISMATCH,
                        "'%s' does not lie as the operator declares it, though layouts are fixed",
                        argument->name);
    }
    if (wpk_layout_encode(&argument->type.layout, layout, sizeof(layout)) != WPK_OK) {
        snprintf(layout, sizeof(layout), "?");
    }
    snprintf(self->detail + length, sizeof(self->detail) - length, "%s%s %s",
             length > 0 ? "; " : "", argument->name, layout);
    place->type = &argument->type;
    data->name = argument->name;
    data->size = size;
    return take_place(self, place, data);
}

static wpk_err open_places(struct wpk_provider *self, bool fixed, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    self->input_count = wpk_kernel_input_count(self->kernel);
    self->output_count = wpk_kernel_output_count(self->kernel);
    self->constant_count = wpk_kernel_constant_count(self->kernel);
    WPK_ASSERT(self->input_count <= WPK_PROVIDER_ARGUMENTS_MAX);
    WPK_ASSERT(self->output_count <= WPK_PROVIDER_ARGUMENTS_MAX);
    WPK_ASSERT(self->constant_count <= WPK_PROVIDER_ARGUMENTS_MAX);
    for (size_t i = 0; i < self->input_count && err == WPK_OK; i++) {
        struct wpk_provider_place *place = &self->inputs[i];
        err = open_place(self, wpk_kernel_input(self->kernel, i), fixed, place,
                         &self->input_data[i], diag);
        if (err == WPK_OK) {
            place->as_set = calloc(1, self->input_data[i].size);
            err = place->as_set != NULL ? WPK_OK : WPK_ENOMEM;
        }
    }
    for (size_t i = 0; i < self->output_count && err == WPK_OK; i++) {
        err = open_place(self, wpk_kernel_output(self->kernel, i), fixed, &self->outputs[i],
                         &self->output_data[i], diag);
    }
    for (size_t i = 0; i < self->constant_count && err == WPK_OK; i++) {
        err = find_tensor(self, wpk_kernel_constant(self->kernel, i), &self->constants[i].tensor,
                          diag);
    }
    return err;
}

void wpk_provider_close(struct wpk_provider *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < WPK_PROVIDER_ARGUMENTS_MAX; i++) {
        free(self->inputs[i].as_set);
        free(self->constants[i].dense);
        if (self->inputs[i].physical != NULL) {
            self->memory->give(self->memory->user, self->inputs[i].physical);
        }
        if (self->outputs[i].physical != NULL) {
            self->memory->give(self->memory->user, self->outputs[i].physical);
        }
    }
    for (size_t i = 0; i < self->copy_count; i++) {
        self->memory->give(self->memory->user, self->copies[i]);
    }
    wpk_buf_fini(&self->recipe);
    wpk_context_free(self->context);
    wpk_kernel_close(self->kernel);
    free(self);
}

static wpk_err open_kernel(const char *name, const struct wpk_provider_request *request,
                           struct wpk_kernel **out, struct wpk_diag *diag)
{
    if (strcmp(name, WPK_PROVIDER_ONEDNN_NAME) == 0) {
        return wpk_provider_onednn_kernel(request, out, diag);
    }
    if (wpk_gpu_vendor_is(name)) {
        return wpk_provider_gpu_kernel(name, request, out, diag);
    }
    if (strcmp(name, WPK_PROVIDER_KERNEL_NAME) != 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "there is no provider %s", name);
    }
    if (request->artifact_path == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "no shared object is given");
    }
    return wpk_kernel_open(request->artifact_path, NULL, out, diag);
}

wpk_err wpk_provider_open(const char *name, const struct wpk_provider_request *request,
                          struct wpk_provider **out, struct wpk_diag *diag)
{
    const struct wpk_context_options options = {.threads = request->threads};
    bool fixed = strcmp(request->layouts, "fixed") == 0;

    WPK_ASSERT(request->threads >= 1);
    struct wpk_provider *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->is_ours = strcmp(name, WPK_PROVIDER_KERNEL_NAME) == 0;
    self->program = request->program;
    self->memory = request->memory;
    self->excluded = request->excluded;
    wpk_err err = open_kernel(name, request, &self->kernel, diag);
    if (err == WPK_OK && self->kernel->gpu != NULL &&
        !(request->timed && self->kernel->manifest.needs.emulated)) {
        wpk_gpu_guard(self->kernel->gpu, 0);
    }
    if (err == WPK_OK && self->kernel->vendor != NULL) {
        /* The vendor's words, and the entry of a choice that would run it. */
        snprintf(self->detail, sizeof(self->detail), "%s", wpk_vendor_detail(self->kernel->vendor));
        err = wpk_kernel_entry(self->kernel, &self->recipe);
    }
    err = err == WPK_OK ? wpk_context_new(&options, &self->context) : err;
    err = err == WPK_OK ? open_places(self, fixed, diag) : err;
    if (err != WPK_OK) {
        wpk_provider_close(self);
        return err;
    }
    *out = self;
    return WPK_OK;
}

bool wpk_provider_is_ours(const struct wpk_provider *self)
{
    return self->is_ours;
}

bool wpk_provider_has_clock(const struct wpk_provider *self)
{
    return self->kernel->gpu != NULL;
}

wpk_err wpk_provider_set(struct wpk_provider *self, int tensor, const void *dense,
                         struct wpk_diag *diag)
{
    for (size_t i = 0; i < self->input_count; i++) {
        struct wpk_provider_place *place = &self->inputs[i];
        if (place->tensor == tensor) {
            wpk_tensor_pack(place->type, dense, place->physical);
            memcpy(place->as_set, place->physical, self->input_data[i].size);
            return WPK_OK;
        }
    }
    for (size_t i = 0; i < self->constant_count; i++) {
        struct wpk_provider_constant *constant = &self->constants[i];
        const struct wpk_tensor *declared = &self->program->tensors[tensor];
        size_t size = (size_t)wpk_tensor_elements(declared) * wpk_dtype_size(declared->dtype);
        if (constant->tensor == tensor) {
            free(constant->dense);
            constant->dense = malloc(size);
            if (constant->dense == NULL) {
                return WPK_ENOMEM;
            }
            memcpy(constant->dense, dense, size);
            return WPK_OK;
        }
    }
    return wpk_fail(diag, WPK_EINVAL, "'%s' is no argument of the kernel",
                    self->program->tensors[tensor].name);
}

static wpk_err move_place(struct wpk_provider *self, struct wpk_provider_place *place,
                          struct wpk_tensor_data *data)
{
    self->memory->give(self->memory->user, place->physical);
    return take_place(self, place, data);
}

/* libwpk has all prepared constants in one block, whose end alone would be seen to be left. */
static wpk_err copy_constants(struct wpk_provider *self)
{
    struct wpk_span constants[WPK_ABI_ARGUMENTS_MAX];
    void *at[WPK_ABI_ARGUMENTS_MAX];
    size_t count = wpk_kernel_constants(self->kernel, constants);

    for (size_t i = 0; i < count; i++) {
        size_t size = wpk_memory_round(constants[i].size) + WPK_MEMORY_SLACK;
        void *memory = self->memory->take(self->memory->user, size + WPK_MEMORY_ALIGNMENT, 1);
        if (memory == NULL) {
            return WPK_ENOMEM;
        }
        self->copies[self->copy_count++] = memory;
        /* The last place in its memory that is aligned as libwpk aligns them: with a guard behind
         * that, a guard behind the slack. */
        uintptr_t end = (uintptr_t)memory + WPK_MEMORY_ALIGNMENT;
        at[i] = (void *)(end - end % WPK_MEMORY_ALIGNMENT);
        memcpy(at[i], constants[i].data, constants[i].size);
    }
    wpk_kernel_move_constants(self->kernel, at);
    return WPK_OK;
}

wpk_err wpk_provider_move(struct wpk_provider *self)
{
    WPK_ASSERT(self->is_ours);
    bool copied = self->copy_count > 0;
    wpk_err err = self->kernel->gpu != NULL ? wpk_provider_gpu_move(self)
                  : !copied                 ? copy_constants(self)
                                            : WPK_OK;

    for (size_t i = 0; i < self->input_count && err == WPK_OK; i++) {
        err = move_place(self, &self->inputs[i], &self->input_data[i]);
    }
    for (size_t i = 0; i < self->output_count && err == WPK_OK; i++) {
        err = move_place(self, &self->outputs[i], &self->output_data[i]);
    }
    return err;
}

/* Packing writes elements and zeroes padding: an array of the byte is packed. */
void wpk_provider_poison(struct wpk_provider *self, unsigned char byte)
{
    for (size_t i = 0; i < self->output_count; i++) {
        const struct wpk_provider_place *place = &self->outputs[i];
        size_t size =
            (size_t)wpk_tensor_type_elements(place->type) * wpk_dtype_size(place->type->dtype);
        void *dense = malloc(size);
        WPK_ASSERT(dense != NULL);
        memset(dense, byte, size);
        wpk_tensor_pack(place->type, dense, place->physical);
        free(dense);
    }
}

wpk_err wpk_provider_prepare(struct wpk_provider *self, struct wpk_diag *diag)
{
    struct wpk_tensor_data data[WPK_PROVIDER_ARGUMENTS_MAX];

    for (size_t i = 0; i < self->constant_count; i++) {
        const struct wpk_tensor *declared = &self->program->tensors[self->constants[i].tensor];
        data[i] = (struct wpk_tensor_data){.name = wpk_kernel_constant(self->kernel, i)->name,
                                           .data = self->constants[i].dense,
                                           .size = (size_t)wpk_tensor_elements(declared) *
                                                   wpk_dtype_size(declared->dtype)};
    }
    wpk_err err = wpk_kernel_prepare(self->kernel, data, self->constant_count, diag);
    for (size_t i = 0; i < self->constant_count && err == WPK_OK; i++) {
        free(self->constants[i].dense);
        self->constants[i].dense = NULL;
    }
    if (err == WPK_OK && self->kernel->gpu != NULL) {
        err = wpk_provider_gpu_prepare(self, diag);
    }
    return err;
}

bool wpk_provider_throttled(struct wpk_provider *self)
{
    return wpk_nvml_is_throttled(self->kernel->manifest.needs.emulated);
}

const char *wpk_provider_trouble(const struct wpk_provider *self)
{
    return wpk_context_trouble(self->context);
}

/* Streaming evicts what cannot be named here: scratch, code, and the page tables of the constants,
 * whose walks are up to 14 % of a call that reads 38 MB of them. It may leave some lines of the
 * constants behind, so they are flushed as well. */
wpk_err wpk_provider_cool(struct wpk_provider *self, enum wpk_conditions conditions)
{
    bool cold = conditions == WPK_CONDITIONS_COLD;
    struct wpk_span constants[WPK_ABI_ARGUMENTS_MAX];
    size_t count = wpk_kernel_constants(self->kernel, constants);

    WPK_ASSERT(conditions != WPK_CONDITIONS_WARM);
    if (self->kernel->gpu != NULL) {
        wpk_err ran = self->has_run ? WPK_OK : wpk_provider_run(self);
        return ran == WPK_OK ? wpk_context_rotate(self->context, !cold) : ran;
    }
    wpk_err err = wpk_caches_stream();
    for (size_t i = 0; i < count; i++) {
        (void)wpk_caches_flush(constants[i].data, constants[i].size);
    }
    for (size_t i = 0; i < self->input_count + self->output_count; i++) {
        const struct wpk_tensor_data *data = i < self->input_count
                                                 ? &self->input_data[i]
                                                 : &self->output_data[i - self->input_count];
        if (cold) {
            (void)wpk_caches_flush(data->data, data->size);
        } else {
            wpk_caches_read(data->data, data->size);
        }
    }
    return err;
}

uint64_t wpk_provider_constants_bytes(const struct wpk_provider *self)
{
    struct wpk_span constants[WPK_ABI_ARGUMENTS_MAX];
    size_t count = wpk_kernel_constants(self->kernel, constants);
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += constants[i].size;
    }
    return bytes;
}

wpk_err wpk_provider_check(struct wpk_provider *self, struct wpk_diag *diag)
{
    wpk_err err = self->kernel->gpu != NULL ? wpk_provider_gpu_check(self, diag) : WPK_OK;

    if (err != WPK_OK) {
        return err;
    }
    for (size_t i = 0; i < self->input_count; i++) {
        const struct wpk_provider_place *place = &self->inputs[i];
        if (memcmp(place->physical, place->as_set, self->input_data[i].size) != 0) {
            return wpk_fail(diag, WPK_ECORRUPT, "the kernel wrote to its input '%s'",
                            self->program->tensors[place->tensor].name);
        }
    }
    for (size_t i = 0; i < self->output_count; i++) {
        const struct wpk_provider_place *place = &self->outputs[i];
        if (!wpk_tensor_padding_is_zero(place->type, place->physical)) {
            return wpk_fail(diag, WPK_ECORRUPT,
                            "the kernel wrote to the padding of its output '%s'",
                            self->program->tensors[place->tensor].name);
        }
    }
    return WPK_OK;
}

wpk_err wpk_provider_get(struct wpk_provider *self, int tensor, void *dense)
{
    for (size_t i = 0; i < self->output_count; i++) {
        if (self->outputs[i].tensor == tensor) {
            wpk_tensor_unpack(self->outputs[i].type, self->outputs[i].physical, dense);
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

const char *wpk_provider_detail(const struct wpk_provider *self)
{
    return self->detail;
}

struct wpk_launch_use wpk_provider_launch(const struct wpk_provider *self)
{
    struct wpk_launch_use use = {0};

    if (self->kernel->gpu != NULL) {
        wpk_gpu_launch_use(self->kernel->gpu, &use.registers, &use.local_bytes, &use.shared_bytes);
    }
    return use;
}

int wpk_provider_algorithm(const struct wpk_provider *self)
{
    const struct wpk_gpu_primitive *primitive =
        self->kernel->gpu != NULL ? wpk_gpu_primitive(self->kernel->gpu) : NULL;

    return primitive != NULL ? primitive->recipe.algorithm : -1;
}

const char *wpk_provider_recipe(const struct wpk_provider *self)
{
    return self->recipe.size > 0 ? wpk_buf_text(&self->recipe) : NULL;
}
