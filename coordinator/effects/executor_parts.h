/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the executor share; no other file includes this. Each file calls
 * only those before it: executor_parts.c (store writes, immediate replies); executor_store.c
 * (effects that are written), executor_search.c (strategies), executor_artifact.c (files),
 * executor_quota.c (their quota); executor_step.c (a step, its effects); executor_restore.c (the
 * state, read from the store); executor_turn.c (batches, the writer and its failure); executor.c
 * (events and frames that come in, admission of workers). */
#ifndef WPK_COORDINATOR_EFFECTS_EXECUTOR_PARTS_H
#define WPK_COORDINATOR_EFFECTS_EXECUTOR_PARTS_H

#include "coordinator/effects/batch.h"
#include "coordinator/effects/file_pool.h"
#include "coordinator/effects/search_pool.h"
#include "coordinator/effects/writer.h"

#include <stdint.h>

struct wpk_index;

#define WPK_UPLOADS_MAX 256      /* uploads at a time; with more, a worker is told to come again */
#define WPK_UPLOADS_OF_ONE_MAX 4 /* uploads of one worker at a time */
#define WPK_UPLOAD_BYTES_MAX ((uint64_t)64 << 20) /* of all uploads at a time */
#define WPK_FETCHES_MAX 64 /* files read at a time; with more, frames and requests wait */
#define WPK_CHECKING_MAX 8 /* searches whose artifacts are checked at a time */
#define WPK_BROKEN_MAX 16  /* broken searches remembered; with more, the oldest is tried again */

/* A search of which the store refused a write. It is not opened again: the write would fail again,
 * and the state with it. */
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
    uint64_t generation; /* of the coordinator: answers to an older one are dropped */
    struct wpk_effects effects;
    struct wpk_batch *batch; /* owned; under way */
    struct wpk_batch *spare; /* owned list; kept for reuse */
    uint32_t spare_count;
    uint32_t pending_count; /* batches given to the writer and not released */
    size_t pending_bytes;
    uint64_t released_count;  /* batches released since the start */
    struct wpk_event *events; /* owned; [event_count]: to be stepped later */
    uint32_t event_count;
    uint32_t event_capacity;
    uint64_t recheck_ns;        /* when to check workers' tokens again */
    uint64_t artifact_bytes;    /* of all rows, as of the last durable write that changed them */
    struct wpk_upload *uploads; /* owned list, [upload_count]: artifacts without a row yet */
    uint32_t upload_count;
    uint64_t upload_bytes;  /* of the uploads */
    uint32_t fetch_count;   /* files that are being read */
    uint32_t removal_count; /* files that are being removed */
    uint64_t wanted_bytes;  /* of the largest upload that was refused while builds were held */
    bool artifacts_tight;   /* over half of the quota is used: spent artifacts go at once */
    bool builds_held;       /* the quota is reached, and no artifact can go */
    bool pruning;           /* a write that prunes artifacts is under way */
    bool writes_misses;     /* likewise, of lookups that no kernel answered */
    uint64_t misses_ns;     /* when to write these next */
    uint64_t prune_ns;      /* when to prune next */
    struct wpk_opening *openings; /* owned list: searches whose artifacts are to be checked, */
    struct wpk_opening *openings_last;
    uint32_t checking_count;                  /* and those whose artifacts are being checked */
    struct wpk_broken broken[WPK_BROKEN_MAX]; /* a ring of the last of broken_count */
    uint32_t broken_count;
    bool opening; /* an OPENED is being stepped: its tells are in the store already */
    uint64_t unread[WPK_JOBS_LIVE_MAX]; /* numbers of jobs; those at unread_first up to
                                         * unread_count are not in the state yet */
    uint32_t unread_first;
    uint32_t unread_count;
    bool degraded; /* the store failed: the state is only read */
    bool resuming; /* degraded, but the store can be written: the state is being restored */
    struct wpk_batch refused; /* writes added while degraded: the next commit fails them */
    wpk_err err;              /* why it is degraded */
    struct wpk_diag diag;
};

/* A store write of an effect, in its batch's memory. */
struct wpk_effect_write {
    struct wpk_store_write write; /* first */
    struct wpk_executor *executor;
    uint64_t generation;
};

/* ---- executor_parts.c */

/* Add to the batch a store write of `size` zeroed bytes, which begin with a struct
 * wpk_effect_write. `done` may be NULL. */
void *wpk_executor_new_write(struct wpk_executor *executor, size_t size,
                             void (*perform)(struct wpk_store_write *write,
                                             struct wpk_store *store),
                             void (*done)(struct wpk_store_write *write, wpk_err err,
                                          const struct wpk_diag *diag));
/* Step the event later. `event` is copied, and what it holds is taken. */
void wpk_executor_follow_up(struct wpk_executor *executor, const struct wpk_event *event);
/* True if the write is durable (`err` is WPK_OK), and is of the present coordinator. */
bool wpk_executor_is_current(const struct wpk_store_write *write, wpk_err err);
/* True if effects are performed: the executor is not degraded, or is resuming. */
bool wpk_executor_may_write(const struct wpk_executor *executor);
/* Reply to a worker at once: the message says nothing that is not durable yet. */
void wpk_executor_reply(struct wpk_executor *executor, const struct wpk_net_address *address,
                        const struct wpk_message *message);
void wpk_executor_reply_error(struct wpk_executor *executor, const struct wpk_net_address *address,
                              uint64_t session, wpk_err err, const struct wpk_diag *diag);
/* Tell a worker that its message was lost, or is not taken, because the store failed. */
void wpk_executor_refuse(struct wpk_executor *executor, const struct wpk_net_address *address,
                         wpk_err err, const struct wpk_diag *diag);
/* Call wpk_message_trace() with the name of the session's worker. */
void wpk_executor_trace(const struct wpk_executor *executor, const char *event,
                        const struct wpk_message *message);

/* ---- executor_step.c */

/* Step the event, and perform its effects if wpk_executor_may_write(). */
void wpk_executor_step_one(struct wpk_executor *executor, struct wpk_event *event);

/* Step the events that were put off, and those that these put off; drop them all. */
void wpk_executor_step_events(struct wpk_executor *executor);
void wpk_executor_drop_events(struct wpk_executor *executor);

/* ---- executor_turn.c */

/* Begin an empty batch. The caller hands on the batch that was under way, if any. */
void wpk_executor_begin_batch(struct wpk_executor *executor);
/* End writing. Batches that the writer has are written, and their output leaves. The batch under
 * way is lost: its writes and requests get WPK_ECLOSED. */
void wpk_executor_end(struct wpk_executor *executor);

/* ---- executor_store.c */

/* Add the write of an effect that is only written. False: the effect is of another kind. */
bool wpk_executor_store(struct wpk_executor *executor, const struct wpk_effect *effect);

/* ---- executor_search.c */

/* Open the search: the artifacts that its history names are checked, then its row is found or made.
 * Searches wait for each other's checks. */
void wpk_executor_open_search(struct wpk_executor *executor, const struct wpk_effect *effect);
/* Take the file pool's answer to a check. */
void wpk_executor_checked(struct wpk_executor *executor, struct wpk_file_task *task);
/* Forget the searches that wait for a check. */
void wpk_executor_drop_openings(struct wpk_executor *executor);
void wpk_executor_put_kernel(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_put_plain(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_tell(struct wpk_executor *executor, const struct wpk_effect *effect);
/* Turn the strategies' answers into store writes. True if there were any. */
bool wpk_executor_take_answers(struct wpk_executor *executor);
wpk_err wpk_executor_new_pool(struct wpk_executor *executor, struct wpk_diag *diag);

/* ---- executor_artifact.c */

void wpk_executor_put_artifact(struct wpk_executor *executor, const struct wpk_effect *effect);
void wpk_executor_get_artifact(struct wpk_executor *executor, const struct wpk_effect *effect);
/* True if an upload of this artifact is under way. */
bool wpk_executor_is_uploading(const struct wpk_executor *executor, const char *sha256);
/* Remove the artifact's file. It must have no row, and no upload under way. */
void wpk_executor_remove_artifact(struct wpk_executor *executor, const char *sha256);
/* Turn what the file pool has done into store writes and answers. */
void wpk_executor_take_files(struct wpk_executor *executor);
/* End the work on files. Uploads and fetches under way are dropped without an answer. */
void wpk_executor_end_files(struct wpk_executor *executor);
/* Remove from results the names of artifacts that the store does not have: they could never be
 * served. Called before the step, so that state and store agree.
 *   errors  those of reading the store */
wpk_err wpk_executor_forget_absent(struct wpk_executor *executor, struct wpk_message *message,
                                   struct wpk_diag *diag);

/* ---- executor_quota.c */

/* True if there is room for the artifact. If not, its worker is told, and builds are held. */
bool wpk_executor_admit_upload(struct wpk_executor *executor, const struct wpk_effect *effect);
/* If the last time was seconds ago: count artifacts, and remove some if they take too much. */
void wpk_executor_prune(struct wpk_executor *executor);

/* ---- executor_restore.c */

/* Replace the coordinator, if any, by one as the store has it, whose jobs are still unread. */
wpk_err wpk_executor_begin_restore(struct wpk_executor *executor, struct wpk_diag *diag);
/* Restore some of the unread jobs, a slice that does not keep the loop for long. */
wpk_err wpk_executor_restore_some(struct wpk_executor *executor, struct wpk_diag *diag);
/* True if no job is unread. */
bool wpk_executor_is_restored(const struct wpk_executor *executor);

/* The index follows what a batch does to a problem's kernels. */

/* A store write (executor.h) that refreshes the problem's kernels in the index, and publishes or
 * discards them. Add it to a batch after the writes that change the problem.
 *   owns  the batch; the write frees itself when it is done */
struct wpk_store_write *wpk_index_write_new(struct wpk_index *index, uint64_t problem_id);

#endif
