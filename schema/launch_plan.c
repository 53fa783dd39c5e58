/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/launch_plan.h"

#include "common/cubin.h"
#include "common/cuda_machine.h"
#include "schema/fields.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_MAX INT32_MAX
#define THREADS_MAX 1024
#define SHARED_BYTES_MAX ((int64_t)1 << 20)
#define TENSOR_BYTES_MAX ((int64_t)1 << 40)
#define LOCAL_BYTES_MAX ((int64_t)512 << 10) /* of a thread */

static void put_parameter(struct wpk_json_writer *w, const struct wpk_launch_parameter *parameter)
{
    wpk_json_begin_object(w, NULL);
    if (parameter->tensor >= 0) {
        wpk_json_put_int(w, "tensor", parameter->tensor);
        wpk_json_put_int(w, "offset", parameter->value);
    } else {
        wpk_json_put_int(w, "number", parameter->value);
        wpk_json_put_int(w, "bytes", parameter->bytes);
    }
    wpk_json_end(w);
}

static void put_launch(struct wpk_json_writer *w, const struct wpk_launch_plan *plan,
                       const struct wpk_launch_step *launch)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "entry", launch->entry);
    wpk_json_put_ints(w, "blocks", launch->blocks, 3);
    wpk_json_put_ints(w, "threads", launch->threads, 3);
    wpk_json_put_int(w, "shared_bytes", launch->shared_bytes);
    wpk_json_put_int(w, "added_bytes", launch->added_bytes);
    wpk_json_put_int(w, "registers", launch->registers);
    wpk_json_put_int(w, "local_bytes", launch->local_bytes);
    wpk_json_begin_array(w, "parameters");
    for (int i = 0; i < launch->parameter_count; i++) {
        put_parameter(w, &plan->parameter[launch->parameter_first + i]);
    }
    wpk_json_end(w);
    wpk_json_end(w);
}

static void put_launches(struct wpk_json_writer *w, const char *key, const void *object)
{
    const struct wpk_launch_plan *plan = object;
    wpk_json_begin_array(w, key);
    for (int i = 0; i < plan->launch_count; i++) {
        put_launch(w, plan, &plan->launch[i]);
    }
    wpk_json_end(w);
}

wpk_err wpk_launch_plan_add(struct wpk_launch_plan *plan, struct wpk_launch_parameter parameter)
{
    WPK_ASSERT(plan->launch_count >= 1);
    struct wpk_launch_step *launch = &plan->launch[plan->launch_count - 1];
    if (launch->parameter_count == WPK_LAUNCH_PARAMETERS_MAX ||
        plan->parameter_count == WPK_LAUNCH_PLAN_PARAMETERS_MAX) {
        return WPK_ENOSPC;
    }
    launch->parameter_first = plan->parameter_count - launch->parameter_count;
    launch->parameter_count++;
    plan->parameter[plan->parameter_count++] = parameter;
    return WPK_OK;
}

wpk_err wpk_launch_plan_check(const struct wpk_launch_plan *plan, const size_t *bytes, int count,
                              struct wpk_diag *diag)
{
    if (count != plan->argument_count) {
        return wpk_fail(diag, WPK_EMISMATCH, "the image has %d arguments, the kernel %d",
                        plan->argument_count, count);
    }
    for (int i = 0; i < plan->launch_count; i++) {
        const struct wpk_launch_step *launch = &plan->launch[i];
        for (int p = 0; p < launch->parameter_count; p++) {
            const struct wpk_launch_parameter *at = &plan->parameter[launch->parameter_first + p];
            if (at->tensor >= 0 && at->tensor < count && (size_t)at->value >= bytes[at->tensor]) {
                return wpk_fail(diag, WPK_ERANGE,
                                "%s takes byte %lld of argument %d, which has %zu bytes",
                                launch->entry, (long long)at->value, at->tensor, bytes[at->tensor]);
            }
        }
    }
    return WPK_OK;
}

static void get_sizes(struct wpk_json_reader *r, const char *name, int64_t most, int64_t size[3])
{
    if (wpk_json_get_ints(r, name, 1, most, size, 3) != 3) {
        wpk_json_fail(r, name, WPK_EINVAL, "there must be three sizes: x, y, z");
    }
}

static struct wpk_launch_parameter get_parameter(struct wpk_json_reader *r)
{
    struct wpk_launch_parameter out = {.tensor = -1, .bytes = 8};
    if (wpk_json_has(r, "tensor")) {
        WPK_JSON_ALLOW(r, "tensor", "offset");
        out.tensor = (int)wpk_json_get_int(r, "tensor", 0, WPK_LAUNCH_TENSORS_MAX - 1);
        out.value = wpk_json_get_int(r, "offset", 0, TENSOR_BYTES_MAX);
        return out;
    }
    WPK_JSON_ALLOW(r, "number", "bytes");
    out.bytes = (int)wpk_json_get_int(r, "bytes", 4, 8);
    if (wpk_json_status(r) == WPK_OK && out.bytes != 4 && out.bytes != 8) {
        wpk_json_fail(r, "bytes", WPK_ERANGE, "a number has 4 bytes or 8");
    }
    out.value = wpk_json_get_int(r, "number", out.bytes == 4 ? INT32_MIN : -WPK_JSON_INT_MAX,
                                 out.bytes == 4 ? (int64_t)UINT32_MAX : WPK_JSON_INT_MAX);
    return out;
}

static void get_parameters(struct wpk_json_reader *r, struct wpk_launch_plan *plan)
{
    wpk_json_enter_array(r, "parameters");
    while (wpk_json_next(r)) {
        wpk_json_enter(r, NULL);
        if (wpk_launch_plan_add(plan, get_parameter(r)) != WPK_OK) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d parameters, or %d of all launches",
                          WPK_LAUNCH_PARAMETERS_MAX, WPK_LAUNCH_PLAN_PARAMETERS_MAX);
        }
        wpk_json_leave(r);
    }
    wpk_json_leave(r);
}

static void get_launch(struct wpk_json_reader *r, struct wpk_launch_plan *plan)
{
    struct wpk_launch_step *launch = &plan->launch[plan->launch_count++];
    wpk_json_enter(r, NULL);
    WPK_JSON_ALLOW(r, "entry", "blocks", "threads", "shared_bytes", "added_bytes", "registers",
                   "local_bytes", "parameters");
    wpk_json_get_label(r, "entry", launch->entry, sizeof(launch->entry));
    get_sizes(r, "blocks", BLOCKS_MAX, launch->blocks);
    get_sizes(r, "threads", THREADS_MAX, launch->threads);
    launch->shared_bytes = wpk_json_get_int(r, "shared_bytes", 0, SHARED_BYTES_MAX);
    launch->added_bytes = wpk_json_get_int(r, "added_bytes", 0, SHARED_BYTES_MAX);
    launch->registers = (int)wpk_json_get_int(r, "registers", 0, WPK_CUDA_THREAD_REGISTERS);
    launch->local_bytes = wpk_json_get_int(r, "local_bytes", 0, LOCAL_BYTES_MAX);
    get_parameters(r, plan);
    wpk_json_leave(r);
}

static void get_launches(struct wpk_json_reader *r, const char *key, void *object)
{
    struct wpk_launch_plan *plan = object;
    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        if (plan->launch_count == WPK_LAUNCHES_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d launches", WPK_LAUNCHES_MAX);
            break;
        }
        get_launch(r, plan);
    }
    wpk_json_leave(r);
    if (plan->launch_count == 0) {
        wpk_json_fail(r, key, WPK_EINVAL, "there must be a launch");
    }
}

/* Each address is in one of the program's tensors; sizes of arguments are not known here. */
static void check_parameters(struct wpk_json_reader *r, void *object)
{
    const struct wpk_launch_plan *plan = object;
    for (int i = 0; i < plan->parameter_count && wpk_json_status(r) == WPK_OK; i++) {
        const struct wpk_launch_parameter *parameter = &plan->parameter[i];
        int scratch = parameter->tensor - plan->argument_count;
        if (scratch >= plan->scratch_count) {
            wpk_json_fail(r, "launches", WPK_ERANGE, "a launch takes tensor %d, which there is not",
                          parameter->tensor);
        } else if (scratch >= 0 && parameter->value >= plan->scratch[scratch].bytes) {
            wpk_json_fail(
                r, "launches", WPK_ERANGE, "a launch takes byte %lld of scratch %d, of %lld",
                (long long)parameter->value, scratch, (long long)plan->scratch[scratch].bytes);
        }
    }
}

static const struct wpk_field plan_fields[] = {
    {WPK_FIELD_VERSION(WPK_LAUNCH_PLAN_VERSION, "tune for the GPU again")},
    {WPK_FIELD(LABEL, "architecture", launch_plan, architecture)},
    {WPK_FIELD_COUNT("cubin_bytes", launch_plan, cubin_bytes)},
    {WPK_FIELD_INT("arguments", launch_plan, argument_count, 1, WPK_LAUNCH_ARGUMENTS_MAX)},
    {WPK_FIELD_WHOLE("launches", put_launches, get_launches)},
    {WPK_FIELD_ARRAY("scratch", launch_plan, scratch, scratch_count,
                     WPK_ROWS({WPK_FIELD_INT("bytes", launch_scratch, bytes, 1, TENSOR_BYTES_MAX)},
                              {WPK_FIELD(BOOL, "zeroed", launch_scratch, zeroed)}))},
    {WPK_FIELD_CHECK(check_parameters)},
    {WPK_FIELD_END},
};

wpk_err wpk_launch_plan_encode(const struct wpk_launch_plan *plan,
                               const struct wpk_launch_code *code, struct wpk_buf *out)
{
    struct wpk_launch_plan whole = *plan;
    WPK_ASSERT(plan->launch_count >= 1);
    whole.cubin_bytes = (int64_t)code->cubin_size;
    wpk_err err = wpk_fields_encode(plan_fields, &whole, out);
    wpk_buf_append_byte(out, '\n');
    wpk_buf_append(out, code->cubin, code->cubin_size);
    wpk_buf_append(out, code->ptx, code->ptx_size);
    return err == WPK_OK ? wpk_buf_status(out) : err;
}

wpk_err wpk_launch_plan_decode(const char *image, size_t size, struct wpk_launch_plan *out,
                               struct wpk_launch_code *code, struct wpk_diag *diag)
{
    const char *end = memchr(image, '\n', size);
    size_t length = end != NULL ? (size_t)(end - image) : size;
    size_t room = end != NULL ? size - length - 1 : 0;
    struct wpk_launch_plan plan = {0};
    const struct wpk_fields_text from = {image, length, WPK_LAUNCH_PLAN_SIZE_MAX, NULL, false};
    wpk_err err = wpk_fields_decode(&from, plan_fields, &plan, diag);
    if (err != WPK_OK || room == 0) {
        return err != WPK_OK ? err : wpk_fail(diag, WPK_EPARSE, "the image has no code");
    }
    size_t cubin = (size_t)plan.cubin_bytes;
    if (cubin >= room ||
        (cubin > 0 && (cubin < WPK_CUBIN_HEAD_BYTES || wpk_cubin_bytes(end + 1) != cubin))) {
        if (diag != NULL) {
            snprintf(diag->field, sizeof diag->field, "cubin_bytes");
        }
        return wpk_fail(diag, WPK_EPARSE, "the image has no such cubin with PTX behind");
    }
    *out = plan;
    *code = (struct wpk_launch_code){
        .cubin = end + 1, .cubin_size = cubin, .ptx = end + 1 + cubin, .ptx_size = room - cubin};
    return WPK_OK;
}
