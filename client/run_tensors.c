/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_tensors.h"

#include "common/fs.h"
#include "common/suggest.h"
#include "schema/draw.h"
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

static size_t dense_size(const struct wpk_tensor_type *type)
{
    return (size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype);
}

static void list_arguments(const struct wpk_kernel *kernel, struct wpk_run_tensors *out)
{
    out->input_count = (int)wpk_kernel_input_count(kernel);
    out->constant_count = (int)wpk_kernel_constant_count(kernel);
    out->output_count = (int)wpk_kernel_output_count(kernel);
    for (int i = 0; i < out->input_count + out->constant_count + out->output_count; i++) {
        int k = i - out->input_count;
        int o = k - out->constant_count;
        struct wpk_run_tensor *tensor = &out->tensor[i];
        tensor->argument = k < 0   ? wpk_kernel_input(kernel, (size_t)i)
                           : o < 0 ? wpk_kernel_constant(kernel, (size_t)k)
                                   : wpk_kernel_output(kernel, (size_t)o);
        tensor->name = tensor->argument->name;
    }
}

/* "NAME=FILE" for one of the tensors from `first` on. */
static wpk_err set_path(struct wpk_run_tensors *tensors, int first, int count, const char *option,
                        const char *pair, struct wpk_diag *diag)
{
    const char *equals = strchr(pair, '=');
    char name[WPK_NAME_MAX] = "";
    char list[WPK_DIAG_TEXT_MAX / 2] = "";

    if (equals == NULL && count == 1 && tensors->tensor[first].path == NULL) { /* FILE alone */
        tensors->tensor[first].path = pair;
        return WPK_OK;
    }
    if (equals == NULL || equals == pair || equals[1] == '\0') {
        return wpk_fail(diag, WPK_EINVAL, "--%s takes TENSOR=FILE.npy, not '%s'", option, pair);
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - pair), pair);
    struct wpk_suggest suggest = {.word = name};
    for (int i = first; i < first + count; i++) {
        struct wpk_run_tensor *tensor = &tensors->tensor[i];
        if (strcmp(tensor->name, name) == 0 && tensor->path == NULL) {
            tensor->path = equals + 1;
            return WPK_OK;
        }
        if (strcmp(tensor->name, name) == 0) {
            return wpk_fail(diag, WPK_EINVAL, "--%s %s is given twice; leave one out", option,
                            name);
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i > first ? ", " : "", tensor->name);
        wpk_suggest_offer(&suggest, tensor->name);
    }
    return wpk_fail(diag, WPK_EINVAL, "--%s: the operator has no such tensor '%s'; it has %s%s",
                    option, name, list, wpk_suggest_text(&suggest));
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
    const struct wpk_tensor_type *type = &tensor->argument->type;
    bool constant =
        index >= tensors->input_count && index < tensors->input_count + tensors->constant_count;
    bool output = index >= tensors->input_count + tensors->constant_count;

    tensor->dense = new_memory(dense_size(type));
    tensor->physical = constant ? NULL : new_memory(wpk_tensor_type_bytes(type));
    if (tensor->dense == NULL || (tensor->physical == NULL && !constant)) {
        return WPK_ENOMEM;
    }
    if (output) {
        return WPK_OK;
    }
    if (tensor->path == NULL && !draw) {
        return wpk_fail(diag, WPK_EINVAL, "%s %s has no file: --input %s=FILE.npy, or --random",
                        constant ? "constant" : "input", tensor->name, tensor->name);
    }
    wpk_err err = WPK_OK;
    if (tensor->path != NULL) {
        err = wpk_run_read_npy(tensor->path, tensor->name, type, tensor->dense, diag);
    } else {
        wpk_draw_tensor(SEED, tensor->name, type->dtype, WPK_DRAW_ANY,
                        wpk_tensor_type_elements(type), tensor->dense);
    }
    if (err == WPK_OK && !constant) {
        wpk_tensor_pack(type, tensor->dense, tensor->physical);
    }
    return err;
}

wpk_err wpk_run_tensors_read(const struct wpk_kernel *kernel, const struct wpk_option_list *inputs,
                             const struct wpk_option_list *outputs, bool draw,
                             struct wpk_run_tensors *out, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    if (wpk_kernel_input_count(kernel) + wpk_kernel_constant_count(kernel) +
            wpk_kernel_output_count(kernel) >
        WPK_RUN_TENSORS_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "the kernel has more than %d tensors",
                        WPK_RUN_TENSORS_MAX);
    }
    list_arguments(kernel, out);
    int given = out->input_count + out->constant_count;
    for (int i = 0; err == WPK_OK && i < inputs->count; i++) {
        err = set_path(out, 0, given, "input", inputs->items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < outputs->count; i++) {
        err = set_path(out, given, out->output_count, "output", outputs->items[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < given + out->output_count; i++) {
        err = fill(out, i, draw, diag);
    }
    return err;
}

void wpk_run_tensors_fini(struct wpk_run_tensors *tensors)
{
    for (int i = 0; i < WPK_RUN_TENSORS_MAX; i++) {
        free(tensors->tensor[i].dense);
        free(tensors->tensor[i].physical);
    }
    *tensors = (struct wpk_run_tensors){.input_count = 0};
}

wpk_err wpk_run_tensors_run(struct wpk_kernel *kernel, struct wpk_run_tensors *tensors,
                            struct wpk_diag *diag)
{
    struct wpk_tensor_data data[WPK_RUN_TENSORS_MAX];
    const struct wpk_context_options options = {.threads = 0};
    struct wpk_context *context = NULL;
    int given = tensors->input_count + tensors->constant_count;

    for (int i = 0; i < given + tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        const struct wpk_tensor_type *type = &tensor->argument->type;
        bool constant = tensor->physical == NULL;
        data[i] = (struct wpk_tensor_data){.name = tensor->argument->name,
                                           .data = constant ? tensor->dense : tensor->physical,
                                           .size = constant ? dense_size(type)
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
    for (int i = given; err == WPK_OK && i < given + tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        wpk_tensor_unpack(&tensor->argument->type, tensor->physical, tensor->dense);
    }
    return err;
}

wpk_err wpk_run_tensors_write(const struct wpk_run_tensors *tensors, struct wpk_diag *diag)
{
    int first = tensors->input_count + tensors->constant_count;
    wpk_err err = WPK_OK;

    for (int i = first; err == WPK_OK && i < first + tensors->output_count; i++) {
        const struct wpk_run_tensor *tensor = &tensors->tensor[i];
        if (tensor->path != NULL) {
            err = wpk_run_write_npy(tensor->path, &tensor->argument->type, tensor->dense, diag);
        }
    }
    return err == WPK_ENOENT ? WPK_EINVAL : err; /* not found means the kernel, to scripts */
}
