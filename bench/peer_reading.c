/* SPDX-License-Identifier: Apache-2.0 */
/* A bound, never a peer: reads the constants of an operator that computes little with each byte,
 * such as a matrix with a few vectors. No kernel can be faster than the bytes that it needs. */
#include "bench/peer.h"
#include "runtime/pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOPS_PER_BYTE_MAX 4
#define STREAMS 4
#define PART_LINES 2048 /* 128 KiB */

typedef uint32_t line_of __attribute__((vector_size(64)));

struct bench_peer {
    line_of *constants;    /* owned, [line_count]: all of them, one after the other */
    int64_t line_count;    /* a multiple of STREAMS */
    struct wpk_pool *pool; /* owned */
    _Atomic int64_t next;  /* line that no thread has taken */
    _Atomic uint32_t sum;  /* so that reading has a result */
};

void bench_peer_version(char *out, size_t size)
{
    snprintf(out, size, "a loop over the constants");
}

static int64_t operand_bytes(const struct bench_op *op, int operand)
{
    const struct bench_shape shape = bench_op_operand(op, operand);
    return bench_shape_elements(&shape) * (int64_t)sizeof(float);
}

wpk_err bench_peer_open(const struct bench_case *what, const float *const *operands,
                        struct bench_peer **out, struct wpk_diag *diag)
{
    const int64_t block = STREAMS * (int64_t)sizeof(line_of);
    int64_t bytes = 0;
    int64_t rest = 0;
    const int count = bench_op_operand_count(&what->op);
    for (int i = 0; i < count; i++) {
        *(i < bench_op_input_count(&what->op) ? &rest : &bytes) += operand_bytes(&what->op, i);
    }
    if (bench_op_flops(&what->op) > FLOPS_PER_BYTE_MAX * (double)bytes || rest > bytes / 16) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "constants are not its bound");
    }
    struct bench_peer *peer = calloc(1, sizeof(*peer));
    *out = peer;
    if (peer == NULL) {
        return WPK_ENOMEM;
    }
    peer->line_count = (bytes + block - 1) / block * STREAMS;
    peer->constants = aligned_alloc(64, (size_t)peer->line_count * sizeof(line_of));
    if (peer->constants == NULL) {
        return WPK_ENOMEM;
    }
    memset(peer->constants, 0, (size_t)peer->line_count * sizeof(line_of));
    char *to = (char *)peer->constants;
    for (int i = bench_op_input_count(&what->op); i < count; i++) {
        memcpy(to, operands[i], (size_t)operand_bytes(&what->op, i));
        to += operand_bytes(&what->op, i);
    }
    return wpk_pool_new(what->threads, NULL, &peer->pool);
}

__attribute__((target_clones("avx512f", "avx2", "default"))) static uint32_t
read_lines(const line_of *lines, int64_t count)
{
    line_of a = {0}, b = {0}, c = {0}, d = {0};
    const int64_t quarter = count / STREAMS;
    for (int64_t i = 0; i < quarter; i++) {
        a ^= lines[i];
        b ^= lines[i + quarter];
        c ^= lines[i + 2 * quarter];
        d ^= lines[i + 3 * quarter];
    }
    line_of all = a ^ b ^ c ^ d;
    uint32_t sum = 0;
    for (size_t k = 0; k < sizeof(line_of) / sizeof(uint32_t); k++) {
        sum ^= all[k];
    }
    return sum;
}

/* The pool's threads take one part after the other. */
static void read_parts(void *user, size_t thread)
{
    struct bench_peer *peer = user;
    (void)thread;
    uint32_t sum = 0;
    int64_t from;
    while ((from = atomic_fetch_add(&peer->next, PART_LINES)) < peer->line_count) {
        const int64_t rest = peer->line_count - from;
        sum ^= read_lines(peer->constants + from, rest < PART_LINES ? rest : PART_LINES);
    }
    atomic_fetch_xor(&peer->sum, sum);
}

wpk_err bench_peer_run(struct bench_peer *peer)
{
    atomic_store(&peer->next, 0);
    wpk_pool_run(peer->pool, read_parts, peer);
    return WPK_OK;
}

wpk_err bench_peer_output(struct bench_peer *peer, float *out)
{
    (void)peer;
    (void)out;
    return WPK_EUNSUPPORTED;
}

void bench_peer_touch(struct bench_peer *peer)
{
    (void)peer; /* input and output are no part of what it reads */
}

const char *bench_peer_choice(const struct bench_peer *peer)
{
    (void)peer;
    return "";
}

void bench_peer_close(struct bench_peer *peer)
{
    if (peer != NULL) {
        wpk_pool_free(peer->pool);
        free(peer->constants);
        free(peer);
    }
}
