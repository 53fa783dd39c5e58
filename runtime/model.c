/* SPDX-License-Identifier: Apache-2.0 */
/* Opening loads the kernels, and prepares their constants for each step, all in one block; steps
 * with the same kernel and constants share them. */
#include "runtime/model.h"

#include "common/fs.h"
#include "runtime/host_step.h"
#include "runtime/kernel.h"
#include "runtime/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(WPK_MODEL_PLAN_SLACK >= WPK_MEMORY_SLACK, "constants are read where they lie");

static wpk_err map_file(const char *path, struct wpk_model *model, struct wpk_diag *diag)
{
    struct stat status;
    wpk_err err = WPK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        model->bytes = bytes == MAP_FAILED ? NULL : bytes;
        model->size = (size_t)status.st_size;
    } else if (fd >= 0) {
        wpk_diag_set(diag, "%s is empty", path);
        err = WPK_ECORRUPT;
    }
    if (err == WPK_OK && model->bytes == NULL) {
        wpk_diag_set(diag, "cannot read %s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        err = wpk_fs_err(errno);
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

const struct wpk_model_plan_argument *
wpk_model_find_argument(const struct wpk_model_plan_step *step, const char *name)
{
    for (int i = 0; i < step->argument_count; i++) {
        if (strcmp(step->arguments[i].name, name) == 0) {
            return &step->arguments[i];
        }
    }
    return NULL;
}

/* Check that the step gives every argument of the list a value of its type in a place that may be
 * used so. */
static wpk_err check_list(const struct wpk_model *model, const struct wpk_model_plan_step *step,
                          const struct wpk_argument_list *list, const char *kind,
                          struct wpk_diag *diag)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct wpk_model_plan_argument *argument =
            wpk_model_find_argument(step, list->argument[i].name);
        const struct wpk_model_plan_value *value =
            argument != NULL ? &model->plan.values[argument->value] : NULL;
        bool fits =
            value != NULL && value->type.dtype == list->argument[i].type.dtype &&
            wpk_layout_is_ordered(&list->argument[i].type.layout) &&
            wpk_tensor_type_bytes(&value->type) == wpk_tensor_type_bytes(&list->argument[i].type);
        bool is_written = kind[0] == 'o';
        if (fits && ((is_written && value->place != WPK_MODEL_PLAN_ARENA &&
                      value->place != WPK_MODEL_PLAN_OUTPUT) ||
                     (kind[0] == 'c' && value->place != WPK_MODEL_PLAN_DATA))) {
            fits = false;
        }
        if (!fits) {
            wpk_diag_set(diag, "node %s: the plan has no fitting value for %s %s of its kernel",
                         step->node, kind, list->argument[i].name);
            return WPK_ECORRUPT;
        }
    }
    return WPK_OK;
}

static wpk_err prepare_step(const struct wpk_model *model, const struct wpk_model_plan_step *step,
                            struct wpk_kernel *kernel, void *memory, struct wpk_diag *diag)
{
    struct wpk_tensor_data constants[WPK_ABI_ARGUMENTS_MAX];

    for (size_t i = 0; i < kernel->constants.count; i++) {
        const char *name = kernel->constants.argument[i].name;
        const struct wpk_model_plan_value *value =
            &model->plan.values[wpk_model_find_argument(step, name)->value];
        constants[i] = (struct wpk_tensor_data){.name = name,
                                                .data = (char *)model->plan.data +
                                                        value->offset, /* read only */
                                                .size = wpk_tensor_type_bytes(&value->type)};
    }
    return wpk_kernel_prepare_in(kernel, constants, kernel->constants.count, memory, diag);
}

/* True if both steps give the kernel the same constants. */
static bool same_constants(const struct wpk_kernel *kernel, const struct wpk_model_plan_step *a,
                           const struct wpk_model_plan_step *b)
{
    for (size_t i = 0; i < kernel->constants.count; i++) {
        const struct wpk_model_plan_argument *one =
            wpk_model_find_argument(a, kernel->constants.argument[i].name);
        const struct wpk_model_plan_argument *other =
            wpk_model_find_argument(b, kernel->constants.argument[i].name);
        if (one == NULL || other == NULL || one->value != other->value) {
            return false;
        }
    }
    return true;
}

/* Load the step's kernel, or take an earlier step's. */
static wpk_err load_step(struct wpk_model *model, int index, const struct wpk_open_options *options,
                         struct wpk_diag *diag)
{
    const struct wpk_model_plan_step *step = &model->plan.steps[index];
    const struct wpk_model_plan_kernel *at = &model->plan.kernels[step->kernel];
    int *latest = &model->latest[step->kernel];

    for (int s = *latest; s >= 0; s = model->previous[s]) {
        if (same_constants(model->kernels[s], step, &model->plan.steps[s])) {
            model->share[index] = s;
            model->kernels[index] = model->kernels[s];
            return WPK_OK;
        }
    }
    model->previous[index] = *latest;
    wpk_err err =
        *latest >= 0
            ? wpk_kernel_load_again(model->kernels[*latest], options, &model->kernels[index], diag)
            : wpk_kernel_load_bytes(model->plan.data + at->offset, (size_t)at->size, options,
                                    &model->kernels[index], diag);
    if (err == WPK_OK) {
        *latest = index;
    }
    return err;
}

static wpk_err open_step(struct wpk_model *model, int index, const struct wpk_open_options *options,
                         struct wpk_diag *diag)
{
    const struct wpk_model_plan_step *step = &model->plan.steps[index];

    if (step->kernel < 0) {
        return wpk_host_step_check(&model->plan, step, diag);
    }
    wpk_err err = load_step(model, index, options, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_kernel *kernel = model->kernels[index];
    err = check_list(model, step, &kernel->inputs, "input", diag);
    if (err == WPK_OK) {
        err = check_list(model, step, &kernel->outputs, "output", diag);
    }
    return err == WPK_OK ? check_list(model, step, &kernel->constants, "constant", diag) : err;
}

/* The step's own kernel; NULL if it has none. */
static struct wpk_kernel *own_kernel(const struct wpk_model *model, int index)
{
    return model->share[index] < 0 ? model->kernels[index] : NULL;
}

/* Most of the file is not read again; pages that are come back. */
static void forget_pages(const struct wpk_model *model)
{
    (void)madvise(model->bytes, model->size, MADV_DONTNEED);
}

static wpk_err prepare(struct wpk_model *model, struct wpk_diag *diag)
{
    const struct wpk_model_plan *plan = &model->plan;
    size_t size = 0;
    wpk_err err = WPK_OK;

    for (int i = 0; i < plan->step_count; i++) {
        const struct wpk_kernel *kernel = own_kernel(model, i);
        size += kernel != NULL ? wpk_memory_round(wpk_kernel_fixed_size(kernel)) : 0;
    }
    model->fixed = wpk_memory_take(size);
    if (model->fixed == NULL) {
        return WPK_ENOMEM;
    }
    size = 0;
    for (int i = 0; err == WPK_OK && i < plan->step_count; i++) {
        struct wpk_kernel *kernel = own_kernel(model, i);
        if (kernel != NULL) {
            err = prepare_step(model, &plan->steps[i], kernel, model->fixed + size, diag);
            size += wpk_memory_round(wpk_kernel_fixed_size(kernel));
            forget_pages(model);
        }
    }
    return err;
}

static wpk_err describe(struct wpk_model *model)
{
    const struct wpk_model_plan *plan = &model->plan;

    model->kernels = calloc((size_t)plan->step_count + 1, sizeof(struct wpk_kernel *));
    model->share = calloc((size_t)plan->step_count + 1, sizeof(int));
    model->previous = calloc((size_t)plan->step_count + 1, sizeof(int));
    model->latest = calloc((size_t)plan->kernel_count + 1, sizeof(int));
    model->inputs = calloc((size_t)plan->input_count + 1, sizeof(*model->inputs));
    model->outputs = calloc((size_t)plan->output_count + 1, sizeof(*model->outputs));
    if (model->kernels == NULL || model->share == NULL || model->previous == NULL ||
        model->latest == NULL || model->inputs == NULL || model->outputs == NULL) {
        return WPK_ENOMEM;
    }
    for (int k = 0; k < plan->kernel_count; k++) {
        model->latest[k] = -1;
    }
    for (int i = 0; i < plan->input_count; i++) {
        model->inputs[i].name = plan->inputs[i].name;
        model->inputs[i].type = plan->values[plan->inputs[i].value].type;
    }
    for (int i = 0; i < plan->output_count; i++) {
        model->outputs[i].name = plan->outputs[i].name;
        model->outputs[i].type = plan->values[plan->outputs[i].value].type;
    }
    return WPK_OK;
}

wpk_err wpk_model_open(const char *path, const struct wpk_open_options *options,
                       struct wpk_model **out, struct wpk_diag *diag)
{
    struct wpk_open_options here = options != NULL ? *options : (struct wpk_open_options){0};
    struct wpk_device device;
    struct wpk_model *model = calloc(1, sizeof(*model));
    wpk_err err = model != NULL ? map_file(path, model, diag) : WPK_ENOMEM;

    if (err == WPK_OK && here.device == NULL) { /* once, not for each kernel */
        err = wpk_device_probe(WPK_ISA_AVX512, &device);
        here.device = &device;
    }

    if (err == WPK_OK) {
        err = wpk_model_plan_decode(model->bytes, model->size, &model->plan, diag);
        forget_pages(model);
    }
    if (err == WPK_OK) {
        err = describe(model);
    }
    for (int i = 0; err == WPK_OK && i < model->plan.step_count; i++) {
        model->share[i] = -1;
        model->open_count = i + 1;
        err = open_step(model, i, &here, diag);
    }
    if (err == WPK_OK) {
        err = prepare(model, diag);
    }
    if (err != WPK_OK) {
        if (diag != NULL && diag->file[0] == '\0') {
            snprintf(diag->file, sizeof(diag->file), "%s", path);
        }
        wpk_model_close(model);
        return err;
    }
    *out = model;
    return WPK_OK;
}

void wpk_model_close(struct wpk_model *model)
{
    if (model == NULL) {
        return;
    }
    /* The last first: a kernel's code may be an earlier one's. */
    for (int i = model->open_count - 1; i >= 0; i--) {
        if (model->share[i] < 0) {
            wpk_kernel_close(model->kernels[i]);
        }
    }
    free(model->kernels);
    free(model->share);
    free(model->previous);
    free(model->latest);
    free(model->inputs);
    free(model->outputs);
    wpk_memory_give(model->fixed);
    wpk_model_plan_fini(&model->plan);
    if (model->bytes != NULL) {
        munmap(model->bytes, model->size);
    }
    free(model);
}

size_t wpk_model_input_count(const struct wpk_model *model)
{
    return (size_t)model->plan.input_count;
}

size_t wpk_model_output_count(const struct wpk_model *model)
{
    return (size_t)model->plan.output_count;
}

size_t wpk_model_step_count(const struct wpk_model *model)
{
    return (size_t)model->plan.step_count;
}

size_t wpk_model_threads(const struct wpk_model *model)
{
    return (size_t)model->plan.threads;
}

struct wpk_model_step wpk_model_step(const struct wpk_model *model, size_t index)
{
    WPK_ASSERT(index < wpk_model_step_count(model));
    const struct wpk_model_plan_step *step = &model->plan.steps[index];
    if (step->kernel < 0) {
        return (struct wpk_model_step){
            .node = step->node, .kernel = wpk_model_plan_host_name(step->host.op), .vendor = ""};
    }
    const struct wpk_model_plan_kernel *kernel = &model->plan.kernels[step->kernel];
    return (struct wpk_model_step){
        .node = step->node,
        .kernel = kernel->name,
        .flops = kernel->flops,
        .bytes = kernel->bytes,
        .tuned_ns = (uint64_t)kernel->time_ns,
        .vendor = kernel->vendor,
        .vendor_ns = (uint64_t)kernel->vendor_ns,
    };
}

const struct wpk_argument *wpk_model_input(const struct wpk_model *model, size_t index)
{
    WPK_ASSERT(index < wpk_model_input_count(model));
    return &model->inputs[index];
}

const struct wpk_argument *wpk_model_output(const struct wpk_model *model, size_t index)
{
    WPK_ASSERT(index < wpk_model_output_count(model));
    return &model->outputs[index];
}
