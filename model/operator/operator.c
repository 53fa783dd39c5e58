/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator.h"

#include <string.h>

/* ---- checking a node */

static char kind_letter(enum wpk_graph_attribute_kind kind)
{
    static const char letters[] = {
        [WPK_ATTRIBUTE_OTHER] = '-', [WPK_ATTRIBUTE_INT] = 'i',    [WPK_ATTRIBUTE_INTS] = 'I',
        [WPK_ATTRIBUTE_FLOAT] = 'f', [WPK_ATTRIBUTE_FLOATS] = 'F', [WPK_ATTRIBUTE_TEXT] = 's',
        [WPK_ATTRIBUTE_TENSOR] = 't'};
    return letters[kind];
}

/* True if the text is one of those between '=' and the list's next space. */
static bool is_listed(const char *texts, const char *text)
{
    size_t size = strlen(text);

    while (*texts == '=' || *texts == '|') {
        size_t word = strcspn(++texts, "| ");
        if (word == size && strncmp(texts, text, size) == 0) {
            return true;
        }
        texts += word;
    }
    return false;
}

static wpk_err check_attribute(const char *list, const struct wpk_graph_attribute *attribute,
                               struct wpk_diag *diag)
{
    size_t size = strlen(attribute->name);

    while (*list != '\0' && (strncmp(list, attribute->name, size) != 0 || list[size] != ':')) {
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    if (*list == '\0' || list[size + 1] != kind_letter(attribute->kind)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "its attribute %s is not supported, or not of its type", attribute->name);
    }
    const char *texts = list + size + 2;
    if (*texts == '=' && !is_listed(texts, attribute->text)) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "its %s is '%s', which is not supported; known: %.*s", attribute->name,
                        attribute->text, (int)strcspn(texts, " ") - 1, texts + 1);
    }
    return WPK_OK;
}

wpk_err wpk_operator_check(const struct wpk_operator *op, const struct wpk_graph_node *node,
                           struct wpk_diag *diag)
{
    if (node->input_count < op->input_min || node->input_count > op->input_max) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "%d inputs; %d to %d are supported",
                        node->input_count, op->input_min, op->input_max);
    }
    for (int i = 0; i < op->input_min; i++) {
        if (node->inputs[i] < 0) {
            return wpk_fail(diag, WPK_EPARSE, "its input number %d is left out", i);
        }
    }
    bool has_output = node->output_count >= 1 && node->outputs[0] >= 0;
    for (int i = 1; op->kind == WPK_KIND_EXPANDED && i < node->output_count; i++) {
        has_output = has_output || node->outputs[i] >= 0;
    }
    if (!has_output) {
        return wpk_fail(diag, WPK_EPARSE, "it has no output");
    }
    int most = op->outputs > op->parts ? op->outputs : op->parts;
    if (node->part_count > (most > 0 ? most : 1)) {
        return wpk_fail(diag, WPK_EPARSE, "%d outputs; it has at most %d", node->part_count,
                        most > 0 ? most : 1);
    }
    if (node->part > 0 && node->part >= op->parts) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its output number %d is not supported",
                        node->part);
    }
    for (int i = 0; i < node->attribute_count; i++) {
        wpk_err err = check_attribute(op->attributes, &node->attributes[i], diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    if (wpk_graph_int(node, "spatial", 1) != 1) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its spatial is not 1, which alone is supported");
    }
    return WPK_OK;
}

/* ---- axes */

wpk_err wpk_operator_axis(int64_t axis, int rank, int *out, struct wpk_diag *diag)
{
    if (axis < -rank || axis >= rank) {
        return wpk_fail(diag, WPK_EINVAL, "axis %lld of %d", (long long)axis, rank);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return WPK_OK;
}

static int clamp_axis(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

int wpk_operator_shape_axes(const struct wpk_graph_node *node, int rank, int *first)
{
    int end = clamp_axis(wpk_graph_int(node, "end", rank), rank);

    *first = clamp_axis(wpk_graph_int(node, "start", 0), rank);
    return end > *first ? end - *first : 0;
}

wpk_err wpk_operator_order(const struct wpk_graph_node *node, int rank, int *out,
                           struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *perm = wpk_graph_attribute(node, "perm", WPK_ATTRIBUTE_INTS);
    bool taken[WPK_RANK_MAX] = {false};

    if (perm != NULL && perm->count != rank) {
        return wpk_fail(diag, WPK_EINVAL, "its perm has %d axes, its input %d", perm->count, rank);
    }
    for (int d = 0; d < rank; d++) {
        int64_t axis = perm != NULL ? perm->integers[d] : rank - 1 - d;
        if (axis < 0 || axis >= rank || taken[axis]) {
            return wpk_fail(diag, WPK_EINVAL, "its perm is no order of its axes: %lld",
                            (long long)axis);
        }
        taken[axis] = true;
        out[d] = (int)axis;
    }
    return WPK_OK;
}

wpk_err wpk_operator_integers(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                              const char *attribute, int input, int64_t *out, int *count,
                              struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(node, attribute, WPK_ATTRIBUTE_INTS);
    const struct wpk_graph_value *value = wpk_graph_input(graph, node, input);
    wpk_err err = WPK_OK;

    if (found != NULL && found->count > WPK_RANK_MAX) {
        err = WPK_ERANGE;
    } else if (found != NULL) {
        *count = found->count;
        if (found->count > 0) {
            memcpy(out, found->integers, (size_t)found->count * sizeof(int64_t));
        }
    } else if (value == NULL) {
        return WPK_ENOENT;
    } else {
        err = wpk_graph_integers(value, out, WPK_RANK_MAX, count);
    }
    if (err == WPK_ERANGE) {
        wpk_diag_set(diag, "its %s are more than %d", attribute, WPK_RANK_MAX);
    } else if (err != WPK_OK) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "its %s (input %d) must be a constant of integers",
                       attribute, input);
    }
    return err;
}

static wpk_err list_axes(const struct wpk_graph *graph, const struct wpk_graph_node *node, int rank,
                         bool *out, struct wpk_diag *diag)
{
    int64_t axes[WPK_RANK_MAX];
    int count = 0;
    int axis = 0;

    wpk_err err = wpk_operator_integers(graph, node, "axes", 1, axes, &count, diag);
    if (err == WPK_ENOENT || (err == WPK_OK && count == 0)) {
        if (wpk_graph_int(node, "noop_with_empty_axes", 0) != 0) {
            return WPK_OK;
        }
        for (int d = 0; d < rank; d++) {
            out[d] = true;
        }
        return WPK_OK;
    }
    for (int i = 0; err == WPK_OK && i < count; i++) {
        err = wpk_operator_axis(axes[i], rank, &axis, diag);
        if (err == WPK_OK) {
            out[axis] = true;
        }
    }
    return err;
}

wpk_err wpk_operator_axis_of(const struct wpk_graph_node *node, int64_t otherwise, int rank,
                             int *out, struct wpk_diag *diag)
{
    return wpk_operator_axis(wpk_graph_int(node, "axis", otherwise), rank, out, diag);
}

static wpk_err read_axis(const struct wpk_graph *graph, const struct wpk_graph_node *node, int rank,
                         int *out, struct wpk_diag *diag)
{
    int64_t list[WPK_RANK_MAX];
    int count = 0;

    wpk_err err = wpk_operator_integers(graph, node, "", 1, list, &count, diag);
    return err == WPK_OK && count == 1 ? wpk_operator_axis(list[0], rank, out, diag)
           : err == WPK_OK             ? WPK_EINVAL
                                       : err;
}

wpk_err wpk_operator_reduced(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                             const struct wpk_operator *op, bool *out, struct wpk_diag *diag)
{
    int rank = wpk_graph_input(graph, node, 0)->rank;
    bool is_flat = op->axes == WPK_AXES_FROM || (op->axes == WPK_AXES_SOFTMAX && graph->opset < 13);
    int axis = 0;
    wpk_err err = WPK_OK;

    memset(out, 0, WPK_RANK_MAX * sizeof(bool));
    if (op->axes == WPK_AXES_NONE || (rank == 0 && op->axes == WPK_AXES_LISTED)) {
        return WPK_OK;
    }
    if (rank == 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its input is a scalar");
    }
    switch (op->axes) {
    case WPK_AXES_LISTED:
        return list_axes(graph, node, rank, out, diag);
    case WPK_AXES_MOMENTS:
        for (int d = 0; d < rank; d++) {
            out[d] = d != 1;
        }
        if (wpk_graph_attribute(node, "axes", WPK_ATTRIBUTE_INTS) == NULL) {
            return WPK_OK;
        }
        memset(out, 0, WPK_RANK_MAX * sizeof(bool));
        return list_axes(graph, node, rank, out, diag);
    case WPK_AXES_INPUT:
        err = read_axis(graph, node, rank, &axis, diag);
        break;
    case WPK_AXES_SPATIAL:
        if (rank < 3) {
            return wpk_fail(diag, WPK_EINVAL, "its input has %d axes; it needs at least 3", rank);
        }
        axis = 2;
        is_flat = true;
        break;
    default:
        axis = op->axes == WPK_AXES_SOFTMAX && is_flat ? 1 : op->axes == WPK_AXES_FIRST ? 0 : -1;
        err = wpk_operator_axis_of(node, axis, rank, &axis, diag);
        break;
    }
    for (int d = axis; err == WPK_OK && d < (is_flat ? rank : axis + 1); d++) {
        out[d] = true;
    }
    return err;
}
