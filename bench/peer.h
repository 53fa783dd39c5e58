/* SPDX-License-Identifier: Apache-2.0 */
/* One implementation under test, and how the bench talks to it.
 *
 * Each peer is a program of its own (peer_main.c, peer_serve.c and one peer_x.c), so OpenMP, TBB
 * and SYCL runtimes do not share a process. The driver stops every child with SIGSTOP except the
 * one whose turn it is, so the threads of one peer cannot spin while another is timed. Driver and
 * child send each other structs over a socket. Both come from one build, so the structs are sent as
 * they are. peer_python.c drives libraries that exist only as Python modules. */
#ifndef WPK_BENCH_PEER_H
#define WPK_BENCH_PEER_H

#include "bench/accuracy.h"
#include "common/machine.h"
#include "schema/record.h"

#include <stdint.h>

#define BENCH_PATH_MAX 1024
#define BENCH_TEXT_MAX 128
#define BENCH_CHILD_FD 3 /* the child's end of the socket */

/* `any` lets a peer choose how input and output lie in memory; conversions to that layout are not
 * timed. `fixed` is row-major NCHW on both sides; conversions are timed. */
enum bench_layouts {
    BENCH_LAYOUTS_ANY,
    BENCH_LAYOUTS_FIXED,
};

struct bench_case {
    struct bench_op op;
    enum bench_layouts layouts;
    int threads;
    char path[BENCH_PATH_MAX]; /* what the peer loads: an ONNX file, or a kernel of ours */
};

/* ---- functions that a peer_x.c implements */

struct bench_peer;

/* Write library and version, such as "oneDNN 3.13.0". */
void bench_peer_version(char *out, size_t size);

/* Make the operator ready to run: weights packed, memory touched.
 *
 *   shape   operands [operand count], row-major, valid until close
 *   owns    the caller sets *out to NULL before, and closes it, after a failure too
 *   errors  WPK_EUNSUPPORTED  the library lacks this operator or layout, and is no peer for it
 */
wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag);
/* Make one call and wait until it has finished. */
wpk_err bench_peer_run(struct bench_peer *peer);
/* Copy the result of the last run, in row-major order.
 *
 *   errors  WPK_EUNSUPPORTED  it has none, and is a bound instead of a peer */
wpk_err bench_peer_output(struct bench_peer *peer, float *out);
/* Read the input and output of the last run into the caches, from where the library keeps them. */
void bench_peer_touch(struct bench_peer *peer);
/* The implementation that the library chose, in its own words; "" if the library does not tell. */
const char *bench_peer_choice(const struct bench_peer *peer);
void bench_peer_close(struct bench_peer *peer);

/* ---- the wire */

enum bench_command {
    BENCH_HELLO, /* reply.text: version */
    BENCH_OPEN,  /* open, run once, check: reply.error_ratio, accuracy; reply.text: choice */
    BENCH_ROUND, /* time a round: reply.samples, ns_median, ns_min */
    BENCH_CLOSE,
};

struct bench_request {
    enum bench_command command;
    uint64_t budget_ns;             /* ROUND: how long to sample, warm-up not included */
    enum wpk_conditions conditions; /* ROUND */
    struct bench_case what;         /* OPEN */
};

struct bench_reply {
    wpk_err err;
    char text[WPK_DIAG_TEXT_MAX]; /* the diag's if err is not WPK_OK */
    double error_ratio;           /* bench_op_check; above BENCH_OP_WRONG is wrong */
    struct bench_accuracy accuracy;
    int samples;
    double ns_median;
    double ns_min;
};

#endif
