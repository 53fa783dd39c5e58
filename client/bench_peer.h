/* SPDX-License-Identifier: Apache-2.0 */
/* Another engine, which runs an ONNX model in a process of its own (bench_peer.py). */
#ifndef WPK_CLIENT_BENCH_PEER_H
#define WPK_CLIENT_BENCH_PEER_H

#include "common/buf.h"

#include <stdint.h>
#include <sys/types.h>

#define WPK_BENCH_PEERS "onnxruntime, openvino, mnn, ncnn, onnxruntime-noamx, openvino-noamx"

/* = {0} is no process. */
struct wpk_bench_peer {
    char name[32];
    char version[64];
    pid_t pid;
    int socket;
};

bool wpk_bench_peer_is_known(const char *name);

/* Start the engine and wait until it has run once. It reads in0.npy, ... of `folder` and writes
 * out0.npy, ...
 *
 *   shape   python: a program's name or path; name: one that is known
 *   owns    caller calls wpk_bench_peer_stop, after failures too
 *   errors  WPK_EINVAL it refuses the model; WPK_ENOENT no such program;
 *           WPK_ESYSTEM */
wpk_err wpk_bench_peer_start(struct wpk_bench_peer *peer, const char *python, const char *name,
                             const char *model, const char *folder, int threads, double round_s,
                             struct wpk_diag *diag);

/* The median of its runs for `round_s`.   unit  ns   errors  WPK_ECLOSED it has ended */
wpk_err wpk_bench_peer_time(struct wpk_bench_peer *peer, uint64_t *ns, struct wpk_diag *diag);

void wpk_bench_peer_stop(struct wpk_bench_peer *peer);

#endif
