/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/rig.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE 30000 /* turns, of a millisecond where there are threads */

static void on_reply(void *user, const struct wpk_net_address *address, const void *frame,
                     size_t size)
{
    struct wpk_rig *rig = user;
    struct wpk_message message = {0};
    rig->reply_peer = address->peer;
    wpk_buf_reset(&rig->reply);
    wpk_buf_append(&rig->reply, frame, size);
    WPK_ASSERT(wpk_message_decode(frame, size, &message, NULL) == WPK_OK);
    if (message.kind == WPK_MESSAGE_ERROR && message.err == WPK_ENOSPC && message.retry_ms > 0) {
        rig->refused[rig->refused_count++ % WPK_RIG_REFUSED_MAX] = address->peer;
    }
    wpk_message_fini(&message);
}

static void on_respond(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    struct wpk_rig *rig = user;
    (void)request;
    rig->status = answer->status;
    bool may_pass = answer->status == 429 || answer->status == 503 || answer->status == 507;
    WPK_ASSERT(!may_pass || answer->retry_after_s > 0); /* as openapi.yaml promises */
    wpk_buf_reset(&rig->body);
    wpk_buf_append_text(&rig->body, wpk_buf_text(&answer->body));
}

static void on_wake(void *user)
{
    (void)user; /* whoever has threads polls */
}

static void on_restoring(void *user)
{
    struct wpk_rig *rig = user;
    rig->slice_count++;
}

void wpk_rig_turn(struct wpk_rig *rig)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    wpk_performer_poll(rig->performer);
    wpk_err err = wpk_performer_commit(rig->performer, NULL);
    WPK_ASSERT(err == wpk_performer_degraded(rig->performer, NULL));
    if (rig->threads > 0) {
        nanosleep(&moment, NULL);
    }
}

static void on_rebuilt(void *user)
{
    ((struct wpk_rig *)user)->rebuilt++;
}

int wpk_rig_set_up(void **state)
{
    struct wpk_rig *rig = calloc(1, sizeof *rig);
    rig->threads = *state != NULL ? *(const int *)*state : 0;
    rig->time = rig->threads > 0 ? wpk_clock_system() : &rig->clock.clock;
    snprintf(rig->directory, sizeof rig->directory, "/tmp/wpk-performer-XXXXXX");
    WPK_ASSERT(mkdtemp(rig->directory) != NULL);
    wpk_clock_fake_init(&rig->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    WPK_ASSERT(wpk_store_open(rig->directory, rig->time, &rig->store, NULL) == WPK_OK);
    *state = rig;
    return 0;
}

int wpk_rig_tear_down(void **state)
{
    struct wpk_rig *rig = *state;
    wpk_performer_free(rig->performer);
    wpk_store_close(rig->store);
    wpk_auth_free(rig->auth);
    wpk_buf_fini(&rig->reply);
    wpk_buf_fini(&rig->body);
    wpk_err err = wpk_fs_remove_tree(rig->directory, NULL);
    free(rig);
    return err == WPK_OK ? 0 : -1;
}

void wpk_rig_start(struct wpk_rig *rig)
{
    struct wpk_diag diag = {0};
    struct wpk_performer_options options = {
        .store = rig->store,
        .data_dir = rig->directory,
        .auth = rig->auth,
        .clock = rig->time,
        .artifact_bytes_max = rig->artifact_bytes_max,
        .out = {.reply = on_reply, .respond = on_respond, .user = rig},
        .answer = wpk_api_answer_effect,
        .threads = rig->threads,
        .wake = on_wake,
        .restoring = on_restoring,
        .restoring_user = rig,
        .rebuilt = on_rebuilt,
        .rebuilt_user = rig,
    };
    WPK_ASSERT(wpk_performer_new(&options, &rig->performer, &diag) == WPK_OK);
}

void wpk_rig_begin_request(struct wpk_rig *rig, const char *method, const char *path,
                           const char *body)
{
    struct wpk_http_request request = {.id = 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = method,
                                       .path = path,
                                       .body = body,
                                       .body_size = strlen(body),
                                       .content_type = "application/json",
                                       .idempotency_key = rig->key};
    rig->status = 0;
    wpk_api_request(rig->performer, &request, ++rig->random);
}

void wpk_rig_request(struct wpk_rig *rig, const char *method, const char *path, const char *body)
{
    struct wpk_diag diag = {0};
    wpk_rig_begin_request(rig, method, path, body);
    WPK_ASSERT(wpk_performer_commit(rig->performer, &diag) == WPK_OK);
    for (int i = 0; rig->status == 0 && i < PATIENCE; i++) {
        wpk_rig_turn(rig);
    }
}

/* Send it; a poll may wait for its answer. */
void wpk_rig_put(struct wpk_rig *rig, const struct wpk_message *message)
{
    struct wpk_diag diag = {0};
    struct wpk_net_address address = {.peer = 1 + rig->peer};
    struct wpk_buf frame = {0};
    WPK_ASSERT(wpk_message_encode(message, &frame) == WPK_OK);
    wpk_performer_frame(rig->performer, &address, frame.data, frame.size, 99);
    WPK_ASSERT(wpk_performer_commit(rig->performer, &diag) == WPK_OK);
    wpk_buf_fini(&frame);
}

/* Send it, and read the answer into `back`. */
void wpk_rig_ask(struct wpk_rig *rig, const struct wpk_message *message, struct wpk_message *back)
{
    struct wpk_diag diag = {0};
    wpk_buf_reset(&rig->reply);
    wpk_rig_put(rig, message);
    for (int i = 0; rig->reply.size == 0 && i < PATIENCE; i++) {
        wpk_rig_turn(rig);
    }
    WPK_ASSERT(wpk_message_decode(rig->reply.data, rig->reply.size, back, &diag) == WPK_OK);
}

struct wpk_hello wpk_rig_worker(const char *name)
{
    struct wpk_hello hello = {
        .device = {.kind = "cpu",
                   .model = "none",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 1,
                   .l1_bytes = 32768,
                   .l2_bytes = 1 << 20,
                   .l3_bytes = 1 << 25,
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .instance = "none/cpu0"},
        .environment = "none=1",
        .providers = {{.name = "halide-cpu"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(hello.name, sizeof hello.name, "%s", name);
    return hello;
}

uint64_t wpk_rig_hello(struct wpk_rig *rig, const char *token, wpk_err want)
{
    struct wpk_hello hello = wpk_rig_worker(rig->name != NULL ? rig->name : "w");
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    struct wpk_message back = {0};
    hello.roles = rig->roles != 0 ? rig->roles : WPK_WORKER_ROLES_ALL;
    snprintf(hello.token, sizeof hello.token, "%s", token);
    wpk_rig_ask(rig, &message, &back);
    WPK_ASSERT(back.kind == (want == WPK_OK ? WPK_MESSAGE_WELCOME : WPK_MESSAGE_ERROR));
    WPK_ASSERT(back.err == want);
    if (want == WPK_OK) {
        WPK_ASSERT(strcmp(back.server, "wpkd " WPK_VERSION) == 0);
    }
    uint64_t session = back.session;
    wpk_message_fini(&back);
    return session;
}

void wpk_rig_poll(struct wpk_rig *rig, uint64_t session, struct wpk_message *back)
{
    wpk_rig_ask(rig, &(struct wpk_message){.kind = WPK_MESSAGE_POLL, .session = session, .want = 1},
                back);
    while (back->work_count > 0 && back->work[0].id.kind == WPK_WORK_PLAIN) {
        struct wpk_result result = {.id = back->work[0].id,
                                    .lease = back->work[0].lease,
                                    .stage = back->work[0].stage,
                                    .attempt = 1,
                                    .failure = "",
                                    .record = {.outcome = WPK_OUTCOME_UNSUPPORTED}};
        struct wpk_message message = {
            .kind = WPK_MESSAGE_RESULTS, .session = session, .results = &result, .result_count = 1};
        wpk_message_fini(back);
        wpk_rig_ask(rig, &message, back);
        wpk_message_fini(back);
        wpk_rig_ask(rig,
                    &(struct wpk_message){.kind = WPK_MESSAGE_POLL, .session = session, .want = 1},
                    back);
    }
}

/* Poll for one piece of work, whose candidate is copied. */
wpk_work_id wpk_rig_take_work(struct wpk_rig *rig, uint64_t session, char candidate[256])
{
    struct wpk_message back = {0};
    wpk_rig_poll(rig, session, &back);
    WPK_ASSERT(back.kind == WPK_MESSAGE_WORK);
    WPK_ASSERT(back.work_count == 1);
    wpk_work_id id = back.work[0].id;
    WPK_ASSERT(id.kind == WPK_WORK_TRIAL);
    snprintf(candidate, 256, "%s", back.work[0].candidate);
    snprintf(rig->anchor, sizeof rig->anchor, "%s", back.work[0].anchor_sha256);
    wpk_message_fini(&back);
    return id;
}

enum wpk_ack wpk_rig_result(struct wpk_rig *rig, uint64_t session, wpk_work_id id, bool censored,
                            const char *artifact)
{
    struct wpk_result result = {
        .id = id,
        .attempt = 1,
        .failure = "",
        .record = {.timing = {.median_ns = 5,
                              .min_ns = 5,
                              .sample_count = 1,
                              .repeat_count = 1,
                              .censored = censored,
                              .sample_ns = {5}}},
    };
    snprintf(result.record.artifact_sha256, WPK_ID_MAX, "%s", artifact);
    if (rig->anchor[0] != '\0') {
        result.record.anchor_ns = 5;
        result.record.anchor_ratio = 1;
        memcpy(result.record.anchor_sha256, rig->anchor, WPK_ID_MAX);
    }
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .session = session, .results = &result, .result_count = 1};
    struct wpk_message back = {0};
    wpk_rig_ask(rig, &message, &back);
    WPK_ASSERT(back.ack_count == 1);
    enum wpk_ack ack = back.acks[0];
    wpk_message_fini(&back);
    return ack;
}

void wpk_rig_artifact(struct wpk_rig *rig, uint64_t session, wpk_work_id work, const char *bytes,
                      struct wpk_message *back)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .made_for = work,
                                  .bytes = (void *)(uintptr_t)bytes,
                                  .bytes_size = strlen(bytes)};
    wpk_crypto_sha256_hex(bytes, strlen(bytes), message.sha256);
    wpk_rig_ask(rig, &message, back);
}

void wpk_rig_tick(struct wpk_rig *rig, uint64_t seconds)
{
    struct wpk_event event = {.kind = WPK_EVENT_TICK};
    wpk_clock_fake_advance(&rig->clock, seconds * WPK_NS_PER_S);
    wpk_performer_step(rig->performer, &event);
    WPK_ASSERT(wpk_performer_commit(rig->performer, NULL) == WPK_OK);
    wpk_performer_poll(rig->performer);
}

uint32_t wpk_rig_worker_count(const struct wpk_rig *rig)
{
    return wpk_coordinator_worker_count(wpk_performer_coordinator(rig->performer));
}
