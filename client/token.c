/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl token: create, list and revoke tokens. A secret is printed once, when it is made. */
#include "client/show.h"
#include "common/crypto.h"
#include "common/json.h"

#include <stdio.h>

#define ID_SIZE 8 /* bytes */
#define DAY_S (24 * 3600)

static const struct wpk_show tokens_show = {
    .path = "/v1/tokens",
    .key = "tokens",
    .column_count = 7,
    .headings = {"token", "owner", "roles", "created", "expires", "revoked", "note"},
    .rank = {[3] = 4, [4] = 3, [5] = 1, [6] = 2},
    .members = {"id", "owner", "roles", "created", "expires", "revoked", "note"},
};

struct token {
    struct wpk_show_options show;
    struct wpk_option_list roles;
    const char *owner;
    const char *note;
    int64_t days; /* 0: for ever */
};

/* Roles as wpkd names them; checked here, so that the message names the option. */
static wpk_err check_roles(const struct wpk_option_list *roles, struct wpk_diag *diag)
{
    static const char *const names[] = {"read", "submit", "build", "measure", "admin", NULL};

    for (int i = 0; i < roles->count; i++) {
        struct wpk_diag unknown = {0};
        if (wpk_show_verb(roles->items[i], names, &unknown) < 0) {
            return wpk_fail(diag, WPK_EINVAL, "--role: %s", unknown.text);
        }
    }
    return WPK_OK;
}

static wpk_err create(const struct wpk_command_context *context, struct token *token,
                      struct wpk_diag *diag)
{
    static const char *const members[] = {"secret", NULL};
    struct wpk_buf body = {0};

    if (token->owner == NULL || token->roles.count == 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "token create takes --owner NAME and --role NAME, which may be repeated");
    }
    wpk_err err = check_roles(&token->roles, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "owner", token->owner);
    wpk_json_begin_array(w, "roles");
    for (int i = 0; i < token->roles.count; i++) {
        wpk_json_put_text(w, NULL, token->roles.items[i]);
    }
    wpk_json_end(w);
    if (token->days > 0) {
        wpk_json_put_int(w, "seconds", token->days * DAY_S);
    }
    if (token->note != NULL) {
        wpk_json_put_text(w, "note", token->note);
    }
    err = wpk_json_finish(w, false, &body);
    if (err == WPK_OK) {
        err = wpk_show_change(context, &token->show, "/v1/tokens", wpk_buf_text(&body), members,
                              diag);
    }
    wpk_buf_fini(&body);
    return err;
}

static wpk_err revoke(const struct wpk_command_context *context, struct token *token,
                      const char *id, struct wpk_diag *diag)
{
    static const char *const members[] = {"id", "owner", "revoked", NULL};
    char path[64];

    if (!wpk_crypto_hex_valid(id, ID_SIZE)) {
        return wpk_fail(
            diag, WPK_EINVAL,
            "'%s' is not the id of a token: %d hexadecimal digits; wpkctl token list has them", id,
            2 * ID_SIZE);
    }
    snprintf(path, sizeof(path), "/v1/tokens/%s", id);
    return wpk_show_change(context, &token->show, path, NULL, members, diag);
}

static wpk_err run(const struct wpk_command_context *context, struct token *token,
                   const struct wpk_args *args, struct wpk_diag *diag)
{
    static const char *const verbs[] = {"create", "list", "revoke", NULL};
    int verb = wpk_show_verb(args->operands[0], verbs, diag);

    if (verb < 0) {
        return WPK_EINVAL;
    }
    if ((verb == 2) != (args->operand_count == 2)) {
        return wpk_fail(diag, WPK_EINVAL, "token %s takes %s", verbs[verb],
                        verb == 2 ? "the id of a token; wpkctl token list has them"
                                  : "nothing more");
    }
    if (verb == 1) {
        token->show.session.need = WPK_SESSION_HISTORY;
    }
    return verb == 0   ? create(context, token, diag)
           : verb == 1 ? wpk_show_list(context, &token->show, &tokens_show, "", diag)
                       : revoke(context, token, args->operands[1], diag);
}

enum wpk_exit wpk_command_token(struct wpk_invocation *call)
{
    struct token token = {
        .show = {.max = WPK_SHOW_MAX_DEFAULT, .session = {.need = WPK_SESSION_CHANGE}}};
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(token.show),
        WPK_ARGS_TEXT("owner", "NAME", "create: whose jobs it submits", &token.owner),
        WPK_ARGS_LIST("role", "NAME",
                      "create: read, submit, build, measure or admin; may be repeated",
                      &token.roles),
        WPK_ARGS_INT("days", "N", "create: how long it is valid; default for ever", &token.days, 1,
                     3660),
        WPK_ARGS_TEXT("note", "TEXT", "create: what it is for", &token.note),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 2)) {
        return call->status;
    }
    wpk_err err = run(call->context, &token, &call->args, &call->diag);
    return wpk_command_end(call, err);
}
