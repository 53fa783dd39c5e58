/* SPDX-License-Identifier: Apache-2.0 */
/* The history in the coordinator's terms. Writes belong to a batch (store.h), whose commit reports
 * their failures; reads outside of a batch see the last commit. */
#ifndef WPK_COORDINATOR_STORE_HISTORY_H
#define WPK_COORDINATOR_STORE_HISTORY_H

#include "common/buf.h"
#include "common/json.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"
#include "schema/accuracy.h"
#include "schema/record.h"

/* SQL in a statement whose first parameter is a problem: a time after every served_at of its
 * kernels, whatever the clock says. */
#define WPK_HISTORY_SERVED_AFTER                                                                   \
    "(SELECT coalesce(max(served_at), 0) + 1 FROM kernel WHERE problem_id = ?1)"

/* ---- writing */

struct wpk_history_progress {
    uint64_t search_id;
    uint64_t elapsed_ns;
    uint32_t ended_asks;
    bool exhausted;
    struct wpk_anchor anchor;
};

/* The state of a strategy after `told_count` tells, and counts of those. */
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
    const char *source; /* of the candidate */
};

/* The worker that measured a trial. */
struct wpk_history_worker {
    const char *name;     /* NULL: none, the trial was abandoned */
    const char *instance; /* of the device */
};

/* The result of the ask that `work` names, or of a vendor's implementation. */
struct wpk_history_result {
    uint64_t problem_id;
    wpk_work_id work;
    const char *provider; /* of a vendor */
    const struct wpk_record *record;
    const char *anchor; /* the search's anchor, which the record's ratio is to; "": none */
    struct wpk_history_worker worker;
};

/* A contender of a search's final. */
struct wpk_history_contender {
    uint64_t problem_id;
    uint64_t search_id;
    const char *provider;
    const char *candidate; /* "" for a vendor */
    const char *artifact_sha256;
    struct wpk_history_worker worker;
    bool outside; /* by its verification, its error is outside the search's class */
};

#define WPK_HISTORY_NAMED_MAX 2
/* Find the artifacts with which the search may end without building anything: that of its last
 * result, and that of the served kernel. Their files should be checked before it is opened.
 *   shape  out: different hashes; "" for none */
void wpk_history_name_artifacts(struct wpk_store *store, const struct wpk_search *search,
                                char out[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX]);
/* Find the search, or create it.
 *   owns    the caller frees the members of `out`, as wpk_opened_free does */
void wpk_history_open_search(struct wpk_store *store, const struct wpk_search *search,
                             struct wpk_opened *out);
void wpk_history_set_search(struct wpk_store *store, const struct wpk_history_progress *progress);
/* Store a snapshot. The artifacts of its best `kept_max` are kept from now on, instead of those of
 * the last snapshot. */
void wpk_history_put_snapshot(struct wpk_store *store, const struct wpk_history_snapshot *snapshot,
                              uint32_t kept_max);
/* Record an ask. True: the history has its result, which *known gets, and the ask has ended. */
bool wpk_history_put_ask(struct wpk_store *store, const struct wpk_history_ask *ask,
                         struct wpk_trial_summary *known);
/* Record a result with its measurement, and end its ask. A settled trial keeps its outcome. */
void wpk_history_put_trial(struct wpk_store *store, const struct wpk_history_result *result);
/* Record a contender's times in a final. */
void wpk_history_put_times(struct wpk_store *store, const struct wpk_history_contender *contender,
                           const struct wpk_timing *timing);
/* Record a contender's verification on fresh inputs. If it was ok: its times, and its error if that
 * is outside the class, so that the class's searches skip it. If not: its outcome, for all trials
 * of the problem with its artifact. */
void wpk_history_put_verified(struct wpk_store *store,
                              const struct wpk_history_contender *contender,
                              const struct wpk_record *record);
/* Record a kernel as the search's result; returns its id. The class serves it if the effect says so
 * or the class serves none, but not beside a pinned kernel, nor if it was revoked meanwhile. */
uint64_t wpk_history_put_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                const char *document);
/* Name the plain kernel in all kernels of its problem. */
void wpk_history_name_plain(struct wpk_store *store, const struct wpk_effect *put);
/* Record a kernel that lost in the same final, unserved, so that it can replace a revoked one.
 * Returns its id; 0: the class has it already, or it was revoked. */
uint64_t wpk_history_keep_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                 const char *document);
/* Record an artifact. One that is recorded already is marked as used. */
void wpk_history_put_artifact(struct wpk_store *store, const char *sha256, size_t size);
/* Mark an artifact as not needed for a run any more: unless it is kept, it is pruned next. */
void wpk_history_spend_artifact(struct wpk_store *store, const char *sha256);
/* Forget an artifact whose file is gone or damaged. */
void wpk_history_lose_artifact(struct wpk_store *store, const char *sha256);
/* Mark an artifact as used now; the row changes at most once in a quarter of an hour. */
void wpk_history_use_artifact(struct wpk_store *store, const char *sha256);
/* Count one more (1) or one fewer (-1) reason to keep an artifact; "": none is meant. */
void wpk_history_keep_artifact(struct wpk_store *store, const char *sha256, int more);
/* Forget artifacts that are not kept, no kernel's and unused for an hour, the longest unused first,
 * until `bytes_wanted` are free. Returns their number, at most `max`; the caller removes the files
 * after the commit. */
uint32_t wpk_history_prune_artifacts(struct wpk_store *store, uint64_t bytes_wanted,
                                     char (*pruned)[WPK_ID_MAX], uint32_t max);
uint64_t wpk_history_artifact_bytes(struct wpk_store *store);
/* Remove temporary files, and artifacts without a row, which a crash between file and row leaves;
 * returns the number of the latter. For the start, before anything is written. */
uint32_t wpk_history_sweep_artifacts(struct wpk_store *store, const char *data_dir);

void wpk_history_set_owner(struct wpk_store *store, const struct wpk_owner_event *owner);
/* Set a worker's admin state; NONE removes its row. */
void wpk_history_set_admin_state(struct wpk_store *store, const char *name,
                                 enum wpk_admin_state state, const char *reason);

/* ---- reading */

/* Append the asks of a search from number `first` on, in order, with their results.
 *   owns    the caller frees *asks with wpk_work_items_free; *asks is NULL and *count 0 at first */
void wpk_history_asks(struct wpk_store *store, uint64_t search_id, uint32_t first,
                      struct wpk_work_item **asks, uint32_t *count);
void wpk_history_asks_between(struct wpk_store *store, uint64_t search_id, uint32_t first,
                              uint32_t end, struct wpk_work_item **asks, uint32_t *count);

/* A restart reads the following for a search's strategy: the snapshot, and the asks from the first
 * one that the snapshot had not been told. */
#define WPK_HISTORY_HINTS_MAX 256 /* of a search */

/* A candidate that was timed elsewhere before the search began. */
struct wpk_history_hint {
    char *candidate; /* owned; text */
    double time_ns;
};

#define WPK_HISTORY_RELATIVES_MAX 12

struct wpk_history_log {
    struct wpk_buf snapshot;        /* empty: no snapshot, and `first` is 0 */
    char version[64];               /* of the snapshot's text */
    struct wpk_history_hint *hints; /* [hint_count], fastest first */
    uint32_t hint_count;
    char *relatives[WPK_HISTORY_RELATIVES_MAX]; /* owned; [relative_count], nearest first: the best
                                                   candidates of other shapes; of searches whose
                                                   strategy takes them */
    uint32_t relative_count;
    uint32_t twin_count;    /* of them, of the same shape: those come first */
    struct wpk_buf prior;   /* text of the search's prior; empty: none, or it is gone */
    struct wpk_buf packing; /* a candidate that packs constants as the search has to; empty: none */
    uint32_t first;
    uint32_t ok_count; /* of the asks before `first`, like the next two */
    uint32_t failed_count;
    uint32_t known_count;
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t best_count;
    struct wpk_work_item *asks; /* [count] */
    uint32_t count;
};
/* Read a search's log; `whole` ignores its snapshot.
 *   owns    the caller calls wpk_history_log_fini */
void wpk_history_read_log(struct wpk_store *store, uint64_t search_id, bool whole,
                          struct wpk_history_log *out);
/* Texts of the best candidates of the problems that differ from the search's one in extents or
 * borders alone and are timed in the same way, as they are now, with the names of the search's
 * operator: nearest first, some of each. Returns their number; *twin_count: those of problems that
 * differ in borders alone.
 *   owns    the caller frees each */
uint32_t wpk_history_relatives(struct wpk_store *store, uint64_t search_id,
                               char *out[WPK_HISTORY_RELATIVES_MAX], uint32_t *twin_count);
/* Text of the fastest kernel's candidate of the first such problem whose constants have the same
 * extents, with the names of this problem's operator; "": there is none.
 *   owns    the caller frees it */
char *wpk_history_packing(struct wpk_store *store, uint64_t problem_id);
void wpk_history_log_fini(struct wpk_history_log *log);

/* Find a trial; false: none. A vendor's candidate is "". `id` may be NULL. */
WPK_MUST_CHECK bool wpk_history_find_trial(struct wpk_store *store, uint64_t problem_id,
                                           const char *provider, const char *candidate,
                                           struct wpk_trial_summary *out, uint64_t *id);
/* The trial with this id, with its ratio to this anchor if it has one. A trial that does not exist
 * is returned as abandoned. */
struct wpk_trial_summary wpk_history_trial(struct wpk_store *store, uint64_t id,
                                           const char *anchor);
/* True if the trial need not be run again: it failed, or can win. A candidate that was stopped
 * early or left no artifact cannot win; an abandoned trial may be its workers' fault. */
bool wpk_history_settled(const struct wpk_trial_summary *trial, const char *candidate);
/* wpk_history_find_trial() for settled trials only. */
WPK_MUST_CHECK bool wpk_history_known_trial(struct wpk_store *store, uint64_t problem_id,
                                            const char *provider, const char *candidate,
                                            struct wpk_trial_summary *out, uint64_t *id);
/* Append the detail of a trial; nothing when there is none. */
void wpk_history_detail(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_buf *out);

bool wpk_history_has_artifact(struct wpk_store *store, const char *sha256);
/* True if at least one kernel has the artifact, and every such kernel was revoked. */
bool wpk_history_artifact_revoked(struct wpk_store *store, const char *sha256);

/* True if this artifact, or for "" the provider's implementation, was revoked for the problem. */
bool wpk_history_is_revoked(struct wpk_store *store, uint64_t problem_id, const char *provider,
                            const char *artifact_sha256);

/* Append the kernel's document. False when there is no such kernel, or it was revoked. */
WPK_MUST_CHECK bool wpk_history_kernel(struct wpk_store *store, uint64_t kernel_id,
                                       struct wpk_buf *out);

/* For the start: the device time of each owner, and the workers' admin states. */
typedef void (*wpk_history_owner_fn)(void *user, const struct wpk_owner_event *owner);
void wpk_history_owners(struct wpk_store *store, wpk_history_owner_fn fn, void *user);
typedef void (*wpk_history_admin_state_fn)(void *user, const char *worker,
                                           enum wpk_admin_state state, const char *reason);
void wpk_history_admin_states(struct wpk_store *store, wpk_history_admin_state_fn fn, void *user);

/* Write a page of a job's trials as JSON objects into the current array of `w`: vendors first, then
 * asks; or those asks alone that ended with `outcome`, of which a page may have few: "" for all.
 * `names` [op_count] are the operators' names; `op` is one operator, or -1 for all. The page begins
 * at *place, which becomes that of the next page; false when there are no more. */
struct wpk_history_place {
    uint32_t position; /* of the operator */
    int64_t index;     /* of the ask; below 0: of the vendors */
};
bool wpk_history_list_trials(struct wpk_store *store, uint64_t job_number, int op,
                             const char *const *names, uint32_t op_count, const char *outcome,
                             int page_size, struct wpk_history_place *place,
                             struct wpk_json_writer *w);

/* The data of a kernel that a choice (schema/choice.h) needs beyond the kernel's row. */

/* The kernel and the vendor whose data are wanted; "" for none. */
struct wpk_history_chain {
    const char *artifact; /* of the best generated kernel, as the next two */
    const char *provider;
    const char *candidate;
    const char *vendor; /* provider that was timed beside it */
};

struct wpk_history_choice {
    struct wpk_accuracy accuracy; /* class of the kernel's search, which all contenders are in */
    double own_times_direct; /* as in schema/record.h, the largest of its trial and of all finals
                                that served or kept it; -1: not measured */
    double vendor_times_direct;
    double plain_times_direct;
    enum wpk_conditions conditions;
    struct wpk_buf recipe;         /* owned; the vendor's entry, as JSON; empty: none recorded */
    char plain_sha256[WPK_ID_MAX]; /* of the plain kernel; "": none, or it was revoked */
};

/* False when there is no such kernel.
 *   owns    caller calls wpk_buf_fini on out->recipe */
bool wpk_history_read_choice(struct wpk_store *store, uint64_t kernel_id,
                             const struct wpk_history_chain *chain, struct wpk_history_choice *out);

#endif
