/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl jobs, workers and kernels: the lists, as tables. */
#include "client/command.h"
#include "client/format.h"
#include "client/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHORT_HASH 12 /* digits that tell kernels apart for a reader */

/* One list: where it is, and how a table shows it. */
struct list {
    const char *path;
    const char *key;
    int column_count;
    const char *headings[WPK_TABLE_COLUMNS_MAX];
    bool right[WPK_TABLE_COLUMNS_MAX];
    wpk_err (*fill)(const struct wpk_buf *body, struct wpk_arena *arena, struct wpk_table *table,
                    struct wpk_diag *diag);
};

static wpk_err fill_jobs(const struct wpk_buf *body, struct wpk_arena *arena,
                         struct wpk_table *table, struct wpk_diag *diag)
{
    struct wpk_api_job *jobs;
    int count;

    wpk_err err = wpk_api_decode_jobs(body, arena, &jobs, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        const struct wpk_api_job *job = &jobs[i];
        int64_t tried = 0;
        int64_t wanted = 0;
        char progress[64];
        char ops[16];
        for (int k = 0; k < job->op_count; k++) {
            tried += job->ops[k].measured + job->ops[k].failed;
            wanted += job->ops[k].wanted;
        }
        snprintf(progress, sizeof(progress), "%" PRId64 "/%" PRId64, tried, wanted);
        snprintf(ops, sizeof(ops), "%d", job->op_count);
        wpk_table_add(table, (const char *const[]){job->id, job->name, job->owner, job->state, ops,
                                                   progress, job->created, job->reason});
    }
    return err;
}

static wpk_err fill_workers(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_table *table, struct wpk_diag *diag)
{
    struct wpk_api_worker *workers;
    int count;

    wpk_err err = wpk_api_decode_workers(body, arena, &workers, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        char running[24];
        char heard[WPK_FORMAT_SIZE];
        snprintf(running, sizeof(running), "%" PRId64, workers[i].running);
        wpk_format_seconds(workers[i].heard_seconds_ago, heard);
        wpk_table_add(table,
                      (const char *const[]){workers[i].name, workers[i].state, workers[i].device,
                                            workers[i].providers, running, heard});
    }
    return err;
}

static wpk_err fill_kernels(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_table *table, struct wpk_diag *diag)
{
    struct wpk_api_kernel *kernels;
    int count;

    wpk_err err = wpk_api_decode_kernels(body, arena, &kernels, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        const struct wpk_api_kernel *kernel = &kernels[i];
        char fingerprint[SHORT_HASH + 1];
        char time[WPK_FORMAT_SIZE];
        char threads[16];
        char speedup[24] = "-";
        snprintf(fingerprint, sizeof(fingerprint), "%s", kernel->fingerprint);
        wpk_format_ns(kernel->served.time.median_ns, time);
        snprintf(threads, sizeof(threads), "%d", kernel->threads);
        if (kernel->speedup > 0) {
            snprintf(speedup, sizeof(speedup), "%.2fx", kernel->speedup);
        }
        wpk_table_add(table, (const char *const[]){kernel->id, fingerprint, kernel->served.provider,
                                                   kernel->served.algorithm, time, speedup,
                                                   kernel->layouts, threads, kernel->device,
                                                   kernel->created});
    }
    return err;
}

static const struct list jobs_list = {
    .path = "/v1/jobs",
    .key = "jobs",
    .column_count = 8,
    .headings = {"job", "name", "owner", "state", "ops", "tried", "created", "reason"},
    .right = {[4] = true, [5] = true},
    .fill = fill_jobs,
};

static const struct list workers_list = {
    .path = "/v1/workers",
    .key = "workers",
    .column_count = 6,
    .headings = {"worker", "state", "device", "providers", "running", "heard ago"},
    .right = {[4] = true, [5] = true},
    .fill = fill_workers,
};

static const struct list kernels_list = {
    .path = "/v1/kernels",
    .key = "kernels",
    .column_count = 10,
    .headings = {"kernel", "fingerprint", "by", "algorithm", "median", "speedup", "layouts",
                 "threads", "device", "created"},
    .right = {[4] = true, [5] = true, [7] = true},
    .fill = fill_kernels,
};

static wpk_err print_table(const struct list *list, const struct wpk_buf *body,
                           struct wpk_diag *diag)
{
    struct wpk_arena arena = {0};
    struct wpk_buf out = {0};
    struct wpk_table *table = WPK_ARENA_NEW(&arena, struct wpk_table, 1);
    wpk_err err = WPK_ENOMEM;

    if (table != NULL) {
        *table = (struct wpk_table){.arena = &arena, .column_count = list->column_count};
        memcpy(table->right, list->right, sizeof(table->right));
        wpk_table_add(table, list->headings);
        err = list->fill(body, &arena, table, diag);
        wpk_table_print(table, &out);
        if (err == WPK_OK) {
            fputs(wpk_buf_text(&out), stdout);
        }
    }
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
    return err;
}

static enum wpk_exit list_main(const struct wpk_command *command,
                               const struct wpk_command_context *context, int argc, char **argv,
                               const struct list *list, enum wpk_session_need need)
{
    struct wpk_session_options session_options = {.need = need};
    bool json = false;
    int64_t max = 1000;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        {"max", 0, "N", "at most so many, the newest; default 1000", WPK_OPTION_INT, &max, 1,
         WPK_API_LIST_MAX},
        {"json", 0, NULL, "the list as JSON", WPK_OPTION_FLAG, &json, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_session session = {0};
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;

    if (!wpk_command_begin(command, options, argc, argv, 0, 0, &args, &status)) {
        return status;
    }
    wpk_err err = wpk_session_open(context, &session_options, &session, &diag);
    if (err == WPK_OK) {
        err = wpk_list_fetch(&session, list->path, "", list->key, (int)max, &body, &diag);
    }
    if (err == WPK_OK && json) {
        puts(wpk_buf_text(&body));
    } else if (err == WPK_OK) {
        err = print_table(list, &body, &diag);
    }
    if (err != WPK_OK) {
        status = wpk_command_fail(err, &diag);
    }
    wpk_buf_fini(&body);
    wpk_session_close(&session);
    return status;
}

static enum wpk_exit jobs_main(const struct wpk_command *command,
                               const struct wpk_command_context *context, int argc, char **argv)
{
    return list_main(command, context, argc, argv, &jobs_list, WPK_SESSION_HISTORY);
}

static enum wpk_exit workers_main(const struct wpk_command *command,
                                  const struct wpk_command_context *context, int argc, char **argv)
{
    return list_main(command, context, argc, argv, &workers_list, WPK_SESSION_RUNNING);
}

static enum wpk_exit kernels_main(const struct wpk_command *command,
                                  const struct wpk_command_context *context, int argc, char **argv)
{
    return list_main(command, context, argc, argv, &kernels_list, WPK_SESSION_HISTORY);
}

const struct wpk_command wpk_command_jobs = {
    .name = "jobs",
    .operands = "",
    .summary = "every job, newest first",
    .run = jobs_main,
};

const struct wpk_command wpk_command_workers = {
    .name = "workers",
    .operands = "",
    .summary = "the workers of a running wpkd",
    .run = workers_main,
};

const struct wpk_command wpk_command_kernels = {
    .name = "kernels",
    .operands = "",
    .summary = "every kernel that is served",
    .run = kernels_main,
};
