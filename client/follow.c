/* SPDX-License-Identifier: Apache-2.0 */
#include "client/follow.h"

#include "client/format.h"
#include "client/patience.h"
#include "common/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 250
/* Between lines where there is no terminal to redraw: the first few soon, then seldom. */
#define PLAIN_SOON_S 1
#define PLAIN_SOON_COUNT 10
#define PLAIN_SELDOM_S 5
#define CANCEL_S 10   /* after that, what is recorded is enough */
#define STARTING_S 10 /* a private worker measures its machine's peak before it joins */

static volatile sig_atomic_t interrupted;

static void remember_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void wpk_follow_catch_signals(void)
{
    /* RESETHAND: a second Ctrl-C means it. No RESTART: sleeping ends early. */
    struct sigaction action = {.sa_handler = remember_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool wpk_follow_interrupted(void)
{
    return interrupted != 0;
}

static bool op_ended(const struct wpk_api_op *op)
{
    return strcmp(op->phase, "done") == 0 || strcmp(op->phase, "failed") == 0 ||
           strcmp(op->phase, "cancelled") == 0;
}

static void print_op(const struct wpk_api_op *op, struct wpk_buf *out)
{
    char time[WPK_FORMAT_SIZE];

    if (strcmp(op->phase, "waiting") == 0) {
        wpk_buf_append_text(out, "waiting for a worker");
        return;
    }
    wpk_buf_printf(out, "%" PRId64 " of %" PRId64 " tried, %" PRId64 " failed",
                   op->measured + op->failed, op->wanted, op->failed);
    if (op->best.provider != NULL && op->best.time.median_ns > 0) {
        wpk_format_ns(op->best.time.median_ns, time);
        wpk_buf_printf(out, ", best %s (%s)", time,
                       op->best.algorithm[0] != '\0' ? op->best.algorithm : op->best.provider);
    }
    if (op->baseline.provider != NULL && op->baseline.time.median_ns > 0) {
        wpk_format_ns(op->baseline.time.median_ns, time);
        wpk_buf_printf(out, ", %s %s", op->baseline.provider, time);
        if (op->best.provider != NULL && op->best.time.median_ns > 0) {
            wpk_buf_printf(out, " (%.2fx)",
                           (double)op->baseline.time.median_ns / (double)op->best.time.median_ns);
        }
    }
    if (strcmp(op->phase, "finals") == 0) {
        wpk_buf_append_text(out, ", timing the finalists");
    } else if (strcmp(op->phase, "verifying") == 0) {
        wpk_buf_append_text(out, ", verifying the winner");
    }
}

void wpk_follow_print(const struct wpk_api_job *job, bool starting, struct wpk_buf *out)
{
    const struct wpk_api_op *current = NULL;
    int ended = 0;
    char left[WPK_FORMAT_SIZE];

    for (int i = 0; i < job->op_count; i++) {
        ended += op_ended(&job->ops[i]);
        /* The one that is worked on; else the first that waits. */
        if (!op_ended(&job->ops[i]) &&
            (current == NULL || (strcmp(current->phase, "waiting") == 0 &&
                                 strcmp(job->ops[i].phase, "waiting") != 0))) {
            current = &job->ops[i];
        }
    }
    if (job->op_count > 1) {
        wpk_buf_printf(out, "[%d/%d] ", ended, job->op_count);
    }
    if (current == NULL) {
        wpk_buf_append_text(out, job->state);
        return;
    }
    wpk_buf_printf(out, "%s: ", current->name);
    bool waiting = strcmp(current->phase, "waiting") == 0;
    if (waiting && starting) {
        wpk_buf_append_text(out, "starting a worker");
    } else {
        print_op(current, out);
    }
    if (waiting && !starting && job->reason[0] != '\0') {
        wpk_buf_printf(out, " (%s)", job->reason);
    }
    wpk_format_seconds(job->seconds_left, left);
    wpk_buf_printf(out, ", %s left", left);
}

/* A line that is redrawn on a terminal, and written now and then elsewhere. */
struct line {
    bool terminal;
    bool drawn;
    uint64_t written_ns;
    int written_count;
    struct wpk_buf last;
};

static void draw(struct line *line, const struct wpk_api_job *job, bool starting, uint64_t now_ns)
{
    uint64_t pause_s = line->written_count < PLAIN_SOON_COUNT ? PLAIN_SOON_S : PLAIN_SELDOM_S;
    struct wpk_buf text = {0};

    wpk_follow_print(job, starting, &text);
    if (line->terminal) {
        fprintf(stderr, "\r\033[K%s", wpk_buf_text(&text));
        line->drawn = true;
    } else if (strcmp(wpk_buf_text(&text), wpk_buf_text(&line->last)) != 0 &&
               (line->written_ns == 0 || now_ns - line->written_ns >= pause_s * WPK_NS_PER_S)) {
        fprintf(stderr, "%s\n", wpk_buf_text(&text));
        line->written_ns = now_ns;
        line->written_count++;
        wpk_buf_reset(&line->last);
        wpk_buf_append_text(&line->last, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

static void end_line(struct line *line)
{
    if (line->drawn) {
        fputs("\r\033[K", stderr);
    }
    wpk_buf_fini(&line->last);
}

/* Ask once; tells apart "not now" (WPK_OK, *answered false) and "never". */
static wpk_err ask_once(struct wpk_session *session, const char *id, const char *action,
                        struct wpk_arena *arena, struct wpk_http_reply *reply,
                        struct wpk_api_job *out, bool *answered, struct wpk_diag *diag)
{
    struct wpk_diag found = {0};

    wpk_http_reply_fini(reply);
    wpk_arena_reset(arena);
    wpk_err err = wpk_session_ask_job(session, id, action, arena, reply, out, &found);
    *answered = err == WPK_OK;
    if (err != WPK_OK && diag != NULL) {
        *diag = found;
    }
    return wpk_patience_lost(err) ? WPK_OK : err;
}

wpk_err wpk_follow(struct wpk_session *session, const struct wpk_follow_options *options,
                   struct wpk_arena *arena, struct wpk_http_reply *reply, struct wpk_api_job *out,
                   struct wpk_diag *diag)
{
    const struct wpk_clock *clock = wpk_clock_system();
    struct line line = {.terminal = isatty(STDERR_FILENO) == 1};
    uint64_t began_ns = wpk_clock_now_ns(clock);
    uint64_t starting_ns = options->own_worker ? STARTING_S * WPK_NS_PER_S : 0;
    struct wpk_patience patience = {0};
    bool heard = session->private_service != NULL; /* ours may be starting */
    uint64_t cancelled_ns = 0;
    struct wpk_diag last = {0};
    wpk_err err = WPK_OK;

    while (err == WPK_OK) {
        uint64_t now_ns = wpk_clock_now_ns(clock);
        bool cancel = interrupted != 0 && options->cancel && cancelled_ns == 0;
        bool answered = false;
        err = ask_once(session, options->id, cancel ? ":cancel" : "", arena, reply, out, &answered,
                       &last);
        if (answered) {
            patience = (struct wpk_patience){0};
            heard = true;
            cancelled_ns = cancel ? now_ns : cancelled_ns;
            if (wpk_api_job_ended(out)) {
                break;
            }
            if (!options->quiet) {
                draw(&line, out, now_ns - began_ns < starting_ns, now_ns);
            }
        }
        if (interrupted != 0 &&
            (!options->cancel ||
             (cancelled_ns != 0 && now_ns - cancelled_ns > CANCEL_S * WPK_NS_PER_S))) {
            break;
        }
        if (err == WPK_OK) {
            struct wpk_diag lost = last;
            last = (struct wpk_diag){0};
            err = wpk_session_tend(session, &last);
            if (err == WPK_OK && !answered && (!heard || !wpk_patience_wait(&patience))) {
                last = lost;
                err = WPK_ECLOSED;
            }
        }
        if (answered) {
            nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        }
    }
    end_line(&line);
    if (err != WPK_OK && diag != NULL) {
        *diag = last;
    }
    return err;
}
