/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the peers on oneDNN: memories, and primitives that are executed one after the
 * other. It implements bench/peer.h, and is compiled with each peer against the headers of its
 * series: memory descriptors are structs in series 2, handles in series 3. */
#ifndef WPK_BENCH_PEER_DNNL_H
#define WPK_BENCH_PEER_DNNL_H

#include "bench/peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
#endif

/* The most steps of a peer: layouts `fixed` add a reorder before and after the primitive. */
#define BENCH_DNNL_STEPS_MAX 3
#define BENCH_DNNL_ARGS_MAX 5
#define BENCH_DNNL_MEMORIES_MAX 10

struct bench_dnnl_step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[BENCH_DNNL_ARGS_MAX]; /* the first one is read */
    int arg_count;
};

struct bench_peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    struct bench_dnnl_step steps[BENCH_DNNL_STEPS_MAX];
    int step_count;
    dnnl_memory_t memories[BENCH_DNNL_MEMORIES_MAX]; /* owned; destroyed by close */
    int memory_count;
    dnnl_memory_t dst;        /* row-major */
    dnnl_memory_t dst_chosen; /* where the last step writes; may be dst */
    size_t dst_bytes;
    char choice[BENCH_TEXT_MAX];
};

/* oneDNN reports a status only, so the message names the call that failed. */
#define BENCH_DNNL_TRY(call)                                                                       \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        if (status_ != dnnl_success) {                                                             \
            wpk_diag_set(diag, "oneDNN: status %d from %s", (int)status_, #call);                  \
            return status_ == dnnl_unimplemented ? WPK_EUNSUPPORTED : WPK_ESYSTEM;                 \
        }                                                                                          \
    } while (0)

/* ---- functions that a peer implements */

extern const char bench_dnnl_suffix[]; /* appended to the version, such as ", Winograd" */

/* Make peer->desc.   errors  WPK_EUNSUPPORTED  oneDNN, or this peer, lacks the operator */
wpk_err bench_dnnl_describe(struct bench_peer *peer, const struct bench_case *what,
                            struct wpk_diag *diag);
/* Make the steps of peer->desc, dst and dst_chosen, with constants in the formats of peer->desc. */
wpk_err bench_dnnl_build(struct bench_peer *peer, const struct bench_case *what,
                         const float *const *operands, struct wpk_diag *diag);

/* ---- functions for peers */

/* Make memory that the peer owns, filled with `values`, or zeroed if `values` is NULL. */
wpk_err bench_dnnl_memory(struct bench_peer *peer, const_dnnl_memory_desc_t desc,
                          const float *values, dnnl_memory_t *out, struct wpk_diag *diag);
/* Find memory in the format that peer->desc asks for argument `arg`: `memory` itself if its format
 * fits, else new zeroed memory that the peer owns. The content of `memory` is not copied. */
wpk_err bench_dnnl_in_format(struct bench_peer *peer, dnnl_memory_t memory, int arg,
                             dnnl_memory_t *out, struct wpk_diag *diag);
/* Make a step that copies `from` into the format of `to`. bench_dnnl_reorder copies at once. */
wpk_err bench_dnnl_make_reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                                struct bench_dnnl_step *out, struct wpk_diag *diag);
wpk_err bench_dnnl_reorder(struct bench_peer *peer, dnnl_memory_t from, dnnl_memory_t to,
                           struct wpk_diag *diag);
void bench_dnnl_add_arg(struct bench_dnnl_step *step, int arg, dnnl_memory_t memory);

#endif
