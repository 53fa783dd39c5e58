/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_call.h"
#include "coordinator/store/history.h"
#include "coordinator/store/history_job.h"
#include "schema/job.h"

#include <stdio.h>
#include <string.h>

static bool find_op(struct wpk_call *call, const char *const *names, uint32_t count, int *out)
{
    const char *op = wpk_http_query(call->request, "op");
    *out = -1;
    for (uint32_t i = 0; op != NULL && i < count; i++) {
        if (strcmp(names[i], op) == 0) {
            *out = (int)i;
        }
    }
    if (op != NULL && *out < 0) {
        wpk_call_problem(call, 422, WPK_ENOENT, "op",
                         "the job has no such operator; its ops have their names");
        return false;
    }
    return true;
}

/* "position.index", as put_place writes it. */
static bool get_place(struct wpk_call *call, struct wpk_history_place *place)
{
    const char *text = wpk_http_query(call->request, "page_token");
    *place = (struct wpk_history_place){.index = -1};
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    unsigned position;
    long long index;
    char rest;
    if (sscanf(text, "%u.%lld%c", &position, &index, &rest) != 2 || index < 0) {
        wpk_call_problem(call, 422, WPK_EINVAL, "page_token",
                         "not a token that a page gave out; begin without one");
        return false;
    }
    *place = (struct wpk_history_place){.position = position, .index = index};
    return true;
}

void wpk_api_list_trials(struct wpk_call *call)
{
    const char *names[WPK_JOB_OPS_MAX];
    uint32_t count = 0;
    uint64_t number = 0;
    int page_size;
    int op;
    struct wpk_history_place place;
    struct wpk_arena arena = {0};
    wpk_err err =
        wpk_history_op_names(call->api->store, call->name, &arena, names, &count, &number);
    if (err != WPK_OK) {
        wpk_call_problem(call, err == WPK_ENOENT ? 404 : wpk_api_status(err), err, "",
                         "no such job; the list of jobs has their ids");
    } else if (wpk_call_page_size(call, &page_size) && find_op(call, names, count, &op) &&
               get_place(call, &place)) {
        char token[48] = "";
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_json_begin_array(w, "trials");
        if (wpk_history_list_trials(call->api->store, number, op, names, count, page_size, &place,
                                    w)) {
            snprintf(token, sizeof token, "%u.%lld", place.position, (long long)place.index);
        }
        wpk_json_end(w);
        wpk_json_put_text(w, "next_page_token", token);
        wpk_call_json(call, w);
    }
    wpk_arena_fini(&arena);
}
