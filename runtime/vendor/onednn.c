/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a primitive of oneDNN from a recipe.
 *
 * The library plans for the number of threads that the calling thread would use. So that number is
 * set from the options while the library plans and computes, and set back afterwards. */
#include "runtime/vendor/onednn_plan.h"

#include "runtime/scratch.h"
#include "schema/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVIDER "onednn"

_Static_assert(WPK_RECIPE_RANK_MAX == DNNL_MAX_NDIMS, "arrays are passed as they are");

/* ---- operands */

/* The layout that an operand is offered in, where it is the primitive's choice. */
static wpk_err offer_any(struct wpk_vendor *self, int role)
{
    const struct wpk_onednn_library *lib = &self->library;
    const struct wpk_recipe_operand *view = &self->recipe.operand[role];
    struct wpk_onednn_operand *operand = &self->operand[role];
    bool is_pooling =
        wpk_recipe_has_window(&self->recipe) && self->recipe.kind != WPK_RECIPE_CONVOLUTION;
    dnnl_data_type_t type = dnnl_data_type_undef;
    dnnl_dims_t strides = {0};

    (void)lib->memory_desc_query(operand->outer, dnnl_query_data_type, &type);
    if (is_pooling) {
        /* Channels innermost: what pooling likes best, and cannot choose by itself. */
        int64_t stride = view->extent[1];
        strides[1] = 1;
        for (int d = view->rank - 1; d >= 2; d--) {
            strides[d] = stride;
            stride *= view->extent[d];
        }
        strides[0] = stride;
        return wpk_onednn_translate(lib->memory_desc_create_with_strides(
            &operand->wanted, view->rank, view->extent, type, strides));
    }
    return wpk_onednn_translate(lib->memory_desc_create_with_tag(
        &operand->wanted, view->rank, view->extent, type, dnnl_format_tag_any));
}

static wpk_err describe_operand(struct wpk_vendor *self, int role)
{
    const struct wpk_onednn_library *lib = &self->library;
    const struct wpk_recipe_operand *view = &self->recipe.operand[role];
    struct wpk_onednn_operand *operand = &self->operand[role];

    if (view->tensor < 0) {
        return WPK_OK;
    }
    operand->constant = self->recipe.use[view->tensor] == WPK_RECIPE_CONSTANT;
    wpk_err err = wpk_onednn_describe(lib, &self->recipe, role, &operand->outer);
    if (err != WPK_OK) {
        return err;
    }
    if (role == WPK_RECIPE_ZERO) {
        return wpk_onednn_translate(lib->memory_desc_create_with_strides(
            &operand->wanted, view->rank, view->extent, dnnl_s32, view->stride));
    }
    return view->chosen ? offer_any(self, role)
                        : wpk_onednn_describe(lib, &self->recipe, role, &operand->wanted);
}

/* Which argument an operand is, and how the primitive wants it. */
static wpk_err settle_operands(struct wpk_vendor *self)
{
    const struct wpk_onednn_library *lib = &self->library;
    bool is_norm = self->recipe.kind == WPK_RECIPE_LAYERNORM;
    bool is_binary = self->recipe.kind == WPK_RECIPE_BINARY;
    const int arg[] = {DNNL_ARG_SRC,
                       is_norm     ? DNNL_ARG_SCALE
                       : is_binary ? DNNL_ARG_SRC_1
                                   : DNNL_ARG_WEIGHTS,
                       is_norm ? DNNL_ARG_SHIFT : DNNL_ARG_BIAS,
                       DNNL_ARG_DST,
                       DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                       DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST};
    wpk_err err = WPK_OK;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && err == WPK_OK; role++) {
        struct wpk_onednn_operand *operand = &self->operand[role];
        if (operand->outer == NULL) {
            continue;
        }
        operand->arg = arg[role];
        operand->inner =
            role > WPK_RECIPE_DST
                ? operand->wanted
                : lib->primitive_desc_query_md(self->desc, dnnl_query_exec_arg_md, arg[role]);
        if (!operand->constant && !lib->memory_desc_equal(operand->inner, operand->outer)) {
            err = role == WPK_RECIPE_DST
                      ? wpk_onednn_conversion(self, operand->inner, operand->outer,
                                              &operand->conversion)
                      : wpk_onednn_conversion(self, operand->outer, operand->inner,
                                              &operand->conversion);
        }
    }
    return err;
}

wpk_err wpk_onednn_conversion(const struct wpk_vendor *self, const_dnnl_memory_desc_t from,
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
    return wpk_onednn_translate(status);
}

/* ---- the primitive */

static dnnl_alg_kind_t eltwise_kind(enum wpk_recipe_function function)
{
    static const dnnl_alg_kind_t kinds[WPK_RECIPE_FUNCTION_COUNT] = {
        [WPK_RECIPE_RELU] = dnnl_eltwise_relu,     [WPK_RECIPE_CLIP] = dnnl_eltwise_clip,
        [WPK_RECIPE_LINEAR] = dnnl_eltwise_linear, [WPK_RECIPE_LOGISTIC] = dnnl_eltwise_logistic,
        [WPK_RECIPE_TANH] = dnnl_eltwise_tanh,     [WPK_RECIPE_ABS] = dnnl_eltwise_abs,
        [WPK_RECIPE_EXP] = dnnl_eltwise_exp,       [WPK_RECIPE_LOG] = dnnl_eltwise_log,
        [WPK_RECIPE_SQRT] = dnnl_eltwise_sqrt,
    };
    WPK_ASSERT(function < WPK_RECIPE_FUNCTION_COUNT);
    return kinds[function];
}

static dnnl_alg_kind_t binary_kind(enum wpk_recipe_binary op)
{
    static const dnnl_alg_kind_t kinds[WPK_RECIPE_BINARY_COUNT] = {
        [WPK_RECIPE_ADD] = dnnl_binary_add, [WPK_RECIPE_SUB] = dnnl_binary_sub,
        [WPK_RECIPE_MUL] = dnnl_binary_mul, [WPK_RECIPE_DIV] = dnnl_binary_div,
        [WPK_RECIPE_MIN] = dnnl_binary_min, [WPK_RECIPE_MAX] = dnnl_binary_max,
    };
    WPK_ASSERT(op < WPK_RECIPE_BINARY_COUNT);
    return kinds[op];
}

/* The scale is the weights', by the dimensions that number their channels. */
static dnnl_status_t set_quantization(const struct wpk_vendor *self, dnnl_primitive_attr_t attr)
{
    const struct wpk_onednn_library *lib = &self->library;
    const struct wpk_recipe_operand *weights = &self->recipe.operand[WPK_RECIPE_WEIGHTS];
    bool is_grouped = weights->rank > self->recipe.operand[WPK_RECIPE_SRC].rank;
    int channels = self->recipe.kind == WPK_RECIPE_MATMUL ? 1 << (weights->rank - 1)
                   : is_grouped                           ? 3
                                                          : 1;
    dnnl_status_t status = dnnl_success;

    if (self->operand[WPK_RECIPE_SCALE].outer != NULL) {
        bool is_one = self->recipe.operand[WPK_RECIPE_SCALE].extent[0] == 1;
        status = lib->primitive_attr_set_scales_mask(attr, DNNL_ARG_WEIGHTS, is_one ? 0 : channels);
    }
    return status == dnnl_success && self->operand[WPK_RECIPE_ZERO].outer != NULL
               ? lib->primitive_attr_set_zero_points_mask(attr, DNNL_ARG_DST, 0)
               : status;
}

/* Post-ops, less the first where that is the primitive itself. */
static dnnl_status_t make_attributes(struct wpk_vendor *self, dnnl_primitive_attr_t *out)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = lib->primitive_attr_create(out);

    if (status == dnnl_success) {
        status = lib->post_ops_create(&posts);
    }
    int first = self->recipe.kind == WPK_RECIPE_ELTWISE ? 1 : 0;
    for (int i = first; i < self->recipe.post_count && status == dnnl_success; i++) {
        const struct wpk_recipe_post *post = &self->recipe.post[i];
        status = lib->post_ops_append_eltwise(posts, eltwise_kind(post->function),
                                              (float)post->alpha, (float)post->beta);
    }
    if (status == dnnl_success) {
        status = lib->primitive_attr_set_post_ops(*out, posts);
    }
    if (status == dnnl_success) {
        status = set_quantization(self, *out);
    }
    if (status == dnnl_success) {
        status = lib->primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    }
    if (posts != NULL) {
        lib->post_ops_destroy(posts);
    }
    return status;
}

static dnnl_status_t make_window_desc(struct wpk_vendor *self, const_dnnl_primitive_attr_t attr)
{
    const struct wpk_recipe *op = &self->recipe;
    const struct wpk_onednn_library *lib = &self->library;
    const struct wpk_onednn_operand *o = self->operand;
    dnnl_dims_t gaps = {0}; /* the library counts the elements left out */

    for (int i = 0; i < op->spatial; i++) {
        gaps[i] = op->dilation[i] - 1;
    }
    if (op->kind == WPK_RECIPE_CONVOLUTION) {
        return lib->convolution_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, dnnl_convolution_auto,
            o[WPK_RECIPE_SRC].wanted, o[WPK_RECIPE_WEIGHTS].wanted, o[WPK_RECIPE_BIAS].wanted,
            o[WPK_RECIPE_DST].wanted, op->stride, gaps, op->pad_before, op->pad_after, attr);
    }
    return lib->pooling_forward_primitive_desc_create(
        &self->desc, self->engine, dnnl_forward_inference,
        op->kind == WPK_RECIPE_POOL_MAX       ? dnnl_pooling_max
        : op->kind == WPK_RECIPE_POOL_AVERAGE ? dnnl_pooling_avg_include_padding
                                              : dnnl_pooling_avg_exclude_padding,
        o[WPK_RECIPE_SRC].wanted, o[WPK_RECIPE_DST].wanted, op->stride, op->kernel, gaps,
        op->pad_before, op->pad_after, attr);
}

static dnnl_status_t make_desc(struct wpk_vendor *self, const_dnnl_primitive_attr_t attr)
{
    const struct wpk_recipe *op = &self->recipe;
    const struct wpk_onednn_library *lib = &self->library;
    const_dnnl_memory_desc_t src = self->operand[WPK_RECIPE_SRC].wanted;
    const_dnnl_memory_desc_t weights = self->operand[WPK_RECIPE_WEIGHTS].wanted;
    const_dnnl_memory_desc_t bias = self->operand[WPK_RECIPE_BIAS].wanted;
    const_dnnl_memory_desc_t dst = self->operand[WPK_RECIPE_DST].wanted;

    switch (op->kind) {
    case WPK_RECIPE_MATMUL:
        return lib->matmul_primitive_desc_create(&self->desc, self->engine, src, weights, bias, dst,
                                                 attr);
    case WPK_RECIPE_SOFTMAX:
        return lib->softmax_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, dnnl_softmax_accurate, src, dst,
            op->axis, attr);
    case WPK_RECIPE_LAYERNORM:
        return lib->layer_normalization_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, src, dst, NULL, (float)op->epsilon,
            (weights != NULL ? (unsigned)dnnl_use_scale : 0U) |
                (bias != NULL ? (unsigned)dnnl_use_shift : 0U),
            attr);
    case WPK_RECIPE_ELTWISE:
        return lib->eltwise_forward_primitive_desc_create(
            &self->desc, self->engine, dnnl_forward_inference, eltwise_kind(op->post[0].function),
            src, dst, (float)op->post[0].alpha, (float)op->post[0].beta, attr);
    case WPK_RECIPE_BINARY:
        return lib->binary_primitive_desc_create(&self->desc, self->engine, binary_kind(op->binary),
                                                 src, weights, dst, attr);
    case WPK_RECIPE_CONVOLUTION:
    case WPK_RECIPE_POOL_MAX:
    case WPK_RECIPE_POOL_AVERAGE:
    case WPK_RECIPE_POOL_AVERAGE_INSIDE:
    case WPK_RECIPE_KIND_COUNT:
        break;
    }
    return make_window_desc(self, attr);
}

/* ---- life */

static wpk_err make_primitive(struct wpk_vendor *self, struct wpk_diag *diag)
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
        return wpk_onednn_translate(status);
    }
    self->scratch = lib->primitive_desc_query_md(self->desc, dnnl_query_scratchpad_md, 0);
    lib->primitive_desc_query(self->desc, dnnl_query_impl_info_str, 0, &name);
    snprintf(self->detail, sizeof(self->detail), "%s, oneDNN %s", name, self->version);
    return settle_operands(self);
}

static wpk_err make(struct wpk_vendor *self, struct wpk_diag *diag)
{
    wpk_err err = wpk_onednn_translate(self->library.engine_create(&self->engine, dnnl_cpu, 0));

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && err == WPK_OK; role++) {
        err = describe_operand(self, role);
    }
    if (err != WPK_OK) {
        wpk_diag_set(diag, "oneDNN cannot describe an operand: %s", wpk_err_text(err));
        return err;
    }
    return make_primitive(self, diag);
}

static wpk_err open_library(struct wpk_vendor *self, const struct wpk_vendor_options *options,
                            struct wpk_diag *diag)
{
    wpk_err err = wpk_onednn_library_open(&self->library, options->library_dir, diag);

    if (err != WPK_OK) {
        return err;
    }
    const dnnl_version_t *version = self->library.version();
    snprintf(self->version, sizeof(self->version), "%d.%d.%d", version->major, version->minor,
             version->patch);
    if (options->version != NULL && strcmp(options->version, self->version) != 0) {
        return wpk_fail(diag, WPK_EMISMATCH, "oneDNN %s is wanted, this is %s", options->version,
                        self->version);
    }
    return WPK_OK;
}

wpk_err wpk_vendor_open(const struct wpk_recipe *recipe, const struct wpk_vendor_options *options,
                        struct wpk_vendor **out, struct wpk_diag *diag)
{
    WPK_ASSERT(options->threads >= 1);
    if (strcmp(options->provider, PROVIDER) != 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "this libwpk knows no provider %s",
                        options->provider);
    }
    struct wpk_vendor *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->users = 1;
    self->recipe = *recipe;
    self->threads = options->threads;
    wpk_err err = open_library(self, options, diag);
    if (err == WPK_OK) {
        int before = wpk_onednn_library_limit(&self->library, self->threads);
        err = make(self, diag);
        wpk_onednn_library_limit(&self->library, before);
    }
    if (err != WPK_OK) {
        wpk_vendor_release(self);
        return err;
    }
    *out = self;
    return WPK_OK;
}

struct wpk_vendor *wpk_vendor_share(struct wpk_vendor *self)
{
    __atomic_add_fetch(&self->users, 1, __ATOMIC_ACQ_REL);
    return self;
}

void wpk_vendor_release(struct wpk_vendor *self)
{
    if (self == NULL || __atomic_sub_fetch(&self->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    const struct wpk_onednn_library *lib = &self->library;
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        struct wpk_onednn_operand *operand = &self->operand[role];
        if (operand->conversion != NULL) {
            lib->primitive_destroy(operand->conversion);
        }
        if (operand->outer != NULL) {
            lib->memory_desc_destroy(operand->outer);
        }
        if (operand->wanted != NULL) {
            lib->memory_desc_destroy(operand->wanted);
        }
        wpk_memory_give(operand->bytes);
    }
    if (self->primitive != NULL) {
        lib->primitive_destroy(self->primitive);
    }
    if (self->desc != NULL) {
        lib->primitive_desc_destroy(self->desc);
    }
    if (self->engine != NULL) {
        lib->engine_destroy(self->engine);
    }
    free(self);
}

wpk_err wpk_vendor_entry(const struct wpk_vendor *self, struct wpk_buf *out)
{
    struct wpk_recipe recipe = self->recipe;
    struct wpk_choice_entry entry = {.kind = WPK_CHOICE_VENDOR, .recipe = &recipe};

    snprintf(entry.provider, sizeof(entry.provider), "%s", PROVIDER);
    snprintf(entry.version, sizeof(entry.version), "%s", self->version);
    return wpk_choice_entry_encode(&entry, out);
}

const char *wpk_vendor_detail(const struct wpk_vendor *self)
{
    return self->detail;
}
