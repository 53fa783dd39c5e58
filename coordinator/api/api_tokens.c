/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_change.h"
#include "coordinator/store/history_admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_ID_BYTES 8
#define TOKEN_SECONDS_MAX (INT64_C(10) * 366 * 24 * 3600)

/* ---- the table of auth.h */

struct table {
    struct wpk_auth_token *tokens; /* owned; [count] */
    uint32_t count;
    uint32_t capacity;
};

static void add(void *user, const struct wpk_history_token *token)
{
    struct table *table = user;
    table->tokens = wpk_grow(table->tokens, table->count, &table->capacity, sizeof *table->tokens);
    table->tokens[table->count++] = token->token;
}

static void read_table(struct wpk_store *store, struct table *table)
{
    wpk_history_known_tokens(store, WPK_AUTH_TOKENS_MAX, add, table);
}

wpk_err wpk_api_tokens_load(struct wpk_store *store, struct wpk_auth *auth, struct wpk_diag *diag)
{
    struct table table = {0};
    read_table(store, &table);
    wpk_err err = wpk_store_take_status(store, diag);
    err = err == WPK_OK ? wpk_auth_set(auth, table.tokens, table.count) : err;
    free(table.tokens);
    return err;
}

/* ---- as JSON */

static void put_token(struct wpk_json_writer *w, const struct wpk_history_token *token)
{
#define PUT_ROLE(name, bit, text)                                                                  \
    if ((token->token.roles & (bit)) != 0) {                                                       \
        wpk_json_put_text(w, NULL, text);                                                          \
    }
    wpk_json_put_text(w, "id", token->token.id);
    wpk_json_put_text(w, "owner", token->token.owner);
    wpk_json_begin_array(w, "roles");
    WPK_ROLE_LIST(PUT_ROLE)
    wpk_json_end(w);
    wpk_json_put_text(w, "note", token->note);
    wpk_json_put_wall(w, "created", token->created_at);
    wpk_json_put_wall(w, "expires", token->token.expires_at);
    wpk_json_put_wall(w, "revoked", token->revoked_at);
#undef PUT_ROLE
}

struct list {
    struct wpk_json_writer *w;
    int count;
    int page_size;
    char last[WPK_TOKEN_ID_SIZE];
};

static void list_token(void *user, const struct wpk_history_token *token)
{
    struct list *list = user;
    if (list->count++ < list->page_size) {
        wpk_json_begin_object(list->w, NULL);
        put_token(list->w, token);
        wpk_json_end(list->w);
        memcpy(list->last, token->token.id, sizeof list->last);
    }
}

void wpk_api_list_tokens(struct wpk_call *call)
{
    struct list list = {.w = NULL};
    const char *after = wpk_call_get(call, "page_token");
    if (!wpk_call_page_size(call, &list.page_size)) {
        return;
    }
    if (after[0] != '\0' && !wpk_crypto_hex_valid(after, TOKEN_ID_BYTES)) {
        wpk_call_problem(call, 422, WPK_EINVAL, "page_token",
                         "not a token that a page gave out; begin without one");
        return;
    }
    list.w = wpk_json_writer_new_object();
    wpk_json_begin_array(list.w, "tokens");
    wpk_history_list_tokens(call->api->store, after, list.page_size + 1, list_token, &list);
    wpk_json_end(list.w);
    wpk_json_put_text(list.w, "next_page_token", list.count > list.page_size ? list.last : "");
    wpk_call_json(call, list.w);
}

/* ---- changes */

struct detail {
    struct wpk_auth *auth;
    struct wpk_history_token token;
    char secret[WPK_TOKEN_TEXT_SIZE]; /* "" for one that is revoked */
    struct table table;
};

static void write_answer(struct wpk_change *change, int status)
{
    struct detail *detail = change->detail;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_token(w, &detail->token);
    if (detail->secret[0] != '\0') {
        wpk_json_put_text(w, "secret", detail->secret);
    }
    change->answer.status = status;
    change->answer.content_type = "application/json";
    change->err = wpk_json_finish(w, false, &change->answer.body);
}

/* The whole table as the batch leaves it: it replaces the one that is checked against. */
static void after(struct wpk_change *change)
{
    struct detail *detail = change->detail;
    if (detail->auth != NULL) {
        wpk_err err = wpk_auth_set(detail->auth, detail->table.tokens, detail->table.count);
        if (err != WPK_OK) {
            change->err = err;
        }
        wpk_executor_recheck_workers(change->executor);
    }
}

static void fini(struct wpk_change *change)
{
    struct detail *detail = change->detail;
    free(detail->table.tokens);
}

static void apply_make(struct wpk_change *change, struct wpk_store *store)
{
    struct detail *detail = change->detail;
    if (wpk_history_good_tokens(store) >= WPK_AUTH_TOKENS_MAX) {
        wpk_diag_set(&change->diag, "%d tokens are good: revoke one first", WPK_AUTH_TOKENS_MAX);
        change->err = WPK_ENOSPC;
        return;
    }
    detail->token.created_at = wpk_store_wall_ns(store);
    if (detail->token.token.expires_at != 0) {
        detail->token.token.expires_at += detail->token.created_at;
    }
    wpk_history_put_token(store, &detail->token);
    write_answer(change, 201);
    read_table(store, &detail->table);
}

static void apply_revoke(struct wpk_change *change, struct wpk_store *store)
{
    struct detail *detail = change->detail;
    wpk_history_revoke_token(store, change->audit.subject);
    if (!wpk_history_read_token(store, change->audit.subject, &detail->token)) {
        wpk_diag_set(&change->diag, "no such token; the list of tokens has their ids");
        change->err = WPK_ENOENT;
        return;
    }
    write_answer(change, 200);
    read_table(store, &detail->table);
}

static void give(struct wpk_call *call, struct wpk_change *change, struct detail *detail,
                 void (*apply)(struct wpk_change *change, struct wpk_store *store))
{
    detail->auth = call->api->auth;
    change->detail = detail;
    change->apply = apply;
    change->after = after;
    change->fini = fini;
    wpk_change_answer(call, change);
}

static void get_token(struct wpk_json_reader *r, void *token)
{
    struct wpk_history_token *out = token;
#define ROLE_NAME(name, bit, text) text,
#define ROLE_BIT(name, bit, text) bit,
    static const char *const roles[] = {WPK_ROLE_LIST(ROLE_NAME)};
    static const unsigned bits[] = {WPK_ROLE_LIST(ROLE_BIT)};
#undef ROLE_NAME
#undef ROLE_BIT
    WPK_JSON_ALLOW(r, "owner", "roles", "seconds", "note");
    wpk_json_get_label(r, "owner", out->token.owner, sizeof out->token.owner);
    if (wpk_json_has(r, "note")) {
        wpk_json_get_label(r, "note", out->note, sizeof out->note);
    }
    if (wpk_json_has(r, "seconds")) {
        int64_t seconds = wpk_json_get_int(r, "seconds", 1, TOKEN_SECONDS_MAX);
        out->token.expires_at = (uint64_t)seconds * WPK_NS_PER_S;
    }
    wpk_json_enter_array(r, "roles");
    while (wpk_json_next(r)) {
        out->token.roles |=
            bits[wpk_json_get_choice(r, NULL, roles, sizeof roles / sizeof roles[0])];
    }
    wpk_json_leave(r);
    if (wpk_json_status(r) == WPK_OK && out->token.owner[0] == '\0') {
        wpk_json_fail(r, "owner", WPK_EINVAL, "an owner has a name");
    }
    if (wpk_json_status(r) == WPK_OK && out->token.roles == 0) {
        wpk_json_fail(r, "roles", WPK_EINVAL, "a token without a role is good for nothing");
    }
}

void wpk_api_post_token(struct wpk_call *call)
{
    struct detail *detail = WPK_DEMAND(calloc(1, sizeof *detail));
    if (!wpk_call_read(call, get_token, &detail->token)) {
        free(detail);
        return;
    }
    uint64_t random;
    wpk_crypto_random(&random, sizeof random);
    snprintf(detail->token.token.id, sizeof detail->token.token.id, "%016llx",
             (unsigned long long)random);
    wpk_crypto_random_token(detail->secret);
    wpk_crypto_sha256(detail->secret, strlen(detail->secret), detail->token.token.hash);
    struct wpk_change *change = wpk_change_new(call, "token.create", detail->token.token.id);
    char roles[WPK_ROLES_TEXT_SIZE];
    wpk_roles_print(detail->token.token.roles, roles);
    snprintf(change->audit.detail, sizeof change->audit.detail, "owner=%s roles=%s",
             detail->token.token.owner, roles);
    give(call, change, detail, apply_make);
}

void wpk_api_delete_token(struct wpk_call *call)
{
    struct detail *detail = WPK_DEMAND(calloc(1, sizeof *detail));
    give(call, wpk_change_new(call, "token.revoke", call->name), detail, apply_revoke);
}

void wpk_api_list_audit(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    if (!wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "entries");
    uint64_t last = wpk_history_list_audit(call->api->store, before, wpk_call_get(call, "actor"),
                                           wpk_call_get(call, "action"), page_size, w);
    wpk_json_end(w);
    wpk_call_put_token(w, last);
    wpk_call_json(call, w);
}
