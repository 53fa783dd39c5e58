/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/child.h"

#include "common/fs.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const int answer_ms_max = 120 * 1000;

/* The last CPUs that this process may use. */
static wpk_err choose_cpus(int count, cpu_set_t *out, struct wpk_diag *diag)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return wpk_fs_err(errno);
    }
    CPU_ZERO(out);
    int left = count;
    for (size_t cpu = CPU_SETSIZE; cpu > 0 && left > 0; cpu--) {
        if (CPU_ISSET(cpu - 1, &allowed)) {
            CPU_SET(cpu - 1, out);
            left--;
        }
    }
    if (left > 0) {
        return wpk_fail(diag, WPK_ERANGE, "%d CPUs wanted, %d may be used", count,
                        CPU_COUNT(&allowed));
    }
    return WPK_OK;
}

/* In the forked child; does not return. */
static void become_peer(const char *program, const cpu_set_t *cpus, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* dup2 clears close-on-exec, unless the number is the right one already. */
    if (fd == BENCH_CHILD_FD) {
        fd = dup(fd);
    }
    if (fd < 0 || sched_setaffinity(0, sizeof(*cpus), cpus) != 0 || dup2(fd, BENCH_CHILD_FD) < 0) {
        _exit(126);
    }
    execl(program, program, (char *)NULL);
    _exit(127);
}

wpk_err bench_child_start(struct bench_child *child, const char *program, int threads,
                          struct wpk_diag *diag)
{
    WPK_ASSERT(child->pid == 0);
    cpu_set_t cpus;
    const wpk_err err = choose_cpus(threads, &cpus, diag);
    if (err != WPK_OK) {
        return err;
    }
    if (access(program, X_OK) != 0) {
        return wpk_fail(diag, WPK_ENOENT, "%s: %s", program, strerror(errno));
    }
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        return wpk_fs_err(errno);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        become_peer(program, &cpus, fds[1]);
    }
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return WPK_ESYSTEM;
    }
    snprintf(child->program, sizeof(child->program), "%s", program);
    child->threads = threads;
    child->pid = pid;
    child->fd = fds[0];
    static const struct bench_request hello = {.command = BENCH_HELLO};
    struct bench_reply reply = {0};
    const wpk_err asked = bench_child_ask(child, &hello, &reply, diag);
    if (asked == WPK_OK) {
        snprintf(child->version, sizeof(child->version), "%s", reply.text);
    }
    return asked;
}

wpk_err bench_child_ask(struct bench_child *child, const struct bench_request *request,
                        struct bench_reply *reply, struct wpk_diag *diag)
{
    if (child->pid == 0) {
        return WPK_ECLOSED;
    }
    kill(child->pid, SIGCONT);
    if (send(child->fd, request, sizeof(*request), MSG_NOSIGNAL) != (ssize_t)sizeof(*request)) {
        bench_child_stop(child);
        return wpk_fail(diag, WPK_ECLOSED, "%s died", child->program);
    }
    struct pollfd ready = {.fd = child->fd, .events = POLLIN};
    int polled = 0;
    do {
        polled = poll(&ready, 1, answer_ms_max);
    } while (polled < 0 && errno == EINTR);
    if (polled <= 0) {
        bench_child_stop(child);
        return wpk_fail(diag, WPK_ETIMEDOUT, "%s did not answer", child->program);
    }
    if (recv(child->fd, reply, sizeof(*reply), 0) != (ssize_t)sizeof(*reply)) {
        bench_child_stop(child);
        return wpk_fail(diag, WPK_ECLOSED, "%s died", child->program);
    }
    kill(child->pid, SIGSTOP);
    if (reply->err != WPK_OK) {
        wpk_diag_set(diag, "%s", reply->text);
    }
    return reply->err;
}

void bench_child_stop(struct bench_child *child)
{
    if (child->pid == 0) {
        return;
    }
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(child->fd);
    child->pid = 0;
    child->fd = -1;
}
