/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db_copy.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/artifact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define SUFFIX ".so"
#define WALK_FD_MAX 16

bool wpk_db_exists(const char *directory, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

wpk_err wpk_db_copy_file(const char *from, const char *to, const char *name, size_t size_max,
                         unsigned mode, struct wpk_diag *diag)
{
    char path[PATH_SIZE];
    struct wpk_buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", from, name);
    wpk_err err = wpk_fs_read(path, size_max, &bytes, diag);
    if (err == WPK_OK) {
        snprintf(path, sizeof path, "%s/%s", to, name);
        err = wpk_fs_write(path, bytes.data, bytes.size, mode, diag);
    }
    if (bytes.data != NULL) {
        wpk_crypto_wipe(bytes.data, bytes.capacity); /* it may have been the key */
    }
    wpk_buf_fini(&bytes);
    return err;
}

static wpk_err copy_artifact(const char *from, const char *to, const char *sha256, int64_t *count,
                             struct wpk_diag *diag)
{
    struct wpk_buf bytes = {0};
    wpk_err err = wpk_artifact_get(to, sha256, &bytes, NULL);
    if (err == WPK_OK) {
        wpk_buf_fini(&bytes);
        return WPK_OK;
    }
    err = wpk_artifact_get(from, sha256, &bytes, NULL);
    if (err == WPK_OK) {
        err = wpk_artifact_put(to, sha256, bytes.data, bytes.size, diag);
        *count += err == WPK_OK;
    } else if (err == WPK_ENOENT || err == WPK_ECORRUPT) {
        err = WPK_OK;
    }
    wpk_buf_fini(&bytes);
    return err;
}

static wpk_err copy_directory(const char *from, const char *to, int first, int64_t *count,
                              struct wpk_diag *diag)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/artifacts/%02x", from, first);
    DIR *directory = opendir(path);
    struct dirent *entry;
    wpk_err err = WPK_OK;
    while (directory != NULL && err == WPK_OK && (entry = readdir(directory)) != NULL) {
        char sha256[WPK_SHA256_HEX_SIZE];
        if (strlen(entry->d_name) != 2 * WPK_SHA256_SIZE + strlen(SUFFIX) ||
            strcmp(entry->d_name + 2 * WPK_SHA256_SIZE, SUFFIX) != 0) {
            continue;
        }
        snprintf(sha256, sizeof sha256, "%s", entry->d_name);
        if (wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE)) {
            err = copy_artifact(from, to, sha256, count, diag);
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return err;
}

wpk_err wpk_db_copy_artifacts(const char *from, const char *to, int64_t *count,
                              struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int first = 0; first < 256 && err == WPK_OK; first++) {
        err = copy_directory(from, to, first, count, diag);
    }
    return err;
}

/* nftw(3) passes nothing on: one walk at a time, in a program that does nothing else. */
static struct stat walk_owner;

static int give(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)kind;
    (void)place;
    if (info->st_uid == walk_owner.st_uid && info->st_gid == walk_owner.st_gid) {
        return 0;
    }
    return lchown(path, walk_owner.st_uid, walk_owner.st_gid);
}

wpk_err wpk_db_give_to_owner(const char *data_dir, struct wpk_diag *diag)
{
    if (geteuid() != 0 || stat(data_dir, &walk_owner) != 0 || walk_owner.st_uid == 0) {
        return WPK_OK;
    }
    /* A state directory may be a link, which a walk that follows none would stop at. */
    char *real = realpath(data_dir, NULL);
    bool given = real != NULL && nftw(real, give, WALK_FD_MAX, FTW_PHYS) == 0;
    free(real);
    if (!given) {
        wpk_err err = wpk_fs_err(errno);
        wpk_diag_set(diag, "cannot give %s to its owner: %s", data_dir, strerror(errno));
        return err;
    }
    return WPK_OK;
}

wpk_err wpk_db_rename(const char *directory, const char *name, const char *to,
                      struct wpk_diag *diag)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool renamed =
        fd >= 0 && (renameat(fd, name, fd, to) == 0 || errno == ENOENT) && fsync(fd) == 0;
    wpk_err err = WPK_OK;
    if (!renamed) {
        err = wpk_fs_err(errno);
        wpk_diag_set(diag, "%s/%s: %s", directory, name, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}
