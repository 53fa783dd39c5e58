/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the history's database: settings, check, version, and the tables of a new one. */
#include "common/buf.h"
#include "common/fs.h"
#include "coordinator/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define CHECKED_PAGES_MAX 4096 /* 16 MiB: checked in some 20 ms */

/* schema/schema.sql, embedded by the build. */
extern const unsigned char wpk_schema_sql[];
extern const size_t wpk_schema_sql_size;

static wpk_err create_tables(struct wpk_store *store, struct wpk_diag *diag)
{
    struct wpk_buf sql = {0};
    wpk_buf_append_text(&sql, "BEGIN IMMEDIATE;");
    wpk_buf_append(&sql, wpk_schema_sql, wpk_schema_sql_size);
    wpk_buf_printf(&sql,
                   "INSERT INTO installation (id, epoch, created_at, artifact_bytes)"
                   " VALUES (1, 0, %lld, 0); PRAGMA user_version = %d; COMMIT",
                   (long long)wpk_store_wall_ns(store), WPK_STORE_VERSION);
    wpk_err err = wpk_buf_status(&sql);
    err = err == WPK_OK ? wpk_store_execute(store, sql.data, diag) : err;
    wpk_buf_fini(&sql);
    return err;
}

static wpk_err check_version(const char *path, int64_t version, struct wpk_diag *diag)
{
    if (version == WPK_STORE_VERSION) {
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EMISMATCH,
                    "%s is of version %lld, written by %s wpkd; this one reads version %d only:"
                    " move it away, or name another folder (--data)",
                    path, (long long)version, version > WPK_STORE_VERSION ? "a newer" : "an older",
                    WPK_STORE_VERSION);
}

/* A change that the log does not get would be missing in all other copies. */
static wpk_err check_alone(struct wpk_store *store, const char *path, struct wpk_diag *diag)
{
    int64_t log = 0;
    wpk_err err = wpk_store_read_int(store, "SELECT log_id FROM installation", &log, diag);
    return err != WPK_OK || log == 0
               ? err
               : wpk_fail(diag, WPK_EMISMATCH,
                          "%s has a log in PostgreSQL: only wpkd --log URI changes it; a backup "
                          "of it has none",
                          path);
}

static wpk_err prepare_database(struct wpk_store *store, const char *path, bool copy,
                                struct wpk_diag *diag)
{
    int64_t version = 0;
    wpk_err err = wpk_store_read_int(store, "PRAGMA user_version", &version, diag);
    if (err == WPK_OK && !wpk_store_is_writable(store)) {
        err = wpk_fail(diag, WPK_EACCES, "%s cannot be written", path);
    }
    if (err == WPK_OK) {
        err = wpk_store_execute(store,
                                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                "PRAGMA foreign_keys = ON; PRAGMA cache_size = -12000;"
                                "PRAGMA wal_autocheckpoint = 8000",
                                diag);
    }
    int64_t page_count = 0;
    err = err == WPK_OK ? wpk_store_read_int(store, "PRAGMA page_count", &page_count, diag) : err;
    /* A large one is checked when somebody asks for it: a crash leaves nothing to check, the
     * write-ahead log sees to that, and a page that went bad is WPK_ECORRUPT when it is met. */
    if (err == WPK_OK && page_count <= CHECKED_PAGES_MAX) {
        err = wpk_store_check(store, diag);
    }
    if (err == WPK_OK) {
        err = version == 0 ? create_tables(store, diag) : check_version(path, version, diag);
    }
    if (err == WPK_OK && copy) {
        return wpk_store_execute(store, "DROP TABLE IF EXISTS probe; PRAGMA synchronous = NORMAL",
                                 diag);
    }
    err = err == WPK_OK ? check_alone(store, path, diag) : err;
    if (err == WPK_OK) {
        err = wpk_store_execute(
            store, "DROP TABLE IF EXISTS probe; UPDATE installation SET epoch = epoch + 1", diag);
    }
    return err == WPK_OK ? wpk_store_read_epoch(store, diag) : err;
}

/* Prepare a reader: check the version, set it read-only, and read the epoch. */
static wpk_err prepare_reader(struct wpk_store *store, const char *path, struct wpk_diag *diag)
{
    int64_t version = 0;
    wpk_err err = wpk_store_read_int(store, "PRAGMA user_version", &version, diag);
    err = err == WPK_OK ? check_version(path, version, diag) : err;
    if (err == WPK_OK) {
        err = wpk_store_execute(store, "PRAGMA query_only = ON; PRAGMA cache_size = -4000", diag);
    }
    return err == WPK_OK ? wpk_store_read_epoch(store, diag) : err;
}

enum use { WRITER, COPY, READER };

static wpk_err open_database(const char *directory, const struct wpk_clock *clock, enum use use,
                             struct wpk_store **out, struct wpk_diag *diag)
{
    bool reader = use == READER;
    struct wpk_store *store = NULL;
    struct wpk_buf path = {0};
    wpk_buf_printf(&path, "%s/history.db", directory);
    wpk_err err = wpk_buf_status(&path);
    if (err == WPK_OK && reader && access(path.data, F_OK) != 0) {
        err = wpk_fail(diag, WPK_ENOENT, "%s: %s%s", path.data, strerror(errno),
                       wpk_fs_advice(errno));
    }
    err = err == WPK_OK ? wpk_store_attach(path.data, clock, reader, &store, diag) : err;
    if (err == WPK_OK) {
        err = reader ? prepare_reader(store, path.data, diag)
                     : prepare_database(store, path.data, use == COPY, diag);
    }
    wpk_buf_fini(&path);
    if (err != WPK_OK) {
        wpk_store_close(store);
        return err;
    }
    *out = store;
    return WPK_OK;
}

wpk_err wpk_store_open(const char *directory, const struct wpk_clock *clock, struct wpk_store **out,
                       struct wpk_diag *diag)
{
    return open_database(directory, clock, WRITER, out, diag);
}

wpk_err wpk_store_open_copy(const char *directory, const struct wpk_clock *clock,
                            struct wpk_store **out, struct wpk_diag *diag)
{
    return open_database(directory, clock, COPY, out, diag);
}

wpk_err wpk_store_open_reader(const char *directory, const struct wpk_clock *clock,
                              struct wpk_store **out, struct wpk_diag *diag)
{
    return open_database(directory, clock, READER, out, diag);
}

static wpk_err lock_file(int fd, const char *path, const char *directory, struct wpk_diag *diag)
{
    char pid[32] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t size = read(fd, pid, sizeof pid - 1);
        pid[size > 0 ? size : 0] = '\0';
        return wpk_fail(
            diag, WPK_EBUSY,
            "another wpkd (pid %.*s) works on %s: stop it first, or choose another directory",
            (int)strcspn(pid, "\n"), pid, directory);
    }
    int size = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    return ftruncate(fd, 0) != 0 || write(fd, pid, (size_t)size) != size ? wpk_fs_fail(path, diag)
                                                                         : WPK_OK;
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
        return wpk_fs_fail(path, diag);
    }
    err = lock_file(opened, path, directory, diag);
    if (err != WPK_OK) {
        (void)close(opened);
        return err;
    }
    *fd = opened;
    return WPK_OK;
}
