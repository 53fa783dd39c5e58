/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the coordinator. Besides steps, only wpk_job_stored() and wpk_coordinator_halt()
 * change it.
 *
 *     job ─▶ its ops ─▶ search (shared by jobs that ask the same) ─▶ asks, vendors, kernel
 *
 *     worker ─▶ holds leases on a search's work
 */
#ifndef WPK_COORDINATOR_STATE_STATE_H
#define WPK_COORDINATOR_STATE_STATE_H

#include "coordinator/state/effect.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/table.h"
#include "coordinator/state/timer.h"

struct wpk_worker_class;
struct wpk_lease;
struct wpk_owner;
struct wpk_work_queue;
struct wpk_worker;

struct wpk_coordinator {
    struct wpk_job_entry **jobs; /* owned; [job_count], by number; some have ended */
    uint32_t job_count;
    uint32_t live_count;
    struct wpk_mark_list marked_jobs[WPK_JOB_MARKS];
    uint32_t unbound_count; /* jobs with an operator that waits for a device */
    bool bind_again;        /* the next tick tries to bind them */
    bool jobs_stored;       /* the end of a job is durable: it may be forgotten */
    struct wpk_table jobs_by_id;
    struct wpk_table jobs_by_number;
    uint64_t job_number_next;

    struct wpk_search **searches; /* owned; [search_count], in no order */
    uint32_t search_count;
    uint32_t search_capacity;
    struct wpk_table searches_by_id; /* searches that are open */
    struct wpk_table searches_by_handle;
    struct wpk_table searches_by_key;
    struct wpk_table searches_by_problem; /* the first search of each problem */
    uint64_t handle_next;
    struct wpk_mark_list marked_searches[WPK_SEARCH_MARKS];
    struct wpk_search *released; /* owned; effects of the last step may point to them */
    struct wpk_timers search_timers;

    struct wpk_worker **workers; /* owned; [worker_count], in no order */
    uint32_t worker_count;
    struct wpk_table workers_by_session;
    struct wpk_table workers_by_name;
    struct wpk_table workers_by_peer; /* the first worker of each connection */
    struct wpk_timers worker_timers;
    struct wpk_worker *polled; /* the worker whose poll came in this step; NULL: none */
    struct wpk_table admin_states; /* owned; struct wpk_admin_entry by its name */
    uint32_t lease_count;
    uint64_t lease_next;            /* number of the next lease */
    struct wpk_lease *leases_spare; /* owned; free ones */

    struct wpk_table timing_classes;                /* owned; struct wpk_timing_class by its text */
    struct wpk_worker_class **worker_classes; /* owned; [worker_class_count] */
    uint32_t worker_class_count;
    uint32_t worker_class_capacity;
    struct wpk_table worker_classes_by_key;
    struct wpk_work_queue **queues; /* owned; [queue_count]; work queues */
    uint32_t queue_count;
    uint32_t queue_capacity;
    struct wpk_table queues_by_key;
    struct wpk_mark_list marked_queues; /* work queues with work and a waiting poll */
    bool served_changed; /* of a work queue, in this step */
    bool unserved;       /* a work queue lost its last available worker since the last tick */

    struct wpk_owner **owners; /* owned; [owner_count] */
    uint32_t owner_count;
    uint32_t owner_capacity;
    struct wpk_table owners_by_name;
    struct wpk_mark_list marked_owners; /* to be stored */
    uint32_t owner_weight;              /* of owners that are not named; so is the next */
    uint32_t owner_jobs_max;
    uint64_t mark; /* wpk_fair_settle() counts an owner once by it */

    bool draining;      /* wpkd is about to end: nothing is leased */
    bool halted;        /* the store cannot be written */
    bool builds_held;   /* artifacts have no room: nothing is leased to be built */
    uint64_t ticked_ns; /* time of the last tick; 0: none yet */
    uint64_t stored_ns; /* when counters were stored last */
    uint64_t step;      /* number of the last step */
    /* Of the step under way: */
    const struct wpk_event *event;
    uint32_t opened_count; /* its OPEN_SEARCH effects */
    struct wpk_effects *effects;
};

#endif
