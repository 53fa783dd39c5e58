/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO as a peer, through its C API: one stream, f32 arithmetic, latency hint.
 *
 * The library pins no threads: the driver has set the process's CPU affinity. */
#include "bench/peer.h"

#include <openvino/c/openvino.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_peer {
    ov_core_t *core;
    ov_compiled_model_t *model;
    ov_infer_request_t *request;
    int input_count;
    ov_tensor_t *inputs[BENCH_OPERANDS_MAX];
    ov_tensor_t *output;
    const float *source[BENCH_OPERANDS_MAX]; /* the input tensors' memory */
    size_t source_bytes[BENCH_OPERANDS_MAX];
    float *result; /* owned */
    size_t result_bytes;
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const ov_status_e status_ = (call);                                                        \
        if (status_ != OK) {                                                                       \
            const char *detail_ = ov_get_last_err_msg();                                           \
            wpk_diag_set(diag, "OpenVINO: status %d from %s: %s", (int)status_, #call,             \
                         detail_ != NULL ? detail_ : "");                                          \
            return WPK_ESYSTEM;                                                                    \
        }                                                                                          \
    } while (0)

void bench_peer_version(char *out, size_t size)
{
    ov_version_t version = {0};
    if (ov_get_openvino_version(&version) == OK) {
        snprintf(out, size, "OpenVINO %s", version.buildNumber);
        ov_version_free(&version);
    }
}

static wpk_err make_tensor(const struct bench_shape *shape, const float *data, ov_tensor_t **out,
                           struct wpk_diag *diag)
{
    ov_shape_t extent = {0};
    TRY(ov_shape_create(shape->rank, shape->extent, &extent));
    /* The API takes no const pointer; inputs are not written. */
    const ov_status_e status =
        ov_tensor_create_from_host_ptr(F32, extent, (void *)(uintptr_t)data, out);
    ov_shape_free(&extent);
    TRY(status);
    return WPK_OK;
}

static wpk_err set_inputs(struct bench_peer *peer, const struct bench_op *op,
                          const float *const *operands, struct wpk_diag *diag)
{
    for (int i = 0; i < bench_op_input_count(op); i++) {
        const struct bench_shape shape = bench_op_operand(op, i);
        peer->source[i] = operands[i];
        peer->source_bytes[i] = (size_t)bench_shape_elements(&shape) * sizeof(float);
        peer->input_count = i + 1;
        const wpk_err err = make_tensor(&shape, operands[i], &peer->inputs[i], diag);
        if (err != WPK_OK) {
            return err;
        }
        TRY(ov_infer_request_set_input_tensor_by_index(peer->request, (size_t)i, peer->inputs[i]));
    }
    return WPK_OK;
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    *out = peer;
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    char threads[16];
    snprintf(threads, sizeof(threads), "%d", what->threads);
    const ov_property_t properties[] = {
        {ov_property_key_hint_inference_precision, "f32"},
        {ov_property_key_inference_num_threads, threads},
        {ov_property_key_num_streams, "1"},
        {ov_property_key_hint_performance_mode, "LATENCY"},
        {ov_property_key_hint_enable_cpu_pinning, "NO"},
    };
    TRY(ov_core_create(&peer->core));
    TRY(ov_core_compile_model_from_file_props(peer->core, what->path, "CPU",
                                              sizeof(properties) / sizeof(properties[0]),
                                              properties, &peer->model));
    TRY(ov_compiled_model_create_infer_request(peer->model, &peer->request));
    const struct bench_shape output = bench_op_output(&what->op);
    peer->result_bytes = (size_t)bench_shape_elements(&output) * sizeof(float);
    peer->result = aligned_alloc(64, (peer->result_bytes + 63) / 64 * 64);
    if (peer->result == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = set_inputs(peer, &what->op, operands, diag);
    if (err == WPK_OK) {
        err = make_tensor(&output, peer->result, &peer->output, diag);
    }
    if (err != WPK_OK) {
        return err;
    }
    TRY(ov_infer_request_set_output_tensor(peer->request, peer->output));
    return WPK_OK;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    return ov_infer_request_infer(peer->request) == OK ? WPK_OK : WPK_ESYSTEM;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    memcpy(out, peer->result, peer->result_bytes);
    return WPK_OK;
}

void bench_peer_touch(struct bench_peer *peer)
{
    for (int i = 0; i < peer->input_count; i++) {
        wpk_caches_read(peer->source[i], peer->source_bytes[i]);
    }
    wpk_caches_read(peer->result, peer->result_bytes);
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    (void)peer;
    return "";
}

void bench_peer_close(struct bench_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    ov_infer_request_free(peer->request);
    for (int i = 0; i < peer->input_count; i++) {
        ov_tensor_free(peer->inputs[i]);
    }
    ov_tensor_free(peer->output);
    ov_compiled_model_free(peer->model);
    ov_core_free(peer->core);
    free(peer->result);
    free(peer);
}
