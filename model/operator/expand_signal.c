/* SPDX-License-Identifier: Apache-2.0 */
/* A Fourier transform of n elements is a product with n * n sines and cosines: exact, and for the
 * lengths that models have about as fast as a fast one. */
#include "model/operator/expansion.h"

#include "model/operator/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_MAX ((int64_t)1 << 24) /* elements */

static const double turn = 6.283185307179586476925;

/* ---- windows */

wpk_err wpk_expand_window(struct wpk_expansion *e)
{
    static const struct {
        const char *op;
        double constant, first, second; /* of the cosines of the angle and of twice the angle */
    } windows[] = {{"BlackmanWindow", 0.42, 0.5, 0.08},
                   {"HammingWindow", 25.0 / 46.0, 21.0 / 46.0, 0},
                   {"HannWindow", 0.5, 0.5, 0}};
    enum wpk_dtype dtype = WPK_F32;
    int64_t size = 0;
    int w = 0;

    if (wpk_graph_dtype((int)wpk_graph_int(e->node, "output_datatype", 1), &dtype) != WPK_OK ||
        !wpk_dtype_is_float(dtype)) {
        return wpk_expansion_refuse(e, "its output_datatype is neither float32 nor float64");
    }
    wpk_err err = wpk_expansion_number(e, 0, 0, &size);
    if (err != WPK_OK) {
        return err;
    }
    if (size < 1 || size > MATRIX_MAX) {
        return wpk_expansion_refuse(e, "its size is no extent");
    }
    while (strcmp(windows[w].op, e->node->op) != 0) {
        w++;
    }
    int64_t period = size - (wpk_graph_int(e->node, "periodic", 1) == 0 && size > 1);
    const char *type = wpk_dtype_name(dtype);
    wpk_buf_printf(&e->text,
                   "Y[d0] = %.17g - %.17g * cos(%.17g * %s(d0)) + %.17g * cos(%.17g * "
                   "%s(d0))",
                   windows[w].constant, windows[w].first, turn / (double)period, type,
                   windows[w].second, 2 * turn / (double)period, type);
    (void)wpk_expansion_equation(e, e->node->inputs, 1, dtype, 1, &size,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* ---- Fourier transforms */

/* A transform between sequences of real (1) or complex (2) numbers. */
struct transform {
    int64_t length; /* n of the angle 2 pi / n */
    int64_t from, to;
    int64_t parts_from, parts_to;
    bool is_inverse;
    bool is_mirrored; /* the elements of the other half are the conjugates of these */
};

/* The coefficient of input element `row`, part `part`, in output element `column`, part `to`. */
static double weight_of(const struct transform *t, int64_t row, int64_t part, int64_t column,
                        int64_t to)
{
    double angle = turn * (double)(row * column % t->length) / (double)t->length;
    double sine = t->is_inverse ? sin(angle) : -sin(angle);
    double scale = t->is_inverse ? 1 / (double)t->length : 1;

    if (row >= t->length || (t->is_mirrored && 2 * row > t->length)) {
        return 0; /* longer than the transform, or its half */
    }
    if (t->is_mirrored && row > 0 && 2 * row != t->length) {
        scale *= 2;
    }
    return scale * (part == to ? cos(angle) : part == 0 ? sine : -sine);
}

/* The matrix [from, parts_from, to, parts_to]; -1: too large. */
static int add_matrix(struct wpk_expansion *e, const struct transform *t, enum wpk_dtype dtype)
{
    const int64_t extent[] = {t->from, t->parts_from, t->to, t->parts_to};
    double *cells = NULL;
    int matrix = -1;

    if (t->from <= MATRIX_MAX / 4 / t->to) {
        cells = calloc((size_t)wpk_extents_product(extent, 4), sizeof(*cells));
    }
    for (int64_t i = 0; cells != NULL && i < wpk_extents_product(extent, 4); i++) {
        int64_t rest = i / t->parts_to;
        cells[i] = weight_of(t, rest / t->to / t->parts_from, rest / t->to % t->parts_from,
                             rest % t->to, i % t->parts_to);
    }
    if (cells != NULL) {
        matrix = wpk_expansion_constant(e, dtype, 4, extent, cells);
    }
    free(cells);
    return matrix;
}

static wpk_err read_axis(struct wpk_expansion *e, int rank, int *out)
{
    bool is_old =
        wpk_graph_attribute(e->node, "axis", WPK_ATTRIBUTE_INT) != NULL || e->graph->opset < 20;
    int64_t axis = wpk_graph_int(e->node, "axis", is_old ? 1 : -2);

    wpk_err err = wpk_expansion_number(e, 2, axis, &axis);
    return err == WPK_OK ? wpk_operator_axis(axis, rank, out, e->diag) : err;
}

static wpk_err describe(struct wpk_expansion *e, const struct wpk_graph_value *x, int axis,
                        struct transform *out)
{
    bool is_half = wpk_graph_int(e->node, "onesided", 0) != 0;
    bool is_inverse = wpk_graph_int(e->node, "inverse", 0) != 0;
    int64_t from = x->extent[axis];

    *out = (struct transform){.from = from,
                              .parts_from = x->extent[x->rank - 1],
                              .parts_to = is_half && is_inverse ? 1 : 2,
                              .is_inverse = is_inverse,
                              .is_mirrored = is_half && is_inverse};
    wpk_err err =
        wpk_expansion_number(e, 1, is_half && is_inverse ? 2 * (from - 1) : from, &out->length);
    if (err == WPK_OK && (out->length < 1 || out->length > MATRIX_MAX)) {
        return wpk_expansion_refuse(e, "its length is no extent");
    }
    out->to = is_half && !is_inverse ? out->length / 2 + 1 : out->length;
    return err;
}

wpk_err wpk_expand_dft(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    struct transform t;
    int64_t extent[WPK_RANK_MAX];
    int axis = 0;

    if (x.rank < 2 || !wpk_dtype_is_float(x.dtype) || x.extent[x.rank - 1] > 2) {
        return wpk_expansion_refuse(e, "its input is no sequence of floats or of pairs of floats");
    }
    wpk_err err = read_axis(e, x.rank, &axis);
    if (err == WPK_OK && axis == x.rank - 1) {
        err = wpk_expansion_refuse(e, "its axis is that of the parts of a number");
    }
    err = err == WPK_OK ? describe(e, &x, axis, &t) : err;
    if (err != WPK_OK) {
        return err;
    }
    int inputs[] = {e->node->inputs[0], add_matrix(e, &t, x.dtype)};
    if (inputs[1] < 0) {
        return wpk_expansion_refuse(e, "its matrix has more than 2^24 elements");
    }
    memcpy(extent, x.extent, sizeof(extent));
    extent[axis] = t.to;
    extent[x.rank - 1] = t.parts_to;
    wpk_buf_printf(&e->text, "Y[%s] = sum(r:%lld,c:%lld) X[", wpk_axis_names(x.rank),
                   (long long)t.from, (long long)t.parts_from);
    for (int d = 0; d < x.rank - 1; d++) {
        wpk_buf_printf(&e->text, d == axis ? "r," : "d%d,", d);
    }
    wpk_buf_printf(&e->text, "c] * X1[r,c,d%d,d%d]", axis, x.rank - 1);
    (void)wpk_expansion_equation(e, inputs, 2, x.dtype, x.rank, extent, wpk_expansion_output(e, 0));
    return WPK_OK;
}

wpk_err wpk_expand_stft(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value window = wpk_expansion_input(e, 2);
    bool is_half = wpk_graph_int(e->node, "onesided", 1) != 0;
    int64_t step = 0;
    int64_t length = window.rank == 1 ? window.extent[0] : 0;

    wpk_err err = wpk_expansion_number(e, 1, 0, &step);
    err = err == WPK_OK ? wpk_expansion_number(e, 3, length, &length) : err;
    if (err != WPK_OK) {
        return err;
    }
    if (x.rank < 2 || x.rank > 3 || !wpk_dtype_is_float(x.dtype) ||
        (x.rank == 3 && x.extent[2] > 2) || length < 1 || step < 1 || length > x.extent[1] ||
        (window.rank >= 0 &&
         (window.rank != 1 || window.extent[0] != length || window.dtype != x.dtype))) {
        return wpk_expansion_refuse(e, "its signal, window and frames do not fit each other");
    }
    const struct transform t = {.length = length,
                                .from = length,
                                .to = is_half ? length / 2 + 1 : length,
                                .parts_from = x.rank == 3 ? x.extent[2] : 1,
                                .parts_to = 2};
    const int64_t extent[] = {x.extent[0], (x.extent[1] - length) / step + 1, t.to, 2};
    int inputs[] = {e->node->inputs[0], add_matrix(e, &t, x.dtype),
                    window.rank >= 0 ? e->node->inputs[2] : -1};
    if (inputs[1] < 0) {
        return wpk_expansion_refuse(e, "its matrix has more than 2^24 elements");
    }
    wpk_buf_printf(&e->text,
                   "Y[d0,d1,d2,d3] = sum(r:%lld,c:%lld) X[d0,%lld*d1+r%s]%s * "
                   "X1[r,c,d2,d3]",
                   (long long)length, (long long)t.parts_from, (long long)step,
                   x.rank == 3 ? ",c" : "", inputs[2] >= 0 ? " * X2[r]" : "");
    (void)wpk_expansion_equation(e, inputs, inputs[2] >= 0 ? 3 : 2, x.dtype, 4, extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}
