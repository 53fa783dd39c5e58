/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits: products with weights of 4 bits. At accuracy level 4 x is quantized, too, by blocks,
 * and each block is a sum of integers, which is scaled where it is added to the others.
 *   source  ONNX Runtime docs/ContribOperators.md */
#include "model/operator/expand_quantize.h"

#include <stdio.h>
#include <string.h>

#define LEVEL_INTEGERS 4 /* attribute accuracy_level */

/* The constants of a node. */
struct weights {
    int64_t n, k, block, blocks;
    int scale;            /* value, f32 [n,blocks] */
    int zero;             /* value, u8 [n,blocks]; -1: 8 for all */
    const uint8_t *bytes; /* [n,blocks,block/2], two elements each, the low one first */
};

static uint8_t element(const uint8_t *packed, int64_t i)
{
    return (uint8_t)(packed[i / 2] >> (i % 2 == 0 ? 0 : 4) & 15);
}

/* Unpack constants of 4 bits, the low ones first, to u8.
 *   shape   packed [rows, bytes], of which `count` elements of each row are read
 *   owns  the graph */
static uint8_t *unpack(struct wpk_expansion *e, const uint8_t *packed, int64_t rows, int64_t count,
                       int64_t bytes)
{
    uint8_t *out = WPK_ARENA_DEMAND(&e->graph->arena, uint8_t, (size_t)(rows * count));

    for (int64_t i = 0; i < rows * count; i++) {
        out[i] = element(packed, i / count * bytes * 2 + i % count);
    }
    return out;
}

#define PACKED_ROWS_MAX 16 /* of x in f32: more are worth a copy of the weights in f32 */

/* Append the product with weights in f32 [k,n], made once. */
static int multiply_unpacked(struct wpk_expansion *e, const struct weights *w, int output)
{
    char from[32] = "8";
    const uint8_t *all = unpack(e, w->bytes, w->n, w->k, w->blocks * w->block / 2);
    int b = wpk_compose_constant(&e->to, WPK_U8, 2, (int64_t[]){w->n, w->k}, all);

    if (w->zero >= 0) {
        snprintf(from, sizeof(from), "i32(X2[d1,d0/%lld])", (long long)w->block);
    }
    wpk_buf_printf(&e->text, "Y[d0,d1] = f32(i32(X[d1,d0]) - %s) * X1[d1,d0/%lld]", from,
                   (long long)w->block);
    int real = wpk_expansion_equation(e, (int[]){b, w->scale, w->zero}, w->zero >= 0 ? 3 : 2,
                                      WPK_F32, 2, (int64_t[]){w->k, w->n}, -1);
    return wpk_expansion_binary(e, "MatMul", e->node->inputs[0], real, output);
}

/* The weights with the first half of a block in the low halves of its bytes, the second half in the
 * high ones: those that are multiplied together lie together, as in x. */
static int halve_blocks(struct wpk_expansion *e, const struct weights *w)
{
    int64_t half = w->block / 2, bytes = w->n * w->blocks * half;
    uint8_t *halved = WPK_ARENA_DEMAND(&e->graph->arena, uint8_t, (size_t)bytes);

    for (int64_t i = 0; i < bytes; i++) {
        int64_t at = i / half * w->block + i % half;
        halved[i] = (uint8_t)(element(w->bytes, at) | element(w->bytes, at + half) << 4);
    }
    return wpk_compose_constant(&e->to, WPK_U8, 3, (int64_t[]){w->n, w->blocks, half}, halved);
}

/* x and the weights, each block in halves. */
struct halves {
    int x;             /* value, f32 [rows,blocks,2,block/2] */
    int bytes;         /* value, u8 [n,blocks,block/2] */
    int scale, zero;   /* values [blocks,n] */
    int64_t extent[4]; /* of x */
};

static struct halves halve(struct wpk_expansion *e, const struct weights *w, int64_t rows)
{
    static const int64_t turned[] = {1, 0};
    struct halves h = {.extent = {rows, w->blocks, 2, w->block / 2}};

    if (w->k % w->block == 0) {
        h.x = wpk_compose_reshape(&e->to, e->node->inputs[0], "blocks", 4, h.extent, -1);
    } else { /* zeros fill the last block, whatever its weights are */
        int flat =
            wpk_compose_reshape(&e->to, e->node->inputs[0], "flat", 2, (int64_t[]){rows, w->k}, -1);
        wpk_buf_printf(&e->text, "Y[i,b,h,t] = X[i,%lld*b+%lld*h+t]", (long long)w->block,
                       (long long)w->block / 2);
        h.x = wpk_expansion_equation(e, &flat, 1, WPK_F32, 4, h.extent, -1);
    }
    h.bytes = halve_blocks(e, w);
    h.scale = wpk_compose_transpose(&e->to, w->scale, 2, turned, -1);
    h.zero = w->zero >= 0 ? wpk_compose_transpose(&e->to, w->zero, 2, turned, -1) : -1;
    return h;
}

/* Append the product in f32 [rows,n]: weights are unpacked in registers. */
static int multiply_reals(struct wpk_expansion *e, const struct weights *w, int64_t rows,
                          int output)
{
    const struct halves h = halve(e, w, rows);
    const char *from = h.zero >= 0 ? "i32(X3[b,j])" : "8";

    wpk_buf_printf(&e->text,
                   "Y[i,j] = sum(b:%lld) P[i,b,j] * X2[b,j] where P[i,b,j] = sum(t:%lld) "
                   "(X[i,b,0,t] * f32(i32(X1[j,b,t]) %% 16 - %s) + "
                   "X[i,b,1,t] * f32(i32(X1[j,b,t]) / 16 - %s))",
                   (long long)w->blocks, (long long)h.extent[3], from, from);
    return wpk_expansion_equation(e, (int[]){h.x, h.bytes, h.scale, h.zero}, h.zero >= 0 ? 4 : 3,
                                  WPK_F32, 2, (int64_t[]){rows, w->n}, output);
}

/* The same of integers: x is quantized by blocks, to i8. */
static int multiply_integers(struct wpk_expansion *e, const struct weights *w, int64_t rows,
                             int output)
{
    const struct halves h = halve(e, w, rows);

    wpk_buf_printf(&e->text,
                   "Y[i,b] = select(R[i,b] == 0, 1, R[i,b]) where "
                   "R[i,b] = (max(h:2,t:%lld) abs(X[i,b,h,t])) / 127",
                   (long long)h.extent[3]);
    int scale = wpk_expansion_equation(e, &h.x, 1, WPK_F32, 2, h.extent, -1);
    wpk_buf_append_text(&e->text, "Y[i,b,h,t] = i8(round(X[i,b,h,t] / X1[i,b]))");
    int narrow = wpk_expansion_equation(e, (int[]){h.x, scale}, 2, WPK_I8, 4, h.extent, -1);
    wpk_buf_printf(&e->text, "Y[i,b] = %ssum(h:2,t:%lld) i32(X[i,b,h,t])",
                   h.zero >= 0 ? "" : "8 * ", (long long)h.extent[3]);
    int sums = wpk_expansion_equation(e, &narrow, 1, WPK_I32, 2, h.extent, -1);
    wpk_buf_printf(&e->text,
                   "Y[i,j] = sum(b:%lld) f32(P[i,b,j] - %sX2[i,b]) * X3[i,b] * X4[b,j] where "
                   "P[i,b,j] = sum(t:%lld) (i32(X1[j,b,t]) %% 16 * i32(X[i,b,0,t]) + "
                   "i32(X1[j,b,t]) / 16 * i32(X[i,b,1,t]))",
                   (long long)w->blocks, h.zero >= 0 ? "i32(X5[b,j]) * " : "",
                   (long long)h.extent[3]);
    return wpk_expansion_equation(e, (int[]){narrow, h.bytes, sums, scale, h.scale, h.zero},
                                  h.zero >= 0 ? 6 : 5, WPK_F32, 2, (int64_t[]){rows, w->n}, output);
}

wpk_err wpk_expand_matmul_nbits(struct wpk_expansion *e)
{
    const struct wpk_graph_value a = wpk_expansion_input(e, 0), b = wpk_expansion_input(e, 1);
    const struct wpk_graph_value z = wpk_expansion_input(e, 3), bias = wpk_expansion_input(e, 5);
    const struct wpk_parameter scale = wpk_parameter_of(e, 2);
    struct weights w = {.n = wpk_graph_int(e->node, "N", 0), .k = wpk_graph_int(e->node, "K", 0)};

    w.block = wpk_graph_int(e->node, "block_size", 0);
    w.blocks = w.block > 0 ? (w.k + w.block - 1) / w.block : 0;
    if (wpk_graph_int(e->node, "bits", 4) != 4 || w.n < 1 || w.k < 1 || w.block < 16 ||
        w.block % 2 != 0 || b.data == NULL || b.dtype != WPK_U8 ||
        wpk_extents_product(b.extent, b.rank) != w.n * w.blocks * (w.block / 2) ||
        wpk_expansion_input(e, 4).rank >= 0 || a.dtype != WPK_F32 || a.rank < 1 ||
        a.extent[a.rank - 1] != w.k ||
        wpk_extents_product(scale.extent, scale.rank) != w.n * w.blocks ||
        (z.rank >= 0 && (z.data == NULL || z.dtype != WPK_U8 ||
                         wpk_extents_product(z.extent, z.rank) != w.n * ((w.blocks + 1) / 2)))) {
        return wpk_expansion_refuse(e, "it has other than constant weights of 4 bits, packed in "
                                       "blocks, with a scale for each block and packed zero "
                                       "points");
    }
    const int64_t by_block[] = {w.n, w.blocks};
    const uint8_t *zeros =
        z.rank >= 0 ? unpack(e, z.data, w.n, w.blocks, (w.blocks + 1) / 2) : NULL;
    w.bytes = b.data;
    w.scale = wpk_compose_reshape(&e->to, scale.value, "scale", 2, by_block, -1);
    w.zero = zeros != NULL ? wpk_compose_constant(&e->to, WPK_U8, 2, by_block, zeros) : -1;
    int64_t rows = wpk_extents_product(a.extent, a.rank - 1);
    int output = wpk_expansion_output(e, 0), product;
    int product_output = bias.rank >= 0 ? -1 : output;
    bool integers = wpk_graph_int(e->node, "accuracy_level", 0) == LEVEL_INTEGERS;
    if (integers || rows <= PACKED_ROWS_MAX) {
        int64_t extent[WPK_RANK_MAX];
        int flat = a.rank == 2 ? product_output : -1;
        memcpy(extent, a.extent, sizeof(extent));
        extent[a.rank - 1] = w.n;
        product =
            integers ? multiply_integers(e, &w, rows, flat) : multiply_reals(e, &w, rows, flat);
        product = a.rank == 2 ? product
                              : wpk_compose_reshape(&e->to, product, "rows", a.rank, extent,
                                                    product_output);
    } else {
        product = multiply_unpacked(e, &w, product_output);
    }
    if (bias.rank >= 0) {
        (void)wpk_expansion_binary(e, "Add", product, e->node->inputs[5], output);
    }
    return WPK_OK;
}
