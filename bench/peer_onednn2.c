/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN 2.6 as a peer: the last series with Winograd's algorithm on x64. It takes part where it
 * has that, with layouts `any`; what it does directly, newer ones do as well (peer_onednn.c).
 *
 * Its API is not the one of oneDNN 3: descriptors of memory are structs, and an operator is
 * described before its primitive is. */
#include "bench/peer.h"

#include <dnnl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 4
#define MEMORIES_MAX (2 * ARGS_MAX)

struct bench_peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ARGS_MAX]; /* source, destination, weights, bias */
    int arg_count;
    dnnl_memory_t memories[MEMORIES_MAX]; /* all that close has to destroy */
    int memory_count;
    dnnl_memory_t dst; /* row-major */
    size_t dst_bytes;
    char choice[BENCH_TEXT_MAX];
};

/* oneDNN reports by status only; the expression itself says best what failed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        if (status_ != dnnl_success) {                                                             \
            wpk_diag_set(diag, "oneDNN: status %d from %s", (int)status_, #call);                  \
            return status_ == dnnl_unimplemented ? WPK_EUNSUPPORTED : WPK_ESYSTEM;                 \
        }                                                                                          \
    } while (0)

void bench_peer_version(char *out, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(out, size, "oneDNN %d.%d.%d, Winograd", version->major, version->minor,
             version->patch);
}

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

static wpk_err new_memory(struct bench_peer *peer, const dnnl_memory_desc_t *desc,
                          dnnl_memory_t *out, struct wpk_diag *diag)
{
    WPK_ASSERT(peer->memory_count < MEMORIES_MAX);
    TRY(dnnl_memory_create(out, desc, peer->engine, DNNL_MEMORY_ALLOCATE));
    peer->memories[peer->memory_count++] = *out;
    void *data = NULL;
    TRY(dnnl_memory_get_data_handle(*out, &data));
    memset(data, 0, dnnl_memory_desc_get_size(desc));
    return WPK_OK;
}

static wpk_err reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                       struct wpk_diag *diag)
{
    const dnnl_memory_desc_t *from_desc = NULL;
    const dnnl_memory_desc_t *to_desc = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    TRY(dnnl_memory_get_memory_desc(from, &from_desc));
    TRY(dnnl_memory_get_memory_desc(to, &to_desc));
    TRY(dnnl_reorder_primitive_desc_create(&desc, from_desc, peer->engine, to_desc, peer->engine,
                                           NULL));
    dnnl_status_t status = dnnl_primitive_create(&primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    TRY(status);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    status = dnnl_primitive_execute(primitive, peer->stream, 2, args);
    if (status == dnnl_success) {
        status = dnnl_stream_wait(peer->stream);
    }
    dnnl_primitive_destroy(primitive);
    TRY(status);
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

static wpk_err describe(struct bench_peer *peer, const struct bench_op *op, struct wpk_diag *diag)
{
    if (op->kind == BENCH_CONV && op->groups == 1) {
        return describe_conv(peer, op, diag);
    }
    if (op->kind == BENCH_RELU) {
        return describe_relu(peer, op, diag);
    }
    wpk_diag_set(diag, "Winograd's algorithm is for convolutions");
    return WPK_EUNSUPPORTED;
}

/* Memory in the format that the primitive wants, filled from `values` unless NULL. */
static wpk_err add_argument(struct bench_peer *peer, int arg, const struct bench_shape *shape,
                            const float *values, struct wpk_diag *diag)
{
    dnnl_memory_desc_t plain_desc;
    dnnl_memory_t plain = NULL;
    dnnl_memory_t wanted = NULL;
    wpk_err err = describe_shape(shape, false, &plain_desc, diag);
    if (err == WPK_OK) {
        err = new_memory(peer, &plain_desc, &plain, diag);
    }
    if (err == WPK_OK) {
        err =
            new_memory(peer, dnnl_primitive_desc_query_md(peer->desc, dnnl_query_exec_arg_md, arg),
                       &wanted, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    peer->args[peer->arg_count++] = (dnnl_exec_arg_t){arg, wanted};
    if (values == NULL) {
        peer->dst = plain;
        peer->dst_bytes = dnnl_memory_desc_get_size(&plain_desc);
        return WPK_OK;
    }
    void *data = NULL;
    TRY(dnnl_memory_get_data_handle(plain, &data));
    memcpy(data, values, dnnl_memory_desc_get_size(&plain_desc));
    return reorder(peer, plain, wanted, diag);
}

static wpk_err open_into(struct bench_peer *peer, const struct bench_op *op,
                         const float *const *operands, struct wpk_diag *diag)
{
    static const int args[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS};
    TRY(dnnl_engine_create(&peer->engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&peer->stream, peer->engine, dnnl_stream_default_flags));
    wpk_err err = describe(peer, op, diag);
    if (err != WPK_OK) {
        return err;
    }
    const char *name = NULL;
    TRY(dnnl_primitive_desc_query(peer->desc, dnnl_query_impl_info_str, 0, (void *)&name));
    snprintf(peer->choice, sizeof(peer->choice), "%s", name);
    TRY(dnnl_primitive_create(&peer->primitive, peer->desc));
    for (int i = 0; err == WPK_OK && i < bench_op_operand_count(op); i++) {
        const struct bench_shape shape = bench_op_operand(op, i);
        err = add_argument(peer, args[i], &shape, operands[i], diag);
    }
    const struct bench_shape shape = bench_op_output(op);
    return err == WPK_OK ? add_argument(peer, DNNL_ARG_DST, &shape, NULL, diag) : err;
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    if (what->layouts == BENCH_LAYOUTS_FIXED) {
        wpk_diag_set(diag, "with layouts any only");
        return WPK_EUNSUPPORTED;
    }
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    const wpk_err err = open_into(peer, &what->op, operands, diag);
    if (err != WPK_OK) {
        bench_peer_close(peer);
        return err;
    }
    *out = peer;
    return WPK_OK;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    dnnl_status_t status =
        dnnl_primitive_execute(peer->primitive, peer->stream, peer->arg_count, peer->args);
    if (status == dnnl_success) {
        status = dnnl_stream_wait(peer->stream);
    }
    return status == dnnl_success ? WPK_OK : WPK_ESYSTEM;
}

/* The destination was added last. */
static dnnl_memory_t written(const struct bench_peer *peer)
{
    return peer->args[peer->arg_count - 1].memory;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    void *data = NULL;
    const wpk_err err = reorder(peer, written(peer), peer->dst, NULL);
    if (err != WPK_OK) {
        return err;
    }
    if (dnnl_memory_get_data_handle(peer->dst, &data) != dnnl_success) {
        return WPK_ESYSTEM;
    }
    memcpy(out, data, peer->dst_bytes);
    return WPK_OK;
}

static void touch_memory(dnnl_memory_t memory)
{
    const dnnl_memory_desc_t *desc = NULL;
    void *data = NULL;
    if (dnnl_memory_get_memory_desc(memory, &desc) == dnnl_success &&
        dnnl_memory_get_data_handle(memory, &data) == dnnl_success) {
        wpk_caches_read(data, dnnl_memory_desc_get_size(desc));
    }
}

void bench_peer_touch(struct bench_peer *peer)
{
    touch_memory(peer->args[0].memory);
    touch_memory(written(peer));
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    return peer->choice;
}

void bench_peer_close(struct bench_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    dnnl_primitive_destroy(peer->primitive);
    dnnl_primitive_desc_destroy(peer->desc);
    for (int i = 0; i < peer->memory_count; i++) {
        dnnl_memory_destroy(peer->memories[i]);
    }
    dnnl_stream_destroy(peer->stream);
    dnnl_engine_destroy(peer->engine);
    free(peer);
}
