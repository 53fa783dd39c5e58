/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trial_list.h"

#include "client/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_trials(const void *a, const void *b)
{
    const struct wpk_api_trial *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static wpk_err read_trials(const struct wpk_buf *body, struct wpk_arena *arena,
                           struct wpk_trial_list *out, struct wpk_diag *diag)
{
    struct wpk_api_list list;
    wpk_err err = wpk_api_decode_list(body, arena, &list, diag);
    out->trial = list.trials;
    out->count = err == WPK_OK ? list.count : 0;
    if (out->count > 0) {
        qsort(out->trial, (size_t)out->count, sizeof(out->trial[0]), compare_trials);
    }
    return err;
}

/* Find the operator's name in the job, or say what the job has. */
static wpk_err choose_op(const struct wpk_api_job *job, const char *op, const char **out,
                         struct wpk_diag *diag)
{
    char names[WPK_DIAG_TEXT_MAX / 2] = "";
    for (int i = 0; i < job->op_count; i++) {
        size_t used = strlen(names);
        if (op == NULL ? job->op_count == 1 : strcmp(job->ops[i].name, op) == 0) {
            *out = job->ops[i].name;
            return WPK_OK;
        }
        snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", job->ops[i].name);
    }
    wpk_diag_set(diag,
                 op == NULL ? "job %s has several operators; --op names one: %s"
                            : "job %s has no such operator, but: %s",
                 job->id, names);
    return op == NULL ? WPK_EINVAL : WPK_ENOENT;
}

static wpk_err find_op(struct wpk_session *session, const char *op, struct wpk_arena *arena,
                       struct wpk_trial_list *out, struct wpk_diag *diag)
{
    struct wpk_api_list list;
    wpk_err err = wpk_list_read(session, "jobs", "", WPK_SHOW_MAX_DEFAULT, arena, &list, diag);
    for (int i = 0; i < list.count; i++) { /* newest first */
        const struct wpk_api_job *job = &list.jobs[i];
        for (int k = 0; k < job->op_count; k++) {
            if (strcmp(job->ops[k].name, op) == 0 || strcmp(job->ops[k].fingerprint, op) == 0) {
                out->job = job->id;
                out->op = job->ops[k].name;
                return WPK_OK;
            }
        }
    }
    if (err == WPK_OK) {
        err = wpk_fail(diag, WPK_ENOENT, "no job has an operator %s; wpkctl jobs lists them", op);
    }
    return err;
}

wpk_err wpk_trial_list_fetch(struct wpk_session *session, const char *job, const char *op,
                             struct wpk_arena *arena, struct wpk_trial_list *out,
                             struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_api_job found = {0};
    struct wpk_buf query = {0}, body = {0};
    char path[96];
    *out = (struct wpk_trial_list){0};
    wpk_err err = WPK_OK;
    if (wpk_session_is_job_id(job, NULL)) {
        err = wpk_session_ask_job(session, job, "", arena, &reply, &found, diag);
        err = err == WPK_OK ? choose_op(&found, op, &out->op, diag) : err;
        out->job = job;
    } else {
        err = find_op(session, job, arena, out, diag);
    }
    if (err == WPK_OK) {
        snprintf(path, sizeof(path), "/v1/jobs/%s/trials", out->job);
        wpk_show_add(&query, "op", out->op);
        err = wpk_list_fetch(session, path, wpk_buf_text(&query), "trials", WPK_API_LIST_MAX, &body,
                             diag);
    }
    err = err == WPK_OK ? read_trials(&body, arena, out, diag) : err;
    wpk_http_reply_fini(&reply);
    wpk_buf_fini(&query);
    wpk_buf_fini(&body);
    return err;
}

bool wpk_trial_is_timed(const struct wpk_api_trial *trial)
{
    return strcmp(trial->outcome, "ok") == 0 && trial->median_ns > 0 && !trial->censored;
}

int wpk_trial_list_best(const struct wpk_trial_list *list)
{
    int best = -1;
    for (int i = 0; i < list->count; i++) {
        const struct wpk_api_trial *one = &list->trial[i];
        if (one->index < 0 || !wpk_trial_is_timed(one)) {
            continue;
        }
        const struct wpk_api_trial *other = best < 0 ? NULL : &list->trial[best];
        bool ratios = other != NULL && one->ratio > 0 && other->ratio > 0;
        if (other == NULL ||
            (ratios ? one->ratio < other->ratio : one->median_ns < other->median_ns)) {
            best = i;
        }
    }
    return best;
}

void wpk_trial_gene(const char *candidate, const char *gene, char *out, size_t size)
{
    size_t found;
    const char *value = wpk_api_trial_gene(candidate, gene, strlen(gene), &found);
    snprintf(out, size, "%.*s", (int)found, value);
}
