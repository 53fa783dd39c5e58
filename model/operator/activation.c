/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include <string.h>
#include <strings.h>

/* source  https://onnx.ai/onnx/operators/onnx__LSTM.html: the functions, and their defaults where
 *         these are not an operator's own */
static const struct function {
    const char *name;
    const char *op; /* NULL: alpha * x + beta, or alpha * tanh(beta * x) */
    bool has_alpha, has_beta;
    float alpha, beta;
} functions[] = {
    {"Tanh", "Tanh", false, false, 0, 0},
    {"Sigmoid", "Sigmoid", false, false, 0, 0},
    {"Relu", "Relu", false, false, 0, 0},
    {"Softsign", "Softsign", false, false, 0, 0},
    {"Softplus", "Softplus", false, false, 0, 0},
    {"LeakyRelu", "LeakyRelu", true, false, 0.01F, 0},
    {"ThresholdedRelu", "ThresholdedRelu", true, false, 1, 0},
    {"Elu", "Elu", true, false, 1, 0},
    {"HardSigmoid", "HardSigmoid", true, true, 0.2F, 0.5F},
    {"Affine", NULL, true, true, 1, 0},
    {"ScaledTanh", NULL, true, true, 1, 1},
};

/* The function whose name `*list` begins with, and pass it; -1: none. */
static int find(const char **list)
{
    size_t size = strcspn(*list, ",");
    const char *name = *list;

    *list += size + ((*list)[size] == ',');
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        if (strlen(functions[f].name) == size && strncasecmp(functions[f].name, name, size) == 0) {
            return (int)f;
        }
    }
    return -1;
}

/* The next number of a list, for a function that takes one. */
static float take(const struct wpk_graph_attribute *list, bool takes, int *next, float otherwise)
{
    return takes && list != NULL && *next < list->count ? list->reals[(*next)++] : otherwise;
}

wpk_err wpk_activations_read(const struct wpk_graph_node *node, const char *usual, int count,
                             struct wpk_activation_function *out, struct wpk_diag *diag)
{
    const struct wpk_graph_attribute *alphas =
        wpk_graph_attribute(node, "activation_alpha", WPK_ATTRIBUTE_FLOATS);
    const struct wpk_graph_attribute *betas =
        wpk_graph_attribute(node, "activation_beta", WPK_ATTRIBUTE_FLOATS);
    const char *given = wpk_graph_text(node, "activations", "");
    const char *list = given[0] != '\0' ? given : usual;
    int alpha = 0, beta = 0;

    WPK_ASSERT(count <= WPK_ACTIVATIONS_MAX);
    for (int i = 0; i < count; i++) {
        const char *name = list;
        int kind = find(&list);
        if (kind < 0) {
            return wpk_fail(diag, WPK_EUNSUPPORTED,
                            "the activation '%.*s' is not supported; %d are needed",
                            (int)strcspn(name, ","), name, count);
        }
        const struct function *f = &functions[kind];
        out[i] =
            (struct wpk_activation_function){.kind = kind,
                                             .alpha = take(alphas, f->has_alpha, &alpha, f->alpha),
                                             .beta = take(betas, f->has_beta, &beta, f->beta)};
    }
    if (list[0] != '\0') {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "it has more than %d activations", count);
    }
    return WPK_OK;
}

static int scale(struct wpk_compose *c, float by, int x)
{
    return wpk_compose_binary(c, "Mul", "", x, wpk_compose_number(c, by));
}

int wpk_activation_apply(struct wpk_compose *c, const struct wpk_activation_function *activation,
                         int x)
{
    const struct function *f = &functions[activation->kind];
    const struct wpk_graph_attribute attributes[] = {wpk_compose_real("alpha", activation->alpha),
                                                     wpk_compose_real("beta", activation->beta)};

    if (f->op != NULL) {
        return wpk_compose_operator(c, "", f->op, "", &x, 1, attributes, f->has_alpha + f->has_beta,
                                    -1);
    }
    if (strcmp(f->name, "Affine") == 0) {
        return wpk_compose_binary(c, "Add", "", scale(c, activation->alpha, x),
                                  wpk_compose_number(c, activation->beta));
    }
    return scale(c, activation->alpha, wpk_compose_unary(c, "Tanh", scale(c, activation->beta, x)));
}
