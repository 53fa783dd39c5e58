/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's state is read from the store: at the start, and after the store failed. It is
 * read in slices, so that the loop goes on while a thousand jobs are read. */
#include "coordinator/effects/executor_parts.h"

#include "common/metrics.h"
#include "coordinator/store/history_job.h"

#define SLICE_OPS 2048 /* operators that are read before the loop has its turn: some 20 ms */

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
    /* Discard the status of earlier reads: it says nothing about this one. */
    (void)!wpk_store_take_status(p->reader, NULL);
    wpk_coordinator_free(p->coordinator);
    p->coordinator = NULL;
    p->generation++;
    p->builds_held = false; /* the new one has not heard of it */
    p->wanted_bytes = 0;
    wpk_metric_set(WPK_GAUGE_BUILDS_HELD, 0, 0);
    p->unread_first = 0;
    p->unread_count = 0;
    p->coordinator = wpk_coordinator_new(wpk_history_job_number_next(p->reader));
    wpk_history_owners(p->reader, restore_owner, p);
    wpk_history_admin_states(p->reader, restore_admin_state, p);
    p->unread_count = wpk_history_live_jobs(p->reader, p->unread, WPK_JOBS_LIVE_MAX);
    p->artifact_bytes = wpk_history_artifact_bytes(p->reader);
    return wpk_store_take_status(p->reader, diag);
}

bool wpk_executor_is_restored(const struct wpk_executor *p)
{
    return p->unread_first == p->unread_count;
}

wpk_err wpk_executor_restore_some(struct wpk_executor *p, struct wpk_diag *diag)
{
    uint32_t op_count = 0;
    while (!wpk_executor_is_restored(p) && op_count < SLICE_OPS) {
        struct wpk_job_entry *job = wpk_history_read_job(p->reader, p->unread[p->unread_first++]);
        if (job != NULL) {
            struct wpk_event event = {.kind = WPK_EVENT_RESTORE, .job = job};
            op_count += job->op_count;
            wpk_history_read_progress(p->reader, job);
            wpk_executor_step_one(p, &event);
        }
    }
    return wpk_store_take_status(p->reader, diag);
}
