/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/runner_child.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/runner/runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define END_MS 10000

/* Shared with the child, so that it can be read after a kill. */
static volatile bool unshared;
static volatile bool *anchor_runs = &unshared;

void wpk_runner_child_set_anchor(bool runs)
{
    *anchor_runs = runs;
}

static bool share_anchor(void)
{
    if (anchor_runs == &unshared) {
        void *page = mmap(NULL, sizeof(*anchor_runs), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return false;
        }
        anchor_runs = page;
    }
    *anchor_runs = false;
    return true;
}

wpk_err wpk_runner_child_fork(struct wpk_runner_child *child, uint64_t id, int count,
                              uint64_t timeout_ns, const struct wpk_child_limits *limits,
                              struct wpk_channel *channel)
{
    int pair[2];
    if (!share_anchor() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return WPK_ESYSTEM;
    }
    int log = memfd_create("log", MFD_CLOEXEC);
    pid_t parent = getpid();
    pid_t pid = log < 0 ? -1 : fork();
    if (pid < 0) {
        close(pair[0]);
        close(pair[1]);
        if (log >= 0) {
            close(log);
        }
        return WPK_ESYSTEM;
    }
    if (pid == 0) {
        wpk_process_enter_child(parent, limits);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(pair[0]);
        close(WPK_CHANNEL_FD);
        wpk_channel_init(channel, pair[1]);
        *child = (struct wpk_runner_child){0};
        return WPK_OK;
    }
    setpgid(pid, pid);
    close(pair[1]);
    *child = (struct wpk_runner_child){.pid = pid,
                                       .id = id,
                                       .count = count,
                                       .log = log,
                                       .state = WPK_RUNNER_CHILD_RUNNING,
                                       .deadline_ns = wpk_clock_ns() + timeout_ns,
                                       .doing = "being verified"};
    wpk_channel_init(&child->channel, pair[0]);
    return WPK_OK;
}

wpk_err wpk_runner_child_keep(struct wpk_runner_child *child, const char *op)
{
    child->op = strdup(op);
    child->reported = true;
    child->state = WPK_RUNNER_CHILD_STARTING;
    child->doing = "making a context on the GPU";
    return child->op == NULL ? WPK_ENOMEM : WPK_OK;
}

/* Forget the log and the anchor of the child's last candidate. */
void wpk_runner_child_give(struct wpk_runner_child *child, uint64_t id, const char *work,
                           uint64_t timeout_ns, const struct wpk_buf *text)
{
    WPK_ASSERT(child->state == WPK_RUNNER_CHILD_READY);
    *anchor_runs = false;
    if (ftruncate(child->log, 0) == 0) {
        (void)lseek(child->log, 0, SEEK_SET); /* the child writes where this offset is */
    }
    child->id = id;
    child->count = 1;
    snprintf(child->work, sizeof(child->work), "%s", work);
    child->state = WPK_RUNNER_CHILD_RUNNING;
    child->deadline_ns = wpk_clock_ns() + timeout_ns;
    child->doing = "being verified";
    child->reported = false;
    /* If it is dead, its channel says so next. */
    (void)!wpk_channel_send(&child->channel, text->data, text->size);
}

bool wpk_runner_child_lost_gpu(const struct wpk_runner_options *options,
                               const struct wpk_record *records, int count,
                               struct wpk_channel *engine)
{
    struct wpk_diag diag = {0};
    char why[WPK_DIAG_TEXT_MAX + 32];
    bool may_be = false;
    for (int i = 0; i < count; i++) {
        enum wpk_outcome outcome = records[i].outcome;
        may_be = may_be || outcome == WPK_OUTCOME_UNSUPPORTED || outcome == WPK_OUTCOME_RUN_CRASH ||
                 outcome == WPK_OUTCOME_OUT_OF_MEMORY || outcome == WPK_OUTCOME_RUN_TIMEOUT ||
                 outcome == WPK_OUTCOME_ABANDONED;
    }
    if (!options->on_gpu || !may_be || wpk_gpu_probe(options->emulated, &diag) == WPK_OK) {
        return false;
    }
    snprintf(why, sizeof(why), "the GPU is gone: %s", diag.text);
    wpk_log(WPK_LOG_ERROR, "gpu_gone", "reason=\"%s\"", diag.text);
    (void)!WPK_ENGINE_SEND(engine, .kind = WPK_ENGINE_MESSAGE_BROKEN,
                           .text = why); /* an engine that ended needs no reason */
    return true;
}

/* True if the message is no result, or the candidate's own. */
static bool is_its_own(const struct wpk_runner_options *options,
                       const struct wpk_engine_message *message, struct wpk_channel *to)
{
    struct wpk_record records[WPK_DUEL_MAX] = {{0}};
    int count = 0;
    if (message->kind != WPK_ENGINE_MESSAGE_RESULT || !options->on_gpu) {
        return true;
    }
    (void)!wpk_engine_message_read_result(message, records, WPK_DUEL_MAX, &count);
    bool own = !wpk_runner_child_lost_gpu(options, records, count, to);
    for (int i = 0; i < count; i++) {
        wpk_record_fini(&records[i]);
    }
    return own;
}

/* Log the result at level debug; decoding it twice delays nothing that is timed. */
static void log_result(const struct wpk_runner_child *child,
                       const struct wpk_engine_message *message)
{
    struct wpk_record records[WPK_DUEL_MAX] = {{0}};
    int count = 0;
    int failed = 0;
    if (!wpk_log_enabled(WPK_LOG_DEBUG)) {
        return;
    }
    /* The engine reports a result that cannot be read. */
    (void)!wpk_engine_message_read_result(message, records, WPK_DUEL_MAX, &count);
    for (int i = 0; i < count; i++) {
        failed += records[i].outcome != WPK_OUTCOME_OK;
    }
    if (count == 1) {
        wpk_log(WPK_LOG_DEBUG, "run_ended", "work=%s pid=%d outcome=%s reason=\"%.*s\"",
                child->work, (int)child->pid, wpk_outcome_name(records[0].outcome),
                (int)strcspn(records[0].log, "\n"), records[0].log);
    } else {
        wpk_log(WPK_LOG_DEBUG, "run_ended", "work=%s pid=%d contenders=%d failed=%d", child->work,
                (int)child->pid, count, failed);
    }
    for (int i = 0; i < count; i++) {
        wpk_record_fini(&records[i]);
    }
}

static void note(struct wpk_runner_child *child, const struct wpk_engine_message *message)
{
    enum wpk_engine_message_kind kind = message->kind;
    if (kind == WPK_ENGINE_MESSAGE_VERIFIED) {
        if (child->state == WPK_RUNNER_CHILD_RUNNING) {
            child->state = WPK_RUNNER_CHILD_WAITING;
            child->waiting_ns = wpk_clock_ns();
        }
        child->doing = "waiting";
        wpk_log(WPK_LOG_DEBUG, "run_verified", "work=%s pid=%d", child->work, (int)child->pid);
    } else if (kind == WPK_ENGINE_MESSAGE_TIMED) {
        child->doing = "being verified again";
    } else if (kind == WPK_ENGINE_MESSAGE_RESULT) {
        child->reported = true;
        log_result(child, message);
    } else if (kind == WPK_ENGINE_MESSAGE_READY) {
        child->started = true;
        if (child->state != WPK_RUNNER_CHILD_DYING) {
            child->state = WPK_RUNNER_CHILD_READY;
        }
    }
}

wpk_err wpk_runner_child_relay(struct wpk_runner_child *child,
                               const struct wpk_runner_options *options, struct wpk_channel *to)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_channel_receive(&child->channel, &text);
    while (err == WPK_OK) {
        struct wpk_engine_message message = {0};
        bool is_message = wpk_engine_message_read(&text, &message) == WPK_OK;
        enum wpk_engine_message_kind kind = message.kind;
        if (is_message && kind == WPK_ENGINE_MESSAGE_READY) {
            note(child, &message);
        }
        /* Other messages come from a damaged child and are not passed on. */
        if (is_message && (kind == WPK_ENGINE_MESSAGE_VERIFIED ||
                           kind == WPK_ENGINE_MESSAGE_TIMED || kind == WPK_ENGINE_MESSAGE_RESULT)) {
            note(child, &message);
            if (is_its_own(options, &message, to)) {
                err = wpk_channel_send(to, text.data, text.size);
            }
        }
        err = err == WPK_OK ? wpk_channel_receive(&child->channel, &text) : err;
    }
    wpk_buf_fini(&text);
    if (err == WPK_ECORRUPT) {
        child->damaged = true;
        wpk_process_signal(child->pid, SIGKILL);
        err = WPK_ECLOSED;
    }
    return err == WPK_ENOENT ? WPK_OK : err;
}

void wpk_runner_child_go(struct wpk_runner_child *child, const struct wpk_buf *text)
{
    if (child->state != WPK_RUNNER_CHILD_WAITING) {
        return;
    }
    child->state = WPK_RUNNER_CHILD_RUNNING;
    child->deadline_ns += wpk_clock_ns() - child->waiting_ns;
    child->doing = "being timed";
    /* If it is dead, its channel says so next. */
    (void)!wpk_channel_send(&child->channel, text->data, text->size);
}

static bool is_limited(const struct wpk_runner_child *child)
{
    return child->state == WPK_RUNNER_CHILD_STARTING || child->state == WPK_RUNNER_CHILD_RUNNING ||
           child->state == WPK_RUNNER_CHILD_DYING;
}

int wpk_runner_child_left_ms(const struct wpk_runner_child *child, uint64_t now)
{
    if (!is_limited(child)) {
        return -1;
    }
    return now < child->deadline_ns ? (int)((child->deadline_ns - now) / WPK_NS_PER_MS) + 1 : 0;
}

static uint64_t end_ns(const struct wpk_runner_options *options)
{
    return (options->end_ms > 0 ? options->end_ms : END_MS) * WPK_NS_PER_MS;
}

bool wpk_runner_child_expire(struct wpk_runner_child *child,
                             const struct wpk_runner_options *options, uint64_t now)
{
    if (!is_limited(child) || now < child->deadline_ns) {
        return false;
    }
    if (child->state == WPK_RUNNER_CHILD_DYING) {
        return true;
    }
    child->timed_out = true;
    child->state = WPK_RUNNER_CHILD_DYING;
    child->deadline_ns = now + end_ns(options);
    wpk_process_signal(child->pid, SIGKILL);
    return false;
}

static void describe_end(const struct wpk_runner_child *child, int status,
                         struct wpk_record *record)
{
    char said[WPK_LOG_MAX / 2] = "";
    ssize_t size = pread(child->log, said, sizeof(said) - 1, 0);
    said[size > 0 ? size : 0] = '\0';
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    char how[WPK_PROCESS_END_SIZE];
    bool late = child->timed_out || number == SIGXCPU;
    if (*anchor_runs) {
        /* An abandoned candidate is tried again by the worker's caller. */
        record->outcome = WPK_OUTCOME_ABANDONED;
        record->anchor_failed = true;
        snprintf(record->log, sizeof(record->log), "its anchor %s while the kernel was %s%s%s",
                 late ? "took too long" : "failed", child->doing, said[0] != '\0' ? ": " : "",
                 said);
        return;
    }
    if (late) {
        record->outcome = WPK_OUTCOME_RUN_TIMEOUT;
        snprintf(how, sizeof(how), "took too long");
    } else if (child->damaged) {
        record->outcome = WPK_OUTCOME_RUN_CRASH;
        snprintf(how, sizeof(how), "damaged its process");
    } else if (number == SIGKILL) {
        /* Not ours: the system kills whoever takes its last memory. */
        record->outcome = WPK_OUTCOME_OUT_OF_MEMORY;
        snprintf(how, sizeof(how), "was killed");
    } else {
        record->outcome = WPK_OUTCOME_RUN_CRASH;
        wpk_process_describe_end(status, how);
    }
    snprintf(record->log, sizeof(record->log), "the kernel %s while %s%s%s", how, child->doing,
             said[0] != '\0' ? ": " : "", said);
    wpk_log(WPK_LOG_INFO, "run_ended", "work=%s pid=%d outcome=%s reason=\"%.*s\"", child->work,
            (int)child->pid, wpk_outcome_name(record->outcome), (int)strcspn(record->log, "\n"),
            record->log);
}

static void tell_stuck(const struct wpk_runner_options *options, pid_t pid,
                       struct wpk_channel *engine)
{
    char why[96];
    snprintf(why, sizeof(why),
             options->on_gpu ? "the GPU does not let go of process %d"
                             : "process %d was killed and does not end",
             (int)pid);
    wpk_log(WPK_LOG_ERROR, "process_stuck", "pid=%d reason=\"%s\"", (int)pid, why);
    (void)!WPK_ENGINE_SEND(engine, .kind = WPK_ENGINE_MESSAGE_BROKEN,
                           .text = why); /* an engine that ended needs no reason */
}

wpk_err wpk_runner_child_end(struct wpk_runner_child *child,
                             const struct wpk_runner_options *options, struct wpk_channel *engine,
                             bool *reported, struct wpk_record *record)
{
    int status = 0;
    /* It is on its way out: this does not change how it ended, unless only its channel closed. */
    wpk_process_signal(child->pid, SIGKILL);
    wpk_err err = wpk_process_reap(child->pid, end_ns(options), &status);
    kill(-child->pid, SIGKILL); /* what it left behind in its group */
    if (err != WPK_OK) {
        tell_stuck(options, child->pid, engine);
    } else if (!child->reported) {
        describe_end(child, status, record);
    }
    *reported = child->reported;
    wpk_channel_fini(&child->channel);
    close(child->log);
    free(child->op);
    *child = (struct wpk_runner_child){0};
    return err;
}

void wpk_runner_wait_for_go(struct wpk_channel *channel, uint64_t id)
{
    struct wpk_buf text = {0};
    wpk_err err = WPK_ENGINE_SEND(channel, .kind = WPK_ENGINE_MESSAGE_VERIFIED, .id = id);
    err = err == WPK_OK ? wpk_channel_wait(channel, &text) : err;
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        _exit(1);
    }
}
