/* SPDX-License-Identifier: Apache-2.0 */
/* Backups are data directories: history.db, artifacts/ and the signing key, as of one moment.
 *
 * Artifacts are copied before the database, because wpkd may drop some meanwhile, and again after
 * it, because wpkd may add some: so the copy has every artifact that the database names. The
 * database, which may have hundreds of megabytes, is not read into memory: SQLite copies it, and a
 * restored one is renamed. */
#include "common/clock.h"
#include "common/fs.h"
#include "coordinator/db/db_command.h"
#include "coordinator/store/sign.h"
#include "coordinator/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define KEY_SIZE_MAX ((size_t)4096)
#define DATABASE "history.db"

static wpk_err copy_key(const char *from, const char *to, struct wpk_diag *diag)
{
    if (!wpk_db_exists(from, WPK_SIGN_FILE)) {
        return WPK_OK;
    }
    return wpk_db_copy_file(from, to, WPK_SIGN_FILE, KEY_SIZE_MAX, 0600, diag);
}

static wpk_err copy_database(const char *from, const char *to, struct wpk_diag *diag)
{
    char path[PATH_SIZE];
    struct wpk_store *store = NULL;
    snprintf(path, sizeof path, "%s/%s", to, DATABASE);
    wpk_err err = wpk_store_open_reader(from, wpk_clock_system(), &store, diag);
    if (err == WPK_OK) {
        err = wpk_store_back_up(store, path, false, diag);
        wpk_store_close(store);
        store = NULL;
    }
    /* It is no part of a log: restored, it begins one, or has none. */
    err = err == WPK_OK ? wpk_store_attach(path, wpk_clock_system(), false, &store, diag) : err;
    if (err == WPK_OK) {
        err = wpk_store_execute(
            store, "UPDATE installation SET log_id = 0, log_number = 0, log_tag = 0", diag);
        wpk_store_close(store);
    }
    return err;
}

/* Made by us, for us alone: the key lies in it. */
static wpk_err make_private(const char *path, struct wpk_diag *diag)
{
    if (mkdir(path, 0700) != 0) {
        wpk_err err = errno == EEXIST   ? WPK_EEXIST
                      : errno == ENOENT ? WPK_EINVAL
                                        : wpk_fs_err(errno);
        wpk_diag_set(diag, "%s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        return err;
    }
    return WPK_OK;
}

static wpk_err check_quietly(const char *data_dir, struct wpk_diag *diag)
{
    struct wpk_db_report report = {0};
    const struct wpk_db_options options = {.data_dir = data_dir};
    wpk_err err = wpk_db_check(&options, &report, diag);
    if (report.found_count > 0 && diag != NULL) {
        *diag = (struct wpk_diag){0};
        wpk_diag_set(diag, "%s is not whole: %.*s; wpkctl db check lists all that is wrong",
                     data_dir, (int)strcspn(wpk_buf_text(&report.found), "\n"),
                     wpk_buf_text(&report.found));
    }
    wpk_buf_fini(&report.text);
    wpk_buf_fini(&report.found);
    return err;
}

wpk_err wpk_db_back_up(const struct wpk_db_options *options, struct wpk_db_report *report,
                       struct wpk_diag *diag)
{
    char partial[PATH_SIZE];
    int64_t artifacts = 0;
    snprintf(partial, sizeof partial, "%s.partial", options->file);
    if (access(options->file, F_OK) == 0) {
        return wpk_fail(diag, WPK_EEXIST, "%s is there already; name a directory that is not",
                        options->file);
    }
    wpk_err err = make_private(partial, diag);
    if (err != WPK_OK) {
        return err;
    }
    const char *from = options->data_dir;
    err = wpk_db_copy_artifacts(from, partial, &artifacts, diag);
    err = err == WPK_OK ? copy_database(from, partial, diag) : err;
    err = err == WPK_OK ? wpk_db_copy_artifacts(from, partial, &artifacts, diag) : err;
    err = err == WPK_OK ? copy_key(from, partial, diag) : err;
    err = err == WPK_OK ? check_quietly(partial, diag) : err;
    err = err == WPK_OK ? wpk_fs_rename(partial, options->file, diag) : err;
    if (err != WPK_OK) {
        (void)!wpk_fs_remove_tree(partial, NULL);
        return err == WPK_ECORRUPT ? WPK_EIO : err;
    }
    wpk_db_say_text(report, "backup", options->file);
    wpk_db_say(report, "artifacts", artifacts);
    return WPK_OK;
}

/* ---- restore */

/* Rename the present database and key to names that are never read. The artifacts stay: they are
 * named by their content, so they are valid for any history. */
static wpk_err set_aside(const char *data_dir, struct wpk_db_report *report, struct wpk_diag *diag)
{
    static const char *const names[] = {DATABASE, DATABASE "-wal", DATABASE "-shm", WPK_SIGN_FILE};
    char to[256];
    wpk_err err = WPK_OK;
    unsigned long long now_s = wpk_clock_wall_ns(wpk_clock_system()) / WPK_NS_PER_S;
    bool any = wpk_db_exists(data_dir, DATABASE);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && err == WPK_OK; i++) {
        /* SQLite finds a log by its database's name: the suffix stays behind. */
        const char *suffix = strchr(names[i], '-') != NULL ? strchr(names[i], '-') : "";
        snprintf(to, sizeof to, "%.*s.replaced-%llu%s", (int)strcspn(names[i], "-"), names[i],
                 now_s, suffix);
        err = wpk_db_rename(data_dir, names[i], to, diag);
    }
    if (err == WPK_OK && any) {
        snprintf(to, sizeof to, DATABASE ".replaced-%llu", now_s);
        wpk_db_say_text(report, "set_aside", to);
    }
    return err;
}

static wpk_err restore_locked(const struct wpk_db_options *options, struct wpk_db_report *report,
                              struct wpk_diag *diag)
{
    char staged[PATH_SIZE];
    int64_t artifacts = 0;
    snprintf(staged, sizeof staged, "%s/restoring", options->data_dir);
    wpk_err err = wpk_fs_remove_tree(staged, diag); /* of one that was killed */
    err = err == WPK_OK ? make_private(staged, diag) : err;
    err = err == WPK_OK ? copy_database(options->file, staged, diag) : err;
    err = err == WPK_OK ? copy_key(options->file, staged, diag) : err;
    err = err == WPK_OK ? wpk_db_copy_artifacts(options->file, options->data_dir, &artifacts, diag)
                        : err;
    err = err == WPK_OK ? set_aside(options->data_dir, report, diag) : err;
    if (err == WPK_OK && wpk_db_exists(staged, WPK_SIGN_FILE)) {
        err = wpk_db_rename(options->data_dir, "restoring/" WPK_SIGN_FILE, WPK_SIGN_FILE, diag);
    }
    if (err == WPK_OK) { /* last: until then there is no history, which is never taken for one */
        err = wpk_db_rename(options->data_dir, "restoring/" DATABASE, DATABASE, diag);
    }
    (void)!wpk_fs_remove_tree(staged, NULL);
    wpk_db_say(report, "artifacts", artifacts);
    return err;
}

wpk_err wpk_db_restore(const struct wpk_db_options *options, struct wpk_db_report *report,
                       struct wpk_diag *diag)
{
    int lock = -1;
    if (!wpk_db_exists(options->file, DATABASE)) {
        return wpk_fail(diag, WPK_EINVAL,
                        "%s is no backup: there is no " DATABASE
                        " in it; wpkctl db backup makes one",
                        options->file);
    }
    wpk_err err = wpk_lock_take(options->data_dir, &lock, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = check_quietly(options->file, diag);
    if (err == WPK_OK) {
        err = restore_locked(options, report, diag);
    } else if (err == WPK_ECORRUPT) {
        err = WPK_EIO; /* nothing was changed; the report would speak of another directory */
    }
    (void)close(lock);
    return err;
}
