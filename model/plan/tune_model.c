/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/tune_model.h"
#include "ir/instruction/instruction.h"

#include "model/region/region.h"
#include "model/rewrite/rewrite.h"
#include "runtime/kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_SIZE_MAX ((size_t)1 << 30)

/* All but the names of values that are apart. */
static void forget_shapes(struct wpk_tune_model *model)
{
    for (int s = 0; s < model->shape_count; s++) {
        wpk_assemble_shape_fini(&model->shapes[s]);
    }
    free(model->kernels);
    model->kernels = NULL;
    model->kernel_count = 0;
    model->shape_count = 0;
}

void wpk_tune_model_fini(struct wpk_tune_model *model)
{
    forget_shapes(model);
    for (int i = 0; i < model->apart_count; i++) {
        free(model->apart[i]);
    }
    free(model->apart);
    *model = (struct wpk_tune_model){.shape_count = 0};
}

static const struct wpk_graph_region *region_of(const struct wpk_tune_model *model, int kernel)
{
    const struct wpk_tune_kernel *k = &model->kernels[kernel];

    return &model->shapes[k->shape].regions.list[k->region];
}

/* ---- the job */

static void describe(const struct wpk_graph_region *region, const struct wpk_lowered *lowered,
                     struct wpk_tune_kernel *out)
{
    wpk_cost(&lowered->program, &out->cost);
    out->instruction = wpk_program_instruction(&lowered->program, WPK_CPU_FLAGS_ALL);
    out->calls = region->count;
    for (int t = 0; t < lowered->program.tensor_count; t++) {
        const struct wpk_tensor *tensor = &lowered->program.tensors[t];
        for (int d = 0; d < tensor->rank; d++) {
            out->is_placed =
                out->is_placed || tensor->pad_before[d] != 0 || tensor->pad_after[d] != 0;
        }
    }
}

/* Declare the tensors of a region in an operator.   shape  *has_constants: some are constants */
static wpk_err declare(const struct wpk_graph *graph, int output, const struct wpk_lowered *lowered,
                       struct wpk_job_op *op, bool *has_constants, struct wpk_diag *diag)
{
    if (lowered->operand_count >= WPK_JOB_TENSORS_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "an operator has at most %d tensors",
                        WPK_JOB_TENSORS_MAX);
    }
    op->tensors = WPK_DEMAND(calloc((size_t)lowered->operand_count + 1, sizeof(*op->tensors)));
    for (int i = 0; i <= lowered->operand_count; i++) {
        bool is_output = i == lowered->operand_count;
        const struct wpk_graph_value *value =
            &graph->values[is_output ? output : lowered->operand[i]];
        struct wpk_job_tensor *tensor = &op->tensors[op->tensor_count++];
        struct wpk_buf type = {0};
        wpk_model_print_type(value, &type);
        snprintf(tensor->name, sizeof(tensor->name), "%s",
                 is_output ? "Y" : lowered->program.tensors[i].name);
        snprintf(tensor->type, sizeof(tensor->type), "%s", wpk_buf_text(&type));
        bool is_cut = type.size >= sizeof(tensor->type);
        wpk_buf_fini(&type);
        if (is_cut) {
            return wpk_fail(diag, WPK_ERANGE, "the type of %s is longer than an operator's may be",
                            value->name);
        }
        tensor->constant = !is_output && value->data != NULL;
        *has_constants = *has_constants || tensor->constant;
    }
    return WPK_OK;
}

/* Make a region an operator.   owns  caller calls wpk_job_op_fini, after failures too */
static wpk_err make_op(const struct wpk_graph *graph, const struct wpk_graph_region *region,
                       const struct wpk_tune_class *wanted, bool is_cold, struct wpk_job_op *op,
                       struct wpk_tune_kernel *out, struct wpk_diag *diag)
{
    const struct wpk_graph_node *last = &graph->nodes[region->nodes[region->node_count - 1]];
    bool has_constants = false;
    struct wpk_lowered lowered;

    *op = (struct wpk_job_op){.layouts = WPK_LAYOUTS_FIXED,
                              .accuracy = wanted->accuracy,
                              .conditions = wanted->conditions};
    snprintf(op->name, sizeof(op->name), "%s", region->name);
    op->count = region->count < WPK_JOB_COUNT_MAX ? region->count : WPK_JOB_COUNT_MAX;
    wpk_err err = wpk_graph_fuse(graph, region->nodes, region->node_count, &lowered, diag);
    if (err == WPK_OK) {
        op->notation = WPK_DEMAND(strdup(wpk_buf_text(&lowered.text)));
        err = declare(graph, last->outputs[0], &lowered, op, &has_constants, diag);
        describe(region, &lowered, out);
    }
    if (!wanted->has_conditions) {
        op->conditions =
            is_cold && has_constants ? WPK_CONDITIONS_COLD_CONSTANTS : WPK_CONDITIONS_WARM;
    }
    wpk_lowered_fini(&lowered);
    return err;
}

/* Of the kernels of one equation and shape, one without borders is the base of the others. */
static void find_bases(struct wpk_tune_model *model)
{
    for (int k = 0; k < model->kernel_count; k++) {
        struct wpk_tune_kernel *kernel = &model->kernels[k];
        const struct wpk_fingerprint *mine = &region_of(model, k)->fingerprint;
        kernel->base = k;
        for (int i = 0; i < model->kernel_count && kernel->is_placed; i++) {
            const struct wpk_fingerprint *other = &region_of(model, i)->fingerprint;
            if (strcmp(mine->family, other->family) == 0 &&
                strcmp(mine->extents, other->extents) == 0 &&
                (!model->kernels[i].is_placed || i < kernel->base)) {
                kernel->base = i;
            }
            if (!model->kernels[kernel->base].is_placed) {
                break;
            }
        }
    }
}

/* The number of a kernel that computes the region; a new one, if no earlier shape needs it. */
static int find_kernel_of(struct wpk_tune_model *model, int shape, int region)
{
    struct wpk_graph_region *wanted = &model->shapes[shape].regions.list[region];
    char name[WPK_REGION_NAME_MAX];

    for (int k = 0; k < model->kernel_count && shape > 0; k++) {
        const struct wpk_graph_region *known = region_of(model, k);
        if (strcmp(known->fingerprint.exact, wanted->fingerprint.exact) == 0) {
            return k;
        }
    }
    if (shape > 0) { /* names are unique in the job */
        snprintf(name, sizeof(name), "%.50s_%d", wanted->name, shape + 1);
        memcpy(wanted->name, name, sizeof(name));
    }
    model->kernels[model->kernel_count] =
        (struct wpk_tune_kernel){.shape = shape, .region = region, .instruction = -1};
    return model->kernel_count++;
}

static void number_kernels(struct wpk_tune_model *model, int shape)
{
    struct wpk_assemble_shape *out = &model->shapes[shape];
    size_t count = (size_t)(model->kernel_count + out->regions.count) + 1;

    model->kernels = WPK_DEMAND(realloc(model->kernels, count * sizeof(*model->kernels)));
    out->kernel = WPK_DEMAND(calloc((size_t)out->regions.count + 1, sizeof(*out->kernel)));
    for (int r = 0; r < out->regions.count; r++) {
        out->kernel[r] = find_kernel_of(model, shape, r);
    }
}

static void set_apart(const struct wpk_tune_model *model, struct wpk_graph *graph)
{
    for (int v = 0; v < graph->value_count; v++) {
        for (int i = 0; i < model->apart_count; i++) {
            if (strcmp(graph->values[v].name, model->apart[i]) == 0) {
                graph->values[v].is_stored = true;
            }
        }
    }
}

static wpk_err read_shape(const char *path, const struct wpk_model_fixing *fixing,
                          struct wpk_tune_model *out, struct wpk_buf *problems,
                          struct wpk_diag *diag)
{
    int index = out->shape_count++;
    struct wpk_assemble_shape *shape = &out->shapes[index];
    struct wpk_model_fixing here;

    wpk_model_fixing_of_set(fixing, index, &here);
    wpk_err err = wpk_model_file_read(path, &here, &shape->graph, problems, diag);
    err = err == WPK_OK ? wpk_graph_rewrite(&shape->graph) : err;
    if (err == WPK_OK) {
        set_apart(out, &shape->graph);
        err = wpk_graph_layout(&shape->graph, &shape->regions, diag);
    }
    if (err == WPK_OK) {
        number_kernels(out, index);
    }
    return err;
}

wpk_err wpk_tune_model_read(const char *path, const struct wpk_model_fixing *fixing,
                            struct wpk_tune_model *out, struct wpk_buf *problems,
                            struct wpk_diag *diag)
{
    int count = 0;

    wpk_err err = wpk_model_fixing_count(fixing, WPK_MODEL_PLAN_SHAPES_MAX, &count, diag);
    for (int s = 0; err == WPK_OK && s < count; s++) {
        err = read_shape(path, fixing, out, problems, diag);
    }
    return err;
}

wpk_err wpk_tune_model_job(struct wpk_tune_model *model, const struct wpk_tune_class *wanted,
                           int64_t cache_bytes, struct wpk_job *job, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    if (model->kernel_count > WPK_JOB_OPS_MAX) {
        return wpk_fail(diag, WPK_ERANGE,
                        "the model has %d different operators to tune; %d are possible",
                        model->kernel_count, WPK_JOB_OPS_MAX);
    }
    for (int i = 0; i < job->op_count; i++) {
        wpk_job_op_fini(&job->ops[i]);
    }
    free(job->ops);
    job->op_count = 0;
    job->ops = WPK_DEMAND(calloc((size_t)model->kernel_count + 1, sizeof(*job->ops)));
    /* A model whose constants do not stay in the last cache from one run to the next. */
    bool is_cold =
        cache_bytes > 0 && wpk_graph_constant_bytes(&model->shapes[0].graph) > cache_bytes;
    for (int k = 0; err == WPK_OK && k < model->kernel_count; k++) {
        const struct wpk_graph *graph = &model->shapes[model->kernels[k].shape].graph;
        err = make_op(graph, region_of(model, k), wanted, is_cold, &job->ops[job->op_count++],
                      &model->kernels[k], diag);
    }
    if (err == WPK_OK) {
        find_bases(model);
    }
    return err;
}

/* ---- smaller regions */

/* Of the values inside of a group, the one whose computation takes about half of its nodes; NULL:
 * none has a name. A change of order has none, and is made anew by each reading. */
static const char *middle_value(const struct wpk_graph *graph,
                                const struct wpk_graph_region_use *use)
{
    uint64_t needs[WPK_FUSE_NODES_MAX]; /* bit sets of the group's nodes that each one needs */
    const char *middle = NULL;
    int least = 0;

    for (int i = 0; i + 1 < use->node_count; i++) {
        const struct wpk_graph_node *node = &graph->nodes[use->nodes[i]];
        const char *name = graph->values[node->outputs[0]].name;
        needs[i] = (uint64_t)1 << i;
        for (int k = 0; k < node->input_count; k++) {
            for (int j = 0; j < i; j++) {
                bool reads = node->inputs[k] == graph->nodes[use->nodes[j]].outputs[0];
                needs[i] |= reads ? needs[j] : 0;
            }
        }
        int from_half = abs(2 * __builtin_popcountll(needs[i]) - use->node_count);
        if (name != NULL && name[0] != '\0' && (middle == NULL || from_half <= least)) {
            middle = name;
            least = from_half;
        }
    }
    return middle;
}

/* Keep the middle value of a group in memory: it becomes two smaller ones, or more. */
static void halve(struct wpk_tune_model *model, const struct wpk_graph *graph,
                  const struct wpk_graph_region_use *use, int *count)
{
    const char *name = middle_value(graph, use);

    if (name != NULL) {
        size_t size = (size_t)(model->apart_count + 1) * sizeof(*model->apart);
        model->apart = WPK_DEMAND(realloc(model->apart, size));
        model->apart[model->apart_count++] = WPK_DEMAND(strdup(name));
        ++*count;
    }
}

wpk_err wpk_tune_model_split(struct wpk_tune_model *model, const char *path,
                             const struct wpk_model_fixing *fixing, const bool *is_hopeless,
                             int *count, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    *count = 0;
    for (int s = 0; s < model->shape_count; s++) {
        const struct wpk_assemble_shape *shape = &model->shapes[s];
        for (int n = 0; n < shape->graph.node_count; n++) {
            const struct wpk_graph_region_use *use = &shape->regions.uses[n];
            if (use->region >= 0 && is_hopeless[shape->kernel[use->region]]) {
                halve(model, &shape->graph, use, count);
            }
        }
    }
    if (*count > 0) {
        struct wpk_buf problems = {0}; /* there were none before */
        forget_shapes(model);
        err = wpk_tune_model_read(path, fixing, model, &problems, diag);
        wpk_buf_fini(&problems);
    }
    return err;
}

/* ---- the plan */

/* The input whose memory the output may be, by the object's manifest. */
static void find_in_place(struct wpk_assemble_kernel *out)
{
    struct wpk_kernel *kernel = NULL;

    if (wpk_kernel_load_bytes(out->object.data, out->object.size, NULL, &kernel, NULL) == WPK_OK) {
        const char *name = wpk_kernel_in_place(kernel);
        snprintf(out->in_place, sizeof(out->in_place), "%s", name != NULL ? name : "");
        wpk_kernel_close(kernel);
    }
}

static wpk_err fetch(const struct wpk_tune_model *model, int index,
                     const struct wpk_tune_source *source, const struct wpk_api_job *found,
                     struct wpk_assemble_kernel *out, struct wpk_diag *diag)
{
    const struct wpk_tune_kernel *wanted = &model->kernels[index];
    const struct wpk_graph_region *r = region_of(model, index);
    const struct wpk_graph_node *node = &model->shapes[wanted->shape].graph.nodes[r->nodes[0]];
    int k = WPK_FIND(struct wpk_api_kernel, name, found->kernels, found->kernel_count, r->name);
    const struct wpk_api_kernel *kernel = k >= 0 ? &found->kernels[k] : NULL;

    wpk_err err =
        kernel != NULL ? source->fetch(source->user, kernel, &out->object, diag) : WPK_ENOENT;
    if (err == WPK_ENOENT && diag->text[0] == '\0') {
        /* Of the newest job that had the operator: each round has a job of its own. */
        wpk_diag_set(diag, "node %s (%s) has no kernel; wpkctl why %s says more", node->name,
                     node->op, r->name);
    }
    if (err == WPK_OK) {
        const struct wpk_api_contender *ours =
            kernel->own.provider != NULL ? &kernel->own : &kernel->served;
        out->time_ns = ours->time.median_ns;
        out->vendor = kernel->baseline.provider != NULL ? kernel->baseline.provider : "";
        out->vendor_ns = kernel->baseline.time.median_ns;
        find_in_place(out);
    }
    return err;
}

wpk_err wpk_tune_model_assemble(const struct wpk_tune_model *model,
                                const struct wpk_tune_source *source,
                                const struct wpk_api_job *found, int threads, struct wpk_buf *out,
                                struct wpk_diag *diag)
{
    struct wpk_assemble_kernel *kernels =
        WPK_DEMAND(calloc((size_t)model->kernel_count + 1, sizeof(*kernels)));
    char device[WPK_MODEL_PLAN_DEVICE_MAX] = "";
    struct wpk_device here;
    wpk_err err = wpk_kernel_device(NULL, &here, diag);

    if (err == WPK_OK) {
        wpk_device_class(&here, device, sizeof(device));
    }

    for (int k = 0; err == WPK_OK && k < model->kernel_count; k++) {
        kernels[k] = (struct wpk_assemble_kernel){.shape = model->kernels[k].shape,
                                                  .region = model->kernels[k].region,
                                                  .object.size_max = OBJECT_SIZE_MAX,
                                                  .vendor = ""};
        err = fetch(model, k, source, found, &kernels[k], diag);
    }
    if (err == WPK_OK) {
        const struct wpk_assemble_parts parts = {
            .shapes = model->shapes,
            .shape_count = model->shape_count,
            .kernels = kernels,
            .kernel_count = model->kernel_count,
            .threads = threads,
            .device = found->kernel_count > 0 ? found->kernels[0].device : device,
        };
        err = wpk_assemble_plan(&parts, out, diag);
    }
    for (int k = 0; k < model->kernel_count; k++) {
        wpk_buf_fini(&kernels[k].object);
    }
    free(kernels);
    return err;
}
