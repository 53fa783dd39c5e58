/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/compose.h"

#include "model/operator/loop.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 160 };

static void *check(struct wpk_compose *c, void *memory)
{
    c->err = memory == NULL && c->err == WPK_OK ? WPK_ENOMEM : c->err;
    return memory;
}

const char *wpk_compose_name(struct wpk_compose *c, const char *part)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%.120s.%s", c->name, part);
    const char *copy = check(c, wpk_arena_copy_text(&c->graph->arena, name));
    return copy != NULL ? copy : "";
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
    int64_t *copy = check(c, WPK_ARENA_NEW(&c->graph->arena, int64_t, WPK_RANK_MAX));

    WPK_ASSERT(count <= WPK_RANK_MAX);
    if (copy != NULL) {
        memcpy(copy, values, (size_t)count * sizeof(*copy));
    }
    return (struct wpk_graph_attribute){.name = name,
                                        .kind = WPK_ATTRIBUTE_INTS,
                                        .integers = copy,
                                        .count = copy != NULL ? count : 0};
}

/* ---- nodes */

int wpk_compose_node(struct wpk_compose *c, const struct wpk_graph_node *node, int output)
{
    struct wpk_arena *arena = &c->graph->arena;
    struct wpk_graph_node copy = *node;
    int *ends = check(c, WPK_ARENA_NEW(arena, int, (size_t)node->input_count + 1));
    struct wpk_graph_attribute *attributes = check(
        c, WPK_ARENA_NEW(arena, struct wpk_graph_attribute, (size_t)node->attribute_count + 1));

    if (c->err == WPK_OK && output < 0) {
        c->err = wpk_graph_add_value(c->graph, "", &output);
    }
    if (c->err != WPK_OK) {
        return 0;
    }
    for (int i = 0; i < node->input_count; i++) {
        ends[i] = node->inputs[i];
        c->graph->values[ends[i]].is_read = true;
    }
    for (int i = 0; i < node->attribute_count; i++) {
        attributes[i] = node->attributes[i];
    }
    ends[node->input_count] = output;
    copy.domain = node->domain != NULL ? node->domain : "";
    copy.name = node->name != NULL ? node->name : "";
    copy.inputs = ends;
    copy.outputs = ends + node->input_count;
    copy.output_count = 1;
    copy.part_count = 1;
    copy.attributes = attributes;
    copy.loop = c->loop;
    copy.times = c->loop > 0 ? c->times : 0;
    c->graph->values[output].writer = c->graph->node_count;
    c->err = wpk_graph_add_node(c->graph, &copy);
    return output;
}

int wpk_compose_unary(struct wpk_compose *c, const char *op, int x)
{
    const struct wpk_graph_node node = {.op = op, .inputs = &x, .input_count = 1};

    return wpk_compose_node(c, &node, -1);
}

int wpk_compose_binary(struct wpk_compose *c, const char *op, const char *name, int x, int y)
{
    const struct wpk_graph_node node = {
        .op = op, .name = name, .inputs = (int[]){x, y}, .input_count = 2};

    return wpk_compose_node(c, &node, -1);
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
    float *copy = check(c, WPK_ARENA_NEW(&c->graph->arena, float, 1));

    if (copy == NULL) {
        return 0;
    }
    *copy = value;
    return wpk_compose_constant(c, WPK_F32, 0, none, copy);
}

int wpk_compose_reshape(struct wpk_compose *c, int x, const char *name, int rank,
                        const int64_t *extent, int output)
{
    const struct wpk_graph_attribute list = wpk_compose_integers(c, "", extent, rank);
    int shape = wpk_compose_constant(c, WPK_I64, 1, (int64_t[]){rank}, list.integers);
    const struct wpk_graph_node node = {
        .op = "Reshape", .name = name, .inputs = (int[]){x, shape}, .input_count = 2};

    return wpk_compose_node(c, &node, output);
}

int wpk_compose_transpose(struct wpk_compose *c, int x, int rank, const int64_t *order, int output)
{
    const struct wpk_graph_attribute perm = wpk_compose_integers(c, "perm", order, rank);
    const struct wpk_graph_node node = {.op = "Transpose",
                                        .inputs = &x,
                                        .input_count = 1,
                                        .attributes = &perm,
                                        .attribute_count = 1};

    return wpk_compose_node(c, &node, output);
}

int wpk_compose_slice(struct wpk_compose *c, int x, int64_t axis, int64_t begin, int64_t end)
{
    const struct wpk_graph_attribute attributes[] = {wpk_compose_integers(c, "axes", &axis, 1),
                                                     wpk_compose_integers(c, "starts", &begin, 1),
                                                     wpk_compose_integers(c, "ends", &end, 1)};
    const struct wpk_graph_node node = {.op = "Slice",
                                        .inputs = &x,
                                        .input_count = 1,
                                        .attributes = attributes,
                                        .attribute_count = 3};

    return wpk_compose_node(c, &node, -1);
}

int wpk_compose_concat(struct wpk_compose *c, const int *values, int count, int64_t axis,
                       int output)
{
    const struct wpk_graph_attribute attribute = wpk_compose_integer("axis", axis);
    const struct wpk_graph_node node = {.op = "Concat",
                                        .inputs = values,
                                        .input_count = count,
                                        .attributes = &attribute,
                                        .attribute_count = 1};

    return wpk_compose_node(c, &node, output);
}

int wpk_compose_product(struct wpk_compose *c, const char *name, int x, int y, int z)
{
    const struct wpk_graph_attribute transposed = wpk_compose_integer("transB", 1);
    const struct wpk_graph_node node = {.op = "Gemm",
                                        .name = name,
                                        .inputs = (int[]){x, y, z},
                                        .input_count = z < 0 ? 2 : 3,
                                        .attributes = &transposed,
                                        .attribute_count = 1};

    return wpk_compose_node(c, &node, -1);
}

/* ---- loops */

int wpk_compose_enter(struct wpk_compose *c, const char *name, int x)
{
    const struct wpk_graph_node node = {
        .domain = WPK_LOOP_DOMAIN, .op = "Enter", .name = name, .inputs = &x, .input_count = 1};

    WPK_ASSERT(c->loop == 0);
    return wpk_compose_node(c, &node, -1);
}

int wpk_compose_read(struct wpk_compose *c, int x, int64_t offset, int64_t step, int rank,
                     const int64_t *extent)
{
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("offset", offset), wpk_compose_integer("step", step),
        wpk_compose_integers(c, "shape", extent, rank)};
    const struct wpk_graph_node node = {.domain = WPK_LOOP_DOMAIN,
                                        .op = "Read",
                                        .inputs = &x,
                                        .input_count = 1,
                                        .attributes = attributes,
                                        .attribute_count = 3};

    WPK_ASSERT(c->loop > 0);
    return wpk_compose_node(c, &node, -1);
}

int wpk_compose_store(struct wpk_compose *c, int next, int start, bool is_reverse)
{
    const struct wpk_graph_attribute reverse = wpk_compose_integer("reverse", is_reverse);
    const struct wpk_graph_node node = {.domain = WPK_LOOP_DOMAIN,
                                        .op = "Store",
                                        .inputs = (int[]){next, start},
                                        .input_count = 2,
                                        .attributes = &reverse,
                                        .attribute_count = 1};

    WPK_ASSERT(c->loop > 0);
    return wpk_compose_node(c, &node, -1);
}

int wpk_compose_result(struct wpk_compose *c, int all, int other)
{
    const struct wpk_graph_node node = {.domain = WPK_LOOP_DOMAIN,
                                        .op = "Result",
                                        .inputs = (int[]){all, other},
                                        .input_count = other < 0 ? 1 : 2};

    WPK_ASSERT(c->loop == 0);
    return wpk_compose_node(c, &node, -1);
}
