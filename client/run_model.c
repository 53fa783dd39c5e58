/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "client/model_file.h"
#include "client/npy.h"
#include "common/fs.h"
#include "common/suggest.h"
#include "graph/interpret.h"
#include "schema/convert.h"
#include "schema/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)64 << 30)
#define SEED 1 /* of what is drawn */

/* One input or output. */
struct tensor {
    const char *name;
    struct wpk_tensor_type type;
    const char *path; /* NULL: no file */
    void *data;       /* owned; [extent...] row-major */
    double *wide;     /* owned; the same in f64 */
};

struct tensors {
    struct tensor *input; /* owned; [input_count] */
    int input_count;
    struct tensor *output; /* owned; [output_count] */
    int output_count;
};

static void fini(struct tensors *tensors)
{
    for (int i = 0; tensors->input != NULL && i < tensors->input_count; i++) {
        free(tensors->input[i].data);
        free(tensors->input[i].wide);
    }
    for (int i = 0; tensors->output != NULL && i < tensors->output_count; i++) {
        free(tensors->output[i].data);
        free(tensors->output[i].wide);
    }
    free(tensors->input);
    free(tensors->output);
}

static struct tensor *new_tensors(const struct wpk_graph *graph, const int *list, int count)
{
    struct tensor *out = calloc((size_t)count + 1, sizeof(*out));
    bool is_whole = out != NULL;

    for (int i = 0; is_whole && i < count; i++) {
        const struct wpk_graph_value *value = &graph->values[list[i]];
        size_t elements = (size_t)wpk_graph_elements(value);
        out[i] = (struct tensor){.name = value->name,
                                 .type = wpk_model_value_type(value),
                                 .data = calloc(elements, sizeof(double)),
                                 .wide = calloc(elements, sizeof(double))};
        is_whole = out[i].data != NULL && out[i].wide != NULL;
    }
    return out;
}

static bool is_complete(const struct tensor *list, int count)
{
    for (int i = 0; list != NULL && i < count; i++) {
        if (list[i].data == NULL || list[i].wide == NULL) {
            return false;
        }
    }
    return list != NULL;
}

/* "NAME=FILE" for one tensor. A name may contain '='. */
static wpk_err set_path(struct tensor *list, int count, const char *option, const char *pair,
                        struct wpk_diag *diag)
{
    struct wpk_suggest suggest = {.word = ""};
    char word[WPK_SUGGEST_SIZE];

    for (int i = 0; i < count; i++) {
        size_t size = strlen(list[i].name);
        if (strncmp(pair, list[i].name, size) == 0 && pair[size] == '=' && pair[size + 1] != '\0') {
            if (list[i].path != NULL) {
                wpk_diag_set(diag, "--%s %s is given twice; leave one out", option, list[i].name);
                return WPK_EINVAL;
            }
            list[i].path = pair + size + 1;
            return WPK_OK;
        }
    }
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(pair, "="), pair);
    suggest.word = word;
    for (int i = 0; i < count; i++) {
        wpk_suggest_offer(&suggest, list[i].name);
    }
    wpk_diag_set(diag, "--%s takes NAME=FILE.npy, and the model has no %s '%s'%s", option, option,
                 word, wpk_suggest_text(&suggest));
    return WPK_EINVAL;
}

static wpk_err read_file(struct tensor *tensor, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
    struct wpk_npy npy;

    wpk_err err = wpk_fs_read(tensor->path, FILE_SIZE_MAX - 1, &bytes, diag);
    if (err != WPK_OK) {
        wpk_buf_fini(&bytes);
        return err == WPK_ENOENT || err == WPK_EACCES ? WPK_EINVAL : err;
    }
    err = wpk_npy_decode(wpk_buf_text(&bytes), bytes.size, &npy, diag);
    if (err == WPK_OK) {
        err = wpk_npy_check(&npy, &tensor->type, diag);
    }
    if (err == WPK_OK) {
        memcpy(tensor->data, npy.data, npy.size);
    } else if (diag != NULL) {
        snprintf(diag->file, sizeof(diag->file), "%s", tensor->path);
        snprintf(diag->field, sizeof(diag->field), "%s", tensor->name);
    }
    wpk_buf_fini(&bytes);
    return err;
}

static wpk_err fill(struct tensor *tensor, bool draw, struct wpk_diag *diag)
{
    int64_t elements = wpk_tensor_type_elements(&tensor->type);
    wpk_err err = WPK_OK;

    if (tensor->path != NULL) {
        err = read_file(tensor, diag);
    } else if (draw) {
        wpk_draw_tensor(SEED, tensor->name, tensor->type.dtype, false, elements, tensor->data);
    } else {
        wpk_diag_set(diag, "input %s has no file: --input %s=FILE.npy, or --random", tensor->name,
                     tensor->name);
        err = WPK_EINVAL;
    }
    if (err == WPK_OK) {
        wpk_convert_widen(tensor->type.dtype, tensor->data, elements, tensor->wide);
    }
    return err;
}

static wpk_err prepare(const struct wpk_graph *graph, const struct wpk_run_model *options,
                       struct tensors *out, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    out->input_count = graph->input_count;
    out->output_count = graph->output_count;
    out->input = new_tensors(graph, graph->inputs, graph->input_count);
    out->output = new_tensors(graph, graph->outputs, graph->output_count);
    if (!is_complete(out->input, out->input_count) ||
        !is_complete(out->output, out->output_count)) {
        return WPK_ENOMEM;
    }
    for (int i = 0; err == WPK_OK && i < options->inputs.count; i++) {
        err = set_path(out->input, out->input_count, "input", options->inputs.items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < options->outputs.count; i++) {
        err = set_path(out->output, out->output_count, "output", options->outputs.items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < out->input_count; i++) {
        err = fill(&out->input[i], options->draw, diag);
    }
    return err;
}

static wpk_err interpret(const struct wpk_graph *graph, const struct tensors *tensors,
                         struct wpk_diag *diag)
{
    const double **inputs = calloc((size_t)tensors->input_count + 1, sizeof(*inputs));
    double **outputs = calloc((size_t)tensors->output_count + 1, sizeof(*outputs));
    wpk_err err = inputs != NULL && outputs != NULL ? WPK_OK : WPK_ENOMEM;

    for (int i = 0; err == WPK_OK && i < tensors->input_count; i++) {
        inputs[i] = tensors->input[i].wide;
    }
    for (int i = 0; err == WPK_OK && i < tensors->output_count; i++) {
        outputs[i] = tensors->output[i].wide;
    }
    if (err == WPK_OK) {
        err = wpk_graph_interpret(graph, inputs, outputs, diag);
    }
    free(inputs);
    free(outputs);
    return err;
}

static wpk_err write_outputs(const struct tensors *tensors, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < tensors->output_count; i++) {
        const struct tensor *tensor = &tensors->output[i];
        struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
        if (tensor->path == NULL) {
            printf("%s was computed; --output NAME=FILE keeps it\n", tensor->name);
            continue;
        }
        wpk_convert_narrow(tensor->type.dtype, tensor->wide,
                           wpk_tensor_type_elements(&tensor->type), tensor->data);
        wpk_npy_encode(&tensor->type, tensor->data, &bytes);
        err = wpk_buf_status(&bytes);
        if (err == WPK_OK) {
            err = wpk_fs_write(tensor->path, bytes.data, bytes.size, 0644, diag);
        }
        if (err == WPK_OK) {
            printf("%s: %s\n", tensor->name, tensor->path);
        }
        wpk_buf_fini(&bytes);
    }
    return err == WPK_ENOENT ? WPK_EINVAL : err;
}

wpk_err wpk_run_model_interpret(const char *path, const struct wpk_run_model *options,
                                struct wpk_diag *diag)
{
    struct wpk_graph graph;
    struct tensors tensors = {.input_count = 0};

    wpk_err err = wpk_model_file_read(path, &options->shapes, &graph, diag);
    if (err == WPK_OK) {
        err = prepare(&graph, options, &tensors, diag);
    }
    if (err == WPK_OK) {
        err = interpret(&graph, &tensors, diag);
        if (err != WPK_OK && diag != NULL && diag->file[0] == '\0') {
            snprintf(diag->file, sizeof(diag->file), "%s", path);
        }
    }
    if (err == WPK_OK) {
        err = write_outputs(&tensors, diag);
    }
    fini(&tensors);
    wpk_graph_fini(&graph);
    return err;
}
