/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session.h"

#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/net.h"
#include "schema/message.h"
#include "worker/holding.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SLOT_POLL 0
#define SLOT_OTHER 1
#define SLOT_COUNT 2

#define POLL_WAIT_MS 5000
#define HEARTBEAT_MS 5000 /* a quarter of what wpkd grants */
#define REQUEST_MS 15000
#define PROBE_MS 2000
#define PROBE_AFTER_MS 10000
#define PROBE_EVERY_MS 30000
#define TROUBLE_EVERY_MS 60000
#define RETRY_MS_MIN 50
#define RETRY_MS_MAX 2000
#define LEAVE_MS 3000     /* for the farewell */
#define DRAIN_MS 60000    /* for what is being timed when it is told to end */
#define ARTIFACT_MS 60000 /* on top of REQUEST_MS: 4 MiB over a slow line */
#define KEPT_MAX (WPK_HOLDING_MAX - WPK_WORK_MAX) /* held; with more, no work is asked for */
#define CAPACITY_RUN 8
#define OWN_PROVIDER "halide-cpu"

struct session {
    const struct wpk_session_options *options;
    struct wpk_net_client *client;
    struct wpk_holding *holding;
    int wake_fd;
    uint64_t session;            /* 0: CLOSED */
    uint32_t capacity;           /* leases that keep the engine busy */
    enum wpk_message_kind asked; /* what is under way on SLOT_OTHER */
    char asked_sha256[WPK_ID_MAX];
    wpk_work_id asked_for; /* put_artifact: what it was built for */
    bool named;            /* a poll of this session has said what is held: leases are ours again */
    uint64_t retry_ms;     /* pause after a failure; doubles */
    uint64_t retry_at_ns;  /* nothing is asked before */
    uint64_t polled_ns;    /* when the last poll went out */
    uint64_t fed_ns;       /* when the service manager was told that we live */
    uint64_t answered_ns;  /* when wpkd last answered, or we began */
    uint64_t probed_ns;    /* when it was last found out why nothing comes */
    wpk_err trouble;       /* why nothing gets done; WPK_OK: something does */
    uint64_t trouble_ns;   /* when that was logged */
    uint64_t drain_ns;     /* DRAINING since; 0: not */
    uint64_t drain_lease;  /* what was being timed then */
    uint64_t leave_ns;     /* LEAVING since; 0: not */
    bool gave_back;
    bool ended;
    wpk_err err;
    struct wpk_diag *diag;
};

static void wake(void *user)
{
    const struct session *s = user;
    uint64_t one = 1;
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written; /* full means that it is awake already */
}

static void fail(struct session *s, wpk_err err, const char *text)
{
    if (s->err == WPK_OK) {
        wpk_diag_set(s->diag, "%s", text);
        s->err = err;
    }
    s->ended = true;
}

/* ---- asking */

static void send_frame(struct session *s, int slot, enum wpk_message_kind kind,
                       const struct wpk_buf *frame, wpk_err err, uint64_t timeout_ms)
{
    if (err == WPK_OK) {
        err = wpk_net_client_put(s->client, slot, frame->data, frame->size, timeout_ms);
    }
    if (err != WPK_OK) {
        fail(s, err, "a request cannot be sent");
        return;
    }
    if (slot == SLOT_OTHER) {
        s->asked = kind;
    }
}

static void ask(struct session *s, int slot, const struct wpk_message *message, uint64_t timeout_ms)
{
    struct wpk_buf frame = {0};
    wpk_err err = wpk_message_encode(message, &frame);
    send_frame(s, slot, message->kind, &frame, err, timeout_ms);
    wpk_buf_fini(&frame);
}

static void ask_hello(struct session *s)
{
    struct wpk_hello hello = {.device = s->options->device,
                              .roles = s->options->roles,
                              .slots = s->options->slots,
                              .label_count = s->options->label_count,
                              .program = "wpk-worker " WPK_VERSION};
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    snprintf(hello.name, sizeof hello.name, "%s", s->options->name);
    snprintf(hello.environment, sizeof hello.environment, "%s", s->options->environment);
    snprintf(hello.providers[0].name, WPK_PROVIDER_NAME_MAX, OWN_PROVIDER);
    hello.provider_count = 1;
    snprintf(hello.token, sizeof hello.token, "%s", s->options->token);
    for (uint32_t i = 0; i < hello.label_count; i++) {
        hello.labels[i] = s->options->labels[i];
    }
    for (int i = 0; i < s->options->vendor_count; i++) {
        struct wpk_message_provider *provider = &hello.providers[hello.provider_count++];
        snprintf(provider->name, sizeof provider->name, "%s", s->options->vendors[i]);
        provider->vendor = true;
    }
    ask(s, SLOT_OTHER, &message, REQUEST_MS);
}

/* A poll for work; or, when there is enough, a sign of life that is answered at once. */
static void ask_poll(struct session *s)
{
    wpk_work_id ids[WPK_HOLDING_MAX];
    uint32_t unfinished = wpk_holding_unfinished(s->holding);
    uint32_t want = s->capacity > unfinished ? s->capacity - unfinished : 0;
    if (s->drain_ns != 0 || !s->named || wpk_holding_blocked(s->holding) ||
        wpk_holding_count(s->holding) >= KEPT_MAX) {
        want = 0;
    }
    if (want == 0 && wpk_clock_ns() < s->polled_ns + HEARTBEAT_MS * WPK_NS_PER_MS) {
        return;
    }
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .session = s->session,
                                  .want = want,
                                  .wait_ms = want > 0 ? POLL_WAIT_MS : 0,
                                  .running = wpk_holding_running(s->holding),
                                  .holding = ids,
                                  .holding_count = wpk_holding_ids(s->holding, false, ids)};
    s->polled_ns = wpk_clock_ns();
    ask(s, SLOT_POLL, &message, POLL_WAIT_MS + REQUEST_MS);
}

static void ask_artifact(struct session *s, const char *sha256)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_GET_ARTIFACT, .session = s->session};
    snprintf(message.sha256, sizeof message.sha256, "%s", sha256);
    snprintf(s->asked_sha256, sizeof s->asked_sha256, "%s", sha256);
    ask(s, SLOT_OTHER, &message, REQUEST_MS + ARTIFACT_MS);
}

static void ask_upload(struct session *s, const struct wpk_record *record, wpk_work_id made_for)
{
    struct wpk_buf bytes = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_fs_read(record->artifact_path, WPK_ARTIFACT_SIZE_MAX, &bytes, &diag);
    snprintf(s->asked_sha256, sizeof s->asked_sha256, "%s", record->artifact_sha256);
    s->asked_for = made_for;
    if (err != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "artifact_not_read", err, &diag);
        wpk_holding_not_sent(s->holding, made_for, err);
    } else {
        struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                      .session = s->session,
                                      .made_for = made_for,
                                      .bytes = bytes.data,
                                      .bytes_size = bytes.size};
        memcpy(message.sha256, s->asked_sha256, sizeof message.sha256);
        ask(s, SLOT_OTHER, &message, REQUEST_MS + ARTIFACT_MS);
    }
    wpk_buf_fini(&bytes);
}

/* False when there is nothing to be sent. */
static bool ask_results(struct session *s)
{
    struct wpk_buf frame = {0};
    uint32_t count = 0;
    wpk_err err = wpk_holding_encode_results(s->holding, s->session, &frame, &count);
    if (err != WPK_OK || count > 0) {
        send_frame(s, SLOT_OTHER, WPK_MESSAGE_RESULTS, &frame, err, REQUEST_MS);
    }
    wpk_buf_fini(&frame);
    return count > 0;
}

static void ask_give_back(struct session *s)
{
    wpk_work_id ids[WPK_HOLDING_MAX];
    struct wpk_message message = {.kind = WPK_MESSAGE_GIVE_BACK,
                                  .session = s->session,
                                  .given_back = ids,
                                  .given_back_count = wpk_holding_ids(s->holding, true, ids)};
    ask(s, SLOT_OTHER, &message, LEAVE_MS);
}

/* The next request of SLOT_OTHER, by urgency. */
static void ask_other(struct session *s)
{
    if (s->session == 0) {
        ask_hello(s);
        return;
    }
    const char *missing = wpk_holding_missing(s->holding);
    wpk_work_id made_for;
    const struct wpk_record *upload = wpk_holding_next_upload(s->holding, &made_for);
    if (missing != NULL && s->leave_ns == 0) {
        ask_artifact(s, missing);
    } else if (upload != NULL && s->named) {
        ask_upload(s, upload, made_for);
    } else if (!ask_results(s) && s->leave_ns != 0) {
        ask_give_back(s);
    }
}

static void ask_all(struct session *s)
{
    if (wpk_clock_ns() < s->retry_at_ns || s->gave_back) {
        return;
    }
    if (!wpk_net_client_busy(s->client, SLOT_OTHER)) {
        ask_other(s);
    }
    if (s->session != 0 && s->leave_ns == 0 && !wpk_net_client_busy(s->client, SLOT_POLL)) {
        ask_poll(s);
    }
}

/* ---- answers */

static void leave(struct session *s)
{
    if (s->leave_ns == 0) {
        wpk_log(WPK_LOG_INFO, "leaving", "held=%u", wpk_holding_count(s->holding));
        s->leave_ns = wpk_clock_ns();
        s->retry_at_ns = 0;
    }
}

/* Told to end: what is being timed was nearly for nothing, so it ends first. */
static void drain(struct session *s)
{
    s->drain_ns = wpk_clock_ns();
    s->drain_lease = wpk_holding_running(s->holding);
    wpk_log(WPK_LOG_INFO, "draining", "lease=%llu held=%u", (unsigned long long)s->drain_lease,
            wpk_holding_count(s->holding));
    wpk_notify_send(s->options->notify, "STOPPING=1");
}

static bool is_drained(const struct session *s)
{
    return s->drain_lease == 0 || s->options->is_private ||
           wpk_holding_running(s->holding) != s->drain_lease ||
           wpk_clock_ns() > s->drain_ns + DRAIN_MS * WPK_NS_PER_MS;
}

/* Nothing is asked for a while: as long as wpkd said, or a little longer each time. */
static void retry_later(struct session *s, uint64_t told_ms)
{
    s->retry_ms = s->retry_ms == 0 ? RETRY_MS_MIN : s->retry_ms * 2;
    if (s->retry_ms > RETRY_MS_MAX) {
        s->retry_ms = RETRY_MS_MAX;
    }
    uint64_t ms = told_ms > s->retry_ms ? told_ms : s->retry_ms;
    s->retry_at_ns = wpk_clock_ns() + ms * WPK_NS_PER_MS;
}

/* What was asked on SLOT_OTHER has no answer, or an error for one. */
static void not_answered(struct session *s, wpk_err err)
{
    switch (s->asked) {
    case WPK_MESSAGE_RESULTS:
        if (err == WPK_EACCES) {
            wpk_holding_acknowledged(s->holding); /* refused for good: it is in quarantine */
        } else {
            wpk_holding_not_acknowledged(s->holding);
        }
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        if (err == WPK_ECORRUPT) {
            wpk_holding_not_sent(s->holding, s->asked_for, err);
        }
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
        if (err == WPK_ECORRUPT) {
            wpk_holding_artifact(s->holding, s->asked_sha256, NULL, 0, err);
        }
        break;
    default:
        break;
    }
}

/* Why nothing gets done: to the service manager, and to the log once a minute while it lasts. */
static void say_refused(struct session *s, const struct wpk_message *error)
{
    if (s->trouble == error->err &&
        wpk_clock_ns() < s->trouble_ns + TROUBLE_EVERY_MS * WPK_NS_PER_MS) {
        return;
    }
    s->trouble = error->err;
    s->trouble_ns = wpk_clock_ns();
    wpk_log(WPK_LOG_WARN, "refused", "error=%s reason=\"%.300s\"", wpk_err_name(error->err),
            error->text);
    wpk_notify_send(s->options->notify, "STATUS=Refused: %.300s", error->text);
}

/* What will pass says when to come again; damage is the artifact's own. */
static bool is_refused_upload(const struct session *s, int slot, const struct wpk_message *error)
{
    return slot == SLOT_OTHER && s->asked == WPK_MESSAGE_PUT_ARTIFACT && error->retry_ms == 0 &&
           error->err != WPK_ECORRUPT;
}

static void on_error(struct session *s, int slot, const struct wpk_message *error)
{
    if (slot == SLOT_OTHER) {
        not_answered(s, error->err);
    }
    if (error->err == WPK_ENOENT) {
        s->session = 0; /* wpkd was started again */
        return;
    }
    if (is_refused_upload(s, slot, error)) {
        wpk_holding_refused(s->holding, s->asked_for, error->err, error->text);
        s->polled_ns = 0; /* wpkd hears at once what is not held any more */
        return;
    }
    bool is_hello = slot == SLOT_OTHER && s->asked == WPK_MESSAGE_HELLO;
    /* What will pass says when to come again. */
    if (error->retry_ms == 0 &&
        (error->err == WPK_EMISMATCH || (error->err == WPK_EACCES && is_hello))) {
        fail(s, error->err, error->text);
        return;
    }
    say_refused(s, error);
    if (error->err != WPK_ECORRUPT) {
        retry_later(s, error->retry_ms);
    }
}

static void on_work(struct session *s, const struct wpk_message *work)
{
    wpk_holding_take_in(s->holding, work);
    s->named = true;
    if (work->leave && s->options->is_private) {
        leave(s);
    }
}

static void on_ack(struct session *s)
{
    if (s->asked == WPK_MESSAGE_RESULTS) {
        /* Recorded, recorded before, or wanted by nobody: in each case it is done with. */
        wpk_holding_acknowledged(s->holding);
    } else if (s->asked == WPK_MESSAGE_PUT_ARTIFACT) {
        wpk_holding_uploaded(s->holding, s->asked_sha256);
    } else if (s->asked == WPK_MESSAGE_GIVE_BACK) {
        s->gave_back = true;
    }
}

static void say_works(struct session *s)
{
    if (s->trouble != WPK_OK) {
        s->trouble = WPK_OK;
        wpk_notify_send(s->options->notify, "STATUS=Working for %s", s->options->url);
    }
}

static void on_message(struct session *s, int slot, const struct wpk_message *message)
{
    if (message->kind != WPK_MESSAGE_ERROR) {
        s->retry_ms = 0;
        say_works(s);
    }
    switch (message->kind) {
    case WPK_MESSAGE_WELCOME:
        s->session = message->session;
        s->polled_ns = 0;
        s->named = wpk_holding_count(s->holding) == 0;
        wpk_log(WPK_LOG_INFO, "joined", "coordinator=%s server=\"%s\"", s->options->url,
                message->server);
        wpk_notify_send(s->options->notify, "STATUS=Working for %s", s->options->url);
        break;
    case WPK_MESSAGE_WORK:
        on_work(s, message);
        break;
    case WPK_MESSAGE_ACK:
        on_ack(s);
        break;
    case WPK_MESSAGE_ARTIFACT:
        wpk_holding_artifact(s->holding, s->asked_sha256, message->bytes, message->bytes_size,
                             WPK_OK);
        break;
    case WPK_MESSAGE_ERROR:
        on_error(s, slot, message);
        break;
    default:
        fail(s, WPK_EINVAL, "wpkd answered what is no answer");
        break;
    }
}

static struct wpk_net_client_options client_options(struct session *s)
{
    return (struct wpk_net_client_options){.url = s->options->url,
                                           .ca = s->options->ca,
                                           .size_max = WPK_MESSAGE_SIZE_MAX,
                                           .slot_count = SLOT_COUNT,
                                           .wake = wake,
                                           .user = s};
}

/* Try the connection, and log why there is none: requests only say that they were not answered. */
static void probe(struct session *s)
{
    const struct wpk_net_client_options options = client_options(s);
    struct wpk_diag diag = {0};
    s->probed_ns = wpk_clock_ns();
    wpk_err err = wpk_net_client_probe(&options, PROBE_MS, &diag);
    if (err != WPK_OK) {
        s->trouble = err;
        wpk_log_failure(WPK_LOG_WARN, "not_connected", err, &diag);
        wpk_notify_send(s->options->notify, "STATUS=Not connected: %.300s", diag.text);
    }
}

/* Without an answer for some time, now and then: whoever looks at the log has to learn why. */
static void say_why(struct session *s)
{
    if (wpk_clock_ns() >= s->answered_ns + PROBE_AFTER_MS * WPK_NS_PER_MS &&
        (s->probed_ns == 0 || wpk_clock_ns() >= s->probed_ns + PROBE_EVERY_MS * WPK_NS_PER_MS)) {
        probe(s);
    }
}

static void on_reply(struct session *s, int slot, wpk_err err, const char *data, size_t size)
{
    struct wpk_message message = {0};
    if (err != WPK_OK) {
        if (slot == SLOT_OTHER) {
            not_answered(s, err);
        }
        retry_later(s, 0);
        if (s->leave_ns == 0) {
            say_why(s);
        }
        return;
    }
    s->answered_ns = wpk_clock_ns();
    err = wpk_message_decode(data, size, &message, s->diag);
    if (err != WPK_OK) {
        fail(s, err, "wpkd answered what cannot be read");
        return;
    }
    on_message(s, slot, &message);
    wpk_message_fini(&message);
}

static void take_replies(struct session *s)
{
    int slot;
    wpk_err err;
    char *data;
    size_t size;
    while (wpk_net_client_next(s->client, &slot, &err, &data, &size)) {
        on_reply(s, slot, err, data, size);
        free(data);
    }
}

/* ---- the loop */

/* A loop that still turns, no more: what it waits for may be far away. */
static void feed_watchdog(struct session *s)
{
    uint64_t every_ns = s->options->notify->watchdog_ns / 4;
    if (every_ns > 0 && wpk_clock_ns() >= s->fed_ns + every_ns) {
        s->fed_ns = wpk_clock_ns();
        wpk_notify_send(s->options->notify, "WATCHDOG=1");
    }
}

static int timeout_ms(const struct session *s, uint64_t engine_ms)
{
    uint64_t now = wpk_clock_ns();
    uint64_t ms = HEARTBEAT_MS;
    uint64_t watchdog_ms = s->options->notify->watchdog_ns / 4 / WPK_NS_PER_MS;
    if (watchdog_ms > 0 && watchdog_ms < ms) {
        ms = watchdog_ms;
    }
    if (engine_ms < ms) {
        ms = engine_ms;
    }
    if (s->retry_at_ns > now && (s->retry_at_ns - now) / WPK_NS_PER_MS + 1 < ms) {
        ms = (s->retry_at_ns - now) / WPK_NS_PER_MS + 1;
    }
    if (s->leave_ns != 0 && ms > 100) {
        ms = 100;
    }
    return (int)ms;
}

static void wait_for_something(struct session *s, uint64_t engine_ms)
{
    struct pollfd fds[] = {
        {.fd = wpk_engine_fd(s->options->engine), .events = POLLIN},
        {.fd = s->wake_fd, .events = POLLIN},
        {.fd = s->drain_ns == 0 && s->leave_ns == 0 ? s->options->stop_fd : -1, .events = POLLIN},
    };
    if (poll(fds, 3, timeout_ms(s, engine_ms)) <= 0) {
        return;
    }
    if (fds[1].revents != 0) {
        uint64_t count;
        ssize_t size = read(s->wake_fd, &count, sizeof count);
        (void)size;
    }
    if (fds[2].revents != 0) {
        drain(s);
    }
}

static void turn(struct session *s)
{
    uint64_t engine_ms = UINT64_MAX;
    feed_watchdog(s);
    take_replies(s);
    if (s->leave_ns == 0) {
        wpk_err err = wpk_holding_advance(s->holding, &engine_ms);
        if (err != WPK_OK) {
            /* What it holds is given back unblamed: a machine that works may try it. */
            const struct wpk_diag *why = wpk_engine_failure(s->options->engine);
            fail(s, err, why->text[0] != '\0' ? why->text : "the engine cannot go on");
            s->ended = false;
            leave(s);
        }
    }
    if (s->drain_ns != 0 && is_drained(s)) {
        leave(s);
    }
    ask_all(s);
    bool too_long = s->leave_ns != 0 && wpk_clock_ns() > s->leave_ns + LEAVE_MS * WPK_NS_PER_MS;
    if (s->gave_back || too_long || (s->leave_ns != 0 && s->session == 0)) {
        s->ended = true;
    }
    if (!s->ended) {
        wait_for_something(s, engine_ms);
    }
}

static uint32_t capacity_for(const struct wpk_session_options *options)
{
    /* Enough for every builder to have one under way and one ready, and for the way to wpkd; of
     * what is only run, enough to be fetched while one is timed. */
    uint32_t capacity = options->slots * 3 + 2;
    uint32_t max = options->roles == WPK_WORKER_BUILDS ? WPK_WORK_MAX : 32;
    return options->slots == 0 ? CAPACITY_RUN : capacity < max ? capacity : max;
}

wpk_err wpk_session_run(const struct wpk_session_options *options, struct wpk_diag *diag)
{
    struct session s = {.options = options,
                        .answered_ns = wpk_clock_ns(),
                        .diag = diag,
                        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .capacity = capacity_for(options)};
    if (s.wake_fd < 0) {
        return WPK_ESYSTEM;
    }
    struct wpk_holding_options holding = {.engine = options->engine, .work_dir = options->work_dir};
    wpk_err err = wpk_holding_new(&holding, &s.holding);
    if (err == WPK_OK) {
        const struct wpk_net_client_options client = client_options(&s);
        err = wpk_net_client_open(&client, &s.client, diag);
    }
    if (err == WPK_OK) {
        wpk_notify_send(options->notify, "READY=1\nSTATUS=Waiting for %s", options->url);
        probe(&s); /* a wrong address is said at once, not when the first request has timed out */
    }
    while (err == WPK_OK && !s.ended) {
        turn(&s);
    }
    wpk_net_client_close(s.client);
    wpk_holding_free(s.holding);
    close(s.wake_fd);
    return err == WPK_OK ? s.err : err;
}
