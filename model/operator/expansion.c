/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include "model/operator/loop.h"
#include "schema/convert.h"

#include <string.h>

wpk_err wpk_expansion_refuse(const struct wpk_expansion *e, const char *why)
{
    return wpk_fail(e->diag, WPK_EUNSUPPORTED, "%s", why);
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
        return wpk_fail(e->diag, WPK_EUNSUPPORTED, "its input number %d must be a constant integer",
                        index);
    }
    return WPK_OK;
}

int wpk_expansion_equation(struct wpk_expansion *e, const int *inputs, int count,
                           enum wpk_dtype dtype, int rank, const int64_t *extent, int output)
{
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("dtype", wpk_graph_element_of(dtype)),
        wpk_compose_integers(&e->to, "shape", extent, rank),
        wpk_compose_integer("axis", e->axis),
        {.name = "text",
         .kind = WPK_ATTRIBUTE_TEXT,
         .text = wpk_graph_format(e->graph, "%s", wpk_buf_text(&e->text))}};

    e->to.err = e->to.err == WPK_OK ? wpk_buf_status(&e->text) : e->to.err;
    wpk_buf_reset(&e->text);
    return wpk_expansion_node(e, WPK_EQUATION_DOMAIN, e->node->op, inputs, count, attributes, 4,
                              output);
}

int wpk_expansion_node(struct wpk_expansion *e, const char *domain, const char *op,
                       const int *inputs, int count, const struct wpk_graph_attribute *attributes,
                       int attribute_count, int output)
{
    return wpk_compose_operator(&e->to, domain, op, e->node->name, inputs, count, attributes,
                                attribute_count, output);
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
    int64_t count = wpk_extents_product(extent, rank);
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
    return wpk_expansion_binary(e, "Gather", x, indices, output);
}

bool wpk_expansion_list(const struct wpk_expansion *e, const char *attribute, int count,
                        int64_t otherwise, int64_t *out)
{
    const struct wpk_graph_attribute *found =
        wpk_graph_attribute(e->node, attribute, WPK_ATTRIBUTE_INTS);

    for (int j = 0; j < count; j++) {
        out[j] = found != NULL && j < found->count ? found->integers[j] : otherwise;
        if (out[j] < otherwise || out[j] > WPK_ELEMENTS_MAX) {
            return false;
        }
    }
    return found == NULL || found->count == count;
}

int wpk_expansion_input_of(const struct wpk_expansion *e, int index)
{
    return index < e->node->input_count ? e->node->inputs[index] : -1;
}

int wpk_expansion_output(const struct wpk_expansion *e, int index)
{
    int value = index < e->node->output_count ? e->node->outputs[index] : -1;
    bool is_wanted =
        value >= 0 && (e->graph->values[value].is_read || e->graph->values[value].is_output);

    return is_wanted ? value : -1;
}

/* ---- nodes */

const char *wpk_compose_name(struct wpk_compose *c, const char *part)
{
    return wpk_graph_format(c->graph, "%.120s.%s", c->name, part);
}

/* ---- attributes */

struct wpk_graph_attribute wpk_compose_integer(const char *name, int64_t value)
{
    return (struct wpk_graph_attribute){.name = name, .kind = WPK_ATTRIBUTE_INT, .integer = value};
}

struct wpk_graph_attribute wpk_compose_real(const char *name, float value)
{
    return (struct wpk_graph_attribute){.name = name, .kind = WPK_ATTRIBUTE_FLOAT, .real = value};
}

struct wpk_graph_attribute wpk_compose_integers(struct wpk_compose *c, const char *name,
                                                const int64_t *values, int count)
{
    int64_t *copy = WPK_ARENA_DEMAND(&c->graph->arena, int64_t, WPK_RANK_MAX);

    WPK_ASSERT(count <= WPK_RANK_MAX);
    if (count > 0) {
        memcpy(copy, values, (size_t)count * sizeof(*copy));
    }
    return (struct wpk_graph_attribute){
        .name = name, .kind = WPK_ATTRIBUTE_INTS, .integers = copy, .count = count};
}

/* ---- nodes */

int wpk_compose_operator(struct wpk_compose *c, const char *domain, const char *op,
                         const char *name, const int *inputs, int count,
                         const struct wpk_graph_attribute *attributes, int attribute_count,
                         int output)
{
    struct wpk_arena *arena = &c->graph->arena;
    int *ends = WPK_ARENA_DEMAND(arena, int, (size_t)count + 1);
    struct wpk_graph_attribute *copies =
        WPK_ARENA_DEMAND(arena, struct wpk_graph_attribute, (size_t)attribute_count + 1);

    if (c->err == WPK_OK && output < 0) {
        c->err = wpk_graph_add_value(c->graph, "", &output);
    }
    if (c->err != WPK_OK) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        ends[i] = inputs[i];
        c->graph->values[ends[i]].is_read = true;
    }
    for (int i = 0; i < attribute_count; i++) {
        copies[i] = attributes[i];
    }
    ends[count] = output;
    struct wpk_graph_node node = {.op = op,
                                  .name = name != NULL ? name : "",
                                  .domain = domain,
                                  .inputs = ends,
                                  .input_count = count,
                                  .outputs = ends + count,
                                  .output_count = 1,
                                  .part_count = 1,
                                  .attributes = copies,
                                  .attribute_count = attribute_count,
                                  .loop = c->loop,
                                  .times = c->loop > 0 ? c->times : 0};
    if (c->to != NULL) {
        c->err = c->to->add(c->graph, &node, c->to->context);
    } else {
        c->graph->values[output].writer = c->graph->node_count;
        c->err = wpk_graph_add_node(c->graph, &node);
    }
    return output;
}

int wpk_compose_unary(struct wpk_compose *c, const char *op, int x)
{
    return wpk_compose_operator(c, "", op, "", &x, 1, NULL, 0, -1);
}

int wpk_compose_binary(struct wpk_compose *c, const char *op, const char *name, int x, int y)
{
    return wpk_compose_operator(c, "", op, name, (int[]){x, y}, 2, NULL, 0, -1);
}

int wpk_compose_constant(struct wpk_compose *c, enum wpk_dtype dtype, int rank,
                         const int64_t *extent, const void *data)
{
    int value = 0;

    if (c->err == WPK_OK) {
        c->err = wpk_graph_add_value(c->graph, "", &value);
    }
    if (c->err != WPK_OK) {
        return 0;
    }
    struct wpk_graph_value *out = &c->graph->values[value];
    out->dtype = dtype;
    out->is_typed = true;
    out->is_shaped = true;
    out->rank = rank;
    if (rank > 0) { /* a scalar's extents may be NULL */
        memcpy(out->extent, extent, (size_t)rank * sizeof(int64_t));
    }
    out->data = data;
    out->size = (size_t)wpk_graph_elements(out) * wpk_dtype_size(dtype);
    return value;
}

int wpk_compose_number(struct wpk_compose *c, float value)
{
    static const int64_t none[1] = {1};
    float *copy = WPK_ARENA_DEMAND(&c->graph->arena, float, 1);

    *copy = value;
    return wpk_compose_constant(c, WPK_F32, 0, none, copy);
}

int wpk_compose_reshape(struct wpk_compose *c, int x, const char *name, int rank,
                        const int64_t *extent, int output)
{
    const struct wpk_graph_attribute list = wpk_compose_integers(c, "", extent, rank);
    int shape = wpk_compose_constant(c, WPK_I64, 1, (int64_t[]){rank}, list.integers);

    return wpk_compose_operator(c, "", "Reshape", name, (int[]){x, shape}, 2, NULL, 0, output);
}

int wpk_compose_transpose(struct wpk_compose *c, int x, int rank, const int64_t *order, int output)
{
    const struct wpk_graph_attribute perm = wpk_compose_integers(c, "perm", order, rank);

    return wpk_compose_operator(c, "", "Transpose", "", &x, 1, &perm, 1, output);
}

int wpk_compose_slice(struct wpk_compose *c, int x, int64_t axis, int64_t begin, int64_t end)
{
    const struct wpk_graph_attribute attributes[] = {wpk_compose_integers(c, "axes", &axis, 1),
                                                     wpk_compose_integers(c, "starts", &begin, 1),
                                                     wpk_compose_integers(c, "ends", &end, 1)};

    return wpk_compose_operator(c, "", "Slice", "", &x, 1, attributes, 3, -1);
}

int wpk_compose_concat(struct wpk_compose *c, const int *values, int count, int64_t axis,
                       int output)
{
    const struct wpk_graph_attribute attribute = wpk_compose_integer("axis", axis);

    return wpk_compose_operator(c, "", "Concat", "", values, count, &attribute, 1, output);
}

int wpk_compose_product(struct wpk_compose *c, const char *name, int x, int y, int z)
{
    const struct wpk_graph_attribute transposed = wpk_compose_integer("transB", 1);

    return wpk_compose_operator(c, "", "Gemm", name, (int[]){x, y, z}, z < 0 ? 2 : 3, &transposed,
                                1, -1);
}

/* ---- loops */

int wpk_compose_enter(struct wpk_compose *c, const char *name, int x)
{
    WPK_ASSERT(c->loop == 0);
    return wpk_compose_operator(c, WPK_LOOP_DOMAIN, "Enter", name, &x, 1, NULL, 0, -1);
}

int wpk_compose_read(struct wpk_compose *c, int x, int64_t offset, int64_t step, int rank,
                     const int64_t *extent)
{
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("offset", offset), wpk_compose_integer("step", step),
        wpk_compose_integers(c, "shape", extent, rank)};

    WPK_ASSERT(c->loop > 0);
    return wpk_compose_operator(c, WPK_LOOP_DOMAIN, "Read", "", &x, 1, attributes, 3, -1);
}

int wpk_compose_store(struct wpk_compose *c, int next, int start, bool is_reverse)
{
    const struct wpk_graph_attribute reverse = wpk_compose_integer("reverse", is_reverse);

    WPK_ASSERT(c->loop > 0);
    return wpk_compose_operator(c, WPK_LOOP_DOMAIN, "Store", "", (int[]){next, start}, 2, &reverse,
                                1, -1);
}

int wpk_compose_result(struct wpk_compose *c, int all, int other)
{
    WPK_ASSERT(c->loop == 0);
    return wpk_compose_operator(c, WPK_LOOP_DOMAIN, "Result", "", (int[]){all, other},
                                other < 0 ? 1 : 2, NULL, 0, -1);
}
