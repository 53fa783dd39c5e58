/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of Pad and Resize for each axis. */
#include "model/operator/operator.h"

#include <math.h>
#include <string.h>

/* A list of up to 2 * WPK_RANK_MAX integers: an attribute, or an input that is a constant. */
static wpk_err read_pads(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                         int64_t *out, int *count, struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *found = wpk_graph_attribute(node, "pads", WPK_ATTRIBUTE_INTS);
    const struct wpk_graph_value *value = wpk_graph_input(graph, node, 1);
    wpk_err err = WPK_ENOENT;

    if (found != NULL && found->count <= 2 * WPK_RANK_MAX) {
        *count = found->count;
        memcpy(out, found->integers, (size_t)found->count * sizeof(int64_t));
        return WPK_OK;
    }
    err = wpk_graph_integers(value, out, 2 * WPK_RANK_MAX, count);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "its pads must be a constant of integers");
        return WPK_EUNSUPPORTED;
    }
    return err;
}

static bool is_extent(int64_t number)
{
    return number >= -WPK_ELEMENTS_MAX && number <= WPK_ELEMENTS_MAX;
}

wpk_err wpk_operator_pads(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                          int64_t *before, int64_t *after, struct wpk_diag *diag)
{
    int rank = wpk_graph_input(graph, node, 0)->rank;
    int64_t pads[2 * WPK_RANK_MAX];
    int64_t axes[WPK_RANK_MAX];
    int pad_count = 0;
    int axis_count = rank;
    int axis;

    const char *mode = wpk_graph_text(node, "mode", "constant");
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "edge") != 0 &&
        strcmp(mode, "reflect") != 0 && strcmp(mode, "wrap") != 0) {
        wpk_diag_set(diag, "its mode %s is not supported", mode);
        return WPK_EUNSUPPORTED;
    }
    for (int d = 0; d < rank; d++) {
        axes[d] = d;
        before[d] = 0;
        after[d] = 0;
    }
    wpk_err err = read_pads(graph, node, pads, &pad_count, diag);
    if (err == WPK_OK && wpk_graph_input(graph, node, 3) != NULL) {
        err = wpk_operator_integers(graph, node, "axes", 3, axes, &axis_count, diag);
    }
    if (err == WPK_OK && pad_count != 2 * axis_count) {
        wpk_diag_set(diag, "%d pads for %d axes", pad_count, axis_count);
        err = WPK_EINVAL;
    }
    for (int i = 0; err == WPK_OK && i < axis_count; i++) {
        err = wpk_operator_axis(axes[i], rank, &axis, diag);
        if (err == WPK_OK && !(is_extent(pads[i]) && is_extent(pads[axis_count + i]))) {
            wpk_diag_set(diag, "more than 2^33 elements");
            err = WPK_EINVAL;
        } else if (err == WPK_OK) {
            before[axis] = pads[i];
            after[axis] = pads[axis_count + i];
        }
    }
    return err;
}

/* The nearest element of a whole factor is the same in all these modes. */
static bool is_nearest(const struct wpk_graph_node *node)
{
    bool is_old = strcmp(node->op, "Upsample") == 0;
    const char *where = wpk_graph_text(node, "coordinate_transformation_mode",
                                       is_old ? "asymmetric" : "half_pixel");
    const char *nearest =
        wpk_graph_text(node, "nearest_mode", is_old ? "floor" : "round_prefer_floor");

    if (strcmp(wpk_graph_text(node, "mode", "nearest"), "nearest") != 0) {
        return false;
    }
    return strcmp(where, "asymmetric") == 0
               ? strcmp(nearest, "floor") == 0
               : strcmp(where, "half_pixel") == 0 && strncmp(nearest, "round_prefer_", 13) == 0;
}

wpk_err wpk_operator_factors(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                             int64_t *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    bool is_short = graph->opset < 11 || strcmp(node->op, "Upsample") == 0;
    const struct wpk_graph_value *scales = wpk_graph_input(graph, node, is_short ? 1 : 2);
    const struct wpk_graph_value *sizes = wpk_graph_input(graph, node, 3);
    const struct wpk_graph_value *list = sizes != NULL ? sizes : scales;

    if (!is_nearest(node)) {
        wpk_diag_set(diag, "a Resize is supported with mode nearest, asymmetric and floor or "
                           "half_pixel");
        return WPK_EUNSUPPORTED;
    }
    if (list == NULL || list->data == NULL || list->rank != 1 || list->extent[0] != x->rank) {
        wpk_diag_set(diag, "its scales or sizes must be a constant, one for each axis");
        return WPK_EUNSUPPORTED;
    }
    for (int d = 0; d < x->rank; d++) {
        double factor = wpk_graph_element(list, d);
        factor = list == sizes ? factor / (double)x->extent[d] : factor;
        if (!(factor >= 1 && factor <= 1024) || floor(factor) != factor) {
            wpk_diag_set(diag, "axis %d is resized by %g; whole factors are supported", d, factor);
            return WPK_EUNSUPPORTED;
        }
        out[d] = (int64_t)factor;
    }
    return WPK_OK;
}
