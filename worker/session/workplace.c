/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/workplace.h"

#include "common/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_lock(const char *directory, int flags)
{
    char path[WPK_WORKPLACE_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/lock", directory);
    return open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Remove a neighbour that nobody holds the lock of. One without a lock is being made just now. */
static void remove_if_left(const char *directory)
{
    int fd = open_lock(directory, 0);
    if (fd < 0) {
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        wpk_err err = wpk_fs_remove_tree(directory, NULL);
        (void)err; /* what cannot be removed harms nobody */
    }
    close(fd);
}

/* In /tmp anybody may make a directory of our name: it has to be ours, and only ours. */
static wpk_err make_parent(const char *base, char parent[WPK_WORKPLACE_PATH_MAX],
                           struct wpk_diag *diag)
{
    struct stat stat;
    int size = snprintf(parent, WPK_WORKPLACE_PATH_MAX - 16, "%s/wpk-worker-%u", base,
                        (unsigned)geteuid());
    if (size >= WPK_WORKPLACE_PATH_MAX - 16) {
        return wpk_fail(diag, WPK_ERANGE, "the path is too long: %s", base);
    }
    wpk_err err = wpk_fs_make_dirs(base, diag);
    if (err != WPK_OK) {
        return err;
    }
    if (mkdir(parent, 0700) != 0 && errno != EEXIST) {
        return wpk_fs_fail(parent, diag);
    }
    if (lstat(parent, &stat) != 0) {
        return wpk_fs_fail(parent, diag);
    }
    if (!S_ISDIR(stat.st_mode) || stat.st_uid != geteuid() || (stat.st_mode & 022) != 0) {
        return wpk_fail(diag, WPK_EACCES, "%s belongs to somebody else, or others may write to it",
                        parent);
    }
    return WPK_OK;
}

wpk_err wpk_workplace_open(const char *base, struct wpk_workplace *out, struct wpk_diag *diag)
{
    struct wpk_workplace place = {.lock_fd = -1};
    char parent[WPK_WORKPLACE_PATH_MAX];
    wpk_err err = make_parent(base, parent, diag);
    if (err != WPK_OK) {
        return err;
    }
    char path[WPK_WORKPLACE_PATH_MAX];
    DIR *directory = opendir(parent);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path) {
            remove_if_left(path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    snprintf(place.path, sizeof place.path, "%s/XXXXXX", parent);
    if (mkdtemp(place.path) == NULL) {
        return wpk_fs_fail(place.path, diag);
    }
    place.lock_fd = open_lock(place.path, O_CREAT);
    if (place.lock_fd < 0 || flock(place.lock_fd, LOCK_EX | LOCK_NB) != 0) {
        err = wpk_fs_fail(place.path, diag);
        wpk_workplace_close(&place);
        return err;
    }
    *out = place;
    return WPK_OK;
}

void wpk_workplace_close(struct wpk_workplace *place)
{
    if (place->path[0] != '\0') {
        (void)!wpk_fs_remove_tree(place->path, NULL);
    }
    if (place->path[0] != '\0' && place->lock_fd >= 0) {
        close(place->lock_fd);
    }
    memset(place, 0, sizeof *place);
}
