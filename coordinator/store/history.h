/* SPDX-License-Identifier: Apache-2.0 */
/* What the store remembers, in the coordinator's terms. Writes belong to a batch (store.h), whose
 * commit reports their failures; reads outside of one see the last commit. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_H
#define WPK_COORDINATOR_STORE_HISTORY_H

#include "common/buf.h"
#include "common/json.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"

/* SQL, in a statement whose first parameter is a problem: later than any of its kernels became the
 * served one, however the clock was set since. */
#define WPK_HISTORY_SERVED_AFTER                                                                   \
    "(SELECT coalesce(max(served_at), 0) + 1 FROM kernel WHERE problem_id = ?1)"

/* ---- writing: one function for each effect */

struct wpk_history_progress {
    uint64_t search_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    struct wpk_anchor anchor;
};

/* A strategy as it was after so many tells, and what they were. */
struct wpk_history_snapshot {
    uint64_t search_id;
    const char *text;
    const char *version;
    uint32_t told_count;
    uint32_t ok_count;
    uint32_t failed_count;
    uint32_t known_count;
    uint32_t best[WPK_BEST_MAX]; /* numbers of asks, best first */
    uint32_t best_count;
};

struct wpk_history_ask {
    uint64_t search_id;
    uint64_t problem_id;
    uint32_t number;
    const char *provider;
    const char *candidate;
};

/* Who measured. */
struct wpk_history_worker {
    const char *name;     /* NULL: nobody, it was abandoned */
    const char *instance; /* of the device */
};

/* What became of an ask (`work` says which), or of a vendor's implementation. */
struct wpk_history_result {
    uint64_t problem_id;
    wpk_work_id work;
    const char *provider; /* of a vendor */
    const struct wpk_record *record;
    const char *anchor; /* of the search, that the record's ratio is to; "": none */
    struct wpk_history_worker worker;
};

/* Of a search's final. */
struct wpk_history_contender {
    uint64_t problem_id;
    uint64_t search_id;
    const char *provider;
    const char *candidate; /* "" for a vendor */
    const char *artifact_sha256;
    struct wpk_history_worker worker;
    bool outside; /* of its search's class, as its verification came out */
};

/* Find the search, or make it.
 *   owns    the caller frees what `out` holds, as wpk_opened_free does */
void wpk_history_open_search(struct wpk_store *store, const struct wpk_search *search,
                             struct wpk_opened *out);
void wpk_history_set_search(struct wpk_store *store, const struct wpk_history_progress *progress);
/* The artifacts of the best `kept_max` are kept for it, those of the last snapshot no more. */
void wpk_history_put_snapshot(struct wpk_store *store, const struct wpk_history_snapshot *snapshot,
                              uint32_t kept_max);
/* Record that a candidate is asked. True: history knows its result, and the ask has ended. */
bool wpk_history_put_ask(struct wpk_store *store, const struct wpk_history_ask *ask,
                         struct wpk_trial_summary *known);
/* Record a result, its measurement, and that the ask has it. What is settled stays as it is. */
void wpk_history_put_trial(struct wpk_store *store, const struct wpk_history_result *result);
/* Record a contender's times in a final. */
void wpk_history_put_times(struct wpk_store *store, const struct wpk_history_contender *contender,
                           const struct wpk_timing *timing);
/* Record what became of a contender of our own on inputs that nobody saw before: its times, and its
 * error where that is outside the class, so that the class's searches pass it over; or, when it was
 * rejected, that its trial, and every other of the same artifact, failed after all. */
void wpk_history_put_verified(struct wpk_store *store,
                              const struct wpk_history_contender *contender,
                              const struct wpk_record *record);
/* Record a kernel, as the search's result and, if `serve`, as what the problem serves; but one that
 * was revoked while its search was under way is recorded as revoked. */
uint64_t wpk_history_put_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                const char *document);
/* Name the plain kernel in all kernels of its problem. */
void wpk_history_name_plain(struct wpk_store *store, const struct wpk_effect *put);
/* Record one that lost in the same final, so that it can follow what is revoked: served by nobody.
 * 0: the class has it already, or it was revoked. */
uint64_t wpk_history_keep_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                 const char *document);
/* One that is there is used once more. */
void wpk_history_put_artifact(struct wpk_store *store, const char *sha256, size_t size);
/* Somebody needs it: written once in a quarter of an hour. */
/* Nobody runs it again: unless somebody keeps it, it is the next to go. */
void wpk_history_spend_artifact(struct wpk_store *store, const char *sha256);
/* Its file is gone, or damaged: there is none any more. */
void wpk_history_lose_artifact(struct wpk_store *store, const char *sha256);
void wpk_history_use_artifact(struct wpk_store *store, const char *sha256);
/* One more (1) or one fewer (-1) has a reason to keep it; "" is nobody's. */
void wpk_history_keep_artifact(struct wpk_store *store, const char *sha256, int more);
/* Forget those that nobody keeps, the longest unused first, until as many bytes are free. Returns
 * how many, `max` at most: their files are to be removed after the commit. */
uint32_t wpk_history_prune_artifacts(struct wpk_store *store, uint64_t bytes_wanted,
                                     char (*pruned)[WPK_ID_MAX], uint32_t max);
uint64_t wpk_history_artifact_bytes(struct wpk_store *store);
/* Remove files that no row names, as a crash between the two leaves them, and what was begun to be
 * written; returns how many no row names. For when nobody writes. */
uint32_t wpk_history_sweep_artifacts(struct wpk_store *store, const char *data_dir);

void wpk_history_set_owner(struct wpk_store *store, const struct wpk_owner_event *owner);
/* NONE: there is none any more. */
void wpk_history_set_admin_state(struct wpk_store *store, const char *name,
                                 enum wpk_admin_state state, const char *reason);

/* ---- reading */

/* The asks of a search from number `first` on, in their order, with what became of them.
 *   owns    the caller frees *asks with wpk_work_items_free; both start as nothing */
void wpk_history_asks(struct wpk_store *store, uint64_t search_id, uint32_t first,
                      struct wpk_work_item **asks, uint32_t *count);
void wpk_history_asks_between(struct wpk_store *store, uint64_t search_id, uint32_t first,
                              uint32_t end, struct wpk_work_item **asks, uint32_t *count);

/* What a search's strategy goes on from: its snapshot, and the asks from the first one that it had
 * not been told. */
struct wpk_history_log {
    struct wpk_buf snapshot; /* empty: there is none, and `first` is 0 */
    char version[64];        /* of the snapshot's text */
    uint32_t first;
    uint32_t ok_count; /* of those before */
    uint32_t failed_count;
    uint32_t known_count;
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_work_item *asks; /* [count] */
    uint32_t count;
};
/* `whole`: as if there were no snapshot.
 *   owns    the caller calls wpk_history_log_fini */
void wpk_history_read_log(struct wpk_store *store, uint64_t search_id, bool whole,
                          struct wpk_history_log *out);
void wpk_history_log_fini(struct wpk_history_log *log);

/* False when there is no such trial. A vendor's candidate is "". *id may be NULL. */
WPK_MUST_CHECK bool wpk_history_find_trial(struct wpk_store *store, uint64_t problem_id,
                                           const char *provider, const char *candidate,
                                           struct wpk_trial_summary *out, uint64_t *id);
/* The trial with this id, as it was timed with this anchor if it was; one that is not there counts
 * as abandoned. */
struct wpk_trial_summary wpk_history_trial(struct wpk_store *store, uint64_t id,
                                           const char *anchor);
/* Need it not be run again? So if it failed, or can be an answer: a candidate of our own that was
 * stopped early or left no artifact cannot, and what was abandoned may be its workers' fault. */
bool wpk_history_settled(const struct wpk_trial_summary *trial, const char *candidate);
/* The same as find_trial, for trials that are settled. */
WPK_MUST_CHECK bool wpk_history_known_trial(struct wpk_store *store, uint64_t problem_id,
                                            const char *provider, const char *candidate,
                                            struct wpk_trial_summary *out, uint64_t *id);
/* What a vendor chose for the problem; appends nothing when it was not tried. */
void wpk_history_detail(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_buf *out);

bool wpk_history_has_artifact(struct wpk_store *store, const char *sha256);
/* Is it a kernel's, and was every kernel with it revoked? */
bool wpk_history_artifact_revoked(struct wpk_store *store, const char *sha256);

/* Was this revoked for the problem: its shared object, or without one ("") the vendor's? */
bool wpk_history_is_revoked(struct wpk_store *store, uint64_t problem_id, const char *provider,
                            const char *artifact_sha256);

/* The kernel's document, appended. False when there is none, or it was revoked. */
WPK_MUST_CHECK bool wpk_history_kernel(struct wpk_store *store, uint64_t kernel_id,
                                       struct wpk_buf *out);

/* For the start: what each owner has used, and what was ordered of workers. */
typedef void (*wpk_history_owner_fn)(void *user, const struct wpk_owner_event *owner);
void wpk_history_owners(struct wpk_store *store, wpk_history_owner_fn fn, void *user);
typedef void (*wpk_history_admin_state_fn)(void *user, const char *worker,
                                           enum wpk_admin_state state, const char *reason);
void wpk_history_admin_states(struct wpk_store *store, wpk_history_admin_state_fn fn, void *user);

/* Write a page of a job's trials as JSON objects into the array that `w` is in: vendors first, then
 * asks. `names` [op_count] are the operators' names, `op` one of them or -1 for all. *place is
 * where to begin, and where to go on; false when there are no more. */
struct wpk_history_place {
    uint32_t position; /* of the operator */
    int64_t index;     /* of the ask; below 0: of the vendors */
};
bool wpk_history_list_trials(struct wpk_store *store, uint64_t job_number, int op,
                             const char *const *names, uint32_t op_count, int page_size,
                             struct wpk_history_place *place, struct wpk_json_writer *w);

#endif
