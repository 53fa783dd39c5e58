/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/artifact.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/metrics.h"
#include "schema/message.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".so"

static wpk_err make_path(const char *data_dir, const char *sha256, bool make_dirs,
                         struct wpk_buf *path, struct wpk_diag *diag)
{
    WPK_ASSERT(wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE));
    wpk_buf_printf(path, "%s/artifacts/%.2s", data_dir, sha256);
    wpk_err err = wpk_buf_status(path);
    if (err == WPK_OK && make_dirs) {
        err = wpk_fs_make_dirs(path->data, diag);
    }
    wpk_buf_printf(path, "/%s" SUFFIX, sha256);
    return err == WPK_OK ? wpk_buf_status(path) : err;
}

static bool matches(const char *sha256, const void *bytes, size_t size)
{
    char actual[WPK_SHA256_HEX_SIZE];
    wpk_crypto_sha256_hex(bytes, size, actual);
    return strcmp(actual, sha256) == 0;
}

/* Make the file's and its directory's names durable: another thread, or an attempt that failed half
 * way, may have made them and not synced them. */
static wpk_err sync_names(struct wpk_buf *path, struct wpk_diag *diag)
{
    wpk_err err = wpk_fs_sync_name(path->data, diag);
    *strrchr(path->data, '/') = '\0';
    return err == WPK_OK ? wpk_fs_sync_name(path->data, diag) : err;
}

wpk_err wpk_artifact_put(const char *data_dir, const char *sha256, const void *bytes, size_t size,
                         struct wpk_diag *diag)
{
    if (!matches(sha256, bytes, size)) {
        wpk_metric_add(WPK_COUNTER_ARTIFACTS_CORRUPT, 0, 1);
        return wpk_fail(diag, WPK_ECORRUPT, "the artifact is not what its hash says");
    }
    struct wpk_buf there = {0};
    wpk_err err = wpk_artifact_look(data_dir, sha256, &there, NULL);
    wpk_buf_fini(&there);
    struct wpk_buf path = {0};
    bool is_there = err == WPK_OK;
    err = make_path(data_dir, sha256, true, &path, diag);
    if (err == WPK_OK && !is_there) {
        err = wpk_fs_write(path.data, bytes, size, 0644, diag);
    }
    err = err == WPK_OK ? sync_names(&path, diag) : err;
    wpk_buf_fini(&path);
    return err;
}

wpk_err wpk_artifact_get(const char *data_dir, const char *sha256, struct wpk_buf *out,
                         struct wpk_diag *diag)
{
    wpk_err err = wpk_artifact_look(data_dir, sha256, out, diag);
    wpk_metric_add(WPK_COUNTER_ARTIFACTS_CORRUPT, 0, err == WPK_ECORRUPT);
    return err;
}

wpk_err wpk_artifact_look(const char *data_dir, const char *sha256, struct wpk_buf *out,
                          struct wpk_diag *diag)
{
    struct wpk_buf path = {0};
    size_t before = out->size;
    if (!wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE)) {
        wpk_diag_set(diag, "no artifact has such a name"); /* a damaged row may */
        return WPK_ENOENT;
    }
    wpk_err err = make_path(data_dir, sha256, false, &path, diag);
    err = err == WPK_OK ? wpk_fs_read(path.data, WPK_ARTIFACT_SIZE_MAX, out, diag) : err;
    if (err == WPK_OK && !matches(sha256, out->data + before, out->size - before)) {
        err = wpk_fail(diag, WPK_ECORRUPT, "artifact %s is damaged on the disk", sha256);
    }
    if (err != WPK_OK && out->size > before) {
        wpk_buf_truncate(out, before);
    }
    wpk_buf_fini(&path);
    return err;
}

void wpk_artifact_remove(const char *data_dir, const char *sha256)
{
    struct wpk_buf path = {0};
    if (wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE) &&
        make_path(data_dir, sha256, false, &path, NULL) == WPK_OK) {
        unlink(path.data);
    }
    wpk_buf_fini(&path);
}

/* Call `fn` for the names of one directory's entries. */
static void visit(const char *data_dir, int first,
                  void (*fn)(void *user, int directory, const char *name), void *user)
{
    struct wpk_buf path = {0};
    wpk_buf_printf(&path, "%s/artifacts/%02x", data_dir, first);
    DIR *directory = wpk_buf_status(&path) == WPK_OK ? opendir(path.data) : NULL;
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        fn(user, dirfd(directory), entry->d_name);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    wpk_buf_fini(&path);
}

struct each {
    void (*fn)(void *user, const char *sha256);
    void *user;
};

static void call(void *user, int directory WPK_UNUSED, const char *name)
{
    const struct each *each = user;
    char sha256[WPK_SHA256_HEX_SIZE];
    if (strlen(name) == 2 * WPK_SHA256_SIZE + strlen(SUFFIX) &&
        strcmp(name + 2 * WPK_SHA256_SIZE, SUFFIX) == 0) {
        snprintf(sha256, sizeof sha256, "%s", name);
        if (wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE)) {
            each->fn(each->user, sha256);
        }
    }
}

void wpk_artifact_each(const char *data_dir, void (*fn)(void *user, const char *sha256), void *user)
{
    struct each each = {fn, user};
    for (int first = 0; first < 256; first++) {
        visit(data_dir, first, call, &each);
    }
}

/* Remove a temporary file that wpk_fs_write() had not renamed yet. */
static void remove_begun(void *user WPK_UNUSED, int directory, const char *name)
{
    if (strstr(name, SUFFIX ".tmp.") != NULL) {
        unlinkat(directory, name, 0);
    }
}

void wpk_artifact_sweep(const char *data_dir)
{
    for (int first = 0; first < 256; first++) {
        visit(data_dir, first, remove_begun, NULL);
    }
}
