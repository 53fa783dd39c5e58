/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/shape.h"

#include "ir/node.h"
#include "model/operator/expansion.h"
#include "model/operator/operator.h"

#include <math.h>
#include <string.h>

/* Below so many terms of a channel or of a row, instructions that add several have no work. */
#define TERMS_MIN 8
#define WEIGHTS_MIN 1024 /* elements; fewer stay in a cache */
#define I8_MAX 127
#define I4_BLOCK 32 /* elements with a scale of their own */
#define I4_ZERO 8

static bool is_half(enum wpk_dtype dtype)
{
    return dtype == WPK_F16 || dtype == WPK_BF16;
}

bool wpk_precision_declares(int element_type, enum wpk_dtype dtype)
{
    enum wpk_dtype declared;

    return wpk_graph_dtype(element_type, &declared) == WPK_OK &&
           (declared == dtype || (is_half(declared) && dtype == WPK_F32));
}

/* A list of values that may be changed. */
static int *copy_list(struct wpk_graph *graph, const int *values, int count)
{
    int *copy = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)count + 1);

    for (int i = 0; i < count; i++) {
        copy[i] = values[i];
    }
    return copy;
}

wpk_err wpk_precision_widen(struct wpk_graph *graph, struct wpk_graph_node *node)
{
    struct wpk_expansion e = {
        .to = {.graph = graph, .name = node->name}, .graph = graph, .node = node};
    int *inputs = NULL;

    if (strcmp(node->op, "Cast") == 0 || strcmp(node->op, "CastLike") == 0) {
        return WPK_OK;
    }
    for (int i = 0; e.to.err == WPK_OK && i < node->input_count; i++) {
        int value = node->inputs[i];
        if (value < 0 || !graph->values[value].is_typed || !is_half(graph->values[value].dtype)) {
            continue;
        }
        if (graph->values[value].wide == 0) {
            int wide = wpk_expansion_cast(&e, value, WPK_F32, -1);
            graph->values[value].wide = wide;
        }
        inputs = inputs == NULL ? copy_list(graph, node->inputs, node->input_count) : inputs;
        inputs[i] = graph->values[value].wide;
    }
    node->inputs = inputs != NULL ? inputs : node->inputs;
    return e.to.err;
}

wpk_err wpk_precision_outputs(struct wpk_graph *graph, struct wpk_graph_node *node)
{
    int *outputs = NULL;
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < node->output_count; i++) {
        int value = node->outputs[i], wide = 0;
        enum wpk_dtype declared = WPK_F32;
        if (value < 0 || !graph->values[value].is_output || strcmp(node->op, "Cast") == 0 ||
            wpk_graph_dtype(graph->values[value].element_type, &declared) != WPK_OK ||
            !is_half(declared)) {
            continue;
        }
        outputs = outputs == NULL ? copy_list(graph, node->outputs, node->output_count) : outputs;
        err = wpk_graph_add_value(graph, "", &wide);
        if (err == WPK_OK) {
            graph->values[wide].is_read = true;
            outputs[i] = wide;
        }
    }
    node->outputs = outputs != NULL ? outputs : node->outputs;
    return err;
}

wpk_err wpk_precision_narrow_outputs(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                     const int *declared)
{
    struct wpk_expansion e = {
        .to = {.graph = graph, .name = node->name}, .graph = graph, .node = node};

    for (int i = 0; e.to.err == WPK_OK && i < node->output_count; i++) {
        if (node->outputs[i] != declared[i]) {
            enum wpk_dtype dtype = WPK_F32;
            wpk_err err = wpk_graph_dtype(graph->values[declared[i]].element_type, &dtype);
            WPK_ASSERT(err == WPK_OK);
            (void)wpk_expansion_cast(&e, node->outputs[i], dtype, declared[i]);
        }
    }
    return e.to.err;
}

/* ---- products of narrower operands */

/* The terms of the sum along its innermost axis; 0: the node is no product of two f32. */
static int64_t terms_of(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    const struct wpk_graph_value *w = wpk_graph_input(graph, node, 1);
    bool is_conv = strcmp(node->op, "Conv") == 0, is_gemm = strcmp(node->op, "Gemm") == 0;

    if (node->domain[0] != '\0' || (!is_conv && !is_gemm && strcmp(node->op, "MatMul") != 0) ||
        x == NULL || w == NULL || x->dtype != WPK_F32 || w->dtype != WPK_F32 || x->rank < 2 ||
        w->rank < 2) {
        return 0;
    }
    if (is_conv) {
        return w->extent[1];
    }
    bool by_rows = is_gemm && wpk_graph_int(node, "transA", 0) != 0;
    return by_rows ? x->extent[0] : x->extent[x->rank - 1];
}

/* The matrix, with its rows as columns where attribute `name` says so. */
static int read_matrix(struct wpk_expansion *e, const char *name, int value)
{
    static const int64_t order[] = {1, 0};

    return wpk_graph_int(e->node, name, 0) == 0
               ? value
               : wpk_compose_transpose(&e->to, value, 2, order, -1);
}

/* value * factor, if that is not 1. */
static int scale(struct wpk_expansion *e, int value, double factor)
{
    return factor == 1 ? value
                       : wpk_expansion_binary(e, "Mul", value,
                                              wpk_compose_number(&e->to, (float)factor), -1);
}

/* The bias of a convolution, along axis 1. */
static int spread(struct wpk_expansion *e, int bias, int rank)
{
    int64_t extent[WPK_RANK_MAX];

    for (int d = 0; d < rank; d++) {
        extent[d] = d == 1 ? wpk_graph_elements(&e->graph->values[bias]) : 1;
    }
    return wpk_compose_reshape(&e->to, bias, "bias", rank, extent, -1);
}

/* ---- narrower weights */

static double weight_at(const struct wpk_graph_value *w, int64_t index)
{
    float value;

    memcpy(&value, (const char *)w->data + (size_t)index * sizeof(value), sizeof(value));
    return (double)value;
}

/* Note how far a weight is from the one that it stands for. */
static void note_loss(struct wpk_graph *graph, double weight, double narrow)
{
    graph->weights.energy += weight * weight;
    graph->weights.noise += (weight - narrow) * (weight - narrow);
}

/* The weights as i8 of +-127 times a scale for each index of `axis`.
 *   shape   *scale: value of f32 [extent of the axis] */
static int quantize(struct wpk_expansion *e, int value, int axis, int *scale)
{
    const struct wpk_graph_value w = e->graph->values[value];
    int64_t count = wpk_graph_elements(&w), columns = w.extent[axis];
    int64_t inner = wpk_extents_product(w.extent + axis + 1, w.rank - axis - 1);
    int8_t *q = WPK_ARENA_DEMAND(&e->graph->arena, int8_t, (size_t)count);
    float *scales = WPK_ARENA_DEMAND(&e->graph->arena, float, (size_t)columns);

    for (int64_t i = 0; i < count; i++) {
        float *largest = &scales[i / inner % columns];
        *largest = fmaxf(*largest, (float)fabs(weight_at(&w, i)) / I8_MAX);
    }
    for (int64_t i = 0; i < count; i++) {
        double by = (double)scales[i / inner % columns];
        q[i] = (int8_t)(by > 0 ? rint(weight_at(&w, i) / by) : 0);
        note_loss(e->graph, weight_at(&w, i), q[i] * by);
    }
    *scale = wpk_compose_constant(&e->to, WPK_F32, 1, &columns, scales);
    return wpk_compose_constant(&e->to, WPK_I8, w.rank, w.extent, q);
}

/* The weights of a matrix as MatMulNBits has them: 4 bits, 8 above the signed number, and a scale
 * for each block of a column. The element of a block that is largest becomes -8.
 *   shape   is_transposed: [n,k], else [k,n]; *packed: u8 [n,blocks,16];
 *           *scale: f32 [n * blocks] */
static void quantize_blocks(struct wpk_expansion *e, const struct wpk_graph_value *w,
                            bool is_transposed, int *packed, int *scale)
{
    int64_t n = w->extent[is_transposed ? 0 : 1], k = w->extent[is_transposed ? 1 : 0];
    int64_t blocks = (k + I4_BLOCK - 1) / I4_BLOCK, extent[] = {n, blocks, I4_BLOCK / 2};
    int64_t of_row = is_transposed ? 1 : n, of_column = is_transposed ? k : 1, count = n * blocks;
    uint8_t *q = WPK_ARENA_DEMAND(&e->graph->arena, uint8_t, (size_t)(count * I4_BLOCK / 2));
    float *scales = WPK_ARENA_DEMAND(&e->graph->arena, float, (size_t)count);

    memset(q, I4_ZERO << 4 | I4_ZERO, (size_t)(count * I4_BLOCK / 2));
    for (int64_t b = 0; b < count; b++) {
        int64_t first = b % blocks * I4_BLOCK, at = b / blocks * of_column + first * of_row;
        int64_t rows = k - first < I4_BLOCK ? k - first : I4_BLOCK;
        double largest = 0;
        for (int64_t i = 0; i < rows; i++) {
            double weight = weight_at(w, at + i * of_row);
            largest = fabs(weight) > fabs(largest) ? weight : largest;
        }
        scales[b] = (float)(largest / -I4_ZERO);
        for (int64_t i = 0; i < rows && scales[b] != 0; i++) {
            double weight = weight_at(w, at + i * of_row);
            double narrow = rint(weight / (double)scales[b]);
            narrow = fmax(-I4_ZERO, fmin(narrow, I4_ZERO - 1)); /* a denormal scale is rounded */
            uint8_t *both = &q[b * I4_BLOCK / 2 + i / 2];
            int bits = (((int)narrow + I4_ZERO) ^ I4_ZERO) << (i % 2 * 4);
            *both = (uint8_t)(*both ^ bits);
            note_loss(e->graph, weight, narrow * (double)scales[b]);
        }
    }
    *packed = wpk_compose_constant(&e->to, WPK_U8, 3, extent, q);
    *scale = wpk_compose_constant(&e->to, WPK_F32, 1, &count, scales);
}

/* Append the product of x and a matrix in 4 bits. Returns its value. */
static int multiply_blocks(struct wpk_expansion *e, int x, const struct wpk_graph_value *w,
                           bool is_transposed, int output)
{
    struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("N", w->extent[is_transposed ? 0 : 1]),
        wpk_compose_integer("K", w->extent[is_transposed ? 1 : 0]), wpk_compose_integer("bits", 4),
        wpk_compose_integer("block_size", I4_BLOCK)};
    int inputs[] = {x, 0, 0};
    struct wpk_diag diag;

    quantize_blocks(e, w, is_transposed, &inputs[1], &inputs[2]);
    if (e->to.err == WPK_OK && output < 0) {
        e->to.err = wpk_graph_add_value(e->graph, "", &output);
    }
    struct wpk_graph_node node = *e->node;
    node.op = "MatMulNBits";
    node.domain = "com.microsoft";
    node.inputs = inputs;
    node.input_count = 3;
    node.outputs = &output;
    node.attributes = attributes;
    node.attribute_count = sizeof(attributes) / sizeof(attributes[0]);
    e->graph->weights.count++;
    if (e->to.err == WPK_OK) {
        e->graph->values[output].is_read = true;
        e->to.err = wpk_graph_expand(e->graph, &node, &diag);
    }
    return output;
}

/* The weights in a type of graph->weights.   shape  *scale: as in quantize(); -1: none */
static int narrow_weights(struct wpk_expansion *e, int *scale)
{
    const struct wpk_graph_value w = e->graph->values[e->node->inputs[1]];
    bool is_transposed =
        strcmp(e->node->op, "Gemm") == 0 && wpk_graph_int(e->node, "transB", 0) != 0;

    e->graph->weights.count++;
    if (e->graph->weights.dtype == WPK_I8) {
        return quantize(e, e->node->inputs[1], is_transposed ? 0 : w.rank - 1, scale);
    }
    for (int64_t i = 0; i < wpk_graph_elements(&w); i++) {
        double weight = weight_at(&w, i);
        note_loss(e->graph, weight, wpk_dtype_round(e->graph->weights.dtype, weight));
    }
    return wpk_expansion_cast(e, e->node->inputs[1], e->graph->weights.dtype, -1);
}

double wpk_precision_loss(const struct wpk_graph *graph)
{
    const struct wpk_graph_weights *w = &graph->weights;

    return w->noise > 0 ? 10 * log10(w->energy / w->noise) : (double)INFINITY;
}

wpk_err wpk_precision_product(struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    struct wpk_expansion e = {
        .to = {.graph = graph, .name = node->name}, .graph = graph, .node = node};
    /* True for the product of a matrix with constant weights that are worth narrowing. */
    bool narrows = graph->weights.dtype != WPK_F32 && strcmp(node->op, "Conv") != 0 &&
                   terms_of(graph, node) > 0 && graph->values[node->inputs[1]].data != NULL &&
                   wpk_graph_elements(&graph->values[node->inputs[1]]) >= WEIGHTS_MIN;

    if (!narrows && (!is_half(graph->math) || terms_of(graph, node) < TERMS_MIN)) {
        return WPK_ENOENT;
    }
    bool is_conv = strcmp(node->op, "Conv") == 0, is_gemm = strcmp(node->op, "Gemm") == 0;
    int addend = node->input_count > 2 ? node->inputs[2] : -1, factor = -1;
    int output = node->outputs[0], rank = graph->values[node->inputs[0]].rank;
    double beta = is_gemm ? wpk_graph_real(e.node, "beta", 1) : 1;
    double alpha = is_gemm ? wpk_graph_real(e.node, "alpha", 1) : 1;
    int x = read_matrix(&e, "transA", node->inputs[0]);
    const struct wpk_graph_value weights = graph->values[node->inputs[1]];
    bool in_blocks = narrows && graph->weights.is_i4 && weights.rank == 2;
    int w = narrows && !in_blocks ? narrow_weights(&e, &factor) : node->inputs[1];
    w = in_blocks ? w : read_matrix(&e, "transB", w);
    x = narrows && graph->math != graph->weights.dtype ? x
                                                       : wpk_expansion_cast(&e, x, graph->math, -1);
    w = narrows ? w : wpk_expansion_cast(&e, w, graph->math, -1);
    addend = beta == 0 ? -1 : addend;
    bool is_last = addend < 0 && alpha == 1;
    graph->values[output].writer = -1;
    int to = is_last && factor < 0 ? output : -1, sums;
    if (in_blocks) {
        bool is_transposed = is_gemm && wpk_graph_int(node, "transB", 0) != 0;
        sums = multiply_blocks(&e, x, &weights, is_transposed, to);
    } else {
        sums = wpk_expansion_node(&e, WPK_SUM_DOMAIN, is_conv ? "Conv" : "MatMul", (int[]){x, w}, 2,
                                  node->attributes, is_conv ? node->attribute_count : 0, to);
    }
    if (factor >= 0) {
        sums = wpk_expansion_binary(&e, "Mul", sums, factor, is_last ? output : -1);
    }
    if (addend >= 0) {
        addend = is_conv ? spread(&e, addend, rank) : scale(&e, addend, beta);
        (void)wpk_expansion_binary(&e, "Add", scale(&e, sums, alpha), addend, output);
    } else if (!is_last) {
        (void)wpk_expansion_binary(&e, "Mul", sums, wpk_compose_number(&e.to, (float)alpha),
                                   output);
    }
    return e.to.err;
}
