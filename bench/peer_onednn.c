/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN as a peer: inference primitives, weights packed once into the format that it asks for.
 *
 * With layouts `any` source and destination are of the format it likes best as well; with `fixed`
 * they are row-major, and the reorders that this costs run within each call, as they would in a
 * framework. It finds its thread count in the process's CPU affinity, which the driver sets. */
#include "bench/peer.h"

#include <oneapi/dnnl/dnnl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Executed in this order; `fixed` adds reorders around the primitive. */
#define STEPS_MAX 3
#define ARGS_MAX 5
#define MEMORIES_MAX 10

struct step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ARGS_MAX];
    int arg_count;
};

struct bench_peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    struct step steps[STEPS_MAX];
    int step_count;
    dnnl_memory_t memories[MEMORIES_MAX]; /* all that close has to destroy */
    int memory_count;
    dnnl_memory_t src;        /* row-major */
    dnnl_memory_t dst;        /* row-major */
    dnnl_memory_t dst_chosen; /* where the primitive writes; may be dst */
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
    snprintf(out, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

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

static wpk_err new_memory(struct bench_peer *peer, const_dnnl_memory_desc_t desc,
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
        err = new_memory(peer, desc, out, diag);
        dnnl_memory_desc_destroy(desc);
    }
    if (err == WPK_OK) {
        void *data = NULL;
        TRY(dnnl_memory_get_data_handle(*out, &data));
        memcpy(data, values, (size_t)bench_shape_elements(&shape) * sizeof(float));
    }
    return err;
}

static wpk_err make_reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                            struct step *out, struct wpk_diag *diag)
{
    const_dnnl_memory_desc_t from_desc = NULL;
    const_dnnl_memory_desc_t to_desc = NULL;
    TRY(dnnl_memory_get_memory_desc(from, &from_desc));
    TRY(dnnl_memory_get_memory_desc(to, &to_desc));
    dnnl_primitive_desc_t desc = NULL;
    TRY(dnnl_reorder_primitive_desc_create(&desc, from_desc, peer->engine, to_desc, peer->engine,
                                           NULL));
    const dnnl_status_t status = dnnl_primitive_create(&out->primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    TRY(status);
    out->args[0] = (dnnl_exec_arg_t){DNNL_ARG_FROM, from};
    out->args[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, to};
    out->arg_count = 2;
    return WPK_OK;
}

static wpk_err reorder_now(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                           struct wpk_diag *diag)
{
    struct step step = {0};
    const wpk_err err = make_reorder(peer, from, to, &step, diag);
    if (err != WPK_OK) {
        return err;
    }
    dnnl_status_t status =
        dnnl_primitive_execute(step.primitive, peer->stream, step.arg_count, step.args);
    if (status == dnnl_success) {
        status = dnnl_stream_wait(peer->stream);
    }
    dnnl_primitive_destroy(step.primitive);
    TRY(status);
    return WPK_OK;
}

/* `memory` in the format `desc`: itself when it has it, else a new one. */
static wpk_err in_format(struct bench_peer *peer, dnnl_memory_t memory,
                         const_dnnl_memory_desc_t desc, dnnl_memory_t *out, struct wpk_diag *diag)
{
    const_dnnl_memory_desc_t own = NULL;
    TRY(dnnl_memory_get_memory_desc(memory, &own));
    if (dnnl_memory_desc_equal(own, desc)) {
        *out = memory;
        return WPK_OK;
    }
    return new_memory(peer, desc, out, diag);
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
static wpk_err describe_in_formats(struct bench_peer *peer, const struct bench_op *op,
                                   struct wpk_diag *diag)
{
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

static const_dnnl_memory_desc_t asked_format(const struct bench_peer *peer, int arg)
{
    return dnnl_primitive_desc_query_md(peer->desc, dnnl_query_exec_arg_md, arg);
}

/* Constants are brought into the primitive's format here, before any timing. */
static wpk_err add_constants(struct bench_peer *peer, const struct bench_op *op,
                             const float *const *operands, struct step *step, struct wpk_diag *diag)
{
    const bool norm = op->kind == BENCH_LAYERNORM;
    for (int i = 1; i < bench_op_operand_count(op); i++) {
        const int arg = i == 1 ? (norm ? DNNL_ARG_SCALE : DNNL_ARG_WEIGHTS)
                               : (norm ? DNNL_ARG_SHIFT : DNNL_ARG_BIAS);
        dnnl_memory_t plain = NULL;
        dnnl_memory_t packed = NULL;
        wpk_err err = new_operand(peer, op, i, operands[i], &plain, diag);
        if (err == WPK_OK) {
            err = in_format(peer, plain, asked_format(peer, arg), &packed, diag);
        }
        if (err == WPK_OK && packed != plain) {
            err = reorder_now(peer, plain, packed, diag);
        }
        if (err != WPK_OK) {
            return err;
        }
        step->args[step->arg_count++] = (dnnl_exec_arg_t){arg, packed};
    }
    return WPK_OK;
}

static wpk_err build_steps(struct bench_peer *peer, const struct bench_case *what,
                           const float *const *operands, struct wpk_diag *diag)
{
    const struct bench_op *op = &what->op;
    const struct bench_shape dst_shape = bench_op_output(op);
    dnnl_memory_desc_t dst_desc = NULL;
    wpk_err err = row_major(&dst_shape, &dst_desc, diag);
    if (err == WPK_OK) {
        err = new_memory(peer, dst_desc, &peer->dst, diag);
        peer->dst_bytes = dnnl_memory_desc_get_size(dst_desc);
        dnnl_memory_desc_destroy(dst_desc);
    }
    dnnl_memory_t src_chosen = NULL;
    if (err == WPK_OK) {
        err = new_operand(peer, op, 0, operands[0], &peer->src, diag);
    }
    if (err == WPK_OK) {
        err = in_format(peer, peer->src, asked_format(peer, DNNL_ARG_SRC), &src_chosen, diag);
    }
    if (err == WPK_OK) {
        err = in_format(peer, peer->dst, asked_format(peer, DNNL_ARG_DST), &peer->dst_chosen, diag);
    }
    if (err == WPK_OK && src_chosen != peer->src) {
        err =
            what->layouts == BENCH_LAYOUTS_FIXED
                ? make_reorder(peer, peer->src, src_chosen, &peer->steps[peer->step_count++], diag)
                : reorder_now(peer, peer->src, src_chosen, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    struct step *main_step = &peer->steps[peer->step_count++];
    TRY(dnnl_primitive_create(&main_step->primitive, peer->desc));
    main_step->args[main_step->arg_count++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, src_chosen};
    main_step->args[main_step->arg_count++] = (dnnl_exec_arg_t){DNNL_ARG_DST, peer->dst_chosen};
    err = add_constants(peer, op, operands, main_step, diag);
    if (err == WPK_OK && peer->dst_chosen != peer->dst && what->layouts == BENCH_LAYOUTS_FIXED) {
        err =
            make_reorder(peer, peer->dst_chosen, peer->dst, &peer->steps[peer->step_count++], diag);
        peer->dst_chosen = peer->dst;
    }
    return err;
}

static wpk_err open_into(struct bench_peer *peer, const struct bench_case *what,
                         const float *const *operands, struct wpk_diag *diag)
{
#ifdef BENCH_OPENCL_DRIVER
    /* Built on SYCL, oneDNN looks for a CPU among the machine's OpenCL drivers; the wheel's own is
     * not registered there. */
    setenv("OCL_ICD_FILENAMES", BENCH_OPENCL_DRIVER, 0);
#endif
    TRY(dnnl_engine_create(&peer->engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&peer->stream, peer->engine, dnnl_stream_default_flags));
    const wpk_err err = describe_in_formats(peer, &what->op, diag);
    if (err != WPK_OK) {
        return err;
    }
    const char *name = NULL;
    TRY(dnnl_primitive_desc_query(peer->desc, dnnl_query_impl_info_str, 0, (void *)&name));
    snprintf(peer->choice, sizeof(peer->choice), "%s", name);
    return build_steps(peer, what, operands, diag);
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    const wpk_err err = open_into(peer, what, operands, diag);
    if (err != WPK_OK) {
        bench_peer_close(peer);
        return err;
    }
    *out = peer;
    return WPK_OK;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    for (int i = 0; i < peer->step_count; i++) {
        const struct step *step = &peer->steps[i];
        if (dnnl_primitive_execute(step->primitive, peer->stream, step->arg_count, step->args) !=
            dnnl_success) {
            return WPK_ESYSTEM;
        }
    }
    return dnnl_stream_wait(peer->stream) == dnnl_success ? WPK_OK : WPK_ESYSTEM;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    if (peer->dst_chosen != peer->dst) {
        const wpk_err err = reorder_now(peer, peer->dst_chosen, peer->dst, NULL);
        if (err != WPK_OK) {
            return err;
        }
    }
    void *data = NULL;
    if (dnnl_memory_get_data_handle(peer->dst, &data) != dnnl_success) {
        return WPK_ESYSTEM;
    }
    memcpy(out, data, peer->dst_bytes);
    return WPK_OK;
}

static void touch_memory(dnnl_memory_t memory)
{
    const_dnnl_memory_desc_t desc = NULL;
    void *data = NULL;
    if (dnnl_memory_get_memory_desc(memory, &desc) == dnnl_success &&
        dnnl_memory_get_data_handle(memory, &data) == dnnl_success) {
        wpk_caches_read(data, dnnl_memory_desc_get_size(desc));
    }
}

void bench_peer_touch(struct bench_peer *peer)
{
    touch_memory(peer->steps[0].args[0].memory); /* what the first step reads */
    touch_memory(peer->dst_chosen);
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
    for (int i = 0; i < STEPS_MAX; i++) {
        dnnl_primitive_destroy(peer->steps[i].primitive);
    }
    for (int i = 0; i < peer->memory_count; i++) {
        dnnl_memory_destroy(peer->memories[i]);
    }
    dnnl_primitive_desc_destroy(peer->desc);
    dnnl_stream_destroy(peer->stream);
    dnnl_engine_destroy(peer->engine);
    free(peer);
}
