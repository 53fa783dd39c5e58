/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the holder makes bases, on a connection of its own: a base takes long. It ends after
 * the site is handed over. */
#include "coordinator/store/keeper.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/store/artifact.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <libpq/libpq-fs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PARAMETERS_MAX 6
#define PATH_SIZE 4096
#define ROWS_MAX 8 /* read at a time */
#define BEAT_NS WPK_NS_PER_S
#define BASE_MS 1000 /* between two looks whether a base is due */
#define CHUNK_SIZE ((size_t)64 << 10)
#define CHUNK_MS 8

extern const unsigned char wpk_log_sql[]; /* schema/log.sql, embedded by the build */

static void *library;
#define PQ(name) ((__typeof__(name) *)dlsym(library, #name))

/* A connection with its last result. One thread uses it. */
struct line {
    PGconn *connection; /* NULL: not connected */
    PGresult *result;
    bool warned; /* by the server, in that statement */
};

struct wpk_keeper {
    const char *uri;
    const char *data_dir;
    const char *public_key;
    struct wpk_store_journal journal;
    char holder[160]; /* this process, and no other */
    char database[PATH_SIZE];
    char copy[PATH_SIZE];            /* a base on its way */
    struct line line;                /* of whoever has the store */
    struct line basing;              /* of the thread */
    struct wpk_store *store;         /* NULL: not open yet */
    bool lent;                       /* to who has claimed */
    struct sqlite3_session *changes; /* of the batch under way */
    int64_t log; /* the place of the store: its log, and the last entry that it has */
    int64_t number;
    int64_t tag;
    int64_t epoch;    /* 0: not the holder */
    uint64_t beat_ns; /* when it was seen last */
    pthread_t thread;
    bool running;
    int stop_fd;         /* an eventfd, for the thread */
    _Atomic bool serves; /* the writer shows that the holder is alive */
};

/* ---- connections */

static void hang_up(struct line *line)
{
    if (line->connection != NULL) {
        PQ(PQclear)(line->result);
        PQ(PQfinish)(line->connection);
    }
    *line = (struct line){0};
}

/* After a failure the outcome of a statement is not known. `message` NULL: the library's. */
static wpk_err fail(struct line *line, const char *message, struct wpk_diag *diag)
{
    wpk_diag_set(diag, "PostgreSQL: %.400s",
                 message != NULL ? message : PQ(PQerrorMessage)(line->connection));
    hang_up(line);
    return WPK_EIO;
}

/* A commit that was not waited for on a synchronous standby succeeds with a warning. */
static void on_notice(void *user, const PGresult *result)
{
    struct line *line = user;
    const char *severity = PQ(PQresultErrorField)(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    line->warned |= severity != NULL && strcmp(severity, "WARNING") == 0;
}

/* The URI goes before what is set here. A server that is gone is noticed within some seconds. */
static wpk_err dial(struct line *line, const char *uri, struct wpk_diag *diag)
{
    /* clang-format off */
    static const char *const keys[] = {
        "application_name", "connect_timeout", "tcp_user_timeout", "keepalives_idle",
        "keepalives_interval", "keepalives_count", "target_session_attrs", "dbname", NULL};
    /* clang-format on */
    const char *const values[] = {"wpkd", "3", "3000", "1", "1", "3", "read-write", uri, NULL};
    line->connection = PQ(PQconnectdbParams)(keys, values, 1);
    if (PQ(PQstatus)(line->connection) != CONNECTION_OK) {
        return fail(line, NULL, diag);
    }
    PQ(PQsetNoticeReceiver)(line->connection, on_notice, line);
    return WPK_OK;
}

/* Run a statement; $1, $2, ... have the `types` i int64_t, t const char *, b const struct wpk_buf *
 * (NULL: no value). Without parameters it may be several. */
static wpk_err run(struct wpk_keeper *keeper, struct line *line, struct wpk_diag *diag,
                   const char *sql, const char *types, ...)
{
    const char *values[PARAMETERS_MAX];
    char numbers[PARAMETERS_MAX][24];
    int sizes[PARAMETERS_MAX];
    int formats[PARAMETERS_MAX];
    int count = 0;
    va_list args;
    va_start(args, types);
    for (; types[count] != '\0'; count++) {
        formats[count] = types[count] == 'b';
        if (types[count] == 'i') {
            snprintf(numbers[count], sizeof numbers[count], "%" PRId64, va_arg(args, int64_t));
            values[count] = numbers[count];
        } else if (types[count] == 't') {
            values[count] = va_arg(args, const char *);
        } else {
            const struct wpk_buf *bytes = va_arg(args, const struct wpk_buf *);
            values[count] = bytes != NULL ? wpk_buf_text(bytes) : NULL;
            sizes[count] = bytes != NULL ? (int)bytes->size : 0;
        }
    }
    va_end(args);
    wpk_err err = line->connection == NULL ? dial(line, keeper->uri, diag) : WPK_OK;
    if (err != WPK_OK) {
        return err;
    }
    PQ(PQclear)(line->result);
    line->warned = false;
    line->result = count == 0 ? PQ(PQexec)(line->connection, sql)
                              : PQ(PQexecParams)(line->connection, sql, count, NULL, values, sizes,
                                                 formats, 1);
    ExecStatusType status = PQ(PQresultStatus)(line->result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        return fail(line, NULL, diag);
    }
    return line->warned ? fail(line, "a commit was not waited for", diag) : WPK_OK;
}

static int count_of(const struct line *line)
{
    return PQ(PQntuples)(line->result);
}

static const char *text_of(const struct line *line, int row, int column)
{
    return PQ(PQgetvalue)(line->result, row, column);
}

static int64_t int_of(const struct line *line, int row, int column)
{
    return strtoll(text_of(line, row, column), NULL, 10);
}

static size_t size_of(const struct line *line, int row, int column)
{
    return (size_t)PQ(PQgetlength)(line->result, row, column);
}

/* ---- the history here */

static const char place_sql[] = "SELECT log_id, log_number, log_tag FROM installation";
static const char watch_sql[] = "CREATE TEMP TABLE moved (sha256 PRIMARY KEY, added);"
                                "CREATE TEMP TRIGGER added AFTER INSERT ON main.artifact"
                                " BEGIN INSERT OR REPLACE INTO moved VALUES (new.sha256, 1); END;"
                                "CREATE TEMP TRIGGER removed AFTER DELETE ON main.artifact"
                                " BEGIN INSERT OR REPLACE INTO moved VALUES (old.sha256, 0); END";

static wpk_err read_place(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    (void)wpk_rows_take(wpk_store_query(keeper->store, place_sql, ""), "iii", &keeper->log,
                        &keeper->number, &keeper->tag);
    wpk_metric_set(WPK_GAUGE_LOG_ENTRY, 0, keeper->number);
    return wpk_store_take_status(keeper->store, diag);
}

static wpk_err open_history(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    wpk_err err = wpk_store_open_copy(keeper->data_dir, wpk_clock_system(), &keeper->store, diag);
    err = err == WPK_OK ? wpk_store_execute(keeper->store, watch_sql, diag) : err;
    return err == WPK_OK ? read_place(keeper, diag) : err;
}

/* Put the base in the place of the history here. */
static wpk_err get_base(struct wpk_keeper *keeper, Oid oid, struct wpk_diag *diag)
{
    static const char *const ends[] = {"-wal", "-shm"};
    wpk_store_close(keeper->store);
    keeper->store = NULL;
    wpk_log(WPK_LOG_INFO, "base_wanted", "after_entry=%" PRId64, keeper->number);
    wpk_err err = run(keeper, &keeper->line, diag, "BEGIN", "");
    if (err == WPK_OK && PQ(lo_export)(keeper->line.connection, oid, keeper->copy) != 1) {
        err = fail(&keeper->line, NULL, diag);
    }
    err = err == WPK_OK ? run(keeper, &keeper->line, diag, "COMMIT", "") : err;
    for (int i = 0; err == WPK_OK && i < 2; i++) {
        char old[PATH_SIZE + 8];
        snprintf(old, sizeof old, "%s%s", keeper->database, ends[i]);
        (void)unlink(old);
    }
    sync(); /* the copy, before it has the name */
    err = err == WPK_OK ? wpk_fs_rename(keeper->copy, keeper->database, diag) : err;
    return err == WPK_OK ? open_history(keeper, diag) : err;
}

/* Store the artifacts whose hashes `sql` selects, before the entry with their rows. One whose file
 * is lost or damaged is left out. */
static wpk_err put_artifacts(struct wpk_keeper *keeper, const char *sql, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    struct wpk_rows *rows = wpk_store_query(keeper->store, sql, "");
    while (err == WPK_OK && wpk_rows_next(rows)) {
        struct wpk_buf bytes = {0};
        const char *sha256 = wpk_rows_text(rows, 0);
        if (wpk_artifact_look(keeper->data_dir, sha256, &bytes, NULL) == WPK_OK) {
            err = run(keeper, &keeper->line, diag,
                      "INSERT INTO wpk_artifact VALUES ($1, $2, $3) ON CONFLICT (sha256)"
                      " DO UPDATE SET number = $2",
                      "tib", sha256, keeper->number, &bytes);
        }
        wpk_buf_fini(&bytes);
    }
    wpk_rows_close(rows);
    return err;
}

/* Fetch the artifacts of entries that are not here yet, so that none is here without its own. */
static wpk_err get_artifacts(struct wpk_keeper *keeper, int64_t last, struct wpk_diag *diag)
{
    struct line *line = &keeper->line;
    char at[WPK_SHA256_HEX_SIZE] = "";
    int64_t number = keeper->number;
    wpk_err err = WPK_OK;
    for (int count = 1; count > 0;) {
        err = run(keeper, line, diag,
                  "SELECT number::text AS text, sha256, bytes FROM wpk_artifact"
                  " WHERE ((number = $1 AND sha256 > $2) OR number > $1) AND number <= $3"
                  " ORDER BY number, sha256 LIMIT $4",
                  "itii", number, at, last, (int64_t)ROWS_MAX);
        count = err == WPK_OK ? count_of(line) : 0;
        for (int i = 0; err == WPK_OK && i < count; i++) {
            number = int_of(line, i, 0);
            snprintf(at, sizeof at, "%s", text_of(line, i, 1));
            err = wpk_artifact_put(keeper->data_dir, at, text_of(line, i, 2), size_of(line, i, 2),
                                   diag);
        }
        count = err == WPK_OK ? count : 0;
    }
    return err;
}

/* ---- being seen */

static wpk_err depose(struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_ECLOSED,
                    "another wpkd has taken the log over: this one acknowledges nothing any more");
}

/* Changes NULL: only be seen. */
static wpk_err append(struct wpk_keeper *keeper, const struct wpk_buf *changes, const char *removed,
                      struct wpk_diag *diag)
{
    wpk_err err = run(keeper, &keeper->line, diag, "SELECT 1 WHERE wpk_append($1, $2, $3, $4, $5)",
                      "iiibt", keeper->epoch, keeper->number, keeper->tag, changes, removed);
    if (err == WPK_OK) {
        keeper->beat_ns = wpk_clock_ns();
    }
    return err == WPK_OK && count_of(&keeper->line) == 0 ? depose(diag) : err;
}

static wpk_err beat(void *user, struct wpk_diag *diag)
{
    struct wpk_keeper *keeper = user;
    atomic_store(&keeper->serves, true);
    bool due = wpk_clock_ns() - keeper->beat_ns >= BEAT_NS;
    return due ? append(keeper, NULL, "", diag) : WPK_OK;
}

/* ---- following */

/* Compare the history here with the log; the row has the answer and more.
 *   errors  WPK_ENOENT  the log is new */
static wpk_err look(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    struct line *line = &keeper->line;
    wpk_err err = WPK_OK;
    if (keeper->store == NULL) {
        keeper->log = -1;
        err = access(keeper->database, F_OK) == 0 ? open_history(keeper, diag) : WPK_OK;
    }
    if (err == WPK_OK) {
        err = run(keeper, line, diag, "SELECT 1 WHERE to_regclass('wpk_site') IS NULL", "");
    }
    if (err == WPK_OK && count_of(line) > 0) {
        err = run(keeper, line, diag, (const char *)wpk_log_sql, "");
    }
    if (err == WPK_OK) {
        err = run(keeper, line, diag, "SELECT * FROM wpk_look($1, $2, $3, $4, $5)", "itiii",
                  (int64_t)WPK_STORE_VERSION, keeper->public_key, keeper->log, keeper->number,
                  keeper->tag);
    }
    const char *answer = err == WPK_OK ? text_of(line, 0, 0) : "";
    if (err == WPK_OK && strcmp(answer, "new") == 0) {
        return WPK_ENOENT;
    }
    return err != WPK_OK || strcmp(answer, "base") == 0 || strcmp(answer, "entries") == 0
               ? err
               : wpk_fail(diag, WPK_EMISMATCH, "%s (%s)", answer, keeper->data_dir);
}

/* Entries that are missing have gone with an older base: the next look finds out. */
static wpk_err apply_entries(struct wpk_keeper *keeper, int64_t last, struct wpk_diag *diag)
{
    struct line *line = &keeper->line;
    wpk_err err = WPK_OK;
    while (err == WPK_OK && keeper->number < last) {
        err = run(keeper, line, diag,
                  "SELECT changes FROM wpk_entry WHERE number > $1 AND number <= $2"
                  " AND EXISTS (SELECT 1 FROM wpk_entry WHERE number = $1 + 1)"
                  " ORDER BY number LIMIT $3",
                  "iii", keeper->number, last, (int64_t)ROWS_MAX);
        if (err == WPK_OK && count_of(line) == 0) {
            return wpk_fail(diag, WPK_EIO, "the log has a new base by now");
        }
        for (int i = 0; err == WPK_OK && i < count_of(line); i++) {
            err = wpk_changes_apply(keeper->store, text_of(line, i, 0), size_of(line, i, 0), diag);
            err = err == WPK_OK ? read_place(keeper, diag) : err;
        }
    }
    return err;
}

wpk_err wpk_keeper_follow(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    wpk_err err = look(keeper, diag);
    if (err != WPK_OK) {
        return err;
    }
    bool by_base = strcmp(text_of(&keeper->line, 0, 0), "base") == 0;
    Oid oid = (Oid)int_of(&keeper->line, 0, 1);
    int64_t last = int_of(&keeper->line, 0, 2);
    err = get_artifacts(keeper, last, diag);
    err = err == WPK_OK && by_base ? get_base(keeper, oid, diag) : err;
    return err == WPK_OK ? apply_entries(keeper, last, diag) : err;
}

/* ---- the journal of the store */

static void begin(void *user)
{
    struct wpk_keeper *keeper = user;
    wpk_store_run(keeper->store, "DELETE FROM moved", "");
    wpk_changes_begin(keeper->store, &keeper->changes);
}

static wpk_err append_changes(struct wpk_keeper *keeper, const struct wpk_buf *changes,
                              struct wpk_diag *diag)
{
    struct wpk_buf removed = {0};
    wpk_err err = put_artifacts(keeper, "SELECT sha256 FROM moved WHERE added = 1", diag);
    struct wpk_rows *rows = wpk_store_query(
        keeper->store, "SELECT group_concat(sha256, char(10)) FROM moved WHERE added = 0", "");
    (void)wpk_rows_take(rows, "b", &removed);
    err = err == WPK_OK ? wpk_store_status(keeper->store) : err;
    err = err == WPK_OK ? append(keeper, changes, wpk_buf_text(&removed), diag) : err;
    wpk_buf_fini(&removed);
    return err;
}

static void commit(void *user)
{
    struct wpk_keeper *keeper = user;
    struct wpk_store *store = keeper->store;
    struct wpk_diag diag = {0};
    struct wpk_buf changes = {0};
    if (!wpk_changes_any(keeper->changes)) {
        wpk_changes_take(store, &keeper->changes, NULL);
        return;
    }
    keeper->number++;
    wpk_crypto_random(&keeper->tag, sizeof keeper->tag);
    wpk_store_run(store, "UPDATE installation SET log_number = ?, log_tag = ?", "ii",
                  keeper->number, keeper->tag);
    wpk_changes_take(store, &keeper->changes, wpk_store_status(store) == WPK_OK ? &changes : NULL);
    wpk_err err = wpk_store_status(store);
    err = err == WPK_OK ? append_changes(keeper, &changes, &diag) : err;
    if (err != WPK_OK) {
        wpk_store_fail(store, err, &diag);
    }
    wpk_metric_add(WPK_COUNTER_LOG_BYTES, 0, changes.size);
    wpk_metric_set(WPK_GAUGE_LOG_ENTRY, 0, keeper->number);
    wpk_buf_fini(&changes);
}

/* The new epoch is a write, too: when it is durable, so is all before it that can be read. */
static wpk_err recover(void *user, struct wpk_diag *diag)
{
    struct wpk_keeper *keeper = user;
    hang_up(&keeper->line);
    wpk_err err =
        run(keeper, &keeper->line, diag, "SELECT * FROM wpk_return($1)", "t", keeper->holder);
    if (err == WPK_OK && count_of(&keeper->line) == 0) {
        return depose(diag);
    }
    if (err == WPK_OK) {
        wpk_metric_add(WPK_COUNTER_LOG_RECOVERIES, 0, 1);
        keeper->epoch = int_of(&keeper->line, 0, 0);
        err = read_place(keeper, diag);
    }
    err = err == WPK_OK ? look(keeper, diag) : err;
    if (err == WPK_OK && int_of(&keeper->line, 0, 2) != keeper->number) {
        return wpk_fail(diag, WPK_ECLOSED, "the log has an entry that was in doubt: start anew");
    }
    return err;
}

/* ---- bases */

/* Send the copy of the history as a large object; 0: that failed, or wpkd ends. A copy that is sent
 * beside the writer, which needs disk and network, is sent by 8 MB/s at most. */
static Oid send_copy(struct wpk_keeper *keeper, PGconn *to, bool is_beside)
{
    char chunk[CHUNK_SIZE];
    struct pollfd stop = {.fd = keeper->stop_fd, .events = POLLIN};
    Oid oid = PQ(lo_creat)(to, INV_WRITE);
    int object = oid != 0 ? PQ(lo_open)(to, oid, INV_WRITE) : -1;
    int fd = open(keeper->copy, O_RDONLY | O_CLOEXEC);
    ssize_t got = object >= 0 ? 1 : -1;
    while (got > 0 && (!is_beside || poll(&stop, 1, CHUNK_MS) == 0)) {
        got = read(fd, chunk, sizeof chunk);
        got = got > 0 && PQ(lo_write)(to, object, chunk, (size_t)got) != got ? -1 : got;
    }
    (void)close(fd);
    return got == 0 ? oid : 0;
}

static wpk_err put_base(struct wpk_keeper *keeper, struct line *line, struct wpk_diag *diag)
{
    struct wpk_store *store = NULL;
    int64_t log;
    int64_t number = 0;
    int64_t tag = 0;
    wpk_err err = wpk_store_open_reader(keeper->data_dir, wpk_clock_system(), &store, diag);
    err = err == WPK_OK ? wpk_store_execute(store, "BEGIN", diag) : err;
    if (err == WPK_OK) { /* both from one snapshot */
        (void)wpk_rows_take(wpk_store_query(store, place_sql, ""), "iii", &log, &number, &tag);
        err = wpk_store_take_status(store, diag);
    }
    (void)unlink(keeper->copy); /* what a crash has left */
    err = err == WPK_OK ? wpk_store_back_up(store, keeper->copy, true, diag) : err;
    wpk_store_close(store);
    err = err == WPK_OK ? run(keeper, line, diag, "BEGIN", "") : err;
    if (err == WPK_OK) {
        Oid oid = send_copy(keeper, line->connection, line == &keeper->basing);
        bool has_reason = *PQ(PQerrorMessage)(line->connection) != '\0';
        err = oid != 0 ? run(keeper, line, diag, "SELECT wpk_publish($1, $2, $3, $4)", "tiii",
                             keeper->holder, number, tag, (int64_t)oid)
                       : fail(line, has_reason ? NULL : "the copy cannot be read", diag);
    }
    err = err == WPK_OK ? run(keeper, line, diag, "COMMIT", "") : err;
    (void)unlink(keeper->copy);
    if (err == WPK_OK) {
        wpk_log(WPK_LOG_INFO, "base_written", "entry=%" PRId64, number);
    }
    return err;
}

/* Until the writer does, it also shows that the holder is alive. */
static void *make_bases(void *user)
{
    struct wpk_keeper *keeper = user;
    struct pollfd stop = {.fd = keeper->stop_fd, .events = POLLIN};
    prctl(PR_SET_NAME, "bases"); /* as /proc and perf show it */
    while (poll(&stop, 1, BASE_MS) == 0) {
        struct wpk_diag diag = {0};
        struct line *line = &keeper->basing;
        wpk_err err = run(keeper, line, &diag,
                          atomic_load(&keeper->serves)
                              ? "SELECT 1 WHERE $1 <> '' AND wpk_is_base_due()"
                              : "UPDATE wpk_site SET seen_at = clock_timestamp() WHERE holder = $1",
                          "t", keeper->holder);
        err = err == WPK_OK && count_of(line) > 0 ? put_base(keeper, line, &diag) : err;
        if (err != WPK_OK && poll(&stop, 1, 0) == 0) {
            wpk_log_failure(WPK_LOG_WARN, "base_not_written", err, &diag);
        }
    }
    return NULL;
}

/* ---- claiming */

/* Begin the log with the history here; one that a crash has cut short begins again. */
static wpk_err found(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    wpk_err err = keeper->store == NULL ? open_history(keeper, diag) : WPK_OK;
    wpk_crypto_random(&keeper->log, sizeof keeper->log);
    keeper->log &= INT64_MAX; /* wpk_look() has a meaning for -1 */
    if (err == WPK_OK) {
        err = run(keeper, &keeper->line, diag,
                  "UPDATE wpk_site SET version = $1, log = $2, public_key = $3 WHERE holder = $4",
                  "iitt", (int64_t)WPK_STORE_VERSION, keeper->log, keeper->public_key,
                  keeper->holder);
    }
    if (err == WPK_OK) {
        wpk_store_begin(keeper->store);
        wpk_store_run(keeper->store, "UPDATE installation SET log_id = ?, log_number = 1", "i",
                      keeper->log);
        err = wpk_store_commit(keeper->store, diag);
    }
    err = err == WPK_OK ? read_place(keeper, diag) : err;
    err = err == WPK_OK ? put_artifacts(keeper, "SELECT sha256 FROM artifact", diag) : err;
    return err == WPK_OK ? put_base(keeper, &keeper->line, diag) : err;
}

/* Take up the entries that have come meanwhile: nobody appends now but us. */
static wpk_err take_over(struct wpk_keeper *keeper, struct wpk_diag *diag)
{
    wpk_err err = wpk_keeper_follow(keeper, diag);
    err = err == WPK_ENOENT ? found(keeper, diag) : err;
    if (err == WPK_OK) {
        wpk_store_set_journal(keeper->store, &keeper->journal);
        wpk_store_begin(keeper->store);
        wpk_store_run(keeper->store, "UPDATE installation SET epoch = epoch + 1", "");
        err = wpk_store_commit(keeper->store, diag);
    }
    return err == WPK_OK ? wpk_store_read_epoch(keeper->store, diag) : err;
}

wpk_err wpk_keeper_claim(struct wpk_keeper *keeper, bool stale_too, struct wpk_store **out,
                         struct wpk_diag *diag)
{
    struct line *line = &keeper->line;
    wpk_err err = run(keeper, line, diag, "SELECT * FROM wpk_claim($1, $2)", "tt", keeper->holder,
                      stale_too ? "true" : "false");
    if (err != WPK_OK) {
        return err;
    }
    keeper->epoch = int_of(line, 0, 0);
    if (keeper->epoch == 0) {
        return wpk_fail(diag, WPK_EBUSY, "%s holds the log", text_of(line, 0, 1));
    }
    keeper->beat_ns = wpk_clock_ns();
    keeper->running = pthread_create(&keeper->thread, NULL, make_bases, keeper) == 0;
    err = keeper->running ? take_over(keeper, diag) : WPK_ESYSTEM;
    if (err == WPK_OK) {
        wpk_log(WPK_LOG_INFO, "holding", "entry=%" PRId64, keeper->number);
        keeper->lent = true;
        *out = keeper->store;
    }
    return err == WPK_EIO ? WPK_ECLOSED : err; /* it is handed over, not claimed again */
}

/* ---- life */

wpk_err wpk_keeper_open(const char *uri, const char *data_dir, const char *public_key,
                        struct wpk_keeper **out, struct wpk_diag *diag)
{
    struct wpk_keeper *keeper = WPK_DEMAND(calloc(1, sizeof *keeper));
    char host[64] = "";
    uint32_t random;
    keeper->uri = uri;
    keeper->data_dir = data_dir;
    keeper->public_key = public_key;
    keeper->journal = (struct wpk_store_journal){
        .begin = begin, .commit = commit, .recover = recover, .beat = beat, .user = keeper};
    wpk_crypto_random(&random, sizeof random);
    (void)gethostname(host, sizeof host - 1);
    snprintf(keeper->holder, sizeof keeper->holder, "%s, process %d (%08x)", host, (int)getpid(),
             random);
    snprintf(keeper->database, PATH_SIZE, "%s/history.db", data_dir);
    snprintf(keeper->copy, PATH_SIZE, "%s/base.tmp", data_dir);
    keeper->stop_fd = eventfd(0, EFD_CLOEXEC);
    library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    *out = keeper;
    wpk_err err = keeper->stop_fd >= 0 ? wpk_changes_check(diag) : WPK_ESYSTEM;
    return err != WPK_OK || library != NULL
               ? err
               : wpk_fail(diag, WPK_EUNSUPPORTED,
                          "a log needs libpq.so.5: on Debian, apt-get install libpq5");
}

void wpk_keeper_close(struct wpk_keeper *keeper)
{
    struct wpk_diag diag = {0};
    if (keeper == NULL) {
        return;
    }
    if (keeper->epoch != 0 &&
        run(keeper, &keeper->line, &diag,
            "UPDATE wpk_site SET epoch = epoch + 1, holder = '' WHERE holder = $1", "t",
            keeper->holder) != WPK_OK) {
        wpk_log_failure(WPK_LOG_WARN, "not_handed_over", WPK_EIO, &diag);
    }
    if (keeper->running) { /* a base under way is not published any more */
        (void)eventfd_write(keeper->stop_fd, 1);
        pthread_join(keeper->thread, NULL);
    }
    wpk_store_close(keeper->lent ? NULL : keeper->store);
    hang_up(&keeper->line);
    hang_up(&keeper->basing);
    (void)close(keeper->stop_fd);
    free(keeper);
}
