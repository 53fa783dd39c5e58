/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_tensors.h"

#include "common/fs.h"
#include "common/suggest.h"
#include "schema/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)64 << 30)
#define ALIGNMENT ((size_t)64)
#define SEED 1 /* of what is drawn */

static void *new_memory(size_t size)
{
    size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole > 0 ? whole : ALIGNMENT);

    if (memory != NULL) {
        memset(memory, 0, whole > 0 ? whole : ALIGNMENT);
    }
    return memory;
}

void wpk_run_tensors_init(struct wpk_run_tensors *tensors, int input_count, int constant_count,
                          int output_count)
{
    size_t count = (size_t)(input_count + constant_count + output_count);
    tensors->tensor = WPK_DEMAND(calloc(count + 1, sizeof(*tensors->tensor)));
    tensors->input_count = input_count;
    tensors->constant_count = constant_count;
    tensors->output_count = output_count;
}

void wpk_run_tensors_fini(struct wpk_run_tensors *tensors)
{
    int count = tensors->input_count + tensors->constant_count + tensors->output_count;
    for (int i = 0; i < count; i++) {
        free(tensors->tensor[i].dense);
        free(tensors->tensor[i].physical);
        free(tensors->tensor[i].cells);
    }
    free(tensors->tensor);
    *tensors = (struct wpk_run_tensors){.input_count = 0};
}

wpk_err wpk_run_tensor_init(struct wpk_run_tensor *tensor, const char *name,
                            const struct wpk_tensor_type *type)
{
    *tensor = (struct wpk_run_tensor){.name = name, .type = *type};
    tensor->dense = new_memory((size_t)wpk_tensor_type_elements(type) * sizeof(double));
    return tensor->dense != NULL ? WPK_OK : WPK_ENOMEM;
}

/* "NAME=FILE" for one of the tensors; a name may contain '='. */
static wpk_err set_path(struct wpk_run_tensor *list, int count, const char *option,
                        const char *pair, struct wpk_diag *diag)
{
    char names[WPK_DIAG_TEXT_MAX / 2] = "", word[WPK_SUGGEST_SIZE];
    struct wpk_suggest suggest = {.word = word};

    if (count == 1 && list->path == NULL && strchr(pair, '=') == NULL) { /* FILE alone */
        list->path = pair;
        return WPK_OK;
    }
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(pair, "="), pair);
    for (int i = 0; i < count; i++) {
        size_t size = strlen(list[i].name), used = strlen(names);
        if (strncmp(pair, list[i].name, size) == 0 && pair[size] == '=' && pair[size + 1] != '\0') {
            if (list[i].path != NULL) {
                return wpk_fail(diag, WPK_EINVAL, "--%s %s is given twice; leave one out", option,
                                list[i].name);
            }
            list[i].path = pair + size + 1;
            return WPK_OK;
        }
        snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", list[i].name);
        wpk_suggest_offer(&suggest, list[i].name);
    }
    return wpk_fail(diag, WPK_EINVAL, "--%s takes TENSOR=FILE.npy; there is no %s '%s', but %s%s",
                    option, option, word, names, wpk_suggest_text(&suggest));
}

wpk_err wpk_run_tensors_set_paths(struct wpk_run_tensors *tensors,
                                  const struct wpk_option_list *inputs,
                                  const struct wpk_option_list *outputs, struct wpk_diag *diag)
{
    int given = tensors->input_count + tensors->constant_count;
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < inputs->count; i++) {
        err = set_path(tensors->tensor, given, "input", inputs->items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < outputs->count; i++) {
        err = set_path(tensors->tensor + given, tensors->output_count, "output", outputs->items[i],
                       diag);
    }
    return err;
}

wpk_err wpk_run_tensor_read(const struct wpk_run_tensor *tensor, const char *kind, bool draw,
                            struct wpk_diag *diag)
{
    if (tensor->path == NULL && !draw) {
        return wpk_fail(diag, WPK_EINVAL, "%s %s has no file: --input %s=FILE.npy, or --random",
                        kind, tensor->name, tensor->name);
    }
    return tensor->path == NULL
               ? WPK_OK
               : wpk_run_read_npy(tensor->path, tensor->name, &tensor->type, tensor->dense, diag);
}

wpk_err wpk_run_read_npy(const char *path, const char *name, const struct wpk_tensor_type *type,
                         void *out, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
    struct wpk_npy npy;

    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX - 1, &bytes, diag);
    if (err != WPK_OK) {
        wpk_buf_fini(&bytes);
        return err == WPK_ENOENT || err == WPK_EACCES ? WPK_EINVAL : err;
    }
    err = wpk_npy_decode(wpk_buf_text(&bytes), bytes.size, &npy, diag);
    err = err == WPK_OK ? wpk_npy_read(&npy, type, out, diag) : err;
    if (err != WPK_OK && diag != NULL) {
        snprintf(diag->file, sizeof(diag->file), "%s", path);
        snprintf(diag->field, sizeof(diag->field), "%s", name);
    }
    wpk_buf_fini(&bytes);
    return err;
}

wpk_err wpk_run_write_npy(const char *path, const struct wpk_tensor_type *type, const void *data,
                          struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};

    wpk_npy_encode(type, data, &bytes);
    wpk_err err = wpk_buf_status(&bytes);
    err = err == WPK_OK ? wpk_fs_write(path, bytes.data, bytes.size, 0644, diag) : err;
    wpk_buf_fini(&bytes);
    return err;
}

static wpk_err fill(struct wpk_run_tensors *tensors, int index, bool draw, struct wpk_diag *diag)
{
    struct wpk_run_tensor *tensor = &tensors->tensor[index];
    const struct wpk_tensor_type *type = &tensor->type;
    bool constant = index >= tensors->input_count;

    if (index >= tensors->input_count + tensors->constant_count) {
        return WPK_OK; /* an output */
    }
    wpk_err err = wpk_run_tensor_read(tensor, constant ? "constant" : "input", draw, diag);
    if (err == WPK_OK && tensor->path == NULL) {
        wpk_draw_tensor(SEED, tensor->name, type->dtype, WPK_DRAW_ANY,
                        wpk_tensor_type_elements(type), tensor->dense);
    }
    if (err == WPK_OK && !constant) {
        wpk_tensor_pack(type, tensor->dense, tensor->physical);
    }
    return err;
}

/* The argument at this place in the list. */
static const struct wpk_argument *argument_of(const struct wpk_kernel *kernel,
                                              const struct wpk_run_tensors *tensors, int index)
{
    int k = index - tensors->input_count, o = k - tensors->constant_count;
    return k < 0   ? wpk_kernel_input(kernel, (size_t)index)
           : o < 0 ? wpk_kernel_constant(kernel, (size_t)k)
                   : wpk_kernel_output(kernel, (size_t)o);
}

wpk_err wpk_run_tensors_read(const struct wpk_kernel *kernel, const struct wpk_option_list *inputs,
                             const struct wpk_option_list *outputs, bool draw,
                             struct wpk_run_tensors *out, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    wpk_run_tensors_init(out, (int)wpk_kernel_input_count(kernel),
                         (int)wpk_kernel_constant_count(kernel),
                         (int)wpk_kernel_output_count(kernel));
    int given = out->input_count + out->constant_count, count = given + out->output_count;

    for (int i = 0; err == WPK_OK && i < count; i++) {
        const struct wpk_argument *argument = argument_of(kernel, out, i);
        err = wpk_run_tensor_init(&out->tensor[i], argument->name, &argument->type);
        if (err == WPK_OK && (i < out->input_count || i >= given)) {
            out->tensor[i].physical = new_memory(wpk_tensor_type_bytes(&argument->type));
            err = out->tensor[i].physical != NULL ? WPK_OK : WPK_ENOMEM;
        }
    }
    err = err == WPK_OK ? wpk_run_tensors_set_paths(out, inputs, outputs, diag) : err;
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = fill(out, i, draw, diag);
    }
    return err;
}

wpk_err wpk_run_tensors_run(struct wpk_kernel *kernel, struct wpk_run_tensors *tensors,
                            struct wpk_diag *diag)
{
    const struct wpk_context_options options = {.threads = 0};
    struct wpk_context *context = NULL;
    int given = tensors->input_count + tensors->constant_count;
    int count = given + tensors->output_count;
    struct wpk_tensor_data *data = WPK_DEMAND(calloc((size_t)count + 1, sizeof(*data)));

    for (int i = 0; i < count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        const struct wpk_tensor_type *type = &tensor->type;
        size_t elements = (size_t)wpk_tensor_type_elements(type);
        bool constant = tensor->physical == NULL;
        data[i] = (struct wpk_tensor_data){.name = tensor->name,
                                           .data = constant ? tensor->dense : tensor->physical,
                                           .size = constant ? elements * wpk_dtype_size(type->dtype)
                                                            : wpk_tensor_type_bytes(type)};
    }
    wpk_err err = wpk_kernel_prepare(kernel, data + tensors->input_count,
                                     (size_t)tensors->constant_count, diag);
    err = err == WPK_OK ? wpk_context_new(&options, &context) : err;
    if (err == WPK_OK) {
        err = wpk_kernel_run(kernel, context, data, (size_t)tensors->input_count, data + given,
                             (size_t)tensors->output_count);
        if (err != WPK_OK && wpk_context_trouble(context)[0] != '\0') {
            wpk_diag_set(diag, "%s", wpk_context_trouble(context));
        }
        wpk_context_free(context);
    }
    for (int i = given; err == WPK_OK && i < count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        wpk_tensor_unpack(&tensor->type, tensor->physical, tensor->dense);
    }
    free(data);
    return err;
}

/* ---- outputs */

static const struct wpk_run_tensor *output_at(const struct wpk_run_tensors *tensors, int index)
{
    return &tensors->tensor[tensors->input_count + tensors->constant_count + index];
}

wpk_err wpk_run_tensors_write(const struct wpk_run_tensors *tensors, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = output_at(tensors, i);
        if (tensor->path != NULL) {
            err = wpk_run_write_npy(tensor->path, &tensor->type, tensor->dense, diag);
        }
    }
    return err == WPK_ENOENT ? WPK_EINVAL : err; /* not found means the kernel, to scripts */
}

void wpk_run_tensors_print(const struct wpk_run_tensors *tensors)
{
    for (int i = 0; i < tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = output_at(tensors, i);
        printf("%s%s%s\n", tensor->name, tensor->path != NULL ? ": " : " was computed",
               tensor->path != NULL ? tensor->path : "; --output NAME=FILE keeps it");
    }
}

void wpk_run_tensors_put(const struct wpk_run_tensors *tensors, struct wpk_json_writer *w)
{
    wpk_json_begin_array(w, "outputs");
    for (int i = 0; i < tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = output_at(tensors, i);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", tensor->name);
        wpk_json_put_text(w, "type", wpk_dtype_name(tensor->type.dtype));
        wpk_json_put_text_or_null(w, "file", tensor->path);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}
