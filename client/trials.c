/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl trials: list the trials of a job, with the reasons of failures. */
#include "client/show.h"
#include "common/json.h"
#include "schema/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 << 10)

struct filter {
    bool failed; /* only what ended otherwise than ok */
};

static const char *text_of(struct wpk_json_reader *r, const char *key, struct wpk_arena *arena)
{
    const char *copy = NULL;

    if (wpk_json_kind_of(r, key) == WPK_JSON_STRING) {
        copy = wpk_arena_copy_text(arena, wpk_json_get_text(r, key, TEXT_MAX));
    }
    return copy != NULL && copy[0] != '\0' ? copy : "-";
}

/* The log as one line: a table has no room for more. */
static const char *log_of(struct wpk_json_reader *r, struct wpk_arena *arena)
{
    const char *log = text_of(r, "log", arena);
    char *line = wpk_arena_alloc(arena, strlen(log) + 1, 1);

    if (line == NULL) {
        return "?";
    }
    for (size_t i = 0; i <= strlen(log); i++) {
        line[i] = (unsigned char)log[i] < ' ' && log[i] != '\0' ? ' ' : log[i];
    }
    return line;
}

/* Print the error by which accuracy classes are defined; of a wrong result its distance. */
static void error_of(struct wpk_json_reader *r, const char *outcome, char *out, size_t size)
{
    bool wrong = strcmp(outcome, "wrong_result") == 0;

    if (!wrong && wpk_json_has(r, "times_direct") && wpk_show_number(r, "times_direct") >= 0) {
        snprintf(out, size, "%.1e of rms, %.1fx direct", wpk_show_number(r, "of_rms"),
                 wpk_show_number(r, "times_direct"));
    } else if (wpk_show_number(r, "tolerance") > 0) {
        snprintf(out, size, "%.1e, allowed %.1e", wpk_show_number(r, "max_error"),
                 wpk_show_number(r, "tolerance"));
    }
}

static void add_trial(const void *user, struct wpk_json_reader *r, struct wpk_arena *arena,
                      struct wpk_text_table *table)
{
    const struct filter *filter = user;
    char index[24] = "vendor";
    char time[WPK_FORMAT_SIZE] = "-";
    char error[64] = "-";
    const char *outcome = text_of(r, "outcome", arena);
    int64_t number = (int64_t)wpk_show_number(r, "index");
    bool censored =
        wpk_json_kind_of(r, "censored") == WPK_JSON_BOOL && wpk_json_get_bool(r, "censored");

    if (filter->failed && (strcmp(outcome, "ok") == 0 || strcmp(outcome, "pending") == 0)) {
        return;
    }
    if (number >= 0) {
        snprintf(index, sizeof(index), "%" PRId64, number);
    } else if (strcmp(text_of(r, "provider", arena), WPK_PLAIN_PROVIDER) == 0) {
        snprintf(index, sizeof(index), "%s", WPK_PLAIN_PROVIDER);
    }
    if (wpk_json_kind_of(r, "time_ns") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "time_ns");
        wpk_format_ns((uint64_t)wpk_show_number(r, "median"), time);
        wpk_json_leave(r);
    }
    error_of(r, outcome, error, sizeof(error));
    wpk_text_table_add(
        table, (const char *const[]){index, text_of(r, "op", arena), text_of(r, "provider", arena),
                                     outcome, time, censored ? "raced out" : "-", error,
                                     text_of(r, "candidate", arena), log_of(r, arena)});
}

enum wpk_exit wpk_command_trials(struct wpk_invocation *call)
{
    struct wpk_show_options show_options = {.max = WPK_SHOW_MAX_DEFAULT,
                                            .session = {.need = WPK_SESSION_HISTORY}};
    struct filter filter = {false};
    const char *op = NULL;
    const struct wpk_option options[] = {
        WPK_SHOW_OPTION_ROWS(show_options),
        WPK_ARGS_TEXT("op", "NAME", "only of this operator of the job", &op),
        WPK_ARGS_FLAG("failed", "only what failed (in tables)", &filter.failed),
        WPK_ARGS_END,
    };
    char path[64] = "";
    struct wpk_show show = {
        .path = path,
        .key = "trials",
        .column_count = 9,
        .headings = {"ask", "op", "by", "outcome", "median", "raced", "error", "candidate", "log"},
        .right = {[0] = true, [4] = true},
        .prose = {[7] = true, [8] = true},
        .rank = {[1] = 2, [2] = 4, [4] = 1, [5] = 3, [6] = 6, [7] = 5},
        .add = add_trial,
        .user = &filter,
    };
    struct wpk_buf query = {0};
    wpk_err err = WPK_EINVAL;

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    if (wpk_session_is_job_id(call->args.operands[0], &call->diag)) {
        snprintf(path, sizeof(path), "/v1/jobs/%s/trials", call->args.operands[0]);
        wpk_show_add(&query, "op", op);
        err = wpk_show_list(call->context, &show_options, &show, wpk_buf_text(&query), &call->diag);
    }
    wpk_buf_fini(&query);
    return wpk_command_end(call, err);
}
