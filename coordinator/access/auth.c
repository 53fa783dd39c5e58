/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens by their hash, in a table of open addressing that never changes once it is published.
 *
 * A probe starts at a slot that depends on the hash of the secret, never on the secret: its time
 * reveals nothing without the inverse of SHA-256. The hash is compared in constant time. */
#include "coordinator/access/auth.h"

#include "common/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    uint32_t mask;                   /* slots - 1, a power of two less one; at most half are used */
    struct wpk_auth_token *tokens[]; /* NULL: free; they lie behind the array */
};

struct cookie {
    uint8_t hash[WPK_SHA256_SIZE];  /* of its value */
    uint8_t token[WPK_SHA256_SIZE]; /* hash of its token's secret */
    struct wpk_identity identity;
    uint64_t expires_at; /* wall clock, ns; 0: free */
};

struct wpk_auth {
    pthread_rwlock_t lock; /* guards what follows: a thread that checks holds it for reading */
    struct table *table;
    struct cookie cookies[WPK_COOKIES_MAX];
    uint32_t cookie_next; /* the place of the next one */
};

/* ---- roles */

struct role_name {
    unsigned bit;
    const char *text;
};

static const struct role_name role_names[] = {
#define ROLE_NAME(name, bit, text) {bit, text},
    WPK_ROLE_LIST(ROLE_NAME)
#undef ROLE_NAME
};

#define ROLE_COUNT (sizeof role_names / sizeof role_names[0])

static void count_denial(const char *reason)
{
    wpk_metric_add(WPK_COUNTER_DENIED, wpk_metric_value(WPK_LABEL_DENIAL, reason), 1);
}

bool wpk_identity_may(const struct wpk_identity *identity, enum wpk_auth_role role,
                      struct wpk_diag *diag)
{
    if ((identity->roles & ((unsigned)role | WPK_ROLE_ADMIN)) != 0) {
        return true;
    }
    count_denial("role");
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (role_names[i].bit == (unsigned)role) {
            wpk_diag_set(diag, "this needs the role %s", role_names[i].text);
        }
    }
    return false;
}

wpk_err wpk_roles_parse(const char *text, unsigned *out, struct wpk_diag *diag)
{
    unsigned roles = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        size_t i = 0;
        while (i < ROLE_COUNT && (strlen(role_names[i].text) != size ||
                                  memcmp(role_names[i].text, text, size) != 0)) {
            i++;
        }
        if (i == ROLE_COUNT) {
            return wpk_fail(diag, WPK_EPARSE, "there is no role \"%.*s\"",
                            (int)(size < 64 ? size : 64), text);
        }
        roles |= role_names[i].bit;
        text += size;
        if (*text == ',' && *++text == '\0') {
            return wpk_fail(diag, WPK_EPARSE, "the list of roles ends in a comma");
        }
    }
    *out = roles;
    return WPK_OK;
}

void wpk_roles_print(unsigned roles, char out[WPK_ROLES_TEXT_SIZE])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if ((roles & role_names[i].bit) != 0) {
            at += (size_t)snprintf(out + at, WPK_ROLES_TEXT_SIZE - at, "%s%s", at > 0 ? "," : "",
                                   role_names[i].text);
        }
    }
}

/* ---- the table */

struct wpk_auth *wpk_auth_new(void)
{
    struct wpk_auth *auth = WPK_DEMAND(calloc(1, sizeof *auth));
    pthread_rwlock_init(&auth->lock, NULL);
    return auth;
}

void wpk_auth_free(struct wpk_auth *auth)
{
    if (auth != NULL) {
        pthread_rwlock_destroy(&auth->lock);
        free(auth->table);
        free(auth);
    }
}

/* The slot of the token with this hash, or the free one where it would be. */
static uint32_t find_slot(const struct table *table, const uint8_t hash[WPK_SHA256_SIZE])
{
    uint32_t at;
    memcpy(&at, hash, sizeof at);
    at &= table->mask;
    while (table->tokens[at] != NULL &&
           !wpk_crypto_equal(table->tokens[at]->hash, hash, WPK_SHA256_SIZE)) {
        at = (at + 1) & table->mask;
    }
    return at;
}

static wpk_err make_table(const struct wpk_auth_token *tokens, uint32_t count, struct table **out)
{
    uint32_t slots = 8;
    while (slots < 2 * count) {
        slots *= 2;
    }
    size_t head = sizeof(struct table) + slots * sizeof(struct wpk_auth_token *);
    struct table *table = WPK_DEMAND(calloc(1, head + count * sizeof *tokens));
    table->mask = slots - 1;
    struct wpk_auth_token *copies = (struct wpk_auth_token *)(void *)((char *)table + head);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = find_slot(table, tokens[i].hash);
        if (table->tokens[slot] != NULL) {
            free(table);
            return WPK_EEXIST;
        }
        copies[i] = tokens[i];
        table->tokens[slot] = &copies[i];
    }
    *out = table;
    return WPK_OK;
}

wpk_err wpk_auth_set(struct wpk_auth *auth, const struct wpk_auth_token *tokens, uint32_t count)
{
    struct table *table = NULL;
    if (count > WPK_AUTH_TOKENS_MAX) {
        return WPK_ENOSPC;
    }
    wpk_err err = make_table(tokens, count, &table);
    if (err != WPK_OK) {
        return err;
    }
    pthread_rwlock_wrlock(&auth->lock);
    struct table *old = auth->table;
    auth->table = table;
    pthread_rwlock_unlock(&auth->lock);
    free(old);
    return WPK_OK;
}

struct fault {
    const char *label; /* for the metric */
    const char *text;
};

/* With the lock held: why the token is not good, or NULL. */
static const struct fault *find_fault(const struct wpk_auth_token *token, uint64_t wall_ns)
{
    static const struct fault unknown = {"unknown", "there is no such token"};
    static const struct fault revoked = {"revoked", "the token was revoked"};
    static const struct fault expired = {"expired", "the token has expired"};
    if (token == NULL || token->revoked) {
        return token == NULL ? &unknown : &revoked;
    }
    return token->expires_at != 0 && wall_ns >= token->expires_at ? &expired : NULL;
}

const char *wpk_auth_fault(struct wpk_auth *auth, const uint8_t hash[WPK_SHA256_SIZE],
                           uint64_t wall_ns)
{
    pthread_rwlock_rdlock(&auth->lock);
    const struct wpk_auth_token *token =
        auth->table != NULL ? auth->table->tokens[find_slot(auth->table, hash)] : NULL;
    const struct fault *fault = find_fault(token, wall_ns);
    pthread_rwlock_unlock(&auth->lock);
    return fault != NULL ? fault->text : NULL;
}

wpk_err wpk_auth_check(struct wpk_auth *auth, const char *secret, uint64_t wall_ns,
                       struct wpk_identity *out, struct wpk_diag *diag)
{
    uint8_t hash[WPK_SHA256_SIZE];
    size_t size = strnlen(secret, WPK_AUTH_SECRET_MAX + 1);
    if (size == 0 || size > WPK_AUTH_SECRET_MAX) {
        count_denial("unknown");
        return wpk_fail(diag, WPK_EACCES, "that is no token");
    }
    wpk_crypto_sha256(secret, size, hash);
    pthread_rwlock_rdlock(&auth->lock);
    const struct wpk_auth_token *token =
        auth->table != NULL ? auth->table->tokens[find_slot(auth->table, hash)] : NULL;
    const struct fault *fault = find_fault(token, wall_ns);
    if (fault == NULL) {
        memcpy(out->owner, token->owner, sizeof out->owner);
        memcpy(out->token_id, token->id, sizeof out->token_id);
        out->roles = token->roles;
    }
    pthread_rwlock_unlock(&auth->lock);
    if (fault != NULL) {
        count_denial(fault->label);
        wpk_diag_set(diag, "%s", fault->text);
    }
    return fault == NULL ? WPK_OK : WPK_EACCES;
}

/* ---- cookies */

wpk_err wpk_auth_sign_in(struct wpk_auth *auth, const char *secret, uint64_t wall_ns,
                         char cookie[WPK_COOKIE_SIZE], struct wpk_diag *diag)
{
    uint8_t value[(WPK_COOKIE_SIZE - 1) / 2];
    struct cookie made = {.expires_at = wall_ns + WPK_COOKIE_NS};
    wpk_err err = wpk_auth_check(auth, secret, wall_ns, &made.identity, diag);
    if (err == WPK_OK && !wpk_identity_may(&made.identity, WPK_ROLE_READ, diag)) {
        err = WPK_EACCES;
    }
    if (err != WPK_OK) {
        return err;
    }
    made.identity.roles = WPK_ROLE_READ;
    wpk_crypto_random(value, sizeof value);
    wpk_crypto_hex(value, sizeof value, cookie);
    wpk_crypto_sha256(cookie, WPK_COOKIE_SIZE - 1, made.hash);
    wpk_crypto_sha256(secret, strlen(secret), made.token);
    pthread_rwlock_wrlock(&auth->lock);
    auth->cookies[auth->cookie_next] = made;
    auth->cookie_next = (auth->cookie_next + 1) % WPK_COOKIES_MAX;
    pthread_rwlock_unlock(&auth->lock);
    return WPK_OK;
}

/* Find our cookie in a Cookie header: "a=1; wpk=VALUE". NULL when it is not there. */
static const char *find_value(const char *header)
{
    static const char name[] = WPK_COOKIE_NAME "=";
    for (const char *at = header; *at != '\0';) {
        at += strspn(at, " ;");
        if (strncmp(at, name, sizeof name - 1) == 0) {
            at += sizeof name - 1;
            return strcspn(at, " ;") == WPK_COOKIE_SIZE - 1 ? at : NULL;
        }
        at += strcspn(at, ";");
    }
    return NULL;
}

bool wpk_auth_check_cookie(struct wpk_auth *auth, const char *header, uint64_t wall_ns,
                           struct wpk_identity *out)
{
    uint8_t hash[WPK_SHA256_SIZE];
    struct cookie found = {.expires_at = 0};
    const char *value = find_value(header);
    if (value == NULL) {
        return false;
    }
    wpk_crypto_sha256(value, WPK_COOKIE_SIZE - 1, hash);
    pthread_rwlock_rdlock(&auth->lock);
    for (uint32_t i = 0; i < WPK_COOKIES_MAX; i++) {
        const struct cookie *cookie = &auth->cookies[i];
        if (cookie->expires_at != 0 && wpk_crypto_equal(cookie->hash, hash, WPK_SHA256_SIZE)) {
            found = *cookie;
        }
    }
    pthread_rwlock_unlock(&auth->lock);
    if (wall_ns >= found.expires_at || wpk_auth_fault(auth, found.token, wall_ns) != NULL) {
        return false;
    }
    *out = found.identity;
    return true;
}
