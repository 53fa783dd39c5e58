/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "client/tune_service.h"
#include "common/format.h"
#include "common/json.h"
#include "common/machine.h"
#include "ir/cost.h"
#include "ir/instruction/instruction.h"
#include "model/operator/loop.h"
#include "model/operator/lower.h"
#include "model/operator/shape.h"
#include "model/plan/model_file.h"
#include "model/plan/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_CACHE 3      /* its level */
#define OPERATORS_MAX 128 /* names; the table of operators has fewer */

/* All nodes of one operator. */
struct tally {
    const char *op;
    int count;
    double flops;
};

struct survey {
    const struct wpk_graph *graph;
    struct tally tally[OPERATORS_MAX];
    int tally_count;
    struct tally all;
    double constant_bytes;
    struct wpk_tune_model model; /* as `wpkctl tune` sees it */
    int step_count;
    int64_t call_count;               /* of steps, in one run */
    struct wpk_estimate_sum expected; /* roofline_ns 0: not estimated */
    struct wpk_buf equations;         /* of --expand */
    struct wpk_json_writer *writer;   /* NULL: print for people */
};

static int compare(const void *a, const void *b)
{
    const struct tally *x = a;
    const struct tally *y = b;

    if (x->flops != y->flops) {
        return x->flops < y->flops ? 1 : -1;
    }
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->op, y->op);
}

static void add(struct survey *survey, const char *op, double flops)
{
    int i = 0;

    while (i < survey->tally_count && strcmp(survey->tally[i].op, op) != 0) {
        i++;
    }
    if (i == survey->tally_count) {
        WPK_ASSERT(survey->tally_count < OPERATORS_MAX);
        survey->tally[survey->tally_count++] = (struct tally){.op = op};
    }
    survey->tally[i].count++;
    survey->tally[i].flops += flops;
    survey->all.count++;
    survey->all.flops += flops;
}

static void expand(struct survey *survey, const struct wpk_graph_node *node,
                   const struct wpk_lowered *lowered)
{
    struct wpk_buf *out = &survey->equations;

    wpk_buf_printf(out, "%s (%s)\n", node->name, node->op);
    for (int i = 0; i < lowered->operand_count; i++) {
        const struct wpk_graph_value *value = &survey->graph->values[lowered->operand[i]];
        wpk_buf_printf(out, "  %s ", lowered->program.tensors[i].name);
        wpk_model_print_type(value, out);
        wpk_buf_printf(out, "%s %s\n", value->data != NULL ? " constant" : "", value->name);
    }
    wpk_buf_append_text(out, "  Y ");
    wpk_model_print_type(&survey->graph->values[node->outputs[0]], out);
    wpk_buf_printf(out, " %s\n  %s\n", survey->graph->values[node->outputs[0]].name,
                   wpk_buf_text(&lowered->text));
}

/* A node of the model; folded nodes are none. */
static wpk_err look(struct survey *survey, int index, bool expanded, struct wpk_diag *diag)
{
    const struct wpk_graph_node *node = &survey->graph->nodes[index];
    const struct wpk_lowered *lowered = NULL;
    struct wpk_cost cost;
    struct wpk_model_plan_host host;

    if (survey->graph->values[node->outputs[0]].data != NULL || wpk_graph_is_boundary(node)) {
        return WPK_OK;
    }
    if (wpk_graph_host(survey->graph, index, &host)) {
        add(survey, node->op, 0);
        return WPK_OK;
    }
    wpk_err err = wpk_graph_lower(survey->graph, index, &lowered, diag);
    if (err == WPK_OK) {
        wpk_cost(&lowered->program, &cost);
        add(survey, node->op, cost.flops * (node->loop > 0 ? (double)node->times : 1));
        if (expanded) {
            expand(survey, node, lowered);
        }
    } else if (diag != NULL && diag->field[0] == '\0') {
        snprintf(diag->field, sizeof(diag->field), "node %s (%s)", node->name, node->op);
    }
    return err;
}

static const struct wpk_graph_regions *regions_of(const struct survey *survey)
{
    return &survey->model.shapes[0].regions;
}

/* Cut the model into regions, as `wpkctl tune` does; count the plan's steps. */
static wpk_err find_steps(struct survey *survey, const char *path,
                          const struct wpk_check_model *options, struct wpk_diag *diag)
{
    const struct wpk_graph_regions *regions = regions_of(survey);
    struct wpk_buf problems = {0}; /* they were printed before */

    wpk_err err = wpk_tune_model_read(path, &options->fixing, &survey->model, &problems, diag);
    wpk_buf_fini(&problems);
    for (int r = 0; r < regions->count; r++) {
        survey->call_count += regions->list[r].count;
    }
    for (int n = 0; n < regions->use_count; n++) {
        survey->step_count += regions->uses[n].is_host || regions->uses[n].region >= 0;
        survey->call_count += regions->uses[n].is_host;
    }
    return err;
}

/* Share what a host ran without a plan out among the operators, by their rooflines. */
static void share_out(const struct survey *survey, const struct wpk_check_model *options,
                      const struct wpk_tune_machine *machine, struct wpk_job *job)
{
    double sum = 0;

    for (int k = 0; k < job->op_count; k++) {
        const struct wpk_tune_kernel *kernel = &survey->model.kernels[k];
        double ns = wpk_cost_roofline_ns(&kernel->cost, kernel->cost.bytes_min, &machine->roofline);
        job->ops[k].missed_calls = kernel->calls * options->missed_calls;
        job->ops[k].missed_ns = (int64_t)((double)kernel->calls * ns) + 1;
        sum += (double)job->ops[k].missed_ns;
    }
    for (int k = 0; k < job->op_count; k++) {
        double share = (double)job->ops[k].missed_ns / sum;
        job->ops[k].missed_ns = (int64_t)(share * (double)options->missed_ns);
    }
}

/* Estimate the time of a run with the first set of shapes: on this machine, or where the service's
 * workers are. A model without operators takes none. */
static wpk_err estimate(struct survey *survey, const struct wpk_command_context *context,
                        const struct wpk_check_model *options, struct wpk_diag *diag)
{
    const struct wpk_tune_class wanted = {.accuracy = WPK_ACCURACY_STANDARD};
    struct wpk_session session = {0};
    struct wpk_job job = {0};
    struct wpk_peak peak = {0};
    int64_t cache_bytes = wpk_caches_size(0, LAST_CACHE);
    wpk_err err = WPK_OK;

    if (survey->model.kernel_count == 0 || survey->model.kernel_count > WPK_JOB_OPS_MAX ||
        options->no_peak || wpk_peak_measure(&peak) != WPK_OK) {
        return WPK_OK;
    }
    wpk_job_init(&job);
    err = wpk_tune_model_job(&survey->model, &wanted, cache_bytes, &job, diag);
    if (err == WPK_OK && options->history != NULL) {
        err = wpk_session_open(context, options->history, &session, diag);
    }
    if (err == WPK_OK) {
        const struct wpk_tune_machine machine = {.roofline = {peak.flops_per_s, peak.bytes_per_s},
                                                 .cache_bytes = cache_bytes};
        struct wpk_tune_service service = {.session = &session, .quiet = true};
        struct wpk_tune_source source;
        share_out(survey, options, &machine, &job);
        wpk_tune_service_source(&service, &source);
        err = wpk_estimate_model(options->history != NULL ? &source : NULL, &job, &machine,
                                 &survey->model, diag);
        if (err == WPK_EINVAL) {
            fputs("wpkctl: the service knows several devices; times are from the roofline of this"
                  " machine\n",
                  stderr);
            err = WPK_OK;
        }
    }
    if (err == WPK_OK) {
        wpk_estimate_sum(&survey->model, 0, &survey->expected);
    }
    wpk_session_close(&session);
    wpk_job_fini(&job);
    return err;
}

static void put_values(const struct survey *survey, const char *key, const int *list, int count)
{
    wpk_json_begin_array(survey->writer, key);
    for (int i = 0; i < count; i++) {
        const struct wpk_graph_value *value = &survey->graph->values[list[i]];
        struct wpk_buf type = {0};
        wpk_model_print_type(value, &type);
        wpk_json_begin_object(survey->writer, NULL);
        wpk_json_put_text(survey->writer, "name", value->name);
        wpk_json_put_text(survey->writer, "type", wpk_buf_text(&type));
        wpk_json_end(survey->writer);
        wpk_buf_fini(&type);
    }
    wpk_json_end(survey->writer);
}

static void put_regions(const struct survey *survey)
{
    struct wpk_json_writer *w = survey->writer;

    wpk_json_put_int(w, "steps", survey->step_count);
    wpk_json_put_int(w, "calls", survey->call_count);
    wpk_json_begin_array(w, "regions");
    for (int r = 0; r < regions_of(survey)->count; r++) {
        const struct wpk_graph_region *region = &regions_of(survey)->list[r];
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", region->name);
        wpk_json_put_text(w, "fingerprint", region->fingerprint.exact);
        wpk_json_put_int(w, "calls", region->count);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static wpk_err print_json(const struct survey *survey)
{
    const struct wpk_graph *graph = survey->graph;
    struct wpk_json_writer *w = survey->writer;

    put_values(survey, "inputs", graph->inputs, graph->input_count);
    put_values(survey, "outputs", graph->outputs, graph->output_count);
    wpk_json_begin_array(w, "operators");
    for (int i = 0; i < survey->tally_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", survey->tally[i].op);
        wpk_json_put_int(w, "nodes", survey->tally[i].count);
        wpk_json_put_real(w, "flops", survey->tally[i].flops);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_put_int(w, "nodes", survey->all.count);
    wpk_json_put_real(w, "flops", survey->all.flops);
    wpk_json_put_real(w, "constants_bytes", survey->constant_bytes);
    put_regions(survey);
    if (survey->expected.roofline_ns > 0) {
        wpk_json_put_real(w, "roofline_ns", survey->expected.roofline_ns);
        wpk_json_put_real(w, "expected_ns", survey->expected.ns);
    }
    if (survey->equations.size > 0) {
        wpk_json_put_text(w, "equations", wpk_buf_text(&survey->equations));
    } else {
        wpk_json_put_null(w, "equations");
    }
    return wpk_json_puts(w, true);
}

static void print_values(const struct survey *survey, const char *what, const int *list, int count)
{
    for (int i = 0; i < count; i++) {
        const struct wpk_graph_value *value = &survey->graph->values[list[i]];
        struct wpk_buf type = {0};
        wpk_model_print_type(value, &type);
        printf("%-8s %s %s\n", what, value->name, wpk_buf_text(&type));
        wpk_buf_fini(&type);
    }
}

static void print_expected(const struct survey *survey)
{
    char roofline[WPK_FORMAT_SIZE], expected[WPK_FORMAT_SIZE];
    struct wpk_buf steps = {0};

    if (survey->expected.roofline_ns > 0) {
        wpk_format_ns((uint64_t)survey->expected.roofline_ns, roofline);
        wpk_format_ns((uint64_t)survey->expected.ns, expected);
        wpk_estimate_print_steps(&survey->expected, &steps);
        printf("roofline %s on one core; expected %s (steps: %s)\n", roofline, expected,
               wpk_buf_text(&steps));
    }
    wpk_buf_fini(&steps);
}

/* The kernels whose sums an instruction adds, by instruction. */
static void print_instructions(const struct survey *survey)
{
    for (int i = 0; i < wpk_instruction_count(); i++) {
        const struct wpk_instruction *instruction = wpk_instruction_at(i);
        char flags[WPK_CPU_FLAGS_TEXT_MAX];
        int count = 0;
        for (int k = 0; k < survey->model.kernel_count; k++) {
            count += survey->model.kernels[k].instruction == i;
        }
        if (count > 0) {
            wpk_cpu_flags_print(instruction->flags, flags);
            printf("%-8d %-24s on CPUs with %s\n", count, instruction->name, flags);
        }
    }
}

void wpk_print_weights(const struct wpk_graph *graph, FILE *out)
{
    if (graph->weights.count > 0) {
        fprintf(out, "weights of %d products are %s: %.1f dB of signal to noise\n",
                graph->weights.count,
                graph->weights.is_i4 ? "i4" : wpk_dtype_name(graph->weights.dtype),
                wpk_precision_loss(graph));
    }
}

static void print(const struct survey *survey)
{
    const struct wpk_graph *graph = survey->graph;
    char text[WPK_FORMAT_SIZE];

    print_values(survey, "input", graph->inputs, graph->input_count);
    print_values(survey, "output", graph->outputs, graph->output_count);
    for (int i = 0; i < survey->tally_count; i++) {
        wpk_format_count(survey->tally[i].flops, text);
        printf("%-8d %-24s %sFLOP\n", survey->tally[i].count, survey->tally[i].op, text);
    }
    wpk_format_count(survey->all.flops, text);
    printf("%-8d %-24s %sFLOP", survey->all.count, "nodes", text);
    wpk_format_count(survey->constant_bytes, text);
    printf(", %sB of constants, opset %lld\n", text, (long long)graph->opset);
    printf("%-8d %-24s %d different", survey->step_count, "steps", regions_of(survey)->count);
    if (survey->call_count > survey->step_count) {
        printf(", %lld calls in a run", (long long)survey->call_count);
    }
    putchar('\n');
    print_instructions(survey);
    wpk_print_weights(graph, stdout);
    print_expected(survey);
    fputs(wpk_buf_text(&survey->equations), stdout);
}

wpk_err wpk_check_model(const struct wpk_command_context *context, const char *path,
                        const struct wpk_check_model *options, struct wpk_diag *diag)
{
    struct wpk_graph graph;
    struct survey survey = {.graph = &graph, .tally_count = 0};
    struct wpk_buf problems = {0};

    wpk_err err = wpk_model_file_read(path, &options->fixing, &graph, &problems, diag);
    fputs(wpk_buf_text(&problems), stderr);
    wpk_buf_fini(&problems);
    for (int n = 0; err == WPK_OK && n < graph.node_count; n++) {
        err = look(&survey, n, options->expand, diag);
    }
    err = err == WPK_OK ? wpk_buf_status(&survey.equations) : err;
    if (err == WPK_OK) {
        survey.constant_bytes = (double)wpk_graph_constant_bytes(&graph);
        err = find_steps(&survey, path, options, diag);
    }
    err = err == WPK_OK ? estimate(&survey, context, options, diag) : err;
    if (err == WPK_OK) {
        qsort(survey.tally, (size_t)survey.tally_count, sizeof(survey.tally[0]), compare);
        if (options->json) {
            survey.writer = wpk_json_writer_new_object();
            err = print_json(&survey);
        } else {
            print(&survey);
        }
    } else if (diag != NULL && diag->file[0] == '\0' && diag->field[0] != '\0') {
        snprintf(diag->file, sizeof(diag->file), "%s", path);
    }
    wpk_buf_fini(&survey.equations);
    wpk_tune_model_fini(&survey.model);
    wpk_graph_fini(&graph);
    return err;
}
