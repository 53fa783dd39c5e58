/* SPDX-License-Identifier: Apache-2.0 */
/* The file pool: artifacts' files are written, read and removed on threads of their own. A file
 * costs two syncs, for which neither the loop nor a transaction waits.
 *
 *      loop: put ──▶ reads, changes ──▶ a thread ──▶ done ──▶ loop: take
 *
 * Changes of one artifact are made in the order of the calls, one at a time; changes of different
 * artifacts are made at once. Reads go before changes and do not wait for them, because a file is
 * replaced as a whole. A file that a read does not find may be about to be written: a second read
 * (WPK_FILE_GET_IN_TURN) takes its turn among the changes. When what was read and not taken fills
 * its share of memory, further reads wait until the loop takes some. */
#ifndef WPK_COORDINATOR_EFFECTS_FILE_POOL_H
#define WPK_COORDINATOR_EFFECTS_FILE_POOL_H

#include "common/buf.h"
#include "schema/record.h"

#define WPK_FILE_THREADS_MAX 4
#define WPK_FILE_TASKS_MAX 1024 /* put and not taken; more is a bug of the caller */
/* Bytes of files that were read, or are being read, and not taken. */
#define WPK_FILE_READ_BYTES_MAX ((size_t)32 << 20)

struct wpk_file_pool;

enum wpk_file_action {
    WPK_FILE_PUT,
    WPK_FILE_GET,
    WPK_FILE_GET_IN_TURN, /* after the changes that were put before */
    WPK_FILE_CHECK,       /* read it, and keep nothing of it */
    WPK_FILE_REMOVE,
};

/* A task. It belongs to its owner, and to the pool between put and take. */
struct wpk_file_task {
    enum wpk_file_action action;
    char sha256[WPK_ID_MAX];
    struct wpk_buf bytes; /* PUT: to be written; GET: as they were read; CHECK: none */
    wpk_err err;          /* of wpk_artifact_put() or _get(); WPK_ECLOSED: not begun */
    struct wpk_diag diag;
    void *owner;
    struct wpk_file_task *next; /* the pool's */
};

struct wpk_file_pool_options {
    const char *data_dir;     /* borrowed */
    int threads;              /* 0: tasks are done at once, by the caller */
    void (*wake)(void *user); /* called on the threads: there is something to take */
    void *user;
};

/*   owns    caller closes, then frees
 *   errors  WPK_ESYSTEM
 */
wpk_err wpk_file_pool_open(const struct wpk_file_pool_options *options, struct wpk_file_pool **out,
                           struct wpk_diag *diag);
/* Finish tasks at work; end all others with WPK_ECLOSED. Tasks can still be taken. */
void wpk_file_pool_close(struct wpk_file_pool *pool);
/* Free the pool. All tasks must have been taken. */
void wpk_file_pool_free(struct wpk_file_pool *pool);

/* Put a task, with its action, sha256 and bytes set. */
void wpk_file_pool_put(struct wpk_file_pool *pool, struct wpk_file_task *task);
/* Take a task that is done; NULL: there is none. */
struct wpk_file_task *wpk_file_pool_take(struct wpk_file_pool *pool);

#endif
