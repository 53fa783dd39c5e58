/* SPDX-License-Identifier: Apache-2.0 */
#include "client/follow.h"

#include "client/output.h"
#include "common/clock.h"
#include "schema/device.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
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

static void remember_signal(int number WPK_UNUSED)
{
    interrupted = 1;
}

void wpk_follow_catch_signals(void)
{
    /* RESETHAND: a second Ctrl-C means it. No RESTART: sleeping ends early. */
    struct sigaction action = {.sa_handler = remember_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) { /* of nohup */
        sigaction(SIGHUP, &action, NULL);
    }
}

bool wpk_follow_interrupted(void)
{
    return interrupted != 0;
}

void wpk_follow_go_on(void)
{
    interrupted = 0;
    wpk_follow_catch_signals();
}

static bool op_ended(const struct wpk_api_op *op)
{
    return strcmp(op->phase, "done") == 0 || strcmp(op->phase, "failed") == 0 ||
           strcmp(op->phase, "cancelled") == 0;
}

int64_t wpk_follow_estimate(const struct wpk_api_job *job)
{
    int64_t tried = 0;
    int64_t left = 0;

    for (int i = 0; i < job->op_count; i++) {
        const struct wpk_api_op *op = &job->ops[i];
        int64_t done = op->measured + op->failed;
        tried += done - op->known;
        left += op_ended(op) || done > op->wanted ? 0 : op->wanted - done;
    }
    if (tried <= 0 || job->seconds <= 0) {
        return -1;
    }
    double seconds = job->seconds / (double)tried * (double)left;
    return seconds < (double)job->seconds_left ? (int64_t)seconds : job->seconds_left;
}

void wpk_follow_complain(const struct wpk_api_job *job)
{
    bool cancelled = strcmp(job->state, "cancelled") == 0;

    fprintf(stderr, "wpkctl: the job has %s%s%s; %s%s\n", cancelled ? "been cancelled" : job->state,
            job->reason[0] != '\0' ? ": " : "", job->reason,
            cancelled ? "tune or submit it again to go on" : "what it tried: wpkctl trials ",
            cancelled ? "" : job->id);
}

#define PARTS_MAX 12
#define PART_SIZE 128

/* A line in parts, in their order. */
struct parts {
    struct {
        int rank; /* what gives way first has the highest; 0: never */
        char text[PART_SIZE];
    } part[PARTS_MAX];
    int count;
};

WPK_PRINTF(3, 4)
static void add_part(struct parts *parts, int rank, const char *format, ...)
{
    va_list args;

    WPK_ASSERT(parts->count < PARTS_MAX);
    va_start(args, format);
    vsnprintf(parts->part[parts->count].text, PART_SIZE, format, args);
    va_end(args);
    parts->part[parts->count++].rank = rank;
}

/* Parts of rank below `rank`, and how wide they are together. */
static int join(const struct parts *parts, int rank, struct wpk_buf *out)
{
    wpk_buf_reset(out);
    for (int i = 0; i < parts->count; i++) {
        if (parts->part[i].rank < rank) {
            wpk_buf_append_text(out, parts->part[i].text);
        }
    }
    return wpk_format_width(wpk_buf_text(out));
}

static void print_parts(const struct parts *parts, int width, struct wpk_buf *out)
{
    struct wpk_buf line = {0};
    int rank = PARTS_MAX;

    while (join(parts, rank, &line) > width && width > 0 && rank > 1) {
        rank--;
    }
    if (width > 0) {
        wpk_format_cut(wpk_buf_text(&line), width, out);
    } else {
        wpk_buf_append_text(out, wpk_buf_text(&line));
    }
    wpk_buf_fini(&line);
}

/* The numbers that the table will show, as it shows them. */
static void add_times(const struct wpk_api_op *op, struct parts *parts)
{
    char time[WPK_FORMAT_SIZE];
    bool best = op->best.provider != NULL && op->best.time.median_ns > 0;

    if (best) {
        if (op->asked != NULL && wpk_device_class_is_emulated(op->asked->device)) {
            wpk_format_modelled(op->best.time.median_ns, time);
        } else {
            wpk_format_ns(op->best.time.median_ns, time);
        }
        add_part(parts, 1, ", best %s", time);
        add_part(parts, 6, " (%.100s)",
                 op->best.algorithm[0] != '\0' ? op->best.algorithm : op->best.provider);
    }
    if (op->baseline.provider == NULL || op->baseline.time.median_ns == 0) {
        return;
    }
    wpk_format_ns(op->baseline.time.median_ns, time);
    add_part(parts, 4, ", %.60s %s", op->baseline.provider, time);
    if (wpk_report_is_noisy(&op->baseline.time)) {
        add_part(parts, 5, " ± %.0f %%",
                 100 * (double)op->baseline.time.mad_ns / (double)op->baseline.time.median_ns);
    }
    if (best) {
        add_part(parts, 3, ", %.2fx",
                 (double)op->baseline.time.median_ns / (double)op->best.time.median_ns);
    }
}

static void add_op(const struct wpk_api_job *job, const struct wpk_api_op *op, bool starting,
                   struct parts *parts)
{
    if (strcmp(op->phase, "waiting") == 0) {
        add_part(parts, 0, starting ? "starting a worker" : "waiting for a worker");
        if (!starting && job->reason[0] != '\0') {
            add_part(parts, 0, " (%.100s)", job->reason);
        }
        return;
    }
    add_part(parts, 0, "%" PRId64 " of %" PRId64 " tried", op->measured + op->failed, op->wanted);
    if (op->failed > 0) {
        add_part(parts, 0, ", %" PRId64 " failed", op->failed);
    }
    add_times(op, parts);
    if (strcmp(op->phase, "finals") == 0) {
        add_part(parts, 2, ", timing the finalists");
    } else if (strcmp(op->phase, "verifying") == 0) {
        add_part(parts, 2, ", verifying the winner");
    }
}

void wpk_follow_print(const struct wpk_api_job *job, bool starting, int width, struct wpk_buf *out)
{
    const struct wpk_api_op *current = NULL;
    int ended = 0;
    char left[WPK_FORMAT_SIZE];
    struct parts parts = {.count = 0};

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
        add_part(&parts, 0, "[%d/%d] ", ended, job->op_count);
    }
    if (current == NULL) {
        add_part(&parts, 0, "%s", job->state);
    } else {
        int64_t estimate = wpk_follow_estimate(job);
        add_part(&parts, 0, "%.64s: ", current->name);
        add_op(job, current, starting, &parts);
        /* With every trial told, the pace says nothing of what the final takes. */
        if (estimate != 0) {
            wpk_format_seconds(estimate > 0 ? estimate : job->seconds_left, left);
            add_part(&parts, 0, ", %s%s left", estimate > 0 ? "about " : "at most ", left);
        }
    }
    print_parts(&parts, width, out);
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
    int width = wpk_output_width(STDERR_FILENO);

    /* The last column stays free: a cursor behind it would wrap the line on some terminals. */
    wpk_follow_print(job, starting, width > 1 ? width - 1 : 0, &text);
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

static void wipe_line(struct line *line)
{
    if (line->drawn) {
        fputs("\r\033[K", stderr);
        line->drawn = false;
    }
}

/* An outage is told when it begins and when it ends. */
static void tell_outage(struct line *line, bool *lost, bool answered, const struct wpk_diag *why)
{
    if (*lost == !answered) {
        return;
    }
    *lost = !answered;
    wipe_line(line);
    if (answered) {
        fputs("wpkd answers again\n", stderr);
    } else {
        fprintf(stderr, "wpkd cannot be reached%s%s; asking again for %d s\n",
                why->text[0] != '\0' ? ": " : "", why->text, WPK_PATIENCE_S);
    }
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
    bool lost = false;
    uint64_t cancelled_ns = 0;
    struct wpk_diag last = {0};
    wpk_err err = WPK_OK;

    while (err == WPK_OK) {
        uint64_t now_ns = wpk_clock_now_ns(clock);
        bool over = interrupted != 0 || (options->until_ns != 0 && now_ns >= options->until_ns);
        bool cancel = over && options->cancel && cancelled_ns == 0;
        bool answered = false;
        err = ask_once(session, options->id, cancel ? ":cancel" : "", arena, reply, out, &answered,
                       &last);
        if (heard && err == WPK_OK && !options->quiet) {
            tell_outage(&line, &lost, answered, &last);
        }
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
        if (over && (!options->cancel ||
                     (cancelled_ns != 0 && now_ns - cancelled_ns > CANCEL_S * WPK_NS_PER_S))) {
            break;
        }
        if (err == WPK_OK) {
            struct wpk_diag first = last;
            last = (struct wpk_diag){0};
            err = wpk_session_tend(session, &last);
            if (err == WPK_OK && !answered && (!heard || !wpk_patience_wait(&patience))) {
                last = first;
                err = WPK_ECLOSED;
            }
        }
        if (answered) {
            nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        }
    }
    wipe_line(&line);
    wpk_buf_fini(&line.last);
    if (err != WPK_OK && diag != NULL) {
        *diag = last;
    }
    return err;
}

wpk_err wpk_follow_submit(struct wpk_session *session, const struct wpk_job *job,
                          const struct wpk_follow_options *options, struct wpk_arena *arena,
                          struct wpk_http_reply *reply, struct wpk_api_job *out,
                          struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_http_reply accepted = {0};
    struct wpk_follow_options follow = *options;
    struct wpk_api_job job_there;
    char id[64];

    wpk_err err = wpk_job_encode(job, &text);
    err = err == WPK_OK ? wpk_session_submit(session, wpk_buf_text(&text), &accepted, diag) : err;
    err = err == WPK_OK ? wpk_api_decode_job(&accepted.body, arena, &job_there, diag) : err;
    if (err == WPK_OK) {
        snprintf(id, sizeof(id), "%s", job_there.id);
        follow.id = id;
        err = wpk_follow(session, &follow, arena, reply, out, diag);
    }
    wpk_http_reply_fini(&accepted);
    wpk_buf_fini(&text);
    return err;
}
