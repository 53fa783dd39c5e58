/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make up the coordinator share: coordinator.c (events), job.c (jobs), bind.c
 * (which search an operator has), search.c (searches), course.c (their phases), asks.c (their
 * asks), anchor.c (what these are timed with), plain.c (the kernel that runs everywhere), final.c
 * and verdict.c (their ends), revoked.c (what operators change of kernels), worker.c (sessions),
 * result.c (what workers bring), outlier.c (whose times differ), dispatch.c (what they are given),
 * group.c, lease.c and fair.c. Nobody else includes this, but for tests and history_search.c. */
#ifndef WPK_COORDINATOR_STATE_PARTS_H
#define WPK_COORDINATOR_STATE_PARTS_H

#include "coordinator/state/coordinator.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/group.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/outlier.h"
#include "coordinator/state/table.h"

#define WPK_ORDERS_MAX 4096 /* workers that an operator gave an order for */

/* An operator's order for a worker, whether it is there or not. */
struct wpk_order_entry {
    char name[WPK_WORKER_NAME_MAX];
    enum wpk_worker_order order; /* not NONE */
    char reason[WPK_REASON_MAX];
};

struct wpk_coordinator {
    struct wpk_job_entry **jobs; /* owned; [job_count], by number; some have ended */
    uint32_t job_count;
    uint32_t live_count;
    struct wpk_job_entry **advancing; /* [advancing_count]: an operator has ended in this step */
    uint32_t advancing_count;
    uint32_t advancing_capacity;
    uint32_t unbound_count; /* jobs with an operator that waits for a device */
    bool bind_again;        /* and not for a worker to come: the next tick tries them */
    bool jobs_stored;       /* one that has ended may be forgotten */
    struct wpk_table jobs_by_id;
    struct wpk_table jobs_by_number;
    uint64_t job_number_next;

    struct wpk_search **searches; /* owned; [search_count], in no order */
    uint32_t search_count;
    uint32_t search_capacity;
    struct wpk_table searches_by_id; /* those that are open */
    struct wpk_table searches_by_handle;
    struct wpk_table searches_by_key;
    struct wpk_table searches_by_problem; /* the first of each */
    uint64_t handle_next;
    struct wpk_search **closing; /* [closing_count]: nobody may need them any more */
    uint32_t closing_count;
    uint32_t closing_capacity;
    struct wpk_search **dirty; /* [dirty_count]: their counters are to be stored */
    uint32_t dirty_count;
    uint32_t dirty_capacity;
    struct wpk_timers search_timers;

    struct wpk_worker **workers; /* owned; [worker_count], in no order */
    uint32_t worker_count;
    struct wpk_table workers_by_session;
    struct wpk_table workers_by_name;
    struct wpk_table workers_by_peer; /* the first of each connection */
    struct wpk_timers worker_timers;
    struct wpk_worker *polled; /* its poll came in this step */
    struct wpk_table orders;   /* owned; struct wpk_order_entry by name */
    uint32_t lease_count;
    uint64_t lease_next;            /* number of the next lease */
    struct wpk_lease *leases_spare; /* owned; free ones */

    struct wpk_table classes;  /* owned; by text */
    struct wpk_group **groups; /* owned; [group_count] */
    uint32_t group_count;
    uint32_t group_capacity;
    struct wpk_table groups_by_key;
    struct wpk_pool **pools; /* owned; [pool_count] */
    uint32_t pool_count;
    uint32_t pool_capacity;
    struct wpk_table pools_by_key;
    struct wpk_pool *dirty_pools;
    bool unserved; /* the last worker of a pool has gone: a search may wait for it in vain */

    struct wpk_owner **owners; /* owned; [owner_count] */
    uint32_t owner_count;
    uint32_t owner_capacity;
    struct wpk_table owners_by_name;
    struct wpk_owner **owners_dirty; /* [owners_dirty_count] */
    uint32_t owners_dirty_count;
    uint32_t owners_dirty_capacity;
    uint32_t owner_weight; /* of those that are not named */
    uint32_t owner_jobs_max;
    uint64_t mark; /* of wpk_fair_settle() */

    bool draining;      /* wpkd is about to end */
    bool halted;        /* its store cannot be written */
    bool builds_held;   /* what is built has no room: who only builds waits */
    uint64_t ticked_ns; /* the last tick; 0: none yet */
    uint64_t stored_ns; /* counters were stored */
    uint64_t step;      /* its number */
    /* of the step under way */
    const struct wpk_event *event;
    uint32_t opened_count; /* OPEN_SEARCH effects */
    struct wpk_effects *effects;
};

/* Room for one more behind `count` items of `size` bytes. */
void *wpk_grow(void *items, uint32_t count, uint32_t *capacity, size_t size);

/* The next effect, to be filled in. */
struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind);
void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Likewise, of what somebody is to look at. */
void wpk_effect_warn(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Zeroed memory that lives as long as the effects. */
void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size);
char *wpk_effect_text(struct wpk_coordinator *c, const char *text);
/* Answer the event's request with a problem. */
void wpk_answer_problem(struct wpk_coordinator *c, int status, wpk_err err, uint32_t retry_after_s,
                        const char *text);

/* ---- job.c */

void wpk_job_submit(struct wpk_coordinator *c);
void wpk_job_restore(struct wpk_coordinator *c);
void wpk_job_cancel(struct wpk_coordinator *c);
void wpk_job_pause(struct wpk_coordinator *c);
void wpk_job_resume(struct wpk_coordinator *c);
/* An operator's phase changed: store it, and end the job with its last one. */
void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_op_state *op, enum wpk_phase phase,
                    const char *reason);
/* A job's first lease. */
void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Work on the next operators of the jobs of which one has ended. */
void wpk_job_advance(struct wpk_coordinator *c);
/* Forget jobs whose end is stored. */
void wpk_job_sweep(struct wpk_coordinator *c);

/* ---- bind.c */

bool wpk_group_suits(const struct wpk_group *group, const struct wpk_job_entry *job);
/* Bind the job's next operators, as far as there are devices for them, and work on the first. */
void wpk_bind_job(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Those that wait for a device, of this group; NULL: of any. */
void wpk_bind_all(struct wpk_coordinator *c, const struct wpk_group *group);
/* The operator joins its search, which is open. */
void wpk_bind_join(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* The operator does not refer to its search any more. */
void wpk_bind_leave(struct wpk_coordinator *c, struct wpk_job_op_state *op);

/* ---- anchor.c */

#define WPK_ANCHORLESS_MAX 2 /* candidates leased at a time while there is nothing to time with */

/* May this candidate's time be told: was it timed in turns with what the search's are, or can it be
 * that? */
bool wpk_anchor_fits(const struct wpk_search *search, const struct wpk_record *record);
/* The record with its ratio to the search's anchor, which it becomes where there is none. */
const struct wpk_record *wpk_anchor_apply(struct wpk_coordinator *c, struct wpk_search *search,
                                          const struct wpk_record *record);
/* Choose a stand-in among the best. */
void wpk_anchor_replace(struct wpk_coordinator *c, struct wpk_search *search);
/* Likewise, if this is what the search's candidates are timed with: nobody can have it any more. */
void wpk_anchor_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* Did the anchor fail beside the candidate of this record? Then another one takes its place. */
bool wpk_anchor_failed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_record *record);
/* Are as many candidates out as may be while there is no anchor? */
bool wpk_anchor_waits(const struct wpk_search *search);

/* ---- asks.c */

void wpk_asks_init(struct wpk_search *search);
void wpk_asks_fini(struct wpk_search *search);
/* The next ask; `ask` is taken, with its text. */
void wpk_asks_add(struct wpk_search *search, const struct wpk_piece *ask);
/* An ask of the window is open: last of its list, or first; or is not any more. */
void wpk_asks_open(struct wpk_search *search, uint32_t number, bool first);
void wpk_asks_unopen(struct wpk_search *search, uint32_t number);
/* The first of the list that is not to be tried elsewhere first; WPK_OPEN_END: none. */
uint32_t wpk_asks_next(const struct wpk_search *search, const struct wpk_open_list *list,
                       const struct wpk_worker *worker);
/* An ask of the window has ended: count it, and keep it if it is one of the best. */
void wpk_asks_count(struct wpk_search *search, uint32_t number, uint64_t worker);
/* Tell the strategy every ask that has ended and whose turn it is; they leave the window. */
void wpk_asks_tell(struct wpk_coordinator *c, struct wpk_search *search);
struct wpk_trial_summary wpk_trial_summarize(const struct wpk_record *record);
/* For an effect: in its arena. */
const struct wpk_piece *wpk_piece_copy(struct wpk_coordinator *c, const struct wpk_piece *piece,
                                       const char *text);
void wpk_built_free(struct wpk_built *built);

/* ---- search.c */

struct wpk_search *wpk_search_new(struct wpk_coordinator *c, const struct wpk_search_key *key,
                                  const char *key_hash);
void wpk_search_free(struct wpk_coordinator *c, struct wpk_search *search);
/* The name of our own provider, the first of the key's, for an effect. */
const char *wpk_search_own_provider(struct wpk_coordinator *c, const struct wpk_search *search);
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
struct wpk_piece *wpk_search_piece(struct wpk_search *search, wpk_work_id work);
/* Ask for more candidates, if there is room for them; true while an ASK is under way. */
bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count);
bool wpk_search_can_ask(const struct wpk_search *search, uint64_t now_ns);
bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns);
/* A piece of work has ended with this record. */
void wpk_search_ended(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                      const struct wpk_record *record, const struct wpk_worker *worker);
/* What did not verify cannot win any more, nor can what comes to the same code. */
void wpk_search_reject(struct wpk_search *search, const char *artifact, enum wpk_outcome outcome);
/* It is not there to be timed. False where it is none of the best. */
bool wpk_search_lose(struct wpk_search *search, const char *artifact);
/* Go on to the next phase, if this one is over, and note what there is to do. */
void wpk_search_advance(struct wpk_coordinator *c, struct wpk_search *search);
/* Answer those who wait with the last result, and its plain kernel if there is one now. */
void wpk_search_answer_again(struct wpk_coordinator *c, struct wpk_search *search);
/* Note what there is to do for whom. */
void wpk_search_refresh(struct wpk_coordinator *c, struct wpk_search *search);
/* The budget is the largest of the jobs that wait for it. */
void wpk_search_update_budget(struct wpk_search *search);
/* What a finished search holds is enough for the job. */
bool wpk_search_covers(const struct wpk_search *search, const struct wpk_job_entry *job);
/* Every operator that waits for this search. */
void wpk_search_set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                          enum wpk_phase phase, const char *reason);
/* The search has its result, DONE or FAILED: for those whose budget it is of. For others it goes
 * on. */
void wpk_search_conclude(struct wpk_coordinator *c, struct wpk_search *search, enum wpk_phase phase,
                         const char *reason);
/* Its counters are to be stored before long. */
void wpk_search_touch(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_store(struct wpk_coordinator *c);
/* It may be that nobody needs it any more: it goes with the next step. */
void wpk_search_release(struct wpk_coordinator *c, struct wpk_search *search);
void wpk_search_sweep(struct wpk_coordinator *c);

/* ---- final.c */

void wpk_final_fini(struct wpk_search *search);
void wpk_final_start(struct wpk_coordinator *c, struct wpk_search *search);
/* times [entry_count], or NULL when it did not take place */
void wpk_final_timed(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_timing *times, const struct wpk_worker *worker);
void wpk_final_verified(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_record *record, const struct wpk_worker *worker);
void wpk_final_kernel_put(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* Is the worker one that must not verify what waits for that, or what another verifies? */
bool wpk_final_excludes(const struct wpk_search *search, const struct wpk_worker *worker);

/* Go on without this shared object, which nobody can have any more: it is measured again when it is
 * asked again. */
void wpk_final_lost(struct wpk_coordinator *c, struct wpk_search *search, const char *artifact);
/* Hold a final that nobody holds now with others, if one that was to take part is lost. */
bool wpk_final_renew(struct wpk_coordinator *c, struct wpk_search *search);
/* Go on with what the problem serves now, and without what was revoked. */
void wpk_final_changed(struct wpk_coordinator *c, struct wpk_search *search,
                       const struct wpk_kernel_event *event);

/* ---- verdict.c */

#define WPK_NOT_STORED UINT64_MAX /* id of a kernel that its KERNEL_PUT will name */

/* The fastest contender of those that count and were not rejected; NULL: there is none. */
struct wpk_final_entry *wpk_verdict_fastest(struct wpk_search *search,
                                            bool (*counts)(const struct wpk_final_entry *));
/* Choose the winner and hand it to the store; false when the final is to be held again. */
bool wpk_verdict_reach(struct wpk_coordinator *c, struct wpk_search *search);
/* The winner is what the problem serves from now on, as this kernel. */
void wpk_verdict_serve(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id);
/* How an operator ends whose search has a kernel: failed where nothing of our own works, the plain
 * kernel included. `reason`: why the answer is no candidate of the search; "" where it is one. */
enum wpk_phase wpk_verdict_phase(const struct wpk_search *search, char reason[WPK_REASON_MAX]);

/* ---- plain.c */

/* What the store knew of it; `opened` keeps nothing. */
void wpk_plain_open(struct wpk_search *search, struct wpk_opened *opened);
void wpk_plain_fini(struct wpk_search *search);
/* Stages that a worker can be given of it: bits 1 << enum wpk_pool_stage. */
unsigned wpk_plain_ready(const struct wpk_search *search);
/* Does the end of the search wait for it? It does not where no worker is there to build it. */
bool wpk_plain_awaited(const struct wpk_search *search);
/* Its candidate has ended with this record: it is the plain kernel, or the next one is tried. */
void wpk_plain_ended(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record, const struct wpk_worker *worker);
/* Is there one, verified and timed? */
bool wpk_plain_works(const struct wpk_search *search);
/* As what is recorded beside a winner, or as the winner; NULL: there is none. */
const struct wpk_final_entry *wpk_plain_entry(struct wpk_search *search);
/* This shared object was revoked: if it is the plain kernel, the next candidate is tried. */
void wpk_plain_revoked(struct wpk_search *search, const char *artifact);

/* ---- revoked.c */

/* `artifact` "": the vendor's own. */
bool wpk_revoked_has(const struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* What there is no room for is left out. */
void wpk_revoked_put(struct wpk_revoked *revoked, const char *provider, const char *artifact);
/* A worker's record of something revoked, as one that failed; of others as it is. `provider` is a
 * vendor's, "" of our own. */
const struct wpk_record *wpk_revoked_refuse(struct wpk_coordinator *c,
                                            const struct wpk_search *search, const char *provider,
                                            const struct wpk_record *record);
void wpk_revoked_change(struct wpk_coordinator *c);

/* ---- worker.c */

void wpk_worker_message(struct wpk_coordinator *c);
void wpk_worker_gone(struct wpk_coordinator *c);
void wpk_worker_tick(struct wpk_coordinator *c);
void wpk_worker_set(struct wpk_coordinator *c);
/* By the worker's own name or by its device's instance. */
bool wpk_worker_is_named(const struct wpk_worker *worker, const char *name);
void wpk_worker_restore_order(struct wpk_coordinator *c);
void wpk_worker_end(struct wpk_coordinator *c);
void wpk_worker_drain(struct wpk_coordinator *c);
void wpk_worker_free(struct wpk_worker *worker);
/* When it is to be looked at. */
void wpk_worker_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker);
/* The answer to its poll, which is empty when nothing was put into `message`. */
void wpk_worker_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                       const struct wpk_message *message);

/* ---- result.c */

void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker);
/* It has had its attempts. `why`: the last one came to nothing; NULL: its worker was lost. */
void wpk_result_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                        const char *why);

/* ---- dispatch.c */

/* Give work to the polls that wait for it, where there is some. */
void wpk_dispatch(struct wpk_coordinator *c);
/* A message of this step, to be filled in and sent. */
struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session);
void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message);
/* Answer the event's message. */
void wpk_reply_error(struct wpk_coordinator *c, wpk_err err, const char *text);
void wpk_reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count);

#endif
