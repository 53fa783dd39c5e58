/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/lower.h"

#include "model/operator/operator.h"
#include "schema/convert.h"

#include <math.h>
#include <string.h>

/* The extents of input 0 as three: before the axis, the axis, and after it. */
static bool find_axis(const struct wpk_graph_value *x, int64_t axis,
                      struct wpk_model_plan_host *out)
{
    int at = 0;

    if (!x->is_shaped || wpk_operator_axis(axis, x->rank, &at, NULL) != WPK_OK) {
        return false;
    }
    out->before = 1;
    out->after = 1;
    out->extent = x->extent[at];
    for (int d = 0; d < x->rank; d++) {
        *(d < at ? &out->before : &out->after) *= d == at ? 1 : x->extent[d];
    }
    return true;
}

bool wpk_graph_host(const struct wpk_graph *graph, int node, struct wpk_model_plan_host *out)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_operator *op = wpk_operator_find(n->op, n->domain);
    const struct wpk_graph_value *x = wpk_graph_input(graph, n, 0);
    const struct wpk_graph_value *other = wpk_graph_input(graph, n, 1);
    int count = 0;

    *out = (struct wpk_model_plan_host){.op = WPK_MODEL_PLAN_SCATTER};
    if (op == NULL || x == NULL) {
        return false;
    }
    if (op->kind == WPK_KIND_SCATTER_ELEMENTS || op->kind == WPK_KIND_SCATTER_ND) {
        out->reduction = wpk_scatter_find(wpk_graph_text(n, "reduction", "none"));
        out->before = out->after = 1;
        out->extent = out->count = x->is_shaped ? wpk_graph_elements(x) : 0;
        out->axis = -1;
        return x->is_shaped && out->reduction != WPK_SCATTER_COUNT &&
               (op->kind == WPK_KIND_SCATTER_ND ||
                wpk_operator_axis_of(n, 0, x->rank, &out->axis, NULL) == WPK_OK);
    }
    if (op->kind == WPK_KIND_TOP_K) {
        out->op = n->part == 0 ? WPK_MODEL_PLAN_TOP_K : WPK_MODEL_PLAN_TOP_K_INDICES;
        out->is_smallest = wpk_graph_int(n, "largest", 1) == 0;
        out->count = wpk_graph_int(n, "k", 0);
        return (other == NULL
                    ? out->count > 0
                    : wpk_graph_integers(other, &out->count, 1, &count) == WPK_OK && count == 1) &&
               find_axis(x, wpk_graph_int(n, "axis", -1), out) && out->count >= 1 &&
               out->count <= out->extent;
    }
    if (op->kind == WPK_KIND_LOOP_ENTER && x->is_shaped) {
        int64_t elements = wpk_graph_elements(x);
        *out = (struct wpk_model_plan_host){.op = WPK_MODEL_PLAN_COPY,
                                            .before = 1,
                                            .extent = elements,
                                            .after = 1,
                                            .count = elements};
        return true;
    }
    if (op->kind == WPK_KIND_NON_ZERO && x->is_shaped && x->data == NULL) {
        const struct wpk_graph_value *y = &graph->values[n->outputs[0]];
        *out = (struct wpk_model_plan_host){.op = WPK_MODEL_PLAN_NON_ZERO,
                                            .before = 1,
                                            .extent = wpk_graph_elements(x),
                                            .after = 1,
                                            .count = y->extent[1]};
        return y->is_shaped;
    }
    return false;
}

/* The type that the interpreter's cells are of. */
static enum wpk_dtype cells_of(enum wpk_dtype dtype)
{
    return dtype == WPK_I64 ? WPK_I64 : WPK_F64;
}

static wpk_err scatter(const struct wpk_model_plan_host *host,
                       const struct wpk_graph_value *const *types, const double *const *inputs,
                       double *out, struct wpk_diag *diag)
{
    struct wpk_scatter s = {.axis = host->axis,
                            .reduction = host->reduction,
                            .dtype = cells_of(types[0]->dtype),
                            .indices_dtype = cells_of(types[1]->dtype),
                            .rank = types[0]->rank,
                            .indices_rank = types[1]->rank};

    memcpy(s.extent, types[0]->extent, sizeof(s.extent));
    memcpy(s.indices_extent, types[1]->extent, sizeof(s.indices_extent));
    wpk_err err = wpk_scatter_run(&s, inputs[0], inputs[1], inputs[2], out, diag);
    for (int64_t i = 0; err == WPK_OK && types[0]->dtype == WPK_I32 && i < host->count; i++) {
        out[i] = (double)(int32_t)wpk_convert_int64(out[i]); /* wraps */
    }
    return err;
}

/* 1, 0 or -1: a is larger than b, equal to it, or smaller. NaN is larger than every number. */
static int compare(enum wpk_dtype dtype, double a, double b)
{
    if (dtype == WPK_I64) {
        int64_t x = wpk_cell_integer(a), y = wpk_cell_integer(b);
        return (x > y) - (x < y);
    }
    return isnan(a) || isnan(b) ? (int)isnan(a) - (int)isnan(b) : (a > b) - (a < b);
}

static void top_k(const struct wpk_model_plan_host *host, enum wpk_dtype dtype, const double *x,
                  double *out)
{
    for (int64_t i = 0; i < host->extent; i++) {
        /* The number of elements of the line that stand before element i: larger ones, and equal
         * ones of smaller index. */
        int64_t rank = 0;
        for (int64_t j = 0; j < host->extent; j++) {
            int order = compare(dtype, x[j * host->after], x[i * host->after]);
            rank += order == 0 ? j < i : (order > 0) != host->is_smallest;
        }
        if (rank < host->count) {
            out[rank * host->after] =
                host->op == WPK_MODEL_PLAN_TOP_K ? x[i * host->after] : wpk_cell_of(i);
        }
    }
}

static wpk_err non_zero(const struct wpk_model_plan_host *host, const struct wpk_graph_value *type,
                        const double *x, double *out, struct wpk_diag *diag)
{
    int64_t found = 0;

    for (int64_t i = 0; i < host->extent; i++) {
        int64_t rest = i;
        bool is_zero = wpk_cell_number(type->dtype, x[i]) == 0;
        for (int d = type->rank - 1; d >= 0 && !is_zero && found < host->count; d--) {
            out[d * host->count + found] = wpk_cell_of(rest % type->extent[d]);
            rest /= type->extent[d];
        }
        found += !is_zero;
    }
    if (found != host->count) {
        return wpk_fail(diag, WPK_ERANGE, "%lld elements are not 0, and --shape says %lld",
                        (long long)found, (long long)host->count);
    }
    return WPK_OK;
}

wpk_err wpk_graph_host_interpret(const struct wpk_model_plan_host *host,
                                 const struct wpk_graph_value *const *types,
                                 const double *const *inputs, double *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *type = types[0];
    const double *x = inputs[0];

    if (host->op == WPK_MODEL_PLAN_SCATTER) {
        return scatter(host, types, inputs, out, diag);
    }
    if (host->op == WPK_MODEL_PLAN_COPY) {
        memcpy(out, x, (size_t)host->count * sizeof(double));
        return WPK_OK;
    }
    if (host->op == WPK_MODEL_PLAN_NON_ZERO) {
        return non_zero(host, type, x, out, diag);
    }
    for (int64_t b = 0; b < host->before; b++) {
        for (int64_t a = 0; a < host->after; a++) {
            top_k(host, type->dtype, x + b * host->extent * host->after + a,
                  out + b * host->count * host->after + a);
        }
    }
    return WPK_OK;
}
