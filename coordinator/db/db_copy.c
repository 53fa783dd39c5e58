/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_command.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/store/artifact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define SUFFIX ".so"
#define DEPTH_MAX 8 /* directories within each other: ours are three */

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

/* ---- root, in another user's directory */

static bool give_all(int directory, const struct stat *owner, int depth);

/* By what it is, not by its name, which may be another file's by then. */
static bool give_entry(int directory, const char *name, const struct stat *owner, int depth)
{
    struct stat info;
    int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT;
    }
    bool given = fstat(fd, &info) == 0;
    bool alone = S_ISDIR(info.st_mode) || (S_ISREG(info.st_mode) && info.st_nlink == 1);
    if (given && alone && info.st_uid == 0) {
        given = fchownat(fd, "", owner->st_uid, owner->st_gid, AT_EMPTY_PATH) == 0;
    }
    if (given && S_ISDIR(info.st_mode) && depth > 0) {
        int inside = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        given = inside >= 0 && give_all(inside, owner, depth - 1);
    }
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return given;
}

/* Takes `directory`. */
static bool give_all(int directory, const struct stat *owner, int depth)
{
    DIR *entries = fdopendir(directory);
    struct dirent *entry;
    bool given = entries != NULL;
    while (given && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            given = give_entry(directory, entry->d_name, owner, depth);
        }
    }
    int saved = errno;
    if (entries != NULL) {
        (void)closedir(entries);
    } else {
        (void)close(directory);
    }
    errno = saved;
    return given;
}

wpk_err wpk_db_give_to_owner(const char *data_dir, struct wpk_diag *diag)
{
    struct stat owner;
    if (geteuid() != 0 || stat(data_dir, &owner) != 0 || owner.st_uid == 0) {
        return WPK_OK;
    }
    /* A state directory may be a link, which its owner did not make. */
    int fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !give_all(fd, &owner, DEPTH_MAX)) {
        wpk_err err = wpk_fs_err(errno);
        wpk_diag_set(diag, "cannot give %s to its owner: %s%s", data_dir, strerror(errno),
                     wpk_fs_advice(errno));
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
        wpk_diag_set(diag, "%s/%s: %s%s", directory, name, strerror(errno), wpk_fs_advice(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return err;
}

static void put_key(struct wpk_buf *text, const char *key)
{
    for (const char *at = key; *at != '\0'; at++) {
        wpk_buf_append_byte(text, *at == '_' ? ' ' : *at);
    }
}

void wpk_db_say(struct wpk_db_report *report, const char *key, int64_t number)
{
    wpk_json_put_int(report->json, key, number);
    put_key(&report->text, key);
    wpk_buf_printf(&report->text, ": %" PRId64 "\n", number);
}

void wpk_db_say_text(struct wpk_db_report *report, const char *key, const char *text)
{
    wpk_json_put_text(report->json, key, text);
    put_key(&report->text, key);
    wpk_buf_printf(&report->text, ": %s\n", text);
}

void wpk_db_found(struct wpk_db_report *report, const char *format, ...)
{
    va_list args;
    if (++report->found_count > WPK_DB_FOUND_MAX) {
        return;
    }
    va_start(args, format);
    wpk_buf_vprintf(&report->found, format, args);
    va_end(args);
    wpk_buf_append_byte(&report->found, '\n');
}
