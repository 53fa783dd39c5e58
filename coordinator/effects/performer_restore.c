/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state, from the store: at the start, and after the store failed. */
#include "coordinator/effects/performer_parts.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/state/submission.h"
#include "coordinator/store/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct restored {
    struct wpk_job_entry *jobs[WPK_JOBS_LIVE_MAX];
    uint32_t count;
};

/* What is left of a job whose file is not understood any more: enough to say so. */
static struct wpk_job_entry *make_lost(const struct wpk_history_job *stored, wpk_err err,
                                       const struct wpk_diag *diag)
{
    struct wpk_job_entry *job = calloc(1, sizeof *job);
    WPK_ASSERT(job != NULL);
    snprintf(job->name, sizeof job->name, "%s", stored->name);
    snprintf(job->owner, sizeof job->owner, "%s", stored->owner);
    job->priority = stored->priority;
    job->state = WPK_JOB_FAILED;
    snprintf(job->reason, sizeof job->reason,
             "this wpkd does not understand the job's file: %.180s",
             diag->text[0] != '\0' ? diag->text : wpk_err_text(err));
    return job;
}

static void load_job(void *user, const struct wpk_history_job *stored)
{
    struct restored *restored = user;
    struct wpk_diag diag = {0};
    struct wpk_job_entry *job = NULL;
    if (restored->count == WPK_JOBS_LIVE_MAX) {
        return;
    }
    wpk_err err = wpk_submission_decode(stored->source, strlen(stored->source), &job, &diag);
    if (err == WPK_ENOMEM) {
        return; /* it stays, for the next start */
    }
    if (err == WPK_OK) {
        job->state = stored->paused                 ? WPK_JOB_PAUSED
                     : stored->started_wall_ns != 0 ? WPK_JOB_RUNNING
                                                    : WPK_JOB_QUEUED;
    } else {
        wpk_log_failure(WPK_LOG_ERROR, "job_not_restored", err, &diag);
        job = make_lost(stored, err, &diag);
    }
    job->number = stored->number;
    snprintf(job->id, sizeof job->id, "%s", stored->id);
    /* The file says nothing of who sent it. */
    snprintf(job->owner, sizeof job->owner, "%s", stored->owner);
    job->created_wall_ns = stored->created_wall_ns;
    job->started_wall_ns = stored->started_wall_ns;
    restored->jobs[restored->count++] = job;
}

static void load_ops(struct wpk_store *store, struct wpk_job_entry *job)
{
    for (uint32_t i = 0; i < job->op_count; i++) {
        struct wpk_history_op op;
        if (wpk_history_op(store, job->number, i, &op)) {
            job->ops[i].phase = op.phase;
            job->ops[i].kernel_id = op.kernel_id;
            job->ops[i].from_history = op.from_history;
            memcpy(job->ops[i].reason, op.reason, sizeof job->ops[i].reason);
            if (wpk_phase_ended(op.phase)) {
                job->ops[i].past = wpk_history_op_past(store, job->number, i);
            } else {
                job->ops[i].bound = wpk_history_op_class(store, job->number, i);
            }
        }
    }
}

struct lost_order {
    struct wpk_effect_order effect;
    struct wpk_job_entry job;
    char *document;
};

static void perform_end_lost(struct wpk_order *order, struct wpk_store *store)
{
    const struct lost_order *mine = (const struct lost_order *)order;
    wpk_history_set_job(store, &mine->job, mine->document);
    wpk_history_fail_ops(store, &mine->job);
}

/* A job that was accepted does not vanish: it failed, with its reason. */
static void end_lost(struct wpk_performer *p, struct wpk_job_entry *job)
{
    job->finished_wall_ns = wpk_clock_wall_ns(p->options.clock);
    if (!p->degraded) {
        struct lost_order *order = wpk_performer_write(p, sizeof *order, perform_end_lost, NULL);
        struct wpk_buf document = {0};
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_document_job(w, NULL, job, wpk_performer_now_ns(p), job->finished_wall_ns);
        wpk_err err = wpk_json_print(w, false, &document);
        wpk_json_writer_free(w);
        WPK_ASSERT(err == WPK_OK);
        order->job = *job;
        order->document = wpk_batch_text(p->batch, wpk_buf_text(&document));
        wpk_buf_fini(&document);
    }
    wpk_job_entry_free(job);
}

static void restore_jobs(struct wpk_performer *p, const struct restored *restored)
{
    for (uint32_t i = 0; i < restored->count; i++) {
        struct wpk_job_entry *job = restored->jobs[i];
        if (job->state == WPK_JOB_FAILED) {
            end_lost(p, job);
            continue;
        }
        load_ops(p->reader, job);
        struct wpk_event event = {.kind = WPK_EVENT_RESTORE, .job = job};
        wpk_performer_step_one(p, &event);
    }
}

static void restore_owner(void *user, const struct wpk_owner_event *owner)
{
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE_OWNER, .owner = *owner};
    wpk_performer_step_one(user, &event);
}

static void restore_order(void *user, const char *worker, enum wpk_worker_order order,
                          const char *reason)
{
    struct wpk_event event = {
        .kind = WPK_EVENT_RESTORE_ORDER, .worker = worker, .order = order, .reason = reason};
    wpk_performer_step_one(user, &event);
}

wpk_err wpk_performer_restore(struct wpk_performer *p, struct wpk_diag *diag)
{
    struct restored *restored = calloc(1, sizeof *restored);
    if (restored == NULL) {
        return WPK_ENOMEM;
    }
    /* What a read met before is not what this one meets. */
    wpk_err stale = wpk_store_take_status(p->reader, NULL);
    (void)stale;
    wpk_coordinator_free(p->coordinator);
    p->coordinator = NULL;
    p->generation++;
    p->builds_held = false; /* the new one has not heard of it */
    wpk_metric_set(WPK_GAUGE_BUILDS_HELD, 0, 0);
    wpk_err err = wpk_coordinator_new(wpk_history_job_number_next(p->reader), &p->coordinator);
    if (err == WPK_OK) {
        wpk_history_owners(p->reader, restore_owner, p);
        wpk_history_worker_orders(p->reader, restore_order, p);
        wpk_history_live_jobs(p->reader, load_job, restored);
        restore_jobs(p, restored);
        err = wpk_store_take_status(p->reader, diag);
    }
    free(restored);
    return err;
}
