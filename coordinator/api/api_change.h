/* SPDX-License-Identifier: Apache-2.0 */
/* A client's change as a store write: it changes the store, adds a row to the audit log, and
 * answers once both are durable. For the files api_*.c only. */
#ifndef WPK_COORDINATOR_API_API_CHANGE_H
#define WPK_COORDINATOR_API_API_CHANGE_H

#include "coordinator/access/auth.h"
#include "coordinator/api/api_call.h"
#include "coordinator/effects/executor.h"
#include "coordinator/store/history_admin.h"
#include "coordinator/store/store.h"

struct wpk_change {
    struct wpk_store_write write;
    struct wpk_executor *executor;
    struct wpk_index *index;
    uint64_t request; /* the request to answer; 0: none */
    struct wpk_audit audit;
    wpk_err err; /* why nothing was changed, for the answer and the audit log */
    struct wpk_diag diag;
    struct wpk_api_answer answer;
    struct wpk_index_change *index_change; /* to be published; owned */
    /* On the writer's thread: change the store and fill `answer`, or set `err`. NULL: only the
     * audit log is written. */
    void (*apply)(struct wpk_change *change, struct wpk_store *store);
    /* Called on the loop's thread after the commit of a change that was made, before the answer;
     * may be NULL. */
    void (*after)(struct wpk_change *change);
    /* Free what `detail` owns; NULL: nothing. */
    void (*fini)(struct wpk_change *change);
    void *detail; /* owned; for these three functions */
};

/* Make a change by the client of the call; it is freed once it is done. */
struct wpk_change *wpk_change_new(struct wpk_call *call, const char *action, const char *subject);
/* Add the change to the batch; it answers the call. */
void wpk_change_answer(struct wpk_call *call, struct wpk_change *change);
/* Only write the audit log's row of the call. */
void wpk_change_log(struct wpk_call *call, const char *action, const char *subject, wpk_err outcome,
                    const char *detail);

/* Write a row without a call, for a client that was refused before. */
void wpk_change_put_audit(struct wpk_executor *executor, const struct wpk_audit *audit,
                          wpk_err outcome);

/* Tokens: REST makes, lists and revokes them; auth.h checks them, and gets them from here. */

/* Fill `auth` with the tokens of the store, at the start.
 *   errors  WPK_ENOMEM, WPK_ENOSPC; those of the store */
wpk_err wpk_api_tokens_load(struct wpk_store *store, struct wpk_auth *auth, struct wpk_diag *diag);

#endif
