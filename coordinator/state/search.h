/* SPDX-License-Identifier: Apache-2.0 */
/* Searches. A search has its asks, its results and a phase. Operators that ask the same share one.
 *
 * Only the window of a search's asks is in memory: from the first one that was not told to the
 * strategy to the last one. Of the asks before it, their counts and the best ones are kept. */
#ifndef WPK_COORDINATOR_STATE_SEARCH_H
#define WPK_COORDINATOR_STATE_SEARCH_H

#include "coordinator/state/anchor.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/final.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/phase.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/revoked.h"
#include "coordinator/state/search_key.h"
#include "coordinator/state/timer.h"

struct wpk_job_op_state;
struct wpk_claim;

struct wpk_search {
    uint64_t id; /* in the store; 0 until opened */
    uint64_t problem_id;
    uint64_t handle; /* from 1; effects and events name the search by it */
    struct wpk_search_key key;
    char family[WPK_ID_MAX];
    char *op; /* the operator in whole form; owned */
    double flops;             /* of one call */
    double bytes;             /* of its inputs, constants and outputs */
    double size_log2;         /* of the space */
    struct wpk_device device; /* the space is derived from it; all 0: no worker was there yet */
    struct wpk_policy policy;
    struct wpk_accuracy accuracy; /* class of the key */
    enum wpk_search_phase phase;
    char reason[WPK_REASON_MAX];
    char failure[WPK_REASON_MAX / 2]; /* first line of the latest failed candidate's log */

    /* The window: asks told_count to ask_count - 1, ask n at n modulo the capacity. */
    struct wpk_work_item *asks; /* owned; wpk_asks_get() */
    uint32_t ask_capacity;      /* a power of two, or 0 */
    uint32_t ask_count;
    uint32_t told_count;         /* asks told to the strategy, in their order */
    struct wpk_open_list open;   /* asks to be built and run */
    struct wpk_open_list built;  /* asks to be run */
    uint32_t asked_count;        /* candidates that an ASK effect is for; 0: none is under way */
    uint32_t asked_told;         /* told_count at the ASK */
    uint32_t promised_count;     /* of these, candidates for polls that await the answer */
    struct wpk_worker *awaiting; /* workers of these polls */
    uint32_t refused_told;       /* the strategy proposes nothing until it is told more than this;
                                  * UINT32_MAX: it does */
    bool exhausted;              /* the strategy has no more candidates */
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint64_t vendor_workers[WPK_PROVIDERS_MAX]; /* name hash of each one's worker; 0: unknown */
    uint32_t vendor_count;
    struct wpk_plain plain;

    uint32_t ok_count; /* ended asks */
    uint32_t failed_count;
    uint32_t known_count;                 /* of both, asks whose result the history had */
    uint32_t leased_count;                /* leases on it: it stays until they end */
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of failed asks, as far as they are known */
    /* Asks with a time and an artifact, best first; of equal artifacts the first. */
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_anchor anchor;

    uint32_t candidates;       /* budget: the largest of its jobs' that go on */
    uint64_t time_ns;          /* budget: the largest of its jobs' that go on */
    uint64_t elapsed_ns;       /* time with leases, until `active_ns` */
    uint64_t active_ns;        /* it has had leases since then; 0: it has none */
    uint32_t ended_asks;       /* asks that had ended at the last result */
    uint64_t kernel_id;        /* the last result; 0: none */
    uint64_t served_kernel_id; /* the problem serves it in this accuracy class; 0: none */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* of the problem: neither wins nor counts */
    bool measured;              /* something was measured since it was opened */
    uint64_t cost_ns;           /* smoothed device time of its leases; 0: not known yet */

    struct wpk_job_op_state *ops; /* of jobs in the state, ended ones too: it stays for them */
    struct wpk_claim *claims;     /* owned by claim.c */
    unsigned ready;               /* stages with work: bits 1 << enum wpk_queue_stage */
    bool unstarted;               /* an operator's job is still QUEUED */
    bool ops_changed;             /* operators are to join it, its budget is to be computed again */
    char error[WPK_REASON_MAX]; /* it ends FAILED in this step, for this reason; "": it does not */
    struct wpk_mark marks[WPK_SEARCH_MARKS];
    struct wpk_search *released_next;
    uint32_t place;                  /* in the coordinator's array */
    struct wpk_search *problem_next; /* next search of the same problem */
    char key_hash[WPK_ID_MAX];

    struct wpk_final_entry entries[WPK_CONTENDERS_MAX];
    uint32_t entry_count;
    bool heat;      /* the entries and `final` are of a heat: heat.h */
    uint32_t heats; /* the next heat is due at WPK_HEAT_FIRST << heats results */
    struct wpk_work_item final;
    struct wpk_work_item verify;
    uint32_t verifying;                    /* index into entries */
    char verified_by[WPK_WORKER_NAME_MAX]; /* the last one's worker; "": it was abandoned */
    uint64_t timed_by;                     /* name hash of the worker that must not verify it */
    struct wpk_timer timer;                /* until then `timed_by` is not given it */
    /* Index in the work id of `final` and `verify`: a hash of the contenders. So a result for other
     * contenders, from before a restart or of an earlier final, is recognised. */
    uint32_t final_number;
    uint32_t verify_number;
    const struct wpk_final_entry *winner; /* of the PUT_KERNEL: in `entries`, or the plain kernel */
    bool serving;                         /* the problem is to serve the winner */
    bool plain_wins; /* the last result is the plain kernel: nothing else works */
};

struct wpk_search *wpk_search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                  const char *key_hash);
void wpk_search_free(struct wpk_coordinator *c, struct wpk_search *search);
/* Handlers of events: the answer to an OPEN_SEARCH; to an ASK. */
void wpk_search_opened(struct wpk_coordinator *c);
void wpk_search_asked(struct wpk_coordinator *c);
/* The search with this id; with this handle. NULL: there is none. */
struct wpk_search *wpk_search_find(const struct wpk_coordinator *c, uint64_t id);
struct wpk_search *wpk_search_find_handle(const struct wpk_coordinator *c, uint64_t handle);
/* True if `device` is set. */
bool wpk_search_has_device(const struct wpk_search *search);
/* True if the store refused the search: it FAILED, and is never opened. */
bool wpk_search_is_broken(const struct wpk_search *search);
/* True if the worker may do this stage of the search's work, and its results count. */
bool wpk_search_trusts(const struct wpk_search *search, const struct wpk_worker *worker,
                       enum wpk_work_stage stage);
/* The search's work item with this id; NULL: it has none. */
struct wpk_work_item *wpk_search_work_item(struct wpk_search *search, wpk_work_id work);
/* Ask the strategy for up to `count` candidates, if it can be. True if an ASK is under way. */
bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count);
/* True if the phase, the budget, the window and the strategy allow an ASK. */
bool wpk_search_can_ask(const struct wpk_search *search, uint64_t now_ns);
bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns);
/* Time during which the search had leases, until `now_ns`. */
uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns);
/* Store the counters of searches that are marked for it. */
void wpk_search_store(struct wpk_coordinator *c);
/* Take a search that is not needed out of the state, and keep its memory until the next call of
 * wpk_search_free_released(). */
void wpk_search_release(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_free_released(struct wpk_coordinator *c);

#endif
