/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "client/run_tensors.h"
#include "common/fs.h"
#include "common/json.h"
#include "model/operator/interpret.h"
#include "model/operator/lower.h"
#include "runtime/wpk.h"
#include "schema/convert.h"
#include "schema/draw.h"

#include <stdio.h>
#include <stdlib.h>

#define SEED 1 /* of what is drawn */
#define PATH_SIZE 4096

/* Fill in one tensor's name and type, and allocate it.   owns  `name` is borrowed */
static wpk_err init(struct wpk_run_tensor *tensor, const char *name,
                    const struct wpk_tensor_type *type)
{
    wpk_err err = wpk_run_tensor_init(tensor, name, type);
    tensor->cells = calloc((size_t)wpk_tensor_type_elements(type), sizeof(double));
    return err == WPK_OK && tensor->cells == NULL ? WPK_ENOMEM : err;
}

static wpk_err list_of_graph(const struct wpk_graph *graph, struct wpk_run_tensors *out)
{
    wpk_err err = WPK_OK;

    wpk_run_tensors_init(out, graph->input_count, 0, graph->output_count);
    for (int i = 0; err == WPK_OK && i < graph->input_count + graph->output_count; i++) {
        int o = i - graph->input_count;
        const struct wpk_graph_value *value =
            &graph->values[o < 0 ? graph->inputs[i] : graph->outputs[o]];
        const struct wpk_tensor_type type = wpk_model_value_type(value);
        err = init(&out->tensor[i], value->name, &type);
    }
    struct wpk_domain *domains =
        WPK_DEMAND(calloc((size_t)graph->input_count + 1, sizeof(*domains)));
    err = err == WPK_OK ? wpk_graph_domains(graph, domains) : err;
    for (int i = 0; err == WPK_OK && i < graph->input_count; i++) {
        out->tensor[i].domain = domains[i];
    }
    free(domains);
    return err;
}

static wpk_err list_of_plan(const struct wpk_model *model, size_t shape,
                            struct wpk_run_tensors *out)
{
    int input_count = (int)wpk_model_input_count(model);
    int output_count = (int)wpk_model_output_count(model);
    wpk_err err = WPK_OK;

    wpk_run_tensors_init(out, input_count, 0, output_count);
    for (int i = 0; err == WPK_OK && i < input_count + output_count; i++) {
        const struct wpk_argument *argument =
            i < input_count ? wpk_model_input(model, shape, (size_t)i)
                            : wpk_model_output(model, shape, (size_t)(i - input_count));
        err = init(&out->tensor[i], argument->name, &argument->type);
    }
    for (int i = 0; err == WPK_OK && i < input_count; i++) {
        wpk_model_input_domain(model, shape, (size_t)i, &out->tensor[i].domain.low,
                               &out->tensor[i].domain.high);
    }
    return err;
}

static wpk_err fill(struct wpk_run_tensor *tensor, bool draw, struct wpk_diag *diag)
{
    int64_t elements = wpk_tensor_type_elements(&tensor->type);
    wpk_err err = wpk_run_tensor_read(tensor, "input", draw, diag);

    if (err == WPK_OK && tensor->path == NULL) {
        wpk_draw_in_domain(SEED, tensor->name, tensor->type.dtype, tensor->domain, elements,
                           tensor->dense);
    }
    if (err == WPK_OK) {
        wpk_convert_to_cells(tensor->type.dtype, tensor->dense, elements, tensor->cells);
    }
    return err;
}

static wpk_err read_inputs(const struct wpk_run_model *options, struct wpk_run_tensors *out,
                           struct wpk_diag *diag)
{
    wpk_err err = wpk_run_tensors_set_paths(out, &options->inputs, &options->outputs, diag);

    for (int i = 0; err == WPK_OK && i < out->input_count; i++) {
        err = fill(&out->tensor[i], options->draw, diag);
    }
    return err;
}

/* Compute the model on the tensors' inputs. */
static wpk_err interpret(const struct wpk_graph *graph, const struct wpk_run_tensors *tensors,
                         struct wpk_diag *diag)
{
    const double **inputs = WPK_DEMAND(calloc((size_t)tensors->input_count + 1, sizeof(*inputs)));
    double **outputs = WPK_DEMAND(calloc((size_t)tensors->output_count + 1, sizeof(*outputs)));

    for (int i = 0; i < tensors->input_count; i++) {
        inputs[i] = tensors->tensor[i].cells;
    }
    for (int i = 0; i < tensors->output_count; i++) {
        outputs[i] = tensors->tensor[tensors->input_count + i].cells;
    }
    wpk_err err = wpk_graph_interpret(graph, inputs, outputs, diag);
    free(inputs);
    free(outputs);
    return err;
}

static void round_outputs(const struct wpk_run_tensors *tensors)
{
    for (int i = 0; i < tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[tensors->input_count + i];
        wpk_convert_from_cells(tensor->type.dtype, tensor->cells,
                               wpk_tensor_type_elements(&tensor->type), tensor->dense);
    }
}

/* Write the outputs that have a file, and say what was computed. */
static wpk_err finish(const struct wpk_run_tensors *tensors, bool json, struct wpk_diag *diag)
{
    wpk_err err = wpk_run_tensors_write(tensors, diag);

    if (err == WPK_OK && json) {
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_run_tensors_put(tensors, w);
        return wpk_json_puts(w, false);
    }
    if (err == WPK_OK) {
        wpk_run_tensors_print(tensors);
    }
    return err;
}

/* Print the problems of a model, if reading it found some. */
static wpk_err tell_problems(wpk_err err, struct wpk_buf *problems)
{
    fputs(wpk_buf_text(problems), stderr);
    wpk_buf_fini(problems);
    return err;
}

wpk_err wpk_run_model_interpret(const char *path, const struct wpk_run_model *options,
                                struct wpk_diag *diag)
{
    struct wpk_graph graph;
    struct wpk_run_tensors tensors = {.input_count = 0};
    struct wpk_buf problems = {0};

    wpk_err err = wpk_model_file_read(path, &options->fixing, &graph, &problems, diag);
    err = tell_problems(err, &problems);
    err = err == WPK_OK ? list_of_graph(&graph, &tensors) : err;
    err = err == WPK_OK ? read_inputs(options, &tensors, diag) : err;
    err = err == WPK_OK ? wpk_diag_in_file(diag, interpret(&graph, &tensors, diag), path) : err;
    if (err == WPK_OK) {
        round_outputs(&tensors);
        err = finish(&tensors, options->json, diag);
    }
    wpk_run_tensors_fini(&tensors);
    wpk_graph_fini(&graph);
    return err;
}

/* ---- plans */

/* The tensors as libwpk takes them.   owns  caller frees; NULL without memory */
static struct wpk_tensor_data *new_data(const struct wpk_run_tensors *tensors)
{
    const struct wpk_run_tensor *list = tensors->tensor;
    int count = tensors->input_count + tensors->output_count;
    struct wpk_tensor_data *out = WPK_DEMAND(calloc((size_t)count + 1, sizeof(*out)));

    for (int i = 0; i < count; i++) {
        out[i] = (struct wpk_tensor_data){.name = list[i].name,
                                          .data = list[i].dense,
                                          .size = wpk_tensor_type_bytes(&list[i].type)};
    }
    return out;
}

/* Compare the outputs with those of the model. */
static wpk_err verify(const struct wpk_run_model *options, const struct wpk_plan_call *call,
                      struct wpk_diag *diag)
{
    double *differences = WPK_DEMAND(calloc(call->output_count + 1, sizeof(*differences)));
    struct wpk_buf problems = {0};
    wpk_err err =
        wpk_verify_plan_file(options->verify, &options->fixing, call, differences, &problems, diag);

    err = tell_problems(err, &problems);
    for (size_t i = 0; err == WPK_OK && i < call->output_count; i++) {
        fprintf(stderr,
                "verified: output %s differs from the model's by %.1e of its largest element\n",
                call->outputs[i].name, differences[i]);
    }
    free(differences);
    return err;
}

static wpk_err use_plan(struct wpk_model *model, size_t shape, const struct wpk_run_model *options,
                        const struct wpk_run_tensors *tensors, wpk_run_model_use use, void *user,
                        struct wpk_diag *diag)
{
    struct wpk_model_context *context = NULL;
    struct wpk_tensor_data *inputs = new_data(tensors); /* then the outputs */

    wpk_err err = wpk_model_context_new(model, shape, NULL, &context);
    if (err == WPK_OK) {
        const struct wpk_plan_call call = {
            .model = model,
            .shape = shape,
            .context = context,
            .inputs = inputs,
            .input_count = (size_t)tensors->input_count,
            .outputs = inputs + tensors->input_count,
            .output_count = (size_t)tensors->output_count,
        };
        err = use(&call, user, diag);
        const char *failure = wpk_model_context_failure(context);
        if (err != WPK_OK && diag->text[0] == '\0' && failure[0] != '\0') {
            wpk_diag_set(diag, "%s", failure);
        }
        if (err == WPK_OK && options->verify != NULL) {
            err = verify(options, &call, diag);
        }
    }
    wpk_model_context_free(context);
    free(inputs);
    return err;
}

/* Shapes of other values than the plan's inputs are for the model that verifies it. */
static wpk_err choose_shape(const struct wpk_model *model, const struct wpk_run_model *options,
                            size_t *out, struct wpk_diag *diag)
{
    const struct wpk_option_list *all = &options->fixing.shapes;
    struct wpk_option_list shapes = {.count = 0};
    struct wpk_plan_shapes sets;

    wpk_plan_shapes_of_model(model, &sets);
    for (int i = 0; i < all->count; i++) {
        bool is_of_model = options->verify != NULL && !wpk_plan_shapes_has(&sets, all->items[i]);
        if (!is_of_model) {
            shapes.items[shapes.count++] = all->items[i];
        }
    }
    wpk_err err = wpk_plan_shapes_choose(&sets, &shapes, &options->inputs, out, diag);
    free(sets.inputs);
    return err;
}

/* Open the plan, call `use`, and with `write` write the outputs. */
static wpk_err with_plan(const char *path, const struct wpk_run_model *options,
                         wpk_run_model_use use, void *user, bool write, struct wpk_diag *diag)
{
    struct wpk_model *model = NULL;
    struct wpk_run_tensors tensors = {.input_count = 0};
    size_t shape = 0;

    wpk_err err = wpk_model_open(path, NULL, &model, diag);
    if (err == WPK_ENOENT || err == WPK_EACCES) {
        err = WPK_EINVAL; /* not found means a kernel or job, to scripts */
    }
    err = err == WPK_OK ? choose_shape(model, options, &shape, diag) : err;
    err = err == WPK_OK ? list_of_plan(model, shape, &tensors) : err;
    err = err == WPK_OK ? read_inputs(options, &tensors, diag) : err;
    err = err == WPK_OK ? use_plan(model, shape, options, &tensors, use, user, diag) : err;
    if (err == WPK_OK && write) {
        err = finish(&tensors, options->json, diag);
    }
    wpk_run_tensors_fini(&tensors);
    wpk_model_close(model);
    return err;
}

/* Write what history makes of a model into the folder, by wpkctl tune. */
static wpk_err make_plan(const char *path, const struct wpk_run_model *options, const char *folder,
                         const char *plan, struct wpk_diag *diag)
{
    static const char *words[4 * WPK_ARGS_LIST_MAX + 32] = {"wpkctl", "tune",      "--candidates",
                                                            "1",      "--seconds", "1"};
    const struct wpk_server_access_given *given = &options->history->given;
    const struct wpk_model_fixing *fixing = &options->fixing;
    struct wpk_child child = {0};
    char threads[32], log[PATH_SIZE + 16], said[WPK_DIAG_TEXT_MAX / 2];
    const char *const pairs[][2] = {
        {"-o", plan},
        {"--threads", threads},
        {"--data", options->history->data_dir},
        {"--server", given->server},
        {"--token-file", given->token_file},
        {"--ca", given->ca},
        {"--math", fixing->math},
        {"--weights", fixing->weights},
    };
    int count = 6;

    snprintf(threads, sizeof(threads), "%d", options->threads > 0 ? options->threads : 1);
    snprintf(log, sizeof(log), "%s/log", folder);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        words[count] = pairs[i][0];
        words[count + 1] = pairs[i][1];
        count += pairs[i][1] != NULL ? 2 : 0;
    }
    for (int i = 0; i < fixing->shapes.count + fixing->binds.count; i++) {
        int b = i - fixing->shapes.count;
        words[count++] = b < 0 ? "--shape" : "--bind";
        words[count++] = b < 0 ? fixing->shapes.items[i] : fixing->binds.items[b];
    }
    words[count++] = given->insecure ? "--insecure" : "--quiet";
    words[count++] = path;
    words[count] = NULL;
    wpk_err err = wpk_child_start(&child, words, log, diag);
    if (err == WPK_OK && wpk_child_wait(&child, NULL) != 0) {
        wpk_child_last_words(log, said, sizeof(said));
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "no plan of %s: %s", path, said);
    }
    return err;
}

wpk_err wpk_run_model_with(const char *path, const struct wpk_run_model *options,
                           wpk_run_model_use use, void *user, struct wpk_diag *diag)
{
    char folder[PATH_SIZE], plan[PATH_SIZE + 16];

    if (options->history == NULL || !wpk_model_file_is_onnx(path)) {
        return with_plan(path, options, use, user, false, diag);
    }
    wpk_err err = wpk_fs_make_temporary(options->tmp_dir, "wpk-plan", folder, sizeof(folder), diag);
    if (err == WPK_OK) {
        snprintf(plan, sizeof(plan), "%s/plan.wpk", folder);
        err = make_plan(path, options, folder, plan, diag);
        err = err == WPK_OK ? with_plan(plan, options, use, user, false, diag) : err;
        (void)!wpk_fs_remove_tree(folder, NULL);
    }
    return err;
}

static wpk_err run_once(const struct wpk_plan_call *call, void *user, struct wpk_diag *diag)
{
    const struct wpk_run_model *options = user;
    struct wpk_check_plan found;

    if (!options->check) {
        return wpk_model_run(call->context, call->inputs, call->input_count, call->outputs,
                             call->output_count);
    }
    wpk_err err = wpk_check_plan(call, &found, diag);
    if (err == WPK_OK) {
        fprintf(stderr,
                "checked: %d steps at %lld points; the largest error is %.1f times that of direct "
                "evaluation%s%s\n",
                found.steps, (long long)found.points, found.times_direct,
                found.worst_node[0] != '\0' ? ", of " : "", found.worst_node);
    }
    return err;
}

wpk_err wpk_run_model_plan(const char *path, const struct wpk_run_model *options,
                           struct wpk_diag *diag)
{
    return with_plan(path, options, run_once, (void *)(uintptr_t)options, true, diag);
}
