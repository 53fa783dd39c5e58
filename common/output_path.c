/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders between a data directory and its deepest file: artifacts/ab/abcd….so */
#define HISTORY_DEPTH 3

bool wpk_output_path_is_stream(const char *path)
{
    return strcmp(path, "-") == 0 || wpk_fs_is_stream(path);
}

static wpk_err refuse(const char *path, const char *why, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EINVAL, "cannot write '%s': %s", path, why);
}

static bool has_database(const char *folder)
{
    char path[PATH_MAX];

    int length = snprintf(path, sizeof(path), "%s/history.db", folder);
    return length > 0 && length < PATH_MAX && access(path, F_OK) == 0;
}

/* True if a name in a data directory is one of its own. */
static bool is_own_name(const char *name)
{
    size_t size = strlen(name);

    return wpk_begins(name, "history.db") || strcmp(name, "signing.key") == 0 ||
           strcmp(name, "artifacts") == 0 || strcmp(name, "log") == 0 ||
           (size > 5 && strcmp(name + size - 5, ".lock") == 0);
}

/* True if `folder`/`name` belongs to a history.   shape  folder: absolute, without links; cut */
static bool is_of_history(char *folder, const char *name)
{
    for (int depth = 0; depth < HISTORY_DEPTH; depth++) {
        if (has_database(folder)) {
            return is_own_name(name);
        }
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash == folder) {
            return false;
        }
        *slash = '\0';
        name = slash + 1;
    }
    return false;
}

wpk_err wpk_output_path_check(const char *path, struct wpk_diag *diag)
{
    char *folder = NULL;
    char real[PATH_MAX];
    struct stat info;
    wpk_err err = WPK_OK;

    if (path[0] == '\0') {
        return refuse(path, "the name is empty", diag);
    }
    if (wpk_output_path_is_stream(path)) {
        return WPK_OK;
    }
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        return refuse(path, "it is a directory", diag);
    }
    /* A link is followed: the file that it names is replaced. */
    const char *target = realpath(path, real) != NULL ? real : path;
    const char *slash = strrchr(target, '/');
    folder = slash == NULL     ? strdup(".")
             : slash == target ? strdup("/")
                               : strndup(target, (size_t)(slash - target));
    if (folder == NULL) {
        return WPK_ENOMEM;
    }
    char whole[PATH_MAX];
    if (realpath(folder, whole) == NULL) {
        wpk_diag_set(diag, "cannot write '%s': %s%s", path, strerror(errno),
                     errno == ENOENT ? "; make its directory first" : wpk_fs_advice(errno));
        err = errno == EACCES ? WPK_EACCES : WPK_EINVAL;
    } else if (stat(whole, &info) == 0 && !S_ISDIR(info.st_mode)) {
        err = refuse(path, "its directory is a file", diag);
    } else if (access(whole, W_OK | X_OK) != 0) {
        wpk_diag_set(diag, "cannot write '%s': %s%s", path, strerror(errno), wpk_fs_advice(errno));
        err = wpk_fs_err(errno);
    } else if (is_of_history(whole, slash == NULL ? target : slash + 1)) {
        err = refuse(path, "it belongs to a history", diag);
    }
    free(folder);
    return err;
}

wpk_err wpk_output_path_differs(const char *path, const char *input, struct wpk_diag *diag)
{
    struct stat a;
    struct stat b;

    if (wpk_output_path_is_stream(path) || stat(path, &a) != 0 || stat(input, &b) != 0 ||
        a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
        return WPK_OK;
    }
    return refuse(path, "it is the command's input", diag);
}
