/* SPDX-License-Identifier: Apache-2.0 */
/* Performs the coordinator's effects against the store, the artifacts and the strategies, and holds
 * back what leaves the process until its batch is durable.
 *
 *      step(event) ──▶ effects ──▶ store, strategies ──▶ events that answer them ──▶ step ...
 *                         │
 *                         └──▶ held ── commit ──▶ out (the network, or a simulator)
 *
 * The service and the simulator use the same one. */
#ifndef WPK_COORDINATOR_EFFECTS_EXECUTOR_H
#define WPK_COORDINATOR_EFFECTS_EXECUTOR_H

#include "coordinator/http/answer.h"
#include "coordinator/index/index.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/history.h"

struct wpk_executor;
struct wpk_sign;

/* Something that a handler on the loop wants written, besides what effects write: as part of the
 * batch, in the order of the calls. Its owner embeds it. */
struct wpk_store_write {
    /* Required. On the writer's thread, inside the batch: uses the functions of history.h and
     * touches nothing that the loop may touch. What goes wrong goes through the store, and then
     * nothing of the batch is stored, nor of those after it; unless it is `alone`. */
    void (*perform)(struct wpk_store_write *write, struct wpk_store *store);
    /* Required. On the loop's thread, after the commit, or without one when `err`: WPK_ECLOSED
     * when wpkd ends. Frees the write. */
    void (*done)(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag);
    /* Nothing else stands on it before it is done: where what it writes is refused for a reason of
     * its own, it fails by itself. */
    bool alone;
    uint64_t search; /* handle of the live search whose it is; 0: of none, or alone */
    struct wpk_store_write *next; /* of the executor while it has it */
    wpk_err err;            /* likewise: why it failed by itself, with diag */
    struct wpk_diag *diag;  /* owned */
};

/* Where held output goes once it is durable. Both slots are required. */
struct wpk_executor_out {
    void (*reply)(void *user, const struct wpk_net_address *address, const void *frame,
                  size_t size);
    void (*respond)(void *user, uint64_t request, const struct wpk_api_answer *answer);
    void *user;
};

struct wpk_executor_options {
    struct wpk_store *store; /* borrowed, as all of this */
    const char *data_dir;    /* for artifacts */
    struct wpk_index *index; /* NULL: nothing is looked up */
    const struct wpk_sign *sign; /* NULL: manifests are neither made nor signed */
    /* For workers that are not local, NULL: all are let in; tokens that are made go there. */
    struct wpk_auth *auth;
    const struct wpk_clock *clock;
    struct wpk_executor_out out;
    /* Fill in what an effect answers to a request: WPK_EFFECT_RESPOND_*. Required. */
    void (*answer)(struct wpk_executor *executor, const struct wpk_effect *effect,
                   struct wpk_api_answer *answer);
    uint64_t artifact_bytes_max;    /* what nobody keeps goes when there is more; 0: no limit */
    uint32_t artifacts_per_problem; /* the best of each search are kept */
    /* 0: everything happens inside the calls below, the same each time, as a simulator needs it.
     * Else so many threads for strategies, and one that writes. */
    int threads;
    void (*wake)(void *user); /* from those threads: wpk_executor_poll() has something to do */
    void *wake_user;
    /* May be NULL. The state was read anew, after the store had been out of order: what came from
     * elsewhere than the store has to be said again. */
    void (*rebuilt)(void *user);
    void *rebuilt_user;
    /* May be NULL. wpk_executor_new() reads many jobs: called now and then, until it has. */
    void (*restoring)(void *user);
    void *restoring_user;
    /* May be NULL. A worker was not let in; its owner is "" where that is not known. */
    void (*refused)(void *user, const struct wpk_net_address *address,
                    const struct wpk_identity *identity, const char *reason);
    void *refused_user;
};

/* Make a coordinator, and load the jobs that had not ended.
 *
 *   owns    caller frees
 *   errors  WPK_ENOMEM; what reading the store says
 */
WPK_MUST_CHECK wpk_err wpk_executor_new(const struct wpk_executor_options *options,
                                        struct wpk_executor **out, struct wpk_diag *diag);
void wpk_executor_free(struct wpk_executor *executor);

/* What the options of these names say from now on. */
void wpk_executor_limit_artifacts(struct wpk_executor *executor, uint64_t bytes_max,
                                  uint32_t per_problem);

const struct wpk_coordinator *wpk_executor_coordinator(const struct wpk_executor *executor);
const struct wpk_executor_options *wpk_executor_options(const struct wpk_executor *executor);
/* For the loop's own reads. */
struct wpk_store *wpk_executor_reader(struct wpk_executor *executor);
uint64_t wpk_executor_now_ns(const struct wpk_executor *executor);

/* Step this event and all that follow from it. Fills in the event's times. */
void wpk_executor_step(struct wpk_executor *executor, struct wpk_event *event);
/* Decode a worker's frame and step it; what cannot be decoded is answered. */
void wpk_executor_frame(struct wpk_executor *executor, const struct wpk_net_address *address,
                        const char *frame, size_t size, uint64_t random);
/* Write this too, in the batch under way. `write` is taken. */
void wpk_executor_add_write(struct wpk_executor *executor, struct wpk_store_write *write);
/* Answer a request, at once: for what is durable, as in a store write's `done`. Takes what `answer`
 * owns. */
void wpk_executor_answer(struct wpk_executor *executor, uint64_t request,
                         struct wpk_api_answer *answer);

/* An answer that leaves with the batch under way, to be filled in. */
struct wpk_api_answer *wpk_executor_hold_answer(struct wpk_executor *executor, uint64_t request);

/* What an operator has changed of a problem's kernels is durable: its searches hear of it, after
 * what was durable before. */
void wpk_executor_change_kernel(struct wpk_executor *executor,
                                const struct wpk_kernel_event *change);

/* The table of tokens is another: sessions whose token is good no more are ended. Happens by itself
 * each second, for those that expire. */
void wpk_executor_recheck_workers(struct wpk_executor *executor);

/* The turn is over. Without threads: make the batch durable, let its output go, and do all that
 * follows. With threads: hand it to the writer; its output goes at a later poll.
 *
 *   errors  as wpk_executor_degraded()
 */
WPK_MUST_CHECK wpk_err wpk_executor_commit(struct wpk_executor *executor, struct wpk_diag *diag);
/* After a wake: let go what has become durable, and step what the threads answered. A commit has to
 * follow. */
void wpk_executor_poll(struct wpk_executor *executor);
/* So much waits for the writer that nothing more should be taken in, until after a wake. */
bool wpk_executor_is_full(const struct wpk_executor *executor);

/* Is the store out of order, because a commit failed? Then the reason. Everything that waited was
 * answered with a problem (507), workers with an error; nothing is promised and nothing leased;
 * workers are told to try again, and reads go on. A probe each second finds out when it is well
 * again: then the state is read from the store, and it goes on. */
wpk_err wpk_executor_degraded(const struct wpk_executor *executor, struct wpk_diag *diag);
/* Batches given to the writer, and those that were let go, in the same order: what was stepped and
 * committed is durable, or answered with a problem, once the one is as large as the other was. */
uint64_t wpk_executor_given(const struct wpk_executor *executor);
uint64_t wpk_executor_released(const struct wpk_executor *executor);
/* Grows whenever the writer finished something; also an empty batch, which probe sends it when it
 * has nothing else, or a probe of the store that failed: the process lives. */
uint64_t wpk_executor_commits(const struct wpk_executor *executor);
void wpk_executor_probe(struct wpk_executor *executor);

#endif
