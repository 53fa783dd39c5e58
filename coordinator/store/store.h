/* SPDX-License-Identifier: Apache-2.0 */
/* The database under the history: transactions and statements. What the tables mean is said in
 * schema/schema.sql, who reads and writes them is history.c. The only file that knows SQLite is
 * store.c.
 *
 *                    open
 *                      │
 *      begin ──▶ [in a batch] ── commit ──▶ durable, and only now may effects leave
 *                      │
 *                      └─ any failure ──▶ commit fails and nothing of the batch is there
 *
 * The first failure of a batch sticks: later statements do nothing, queries find nothing, and
 * commit reports it. So the statements themselves return no codes. One thread; one writer process,
 * which a lock on the data directory sees to. Text that a row gives out lives until the next step.
 */
#ifndef WPK_COORDINATOR_STORE_STORE_H
#define WPK_COORDINATOR_STORE_STORE_H

#include "common/clock.h"

#define WPK_STORE_VERSION 3    /* of schema.sql */
#define WPK_STORE_HASH_SIZE 16 /* bytes of trial.candidate_hash */

struct wpk_store;
struct wpk_rows;

/* Open, or create, `directory`/history.db, which must exist; migrate it after a backup beside it.
 *
 *   owns    caller closes
 *   errors  WPK_ECORRUPT   not a database, or damaged
 *           WPK_EMISMATCH  written by a newer wpkd
 *           WPK_EACCES read-only, WPK_ENOSPC, WPK_EBUSY, WPK_EIO, WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_store_open(const char *directory, const struct wpk_clock *clock,
                                      struct wpk_store **out, struct wpk_diag *diag);
/* Open the same database to read only, beside its writer: for one thread, which sees the last
 * commit at each query. Batches are a bug.
 *
 *   owns    caller closes
 *   errors  WPK_ENOENT there is none yet; WPK_EMISMATCH not of this version; as above
 */
WPK_MUST_CHECK wpk_err wpk_store_open_reader(const char *directory, const struct wpk_clock *clock,
                                             struct wpk_store **out, struct wpk_diag *diag);
void wpk_store_close(struct wpk_store *store);

/* Which life of the store this is: grows by one with each open. */
int64_t wpk_store_epoch(const struct wpk_store *store);
uint64_t wpk_store_wall_ns(const struct wpk_store *store);

/* Can a batch be made durable again, and is there some room? Writes and removes 256 KiB. */
WPK_MUST_CHECK wpk_err wpk_store_probe(struct wpk_store *store, struct wpk_diag *diag);

/* What trial.candidate_hash is. */
void wpk_store_hash(const char *provider, const char *candidate,
                    uint8_t out[WPK_STORE_HASH_SIZE]);

/* Begin a batch; does nothing inside one. */
void wpk_store_begin(struct wpk_store *store);
/* Make the batch durable, and forget its failure.
 *   errors  the first failure since begin; nothing of the batch is stored then */
WPK_MUST_CHECK wpk_err wpk_store_commit(struct wpk_store *store, struct wpk_diag *diag);
/* Commits leave the write-ahead log to somebody else (checkpoint.h), and only count its pages. */
void wpk_store_checkpoint_apart(struct wpk_store *store);
uint32_t wpk_store_log_pages(const struct wpk_store *store);
/* What commit would say; WPK_OK so far. */
wpk_err wpk_store_status(const struct wpk_store *store);
/* For readers, which have no commit: what failed since the last call, and forget it. */
wpk_err wpk_store_take_status(struct wpk_store *store, struct wpk_diag *diag);
/* From here on the batch can be undone: to the last mark that was neither undone nor unmarked. */
void wpk_store_mark(struct wpk_store *store);
/* Undo what failed since the mark, and forget why: it is in `err` and `diag`. False, and nothing
 * happens, where what was written before would fail as well: the disk is full, or does not work. */
WPK_MUST_CHECK bool wpk_store_undo(struct wpk_store *store, wpk_err *err, struct wpk_diag *diag);
void wpk_store_unmark(struct wpk_store *store);
/* Does a failure of this kind come from what was to be written, not from the disk? */
bool wpk_store_is_own(wpk_err err);
/* Fail the batch, for a reason that lies outside of the database. */
void wpk_store_fail(struct wpk_store *store, wpk_err err, const struct wpk_diag *diag);

/* Run a statement without a result. `sql` is a literal: statements are kept by its address. The
 * values of its ?s follow, as `types` says: i int64_t, t const char *, r double, n nothing (NULL),
 * h a candidate's hash; I an int64_t that stands for NULL when it is 0. Returns how many rows
 * changed. */
int wpk_store_run(struct wpk_store *store, const char *sql, const char *types, ...);
/* The number of the row that was inserted last. */
int64_t wpk_store_inserted(const struct wpk_store *store);

/* Run a query. NULL (which next and close accept) after a failure. */
struct wpk_rows *wpk_store_query(struct wpk_store *store, const char *sql, const char *types, ...);
WPK_MUST_CHECK bool wpk_rows_next(struct wpk_rows *rows);
void wpk_rows_close(struct wpk_rows *rows);
int64_t wpk_rows_int(const struct wpk_rows *rows, int column);
double wpk_rows_real(const struct wpk_rows *rows, int column);
const char *wpk_rows_text(const struct wpk_rows *rows, int column); /* never NULL */

/* ---- the whole database */

/* Read every page.
 *   errors  WPK_ECORRUPT, with what was found first */
WPK_MUST_CHECK wpk_err wpk_store_check(struct wpk_store *store, struct wpk_diag *diag);
/* Copy it, as it was when this began, over what is at `path`: a database of its own, and durable.
 *   errors  WPK_ENOSPC, WPK_EACCES, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_store_back_up(struct wpk_store *store, const char *path,
                                         struct wpk_diag *diag);
/* Run statements that are no part of a batch: migrations'. A transaction that they began and that
 * fails is rolled back. */
WPK_MUST_CHECK wpk_err wpk_store_execute(struct wpk_store *store, const char *sql,
                                         struct wpk_diag *diag);
/* The database grows no further than this: tests fill the disk so. 0: no limit. */
void wpk_store_limit_pages(struct wpk_store *store, int page_count_max);

#endif
