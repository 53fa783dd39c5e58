/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"
#include "target/c/compiler.h"
#include "target/c/print.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE_MAX 4096

/* The compiler was there when it was looked for: if it is gone, the machine is at fault. */
static wpk_err compile(const struct wpk_schedule *schedule, const char *source_path,
                       const char *object_path, struct wpk_diag *diag)
{
    struct wpk_c_compiler compiler;
    const char *command[WPK_C_FLAGS_MAX + 7];
    int count = 1;
    char directory[PATH_SIZE_MAX] = ".";
    const char *slash = strrchr(object_path, '/');
    if (slash != NULL) {
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash + 1 - object_path), object_path);
    }
    wpk_err err = wpk_c_compiler_find(&compiler, diag);
    if (err != WPK_OK) {
        return err == WPK_ENOENT ? WPK_EUNSUPPORTED : err;
    }
    command[0] = compiler.command;
    wpk_c_flags(schedule, command + count);
    while (command[count] != NULL) {
        count++;
    }
    command[count++] = "-c";
    command[count++] = "-o";
    command[count++] = object_path;
    command[count++] = source_path;
    command[count++] = compiler.flag;
    command[count] = NULL;
    err = wpk_c_compiler_run(command, directory, NULL, 0);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "%s %s", compiler.version,
                     err == WPK_ENOENT    ? "is not in PATH any more"
                     : err == WPK_ESYSTEM ? "cannot be started"
                     : err == WPK_ENOSPC  ? "finds the disk full"
                                          : "refuses the kernel");
    }
    return err;
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
    err = err == WPK_OK ? wpk_fs_write(path, text.data, text.size, 0644, diag) : err;
    if (err == WPK_OK) {
        err = compile(schedule, path, object_path, diag);
        unlink(path);
    }
    wpk_buf_fini(&text);
    return err;
}
