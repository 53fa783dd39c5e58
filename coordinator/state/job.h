/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and their operators. */
#ifndef WPK_COORDINATOR_STATE_JOB_H
#define WPK_COORDINATOR_STATE_JOB_H

#include "coordinator/state/mark.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/worker_class.h"

struct wpk_coordinator;
struct wpk_owner;
struct wpk_search;
struct wpk_claim;

#define WPK_JOBS_LIVE_MAX 1024 /* queued and running */

/* What is said of an operator that ended before this wpkd was started: its search stays closed. */
struct wpk_op_past {
    char *device_class; /* owned, as all of these */
    char *best;         /* of our own, a Contender of openapi.yaml; NULL: none */
    char *baseline;     /* likewise */
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
    char *op;         /* canonical form; owned */
    char *binding;    /* its tensors by the asker's names: JSON; owned */
    char *parameters; /* pins in the canonical form's names, sorted; owned; NULL: none */
    double flops;
    struct wpk_search *search; /* NULL until a device was found; borrowed */
    enum wpk_phase phase;
    char reason[WPK_REASON_MAX];
    bool from_history;
    uint64_t kernel_id; /* 0: none */
    /* RESTORE: wpk_timing_class_text() of the search that it had; owned; NULL: none */
    char *bound;
    struct wpk_op_past *past;      /* RESTORE: had ended; owned; NULL: its search says it */
    struct wpk_job_entry *job;     /* that it is of */
    struct wpk_job_op_state *next; /* of the search's */
    struct wpk_job_op_state *prev;
    struct wpk_claim *claims[2]; /* it is worked on: by stage; NULL: it is not, now */
};

/* A job that has not ended, or whose end is not durable; what has ended lives in the store. */
struct wpk_job_entry {
    uint64_t number; /* in the store: the order of submission */
    char id[WPK_JOB_ID_SIZE];
    char name[WPK_JOB_TEXT_MAX];
    char owner[WPK_JOB_TEXT_MAX];
    int priority;
    char kind[16];                        /* of the device */
    char device[2 * WPK_DEVICE_TEXT_MAX]; /* class that it is for; "": any */
    int threads;
    struct wpk_worker_label labels[WPK_WORKER_LABELS_MAX]; /* that its workers have; by name */
    uint32_t label_count;
    char strategy[32];
    uint64_t seed;
    uint32_t candidates; /* budget of each operator */
    uint64_t time_ns;    /* budget of each operator */
    enum wpk_job_state state;
    char reason[WPK_REASON_MAX];
    uint64_t created_wall_ns;
    uint64_t started_wall_ns;
    uint64_t finished_wall_ns;
    bool stored;               /* its end is durable */
    bool unbound;              /* an operator waits for a device */
    uint64_t restored_ns;      /* at the start of wpkd; 0: it was submitted */
    struct wpk_owner *owner_record; /* its owner's */
    struct wpk_mark marks[WPK_JOB_MARKS];
    struct wpk_job_op_state *ops; /* owned; [op_count] */
    uint32_t op_count;
};

void wpk_job_submit(struct wpk_coordinator *c);
void wpk_job_restore(struct wpk_coordinator *c);
void wpk_job_cancel(struct wpk_coordinator *c);
void wpk_job_pause(struct wpk_coordinator *c);
void wpk_job_resume(struct wpk_coordinator *c);

/* The operator refers to the search, which it is about to join, or does not any more. */
void wpk_job_op_enter(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                      struct wpk_search *search);
void wpk_job_op_leave(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* An operator's phase changed: store it. */
void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_op_state *op, enum wpk_phase phase,
                    const char *reason);
/* A job's first lease. */
void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Mark the jobs with an operator that waits for a device of this worker class; NULL: of any. */
void wpk_job_mark_unbound(struct wpk_coordinator *c, const struct wpk_worker_class *worker_class);
/* It ends with its last operator. */
void wpk_job_end_if_over(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Forget jobs whose end is stored. */
void wpk_job_release(struct wpk_coordinator *c);
/* The job's last state is durable: it is forgotten, if it has ended. */
void wpk_job_stored(struct wpk_coordinator *coordinator, uint64_t number);
/* A job that has not ended and does the same as this one: the same operators for the same device,
 * with the same name, strategy and budget; NULL: none. */
const struct wpk_job_entry *wpk_job_find_same(const struct wpk_coordinator *coordinator,
                                              const struct wpk_job_entry *job);
/* Free what a job entry owns, and the entry. */
void wpk_job_entry_free(struct wpk_job_entry *job);

#endif
