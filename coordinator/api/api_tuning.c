/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_lookup.h"

#include "coordinator/state/submission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_SIZE (WPK_JOB_ID_SIZE - 1) /* of a job, in the answer */

struct wpk_tuning_job {
    struct wpk_tuning_job *next;
    struct wpk_job asked;
    struct wpk_buf key;             /* what its operators are, a line each */
    size_t places[WPK_JOB_OPS_MAX]; /* [asked.op_count]: in the answer, where the id belongs */
    struct wpk_job_entry *entry;    /* owned; once it is prepared */
};

void wpk_tuning_fini(struct wpk_tuning *tuning)
{
    struct wpk_tuning_job *next;
    for (struct wpk_tuning_job *job = tuning->first; job != NULL; job = next) {
        next = job->next;
        wpk_job_fini(&job->asked);
        wpk_buf_fini(&job->key);
        wpk_job_entry_free(job->entry);
        free(job);
    }
    tuning->first = NULL;
}

static struct wpk_tuning_job *make_job(const struct wpk_lookup *lookup)
{
    struct wpk_tuning_job *job = WPK_DEMAND(calloc(1, sizeof *job));
    wpk_job_init(&job->asked);
    snprintf(job->asked.name, sizeof job->asked.name, "lookup");
    snprintf(job->asked.device, sizeof job->asked.device, "%s", lookup->device);
    if (lookup->device[0] != '\0') {
        snprintf(job->asked.kind, sizeof job->asked.kind, "%.*s", (int)strcspn(lookup->device, "/"),
                 lookup->device);
    }
    job->asked.threads = lookup->threads;
    job->asked.ops = WPK_DEMAND(calloc(WPK_JOB_OPS_MAX, sizeof *job->asked.ops));
    return job;
}

/* The operator's name in the job. */
static void name_op(const struct wpk_tuning_job *job, const struct wpk_job_op *op,
                    char out[WPK_JOB_NAME_MAX])
{
    if (op->name[0] != '\0') {
        memcpy(out, op->name, sizeof op->name);
    } else {
        snprintf(out, WPK_JOB_NAME_MAX, "op%d", job->asked.op_count + 1);
    }
}

static bool has_room(const struct wpk_tuning_job *job, const struct wpk_job_op *op)
{
    char name[WPK_JOB_NAME_MAX];
    name_op(job, op, name);
    return WPK_FIND(struct wpk_job_op, name, job->asked.ops, job->asked.op_count, name) < 0 &&
           job->asked.op_count < WPK_JOB_OPS_MAX;
}

/* The newest is first: of those for that device and as many threads, the only one that can have
 * room. */
static struct wpk_tuning_job *find_job(struct wpk_tuning *tuning, const struct wpk_lookup *lookup,
                                       const struct wpk_job_op *op)
{
    struct wpk_tuning_job *job = tuning->first;
    while (job != NULL && (job->asked.threads != lookup->threads ||
                           strcmp(job->asked.device, lookup->device) != 0)) {
        job = job->next;
    }
    if (job == NULL || !has_room(job, op)) {
        job = make_job(lookup);
        job->next = tuning->first;
        tuning->first = job;
    }
    return job;
}

void wpk_tuning_take(struct wpk_tuning *tuning, struct wpk_call *call,
                     const struct wpk_lookup *lookup, struct wpk_job_op *op)
{
    static const char room[ID_SIZE + 1] = "j0000000000000000";
    struct wpk_tuning_job *job = find_job(tuning, lookup, op);
    int at = job->asked.op_count;
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    char name[WPK_JOB_NAME_MAX];
    wpk_accuracy_name(lookup->accuracy, accuracy);
    /* Another name is another job. */
    wpk_buf_printf(&job->key, "%s%s %s %s %d %s %s %s", at == 0 ? "" : "\n", lookup->fingerprint,
                   lookup->device, lookup->layouts, lookup->threads, accuracy,
                   wpk_conditions_name(lookup->conditions), op->name);
    name_op(job, op, name);
    memcpy(op->name, name, sizeof name);
    job->asked.ops[at] = *op;
    *op = (struct wpk_job_op){0};
    job->places[at] = call->answer->body.size;
    job->asked.op_count++;
    wpk_buf_append(&call->answer->body, room, ID_SIZE);
}

static bool prepare_job(struct wpk_tuning_job *job, struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_submission_make(&job->asked, &job->entry, &diag);
    if (err != WPK_OK) {
        return wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
    }
    wpk_call_own_job(call, job->entry);
    return true;
}

bool wpk_tuning_prepare(struct wpk_tuning *tuning, struct wpk_call *call)
{
    bool done = true;
    for (struct wpk_tuning_job *job = tuning->first; done && job != NULL; job = job->next) {
        done = prepare_job(job, call);
    }
    return done;
}

static bool submit_job(struct wpk_tuning_job *job, struct wpk_call *call)
{
    char id[WPK_JOB_ID_SIZE];
    struct wpk_buf *body = &call->answer->body;
    WPK_ASSERT(job->entry != NULL && wpk_buf_status(&job->key) == WPK_OK);
    bool done = wpk_call_submit_once(call, "tune", wpk_buf_text(&job->key), &job->entry, id);
    for (int i = 0; done && i < job->asked.op_count; i++) {
        WPK_ASSERT(job->places[i] + ID_SIZE <= body->size);
        memcpy((char *)body->data + job->places[i], id, ID_SIZE);
    }
    return done;
}

bool wpk_tuning_submit(struct wpk_tuning *tuning, struct wpk_call *call)
{
    bool done = true;
    if (wpk_buf_status(&call->answer->body) != WPK_OK) {
        return true; /* it will be told instead of the answer */
    }
    for (struct wpk_tuning_job *job = tuning->first; done && job != NULL; job = job->next) {
        done = submit_job(job, call);
    }
    return done;
}
