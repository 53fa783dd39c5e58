/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/model_file.h"

#include "common/fs.h"
#include "common/suggest.h"
#include "model/onnx/read.h"
#include "model/operator/shape.h"
#include "schema/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".onnx"
#define BIND_SIZE_MAX ((size_t)16 << 30)

bool wpk_model_file_is_onnx(const char *path)
{
    size_t size = strlen(path);

    return size > strlen(SUFFIX) && strcmp(path + size - strlen(SUFFIX), SUFFIX) == 0;
}

/* Append the problems, each line with the file before it. Returns how many there are. */
static int list_problems(const char *path, const char *problems, struct wpk_buf *out)
{
    int count = 0;

    while (problems[0] != '\0') {
        size_t size = strcspn(problems, "\n");
        wpk_buf_printf(out, "%s: %.*s\n", path, (int)size, problems);
        problems += size + (problems[size] == '\n');
        count++;
    }
    return count;
}

/* The input that "INPUT=FILE.npy" names, and its file; a name may contain '='. */
static wpk_err find_bound(const struct wpk_graph *graph, const char *pair, int *value,
                          const char **path, struct wpk_diag *diag)
{
    struct wpk_suggest suggest = {.word = ""};
    char word[WPK_SUGGEST_SIZE];

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(pair, "="), pair);
    suggest.word = word;
    for (int i = 0; i < graph->input_count; i++) {
        const char *name = graph->values[graph->inputs[i]].name;
        size_t size = strlen(name);
        if (strncmp(pair, name, size) == 0 && pair[size] == '=' && pair[size + 1] != '\0') {
            *value = graph->inputs[i];
            *path = pair + size + 1;
            return WPK_OK;
        }
        wpk_suggest_offer(&suggest, name);
    }
    return wpk_fail(diag, WPK_EINVAL,
                    "--bind takes INPUT=FILE.npy, and the model has no open input '%s'%s", word,
                    wpk_suggest_text(&suggest));
}

static wpk_err bind_array(struct wpk_graph *graph, int value, const struct wpk_npy *npy,
                          struct wpk_diag *diag)
{
    wpk_err err = wpk_graph_set_extents(graph, value, npy->extent, npy->rank, "--bind", diag);

    if (err == WPK_OK && !graph->values[value].is_typed) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "the element type %s is not supported",
                       wpk_graph_element_type_name(graph->values[value].element_type));
    }
    if (err == WPK_OK) {
        const struct wpk_tensor_type type = wpk_model_value_type(&graph->values[value]);
        size_t size = (size_t)wpk_tensor_type_elements(&type) * wpk_dtype_size(type.dtype);
        void *data = malloc(size + 1);
        err = data != NULL ? wpk_npy_read(npy, &type, data, diag) : WPK_ENOMEM;
        err = err == WPK_OK ? wpk_graph_bind(graph, value, data, size) : err;
        free(data);
    }
    return err;
}

/* Make an input the constant that a file has. */
static wpk_err bind(struct wpk_graph *graph, const char *pair, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = BIND_SIZE_MAX};
    struct wpk_npy npy;
    const char *path = NULL;
    int value = -1;

    wpk_err err = find_bound(graph, pair, &value, &path, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_fs_read(path, BIND_SIZE_MAX - 1, &bytes, diag);
    if (err == WPK_ENOENT || err == WPK_EACCES) {
        err = WPK_EINVAL; /* not found means a kernel or job, to scripts */
    } else if (err == WPK_OK) {
        err = wpk_npy_decode(wpk_buf_text(&bytes), bytes.size, &npy, diag);
        err = err == WPK_OK ? bind_array(graph, value, &npy, diag) : err;
        if (err != WPK_OK && diag != NULL) {
            snprintf(diag->file, sizeof(diag->file), "%s", path);
            snprintf(diag->field, sizeof(diag->field), "%s", graph->values[value].name);
        }
    }
    wpk_buf_fini(&bytes);
    return err;
}

/* The bytes before the '=' of "INPUT=EXTENT,...". */
static size_t name_size(const char *shape)
{
    const char *equals = strrchr(shape, '=');

    return equals != NULL ? (size_t)(equals - shape) : strlen(shape);
}

bool wpk_model_shape_is_of(const char *shape, const char *name)
{
    size_t size = name_size(shape);

    return strlen(name) == size && memcmp(name, shape, size) == 0;
}

/* The shapes before number `end` of the list that are of the input of `shape`. */
static int count_shapes(const struct wpk_model_fixing *fixing, const char *shape, int end)
{
    size_t size = name_size(shape);
    int count = 0;

    for (int i = 0; i < end; i++) {
        const char *other = fixing->shapes.items[i];
        count += name_size(other) == size && memcmp(other, shape, size) == 0;
    }
    return count;
}

wpk_err wpk_model_fixing_count(const struct wpk_model_fixing *fixing, int max, int *out,
                               struct wpk_diag *diag)
{
    *out = 1;
    for (int i = 0; i < fixing->shapes.count; i++) {
        int count = count_shapes(fixing, fixing->shapes.items[i], fixing->shapes.count);
        *out = count > *out ? count : *out;
    }
    for (int i = 0; i < fixing->shapes.count; i++) {
        const char *shape = fixing->shapes.items[i];
        int count = count_shapes(fixing, shape, fixing->shapes.count);
        if (count > 1 && count != *out) {
            return wpk_fail(diag, WPK_EINVAL,
                            "--shape: input %.*s has %d shapes, and another one %d",
                            (int)name_size(shape), shape, count, *out);
        }
    }
    if (*out > max) {
        return wpk_fail(diag, WPK_EINVAL,
                        max == 1 ? "--shape: an input has %d shapes; only tune takes more than %d"
                                 : "--shape: an input has %d shapes; a plan has at most %d",
                        *out, max);
    }
    return WPK_OK;
}

void wpk_model_fixing_of_set(const struct wpk_model_fixing *fixing, int index,
                             struct wpk_model_fixing *out)
{
    *out = *fixing;
    out->shapes.count = 0;
    for (int i = 0; i < fixing->shapes.count; i++) {
        const char *shape = fixing->shapes.items[i];
        int count = count_shapes(fixing, shape, fixing->shapes.count);
        if (count == 1 || count_shapes(fixing, shape, i) == index) {
            out->shapes.items[out->shapes.count++] = shape;
        }
    }
}

/* Read the types that products are computed in. */
static wpk_err read_precision(const struct wpk_model_fixing *fixing, struct wpk_graph *out,
                              struct wpk_diag *diag)
{
    if (fixing->math != NULL && (wpk_dtype_parse(fixing->math, &out->math) != WPK_OK ||
                                 (out->math != WPK_F32 && out->math != WPK_BF16))) {
        return wpk_fail(diag, WPK_EINVAL, "--math %s: expected f32 or bf16", fixing->math);
    }
    enum wpk_dtype *weights = &out->weights.dtype;
    out->weights.is_i4 = fixing->weights != NULL && strcmp(fixing->weights, "i4") == 0;
    if (out->weights.is_i4) {
        *weights = WPK_I8;
    } else if (fixing->weights != NULL &&
               (wpk_dtype_parse(fixing->weights, weights) != WPK_OK ||
                (*weights != WPK_F32 && *weights != WPK_BF16 && *weights != WPK_I8))) {
        return wpk_fail(diag, WPK_EINVAL, "--weights %s: expected f32, bf16, i8 or i4",
                        fixing->weights);
    }
    return WPK_OK;
}

wpk_err wpk_model_file_read(const char *path, const struct wpk_model_fixing *fixing,
                            struct wpk_graph *out, struct wpk_buf *problems, struct wpk_diag *diag)
{
    struct wpk_buf found = {0};
    int sets = 0;

    wpk_err err = wpk_onnx_read(path, out, diag);
    if (err == WPK_ENOENT || err == WPK_EACCES) {
        err = WPK_EINVAL; /* not found means a kernel or job, to scripts */
    }
    err = err == WPK_OK ? wpk_model_fixing_count(fixing, 1, &sets, diag) : err;
    err = err == WPK_OK ? read_precision(fixing, out, diag) : err;
    for (int i = 0; err == WPK_OK && i < fixing->shapes.count; i++) {
        err = wpk_graph_set_shape(out, fixing->shapes.items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < fixing->binds.count; i++) {
        err = bind(out, fixing->binds.items[i], diag);
    }
    if (err == WPK_OK) {
        err = wpk_graph_infer(out, &found);
        int count = list_problems(path, wpk_buf_text(&found), problems);
        if (err == WPK_EUNSUPPORTED) {
            wpk_diag_set(diag, "%s: %d problem%s, listed above", path, count,
                         count == 1 ? "" : "s");
        }
    }
    if (err == WPK_ENOMEM && out->arena.is_full) {
        err = wpk_fail(diag, WPK_ERANGE,
                       "%s: its attributes and what follows from them need more than %zu MiB", path,
                       WPK_GRAPH_MEMORY_MAX >> 20);
    }
    wpk_buf_fini(&found);
    return err;
}

struct wpk_tensor_type wpk_model_value_type(const struct wpk_graph_value *value)
{
    struct wpk_tensor_type type = {
        .dtype = value->dtype, .rank = value->rank, .layout = wpk_layout_row_major(value->rank)};

    memcpy(type.extent, value->extent, sizeof(type.extent));
    return type;
}

void wpk_model_print_extents(const int64_t *extent, int rank, struct wpk_buf *out)
{
    for (int d = 0; d < rank; d++) {
        wpk_buf_printf(out, "%s%lld", d > 0 ? "," : "", (long long)extent[d]);
    }
}

void wpk_model_print_type(const struct wpk_graph_value *value, struct wpk_buf *out)
{
    bool padded = false;

    wpk_buf_append_text(out, wpk_dtype_name(value->dtype));
    wpk_buf_append_byte(out, '[');
    wpk_model_print_extents(value->extent, value->rank, out);
    wpk_buf_append_byte(out, ']');
    for (int d = 0; d < value->rank; d++) {
        padded = padded || value->pad_before[d] != 0 || value->pad_after[d] != 0;
    }
    for (int d = 0; padded && d < value->rank; d++) {
        wpk_buf_printf(out, "%s%lld:%lld", d > 0 ? "," : " pad ", (long long)value->pad_before[d],
                       (long long)value->pad_after[d]);
    }
}
