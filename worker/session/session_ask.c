/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a session: choosing the next one on each slot, and sending it. */
#include "worker/session/session_state.h"

#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "target/codegen.h"

#include <stdio.h>
#include <string.h>

/* With one wpkd, and where another one may have taken over: of a poll, and until an answer. */
#define POLL_WAIT_MS(s) ((s)->has_several ? 2000 : 5000)
#define REQUEST_MS(s) ((s)->has_several ? UINT64_C(3000) : 15000)
#define ARTIFACT_MS 60000 /* on top of REQUEST_MS(s): 4 MiB over a slow line */
#define KEPT_MAX (WPK_HOLDING_MAX - WPK_WORK_MAX) /* held; with more, no work is asked for */

static wpk_err send_frame(struct wpk_worker_session *s, int slot, enum wpk_message_kind kind,
                          const struct wpk_buf *frame, wpk_err err, uint64_t timeout_ms)
{
    err = err == WPK_OK ? wpk_net_client_put(s->client, slot, frame->data, frame->size, timeout_ms)
                        : err;
    if (err == WPK_OK && slot == WPK_WORKER_SESSION_SLOT_OTHER) {
        s->asked = kind;
    }
    return err;
}

static wpk_err ask(struct wpk_worker_session *s, int slot, const struct wpk_message *message,
                   uint64_t timeout_ms)
{
    struct wpk_buf frame = {0};
    wpk_err err = wpk_message_encode(message, &frame);
    err = send_frame(s, slot, message->kind, &frame, err, timeout_ms);
    wpk_buf_fini(&frame);
    return err;
}

static wpk_err ask_hello(struct wpk_worker_session *s)
{
    struct wpk_hello hello = {.device = s->options->device,
                              .roles = s->options->roles,
                              .slots = s->options->slots,
                              .label_count = s->options->label_count,
                              .program = "wpk-worker " WPK_VERSION};
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    snprintf(hello.name, sizeof hello.name, "%s", s->options->name);
    const char *first = wpk_back_end_name(wpk_back_end_first(hello.device.kind));
    snprintf(hello.environment, sizeof hello.environment, "%s", s->options->environment);
    snprintf(hello.providers[0].name, WPK_PROVIDER_NAME_MAX, "%s", first);
    hello.provider_count = 1;
    hello.back_end_count = s->options->back_end_count;
    for (uint32_t i = 0; i < hello.back_end_count; i++) {
        hello.back_ends[i] = s->options->back_ends[i];
    }
    snprintf(hello.token, sizeof hello.token, "%s", s->options->token);
    for (uint32_t i = 0; i < hello.label_count; i++) {
        hello.labels[i] = s->options->labels[i];
    }
    for (int i = 0; i < s->options->vendor_count; i++) {
        struct wpk_message_provider *provider = &hello.providers[hello.provider_count++];
        snprintf(provider->name, sizeof provider->name, "%s", s->options->vendors[i]);
        provider->vendor = true;
    }
    return ask(s, WPK_WORKER_SESSION_SLOT_OTHER, &message, REQUEST_MS(s));
}

/* A poll for work; or, when there is enough, a sign of life that is answered at once. */
static wpk_err ask_poll(struct wpk_worker_session *s)
{
    wpk_work_id ids[WPK_HOLDING_MAX];
    uint32_t unfinished = wpk_holding_unfinished(s->holding);
    uint32_t want = s->capacity > unfinished ? s->capacity - unfinished : 0;
    if (s->drain_ns != 0 || !s->named || s->holding->blocked || s->holding->count >= KEPT_MAX) {
        want = 0;
    }
    if (want == 0 &&
        wpk_clock_ns() < s->polled_ns + WPK_WORKER_SESSION_HEARTBEAT_MS * WPK_NS_PER_MS) {
        return WPK_OK;
    }
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .session = s->session,
                                  .want = want,
                                  .wait_ms = want > 0 ? POLL_WAIT_MS(s) : 0,
                                  .running = wpk_holding_running(s->holding),
                                  .holding = ids,
                                  .holding_count = wpk_holding_ids(s->holding, false, ids)};
    s->polled_ns = wpk_clock_ns();
    return ask(s, WPK_WORKER_SESSION_SLOT_POLL, &message, POLL_WAIT_MS(s) + REQUEST_MS(s));
}

static wpk_err ask_upload(struct wpk_worker_session *s, const struct wpk_record *record,
                          wpk_work_id made_for)
{
    struct wpk_buf bytes = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_fs_read(record->artifact_path, WPK_ARTIFACT_SIZE_MAX, &bytes, &diag);
    snprintf(s->asked_sha256, sizeof s->asked_sha256, "%s", record->artifact_sha256);
    s->asked_for = made_for;
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "artifact_not_read", err, &diag);
        wpk_holding_not_sent(s->holding, made_for, err);
        err = WPK_OK;
    } else {
        struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                      .session = s->session,
                                      .made_for = made_for,
                                      .bytes = bytes.data,
                                      .bytes_size = bytes.size};
        memcpy(message.sha256, s->asked_sha256, sizeof message.sha256);
        err = ask(s, WPK_WORKER_SESSION_SLOT_OTHER, &message, REQUEST_MS(s) + ARTIFACT_MS);
    }
    wpk_buf_fini(&bytes);
    return err;
}

/* `sent` is false when there is nothing to be sent. */
static wpk_err ask_results(struct wpk_worker_session *s, bool *sent)
{
    struct wpk_buf frame = {0};
    uint32_t count = 0;
    wpk_err err = wpk_holding_encode_results(s->holding, s->session, &frame, &count);
    if (err != WPK_OK || count > 0) {
        err = send_frame(s, WPK_WORKER_SESSION_SLOT_OTHER, WPK_MESSAGE_RESULTS, &frame, err,
                         REQUEST_MS(s));
    }
    wpk_buf_fini(&frame);
    *sent = count > 0;
    return err;
}

static wpk_err ask_give_back(struct wpk_worker_session *s)
{
    wpk_work_id ids[WPK_HOLDING_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_GIVE_BACK,
                                  .session = s->session,
                                  .reason = s->err != WPK_OK ? s->diag->text : NULL,
                                  .given_back = ids,
                                  .given_back_count = wpk_holding_ids(s->holding, true, ids)};
    return ask(s, WPK_WORKER_SESSION_SLOT_OTHER, &message, WPK_WORKER_SESSION_LEAVE_MS);
}

/* The next request of WPK_WORKER_SESSION_SLOT_OTHER, by urgency. */
static wpk_err ask_other(struct wpk_worker_session *s)
{
    if (s->session == 0) {
        return ask_hello(s);
    }
    const char *missing = wpk_holding_missing(s->holding);
    wpk_work_id made_for;
    const struct wpk_record *upload = wpk_holding_next_upload(s->holding, &made_for);
    if (missing != NULL && s->leave_ns == 0) {
        struct wpk_message message = {.kind = WPK_MESSAGE_GET_ARTIFACT, .session = s->session};
        snprintf(message.sha256, sizeof message.sha256, "%s", missing);
        snprintf(s->asked_sha256, sizeof s->asked_sha256, "%s", missing);
        return ask(s, WPK_WORKER_SESSION_SLOT_OTHER, &message, REQUEST_MS(s) + ARTIFACT_MS);
    }
    if (upload != NULL && s->named) {
        return ask_upload(s, upload, made_for);
    }
    bool sent = false;
    wpk_err err = ask_results(s, &sent);
    return err == WPK_OK && !sent && s->leave_ns != 0 ? ask_give_back(s) : err;
}

wpk_err wpk_worker_session_ask(struct wpk_worker_session *s)
{
    if (wpk_clock_ns() < s->retry_at_ns || s->gave_back) {
        return WPK_OK;
    }
    wpk_err err =
        !wpk_net_client_busy(s->client, WPK_WORKER_SESSION_SLOT_OTHER) ? ask_other(s) : WPK_OK;
    if (err == WPK_OK && s->session != 0 && s->leave_ns == 0 &&
        !wpk_net_client_busy(s->client, WPK_WORKER_SESSION_SLOT_POLL)) {
        err = ask_poll(s);
    }
    return err;
}
