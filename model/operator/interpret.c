/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/interpret.h"

#include "ir/reference/direct.h"
#include "model/operator/loop.h"
#include "model/operator/lower.h"
#include "model/operator/operator.h"
#include "schema/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of a run. */
struct run {
    const struct wpk_graph *graph;
    double **values;     /* [value_count]; owned where the value is computed by a node */
    int *last;           /* [value_count] the last node that reads it; node_count for outputs */
    int64_t iteration;   /* of that loop */
    bool direct;         /* by direct evaluation */
    struct wpk_rng *rng; /* of direct evaluation: moves what is rounded; NULL: nothing */
};

/* The constant as cells; its bytes have any alignment.   owns  caller frees */
static double *widen(const struct wpk_graph_value *value)
{
    int64_t count = wpk_graph_elements(value);
    void *aligned = malloc(value->size > 0 ? value->size : 1);
    double *out = calloc((size_t)count + 1, sizeof(double));

    if (aligned == NULL || out == NULL) {
        free(aligned);
        free(out);
        return NULL;
    }
    memcpy(aligned, value->data, value->size);
    wpk_convert_to_cells(value->dtype, aligned, count, out);
    free(aligned);
    return out;
}

static wpk_err interpret(const struct wpk_graph *graph, const struct wpk_lowered *lowered,
                         bool direct, double *const *values, double *out, struct wpk_diag *diag)
{
    static const struct wpk_reference_args none = {.cells = true};
    struct wpk_reference_args args = none;
    double *widened[WPK_OPERATOR_INPUTS_MAX] = {NULL};
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < lowered->operand_count; i++) {
        const struct wpk_graph_value *value = &graph->values[lowered->operand[i]];
        if (value->data != NULL) {
            widened[i] = widen(value);
            err = widened[i] != NULL ? WPK_OK : WPK_ENOMEM;
        }
        args.name[i] = value->name;
        args.tensor[i] = value->data != NULL ? widened[i] : values[lowered->operand[i]];
    }
    if (err == WPK_OK) {
        err = direct ? wpk_direct_run(&lowered->program, &args, 0, out, diag)
                     : wpk_reference_run(&lowered->program, &args, out, NULL, diag);
    }
    for (int i = 0; i < lowered->operand_count; i++) {
        free(widened[i]);
    }
    return err;
}

static wpk_err interpret_host(const struct wpk_graph *graph, int node,
                              const struct wpk_model_plan_host *host, double *const *values,
                              double *out, struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_graph_value *types[WPK_HOST_INPUTS_MAX] = {NULL};
    double *widened[WPK_HOST_INPUTS_MAX] = {NULL};
    const double *inputs[WPK_HOST_INPUTS_MAX] = {NULL};
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < WPK_HOST_INPUTS_MAX && i < n->input_count; i++) {
        const struct wpk_graph_value *value = wpk_graph_input(graph, n, i);
        types[i] = value;
        widened[i] = value != NULL && value->data != NULL ? widen(value) : NULL;
        inputs[i] = widened[i] != NULL ? widened[i] : value != NULL ? values[n->inputs[i]] : NULL;
        err = value != NULL && inputs[i] == NULL ? WPK_ENOMEM : WPK_OK;
    }
    err = err == WPK_OK ? wpk_graph_host_interpret(host, types, inputs, out, diag) : err;
    for (int i = 0; i < WPK_HOST_INPUTS_MAX; i++) {
        free(widened[i]);
    }
    return err;
}

static wpk_err interpret_node(const struct wpk_graph *graph, int node, bool direct,
                              double *const *values, double *out, struct wpk_diag *diag)
{
    struct wpk_model_plan_host host;
    const struct wpk_lowered *lowered = NULL;

    if (wpk_graph_host(graph, node, &host)) {
        return interpret_host(graph, node, &host, values, out, diag);
    }
    wpk_err err = wpk_graph_lower(graph, node, &lowered, diag);
    return err == WPK_OK ? interpret(graph, lowered, direct, values, out, diag) : err;
}

wpk_err wpk_graph_interpret_node(const struct wpk_graph *graph, int node, double *const *values,
                                 double *out, struct wpk_diag *diag)
{
    return interpret_node(graph, node, false, values, out, diag);
}

/* ---- the model */

static void find_last(struct run *run)
{
    for (int n = 0; n < run->graph->node_count; n++) {
        for (int i = 0; i < run->graph->nodes[n].input_count; i++) {
            if (run->graph->nodes[n].inputs[i] >= 0) {
                run->last[run->graph->nodes[n].inputs[i]] = n;
            }
        }
    }
    for (int i = 0; i < run->graph->output_count; i++) {
        run->last[run->graph->outputs[i]] = run->graph->node_count;
    }
}

static void release_after(struct run *run, int node)
{
    const struct wpk_graph_node *n = &run->graph->nodes[node];

    for (int i = 0; i < n->input_count; i++) {
        int value = n->inputs[i];
        if (value >= 0 && run->last[value] == node && run->graph->values[value].writer >= 0) {
            free(run->values[value]);
            run->values[value] = NULL;
        }
    }
    /* An output that nobody reads. */
    if (run->last[n->outputs[0]] < node) {
        free(run->values[n->outputs[0]]);
        run->values[n->outputs[0]] = NULL;
    }
}

/* ---- loops */

/* Copy what a Read, Enter or Result passes on. */
static wpk_err move(struct run *run, const struct wpk_graph_node *node, double *out)
{
    const struct wpk_graph *graph = run->graph;
    const struct wpk_graph_value *from = &graph->values[node->inputs[0]];
    int store = wpk_graph_loop_store(graph, node->inputs[0]);
    bool is_read = wpk_operator_find(node->op, node->domain)->kind == WPK_KIND_LOOP_READ;
    double *widened = from->data != NULL ? widen(from) : NULL;
    const double *x = widened != NULL ? widened : run->values[node->inputs[0]];
    int64_t offset = 0;

    if (is_read && store >= 0) {
        const struct wpk_graph_node *of = &graph->nodes[store];
        x = run->values[of->outputs[0]];
        offset = wpk_graph_loop_offset(graph, of) - wpk_graph_loop_step(graph, of);
    }
    if (is_read) {
        offset += wpk_graph_loop_offset(graph, node);
        offset += run->iteration * wpk_graph_loop_step(graph, node);
    }
    if (x != NULL) {
        memcpy(out, x + offset,
               (size_t)wpk_graph_elements(&graph->values[node->outputs[0]]) * sizeof(*out));
    }
    free(widened);
    return x != NULL ? WPK_OK : WPK_ENOMEM;
}

/* Make what the Store fills, with the state before iteration 0. */
static wpk_err begin_store(struct run *run, const struct wpk_graph_node *node)
{
    const struct wpk_graph_value *all = &run->graph->values[node->outputs[0]];
    int64_t step = wpk_graph_loop_step(run->graph, node);
    double *values = calloc((size_t)wpk_graph_elements(all), sizeof(*values));

    if (values != NULL) {
        memcpy(values + wpk_graph_loop_offset(run->graph, node) - step,
               run->values[node->inputs[1]], (size_t)(step < 0 ? -step : step) * sizeof(*values));
    }
    run->values[node->outputs[0]] = values;
    return values != NULL ? WPK_OK : WPK_ENOMEM;
}

static void store(struct run *run, const struct wpk_graph_node *node)
{
    int64_t step = wpk_graph_loop_step(run->graph, node);

    memcpy(run->values[node->outputs[0]] + wpk_graph_loop_offset(run->graph, node) +
               run->iteration * step,
           run->values[node->inputs[0]], (size_t)(step < 0 ? -step : step) * sizeof(double));
}

static bool is_store(const struct wpk_graph_node *node)
{
    return wpk_graph_is_boundary(node) &&
           wpk_operator_find(node->op, node->domain)->kind == WPK_KIND_LOOP_STORE;
}

static wpk_err run_node(struct run *run, int node, struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &run->graph->nodes[node];
    const struct wpk_graph_value *out = &run->graph->values[n->outputs[0]];

    if (out->data != NULL) {
        return WPK_OK; /* folded */
    }
    double *values = calloc((size_t)wpk_graph_elements(out), sizeof(double));
    if (values == NULL) {
        return WPK_ENOMEM;
    }
    free(run->values[n->outputs[0]]); /* an earlier iteration's */
    run->values[n->outputs[0]] = values;
    wpk_err err = wpk_graph_is_boundary(n)
                      ? move(run, n, values)
                      : interpret_node(run->graph, node, run->direct, run->values, values, diag);
    if (err == WPK_OK && run->rng != NULL) {
        /* Move each f32 by at most one unit in its last place, as another order of the same sums
         * could. Integers are exact by intent, mostly, and stay. */
        int64_t count = out->dtype == WPK_F32 ? wpk_graph_elements(out) : 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t way = wpk_rng_between(run->rng, -1, 1);
            if (isfinite(values[i]) && values[i] != trunc(values[i]) && way != 0) {
                values[i] = nextafterf((float)values[i], way > 0 ? INFINITY : -INFINITY);
            }
        }
    }
    if (err != WPK_OK && diag != NULL && diag->field[0] == '\0') {
        snprintf(diag->field, sizeof(diag->field), "node %s (%s)", n->name, n->op);
    }
    return err;
}

/* Run the nodes of a loop, each once an iteration. */
static wpk_err run_loop(struct run *run, int first, int last, struct wpk_diag *diag)
{
    const struct wpk_graph_node *nodes = run->graph->nodes;
    wpk_err err = WPK_OK;

    for (int n = first; err == WPK_OK && n <= last; n++) {
        err = is_store(&nodes[n]) ? begin_store(run, &nodes[n]) : WPK_OK;
    }
    for (run->iteration = 0; err == WPK_OK && run->iteration < nodes[first].times;
         run->iteration++) {
        for (int n = first; err == WPK_OK && n <= last; n++) {
            if (is_store(&nodes[n])) {
                store(run, &nodes[n]);
            } else {
                err = run_node(run, n, diag);
            }
        }
    }
    for (int n = first; n <= last; n++) {
        release_after(run, n);
    }
    return err;
}

static wpk_err take_outputs(struct run *run, double *const *outputs)
{
    for (int i = 0; i < run->graph->output_count; i++) {
        const struct wpk_graph_value *value = &run->graph->values[run->graph->outputs[i]];
        double *widened = value->data != NULL ? widen(value) : NULL;
        const double *from = value->data != NULL ? widened : run->values[run->graph->outputs[i]];
        if (from == NULL) {
            return WPK_ENOMEM;
        }
        memcpy(outputs[i], from, (size_t)wpk_graph_elements(value) * sizeof(double));
        free(widened);
    }
    return WPK_OK;
}

static wpk_err run_model(struct run run, const double *const *inputs, double *const *outputs,
                         struct wpk_diag *diag)
{
    const struct wpk_graph *graph = run.graph;
    wpk_err err = WPK_OK;

    run.values = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*run.values)));
    run.last = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*run.last)));
    for (int i = 0; i < graph->value_count; i++) {
        run.last[i] = -1;
    }
    for (int i = 0; i < graph->input_count; i++) {
        run.values[graph->inputs[i]] = (double *)inputs[i]; /* read alone: it has no writer */
    }
    find_last(&run);
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        if (graph->nodes[n].loop > 0) {
            int last = wpk_graph_loop_end(graph, n);
            err = run_loop(&run, n, last, diag);
            n = last;
            continue;
        }
        err = run_node(&run, n, diag);
        if (err == WPK_OK) {
            release_after(&run, n);
        }
    }
    err = err == WPK_OK ? take_outputs(&run, outputs) : err;
    for (int i = 0; i < graph->value_count; i++) {
        if (graph->values[i].writer >= 0) {
            free(run.values[i]);
        }
    }
    free(run.values);
    free(run.last);
    return err;
}

wpk_err wpk_graph_interpret(const struct wpk_graph *graph, const double *const *inputs,
                            double *const *outputs, struct wpk_diag *diag)
{
    return run_model((struct run){.graph = graph}, inputs, outputs, diag);
}

wpk_err wpk_graph_interpret_direct(const struct wpk_graph *graph, struct wpk_rng *rng,
                                   const double *const *inputs, double *const *outputs,
                                   struct wpk_diag *diag)
{
    return run_model((struct run){.graph = graph, .direct = true, .rng = rng}, inputs, outputs,
                     diag);
}
