/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/store.h"

#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static wpk_err fail(const char *path, struct wpk_diag *diag)
{
    wpk_err err = wpk_fs_err(errno);
    wpk_diag_set(diag, "%s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
    return err;
}

static wpk_err lock_file(int fd, const char *path, const char *directory, struct wpk_diag *diag)
{
    char pid[32] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t size = read(fd, pid, sizeof pid - 1);
        pid[size > 0 ? size : 0] = '\0';
        wpk_diag_set(
            diag, "another wpkd (pid %.*s) works on %s: stop it first, or choose another directory",
            (int)strcspn(pid, "\n"), pid, directory);
        return WPK_EBUSY;
    }
    int size = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || write(fd, pid, (size_t)size) != size) {
        return fail(path, diag);
    }
    return WPK_OK;
}

wpk_err wpk_lock_take(const char *directory, int *fd, struct wpk_diag *diag)
{
    char path[4096];
    wpk_err err = wpk_fs_make_dirs(directory, diag);
    if (err != WPK_OK) {
        return err;
    }
    snprintf(path, sizeof path, "%s/wpkd.lock", directory);
    /* Root may take it in a directory of a service's: no link leads it elsewhere. */
    int opened = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (opened < 0) {
        return fail(path, diag);
    }
    err = lock_file(opened, path, directory, diag);
    if (err != WPK_OK) {
        (void)close(opened);
        return err;
    }
    *fd = opened;
    return WPK_OK;
}
