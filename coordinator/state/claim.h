/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: for whom a search is worked on, and with which rank; and an owner queue, where
 * those that there is work for lie sorted (claim.c). */
#ifndef WPK_COORDINATOR_STATE_CLAIM_H
#define WPK_COORDINATOR_STATE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_flow;
struct wpk_coordinator;
struct wpk_job_op_state;
struct wpk_work_queue;
struct wpk_search;

/* One owner's interest in a search: rank is of the first of his operators that wait for it. */
struct wpk_claim {
    struct wpk_search *search;
    struct wpk_owner_queue *owner_queue;
    struct wpk_claim *search_next;
    uint32_t op_count; /* it is freed with the last */
    int priority;
    uint64_t job_number;
    uint32_t position; /* of the operator */
    bool ready;        /* in its owner queue's array */
    bool backlogged;   /* that, or will be with the answer to an ASK */
};

/* The claims of one owner in a work queue that there is work for, by rank. */
struct wpk_owner_queue {
    struct wpk_flow *flow;
    struct wpk_work_queue *queue;
    uint32_t claim_count;     /* ready or not: it is freed with the last */
    struct wpk_claim **ready; /* owned; [ready_count] */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t place; /* in the work queue's array of those that are ready */
    struct wpk_owner_queue *next;
};

/* The operator is worked on from now on, or not any more. */
void wpk_claim_add(struct wpk_coordinator *c, struct wpk_job_op_state *op);
void wpk_claim_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Note which stages there is work for; those who wait for it are served at the end of the step. */
void wpk_claim_set_ready(struct wpk_coordinator *c, struct wpk_search *search, unsigned ready);
/* Note for which work queues' work there is somebody now, or nobody any more. */
void wpk_claim_served(struct wpk_coordinator *c);
/* Does `a` come before `b`, of one owner? */
bool wpk_claim_before(const struct wpk_claim *a, const struct wpk_claim *b);

#endif
