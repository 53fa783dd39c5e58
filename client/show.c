/* SPDX-License-Identifier: Apache-2.0 */
#include "client/show.h"

#include "common/json.h"
#include "common/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)4096) /* of a cell */

void wpk_show_add(struct wpk_buf *query, const char *name, const char *value)
{
    if (value != NULL) {
        wpk_buf_printf(query, "%s%s=", query->size > 0 ? "&" : "", name);
        wpk_http_escape(value, query);
    }
}

/* ---- members as text */

static void put_item(struct wpk_json_reader *r, const char *key, struct wpk_buf *out)
{
    switch (wpk_json_kind_of(r, key)) {
    case WPK_JSON_STRING:
        wpk_buf_append_text(out, wpk_json_get_text(r, key, TEXT_MAX));
        break;
    case WPK_JSON_NUMBER:
        wpk_buf_printf(out, "%" PRId64,
                       wpk_json_get_int(r, key, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX));
        break;
    case WPK_JSON_BOOL:
        wpk_buf_append_text(out, wpk_json_get_bool(r, key) ? "yes" : "no");
        break;
    default:
        break;
    }
}

static const char *member_text(struct wpk_json_reader *r, const char *key, struct wpk_arena *arena)
{
    struct wpk_buf text = {.size_max = TEXT_MAX};
    bool first = true;

    if (wpk_json_kind_of(r, key) == WPK_JSON_ARRAY) {
        wpk_json_enter_array(r, key);
        while (wpk_json_next(r)) {
            wpk_buf_append_text(&text, first ? "" : ",");
            put_item(r, NULL, &text);
            first = false;
        }
        wpk_json_leave(r);
    } else {
        put_item(r, key, &text);
    }
    const char *copy = wpk_arena_copy_text(arena, text.size > 0 ? text.data : "-");
    wpk_buf_fini(&text);
    return copy;
}

/* Add a row for an item of the list. */
static void add_item(const struct wpk_show *show, struct wpk_json_reader *r,
                     struct wpk_arena *arena, struct wpk_text_table *table)
{
    const char *cells[WPK_TEXT_TABLE_COLUMNS_MAX];

    if (show->add != NULL) {
        show->add(show->user, r, arena, table);
        return;
    }
    for (int c = 0; c < show->column_count; c++) {
        cells[c] = member_text(r, show->members[c], arena);
    }
    wpk_text_table_add(table, cells);
}

static wpk_err add_items(const struct wpk_show *show, const struct wpk_buf *body,
                         struct wpk_arena *arena, struct wpk_text_table *table,
                         struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, WPK_HTTP_REPLY_MAX, &r, diag);

    if (err != WPK_OK) {
        return err;
    }
    wpk_json_enter_array(r, show->key);
    while (wpk_json_next(r)) {
        add_item(show, r, arena, table);
    }
    wpk_json_leave(r);
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* ---- lists */

static wpk_err print_table(struct wpk_session *session, const struct wpk_show *show,
                           const struct wpk_output *output, const struct wpk_buf *body,
                           struct wpk_diag *diag)
{
    static struct wpk_text_table table; /* large, and there is one per process */
    struct wpk_arena arena = {0};
    struct wpk_api_list list;

    table = (struct wpk_text_table){.arena = &arena, .column_count = show->column_count};
    memcpy(table.right, show->right, sizeof(table.right));
    memcpy(table.rank, show->rank, sizeof(table.rank));
    memcpy(table.prose, show->prose, sizeof(table.prose));
    wpk_text_table_add(&table, show->headings);
    wpk_err err = show->prepare != NULL ? show->prepare(session, &arena, show->user, diag) : WPK_OK;
    if (err == WPK_OK) {
        err = show->fill != NULL ? wpk_api_decode_list(body, &arena, &list, diag)
                                 : add_items(show, body, &arena, &table, diag);
    }
    if (err == WPK_OK && show->fill != NULL) {
        show->fill(show->user, &list, &table);
    }
    err = err == WPK_OK ? wpk_output_puts_table(output, &table) : err;
    wpk_arena_fini(&arena);
    return err;
}

wpk_err wpk_show_list(const struct wpk_command_context *context, struct wpk_show_options *options,
                      const struct wpk_show *show, const char *query, struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};

    wpk_err err = wpk_output_check(&options->output, diag);
    err = err == WPK_OK ? wpk_session_open(context, &options->session, &session, diag) : err;
    if (err == WPK_OK) {
        err =
            wpk_list_fetch(&session, show->path, query, show->key, (int)options->max, &body, diag);
    }
    if (err == WPK_OK && options->output.json) {
        puts(wpk_buf_text(&body));
    } else if (err == WPK_OK) {
        err = print_table(&session, show, &options->output, &body, diag);
    }
    wpk_buf_fini(&body);
    wpk_session_close(&session);
    return err;
}

/* ---- changes */

static wpk_err print_line(const struct wpk_buf *body, const char *const *members,
                          struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    struct wpk_arena arena = {0};
    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, WPK_HTTP_REPLY_MAX, &r, diag);

    for (int m = 0; err == WPK_OK && members[m] != NULL; m++) {
        const char *name = strrchr(members[m], ' ');
        const char *text = member_text(r, name != NULL ? name + 1 : members[m], &arena);
        int label = name != NULL ? (int)(name - members[m]) + 1 : 0;
        if (text != NULL && (label == 0 || strcmp(text, "-") != 0)) {
            printf("%s%.*s%s", m > 0 ? "  " : "", label, members[m], text);
        }
    }
    if (err == WPK_OK) {
        putchar('\n');
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    wpk_arena_fini(&arena);
    return err;
}

wpk_err wpk_show_change(const struct wpk_command_context *context, struct wpk_show_options *options,
                        const char *path, const char *body, const char *const *members,
                        struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_http_reply reply = {0};
    const struct wpk_http_client_request request = {
        .path = path, .body = body, .method = body == NULL ? "DELETE" : NULL};

    wpk_err err = wpk_output_check(&options->output, diag);
    err = err == WPK_OK ? wpk_session_open(context, &options->session, &session, diag) : err;
    err = err == WPK_OK ? wpk_http_send(session.http, &request, &reply, diag) : err;
    if (err == WPK_OK) {
        err = wpk_api_check(reply.status, &reply.body, diag);
        /* A place in a text that this program wrote means nothing to its user. */
        diag->line = 0;
        diag->column = 0;
    }
    if (err == WPK_OK && options->output.json) {
        puts(wpk_buf_text(&reply.body));
    } else if (err == WPK_OK) {
        err = print_line(&reply.body, members, diag);
    }
    wpk_http_reply_fini(&reply);
    wpk_session_close(&session);
    return err;
}

wpk_err wpk_show_order(const struct wpk_command_context *context, struct wpk_show_options *options,
                       const char *path, const char *name, const char *const *members,
                       struct wpk_diag *diag)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf body = {0};

    if (name != NULL) {
        wpk_json_put_text(w, "name", name);
    }
    if (options->reason != NULL) {
        wpk_json_put_text(w, "reason", options->reason);
    }
    wpk_err err = wpk_json_finish(w, false, &body);
    if (err == WPK_OK) {
        err = wpk_show_change(context, options, path, wpk_buf_text(&body), members, diag);
    }
    wpk_buf_fini(&body);
    return err;
}

int wpk_show_verb(const char *verb, const char *const *verbs, struct wpk_diag *diag)
{
    char list[WPK_DIAG_TEXT_MAX / 2] = "";
    struct wpk_suggest suggest = {.word = verb};

    for (int i = 0; verbs[i] != NULL; i++) {
        if (strcmp(verbs[i], verb) == 0) {
            return i;
        }
        wpk_suggest_offer(&suggest, verbs[i]);
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", verbs[i]);
    }
    wpk_diag_set(diag, "'%s' is none of: %s%s", verb, list, wpk_suggest_text(&suggest));
    return -1;
}

double wpk_show_number(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_NUMBER ? wpk_json_get_real(r, key, -1e300, 1e300)
                                                       : 0;
}
