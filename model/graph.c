/* SPDX-License-Identifier: Apache-2.0 */
#include "model/graph.h"

#include "schema/convert.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CAPACITY_FIRST 64

void wpk_graph_fini(struct wpk_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    for (int i = 0; i < graph->map_count; i++) {
        munmap(graph->maps[i].bytes, graph->maps[i].size);
    }
    free(graph->values);
    free(graph->nodes);
    free(graph->notes);
    free(graph->inputs);
    free(graph->outputs);
    free(graph->slots);
    if (graph->lowering != NULL) {
        graph->lowering_free(graph->lowering);
    }
    wpk_arena_fini(&graph->arena);
    *graph = (struct wpk_graph){.node_count = 0};
}

/* ---- growing */

static wpk_err grow(const struct wpk_graph *graph, void **array, int *capacity, int count,
                    size_t size, int max)
{
    if (graph->arena.is_full) {
        return WPK_ENOMEM;
    }
    if (count < *capacity) {
        return WPK_OK;
    }
    if (count >= max) {
        return WPK_ENOSPC;
    }
    int wanted = *capacity == 0 ? CAPACITY_FIRST : *capacity * 2;
    *array = WPK_DEMAND(realloc(*array, (size_t)wanted * size));
    *capacity = wanted;
    return WPK_OK;
}

/* FNV-1a; the table is private to a graph, and its probes are bounded by its size. */
static uint64_t hash(const char *name)
{
    uint64_t sum = 0xcbf29ce484222325U;

    for (; *name != '\0'; name++) {
        sum = (sum ^ (unsigned char)*name) * 0x100000001b3U;
    }
    return sum;
}

static void insert(struct wpk_graph *graph, int value)
{
    size_t mask = (size_t)graph->slot_count - 1;
    size_t slot = (size_t)hash(graph->values[value].name) & mask;

    while (graph->slots[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    graph->slots[slot] = value + 1;
}

static void grow_slots(struct wpk_graph *graph)
{
    if (graph->value_count * 2 < graph->slot_count) {
        return;
    }
    int count = graph->slot_count == 0 ? 4 * CAPACITY_FIRST : graph->slot_count * 2;
    free(graph->slots);
    graph->slots = WPK_DEMAND(calloc((size_t)count, sizeof(int)));
    graph->slot_count = count;
    for (int i = 0; i < graph->value_count; i++) {
        if (graph->values[i].name[0] != '\0') {
            insert(graph, i);
        }
    }
}

wpk_err wpk_graph_add_value(struct wpk_graph *graph, const char *name, int *out)
{
    wpk_err err = grow(graph, (void **)&graph->values, &graph->value_capacity, graph->value_count,
                       sizeof(*graph->values), WPK_GRAPH_VALUES_MAX);
    if (err != WPK_OK) {
        return err;
    }
    grow_slots(graph);
    *out = graph->value_count++;
    graph->values[*out] = (struct wpk_graph_value){.name = name, .writer = -1};
    if (name[0] != '\0') {
        insert(graph, *out);
    }
    return WPK_OK;
}

static const char *format_text(struct wpk_graph *graph, const char *format, va_list args)
{
    struct wpk_buf text = {0};

    wpk_buf_vprintf(&text, format, args);
    char *copy = WPK_ARENA_DEMAND(&graph->arena, char, text.size + 1);
    memcpy(copy, wpk_buf_text(&text), text.size);
    wpk_buf_fini(&text);
    return copy;
}

const char *wpk_graph_format(struct wpk_graph *graph, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *text = format_text(graph, format, args);
    va_end(args);
    return text;
}

wpk_err wpk_graph_add_note(struct wpk_graph *graph, const char *node, const char *why, ...)
{
    va_list args;

    va_start(args, why);
    const char *text = format_text(graph, why, args);
    va_end(args);
    wpk_err err = grow(graph, (void **)&graph->notes, &graph->note_capacity, graph->note_count,
                       sizeof(*graph->notes), WPK_GRAPH_NODES_MAX);
    if (err == WPK_OK) {
        graph->notes[graph->note_count++] = (struct wpk_graph_note){node, text};
    }
    return err;
}

wpk_err wpk_graph_add_node(struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    wpk_err err = grow(graph, (void **)&graph->nodes, &graph->node_capacity, graph->node_count,
                       sizeof(*graph->nodes), WPK_GRAPH_NODES_MAX);
    if (err == WPK_OK) {
        graph->nodes[graph->node_count++] = *node;
    }
    return err;
}

struct wpk_graph_node *wpk_graph_take_nodes(struct wpk_graph *graph, int *count)
{
    struct wpk_graph_node *nodes = graph->nodes;

    *count = graph->node_count;
    graph->nodes = NULL;
    graph->node_count = 0;
    graph->node_capacity = 0;
    return nodes;
}

void wpk_graph_end_nodes(struct wpk_graph *graph, struct wpk_graph_node *taken)
{
    free(taken);
    for (int n = 0; n < graph->node_count; n++) {
        graph->values[graph->nodes[n].outputs[0]].writer = n;
    }
}

/* ---- reading */

int wpk_graph_find(const struct wpk_graph *graph, const char *name)
{
    if (graph->slot_count == 0 || name[0] == '\0') {
        return -1;
    }
    size_t mask = (size_t)graph->slot_count - 1;
    for (size_t slot = (size_t)hash(name) & mask; graph->slots[slot] != 0;
         slot = (slot + 1) & mask) {
        int value = graph->slots[slot] - 1;
        if (strcmp(graph->values[value].name, name) == 0) {
            return value;
        }
    }
    return -1;
}

const struct wpk_graph_attribute *wpk_graph_attribute(const struct wpk_graph_node *node,
                                                      const char *name,
                                                      enum wpk_graph_attribute_kind kind)
{
    for (int i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].kind == kind && strcmp(node->attributes[i].name, name) == 0) {
            return &node->attributes[i];
        }
    }
    return NULL;
}

int64_t wpk_graph_int(const struct wpk_graph_node *node, const char *name, int64_t otherwise)
{
    const struct wpk_graph_attribute *found = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_INT);
    return found != NULL ? found->integer : otherwise;
}

double wpk_graph_real(const struct wpk_graph_node *node, const char *name, double otherwise)
{
    const struct wpk_graph_attribute *found = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_FLOAT);
    return found != NULL ? (double)found->real : otherwise;
}

const char *wpk_graph_text(const struct wpk_graph_node *node, const char *name,
                           const char *otherwise)
{
    const struct wpk_graph_attribute *found = wpk_graph_attribute(node, name, WPK_ATTRIBUTE_TEXT);
    return found != NULL ? found->text : otherwise;
}

const struct wpk_graph_value *wpk_graph_input(const struct wpk_graph *graph,
                                              const struct wpk_graph_node *node, int index)
{
    if (index >= node->input_count || node->inputs[index] < 0) {
        return NULL;
    }
    return &graph->values[node->inputs[index]];
}

static bool same_attribute(const struct wpk_graph_attribute *a, const struct wpk_graph_attribute *b)
{
    bool same = a->kind == b->kind && a->integer == b->integer && a->count == b->count &&
                memcmp(&a->real, &b->real, sizeof(a->real)) == 0 && a->tensor == b->tensor;

    if (same && a->kind == WPK_ATTRIBUTE_TEXT) {
        same = strcmp(a->text, b->text) == 0;
    } else if (same && a->kind == WPK_ATTRIBUTE_INTS) {
        same = memcmp(a->integers, b->integers, (size_t)a->count * sizeof(*a->integers)) == 0;
    } else if (same && a->kind == WPK_ATTRIBUTE_FLOATS) {
        same = memcmp(a->reals, b->reals, (size_t)a->count * sizeof(*a->reals)) == 0;
    }
    return same && a->kind != WPK_ATTRIBUTE_OTHER;
}

bool wpk_graph_same_attributes(const struct wpk_graph_node *a, const struct wpk_graph_node *b)
{
    bool same = a->attribute_count == b->attribute_count;

    for (int i = 0; same && i < a->attribute_count; i++) {
        const struct wpk_graph_attribute *other =
            wpk_graph_attribute(b, a->attributes[i].name, a->attributes[i].kind);
        same = other != NULL && same_attribute(&a->attributes[i], other);
    }
    return same;
}

bool wpk_graph_same_shape(const struct wpk_graph_value *a, const struct wpk_graph_value *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(a->extent[0])) == 0;
}

int *wpk_graph_count_uses(const struct wpk_graph *graph)
{
    int *uses = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*uses)));

    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] >= 0) {
                uses[graph->nodes[n].inputs[i]]++;
            }
        }
    }
    for (int i = 0; i < graph->output_count; i++) {
        uses[graph->outputs[i]]++;
    }
    return uses;
}

int64_t wpk_graph_constant_bytes(const struct wpk_graph *graph)
{
    bool *is_counted = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*is_counted)));
    int64_t bytes = 0;

    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        bool is_constant = graph->values[node->outputs[0]].data != NULL;
        for (int i = 0; i < node->input_count && !is_constant; i++) {
            int v = node->inputs[i];
            if (v >= 0 && graph->values[v].data != NULL && !is_counted[v]) {
                is_counted[v] = true;
                bytes += (int64_t)graph->values[v].size;
            }
        }
    }
    free(is_counted);
    return bytes;
}

int64_t wpk_graph_elements(const struct wpk_graph_value *value)
{
    return wpk_extents_product(value->extent, value->rank);
}

/* As a cell. */
static double cell_at(const struct wpk_graph_value *value, int64_t index)
{
    size_t size = wpk_dtype_size(value->dtype);
    union {
        double real;
        int64_t integer;
        char bytes[sizeof(double)];
    } element; /* aligned for every type, which the file's bytes need not be */
    double out;

    WPK_ASSERT(value->data != NULL);
    WPK_ASSERT(index >= 0 && (size_t)index < value->size / size);
    memcpy(element.bytes, (const char *)value->data + (size_t)index * size, size);
    wpk_convert_to_cells(value->dtype, element.bytes, 1, &out);
    return out;
}

double wpk_graph_element(const struct wpk_graph_value *value, int64_t index)
{
    return wpk_cell_number(value->dtype, cell_at(value, index));
}

int64_t wpk_graph_integer(const struct wpk_graph_value *value, int64_t index)
{
    double cell = cell_at(value, index);

    WPK_ASSERT(!wpk_dtype_is_float(value->dtype));
    return value->dtype == WPK_I64 ? wpk_cell_integer(cell) : (int64_t)cell;
}

wpk_err wpk_graph_integers(const struct wpk_graph_value *value, int64_t *out, int max, int *count)
{
    if (value == NULL || value->data == NULL ||
        (value->dtype != WPK_I64 && value->dtype != WPK_I32)) {
        return WPK_ENOENT;
    }
    if (wpk_graph_elements(value) > max) {
        return WPK_ERANGE;
    }
    *count = (int)wpk_graph_elements(value);
    for (int i = 0; i < *count; i++) {
        out[i] = wpk_graph_integer(value, i);
    }
    return WPK_OK;
}

/* ---- element types */

static const char *const element_type_names[] = {
    "undefined", "float",  "uint8",     "int8",       "uint16",   "int16",
    "int32",     "int64",  "string",    "bool",       "float16",  "double",
    "uint32",    "uint64", "complex64", "complex128", "bfloat16",
};

const char *wpk_graph_element_type_name(int element_type)
{
    int count = (int)(sizeof(element_type_names) / sizeof(element_type_names[0]));
    return element_type >= 0 && element_type < count ? element_type_names[element_type] : "unknown";
}

const char *wpk_graph_element_type_advice(int element_type)
{
    const char *name = wpk_graph_element_type_name(element_type);

    if (strstr(name, "float") != NULL) {
        return "; convert the model's values and weights to float32";
    }
    return strstr(name, "int") != NULL
               ? "; of integers there are int8, uint8, int16, int32 and int64"
               : "";
}

wpk_err wpk_graph_dtype(int element_type, enum wpk_dtype *out)
{
    static const struct {
        int element_type;
        enum wpk_dtype dtype;
    } types[] = {{1, WPK_F32}, {11, WPK_F64}, {2, WPK_U8},   {3, WPK_I8},   {5, WPK_I16},
                 {6, WPK_I32}, {7, WPK_I64},  {9, WPK_BOOL}, {10, WPK_F16}, {16, WPK_BF16}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].element_type == element_type) {
            *out = types[i].dtype;
            return WPK_OK;
        }
    }
    return WPK_EUNSUPPORTED;
}

int wpk_graph_element_of(enum wpk_dtype dtype)
{
    enum wpk_dtype found;
    int type = 1;

    while (wpk_graph_dtype(type, &found) != WPK_OK || found != dtype) {
        type++;
    }
    return type;
}

bool wpk_graph_is_branching(const struct wpk_graph_node *node)
{
    return strcmp(node->op, "If") == 0 && node->domain[0] == '\0';
}
