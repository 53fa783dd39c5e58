/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "common/crypto.h"

#include <stdio.h>
#include <string.h>

#define POLL_MS 10000
#define ANCHOR_NS 1000 /* of every anchor */

/* ---- what it is told */

static void take_work(struct wpk_fixture_worker *worker, const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->work_count; i++) {
        const struct wpk_work *work = &message->work[i];
        uint32_t at = worker->held_count;
        WPK_ASSERT(at < WPK_LEASES_MAX);
        snprintf(worker->artifact[at], WPK_ID_MAX, "%s", work->artifact_sha256);
        snprintf(worker->anchor[at], WPK_ID_MAX, "%s", work->anchor_sha256);
        snprintf(worker->candidate, sizeof worker->candidate, "%s",
                 work->candidate != NULL ? work->candidate : "");
        worker->held[worker->held_count++] = *work;
    }
}

void wpk_fixture_tell(struct wpk_fixture *fixture, uint32_t peer, const struct wpk_message *message)
{
    struct wpk_fixture_worker *worker = fixture->workers;
    while (worker->peer != peer) {
        WPK_ASSERT(worker < &fixture->workers[fixture->worker_count - 1]);
        worker++;
    }
    bool welcome = message->kind == WPK_MESSAGE_WELCOME;
    const char *text = welcome ? message->server : message->text;
    worker->told = message->kind;
    worker->told_count++;
    worker->delayed_count += message->retry_ms > 0;
    worker->answered = true;
    worker->err = message->err;
    worker->retry_ms = message->retry_ms;
    snprintf(worker->text, sizeof worker->text, "%s", text != NULL ? text : "");
    if (welcome) {
        worker->session = message->session;
    } else if (message->kind == WPK_MESSAGE_WORK) {
        take_work(worker, message);
    }
    for (uint32_t i = 0; i < message->ack_count; i++) {
        worker->acks[i] = message->acks[i];
    }
}

/* ---- what it says */

int wpk_fixture_worker(struct wpk_fixture *fixture, const char *name)
{
    WPK_ASSERT(fixture->worker_count < WPK_FIXTURE_WORKERS_MAX);
    struct wpk_fixture_worker *worker = &fixture->workers[fixture->worker_count];
    worker->hello = (struct wpk_hello){
        .device = {.kind = "cpu",
                   .model = "model",
                   .cpu = {.flags = WPK_CPU_SET_AVX2,
                           .l1_bytes = 32768,
                           .l2_bytes = 1 << 20,
                           .l3_bytes = 1 << 25,
                           .vector_bytes = 32,
                           .vector_registers = 16},
                   .core_count = 2},
        .environment = "codegen=1;halide=21",
        .providers = {{.name = "halide-cpu"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(worker->hello.name, sizeof worker->hello.name, "%s", name);
    worker->peer = ++fixture->worker_count;
    return (int)worker->peer - 1;
}

void wpk_fixture_say(struct wpk_fixture *fixture, int worker, struct wpk_message *message)
{
    message->session = fixture->workers[worker].session;
    fixture->workers[worker].answered = false;
    fixture->say(fixture, worker, message);
}

int wpk_fixture_hello(struct wpk_fixture *fixture, int worker)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO,
                                  .hello = &fixture->workers[worker].hello};
    fixture->workers[worker].session = 0;
    wpk_fixture_say(fixture, worker, &message);
    WPK_ASSERT(fixture->workers[worker].answered);
    return (int)fixture->workers[worker].err;
}

int wpk_fixture_join(struct wpk_fixture *fixture, const char *name, unsigned roles)
{
    int worker = wpk_fixture_worker(fixture, name);
    fixture->workers[worker].hello.roles = roles;
    wpk_fixture_hello(fixture, worker);
    return worker;
}

const struct wpk_worker *wpk_fixture_find_worker(const struct wpk_fixture *fixture,
                                                 const char *name)
{
    return wpk_table_get_text(&fixture->c->workers_by_name, name);
}

uint32_t wpk_fixture_poll(struct wpk_fixture *fixture, int worker, uint32_t want)
{
    struct wpk_fixture_worker *self = &fixture->workers[worker];
    wpk_work_id ids[WPK_LEASES_MAX];
    uint32_t before = self->held_count;
    for (uint32_t i = 0; i < before; i++) {
        ids[i] = self->held[i].id;
    }
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .want = want,
                                  .wait_ms = want > 0 ? POLL_MS : 0,
                                  .holding = ids,
                                  .holding_count = before,
                                  .running = before > 0 ? self->held[0].lease : 0};
    wpk_fixture_say(fixture, worker, &message);
    return self->held_count - before;
}

void wpk_fixture_take(struct wpk_fixture *fixture, int worker)
{
    struct wpk_fixture_worker *self = &fixture->workers[worker];
    WPK_ASSERT(self->held_count == 0);
    wpk_fixture_poll(fixture, worker, 1);
    while (self->held_count > 0 && self->held[0].id.kind == WPK_WORK_PLAIN) {
        wpk_fixture_result(fixture, worker, WPK_OUTCOME_UNSUPPORTED, 0);
        wpk_fixture_poll(fixture, worker, 1);
    }
    WPK_ASSERT(self->held_count == 1);
}

/* ---- results */

enum wpk_ack wpk_fixture_send(struct wpk_fixture *fixture, int worker, struct wpk_result *result)
{
    struct wpk_fixture_worker *self = &fixture->workers[worker];
    WPK_ASSERT(self->held_count > 0);
    result->id = self->held[0].id;
    result->lease = self->held[0].lease;
    result->stage = self->held[0].stage;
    result->attempt = self->held[0].attempt;
    result->failure = "";
    self->held_count--;
    memmove(&self->held[0], &self->held[1], self->held_count * sizeof self->held[0]);
    memmove(&self->artifact[0], &self->artifact[1], self->held_count * sizeof self->artifact[0]);
    memmove(&self->anchor[0], &self->anchor[1], self->held_count * sizeof self->anchor[0]);
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .results = result, .result_count = 1};
    self->acks[0] = WPK_ACK_COUNT;
    wpk_fixture_say(fixture, worker, &message);
    return self->acks[0];
}

/* The artifact that the worker's result names: the one it was given to run, the one it has
 * uploaded, or a new name. */
static void name_artifact(const struct wpk_fixture_worker *self, char out[WPK_ID_MAX])
{
    const struct wpk_work *work = &self->held[0];
    if (work->stage == WPK_STAGE_RUN) {
        snprintf(out, WPK_ID_MAX, "%s", self->artifact[0]);
    } else if (self->made[0] != '\0') {
        snprintf(out, WPK_ID_MAX, "%s", self->made);
    } else if (work->id.kind != WPK_WORK_VENDOR) {
        snprintf(out, WPK_ID_MAX, "%s%llu.%u", work->stage == WPK_STAGE_BUILD ? "built" : "a",
                 (unsigned long long)work->id.search, work->id.index);
    }
}

enum wpk_ack wpk_fixture_result(struct wpk_fixture *fixture, int worker, enum wpk_outcome outcome,
                                uint64_t ns)
{
    const struct wpk_fixture_worker *self = &fixture->workers[worker];
    struct wpk_result result = {.record = {.outcome = outcome}};
    if (outcome == WPK_OUTCOME_OK) {
        name_artifact(self, result.record.artifact_sha256);
    }
    if (outcome == WPK_OUTCOME_OK && self->held[0].stage != WPK_STAGE_BUILD) {
        result.record.timing = (struct wpk_timing){.median_ns = ns,
                                                   .min_ns = ns,
                                                   .mad_ns = 1,
                                                   .sample_count = 1,
                                                   .repeat_count = 1,
                                                   .sample_ns = {ns}};
        if (self->anchor[0][0] != '\0') {
            result.record.anchor_ns = ANCHOR_NS;
            result.record.anchor_ratio = (double)ns / ANCHOR_NS;
            snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", self->anchor[0]);
        }
    }
    return wpk_fixture_send(fixture, worker, &result);
}

enum wpk_ack wpk_fixture_anchor_fails(struct wpk_fixture *fixture, int worker)
{
    struct wpk_result result = {
        .record = {.outcome = WPK_OUTCOME_ABANDONED, .anchor_failed = true, .log = "it crashed"}};
    snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", fixture->workers[worker].anchor[0]);
    return wpk_fixture_send(fixture, worker, &result);
}

enum wpk_ack wpk_fixture_final(struct wpk_fixture *fixture, int worker)
{
    const struct wpk_work *work = &fixture->workers[worker].held[0];
    struct wpk_result result = {.timing_count = work->contender_count};
    WPK_ASSERT(work->id.kind == WPK_WORK_FINAL);
    for (uint32_t i = 0; i < work->contender_count; i++) {
        result.timing[i] = (struct wpk_timing){.median_ns = 1000 + 100 * i,
                                               .min_ns = 1000,
                                               .mad_ns = 1,
                                               .sample_count = 1,
                                               .repeat_count = 1};
    }
    return wpk_fixture_send(fixture, worker, &result);
}

bool wpk_fixture_upload(struct wpk_fixture *fixture, int worker, wpk_work_id work,
                        const char *bytes)
{
    struct wpk_fixture_worker *self = &fixture->workers[worker];
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .made_for = work,
                                  .bytes = bytes,
                                  .bytes_size = strlen(bytes)};
    wpk_crypto_sha256_hex(bytes, strlen(bytes), message.sha256);
    wpk_fixture_say(fixture, worker, &message);
    WPK_ASSERT(self->answered);
    if (self->told != WPK_MESSAGE_ACK) {
        return false;
    }
    memcpy(self->made, message.sha256, sizeof message.sha256);
    return true;
}
