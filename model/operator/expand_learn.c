/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include <stdio.h>
#include <string.h>

/* A list of reals as a constant; NULL: the node has none, or of a length that is not `count`. */
static int add_list(struct wpk_expansion *e, const char *name, int rank, const int64_t *extent)
{
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(e->node, name, WPK_ATTRIBUTE_FLOATS);

    return found != NULL && found->count == wpk_extents_product(extent, rank)
               ? wpk_compose_constant(&e->to, WPK_F32, rank, extent, found->reals)
               : -1;
}

static int count_of(const struct wpk_expansion *e, const char *name)
{
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(e->node, name, WPK_ATTRIBUTE_FLOATS);

    return found != NULL ? found->count : 0;
}

wpk_err wpk_expand_post_transform(struct wpk_expansion *e, int scores, int output)
{
    static const char *const numbered[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    int64_t number = wpk_graph_int(e->node, "post_transform", 0); /* of a TreeEnsemble */
    const char *name =
        wpk_graph_text(e->node, "post_transform", numbered[number >= 0 && number < 5 ? number : 4]);
    const char *op = strcmp(name, "NONE") == 0       ? "Identity"
                     : strcmp(name, "SOFTMAX") == 0  ? "Softmax"
                     : strcmp(name, "LOGISTIC") == 0 ? "Sigmoid"
                                                     : NULL;
    const struct wpk_graph_attribute axis = wpk_compose_integer("axis", 1);

    if (op == NULL) {
        return wpk_fail(e->diag, WPK_EUNSUPPORTED, "its post_transform %s is not supported", name);
    }
    (void)wpk_expansion_node(e, "", op, &scores, 1, &axis, strcmp(name, "SOFTMAX") == 0, output);
    return WPK_OK;
}

int wpk_expand_label_count(const struct wpk_expansion *e, const int64_t **ints)
{
    static const char *const names[] = {"classlabels_int64s", "classlabels_ints",
                                        "classlabels_strings"};
    int count = 0;

    *ints = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct wpk_graph_attribute *list =
            wpk_graph_attribute(e->node, names[i], WPK_ATTRIBUTE_INTS);
        const char *texts = wpk_graph_text(e->node, names[i], "");
        if (list != NULL && list->count > 0) {
            *ints = list->integers;
            return list->count;
        }
        for (count = texts[0] != '\0'; *texts != '\0'; texts++) {
            count += *texts == ',';
        }
    }
    return count;
}

wpk_err wpk_expand_labels(struct wpk_expansion *e, int scores, int64_t rows, int64_t count)
{
    const int64_t *ints = NULL;
    int output = wpk_expansion_output(e, 0);
    int labels = wpk_expand_label_count(e, &ints);

    if (output < 0) {
        return WPK_OK;
    }
    if (ints == NULL || labels != count) {
        return wpk_expansion_refuse(e, "its labels are texts, or not one for each score; its "
                                       "output of labels cannot be computed");
    }
    int list = wpk_compose_constant(&e->to, WPK_I64, 1, &count, ints);
    wpk_buf_printf(&e->text,
                   "Y[d0] = min(r:%lld) select(X[d0,r] >= M[d0], i64(r), %lld) where "
                   "M[d0:%lld] = max(r:%lld) X[d0,r]",
                   (long long)count, (long long)count - 1, (long long)rows, (long long)count);
    int largest = wpk_expansion_equation(e, &scores, 1, WPK_I64, 1, &rows, -1);
    (void)wpk_expansion_gather(e, list, largest, output);
    return WPK_OK;
}

wpk_err wpk_expand_scaler(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    int64_t features = x.rank > 0 ? x.extent[x.rank - 1] : 1;
    int offsets = count_of(e, "offset"), scales = count_of(e, "scale");
    char axis[2][16];

    if (x.rank < 1 || x.dtype == WPK_BOOL || offsets < 1 || scales < 1 ||
        (offsets != 1 && offsets != features) || (scales != 1 && scales != features)) {
        return wpk_expansion_refuse(e, "its offset or scale is neither one number nor one for "
                                       "each feature");
    }
    const int64_t extent[] = {offsets, scales};
    for (int i = 0; i < 2; i++) {
        snprintf(axis[i], sizeof(axis[i]), extent[i] > 1 ? "d%d" : "%.0d0", x.rank - 1);
    }
    int inputs[] = {e->node->inputs[0], add_list(e, "offset", 1, &extent[0]),
                    add_list(e, "scale", 1, &extent[1])};
    wpk_buf_printf(&e->text, "Y[%s] = (f32(X[%s]) - X1[%s]) * X2[%s]", wpk_axis_names(x.rank),
                   wpk_axis_names(x.rank), offsets > 1 ? axis[0] : "0", scales > 1 ? axis[1] : "0");
    (void)wpk_expansion_equation(e, inputs, 3, WPK_F32, x.rank, x.extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* LinearRegressor and LinearClassifier: X C' + B, with a row of C for each score. */
wpk_err wpk_expand_linear(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const int64_t *ints = NULL;
    bool is_classifier = strcmp(e->node->op, "LinearClassifier") == 0;
    int64_t targets =
        is_classifier ? wpk_expand_label_count(e, &ints) : wpk_graph_int(e->node, "targets", 1);
    int64_t features = x.rank == 2 ? x.extent[1] : 0;
    const int64_t extent[] = {targets, features};
    const int64_t scores[] = {x.extent[0], targets};

    if (x.rank != 2 || x.dtype == WPK_BOOL || targets < 1 ||
        count_of(e, "coefficients") != targets * features ||
        (count_of(e, "intercepts") != 0 && count_of(e, "intercepts") != targets)) {
        return wpk_expansion_refuse(e, "its coefficients are not a row for each of its labels or "
                                       "targets");
    }
    int bias = add_list(e, "intercepts", 1, &targets);
    wpk_buf_printf(&e->text, "Y[d0,d1] = (sum(k:%lld) f32(X[d0,k]) * X1[d1,k])%s",
                   (long long)features, bias >= 0 ? " + X2[d1]" : "");
    int found = wpk_expansion_equation(
        e, (int[]){e->node->inputs[0], add_list(e, "coefficients", 2, extent), bias},
        bias >= 0 ? 3 : 2, WPK_F32, 2, scores, -1);
    wpk_err err = is_classifier ? wpk_expand_labels(e, found, x.extent[0], targets) : WPK_OK;
    int output = wpk_expansion_output(e, is_classifier ? 1 : 0);
    return err == WPK_OK && output >= 0 ? wpk_expand_post_transform(e, found, output) : err;
}
