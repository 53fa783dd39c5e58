/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/session_state.h"

#include "common/clock.h"
#include "common/log.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOSS_AFTER_MS 10000
#define LOSS_EVERY_MS 30000
#define TROUBLE_EVERY_MS 60000
#define RETRY_MS_MIN 50
#define RETRY_MS_MAX 2000
#define DRAIN_MS 60000 /* for what is being timed when it is told to end */
#define CAPACITY_RUN 8

static void wake(void *user)
{
    const struct wpk_worker_session *s = user;
    uint64_t one = 1;
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written; /* full means that it is awake already */
}

static void fail(struct wpk_worker_session *s, wpk_err err, const char *text)
{
    if (s->err == WPK_OK) {
        wpk_diag_set(s->diag, "%s", text);
        s->err = err;
    }
    s->ended = true;
}

/* ---- answers */

static void leave(struct wpk_worker_session *s)
{
    if (s->leave_ns == 0) {
        wpk_log(WPK_LOG_INFO, "leaving", "held=%u", s->holding->count);
        s->leave_ns = wpk_clock_ns();
        s->retry_at_ns = 0;
    }
}

/* Told to end: what is being timed was nearly for nothing, so it ends first. */
static void drain(struct wpk_worker_session *s, const char *reason)
{
    s->drain_ns = wpk_clock_ns();
    s->drain_lease = wpk_holding_running(s->holding);
    wpk_log(WPK_LOG_INFO, "draining", "lease=%llu held=%u reason=%s",
            (unsigned long long)s->drain_lease, s->holding->count, reason);
    wpk_notify_send(s->options->notify, "STOPPING=1");
}

/* When the worker leaves by itself, unless it gets work before; UINT64_MAX: never. */
static uint64_t due_ns(const struct wpk_worker_session *s)
{
    const struct wpk_worker_session_options *options = s->options;
    uint64_t due = options->leave_after_ns != 0 ? s->drain_due_ns : UINT64_MAX;
    bool is_idle = options->idle_ns != 0 && s->holding->count == 0;
    uint64_t idle_due = is_idle ? s->worked_ns + options->idle_ns : UINT64_MAX;
    return s->drain_ns != 0 || s->leave_ns != 0 ? UINT64_MAX : due < idle_due ? due : idle_due;
}

/* Send no request for a while: as long as wpkd said, or a little longer each time. */
static void retry_later(struct wpk_worker_session *s, uint64_t told_ms)
{
    s->retry_ms = s->retry_ms == 0 ? RETRY_MS_MIN : s->retry_ms * 2;
    if (s->retry_ms > RETRY_MS_MAX) {
        s->retry_ms = RETRY_MS_MAX;
    }
    uint64_t ms = told_ms > s->retry_ms ? told_ms : s->retry_ms;
    s->retry_at_ns = wpk_clock_ns() + ms * WPK_NS_PER_MS;
}

/* Handle a request on WPK_WORKER_SESSION_SLOT_OTHER without an answer, or with an error. */
static void not_answered(struct wpk_worker_session *s, wpk_err err)
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
static void say_refused(struct wpk_worker_session *s, const struct wpk_message *error)
{
    if (s->trouble == error->err && s->trouble_ns != 0 &&
        wpk_clock_ns() < s->trouble_ns + TROUBLE_EVERY_MS * WPK_NS_PER_MS) {
        return;
    }
    s->trouble = error->err;
    s->trouble_ns = wpk_clock_ns();
    wpk_log(WPK_LOG_WARN, "refused", "error=%s reason=\"%.300s\"", wpk_err_name(error->err),
            error->text);
    wpk_notify_send(s->options->notify, "STATUS=Refused: %.300s", error->text);
}

static void on_error(struct wpk_worker_session *s, int slot, const struct wpk_message *error)
{
    if (slot == WPK_WORKER_SESSION_SLOT_OTHER) {
        not_answered(s, error->err);
    }
    if (error->err == WPK_ENOENT) {
        s->session = 0; /* wpkd was started again */
        return;
    }
    /* A passing error has a retry time; damage is handled apart. */
    if (slot == WPK_WORKER_SESSION_SLOT_OTHER && s->asked == WPK_MESSAGE_PUT_ARTIFACT &&
        error->retry_ms == 0 && error->err != WPK_ECORRUPT) {
        wpk_holding_refused(s->holding, s->asked_for, error->err, error->text);
        s->polled_ns = 0; /* wpkd hears at once what is not held any more */
        return;
    }
    bool is_hello = slot == WPK_WORKER_SESSION_SLOT_OTHER && s->asked == WPK_MESSAGE_HELLO;
    /* A passing error says when to retry. */
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

static void on_ack(struct wpk_worker_session *s)
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

static void on_message(struct wpk_worker_session *s, int slot, const struct wpk_message *message)
{
    if (message->kind != WPK_MESSAGE_ERROR) {
        s->retry_ms = 0;
        if (s->trouble != WPK_OK) {
            s->trouble = WPK_OK;
            wpk_notify_send(s->options->notify, "STATUS=Working for %s", s->options->url);
        }
    }
    switch (message->kind) {
    case WPK_MESSAGE_WELCOME:
        s->session = message->session;
        s->polled_ns = 0;
        s->named = s->holding->count == 0;
        wpk_log(WPK_LOG_INFO, "joined", "coordinator=%s server=\"%s\"", s->options->url,
                message->server);
        wpk_notify_send(s->options->notify, "STATUS=Working for %s", s->options->url);
        break;
    case WPK_MESSAGE_WORK:
        wpk_holding_take_in(s->holding, message);
        s->named = true;
        if (message->leave && s->options->is_private) {
            leave(s);
        }
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

/* Why there is no connection, which requests do not say: at once when the first try failed, since
 * the address may be wrong, and now and then while nothing is answered. */
static void say_loss(struct wpk_worker_session *s)
{
    struct wpk_diag diag = {0};
    uint64_t now = wpk_clock_ns();
    bool is_due = s->loss_ns == 0 || now >= s->loss_ns + LOSS_EVERY_MS * WPK_NS_PER_MS;
    bool is_long = s->answered_ns == 0 || now >= s->answered_ns + LOSS_AFTER_MS * WPK_NS_PER_MS;
    if (!is_due || !is_long) {
        return;
    }
    wpk_err err = wpk_net_client_loss(s->client, &diag);
    if (err != WPK_OK) {
        s->loss_ns = now;
        s->trouble = err;
        s->trouble_ns = 0;
        wpk_log_failure(WPK_LOG_WARN, "not_connected", err, &diag);
        wpk_notify_send(s->options->notify, "STATUS=Not connected: %.300s", diag.text);
    }
}

static void on_reply(struct wpk_worker_session *s, int slot, wpk_err err, const char *data,
                     size_t size)
{
    struct wpk_message message = {0};
    if (err != WPK_OK) {
        if (slot == WPK_WORKER_SESSION_SLOT_OTHER) {
            not_answered(s, err);
        }
        retry_later(s, 0);
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

static void take_replies(struct wpk_worker_session *s)
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

static int timeout_ms(const struct wpk_worker_session *s, uint64_t engine_ms)
{
    uint64_t now = wpk_clock_ns();
    uint64_t ms = WPK_WORKER_SESSION_HEARTBEAT_MS;
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
    uint64_t due = due_ns(s);
    if (due < now + ms * WPK_NS_PER_MS) {
        ms = due > now ? (due - now) / WPK_NS_PER_MS + 1 : 0;
    }
    return (int)ms;
}

static void wait_for_something(struct wpk_worker_session *s, uint64_t engine_ms)
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
        (void)!read(s->wake_fd, &count, sizeof count);
    }
    if (fds[2].revents != 0) {
        drain(s, "told");
    }
}

static void turn(struct wpk_worker_session *s)
{
    uint64_t engine_ms = UINT64_MAX;
    /* A loop that still turns, no more: what it waits for may be far away. */
    uint64_t every_ns = s->options->notify->watchdog_ns / 4;
    if (every_ns > 0 && wpk_clock_ns() >= s->fed_ns + every_ns) {
        s->fed_ns = wpk_clock_ns();
        wpk_notify_send(s->options->notify, "WATCHDOG=1");
    }
    take_replies(s);
    if (s->leave_ns == 0) {
        say_loss(s);
        wpk_err err = wpk_holding_advance(s->holding, &engine_ms);
        if (err != WPK_OK) {
            /* The leases are given back without blame: a machine that works may try them. */
            const struct wpk_diag *why = wpk_engine_failure(s->options->engine);
            fail(s, err, why->text[0] != '\0' ? why->text : "the engine cannot go on");
            s->ended = false;
            leave(s);
        }
    }
    uint64_t now = wpk_clock_ns();
    s->worked_ns = s->holding->count > 0 ? now : s->worked_ns;
    if (now >= due_ns(s)) {
        drain(s, s->options->leave_after_ns != 0 && now >= s->drain_due_ns ? "time" : "idle");
    }
    if (s->drain_ns != 0 && (s->drain_lease == 0 || s->options->is_private ||
                             wpk_holding_running(s->holding) != s->drain_lease ||
                             now > s->drain_ns + DRAIN_MS * WPK_NS_PER_MS)) {
        leave(s);
    }
    wpk_err err = wpk_worker_session_ask(s);
    if (err != WPK_OK) {
        fail(s, err, "a request cannot be sent");
    }
    bool too_long = s->leave_ns != 0 &&
                    wpk_clock_ns() > s->leave_ns + WPK_WORKER_SESSION_LEAVE_MS * WPK_NS_PER_MS;
    if (s->gave_back || too_long || (s->leave_ns != 0 && s->session == 0)) {
        s->ended = true;
    }
    if (!s->ended) {
        wait_for_something(s, engine_ms);
    }
}

static uint32_t capacity_for(const struct wpk_worker_session_options *options)
{
    /* Enough for every builder to have one under way and one ready, and for the way to wpkd; of
     * what is only run, enough to be fetched while one is timed. */
    uint32_t capacity = options->slots * 3 + 2;
    uint32_t max = options->roles == WPK_WORKER_BUILDS ? WPK_WORK_MAX : 32;
    return options->slots == 0 ? CAPACITY_RUN : capacity < max ? capacity : max;
}

wpk_err wpk_worker_session_run(const struct wpk_worker_session_options *options,
                               struct wpk_diag *diag)
{
    struct wpk_worker_session s = {.options = options,
                                   .diag = diag,
                                   .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                   .has_several = strchr(options->url, ',') != NULL,
                                   .capacity = capacity_for(options),
                                   .worked_ns = wpk_clock_ns(),
                                   .drain_due_ns = wpk_clock_ns() + options->leave_after_ns};
    if (s.wake_fd < 0) {
        return WPK_ESYSTEM;
    }
    struct wpk_holding_options holding = {
        .engine = options->engine, .work_dir = options->work_dir, .clock = wpk_clock_system()};
    s.holding = wpk_holding_new(&holding);
    const struct wpk_net_client_options client = {.url = options->url,
                                                  .ca = options->ca,
                                                  .size_max = WPK_MESSAGE_SIZE_MAX,
                                                  .slot_count = WPK_WORKER_SESSION_SLOT_COUNT,
                                                  .patience_ms = s.has_several ? 2000 : 0,
                                                  .wake = wake,
                                                  .user = &s};
    wpk_err err = wpk_net_client_open(&client, &s.client, diag);
    if (err == WPK_OK) {
        wpk_notify_send(options->notify, "READY=1\nSTATUS=Waiting for %s", options->url);
    }
    while (err == WPK_OK && !s.ended) {
        turn(&s);
    }
    wpk_net_client_close(s.client);
    wpk_holding_free(s.holding);
    close(s.wake_fd);
    return err == WPK_OK ? s.err : err;
}
