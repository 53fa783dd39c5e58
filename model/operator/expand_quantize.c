/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   source  ONNX operators QuantizeLinear 21, DequantizeLinear 21, DynamicQuantizeLinear 11 */
#include "model/operator/expand_quantize.h"

#include "model/operator/operator.h"

#include <string.h>

struct wpk_parameter wpk_parameter_like(int value, const struct wpk_graph_value *like)
{
    struct wpk_parameter p = {.value = value, .rank = like->rank};

    memcpy(p.extent, like->extent, sizeof(p.extent));
    return p;
}

struct wpk_parameter wpk_parameter_of(const struct wpk_expansion *e, int input)
{
    const struct wpk_graph_value like = wpk_expansion_input(e, input);

    return like.rank >= 0 ? wpk_parameter_like(e->node->inputs[input], &like)
                          : (struct wpk_parameter){.value = -1};
}

bool wpk_parameter_fits(const struct wpk_parameter *p, const struct wpk_graph_value *x, int axis,
                        int64_t block)
{
    bool blocked = p->rank == x->rank && block > 0;

    for (int d = 0; blocked && d < x->rank; d++) {
        int64_t wanted = d == axis ? (x->extent[d] + block - 1) / block : x->extent[d];
        blocked = p->extent[d] == wanted;
    }
    bool is_one = wpk_extents_product(p->extent, p->rank) == 1 && p->rank <= 1;
    return is_one || blocked || (p->rank == 1 && axis < x->rank && p->extent[0] == x->extent[axis]);
}

void wpk_parameter_index(struct wpk_expansion *e, const struct wpk_parameter *p, int axis,
                         int64_t block)
{
    wpk_buf_append_text(&e->text, "[");
    for (int d = 0; d < p->rank; d++) {
        wpk_buf_append_text(&e->text, d > 0 ? "," : "");
        if (p->rank == 1 && p->extent[0] == 1) {
            wpk_buf_append_text(&e->text, "0");
        } else if (p->rank == 1 && block == 0) {
            wpk_buf_printf(&e->text, "d%d", axis);
        } else if (d == axis) {
            wpk_buf_printf(&e->text, "d%d/%lld", d, (long long)block);
        } else {
            wpk_buf_printf(&e->text, "d%d", d);
        }
    }
    wpk_buf_append_text(&e->text, "]");
}

bool wpk_quantize_is_narrow(enum wpk_dtype dtype)
{
    return dtype == WPK_U8 || dtype == WPK_I8;
}

/* ---- signed and unsigned */

#define SHIFT_OP "Shift"

/* Append the node whose elements are those of x plus `by`. */
static int add_number(struct wpk_expansion *e, int x, int by, int output)
{
    enum wpk_dtype dtype = by > 0 ? WPK_U8 : WPK_I8;
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("by", by), wpk_compose_integer("dtype", wpk_graph_element_of(dtype))};

    return wpk_expansion_node(e, WPK_SUM_DOMAIN, SHIFT_OP, &x, 1, attributes, 2, output);
}

int wpk_quantize_signed(struct wpk_expansion *e, int x, int output)
{
    return add_number(e, x, -WPK_QUANTIZE_SIGN, output);
}

/* -1: the value was made otherwise than by wpk_quantize_signed(). */
static int find_unsigned(const struct wpk_graph *graph, int value)
{
    int writer = graph->values[value].writer;
    bool is_shift = writer >= 0 && strcmp(graph->nodes[writer].domain, WPK_SUM_DOMAIN) == 0 &&
                    strcmp(graph->nodes[writer].op, SHIFT_OP) == 0;

    return is_shift && wpk_graph_int(&graph->nodes[writer], "by", 0) == -WPK_QUANTIZE_SIGN
               ? graph->nodes[writer].inputs[0]
               : -1;
}

int wpk_quantize_shift(struct wpk_expansion *e, int x, int by)
{
    int found = by > 0 ? find_unsigned(e->graph, x) : -1;

    return found >= 0 ? found : add_number(e, x, by, -1);
}

int wpk_quantize_shift_zero(struct wpk_expansion *e, int zero, int by)
{
    const struct wpk_graph_value like =
        zero >= 0 ? e->graph->values[zero] : (struct wpk_graph_value){.rank = 0};
    uint8_t *data = WPK_ARENA_DEMAND(&e->graph->arena, uint8_t, 1);

    if (zero >= 0 && (like.data == NULL || wpk_graph_elements(&like) != 1)) {
        return -1;
    }
    *data = (uint8_t)(by + (zero >= 0 ? (int)wpk_graph_element(&like, 0) : 0));
    return wpk_compose_constant(&e->to, WPK_U8, 0, NULL, data);
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

/* Append the nodes that quantize x with these parameters; the zero point may be left out. */
static int quantize(struct wpk_expansion *e, int x, const struct wpk_graph_value *like,
                    const struct wpk_parameter *scale, const struct wpk_parameter *zero, int axis,
                    int64_t block, enum wpk_dtype dtype, int output)
{
    const char *names = wpk_axis_names(like->rank);

    /* Append the node x / scale: a constant scale goes into the constants of what computes x. */
    wpk_buf_printf(&e->text, "Y[%s] = X[%s] / X1", names, names);
    wpk_parameter_index(e, scale, axis, block);
    int quotient = wpk_expansion_equation(e, (int[]){x, scale->value}, 2, WPK_F32, like->rank,
                                          like->extent, -1);
    wpk_buf_printf(&e->text, "Y[%s] = %s(round(X[%s])", names, wpk_dtype_name(dtype), names);
    if (zero->value >= 0) {
        wpk_buf_append_text(&e->text, " + f32(X1");
        wpk_parameter_index(e, zero, axis, block);
        wpk_buf_append_text(&e->text, ")");
    }
    wpk_buf_append_text(&e->text, ")");
    return wpk_expansion_equation(e, (int[]){quotient, zero->value}, zero->value >= 0 ? 2 : 1,
                                  dtype, like->rank, like->extent, output);
}

wpk_err wpk_expand_quantize(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value z = wpk_expansion_input(e, 2);
    const struct wpk_parameter scale = wpk_parameter_of(e, 1), zero = wpk_parameter_of(e, 2);
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
    if (x.dtype != WPK_F32 || (!wpk_quantize_is_narrow(dtype) && dtype != WPK_I16)) {
        return wpk_expansion_refuse(e, "it quantizes other types than f32 to u8, i8 or i16");
    }
    if (!wpk_parameter_fits(&scale, &x, axis, block) ||
        (zero.value >= 0 && !wpk_parameter_fits(&zero, &x, axis, block))) {
        return wpk_expansion_refuse(e, "its scale or zero point has another shape than its input");
    }
    int above = dtype == WPK_I8 ? wpk_quantize_shift_zero(e, zero.value, WPK_QUANTIZE_SIGN) : -1;
    if (above >= 0) {
        const struct wpk_parameter shifted = {.value = above};
        int made = quantize(e, e->node->inputs[0], &x, &scale, &shifted, axis, block, WPK_U8, -1);
        (void)wpk_quantize_signed(e, made, wpk_expansion_output(e, 0));
    } else {
        (void)quantize(e, e->node->inputs[0], &x, &scale, &zero, axis, block, dtype,
                       wpk_expansion_output(e, 0));
    }
    return WPK_OK;
}

wpk_err wpk_expand_dequantize(struct wpk_expansion *e)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, 0);
    const struct wpk_graph_value s = wpk_expansion_input(e, 1);
    const struct wpk_parameter scale = wpk_parameter_of(e, 1);
    struct wpk_parameter zero = wpk_parameter_of(e, 2);
    int axis = 0, source = e->node->inputs[0];
    int64_t block = 0;

    wpk_err err = read_axis(e, x.rank, &axis, &block);
    if (err != WPK_OK) {
        return err;
    }
    if (s.dtype != WPK_F32 ||
        (!wpk_quantize_is_narrow(x.dtype) && x.dtype != WPK_I16 && x.dtype != WPK_I32)) {
        return wpk_expansion_refuse(e, "it dequantizes other types than u8, i8, i16 or i32 to f32");
    }
    if (!wpk_parameter_fits(&scale, &x, axis, block) ||
        (zero.value >= 0 && !wpk_parameter_fits(&zero, &x, axis, block))) {
        return wpk_expansion_refuse(e, "its scale or zero point has another shape than its input");
    }
    int above = find_unsigned(e->graph, source);
    int zero_above = above >= 0 ? wpk_quantize_shift_zero(e, zero.value, WPK_QUANTIZE_SIGN) : -1;
    if (zero_above >= 0) {
        source = above;
        zero = (struct wpk_parameter){.value = zero_above};
    }
    wpk_buf_printf(&e->text, zero.value >= 0 ? "Y[%s] = f32(i32(X[%s]" : "Y[%s] = f32(X[%s]",
                   wpk_axis_names(x.rank), wpk_axis_names(x.rank));
    if (zero.value >= 0) {
        wpk_buf_append_text(&e->text, ") - i32(X2");
        wpk_parameter_index(e, &zero, axis, block);
        wpk_buf_append_text(&e->text, ")");
    }
    wpk_buf_append_text(&e->text, ") * X1");
    wpk_parameter_index(e, &scale, axis, block);
    e->axis = scale.rank == 1 && scale.extent[0] > 1 ? axis : -1;
    (void)wpk_expansion_equation(e, (int[]){source, scale.value, zero.value},
                                 zero.value >= 0 ? 3 : 2, WPK_F32, x.rank, x.extent,
                                 wpk_expansion_output(e, 0));
    return WPK_OK;
}

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

void wpk_quantize_dynamically(struct wpk_expansion *e, int x, const struct wpk_graph_value *like,
                              const struct wpk_dynamic *outputs, struct wpk_dynamic *out)
{
    struct wpk_parameter scale = {.rank = 0}, zero = {.rank = 0};

    wpk_buf_append_text(&e->text, "Y[] = select(R[] == 0, 1, R[]) where R[] = f32(f64(max(0, ");
    put_whole(e, "max", like);
    wpk_buf_append_text(&e->text, ") - L[]) / 255); L[] = min(0, ");
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
    const struct wpk_dynamic outputs = {wpk_expansion_output(e, 0), wpk_expansion_output(e, 1),
                                        wpk_expansion_output(e, 2)};
    struct wpk_dynamic made;

    if (x.dtype != WPK_F32) {
        return wpk_expansion_refuse(e, "it quantizes another type than f32");
    }
    wpk_quantize_dynamically(e, e->node->inputs[0], &x, &outputs, &made);
    return WPK_OK;
}
