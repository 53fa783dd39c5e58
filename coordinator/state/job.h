/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and their operators. */
#ifndef WPK_COORDINATOR_STATE_JOB_H
#define WPK_COORDINATOR_STATE_JOB_H

#include "coordinator/state/mark.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/worker_class.h"
#include "schema/job.h"

struct wpk_coordinator;
struct wpk_owner;
struct wpk_search;
struct wpk_claim;

#define WPK_JOBS_LIVE_MAX 1024 /* queued and running */

/* The report on an operator that ended before this start of wpkd: its search is not opened. */
struct wpk_op_past {
    char *device_class; /* owned, as all of these */
    char *best;         /* best candidate, a Contender of openapi.yaml; NULL: none */
    char *baseline;     /* best vendor, a Contender; NULL: none */
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
};

struct wpk_job_op_state {
    char name[WPK_JOB_TEXT_MAX];
    char fingerprint[WPK_ID_MAX];
    char family[WPK_ID_MAX];
    char layouts[16];
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    enum wpk_conditions conditions;
    char *op;      /* canonical form; owned */
    char *binding; /* its tensors by the job's names: JSON; owned */
    char *pins;    /* by the canonical form's names, sorted; owned; NULL: none */
    double flops;      /* of one call */
    double bytes;      /* of its inputs, constants and outputs */
    uint32_t count;    /* calls of it, by which a total budget is shared out */
    uint32_t allotted; /* candidates, of a total budget: share.h */
    struct wpk_search *search; /* NULL until a device was found; borrowed */
    enum wpk_phase phase;
    char reason[WPK_REASON_MAX];
    bool from_history;
    uint64_t kernel_id; /* 0: none */
    /* RESTORE: text of the timing class of the search that it had; owned; NULL: none */
    char *bound;
    struct wpk_op_past *past;      /* RESTORE: it had ended before; owned; NULL: it had not */
    struct wpk_job_entry *job;     /* its job */
    struct wpk_job_op_state *next; /* in the search's list of operators */
    struct wpk_job_op_state *prev;
    struct wpk_claim *claims[2]; /* by enum wpk_queue_stage; NULL: it is not worked on now */
};

/* A job that has not ended, or whose end is not durable. Other jobs are only in the store. */
struct wpk_job_entry {
    uint64_t number; /* in the store: the order of submission */
    char id[WPK_JOB_ID_SIZE];
    char name[WPK_JOB_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    int priority;
    char kind[16];                        /* of the device */
    char device[2 * WPK_DEVICE_TEXT_MAX]; /* device class that it is for; "": any */
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX]; /* that its workers must have; by name */
    uint32_t label_count;
    char strategy[32];
    char options[WPK_JOB_OPTIONS_MAX]; /* of the strategy, as in schema/job.h */
    char prior[WPK_ID_MAX]; /* SHA-256; "": none */
    char *prior_text; /* owned; of a job that was submitted to this process; NULL: none */
    uint64_t seed;
    uint32_t candidates; /* budget of each operator */
    uint32_t total;      /* of all operators together; 0: each has its own */
    uint64_t time_ns;    /* budget of each operator */
    char until[WPK_JOB_UNTIL_MAX]; /* a condition that ends it earlier: schema/job.h */
    enum wpk_job_state state;
    char reason[WPK_REASON_MAX];
    uint64_t created_wall_ns;
    uint64_t started_wall_ns;
    uint64_t finished_wall_ns;
    bool stored;                    /* its end is durable */
    bool unbound;                   /* an operator waits for a device */
    uint64_t restored_ns;           /* at the start of wpkd; 0: it was submitted */
    struct wpk_owner *owner_record; /* the owner with this name; borrowed */
    struct wpk_mark marks[WPK_JOB_MARKS];
    struct wpk_job_op_state *ops; /* owned; [op_count] */
    uint32_t op_count;
};

/* Handlers of events. */
void wpk_job_submit(struct wpk_coordinator *c);
void wpk_job_restore(struct wpk_coordinator *c);
void wpk_job_cancel(struct wpk_coordinator *c);
void wpk_job_pause(struct wpk_coordinator *c);
void wpk_job_resume(struct wpk_coordinator *c);

/* Bind the operator to the search, which it joins when the search is settled; unbind it. */
void wpk_job_op_enter(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                      struct wpk_search *search);
void wpk_job_op_leave(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Set the operator's phase and reason, and store them. A phase that ends it drops its claims. */
void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_op_state *op, enum wpk_phase phase,
                    const char *reason);
/* The job got its first lease: it is running. */
void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Mark the jobs with an operator that waits for a device of this worker class; NULL: of any one. */
void wpk_job_mark_unbound(struct wpk_coordinator *c, const struct wpk_worker_class *worker_class);
/* End the job if all its operators have ended. */
void wpk_job_end_if_over(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Free the jobs whose end is durable. */
void wpk_job_release(struct wpk_coordinator *c);
/* The job's last state is durable: if the job has ended, the next step frees it. */
void wpk_job_stored(struct wpk_coordinator *coordinator, uint64_t number);
/* True if the job is paused, and its owner, who may resume it, is not the owner of `wanted`. */
bool wpk_job_waits_for_another(const struct wpk_job_entry *job, const struct wpk_job_entry *wanted);
/* A job that has not ended, does not wait for another owner, and searches the same as this one: the
 * same operators for the same device, with the same name, pins, strategy and budget; NULL: none.
 * Owners and seeds may differ; jobs with labels are never the same. */
const struct wpk_job_entry *wpk_job_find_same(const struct wpk_coordinator *coordinator,
                                              const struct wpk_job_entry *job);
/* Free what a job entry owns, and the entry. */
void wpk_job_entry_free(struct wpk_job_entry *job);

#endif
