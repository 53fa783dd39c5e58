/* SPDX-License-Identifier: Apache-2.0 */
/* The database under the history: transactions and statements. schema/schema.sql explains the
 * tables; history*.c reads and writes them. Only store.c, store_changes.c and checkpoint.c know
 * SQLite.
 *
 *                    open
 *                      │
 *      begin ──▶ [in a batch] ── commit ──▶ durable; held output may leave
 *                      │
 *                      └─ any failure ──▶ commit fails and nothing of the batch is stored
 *
 * The first failure of a batch sticks: later statements do nothing, queries find nothing, and
 * commit reports it. So the statements themselves return no codes. One thread uses a store; a lock
 * on the data directory (wpk_lock_take()) ensures one writing process. A row's text is valid
 * until the next wpk_rows_next(). */
#ifndef WPK_COORDINATOR_STORE_STORE_H
#define WPK_COORDINATOR_STORE_STORE_H

#include "common/buf.h"
#include "common/clock.h"

#include <stdint.h>

struct sqlite3;
struct wpk_checkpoint;
struct wpk_rows;
struct wpk_store;

#define WPK_STORE_VERSION 17   /* of schema.sql and log.sql */
#define WPK_STORE_HASH_SIZE 16 /* bytes of trial.candidate_hash */

/* Open or create history.db in `directory`, which must exist.
 *
 *   owns    caller closes
 *   errors  WPK_ECORRUPT   not a database, or damaged
 *           WPK_EMISMATCH  written by another version of wpkd
 *           WPK_EACCES read-only, WPK_ENOSPC, WPK_EBUSY, WPK_EIO, WPK_ENOMEM
 */
wpk_err wpk_store_open(const char *directory, const struct wpk_clock *clock, struct wpk_store **out,
                       struct wpk_diag *diag);
/* Open the same database for reading, beside its writer. One thread uses it, and sees the last
 * commit at each query. Batches are a bug.
 *
 *   owns    caller closes
 *   errors  WPK_ENOENT no database yet; WPK_EMISMATCH another version; as wpk_store_open
 */
wpk_err wpk_store_open_reader(const char *directory, const struct wpk_clock *clock,
                              struct wpk_store **out, struct wpk_diag *diag);
void wpk_store_close(struct wpk_store *store);

/* A journal keeps the changes of all commits elsewhere (keeper.h). */
struct wpk_store_journal {
    void (*begin)(void *user); /* a batch has begun */
    /* The batch is to be committed, if it has not failed: make its changes durable, or fail it.
     * SQLite's commit is not synced: after a power cut the journal alone may have the changes. */
    void (*commit)(void *user);
    /* Settle what a commit that failed has left in doubt.
     *   errors  WPK_EMISMATCH, WPK_ECLOSED  the process has to end */
    wpk_err (*recover)(void *user, struct wpk_diag *diag);
    wpk_err (*beat)(void *user, struct wpk_diag *diag); /* the writer is at work */
    void *user;
};

/* As wpk_store_open(), for a database that has a journal: commits are not synced, and the epoch
 * stays. An older database that had none is taken as well. */
wpk_err wpk_store_open_copy(const char *directory, const struct wpk_clock *clock,
                            struct wpk_store **out, struct wpk_diag *diag);
/* `journal` is borrowed; NULL: none from now on. */
void wpk_store_set_journal(struct wpk_store *store, const struct wpk_store_journal *journal);
wpk_err wpk_store_beat(struct wpk_store *store, struct wpk_diag *diag);
struct sqlite3 *wpk_store_database(struct wpk_store *store); /* for store_changes.c */

/* The changes of batches, by SQLite's session extension. */
struct sqlite3_session;

/*   errors  WPK_EUNSUPPORTED  this SQLite cannot record changes */
wpk_err wpk_changes_check(struct wpk_diag *diag);
/* Record from now on, in a batch; a failure becomes the batch's. The caller takes the changes. */
void wpk_changes_begin(struct wpk_store *store, struct sqlite3_session **out);
bool wpk_changes_any(struct sqlite3_session *session);
/* Append the changes to `out`, unless it is NULL, and end recording. */
void wpk_changes_take(struct wpk_store *store, struct sqlite3_session **session,
                      struct wpk_buf *out);
/* Apply changes in a batch of their own.
 *   errors  WPK_ECORRUPT  they do not follow from what the database has; those of a commit */
wpk_err wpk_changes_apply(struct wpk_store *store, const void *changes, size_t size,
                          struct wpk_diag *diag);

/* The store's epoch, which grows by one with each open. */
int64_t wpk_store_epoch(const struct wpk_store *store);
uint64_t wpk_store_wall_ns(const struct wpk_store *store);

/* Test whether a batch can be made durable again: write 256 KiB, and remove them. */
wpk_err wpk_store_probe(struct wpk_store *store, struct wpk_diag *diag);

/* Compute trial.candidate_hash. */
void wpk_store_hash(const char *provider, const char *candidate, uint8_t out[WPK_STORE_HASH_SIZE]);

/* Begin a batch; does nothing inside one. */
void wpk_store_begin(struct wpk_store *store);
/* Make the batch durable, and forget its failure.
 *   errors  the first failure since begin; nothing of the batch is stored then */
wpk_err wpk_store_commit(struct wpk_store *store, struct wpk_diag *diag);
/* From now on commits leave the write-ahead log to checkpoint.c, and only count its pages. */
void wpk_store_checkpoint_apart(struct wpk_store *store);
uint32_t wpk_store_log_pages(const struct wpk_store *store);
/* The first failure of the batch so far, or WPK_OK. */
wpk_err wpk_store_status(const struct wpk_store *store);
/* For readers, which have no commit: take the first failure since the last call. */
wpk_err wpk_store_take_status(struct wpk_store *store, struct wpk_diag *diag);
/* Set a mark to which the batch can be undone. An undo goes to the last mark that still stands. */
void wpk_store_mark(struct wpk_store *store);
/* Undo a failed batch to its last mark, and move the failure to *err and *diag. False if the writes
 * before the mark would fail too (the disk is full or broken): the batch stays failed. */
WPK_MUST_CHECK bool wpk_store_undo(struct wpk_store *store, wpk_err *err, struct wpk_diag *diag);
void wpk_store_unmark(struct wpk_store *store);
/* True if a failure with this code comes from the data to be written, not from the disk. */
bool wpk_store_is_own(wpk_err err);
/* Fail the batch for a reason outside of the database. */
void wpk_store_fail(struct wpk_store *store, wpk_err err, const struct wpk_diag *diag);

/* Run a statement without a result. `sql` is a literal: statements are cached by its address. The
 * values of its parameters follow, with their `types`: i int64_t, t const char *, r double, n no
 * value (NULL), h a candidate's hash, b a struct wpk_buf's bytes, I an int64_t that is NULL when 0.
 * Returns how many rows changed. */
int wpk_store_run(struct wpk_store *store, const char *sql, const char *types, ...);
/* The number of the row that was inserted last. */
int64_t wpk_store_inserted(const struct wpk_store *store);

/* Run a query. NULL after a failure, which the functions of rows accept. */
struct wpk_rows *wpk_store_query(struct wpk_store *store, const char *sql, const char *types, ...);
/* Go on to the next row. False after the last, which closes the rows. */
WPK_MUST_CHECK bool wpk_rows_next(struct wpk_rows *rows);
/* Close rows of which some may be left; closed ones may be closed again. */
void wpk_rows_close(struct wpk_rows *rows);
/* Read the first columns of the row, with their `types`: i int64_t *, u uint64_t *, w uint32_t *,
 * d int *, f bool *, r double *, t char * and its size as a size_t, b struct wpk_buf * to which the
 * text is appended, s const char ** that is valid in this row, c char ** for a new copy of the
 * text, C the same with NULL for an empty one. */
void wpk_rows_get(const struct wpk_rows *rows, const char *types, ...);
/* The same of the first row, and close the rows. False if there is no row; nothing is written then.
 */
bool wpk_rows_take(struct wpk_rows *rows, const char *types, ...);
/* The first column of the first row; 0: there is no row. Closes the rows. */
uint64_t wpk_rows_take_id(struct wpk_rows *rows);
int64_t wpk_rows_int(const struct wpk_rows *rows, int column);
double wpk_rows_real(const struct wpk_rows *rows, int column);
const char *wpk_rows_text(const struct wpk_rows *rows, int column); /* never NULL */
/* NULL if there are none. */
const void *wpk_rows_bytes(const struct wpk_rows *rows, int column, size_t *size);

/* ---- the whole database */

/* Read every page.
 *   errors  WPK_ECORRUPT, with the first finding */
wpk_err wpk_store_check(struct wpk_store *store, struct wpk_diag *diag);
/* Copy the database as of now to `path`, replacing that file. The copy is a complete database, and
 * a durable one unless it is `passing`: read once and removed.
 *   errors  WPK_ENOSPC, WPK_EACCES, WPK_EIO */
wpk_err wpk_store_back_up(struct wpk_store *store, const char *path, bool passing,
                          struct wpk_diag *diag);
/* Attach the database `path` as `given`: queries and statements read its tables, and functions in
 * its schema do not run. Ends with the store.   errors  WPK_EACCES, WPK_ENOMEM */
wpk_err wpk_store_attach_given(struct wpk_store *store, const char *path, struct wpk_diag *diag);
/* Run statements outside of any batch. If they fail inside a transaction of their own, it is rolled
 * back. */
wpk_err wpk_store_execute(struct wpk_store *store, const char *sql, struct wpk_diag *diag);
/* Limit the size of the database, as if the disk were full, for tests. 0: no limit. */
void wpk_store_limit_pages(struct wpk_store *store, int page_count_max);

/* The lock of a data directory: only one process changes it, wpkd or a tool. The lock ends with its
 * process, however that ends. */

/* Create the directory unless it exists, and lock it.
 *
 *   owns    the caller closes *fd, which releases the lock
 *   errors  WPK_EBUSY another process has it, with its pid in `diag`; WPK_EACCES, WPK_ENOSPC,
 *           WPK_EIO */
wpk_err wpk_lock_take(const char *directory, int *fd, struct wpk_diag *diag);

/* Functions of store.c for opening a database whose tables may be missing. For store_open.c. */

/* Open the file `path`, or create it unless `reader`; runs no statement.   owns  caller closes */
wpk_err wpk_store_attach(const char *path, const struct wpk_clock *clock, bool reader,
                         struct wpk_store **out, struct wpk_diag *diag);
bool wpk_store_is_writable(const struct wpk_store *store);
/* Read the first column of the first row.   errors  WPK_ENOENT no row */
wpk_err wpk_store_read_int(struct wpk_store *store, const char *sql, int64_t *out,
                           struct wpk_diag *diag);
/* Read the epoch that wpk_store_epoch() returns. */
wpk_err wpk_store_read_epoch(struct wpk_store *store, struct wpk_diag *diag);

/* A thread copies the write-ahead log into the database, so that commits need not: a checkpoint is
 * thousands of pages, and a sync that takes long on a busy disk.
 *
 *      a commit leaves a long log ──▶ the thread copies it, then the pages added meanwhile
 *                                        │ none were added: the next commit begins the log anew
 *                                        ▼
 *                                     the writer copies the few pages since
 *
 * The last step is for a writer that never pauses, because it adds pages during each pass. */

#define WPK_CHECKPOINT_PAGES 8000                           /* a log this long is copied: 32 MiB */
#define WPK_CHECKPOINT_PAGES_MAX (4 * WPK_CHECKPOINT_PAGES) /* at this, the writer waits */

/* Start the thread for `directory`/history.db, which the writer has opened.
 *
 *   owns    caller closes
 *   errors  WPK_ENOMEM, WPK_ESYSTEM, WPK_EIO
 */
wpk_err wpk_checkpoint_open(const char *directory, struct wpk_checkpoint **out,
                            struct wpk_diag *diag);
void wpk_checkpoint_close(struct wpk_checkpoint *checkpoint);

/* Called by the writer outside of a batch: its last commit has left `log_pages` in the log. */
void wpk_checkpoint_committed(struct wpk_checkpoint *checkpoint, uint32_t log_pages);

#endif
