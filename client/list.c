/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_SIZE 256

/* Append the items of one page; *token is the next page's, "" after the last. */
static wpk_err take_page(const struct wpk_buf *body, const char *key, int max, int *count,
                         struct wpk_buf *out, char token[TOKEN_SIZE], struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;
    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, WPK_HTTP_REPLY_MAX, &reader, diag);

    if (err != WPK_OK) {
        return err;
    }
    token[0] = '\0';
    if (wpk_json_has(reader, "next_page_token")) {
        wpk_json_get_copy(reader, "next_page_token", token, TOKEN_SIZE);
    }
    wpk_json_enter_array(reader, key);
    while (*count < max && wpk_json_next(reader)) {
        wpk_buf_append_text(out, *count > 0 ? "," : "");
        wpk_json_get_raw(reader, NULL, out);
        ++*count;
    }
    wpk_json_leave(reader);
    err = wpk_json_status(reader);
    wpk_json_close(reader);
    return err;
}

wpk_err wpk_list_fetch(struct wpk_session *session, const char *path, const char *query,
                       const char *key, int max, struct wpk_buf *out, struct wpk_diag *diag)
{
    char token[TOKEN_SIZE] = "";
    int count = 0;
    int page = 0;
    wpk_err err = WPK_OK;

    WPK_ASSERT(max <= WPK_API_LIST_MAX);
    wpk_buf_printf(out, "{\"%s\":[", key);
    do {
        struct wpk_buf request = {0};
        struct wpk_http_reply reply = {0};
        wpk_buf_printf(&request, "%s%s%s", path, query[0] != '\0' ? "?" : "", query);
        if (token[0] != '\0') {
            wpk_buf_printf(&request, "%spage_token=", query[0] != '\0' ? "&" : "?");
            wpk_http_escape(token, &request);
        }
        err = wpk_buf_status(&request);
        err = err == WPK_OK ? wpk_session_ask(session, wpk_buf_text(&request), NULL, &reply, diag)
                            : err;
        err = err == WPK_OK ? take_page(&reply.body, key, max, &count, out, token, diag) : err;
        wpk_http_reply_fini(&reply);
        wpk_buf_fini(&request);
        /* Every page holds an item, so a server that says otherwise is not asked for ever. */
    } while (err == WPK_OK && token[0] != '\0' && count < max && ++page <= max);
    wpk_buf_append_text(out, "]}");
    return err != WPK_OK ? err : wpk_buf_status(out);
}

wpk_err wpk_list_read(struct wpk_session *session, const char *key, const char *query, int max,
                      struct wpk_arena *arena, struct wpk_api_list *out, struct wpk_diag *diag)
{
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    char path[32];

    *out = (struct wpk_api_list){0};
    snprintf(path, sizeof(path), "/v1/%s", key);
    wpk_err err = wpk_list_fetch(session, path, query, key, max, &body, diag);
    err = err == WPK_OK ? wpk_api_decode_list(&body, arena, out, diag) : err;
    wpk_buf_fini(&body);
    return err;
}

bool wpk_list_is_ready(const struct wpk_api_worker *worker, const char *kind)
{
    size_t length = strlen(kind);

    return strcmp(worker->state, "ready") == 0 && strncmp(worker->device, kind, length) == 0 &&
           worker->device[length] == '/';
}
