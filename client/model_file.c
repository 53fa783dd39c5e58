/* SPDX-License-Identifier: Apache-2.0 */
#include "client/model_file.h"

#include "graph/onnx_read.h"
#include "graph/shape.h"

#include <stdio.h>
#include <string.h>

#define SUFFIX ".onnx"

bool wpk_model_file_is_onnx(const char *path)
{
    size_t size = strlen(path);

    return size > strlen(SUFFIX) && strcmp(path + size - strlen(SUFFIX), SUFFIX) == 0;
}

/* Print the problems, each line with the file before it. Returns how many there are. */
static int print_problems(const char *path, const char *problems)
{
    int count = 0;

    while (problems[0] != '\0') {
        size_t size = strcspn(problems, "\n");
        fprintf(stderr, "%s: %.*s\n", path, (int)size, problems);
        problems += size + (problems[size] == '\n');
        count++;
    }
    return count;
}

wpk_err wpk_model_file_read(const char *path, const struct wpk_option_list *shapes,
                            struct wpk_graph *out, struct wpk_diag *diag)
{
    struct wpk_buf problems = {0};

    wpk_err err = wpk_onnx_read(path, out, diag);
    if (err == WPK_ENOENT || err == WPK_EACCES) {
        err = WPK_EINVAL; /* not found means a kernel or job, to scripts */
    }
    for (int i = 0; err == WPK_OK && i < shapes->count; i++) {
        err = wpk_graph_set_shape(out, shapes->items[i], diag);
    }
    if (err == WPK_OK) {
        err = wpk_graph_infer(out, &problems);
        int count = print_problems(path, wpk_buf_text(&problems));
        if (err == WPK_EUNSUPPORTED) {
            wpk_diag_set(diag, "%s: %d problem%s, listed above", path, count,
                         count == 1 ? "" : "s");
        }
    }
    wpk_buf_fini(&problems);
    return err;
}

struct wpk_tensor_type wpk_model_value_type(const struct wpk_graph_value *value)
{
    struct wpk_tensor_type type = {
        .dtype = value->dtype, .rank = value->rank, .layout = wpk_layout_row_major(value->rank)};

    memcpy(type.extent, value->extent, sizeof(type.extent));
    return type;
}

void wpk_model_print_type(const struct wpk_graph_value *value, struct wpk_buf *out)
{
    wpk_buf_append_text(out, wpk_dtype_name(value->dtype));
    wpk_buf_append_byte(out, '[');
    for (int d = 0; d < value->rank; d++) {
        wpk_buf_printf(out, "%s%lld", d > 0 ? "," : "", (long long)value->extent[d]);
    }
    wpk_buf_append_byte(out, ']');
}
