/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include "model/operator/operator.h"
#include "schema/convert.h"

wpk_err wpk_expansion_refuse(const struct wpk_expansion *e, const char *why)
{
    wpk_diag_set(e->diag, "%s", why);
    return WPK_EUNSUPPORTED;
}

struct wpk_graph_value wpk_expansion_input(const struct wpk_expansion *e, int index)
{
    const struct wpk_graph_value *value = wpk_graph_input(e->graph, e->node, index);

    return value != NULL ? *value : (struct wpk_graph_value){.rank = -1};
}

wpk_err wpk_expansion_number(const struct wpk_expansion *e, int index, int64_t otherwise,
                             int64_t *out)
{
    const struct wpk_graph_value *value = wpk_graph_input(e->graph, e->node, index);
    int count = 0;

    *out = otherwise;
    if (value == NULL) {
        return WPK_OK;
    }
    if (wpk_graph_integers(value, out, 1, &count) != WPK_OK || count != 1) {
        wpk_diag_set(e->diag, "its input number %d must be a constant integer", index);
        return WPK_EUNSUPPORTED;
    }
    return WPK_OK;
}

double wpk_expansion_real(const struct wpk_expansion *e, const char *attribute, double otherwise)
{
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(e->node, attribute, WPK_ATTRIBUTE_FLOAT);

    return found != NULL ? (double)found->real : otherwise;
}

int wpk_expansion_equation(struct wpk_expansion *e, const int *inputs, int count,
                           enum wpk_dtype dtype, int rank, const int64_t *extent, int output)
{
    const char *text = wpk_arena_copy_text(&e->graph->arena, wpk_buf_text(&e->text));
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("dtype", wpk_graph_element_of(dtype)),
        wpk_compose_integers(&e->to, "shape", extent, rank),
        wpk_compose_integer("axis", e->axis),
        {.name = "text", .kind = WPK_ATTRIBUTE_TEXT, .text = text}};
    const struct wpk_graph_node node = {.domain = WPK_EQUATION_DOMAIN,
                                        .op = e->node->op,
                                        .name = e->node->name,
                                        .inputs = inputs,
                                        .input_count = count,
                                        .attributes = attributes,
                                        .attribute_count = 4};

    wpk_err err = text == NULL ? WPK_ENOMEM : wpk_buf_status(&e->text);
    e->to.err = e->to.err == WPK_OK ? err : e->to.err;
    wpk_buf_reset(&e->text);
    return wpk_compose_node(&e->to, &node, output);
}

int wpk_expansion_node(struct wpk_expansion *e, const char *domain, const char *op,
                       const int *inputs, int count, const struct wpk_graph_attribute *attributes,
                       int attribute_count, int output)
{
    const struct wpk_graph_node node = {.op = op,
                                        .name = e->node->name,
                                        .domain = domain,
                                        .inputs = inputs,
                                        .input_count = count,
                                        .attributes = attributes,
                                        .attribute_count = attribute_count};

    return wpk_compose_node(&e->to, &node, output);
}

int wpk_expansion_binary(struct wpk_expansion *e, const char *op, int a, int b, int output)
{
    return wpk_expansion_node(e, "", op, (int[]){a, b}, 2, NULL, 0, output);
}

int wpk_expansion_cast(struct wpk_expansion *e, int x, enum wpk_dtype dtype, int output)
{
    const struct wpk_graph_attribute to = wpk_compose_integer("to", wpk_graph_element_of(dtype));

    return wpk_expansion_node(e, "", "Cast", &x, 1, &to, 1, output);
}

int wpk_expansion_constant(struct wpk_expansion *e, enum wpk_dtype dtype, int rank,
                           const int64_t *extent, const double *numbers)
{
    int64_t count = wpk_expansion_product(extent, rank);
    void *data = wpk_arena_alloc(&e->graph->arena, (size_t)count, wpk_dtype_size(dtype));

    WPK_ASSERT(wpk_dtype_is_float(dtype));
    if (data == NULL) {
        e->to.err = e->to.err == WPK_OK ? WPK_ENOMEM : e->to.err;
        return 0;
    }
    wpk_convert_from_cells(dtype, numbers, count, data);
    return wpk_compose_constant(&e->to, dtype, rank, extent, data);
}

int wpk_expansion_gather(struct wpk_expansion *e, int x, int indices, int output)
{
    const struct wpk_graph_node node = {
        .op = "Gather", .name = e->node->name, .inputs = (int[]){x, indices}, .input_count = 2};

    return wpk_compose_node(&e->to, &node, output);
}

int wpk_expansion_output(const struct wpk_expansion *e, int index)
{
    int value = index < e->node->output_count ? e->node->outputs[index] : -1;
    bool is_wanted =
        value >= 0 && (e->graph->values[value].is_read || e->graph->values[value].is_output);

    return is_wanted ? value : -1;
}

void wpk_expansion_axes(struct wpk_expansion *e, int count)
{
    for (int d = 0; d < count; d++) {
        wpk_buf_printf(&e->text, "%sd%d", d > 0 ? "," : "", d);
    }
}

int64_t wpk_expansion_product(const int64_t *extent, int count)
{
    int64_t product = 1;

    for (int d = 0; d < count; d++) {
        product *= extent[d];
    }
    return product;
}
