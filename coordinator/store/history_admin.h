/* SPDX-License-Identifier: Apache-2.0 */
/* What operators and clients do to the history, as against what searches put there: tokens, the
 * audit log, pins, requests that may be repeated. Rules as in history.h. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_ADMIN_H
#define WPK_COORDINATOR_STORE_HISTORY_ADMIN_H

#include "coordinator/access/auth.h"
#include "coordinator/store/history.h"

#define WPK_TOKEN_NOTE_SIZE 128
#define WPK_IDEMPOTENCY_NS (UINT64_C(24) * 3600 * WPK_NS_PER_S)

/* Where a kernel's time comes from: the last measurement of its trial. Zeroed: not known. */
struct wpk_history_origin {
    uint64_t trial_id;
    uint64_t measured_at;
    char worker[WPK_ID_MAX];
};
void wpk_history_origin(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_history_origin *out);

/* What names a job's operators: its document, or the job file while it has none; appended. */
WPK_MUST_CHECK bool wpk_history_job_text(struct wpk_store *store, const char *id,
                                         struct wpk_buf *out, uint64_t *number);

/* A row of the table `kernel`; texts live until the store's next step. */
struct wpk_kernel_row {
    uint64_t id;
    uint64_t problem_id;
    bool served;
    bool pinned;
    uint64_t revoked_at; /* 0: it was not */
    const char *revoked_reason;
    const char *verified_by;
    const char *manifest;
    const char *signature;
    const char *document;
};

typedef void (*wpk_kernel_row_fn)(void *user, const struct wpk_kernel_row *row);
/* Call `fn` with that kernel; false when there is none. */
bool wpk_history_read_kernel(struct wpk_store *store, uint64_t id, wpk_kernel_row_fn fn,
                             void *user);
/* Every kernel of the same problem, newest first, with ids below `before`; returns the last id, 0
 * when there are no more. */
uint64_t wpk_history_kernel_line(struct wpk_store *store, uint64_t id, uint64_t before,
                                 int page_size, wpk_kernel_row_fn fn, void *user);

/* What an operator does to a kernel. Each says WPK_ENOENT where there is no such kernel and, with a
 * sentence in `diag`, WPK_EEXIST where it cannot be done to this one; nothing is changed then.
 * The other members say what the change came to. Kernels of other classes of
 * accuracy are changed by `revoke` alone, where they are the same code. */
struct wpk_kernel_change {
    uint64_t kernel_id;
    const char *reason; /* for revoke */
    uint64_t problem_id;
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* class of the kernel */
    uint64_t serves;                      /* what that class serves afterwards; 0: nothing */
    struct wpk_served_kernel served[WPK_SERVED_MAX]; /* [served_count]: what each class serves */
    uint32_t served_count;
    char provider[WPK_PROVIDER_NAME_MAX]; /* what was revoked: this vendor's, or */
    char artifact_sha256[WPK_ID_MAX];     /* this shared object */
};
wpk_err wpk_history_pin(struct wpk_store *store, struct wpk_kernel_change *change,
                        struct wpk_diag *diag);
wpk_err wpk_history_unpin(struct wpk_store *store, struct wpk_kernel_change *change,
                          struct wpk_diag *diag);
/* Never served again, whichever search finds it; if it was, the fastest that is left is. */
wpk_err wpk_history_revoke(struct wpk_store *store, struct wpk_kernel_change *change,
                           struct wpk_diag *diag);
/* Serve the one before the one that is served. */
wpk_err wpk_history_roll_back(struct wpk_store *store, struct wpk_kernel_change *change,
                              struct wpk_diag *diag);

/* ---- tokens */

struct wpk_history_token {
    struct wpk_auth_token token;
    char note[WPK_TOKEN_NOTE_SIZE];
    uint64_t created_at;
    uint64_t revoked_at; /* 0: it was not */
};
void wpk_history_put_token(struct wpk_store *store, const struct wpk_history_token *token);
/* False when there is none that is not revoked yet. */
bool wpk_history_revoke_token(struct wpk_store *store, const char *id);
WPK_MUST_CHECK bool wpk_history_read_token(struct wpk_store *store, const char *id,
                                           struct wpk_history_token *out);
typedef void (*wpk_history_token_fn)(void *user, const struct wpk_history_token *token);
/* All of them, by id after `after`, at most `max`. */
void wpk_history_list_tokens(struct wpk_store *store, const char *after, int max,
                             wpk_history_token_fn fn, void *user);
/* At most `max`: first those that are good, then, newest first, those that were. */
void wpk_history_known_tokens(struct wpk_store *store, int max, wpk_history_token_fn fn,
                              void *user);
/* Neither revoked nor expired. */
uint32_t wpk_history_good_tokens(struct wpk_store *store);

/* ---- the audit log */

struct wpk_audit {
    char actor[WPK_OWNER_SIZE];
    char token[WPK_TOKEN_ID_SIZE];
    char peer[WPK_PEER_SIZE];
    char action[32];  /* "job.submit" */
    char subject[96]; /* id of what it was done to */
    char detail[256];
};
/* Refusals go once so many lines were written after them, so that there are never more. */
#define WPK_AUDIT_REFUSALS_MAX 100000
void wpk_history_put_audit(struct wpk_store *store, const struct wpk_audit *audit, wpk_err outcome);
/* A page, newest first, of ids below `before`; "" for any. Returns the last id, 0 at the end. */
uint64_t wpk_history_list_audit(struct wpk_store *store, uint64_t before, const char *actor,
                                const char *action, int page_size, struct wpk_json_writer *w);

/* ---- requests that may be repeated */

struct wpk_idempotency {
    const char *owner;
    const char *key;
    const char *route;
    char body_sha256[WPK_ID_MAX];
    char subject[WPK_ID_MAX]; /* id of what was made */
};
/* Remembered for WPK_IDEMPOTENCY_NS; older ones are forgotten. */
void wpk_history_put_idempotency(struct wpk_store *store, const struct wpk_idempotency *entry);
/* Fills body and subject in; false when the key is not known, or its time is over. */
WPK_MUST_CHECK bool wpk_history_find_idempotency(struct wpk_store *store,
                                                 struct wpk_idempotency *entry);

#endif
