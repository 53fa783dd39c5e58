/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: an owner's interest in a search, with a rank. An owner queue holds the claims of one
 * owner in one work queue; those that there is work for are sorted by rank (claim.c). */
#ifndef WPK_COORDINATOR_STATE_CLAIM_H
#define WPK_COORDINATOR_STATE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_flow;
struct wpk_coordinator;
struct wpk_job_op_state;
struct wpk_work_queue;
struct wpk_search;

/* One owner's interest in a search, in one work queue. The rank (priority, job number, position) is
 * that of the first operator that it stands for. */
struct wpk_claim {
    struct wpk_search *search;
    struct wpk_owner_queue *owner_queue;
    struct wpk_claim *search_next;
    uint32_t op_count; /* operators that it stands for; it is freed with the last */
    int priority;
    uint64_t job_number;
    uint32_t position; /* of the operator in its job */
    bool ready;        /* there is work for it: it is in its owner queue's array */
    bool backlogged;   /* a worker can do it, and it is ready or its search awaits an ASK */
};

/* The claims of one owner in a work queue; `ready` are those that there is work for, by rank. */
struct wpk_owner_queue {
    struct wpk_flow *flow;
    struct wpk_work_queue *queue;
    uint32_t claim_count;     /* ready or not; it is freed with the last */
    struct wpk_claim **ready; /* owned; [ready_count] */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t place; /* in the work queue's array of ready owner queues */
    struct wpk_owner_queue *next;
};

/* Give the operator its claims, one in the work queue of each stage: it is worked on now. */
void wpk_claim_add(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Take the operator's claims, if it has any: it is not worked on any more. */
void wpk_claim_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Set for which stages the search has work, as bits 1 << enum wpk_queue_stage. Polls that wait for
 * this work are served at the end of the step. */
void wpk_claim_set_ready(struct wpk_coordinator *c, struct wpk_search *search, unsigned ready);
/* Update the claims of work queues that got their first available worker in this step, or lost the
 * last one. */
void wpk_claim_served(struct wpk_coordinator *c);
/* True if `a` ranks before `b`: by priority, age of the job, position and search. */
bool wpk_claim_before(const struct wpk_claim *a, const struct wpk_claim *b);

#endif
