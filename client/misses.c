/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl misses: what was looked up and is not there; as a job, too. */
#include "client/job_file.h"
#include "client/show.h"
#include "common/format.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

static void add_miss(const void *user WPK_UNUSED, struct wpk_json_reader *r,
                     struct wpk_arena *arena WPK_UNUSED, struct wpk_text_table *table)
{
    char lost[WPK_FORMAT_SIZE], lookups[32], calls[32], threads[16];
    struct wpk_buf op = {0};
    double lost_ns = wpk_show_number(r, "lost_ns");

    wpk_format_ns((uint64_t)lost_ns, lost);
    snprintf(lookups, sizeof(lookups), "%.0f", wpk_show_number(r, "lookups"));
    snprintf(calls, sizeof(calls), "%.0f", wpk_show_number(r, "calls"));
    snprintf(threads, sizeof(threads), "%.0f", wpk_show_number(r, "threads"));
    wpk_json_enter(r, "op");
    if (wpk_json_kind_of(r, "op") == WPK_JSON_STRING) {
        wpk_buf_append_text(&op, wpk_json_get_text(r, "op", WPK_JOB_SIZE_MAX));
    } else {
        wpk_json_get_raw(r, "op", &op);
    }
    wpk_json_leave(r);
    wpk_text_table_add(table, (const char *const[]){lost_ns > 0 ? lost : "-", lookups, calls,
                                                    wpk_json_get_text(r, "match", 64), threads,
                                                    wpk_json_get_text(r, "device", 512),
                                                    wpk_buf_text(&op)});
    wpk_buf_fini(&op);
}

static const struct wpk_show misses_show = {
    .path = "/v1/misses",
    .key = "misses",
    .column_count = 7,
    .headings = {"lost", "lookups", "calls", "match", "threads", "device", "operator"},
    .right = {[0] = true, [1] = true, [2] = true, [4] = true},
    .rank = {[1] = 3, [2] = 4, [3] = 5, [4] = 6, [5] = 2, [6] = 1},
    .add = add_miss,
};

/* The job of the first miss, and of all that are missing on the same device with as many threads.
 * Appends nothing where nothing is missing. */
static wpk_err make_job(const struct wpk_buf *misses, struct wpk_buf *job, struct wpk_diag *diag)
{
    struct wpk_json_reader *r;
    char device[512] = "";
    int64_t threads = 0;
    int count = 0;
    wpk_err err = wpk_json_open(wpk_buf_text(misses), misses->size, WPK_HTTP_REPLY_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_json_enter_array(r, "misses");
    while (wpk_json_next(r) && count < WPK_JOB_OPS_MAX) {
        const char *of = wpk_json_get_text(r, "device", sizeof(device));
        int64_t with = wpk_json_get_int(r, "threads", 1, WPK_JOB_THREADS_MAX);
        struct wpk_buf op = {0};
        if (count > 0 && (strcmp(of, device) != 0 || with != threads)) {
            continue;
        }
        snprintf(device, sizeof(device), "%s", of);
        threads = with;
        wpk_json_get_raw(r, "op", &op);
        if (job->size + op.size + 1024 > WPK_JOB_SIZE_MAX) {
            wpk_buf_fini(&op);
            break; /* the next call takes the rest */
        }
        wpk_buf_printf(job, "%s{\"name\":\"miss%d\",%s", count == 0 ? "{\"ops\":[" : ",", count + 1,
                       op.size > 0 ? wpk_buf_text(&op) + 1 : "}");
        wpk_buf_fini(&op);
        count++;
    }
    wpk_json_leave(r);
    err = wpk_json_status(r);
    wpk_json_close(r);
    if (count > 0) {
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        struct wpk_buf target = {0};
        char kind[16];
        snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(device, "/"), device);
        wpk_json_put_text(w, "kind", kind);
        wpk_json_put_text(w, "device", device);
        wpk_json_put_int(w, "threads", threads);
        wpk_err printed = wpk_json_finish(w, false, &target);
        err = err == WPK_OK ? printed : err;
        wpk_buf_printf(job, "],\"name\":\"misses\",\"target\":%s}", wpk_buf_text(&target));
        wpk_buf_fini(&target);
    }
    return err == WPK_OK ? wpk_buf_status(job) : err;
}

static wpk_err submit(const struct wpk_command_context *context, struct wpk_show_options *show,
                      struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_buf misses = {.size_max = WPK_HTTP_REPLY_MAX}, job = {0};
    show->session.need = WPK_SESSION_RUNNING;
    wpk_err err = wpk_session_open(context, &show->session, &session, diag);
    if (err == WPK_OK) {
        err = wpk_list_fetch(&session, "/v1/misses", "", "misses", (int)show->max, &misses, diag);
    }
    err = err == WPK_OK ? make_job(&misses, &job, diag) : err;
    if (err == WPK_OK && job.size == 0) {
        err = wpk_fail(diag, WPK_ENOENT, "nothing that was looked up is missing");
    }
    if (err == WPK_OK) {
        err = wpk_session_submit_shown(&session, wpk_buf_text(&job), show->output.json, diag);
    }
    wpk_buf_fini(&job);
    wpk_buf_fini(&misses);
    wpk_session_close(&session);
    return err;
}

enum wpk_exit wpk_command_misses(struct wpk_invocation *call)
{
    struct wpk_show_options show = {.max = WPK_SHOW_MAX_DEFAULT,
                                    .session = {.need = WPK_SESSION_HISTORY}};
    bool submits = false;
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show),
        WPK_ARGS_FLAG("submit", "make a job of those of the first one's device, print its id",
                      &submits),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_err err = wpk_output_check(&show.output, &call->diag);
    if (err == WPK_OK) {
        err = submits ? submit(call->context, &show, &call->diag)
                      : wpk_show_list(call->context, &show, &misses_show, "", &call->diag);
    }
    return wpk_command_end(call, err);
}
