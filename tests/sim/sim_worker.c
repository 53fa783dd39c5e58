/* SPDX-License-Identifier: Apache-2.0 */
/* The workers: they speak the protocol as wpk-worker does, and make times up. */
#include "tests/sim/sim.h"

#include "common/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WANTED 6         /* pieces of work at a time */
#define PATIENCE_MS 2000 /* then a question or its answer is lost */
#define DONE_CHANCE 0.4  /* of a piece of work, each turn */
#define VENDOR_NS 3e5

/* ---- what comes of a candidate: a function of its text */

/* Negative: it fails. */
static double time_of(const char *candidate)
{
    uint64_t hash[4];
    wpk_crypto_sha256(candidate, strlen(candidate), (uint8_t *)hash);
    return hash[0] % 10 == 0 ? -1 : 1e5 + (double)(hash[1] % 1000000);
}

/* The artifact of a candidate: its text stands for the code. */
static void artifact_hash(const char *candidate, char out[WPK_SHA256_HEX_SIZE])
{
    wpk_crypto_sha256_hex(candidate, strlen(candidate), out);
}

uint64_t wpk_sim_final_ns(const char *provider, const char *artifact)
{
    char text[WPK_PROVIDER_NAME_MAX + WPK_ID_MAX];
    uint64_t hash[4];
    snprintf(text, sizeof text, "%s%s", provider, artifact);
    wpk_crypto_sha256(text, strlen(text), (uint8_t *)hash);
    return 100000 + hash[0] % 1000000;
}

bool wpk_sim_verifies(const char *candidate)
{
    uint64_t hash[4];
    wpk_crypto_sha256(candidate, strlen(candidate), (uint8_t *)hash);
    return hash[2] % 3 != 0;
}

static struct wpk_timing timing_of(uint64_t ns)
{
    struct wpk_timing timing = {.median_ns = ns,
                                .min_ns = ns - 10,
                                .mad_ns = 5,
                                .sample_count = 1,
                                .repeat_count = 1,
                                .sample_ns = {ns}};
    return timing;
}

static void fill_result(const struct wpk_sim_holding *held, struct wpk_result *result)
{
    const struct wpk_work *work = &held->work;
    memset(result, 0, sizeof *result);
    result->id = work->id;
    result->attempt = work->attempt;
    result->failure = "";
    if (work->id.kind == WPK_WORK_FINAL) {
        result->timing_count = work->contender_count;
        for (uint32_t c = 0; c < work->contender_count; c++) {
            result->timing[c] = timing_of(held->final_ns[c]);
        }
        return;
    }
    double ns = work->id.kind == WPK_WORK_VENDOR ? VENDOR_NS : time_of(held->candidate);
    result->record.outcome = ns > 0 ? WPK_OUTCOME_OK : WPK_OUTCOME_BUILD_ERROR;
    if (work->id.kind == WPK_WORK_VERIFY && !wpk_sim_verifies(held->candidate)) {
        result->record.outcome = WPK_OUTCOME_WRONG_RESULT;
        return;
    }
    if (ns > 0) {
        result->record.timing = timing_of((uint64_t)ns);
        if (work->id.kind != WPK_WORK_VENDOR) {
            artifact_hash(held->candidate, result->record.artifact_sha256);
        }
    }
}

/* ---- asking */

static void ask(struct wpk_sim *sim, int index, struct wpk_message *message)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    struct wpk_sim_frame frame = {.worker = index, .peer = worker->peer};
    struct wpk_buf data = {0};
    message->session = worker->session;
    assert_int_equal(wpk_message_encode(message, &data), WPK_OK);
    worker->awaits = true;
    worker->asked = message->kind;
    worker->asked_ns = sim->clock.now_ns;
    wpk_sim_send(sim, &frame, data.data, data.size);
    wpk_buf_fini(&data);
}

static void say_hello(struct wpk_sim *sim, int index)
{
    struct wpk_hello hello = {
        .device = {.kind = "cpu",
                   .model = "sim",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 2,
                   .l1_bytes = 1,
                   .l2_bytes = 1,
                   .l3_bytes = 1,
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .instance = "sim/cpu0"},
        .environment = "sim=1",
        .providers = {{.name = "halide-cpu"}, {.name = "vendor", .vendor = true}},
        .provider_count = 2,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(hello.name, sizeof hello.name, "w%d.%d", index, sim->workers[index].life);
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    ask(sim, index, &message);
}

static bool has_artifact(const struct wpk_sim_holding *held)
{
    return held->work.id.kind == WPK_WORK_TRIAL || held->work.id.kind == WPK_WORK_VERIFY;
}

/* Upload what has to be, then send every result that is ready; false when there is nothing. */
static bool send_results(struct wpk_sim *sim, int index)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    struct wpk_result results[WPK_SIM_HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS, .results = results};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        const struct wpk_sim_holding *held = &worker->held[i];
        if (held->done && has_artifact(held) && !held->uploaded) {
            struct wpk_message put = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                      .bytes = held->candidate,
                                      .bytes_size = strlen(held->candidate)};
            artifact_hash(held->candidate, put.sha256);
            worker->asked_index = i;
            ask(sim, index, &put);
            return true;
        }
        if (held->done) {
            fill_result(held, &results[message.result_count++]);
        }
    }
    if (message.result_count > 0) {
        ask(sim, index, &message);
    }
    return message.result_count > 0;
}

static void send_poll(struct wpk_sim *sim, int index)
{
    const struct wpk_sim_worker *worker = &sim->workers[index];
    wpk_work_id holding[WPK_SIM_HELD_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .want = WANTED - worker->held_count,
                                  .wait_ms = 500,
                                  .holding = holding,
                                  .holding_count = worker->held_count};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        holding[i] = worker->held[i].work.id;
    }
    ask(sim, index, &message);
}

void wpk_sim_worker_turn(struct wpk_sim *sim, int index)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    if (worker->awaits && sim->clock.now_ns > worker->asked_ns + PATIENCE_MS * WPK_NS_PER_MS) {
        worker->awaits = false; /* lost: ask again */
    }
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (!worker->held[i].done && wpk_rng_chance(&sim->rng, DONE_CHANCE)) {
            worker->held[i].done = true;
            sim->executions++;
        }
    }
    if (worker->awaits) {
        return;
    }
    if (worker->session == 0) {
        say_hello(sim, index);
    } else if (!send_results(sim, index) && worker->held_count < WANTED) {
        send_poll(sim, index);
    }
}

/* ---- taking answers */

static bool is_held(const struct wpk_sim_worker *worker, wpk_work_id id)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (wpk_work_id_equal(worker->held[i].work.id, id)) {
            return true;
        }
    }
    return false;
}

static void take_work(struct wpk_sim_worker *worker, const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->work_count && worker->held_count < WPK_SIM_HELD_MAX; i++) {
        const struct wpk_work *work = &message->work[i];
        if (is_held(worker, work->id)) {
            continue;
        }
        struct wpk_sim_holding *held = &worker->held[worker->held_count++];
        *held = (struct wpk_sim_holding){.work = *work, .candidate = strdup(work->candidate)};
        for (uint32_t c = 0; c < work->contender_count; c++) {
            held->final_ns[c] =
                wpk_sim_final_ns(work->contenders[c].provider, work->contenders[c].artifact_sha256);
        }
    }
}

/* The first `count` that are done were acknowledged. */
static void drop_done(struct wpk_sim_worker *worker, uint32_t count)
{
    uint32_t kept = 0;
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (worker->held[i].done && dropped < count) {
            dropped++;
            free(worker->held[i].candidate);
        } else {
            worker->held[kept++] = worker->held[i];
        }
    }
    worker->held_count = kept;
}

static bool is_answer(const struct wpk_sim_worker *worker, const struct wpk_message *message)
{
    switch (worker->asked) {
    case WPK_MESSAGE_HELLO:
        return message->kind == WPK_MESSAGE_WELCOME;
    case WPK_MESSAGE_POLL:
        return message->kind == WPK_MESSAGE_WORK;
    case WPK_MESSAGE_RESULTS:
        return message->kind == WPK_MESSAGE_ACK && message->ack_count > 0;
    case WPK_MESSAGE_PUT_ARTIFACT:
        return message->kind == WPK_MESSAGE_ACK && message->ack_count == 0;
    default:
        return false;
    }
}

static void take_answer(struct wpk_sim_worker *worker, const struct wpk_message *message)
{
    worker->awaits = false;
    switch (message->kind) {
    case WPK_MESSAGE_WELCOME:
        worker->session = message->session;
        break;
    case WPK_MESSAGE_WORK:
        take_work(worker, message);
        break;
    case WPK_MESSAGE_ERROR:
        assert_int_equal(message->err, WPK_ENOENT);
        worker->session = 0; /* wpkd has been away: introduce ourselves again */
        break;
    default:
        if (message->ack_count == 0) {
            worker->held[worker->asked_index].uploaded = true;
        } else {
            drop_done(worker, message->ack_count);
        }
    }
}

/* An answer belongs to the last question, if to any: the network library sees to that. */
void wpk_sim_worker_receive(struct wpk_sim *sim, const struct wpk_sim_frame *frame)
{
    struct wpk_sim_worker *worker = &sim->workers[frame->worker];
    struct wpk_message message = {0};
    if (frame->peer != worker->peer || !worker->awaits) {
        return;
    }
    assert_int_equal(wpk_message_decode(frame->data.data, frame->data.size, &message, NULL),
                     WPK_OK);
    if (message.kind == WPK_MESSAGE_ERROR || is_answer(worker, &message)) {
        take_answer(worker, &message);
    }
    wpk_message_fini(&message);
}

void wpk_sim_worker_die(struct wpk_sim *sim, int index)
{
    struct wpk_sim_worker *worker = &sim->workers[index];
    struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = {.peer = worker->peer}};
    for (uint32_t i = 0; i < worker->held_count; i++) {
        free(worker->held[i].candidate);
    }
    int life = worker->life + 1;
    memset(worker, 0, sizeof *worker);
    worker->life = life;
    worker->peer = ++sim->peer_last;
    wpk_performer_step(sim->performer, &gone);
    wpk_sim_commit(sim);
}
