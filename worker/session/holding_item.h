/* SPDX-License-Identifier: Apache-2.0 */
/* The state behind holding.h, shared by its files only: holding.c (taking in, sending results),
 * holding_engine.c (the engine), holding_artifact.c (fetching, keeping and sending artifacts) and
 * holding_item.c (one lease). */
#ifndef WPK_WORKER_SESSION_HOLDING_ITEM_H
#define WPK_WORKER_SESSION_HOLDING_ITEM_H

#include "schema/message.h"
#include "worker/session/holding.h"

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
    bool blocked;        /* see wpk_holding_blocked */
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
