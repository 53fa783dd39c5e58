/* SPDX-License-Identifier: Apache-2.0 */
/* A duel: contestants are timed in turns, so that a change of the machine's speed affects all of
 * them.
 *
 * Each contestant has a process of its own, which sleeps between its turns: neither its memory nor
 * its threads disturb the others. */
#include "worker/measure.h"
#include "worker/process.h"
#include "worker/runner/run_batch.h"
#include "worker/runner/runner.h"
#include "worker/runner/subject.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Between turns, for the pools of threads that spin before they sleep. */
#define SETTLE_NS (2 * (long)WPK_NS_PER_MS)

/* A contestant's message: one when it is open, without a time, and one after each turn. */
struct turn {
    wpk_err err;
    uint64_t ns; /* median of the turn's samples */
    int repeat_count;
    int throttled_count;
    int disturbed_count;
};

struct contestant {
    pid_t pid; /* 0: out */
    int fd;
    int repeat_count;    /* of its last turn */
    int throttled_count; /* samples of all turns, as are the next */
    int disturbed_count;
    struct wpk_record *record; /* how it ended */
};

/* A contestant is a path or a vendor's name. */
static bool is_vendor(const char *contestant)
{
    return strchr(contestant, '/') == NULL;
}

static wpk_err open_contestant(const struct wpk_runner_op *op,
                               const struct wpk_duel_request *request, const char *name,
                               struct wpk_subject *subject)
{
    bool vendor = is_vendor(name);
    const struct wpk_subject_options subject_options = {
        .provider = vendor ? name : WPK_PROVIDER_KERNEL_NAME,
        .artifact = vendor ? "" : name,
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
    const struct wpk_measure_subject measured = wpk_subject_measured(subject);
    char byte;
    while (read(fd, &byte, 1) == 1) {
        struct wpk_timing timing = {0};
        struct turn turn = {.err = wpk_measure(&measured, &request->policy, 0, &timing)};
        turn.ns = timing.median_ns;
        turn.repeat_count = timing.repeat_count;
        turn.throttled_count = timing.throttled_count;
        turn.disturbed_count = timing.disturbed_count;
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
    out->pid = pid;
    out->fd = pair[0];
}

/* Read the contestant's next message; one that fails is out. */
static bool hear(struct contestant *contestant, struct turn *turn)
{
    struct wpk_record *record = contestant->record;
    bool alive = read(contestant->fd, turn, sizeof(*turn)) == (ssize_t)sizeof(*turn);
    if (alive && turn->err == WPK_OK) {
        return true;
    }
    record->outcome = alive ? wpk_subject_outcome(turn->err) : WPK_OUTCOME_RUN_CRASH;
    snprintf(record->log, sizeof(record->log), "%s",
             alive ? wpk_err_text(turn->err) : "died in the duel");
    close(contestant->fd);
    contestant->pid = 0;
    return false;
}

static uint64_t take_turn(void *user, int index)
{
    struct contestant *contestant = (struct contestant *)user + index;
    struct turn turn = {.ns = 0};
    if (contestant->pid == 0) {
        return 0;
    }
    (void)!write(contestant->fd, "t", 1); /* if it is dead, that is heard */
    bool heard = hear(contestant, &turn);
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    contestant->repeat_count = turn.repeat_count;
    contestant->throttled_count += turn.throttled_count;
    contestant->disturbed_count += turn.disturbed_count;
    return !heard ? 0 : turn.ns > 0 ? turn.ns : 1;
}

void wpk_runner_duel(const struct wpk_runner_op *op, const struct wpk_duel_request *request,
                     struct wpk_channel *channel, struct wpk_record *out)
{
    WPK_ASSERT(request->count <= WPK_DUEL_MAX);
    struct wpk_timing timing[WPK_DUEL_MAX];
    struct contestant contestants[WPK_DUEL_MAX] = {{0}};
    struct wpk_duel_rounds rounds = {.count = request->count,
                                     .round_count = request->round_count,
                                     .take_turn = take_turn,
                                     .user = contestants};
    int threads = request->policy.threads;
    signal(SIGPIPE, SIG_IGN);
    wpk_process_pin(wpk_process_core_count() - threads, threads);
    for (int i = 0; i < request->count; i++) {
        contestants[i].record = &out[i];
        rounds.is_vendor[i] = is_vendor(request->contestant[i]);
    }
    /* Start all and wait until they are open: nobody is opened any more while another is timed. */
    for (int i = 0; i < request->count; i++) {
        start_contestant(op, request, i, &contestants[i]);
        if (contestants[i].pid == 0) {
            contestants[i].record->outcome = WPK_OUTCOME_OUT_OF_MEMORY;
        }
    }
    for (int i = 0; i < request->count; i++) {
        struct turn opened;
        if (contestants[i].pid != 0) {
            (void)hear(&contestants[i], &opened);
        }
    }
    wpk_runner_wait_for_go(channel, request->id);
    wpk_duel_rounds_play(&rounds, timing);
    for (int i = 0; i < request->count; i++) {
        out[i].timing = timing[i];
        out[i].timing.repeat_count = contestants[i].repeat_count;
        out[i].timing.throttled_count = contestants[i].throttled_count;
        out[i].timing.disturbed_count = contestants[i].disturbed_count;
    }
}
