/* SPDX-License-Identifier: Apache-2.0 */
/* A peer for the tests: computes relu, with the fault that the operator's name selects. */
#include "bench/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench_peer {
    const float *input;
    int64_t count;
    bool wrong;
};

void bench_peer_version(char *out, size_t size)
{
    snprintf(out, size, "fake 1.0");
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    const char *name = what->op.name;
    if (strcmp(name, "dies") == 0) {
        _Exit(1);
    }
    if (strcmp(name, "refuses") == 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "not today");
    }
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    peer->input = operands[0];
    peer->count = what->op.columns;
    peer->wrong = strcmp(name, "wrong") == 0;
    *out = peer;
    return WPK_OK;
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    (void)peer;
    const struct timespec millisecond = {.tv_nsec = 1000000};
    nanosleep(&millisecond, NULL);
    return WPK_OK;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    for (int64_t i = 0; i < peer->count; i++) {
        out[i] = peer->input[i] > 0 ? peer->input[i] : 0;
    }
    out[peer->count - 1] += peer->wrong ? 0.01F : 0;
    return WPK_OK;
}

void bench_peer_touch(struct bench_peer *peer)
{
    wpk_caches_read(peer->input, (size_t)peer->count * sizeof(float));
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    return peer->wrong ? "guessing" : "thinking";
}

void bench_peer_close(struct bench_peer *peer)
{
    free(peer);
}
