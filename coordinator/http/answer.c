/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/answer.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

#define RETRY_S 1 /* to come again after what is not now; the store is probed as often */

void wpk_api_answer_fini(struct wpk_api_answer *answer)
{
    wpk_buf_fini(&answer->body);
    if (answer->release != NULL) {
        answer->release(answer->owner);
    }
    memset(answer, 0, sizeof *answer);
}

void wpk_api_response(const struct wpk_api_answer *answer, struct wpk_http_response *out)
{
    bool borrowed = answer->release != NULL;
    *out = (struct wpk_http_response){
        .status = answer->status,
        .content_type = answer->content_type,
        .location = answer->location[0] != '\0' ? answer->location : NULL,
        .allow = answer->allow[0] != '\0' ? answer->allow : NULL,
        .etag = answer->etag[0] != '\0' ? answer->etag : NULL,
        .retry_after_s = answer->retry_after_s,
        .body = borrowed ? answer->borrowed : wpk_buf_text(&answer->body),
        .body_size = borrowed ? answer->borrowed_size : answer->body.size,
    };
}

void wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag)
{
    char type[64];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    snprintf(type, sizeof type, "urn:woodpecker:%s", wpk_err_name(err));
    wpk_json_put_text(w, "type", type);
    wpk_json_put_text(w, "title", wpk_err_text(err));
    wpk_json_put_int(w, "status", status);
    wpk_json_put_text(w, "detail", diag != NULL ? diag->text : wpk_err_text(err));
    if (diag != NULL && diag->field[0] != '\0') {
        wpk_json_put_text(w, "field", diag->field);
    }
    if (diag != NULL && diag->line > 0) {
        wpk_json_put_int(w, "line", diag->line);
        wpk_json_put_int(w, "column", diag->column);
    }
    if (answer->release != NULL) {
        answer->release(answer->owner);
        answer->release = NULL;
    }
    answer->how = WPK_API_NOW;
    answer->status = status;
    answer->content_type = "application/problem+json";
    answer->location[0] = '\0';
    answer->etag[0] = '\0';
    answer->retry_after_s = status == 503 || status == 507 ? RETRY_S : 0;
    wpk_buf_reset(&answer->body);
    wpk_err printed = wpk_json_print(w, false, &answer->body);
    WPK_ASSERT(printed == WPK_OK || printed == WPK_ENOMEM);
    wpk_json_writer_free(w);
}
