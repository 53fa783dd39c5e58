/* SPDX-License-Identifier: Apache-2.0 */
/* Products in i32.
 *
 * The sum of (a - za) (b - zb) over k is that of a b, less za times the sum of b - zb, less zb
 * times the sum of a. The first is a product of narrow integers. The second follows from constants
 * but for za. The third is 0 for the weights that most quantizers write, or that can be moved
 * there.
 *
 *   source  ONNX operators MatMulInteger 10, ConvInteger 10, QLinearMatMul 10, QLinearConv 10; ONNX
 *           Runtime docs/ContribOperators.md for com.microsoft */
#include "model/operator/expand_quantize.h"
#include "model/operator/operator.h"

#include <string.h>

enum { ATTRIBUTES_MAX = 16, SIGN = WPK_QUANTIZE_SIGN };

/* A constant number of i32. */
static int integer(struct wpk_expansion *e, int32_t number)
{
    int32_t *data = WPK_ARENA_DEMAND(&e->graph->arena, int32_t, 1);

    *data = number;
    return wpk_compose_constant(&e->to, WPK_I32, 0, NULL, data);
}

/* An operand of a product: its elements less a zero point. */
struct operand {
    int value;
    struct wpk_graph_value like; /* its type and shape; `data` NULL: it is no constant */
    struct wpk_parameter zero;   /* in i32; value -1: it is 0 */
    bool is_fixed;               /* the zero point is a constant number, */
    int64_t number;              /* this one */
};

/* Constants of u8 become i8 less 128: a zero point of 128 is gone then. */
static void shift(struct wpk_expansion *e, struct operand *o)
{
    int64_t count = wpk_graph_elements(&o->like);
    const uint8_t *from = o->like.data;
    uint8_t *to = WPK_ARENA_DEMAND(&e->graph->arena, uint8_t, (size_t)count + 1);

    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i] ^ SIGN;
    }
    o->value = wpk_compose_constant(&e->to, WPK_I8, o->like.rank, o->like.extent, to);
    o->like.dtype = WPK_I8;
    o->like.data = to;
}

/* Describe an operand with its zero point.
 *   shape   axis: of the zero points, if there is one for each index
 *   errors  WPK_EUNSUPPORTED  other types or shapes */
static wpk_err make_operand(struct wpk_expansion *e, int value, const struct wpk_graph_value *like,
                            const struct wpk_parameter *zero,
                            const struct wpk_graph_value *zero_like, int axis, struct operand *o)
{
    bool has_zero = zero->value >= 0, shifts = like->data != NULL && like->dtype == WPK_U8;

    *o = (struct operand){.value = value,
                          .like = *like,
                          .zero = *zero,
                          .is_fixed = !has_zero || zero_like->data != NULL};
    if (!wpk_quantize_is_narrow(like->dtype) || (has_zero && zero_like->dtype != like->dtype)) {
        return wpk_expansion_refuse(e, "its operands have other types than u8 and i8");
    }
    if (has_zero && !wpk_parameter_fits(zero, like, axis, 0)) {
        return wpk_expansion_refuse(e, "its zero points are neither one nor one for each row or "
                                       "column");
    }
    if (has_zero && o->is_fixed) {
        o->number = (int64_t)wpk_graph_element(zero_like, 0);
        for (int64_t i = 1; i < wpk_graph_elements(zero_like); i++) {
            o->is_fixed = o->is_fixed && wpk_graph_element(zero_like, i) == (double)o->number;
        }
    }
    if (shifts) {
        o->number -= SIGN;
        shift(e, o);
    }
    if (o->is_fixed) {
        o->zero = (struct wpk_parameter){.value = -1};
        o->zero.value = o->number != 0 ? integer(e, (int32_t)o->number) : -1;
    } else {
        o->zero.value = wpk_expansion_cast(e, o->zero.value, WPK_I32, -1);
        o->zero.value = shifts ? wpk_expansion_binary(e, "Sub", o->zero.value, integer(e, SIGN), -1)
                               : o->zero.value;
    }
    return WPK_OK;
}

/* The same by the node's inputs; `zero` -1: it has no zero point. */
static wpk_err read_operand(struct wpk_expansion *e, int input, int zero, int axis,
                            struct operand *o)
{
    const struct wpk_graph_value like = wpk_expansion_input(e, input);
    const struct wpk_graph_value z =
        zero >= 0 ? wpk_expansion_input(e, zero) : (struct wpk_graph_value){.rank = -1};
    const struct wpk_parameter points =
        zero >= 0 ? wpk_parameter_of(e, zero) : (struct wpk_parameter){.value = -1};

    return make_operand(e, e->node->inputs[input], &like, &points, &z, axis, o);
}

/* A tensor that wpk_quantize_dynamically() has quantized, as an operand. */
static struct operand operand_of(struct wpk_expansion *e, const struct wpk_dynamic *made,
                                 const struct wpk_graph_value *like)
{
    struct operand o = {.value = made->quantized, .like = *like};

    o.like.dtype = WPK_U8;
    o.like.data = NULL;
    o.zero.value = wpk_expansion_cast(e, made->zero, WPK_I32, -1);
    return o;
}

/* Append an operand less its zero point, in i32. */
static int center(struct wpk_expansion *e, const struct operand *o, int axis)
{
    bool has_zero = o->zero.value >= 0;

    wpk_buf_printf(&e->text, "Y[%s] = i32(X[%s])%s", wpk_axis_names(o->like.rank),
                   wpk_axis_names(o->like.rank), has_zero ? " - X1" : "");
    if (has_zero) {
        wpk_parameter_index(e, &o->zero, axis, 0);
    }
    return wpk_expansion_equation(e, (int[]){o->value, o->zero.value}, has_zero ? 2 : 1, WPK_I32,
                                  o->like.rank, o->like.extent, -1);
}

/* Append the sums of an operand less `zero` over axes [first, last], whose extents become 1; `axis`
 * is that of the zero points. */
static int sum(struct wpk_expansion *e, const struct operand *o, int first, int last,
               const struct wpk_parameter *zero, int axis)
{
    int64_t extent[WPK_RANK_MAX];

    wpk_buf_printf(&e->text, "Y[%s] = ", wpk_axis_names(o->like.rank));
    for (int d = first; d <= last; d++) {
        wpk_buf_printf(&e->text, "%sr%d:%lld", d > first ? "," : "sum(", d,
                       (long long)o->like.extent[d]);
    }
    wpk_buf_append_text(&e->text, ") (i32(X[");
    for (int d = 0; d < o->like.rank; d++) {
        bool is_summed = first <= d && d <= last;
        extent[d] = is_summed ? 1 : o->like.extent[d];
        wpk_buf_printf(&e->text, "%s%c%d", d > 0 ? "," : "", is_summed ? 'r' : 'd', d);
    }
    wpk_buf_append_text(&e->text, zero->value >= 0 ? "]) - X1" : "])");
    if (zero->value >= 0) {
        wpk_parameter_index(e, zero, axis, 0);
    }
    wpk_buf_append_text(&e->text, ")");
    return wpk_expansion_equation(e, (int[]){o->value, zero->value}, zero->value >= 0 ? 2 : 1,
                                  WPK_I32, o->like.rank, extent, -1);
}

/* a - b c; or a, if b is -1. */
static int subtract(struct wpk_expansion *e, int a, int b, int c, int output)
{
    return wpk_expansion_binary(e, "Sub", a, wpk_expansion_binary(e, "Mul", b, c, -1), output);
}

/* Make an operand that is no constant one of the other type, `by` above it. */
static void convert(struct wpk_expansion *e, struct operand *o, int by)
{
    o->value = wpk_quantize_shift(e, o->value, by);
    o->like.dtype = by > 0 ? WPK_U8 : WPK_I8;
    if (o->is_fixed) {
        o->number += by;
        o->zero = (struct wpk_parameter){.value = -1};
        o->zero.value = o->number != 0 ? integer(e, (int32_t)o->number) : -1;
    } else {
        o->zero.value = wpk_expansion_binary(e, "Add", o->zero.value, integer(e, by), -1);
    }
}

/* Make two operands of one type u8 by i8, which instructions multiply. */
static void pair(struct wpk_expansion *e, struct operand *a, struct operand *b)
{
    if (a->like.dtype != b->like.dtype) {
        return;
    }
    if (a->like.dtype == WPK_U8) {
        convert(e, b, -SIGN);
    } else if (a->like.data == NULL) {
        convert(e, a, SIGN);
    } else if (b->like.data == NULL) {
        convert(e, b, SIGN);
    }
}

/* Append the product of matrices. */
static int multiply(struct wpk_expansion *e, struct operand *a, struct operand *b, int output)
{
    const struct wpk_parameter none = {.value = -1};
    int rows = b->like.rank - 2, columns = b->like.rank - 1; /* axes of b */

    if (a->like.rank < 2 || b->like.rank < 2 ||
        wpk_extents_product(a->zero.extent, a->zero.rank) != 1) {
        return wpk_expansion_binary(e, "MatMul",
                                    center(e, a, a->like.rank > 1 ? a->like.rank - 2 : 0),
                                    center(e, b, b->like.rank - 1), output);
    }
    pair(e, a, b);
    bool has_a = a->zero.value >= 0, has_b = b->zero.value >= 0;
    int value = wpk_expansion_node(e, WPK_SUM_DOMAIN, "MatMul", (int[]){a->value, b->value}, 2,
                                   NULL, 0, has_a || has_b ? -1 : output);
    if (has_a) {
        value = subtract(e, value, a->zero.value, sum(e, b, rows, rows, &b->zero, columns),
                         has_b ? -1 : output);
    }
    if (has_b) {
        int last = a->like.rank - 1;
        value = subtract(e, value, sum(e, a, last, last, &none, 0), b->zero.value, output);
    }
    return value;
}

/* True if the convolution reads elements beyond its input. */
static bool reads_outside(const struct wpk_expansion *e)
{
    const struct wpk_graph_attribute *pads =
        wpk_graph_attribute(e->node, "pads", WPK_ATTRIBUTE_INTS);
    const char *automatic = wpk_graph_text(e->node, "auto_pad", "NOTSET");
    bool any = strcmp(automatic, "NOTSET") != 0 && strcmp(automatic, "VALID") != 0;

    for (int i = 0; pads != NULL && i < pads->count; i++) {
        any = any || pads->integers[i] != 0;
    }
    return any;
}

/* Append the convolution: what lies outside is the zero point. */
static int convolve(struct wpk_expansion *e, struct operand *a, struct operand *b, int output)
{
    struct wpk_graph_attribute attributes[ATTRIBUTES_MAX + 1];
    int count =
        e->node->attribute_count < ATTRIBUTES_MAX ? e->node->attribute_count : ATTRIBUTES_MAX;
    int64_t extent[WPK_RANK_MAX];

    memcpy(attributes, e->node->attributes, (size_t)count * sizeof(*attributes));
    bool centers = b->zero.value >= 0 || (!a->is_fixed && reads_outside(e));
    if (!centers) {
        pair(e, a, b);
        centers = b->zero.value >= 0; /* weights that are no constants became i8 */
    }
    if (centers) {
        const int centered[] = {center(e, a, 0), center(e, b, 0)};
        return wpk_expansion_node(e, "", "Conv", centered, 2, attributes, count, output);
    }
    bool has_a = a->zero.value >= 0;
    attributes[count++] = wpk_compose_integer("outside", a->number);
    int value = wpk_expansion_node(e, WPK_SUM_DOMAIN, "Conv", (int[]){a->value, b->value}, 2,
                                   attributes, count, has_a ? -1 : output);
    if (has_a) {
        for (int d = 0; d < b->like.rank; d++) {
            extent[d] = d == 1 ? b->like.extent[0] : 1;
        }
        int sums = sum(e, b, 1, b->like.rank - 1, &b->zero, 0);
        sums = wpk_compose_reshape(&e->to, sums, "sums", b->like.rank, extent, -1);
        value = subtract(e, value, a->zero.value, sums, output);
    }
    return value;
}

/* Append the product of inputs a and b with these zero points (-1: none).
 *   shape   *out: its value; output: -1 for a new one
 *   errors  those of read_operand */
static wpk_err product(struct wpk_expansion *e, bool is_conv, const int inputs[4], int output,
                       int *out)
{
    const int a_rank = wpk_expansion_input(e, inputs[0]).rank;
    const int b_rank = wpk_expansion_input(e, inputs[1]).rank;
    struct operand a, b;

    wpk_err err = read_operand(e, inputs[0], inputs[2],
                               is_conv      ? WPK_RANK_MAX
                               : a_rank > 1 ? a_rank - 2
                                            : 0,
                               &a);
    if (err == WPK_OK) {
        err = read_operand(e, inputs[1], inputs[3], is_conv ? 0 : b_rank - 1, &b);
    }
    if (err == WPK_OK) {
        *out = is_conv ? convolve(e, &a, &b, output) : multiply(e, &a, &b, output);
    }
    return err;
}

wpk_err wpk_expand_matmul_integer(struct wpk_expansion *e)
{
    int unused;

    return product(e, false, (int[]){0, 1, 2, 3}, wpk_expansion_output(e, 0), &unused);
}

wpk_err wpk_expand_conv_integer(struct wpk_expansion *e)
{
    int unused;

    return product(e, true, (int[]){0, 1, 2, 3}, wpk_expansion_output(e, 0), &unused);
}

/* Make a scale of one element, or of one an index, a tensor that broadcasts along `axis` of `rank`.
 * Returns its value. */
static int spread(struct wpk_expansion *e, int value, const struct wpk_parameter *p, int axis,
                  int rank)
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

/* Append the output of a quantized product: its sums times a factor, rounded to the type of the
 * zero point. Every step is a node of its own: an epilogue of the product takes them all. */
static wpk_err requantize(struct wpk_expansion *e, int sums, int rank)
{
    enum { A_SCALE = 1, B_SCALE = 4, Y_SCALE = 6, Y_ZERO = 7 };
    const struct wpk_parameter a = wpk_parameter_of(e, A_SCALE), b = wpk_parameter_of(e, B_SCALE);
    const struct wpk_parameter y = wpk_parameter_of(e, Y_SCALE);
    const struct wpk_graph_value zero = wpk_expansion_input(e, Y_ZERO);

    if (a.rank > 1 || wpk_extents_product(a.extent, a.rank) != 1 || y.rank > 1 ||
        wpk_extents_product(y.extent, y.rank) != 1 || b.rank > 1 || zero.rank > 1 ||
        wpk_extents_product(zero.extent, zero.rank) != 1 || !wpk_quantize_is_narrow(zero.dtype)) {
        return wpk_expansion_refuse(e, "its scales are not one number, or of its weights one for "
                                       "each column");
    }
    int factor = wpk_expansion_binary(e, "Mul", a.value, b.value, -1);
    factor = wpk_expansion_binary(e, "Div", factor, y.value, -1);
    if (rank > 0 && b.rank == 1 && b.extent[0] > 1) {
        factor = spread(e, factor, &b, 1, rank);
    }
    int real = wpk_expansion_cast(e, sums, WPK_F32, -1);
    real = wpk_expansion_binary(e, "Mul", real, factor, -1);
    real = wpk_compose_unary(&e->to, "Round", real);
    int point = e->node->inputs[Y_ZERO], output = wpk_expansion_output(e, 0);
    int above = zero.dtype == WPK_I8 ? wpk_quantize_shift_zero(e, point, SIGN) : -1;
    int shift = wpk_expansion_cast(e, above >= 0 ? above : point, WPK_F32, -1);
    real = wpk_expansion_binary(e, "Add", real, shift, -1);
    if (above >= 0) {
        (void)wpk_quantize_signed(e, wpk_expansion_cast(e, real, WPK_U8, -1), output);
    } else {
        (void)wpk_expansion_cast(e, real, zero.dtype, output);
    }
    return WPK_OK;
}

wpk_err wpk_expand_qlinear_matmul(struct wpk_expansion *e)
{
    int sums = 0;

    wpk_err err = product(e, false, (int[]){0, 3, 2, 5}, -1, &sums);
    return err == WPK_OK ? requantize(e, sums, 0) : err;
}

wpk_err wpk_expand_qlinear_conv(struct wpk_expansion *e)
{
    const struct wpk_graph_value bias = wpk_expansion_input(e, 8);
    const struct wpk_graph_value w = wpk_expansion_input(e, 3);
    int sums = 0;

    wpk_err err = product(e, true, (int[]){0, 3, 2, 5}, -1, &sums);
    if (err == WPK_OK && bias.rank >= 0) {
        const struct wpk_parameter p = wpk_parameter_of(e, 8);
        if (bias.dtype != WPK_I32 || bias.rank != 1) {
            return wpk_expansion_refuse(e, "its bias is no list of i32");
        }
        int spreads = spread(e, p.value, &p, 1, w.rank);
        sums = wpk_expansion_binary(e, "Add", sums, spreads, -1);
    }
    return err == WPK_OK ? requantize(e, sums, w.rank) : err;
}

/* ---- com.microsoft */

/* Append f32(sums) * (a_scale * b_scale) + bias. */
static wpk_err scale_sums(struct wpk_expansion *e, int sums, int a_scale, int b_scale, int bias)
{
    int output = wpk_expansion_output(e, 0);
    int factor = wpk_expansion_binary(e, "Mul", a_scale, b_scale, -1);
    int real = wpk_expansion_cast(e, sums, WPK_F32, -1);

    real = wpk_expansion_binary(e, "Mul", real, factor, bias >= 0 ? -1 : output);
    if (bias >= 0) {
        (void)wpk_expansion_binary(e, "Add", real, bias, output);
    }
    return WPK_OK;
}

wpk_err wpk_expand_matmul_integer_to_float(struct wpk_expansion *e)
{
    int sums = 0;

    wpk_err err = product(e, false, (int[]){0, 1, 4, 5}, -1, &sums);
    return err == WPK_OK ? scale_sums(e, sums, e->node->inputs[2], e->node->inputs[3],
                                      wpk_parameter_of(e, 6).value)
                         : err;
}

wpk_err wpk_expand_dynamic_quantize_matmul(struct wpk_expansion *e)
{
    const struct wpk_graph_value a = wpk_expansion_input(e, 0), b = wpk_expansion_input(e, 1);
    struct operand weights;
    struct wpk_dynamic made;
    wpk_err err = WPK_OK;

    if (a.dtype != WPK_F32 || !wpk_quantize_is_narrow(b.dtype)) {
        return wpk_expansion_refuse(e, "its operands have other types than f32, and u8 or i8");
    }
    wpk_quantize_dynamically(e, e->node->inputs[0], &a, &(struct wpk_dynamic){-1, -1, -1}, &made);
    err = read_operand(e, 1, 3, b.rank - 1, &weights);
    if (err != WPK_OK) {
        return err;
    }
    struct operand quantized = operand_of(e, &made, &a);
    int sums = multiply(e, &quantized, &weights, -1);
    return scale_sums(e, sums, made.scale, e->node->inputs[2], wpk_parameter_of(e, 4).value);
}

/* ---- products of dequantized tensors */

/* A tensor that a DequantizeLinear made: values. */
struct dequantized {
    int q, scale, zero; /* zero -1: none */
    int axis;           /* of scales and zero points; -1: there is one of each */
};

/* Find how a value was dequantized. False: it was not, or by blocks. */
static bool find_dequantized(const struct wpk_graph *graph, int value, struct dequantized *out)
{
    int writer = graph->values[value].writer;

    if (writer < 0 || strcmp(graph->nodes[writer].domain, WPK_EQUATION_DOMAIN) != 0 ||
        strcmp(graph->nodes[writer].op, "DequantizeLinear") != 0) {
        return false;
    }
    const struct wpk_graph_node *node = &graph->nodes[writer];
    const struct wpk_graph_value *scale = &graph->values[node->inputs[1]];
    *out = (struct dequantized){.q = node->inputs[0],
                                .scale = node->inputs[1],
                                .zero = node->input_count > 2 ? node->inputs[2] : -1,
                                .axis = (int)wpk_graph_int(node, "axis", -1)};
    return scale->rank <= 1 && wpk_quantize_is_narrow(graph->values[out->q].dtype);
}

/* Describe an operand that was dequantized.   errors  as make_operand */
static wpk_err dequantized_operand(struct wpk_expansion *e, const struct dequantized *d, int axis,
                                   struct operand *o)
{
    const struct wpk_graph_value like = e->graph->values[d->q];
    struct wpk_graph_value zero_like = {.rank = -1};
    struct wpk_parameter zero = {.value = -1};

    if (d->zero >= 0) {
        zero_like = e->graph->values[d->zero];
        zero = wpk_parameter_like(d->zero, &zero_like);
    }
    return make_operand(e, d->q, &like, &zero, &zero_like, axis, o);
}

/* True for a Gemm that is a product and a bias, and for the others. */
static bool is_plain(const struct wpk_expansion *e)
{
    return strcmp(e->node->op, "Gemm") != 0 ||
           (wpk_graph_real(e->node, "alpha", 1) == 1 && wpk_graph_real(e->node, "beta", 1) == 1 &&
            wpk_graph_int(e->node, "transA", 0) == 0 && wpk_graph_int(e->node, "transB", 0) == 0);
}

wpk_err wpk_expand_dequantized(struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    bool is_conv = strcmp(node->op, "Conv") == 0;
    struct wpk_expansion e = {
        .to = {.graph = graph, .name = node->name}, .graph = graph, .node = node};
    struct dequantized x, w;
    struct operand a, b;

    if (node->domain[0] != '\0' ||
        (!is_conv && strcmp(node->op, "MatMul") != 0 && strcmp(node->op, "Gemm") != 0) ||
        node->input_count < 2 || !is_plain(&e) || node->inputs[0] < 0 || node->inputs[1] < 0 ||
        !find_dequantized(graph, node->inputs[0], &x) ||
        !find_dequantized(graph, node->inputs[1], &w) || x.axis >= 0 ||
        wpk_graph_elements(&graph->values[x.scale]) != 1) {
        return WPK_ENOENT;
    }
    const int rank = graph->values[w.q].rank;
    const int columns = is_conv ? 0 : rank - 1;
    if (rank < 2 || graph->values[x.q].rank < 2 || (w.axis >= 0 && w.axis != columns)) {
        return WPK_ENOENT;
    }
    wpk_err err = dequantized_operand(&e, &x, 0, &a);
    err = err == WPK_OK ? dequantized_operand(&e, &w, columns, &b) : err;
    if (err == WPK_OK) {
        const struct wpk_parameter scale = wpk_parameter_like(w.scale, &graph->values[w.scale]);
        int bias = node->input_count > 2 ? node->inputs[2] : -1;
        int output = node->outputs[0];
        int sums = is_conv ? convolve(&e, &a, &b, -1) : multiply(&e, &a, &b, -1);
        int factor = wpk_expansion_binary(&e, "Mul", x.scale, w.scale, -1);
        factor = is_conv && w.axis >= 0 ? spread(&e, factor, &scale, 1, rank) : factor;
        graph->values[output].writer = -1;
        int real = wpk_expansion_binary(&e, "Mul", wpk_expansion_cast(&e, sums, WPK_F32, -1),
                                        factor, bias >= 0 ? -1 : output);
        if (bias >= 0) {
            const struct wpk_parameter addend = wpk_parameter_like(bias, &graph->values[bias]);
            bias = is_conv ? spread(&e, bias, &addend, 1, rank) : bias;
            (void)wpk_expansion_binary(&e, "Add", real, bias, output);
        }
        err = e.to.err;
    }
    wpk_buf_fini(&e.text);
    return err == WPK_EUNSUPPORTED ? WPK_ENOENT : err;
}

wpk_err wpk_quantized_read(struct wpk_expansion *e, int value, const struct wpk_graph_value *like,
                           int zero, const struct wpk_graph_value *zero_like,
                           struct wpk_quantized_weights *out)
{
    const struct wpk_parameter points = wpk_parameter_like(zero, zero_like);
    struct operand o;

    wpk_err err = make_operand(e, value, like, &points, zero_like, 1, &o);
    out->value = o.value;
    out->like = o.like;
    out->zero = o.zero.value;
    out->zero_rank = o.zero.rank;
    return err;
}

int wpk_quantized_product(struct wpk_expansion *e, int x, int64_t rows,
                          const struct wpk_quantized_weights *weights)
{
    const int64_t k = weights->like.extent[0], n = weights->like.extent[1];
    const struct wpk_graph_value like = {.dtype = WPK_F32, .rank = 2, .extent = {rows, k}};
    struct operand b = {
        .value = weights->value,
        .like = weights->like,
        .zero = {.value = weights->zero, .rank = weights->zero_rank, .extent = {n}}};
    struct wpk_dynamic made;

    wpk_quantize_dynamically(e, x, &like, &(struct wpk_dynamic){-1, -1, -1}, &made);
    struct operand a = operand_of(e, &made, &like);
    int sums = multiply(e, &a, &b, -1);
    int factor = wpk_expansion_binary(e, "Mul", made.scale, weights->scale, -1);
    return wpk_expansion_binary(e, "Mul", wpk_expansion_cast(e, sums, WPK_F32, -1), factor, -1);
}
