/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peer_dnnl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY BENCH_DNNL_TRY

wpk_err bench_dnnl_memory(struct bench_peer *peer, const_dnnl_memory_desc_t desc,
                          const float *values, dnnl_memory_t *out, struct wpk_diag *diag)
{
    const size_t size = dnnl_memory_desc_get_size(desc);
    void *data = NULL;
    WPK_ASSERT(peer->memory_count < BENCH_DNNL_MEMORIES_MAX);
    TRY(dnnl_memory_create(out, desc, peer->engine, DNNL_MEMORY_ALLOCATE));
    peer->memories[peer->memory_count++] = *out;
    TRY(dnnl_memory_get_data_handle(*out, &data));
    if (values != NULL) {
        memcpy(data, values, size);
    } else {
        memset(data, 0, size);
    }
    return WPK_OK;
}

wpk_err bench_dnnl_in_format(struct bench_peer *peer, dnnl_memory_t memory, int arg,
                             dnnl_memory_t *out, struct wpk_diag *diag)
{
    const_dnnl_memory_desc_t asked =
        dnnl_primitive_desc_query_md(peer->desc, dnnl_query_exec_arg_md, arg);
    const_dnnl_memory_desc_t own = NULL;
    TRY(dnnl_memory_get_memory_desc(memory, &own));
    if (dnnl_memory_desc_equal(own, asked)) {
        *out = memory;
        return WPK_OK;
    }
    return bench_dnnl_memory(peer, asked, NULL, out, diag);
}

void bench_dnnl_add_arg(struct bench_dnnl_step *step, int arg, dnnl_memory_t memory)
{
    WPK_ASSERT(step->arg_count < BENCH_DNNL_ARGS_MAX);
    step->args[step->arg_count++] = (dnnl_exec_arg_t){arg, memory};
}

wpk_err bench_dnnl_make_reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                                struct bench_dnnl_step *out, struct wpk_diag *diag)
{
    const_dnnl_memory_desc_t from_desc = NULL;
    const_dnnl_memory_desc_t to_desc = NULL;
    dnnl_primitive_desc_t desc = NULL;
    TRY(dnnl_memory_get_memory_desc(from, &from_desc));
    TRY(dnnl_memory_get_memory_desc(to, &to_desc));
    TRY(dnnl_reorder_primitive_desc_create(&desc, from_desc, peer->engine, to_desc, peer->engine,
                                           NULL));
    const dnnl_status_t status = dnnl_primitive_create(&out->primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    TRY(status);
    bench_dnnl_add_arg(out, DNNL_ARG_FROM, from);
    bench_dnnl_add_arg(out, DNNL_ARG_TO, to);
    return WPK_OK;
}

static dnnl_status_t execute(const struct bench_peer *peer, const struct bench_dnnl_step *step)
{
    return dnnl_primitive_execute(step->primitive, peer->stream, step->arg_count, step->args);
}

wpk_err bench_dnnl_reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                           struct wpk_diag *diag)
{
    struct bench_dnnl_step step = {.arg_count = 0};
    const wpk_err err = bench_dnnl_make_reorder(peer, from, to, &step, diag);
    if (err != WPK_OK) {
        return err;
    }
    dnnl_status_t status = execute(peer, &step);
    if (status == dnnl_success) {
        status = dnnl_stream_wait(peer->stream);
    }
    dnnl_primitive_destroy(step.primitive);
    TRY(status);
    return WPK_OK;
}

/* ---- bench/peer.h */

void bench_peer_version(char *out, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(out, size, "oneDNN %d.%d.%d%s", version->major, version->minor, version->patch,
             bench_dnnl_suffix);
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    *out = peer;
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
#ifdef BENCH_OPENCL_DRIVER
    /* Built on SYCL, oneDNN looks for a CPU among the machine's OpenCL drivers; the wheel's own is
     * not registered there. */
    setenv("OCL_ICD_FILENAMES", BENCH_OPENCL_DRIVER, 0);
#endif
    TRY(dnnl_engine_create(&peer->engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&peer->stream, peer->engine, dnnl_stream_default_flags));
    const wpk_err err = bench_dnnl_describe(peer, what, diag);
    if (err != WPK_OK) {
        return err;
    }
    const char *name = NULL;
    TRY(dnnl_primitive_desc_query(peer->desc, dnnl_query_impl_info_str, 0, (void *)&name));
    snprintf(peer->choice, sizeof(peer->choice), "%s", name);
    return bench_dnnl_build(peer, what, operands, diag);
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    for (int i = 0; i < peer->step_count; i++) {
        if (execute(peer, &peer->steps[i]) != dnnl_success) {
            return WPK_ESYSTEM;
        }
    }
    return dnnl_stream_wait(peer->stream) == dnnl_success ? WPK_OK : WPK_ESYSTEM;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    if (peer->dst_chosen != peer->dst) {
        const wpk_err err = bench_dnnl_reorder(peer, peer->dst_chosen, peer->dst, NULL);
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
    touch_memory(peer->steps[0].args[0].memory);
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
    for (int i = 0; i < BENCH_DNNL_STEPS_MAX; i++) {
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
