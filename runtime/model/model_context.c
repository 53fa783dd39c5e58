/* SPDX-License-Identifier: Apache-2.0 */
/* A context holds everything that a run writes. Kernels reserve their scratch memory in its first
 * run; later ones allocate nothing. */
#include "common/clock.h"
#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"
#include "runtime/model/model.h"
#include "runtime/scratch.h"

#include <stdlib.h>
#include <string.h>

#define HOST_ARGUMENTS_MAX 4

/* The arguments of one step, inputs first, then outputs, each in the kernel's order; constants are
 * prepared. */
struct step_data {
    void **data;     /* owned; where they lie in this run, in this iteration of the step's loop */
    int *value;      /* owned; of the plan */
    int64_t *stride; /* owned; bytes from one iteration to the next */
    size_t input_count;
    size_t output_count;
    struct wpk_tensor_span *borders; /* owned; [border_count] of the arena: cleared before it */
    int64_t border_count;
};

struct wpk_model_context {
    const struct wpk_model_shape *shape;
    struct wpk_context *context;
    char *arena;             /* owned */
    struct step_data *steps; /* owned; [step_count] */
    int64_t iteration;       /* of the loop that runs; 0 outside of loops */
    void **inputs;           /* owned; [input_count] of the run */
    void **outputs;          /* owned; [output_count] */
    struct wpk_diag failure; /* of the last run */
};

/* ---- contexts */

/* True if another value lies in the same memory at another time. */
static bool shares_memory(const struct wpk_model_plan_shape *plan, int value)
{
    const struct wpk_model_plan_value *one = &plan->values[value];
    int64_t end = one->offset + (int64_t)wpk_tensor_type_bytes(&one->type);

    for (int v = 0; v < plan->value_count; v++) {
        const struct wpk_model_plan_value *other = &plan->values[v];
        if (v != value && other->place == WPK_MODEL_PLAN_ARENA && other->offset < end &&
            one->offset < other->offset + (int64_t)wpk_tensor_type_bytes(&other->type)) {
            return true;
        }
    }
    return false;
}

/* Append the border of a value that the step writes. */
static wpk_err add_border(const struct wpk_model_plan_value *value, struct step_data *out)
{
    int64_t count = wpk_tensor_padding(&value->type, NULL, 0);
    struct wpk_tensor_span *grown =
        realloc(out->borders, (size_t)(out->border_count + count) * sizeof(*grown));

    if (grown == NULL) {
        return WPK_ENOMEM;
    }
    out->borders = grown;
    (void)wpk_tensor_padding(&value->type, grown + out->border_count, count);
    for (int64_t i = 0; i < count; i++) {
        grown[out->border_count++].offset += (size_t)value->offset;
    }
    return WPK_OK;
}

/* Borders are zero in a new arena. If another value lay in their memory, they are cleared before
 * the step that writes the value inside. */
static wpk_err find_borders(const struct wpk_model_shape *shape,
                            const struct wpk_model_plan_step *step, struct step_data *out)
{
    wpk_err err = WPK_OK;

    for (size_t i = 0; err == WPK_OK && i < out->output_count; i++) {
        const struct wpk_kernel *kernel = shape->kernels[step - shape->plan->steps];
        int index = wpk_model_find_argument(step, kernel->outputs.argument[i].name)->value;
        const struct wpk_model_plan_value *value = &shape->plan->values[index];
        if (!value->is_part && !wpk_layout_is_row_major(&value->type.layout) &&
            shares_memory(shape->plan, index)) {
            err = add_border(value, out);
        }
    }
    return err;
}

static wpk_err bind_step(const struct wpk_model_shape *shape, int index, struct step_data *out)
{
    const struct wpk_kernel *kernel = shape->kernels[index];
    const struct wpk_model_plan_step *step = &shape->plan->steps[index];

    if (step->kernel < 0) {
        return WPK_OK;
    }
    size_t count = kernel->inputs.count + kernel->outputs.count;

    out->input_count = kernel->inputs.count;
    out->output_count = kernel->outputs.count;
    out->data = calloc(count + 1, sizeof(*out->data));
    out->value = calloc(count + 1, sizeof(*out->value));
    out->stride = calloc(count + 1, sizeof(*out->stride));
    if (out->data == NULL || out->value == NULL || out->stride == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = find_borders(shape, step, out);
    for (size_t i = 0; err == WPK_OK && i < count; i++) {
        bool is_input = i < out->input_count;
        const struct wpk_argument *argument = is_input
                                                  ? &kernel->inputs.argument[i]
                                                  : &kernel->outputs.argument[i - out->input_count];
        out->value[i] = wpk_model_find_argument(step, argument->name)->value;
        out->stride[i] = shape->plan->values[out->value[i]].stride;
    }
    return err;
}

/* Where a value lies in this run, in this iteration. */
static void *address(const struct wpk_model_context *context, int index)
{
    const struct wpk_model_plan_value *value = &context->shape->plan->values[index];
    int64_t offset = value->offset + context->iteration * value->stride;

    switch (value->place) {
    case WPK_MODEL_PLAN_DATA:
        return (char *)context->shape->file->data + offset; /* read only */
    case WPK_MODEL_PLAN_INPUT:
        return context->inputs[value->offset];
    case WPK_MODEL_PLAN_OUTPUT:
        return context->outputs[value->offset];
    default:
        return context->arena + offset;
    }
}

static wpk_err run_host(struct wpk_model_context *context, const struct wpk_model_plan_step *step)
{
    void *data[HOST_ARGUMENTS_MAX] = {NULL};

    WPK_ASSERT(step->argument_count <= HOST_ARGUMENTS_MAX);
    for (int a = 0; a < step->argument_count; a++) {
        data[a] = address(context, step->arguments[a].value);
    }
    return wpk_host_step_run(context->shape->plan, step, data, &context->failure);
}

/* How a run is looked at. */
struct watching {
    uint64_t *step_ns;         /* NULL, or filled with the time of each step */
    wpk_model_watcher watcher; /* NULL: none */
    void *user;
};

/* Append the tensors of a list.   owns  borrowed */
static size_t add_tensors(const struct wpk_model_context *context, int step,
                          const struct wpk_argument_list *list, enum wpk_model_tensor_role role,
                          struct wpk_model_tensor *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct wpk_model_plan_argument *argument =
            wpk_model_find_argument(&context->shape->plan->steps[step], list->argument[i].name);
        out[i] = (struct wpk_model_tensor){.argument = &list->argument[i],
                                           .role = role,
                                           .value = argument->value,
                                           .data = address(context, argument->value)};
    }
    return list->count;
}

static void show_step(const struct wpk_model_context *context, int step, bool is_done,
                      const struct watching *watching)
{
    const struct wpk_kernel *kernel = context->shape->kernels[step];
    struct wpk_model_tensor tensors[3 * WPK_ABI_ARGUMENTS_MAX];
    size_t count = 0;

    if (watching->watcher == NULL) {
        return;
    }
    if (kernel != NULL) {
        count += add_tensors(context, step, &kernel->inputs, WPK_MODEL_TENSOR_INPUT, tensors);
        count += add_tensors(context, step, &kernel->constants, WPK_MODEL_TENSOR_CONSTANT,
                             tensors + count);
        count +=
            add_tensors(context, step, &kernel->outputs, WPK_MODEL_TENSOR_OUTPUT, tensors + count);
    }
    watching->watcher(watching->user, (size_t)step, is_done, tensors, count);
}

/* Compute a step of which `data` says where its arguments lie. */
static wpk_err compute(struct wpk_model_context *context, int index)
{
    const struct step_data *step = &context->steps[index];

    for (int64_t b = 0; b < step->border_count; b++) {
        memset(context->arena + step->borders[b].offset, 0, step->borders[b].size);
    }
    return context->shape->plan->steps[index].kernel < 0
               ? run_host(context, &context->shape->plan->steps[index])
               : wpk_kernel_call(context->shape->kernels[index], context->context, step->data,
                                 step->data + step->input_count);
}

/* An index is out of its axis: say of which value, by the name of a model's input. */
static void explain_index(struct wpk_model_context *context, int index)
{
    const struct wpk_model_plan_shape *plan = context->shape->plan;
    const struct wpk_kernel *kernel = context->shape->kernels[index];
    const struct step_data *step = &context->steps[index];
    const char *names[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_diag diag = {.text = ""};

    for (size_t i = 0; i < step->input_count; i++) {
        const struct wpk_model_plan_value *value = &plan->values[step->value[i]];
        names[i] = value->place == WPK_MODEL_PLAN_INPUT ? plan->inputs[value->offset].name
                                                        : "an intermediate value";
    }
    wpk_err err = wpk_kernel_check_indices(kernel, &kernel->inputs, step->data, names, &diag);
    if (err == WPK_ERANGE) {
        wpk_diag_set(&context->failure, "node %s: %s", plan->steps[index].node, diag.text);
    }
}

static wpk_err run_step(struct wpk_model_context *context, int index,
                        const struct watching *watching)
{
    const struct wpk_model_plan_step *step = &context->shape->plan->steps[index];
    uint64_t *step_ns = watching->step_ns;

    uint64_t began_ns = step_ns != NULL ? wpk_clock_now_ns(wpk_clock_system()) : 0;
    wpk_err err = compute(context, index);
    if (step_ns != NULL) {
        step_ns[index] += wpk_clock_now_ns(wpk_clock_system()) - began_ns;
    }
    if (err == WPK_ERANGE && step->kernel >= 0) {
        explain_index(context, index);
    }
    if (err != WPK_OK && context->failure.text[0] == '\0') {
        wpk_diag_set(&context->failure, "node %s: %s", step->node, wpk_err_text(err));
    }
    return err;
}

static void advance(struct step_data *step)
{
    for (size_t a = 0; a < step->input_count + step->output_count; a++) {
        step->data[a] = (char *)step->data[a] + step->stride[a];
    }
}

/* Run the steps of a loop. A watcher sees the first and the last iteration. */
static wpk_err run_loop(struct wpk_model_context *context, const struct wpk_model_plan_loop *loop,
                        const struct watching *watching)
{
    const int end = loop->first + loop->count;
    wpk_err err = WPK_OK;

    /* Find where the arguments of steps [first, end) lie before the first iteration. */
    for (int i = loop->first; i < end; i++) {
        struct step_data *step = &context->steps[i];
        for (size_t a = 0; a < step->input_count + step->output_count; a++) {
            step->data[a] = address(context, step->value[a]);
        }
    }
    for (int64_t i = 0; err == WPK_OK && i < loop->times; i++) {
        bool is_shown = watching->watcher != NULL && (i == 0 || i + 1 == loop->times);
        context->iteration = i;
        for (int s = loop->first; err == WPK_OK && s < end; s++) {
            if (is_shown) {
                show_step(context, s, false, watching);
            }
            err = run_step(context, s, watching);
            if (err == WPK_OK && is_shown) {
                show_step(context, s, true, watching);
            }
            advance(&context->steps[s]);
        }
    }
    context->iteration = 0;
    return err;
}

static wpk_err run_steps(struct wpk_model_context *context, const struct watching *watching)
{
    const struct wpk_model_plan_shape *plan = context->shape->plan;
    const struct wpk_model_plan_loop *loop = plan->loops;
    wpk_err err = WPK_OK;

    context->failure.text[0] = '\0';
    for (int i = 0; watching->step_ns != NULL && i < plan->step_count; i++) {
        watching->step_ns[i] = 0;
    }
    for (int i = 0; err == WPK_OK && i < plan->step_count; i++) {
        struct wpk_model_plan_loop alone = {.first = i, .count = 1, .times = 1};
        bool is_loop = loop < plan->loops + plan->loop_count && loop->first == i;
        const struct wpk_model_plan_loop *group = is_loop ? loop++ : &alone;
        err = run_loop(context, group, watching);
        i += group->count - 1;
    }
    for (int i = 0; err == WPK_OK && i < plan->output_count; i++) {
        const struct wpk_model_plan_value *value = &plan->values[plan->outputs[i].value];
        if (value->place != WPK_MODEL_PLAN_OUTPUT || value->offset != i) {
            memcpy(context->outputs[i], address(context, plan->outputs[i].value),
                   wpk_tensor_type_bytes(&value->type));
        }
    }
    return err;
}

wpk_err wpk_model_context_new(struct wpk_model *model, size_t index,
                              const struct wpk_context_options *options,
                              struct wpk_model_context **out)
{
    struct wpk_model_context *context = calloc(1, sizeof(*context));
    const struct wpk_model_shape *shape = &model->shapes[index];
    wpk_err err = WPK_OK;

    WPK_ASSERT(index < wpk_model_shape_count(model));
    if (context == NULL) {
        return WPK_ENOMEM;
    }
    context->shape = shape;
    context->arena = wpk_memory_take((size_t)shape->plan->arena_size);
    context->steps = calloc((size_t)shape->plan->step_count + 1, sizeof(*context->steps));
    context->inputs = calloc((size_t)shape->plan->input_count + 1, sizeof(void *));
    context->outputs = calloc((size_t)shape->plan->output_count + 1, sizeof(void *));
    if (context->arena == NULL || context->steps == NULL || context->inputs == NULL ||
        context->outputs == NULL) {
        err = WPK_ENOMEM;
    }
    err = err == WPK_OK ? wpk_model_load(model, index, NULL) : err;
    for (int i = 0; err == WPK_OK && i < shape->plan->step_count; i++) {
        err = bind_step(shape, i, &context->steps[i]);
    }
    err = err == WPK_OK ? wpk_context_new(options, &context->context) : err;
    if (err != WPK_OK) {
        wpk_model_context_free(context);
        return err;
    }
    *out = context;
    return WPK_OK;
}

const char *wpk_model_context_failure(const struct wpk_model_context *context)
{
    return context->failure.text;
}

void wpk_model_context_free(struct wpk_model_context *context)
{
    if (context == NULL) {
        return;
    }
    for (int i = 0; context->steps != NULL && i < context->shape->plan->step_count; i++) {
        free(context->steps[i].data);
        free(context->steps[i].value);
        free(context->steps[i].stride);
        free(context->steps[i].borders);
    }
    if (context->context != NULL) {
        wpk_context_free(context->context);
    }
    free(context->steps);
    free(context->inputs);
    free(context->outputs);
    wpk_memory_give(context->arena);
    free(context);
}

void wpk_model_context_use_threads(struct wpk_model_context *context, wpk_loop_runner runner,
                                   void *host)
{
    wpk_context_use_threads(context->context, runner, host);
}

size_t wpk_model_context_size(const struct wpk_model_context *context)
{
    const struct wpk_model_plan *file = context->shape->file;
    size_t size = (size_t)context->shape->plan->arena_size +
                  wpk_constants_size(&context->shape->constants) +
                  wpk_context_scratch_size(context->context);

    for (int k = 0; k < file->kernel_count; k++) {
        size += (size_t)file->kernels[k].size;
    }
    return size;
}

/* ---- running */

static wpk_err take(const struct wpk_argument *arguments, size_t argument_count,
                    const struct wpk_tensor_data *data, size_t count, void **out)
{
    if (count != argument_count) {
        return WPK_EINVAL;
    }
    for (size_t a = 0; a < argument_count; a++) {
        size_t alignment = wpk_dtype_size(arguments[a].type.dtype);
        size_t i = 0;
        while (i < count &&
               (data[i].name == NULL || strcmp(data[i].name, arguments[a].name) != 0)) {
            i++;
        }
        if (i == count || data[i].data == NULL || (uintptr_t)data[i].data % alignment != 0 ||
            data[i].size != wpk_tensor_type_bytes(&arguments[a].type)) {
            return WPK_EINVAL;
        }
        out[a] = data[i].data;
    }
    return WPK_OK;
}

static wpk_err run(struct wpk_model_context *context, const struct wpk_tensor_data *inputs,
                   size_t input_count, const struct wpk_tensor_data *outputs, size_t output_count,
                   const struct watching *watching)
{
    const struct wpk_model_shape *shape = context->shape;

    wpk_err err =
        take(shape->inputs, (size_t)shape->plan->input_count, inputs, input_count, context->inputs);
    if (err == WPK_OK) {
        err = take(shape->outputs, (size_t)shape->plan->output_count, outputs, output_count,
                   context->outputs);
    }
    return err == WPK_OK ? run_steps(context, watching) : err;
}

wpk_err wpk_model_profile(struct wpk_model_context *context, const struct wpk_tensor_data *inputs,
                          size_t input_count, const struct wpk_tensor_data *outputs,
                          size_t output_count, uint64_t *step_ns)
{
    return run(context, inputs, input_count, outputs, output_count,
               &(struct watching){.step_ns = step_ns});
}

wpk_err wpk_model_watch(struct wpk_model_context *context, const struct wpk_tensor_data *inputs,
                        size_t input_count, const struct wpk_tensor_data *outputs,
                        size_t output_count, wpk_model_watcher watcher, void *user)
{
    const struct wpk_model_plan_shape *plan = context->shape->plan;
    struct step_data all = {.border_count = 0};
    wpk_err err = WPK_OK;

    /* Fill the arena with NaN, but for the borders. */
    for (int v = 0; err == WPK_OK && v < plan->value_count; v++) {
        const struct wpk_model_plan_value *value = &plan->values[v];
        if (value->place == WPK_MODEL_PLAN_ARENA && wpk_tensor_padding(&value->type, NULL, 0) > 0) {
            err = add_border(value, &all);
        }
    }
    if (err == WPK_OK) {
        memset(context->arena, 0xff, (size_t)plan->arena_size);
    }
    for (int64_t i = 0; err == WPK_OK && i < all.border_count; i++) {
        memset(context->arena + all.borders[i].offset, 0, all.borders[i].size);
    }
    free(all.borders);

    return err == WPK_OK ? run(context, inputs, input_count, outputs, output_count,
                               &(struct watching){.watcher = watcher, .user = user})
                         : err;
}

wpk_err wpk_model_run(struct wpk_model_context *context, const struct wpk_tensor_data *inputs,
                      size_t input_count, const struct wpk_tensor_data *outputs,
                      size_t output_count)
{
    return run(context, inputs, input_count, outputs, output_count,
               &(struct watching){.step_ns = NULL});
}
