/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/check_plan.h"

#include "common/rng.h"
#include "model/operator/interpret.h"
#include "schema/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 1
#define DIRECT_RUNS 4       /* of direct evaluation, moved by single units in the last place, */
#define OWN_ERRORS 4        /* times whose largest error a plan may have, */
#define OWN_ERRORS_MAX 1e-2 /* as far as this; beyond it an index or a comparison has flipped */
/* The same where data is quantized: a value between two steps becomes either, and later layers see
 * it. */
#define OWN_ERRORS_QUANTIZED_MAX 0.1

/* A model's tensors as cells (schema/convert.h). */
struct evaluation {
    const struct wpk_graph *graph;
    double **inputs;  /* owned, as its rows; [graph->input_count][elements] */
    double **wanted;  /* likewise; [graph->output_count] of the interpreter in f64 */
    double **outputs; /* likewise; of the plan */
    double *allowed;  /* owned; [graph->output_count] differences that outputs may have */
    bool has_direct;  /* direct evaluation was asked for them */
};

static void free_rows(double **rows, int count)
{
    for (int i = 0; rows != NULL && i < count; i++) {
        free(rows[i]);
    }
    free(rows);
}

static double **new_rows(const struct wpk_graph *graph, const int *values, int count)
{
    double **rows = calloc((size_t)count + 1, sizeof(*rows));

    for (int i = 0; rows != NULL && i < count; i++) {
        rows[i] = calloc((size_t)wpk_graph_elements(&graph->values[values[i]]) + 1, sizeof(double));
        if (rows[i] == NULL) {
            free_rows(rows, count);
            return NULL;
        }
    }
    return rows;
}

/* Take tensors as cells. False: they are not these values of the graph. */
static bool take(const struct wpk_graph *graph, const int *values, int count,
                 const struct wpk_tensor_data *data, double **rows)
{
    for (int i = 0; i < count; i++) {
        const struct wpk_graph_value *value = &graph->values[values[i]];
        int64_t elements = wpk_graph_elements(value);
        if (strcmp(value->name, data[i].name) != 0 ||
            (size_t)elements * wpk_dtype_size(value->dtype) != data[i].size) {
            return false;
        }
        wpk_convert_to_cells(value->dtype, data[i].data, elements, rows[i]);
    }
    return true;
}

/* The largest difference of two outputs as a part of the largest finite element of `wanted`. */
static double differ(const struct wpk_graph_value *value, const double *wanted, const double *found)
{
    int64_t count = wpk_graph_elements(value);
    enum wpk_dtype dtype = value->dtype;
    double largest = 0;
    double difference = 0;

    for (int64_t i = 0; i < count; i++) {
        double a = wpk_cell_number(dtype, found[i]);
        double b = wpk_cell_number(dtype, wanted[i]);
        b = dtype == WPK_F32 ? (double)(float)b : b; /* beyond the type it is infinite */
        bool same = memcmp(&found[i], &wanted[i], sizeof(double)) == 0 || (isnan(a) && isnan(b)) ||
                    (isinf(a) && a == b);
        largest = isfinite(b) ? fmax(largest, fabs(b)) : largest;
        double apart = dtype == WPK_I64 ? fmax(fabs(a - b), 1) : fabs(a - b);
        difference = same || apart == 0 ? difference
                     : isfinite(apart)  ? fmax(difference, apart)
                                        : INFINITY;
    }
    return difference > 0 && largest > 0 ? difference / largest : difference;
}

/* True if a node computes narrow values, as quantizers do. */
static bool quantizes(const struct wpk_graph *graph)
{
    bool any = false;

    for (int v = 0; v < graph->value_count; v++) {
        enum wpk_dtype dtype = graph->values[v].dtype;
        any =
            any || (graph->values[v].writer >= 0 && wpk_dtype_size(dtype) < 4 && dtype != WPK_BOOL);
    }
    return any;
}

/* Find the difference that each output may have: at least WPK_VERIFY_TOLERANCE. f32 does not tell
 * apart logarithms of values that are nearly 0, so direct evaluation is measured, too. The largest
 * of a few runs counts: one may be exact by luck where the output depends on a single element. */
static wpk_err find_allowed(struct evaluation *e, struct wpk_diag *diag)
{
    const struct wpk_graph *graph = e->graph;
    double **direct = new_rows(graph, graph->outputs, graph->output_count);
    wpk_err err = direct != NULL ? WPK_OK : WPK_ENOMEM;
    double most = quantizes(graph) ? OWN_ERRORS_QUANTIZED_MAX : OWN_ERRORS_MAX;
    struct wpk_rng rng;

    e->has_direct = true;
    wpk_rng_seed(&rng, SEED);
    for (int run = 0; err == WPK_OK && run < DIRECT_RUNS; run++) {
        err =
            wpk_graph_interpret_direct(graph, &rng, (const double *const *)e->inputs, direct, diag);
        for (int i = 0; err == WPK_OK && i < graph->output_count; i++) {
            double own = differ(&graph->values[graph->outputs[i]], e->wanted[i], direct[i]);
            e->allowed[i] =
                isfinite(own) ? fmax(e->allowed[i], fmin(OWN_ERRORS * own, most)) : e->allowed[i];
        }
    }
    free_rows(direct, graph->output_count);
    return err;
}

static wpk_err compare(struct evaluation *e, double *differences, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < e->graph->output_count; i++) {
        const struct wpk_graph_value *value = &e->graph->values[e->graph->outputs[i]];
        differences[i] = differ(value, e->wanted[i], e->outputs[i]);
        if (!(differences[i] <= e->allowed[i]) && !e->has_direct) {
            err = find_allowed(e, diag);
        }
        if (err == WPK_OK && !(differences[i] <= e->allowed[i])) {
            err = wpk_fail(diag, WPK_EMISMATCH,
                           "output %s differs from the model's by %.1e of its largest element; "
                           "%.0e is allowed",
                           value->name, differences[i], e->allowed[i]);
        }
    }
    return err;
}

wpk_err wpk_verify_plan(const struct wpk_graph *graph, const struct wpk_plan_call *call,
                        double *differences, struct wpk_diag *diag)
{
    struct evaluation e = {.graph = graph,
                           .inputs = new_rows(graph, graph->inputs, graph->input_count),
                           .wanted = new_rows(graph, graph->outputs, graph->output_count),
                           .outputs = new_rows(graph, graph->outputs, graph->output_count),
                           .allowed = calloc((size_t)graph->output_count + 1, sizeof(double))};
    bool whole = e.inputs != NULL && e.wanted != NULL && e.outputs != NULL && e.allowed != NULL;

    for (int i = 0; whole && i < graph->output_count; i++) {
        e.allowed[i] = WPK_VERIFY_TOLERANCE;
    }
    wpk_err err = whole ? WPK_OK : WPK_ENOMEM;
    if (whole && ((size_t)graph->input_count != call->input_count ||
                  (size_t)graph->output_count != call->output_count ||
                  !take(graph, graph->inputs, graph->input_count, call->inputs, e.inputs) ||
                  !take(graph, graph->outputs, graph->output_count, call->outputs, e.outputs))) {
        err = wpk_fail(diag, WPK_EMISMATCH,
                       "--verify: the plan is of another model, or of other shapes");
    }
    if (err == WPK_OK) {
        err = wpk_graph_interpret(graph, (const double *const *)e.inputs, e.wanted, diag);
    }
    err = err == WPK_OK ? compare(&e, differences, diag) : err;
    free_rows(e.inputs, graph->input_count);
    free_rows(e.wanted, graph->output_count);
    free(e.allowed);
    free_rows(e.outputs, graph->output_count);
    return err;
}

/* ---- the model of a file */

static bool is_of_input(const struct wpk_plan_call *call, const char *shape)
{
    bool is_of = false;

    for (size_t i = 0; i < call->input_count; i++) {
        is_of = is_of || wpk_model_shape_is_of(shape, call->inputs[i].name);
    }
    return is_of;
}

wpk_err wpk_verify_plan_file(const char *path, const struct wpk_model_fixing *fixing,
                             const struct wpk_plan_call *call, double *differences,
                             struct wpk_buf *problems, struct wpk_diag *diag)
{
    struct wpk_model_fixing here = *fixing;
    here.shapes.count = 0;
    struct wpk_buf text[WPK_ARGS_LIST_MAX] = {{0}};
    struct wpk_graph graph = {0};

    for (size_t i = 0; i < call->input_count && i < WPK_ARGS_LIST_MAX; i++) {
        const struct wpk_argument *input = wpk_model_input(call->model, call->shape, i);
        wpk_buf_printf(&text[i], "%s=", input->name);
        wpk_model_print_extents(input->type.extent, input->type.rank, &text[i]);
        here.shapes.items[here.shapes.count++] = wpk_buf_text(&text[i]);
    }
    for (int i = 0; i < fixing->shapes.count && here.shapes.count < WPK_ARGS_LIST_MAX; i++) {
        if (!is_of_input(call, fixing->shapes.items[i])) {
            here.shapes.items[here.shapes.count++] = fixing->shapes.items[i];
        }
    }
    wpk_err err = wpk_model_file_read(path, &here, &graph, problems, diag);
    err = err == WPK_OK ? wpk_verify_plan(&graph, call, differences, diag) : err;
    for (int i = 0; i < WPK_ARGS_LIST_MAX; i++) {
        wpk_buf_fini(&text[i]);
    }
    wpk_graph_fini(&graph);
    return err;
}
