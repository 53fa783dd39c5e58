/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: performs the coordinator's effects against the store, the artifacts and the
 * strategies, and holds output back until its batch is durable.
 *
 *      step(event) ──▶ effects ──▶ store, strategies ──▶ events that answer them ──▶ step ...
 *                         │
 *                         └──▶ held ── commit ──▶ out (the network, or a simulator)
 *
 * The service and the simulator use the same executor. */
#ifndef WPK_COORDINATOR_EFFECTS_EXECUTOR_H
#define WPK_COORDINATOR_EFFECTS_EXECUTOR_H

#include "coordinator/http/http.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/history.h"

struct wpk_executor;
struct wpk_sign;

/* A store write: one change of the database. The writes of a batch are performed in the order in
 * which they were added. Effects add writes, and so do handlers of requests, which embed them. */
struct wpk_store_write {
    /* Required. Called on the writer's thread, inside the batch: uses the functions of history.h,
     * and touches nothing that the loop may touch. An error is left in the store's status; then
     * neither this batch nor those after it are stored, unless the write is `alone`. */
    void (*perform)(struct wpk_store_write *write, struct wpk_store *store);
    /* Required in wpk_executor_add_write(). Called on the loop's thread after the commit, or with
     * `err` if the write is not stored: WPK_ECLOSED when wpkd ends. Frees the write. */
    void (*done)(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag);
    /* No other write depends on it before it is done: if the store refuses it for a reason of its
     * own, it fails by itself. */
    bool alone;
    uint64_t search;              /* handle of the search that it belongs to; 0: none */
    struct wpk_store_write *next; /* the executor's, as are the next two */
    wpk_err err;                  /* why it failed by itself */
    struct wpk_diag *diag;        /* owned by the batch; of `err` */
};

/* Where output goes once its batch is durable. Both slots are required. */
struct wpk_executor_out {
    void (*reply)(void *user, const struct wpk_net_address *address, const void *frame,
                  size_t size);
    void (*respond)(void *user, uint64_t request, struct wpk_api_answer *answer);
    void *user; /* of the options' optional callbacks, too */
};

struct wpk_executor_options {
    struct wpk_store *store;     /* borrowed, as are all options */
    const char *data_dir;        /* for artifacts */
    struct wpk_index *index;     /* NULL: there are no lookups */
    const struct wpk_sign *sign; /* NULL: manifests are neither made nor signed */
    /* Tokens of workers and clients. NULL: all workers are let in. */
    struct wpk_auth *auth;
    const struct wpk_clock *clock;
    struct wpk_executor_out out;
    /* Required. Fill in the answer of a WPK_EFFECT_RESPOND_* effect. */
    void (*answer)(struct wpk_executor *executor, const struct wpk_effect *effect,
                   struct wpk_api_answer *answer);
    uint64_t artifact_bytes_max;    /* quota: unused artifacts go near it; 0: no limit */
    uint32_t artifacts_per_problem; /* the best of each search are kept */
    /* Threads for strategies; the writer and the files have their own. 0: the executor starts no
     * thread, and a run is reproducible. */
    int threads;
    void (*wake)(void *user); /* called on these threads: wpk_executor_poll() has work */
    void *wake_user;
    /* Optional. The state was read anew after the store had failed: what did not come from the
     * store has to be set again. */
    void (*rebuilt)(void *user);
    /* Optional. Called after each slice of jobs that wpk_executor_new() reads. */
    void (*restoring)(void *user);
    /* Optional. A worker was not let in. The identity's owner is "" if it is not known. */
    void (*refused)(void *user, const struct wpk_net_address *address,
                    const struct wpk_identity *identity, const char *reason);
};

/* Make an executor with a coordinator, and restore the jobs that have not ended.
 *
 *   owns    caller frees
 *   errors  WPK_ENOMEM, WPK_ESYSTEM; those of reading the store
 */
wpk_err wpk_executor_new(const struct wpk_executor_options *options, struct wpk_executor **out,
                         struct wpk_diag *diag);
void wpk_executor_free(struct wpk_executor *executor);

/* Change the options artifact_bytes_max and artifacts_per_problem. */
void wpk_executor_limit_artifacts(struct wpk_executor *executor, uint64_t bytes_max,
                                  uint32_t per_problem);

const struct wpk_coordinator *wpk_executor_coordinator(const struct wpk_executor *executor);
const struct wpk_executor_options *wpk_executor_options(const struct wpk_executor *executor);
/* The connection for the loop's own reads. */
struct wpk_store *wpk_executor_reader(struct wpk_executor *executor);
uint64_t wpk_executor_now_ns(const struct wpk_executor *executor);

/* Step the event, and perform its effects; while degraded, only answer its request with a problem.
 * Sets the event's times. */
void wpk_executor_step(struct wpk_executor *executor, struct wpk_event *event);
/* Decode a worker's frame and step it. A frame that cannot be decoded is answered with an error. */
void wpk_executor_frame(struct wpk_executor *executor, const struct wpk_net_address *address,
                        const char *frame, size_t size, uint64_t random);
/* Add a write to the batch under way. `write` is taken. */
void wpk_executor_add_write(struct wpk_executor *executor, struct wpk_store_write *write);
/* Send the answer of a request now, before the batch under way is durable. For answers that say
 * only what is durable already: of reads, and in a store write's `done`. Takes what `answer`
 * owns. */
void wpk_executor_answer(struct wpk_executor *executor, uint64_t request,
                         struct wpk_api_answer *answer);

/* An answer, to be filled in, that is sent when the batch under way is durable. For answers that
 * depend on what the batch writes. */
struct wpk_api_answer *wpk_executor_hold_answer(struct wpk_executor *executor, uint64_t request);

/* An administrator's change of a problem's kernels is durable: step it later, after what was
 * durable before. */
void wpk_executor_change_kernel(struct wpk_executor *executor,
                                const struct wpk_kernel_event *change);

/* End the sessions whose token was revoked or has expired. To be called when tokens change; a tick
 * calls it each second. */
void wpk_executor_recheck_workers(struct wpk_executor *executor);

/* End the turn. Without threads: make the batch durable, release its output, and do all that
 * follows. With threads: hand the batch to the writer; a later poll releases its output.
 *
 *   errors  as wpk_executor_degraded()
 */
wpk_err wpk_executor_commit(struct wpk_executor *executor, struct wpk_diag *diag);
/* After a wake: release the output of durable batches, and step what the threads answered. A commit
 * has to follow. */
void wpk_executor_poll(struct wpk_executor *executor);
/* True if frames and requests have to wait for a wake: the writer or the files are too busy. */
bool wpk_executor_is_full(const struct wpk_executor *executor);

/* Why the executor is degraded: a commit failed. WPK_OK: it is not. Requests that waited were
 * answered with a problem (507), workers with an error. No work is leased, workers are told to try
 * again, and reads go on. The writer probes the store each second; when it can be written, the
 * state is read from it, and the executor goes on. */
wpk_err wpk_executor_degraded(const struct wpk_executor *executor, struct wpk_diag *diag);
/* Numbers of batches that were given to the writer, and of those released since, in the same order.
 * A commit is durable, or has failed, once `released` reaches the value that `given` had after
 * it. */
uint64_t wpk_executor_given(const struct wpk_executor *executor);
uint64_t wpk_executor_released(const struct wpk_executor *executor);
/* A count that grows when the writer finishes a transaction, an empty batch or a probe of a failed
 * store. wpk_executor_probe() gives the writer an empty batch if it has none. */
uint64_t wpk_executor_commits(const struct wpk_executor *executor);
void wpk_executor_probe(struct wpk_executor *executor);

#endif
