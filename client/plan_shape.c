/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "common/fs.h"
#include "model/plan/model_file.h"
#include "schema/model_plan.h"
#include "schema/npy.h"

#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)64 << 30)

void wpk_plan_shapes_of_model(const struct wpk_model *model, struct wpk_plan_shapes *out)
{
    out->count = (int)wpk_model_shape_count(model);
    out->input_count = (int)wpk_model_input_count(model);
    out->inputs =
        WPK_DEMAND(calloc((size_t)out->count * (size_t)out->input_count + 1, sizeof(*out->inputs)));
    for (int i = 0; i < out->count * out->input_count; i++) {
        out->inputs[i] =
            *wpk_model_input(model, (size_t)(i / out->input_count), (size_t)(i % out->input_count));
    }
}

/* The value of the first item "NAME=VALUE" with this name; NULL: the list has none. */
static const char *find_item(const struct wpk_option_list *list, const char *name)
{
    size_t size = strlen(name);

    for (int i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], name, size) == 0 && list->items[i][size] == '=') {
            return list->items[i] + size + 1;
        }
    }
    return NULL;
}

/* Append the extents of the array in a file. */
static wpk_err read_extents(const char *path, struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
    struct wpk_npy npy;

    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX - 1, &bytes, diag);
    err = err == WPK_ENOENT || err == WPK_EACCES ? WPK_EINVAL : err;
    if (err == WPK_OK) {
        err = wpk_npy_decode(wpk_buf_text(&bytes), bytes.size, &npy, diag);
        if (err == WPK_OK) {
            wpk_model_print_extents(npy.extent, npy.rank, out);
        }
        err = wpk_diag_in_file(diag, err, path);
    }
    wpk_buf_fini(&bytes);
    return err;
}

/* Take the sets out of which the input has other extents. */
static void keep_sets_with(const struct wpk_plan_shapes *sets, int input, const char *extents,
                           bool *fits)
{
    for (int s = 0; s < sets->count; s++) {
        const struct wpk_tensor_type *type = &sets->inputs[s * sets->input_count + input].type;
        struct wpk_buf text = {0};
        wpk_model_print_extents(type->extent, type->rank, &text);
        fits[s] = fits[s] && strcmp(wpk_buf_text(&text), extents) == 0;
        wpk_buf_fini(&text);
    }
}

/* Say that no set fits, and which there are. */
static void list_sets(const struct wpk_plan_shapes *sets, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};

    for (int i = 0; i < sets->count * sets->input_count; i++) {
        const struct wpk_argument *input = &sets->inputs[i];
        wpk_buf_printf(&text, "%s%s=",
                       i == 0                       ? ""
                       : i % sets->input_count == 0 ? "; "
                                                    : " ",
                       input->name);
        wpk_model_print_extents(input->type.extent, input->type.rank, &text);
    }
    wpk_diag_set(diag, "the plan was not tuned for these shapes, but for %s", wpk_buf_text(&text));
    wpk_buf_fini(&text);
}

/* The index of the input with the name before the last '='; -1: none. */
static int find_input(const struct wpk_plan_shapes *sets, const char *shape)
{
    for (int i = 0; i < sets->input_count; i++) {
        if (wpk_model_shape_is_of(shape, sets->inputs[i].name)) {
            return i;
        }
    }
    return -1;
}

bool wpk_plan_shapes_has(const struct wpk_plan_shapes *sets, const char *shape)
{
    return find_input(sets, shape) >= 0;
}

wpk_err wpk_plan_shapes_choose(const struct wpk_plan_shapes *sets,
                               const struct wpk_option_list *shapes,
                               const struct wpk_option_list *files, size_t *out,
                               struct wpk_diag *diag)
{
    bool fits[WPK_MODEL_PLAN_SHAPES_MAX];
    wpk_err err = WPK_OK;

    memset(fits, true, sizeof(fits));
    for (int i = 0; i < shapes->count; i++) {
        int input = find_input(sets, shapes->items[i]);
        if (input < 0) {
            return wpk_fail(diag, WPK_EINVAL,
                            "--shape takes INPUT=EXTENT,..., and the plan has no input of '%s'",
                            shapes->items[i]);
        }
        keep_sets_with(sets, input, strrchr(shapes->items[i], '=') + 1, fits);
    }
    for (int i = 0; err == WPK_OK && sets->count > 1 && i < sets->input_count; i++) {
        const char *path = find_item(files, sets->inputs[i].name);
        struct wpk_buf extents = {0};
        err = path != NULL ? read_extents(path, &extents, diag) : WPK_OK;
        if (err == WPK_OK && path != NULL) {
            keep_sets_with(sets, i, wpk_buf_text(&extents), fits);
        }
        wpk_buf_fini(&extents);
    }
    for (int s = 0; err == WPK_OK && s < sets->count; s++) {
        if (fits[s]) {
            *out = (size_t)s;
            return WPK_OK;
        }
    }
    if (err == WPK_OK) {
        list_sets(sets, diag);
        err = WPK_EINVAL;
    }
    return err;
}
