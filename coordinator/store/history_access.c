/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, the audit log and idempotency keys. */
#include "coordinator/store/history_admin.h"

#include <stdio.h>
#include <string.h>

static int64_t now_of(const struct wpk_store *store)
{
    return (int64_t)wpk_store_wall_ns(store);
}

/* ---- tokens */

#define TOKEN_COLUMNS "id, owner, roles, hash, note, created_at, expires_at, revoked_at"

void wpk_history_put_token(struct wpk_store *store, const struct wpk_history_token *token)
{
    char roles[WPK_ROLES_TEXT_SIZE];
    char hash[WPK_SHA256_HEX_SIZE];
    wpk_roles_print(token->token.roles, roles);
    wpk_crypto_hex(token->token.hash, sizeof token->token.hash, hash);
    wpk_store_run(
        store, "INSERT INTO token (" TOKEN_COLUMNS ", epoch) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
        "tttttiii", token->token.id, token->token.owner, roles, hash, token->note,
        (int64_t)token->created_at, (int64_t)token->token.expires_at, wpk_store_epoch(store));
}

bool wpk_history_revoke_token(struct wpk_store *store, const char *id)
{
    return wpk_store_run(store, "UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at = 0",
                         "it", now_of(store), id) == 1;
}

/* Roles or a hash that are none make a token that nobody can show. */
static void read_token(const struct wpk_rows *rows, struct wpk_history_token *out)
{
    const char *roles, *hash;
    memset(out, 0, sizeof *out);
    wpk_rows_get(rows, "ttsstuuu", out->token.id, sizeof out->token.id, out->token.owner,
                 sizeof out->token.owner, &roles, &hash, out->note, sizeof out->note,
                 &out->created_at, &out->token.expires_at, &out->revoked_at);
    if (wpk_roles_parse(roles, &out->token.roles, NULL) != WPK_OK ||
        !wpk_crypto_hex_valid(hash, WPK_SHA256_SIZE) ||
        !wpk_crypto_unhex(hash, WPK_SHA256_SIZE, out->token.hash)) {
        out->token.roles = 0;
    }
    out->token.revoked = out->revoked_at != 0;
}

bool wpk_history_read_token(struct wpk_store *store, const char *id, struct wpk_history_token *out)
{
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT " TOKEN_COLUMNS " FROM token WHERE id = ?", "t", id);
    bool found = wpk_rows_next(rows);
    if (found) {
        read_token(rows, out);
    }
    wpk_rows_close(rows);
    return found;
}

void wpk_history_list_tokens(struct wpk_store *store, const char *after, int max,
                             wpk_history_token_fn fn, void *user)
{
    struct wpk_history_token token;
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT " TOKEN_COLUMNS " FROM token WHERE id > ? ORDER BY id LIMIT ?", "ti", after,
        (int64_t)max);
    while (wpk_rows_next(rows)) {
        read_token(rows, &token);
        fn(user, &token);
    }
}

uint32_t wpk_history_good_tokens(struct wpk_store *store)
{
    uint32_t count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT count(*) FROM token WHERE revoked_at = 0 AND (expires_at = 0 OR expires_at > ?)",
        "i", now_of(store));
    wpk_rows_take(rows, "w", &count);
    return count;
}

void wpk_history_known_tokens(struct wpk_store *store, int max, wpk_history_token_fn fn, void *user)
{
    struct wpk_history_token token;
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT " TOKEN_COLUMNS " FROM token ORDER BY revoked_at <> 0 OR"
                        " (expires_at <> 0 AND expires_at <= ?), created_at DESC LIMIT ?",
                        "ii", now_of(store), (int64_t)max);
    while (wpk_rows_next(rows)) {
        read_token(rows, &token);
        fn(user, &token);
    }
}

/* ---- the audit log */

void wpk_history_put_audit(struct wpk_store *store, const struct wpk_audit *audit, wpk_err outcome)
{
    wpk_store_run(store,
                  "INSERT INTO audit (at, actor, token, peer, action, subject, outcome, detail,"
                  " epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "ittttttti", now_of(store), audit->actor, audit->token, audit->peer,
                  audit->action, audit->subject, outcome == WPK_OK ? "ok" : wpk_err_name(outcome),
                  audit->detail, wpk_store_epoch(store));
    /* Anybody can be refused, as often as he asks: of that the last lines alone stay. */
    wpk_store_run(store, "DELETE FROM audit WHERE id = ? AND outcome <> 'ok'", "i",
                  wpk_store_inserted(store) - WPK_AUDIT_REFUSALS_MAX);
}

static void write_entry(struct wpk_json_writer *w, const struct wpk_rows *rows)
{
    static const char *const names[] = {"actor",   "token",   "peer",  "action",
                                        "subject", "outcome", "detail"};
    char text[24];
    wpk_json_begin_object(w, NULL);
    snprintf(text, sizeof text, "%lld", (long long)wpk_rows_int(rows, 0));
    wpk_json_put_text(w, "id", text);
    wpk_json_put_wall(w, "at", (uint64_t)wpk_rows_int(rows, 1));
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        wpk_json_put_text(w, names[i], wpk_rows_text(rows, i + 2));
    }
    wpk_json_end(w);
}

uint64_t wpk_history_list_audit(struct wpk_store *store, uint64_t before, const char *actor,
                                const char *action, int page_size, struct wpk_json_writer *w)
{
    uint64_t last = 0;
    int count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id, at, actor, token, peer, action, subject, outcome, detail FROM audit"
        " WHERE id < ? AND (? = '' OR actor = ?) AND (? = '' OR action = ?)"
        " ORDER BY id DESC LIMIT ?",
        "itttti", (int64_t)before, actor, actor, action, action, (int64_t)page_size + 1);
    while (wpk_rows_next(rows)) {
        if (count++ == page_size) {
            wpk_rows_close(rows);
            return last;
        }
        last = (uint64_t)wpk_rows_int(rows, 0);
        write_entry(w, rows);
    }
    return 0;
}

/* ---- requests that may be repeated */

void wpk_history_put_idempotency(struct wpk_store *store, const struct wpk_idempotency *entry)
{
    int64_t now = now_of(store);
    wpk_store_run(store, "DELETE FROM idempotency WHERE created_at < ?", "i",
                  now - (int64_t)WPK_IDEMPOTENCY_NS);
    wpk_store_run(store,
                  "INSERT OR REPLACE INTO idempotency (owner, key, route, body_sha256, status,"
                  " subject, created_at, epoch) VALUES (?, ?, ?, ?, 201, ?, ?, ?)",
                  "tttttii", entry->owner, entry->key, entry->route, entry->body_sha256,
                  entry->subject, now, wpk_store_epoch(store));
}

bool wpk_history_find_idempotency(struct wpk_store *store, struct wpk_idempotency *entry)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT body_sha256, subject FROM idempotency"
                        " WHERE owner = ? AND key = ? AND route = ? AND created_at >= ?",
                        "ttti", entry->owner, entry->key, entry->route,
                        now_of(store) - (int64_t)WPK_IDEMPOTENCY_NS);
    return wpk_rows_take(rows, "tt", entry->body_sha256, sizeof entry->body_sha256, entry->subject,
                         sizeof entry->subject);
}
