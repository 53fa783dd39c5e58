/* SPDX-License-Identifier: Apache-2.0 */
/* A duel: contestants timed in turns, so that a change of the machine strikes all of them.
 *
 * Each lives in a process of its own and sleeps between its turns: neither its memory nor its
 * threads are in the way of the others. */
#include "worker/measure.h"
#include "worker/process.h"
#include "worker/runner.h"
#include "worker/subject.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Between turns, for the pools of threads that spin before they sleep. */
#define SETTLE_NS (2 * (long)WPK_NS_PER_MS)

/* What a contestant says when it is open, without a time, and after each turn. */
struct turn {
    wpk_err err;
    uint64_t ns; /* median of the turn's samples */
    int repeat_count;
};

struct contestant {
    pid_t pid; /* 0: out */
    int fd;
};

static wpk_err open_contestant(const struct wpk_runner_op *op,
                               const struct wpk_duel_request *request, const char *name,
                               struct wpk_subject *subject)
{
    bool is_vendor = strchr(name, '/') == NULL;
    const struct wpk_subject_options subject_options = {
        .provider = is_vendor ? name : wpk_provider_kernel.name,
        .artifact = is_vendor ? "" : name,
        .layouts = request->layouts,
        .threads = request->policy.threads,
    };
    struct wpk_diag diag = {0};
    return wpk_subject_open(subject, op->program, &subject_options, &op->inputs[WPK_RUNNER_REALS],
                            &diag);
}

static bool say(int fd, const struct turn *turn)
{
    return write(fd, turn, sizeof(*turn)) == (ssize_t)sizeof(*turn);
}

/* A turn for every byte that comes, until the other end is closed. */
static void serve_turns(const struct wpk_duel_request *request, struct wpk_subject *subject, int fd)
{
    const struct wpk_measure_subject measured = {.run = wpk_subject_run,
                                                 .cool = wpk_subject_cool,
                                                 .user = subject,
                                                 .clock = wpk_clock_system()};
    char byte;
    while (read(fd, &byte, 1) == 1) {
        struct wpk_timing timing = {0};
        struct turn turn = {.err = wpk_measure(&measured, &request->policy, 0, &timing)};
        turn.ns = timing.median_ns;
        turn.repeat_count = timing.repeat_count;
        if (!say(fd, &turn)) {
            break;
        }
    }
    _exit(0);
}

static void start_contestant(const struct wpk_runner_op *op, const struct wpk_duel_request *request,
                             int index, struct contestant *out)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        /* It stays in the duel's group, and dies with it. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        close(pair[0]);
        static struct wpk_subject subject;
        const struct turn opened = {
            .err = open_contestant(op, request, request->contestant[index], &subject)};
        if (say(pair[1], &opened) && opened.err == WPK_OK) {
            serve_turns(request, &subject, pair[1]);
        }
        _exit(0);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return;
    }
    *out = (struct contestant){.pid = pid, .fd = pair[0]};
}

/* What it says next; a contestant that fails is out. */
static bool hear(struct contestant *contestant, struct wpk_record *record, struct turn *turn)
{
    bool alive = read(contestant->fd, turn, sizeof(*turn)) == (ssize_t)sizeof(*turn);
    if (alive && turn->err == WPK_OK) {
        return true;
    }
    record->outcome = alive ? wpk_subject_outcome(turn->err) : WPK_OUTCOME_RUN_CRASH;
    snprintf(record->log, sizeof(record->log), "%s",
             alive ? wpk_err_text(turn->err) : "died in the duel");
    record->timing = (struct wpk_timing){0};
    close(contestant->fd);
    contestant->pid = 0;
    return false;
}

static void take_turn(struct contestant *contestant, struct wpk_record *record)
{
    struct turn turn;
    if (contestant->pid == 0) {
        return;
    }
    (void)!write(contestant->fd, "t", 1); /* if it is dead, that is heard */
    if (hear(contestant, record, &turn)) {
        record->timing.sample_ns[record->timing.sample_count++] = turn.ns;
        record->timing.repeat_count = turn.repeat_count;
    }
}

void wpk_runner_duel(const struct wpk_runner_op *op, const struct wpk_duel_request *request,
                     struct wpk_channel *channel, struct wpk_record *out)
{
    WPK_ASSERT(request->count <= WPK_DUEL_MAX);
    WPK_ASSERT(request->round_count <= WPK_SAMPLES_MAX);
    struct contestant contestants[WPK_DUEL_MAX] = {{0}};
    int threads = request->policy.threads;
    signal(SIGPIPE, SIG_IGN);
    wpk_process_pin(wpk_process_core_count() - threads, threads);
    for (int i = 0; i < request->count; i++) {
        start_contestant(op, request, i, &contestants[i]);
        if (contestants[i].pid == 0) {
            out[i].outcome = WPK_OUTCOME_OUT_OF_MEMORY;
        }
    }
    /* Nobody is opened any more while another is timed. */
    for (int i = 0; i < request->count; i++) {
        struct turn opened;
        if (contestants[i].pid != 0) {
            (void)hear(&contestants[i], &out[i], &opened);
        }
    }
    wpk_runner_wait_for_go(channel, request->id);
    for (int round = 0; round < request->round_count; round++) {
        for (int i = 0; i < request->count; i++) {
            /* Each goes first in turn. */
            int index = (round + i) % request->count;
            take_turn(&contestants[index], &out[index]);
            nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
        }
    }
    for (int i = 0; i < request->count; i++) {
        if (out[i].outcome == WPK_OUTCOME_OK) {
            wpk_measure_summarize(&out[i].timing);
        }
    }
}
