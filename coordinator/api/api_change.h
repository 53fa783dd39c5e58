/* SPDX-License-Identifier: Apache-2.0 */
/* A change that a client asked for, as a store write: what it does to the store, the row of the
 * audit log beside it, and the answer once both are durable. For the files api_*.c alone. */
#ifndef WPK_COORDINATOR_API_API_CHANGE_H
#define WPK_COORDINATOR_API_API_CHANGE_H

#include "coordinator/api/api_call.h"
#include "coordinator/effects/executor.h"
#include "coordinator/store/history_admin.h"

struct wpk_change {
    struct wpk_store_write write;
    struct wpk_executor *executor;
    struct wpk_index *index;
    uint64_t request; /* 0: nobody waits for an answer */
    struct wpk_audit audit;
    wpk_err err; /* why nothing was changed: told to the client, and to the log */
    struct wpk_diag diag;
    struct wpk_api_answer answer;
    struct wpk_index_change *index_change; /* to be published; owned */
    /* On the writer's thread: change the store, fill in `answer`, or set `err`. NULL: nothing but
     * the audit log is written. */
    void (*apply)(struct wpk_change *change, struct wpk_store *store);
    /* On the loop's thread, after the commit, before the answer; NULL: nothing. */
    void (*after)(struct wpk_change *change);
    /* Free what `detail` owns; NULL: nothing. */
    void (*fini)(struct wpk_change *change);
    void *detail; /* owned; of those three */
};

/* A change by whoever sends the request; it is freed once it is done. */
struct wpk_change *wpk_change_new(struct wpk_call *call, const char *action, const char *subject);
/* Give it, as the answer to the call. */
void wpk_change_answer(struct wpk_call *call, struct wpk_change *change);
/* Only log what the call did. */
void wpk_change_log(struct wpk_call *call, const char *action, const char *subject, wpk_err outcome,
                    const char *detail);

/* The same of somebody who sent no request that came through. */
void wpk_change_put_audit(struct wpk_executor *executor, const struct wpk_audit *audit,
                          wpk_err outcome);

#endif
