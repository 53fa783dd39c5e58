/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 2.6 as a peer: the last series with Winograd's algorithm on x64. It takes part where it
 * has that algorithm, with layouts `any`; newer series are as good at direct ones (peer_onednn.c).
 *
 * The API of oneDNN 2 has structs as memory descriptors, and describes an operator before its
 * primitive. */
#include "bench/peer_dnnl.h"

#include <string.h>

#define TRY BENCH_DNNL_TRY

const char bench_dnnl_suffix[] = ", Winograd";

/* Row-major, or whatever the primitive likes. */
static wpk_err describe_shape(const struct bench_shape *shape, bool any, dnnl_memory_desc_t *out,
                              struct wpk_diag *diag)
{
    static const dnnl_format_tag_t tags[] = {dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc,
                                             dnnl_abcd};
    dnnl_dims_t dims = {0};
    memcpy(dims, shape->extent, (size_t)shape->rank * sizeof(dims[0]));
    TRY(dnnl_memory_desc_init_by_tag(out, shape->rank, dims, dnnl_f32,
                                     any ? dnnl_format_tag_any : tags[shape->rank]));
    return WPK_OK;
}

static wpk_err describe_conv(struct bench_peer *peer, const struct bench_op *op,
                             struct wpk_diag *diag)
{
    const struct bench_shape shapes[] = {
        bench_op_operand(op, 0), bench_op_operand(op, 1), {1, {op->k}}, bench_op_output(op)};
    dnnl_memory_desc_t descs[4];
    for (int i = 0; i < 4; i++) {
        const wpk_err err = describe_shape(&shapes[i], true, &descs[i], diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    const dnnl_dims_t strides = {op->stride[0], op->stride[1]};
    const dnnl_dims_t before = {op->padding[0], op->padding[1]};
    const dnnl_dims_t after = {op->padding[2], op->padding[3]};
    dnnl_convolution_desc_t conv;
    TRY(dnnl_convolution_forward_desc_init(&conv, dnnl_forward_inference, dnnl_convolution_winograd,
                                           &descs[0], &descs[1], op->bias ? &descs[2] : NULL,
                                           &descs[3], strides, before, after));
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    TRY(dnnl_primitive_attr_create(&attr));
    TRY(dnnl_post_ops_create(&post));
    if (op->relu) {
        TRY(dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0));
    }
    TRY(dnnl_primitive_attr_set_post_ops(attr, post));
    const dnnl_status_t status =
        dnnl_primitive_desc_create(&peer->desc, &conv, attr, peer->engine, NULL);
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    TRY(status);
    return WPK_OK;
}

static wpk_err describe_relu(struct bench_peer *peer, const struct bench_op *op,
                             struct wpk_diag *diag)
{
    const struct bench_shape shape = bench_op_operand(op, 0);
    dnnl_memory_desc_t desc;
    dnnl_eltwise_desc_t eltwise;
    const wpk_err err = describe_shape(&shape, false, &desc, diag);
    if (err != WPK_OK) {
        return err;
    }
    TRY(dnnl_eltwise_forward_desc_init(&eltwise, dnnl_forward_inference, dnnl_eltwise_relu, &desc,
                                       0, 0));
    TRY(dnnl_primitive_desc_create(&peer->desc, &eltwise, NULL, peer->engine, NULL));
    return WPK_OK;
}

wpk_err bench_dnnl_describe(struct bench_peer *peer, const struct bench_case *what,
                            struct wpk_diag *diag)
{
    const struct bench_op *op = &what->op;
    if (what->layouts == BENCH_LAYOUTS_FIXED) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "with layouts any only");
    }
    if (op->kind == BENCH_CONV && op->groups == 1) {
        return describe_conv(peer, op, diag);
    }
    if (op->kind == BENCH_RELU) {
        return describe_relu(peer, op, diag);
    }
    return wpk_fail(diag, WPK_EUNSUPPORTED, "Winograd's algorithm is for convolutions");
}

/* Row-major memory filled with `values` unless NULL, and the same in the primitive's format. */
static wpk_err add_argument(struct bench_peer *peer, int arg, const struct bench_shape *shape,
                            const float *values, dnnl_memory_t *plain, dnnl_memory_t *chosen,
                            struct wpk_diag *diag)
{
    dnnl_memory_desc_t desc;
    wpk_err err = describe_shape(shape, false, &desc, diag);
    if (err == WPK_OK) {
        err = bench_dnnl_memory(peer, &desc, values, plain, diag);
    }
    if (err == WPK_OK) {
        err = bench_dnnl_in_format(peer, *plain, arg, chosen, diag);
    }
    if (err == WPK_OK && values != NULL && *chosen != *plain) {
        err = bench_dnnl_reorder(peer, *plain, *chosen, diag);
    }
    if (err == WPK_OK) {
        bench_dnnl_add_arg(&peer->steps[0], arg, *chosen);
    }
    return err;
}

wpk_err bench_dnnl_build(struct bench_peer *peer, const struct bench_case *what,
                         const float *const *operands, struct wpk_diag *diag)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS};
    const struct bench_op *op = &what->op;
    wpk_err err = WPK_OK;
    TRY(dnnl_primitive_create(&peer->steps[peer->step_count++].primitive, peer->desc));
    for (int i = 0; err == WPK_OK && i < bench_op_operand_count(op); i++) {
        const struct bench_shape shape = bench_op_operand(op, i);
        dnnl_memory_t plain = NULL;
        dnnl_memory_t chosen = NULL;
        err = add_argument(peer, args[i], &shape, operands[i], &plain, &chosen, diag);
    }
    const struct bench_shape shape = bench_op_output(op);
    peer->dst_bytes = (size_t)bench_shape_elements(&shape) * sizeof(float);
    return err == WPK_OK
               ? add_argument(peer, DNNL_ARG_DST, &shape, NULL, &peer->dst, &peer->dst_chosen, diag)
               : err;
}
