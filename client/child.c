/* SPDX-License-Identifier: Apache-2.0 */
#include "client/private.h"

#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20
#define LOG_TAIL 4096
#define LOG_ROOM 4096

void wpk_child_pause(int ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&pause, NULL);
}

/* After fork: become the program, or tell the parent errno through `report`. */
static void run_program(const char *path, const char *const *argv, int log, int report,
                        pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0 &&
        prctl(PR_SET_PDEATHSIG, SIGTERM) == 0) {
        /* The parent may have died before the line above took effect. */
        if (getppid() != parent) {
            _exit(1);
        }
        execv(path, (char *const *)(void *)argv);
    }
    int failed = errno;
    (void)!write(report, &failed, sizeof(failed));
    _exit(127);
}

/* Open the log and reserve room in it, so that a process that ends because the disk is full can say
 * so. Some file systems cannot reserve; then there is none. */
static int open_log(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM) != 0 &&
        (errno == ENOSPC || errno == EDQUOT)) {
        int failed = errno;
        close(fd);
        errno = failed;
        return -1;
    }
    return fd;
}

static wpk_err start(struct wpk_child *child, const char *path, const char *const *argv,
                     const char *log_path, struct wpk_diag *diag)
{
    int report[2] = {-1, -1};
    int failed = 0;

    WPK_ASSERT(child->pid == 0);
    int log = open_log(log_path);
    if (log < 0 || pipe2(report, O_CLOEXEC) < 0) {
        failed = errno;
        wpk_diag_set(diag, "cannot write '%s': %s%s", log_path, strerror(failed),
                     wpk_fs_advice(failed));
        goto done;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        run_program(path, argv, log, report[1], parent);
    }
    failed = pid < 0 ? errno : 0;
    close(report[1]);
    report[1] = -1;
    /* The pipe closes on exec; what comes before is the errno of a failure. */
    if (pid > 0 && read(report[0], &failed, sizeof(failed)) == (ssize_t)sizeof(failed)) {
        waitpid(pid, NULL, 0);
    } else if (pid > 0) {
        child->pid = pid;
    }
    if (failed != 0) {
        wpk_diag_set(diag, "cannot start '%s': %s%s", path, strerror(failed),
                     wpk_fs_advice(failed));
    }
done:
    if (log >= 0) {
        close(log);
    }
    if (report[0] >= 0) {
        close(report[0]);
    }
    if (report[1] >= 0) {
        close(report[1]);
    }
    return failed != 0 ? wpk_fs_err(failed) : WPK_OK;
}

wpk_err wpk_child_start(struct wpk_child *child, const char *const *argv, const char *log_path,
                        struct wpk_diag *diag)
{
    struct wpk_buf path = {0};

    wpk_err err = wpk_fs_program_dir(&path, diag);
    wpk_buf_printf(&path, "/%s", argv[0]);
    err = err == WPK_OK ? wpk_buf_status(&path) : err;
    err = err == WPK_OK ? start(child, wpk_buf_text(&path), argv, log_path, diag) : err;
    wpk_buf_fini(&path);
    return err;
}

static void note_end(struct wpk_child *child, int status)
{
    child->pid = 0;
    child->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool wpk_child_runs(struct wpk_child *child)
{
    int status = 0;

    if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) != 0) {
        note_end(child, status);
    }
    return child->pid > 0;
}

void wpk_child_stop(struct wpk_child *child, int grace_ms)
{
    pid_t group = child->pid;

    if (!wpk_child_runs(child)) {
        return;
    }
    kill(child->pid, SIGTERM);
    for (int waited = 0; waited < grace_ms && wpk_child_runs(child); waited += POLL_MS) {
        wpk_child_pause(POLL_MS);
    }
    if (wpk_child_runs(child)) {
        /* Kill the rest of its group before the leader is reaped: after that the group's number is
         * free. */
        kill(-group, SIGKILL);
        waitpid(child->pid, NULL, 0);
        child->pid = 0;
    }
}

int wpk_child_wait(struct wpk_child *child, bool (*give_up)(void))
{
    int status = 0;

    WPK_ASSERT(child->pid > 0);
    for (;;) {
        pid_t ended = waitpid(child->pid, &status, WNOHANG);
        if (ended == child->pid) {
            note_end(child, status);
            return child->status;
        }
        if (give_up != NULL && give_up()) {
            return -1;
        }
        wpk_child_pause(POLL_MS);
    }
}

void wpk_child_last_words(const char *log_path, char *out, size_t size)
{
    static const char reason_mark[] = " reason=\""; /* as wpk_log_failure writes it */
    char tail[LOG_TAIL + 1];
    ssize_t got = 0;
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);

    WPK_ASSERT(size > 0);
    out[0] = '\0';
    if (fd < 0) {
        return;
    }
    off_t length = lseek(fd, 0, SEEK_END);
    got = pread(fd, tail, LOG_TAIL, length > LOG_TAIL ? length - LOG_TAIL : 0);
    close(fd);
    if (got <= 0) {
        return;
    }
    while (got > 0 && tail[got - 1] == '\n') {
        got--;
    }
    tail[got] = '\0';
    const char *newline = strrchr(tail, '\n');
    const char *line = newline != NULL ? newline + 1 : tail;
    const char *reason = strstr(line, reason_mark);
    const char *end = strrchr(line, '"');
    if (reason != NULL && end > reason + strlen(reason_mark)) {
        line = reason + strlen(reason_mark);
        snprintf(out, size, "%.*s", (int)(end - line), line);
    } else {
        snprintf(out, size, "%s", line);
    }
}
