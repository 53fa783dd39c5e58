/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts' files are written, read and removed on threads of their own, so that neither the loop
 * nor a transaction waits for them: each file costs two syncs.
 *
 *      loop: put ──▶ reads, changes ──▶ a thread ──▶ done ──▶ loop: take
 *
 * Changes of one artifact are made in the order of the calls, one at a time; those of several are
 * made at once. Reads go before changes, and wait for none: a file is replaced whole. What a read
 * does not find may be on its way: a second one takes its turn among the changes. */
#ifndef WPK_COORDINATOR_EFFECTS_FILE_POOL_H
#define WPK_COORDINATOR_EFFECTS_FILE_POOL_H

#include "common/buf.h"
#include "schema/record.h"

#define WPK_FILE_THREADS_MAX 4
#define WPK_FILE_TASKS_MAX 1024 /* that wait, or are at work: more is a bug of the caller */

struct wpk_file_pool;

enum wpk_file_action {
    WPK_FILE_PUT,
    WPK_FILE_GET,
    WPK_FILE_GET_IN_TURN, /* after the changes that were called for before */
    WPK_FILE_REMOVE,
};

/* Its owner's; the pool's between put and take. */
struct wpk_file_task {
    enum wpk_file_action action;
    char sha256[WPK_ID_MAX];
    struct wpk_buf bytes; /* PUT: to be written; else as they were read */
    wpk_err err;          /* of wpk_artifact_put, wpk_artifact_get; WPK_ECLOSED: not begun */
    struct wpk_diag diag;
    void *owner;
    struct wpk_file_task *next; /* of the pool */
};

struct wpk_file_pool_options {
    const char *data_dir;     /* borrowed */
    int threads;              /* 0: tasks are done at once, by the caller */
    void (*wake)(void *user); /* from the threads: there is something to take */
    void *user;
};

/*   owns    caller closes, then frees
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_file_pool_open(const struct wpk_file_pool_options *options,
                                          struct wpk_file_pool **out, struct wpk_diag *diag);
/* End what is at work; all else is done with WPK_ECLOSED. It can still be taken. */
void wpk_file_pool_close(struct wpk_file_pool *pool);
/* Everything has been taken. */
void wpk_file_pool_free(struct wpk_file_pool *pool);

void wpk_file_pool_put(struct wpk_file_pool *pool, struct wpk_file_task *task);
/* A task that is done; NULL when there is none. */
struct wpk_file_task *wpk_file_pool_take(struct wpk_file_pool *pool);

#endif
