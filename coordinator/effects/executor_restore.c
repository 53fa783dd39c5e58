/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state is read from the store: at the start, and after the store failed. It is
 * read in slices, so that the loop goes on while a thousand jobs are read. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "common/metrics.h"
#include "coordinator/store/document.h"
#include "coordinator/store/history_job.h"
#include "search/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_OPS 2048 /* operators that are read before the loop has its turn: some 20 ms */

/* Fail a job that this wpkd cannot run. */
static void lose(struct wpk_job_entry *job, const char *reason)
{
    job->state = WPK_JOB_FAILED;
    snprintf(job->reason, sizeof job->reason, "this wpkd cannot run the job: %.180s", reason);
    wpk_log(WPK_LOG_ERROR, "job_not_restored", "job=%s reason=\"%.180s\"", job->id, reason);
}

/* NULL: there is none, or the store failed. */
static struct wpk_job_entry *read_job(struct wpk_store *store, uint64_t number)
{
    struct wpk_job_entry *job = wpk_history_read_job(store, number);
    if (job != NULL && wpk_strategy_find(job->strategy) == NULL) {
        char reason[80];
        snprintf(reason, sizeof reason, "there is no strategy \"%s\"", job->strategy);
        lose(job, reason);
    } else if (job != NULL && job->op_count == 0) {
        lose(job, "its operators are not stored");
    }
    if (job != NULL) {
        wpk_history_read_progress(store, job);
    }
    return job;
}

struct lost_write {
    struct wpk_effect_write effect;
    struct wpk_job_entry job;
    char *document;
};

static void perform_end_lost(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct lost_write *mine = (const struct lost_write *)write;
    wpk_history_set_job(store, &mine->job, mine->document);
    wpk_history_fail_ops(store, &mine->job);
}

/* A job that was accepted does not vanish: it failed, with its reason. */
static void end_lost(struct wpk_executor *p, struct wpk_job_entry *job)
{
    job->finished_wall_ns = wpk_clock_wall_ns(p->options.clock);
    if (wpk_executor_may_write(p)) {
        struct lost_write *write = wpk_executor_new_write(p, sizeof *write, perform_end_lost, NULL);
        struct wpk_buf document = {0};
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_document_job(w, NULL, job, wpk_executor_now_ns(p), job->finished_wall_ns);
        wpk_err err = wpk_json_print(w, false, &document);
        wpk_json_writer_free(w);
        WPK_ASSERT(err == WPK_OK);
        write->job = *job;
        write->document = wpk_batch_text(p->batch, wpk_buf_text(&document));
        wpk_buf_fini(&document);
    }
    wpk_job_entry_free(job);
}

static void restore_job(struct wpk_executor *p, struct wpk_job_entry *job)
{
    if (job->state == WPK_JOB_FAILED) {
        end_lost(p, job);
        return;
    }
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE, .job = job};
    wpk_executor_step_one(p, &event);
}

static void restore_owner(void *user, const struct wpk_owner_event *owner)
{
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE_OWNER, .owner = *owner};
    wpk_executor_step_one(user, &event);
}

static void restore_admin_state(void *user, const char *worker, enum wpk_admin_state state,
                                const char *reason)
{
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE_ADMIN_STATE,
                              .worker = worker,
                              .admin_state = state,
                              .reason = reason};
    wpk_executor_step_one(user, &event);
}

wpk_err wpk_executor_begin_restore(struct wpk_executor *p, struct wpk_diag *diag)
{
    /* What a read met before is not what this one meets. */
    wpk_err stale = wpk_store_take_status(p->reader, NULL);
    (void)stale;
    wpk_coordinator_free(p->coordinator);
    p->coordinator = NULL;
    p->generation++;
    p->builds_held = false; /* the new one has not heard of it */
    p->wanted_bytes = 0;
    wpk_metric_set(WPK_GAUGE_BUILDS_HELD, 0, 0);
    p->unread_first = 0;
    p->unread_count = 0;
    wpk_err err = wpk_coordinator_new(wpk_history_job_number_next(p->reader), &p->coordinator);
    if (err == WPK_OK) {
        wpk_history_owners(p->reader, restore_owner, p);
        wpk_history_admin_states(p->reader, restore_admin_state, p);
        p->unread_count = wpk_history_live_jobs(p->reader, p->unread, WPK_JOBS_LIVE_MAX);
        p->artifact_bytes = wpk_history_artifact_bytes(p->reader);
        err = wpk_store_take_status(p->reader, diag);
    }
    return err;
}

bool wpk_executor_is_restored(const struct wpk_executor *p)
{
    return p->unread_first == p->unread_count;
}

wpk_err wpk_executor_restore_some(struct wpk_executor *p, struct wpk_diag *diag)
{
    uint32_t op_count = 0;
    while (!wpk_executor_is_restored(p) && op_count < SLICE_OPS) {
        struct wpk_job_entry *job = read_job(p->reader, p->unread[p->unread_first++]);
        if (job != NULL) {
            op_count += job->op_count;
            restore_job(p, job);
        }
    }
    return wpk_store_take_status(p->reader, diag);
}
