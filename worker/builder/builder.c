/* SPDX-License-Identifier: Apache-2.0 */
/* wpk-builder's loop: each request forks a child, and each child ends in one reply.
 *
 *     build ──▶ fork ──▶ [running] ◀──resume── pause ──▶ [stopped]
 *                           │ exits, crashes, or is killed at its deadline
 *                           ▼
 *                         built
 *
 * A stopped child's time does not count: its deadline moves by as long as it was stopped. */
#include "worker/builder/builder.h"

#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "worker/engine_message.h"
#include "worker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX WPK_PROCESS_CORES_MAX
#define EXIT_REJECTED 3 /* the schedule's fault, explained in the log */
#define EXIT_MACHINE 4  /* ours */

struct child {
    pid_t pid; /* 0: free place */
    int fd;    /* readable when it has ended */
    uint64_t id;
    char work[WPK_ENGINE_MESSAGE_WORK_SIZE];
    int core;
    int log;             /* its standard error, a file */
    uint64_t started_ns; /* moved forward by every pause */
    uint64_t stopped_ns; /* since when it is stopped; 0: it runs */
    uint64_t timeout_ns;
    bool timed_out;
};

struct builder {
    const struct wpk_builder_options *options;
    struct wpk_channel channel;
    struct child children[CHILDREN_MAX];
    bool paused[CHILDREN_MAX]; /* by core */
};

/* ---- one child */

static void run_child(const struct builder *builder, const struct wpk_build_request *request,
                      pid_t parent)
{
    struct wpk_child_limits limits = {
        .memory_bytes_max = request->memory_bytes_max,
        .cpu_seconds_max = request->timeout_ms / 1000 + 2,
    };
    wpk_process_enter_child(parent, &limits);
    if (request->core >= 0) {
        wpk_process_pin(request->core, 1);
    }
    wpk_err err = wpk_builder_build(builder->options);
    bool machine = err == WPK_ENOENT || err == WPK_ENOSPC || err == WPK_EIO || err == WPK_EACCES ||
                   err == WPK_EBUSY || err == WPK_ESYSTEM;
    /* Not exit(): what the generator registered there was the zygote's. */
    _exit(err == WPK_OK ? 0 : machine ? EXIT_MACHINE : EXIT_REJECTED);
}

/* Standard output and error go to a file of the build's directory, which becomes the working
 * directory; the descriptor returned is the parent's. */
static int open_log(const char *directory)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/log", directory) >= (int)sizeof(path)) {
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static wpk_err start_child(struct builder *builder, const struct wpk_build_request *request)
{
    struct child *child = NULL;
    for (int i = 0; i < CHILDREN_MAX && child == NULL; i++) {
        child = builder->children[i].pid == 0 ? &builder->children[i] : NULL;
    }
    if (child == NULL) {
        return WPK_ENOSPC;
    }
    int log = open_log(request->directory);
    if (log < 0) {
        return wpk_fs_err(errno);
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        if (chdir(request->directory) != 0) {
            _exit(EXIT_MACHINE);
        }
        run_child(builder, request, parent);
    }
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0) {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        close(log);
        return WPK_ESYSTEM;
    }
    setpgid(pid, pid);
    *child = (struct child){.pid = pid,
                            .fd = fd,
                            .id = request->id,
                            .core = request->core,
                            .log = log,
                            .started_ns = wpk_clock_ns(),
                            .timeout_ns = request->timeout_ms * WPK_NS_PER_MS};
    snprintf(child->work, sizeof(child->work), "%s", request->work);
    wpk_log(WPK_LOG_DEBUG, "build_started", "work=%s pid=%d core=%d", child->work, (int)pid,
            child->core);
    if (request->core >= 0 && request->core < CHILDREN_MAX && builder->paused[request->core]) {
        child->stopped_ns = child->started_ns;
        wpk_process_signal(pid, SIGSTOP);
    }
    return WPK_OK;
}

static void append_log(char log[WPK_LOG_MAX], const char *text)
{
    size_t used = strlen(log);
    size_t need = strlen(text) + 2;
    if (used + need > WPK_LOG_MAX) {
        used = WPK_LOG_MAX - need;
    }
    snprintf(log + used, WPK_LOG_MAX - used, "%s%s", used > 0 ? "\n" : "", text);
}

/* The outcome of a build, from its process's exit status; `log` holds the process's output. */
static enum wpk_outcome describe_end(const struct child *child, int status, char log[WPK_LOG_MAX])
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        log[0] = '\0';
        return WPK_OUTCOME_OK;
    }
    if (child->timed_out || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
        append_log(log, "the build took too long");
        return WPK_OUTCOME_BUILD_TIMEOUT;
    }
    if (WIFSIGNALED(status)) {
        char text[64];
        snprintf(text, sizeof(text), "the code generator died by %s",
                 wpk_process_signal_name(WTERMSIG(status)));
        append_log(log, text);
    } else if (log[0] == '\0') {
        append_log(log, "the build failed and did not say why");
    }
    return WPK_OUTCOME_BUILD_ERROR;
}

static void end_child(struct builder *builder, struct child *child)
{
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    /* Kill the processes that it may have left in its group, for instance a linker. */
    kill(-child->pid, SIGKILL);
    char log[WPK_LOG_MAX];
    bool broken = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MACHINE && !child->timed_out;
    /* The beginning of the log: the first complaint is the one that matters. */
    ssize_t size = pread(child->log, log, WPK_LOG_MAX - 1, 0);
    for (ssize_t i = 0; i < size; i++) {
        log[i] = log[i] == '\0' ? ' ' : log[i];
    }
    log[size > 0 ? size : 0] = '\0';
    struct wpk_build_reply reply = {
        .id = child->id, .log = log, .build_ns = wpk_clock_ns() - child->started_ns};
    reply.outcome = describe_end(child, status, log);
    if (broken) {
        wpk_log(WPK_LOG_WARN, "build_broken", "work=%s reason=\"%.*s\"", child->work,
                (int)strcspn(log, "\n"), log);
    } else {
        /* That a candidate does not build is no news; that it took its process with it is some. */
        char how[WPK_PROCESS_END_SIZE];
        bool by_itself = WIFEXITED(status) && !child->timed_out;
        wpk_process_describe_end(status, how);
        wpk_log(by_itself ? WPK_LOG_DEBUG : WPK_LOG_INFO, "build_ended",
                "work=%s pid=%d outcome=%s ms=%" PRIu64 " end=\"%s\" reason=\"%.*s\"", child->work,
                (int)child->pid, wpk_outcome_name(reply.outcome), reply.build_ns / WPK_NS_PER_MS,
                how, (int)strcspn(reply.log, "\n"), reply.log);
    }
    close(child->fd);
    close(child->log);
    *child = (struct child){0};
    /* A dead engine is noticed by the loop. */
    (void)!(
        broken
            ? WPK_ENGINE_SEND(&builder->channel, .kind = WPK_ENGINE_MESSAGE_BROKEN, .text = log)
            : WPK_ENGINE_SEND(&builder->channel, .kind = WPK_ENGINE_MESSAGE_BUILT, .built = reply));
}

/* ---- requests */

static void pause_core(struct builder *builder, int core, bool paused)
{
    if (core < 0 || core >= CHILDREN_MAX) {
        return;
    }
    builder->paused[core] = paused;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &builder->children[i];
        if (child->pid == 0 || child->core != core || (child->stopped_ns > 0) == paused) {
            continue;
        }
        wpk_process_signal(child->pid, paused ? SIGSTOP : SIGCONT);
        if (paused) {
            child->stopped_ns = wpk_clock_ns();
        } else {
            child->started_ns += wpk_clock_ns() - child->stopped_ns;
            child->stopped_ns = 0;
        }
    }
}

static wpk_err obey(void *user, const struct wpk_buf *text WPK_UNUSED,
                    const struct wpk_engine_message *message)
{
    struct builder *builder = user;
    wpk_err err = WPK_OK;
    if (message->kind == WPK_ENGINE_MESSAGE_BUILD) {
        wpk_err started = start_child(builder, &message->build);
        if (started != WPK_OK) {
            char why[128];
            snprintf(why, sizeof why, "a build cannot be started: %s", wpk_err_text(started));
            err =
                WPK_ENGINE_SEND(&builder->channel, .kind = WPK_ENGINE_MESSAGE_BROKEN, .text = why);
        }
    } else if (message->kind == WPK_ENGINE_MESSAGE_PAUSE) {
        pause_core(builder, message->core, true);
        err = WPK_ENGINE_SEND(&builder->channel, .kind = WPK_ENGINE_MESSAGE_PAUSED,
                              .core = message->core);
    } else if (message->kind == WPK_ENGINE_MESSAGE_RESUME) {
        pause_core(builder, message->core, false);
    } else {
        err = WPK_EPARSE;
    }
    return err;
}

int wpk_builder_serve(const struct wpk_builder_options *options)
{
    static struct builder builder;
    builder.options = options;
    wpk_channel_init(&builder.channel, WPK_CHANNEL_FD);
    fcntl(WPK_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    wpk_process_core_count(); /* look before anything is pinned */
    wpk_err err = WPK_ENGINE_SEND(&builder.channel, .kind = WPK_ENGINE_MESSAGE_READY);
    while (err == WPK_OK) {
        /* Kill what is past its deadline; returns how long the loop may sleep, -1 for ever. */
        uint64_t now = wpk_clock_ns();
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < CHILDREN_MAX; i++) {
            struct child *child = &builder.children[i];
            if (child->pid == 0 || child->stopped_ns > 0 || child->timed_out) {
                continue;
            }
            uint64_t deadline = child->started_ns + child->timeout_ns;
            if (now >= deadline) {
                child->timed_out = true;
                wpk_process_signal(child->pid, SIGKILL);
            } else if (deadline - now < next) {
                next = deadline - now;
            }
        }
        int timeout_ms = next == UINT64_MAX ? -1 : (int)(next / WPK_NS_PER_MS) + 1;
        struct pollfd polled[1 + CHILDREN_MAX] = {{.fd = builder.channel.fd, .events = POLLIN}};
        struct child *owner[1 + CHILDREN_MAX] = {NULL};
        nfds_t count = 1;
        for (int i = 0; i < CHILDREN_MAX; i++) {
            if (builder.children[i].pid != 0) {
                owner[count] = &builder.children[i];
                polled[count] = (struct pollfd){.fd = owner[count]->fd, .events = POLLIN};
                count++;
            }
        }
        if (poll(polled, count, timeout_ms) < 0 && errno != EINTR) {
            return 1;
        }
        for (nfds_t i = 1; i < count; i++) {
            if (polled[i].revents != 0) {
                end_child(&builder, owner[i]);
            }
        }
        err = wpk_engine_message_obey(&builder.channel, obey, &builder);
    }
    return err == WPK_ECLOSED ? 0 : 1; /* the children die with us */
}
