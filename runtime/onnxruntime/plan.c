/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plan.h"

#include "common/clock.h"
#include "common/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 9                   /* of plan and twin */
#define TRY_NS (WPK_NS_PER_S / 2) /* for all of them, once each has had MIN_TURNS */
#define MIN_TURNS 3
#define DIFFERENCE_MAX 1e-3 /* of the largest element of an output */
#define FASTER 0.98         /* than the twin: less is a wash */

bool wpk_plan_is_of(int element, enum wpk_dtype dtype)
{
    static const int elements[WPK_DTYPE_COUNT] = {
        [WPK_F32] = 1, [WPK_U8] = 2,   [WPK_I8] = 3,   [WPK_I16] = 5,  [WPK_I32] = 6,
        [WPK_I64] = 7, [WPK_BOOL] = 9, [WPK_F16] = 10, [WPK_F64] = 11, [WPK_BF16] = 16};
    return element == elements[dtype];
}

/* The group's tensor of this name; -1: it has none. */
static int find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool has_shape(const struct wpk_argument *argument, const struct wpk_ort_tensor *end)
{
    bool same = wpk_plan_is_of(end->element, argument->type.dtype) &&
                (size_t)argument->type.rank == end->rank;
    for (size_t d = 0; same && d < end->rank; d++) {
        same = argument->type.extent[d] == end->extent[d];
    }
    return same;
}

/* True if the plan's inputs are among the group's, and its outputs are the group's. */
static bool fits(const struct wpk_plan_group *group, struct wpk_ort_plan *plan)
{
    size_t outputs = wpk_model_output_count(plan->model);
    bool all =
        outputs == group->output_count && wpk_model_input_count(plan->model) <= group->input_count;
    for (size_t i = 0; all && i < outputs; i++) {
        const struct wpk_argument *argument = wpk_model_output(plan->model, 0, i);
        plan->of_output[i] = find_name(group->output_names, group->output_count, argument->name);
        all = plan->of_output[i] >= 0;
    }
    for (size_t i = 0; all && i < wpk_model_input_count(plan->model); i++) {
        plan->of_input[i] = find_name(group->input_names, group->input_count,
                                      wpk_model_input(plan->model, 0, i)->name);
        all = plan->of_input[i] >= 0;
    }
    return all;
}

wpk_err wpk_plan_open(const struct wpk_plan_group *group, const char *path,
                      struct wpk_ort_plan *out)
{
    const struct wpk_context_options options = {.threads = group->thread_count};
    wpk_err err = wpk_model_open(path, NULL, &out->model, NULL);
    if (err == WPK_OK && !fits(group, out)) {
        err = WPK_EMISMATCH;
    }
    return err == WPK_OK ? wpk_model_context_new(out->model, 0, &options, &out->idle) : err;
}

void wpk_plan_close(struct wpk_ort_plan *plan)
{
    wpk_model_context_free(plan->idle);
    wpk_model_close(plan->model);
    plan->idle = NULL;
    plan->model = NULL;
}

bool wpk_plan_bind(const struct wpk_plan_group *group, const struct wpk_ort_plan *plan,
                   const struct wpk_ort_tensor *inputs, void *const *outputs,
                   struct wpk_tensor_data *data)
{
    size_t count = wpk_model_input_count(plan->model);
    for (size_t i = 0; i < count; i++) {
        const struct wpk_argument *argument = wpk_model_input(plan->model, 0, i);
        const struct wpk_ort_tensor *input = &inputs[plan->of_input[i]];
        if (!has_shape(argument, input)) {
            return false;
        }
        data[i] = (struct wpk_tensor_data){argument->name, input->data, input->size};
    }
    for (size_t i = 0; i < group->output_count; i++) {
        const struct wpk_argument *argument = wpk_model_output(plan->model, 0, i);
        data[count + i] = (struct wpk_tensor_data){argument->name, outputs[i],
                                                   wpk_tensor_type_bytes(&argument->type)};
    }
    return true;
}

/* ---- a trial */

static double element(enum wpk_dtype dtype, const void *data, size_t i)
{
    return dtype == WPK_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* True if an output is what the twin computed. */
static bool agrees(const struct wpk_argument *argument, const void *ours,
                   const struct wpk_ort_tensor *wanted)
{
    enum wpk_dtype dtype = argument->type.dtype;
    if (!has_shape(argument, wanted)) {
        return false;
    }
    if (dtype != WPK_F32 && dtype != WPK_F64) {
        return memcmp(ours, wanted->data, wanted->size) == 0;
    }
    size_t count = wanted->size / wpk_dtype_size(dtype);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < count; i++) {
        double a = element(dtype, ours, i), b = element(dtype, wanted->data, i);
        largest = isfinite(b) ? fmax(largest, fabs(b)) : largest;
        if (a != b && !(isnan(a) && isnan(b))) {
            difference = isfinite(a) && isfinite(b) ? fmax(difference, fabs(a - b)) : INFINITY;
        }
    }
    return difference <= DIFFERENCE_MAX * largest;
}

bool wpk_plan_try(const struct wpk_plan_group *group, struct wpk_ort_plan *plan,
                  const struct wpk_ort_tensor *given, struct wpk_plan_trial *trial)
{
    const struct wpk_ort *ort = group->ort;
    struct wpk_tensor_data data[2 * WPK_PLAN_ENDS_MAX];
    struct ort_value *inputs[WPK_PLAN_ENDS_MAX] = {0}, *wanted[WPK_PLAN_ENDS_MAX] = {0};
    void *outputs[WPK_PLAN_ENDS_MAX] = {0};
    struct ort_memory_info *memory = NULL;
    struct ort_status *status = NULL;
    double times[2][TURNS];
    int turns = 0;
    uint64_t began = wpk_clock_ns();
    size_t count = wpk_model_input_count(plan->model);
    bool ran = false;
    for (size_t i = 0; i < group->output_count; i++) {
        size_t size = wpk_tensor_type_bytes(&wpk_model_output(plan->model, 0, i)->type);
        outputs[i] = aligned_alloc(64, (size + 64) / 64 * 64);
        if (outputs[i] == NULL) {
            goto done;
        }
    }
    if (!wpk_plan_bind(group, plan, given, outputs, data)) {
        goto done;
    }
    WPK_ORT_TRY(ort->CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &memory));
    for (size_t i = 0; i < group->input_count; i++) {
        const struct wpk_ort_tensor *end = &given[i];
        WPK_ORT_TRY(ort->CreateTensorWithDataAsOrtValue(memory, end->data, end->size, end->extent,
                                                        end->rank, end->element, &inputs[i]));
    }
    for (; turns < TURNS && (turns < MIN_TURNS || wpk_clock_ns() < began + TRY_NS); turns++) {
        uint64_t start = wpk_clock_ns();
        if (wpk_model_run(plan->idle, data, count, data + count, group->output_count) != WPK_OK) {
            goto done;
        }
        uint64_t middle = wpk_clock_ns();
        WPK_ORT_TRY(wpk_twin_compute(group->twin, (const struct ort_value *const *)inputs, wanted));
        times[0][turns] = (double)(middle - start);
        times[1][turns] = (double)(wpk_clock_ns() - middle);
    }
    trial->agrees = true;
    for (size_t i = 0; i < group->output_count; i++) {
        struct wpk_ort_tensor end;
        WPK_ORT_TRY(wpk_ort_tensor(ort, wanted[plan->of_output[i]], &end));
        trial->agrees =
            trial->agrees && agrees(wpk_model_output(plan->model, 0, i), outputs[i], &end);
    }
    qsort(times[0], (size_t)turns, sizeof(double), wpk_real_compare);
    qsort(times[1], (size_t)turns, sizeof(double), wpk_real_compare);
    trial->plan_ns = times[0][turns / 2];
    trial->twin_ns = times[1][turns / 2];
    trial->is_faster = trial->plan_ns < FASTER * trial->twin_ns;
    ran = true;
done:
    for (size_t i = 0; i < WPK_PLAN_ENDS_MAX; i++) {
        ort->ReleaseValue(inputs[i]);
        ort->ReleaseValue(wanted[i]);
        free(outputs[i]);
    }
    ort->ReleaseMemoryInfo(memory);
    ort->ReleaseStatus(status);
    return ran;
}
