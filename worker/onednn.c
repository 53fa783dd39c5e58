/* SPDX-License-Identifier: Apache-2.0 */
/* From a matched operator to a primitive, its memory and its execution. */
#include "worker/onednn.h"

#include "worker/onednn_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETAIL_MAX 160

_Static_assert(WPK_ONEDNN_RANK_MAX == DNNL_MAX_NDIMS, "arrays are passed as they are");

struct operand {
    int arg;                           /* DNNL_ARG_* */
    dnnl_memory_desc_t dense;          /* owned: as the user's array lies */
    dnnl_memory_desc_t wanted;         /* owned: as asked for, "any" perhaps */
    const_dnnl_memory_desc_t physical; /* as it lies in `memory` */
    dnnl_memory_t memory;              /* owned; its bytes are not */
    /* Where run converts: */
    const_dnnl_memory_desc_t inner_desc; /* the primitive's; NULL: nothing is converted */
    dnnl_memory_t inner;                 /* owned */
    void *inner_bytes;                   /* owned */
    dnnl_primitive_t conversion;         /* owned */
};

struct wpk_onednn {
    struct wpk_onednn_library library;
    struct wpk_onednn_op op;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    struct operand operands[WPK_ONEDNN_ROLE_COUNT];
    dnnl_exec_arg_t args[WPK_ONEDNN_ROLE_COUNT];
    int arg_count;
    char detail[DETAIL_MAX];
};

static wpk_err translate(dnnl_status_t status)
{
    switch (status) {
    case dnnl_success:
        return WPK_OK;
    case dnnl_out_of_memory:
        return WPK_ENOMEM;
    default:
        return WPK_EUNSUPPORTED;
    }
}

/* ---- descriptors */

static dnnl_data_type_t data_type(enum wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_BF16:
        return dnnl_bf16;
    case WPK_F16:
        return dnnl_f16;
    default:
        return dnnl_f32;
    }
}

/* Channels innermost: what pooling likes best, and cannot choose by itself. */
static void channels_last(const struct wpk_onednn_operand *view, dnnl_dims_t strides)
{
    int64_t stride = view->extent[1];

    strides[1] = 1;
    for (int d = view->rank - 1; d >= 2; d--) {
        strides[d] = stride;
        stride *= view->extent[d];
    }
    strides[0] = stride;
}

/* May the primitive choose this operand's layout? The others take what they are given. */
static bool may_choose(const struct wpk_onednn *self, int role,
                       const struct wpk_onednn_options *options)
{
    bool chooses = options->layouts != WPK_ONEDNN_AS_GIVEN;

    if (self->op.kind != WPK_ONEDNN_CONVOLUTION && self->op.kind != WPK_ONEDNN_MATMUL) {
        return false;
    }
    if (role == WPK_ONEDNN_WEIGHTS) {
        return options->weights_chosen || options->layouts == WPK_ONEDNN_CHOSEN;
    }
    return role != WPK_ONEDNN_BIAS && chooses;
}

static wpk_err describe_operand(struct wpk_onednn *self, int role, enum wpk_dtype dtype,
                                const struct wpk_onednn_operand *view,
                                const struct wpk_onednn_options *options)
{
    const struct wpk_onednn_library *lib = &self->library;
    struct operand *operand = &self->operands[role];
    bool is_pooling = self->op.kind == WPK_ONEDNN_POOL_MAX ||
                      self->op.kind == WPK_ONEDNN_POOL_AVERAGE ||
                      self->op.kind == WPK_ONEDNN_POOL_AVERAGE_INSIDE;
    dnnl_dims_t dims = {0};
    dnnl_dims_t strides = {0};

    for (int d = 0; d < view->rank; d++) {
        dims[d] = view->extent[d];
        strides[d] = view->stride[d];
    }
    dnnl_status_t status = lib->memory_desc_create_with_strides(&operand->dense, view->rank, dims,
                                                                data_type(dtype), strides);
    if (status != dnnl_success) {
        return translate(status);
    }
    if (may_choose(self, role, options)) {
        status = lib->memory_desc_create_with_tag(&operand->wanted, view->rank, dims,
                                                  data_type(dtype), dnnl_format_tag_any);
    } else {
        if (is_pooling && options->layouts == WPK_ONEDNN_CHOSEN) {
            channels_last(view, strides);
        }
        status = lib->memory_desc_create_with_strides(&operand->wanted, view->rank, dims,
                                                      data_type(dtype), strides);
    }
    return translate(status);
}

static dnnl_alg_kind_t eltwise_kind(enum wpk_onednn_function function)
{
    switch (function) {
    case WPK_ONEDNN_RELU:
        return dnnl_eltwise_relu;
    case WPK_ONEDNN_CLIP:
        return dnnl_eltwise_clip;
    case WPK_ONEDNN_LINEAR:
        return dnnl_eltwise_linear;
    case WPK_ONEDNN_LOGISTIC:
        return dnnl_eltwise_logistic;
    case WPK_ONEDNN_TANH:
        return dnnl_eltwise_tanh;
    case WPK_ONEDNN_ABS:
        return dnnl_eltwise_abs;
    case WPK_ONEDNN_EXP:
        return dnnl_eltwise_exp;
    case WPK_ONEDNN_LOG:
        return dnnl_eltwise_log;
    case WPK_ONEDNN_SQRT:
        break;
    }
    return dnnl_eltwise_sqrt;
}

static dnnl_alg_kind_t binary_kind(enum wpk_binary op)
{
    switch (op) {
    case WPK_BINARY_SUB:
        return dnnl_binary_sub;
    case WPK_BINARY_MUL:
        return dnnl_binary_mul;
    case WPK_BINARY_DIV:
        return dnnl_binary_div;
    case WPK_BINARY_MIN:
        return dnnl_binary_min;
    case WPK_BINARY_MAX:
        return dnnl_binary_max;
    default:
        return dnnl_binary_add;
    }
}

/* Post-ops, less the first where that is the primitive itself. */
static dnnl_status_t make_attributes(struct wpk_onednn *self, dnnl_primitive_attr_t *out)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = lib->primitive_attr_create(out);

    if (status == dnnl_success) {
        status = lib->post_ops_create(&posts);
    }
    int first = self->op.kind == WPK_ONEDNN_ELTWISE ? 1 : 0;
    for (int i = first; i < self->op.post_count && status == dnnl_success; i++) {
        const struct wpk_onednn_post *post = &self->op.post[i];
        status = lib->post_ops_append_eltwise(posts, eltwise_kind(post->function),
                                              (float)post->alpha, (float)post->beta);
    }
    if (status == dnnl_success) {
        status = lib->primitive_attr_set_post_ops(*out, posts);
    }
    if (posts != NULL) {
        lib->post_ops_destroy(posts);
    }
    return status;
}

static dnnl_status_t make_window_desc(struct wpk_onednn *self, const_dnnl_primitive_attr_t attr)
{
    const struct wpk_onednn_op *op = &self->op;
    const struct wpk_onednn_library *lib = &self->library;
    const struct operand *o = self->operands;
    dnnl_dims_t gaps = {0}; /* the library counts the elements left out */

    for (int i = 0; i < op->spatial; i++) {
        gaps[i] = op->dilation[i] - 1;
    }
    if (op->kind == WPK_ONEDNN_CONVOLUTION) {
        return lib->convolution_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, dnnl_convolution_auto,
            o[WPK_ONEDNN_SRC].wanted, o[WPK_ONEDNN_WEIGHTS].wanted, o[WPK_ONEDNN_BIAS].wanted,
            o[WPK_ONEDNN_DST].wanted, op->stride, gaps, op->pad_before, op->pad_after, attr);
    }
    return lib->pooling_forward_primitive_desc_create(
        &self->desc, self->engine, dnnl_forward_inference,
        op->kind == WPK_ONEDNN_POOL_MAX       ? dnnl_pooling_max
        : op->kind == WPK_ONEDNN_POOL_AVERAGE ? dnnl_pooling_avg_include_padding
                                              : dnnl_pooling_avg_exclude_padding,
        o[WPK_ONEDNN_SRC].wanted, o[WPK_ONEDNN_DST].wanted, op->stride, op->kernel, gaps,
        op->pad_before, op->pad_after, attr);
}

static dnnl_status_t make_desc(struct wpk_onednn *self, const_dnnl_primitive_attr_t attr)
{
    const struct wpk_onednn_op *op = &self->op;
    const struct wpk_onednn_library *lib = &self->library;
    const_dnnl_memory_desc_t src = self->operands[WPK_ONEDNN_SRC].wanted;
    const_dnnl_memory_desc_t weights = self->operands[WPK_ONEDNN_WEIGHTS].wanted;
    const_dnnl_memory_desc_t bias = self->operands[WPK_ONEDNN_BIAS].wanted;
    const_dnnl_memory_desc_t dst = self->operands[WPK_ONEDNN_DST].wanted;

    switch (op->kind) {
    case WPK_ONEDNN_MATMUL:
        return lib->matmul_primitive_desc_create(&self->desc, self->engine, src, weights, bias, dst,
                                                 attr);
    case WPK_ONEDNN_SOFTMAX:
        return lib->softmax_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, dnnl_softmax_accurate, src, dst,
            op->axis, attr);
    case WPK_ONEDNN_LAYERNORM:
        return lib->layer_normalization_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, src, dst, NULL, (float)op->epsilon,
            (weights != NULL ? (unsigned)dnnl_use_scale : 0U) |
                (bias != NULL ? (unsigned)dnnl_use_shift : 0U),
            attr);
    case WPK_ONEDNN_ELTWISE:
        return lib->eltwise_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, eltwise_kind(op->post[0].function),
            src, dst, (float)op->post[0].alpha, (float)op->post[0].beta, attr);
    case WPK_ONEDNN_BINARY:
        return lib->binary_primitive_desc_create(&self->desc, self->engine, binary_kind(op->binary),
                                                 src, weights, dst, attr);
    case WPK_ONEDNN_CONVOLUTION:
    case WPK_ONEDNN_POOL_MAX:
    case WPK_ONEDNN_POOL_AVERAGE:
    case WPK_ONEDNN_POOL_AVERAGE_INSIDE:
        break;
    }
    return make_window_desc(self, attr);
}

/* Which argument an operand is, and how the primitive wants it. */
static void settle_operands(struct wpk_onednn *self)
{
    const struct wpk_onednn_library *lib = &self->library;
    bool is_norm = self->op.kind == WPK_ONEDNN_LAYERNORM;
    bool is_binary = self->op.kind == WPK_ONEDNN_BINARY;
    const int arg[] = {DNNL_ARG_SRC,
                       is_norm     ? DNNL_ARG_SCALE
                       : is_binary ? DNNL_ARG_SRC_1
                                   : DNNL_ARG_WEIGHTS,
                       is_norm ? DNNL_ARG_SHIFT : DNNL_ARG_BIAS, DNNL_ARG_DST};

    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT; role++) {
        struct operand *operand = &self->operands[role];
        if (operand->wanted != NULL) {
            operand->arg = arg[role];
            operand->physical =
                lib->primitive_desc_query_md(self->desc, dnnl_query_exec_arg_md, arg[role]);
        }
    }
}

/* ---- conversion inside run */

static dnnl_status_t make_conversion(struct wpk_onednn *self, const_dnnl_memory_desc_t from,
                                     const_dnnl_memory_desc_t to, dnnl_primitive_t *out)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status =
        lib->reorder_primitive_desc_create(&desc, from, self->engine, to, self->engine, NULL);

    if (status == dnnl_success) {
        status = lib->primitive_create(out, desc);
        lib->primitive_desc_destroy(desc);
    }
    return status;
}

/* Let the operand lie as given, beside a copy that lies as the primitive wants it. */
static wpk_err convert_operand(struct wpk_onednn *self, enum wpk_onednn_role role)
{
    const struct wpk_onednn_library *lib = &self->library;
    struct operand *operand = &self->operands[role];
    const_dnnl_memory_desc_t inner = operand->physical;

    if (lib->memory_desc_equal(inner, operand->dense)) {
        return WPK_OK;
    }
    size_t size = (lib->memory_desc_get_size(inner) + 63) / 64 * 64;
    operand->inner_bytes = aligned_alloc(64, size);
    if (operand->inner_bytes == NULL) {
        return WPK_ENOMEM;
    }
    memset(operand->inner_bytes, 0, size);
    operand->inner_desc = inner;
    operand->physical = operand->dense;
    dnnl_status_t status =
        lib->memory_create(&operand->inner, inner, self->engine, operand->inner_bytes);
    if (status == dnnl_success) {
        status = role == WPK_ONEDNN_DST
                     ? make_conversion(self, inner, operand->dense, &operand->conversion)
                     : make_conversion(self, operand->dense, inner, &operand->conversion);
    }
    return translate(status);
}

static dnnl_status_t run_conversion(struct wpk_onednn *self, dnnl_primitive_t conversion,
                                    dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};

    return self->library.primitive_execute(conversion, self->stream, 2, args);
}

/* ---- life */

static const struct wpk_onednn_operand *view_of(const struct wpk_onednn_op *op, int role)
{
    const struct wpk_onednn_operand *const views[] = {&op->src, &op->weights, &op->bias, &op->dst};

    return views[role];
}

static wpk_err make_primitive(struct wpk_onednn *self, struct wpk_diag *diag)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_primitive_attr_t attr = NULL;
    const char *name = "?";
    dnnl_status_t status = make_attributes(self, &attr);

    if (status == dnnl_success) {
        status = make_desc(self, attr);
    }
    if (attr != NULL) {
        lib->primitive_attr_destroy(attr);
    }
    if (status == dnnl_success) {
        status = lib->primitive_create(&self->primitive, self->desc);
    }
    if (status != dnnl_success) {
        wpk_diag_set(diag, "oneDNN has no implementation of this (status %d)", (int)status);
        return translate(status);
    }
    settle_operands(self);
    lib->primitive_desc_query(self->desc, dnnl_query_impl_info_str, 0, &name);
    snprintf(self->detail, sizeof(self->detail), "%s, oneDNN %d.%d.%d", name, lib->version()->major,
             lib->version()->minor, lib->version()->patch);
    return WPK_OK;
}

wpk_err wpk_onednn_open(const struct wpk_onednn_op *op, const enum wpk_dtype *dtype,
                        const struct wpk_onednn_options *options, struct wpk_onednn **out,
                        struct wpk_diag *diag)
{
    struct wpk_onednn *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->op = *op;
    wpk_err err =
        wpk_onednn_library_open(&self->library, options->library_path, options->threads, diag);
    if (err == WPK_OK) {
        err = translate(self->library.engine_create(&self->engine, dnnl_cpu, 0));
    }
    if (err == WPK_OK) {
        err = translate(
            self->library.stream_create(&self->stream, self->engine, dnnl_stream_default_flags));
    }
    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT && err == WPK_OK; role++) {
        const struct wpk_onednn_operand *view = view_of(op, role);
        if (view->tensor >= 0) {
            err = describe_operand(self, role, dtype[role], view, options);
        }
    }
    if (err == WPK_OK) {
        err = make_primitive(self, diag);
    }
    if (err == WPK_OK && options->layouts == WPK_ONEDNN_CONVERTED) {
        err = convert_operand(self, WPK_ONEDNN_SRC);
        err = err == WPK_OK ? convert_operand(self, WPK_ONEDNN_DST) : err;
    }
    if (err != WPK_OK) {
        wpk_onednn_close(self);
        return err;
    }
    *out = self;
    return WPK_OK;
}

static void close_operand(const struct wpk_onednn_library *lib, struct operand *operand)
{
    if (operand->memory != NULL) {
        lib->memory_destroy(operand->memory);
    }
    if (operand->inner != NULL) {
        lib->memory_destroy(operand->inner);
    }
    if (operand->conversion != NULL) {
        lib->primitive_destroy(operand->conversion);
    }
    free(operand->inner_bytes);
    if (operand->dense != NULL) {
        lib->memory_desc_destroy(operand->dense);
    }
    if (operand->wanted != NULL) {
        lib->memory_desc_destroy(operand->wanted);
    }
}

void wpk_onednn_close(struct wpk_onednn *self)
{
    if (self == NULL) {
        return;
    }
    const struct wpk_onednn_library *lib = &self->library;
    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT; role++) {
        close_operand(lib, &self->operands[role]);
    }
    if (self->primitive != NULL) {
        lib->primitive_destroy(self->primitive);
    }
    if (self->desc != NULL) {
        lib->primitive_desc_destroy(self->desc);
    }
    if (self->stream != NULL) {
        lib->stream_destroy(self->stream);
    }
    if (self->engine != NULL) {
        lib->engine_destroy(self->engine);
    }
    free(self);
}

/* ---- use */

size_t wpk_onednn_size(const struct wpk_onednn *self, enum wpk_onednn_role role)
{
    const struct operand *operand = &self->operands[role];

    return operand->wanted == NULL ? 0 : self->library.memory_desc_get_size(operand->physical);
}

wpk_err wpk_onednn_attach(struct wpk_onednn *self, enum wpk_onednn_role role, void *memory)
{
    struct operand *operand = &self->operands[role];

    WPK_ASSERT(operand->wanted != NULL);
    WPK_ASSERT(operand->memory == NULL);
    wpk_err err = translate(
        self->library.memory_create(&operand->memory, operand->physical, self->engine, memory));
    if (err == WPK_OK) {
        self->args[self->arg_count++] = (dnnl_exec_arg_t){
            operand->arg, operand->inner != NULL ? operand->inner : operand->memory};
    }
    return err;
}

static wpk_err convert_once(struct wpk_onednn *self, const_dnnl_memory_desc_t from_desc,
                            dnnl_memory_t from, const_dnnl_memory_desc_t to_desc, dnnl_memory_t to)
{
    dnnl_primitive_t conversion = NULL;
    dnnl_status_t status = make_conversion(self, from_desc, to_desc, &conversion);

    if (status == dnnl_success) {
        status = run_conversion(self, conversion, from, to);
        self->library.stream_wait(self->stream);
        self->library.primitive_destroy(conversion);
    }
    return translate(status);
}

/* Copy between the user's array and the attached memory, in either direction. */
static wpk_err move(struct wpk_onednn *self, enum wpk_onednn_role role, void *dense, bool in)
{
    const struct wpk_onednn_library *lib = &self->library;
    struct operand *operand = &self->operands[role];
    dnnl_memory_t user = NULL;

    WPK_ASSERT(operand->memory != NULL);
    wpk_err err = translate(lib->memory_create(&user, operand->dense, self->engine, dense));
    if (err == WPK_OK) {
        err = in ? convert_once(self, operand->dense, user, operand->physical, operand->memory)
                 : convert_once(self, operand->physical, operand->memory, operand->dense, user);
        lib->memory_destroy(user);
    }
    return err;
}

wpk_err wpk_onednn_put(struct wpk_onednn *self, enum wpk_onednn_role role, const void *dense)
{
    return move(self, role, (void *)(uintptr_t)dense, true);
}

wpk_err wpk_onednn_get(struct wpk_onednn *self, enum wpk_onednn_role role, void *dense)
{
    return move(self, role, dense, false);
}

wpk_err wpk_onednn_run(struct wpk_onednn *self)
{
    const struct operand *src = &self->operands[WPK_ONEDNN_SRC];
    const struct operand *dst = &self->operands[WPK_ONEDNN_DST];
    dnnl_status_t status = dnnl_success;

    if (src->conversion != NULL) {
        status = run_conversion(self, src->conversion, src->memory, src->inner);
    }
    if (status == dnnl_success) {
        status = self->library.primitive_execute(self->primitive, self->stream, self->arg_count,
                                                 self->args);
    }
    if (status == dnnl_success && dst->conversion != NULL) {
        status = run_conversion(self, dst->conversion, dst->inner, dst->memory);
    }
    if (status == dnnl_success) {
        status = self->library.stream_wait(self->stream);
    }
    return translate(status);
}

const char *wpk_onednn_detail(const struct wpk_onednn *self)
{
    return self->detail;
}
