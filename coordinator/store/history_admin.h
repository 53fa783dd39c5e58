/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the history by operators of the service and by clients: tokens, the audit log, pins,
 * idempotency keys. Reads and writes follow the rules of history.h. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_ADMIN_H
#define WPK_COORDINATOR_STORE_HISTORY_ADMIN_H

#include "coordinator/access/auth.h"
#include "coordinator/store/history.h"

#define WPK_TOKEN_NOTE_SIZE 128
#define WPK_IDEMPOTENCY_NS (UINT64_C(24) * 3600 * WPK_NS_PER_S)

/* The measurement behind a kernel's time: the last one of its trial. Zeroed: unknown. */
struct wpk_history_origin {
    uint64_t trial_id;
    uint64_t measured_at;
    char worker[WPK_ID_MAX];
};
void wpk_history_origin(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_history_origin *out);

/* Columns of a kernel `k`: the oldest job left that asked for its search, and its owner. */
#define WPK_HISTORY_ASKED WPK_HISTORY_ASKED_AS("id") ", " WPK_HISTORY_ASKED_AS("owner")
#define WPK_HISTORY_ASKED_AS(column)                                                               \
    "(SELECT j." column " FROM job_op o JOIN job j ON j.number = o.job_number"                     \
    " WHERE o.search_id = k.search_id ORDER BY o.job_number LIMIT 1)"

/* A row of the table `kernel`; its texts are valid until the store's next call. */
struct wpk_kernel_row {
    uint64_t id;
    uint64_t problem_id;
    bool served;
    bool pinned;
    uint64_t revoked_at; /* 0: not revoked */
    const char *revoked_reason;
    const char *verified_by;
    const char *job;   /* the oldest left that asked for its search; "": none is */
    const char *owner; /* of that job */
    const char *manifest;
    const char *signature;
    const char *document;
};

typedef void (*wpk_kernel_row_fn)(void *user, const struct wpk_kernel_row *row);
/* Call `fn` with a kernel; false when there is none. */
bool wpk_history_read_kernel(struct wpk_store *store, uint64_t id, wpk_kernel_row_fn fn,
                             void *user);
/* Call `fn` with a page of the kernels of the same problem, newest first, with ids below `before`.
 * Returns the last id; 0 when there are no more. */
uint64_t wpk_history_kernel_line(struct wpk_store *store, uint64_t id, uint64_t before,
                                 int page_size, wpk_kernel_row_fn fn, void *user);

/* A change of a kernel by an administrator. The functions set the members after `reason`.
 * Only `revoke` changes kernels of other accuracy classes: those with the same code.
 *   errors  WPK_ENOENT no such kernel; WPK_EEXIST not possible for it, and `diag` says why */
struct wpk_kernel_change {
    uint64_t kernel_id;
    const char *reason; /* for revoke */
    uint64_t problem_id;
    char accuracy[WPK_ACCURACY_TEXT_MAX]; /* class of the kernel */
    uint64_t serves;                      /* kernel that this class serves afterwards; 0: none */
    struct wpk_served_kernel served[WPK_SERVED_MAX]; /* [served_count]: of each class */
    uint32_t served_count;
    char provider[WPK_PROVIDER_NAME_MAX]; /* of the revoked implementation */
    char artifact_sha256[WPK_ID_MAX];     /* of the revoked kernel; "": a vendor's */
};
wpk_err wpk_history_pin(struct wpk_store *store, struct wpk_kernel_change *change,
                        struct wpk_diag *diag);
wpk_err wpk_history_unpin(struct wpk_store *store, struct wpk_kernel_change *change,
                          struct wpk_diag *diag);
/* Revoke a kernel: it is never served again, whichever search finds it. If it was served, the
 * fastest kernel that is left takes its place. */
wpk_err wpk_history_revoke(struct wpk_store *store, struct wpk_kernel_change *change,
                           struct wpk_diag *diag);
/* Serve the kernel that was served before the current one. */
wpk_err wpk_history_roll_back(struct wpk_store *store, struct wpk_kernel_change *change,
                              struct wpk_diag *diag);

/* ---- tokens */

struct wpk_history_token {
    struct wpk_auth_token token;
    char note[WPK_TOKEN_NOTE_SIZE];
    uint64_t created_at;
    uint64_t revoked_at; /* 0: not revoked */
};
void wpk_history_put_token(struct wpk_store *store, const struct wpk_history_token *token);
/* Revoke a token; false when there is none, or it was revoked before. */
bool wpk_history_revoke_token(struct wpk_store *store, const char *id);
WPK_MUST_CHECK bool wpk_history_read_token(struct wpk_store *store, const char *id,
                                           struct wpk_history_token *out);
typedef void (*wpk_history_token_fn)(void *user, const struct wpk_history_token *token);
/* List at most `max` tokens in the order of their ids, those after `after`. */
void wpk_history_list_tokens(struct wpk_store *store, const char *after, int max,
                             wpk_history_token_fn fn, void *user);
/* List at most `max` tokens: first those that are valid, then others, newest first. */
void wpk_history_known_tokens(struct wpk_store *store, int max, wpk_history_token_fn fn,
                              void *user);
/* The number of tokens that are neither revoked nor expired. */
uint32_t wpk_history_good_tokens(struct wpk_store *store);

/* ---- the audit log */

struct wpk_audit {
    char actor[WPK_OWNER_SIZE];
    char token[WPK_TOKEN_ID_SIZE];
    char peer[WPK_PEER_SIZE];
    char action[32];  /* "job.submit" */
    char subject[96]; /* id of the changed resource */
    char detail[256];
};
/* A refusal is removed once this many lines were written after it. */
#define WPK_AUDIT_REFUSALS_MAX 100000
void wpk_history_put_audit(struct wpk_store *store, const struct wpk_audit *audit, wpk_err outcome);
/* Write a page of lines, newest first, with ids below `before`; "" selects any actor or action.
 * Returns the last id, 0 at the end. */
uint64_t wpk_history_list_audit(struct wpk_store *store, uint64_t before, const char *actor,
                                const char *action, int page_size, struct wpk_json_writer *w);

/* ---- requests that may be repeated */

struct wpk_idempotency {
    const char *owner;
    const char *key;
    const char *route;
    char body_sha256[WPK_ID_MAX];
    char subject[WPK_ID_MAX]; /* id of the created resource */
};
/* Store an entry for WPK_IDEMPOTENCY_NS, and forget older entries. */
void wpk_history_put_idempotency(struct wpk_store *store, const struct wpk_idempotency *entry);
/* Fill in body_sha256 and subject; false when the key is unknown or expired. */
WPK_MUST_CHECK bool wpk_history_find_idempotency(struct wpk_store *store,
                                                 struct wpk_idempotency *entry);

/* Serve no kernel that is signed, since the key that signed them is lost, and let their searches
 * verify and record them again. Appends the ids of those that were served. Returns their number. */
uint32_t wpk_history_lose_key(struct wpk_store *store, struct wpk_buf *ids);

#endif
