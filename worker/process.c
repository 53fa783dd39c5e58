/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/process.h"

#include "common/clock.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REAP_PAUSE_NS_MIN 100000
#define REAP_PAUSE_NS_MAX 10000000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The cores this process was started with, in ascending order: pinning must not forget them. With a
 * CPU quota the first of them, as many as it allows. */
static struct {
    int count;
    size_t core[WPK_PROCESS_CORES_MAX];
    bool siblings_known;
    size_t sibling[WPK_PROCESS_CORES_MAX]; /* the first hardware thread of the same core */
} usable;

_Static_assert(CPU_SETSIZE == WPK_PROCESS_CORES_MAX, "a core of the mask has no place");

static void look_at_cores(void)
{
    cpu_set_t set;
    char group[WPK_QUOTA_PATH_MAX];
    if (usable.count > 0) {
        return;
    }
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (size_t core = 0; core < CPU_SETSIZE; core++) {
            if (CPU_ISSET(core, &set)) {
                usable.core[usable.count++] = core;
            }
        }
    }
    wpk_quota_find("", group);
    usable.count = wpk_quota_cpus(group, usable.count);
}

int wpk_process_core_count(void)
{
    look_at_cores();
    return usable.count;
}

/* The system's list begins with the lowest: "0,32", "4-5". */
static size_t first_sibling(size_t core)
{
    char path[96];
    char text[64] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
             core);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return core;
    }
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return read && text[0] >= '0' && text[0] <= '9' ? (size_t)strtoul(text, NULL, 10) : core;
}

bool wpk_process_are_siblings(int a, int b)
{
    look_at_cores();
    WPK_ASSERT(a >= 0 && a < usable.count);
    WPK_ASSERT(b >= 0 && b < usable.count);
    for (int i = 0; i < usable.count && !usable.siblings_known; i++) {
        usable.sibling[i] = first_sibling(usable.core[i]);
    }
    usable.siblings_known = true;
    return usable.sibling[a] == usable.sibling[b];
}

void wpk_process_pin(int first, int count)
{
    look_at_cores();
    if (count <= 0) {
        first = 0;
        count = usable.count;
    }
    WPK_ASSERT(first >= 0);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++) {
        CPU_SET(usable.core[(first + i) % usable.count], &set);
    }
    /* A refusal (a cgroup changed under us) leaves us where we are: slower, never wrong. */
    (void)!sched_setaffinity(0, sizeof(set), &set);
}

static void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* it died before we asked */
    }
}

/* Schedulers send SIGTERM to every process of a job: only the worker takes it, and ends the others
 * by SIGKILL. A candidate that died of it would be blamed. */
static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    static const int changed[] = {SIGINT,  SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGUSR1,
                                  SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGABRT};
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        signal(changed[i], SIG_DFL);
    }
    signal(SIGTERM, SIG_IGN);
}

static void exec_program(pid_t parent, int fd, int report, const char *path, char *const *argv)
{
    setpgid(0, 0);
    die_with(parent);
    reset_signals();
    wpk_process_pin(0, 0);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) {
        _exit(1);
    }
    /* dup2 to itself would keep close-on-exec. */
    if (fd == WPK_CHANNEL_FD) {
        fcntl(fd, F_SETFD, 0);
    } else if (dup2(fd, WPK_CHANNEL_FD) < 0) {
        _exit(1);
    }
    execv(path, argv);
    int why = errno;
    (void)!write(report, &why, sizeof(why));
    _exit(1);
}

wpk_err wpk_process_start(const char *path, char *const *argv, struct wpk_process *out,
                          struct wpk_diag *diag)
{
    int pair[2];
    int report[2]; /* closed by a successful exec, else holds its errno */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return WPK_ESYSTEM;
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        close(pair[0]);
        close(pair[1]);
        return WPK_ESYSTEM;
    }
    /* The child's descriptor must not be overwritten by the channel's before it is used. */
    int fd = report[1];
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, WPK_CHANNEL_FD + 1);
    close(fd);
    report[1] = moved;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        exec_program(parent, pair[1], report[1], path, argv);
    }
    close(pair[1]);
    close(report[1]);
    int why = pid < 0 ? errno : 0;
    if (pid > 0 && read(report[0], &why, sizeof(why)) <= 0) {
        why = 0;
    }
    close(report[0]);
    if (why != 0) {
        close(pair[0]);
        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
        wpk_diag_set(diag, "cannot start %s: %s%s", path, strerror(why), wpk_fs_advice(why));
        return wpk_fs_err(why);
    }
    setpgid(pid, pid); /* both sides: whoever comes first */
    out->pid = pid;
    wpk_channel_init(&out->channel, pair[0]);
    return WPK_OK;
}

int wpk_process_kill(struct wpk_process *process)
{
    int status = 0;
    if (process->pid > 0) {
        wpk_process_signal(process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    process->pid = 0;
    wpk_channel_fini(&process->channel);
    return status;
}

wpk_err wpk_process_reap(pid_t pid, uint64_t limit_ns, int *status)
{
    uint64_t end = wpk_clock_ns() + limit_ns;
    long pause_ns = REAP_PAUSE_NS_MIN;
    for (;;) {
        pid_t reaped = waitpid(pid, status, WNOHANG);
        if (reaped == pid || (reaped < 0 && errno != EINTR)) {
            return WPK_OK;
        }
        if (wpk_clock_ns() >= end) {
            return WPK_ETIMEDOUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < REAP_PAUSE_NS_MAX ? 2 * pause_ns : pause_ns;
    }
}

void wpk_process_describe_end(int status, char out[WPK_PROCESS_END_SIZE])
{
    if (WIFSIGNALED(status)) {
        snprintf(out, WPK_PROCESS_END_SIZE, "died by %s",
                 wpk_process_signal_name(WTERMSIG(status)));
    } else {
        snprintf(out, WPK_PROCESS_END_SIZE, "exited with code %d", WEXITSTATUS(status));
    }
}

wpk_err wpk_process_init_log(const char *program, const char *level, const char *format)
{
    enum wpk_log_level parsed_level;
    enum wpk_log_format parsed_format;
    wpk_err err = wpk_log_level_parse(level, &parsed_level);
    err = err == WPK_OK ? wpk_log_format_parse(format, &parsed_format) : err;
    if (err == WPK_OK) {
        wpk_log_init(program, parsed_level, STDERR_FILENO);
        wpk_log_set_format(parsed_format);
    }
    return err;
}

static void limit(int resource, uint64_t value)
{
    struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    setrlimit((__rlimit_resource_t)resource, &both);
}

void wpk_process_enter_child(pid_t parent, const struct wpk_child_limits *limits)
{
    setpgid(0, 0);
    die_with(parent);
    reset_signals();
    limit(RLIMIT_CORE, 0);
    /* A sanitizer reserves terabytes of address space for its shadow. */
    if (limits->memory_bytes_max > 0 && !SANITIZED) {
        limit(RLIMIT_AS, limits->memory_bytes_max);
    }
    if (limits->cpu_seconds_max > 0) {
        limit(RLIMIT_CPU, limits->cpu_seconds_max);
    }
}

void wpk_process_signal(pid_t pid, int signal_number)
{
    WPK_ASSERT(pid > 1);
    if (kill(-pid, signal_number) != 0) {
        kill(pid, signal_number); /* it had not yet made its group */
    }
}

const char *wpk_process_signal_name(int signal_number)
{
    static char other[32];
    const char *name = sigabbrev_np(signal_number);
    if (name == NULL) {
        snprintf(other, sizeof(other), "signal %d", signal_number);
    } else {
        snprintf(other, sizeof(other), "SIG%s", name);
    }
    return other;
}
