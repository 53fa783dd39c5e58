/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   source  ONNX operators QuantizeLinear 21, DequantizeLinear 21, DynamicQuantizeLinear 11,
 *           MatMulInteger 10, ConvInteger 10, QLinearMatMul 10, QLinearConv 10; ONNX Runtime
 *           docs/ContribOperators.md for com.microsoft */
#include "model/operator/expand_quantize.h"

#include <stdio.h>
#include <string.h>

/* A scale or zero point: input number, or -1. */
struct parameter {
    int value;
    int rank;
    int64_t extent[WPK_RANK_MAX];
};

static struct parameter parameter_of(const struct wpk_expansion *e, int input)
{
    const struct wpk_graph_value value = wpk_expansion_input(e, input);
    struct parameter p = {.value = -1};

    if (value.rank >= 0) {
        p = (struct parameter){.value = e->node->inputs[input], .rank = value.rank};
        memcpy(p.extent, value.extent, sizeof(p.extent));
    }
    return p;
}

/* True if the parameter is one for all elements, one for each index of `axis`, or one for each
 * block of so many of them (0: no blocks). */
static bool fits(const struct parameter *p, const struct wpk_graph_value *x, int axis,
                 int64_t block)
{
    bool blocked = p->rank == x->rank && block > 0;

    for (int d = 0; blocked && d < x->rank; d++) {
        int64_t wanted = d == axis ? (x->extent[d] + block - 1) / block : x->extent[d];
        blocked = p->extent[d] == wanted;
    }
    bool is_one = wpk_expansion_product(p->extent, p->rank) == 1 && p->rank <= 1;
    return is_one || blocked || (p->rank == 1 && axis < x->rank && p->extent[0] == x->extent[axis]);
}

/* Append the index of the parameter for the output's element, "[d1]". */
static void put_index(struct wpk_expansion *e, const struct parameter *p, int axis, int64_t block)
{
    wpk_buf_append_text(&e->text, "[");
    for (int d = 0; d < p->rank; d++) {
        wpk_buf_append_text(&e->text, d > 0 ? "," : "");
        if (p->rank == 1 && p->extent[0] == 1) {
            wpk_buf_append_text(&e->text, "0");
        } else if (p->rank == 1) {
            wpk_buf_printf(&e->text, "d%d", axis);
        } else if (d == axis) {
            wpk_buf_printf(&e->text, "d%d/%lld", d, (long long)block);
        } else {
            wpk_buf_printf(&e->text, "d%d", d);
        }
    }
    wpk_buf_append_text(&e->text, "]");
}

/* Append "Y[d0,d1] = ". */
static void begin(struct wpk_expansion *e, int rank)
{
    wpk_buf_append_text(&e->text, "Y[");
    wpk_expansion_axes(e, rank);
    wpk_buf_append_text(&e->text, "] = ");
}

/* Append "X[d0,d1]". */
static void put_x(struct wpk_expansion *e, int rank)
{
    wpk_buf_append_text(&e->text, "X[");
    wpk_expansion_axes(e, rank);
    wpk_buf_append_text(&e->text, "]");
}

static bool is_narrow(enum wpk_dtype dtype)
{
    return dtype == WPK_U8 || dtype == WPK_I8;
}

/* ---- one tensor */

/* The axis of the scales, and the elements of a block (0: none). */
static wpk_err read_axis(struct wpk_expansion *e, int rank, int *axis, int64_t *block)
{
    int64_t given = wpk_graph_int(e->node, "axis", 1);

    *block = wpk_graph_int(e->node, "block_size", 0);
    given += given < 0 ? rank : 0;
    *axis = (int)given;
    if (*block < 0 || given < 0 || (given >= rank && rank > 1)) {
        return wpk_expansion_refuse(e, "its axis or block_size is none of its input");
    }
    return WPK_OK;
}

/* Append the node that quantizes x with these parameters; the zero point may be left out. */
static int quantize(struct wpk_expansion *e, int x, const struct wpk_graph_value *like,
                    const struct parameter *scale, const struct parameter *zero, int axis,
                    int64_t block, enum wpk_dtype dtype, int output)
{
    begin(e, like->rank);
    wpk_buf_printf(&e->text, "%s(round(", wpk_dtype_name(dtype));
    put_x(e, like->rank);
    wpk_buf_append_text(&e->text, " / X1");
    put_index(e, scale, axis, block);
    wpk_buf_append_text(&e->text, ")");
    if (zero->value >= 0) {
        wpk_buf_append_text(&e->text, " + f32(X2");
        put_index(e, zero, axis, block);
        wpk_buf_append_text(&e->text, ")");
    }
    wpk_buf_append_text(&e->text, ")");
    return wpk_expansion_equation(e, (int[]){x, scale->value, zero->value},
                                  zero->value >= 0 ? 3 : 2, dtype, like->rank, like->extent,
                                  output);
}

wpk_err wpk_expand_quantize(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value z = wpk_expansion_input(e, 2);
    const struct parameter scale = parameter_of(e, 1), zero = parameter_of(e, 2);
    int64_t named = wpk_graph_int(e->node, "output_dtype", 0);
    enum wpk_dtype dtype = z.rank >= 0 ? z.dtype : WPK_U8;
    int axis = 0;
    int64_t block = 0;

    wpk_err err = read_axis(e, x.rank, &axis, &block);
    if (err != WPK_OK) {
        return err;
    }
    if (named != 0 && (wpk_graph_dtype((int)named, &dtype) != WPK_OK || named > 64)) {
        return wpk_expansion_refuse(e, "its output_dtype is not supported");
    }
    if (x.dtype != WPK_F32 || !is_narrow(dtype)) {
        return wpk_expansion_refuse(e, "it quantizes other types than f32 to u8 or i8");
    }
    if (!fits(&scale, &x, axis, block) || (zero.value >= 0 && !fits(&zero, &x, axis, block))) {
        return wpk_expansion_refuse(e, "its scale or zero point has another shape than its input");
    }
    (void)quantize(e, e->node->inputs[0], &x, &scale, &zero, axis, block, dtype,
                   wpk_expansion_output(e, 0));
    return WPK_OK;
}

wpk_err wpk_expand_dequantize(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value s = wpk_expansion_input(e, 1);
    const struct parameter scale = parameter_of(e, 1), zero = parameter_of(e, 2);
    int axis = 0;
    int64_t block = 0;

    wpk_err err = read_axis(e, x.rank, &axis, &block);
    if (err != WPK_OK) {
        return err;
    }
    if (s.dtype != WPK_F32 || (!is_narrow(x.dtype) && x.dtype != WPK_I32)) {
        return wpk_expansion_refuse(e, "it dequantizes other types than u8, i8 or i32 to f32");
    }
    if (!fits(&scale, &x, axis, block) || (zero.value >= 0 && !fits(&zero, &x, axis, block))) {
        return wpk_expansion_refuse(e, "its scale or zero point has another shape than its input");
    }
    begin(e, x.rank);
    wpk_buf_append_text(&e->text, zero.value >= 0 ? "f32(i32(" : "f32(");
    put_x(e, x.rank);
    if (zero.value >= 0) {
        wpk_buf_append_text(&e->text, ") - i32(X2");
        put_index(e, &zero, axis, block);
        wpk_buf_append_text(&e->text, ")");
    }
    wpk_buf_append_text(&e->text, ") * X1");
    put_index(e, &scale, axis, block);
    (void)wpk_expansion_equation(e, (int[]){e->node->inputs[0], scale.value, zero.value},
                                 zero.value >= 0 ? 3 : 2, WPK_F32, x.rank, x.extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

/* The parts of a DynamicQuantizeLinear: values. */
struct dynamic {
    int quantized;
    int scale;
    int zero;
};

/* Append "max(r0:2,r1:3) X[r0,r1]". */
static void put_whole(struct wpk_expansion *e, const char *reduction,
                      const struct wpk_graph_value *like)
{
    wpk_buf_append_text(&e->text, like->rank > 0 ? reduction : "");
    for (int d = 0; d < like->rank; d++) {
        wpk_buf_printf(&e->text, "%sr%d:%lld", d > 0 ? "," : "(", d, (long long)like->extent[d]);
    }
    wpk_buf_append_text(&e->text, like->rank > 0 ? ") X[" : "X[");
    for (int d = 0; d < like->rank; d++) {
        wpk_buf_printf(&e->text, "%sr%d", d > 0 ? "," : "", d);
    }
    wpk_buf_append_text(&e->text, "]");
}

/* Append the nodes that quantize a tensor to u8 with a scale of its own. The range includes 0.
 *   shape   outputs: -1 for new values */
static void quantize_dynamically(struct wpk_expansion *e, int x, const struct wpk_graph_value *like,
                                 const struct dynamic *outputs, struct dynamic *out)
{
    struct parameter scale = {.rank = 0}, zero = {.rank = 0};

    wpk_buf_append_text(&e->text, "Y[] = select(R[] == 0, 1, R[]) where R[] = (max(0, ");
    put_whole(e, "max", like);
    wpk_buf_append_text(&e->text, ") - L[]) / 255; L[] = min(0, ");
    put_whole(e, "min", like);
    wpk_buf_append_text(&e->text, ")");
    scale.value = wpk_expansion_equation(e, &x, 1, WPK_F32, 0, NULL, outputs->scale);
    wpk_buf_append_text(&e->text, "Y[] = u8(round((0 - L[]) / X1[])) where L[] = min(0, ");
    put_whole(e, "min", like);
    wpk_buf_append_text(&e->text, ")");
    zero.value =
        wpk_expansion_equation(e, (int[]){x, scale.value}, 2, WPK_U8, 0, NULL, outputs->zero);
    out->scale = scale.value;
    out->zero = zero.value;
    out->quantized = quantize(e, x, like, &scale, &zero, 0, 0, WPK_U8, outputs->quantized);
}

wpk_err wpk_expand_dynamic_quantize(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct dynamic outputs = {wpk_expansion_output(e, 0), wpk_expansion_output(e, 1),
                                    wpk_expansion_output(e, 2)};
    struct dynamic made;

    if (x.dtype != WPK_F32) {
        return wpk_expansion_refuse(e, "it quantizes another type than f32");
    }
    quantize_dynamically(e, e->node->inputs[0], &x, &outputs, &made);
    return WPK_OK;
}

/* ---- products in i32 */

/* Append q - zero point, in i32.   shape  zero: value -1: none */
static int center(struct wpk_expansion *e, int q, const struct wpk_graph_value *like,
                  const struct parameter *zero, int axis)
{
    begin(e, like->rank);
    wpk_buf_append_text(&e->text, "i32(");
    put_x(e, like->rank);
    wpk_buf_append_text(&e->text, ")");
    if (zero->value >= 0) {
        wpk_buf_append_text(&e->text, " - i32(X1");
        put_index(e, zero, axis, 0);
        wpk_buf_append_text(&e->text, ")");
    }
    return wpk_expansion_equation(e, (int[]){q, zero->value}, zero->value >= 0 ? 2 : 1, WPK_I32,
                                  like->rank, like->extent, -1);
}

/* The operands of a product: inputs of the node, with their zero points (-1: none). */
struct operands {
    int a, b;
    int a_zero, b_zero;
};

static struct parameter zero_of(const struct wpk_expansion *e, int input)
{
    return input >= 0 ? parameter_of(e, input) : (struct parameter){.value = -1};
}

/* Append op(a - a_zero, b - b_zero) in i32.   shape  *out: its value; output: -1 for a new one
 *   errors  WPK_EUNSUPPORTED other types than u8 and i8, or zero points of other shapes */
static wpk_err product(struct wpk_expansion *e, const char *op, const struct operands *operands,
                       int output, int *out)
{
    const struct wpk_graph_value a = wpk_expansion_input(e, operands->a);
    const struct wpk_graph_value b = wpk_expansion_input(e, operands->b);
    const struct parameter a_zero = zero_of(e, operands->a_zero);
    const struct parameter b_zero = zero_of(e, operands->b_zero);
    bool is_conv = strcmp(op, "Conv") == 0;
    int a_axis = a.rank > 1 ? a.rank - 2 : 0; /* rows */
    int b_axis = is_conv ? 0 : b.rank - 1;    /* filters, or columns */

    if (!is_narrow(a.dtype) || !is_narrow(b.dtype)) {
        return wpk_expansion_refuse(e, "its operands have other types than u8 and i8");
    }
    if ((a_zero.value >= 0 && !fits(&a_zero, &a, is_conv ? WPK_RANK_MAX : a_axis, 0)) ||
        (b_zero.value >= 0 && !fits(&b_zero, &b, b_axis, 0))) {
        return wpk_expansion_refuse(e, "its zero points are neither one nor one for each row or "
                                       "column");
    }
    const int inputs[] = {center(e, e->node->inputs[operands->a], &a, &a_zero, a_axis),
                          center(e, e->node->inputs[operands->b], &b, &b_zero, b_axis)};
    const struct wpk_graph_node node = {.op = op,
                                        .name = e->node->name,
                                        .inputs = inputs,
                                        .input_count = 2,
                                        .attributes = is_conv ? e->node->attributes : NULL,
                                        .attribute_count = is_conv ? e->node->attribute_count : 0};
    *out = wpk_compose_node(&e->to, &node, output);
    return WPK_OK;
}

wpk_err wpk_expand_matmul_integer(struct wpk_expansion *e)
{
    int unused;

    return product(e, "MatMul", &(struct operands){0, 1, 2, 3}, wpk_expansion_output(e, 0),
                   &unused);
}

wpk_err wpk_expand_conv_integer(struct wpk_expansion *e)
{
    int unused;

    return product(e, "Conv", &(struct operands){0, 1, 2, 3}, wpk_expansion_output(e, 0), &unused);
}

/* Append a node of an operator of ONNX. */
static int node_of(struct wpk_expansion *e, const char *op, const int *inputs, int count,
                   const struct wpk_graph_attribute *attribute, int output)
{
    const struct wpk_graph_node node = {.op = op,
                                        .name = e->node->name,
                                        .inputs = inputs,
                                        .input_count = count,
                                        .attributes = attribute,
                                        .attribute_count = attribute != NULL};

    return wpk_compose_node(&e->to, &node, output);
}

/* Make a scale of one element, or of one an index, a tensor that broadcasts along `axis` of `rank`.
 * Returns its value. */
static int spread(struct wpk_expansion *e, int value, const struct parameter *p, int axis, int rank)
{
    int64_t extent[WPK_RANK_MAX];

    if (p->rank == 0 || axis == rank - 1) {
        return value;
    }
    for (int d = 0; d < rank; d++) {
        extent[d] = d == axis ? p->extent[0] : 1;
    }
    return wpk_compose_reshape(&e->to, value, "scale", rank, extent, -1);
}

/* Append a Cast. */
static int cast(struct wpk_expansion *e, int x, enum wpk_dtype dtype, int output)
{
    const struct wpk_graph_attribute to = wpk_compose_integer("to", wpk_graph_element_of(dtype));

    return node_of(e, "Cast", &x, 1, &to, output);
}

/* Append the output of a quantized product: its sums times a factor, rounded to the type of the
 * zero point. Every step is a node of its own: an epilogue of the product takes them all. */
static wpk_err requantize(struct wpk_expansion *e, int sums, int rank)
{
    enum { A_SCALE = 1, B_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
    const struct parameter a = parameter_of(e, A_SCALE), b = parameter_of(e, B_SCALE);
    const struct parameter y = parameter_of(e, Y_SCALE);
    const struct wpk_graph_value zero = wpk_expansion_input(e, Y_ZERO);

    if (a.rank > 1 || wpk_expansion_product(a.extent, a.rank) != 1 || y.rank > 1 ||
        wpk_expansion_product(y.extent, y.rank) != 1 || b.rank > 1 || zero.rank > 1 ||
        wpk_expansion_product(zero.extent, zero.rank) != 1 || !is_narrow(zero.dtype)) {
        return wpk_expansion_refuse(e, "its scales are not one number, or of its weights one for "
                                       "each column");
    }
    int factor = node_of(e, "Mul", (int[]){a.value, b.value}, 2, NULL, -1);
    factor = node_of(e, "Div", (int[]){factor, y.value}, 2, NULL, -1);
    if (rank > 0 && b.rank == 1 && b.extent[0] > 1) {
        factor = spread(e, factor, &b, 1, rank);
    }
    int real = cast(e, sums, WPK_F32, -1);
    real = node_of(e, "Mul", (int[]){real, factor}, 2, NULL, -1);
    real = wpk_compose_unary(&e->to, "Round", real);
    int shift = cast(e, e->node->inputs[Y_ZERO], WPK_F32, -1);
    real = node_of(e, "Add", (int[]){real, shift}, 2, NULL, -1);
    (void)cast(e, real, zero.dtype, wpk_expansion_output(e, 0));
    return WPK_OK;
}

wpk_err wpk_expand_qlinear_matmul(struct wpk_expansion *e)
{
    int sums = 0;

    wpk_err err = product(e, "MatMul", &(struct operands){0, 3, 2, 5}, -1, &sums);
    return err == WPK_OK ? requantize(e, sums, 0) : err;
}

wpk_err wpk_expand_qlinear_conv(struct wpk_expansion *e)
{
    const struct wpk_graph_value bias = wpk_expansion_input(e, 8);
    const struct wpk_graph_value w = wpk_expansion_input(e, 3);
    int sums = 0;

    wpk_err err = product(e, "Conv", &(struct operands){0, 3, 2, 5}, -1, &sums);
    if (err == WPK_OK && bias.rank >= 0) {
        const struct parameter p = parameter_of(e, 8);
        if (bias.dtype != WPK_I32 || bias.rank != 1) {
            return wpk_expansion_refuse(e, "its bias is no list of i32");
        }
        int spreads = spread(e, p.value, &p, 1, w.rank);
        sums = node_of(e, "Add", (int[]){sums, spreads}, 2, NULL, -1);
    }
    return err == WPK_OK ? requantize(e, sums, w.rank) : err;
}

/* ---- com.microsoft */

/* Append f32(sums) * (a_scale * b_scale) + bias. */
static wpk_err scale_sums(struct wpk_expansion *e, int sums, int a_scale, int b_scale, int bias)
{
    int output = wpk_expansion_output(e, 0);
    int factor = node_of(e, "Mul", (int[]){a_scale, b_scale}, 2, NULL, -1);
    int real = cast(e, sums, WPK_F32, -1);

    real = node_of(e, "Mul", (int[]){real, factor}, 2, NULL, bias >= 0 ? -1 : output);
    if (bias >= 0) {
        (void)node_of(e, "Add", (int[]){real, bias}, 2, NULL, output);
    }
    return WPK_OK;
}

wpk_err wpk_expand_matmul_integer_to_float(struct wpk_expansion *e)
{
    int sums = 0;

    wpk_err err = product(e, "MatMul", &(struct operands){0, 1, 4, 5}, -1, &sums);
    return err == WPK_OK
               ? scale_sums(e, sums, e->node->inputs[2], e->node->inputs[3], zero_of(e, 6).value)
               : err;
}

wpk_err wpk_expand_dynamic_quantize_matmul(struct wpk_expansion *e)
{
    const struct wpk_graph_value a = wpk_expansion_input(e, 0), b = wpk_expansion_input(e, 1);
    const struct parameter b_zero = parameter_of(e, 3);
    struct dynamic made;

    if (a.dtype != WPK_F32 || !is_narrow(b.dtype)) {
        return wpk_expansion_refuse(e, "its operands have other types than f32, and u8 or i8");
    }
    if (b_zero.value >= 0 && !fits(&b_zero, &b, b.rank - 1, 0)) {
        return wpk_expansion_refuse(e, "its zero points are neither one nor one for each column");
    }
    quantize_dynamically(e, e->node->inputs[0], &a, &(struct dynamic){-1, -1, -1}, &made);
    const struct parameter a_zero = {.value = made.zero};
    const int inputs[] = {center(e, made.quantized, &a, &a_zero, 0),
                          center(e, e->node->inputs[1], &b, &b_zero, b.rank - 1)};
    int sums = node_of(e, "MatMul", inputs, 2, NULL, -1);
    return scale_sums(e, sums, made.scale, e->node->inputs[2], zero_of(e, 4).value);
}

int wpk_quantized_center(struct wpk_expansion *e, int q, int64_t k, int64_t n, int zero,
                         int64_t zero_count)
{
    const struct wpk_graph_value like = {.rank = 2, .extent = {k, n}};
    const struct parameter parameter = {.value = zero, .rank = 1, .extent = {zero_count}};

    return center(e, q, &like, &parameter, 1);
}

int wpk_quantized_product(struct wpk_expansion *e, int x, int64_t rows, int64_t k,
                          const struct wpk_quantized_weights *weights)
{
    const struct wpk_graph_value like = {.rank = 2, .extent = {rows, k}};
    struct dynamic made;

    quantize_dynamically(e, x, &like, &(struct dynamic){-1, -1, -1}, &made);
    const struct parameter zero = {.value = made.zero};
    const int operands[] = {center(e, made.quantized, &like, &zero, 0), weights->centered};
    int sums = node_of(e, "MatMul", operands, 2, NULL, -1);
    int factor = node_of(e, "Mul", (int[]){made.scale, weights->scale}, 2, NULL, -1);
    return node_of(e, "Mul", (int[]){cast(e, sums, WPK_F32, -1), factor}, 2, NULL, -1);
}

/* Unpack constants of 4 bits, the low ones first, to u8.   shape  [rows, ceil(count / 2)]
 *   owns  the graph; NULL without memory */
static uint8_t *unpack(struct wpk_expansion *e, const uint8_t *packed, int64_t rows, int64_t count)
{
    uint8_t *out = WPK_ARENA_NEW(&e->graph->arena, uint8_t, (size_t)(rows * count));
    int64_t bytes = (count + 1) / 2;

    for (int64_t i = 0; out != NULL && i < rows * count; i++) {
        uint8_t both = packed[i / count * bytes + i % count / 2];
        out[i] = i % count % 2 == 0 ? both & 15 : both >> 4;
    }
    return out;
}

wpk_err wpk_expand_matmul_nbits(struct wpk_expansion *e)
{
    const struct wpk_graph_value a = wpk_expansion_input(e, 0), b = wpk_expansion_input(e, 1);
    const struct wpk_graph_value z = wpk_expansion_input(e, 3), bias = wpk_expansion_input(e, 5);
    const struct parameter scale = parameter_of(e, 2);
    int64_t n = wpk_graph_int(e->node, "N", 0), k = wpk_graph_int(e->node, "K", 0);
    int64_t block = wpk_graph_int(e->node, "block_size", 0);
    int64_t blocks = block > 0 ? (k + block - 1) / block : 0;

    if (wpk_graph_int(e->node, "bits", 4) != 4 || n < 1 || k < 1 || block < 16 || block % 2 != 0 ||
        b.data == NULL || b.dtype != WPK_U8 ||
        wpk_expansion_product(b.extent, b.rank) != n * blocks * (block / 2) ||
        wpk_expansion_input(e, 4).rank >= 0 || a.dtype != WPK_F32 || a.rank < 1 ||
        a.extent[a.rank - 1] != k ||
        wpk_expansion_product(scale.extent, scale.rank) != n * blocks ||
        (z.rank >= 0 && (z.data == NULL || z.dtype != WPK_U8 ||
                         wpk_expansion_product(z.extent, z.rank) != n * ((blocks + 1) / 2)))) {
        return wpk_expansion_refuse(e, "it has other than constant weights of 4 bits, packed in "
                                       "blocks, with a scale for each block and packed zero "
                                       "points");
    }
    const int64_t padded[] = {n, blocks * block}, by_block[] = {n, blocks};
    const uint8_t *weights = unpack(e, b.data, n, blocks * block);
    const uint8_t *zeros = z.rank >= 0 ? unpack(e, z.data, n, blocks) : NULL;
    if (weights == NULL || (z.rank >= 0 && zeros == NULL)) {
        return WPK_ENOMEM;
    }
    int q = wpk_compose_constant(&e->to, WPK_U8, 2, padded, weights);
    int s = wpk_compose_reshape(&e->to, scale.value, "scale", 2, by_block, -1);
    int zero = zeros != NULL ? wpk_compose_constant(&e->to, WPK_U8, 2, by_block, zeros) : -1;
    wpk_buf_printf(&e->text, "Y[d0,d1] = f32(i32(X[d1,d0]) - %s) * X1[d1,d0/%lld]",
                   zero >= 0 ? "" : "8", (long long)block);
    if (zero >= 0) {
        wpk_buf_reset(&e->text);
        wpk_buf_printf(&e->text,
                       "Y[d0,d1] = f32(i32(X[d1,d0]) - i32(X2[d1,d0/%lld])) * X1[d1,d0/%lld]",
                       (long long)block, (long long)block);
    }
    int real = wpk_expansion_equation(e, (int[]){q, s, zero}, zero >= 0 ? 3 : 2, WPK_F32, 2,
                                      (int64_t[]){k, n}, -1);
    int output = wpk_expansion_output(e, 0);
    int product_value = node_of(e, "MatMul", (int[]){e->node->inputs[0], real}, 2, NULL,
                                bias.rank >= 0 ? -1 : output);
    if (bias.rank >= 0) {
        (void)node_of(e, "Add", (int[]){product_value, e->node->inputs[5]}, 2, NULL, output);
    }
    return WPK_OK;
}
