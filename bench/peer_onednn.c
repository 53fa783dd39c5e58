/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN as a peer: inference primitives, with weights packed once into the format that the
 * primitive asks for.
 *
 * With layouts `any` the primitive also chooses the formats of source and destination. With `fixed`
 * they are row-major, and each call includes the reorders, as it would in a framework. oneDNN takes
 * its thread count from the process's CPU affinity, which the driver sets. */
#include "bench/peer_dnnl.h"

#include <string.h>

#define TRY BENCH_DNNL_TRY

const char bench_dnnl_suffix[] = "";

static wpk_err describe_shape(const struct bench_shape *shape, dnnl_format_tag_t tag,
                              dnnl_memory_desc_t *out, struct wpk_diag *diag)
{
    dnnl_dims_t dims = {0}; /* of oneDNN's own length, which its header declares for arguments */
    memcpy(dims, shape->extent, (size_t)shape->rank * sizeof(dims[0]));
    TRY(dnnl_memory_desc_create_with_tag(out, shape->rank, dims, dnnl_f32, tag));
    return WPK_OK;
}

static wpk_err row_major(const struct bench_shape *shape, dnnl_memory_desc_t *out,
                         struct wpk_diag *diag)
{
    static const dnnl_format_tag_t tags[] = {dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc,
                                             dnnl_abcd};
    return describe_shape(shape, tags[shape->rank], out, diag);
}

static wpk_err any_format(const struct bench_shape *shape, dnnl_memory_desc_t *out,
                          struct wpk_diag *diag)
{
    return describe_shape(shape, dnnl_format_tag_any, out, diag);
}

/* A row-major memory filled with an operand. Convolution weights get the group dimension that
 * oneDNN wants in front when there are groups. */
static wpk_err new_operand(struct bench_peer *peer, const struct bench_op *op, int operand,
                           const float *values, dnnl_memory_t *out, struct wpk_diag *diag)
{
    const struct bench_shape shape = bench_op_operand(op, operand);
    dnnl_memory_desc_t desc = NULL;
    wpk_err err = WPK_OK;
    if (op->kind == BENCH_CONV && operand == 1 && op->groups > 1) {
        const dnnl_dims_t dims = {op->groups, op->k / op->groups, op->c / op->groups, op->r, op->s};
        TRY(dnnl_memory_desc_create_with_tag(&desc, 5, dims, dnnl_f32, dnnl_abcde));
    } else {
        err = row_major(&shape, &desc, diag);
    }
    if (err == WPK_OK) {
        err = bench_dnnl_memory(peer, desc, values, out, diag);
        dnnl_memory_desc_destroy(desc);
    }
    return err;
}

static wpk_err make_attributes(const struct bench_op *op, dnnl_primitive_attr_t *out,
                               struct wpk_diag *diag)
{
    dnnl_post_ops_t post = NULL;
    TRY(dnnl_primitive_attr_create(out));
    TRY(dnnl_post_ops_create(&post));
    if (op->relu) {
        TRY(dnnl_post_ops_append_eltwise(post, dnnl_eltwise_relu, 0, 0));
    }
    const dnnl_status_t status = dnnl_primitive_attr_set_post_ops(*out, post);
    dnnl_post_ops_destroy(post);
    TRY(status);
    return WPK_OK;
}

static wpk_err describe_conv(struct bench_peer *peer, const struct bench_op *op,
                             const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
                             struct wpk_diag *diag)
{
    const dnnl_dims_t grouped = {op->groups, op->k / op->groups, op->c / op->groups, op->r, op->s};
    const dnnl_dims_t plain = {op->k, op->c, op->r, op->s};
    const bool groups = op->groups > 1;
    dnnl_memory_desc_t weights = NULL;
    dnnl_memory_desc_t bias = NULL;
    dnnl_primitive_attr_t attr = NULL;
    TRY(dnnl_memory_desc_create_with_tag(&weights, groups ? 5 : 4, groups ? grouped : plain,
                                         dnnl_f32, dnnl_format_tag_any));
    TRY(dnnl_memory_desc_create_with_tag(&bias, 1, (dnnl_dims_t){op->k}, dnnl_f32, dnnl_a));
    const wpk_err err = make_attributes(op, &attr, diag);
    if (err != WPK_OK) {
        return err;
    }
    const dnnl_dims_t strides = {op->stride[0], op->stride[1]};
    const dnnl_dims_t dilates = {0};
    const dnnl_dims_t before = {op->padding[0], op->padding[1]};
    const dnnl_dims_t after = {op->padding[2], op->padding[3]};
    const dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &peer->desc, peer->engine, dnnl_forward_inference, dnnl_convolution_direct, src, weights,
        op->bias ? bias : NULL, dst, strides, dilates, before, after, attr);
    dnnl_primitive_attr_destroy(attr);
    dnnl_memory_desc_destroy(weights);
    dnnl_memory_desc_destroy(bias);
    TRY(status);
    return WPK_OK;
}

static wpk_err describe_matmul(struct bench_peer *peer, const struct bench_op *op,
                               const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
                               struct wpk_diag *diag)
{
    const struct bench_shape shape = bench_op_operand(op, 1);
    dnnl_memory_desc_t weights = NULL;
    const wpk_err err = any_format(&shape, &weights, diag);
    if (err != WPK_OK) {
        return err;
    }
    const dnnl_status_t status =
        dnnl_matmul_primitive_desc_create(&peer->desc, peer->engine, src, weights, NULL, dst, NULL);
    dnnl_memory_desc_destroy(weights);
    TRY(status);
    return WPK_OK;
}

static wpk_err describe(struct bench_peer *peer, const struct bench_op *op,
                        const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst,
                        struct wpk_diag *diag)
{
    switch (op->kind) {
    case BENCH_CONV:
        return describe_conv(peer, op, src, dst, diag);
    case BENCH_MATMUL:
        return describe_matmul(peer, op, src, dst, diag);
    case BENCH_SOFTMAX:
        TRY(dnnl_softmax_forward_primitive_desc_create(&peer->desc, peer->engine,
                                                       dnnl_forward_inference,
                                                       dnnl_softmax_accurate, src, dst, 1, NULL));
        return WPK_OK;
    case BENCH_LAYERNORM:
        TRY(dnnl_layer_normalization_forward_primitive_desc_create(
            &peer->desc, peer->engine, dnnl_forward_inference, src, dst, NULL, (float)op->epsilon,
            (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift, NULL));
        return WPK_OK;
    case BENCH_ATTENTION:
        return wpk_fail(diag, WPK_EUNSUPPORTED, "no primitive");
    case BENCH_RELU:
        TRY(dnnl_eltwise_forward_primitive_desc_create(&peer->desc, peer->engine,
                                                       dnnl_forward_inference, dnnl_eltwise_relu,
                                                       src, dst, 0, 0, NULL));
        return WPK_OK;
    }
    return WPK_EUNSUPPORTED;
}

/* Which formats the primitive is asked for. Normalisations and eltwise take what they are given:
 * row-major is then what `any` means as well. */
wpk_err bench_dnnl_describe(struct bench_peer *peer, const struct bench_case *what,
                            struct wpk_diag *diag)
{
    const struct bench_op *op = &what->op;
    const struct bench_shape src_shape = bench_op_operand(op, 0);
    const struct bench_shape dst_shape = bench_op_output(op);
    const bool chooses = op->kind == BENCH_CONV || op->kind == BENCH_MATMUL;
    dnnl_memory_desc_t src = NULL;
    dnnl_memory_desc_t dst = NULL;
    wpk_err err = chooses ? any_format(&src_shape, &src, diag) : row_major(&src_shape, &src, diag);
    if (err == WPK_OK) {
        err = chooses ? any_format(&dst_shape, &dst, diag) : row_major(&dst_shape, &dst, diag);
    }
    if (err == WPK_OK) {
        err = describe(peer, op, src, dst, diag);
    }
    dnnl_memory_desc_destroy(src);
    dnnl_memory_desc_destroy(dst);
    return err;
}

/* Constants are brought into the primitive's format here, before any timing. */
static wpk_err add_constants(struct bench_peer *peer, const struct bench_op *op,
                             const float *const *operands, struct bench_dnnl_step *step,
                             struct wpk_diag *diag)
{
    const bool norm = op->kind == BENCH_LAYERNORM;
    for (int i = 1; i < bench_op_operand_count(op); i++) {
        const int arg = i == 1 ? (norm ? DNNL_ARG_SCALE : DNNL_ARG_WEIGHTS)
                               : (norm ? DNNL_ARG_SHIFT : DNNL_ARG_BIAS);
        dnnl_memory_t plain = NULL;
        dnnl_memory_t packed = NULL;
        wpk_err err = new_operand(peer, op, i, operands[i], &plain, diag);
        if (err == WPK_OK) {
            err = bench_dnnl_in_format(peer, plain, arg, &packed, diag);
        }
        if (err == WPK_OK && packed != plain) {
            err = bench_dnnl_reorder(peer, plain, packed, diag);
        }
        if (err != WPK_OK) {
            return err;
        }
        bench_dnnl_add_arg(step, arg, packed);
    }
    return WPK_OK;
}

wpk_err bench_dnnl_build(struct bench_peer *peer, const struct bench_case *what,
                         const float *const *operands, struct wpk_diag *diag)
{
    const struct bench_op *op = &what->op;
    const struct bench_shape dst_shape = bench_op_output(op);
    dnnl_memory_desc_t dst_desc = NULL;
    wpk_err err = row_major(&dst_shape, &dst_desc, diag);
    if (err == WPK_OK) {
        err = bench_dnnl_memory(peer, dst_desc, NULL, &peer->dst, diag);
        peer->dst_bytes = dnnl_memory_desc_get_size(dst_desc);
        dnnl_memory_desc_destroy(dst_desc);
    }
    dnnl_memory_t src = NULL; /* row-major */
    dnnl_memory_t src_chosen = NULL;
    if (err == WPK_OK) {
        err = new_operand(peer, op, 0, operands[0], &src, diag);
    }
    if (err == WPK_OK) {
        err = bench_dnnl_in_format(peer, src, DNNL_ARG_SRC, &src_chosen, diag);
    }
    if (err == WPK_OK) {
        err = bench_dnnl_in_format(peer, peer->dst, DNNL_ARG_DST, &peer->dst_chosen, diag);
    }
    if (err == WPK_OK && src_chosen != src) {
        err = what->layouts == BENCH_LAYOUTS_FIXED
                  ? bench_dnnl_make_reorder(peer, src, src_chosen, &peer->steps[peer->step_count++],
                                            diag)
                  : bench_dnnl_reorder(peer, src, src_chosen, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    struct bench_dnnl_step *main_step = &peer->steps[peer->step_count++];
    TRY(dnnl_primitive_create(&main_step->primitive, peer->desc));
    bench_dnnl_add_arg(main_step, DNNL_ARG_SRC, src_chosen);
    bench_dnnl_add_arg(main_step, DNNL_ARG_DST, peer->dst_chosen);
    err = add_constants(peer, op, operands, main_step, diag);
    if (err == WPK_OK && peer->dst_chosen != peer->dst && what->layouts == BENCH_LAYOUTS_FIXED) {
        err = bench_dnnl_make_reorder(peer, peer->dst_chosen, peer->dst,
                                      &peer->steps[peer->step_count++], diag);
        peer->dst_chosen = peer->dst;
    }
    return err;
}
