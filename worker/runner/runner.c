/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's loop: one candidate at a time, answers computed ahead.
 *
 *     run ──▶ [waiting for answers] ──▶ fork ──▶ [verifying] ──verified──▶ [waiting for go]
 *                                                                               │ go
 *             result ◀── exits, crashes, or is killed at its deadline ◀── [timing] ─timed─▶ ...
 *
 * On a GPU a child is not forked for each candidate: making a context takes longer than most
 * kernels. It says "ready" and is given the next one of its op. A spare has its context ready, and
 * takes the place of a child that a candidate has ended.
 *
 * A child sends its messages over a channel of its own, and the runner passes them on: the child
 * never has the engine's channel. The deadline of a child does not run while it waits for "go". */
#include "worker/runner/runner.h"

#include "common/clock.h"
#include "common/log.h"
#include "worker/process.h"
#include "worker/runner/runner_child.h"
#include "worker/runner/runner_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define START_MS 30000
#define POLL_MAX (3 + WPK_RUNNER_OPS_MAX * WPK_RUNNER_SETS)

struct runner {
    const struct wpk_runner_options *options;
    struct wpk_channel channel;
    struct wpk_runner_ops ops;
    struct wpk_buf pending; /* a run or duel that waits for its answers; empty: none */
    struct wpk_runner_child child;
    struct wpk_runner_child spare; /* on a GPU, with a context: it takes the child's place */
};

/* The same record for all that were wanted. */
static wpk_err refuse(struct runner *runner, uint64_t id, int count,
                      const struct wpk_record *record)
{
    struct wpk_record records[WPK_DUEL_MAX];
    for (int i = 0; i < count; i++) {
        records[i] = *record;
    }
    return wpk_engine_message_send_result(&runner->channel, id, records, count);
}

/* ---- a child that runs a candidate */

/* The request in the pending message, whose texts it borrows. */
struct wanted {
    struct wpk_engine_message message;
    bool is_duel;
    uint64_t id;
    const char *work;
    int count; /* records wanted */
    const char *op;
};

static wpk_err read_wanted(const struct wpk_buf *text, struct wanted *out)
{
    wpk_err err = wpk_engine_message_read(text, &out->message);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_run_request *run = &out->message.run;
    const struct wpk_duel_request *duel = &out->message.duel;
    out->is_duel = out->message.kind == WPK_ENGINE_MESSAGE_DUEL;
    out->id = out->is_duel ? duel->id : run->id;
    out->work = out->is_duel ? duel->work : run->work;
    out->op = out->is_duel ? duel->op : run->op;
    out->count = out->is_duel ? duel->count : 1;
    return WPK_OK;
}

static void run_child(struct runner *runner, const struct wanted *wanted,
                      const struct wpk_runner_op *op, struct wpk_channel *channel)
{
    static struct wpk_record records[WPK_DUEL_MAX];
    if (wanted->is_duel) {
        wpk_runner_duel(op, &wanted->message.duel, channel, records);
    } else {
        wpk_runner_try(runner->options, op, &wanted->message.run, channel, records);
    }
    wpk_err err = wpk_engine_message_send_result(channel, wanted->id, records, wanted->count);
    _exit(err == WPK_OK ? 0 : 1);
}

/* ---- children on a GPU, which keep its context */

/* In the child: run a candidate for each message, until one fails. An error of the device may stick
 * to the process: it ends, and the next candidate has another one. */
static void serve_candidates(const struct runner *runner, const struct wpk_runner_op *op,
                             struct wpk_channel *channel)
{
    bool well = true;
    wpk_gpu_keep_context(runner->options->emulated);
    while (well) {
        struct wpk_record record = {0};
        struct wpk_buf text = {0};
        struct wanted wanted;
        wpk_err err = WPK_ENGINE_SEND(channel, .kind = WPK_ENGINE_MESSAGE_READY);
        err = err == WPK_OK ? wpk_channel_wait(channel, &text) : err;
        err = err == WPK_OK ? read_wanted(&text, &wanted) : err;
        if (err != WPK_OK) {
            _exit(1);
        }
        wpk_runner_try(runner->options, op, &wanted.message.run, channel, &record);
        err = wpk_engine_message_send_result(channel, wanted.id, &record, 1);
        well = err == WPK_OK &&
               (record.outcome == WPK_OUTCOME_OK || record.outcome == WPK_OUTCOME_WRONG_RESULT);
        wpk_buf_fini(&text);
        wpk_record_fini(&record);
    }
    _exit(0);
}

static wpk_err fork_kept(struct runner *runner, const struct wanted *wanted,
                         const struct wpk_runner_op *op, struct wpk_runner_child *out)
{
    const struct wpk_child_limits limits = {.memory_bytes_max =
                                                wanted->message.run.memory_bytes_max};
    struct wpk_channel channel;
    uint64_t start_ms = runner->options->start_ms > 0 ? runner->options->start_ms : START_MS;
    wpk_err err = wpk_runner_child_fork(out, 0, 1, start_ms * WPK_NS_PER_MS, &limits, &channel);
    if (err == WPK_OK && out->pid == 0) {
        serve_candidates(runner, op, &channel);
    }
    return err == WPK_OK ? wpk_runner_child_keep(out, wanted->op) : err;
}

/* End a child that is not needed.   errors  those of wpk_runner_child_end */
static wpk_err drop(struct runner *runner, struct wpk_runner_child *child)
{
    struct wpk_record record = {0};
    bool reported = false;
    return child->pid == 0
               ? WPK_OK
               : wpk_runner_child_end(child, runner->options, &runner->channel, &reported, &record);
}

/* Give the candidate to a child that is ready.
 *   errors  WPK_EBUSY none is yet; WPK_ESYSTEM, WPK_ENOMEM there is none; WPK_ETIMEDOUT the engine
 *           was told that a child does not disappear */
static wpk_err start_kept(struct runner *runner, const struct wanted *wanted,
                          const struct wpk_runner_op *op)
{
    struct wpk_runner_child *const children[] = {&runner->child, &runner->spare};
    for (int i = 0; i < 2; i++) {
        if (children[i]->pid != 0 && strcmp(children[i]->op, wanted->op) != 0) {
            wpk_err dropped = drop(runner, children[i]);
            if (dropped != WPK_OK) {
                return dropped;
            }
        }
    }
    if (runner->child.pid == 0) {
        runner->child = runner->spare;
        runner->spare = (struct wpk_runner_child){0};
    }
    wpk_err err = runner->child.pid == 0 ? fork_kept(runner, wanted, op, &runner->child) : WPK_OK;
    if (err != WPK_OK || runner->child.state != WPK_RUNNER_CHILD_READY) {
        return err == WPK_OK ? WPK_EBUSY : err;
    }
    uint64_t timeout_ms = wpk_runner_ops_timeout_ms(op->program, wanted->message.run.timeout_ms);
    wpk_runner_child_give(&runner->child, wanted->id, wanted->work, timeout_ms * WPK_NS_PER_MS,
                          &runner->pending);
    wpk_log(WPK_LOG_DEBUG, "run_started", "work=%s pid=%d", wanted->work, (int)runner->child.pid);
    if (runner->spare.pid == 0) { /* without one the next fault costs the time of a context */
        (void)!fork_kept(runner, wanted, op, &runner->spare);
    }
    return WPK_OK;
}

static wpk_err start(struct runner *runner, const struct wanted *wanted,
                     const struct wpk_runner_op *op)
{
    if (runner->options->on_gpu && !wanted->is_duel) {
        return start_kept(runner, wanted, op);
    }
    wpk_err err = drop(runner, &runner->child); /* contestants have processes of their own */
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_child_limits limits = {
        .memory_bytes_max = wanted->is_duel ? wanted->message.duel.memory_bytes_max
                                            : wanted->message.run.memory_bytes_max,
    };
    uint64_t timeout_ms =
        wanted->is_duel ? wanted->message.duel.timeout_ms
                        : wpk_runner_ops_timeout_ms(op->program, wanted->message.run.timeout_ms);
    struct wpk_channel channel;
    err = wpk_runner_child_fork(&runner->child, wanted->id, wanted->count,
                                timeout_ms * WPK_NS_PER_MS, &limits, &channel);
    if (err == WPK_OK && runner->child.pid == 0) {
        run_child(runner, wanted, op, &channel);
    }
    if (err == WPK_OK) {
        snprintf(runner->child.work, sizeof(runner->child.work), "%s", wanted->work);
        wpk_log(WPK_LOG_DEBUG, "run_started", "work=%s pid=%d", wanted->work,
                (int)runner->child.pid);
    }
    return err;
}

/* Start what is pending if its answers are there. */
static wpk_err advance_pending(struct runner *runner)
{
    bool busy = runner->child.pid != 0 && runner->child.state != WPK_RUNNER_CHILD_READY;
    if (runner->pending.size == 0 || busy) {
        return WPK_OK;
    }
    struct wanted wanted;
    wpk_err err = read_wanted(&runner->pending, &wanted);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_runner_op op;
    struct wpk_diag diag = {0};
    err = wpk_runner_ops_get(&runner->ops, wanted.op, &op, &diag);
    err = err == WPK_OK ? start(runner, &wanted, &op) : err;
    if (err != WPK_EBUSY) {
        if (err == WPK_ESYSTEM) {
            wpk_log(WPK_LOG_WARN, "run_broken", "work=%s reason=\"no process for it\"",
                    wanted.work);
            (void)!WPK_ENGINE_SEND(&runner->channel, .kind = WPK_ENGINE_MESSAGE_BROKEN,
                                   .text = "no process for a candidate");
        } else if (err != WPK_OK && err != WPK_ETIMEDOUT) {
            struct wpk_record record = {.outcome = err == WPK_ENOMEM ? WPK_OUTCOME_OUT_OF_MEMORY
                                                                     : WPK_OUTCOME_UNSUPPORTED};
            snprintf(record.log, sizeof(record.log), "no answers to compare with: %s: %s",
                     wpk_err_text(err), diag.text);
            wpk_log(WPK_LOG_INFO, "run_refused", "work=%s outcome=%s reason=\"%.300s\"",
                    wanted.work, wpk_outcome_name(record.outcome), record.log);
            (void)!refuse(runner, wanted.id, wanted.count, &record);
        }
        wpk_buf_reset(&runner->pending);
    }
    return WPK_OK;
}

/* ---- messages */

static wpk_err obey(void *user, const struct wpk_buf *text,
                    const struct wpk_engine_message *message)
{
    struct runner *runner = user;
    wpk_err err = WPK_OK;
    if (message->kind == WPK_ENGINE_MESSAGE_OP) {
        struct wpk_runner_op op;
        /* Whether it works is told to those who need it. */
        (void)!wpk_runner_ops_get(&runner->ops, message->text, &op, NULL);
    } else if (message->kind == WPK_ENGINE_MESSAGE_RUN ||
               message->kind == WPK_ENGINE_MESSAGE_DUEL) {
        WPK_ASSERT(runner->pending.size == 0);
        wpk_buf_append(&runner->pending, text->data, text->size);
        err = wpk_buf_status(&runner->pending);
    } else if (message->kind == WPK_ENGINE_MESSAGE_GO) {
        wpk_runner_child_go(&runner->child, text);
    } else {
        err = WPK_EPARSE;
    }
    return err;
}

/* The child has died without a result: say why. One that made no context has died of the candidate
 * that waits for it, as one that died while it ran. */
static wpk_err report_death(struct runner *runner)
{
    struct wpk_record record = {0};
    uint64_t id = runner->child.id;
    int count = runner->child.count;
    bool began = runner->child.op == NULL || runner->child.started;
    if (!began && runner->pending.size > 0) {
        struct wanted wanted;
        wpk_err err = read_wanted(&runner->pending, &wanted);
        if (err != WPK_OK) {
            return err;
        }
        id = wanted.id;
        count = wanted.count;
        runner->child.reported = false;
        snprintf(runner->child.work, sizeof(runner->child.work), "%s", wanted.work);
        wpk_buf_reset(&runner->pending);
    }
    bool reported = false;
    wpk_err err =
        wpk_runner_child_end(&runner->child, runner->options, &runner->channel, &reported, &record);
    if (err != WPK_OK || reported ||
        wpk_runner_child_lost_gpu(runner->options, &record, 1, &runner->channel)) {
        return WPK_OK;
    }
    return refuse(runner, id, count, &record);
}

/* Read what a child says, and see to its end. A spare that ends is missed by no candidate: the
 * next one that is given away starts another. */
static wpk_err look_after(struct runner *runner, struct wpk_runner_child *child, bool speaks)
{
    wpk_err err =
        speaks ? wpk_runner_child_relay(child, runner->options, &runner->channel) : WPK_OK;
    bool over =
        err == WPK_ECLOSED || wpk_runner_child_expire(child, runner->options, wpk_clock_ns());
    if (over && child == &runner->spare) {
        wpk_log(WPK_LOG_INFO, "spare_ended", "pid=%d", (int)child->pid);
        (void)!drop(runner, child);
        return WPK_OK;
    }
    return over ? report_death(runner) : err;
}

static wpk_err wait_and_look(struct runner *runner)
{
    struct wpk_runner_child *const children[] = {&runner->child, &runner->spare};
    struct pollfd polled[POLL_MAX] = {{.fd = runner->channel.fd, .events = POLLIN}};
    int timeout_ms = -1;
    for (int i = 0; i < 2; i++) {
        polled[1 + i] = (struct pollfd){.fd = children[i]->pid != 0 ? children[i]->channel.fd : -1,
                                        .events = POLLIN};
        int b = wpk_runner_child_left_ms(children[i], wpk_clock_ns());
        timeout_ms = timeout_ms < 0 || (b >= 0 && b < timeout_ms) ? b : timeout_ms;
    }
    int ops = wpk_runner_ops_poll(&runner->ops, polled + 3, POLL_MAX - 3);
    if (poll(polled, (nfds_t)(3 + ops), timeout_ms) < 0 && errno != EINTR) {
        return WPK_ESYSTEM;
    }
    wpk_runner_ops_collect(&runner->ops);
    for (int i = 0; i < 2; i++) {
        wpk_err err = look_after(runner, children[i], polled[1 + i].revents != 0);
        if (err != WPK_OK) {
            return err;
        }
    }
    return wpk_engine_message_obey(&runner->channel, obey, runner);
}

int wpk_runner_serve(const struct wpk_runner_options *options)
{
    static struct runner runner;
    runner.options = options;
    wpk_channel_init(&runner.channel, WPK_CHANNEL_FD);
    wpk_buf_init(&runner.pending, WPK_CHANNEL_MESSAGE_MAX);
    fcntl(WPK_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    wpk_process_core_count(); /* look before anything is pinned */
    wpk_runner_ops_init(&runner.ops, options->answers_dir);
    wpk_err err = WPK_ENGINE_SEND(&runner.channel, .kind = WPK_ENGINE_MESSAGE_READY);
    while (err == WPK_OK) {
        err = advance_pending(&runner);
        err = err == WPK_OK ? wait_and_look(&runner) : err;
    }
    return err == WPK_ECLOSED ? 0 : 1;
}
