/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make up the coordinator share: coordinator.c (jobs), search.c (searches),
 * final.c (their ends), worker.c (workers and leases), dispatch.c (what they are given).
 * Nobody else includes this, but for tests. */
#ifndef WPK_COORDINATOR_PARTS_H
#define WPK_COORDINATOR_PARTS_H

#include "coordinator/coordinator.h"

struct wpk_coordinator {
    struct wpk_job_entry **jobs; /* owned; [job_count], by priority, then number */
    uint32_t job_count;
    uint64_t job_number_next;
    struct wpk_search **searches; /* owned; [search_count] */
    uint32_t search_count;
    uint32_t search_capacity;
    uint64_t handle_next;
    struct wpk_worker **workers; /* owned; [worker_count] */
    uint32_t worker_count;
    uint64_t ticked_ns; /* the last tick; 0: none yet */
    uint64_t lease_next; /* number of the next lease */
    bool unbound;        /* operators were left over: the next tick binds them */
    /* of the step under way */
    const struct wpk_event *event;
    uint32_t opened_count; /* OPEN_SEARCH effects */
    struct wpk_effects *effects;
};

/* The next effect, to be filled in. */
struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind);
void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
    WPK_PRINTF(3, 4);
/* Zeroed memory that lives until the next step. */
void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size);

char *wpk_effect_text(struct wpk_coordinator *c, const char *text);

/* ---- coordinator.c */

/* An operator's phase changed: store it, and end the job with its last one. */
void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_entry *job, uint32_t op,
                    enum wpk_phase phase, const char *reason);
/* A job's first lease. */
void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job);

/* ---- asks.c */

void wpk_asks_fini(struct wpk_search *search);
/* The next ask; `ask` is taken, with its text. */
void wpk_asks_add(struct wpk_search *search, const struct wpk_piece *ask);
/* An ask of the window has ended: count it, and keep it if it is one of the best. */
void wpk_asks_count(struct wpk_search *search, uint32_t number);
/* Tell the strategy every ask that has ended and whose turn it is; they leave the window. */
void wpk_asks_tell(struct wpk_coordinator *c, struct wpk_search *search);
/* For an effect: in its arena. */
const struct wpk_piece *wpk_piece_copy(struct wpk_coordinator *c, const struct wpk_piece *piece,
                                       const char *text);

/* ---- search.c */

/* The name of our own provider, the first of the key's, for an effect. */
const char *wpk_search_own_provider(struct wpk_coordinator *c, const struct wpk_search *search);

/* Find or make the search of each operator that has none and that this worker can serve. */
void wpk_search_bind(struct wpk_coordinator *c, const struct wpk_worker *worker);
bool wpk_search_serves(const struct wpk_search *search, const struct wpk_worker *worker);
bool wpk_worker_suits(const struct wpk_worker *worker, const struct wpk_job_entry *job);
void wpk_search_opened(struct wpk_coordinator *c);
void wpk_search_asked(struct wpk_coordinator *c);
struct wpk_search *wpk_search_find(struct wpk_coordinator *c, uint64_t id);
struct wpk_search *wpk_search_find_handle(struct wpk_coordinator *c, uint64_t handle);
/* NULL when the search has no such work. */
struct wpk_piece *wpk_search_piece(struct wpk_search *search, wpk_work_id work);
/* Ask for more candidates, if there is room for them; true while an ASK is under way. */
bool wpk_search_want(struct wpk_coordinator *c, struct wpk_search *search, uint32_t count);
bool wpk_search_time_over(const struct wpk_search *search, uint64_t now_ns);
/* A piece of work has ended with this record. */
void wpk_search_ended(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                      const struct wpk_record *record, const struct wpk_worker *worker);
/* What did not verify cannot win any more, nor can what comes to the same code. */
void wpk_search_reject(struct wpk_search *search, const char *artifact, enum wpk_outcome outcome);
/* Go on to the next phase, if this one is over. */
void wpk_search_advance(struct wpk_coordinator *c, struct wpk_search *search);
/* The budget is the largest of the jobs that wait for it. */
void wpk_search_update_budget(struct wpk_coordinator *c, struct wpk_search *search);
/* Every operator that waits for this search. */
void wpk_search_set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                          enum wpk_phase phase, const char *reason);
/* Free searches that nobody waits for. */
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

/* ---- worker.c */

void wpk_worker_message(struct wpk_coordinator *c);
void wpk_worker_gone(struct wpk_coordinator *c);
void wpk_worker_tick(struct wpk_coordinator *c);

/* ---- dispatch.c */

/* Answer the polls that there is work for. */
void wpk_worker_serve(struct wpk_coordinator *c);
/* Lease an open piece of work. */
void wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search, struct wpk_piece *piece,
                    struct wpk_worker *worker);
/* A message of this step, to be filled in and sent. */
struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session);
void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message);

#endif
