/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_tuning.h"

#include "schema/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_SIZE (WPK_JOB_ID_SIZE - 1) /* of a job, in the answer */
/* More than a job file has around its operators, of which the device is escaped. */
#define FRAME_SIZE (256 + 6 * WPK_JOB_DEVICE_MAX)

struct wpk_tuning_job {
    struct wpk_tuning_job *next;
    char device[WPK_JOB_DEVICE_MAX]; /* class; "": any */
    int threads;
    int op_count;
    struct wpk_buf ops;
    struct wpk_buf key;             /* what they are, a line each */
    size_t places[WPK_JOB_OPS_MAX]; /* [op_count]: in the answer, where the id belongs */
    struct wpk_buf source;          /* once it is prepared */
    struct wpk_call_job job;
};

void wpk_tuning_fini(struct wpk_tuning *tuning)
{
    struct wpk_tuning_job *next;
    for (struct wpk_tuning_job *job = tuning->first; job != NULL; job = next) {
        next = job->next;
        wpk_buf_fini(&job->ops);
        wpk_buf_fini(&job->key);
        wpk_buf_fini(&job->source);
        wpk_job_entry_free(job->job.job);
        free(job);
    }
    tuning->first = NULL;
}

void wpk_tuning_write(const char *ops, size_t size, const char *device, int threads,
                      struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "kind", "cpu");
    if (device[0] != '\0') {
        wpk_json_put_text(w, "device", device);
    }
    wpk_json_put_int(w, "threads", threads);
    wpk_buf_append_text(out, "{\"name\":\"lookup\",\"ops\":[");
    wpk_buf_append(out, ops, size);
    wpk_buf_append_text(out, "],\"target\":");
    wpk_err err = wpk_json_print(w, false, out);
    WPK_ASSERT(err == WPK_OK);
    wpk_buf_append_byte(out, '}');
    wpk_json_writer_free(w);
}

static bool has_room(const struct wpk_tuning_job *job, const struct wpk_buf *op)
{
    return job->op_count < WPK_JOB_OPS_MAX &&
           job->ops.size + op->size + FRAME_SIZE <= WPK_JOB_SIZE_MAX;
}

bool wpk_tuning_has_name(const struct wpk_buf *op)
{
    return op->size > strlen(WPK_TUNING_NAME) &&
           strncmp(op->data, WPK_TUNING_NAME, strlen(WPK_TUNING_NAME)) == 0;
}

/* Bytes of `"name":"...",` in front; 0: it has none. A name is one word of letters and digits, so
 * that no comma is within. */
static size_t name_size(const struct wpk_buf *op)
{
    return wpk_tuning_has_name(op) ? strcspn(op->data, ",") + 1 : 0;
}

static bool is_taken(const struct wpk_tuning_job *job, const struct wpk_buf *op)
{
    size_t size = name_size(op);
    return size > 0 && job->ops.size > 0 &&
           memmem(job->ops.data, job->ops.size, op->data, size) != NULL;
}

/* The newest is first: of those for that device and as many threads, the only one that can have
 * room. */
static struct wpk_tuning_job *find_job(struct wpk_tuning *tuning, const struct wpk_lookup *lookup,
                                       const struct wpk_buf *op)
{
    struct wpk_tuning_job *job = tuning->first;
    while (job != NULL &&
           (job->threads != lookup->threads || strcmp(job->device, lookup->device) != 0)) {
        job = job->next;
    }
    if (job == NULL || !has_room(job, op) || is_taken(job, op)) {
        job = calloc(1, sizeof *job);
        WPK_ASSERT(job != NULL);
        job->threads = lookup->threads;
        snprintf(job->device, sizeof job->device, "%s", lookup->device);
        job->next = tuning->first;
        tuning->first = job;
    }
    return job;
}

void wpk_tuning_add(struct wpk_tuning *tuning, struct wpk_call *call,
                    const struct wpk_lookup *lookup, const struct wpk_buf *op)
{
    static const char room[ID_SIZE + 1] = "j0000000000000000";
    struct wpk_tuning_job *job = find_job(tuning, lookup, op);
    bool first = job->op_count == 0;
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    wpk_accuracy_name(lookup->accuracy, accuracy);
    wpk_buf_printf(&job->key, "%s%s %s %s %d %s %s", first ? "" : "\n", lookup->fingerprint,
                   lookup->device, lookup->layouts, lookup->threads, accuracy,
                   wpk_conditions_name(lookup->conditions));
    wpk_buf_append(&job->key, op->data, name_size(op)); /* another name is another job */
    wpk_buf_append_text(&job->ops, first ? "{" : ",{");
    if (!wpk_tuning_has_name(op)) {
        wpk_buf_printf(&job->ops, WPK_TUNING_NAME "\"op%d\",", job->op_count + 1);
    }
    wpk_buf_append(&job->ops, op->data, op->size);
    wpk_buf_append_byte(&job->ops, '}');
    job->places[job->op_count++] = call->answer->body.size;
    wpk_buf_append(&call->answer->body, room, ID_SIZE);
}

bool wpk_tuning_prepare(struct wpk_tuning *tuning, struct wpk_call *call)
{
    bool done = true;
    for (struct wpk_tuning_job *job = tuning->first; done && job != NULL; job = job->next) {
        wpk_tuning_write(wpk_buf_text(&job->ops), job->ops.size, job->device, job->threads,
                         &job->source);
        WPK_ASSERT(wpk_buf_status(&job->source) == WPK_OK);
        job->job =
            (struct wpk_call_job){.source = wpk_buf_text(&job->source), .size = job->source.size};
        done = wpk_call_read_job(call, &job->job);
    }
    return done;
}

static bool submit_job(struct wpk_tuning_job *job, struct wpk_call *call)
{
    char id[WPK_JOB_ID_SIZE];
    struct wpk_buf *body = &call->answer->body;
    WPK_ASSERT(job->job.source != NULL && wpk_buf_status(&job->key) == WPK_OK);
    bool done = wpk_call_submit_once(call, "tune", wpk_buf_text(&job->key), &job->job, id);
    for (int i = 0; done && i < job->op_count; i++) {
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
