/* SPDX-License-Identifier: Apache-2.0 */
/* The extents of convolutions and pools. */
#include "model/operator/inference.h"

#include <string.h>

#define NUMBER_MAX ((int64_t)1 << 31) /* so that no sum or product below overflows */

/* A list of `count` numbers within [min, NUMBER_MAX]; all `otherwise` if the node has none. */
static wpk_err read_list(const struct wpk_graph_node *node, const char *name, int count,
                         int64_t min, int64_t otherwise, int64_t *out, struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *list = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_INTS);

    if (list != NULL && list->count != count) {
        return wpk_fail(diag, WPK_EINVAL, "its %s are %d; its input asks for %d", name, list->count,
                        count);
    }
    for (int i = 0; i < count; i++) {
        out[i] = list != NULL ? list->integers[i] : otherwise;
        if (out[i] < min || out[i] > NUMBER_MAX) {
            return wpk_fail(diag, WPK_EINVAL, "its %s contain %lld", name, (long long)out[i]);
        }
    }
    return WPK_OK;
}

static wpk_err count_windows(struct wpk_graph_window *w, int d, bool is_ceil, struct wpk_diag *diag)
{
    int64_t span = (w->kernel[d] - 1) * w->dilation[d] + 1;
    int64_t room = w->before[d] + w->input[d] + w->after[d] - span;

    if (room < 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "its window spans %lld elements; its padded input has %lld",
                        (long long)span, (long long)(room + span));
    }
    w->output[d] = (is_ceil ? room + w->stride[d] - 1 : room) / w->stride[d] + 1;
    if (is_ceil && (w->output[d] - 1) * w->stride[d] >= w->input[d] + w->before[d]) {
        w->output[d]--;
    }
    return WPK_OK;
}

static wpk_err read_window(const struct wpk_graph_node *node, const int64_t *kernel,
                           struct wpk_graph_window *out, struct wpk_diag *diag)
{
    int64_t pads[2 * WPK_RANK_MAX];

    wpk_err err = read_list(node, "kernel_shape", out->rank, 1, -1, out->kernel, diag);
    if (kernel != NULL && wpk_graph_attribute(node, "kernel_shape", WPK_ATTRIBUTE_INTS) == NULL) {
        memcpy(out->kernel, kernel, (size_t)out->rank * sizeof(int64_t));
        if (diag != NULL) {
            diag->text[0] = '\0';
        }
        err = WPK_OK;
    }
    if (err == WPK_OK && kernel != NULL &&
        memcmp(out->kernel, kernel, (size_t)out->rank * sizeof(int64_t)) != 0) {
        err = wpk_fail(diag, WPK_EINVAL, "its kernel_shape differs from its weights");
    }
    err = err == WPK_OK ? read_list(node, "strides", out->rank, 1, 1, out->stride, diag) : err;
    err = err == WPK_OK ? read_list(node, "dilations", out->rank, 1, 1, out->dilation, diag) : err;
    err = err == WPK_OK ? read_list(node, "pads", 2 * out->rank, 0, 0, pads, diag) : err;
    for (int d = 0; err == WPK_OK && d < out->rank; d++) {
        if (out->kernel[d] > NUMBER_MAX) {
            err =
                wpk_fail(diag, WPK_EINVAL, "a window of %lld elements", (long long)out->kernel[d]);
        }
        out->before[d] = pads[d];
        out->after[d] = pads[out->rank + d];
    }
    return err;
}

wpk_err wpk_graph_window(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                         const int64_t *kernel, struct wpk_graph_window *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *input = wpk_graph_input(graph, node, 0);
    const char *auto_pad = wpk_graph_text(node, "auto_pad", "NOTSET");
    bool is_same = wpk_begins(auto_pad, "SAME_");

    *out = (struct wpk_graph_window){.rank = input->rank - 2};
    if (input->rank < 3) {
        return wpk_fail(diag, WPK_EINVAL, "its input has %d axes; it needs at least 3",
                        input->rank);
    }
    memcpy(out->input, input->extent + 2, (size_t)out->rank * sizeof(int64_t));
    wpk_err err = read_window(node, kernel, out, diag);
    for (int d = 0; err == WPK_OK && d < out->rank; d++) {
        if (is_same) {
            bool is_upper = strcmp(auto_pad, "SAME_UPPER") == 0;
            int64_t span = (out->kernel[d] - 1) * out->dilation[d] + 1;
            out->output[d] = (out->input[d] + out->stride[d] - 1) / out->stride[d];
            int64_t total = (out->output[d] - 1) * out->stride[d] + span - out->input[d];
            total = total > 0 ? total : 0;
            out->before[d] = is_upper ? total / 2 : total - total / 2;
            out->after[d] = total - out->before[d];
            continue;
        }
        if (strcmp(auto_pad, "VALID") == 0) {
            out->before[d] = 0;
            out->after[d] = 0;
        }
        err = count_windows(out, d, wpk_graph_int(node, "ceil_mode", 0) != 0, diag);
    }
    return err;
}

wpk_err wpk_graph_window_transposed(const struct wpk_graph *graph,
                                    const struct wpk_graph_node *node, const int64_t *kernel,
                                    struct wpk_graph_window *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *input = wpk_graph_input(graph, node, 0);
    const char *auto_pad = wpk_graph_text(node, "auto_pad", "NOTSET");
    bool is_same = wpk_begins(auto_pad, "SAME_");
    bool is_upper = strcmp(auto_pad, "SAME_UPPER") == 0;
    int64_t more[WPK_RANK_MAX];
    int64_t wanted[WPK_RANK_MAX];

    *out = (struct wpk_graph_window){.rank = input->rank - 2};
    memcpy(out->input, input->extent + 2, (size_t)out->rank * sizeof(int64_t));
    wpk_err err = read_window(node, kernel, out, diag);
    err = err == WPK_OK ? read_list(node, "output_padding", out->rank, 0, 0, more, diag) : err;
    err = err == WPK_OK ? read_list(node, "output_shape", out->rank, 0, 0, wanted, diag) : err;
    for (int d = 0; err == WPK_OK && d < out->rank; d++) {
        int64_t span = (out->kernel[d] - 1) * out->dilation[d] + 1;
        if (out->input[d] > NUMBER_MAX) {
            return wpk_fail(diag, WPK_EINVAL, "an input of %lld elements",
                            (long long)out->input[d]);
        }
        int64_t whole = (out->input[d] - 1) * out->stride[d] + span + more[d];
        if (wanted[d] > 0 || is_same) {
            int64_t total = whole - (wanted[d] > 0 ? wanted[d] : out->input[d] * out->stride[d]);
            total = total > 0 ? total : 0;
            out->before[d] = is_upper ? total / 2 : total - total / 2;
            out->after[d] = total - out->before[d];
        }
        out->output[d] = whole - out->before[d] - out->after[d];
        if (wanted[d] > 0 && out->output[d] != wanted[d]) {
            out->output[d] = wanted[d]; /* no input meets what lies behind */
        }
        if (out->output[d] < 1) {
            return wpk_fail(diag, WPK_EINVAL, "its padding leaves no output");
        }
    }
    return err;
}
