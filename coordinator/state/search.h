/* SPDX-License-Identifier: Apache-2.0 */
/* A search: what it has asked and knows, and which phase it is in. Operators that ask the same
 * share one.
 *
 * Of a search's asks only the window between the first that was not told to the strategy and the
 * last that was asked is here; of those before it, their counts and the best ones. */
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
    uint64_t handle; /* of this struct, from 1: what effects and events name */
    struct wpk_search_key key;
    char family[WPK_ID_MAX];
    char *op; /* whole form; owned */
    double flops;
    double size_log2;         /* of the space */
    struct wpk_device device; /* of its class's first worker: the space is derived from it */
    struct wpk_policy policy;
    struct wpk_accuracy accuracy; /* of the key */
    enum wpk_phase phase;         /* WAITING: being opened */
    char reason[WPK_REASON_MAX];
    char failure[WPK_REASON_MAX / 2]; /* what the latest failed candidate's log begins with */

    /* Asks told_count to ask_count - 1, ask n at n modulo the capacity: wpk_asks_get(). */
    struct wpk_work_item *asks; /* owned */
    uint32_t ask_capacity;  /* a power of two, or 0 */
    uint32_t ask_count;
    uint32_t told_count;        /* asks told to the strategy: all before it have ended */
    struct wpk_open_list open;  /* to be built and run */
    struct wpk_open_list built; /* to be run */
    bool asking;                /* an ASK effect is under way: */
    uint32_t asked_told;        /* told_count then; */
    uint32_t asked_count;       /* for so many, */
    uint32_t promised_count;    /* of which so many are for polls that wait for them: */
    struct wpk_worker *awaiting;
    bool refused; /* the strategy wants to be told more first */
    bool exhausted;
    struct wpk_work_item vendors[WPK_PROVIDERS_MAX];
    uint64_t vendor_workers[WPK_PROVIDERS_MAX]; /* hash of the name of who timed it; 0: not known */
    uint32_t vendor_count;
    struct wpk_plain plain;

    uint32_t ok_count; /* of the ended asks */
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t leased_count; /* work items of any kind out now: it stays until they end */
    uint32_t outcomes[WPK_OUTCOME_COUNT]; /* of the failed ones, as far as it is known */
    /* With a time and an artifact, best first; of equal artifacts the first. */
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_anchor anchor;

    uint32_t candidates;       /* budget: the largest of its jobs' */
    uint64_t time_ns;          /* budget likewise */
    uint64_t elapsed_ns;       /* with work out, until `active_ns` */
    uint64_t active_ns;        /* work is out since then; 0: none is */
    uint32_t ended_asks;       /* asks of the last result */
    uint64_t kernel_id;        /* last result; 0: none */
    uint64_t served_kernel_id; /* the problem's; 0: none */
    char served_provider[WPK_PROVIDER_NAME_MAX];
    char served_artifact[WPK_ID_MAX];
    struct wpk_revoked revoked; /* neither wins nor counts */
    bool measured;              /* something was measured since it was opened */
    uint64_t cost_ns; /* device time of one of its work items, smoothed; 0: not known yet */

    struct wpk_job_op_state *ops; /* of live jobs, those that have ended too: it stays for them */
    struct wpk_claim *claims;     /* of the owners that it is worked on for; owned by claim.c */
    unsigned ready; /* stages that there is work for: bits 1 << enum wpk_queue_stage */
    bool unstarted;               /* an operator's job is still QUEUED */
    bool failing;                 /* it cannot go on: */
    char error[WPK_REASON_MAX];   /* why */
    bool broken;                  /* the store has trouble with it: FAILED, and never opened */
    bool joining;                 /* an operator was bound to it, and is WAITING to join it */
    bool recount;                 /* its budget may be another */
    struct wpk_mark marks[WPK_SEARCH_MARKS];
    struct wpk_search *released_next;
    uint32_t place;                  /* in the coordinator's array */
    struct wpk_search *problem_next; /* of the same problem */
    char key_hash[WPK_ID_MAX];

    struct wpk_final_entry entries[WPK_CONTENDERS_MAX];
    uint32_t entry_count;
    bool outdated; /* one of them is lost: the next final is held without it */
    struct wpk_work_item final;
    struct wpk_work_item verify;
    uint32_t verifying;                    /* index into entries */
    char verified_by[WPK_WORKER_NAME_MAX]; /* who tried the last one; "": it was abandoned */
    uint64_t timed_by;                     /* hash of the name of who is not to verify it, */
    struct wpk_timer timer;                /* until then */
    /* What a work id says of them: made of who takes part. A result of other contenders, from
     * before a restart or from a round before, is not one of these. */
    uint32_t final_number;
    uint32_t verify_number;
    bool concluding;                      /* a PUT_KERNEL is under way; */
    bool concluded;                       /* it was answered */
    bool serving;                         /* its kernel becomes the one that the problem serves */
    const struct wpk_final_entry *winner; /* of that kernel: of `entries`, or the plain kernel's */
    bool plain_wins; /* the last result is the plain kernel: nothing else works */
    bool plain_only; /* SEARCHING: the last result answers all who wait, but for its plain kernel */
};

struct wpk_search *wpk_search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                  const char *key_hash);
void wpk_search_free(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_opened(struct wpk_coordinator *c);
void wpk_search_asked(struct wpk_coordinator *c);
struct wpk_search *wpk_search_find(const struct wpk_coordinator *c, uint64_t id);
struct wpk_search *wpk_search_find_handle(const struct wpk_coordinator *c, uint64_t handle);
/* Has a worker of its device class been seen since it was opened? */
bool wpk_search_has_device(const struct wpk_search *search);
/* May the worker have this stage of the search's work, and be believed about it? */
bool wpk_search_trusts(const struct wpk_search *search, const struct wpk_worker *worker,
                       enum wpk_work_stage stage);
/* NULL when the search has no such work. */
struct wpk_work_item *wpk_search_work_item(struct wpk_search *search, wpk_work_id work);
/* Ask for more candidates, if there is room for them; true while an ASK is under way. */
bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count);
bool wpk_search_can_ask(const struct wpk_search *search, uint64_t now_ns);
bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns);
/* Time during which work of the search was out, until `now_ns`. */
uint64_t wpk_search_elapsed_ns(const struct wpk_search *search, uint64_t now_ns);
/* Store the counters of those that are marked for it. */
void wpk_search_store(struct wpk_coordinator *c);
/* It leaves the state if nobody needs it; its memory stays until wpk_search_free_released(). */
void wpk_search_release(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_free_released(struct wpk_coordinator *c);

#endif
