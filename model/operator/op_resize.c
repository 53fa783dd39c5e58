/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator_forms.h"

#include "model/operator/operator.h"
#include "schema/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_ELEMENTS_MAX (1 << 22)

/* The resizing of one axis. */
struct axis {
    int64_t input;
    int64_t output;
    double scale;
    double begin, end; /* of the region of interest, as parts of the axis */
};

/* How a node reads its input. */
struct rule {
    const struct wpk_graph_node *node;
    const char *mode;    /* "nearest", "linear", "cubic" */
    const char *where;   /* coordinate_transformation_mode */
    const char *nearest; /* nearest_mode */
    bool antialias;
    bool excludes_outside;
    double cubic; /* the coefficient a */
};

/* Parameters of Pad and Resize for each axis. */

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
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its pads must be a constant of integers");
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
        err = wpk_fail(diag, WPK_EINVAL, "%d pads for %d axes", pad_count, axis_count);
    }
    for (int i = 0; err == WPK_OK && i < axis_count; i++) {
        err = wpk_operator_axis(axes[i], rank, &axis, diag);
        if (err == WPK_OK && !(is_extent(pads[i]) && is_extent(pads[axis_count + i]))) {
            err = wpk_fail(diag, WPK_EINVAL, "more than 2^33 elements");
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
               : strcmp(where, "half_pixel") == 0 && wpk_begins(nearest, "round_prefer_");
}

/* True if a Resize takes the nearest elements, and by constant scales or sizes widens each axis of
 * input 0 by a whole factor. */
static bool has_factors(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    bool is_short = graph->opset < 11 || strcmp(node->op, "Upsample") == 0;
    const struct wpk_graph_value *scales = wpk_graph_input(graph, node, is_short ? 1 : 2);
    const struct wpk_graph_value *sizes = wpk_graph_input(graph, node, 3);
    const struct wpk_graph_value *list = sizes != NULL ? sizes : scales;

    bool has = is_nearest(node) && list != NULL && list->data != NULL && list->rank == 1 &&
               list->extent[0] == x->rank;
    for (int d = 0; has && d < x->rank; d++) {
        double factor = wpk_graph_element(list, d);
        factor = list == sizes ? factor / (double)x->extent[d] : factor;
        has = factor >= 1 && factor <= 1024 && floor(factor) == factor;
    }
    return has;
}

static struct rule rule_of(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    bool is_old = graph->opset < 11 || strcmp(node->op, "Upsample") == 0;

    return (struct rule){
        .node = node,
        .mode = wpk_graph_text(node, "mode", "nearest"),
        .where = wpk_graph_text(node, "coordinate_transformation_mode",
                                is_old ? "asymmetric" : "half_pixel"),
        .nearest = wpk_graph_text(node, "nearest_mode", is_old ? "floor" : "round_prefer_floor"),
        .antialias = wpk_graph_int(node, "antialias", 0) != 0,
        .excludes_outside = wpk_graph_int(node, "exclude_outside", 0) != 0,
        .cubic = wpk_graph_real(node, "cubic_coeff_a", -0.75)};
}

/* ---- extents and scales */

/* The constant list that is an input; NULL: left out, or empty. */
static const struct wpk_graph_value *list_of(const struct wpk_graph *graph,
                                             const struct wpk_graph_node *node, int input)
{
    const struct wpk_graph_value *value = wpk_graph_input(graph, node, input);

    return value != NULL && value->rank == 1 && value->extent[0] > 0 ? value : NULL;
}

static wpk_err list_axes(const struct wpk_graph_node *node, int rank, int *out, int *count,
                         struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *axes = wpk_graph_attribute(node, "axes", WPK_ATTRIBUTE_INTS);
    wpk_err err = WPK_OK;

    *count = axes != NULL ? axes->count : rank;
    if (*count > rank) {
        return wpk_fail(diag, WPK_EINVAL, "%d axes of %d", *count, rank);
    }
    for (int i = 0; err == WPK_OK && i < *count; i++) {
        out[i] = i;
        if (axes != NULL) {
            err = wpk_operator_axis(axes->integers[i], rank, &out[i], diag);
        }
    }
    return err;
}

/* One scale for all axes, so that no axis, or none but one, is larger than its size. */
static double common_scale(const struct wpk_graph_value *sizes, const struct axis *axes,
                           const int *listed, int count, bool is_larger)
{
    double scale = 0;

    for (int i = 0; i < count; i++) {
        double each = wpk_graph_element(sizes, i) / (double)axes[listed[i]].input;
        scale = i == 0 || (is_larger ? each > scale : each < scale) ? each : scale;
    }
    return scale;
}

static wpk_err set_axis(struct axis *axis, double scale, double output, struct wpk_diag *diag)
{
    if (!(output >= 1 && output <= (double)WPK_ELEMENTS_MAX) || !(scale > 0)) {
        return wpk_fail(diag, WPK_EINVAL, "an axis is resized to %g elements", output);
    }
    axis->scale = scale;
    axis->output = (int64_t)output;
    return WPK_OK;
}

static wpk_err plan(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                    struct axis *out, struct wpk_diag *diag)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    bool is_short = graph->opset < 11 || strcmp(node->op, "Upsample") == 0;
    bool is_cropped = strcmp(rule_of(graph, node).where, "tf_crop_and_resize") == 0;
    const struct wpk_graph_value *roi = is_cropped ? list_of(graph, node, 1) : NULL;
    const struct wpk_graph_value *scales = list_of(graph, node, is_short ? 1 : 2);
    const struct wpk_graph_value *sizes = list_of(graph, node, 3);
    const struct wpk_graph_value *list = sizes != NULL ? sizes : scales;
    const char *policy = wpk_graph_text(node, "keep_aspect_ratio_policy", "stretch");
    int listed[WPK_RANK_MAX];
    int count = 0;

    wpk_err err = list_axes(node, x->rank, listed, &count, diag);
    if (err == WPK_OK && (list == NULL || list->data == NULL || list->extent[0] != count ||
                          (roi != NULL && (roi->data == NULL || roi->extent[0] != 2 * count)))) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "its scales, sizes and roi must be constants, one for each axis");
    }
    for (int d = 0; d < x->rank; d++) {
        out[d] = (struct axis){x->extent[d], x->extent[d], 1, 0, 1};
    }
    bool is_stretched = sizes == NULL || strcmp(policy, "stretch") == 0;
    double common =
        err == WPK_OK && !is_stretched
            ? common_scale(sizes, out, listed, count, strcmp(policy, "not_smaller") == 0)
            : 1;
    for (int i = 0; err == WPK_OK && i < count; i++) {
        struct axis *axis = &out[listed[i]];
        double number = wpk_graph_element(list, i);
        double input = (double)axis->input;
        if (sizes == NULL) {
            err = set_axis(axis, number, floor(number * input), diag);
        } else if (is_stretched) {
            err = set_axis(axis, number / input, number, diag);
        } else {
            err = set_axis(axis, common, floor(common * input + 0.5), diag);
        }
        axis->begin = roi != NULL ? wpk_graph_element(roi, i) : 0;
        axis->end = roi != NULL ? wpk_graph_element(roi, count + i) : 1;
    }
    return err;
}

wpk_err wpk_infer_resize(const struct wpk_inference *in)
{
    struct axis axes[WPK_RANK_MAX];

    wpk_err err = plan(in->graph, in->node, axes, in->diag);
    in->out->rank = in->x->rank;
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        in->out->extent[d] = axes[d].output;
    }
    return err;
}

/* ---- weights */

/* The place in the input, in elements, of element `index` of the output. */
static wpk_err place_of(const struct rule *rule, const struct axis *axis, int64_t index,
                        double *out)
{
    double x = (double)index;
    double input = (double)axis->input;
    double width = axis->scale * input; /* of the output, not rounded */
    double span = width == 1 ? 0 : (input - 1) / (width - 1);
    double half = (x + 0.5) / axis->scale - 0.5;

    if (strcmp(rule->where, "half_pixel") == 0) {
        *out = half;
    } else if (strcmp(rule->where, "pytorch_half_pixel") == 0) {
        *out = axis->output > 1 ? half : 0;
    } else if (strcmp(rule->where, "half_pixel_symmetric") == 0) {
        /* in the order of the specification: a floor tells the roundings apart */
        double offset = input / 2 * (1 - (double)axis->output / width);
        *out = offset + (x + 0.5) / axis->scale - 0.5;
    } else if (strcmp(rule->where, "asymmetric") == 0) {
        *out = x / axis->scale;
    } else if (strcmp(rule->where, "align_corners") == 0) {
        *out = x * span;
    } else if (strcmp(rule->where, "tf_crop_and_resize") == 0) {
        double size = axis->end - axis->begin;
        *out = axis->begin * (input - 1) + (width == 1 ? size * (input - 1) / 2 : x * size * span);
    } else {
        return WPK_EUNSUPPORTED;
    }
    return WPK_OK;
}

static double weight_at(const struct rule *rule, double distance)
{
    double t = fabs(distance);
    double a = rule->cubic;

    if (strcmp(rule->mode, "linear") == 0) {
        return t < 1 ? 1 - t : 0;
    }
    return t <= 1  ? ((a + 2) * t - (a + 3)) * t * t + 1
           : t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
                   : 0;
}

static double nearest_to(const struct rule *rule, double x)
{
    return strcmp(rule->nearest, "floor") == 0               ? floor(x)
           : strcmp(rule->nearest, "ceil") == 0              ? ceil(x)
           : strcmp(rule->nearest, "round_prefer_ceil") == 0 ? floor(x + 0.5)
                                                             : ceil(x - 0.5);
}

/* Add to row [input] the weights of the elements around x; elements beyond an end are that end's.
 */
static void fill_row(const struct rule *rule, const struct axis *axis, double x, double *row)
{
    double last = (double)(axis->input - 1);
    double stretch = rule->antialias && axis->scale < 1 ? axis->scale : 1;
    double reach = (strcmp(rule->mode, "linear") == 0 ? 1 : 2) / stretch;
    double sum = 0;

    if (strcmp(rule->where, "tf_crop_and_resize") == 0 && (x < 0 || x > last)) {
        return;
    }
    if (strcmp(rule->mode, "nearest") == 0) {
        row[(int64_t)fmin(fmax(nearest_to(rule, x), 0), last)] = 1;
        return;
    }
    for (double at = floor(x - reach); at <= ceil(x + reach); at++) {
        bool is_outside = at < 0 || at > last;
        double weight = weight_at(rule, (at - x) * stretch);
        if (!(rule->excludes_outside && is_outside)) {
            row[(int64_t)fmin(fmax(at, 0), last)] += weight;
            sum += weight;
        }
    }
    for (int64_t i = 0; i < axis->input; i++) {
        row[i] /= sum != 0 ? sum : 1;
    }
}

static wpk_err add_matrix(struct wpk_graph *graph, const struct rule *rule, const struct axis *axis,
                          enum wpk_dtype dtype, int *out)
{
    size_t count = (size_t)(axis->input * axis->output);
    double *wide = WPK_DEMAND(calloc(count, sizeof(double)));
    void *data = wpk_arena_demand(&graph->arena, count, wpk_dtype_size(dtype));
    wpk_err err = WPK_OK;

    for (int64_t i = 0; err == WPK_OK && i < axis->output; i++) {
        double x = 0;
        err = place_of(rule, axis, i, &x);
        if (err == WPK_OK) {
            fill_row(rule, axis, x, wide + i * axis->input);
        }
    }
    err = err == WPK_OK ? wpk_graph_add_value(graph, "", out) : err;
    if (err == WPK_OK) {
        struct wpk_graph_value *value = &graph->values[*out];
        wpk_convert_narrow(dtype, wide, (int64_t)count, data);
        value->dtype = dtype;
        value->is_typed = true;
        value->is_shaped = true;
        value->rank = 2;
        value->extent[0] = axis->output;
        value->extent[1] = axis->input;
        value->data = data;
        value->size = count * wpk_dtype_size(dtype);
        value->is_read = true;
    }
    free(wide);
    return err;
}

/* An axis that stays as it is needs no matrix. */
static bool is_same(const struct rule *rule, const struct axis *axis)
{
    bool is_cropped =
        strcmp(rule->where, "tf_crop_and_resize") == 0 && (axis->begin != 0 || axis->end != 1);

    return axis->scale == 1 && axis->output == axis->input && !is_cropped;
}

wpk_err wpk_resize_add_matrices(struct wpk_graph *graph, int node, struct wpk_diag *diag)
{
    struct wpk_graph_node *n = &graph->nodes[node];
    const struct rule rule = rule_of(graph, n);
    struct axis axes[WPK_RANK_MAX];
    int x = n->inputs[0];
    int rank = graph->values[x].rank;
    enum wpk_dtype dtype = graph->values[x].dtype;
    bool is_mode = strcmp(rule.mode, "nearest") == 0 ||
                   ((strcmp(rule.mode, "linear") == 0 || strcmp(rule.mode, "cubic") == 0) &&
                    wpk_dtype_is_float(dtype));

    if (has_factors(graph, n)) {
        return WPK_OK;
    }
    wpk_err err = plan(graph, n, axes, diag);
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)rank + 1);
    for (int d = 0; err == WPK_OK && d < rank; d++) {
        inputs[d + 1] = -1;
        if (is_same(&rule, &axes[d])) {
            continue;
        }
        if (!is_mode || axes[d].input > MATRIX_ELEMENTS_MAX / axes[d].output) {
            err = WPK_EUNSUPPORTED;
        } else {
            err = add_matrix(graph, &rule, &axes[d], dtype, &inputs[d + 1]);
        }
        if (err == WPK_EUNSUPPORTED) {
            wpk_diag_set(diag, "its mode (%s, %s) is not supported, or its axes are too long",
                         rule.mode, rule.where);
        }
    }
    if (err == WPK_OK) {
        inputs[0] = x;
        n = &graph->nodes[node];
        n->inputs = inputs;
        n->input_count = rank + 1;
    }
    return err;
}

/* ---- equations */

static bool has_matrices(const struct wpk_printer *printer)
{
    int rank = printer->input[0]->rank;
    bool any = printer->node->input_count == rank + 1;

    for (int i = 1; any && i <= rank; i++) {
        any = printer->input[i] == NULL || printer->input[i]->rank == 2;
    }
    return any;
}

/* "10 + sum(k2:3) X3[d2,k2] * (X[d0,d1,k2] - 10)": rows of zeros give the number that stands for
 * what lies outside. */
static void print_product(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[0];
    double outside = wpk_graph_real(printer->node, "extrapolation_value", 0);
    struct wpk_buf *text = printer->text;
    bool is_moved = outside != 0;
    const char *before = "sum(";

    if (is_moved) {
        wpk_printer_number(printer, outside);
        wpk_buf_append_text(text, " + ");
    }
    for (int d = 0; d < x->rank; d++) {
        if (printer->input[d + 1] != NULL) {
            wpk_buf_printf(text, "%sk%d:%lld", before, d, (long long)x->extent[d]);
            before = ",";
        }
    }
    wpk_buf_append_text(text, before[0] == ',' ? ") " : "");
    for (int d = 0; d < x->rank; d++) {
        if (printer->input[d + 1] != NULL) {
            wpk_buf_printf(text, "X%d[d%d,k%d] * ", d + 1, d, d);
        }
    }
    wpk_buf_append_text(text, is_moved ? "(X" : "X");
    for (int d = 0; d < x->rank; d++) {
        wpk_buf_printf(text, "%s%c%d", d > 0 ? "," : "[", printer->input[d + 1] != NULL ? 'k' : 'd',
                       d);
    }
    wpk_buf_append_text(text, "]");
    if (is_moved) {
        wpk_buf_append_text(text, " - ");
        wpk_printer_number(printer, outside);
        wpk_buf_append_text(text, ")");
    }
}

wpk_err wpk_print_resize(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[0];

    wpk_printer_output(printer);
    if (has_matrices(printer)) {
        print_product(printer);
        return WPK_OK;
    }
    for (int d = 0; d < x->rank; d++) {
        int64_t factor = printer->out->extent[d] / x->extent[d];
        wpk_buf_printf(printer->text, "%sd%d", d > 0 ? "," : "X[", d);
        if (factor > 1) {
            wpk_buf_printf(printer->text, "/%lld", (long long)factor);
        }
    }
    wpk_buf_append_text(printer->text, "]");
    return WPK_OK;
}
