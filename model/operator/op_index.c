/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/operator_forms.h"

#include <string.h>

enum { DATA, INDICES, UPDATES };     /* inputs of gathers and scatters */
enum { HOT_INDICES, DEPTH, VALUES }; /* inputs of OneHot */

/* ---- shapes */

static wpk_err infer_gather(const struct wpk_inference *in)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(in->node, 0, in->x->rank, &axis, in->diag);
    if (err == WPK_OK && in->x->rank - 1 + indices->rank > WPK_RANK_MAX) {
        err = wpk_fail(in->diag, WPK_EUNSUPPORTED, "more than %d dimensions", WPK_RANK_MAX);
    }
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        if (d != axis) {
            in->out->extent[in->out->rank++] = in->x->extent[d];
            continue;
        }
        memcpy(in->out->extent + d, indices->extent, (size_t)indices->rank * sizeof(int64_t));
        in->out->rank += indices->rank;
    }
    return err;
}

/* Indices of one axis, of the data's rank, and within its extents elsewhere. */
static wpk_err check_elements(const struct wpk_inference *in)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(in->node, 0, in->x->rank, &axis, in->diag);
    for (int d = 0; err == WPK_OK && d < in->x->rank; d++) {
        if (indices->rank != in->x->rank || (d != axis && indices->extent[d] > in->x->extent[d])) {
            err = wpk_fail(in->diag, WPK_EINVAL, "its indices do not fit its data");
        }
    }
    return err;
}

/* How many axes of the data an element of the indices of GatherND and ScatterND names, behind
 * `batch` axes that both have. */
static wpk_err count_named(const struct wpk_inference *in, int batch, int *out)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);

    if (batch < 0 || indices->rank <= batch || in->x->rank <= batch ||
        indices->extent[indices->rank - 1] > in->x->rank - batch) {
        return wpk_fail(in->diag, WPK_EINVAL, "its indices do not fit its data");
    }
    *out = (int)indices->extent[indices->rank - 1];
    for (int d = 0; d < batch; d++) {
        if (indices->extent[d] != in->x->extent[d]) {
            return wpk_fail(in->diag, WPK_EINVAL, "its indices do not fit its data");
        }
    }
    return WPK_OK;
}

static wpk_err infer_gather_nd(const struct wpk_inference *in)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);
    int64_t batch = wpk_graph_int(in->node, "batch_dims", 0);
    int named = 0;

    wpk_err err = count_named(in, batch < WPK_RANK_MAX ? (int)batch : WPK_RANK_MAX, &named);
    if (err != WPK_OK) {
        return err;
    }
    int rest = in->x->rank - (int)batch - named;
    if (indices->rank - 1 + rest > WPK_RANK_MAX) {
        return wpk_fail(in->diag, WPK_EINVAL, "too many dimensions");
    }
    for (int d = 0; d < indices->rank - 1; d++) {
        in->out->extent[in->out->rank++] = indices->extent[d];
    }
    for (int d = in->x->rank - rest; d < in->x->rank; d++) {
        in->out->extent[in->out->rank++] = in->x->extent[d];
    }
    return WPK_OK;
}

static wpk_err infer_scatter(const struct wpk_inference *in)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);
    const struct wpk_graph_value *updates = wpk_graph_input(in->graph, in->node, UPDATES);
    bool is_nd = in->op->kind == WPK_KIND_SCATTER_ND;
    int named = 0;
    int lead = indices->rank;

    wpk_err err = is_nd ? count_named(in, 0, &named) : check_elements(in);
    if (err == WPK_OK && updates->dtype != in->x->dtype) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its updates have another type than its data");
    }
    lead -= is_nd ? 1 : 0;
    int rank = is_nd ? lead + in->x->rank - named : lead;
    if (err == WPK_OK && updates->rank != rank) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its updates do not fit its indices");
    }
    for (int d = 0; err == WPK_OK && d < rank; d++) {
        int64_t wanted = d < lead ? indices->extent[d] : in->x->extent[named + d - lead];
        if (updates->extent[d] != wanted) {
            err = wpk_fail(in->diag, WPK_EINVAL, "its updates do not fit its indices");
        }
    }
    return err == WPK_OK ? wpk_infer_like(in) : err;
}

static wpk_err read_depth(const struct wpk_graph_value *value, int64_t *out, struct wpk_diag *diag)
{
    if (value->data == NULL || wpk_graph_elements(value) != 1) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "its depth must be a constant number");
    }
    double depth = wpk_graph_element(value, 0);
    if (!(depth >= 1 && depth <= (double)WPK_ELEMENTS_MAX)) {
        return wpk_fail(diag, WPK_EINVAL, "its depth is no extent");
    }
    *out = (int64_t)depth;
    return WPK_OK;
}

static wpk_err infer_one_hot(const struct wpk_inference *in)
{
    const struct wpk_graph_value *values = wpk_graph_input(in->graph, in->node, VALUES);
    int64_t depth = 0;
    int axis = 0;

    wpk_err err = read_depth(wpk_graph_input(in->graph, in->node, DEPTH), &depth, in->diag);
    err =
        err == WPK_OK ? wpk_operator_axis_of(in->node, -1, in->x->rank + 1, &axis, in->diag) : err;
    if (err == WPK_OK &&
        (values->rank != 1 || values->extent[0] != 2 || in->x->rank >= WPK_RANK_MAX)) {
        err = wpk_fail(in->diag, WPK_EINVAL, "its values are not two, or its rank is too large");
    }
    for (int d = 0; err == WPK_OK && d <= in->x->rank; d++) {
        in->out->extent[d] = d == axis ? depth : in->x->extent[d < axis ? d : d - 1];
    }
    in->out->rank = in->x->rank + 1;
    return err;
}

static wpk_err infer_top_k(const struct wpk_inference *in)
{
    const struct wpk_graph_value *k = wpk_graph_input(in->graph, in->node, 1);
    int64_t wanted = wpk_graph_int(in->node, "k", 0);
    int count = 1;
    int axis = 0;

    wpk_err err = wpk_operator_axis_of(in->node, -1, in->x->rank, &axis, in->diag);
    if (err == WPK_OK && k != NULL && wpk_graph_integers(k, &wanted, 1, &count) != WPK_OK) {
        return wpk_fail(in->diag, WPK_EUNSUPPORTED, "K must be a constant");
    }
    if (err == WPK_OK && (count != 1 || wanted < 1 || wanted > in->x->extent[axis])) {
        return wpk_fail(in->diag, WPK_EINVAL, "K is not within its axis, which has %lld elements",
                        (long long)in->x->extent[axis]);
    }
    if (err == WPK_OK) {
        err = wpk_infer_like(in);
        in->out->extent[axis] = wanted;
    }
    return err;
}

/* Constant indices lie within the axes of the data. `named`: each row names several axes. */
static wpk_err check_indices(const struct wpk_inference *in)
{
    const struct wpk_graph_value *indices = wpk_graph_input(in->graph, in->node, INDICES);
    bool is_nd = in->op->kind == WPK_KIND_GATHER_ND || in->op->kind == WPK_KIND_SCATTER_ND;
    int first = is_nd ? (int)wpk_graph_int(in->node, "batch_dims", 0) : 0;
    int64_t row = is_nd ? indices->extent[indices->rank - 1] : 1;

    if (indices->data == NULL ||
        (!is_nd && wpk_operator_axis_of(in->node, 0, in->x->rank, &first, NULL) != WPK_OK)) {
        return WPK_OK;
    }
    for (int64_t i = 0; i < wpk_graph_elements(indices); i++) {
        int64_t extent = in->x->extent[first + (int)(i % row)];
        double index = wpk_graph_element(indices, i);
        if (index < -(double)extent || index >= (double)extent) {
            return wpk_fail(in->diag, WPK_EINVAL, "index %.0f of an axis of %lld elements", index,
                            (long long)extent);
        }
    }
    return WPK_OK;
}

static wpk_err infer_shape(const struct wpk_inference *in)
{
    wpk_err err = WPK_OK;

    switch (in->op->kind) {
    case WPK_KIND_TOP_K:
        return infer_top_k(in);
    case WPK_KIND_GATHER:
        return infer_gather(in);
    case WPK_KIND_GATHER_ELEMENTS:
        err = check_elements(in);
        return err == WPK_OK ? wpk_infer_as(in, wpk_graph_input(in->graph, in->node, INDICES))
                             : err;
    case WPK_KIND_GATHER_ND:
        return infer_gather_nd(in);
    case WPK_KIND_ONE_HOT:
        return infer_one_hot(in);
    default:
        return infer_scatter(in);
    }
}

wpk_err wpk_infer_indexed(const struct wpk_inference *in)
{
    wpk_err err = infer_shape(in);
    bool has_indices = in->op->kind != WPK_KIND_TOP_K && in->op->kind != WPK_KIND_ONE_HOT;

    return err == WPK_OK && has_indices ? check_indices(in) : err;
}

/* ---- equations */

/* An index of input 0 at `place`, "[d0,r1]": a negative one counts from the end of `extent`
 * elements. */
static void print_wrapped(struct wpk_printer *printer, const char *place, int64_t extent)
{
    wpk_buf_printf(printer->text, "select(X%s < 0, X%s + %lld, X%s)", place, place,
                   (long long)extent, place);
}

/* Append "d0"; "d0+0" where the axis has another extent than the tensor. */
static void print_axis(struct wpk_buf *text, int axis, bool is_whole)
{
    wpk_buf_printf(text, "%sd%d%s", text->size > 1 ? "," : "", axis, is_whole ? "" : "+0");
}

/* True if the indices are constants first, first + step, first + 2 * step, ... */
static bool find_progression(const struct wpk_graph_value *indices, int64_t extent, int64_t *first,
                             int64_t *step)
{
    int64_t count = wpk_graph_elements(indices);

    *step = 1;
    if (indices->data == NULL || indices->rank > 1 || wpk_dtype_is_float(indices->dtype)) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t element = wpk_graph_integer(indices, i);
        int64_t index = element < 0 ? element + extent : element;
        *first = i == 0 ? index : *first;
        *step = i == 1 ? index - *first : *step;
        if (index < 0 || index >= extent || index != *first + i * *step) {
            return false;
        }
    }
    return *step > 0;
}

/* Append an index that is data, of an axis of `extent` elements; an axis of one has only 0. */
static void print_data(struct wpk_printer *printer, const char *place, int64_t extent)
{
    wpk_buf_printf(printer->text, extent == 1 ? "0" : "X1%s", place);
}

/* Gather and GatherElements: one axis is named. */
static wpk_err print_gather(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[DATA];
    const struct wpk_graph_value *indices = printer->input[INDICES];
    bool is_elements = printer->op->kind == WPK_KIND_GATHER_ELEMENTS;
    struct wpk_buf place = {0};
    struct wpk_buf *text = printer->text;
    int axis = 0;
    int64_t first = 0;
    int64_t step = 0;

    wpk_err err = wpk_operator_axis_of(printer->node, 0, x->rank, &axis, printer->diag);
    if (err != WPK_OK) {
        return err;
    }
    bool is_progression = !is_elements && find_progression(indices, x->extent[axis], &first, &step);
    wpk_buf_append_text(&place, "[");
    for (int d = 0; d < indices->rank; d++) {
        print_axis(&place, is_elements ? d : axis + d, true);
    }
    wpk_buf_append_text(&place, "]");
    wpk_printer_output(printer);
    for (int d = 0; d < x->rank; d++) {
        int from = is_elements || d < axis ? d : d + indices->rank - 1;
        wpk_buf_append_text(text, d > 0 ? "," : "X[");
        if (d != axis) {
            bool is_whole = printer->out->extent[from] == x->extent[d];
            wpk_buf_printf(text, "d%d%s", from, is_whole ? "" : "+0");
        } else if (!is_progression) {
            print_data(printer, wpk_buf_text(&place), x->extent[axis]);
        } else if (indices->rank > 0) {
            wpk_buf_printf(text, "%lld*d%d+%lld", (long long)step, axis, (long long)first);
        } else {
            wpk_buf_printf(text, "%lld", (long long)first);
        }
    }
    wpk_buf_append_text(text, "]");
    wpk_buf_fini(&place);
    return WPK_OK;
}

static wpk_err print_gather_nd(struct wpk_printer *printer)
{
    const struct wpk_graph_value *x = printer->input[DATA];
    const struct wpk_graph_value *indices = printer->input[INDICES];
    struct wpk_buf *text = printer->text;
    int batch = (int)wpk_graph_int(printer->node, "batch_dims", 0);
    int lead = indices->rank - 1;
    int named = (int)indices->extent[lead];

    wpk_printer_output(printer);
    for (int d = 0; d < x->rank; d++) {
        struct wpk_buf place = {0};
        wpk_buf_append_text(text, d > 0 ? "," : "X[");
        if (d >= batch && d < batch + named) {
            wpk_buf_append_text(&place, "[");
            for (int i = 0; i < lead; i++) {
                print_axis(&place, i, true);
            }
            wpk_buf_printf(&place, lead > 0 ? ",%d]" : "%d]", d - batch);
            print_data(printer, wpk_buf_text(&place), x->extent[d]);
        } else {
            wpk_buf_printf(text, "d%d", d < batch ? d : lead + d - batch - named);
        }
        wpk_buf_fini(&place);
    }
    wpk_buf_append_text(text, "]");
    return WPK_OK;
}

static wpk_err print_one_hot(struct wpk_printer *printer)
{
    struct wpk_buf place = {0};
    int64_t depth = 0;
    int axis = 0;
    int rank = printer->out->rank;

    wpk_err err = read_depth(printer->input[DEPTH], &depth, printer->diag);
    err = err == WPK_OK ? wpk_operator_axis_of(printer->node, -1, rank, &axis, printer->diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    wpk_buf_append_text(&place, "[");
    for (int d = 0; d < rank; d++) {
        if (d != axis) {
            print_axis(&place, d, true);
        }
    }
    wpk_buf_append_text(&place, "]");
    wpk_printer_output(printer);
    wpk_buf_append_text(printer->text, "select(");
    print_wrapped(printer, wpk_buf_text(&place), depth);
    wpk_buf_printf(printer->text, " == d%d, X2[1], X2[0])", axis);
    wpk_buf_fini(&place);
    return WPK_OK;
}

wpk_err wpk_print_indexed(struct wpk_printer *printer)
{
    switch (printer->op->kind) {
    case WPK_KIND_GATHER:
    case WPK_KIND_GATHER_ELEMENTS:
        return print_gather(printer);
    case WPK_KIND_GATHER_ND:
        return print_gather_nd(printer);
    case WPK_KIND_ONE_HOT:
        return print_one_hot(printer);
    default: /* of a Scatter, and else host.h computes it */
        return wpk_fail(printer->diag, WPK_EUNSUPPORTED, "its reduction is not supported");
    }
}
