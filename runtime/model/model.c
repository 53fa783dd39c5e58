/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a set of shapes loads its kernels, and prepares their constants for each step, all in one
 * block; steps with the same kernel and constants share them. */
#include "runtime/model/model.h"

#include "common/fs.h"
#include "runtime/kernel/kernel.h"
#include "runtime/scratch.h"

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
        err = wpk_fail(diag, WPK_ECORRUPT, "%s is empty", path);
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
    int found =
        WPK_FIND(struct wpk_model_plan_argument, name, step->arguments, step->argument_count, name);
    return found >= 0 ? &step->arguments[found] : NULL;
}

/* Check that the step gives every argument of the list a value of its type in a place that may be
 * used so. */
static wpk_err check_list(const struct wpk_model_shape *shape,
                          const struct wpk_model_plan_step *step,
                          const struct wpk_argument_list *list, const char *kind,
                          struct wpk_diag *diag)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct wpk_model_plan_argument *argument =
            wpk_model_find_argument(step, list->argument[i].name);
        const struct wpk_model_plan_value *value =
            argument != NULL ? &shape->plan->values[argument->value] : NULL;
        bool fits =
            value != NULL && value->type.dtype == list->argument[i].type.dtype &&
            wpk_layout_is_ordered(&list->argument[i].type.layout) &&
            wpk_tensor_type_bytes(&value->type) == wpk_tensor_type_bytes(&list->argument[i].type);
        bool is_written = kind[0] == 'o';
        if (fits &&
            ((is_written && value->place != WPK_MODEL_PLAN_ARENA &&
              value->place != WPK_MODEL_PLAN_OUTPUT) ||
             (kind[0] == 'c' && (value->place != WPK_MODEL_PLAN_DATA || value->stride != 0)))) {
            fits = false;
        }
        if (!fits) {
            return wpk_fail(diag, WPK_ECORRUPT,
                            "node %s: the plan has no fitting value for %s %s of its kernel",
                            step->node, kind, list->argument[i].name);
        }
    }
    return WPK_OK;
}

/* The bytes [begin, end) where a value lies: in iteration 0, or in any of `times`. */
struct span {
    int64_t begin;
    int64_t end;
};

static struct span span_of(const struct wpk_model_plan_value *value, int64_t times)
{
    int64_t way = value->stride * (times - 1);

    return (struct span){.begin = value->offset + (way < 0 ? way : 0),
                         .end = value->offset + (way > 0 ? way : 0) +
                                (int64_t)wpk_tensor_type_bytes(&value->type)};
}

/* True if both values are in the same memory in some iteration. */
static bool overlap(const struct wpk_model_plan_value *a, const struct wpk_model_plan_value *b,
                    int64_t times)
{
    bool together = a->stride == b->stride;
    struct span one = span_of(a, together ? 1 : times);
    struct span other = span_of(b, together ? 1 : times);

    return a->place == WPK_MODEL_PLAN_ARENA && b->place == WPK_MODEL_PLAN_ARENA &&
           one.begin < other.end && other.begin < one.end;
}

/* True if an output of the step lies in the memory of an input that it may not replace. */
static bool overwrites_input(const struct wpk_model_shape *shape,
                             const struct wpk_model_plan_step *step,
                             const struct wpk_kernel *kernel, const struct wpk_argument *output)
{
    const struct wpk_model_plan_value *out =
        &shape->plan->values[wpk_model_find_argument(step, output->name)->value];
    const struct wpk_model_plan_loop *loop =
        wpk_model_plan_find_loop(shape->plan, (int)(step - shape->plan->steps));
    const char *in_place = wpk_kernel_in_place(kernel);

    for (size_t i = 0; i < kernel->inputs.count; i++) {
        const char *name = kernel->inputs.argument[i].name;
        const struct wpk_model_plan_value *in =
            &shape->plan->values[wpk_model_find_argument(step, name)->value];
        bool may = in_place != NULL && strcmp(in_place, name) == 0 && in->offset == out->offset &&
                   in->stride == out->stride;
        if (!out->is_part && !in->is_part && overlap(out, in, loop != NULL ? loop->times : 1) &&
            !may) {
            return true;
        }
    }
    return false;
}

static wpk_err check_overlap(const struct wpk_model_shape *shape,
                             const struct wpk_model_plan_step *step,
                             const struct wpk_kernel *kernel, struct wpk_diag *diag)
{
    for (size_t i = 0; i < kernel->outputs.count; i++) {
        const struct wpk_argument *output = &kernel->outputs.argument[i];
        if (overwrites_input(shape, step, kernel, output)) {
            return wpk_fail(diag, WPK_ECORRUPT, "node %s: the plan has output %s where an input is",
                            step->node, output->name);
        }
    }
    return WPK_OK;
}

static wpk_err prepare_step(const struct wpk_model_shape *shape,
                            const struct wpk_model_plan_step *step, struct wpk_kernel *kernel,
                            void *memory, struct wpk_diag *diag)
{
    struct wpk_tensor_data constants[WPK_ABI_ARGUMENTS_MAX];

    for (size_t i = 0; i < kernel->constants.count; i++) {
        const char *name = kernel->constants.argument[i].name;
        const struct wpk_model_plan_value *value =
            &shape->plan->values[wpk_model_find_argument(step, name)->value];
        constants[i] = (struct wpk_tensor_data){.name = name,
                                                .data = (char *)shape->file->data +
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
static wpk_err load_step(struct wpk_model_shape *shape, int index, const struct wpk_device *device,
                         struct wpk_diag *diag)
{
    const struct wpk_model_plan_step *step = &shape->plan->steps[index];
    const struct wpk_model_plan_kernel *at = &shape->file->kernels[step->kernel];
    const struct wpk_kernel *first = NULL;

    for (int s = index - 1; s >= 0; s--) {
        if (shape->plan->steps[s].kernel != step->kernel || shape->share[s] >= 0) {
            continue;
        }
        if (same_constants(shape->kernels[s], step, &shape->plan->steps[s])) {
            shape->share[index] = s;
            shape->kernels[index] = shape->kernels[s];
            return WPK_OK;
        }
        first = shape->kernels[s];
    }
    return first != NULL ? wpk_kernel_load_again(first, device, &shape->kernels[index], diag)
                         : wpk_kernel_load_bytes(shape->file->data + at->offset, (size_t)at->size,
                                                 device, &shape->kernels[index], diag);
}

static wpk_err open_step(struct wpk_model_shape *shape, int index, const struct wpk_device *device,
                         struct wpk_diag *diag)
{
    const struct wpk_model_plan_step *step = &shape->plan->steps[index];

    if (step->kernel < 0) {
        return wpk_host_step_check(shape->plan, step, diag);
    }
    wpk_err err = load_step(shape, index, device, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_kernel *kernel = shape->kernels[index];
    if (kernel->gpu != NULL || kernel->vendor != NULL) {
        return wpk_fail(diag, WPK_ECORRUPT, "node %s: its kernel is none that a CPU runs",
                        step->node);
    }
    err = check_list(shape, step, &kernel->inputs, "input", diag);
    err = err == WPK_OK ? check_list(shape, step, &kernel->outputs, "output", diag) : err;
    err = err == WPK_OK ? check_list(shape, step, &kernel->constants, "constant", diag) : err;
    return err == WPK_OK ? check_overlap(shape, step, kernel, diag) : err;
}

/* The step's own kernel; NULL if it has none. */
static struct wpk_kernel *own_kernel(const struct wpk_model_shape *shape, int index)
{
    return shape->share[index] < 0 ? shape->kernels[index] : NULL;
}

/* Most of the file is not read again; pages that are come back. */
static void forget_pages(const struct wpk_model *model)
{
    (void)madvise(model->bytes, model->size, MADV_DONTNEED);
}

/* Let the kernel read what another one has prepared already. */
static void share_constants(struct wpk_constants *constants, struct wpk_kernel *kernel)
{
    struct wpk_span own[WPK_ABI_ARGUMENTS_MAX];
    void *shared[WPK_ABI_ARGUMENTS_MAX];
    size_t count = wpk_kernel_constants(kernel, own);

    for (size_t i = 0; i < count; i++) {
        shared[i] = wpk_constants_share(constants, (void *)own[i].data, own[i].size);
    }
    wpk_kernel_move_constants(kernel, shared);
}

static wpk_err prepare(const struct wpk_model *model, struct wpk_model_shape *shape,
                       struct wpk_diag *diag)
{
    const struct wpk_model_plan_shape *plan = shape->plan;
    size_t size = 0;
    wpk_err err = WPK_OK;

    for (int i = 0; i < plan->step_count; i++) {
        const struct wpk_kernel *kernel = own_kernel(shape, i);
        size += kernel != NULL ? wpk_memory_round(wpk_kernel_fixed_size(kernel)) : 0;
    }
    err = wpk_constants_init(&shape->constants, size);
    size = 0;
    for (int i = 0; err == WPK_OK && i < plan->step_count; i++) {
        struct wpk_kernel *kernel = own_kernel(shape, i);
        if (kernel != NULL) {
            err =
                prepare_step(shape, &plan->steps[i], kernel, shape->constants.memory + size, diag);
            size += wpk_memory_round(wpk_kernel_fixed_size(kernel));
            if (err == WPK_OK) {
                share_constants(&shape->constants, kernel);
            }
            forget_pages(model);
        }
    }
    return err;
}

static wpk_err describe(struct wpk_model_shape *shape)
{
    const struct wpk_model_plan_shape *plan = shape->plan;

    shape->kernels = calloc((size_t)plan->step_count + 1, sizeof(struct wpk_kernel *));
    shape->share = calloc((size_t)plan->step_count + 1, sizeof(int));
    shape->inputs = calloc((size_t)plan->input_count + 1, sizeof(*shape->inputs));
    shape->outputs = calloc((size_t)plan->output_count + 1, sizeof(*shape->outputs));
    if (shape->kernels == NULL || shape->share == NULL || shape->inputs == NULL ||
        shape->outputs == NULL) {
        return WPK_ENOMEM;
    }
    for (int i = 0; i < plan->input_count; i++) {
        shape->inputs[i].name = plan->inputs[i].name;
        shape->inputs[i].type = plan->values[plan->inputs[i].value].type;
    }
    for (int i = 0; i < plan->output_count; i++) {
        shape->outputs[i].name = plan->outputs[i].name;
        shape->outputs[i].type = plan->values[plan->outputs[i].value].type;
    }
    return WPK_OK;
}

static void unload(struct wpk_model_shape *shape)
{
    /* The last first: a kernel's code may be an earlier one's. */
    for (int i = shape->open_count - 1; i >= 0; i--) {
        if (shape->share[i] < 0) {
            wpk_kernel_close(shape->kernels[i]);
        }
    }
    shape->open_count = 0;
    wpk_constants_fini(&shape->constants);
}

static wpk_err load(struct wpk_model *model, struct wpk_model_shape *shape, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < shape->plan->step_count; i++) {
        shape->share[i] = -1;
        shape->kernels[i] = NULL;
        shape->open_count = i + 1;
        err = open_step(shape, i, &model->device, diag);
    }
    err = err == WPK_OK ? prepare(model, shape, diag) : err;
    shape->is_loaded = err == WPK_OK;
    if (err != WPK_OK) {
        unload(shape);
    }
    return err;
}

wpk_err wpk_model_load(struct wpk_model *model, size_t shape, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    pthread_mutex_lock(&model->lock);
    if (!model->shapes[shape].is_loaded) {
        err = load(model, &model->shapes[shape], diag);
    }
    pthread_mutex_unlock(&model->lock);
    return err;
}

static wpk_err describe_shapes(struct wpk_model *model)
{
    wpk_err err = WPK_OK;

    model->shapes = calloc((size_t)model->plan.shape_count, sizeof(*model->shapes));
    if (model->shapes == NULL) {
        return WPK_ENOMEM;
    }
    for (int i = 0; err == WPK_OK && i < model->plan.shape_count; i++) {
        model->shapes[i].file = &model->plan;
        model->shapes[i].plan = &model->plan.shapes[i];
        err = describe(&model->shapes[i]);
    }
    return err;
}

wpk_err wpk_model_open(const char *path, const struct wpk_open_options *options,
                       struct wpk_model **out, struct wpk_diag *diag)
{
    struct wpk_model *model = calloc(1, sizeof(*model));

    if (model == NULL) {
        return WPK_ENOMEM;
    }
    pthread_mutex_init(&model->lock, NULL);
    wpk_err err = map_file(path, model, diag);
    err = err == WPK_OK ? wpk_kernel_device(options, &model->device, diag) : err;
    if (err == WPK_OK) {
        err = wpk_model_plan_decode(model->bytes, model->size, &model->plan, diag);
        forget_pages(model);
    }
    err = err == WPK_OK ? describe_shapes(model) : err;
    err = err == WPK_OK ? wpk_model_load(model, 0, diag) : err;
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
    for (int i = 0; model->shapes != NULL && i < model->plan.shape_count; i++) {
        struct wpk_model_shape *shape = &model->shapes[i];
        unload(shape);
        free(shape->kernels);
        free(shape->share);
        free(shape->inputs);
        free(shape->outputs);
    }
    free(model->shapes);
    wpk_model_plan_fini(&model->plan);
    if (model->bytes != NULL) {
        munmap(model->bytes, model->size);
    }
    pthread_mutex_destroy(&model->lock);
    free(model);
}

size_t wpk_model_shape_count(const struct wpk_model *model)
{
    return (size_t)model->plan.shape_count;
}

/* The type of the input with this name; NULL: the model has none. */
static const struct wpk_tensor_type *find_input(const struct wpk_model_shape *shape,
                                                const char *name)
{
    int found = WPK_FIND(struct wpk_argument, name, shape->inputs, shape->plan->input_count, name);
    return found >= 0 ? &shape->inputs[found].type : NULL;
}

size_t wpk_model_find_shape(const struct wpk_model *model, const struct wpk_argument *inputs,
                            size_t input_count)
{
    for (size_t s = 0; s < wpk_model_shape_count(model); s++) {
        size_t same = 0;
        for (size_t i = 0; i < input_count; i++) {
            const struct wpk_tensor_type *type = find_input(&model->shapes[s], inputs[i].name);
            same += type != NULL && type->rank == inputs[i].type.rank &&
                    memcmp(type->extent, inputs[i].type.extent,
                           (size_t)type->rank * sizeof(type->extent[0])) == 0;
        }
        if (same == input_count) {
            return s;
        }
    }
    return WPK_MODEL_NO_SHAPE;
}

size_t wpk_model_input_count(const struct wpk_model *model)
{
    return (size_t)model->plan.shapes[0].input_count;
}

size_t wpk_model_output_count(const struct wpk_model *model)
{
    return (size_t)model->plan.shapes[0].output_count;
}

size_t wpk_model_step_count(const struct wpk_model *model, size_t shape)
{
    WPK_ASSERT(shape < wpk_model_shape_count(model));
    return (size_t)model->plan.shapes[shape].step_count;
}

size_t wpk_model_threads(const struct wpk_model *model)
{
    return (size_t)model->plan.threads;
}

struct wpk_model_step wpk_model_step(const struct wpk_model *model, size_t shape, size_t index)
{
    WPK_ASSERT(index < wpk_model_step_count(model, shape));
    const struct wpk_model_plan_step *step = &model->plan.shapes[shape].steps[index];
    const struct wpk_model_plan_loop *loop =
        wpk_model_plan_find_loop(&model->plan.shapes[shape], (int)index);
    uint64_t calls = loop != NULL ? (uint64_t)loop->times : 1;
    if (step->kernel < 0) {
        return (struct wpk_model_step){.node = step->node,
                                       .kernel = wpk_model_plan_host_name(step->host.op),
                                       .calls = calls,
                                       .op = "",
                                       .vendor = ""};
    }
    const struct wpk_model_plan_kernel *kernel = &model->plan.kernels[step->kernel];
    return (struct wpk_model_step){
        .node = step->node,
        .kernel = kernel->name,
        .calls = calls,
        .op =
            model->shapes[shape].is_loaded ? model->shapes[shape].kernels[index]->manifest.op : "",
        .flops = kernel->flops,
        .bytes = kernel->bytes,
        .tuned_ns = (uint64_t)kernel->time_ns,
        .vendor = kernel->vendor,
        .vendor_ns = (uint64_t)kernel->vendor_ns,
    };
}

const struct wpk_argument *wpk_model_input(const struct wpk_model *model, size_t shape,
                                           size_t index)
{
    WPK_ASSERT(shape < wpk_model_shape_count(model) && index < wpk_model_input_count(model));
    return &model->shapes[shape].inputs[index];
}

void wpk_model_input_domain(const struct wpk_model *model, size_t shape, size_t index, double *low,
                            double *high)
{
    WPK_ASSERT(shape < wpk_model_shape_count(model) && index < wpk_model_input_count(model));
    *low = model->plan.shapes[shape].inputs[index].domain.low;
    *high = model->plan.shapes[shape].inputs[index].domain.high;
}

const struct wpk_argument *wpk_model_output(const struct wpk_model *model, size_t shape,
                                            size_t index)
{
    WPK_ASSERT(shape < wpk_model_shape_count(model) && index < wpk_model_output_count(model));
    return &model->shapes[shape].outputs[index];
}
