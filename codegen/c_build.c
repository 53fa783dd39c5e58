/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/c_build.h"

#include "codegen/c_print.h"
#include "common/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE_MAX 4096
#define NOT_FOUND 127 /* exit status, as a shell's */

/* The compiler's exit status; -1: it was not started or died. */
static int run(const char *const *command)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], (char *const *)command);
        _exit(NOT_FOUND);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static wpk_err compile(const struct wpk_schedule *schedule, const char *source_path,
                       const char *object_path, struct wpk_diag *diag)
{
    static const struct {
        const char *name, *flag; /* NULL: no more than wpk_c_flags() */
    } compilers[] = {
        /* gcc keeps what the next iteration of a loop loads again in registers, which the
         * accumulators need. */
        {"gcc", "-fno-predictive-commoning"},
        {"clang", NULL},
    };
    const char *command[WPK_C_FLAGS_MAX + 7];
    int count = 1, status = NOT_FOUND;
    wpk_c_flags(schedule, command + count);
    while (command[count] != NULL) {
        count++;
    }
    command[count++] = "-c";
    command[count++] = "-o";
    command[count++] = object_path;
    command[count++] = source_path;
    command[count + 1] = NULL;
    for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]) && status == NOT_FOUND; i++) {
        command[0] = compilers[i].name;
        command[count] = compilers[i].flag;
        status = run(command);
    }
    if (status == NOT_FOUND) {
        wpk_diag_set(diag, "the back end c needs a compiler: neither gcc nor clang is in PATH");
        return WPK_ENOENT;
    }
    if (status != 0) {
        wpk_diag_set(diag, "%s refuses the kernel", command[0]);
    }
    return status == 0 ? WPK_OK : WPK_EUNSUPPORTED;
}

wpk_err wpk_c_build(const struct wpk_schedule *schedule, const char *symbol,
                    const char *object_path, struct wpk_diag *diag)
{
    char path[PATH_SIZE_MAX];
    struct wpk_buf text = {0};
    int size = snprintf(path, sizeof(path), "%s.c", object_path);
    wpk_err err = size < 0 || (size_t)size >= sizeof(path)
                      ? WPK_ERANGE
                      : wpk_c_print(schedule, symbol, &text, diag);
    if (err == WPK_OK) {
        err = wpk_fs_write(path, text.data, text.size, 0644, diag);
    }
    if (err == WPK_OK) {
        err = compile(schedule, path, object_path, diag);
        unlink(path);
    }
    wpk_buf_fini(&text);
    return err;
}
