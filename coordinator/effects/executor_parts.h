/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the executor share; no other file includes this. Each calls only those before
 * it: executor_parts.c (store writes, and what is said now); executor_store.c (what is written),
 * executor_search.c (strategies) and executor_artifact.c (files); executor_step.c (a step and
 * its effects); executor_worker.c (which workers may work) and executor_restore.c (the state,
 * from the store); executor_turn.c (batches, the writer, and when it fails); executor.c (what
 * comes in). */
#ifndef WPK_COORDINATOR_EFFECTS_EXECUTOR_PARTS_H
#define WPK_COORDINATOR_EFFECTS_EXECUTOR_PARTS_H

#include "coordinator/effects/batch.h"
#include "coordinator/effects/file_pool.h"
#include "coordinator/effects/search_pool.h"
#include "coordinator/effects/writer.h"

#define WPK_UPLOADS_MAX 256 /* artifacts on their way to a row: of more the worker comes again */
#define WPK_UPLOADS_OF_ONE_MAX 4 /* likewise, of one worker, which sends the next after an answer */
#define WPK_UPLOAD_BYTES_MAX ((uint64_t)64 << 20) /* likewise */
#define WPK_FETCHES_MAX 64 /* files that are read: with more, nothing is taken in */
#define WPK_BROKEN_MAX 16  /* searches that are remembered; of more the oldest is tried again */

/* A search of which the store refuses something: opened once more, it would fail once more, and
 * the state with it. */
struct wpk_broken {
    char key_hash[WPK_ID_MAX];
    char reason[WPK_REASON_MAX];
};

struct wpk_executor {
    struct wpk_executor_options options;
    struct wpk_store *reader; /* for the loop's own reads; without threads the store itself */
    struct wpk_writer *writer;
    struct wpk_search_pool *pool;
    struct wpk_file_pool *files;
    struct wpk_coordinator *coordinator;
    uint64_t generation; /* of the coordinator: what answers an older one is dropped */
    struct wpk_effects effects;
    struct wpk_batch *batch; /* owned; under way */
    struct wpk_batch *spare; /* owned list; used before */
    uint32_t spare_count;
    uint32_t pending_count; /* batches that the writer has */
    size_t pending_bytes;
    uint64_t released_count;  /* batches that it had and that were let go */
    struct wpk_event *events; /* owned; [event_count]: answers to effects, to be stepped */
    uint32_t event_count;
    uint32_t event_capacity;
    uint64_t recheck_ns;        /* when to look again whether workers' tokens are good */
    uint64_t artifact_bytes;    /* of all rows, when the last write that changed them was durable */
    struct wpk_upload *uploads; /* owned list, [upload_count]: artifacts on their way to a row */
    uint32_t upload_count;
    uint64_t upload_bytes;  /* of these */
    uint32_t fetch_count;   /* files that are being read */
    uint32_t removal_count; /* files that are being removed */
    uint64_t wanted_bytes;  /* of the largest that was refused since builds are held */
    bool artifacts_tight;   /* they take half of their quota: what has run goes at once */
    bool builds_held;       /* they have reached it, and nothing can go */
    bool pruning;           /* artifacts are being forgotten */
    uint64_t prune_ns;      /* when to look again */
    struct wpk_broken broken[WPK_BROKEN_MAX]; /* the last of broken_count, in turn */
    uint32_t broken_count;
    bool opening;  /* an OPENED is being stepped: what it tells is durable */
    uint64_t unread[WPK_JOBS_LIVE_MAX]; /* numbers of jobs: those from unread_first on, up to
                                         * unread_count, are not in the state yet */
    uint32_t unread_first;
    uint32_t unread_count;
    bool degraded; /* the store is out of order: the state is only looked at */
    bool resuming; /* of a degraded one: it can be written again, and the state is being read */
    struct wpk_batch refused; /* writes alone, given meanwhile: the next commit says no */
    wpk_err err;              /* why */
    struct wpk_diag diag;
};

/* A store write of the executor's own, in its batch's memory. */
struct wpk_effect_write {
    struct wpk_store_write write; /* first */
    struct wpk_executor *executor;
    uint64_t generation;
};

/* ---- executor_parts.c */

/* A store write of `size` zeroed bytes, which begins with a struct wpk_effect_write, in the
 * batch. */
void *wpk_executor_new_write(struct wpk_executor *executor, size_t size,
                             void (*perform)(struct wpk_store_write *write,
                                             struct wpk_store *store),
                             void (*done)(struct wpk_store_write *write, wpk_err err,
                                          const struct wpk_diag *diag));
/* Step this later; `event` is copied, what it holds is taken. */
void wpk_executor_follow_up(struct wpk_executor *executor, const struct wpk_event *event);
/* Was the write made for the coordinator that there is now, and is it durable? */
bool wpk_executor_is_current(const struct wpk_store_write *write, wpk_err err);
/* Is what a step wants performed? */
bool wpk_executor_may_write(const struct wpk_executor *executor);
/* To a worker, now: what it says is durable, or needs not be. */
void wpk_executor_reply(struct wpk_executor *executor, const struct wpk_net_address *address,
                        const struct wpk_message *message);
void wpk_executor_reply_error(struct wpk_executor *executor, const struct wpk_net_address *address,
                              uint64_t session, wpk_err err, const struct wpk_diag *diag);
/* Its message was lost, or is not taken, because the store failed. */
void wpk_executor_refuse(struct wpk_executor *executor, const struct wpk_net_address *address,
                         wpk_err err, const struct wpk_diag *diag);
/* wpk_message_trace(), with the name of the session's worker. */
void wpk_executor_trace(const struct wpk_executor *executor, const char *event,
                        const struct wpk_message *message);

/* ---- executor_step.c */

/* Step it, and perform its effects; with a degraded store nothing is performed. */
void wpk_executor_step_one(struct wpk_executor *executor, struct wpk_event *event);

/* Step what was put off, and all that follows from it; or forget it. */
void wpk_executor_step_events(struct wpk_executor *executor);
void wpk_executor_drop_events(struct wpk_executor *executor);

/* ---- executor_turn.c */

/* An empty batch is under way. The one there was, if any, is the caller's to hand on. */
void wpk_executor_begin_batch(struct wpk_executor *executor);
/* Nothing is written after this. What the writer was handed is, and its output leaves; what it was
 * not is lost, and said to be. */
void wpk_executor_end(struct wpk_executor *executor);

/* ---- executor_store.c: effects that are written; false when it is none of these */

bool wpk_executor_store(struct wpk_executor *executor, const struct wpk_effect *effect);

/* ---- executor_search.c */

void wpk_executor_open_search(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_put_kernel(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_put_plain(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_tell(struct wpk_executor *executor, const struct wpk_effect *effect);
/* What the strategies answered becomes store writes. True when there was something. */
bool wpk_executor_take_answers(struct wpk_executor *executor);
wpk_err wpk_executor_new_pool(struct wpk_executor *executor, struct wpk_diag *diag);

/* ---- executor_artifact.c */

void wpk_executor_put_artifact(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_get_artifact(struct wpk_executor *executor, const struct wpk_effect *effect);
bool wpk_executor_is_uploading(const struct wpk_executor *executor, const char *sha256);
/* Its row is gone, and none is on its way. */
void wpk_executor_remove_artifact(struct wpk_executor *executor, const char *sha256);
/* What was done to files becomes store writes and answers. */
void wpk_executor_take_files(struct wpk_executor *executor);
/* Nothing is done to files after this; what was on its way is lost, and nobody was told of it. */
void wpk_executor_end_files(struct wpk_executor *executor);
/* An artifact is named once we have it: what results say to be ours, and is not, could never be
 * served. Before the step, so that state and store agree.
 *   errors  what reading the store says */
WPK_MUST_CHECK wpk_err wpk_executor_forget_absent(struct wpk_executor *executor,
                                                  struct wpk_message *message,
                                                  struct wpk_diag *diag);

/* ---- executor_quota.c */

/* Is there room for the artifact? If not, its worker is told, and builds are held. */
bool wpk_executor_admit_upload(struct wpk_executor *executor, const struct wpk_effect *effect);
/* Some seconds after the last time: forget artifacts, if there are too many. */
void wpk_executor_prune(struct wpk_executor *executor);

/* ---- executor_worker.c */

/* A local socket's file says who may connect to it; others show a token. */
bool wpk_executor_may_join(const struct wpk_executor *executor,
                           const struct wpk_net_address *address, const struct wpk_hello *hello,
                           struct wpk_diag *diag);
/* Is the token of the message's session still good? If not, the session is ended, and `diag` says
 * why. */
bool wpk_executor_may_go_on(struct wpk_executor *executor, const struct wpk_message *message,
                            struct wpk_diag *diag);

/* ---- executor_restore.c */

/* A coordinator as the store has it, in place of the one there was, if any; its jobs are still
 * unread. */
WPK_MUST_CHECK wpk_err wpk_executor_begin_restore(struct wpk_executor *executor,
                                                  struct wpk_diag *diag);
/* Read some of them: no longer than the loop may be kept. */
WPK_MUST_CHECK wpk_err wpk_executor_restore_some(struct wpk_executor *executor,
                                                 struct wpk_diag *diag);
bool wpk_executor_is_restored(const struct wpk_executor *executor);

#endif
