/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a primitive: constants are packed once, and each call has memory of its own.
 *
 *      input ──conversion?──▶ src ┐
 *                     constants ──┼──▶ primitive ──▶ dst ──conversion?──▶ output
 *                       scratch ──┘ */
#include "runtime/scratch.h"
#include "runtime/vendor/onednn_plan.h"

#include <stdlib.h>

#define ARGS_MAX (WPK_RECIPE_ROLE_COUNT + 1) /* and scratch */

struct wpk_vendor_call {
    struct wpk_vendor *vendor; /* counted */
    dnnl_stream_t stream;
    dnnl_memory_t outer[WPK_RECIPE_ROLE_COUNT]; /* at the caller's data; constants: at the packed */
    dnnl_memory_t inner[WPK_RECIPE_ROLE_COUNT]; /* at `bytes`, where run converts */
    void *bytes[WPK_RECIPE_ROLE_COUNT];         /* owned */
    dnnl_memory_t scratch;
    void *scratch_bytes; /* owned */
    dnnl_exec_arg_t args[ARGS_MAX];
    int arg_count;
};

/* ---- constants */

static dnnl_status_t copy(const struct wpk_vendor *self, dnnl_stream_t stream,
                          dnnl_primitive_t conversion, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};

    return self->library.primitive_execute(conversion, stream, 2, args);
}

static wpk_err pack(struct wpk_vendor *self, struct wpk_onednn_operand *operand,
                    dnnl_stream_t stream, const void *dense)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_memory_t from = NULL;
    dnnl_memory_t to = NULL;
    void *user = (void *)(uintptr_t)dense; /* read only */

    operand->bytes = wpk_memory_take(lib->memory_desc_get_size(operand->inner));
    if (operand->bytes == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err =
        wpk_onednn_translate(lib->memory_create(&from, operand->outer, self->engine, user));
    if (err == WPK_OK) {
        err = wpk_onednn_translate(
            lib->memory_create(&to, operand->inner, self->engine, operand->bytes));
    }
    if (err == WPK_OK) {
        dnnl_primitive_t conversion = NULL;
        err = wpk_onednn_conversion(self, operand->outer, operand->inner, &conversion);
        if (err == WPK_OK) {
            err = wpk_onednn_translate(copy(self, stream, conversion, from, to));
            (void)self->library.stream_wait(stream);
            (void)self->library.primitive_destroy(conversion);
        }
    }
    if (from != NULL) {
        lib->memory_destroy(from);
    }
    if (to != NULL) {
        lib->memory_destroy(to);
    }
    return err;
}

wpk_err wpk_vendor_prepare(struct wpk_vendor *self, const void *const *dense)
{
    const struct wpk_onednn_library *lib = &self->library;
    dnnl_stream_t stream = NULL;
    int before = wpk_onednn_library_limit(lib, self->threads);
    wpk_err err =
        wpk_onednn_translate(lib->stream_create(&stream, self->engine, dnnl_stream_default_flags));

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && err == WPK_OK; role++) {
        struct wpk_onednn_operand *operand = &self->operand[role];
        if (operand->outer != NULL && operand->constant) {
            WPK_ASSERT(operand->bytes == NULL);
            err = pack(self, operand, stream, dense[self->recipe.operand[role].tensor]);
        }
    }
    if (stream != NULL) {
        lib->stream_destroy(stream);
    }
    wpk_onednn_library_limit(lib, before);
    return err;
}

size_t wpk_vendor_constants(const struct wpk_vendor *self, struct wpk_span *out)
{
    size_t count = 0;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        const struct wpk_onednn_operand *operand = &self->operand[role];
        if (operand->bytes != NULL) {
            out[count++] = (struct wpk_span){operand->bytes,
                                             self->library.memory_desc_get_size(operand->inner)};
        }
    }
    return count;
}

/* ---- calls */

/* Memory of an operand; what the primitive is given is its last argument then. */
static wpk_err open_operand(struct wpk_vendor_call *call, int role)
{
    struct wpk_vendor *vendor = call->vendor;
    const struct wpk_onednn_library *lib = &vendor->library;
    const struct wpk_onednn_operand *operand = &vendor->operand[role];
    dnnl_memory_t *given = &call->outer[role];

    if (operand->outer == NULL) {
        return WPK_OK;
    }
    WPK_ASSERT(!operand->constant || operand->bytes != NULL);
    wpk_err err = wpk_onednn_translate(
        lib->memory_create(&call->outer[role], operand->constant ? operand->inner : operand->outer,
                           vendor->engine, operand->bytes));
    if (err == WPK_OK && operand->conversion != NULL) {
        given = &call->inner[role];
        call->bytes[role] = wpk_memory_take(lib->memory_desc_get_size(operand->inner));
        err = call->bytes[role] == NULL
                  ? WPK_ENOMEM
                  : wpk_onednn_translate(lib->memory_create(&call->inner[role], operand->inner,
                                                            vendor->engine, call->bytes[role]));
    }
    if (err == WPK_OK) {
        call->args[call->arg_count++] = (dnnl_exec_arg_t){operand->arg, *given};
    }
    return err;
}

static wpk_err open_scratch(struct wpk_vendor_call *call)
{
    const struct wpk_vendor *vendor = call->vendor;
    const struct wpk_onednn_library *lib = &vendor->library;
    size_t size = vendor->scratch != NULL ? lib->memory_desc_get_size(vendor->scratch) : 0;

    if (size == 0) {
        return WPK_OK;
    }
    call->scratch_bytes = wpk_memory_take(size);
    if (call->scratch_bytes == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_onednn_translate(
        lib->memory_create(&call->scratch, vendor->scratch, vendor->engine, call->scratch_bytes));
    if (err == WPK_OK) {
        call->args[call->arg_count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, call->scratch};
    }
    return err;
}

wpk_err wpk_vendor_call_new(struct wpk_vendor *vendor, struct wpk_vendor_call **out)
{
    struct wpk_vendor_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return WPK_ENOMEM;
    }
    call->vendor = wpk_vendor_share(vendor);
    wpk_err err = wpk_onednn_translate(
        vendor->library.stream_create(&call->stream, vendor->engine, dnnl_stream_default_flags));
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && err == WPK_OK; role++) {
        err = open_operand(call, role);
    }
    err = err == WPK_OK ? open_scratch(call) : err;
    if (err != WPK_OK) {
        wpk_vendor_call_free(call);
        return err;
    }
    *out = call;
    return WPK_OK;
}

void wpk_vendor_call_free(struct wpk_vendor_call *call)
{
    if (call == NULL) {
        return;
    }
    const struct wpk_onednn_library *lib = &call->vendor->library;
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        if (call->outer[role] != NULL) {
            lib->memory_destroy(call->outer[role]);
        }
        if (call->inner[role] != NULL) {
            lib->memory_destroy(call->inner[role]);
        }
        wpk_memory_give(call->bytes[role]);
    }
    if (call->scratch != NULL) {
        lib->memory_destroy(call->scratch);
    }
    wpk_memory_give(call->scratch_bytes);
    if (call->stream != NULL) {
        lib->stream_destroy(call->stream);
    }
    wpk_vendor_release(call->vendor);
    free(call);
}

const struct wpk_vendor *wpk_vendor_call_vendor(const struct wpk_vendor_call *call)
{
    return call->vendor;
}

static dnnl_status_t execute(struct wpk_vendor_call *call)
{
    const struct wpk_vendor *vendor = call->vendor;
    const struct wpk_onednn_library *lib = &vendor->library;
    dnnl_status_t status = dnnl_success;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && status == dnnl_success; role++) {
        if (role != WPK_RECIPE_DST && call->inner[role] != NULL) {
            status = copy(vendor, call->stream, vendor->operand[role].conversion, call->outer[role],
                          call->inner[role]);
        }
    }
    if (status == dnnl_success) {
        status =
            lib->primitive_execute(vendor->primitive, call->stream, call->arg_count, call->args);
    }
    if (status == dnnl_success && call->inner[WPK_RECIPE_DST] != NULL) {
        status = copy(vendor, call->stream, vendor->operand[WPK_RECIPE_DST].conversion,
                      call->inner[WPK_RECIPE_DST], call->outer[WPK_RECIPE_DST]);
    }
    return status == dnnl_success ? lib->stream_wait(call->stream) : status;
}

wpk_err wpk_vendor_call_run(struct wpk_vendor_call *call, void *const *data)
{
    const struct wpk_vendor *vendor = call->vendor;
    const struct wpk_onednn_library *lib = &vendor->library;
    dnnl_status_t status = dnnl_success;
    int before = wpk_onednn_library_limit(lib, vendor->threads);

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT && status == dnnl_success; role++) {
        if (call->outer[role] != NULL && !vendor->operand[role].constant) {
            status = lib->memory_set_data_handle(call->outer[role],
                                                 data[vendor->recipe.operand[role].tensor]);
        }
    }
    if (status == dnnl_success) {
        status = execute(call);
    }
    wpk_onednn_library_limit(lib, before);
    return wpk_onednn_translate(status);
}
