/* SPDX-License-Identifier: Apache-2.0 */
/* The leases a worker holds, and their way through the engine.
 *
 *      take in ──▶ WAITING ──▶ IN_ENGINE ──▶ ENDED ──▶ SENT ──▶ (acknowledged: gone)
 *                     │                        ▲         │
 *                     └── a final: DUELLING ───┘         └── not answered: ENDED again
 *
 * A final is timed alone: it waits until the engine has no trial, and later leases wait for it. A
 * lease that needs an artifact built elsewhere waits until the artifact is here. */
#ifndef WPK_WORKER_SESSION_HOLDING_H
#define WPK_WORKER_SESSION_HOLDING_H

#include "common/clock.h"
#include "schema/message.h"
#include "worker/engine/engine.h"

struct wpk_holding;

struct wpk_holding_options {
    struct wpk_engine *engine;     /* borrowed */
    const char *work_dir;          /* the engine's; artifacts are in work_dir/artifacts */
    const struct wpk_clock *clock; /* borrowed */
};

struct wpk_holding *wpk_holding_new(const struct wpk_holding_options *options);
void wpk_holding_free(struct wpk_holding *holding);

/* Take in the work items of a message, with copies of their texts. A work item that is held
 * already only gets its new lease number; one for which there is no room is leased again. */
void wpk_holding_take_in(struct wpk_holding *holding, const struct wpk_message *work);

/* Put leases into the engine, advance it, take out ended trials, and begin the duel that is due.
 * *next_ms is as wpk_engine_advance returns it.
 *   errors  those of wpk_engine_advance: the engine has failed */
wpk_err wpk_holding_advance(struct wpk_holding *holding, uint64_t *next_ms);

/* The number of leases held that have not ended. */
uint32_t wpk_holding_unfinished(const struct wpk_holding *holding);
/* Fill `ids` with the leases that a poll names, or with the unfinished ones, to be given back.
 *   shape   ids [WPK_HOLDING_MAX]; returns how many */
uint32_t wpk_holding_ids(const struct wpk_holding *holding, bool unfinished_only, wpk_work_id *ids);

/* The number of the lease that is being verified or timed; 0: none. */
uint64_t wpk_holding_running(const struct wpk_holding *holding);

/* The hash of an artifact that a waiting lease needs and that is not here; NULL: none. */
const char *wpk_holding_missing(const struct wpk_holding *holding);
/* Store an artifact that arrived. With an `err`, or with bytes that do not have this hash, the
 * finals and runs that need the artifact end without a try, and wpkd leases them again. */
void wpk_holding_artifact(struct wpk_holding *holding, const char *sha256, const char *bytes,
                          size_t size, wpk_err err);

/* The record of an ended trial whose artifact wpkd does not have yet, and the work item that it
 * is for; NULL: none. */
const struct wpk_record *wpk_holding_next_upload(const struct wpk_holding *holding,
                                                 wpk_work_id *made_for);
/* wpkd has the artifact now. */
void wpk_holding_uploaded(struct wpk_holding *holding, const char *sha256);
/* The artifact of this work item cannot be read, or arrived damaged: the trial ends `abandoned`,
 * the file is removed, and wpkd leases the work item again. */
void wpk_holding_not_sent(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err);
/* wpkd refuses the artifact for good: the work item is forgotten, and goes back unblamed with the
 * next poll, which does not name it. */
void wpk_holding_refused(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err,
                         const char *why);

/* Fill `results` with results that are ready to be sent, and mark them SENT.
 *   shape   results [max], max <= WPK_WORK_MAX; returns how many
 *   owns    their texts are borrowed until the results are acknowledged */
uint32_t wpk_holding_results(struct wpk_holding *holding, struct wpk_result *results, uint32_t max);
/* Fill `frame` with a message of as many results as fit into one; *count 0: there are none. A
 * result that does not fit even alone goes without its schedule.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_holding_encode_results(struct wpk_holding *holding, uint64_t session,
                                   struct wpk_buf *frame, uint32_t *count);
/* After the answer to the results SENT: forget them, or send them again. */
void wpk_holding_acknowledged(struct wpk_holding *holding);
void wpk_holding_not_acknowledged(struct wpk_holding *holding);

/* The state behind holding.h, shared by its files only: holding.c (taking in, sending results),
 * holding_engine.c (the engine), holding_artifact.c (fetching, keeping and sending artifacts) and
 * holding_item.c (one lease). */

#define WPK_HOLDING_PATH_SIZE 4096

enum wpk_holding_standing {
    WPK_HOLDING_FREE,
    WPK_HOLDING_WAITING,
    WPK_HOLDING_IN_ENGINE,
    WPK_HOLDING_DUELLING,
    WPK_HOLDING_ENDED,
    WPK_HOLDING_SENT,
};

struct wpk_holding_item {
    enum wpk_holding_standing standing;
    uint64_t order;                   /* number in the order of arrival; the trial's id */
    struct wpk_work work;             /* its texts are owned below */
    char name[WPK_WORK_ID_TEXT_SIZE]; /* the work item's, for logs */
    char *op;
    char *layouts;
    char *provider;
    char *candidate;
    struct wpk_device target;         /* BUILD */
    char artifact_sha256[WPK_ID_MAX]; /* RUN */
    char anchor_sha256[WPK_ID_MAX];   /* "": none */
    char contender_provider[WPK_CONTENDERS_MAX][WPK_PROVIDER_NAME_MAX];
    char contender_sha256[WPK_CONTENDERS_MAX][WPK_ID_MAX];
    struct wpk_record record; /* ENDED, SENT */
    bool uploaded;            /* wpkd has its artifact, or there is none to send */
    struct wpk_timing timing[WPK_CONTENDERS_MAX];
    uint32_t timing_count;
    char failure[WPK_DIAG_TEXT_MAX];
};

struct wpk_holding {
    struct wpk_holding_options options;
    uint64_t order_next;
    struct wpk_holding_item items[WPK_HOLDING_MAX];
    uint32_t count;      /* items that are not FREE */
    uint32_t since_trim; /* results acknowledged since the last wpk_holding_trim */
    /* The engine has waited for the device for a minute. Polls then name no unfinished lease, so
     * that wpkd gives them to other workers, and ask for no more work. */
    bool blocked;
};

/* ---- holding_item.c */
/* True if the item is WAITING, IN_ENGINE or DUELLING. */
bool wpk_holding_is_unfinished(const struct wpk_holding_item *item);
/* Free the item: polls do not name it any more. */
void wpk_holding_forget(struct wpk_holding *holding, struct wpk_holding_item *item);
/* End an item without a try, with this outcome. */
void wpk_holding_fail(struct wpk_holding_item *item, enum wpk_outcome outcome, const char *text,
                      wpk_err err);
void wpk_holding_log_ended(const struct wpk_holding_item *item, const char *outcome,
                           const char *reason);
/* End a final that does not take place. */
void wpk_holding_fail_final(struct wpk_holding_item *item, const char *why);

/* ---- holding_artifact.c */
void wpk_holding_artifact_path(const struct wpk_holding *holding, const char *sha256,
                               char out[WPK_HOLDING_PATH_SIZE]);
/* The hash of an artifact that the item needs and that is not here; NULL: none. */
const char *wpk_holding_missing_of(const struct wpk_holding *holding,
                                   const struct wpk_holding_item *item);
/* Keep the engine's directories within bounds. Every file there can be fetched or made again. */
void wpk_holding_trim(struct wpk_holding *holding);

#endif
