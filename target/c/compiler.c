/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 127 /* exit status, as a shell's */

static _Noreturn void run_child(const char *const *command, const char *directory, int output,
                                bool asks)
{
    if (directory != NULL) {
        setenv("TMPDIR", directory, 1);
    }
    setenv("LC_ALL", "C", 1);         /* its words for errors are those of strerror() here */
    setenv("CCACHE_DISABLE", "1", 1); /* builds are timed, and each is made once */
    dup2(output, asks ? STDOUT_FILENO : STDERR_FILENO);
    if (asks) {
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    }
    execvp(command[0], (char *const *)command);
    _exit(NOT_FOUND);
}

/* Read a process's output to its end, and keep the first bytes as text: a linker may print
 * anything. */
static void read_output(int fd, char *output, size_t size)
{
    size_t used = 0;
    ssize_t got;
    char rest[256];
    do {
        bool has_room = used + 1 < size;
        got = read(fd, has_room ? output + used : rest, has_room ? size - 1 - used : sizeof(rest));
        used += has_room && got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    output[used] = '\0';
    for (char *zero = output;
         (zero = memchr(zero, '\0', (size_t)(output + used - zero))) != NULL;) {
        *zero = '?';
    }
}

static wpk_err read_end(int status, const char *messages)
{
    bool exited = WIFEXITED(status);
    bool full =
        strstr(messages, strerror(ENOSPC)) != NULL || strstr(messages, strerror(EDQUOT)) != NULL;
    return exited && WEXITSTATUS(status) == 0           ? WPK_OK
           : exited && WEXITSTATUS(status) == NOT_FOUND ? WPK_ENOENT
           : full                                       ? WPK_ENOSPC
                                                        : WPK_EUNSUPPORTED;
}

wpk_err wpk_c_compiler_run(const char *const *command, const char *directory, char *output,
                           size_t size)
{
    int pipes[2], status = 0;
    char messages[4096] = "";
    bool asks = output != NULL;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return WPK_ESYSTEM;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(command, directory, pipes[1], asks);
    }
    close(pipes[1]);
    if (pid > 0) {
        read_output(pipes[0], asks ? output : messages, asks ? size : sizeof(messages));
    }
    close(pipes[0]);
    if (pid < 0) {
        return WPK_ESYSTEM;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    fputs(messages, stderr);
    return read_end(status, messages);
}

struct candidate {
    const char *command;
    const char *option; /* that prints its version */
    const char *flag;
};

/* WPK_ENOENT where it does not say its version, too: it is another program. */
static wpk_err try_one(const struct candidate *candidate, struct wpk_c_compiler *out)
{
    const char *words[] = {candidate->command, candidate->option, NULL};
    char text[WPK_C_COMPILER_VERSION_MAX - 8];
    wpk_err err = wpk_c_compiler_run(words, NULL, text, sizeof(text));
    text[err == WPK_OK ? strspn(text, "0123456789.") : 0] = '\0';
    if (err == WPK_ESYSTEM || text[0] == '\0') {
        return err == WPK_ESYSTEM ? err : WPK_ENOENT;
    }
    out->command = candidate->command;
    out->flag = candidate->flag;
    snprintf(out->version, sizeof(out->version), "%s-%s", candidate->command, text);
    return WPK_OK;
}

static wpk_err search(struct wpk_c_compiler *out)
{
    /* gcc keeps what the next iteration of a loop loads again in registers, which the accumulators
     * need. */
    static const struct candidate gcc = {"gcc", "-dumpfullversion", "-fno-predictive-commoning"};
    static const struct candidate clang = {"clang", "-dumpversion", NULL};
    wpk_err err = try_one(&gcc, out);
    return err == WPK_ENOENT ? try_one(&clang, out) : err;
}

wpk_err wpk_c_compiler_find(struct wpk_c_compiler *out, struct wpk_diag *diag)
{
    static struct wpk_c_compiler found;
    static wpk_err known = WPK_ESYSTEM; /* not searched */
    known = known == WPK_ESYSTEM ? search(&found) : known;
    if (known == WPK_OK) {
        *out = found;
    } else {
        wpk_diag_set(diag, known == WPK_ENOENT ? "no gcc or clang in PATH"
                                               : "no process can be started to look for gcc");
    }
    return known;
}
