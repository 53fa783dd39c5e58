/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication of clients and workers: tokens with roles.
 *
 * The table has the SHA-256 of each secret, never the secret. It is replaced as a whole while any
 * number of threads check secrets against it: each check sees the old table or the new one. */
#ifndef WPK_COORDINATOR_ACCESS_AUTH_H
#define WPK_COORDINATOR_ACCESS_AUTH_H

#include "common/crypto.h"
#include "common/err.h"
#include "schema/message.h"

#include <stdint.h>

struct wpk_auth;

#define WPK_OWNER_SIZE 64    /* bytes, with the NUL; of an owner's name */
#define WPK_TOKEN_ID_SIZE 17 /* 16 hexadecimal digits and NUL: a token's public name */
#define WPK_PEER_SIZE 64     /* an address as text, with the NUL */
#define WPK_AUTH_TOKENS_MAX 65536
#define WPK_AUTH_SECRET_MAX 256 /* bytes; a longer secret is refused */

/* name, bit, text. `admin` implies all others. */
#define WPK_ROLE_LIST(X)                                                                           \
    X(READ, 1, "read")       /* jobs, kernels, lookups */                                          \
    X(SUBMIT, 2, "submit")   /* submit jobs; change own jobs */                                    \
    X(BUILD, 4, "build")     /* a worker that compiles */                                          \
    X(MEASURE, 8, "measure") /* a worker that times */                                             \
    X(ADMIN, 16, "admin")    /* everything, for all owners */

#define WPK_ROLE_ENUM(name, bit, text) WPK_ROLE_##name = bit,
enum wpk_auth_role { WPK_ROLE_LIST(WPK_ROLE_ENUM) WPK_ROLE_ALL = 31 };

/* The identity behind a checked credential. */
struct wpk_identity {
    char owner[WPK_OWNER_SIZE];       /* a user's name, or "uid:1000" without one */
    char token_id[WPK_TOKEN_ID_SIZE]; /* "" for a local user */
    char peer[WPK_PEER_SIZE];         /* "unix", or the address without a port */
    unsigned roles;                   /* bits of enum wpk_auth_role */
};

/* True if the identity has this role; else `diag` (which may be NULL) names the missing role. */
bool wpk_identity_may(const struct wpk_identity *identity, enum wpk_auth_role role,
                      struct wpk_diag *diag);

#define WPK_ROLES_TEXT_SIZE 40 /* all names joined by ',', and NUL */

/* Parse and print roles as "read,submit"; an empty text is no role.
 *
 *   errors  WPK_EPARSE  an unknown name
 */
wpk_err wpk_roles_parse(const char *text, unsigned *out, struct wpk_diag *diag);
void wpk_roles_print(unsigned roles, char out[WPK_ROLES_TEXT_SIZE]);

struct wpk_auth_token {
    char id[WPK_TOKEN_ID_SIZE];
    char owner[WPK_OWNER_SIZE];
    unsigned roles;
    uint8_t hash[WPK_SHA256_SIZE]; /* of the secret; unique in a table */
    uint64_t expires_at;           /* wall clock, ns; 0: never */
    bool revoked;                  /* kept, so that a refusal can name the reason */
};

/* Make an empty table, which refuses every secret.
 *
 *   owns    caller frees
 */
struct wpk_auth *wpk_auth_new(void);
void wpk_auth_free(struct wpk_auth *auth);

/* Replace the table; on failure the old one stays. From any thread.
 *
 *   owns    copies `tokens`
 *   errors  WPK_ENOSPC more than WPK_AUTH_TOKENS_MAX; WPK_EEXIST a hash twice
 */
wpk_err wpk_auth_set(struct wpk_auth *auth, const struct wpk_auth_token *tokens, uint32_t count);

/* Find the owner of a secret. From any thread. Sets all of `out` but its peer; `diag` gets a reason
 * that the client may be told.
 *
 *   unit    wall_ns: ns since 1970, against expiry
 *   errors  WPK_EACCES  unknown, expired or revoked
 */
wpk_err wpk_auth_check(struct wpk_auth *auth, const char *secret, uint64_t wall_ns,
                       struct wpk_identity *out, struct wpk_diag *diag);

/* NULL while the token with this hash is valid; else the reason, a static text that the client may
 * be told. From any thread. */
const char *wpk_auth_fault(struct wpk_auth *auth, const uint8_t hash[WPK_SHA256_SIZE],
                           uint64_t wall_ns);

/* Cookies of browsers: a token that was pasted once. A cookie reads, whatever its token may, and is
 * valid for WPK_COOKIE_NS, as long as its token is. They are kept in memory alone: a restart of
 * wpkd ends them. */
#define WPK_COOKIE_NAME "wpk"
#define WPK_COOKIE_SIZE 65 /* bytes of a value, with the NUL */
#define WPK_COOKIE_NS (12 * UINT64_C(3600000000000))
#define WPK_COOKIES_MAX 256 /* the oldest makes room */

/* Make a cookie for the owner of a secret. From any thread.
 *
 *   errors  WPK_EACCES  as wpk_auth_check(), or the token may not read
 */
wpk_err wpk_auth_sign_in(struct wpk_auth *auth, const char *secret, uint64_t wall_ns,
                         char cookie[WPK_COOKIE_SIZE], struct wpk_diag *diag);
/* Find the owner of a cookie, by the value of a Cookie header. From any thread. Sets all of `out`
 * but its peer. False: no cookie of ours, or its time or its token has ended. */
WPK_MUST_CHECK bool wpk_auth_check_cookie(struct wpk_auth *auth, const char *header,
                                          uint64_t wall_ns, struct wpk_identity *out);

/* Authentication of workers, before the coordinator sees a hello. Later messages name a session of
 * 64 random bits, on the hello's connection; a session ends with its token (effects/executor.c). */

/* Check the token of a hello: the worker needs the role `build` to build and `measure` to run.
 * *identity is the token's owner, also when a role is missing; zeroed when the token is not valid.
 * `diag` gets a reason that the worker may be told.
 *
 *   errors  WPK_EACCES
 */
wpk_err wpk_worker_auth_check(struct wpk_auth *auth, const struct wpk_hello *hello,
                              uint64_t wall_ns, struct wpk_identity *identity,
                              struct wpk_diag *diag);

#endif
