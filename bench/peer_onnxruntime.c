/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a peer, through its C API, with all graph optimisations.
 *
 * The wheel has the library without its header. The API is a table of functions that grows only at
 * its end, which is its promise of binary compatibility. So the few slots needed here are named by
 * their number. A wrong number would crash the peer or fail the check of the result. */
#include "bench/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ort_slot {
    ORT_GET_ERROR_MESSAGE = 2,
    ORT_CREATE_ENV = 3,
    ORT_CREATE_SESSION = 7,
    ORT_RUN = 9,
    ORT_CREATE_SESSION_OPTIONS = 10,
    ORT_SET_OPTIMIZATION_LEVEL = 23,
    ORT_SET_INTRA_OP_THREADS = 24,
    ORT_SET_INTER_OP_THREADS = 25,
    ORT_CREATE_TENSOR_WITH_DATA = 49,
    ORT_CREATE_CPU_MEMORY_INFO = 69,
    ORT_RELEASE_ENV = 92,
    ORT_RELEASE_STATUS = 93,
    ORT_RELEASE_MEMORY_INFO = 94,
    ORT_RELEASE_SESSION = 95,
    ORT_RELEASE_VALUE = 96,
    ORT_RELEASE_SESSION_OPTIONS = 100,
};

enum {
    ORT_API_VERSION_USED = 17, /* every slot above is older */
    ORT_LOG_ERROR = 3,
    ORT_OPTIMIZE_ALL = 99,
    ORT_ARENA_ALLOCATOR = 1,
    ORT_MEMORY_DEFAULT = 0,
    ORT_FLOAT = 1,
};

struct ort_status;
typedef void (*ort_function)(void);
typedef struct ort_status *(*ort_make)(void *out);
typedef void (*ort_release)(void *object);

struct ort_base {
    const ort_function *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};
const struct ort_base *OrtGetApiBase(void);

struct bench_peer {
    const ort_function *api;
    void *env;
    void *session;
    void *memory_info;
    int input_count;
    void *inputs[BENCH_OPERANDS_MAX]; /* tensors over the buffers below and in the driver */
    void *output;
    const float *source[BENCH_OPERANDS_MAX]; /* the input tensors' memory */
    size_t source_bytes[BENCH_OPERANDS_MAX];
    float *result; /* owned */
    size_t result_bytes;
};

static const char *const input_names[BENCH_OPERANDS_MAX] = {"X", "X1", "X2", "X3"};
static const char *const output_name = "Y";

/* The slot of `api` as a function of the given type. */
#define ORT(api, slot, type) ((type)(api)[slot])

void bench_peer_version(char *out, size_t size)
{
    snprintf(out, size, "ONNX Runtime %s", OrtGetApiBase()->get_version());
}

static wpk_err take_status(const ort_function *api, struct ort_status *status,
                           struct wpk_diag *diag)
{
    if (status == NULL) {
        return WPK_OK;
    }
    typedef const char *(*get_message)(const struct ort_status *);
    wpk_diag_set(diag, "ONNX Runtime: %s", ORT(api, ORT_GET_ERROR_MESSAGE, get_message)(status));
    ORT(api, ORT_RELEASE_STATUS, ort_release)(status);
    return WPK_ESYSTEM;
}

static wpk_err make_session(struct bench_peer *peer, const struct bench_case *what,
                            struct wpk_diag *diag)
{
    typedef struct ort_status *(*set_int)(void *options, int value);
    typedef struct ort_status *(*create_env)(int level, const char *id, void **out);
    typedef struct ort_status *(*create_session)(const void *env, const char *path,
                                                 const void *options, void **out);
    const ort_function *api = peer->api;
    void *options = NULL;
    wpk_err err = take_status(
        api, ORT(api, ORT_CREATE_ENV, create_env)(ORT_LOG_ERROR, "bench", &peer->env), diag);
    if (err == WPK_OK) {
        err = take_status(api, ORT(api, ORT_CREATE_SESSION_OPTIONS, ort_make)(&options), diag);
    }
    const struct {
        enum ort_slot slot;
        int value;
    } settings[] = {
        {ORT_SET_INTRA_OP_THREADS, what->threads},
        {ORT_SET_INTER_OP_THREADS, 1},
        {ORT_SET_OPTIMIZATION_LEVEL, ORT_OPTIMIZE_ALL},
    };
    for (size_t i = 0; err == WPK_OK && i < sizeof(settings) / sizeof(settings[0]); i++) {
        err =
            take_status(api, ORT(api, settings[i].slot, set_int)(options, settings[i].value), diag);
    }
    if (err == WPK_OK) {
        err = take_status(api,
                          ORT(api, ORT_CREATE_SESSION, create_session)(peer->env, what->path,
                                                                       options, &peer->session),
                          diag);
    }
    if (options != NULL) {
        ORT(api, ORT_RELEASE_SESSION_OPTIONS, ort_release)(options);
    }
    return err;
}

static wpk_err make_tensor(struct bench_peer *peer, const struct bench_shape *shape,
                           const float *data, void **out, struct wpk_diag *diag)
{
    typedef struct ort_status *(*create)(const void *info, void *data, size_t bytes,
                                         const int64_t *extent, size_t rank, int type, void **out);
    const size_t bytes = (size_t)bench_shape_elements(shape) * sizeof(float);
    /* The API takes no const pointer; inputs are not written. */
    return take_status(peer->api,
                       ORT(peer->api, ORT_CREATE_TENSOR_WITH_DATA,
                           create)(peer->memory_info, (void *)(uintptr_t)data, bytes, shape->extent,
                                   (size_t)shape->rank, ORT_FLOAT, out),
                       diag);
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    *out = peer;
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    typedef struct ort_status *(*create_info)(int allocator, int memory, void **out);
    peer->api = OrtGetApiBase()->get_api(ORT_API_VERSION_USED);
    if (peer->api == NULL) {
        return WPK_EUNSUPPORTED;
    }
    wpk_err err = make_session(peer, what, diag);
    if (err != WPK_OK) {
        return err;
    }
    const struct bench_shape output = bench_op_output(&what->op);
    peer->result_bytes = (size_t)bench_shape_elements(&output) * sizeof(float);
    peer->result = aligned_alloc(64, (peer->result_bytes + 63) / 64 * 64);
    if (peer->result == NULL) {
        return WPK_ENOMEM;
    }
    err = take_status(peer->api,
                      ORT(peer->api, ORT_CREATE_CPU_MEMORY_INFO,
                          create_info)(ORT_ARENA_ALLOCATOR, ORT_MEMORY_DEFAULT, &peer->memory_info),
                      diag);
    for (int i = 0; err == WPK_OK && i < bench_op_input_count(&what->op); i++) {
        const struct bench_shape input = bench_op_operand(&what->op, i);
        peer->source[i] = operands[i];
        peer->source_bytes[i] = (size_t)bench_shape_elements(&input) * sizeof(float);
        err = make_tensor(peer, &input, operands[i], &peer->inputs[i], diag);
        peer->input_count = i + 1;
    }
    if (err == WPK_OK) {
        err = make_tensor(peer, &output, peer->result, &peer->output, diag);
    }
    return err;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    typedef struct ort_status *(*run)(void *session, const void *options,
                                      const char *const *input_names, const void *const *inputs,
                                      size_t input_count, const char *const *output_names,
                                      size_t output_count, void **outputs);
    return take_status(peer->api,
                       ORT(peer->api, ORT_RUN,
                           run)(peer->session, NULL, input_names, (const void *const *)peer->inputs,
                                (size_t)peer->input_count, &output_name, 1, &peer->output),
                       NULL);
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
    for (int i = 0; i < peer->input_count; i++) {
        if (peer->inputs[i] != NULL) {
            ORT(peer->api, ORT_RELEASE_VALUE, ort_release)(peer->inputs[i]);
        }
    }
    const struct {
        void *object;
        enum ort_slot slot;
    } owned[] = {
        {peer->output, ORT_RELEASE_VALUE},
        {peer->memory_info, ORT_RELEASE_MEMORY_INFO},
        {peer->session, ORT_RELEASE_SESSION},
        {peer->env, ORT_RELEASE_ENV},
    };
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        if (owned[i].object != NULL) {
            ORT(peer->api, owned[i].slot, ort_release)(owned[i].object);
        }
    }
    free(peer->result);
    free(peer);
}
