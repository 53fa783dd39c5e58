/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of a peer. A sample is the time of `batch` calls in a row divided by their number.
 * The batch is 1 unless a call is shorter than 20 us, because reading the clock would then show.
 * Under cold conditions the batch is always 1. */
#include "bench/peer_serve.h"

#include "bench/peer.h"
#include "bench/stats.h"
#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES_MAX 4096
#define SAMPLES_MIN 5
#define CHECK_POINTS 512
#define BATCH_MAX 4096

static const uint64_t sample_ns_min = 20 * WPK_NS_PER_US;
static const uint64_t warm_ns = 5 * WPK_NS_PER_MS; /* caches, frequency, threads that slept */

struct session {
    struct bench_peer *peer;
    float *operands[BENCH_OPERANDS_MAX]; /* owned */
    uint64_t batch;
    double samples[SAMPLES_MAX];
};

static float *new_floats(int64_t count)
{
    const size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64;
    return aligned_alloc(64, bytes);
}

static void session_close(struct session *session)
{
    bench_peer_close(session->peer);
    session->peer = NULL;
    for (int i = 0; i < BENCH_OPERANDS_MAX; i++) {
        free(session->operands[i]);
        session->operands[i] = NULL;
    }
}

static wpk_err check_result(struct session *session, const struct bench_op *op,
                            struct bench_reply *reply)
{
    const struct bench_shape shape = bench_op_output(op);
    float *result = new_floats(bench_shape_elements(&shape));
    if (result == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = bench_peer_output(session->peer, result);
    if (err == WPK_OK) {
        const float *const *operands = (const float *const *)session->operands;
        reply->error_ratio = bench_op_check(op, operands, result, CHECK_POINTS);
        reply->accuracy = bench_accuracy_measure(op, operands, result);
    }
    free(result);
    return err == WPK_EUNSUPPORTED ? WPK_OK : err;
}

static wpk_err session_open(struct session *session, const struct bench_case *what,
                            struct bench_reply *reply, struct wpk_diag *diag)
{
    for (int i = 0; i < bench_op_operand_count(&what->op); i++) {
        const struct bench_shape shape = bench_op_operand(&what->op, i);
        session->operands[i] = new_floats(bench_shape_elements(&shape));
        if (session->operands[i] == NULL) {
            return WPK_ENOMEM;
        }
        bench_op_fill(&what->op, i, session->operands[i]);
    }
    wpk_err err =
        bench_peer_open(what, (const float *const *)session->operands, &session->peer, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = bench_peer_run(session->peer);
    if (err != WPK_OK) {
        return err;
    }
    snprintf(reply->text, sizeof(reply->text), "%s", bench_peer_choice(session->peer));
    session->batch = 0;
    return check_result(session, &what->op, reply);
}

static wpk_err run_batch(struct session *session, uint64_t batch, uint64_t *ns)
{
    const uint64_t start = wpk_clock_ns();
    for (uint64_t i = 0; i < batch; i++) {
        const wpk_err err = bench_peer_run(session->peer);
        if (err != WPK_OK) {
            return err;
        }
    }
    *ns = wpk_clock_ns() - start;
    return WPK_OK;
}

/* One call, with caches as `conditions` wants them. */
static wpk_err run_cold(struct session *session, enum wpk_conditions conditions, uint64_t *ns)
{
    const wpk_err err = wpk_caches_stream();
    if (err != WPK_OK) {
        return err;
    }
    if (conditions == WPK_CONDITIONS_COLD_CONSTANTS) {
        bench_peer_touch(session->peer);
    }
    return run_batch(session, 1, ns);
}

/* Warm up; on the way find the batch, once for all rounds of an operator. */
static wpk_err warm_up(struct session *session)
{
    const uint64_t start = wpk_clock_ns();
    uint64_t batch = session->batch > 0 ? session->batch : 1;
    uint64_t ns = 0;
    do {
        const wpk_err err = run_batch(session, batch, &ns);
        if (err != WPK_OK) {
            return err;
        }
        if (session->batch == 0 && ns < sample_ns_min && batch < BATCH_MAX) {
            batch *= 2;
        }
    } while (wpk_clock_ns() - start < warm_ns);
    session->batch = batch;
    return WPK_OK;
}

static wpk_err run_round(struct session *session, const struct bench_request *request,
                         struct bench_reply *reply)
{
    const bool warm = request->conditions == WPK_CONDITIONS_WARM;
    wpk_err err = warm_up(session);
    const uint64_t start = wpk_clock_ns();
    int count = 0;
    while (err == WPK_OK && count < SAMPLES_MAX &&
           (count < SAMPLES_MIN || wpk_clock_ns() - start < request->budget_ns)) {
        const uint64_t batch = warm ? session->batch : 1;
        uint64_t ns = 0;
        err = warm ? run_batch(session, batch, &ns) : run_cold(session, request->conditions, &ns);
        session->samples[count++] = (double)ns / (double)batch;
    }
    if (err == WPK_OK) {
        bench_stats_sort(session->samples, count);
        reply->samples = count;
        reply->ns_median = bench_stats_median(session->samples, count);
        reply->ns_min = session->samples[0];
    }
    return err;
}

static void answer(struct session *session, const struct bench_request *request,
                   struct bench_reply *reply)
{
    struct wpk_diag diag = {0};
    switch (request->command) {
    case BENCH_HELLO:
        bench_peer_version(reply->text, BENCH_TEXT_MAX);
        return;
    case BENCH_OPEN:
        session_close(session);
        reply->err = session_open(session, &request->what, reply, &diag);
        if (reply->err != WPK_OK) {
            session_close(session);
        }
        break;
    case BENCH_ROUND:
        reply->err = session->peer != NULL ? run_round(session, request, reply) : WPK_EINVAL;
        break;
    case BENCH_CLOSE:
        session_close(session);
        return;
    }
    if (reply->err != WPK_OK) {
        snprintf(reply->text, sizeof(reply->text), "%s",
                 diag.text[0] != '\0' ? diag.text : wpk_err_text(reply->err));
    }
}

static ssize_t read_retrying(void *out, size_t size)
{
    ssize_t got = 0;
    do {
        got = read(BENCH_CHILD_FD, out, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

void bench_peer_serve(void)
{
    static struct session session;
    static struct bench_request request;
    /* SOCK_SEQPACKET: a message arrives whole, and 0 bytes mean that the driver is gone. */
    while (read_retrying(&request, sizeof(request)) == (ssize_t)sizeof(request)) {
        struct bench_reply reply = {0};
        answer(&session, &request, &reply);
        if (write(BENCH_CHILD_FD, &reply, sizeof(reply)) != (ssize_t)sizeof(reply)) {
            return;
        }
    }
}
