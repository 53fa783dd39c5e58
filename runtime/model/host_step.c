/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/model.h"

#include <string.h>

static const struct wpk_tensor_type *type_of(const struct wpk_model_plan_shape *plan,
                                             const struct wpk_model_plan_step *step, int argument)
{
    return &plan->values[step->arguments[argument].value].type;
}

/* True if the tensor has before * middle * after elements. */
static bool has_elements(const struct wpk_tensor_type *type, const struct wpk_model_plan_host *host,
                         int64_t middle)
{
    int64_t count = 0;

    return !__builtin_mul_overflow(host->before, middle, &count) &&
           !__builtin_mul_overflow(count, host->after, &count) &&
           (uint64_t)count == wpk_tensor_type_bytes(type) / wpk_dtype_size(type->dtype);
}

/* A scatter's parameters, with the types and shapes of its first two arguments. */
static struct wpk_scatter scatter_of(const struct wpk_model_plan_shape *plan,
                                     const struct wpk_model_plan_step *step)
{
    const struct wpk_tensor_type *x = type_of(plan, step, 0), *indices = type_of(plan, step, 1);
    struct wpk_scatter out = {.axis = step->host.axis,
                              .reduction = step->host.reduction,
                              .dtype = x->dtype,
                              .indices_dtype = indices->dtype,
                              .rank = x->rank,
                              .indices_rank = indices->rank};

    memcpy(out.extent, x->extent, sizeof(out.extent));
    memcpy(out.indices_extent, indices->extent, sizeof(out.indices_extent));
    return out;
}

static bool scatter_fits(const struct wpk_model_plan_shape *plan,
                         const struct wpk_model_plan_step *step)
{
    const struct wpk_tensor_type *x = type_of(plan, step, 0), *updates = type_of(plan, step, 2);
    enum wpk_dtype indices = type_of(plan, step, 1)->dtype;
    const struct wpk_scatter scatter = scatter_of(plan, step);
    int64_t count = wpk_scatter_updates(&scatter);

    return (indices == WPK_I32 || indices == WPK_I64) && updates->dtype == x->dtype &&
           (x->dtype == WPK_F32 || x->dtype == WPK_F64 || x->dtype == WPK_I32 ||
            x->dtype == WPK_I64 || x->dtype == WPK_BOOL) &&
           count >= 0 &&
           (uint64_t)count == wpk_tensor_type_bytes(updates) / wpk_dtype_size(x->dtype) &&
           wpk_tensor_type_equal(x, type_of(plan, step, 3));
}

wpk_err wpk_host_step_check(const struct wpk_model_plan_shape *plan,
                            const struct wpk_model_plan_step *step, struct wpk_diag *diag)
{
    const struct wpk_model_plan_host *host = &step->host;
    bool is_scatter = host->op == WPK_MODEL_PLAN_SCATTER;
    bool is_non_zero = host->op == WPK_MODEL_PLAN_NON_ZERO;
    bool writes_indices = is_non_zero || host->op == WPK_MODEL_PLAN_TOP_K_INDICES;
    int last = is_scatter ? 3 : 1;
    bool fits = step->argument_count == last + 1;

    if (fits) {
        const struct wpk_tensor_type *x = type_of(plan, step, 0);
        const struct wpk_tensor_type *out = type_of(plan, step, last);
        enum wpk_model_plan_place place = plan->values[step->arguments[last].value].place;
        fits = has_elements(x, host, host->extent) &&
               (is_non_zero ? host->before == 1 && host->after == 1 && out->rank == 2 &&
                                  out->extent[0] == x->rank && out->extent[1] == host->count
                            : has_elements(out, host, host->count)) &&
               (place == WPK_MODEL_PLAN_ARENA || place == WPK_MODEL_PLAN_OUTPUT) &&
               out->dtype == (writes_indices ? WPK_I64 : x->dtype) && host->count <= host->extent &&
               (!is_scatter || scatter_fits(plan, step));
    }
    if (!fits) {
        wpk_diag_set(diag, "node %s: the plan has no fitting values for it", step->node);
    }
    return fits ? WPK_OK : WPK_ECORRUPT;
}

/* An element as a double; of an i64 the nearest one. */
static double load(enum wpk_dtype dtype, const void *x, int64_t i)
{
    switch (dtype) {
    case WPK_F64:
        return ((const double *)x)[i];
    case WPK_I32:
        return ((const int32_t *)x)[i];
    case WPK_I64:
        return (double)((const int64_t *)x)[i];
    case WPK_BOOL:
        return ((const uint8_t *)x)[i];
    default:
        return (double)((const float *)x)[i];
    }
}

/* 1, 0 or -1: element i of a line is larger than element j, equal to it, or smaller. NaN is larger
 * than every number. */
static int compare(enum wpk_dtype dtype, const void *x, int64_t i, int64_t j)
{
    if (dtype == WPK_I64) {
        int64_t a = ((const int64_t *)x)[i], b = ((const int64_t *)x)[j];
        return (a > b) - (a < b);
    }
    double a = load(dtype, x, i), b = load(dtype, x, j);
    return a != a || b != b ? (a != a) - (b != b) : (a > b) - (a < b);
}

/* Elements stand in order of value, then of index. */
static bool comes_before(const struct wpk_model_plan_host *host, enum wpk_dtype dtype,
                         const void *x, int64_t i, int64_t j)
{
    int order = compare(dtype, x, i * host->after, j * host->after);

    return order == 0 ? i < j : (order > 0) != host->is_smallest;
}

/* Find one element after the other, by looking through the line for the next in order. */
static void top_k(const struct wpk_model_plan_host *host, enum wpk_dtype dtype, const char *x,
                  char *out)
{
    size_t size = wpk_dtype_size(dtype);
    int64_t last = -1;

    for (int64_t k = 0; k < host->count; k++) {
        int64_t at = -1;
        for (int64_t i = 0; i < host->extent; i++) {
            bool is_left = last < 0 || comes_before(host, dtype, x, last, i);
            if (is_left && (at < 0 || comes_before(host, dtype, x, i, at))) {
                at = i;
            }
        }
        last = at;
        if (host->op == WPK_MODEL_PLAN_TOP_K_INDICES) {
            ((int64_t *)(void *)out)[k * host->after] = at;
        } else {
            memcpy(out + (size_t)(k * host->after) * size, x + (size_t)(at * host->after) * size,
                   size);
        }
    }
}

/* Returns how many elements are not 0; the plan is made for `count`, and only those are written. */
static int64_t non_zero(const struct wpk_model_plan_host *host, const struct wpk_tensor_type *type,
                        const void *x, int64_t *out)
{
    int64_t found = 0;

    for (int64_t i = 0; i < host->extent; i++) {
        int64_t rest = i;
        if (load(type->dtype, x, i) == 0) {
            continue;
        }
        for (int d = type->rank - 1; d >= 0 && found < host->count; d--) {
            out[d * host->count + found] = rest % type->extent[d];
            rest /= type->extent[d];
        }
        found++;
    }
    return found;
}

static wpk_err run_non_zero(const struct wpk_model_plan_step *step,
                            const struct wpk_tensor_type *type, void *const *data,
                            struct wpk_diag *diag)
{
    int64_t found = non_zero(&step->host, type, data[0], data[1]);

    if (found != step->host.count) {
        return wpk_fail(diag, WPK_ERANGE,
                        "node %s: %lld elements are not 0; the plan was made for %lld", step->node,
                        (long long)found, (long long)step->host.count);
    }
    return WPK_OK;
}

wpk_err wpk_host_step_run(const struct wpk_model_plan_shape *plan,
                          const struct wpk_model_plan_step *step, void *const *data,
                          struct wpk_diag *diag)
{
    const struct wpk_model_plan_host *host = &step->host;
    enum wpk_dtype dtype = type_of(plan, step, 0)->dtype;
    size_t size = wpk_dtype_size(dtype);

    if (host->op == WPK_MODEL_PLAN_SCATTER) {
        const struct wpk_scatter scatter = scatter_of(plan, step);
        struct wpk_diag why = {.text = ""};
        wpk_err err = wpk_scatter_run(&scatter, data[0], data[1], data[2], data[3], &why);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "node %s: %s", step->node, why.text);
        }
        return err;
    }
    if (host->op == WPK_MODEL_PLAN_NON_ZERO) {
        return run_non_zero(step, type_of(plan, step, 0), data, diag);
    }
    if (host->op == WPK_MODEL_PLAN_COPY) {
        memmove(data[1], data[0], (size_t)host->count * size);
        return WPK_OK;
    }
    size_t out_size = wpk_dtype_size(type_of(plan, step, 1)->dtype);
    for (int64_t b = 0; b < host->before; b++) {
        for (int64_t a = 0; a < host->after; a++) {
            top_k(host, dtype,
                  (const char *)data[0] + (size_t)(b * host->extent * host->after + a) * size,
                  (char *)data[1] + (size_t)(b * host->count * host->after + a) * out_size);
        }
    }
    return WPK_OK;
}
