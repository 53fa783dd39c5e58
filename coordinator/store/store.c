/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite, with the settings that make a commit durable: a write-ahead log, synced at every commit
 * (synchronous=FULL). A query that is open holds a read snapshot, so its rows are closed within the
 * batch that opened them. */
#include "coordinator/store/store.h"

#include "common/crypto.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATEMENTS_MAX 128
#define BUSY_MS 2000

/* A statement, kept prepared. */
struct wpk_rows {
    struct wpk_store *store;
    const char *sql; /* its address is the key */
    sqlite3_stmt *statement;
    bool open;
};

struct wpk_store {
    sqlite3 *db;
    const struct wpk_clock *clock;
    int64_t epoch;
    bool reader;
    bool in_batch;
    const struct wpk_store_journal *journal; /* NULL: there is none */
    uint32_t log_pages; /* after the last commit, if somebody else sees to them */
    wpk_err err;        /* the batch's first failure */
    struct wpk_diag diag;
    struct wpk_rows statements[STATEMENTS_MAX];
    int statement_count;
};

static wpk_err translate(int code)
{
    if (code == SQLITE_IOERR_SHMSIZE) {
        return WPK_ENOSPC; /* the WAL's index could not grow, which a full disk does to a start */
    }
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return WPK_OK;
    case SQLITE_NOMEM:
        return WPK_ENOMEM;
    case SQLITE_FULL:
        return WPK_ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
        return WPK_EACCES;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return WPK_ECORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return WPK_EBUSY;
    case SQLITE_CONSTRAINT:
        return WPK_EEXIST;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return WPK_ERANGE;
    default:
        return WPK_EIO;
    }
}

static const char way_out[] = "; wpkd begins a new history where there is none";

/* The file, what SQLite says, and what was being done, if that helps (NULL: not). */
static wpk_err describe(sqlite3 *db, const char *what, struct wpk_diag *diag)
{
    wpk_err err = translate(sqlite3_extended_errcode(db));
    const char *path = db != NULL ? sqlite3_db_filename(db, "main") : NULL;
    const char *said = err == WPK_ENOSPC ? sqlite3_errstr(SQLITE_FULL) : sqlite3_errmsg(db);
    wpk_diag_set(diag, "%s: %s%s%s%s%s", path != NULL && path[0] != '\0' ? path : "history.db",
                 said, err == WPK_ECORRUPT ? way_out : "", what != NULL ? " (" : "",
                 what != NULL ? what : "", what != NULL ? ")" : "");
    return err == WPK_OK ? WPK_EIO : err;
}

static void fail(struct wpk_store *store, const char *what)
{
    if (store->err == WPK_OK) {
        memset(&store->diag, 0, sizeof store->diag);
        store->err = describe(store->db, what, &store->diag);
    }
}

/* ---- opening */

static wpk_err execute(sqlite3 *db, const char *sql, struct wpk_diag *diag)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? WPK_OK : describe(db, NULL, diag);
}

void wpk_store_hash(const char *provider, const char *candidate, uint8_t out[WPK_STORE_HASH_SIZE])
{
    struct wpk_crypto_hash hash;
    uint8_t whole[WPK_SHA256_SIZE];
    wpk_crypto_hash_init(&hash);
    wpk_crypto_hash_add(&hash, provider, strlen(provider) + 1);
    wpk_crypto_hash_add(&hash, candidate, strlen(candidate));
    wpk_crypto_hash_finish(&hash, whole);
    memcpy(out, whole, WPK_STORE_HASH_SIZE);
}

/* Run a query, for its first row.
 *   owns    caller finalizes *out, after a failure too
 *   errors  WPK_ENOENT  no row */
static wpk_err first_row(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct wpk_diag *diag)
{
    *out = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, out, NULL);
    code = code == SQLITE_OK ? sqlite3_step(*out) : code;
    return code == SQLITE_ROW    ? WPK_OK
           : code == SQLITE_DONE ? WPK_ENOENT
                                 : describe(db, NULL, diag);
}

wpk_err wpk_store_read_int(struct wpk_store *store, const char *sql, int64_t *out,
                           struct wpk_diag *diag)
{
    sqlite3_stmt *statement;
    wpk_err err = first_row(store->db, sql, &statement, diag);
    if (err == WPK_OK) {
        *out = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return err;
}

wpk_err wpk_store_check(struct wpk_store *store, struct wpk_diag *diag)
{
    sqlite3_stmt *statement;
    wpk_err err = first_row(store->db, "PRAGMA quick_check(1)", &statement, diag);
    const char *verdict = err == WPK_OK ? (const char *)sqlite3_column_text(statement, 0) : "ok";
    if (verdict == NULL || strcmp(verdict, "ok") != 0) {
        err = wpk_fail(diag, WPK_ECORRUPT, "%s is damaged: %s%s",
                       sqlite3_db_filename(store->db, "main"), verdict != NULL ? verdict : "?",
                       way_out);
    }
    sqlite3_finalize(statement);
    return err;
}

wpk_err wpk_store_back_up(struct wpk_store *store, const char *path, bool passing,
                          struct wpk_diag *diag)
{
    sqlite3 *to = NULL;
    int code = sqlite3_open(path, &to);
    sqlite3_backup *backup = NULL;
    if (code == SQLITE_OK && passing) {
        code = sqlite3_exec(to, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        backup = sqlite3_backup_init(to, "main", store->db, "main");
        code = backup == NULL ? SQLITE_ERROR : sqlite3_backup_step(backup, -1);
    }
    sqlite3_backup_finish(backup);
    wpk_err err = WPK_OK;
    if (code != SQLITE_DONE) {
        err = translate(sqlite3_extended_errcode(to));
        err = err == WPK_OK ? WPK_EIO : err;
        wpk_diag_set(diag, "%s: %s (backup)", path, sqlite3_errmsg(to));
    }
    sqlite3_close(to);
    return err;
}

wpk_err wpk_store_attach_given(struct wpk_store *store, const char *path, struct wpk_diag *diag)
{
    char *sql = sqlite3_mprintf("PRAGMA trusted_schema = OFF; ATTACH %Q AS given", path);
    wpk_err err = sql != NULL ? execute(store->db, sql, diag) : WPK_ENOMEM;
    sqlite3_free(sql);
    return err;
}

wpk_err wpk_store_execute(struct wpk_store *store, const char *sql, struct wpk_diag *diag)
{
    wpk_err err = execute(store->db, sql, diag);
    if (err != WPK_OK && !store->in_batch && !sqlite3_get_autocommit(store->db)) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return err;
}

/* True if no other process can have written what is not in the database itself. */
static bool has_no_log(const char *path)
{
    char log[4096];
    struct stat info;
    int size = snprintf(log, sizeof log, "%s-wal", path);
    return size < (int)sizeof log && (stat(log, &info) != 0 || info.st_size == 0);
}

/* A disk that is full, or that nobody can write, has no room for the index of a log: a database
 * without a log is read as it lies there. Keeps the store as it is if that does not help. */
static void read_unchanging(struct wpk_store *store, const char *path)
{
    struct wpk_buf uri = {0};
    sqlite3 *db = NULL;
    wpk_buf_append_text(&uri, "file:");
    for (const char *p = path; *p != '\0'; p++) {
        bool escape = *p == '%' || *p == '?' || *p == '#';
        wpk_buf_printf(&uri, escape ? "%%%02x" : "%c", (unsigned char)*p);
    }
    wpk_buf_append_text(&uri, "?immutable=1");
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (wpk_buf_status(&uri) == WPK_OK &&
        sqlite3_open_v2(wpk_buf_text(&uri), &db, flags, NULL) == SQLITE_OK) {
        sqlite3_close(store->db);
        store->db = db;
    } else {
        sqlite3_close(db);
    }
    wpk_buf_fini(&uri);
}

wpk_err wpk_store_attach(const char *path, const struct wpk_clock *clock, bool reader,
                         struct wpk_store **out, struct wpk_diag *diag)
{
    struct wpk_store *store = WPK_DEMAND(calloc(1, sizeof *store));
    store->clock = clock;
    store->reader = reader;
    int flags = reader ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        wpk_err err = describe(store->db, path, diag);
        wpk_store_close(store);
        return err;
    }
    sqlite3_busy_timeout(store->db, BUSY_MS);
    if (reader &&
        sqlite3_exec(store->db, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL) != SQLITE_OK &&
        has_no_log(path)) {
        wpk_err why = translate(sqlite3_extended_errcode(store->db));
        if (why == WPK_EACCES || why == WPK_ENOSPC) {
            read_unchanging(store, path);
        }
    }
    *out = store;
    return WPK_OK;
}

bool wpk_store_is_writable(const struct wpk_store *store)
{
    return sqlite3_db_readonly(store->db, "main") == 0;
}

wpk_err wpk_store_read_epoch(struct wpk_store *store, struct wpk_diag *diag)
{
    return wpk_store_read_int(store, "SELECT epoch FROM installation", &store->epoch, diag);
}

void wpk_store_close(struct wpk_store *store)
{
    if (store == NULL) {
        return;
    }
    for (int i = 0; i < store->statement_count; i++) {
        sqlite3_finalize(store->statements[i].statement);
    }
    sqlite3_close(store->db); /* a batch that was not committed is rolled back */
    free(store);
}

int64_t wpk_store_epoch(const struct wpk_store *store)
{
    return store->epoch;
}

uint64_t wpk_store_wall_ns(const struct wpk_store *store)
{
    return wpk_clock_wall_ns(store->clock);
}

void wpk_store_limit_pages(struct wpk_store *store, int page_count_max)
{
    char text[64];
    snprintf(text, sizeof text, "PRAGMA max_page_count = %d",
             page_count_max > 0 ? page_count_max : 1073741823);
    wpk_err err = execute(store->db, text, NULL);
    WPK_ASSERT(err == WPK_OK);
}

/* ---- batches */

void wpk_store_begin(struct wpk_store *store)
{
    if (store->in_batch) {
        return;
    }
    WPK_ASSERT(!store->reader);
    store->in_batch = true;
    if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        fail(store, "begin");
    } else if (store->journal != NULL) {
        store->journal->begin(store->journal->user);
    }
}

wpk_err wpk_store_commit(struct wpk_store *store, struct wpk_diag *diag)
{
    WPK_ASSERT(store->in_batch);
    for (int i = 0; i < store->statement_count; i++) {
        WPK_ASSERT(!store->statements[i].open);
    }
    if (store->journal != NULL) {
        store->journal->commit(store->journal->user);
    }
    if (store->err == WPK_OK && sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        fail(store, "commit");
    }
    if (store->err != WPK_OK && !sqlite3_get_autocommit(store->db)) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    store->in_batch = false;
    return wpk_store_take_status(store, diag);
}

static int count_pages(void *user, sqlite3 *db, const char *name, int pages)
{
    struct wpk_store *store = user;
    store->log_pages = store->db == db && name != NULL ? (uint32_t)pages : 0;
    return SQLITE_OK;
}

void wpk_store_checkpoint_apart(struct wpk_store *store)
{
    sqlite3_wal_hook(store->db, count_pages, store); /* in place of SQLite's own, which copies */
}

uint32_t wpk_store_log_pages(const struct wpk_store *store)
{
    return store->log_pages;
}

void wpk_store_mark(struct wpk_store *store)
{
    wpk_store_run(store, "SAVEPOINT mark", "");
}

void wpk_store_unmark(struct wpk_store *store)
{
    wpk_store_run(store, "RELEASE mark", "");
}

bool wpk_store_is_own(wpk_err err)
{
    return err == WPK_EEXIST || err == WPK_ECORRUPT || err == WPK_ERANGE || err == WPK_EINVAL;
}

bool wpk_store_undo(struct wpk_store *store, wpk_err *err, struct wpk_diag *diag)
{
    WPK_ASSERT(store->in_batch && store->err != WPK_OK);
    /* After some failures SQLite has rolled back everything already. */
    if (!wpk_store_is_own(store->err) || sqlite3_get_autocommit(store->db)) {
        return false;
    }
    *err = store->err;
    *diag = store->diag;
    store->err = WPK_OK;
    wpk_store_run(store, "ROLLBACK TO mark", "");
    wpk_store_unmark(store); /* nothing, if that failed */
    return store->err == WPK_OK;
}

wpk_err wpk_store_probe(struct wpk_store *store, struct wpk_diag *diag)
{
    wpk_err err =
        store->journal != NULL ? store->journal->recover(store->journal->user, diag) : WPK_OK;
    if (err == WPK_OK) {
        err = wpk_store_execute(store,
                                "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS probe (bytes);"
                                "INSERT INTO probe VALUES (zeroblob(262144)); COMMIT",
                                diag);
    }
    return err == WPK_OK ? wpk_store_execute(store, "DROP TABLE probe", diag) : err;
}

wpk_err wpk_store_beat(struct wpk_store *store, struct wpk_diag *diag)
{
    return store->journal != NULL ? store->journal->beat(store->journal->user, diag) : WPK_OK;
}

void wpk_store_set_journal(struct wpk_store *store, const struct wpk_store_journal *journal)
{
    store->journal = journal;
}

struct sqlite3 *wpk_store_database(struct wpk_store *store)
{
    return store->db;
}

wpk_err wpk_store_status(const struct wpk_store *store)
{
    return store->err;
}

wpk_err wpk_store_take_status(struct wpk_store *store, struct wpk_diag *diag)
{
    WPK_ASSERT(!store->in_batch);
    wpk_err err = store->err;
    if (err != WPK_OK && diag != NULL) {
        *diag = store->diag;
    }
    store->err = WPK_OK;
    return err;
}

void wpk_store_fail(struct wpk_store *store, wpk_err err, const struct wpk_diag *diag)
{
    WPK_ASSERT(err != WPK_OK);
    if (store->err == WPK_OK) {
        store->err = err;
        store->diag = *diag;
    }
}

/* ---- statements */

static struct wpk_rows *find_statement(struct wpk_store *store, const char *sql)
{
    for (int i = 0; i < store->statement_count; i++) {
        if (store->statements[i].sql == sql && !store->statements[i].open) {
            return &store->statements[i];
        }
    }
    WPK_ASSERT(store->statement_count < STATEMENTS_MAX);
    struct wpk_rows *rows = &store->statements[store->statement_count];
    rows->store = store;
    rows->sql = sql;
    rows->open = false;
    int code =
        sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &rows->statement, NULL);
    if (code != SQLITE_OK) {
        fail(store, sql);
        return NULL;
    }
    store->statement_count++;
    return rows;
}

/* `keep`: how long texts live: SQLITE_STATIC, over the call; SQLITE_TRANSIENT, they are copied. */
static void bind_values(struct wpk_rows *rows, const char *types, sqlite3_destructor_type keep,
                        va_list args)
{
    WPK_ASSERT((int)strlen(types) == sqlite3_bind_parameter_count(rows->statement));
    int code = SQLITE_OK;
    for (int i = 1; types[i - 1] != '\0' && code == SQLITE_OK; i++) {
        const struct wpk_buf *bytes;
        int64_t number;
        switch (types[i - 1]) {
        case 'i':
            code = sqlite3_bind_int64(rows->statement, i, va_arg(args, int64_t));
            break;
        case 'I':
            number = va_arg(args, int64_t);
            code = number == 0 ? sqlite3_bind_null(rows->statement, i)
                               : sqlite3_bind_int64(rows->statement, i, number);
            break;
        case 't':
            code = sqlite3_bind_text(rows->statement, i, va_arg(args, const char *), -1, keep);
            break;
        case 'h':
            code = sqlite3_bind_blob(rows->statement, i, va_arg(args, const uint8_t *),
                                     WPK_STORE_HASH_SIZE, keep);
            break;
        case 'b':
            bytes = va_arg(args, const struct wpk_buf *);
            code = sqlite3_bind_blob64(rows->statement, i, bytes->data, bytes->size, keep);
            break;
        case 'r':
            code = sqlite3_bind_double(rows->statement, i, va_arg(args, double));
            break;
        case 'n':
            code = sqlite3_bind_null(rows->statement, i);
            break;
        default:
            WPK_ASSERT(false);
        }
    }
    if (code != SQLITE_OK) {
        fail(rows->store, rows->sql);
    }
}

static struct wpk_rows *start(struct wpk_store *store, const char *sql, const char *types,
                              sqlite3_destructor_type keep, va_list args)
{
    struct wpk_rows *rows = store->err == WPK_OK ? find_statement(store, sql) : NULL;
    if (rows == NULL) {
        return NULL;
    }
    bind_values(rows, types, keep, args);
    rows->open = true;
    return rows;
}

int wpk_store_run(struct wpk_store *store, const char *sql, const char *types, ...)
{
    WPK_ASSERT(store->in_batch);
    va_list args;
    va_start(args, types);
    struct wpk_rows *rows = start(store, sql, types, SQLITE_STATIC, args);
    va_end(args);
    if (rows == NULL) {
        return 0;
    }
    if (store->err == WPK_OK && sqlite3_step(rows->statement) != SQLITE_DONE) {
        fail(store, sql);
    }
    int changes = store->err == WPK_OK ? sqlite3_changes(store->db) : 0;
    wpk_rows_close(rows);
    return changes;
}

int64_t wpk_store_inserted(const struct wpk_store *store)
{
    return store->err == WPK_OK ? sqlite3_last_insert_rowid(store->db) : 0;
}

struct wpk_rows *wpk_store_query(struct wpk_store *store, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    struct wpk_rows *rows = start(store, sql, types, SQLITE_TRANSIENT, args);
    va_end(args);
    return rows;
}

bool wpk_rows_next(struct wpk_rows *rows)
{
    if (rows == NULL) {
        return false;
    }
    WPK_ASSERT(rows->open);
    int code = rows->store->err == WPK_OK ? sqlite3_step(rows->statement) : SQLITE_DONE;
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code != SQLITE_DONE) {
        fail(rows->store, rows->sql);
    }
    wpk_rows_close(rows);
    return false;
}

static void read_columns(const struct wpk_rows *rows, const char *types, va_list args)
{
    for (int i = 0; types[i] != '\0'; i++) {
        const char *text = strchr("stcCb", types[i]) != NULL ? wpk_rows_text(rows, i) : "";
        char *room;
        switch (types[i]) {
        case 'i':
            *va_arg(args, int64_t *) = wpk_rows_int(rows, i);
            break;
        case 'u':
            *va_arg(args, uint64_t *) = (uint64_t)wpk_rows_int(rows, i);
            break;
        case 'w':
            *va_arg(args, uint32_t *) = (uint32_t)wpk_rows_int(rows, i);
            break;
        case 'd':
            *va_arg(args, int *) = (int)wpk_rows_int(rows, i);
            break;
        case 'f':
            *va_arg(args, bool *) = wpk_rows_int(rows, i) != 0;
            break;
        case 'r':
            *va_arg(args, double *) = wpk_rows_real(rows, i);
            break;
        case 's':
            *va_arg(args, const char **) = text;
            break;
        case 't':
            room = va_arg(args, char *);
            snprintf(room, va_arg(args, size_t), "%s", text);
            break;
        case 'c':
            *va_arg(args, char **) = WPK_DEMAND(strdup(text));
            break;
        case 'C':
            *va_arg(args, char **) = text[0] != '\0' ? WPK_DEMAND(strdup(text)) : NULL;
            break;
        default:
            WPK_ASSERT(types[i] == 'b');
            wpk_buf_append_text(va_arg(args, struct wpk_buf *), text);
        }
    }
}

void wpk_rows_get(const struct wpk_rows *rows, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    read_columns(rows, types, args);
    va_end(args);
}

bool wpk_rows_take(struct wpk_rows *rows, const char *types, ...)
{
    va_list args;
    bool found = wpk_rows_next(rows);
    va_start(args, types);
    if (found) {
        read_columns(rows, types, args);
    }
    va_end(args);
    wpk_rows_close(rows);
    return found;
}

uint64_t wpk_rows_take_id(struct wpk_rows *rows)
{
    uint64_t id = 0;
    (void)wpk_rows_take(rows, "u", &id);
    return id;
}

void wpk_rows_close(struct wpk_rows *rows)
{
    if (rows != NULL) {
        sqlite3_reset(rows->statement);
        sqlite3_clear_bindings(rows->statement);
        rows->open = false;
    }
}

int64_t wpk_rows_int(const struct wpk_rows *rows, int column)
{
    return sqlite3_column_int64(rows->statement, column);
}

double wpk_rows_real(const struct wpk_rows *rows, int column)
{
    return sqlite3_column_double(rows->statement, column);
}

const char *wpk_rows_text(const struct wpk_rows *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows->statement, column);
    return text != NULL ? text : "";
}

const void *wpk_rows_bytes(const struct wpk_rows *rows, int column, size_t *size)
{
    const void *bytes = sqlite3_column_blob(rows->statement, column);
    *size = (size_t)sqlite3_column_bytes(rows->statement, column);
    return bytes;
}
