/* SPDX-License-Identifier: Apache-2.0 */
/* What the peers on oneDNN share: memories, primitives that are executed one after the other, and
 * bench/peer.h itself. It is compiled with each peer, against the headers of its series: 2, where
 * descriptors of memory are structs, or 3, where they are handles. */
#ifndef WPK_BENCH_PEER_DNNL_H
#define WPK_BENCH_PEER_DNNL_H

#include "bench/peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;
#endif

/* Executed in this order; `fixed` adds reorders around the primitive. */
#define BENCH_DNNL_STEPS_MAX 3
#define BENCH_DNNL_ARGS_MAX 5
#define BENCH_DNNL_MEMORIES_MAX 10

struct bench_dnnl_step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[BENCH_DNNL_ARGS_MAX]; /* the first is what it reads */
    int arg_count;
};

struct bench_peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    struct bench_dnnl_step steps[BENCH_DNNL_STEPS_MAX];
    int step_count;
    dnnl_memory_t memories[BENCH_DNNL_MEMORIES_MAX]; /* all that close has to destroy */
    int memory_count;
    dnnl_memory_t dst;        /* row-major */
    dnnl_memory_t dst_chosen; /* where the last step writes; may be dst */
    size_t dst_bytes;
    char choice[BENCH_TEXT_MAX];
};

/* oneDNN reports by status only; the expression itself says best what failed. */
#define BENCH_DNNL_TRY(call)                                                                       \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        if (status_ != dnnl_success) {                                                             \
            wpk_diag_set(diag, "oneDNN: status %d from %s", (int)status_, #call);                  \
            return status_ == dnnl_unimplemented ? WPK_EUNSUPPORTED : WPK_ESYSTEM;                 \
        }                                                                                          \
    } while (0)

/* ---- what a peer implements */

extern const char bench_dnnl_suffix[]; /* of its version, such as ", Winograd" */

/* Make peer->desc.   errors  WPK_EUNSUPPORTED  oneDNN, or this peer, lacks the operator */
WPK_MUST_CHECK wpk_err bench_dnnl_describe(struct bench_peer *peer, const struct bench_case *what,
                                           struct wpk_diag *diag);
/* Make the steps of peer->desc, dst and dst_chosen, with the constants in its formats. */
WPK_MUST_CHECK wpk_err bench_dnnl_build(struct bench_peer *peer, const struct bench_case *what,
                                        const float *const *operands, struct wpk_diag *diag);

/* ---- what it is given */

/* Memory of the peer's, zeroed, or filled with `values` unless they are NULL. */
WPK_MUST_CHECK wpk_err bench_dnnl_memory(struct bench_peer *peer, const_dnnl_memory_desc_t desc,
                                         const float *values, dnnl_memory_t *out,
                                         struct wpk_diag *diag);
/* `memory` in the format that peer->desc asks for its argument: itself, else a new one. */
WPK_MUST_CHECK wpk_err bench_dnnl_in_format(struct bench_peer *peer, dnnl_memory_t memory, int arg,
                                            dnnl_memory_t *out, struct wpk_diag *diag);
/* A step that brings one memory into the format of another; the same at once. */
WPK_MUST_CHECK wpk_err bench_dnnl_make_reorder(struct bench_peer *peer, dnnl_memory_t from,
                                               dnnl_memory_t to, struct bench_dnnl_step *out,
                                               struct wpk_diag *diag);
WPK_MUST_CHECK wpk_err bench_dnnl_reorder(struct bench_peer *peer, dnnl_memory_t from,
                                          dnnl_memory_t to, struct wpk_diag *diag);
void bench_dnnl_add_arg(struct bench_dnnl_step *step, int arg, dnnl_memory_t memory);

#endif
