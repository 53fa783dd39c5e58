/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/check_plan.h"

#include "common/crypto.h"
#include "ir/reference/accuracy.h"
#include "schema/model_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An output of a step, as the step left it; of a loop, in the last iteration that was shown, and
 * its memory is that of all iterations. */
struct written {
    int value;
    const char *at; /* in memory */
    const char *end;
    size_t size;
    size_t step;
    char checksum[WPK_CHECKSUM_HEX_SIZE];
};

#define TENSORS_MAX 64 /* of a step */

/* The tensors of the step that runs: inputs and constants, then outputs. */
struct step_tensors {
    struct wpk_check_tensor list[TENSORS_MAX]; /* [count], their data owned */
    int count;
    int output_count; /* of them */
};

/* A plan that is being checked. */
struct checking {
    const struct wpk_plan_call *call;
    struct step_tensors *tensors; /* owned */
    struct written *written;      /* owned; [written_count], one for each value */
    int written_count;
    bool has_nan; /* the model's inputs have some, or a function of libwpk may have made some */
    struct wpk_check_plan result;
    wpk_err err; /* the first one */
    struct wpk_diag *diag;
};

static void forget(struct step_tensors *tensors)
{
    for (int i = 0; i < tensors->count; i++) {
        free((void *)(uintptr_t)tensors->list[i].dense);
    }
    *tensors = (struct step_tensors){.count = 0};
}

/* Keep a step's tensor as dense rows; an output's elements are there when the step is done. */
static wpk_err keep(struct step_tensors *tensors, const struct wpk_model_tensor *from)
{
    const struct wpk_tensor_type *type = &from->argument->type;
    size_t size = (size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype);

    if (tensors->count == TENSORS_MAX) {
        return WPK_ENOSPC;
    }
    void *dense = malloc(size);
    if (dense == NULL) {
        return WPK_ENOMEM;
    }
    tensors->list[tensors->count++] =
        (struct wpk_check_tensor){.name = from->argument->name, .type = type, .dense = dense};
    tensors->output_count += from->role == WPK_MODEL_TENSOR_OUTPUT;
    if (from->role == WPK_MODEL_TENSOR_CONSTANT) { /* they are dense, as the user gave them */
        memcpy(dense, from->data, size);
    } else if (from->role == WPK_MODEL_TENSOR_INPUT) {
        wpk_tensor_unpack(type, from->data, dense);
    }
    return WPK_OK;
}

static size_t dense_size(const struct wpk_check_tensor *tensor)
{
    const struct wpk_tensor_type *type = tensor->type;

    return (size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype);
}

static const char *end_of(const struct wpk_model_tensor *tensor)
{
    return (const char *)tensor->data + wpk_tensor_type_bytes(&tensor->argument->type);
}

/* Remember what a step wrote. True: for the first time. */
static bool remember(struct checking *c, size_t step, const struct wpk_model_tensor *from,
                     const struct wpk_check_tensor *tensor)
{
    const char *at = from->data;
    const char *end = end_of(from);
    int i = 0;

    while (i < c->written_count &&
           (c->written[i].value != from->value || c->written[i].step != step)) {
        i++;
    }
    struct written *written = &c->written[i];
    bool is_known = i < c->written_count;
    if (is_known) {
        at = written->at < at ? written->at : at;
        end = written->end > end ? written->end : end;
    } else {
        c->written_count++;
    }
    *written = (struct written){
        .value = from->value, .at = at, .end = end, .size = dense_size(tensor), .step = step};
    wpk_checksum_hex(tensor->dense, written->size, written->checksum);
    return !is_known;
}

/* Fail if an input that a step wrote was changed since. */
static wpk_err check_kept(const struct checking *c, size_t step, int value,
                          const struct wpk_check_tensor *tensor)
{
    char checksum[WPK_CHECKSUM_HEX_SIZE];

    for (int i = 0; i < c->written_count; i++) {
        const struct written *written = &c->written[i];
        if (written->value != value || written->size != dense_size(tensor)) {
            continue;
        }
        wpk_checksum_hex(tensor->dense, written->size, checksum);
        if (strcmp(checksum, written->checksum) != 0) {
            return wpk_fail(c->diag, WPK_EMISMATCH,
                            "step %zu reads what step %zu wrote, but it was overwritten", step,
                            written->step);
        }
    }
    return WPK_OK;
}

static bool has_nan(const float *data, size_t size)
{
    bool found = false;

    for (size_t i = 0; i < size / sizeof(*data); i++) {
        found = found || isnan(data[i]);
    }
    return found;
}

/* True if steps wrote all of the tensor's memory: it may consist of several outputs. */
static bool is_covered(const struct checking *c, const struct wpk_model_tensor *tensor)
{
    const char *at = tensor->data;
    bool moved = true;

    while (moved && at < end_of(tensor)) {
        moved = false;
        for (int i = 0; i < c->written_count; i++) {
            if (c->written[i].at <= at && at < c->written[i].end) {
                at = c->written[i].end;
                moved = true;
            }
        }
    }
    return at >= end_of(tensor);
}

/* Fail if an input has NaN, with which the arena was filled, and no step wrote it. */
static wpk_err check_written(const struct checking *c, size_t step,
                             const struct wpk_model_tensor *from,
                             const struct wpk_check_tensor *tensor)
{
    if (c->has_nan || tensor->type->dtype != WPK_F32 ||
        !has_nan(tensor->dense, dense_size(tensor)) || is_covered(c, from)) {
        return WPK_OK;
    }
    return wpk_fail(c->diag, WPK_EMISMATCH, "step %zu reads a value that no step wrote", step);
}

static wpk_err compare(struct checking *c, size_t step, const struct wpk_model_tensor *tensors,
                       size_t count)
{
    const struct wpk_model_step about = wpk_model_step(c->call->model, c->call->shape, step);
    const struct wpk_accuracy class = {.times_direct = 16}; /* `fast`: the widest with a name */
    struct wpk_check found;
    bool is_new = false;

    for (size_t i = 0; i < count; i++) {
        if (tensors[i].role == WPK_MODEL_TENSOR_OUTPUT) {
            wpk_tensor_unpack(&tensors[i].argument->type, tensors[i].data,
                              (void *)(uintptr_t)c->tensors->list[i].dense);
            is_new = remember(c, step, &tensors[i], &c->tensors->list[i]) || is_new;
        }
    }
    wpk_err err =
        wpk_check(about.op, c->tensors->list, c->tensors->count - c->tensors->output_count,
                  c->tensors->output_count, class, WPK_CHECK_PLAN_POINTS_MAX, &found, c->diag);
    if (err != WPK_OK) {
        return err;
    }
    if (!found.passed) {
        return wpk_fail(
            c->diag, WPK_EMISMATCH,
            "step %zu (%s) is wrong: its error is %.2e of its output's rms, %.1f times that "
            "of direct evaluation",
            step, about.node, found.of_rms, found.times_direct);
    }
    c->result.steps += is_new;
    c->result.points += found.points;
    if (found.times_direct >= c->result.times_direct) {
        c->result.times_direct = found.times_direct;
        c->result.worst_node = about.node;
    }
    return WPK_OK;
}

static void watch(void *user, size_t step, bool is_done, const struct wpk_model_tensor *tensors,
                  size_t count)
{
    struct checking *c = user;

    /* a copy is the function of libwpk that makes no NaN of its own */
    const char *kernel = wpk_model_step(c->call->model, c->call->shape, step).kernel;
    bool copies = strcmp(kernel, wpk_model_plan_host_name(WPK_MODEL_PLAN_COPY)) == 0;
    c->has_nan = c->has_nan || (count == 0 && !copies);
    if (c->err != WPK_OK || count == 0) {
        return;
    }
    if (!is_done) {
        for (size_t i = 0; i < count && c->err == WPK_OK; i++) {
            c->err = keep(c->tensors, &tensors[i]);
            if (c->err == WPK_OK && tensors[i].role == WPK_MODEL_TENSOR_INPUT) {
                c->err = check_kept(c, step, tensors[i].value, &c->tensors->list[i]);
            }
            if (c->err == WPK_OK && tensors[i].role == WPK_MODEL_TENSOR_INPUT) {
                c->err = check_written(c, step, &tensors[i], &c->tensors->list[i]);
            }
        }
    } else {
        c->err = compare(c, step, tensors, count);
    }
    if (is_done || c->err != WPK_OK) {
        forget(c->tensors);
    }
}

/* True if some input of the model has NaN. */
static bool is_drawn_nan(const struct wpk_plan_call *call)
{
    bool found = false;

    for (size_t i = 0; i < call->input_count; i++) {
        const struct wpk_argument *input = wpk_model_input(call->model, call->shape, i);
        found = found || (input->type.dtype == WPK_F32 &&
                          has_nan(call->inputs[i].data, call->inputs[i].size));
    }
    return found;
}

wpk_err wpk_check_plan(const struct wpk_plan_call *call, struct wpk_check_plan *out,
                       struct wpk_diag *diag)
{
    struct checking c = {.call = call, .diag = diag, .result = {.worst_node = ""}};

    size_t steps = wpk_model_step_count(call->model, call->shape);

    c.tensors = WPK_DEMAND(calloc(1, sizeof(*c.tensors)));
    c.written = WPK_DEMAND(calloc(steps * TENSORS_MAX + 1, sizeof(*c.written)));
    c.has_nan = is_drawn_nan(call);
    wpk_err err = wpk_model_watch(call->context, call->inputs, call->input_count, call->outputs,
                                  call->output_count, watch, &c);
    free(c.tensors);
    free(c.written);
    *out = c.result;
    return err != WPK_OK ? err : c.err;
}
