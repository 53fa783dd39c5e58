/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor as a provider: what it computes and how fast is looked at exactly as ours is. */
#include "worker/onednn.h"
#include "worker/provider.h"

#include <stdlib.h>
#include <string.h>

struct onednn_provider {
    struct wpk_provider base; /* first */
    const struct wpk_program *program;
    const struct wpk_provider_memory *memory;
    struct wpk_onednn_op op;
    struct wpk_onednn *primitive;
    int tensor[WPK_ONEDNN_ROLE_COUNT];     /* of the program, -1: the operand is not used */
    void *physical[WPK_ONEDNN_ROLE_COUNT]; /* of the runner's memory */
    void *src_as_set;                      /* owned: a copy to compare with */
};

static struct onednn_provider *from_base(struct wpk_provider *provider)
{
    return (struct onednn_provider *)(void *)provider;
}

static void onednn_close(struct wpk_provider *provider)
{
    struct onednn_provider *self = from_base(provider);

    if (self == NULL) {
        return;
    }
    wpk_onednn_close(self->primitive);
    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT; role++) {
        if (self->physical[role] != NULL) {
            self->memory->give(self->memory->user, self->physical[role]);
        }
    }
    free(self->src_as_set);
    free(self);
}

static wpk_err open_memory(struct onednn_provider *self)
{
    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT; role++) {
        size_t size = wpk_onednn_size(self->primitive, (enum wpk_onednn_role)role);
        if (self->tensor[role] < 0) {
            continue;
        }
        self->physical[role] = self->memory->take(self->memory->user, size);
        if (self->physical[role] == NULL) {
            return WPK_ENOMEM;
        }
        wpk_err err =
            wpk_onednn_attach(self->primitive, (enum wpk_onednn_role)role, self->physical[role]);
        if (err != WPK_OK) {
            return err;
        }
    }
    self->src_as_set = calloc(1, wpk_onednn_size(self->primitive, WPK_ONEDNN_SRC));
    return self->src_as_set != NULL ? WPK_OK : WPK_ENOMEM;
}

static wpk_err open_primitive(struct onednn_provider *self,
                              const struct wpk_provider_request *request, struct wpk_diag *diag)
{
    const int tensors[] = {self->op.src.tensor, self->op.weights.tensor, self->op.bias.tensor,
                           self->op.dst.tensor};
    const struct wpk_tensor *declared = request->program->tensors;
    struct wpk_onednn_options options = {.library_path = request->library_path,
                                         .threads = request->threads};
    enum wpk_dtype dtype[WPK_ONEDNN_ROLE_COUNT] = {WPK_F32};

    for (int role = 0; role < WPK_ONEDNN_ROLE_COUNT; role++) {
        self->tensor[role] = tensors[role];
        if (tensors[role] >= 0) {
            dtype[role] = declared[tensors[role]].dtype;
        }
    }
    /* Convolutions on plain layouts are slow: the library is faster on every layer of ResNet-18
     * when its input and output are converted on each call, so that is what it is given credit
     * for. Matrix products take plain layouts as they are. */
    if (strcmp(request->layouts, "any") == 0) {
        options.layouts = WPK_ONEDNN_CHOSEN;
    } else if (self->op.kind == WPK_ONEDNN_CONVOLUTION) {
        options.layouts = WPK_ONEDNN_CONVERTED;
    }
    /* Packed once and not per call, as our kernels pack constants; other factors stay in place. */
    options.weights_chosen =
        self->op.weights.tensor >= 0 && declared[self->op.weights.tensor].role == WPK_ROLE_CONSTANT;
    return wpk_onednn_open(&self->op, dtype, &options, &self->primitive, diag);
}

static wpk_err onednn_open(const struct wpk_provider_request *request, struct wpk_provider **out,
                           struct wpk_diag *diag)
{
    WPK_ASSERT(request->threads >= 1);
    if (request->library_path == NULL) {
        wpk_diag_set(diag, "no oneDNN library is given");
        return WPK_ENOENT;
    }
    struct onednn_provider *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->base.kind = &wpk_provider_onednn;
    self->program = request->program;
    self->memory = request->memory;
    wpk_err err = wpk_onednn_match(request->program, &self->op);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "none of oneDNN's primitives computes this operator");
    } else {
        err = open_primitive(self, request, diag);
    }
    if (err == WPK_OK) {
        err = open_memory(self);
    }
    if (err != WPK_OK) {
        onednn_close(&self->base);
        return err;
    }
    *out = &self->base;
    return WPK_OK;
}

/* One tensor may be several operands: both factors of a square, say. */
static wpk_err onednn_set(struct wpk_provider *provider, int tensor, const void *dense,
                          struct wpk_diag *diag)
{
    struct onednn_provider *self = from_base(provider);

    for (int role = 0; role < WPK_ONEDNN_DST; role++) {
        if (self->tensor[role] != tensor) {
            continue;
        }
        wpk_err err = wpk_onednn_put(self->primitive, (enum wpk_onednn_role)role, dense);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "oneDNN cannot pack '%s'", self->program->tensors[tensor].name);
            return err;
        }
    }
    if (self->tensor[WPK_ONEDNN_SRC] == tensor) {
        memcpy(self->src_as_set, self->physical[WPK_ONEDNN_SRC],
               wpk_onednn_size(self->primitive, WPK_ONEDNN_SRC));
    }
    return WPK_OK;
}

static wpk_err onednn_prepare(struct wpk_provider *provider, struct wpk_diag *diag)
{
    (void)provider;
    (void)diag;
    return WPK_OK; /* constants were packed as they were set */
}

/* The padding of the library's layouts is its own, and it writes it: all of it is poisoned. */
static void onednn_poison(struct wpk_provider *provider, unsigned char byte)
{
    struct onednn_provider *self = from_base(provider);

    memset(self->physical[WPK_ONEDNN_DST], byte, wpk_onednn_size(self->primitive, WPK_ONEDNN_DST));
}

static wpk_err onednn_run(struct wpk_provider *provider)
{
    return wpk_onednn_run(from_base(provider)->primitive);
}

static wpk_err onednn_check(struct wpk_provider *provider, struct wpk_diag *diag)
{
    struct onednn_provider *self = from_base(provider);

    if (memcmp(self->src_as_set, self->physical[WPK_ONEDNN_SRC],
               wpk_onednn_size(self->primitive, WPK_ONEDNN_SRC)) != 0) {
        wpk_diag_set(diag, "oneDNN wrote to its input");
        return WPK_ECORRUPT;
    }
    return WPK_OK;
}

static wpk_err onednn_get(struct wpk_provider *provider, int tensor, void *dense)
{
    struct onednn_provider *self = from_base(provider);

    if (self->tensor[WPK_ONEDNN_DST] != tensor) {
        return WPK_ENOENT;
    }
    return wpk_onednn_get(self->primitive, WPK_ONEDNN_DST, dense);
}

static const char *onednn_detail(const struct wpk_provider *provider)
{
    return wpk_onednn_detail(((const struct onednn_provider *)(const void *)provider)->primitive);
}

const struct wpk_provider_class wpk_provider_onednn = {
    .name = "onednn",
    .open = onednn_open,
    .close = onednn_close,
    .set = onednn_set,
    .prepare = onednn_prepare,
    .poison = onednn_poison,
    .run = onednn_run,
    .check = onednn_check,
    .get = onednn_get,
    .detail = onednn_detail,
};
