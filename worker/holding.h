/* SPDX-License-Identifier: Apache-2.0 */
/* The leases a worker holds, and their way through the engine.
 *
 *      take in ──▶ WAITING ──▶ IN_ENGINE ──▶ ENDED ──▶ SENT ──▶ (acknowledged: gone)
 *                     │                        ▲         │
 *                     └── a final: DUELLING ───┘         └── not answered: ENDED again
 *
 * A final waits until nothing else is in the engine, and holds back what came after it: it is
 * timed alone. What needs an artifact that was built elsewhere waits until it is here. */
#ifndef WPK_WORKER_HOLDING_H
#define WPK_WORKER_HOLDING_H

#include "schema/message.h"
#include "worker/engine.h"

struct wpk_holding;

struct wpk_holding_options {
    struct wpk_engine *engine; /* borrowed */
    const char *work_dir;      /* the engine's: artifacts lie in work_dir/artifacts */
};

wpk_err wpk_holding_new(const struct wpk_holding_options *options, struct wpk_holding **out);
void wpk_holding_free(struct wpk_holding *holding);

/* Take work in, with copies of its texts; what is held already is left as it is. */
void wpk_holding_take_in(struct wpk_holding *holding, const struct wpk_message *work);

/* Put into the engine what may go, take out what has ended, begin the duel that is due. *next_ms as
 * of wpk_engine_advance.
 *   errors  WPK_ESYSTEM the engine cannot go on */
WPK_MUST_CHECK wpk_err wpk_holding_advance(struct wpk_holding *holding, uint64_t *next_ms);

/* How many leases are held; how many of them are not worked off yet. */
uint32_t wpk_holding_count(const struct wpk_holding *holding);
uint32_t wpk_holding_unfinished(const struct wpk_holding *holding);
/* Another worker has the device, and has had it for a minute: what waits for it here is not named,
 * so that wpkd gives it to others, and no more work is wanted. */
bool wpk_holding_blocked(const struct wpk_holding *holding);
/* All that a poll names; or those that are not worked off, to be given back.
 *   shape   ids [WPK_HOLDING_MAX]; returns how many */
uint32_t wpk_holding_ids(const struct wpk_holding *holding, bool unfinished_only, wpk_work_id *ids);

/* The number of the lease that is being verified or timed; 0: none. */
uint64_t wpk_holding_running(const struct wpk_holding *holding);

/* The hash of an artifact that is to be timed and that is not here; NULL: none. */
const char *wpk_holding_missing(const struct wpk_holding *holding);
/* It came; or it cannot be had, or is not what its hash says: the finals that need it do not take
 * place, and what was to be run was not tried: wpkd leases both again. */
void wpk_holding_artifact(struct wpk_holding *holding, const char *sha256, const char *bytes,
                          size_t size, wpk_err err);

/* The record of an ended trial whose artifact wpkd does not have yet, and the work item that it
 * is for; NULL: none. */
const struct wpk_record *wpk_holding_next_upload(const struct wpk_holding *holding,
                                                 wpk_work_id *made_for);
/* wpkd has it now. */
void wpk_holding_uploaded(struct wpk_holding *holding, const char *sha256);
/* The artifact of this work item cannot be read, or arrived as something else: the trial ends
 * `abandoned`, the file goes, and wpkd has it tried again. */
void wpk_holding_not_sent(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err);
/* wpkd refuses it for good: the work item is held no longer, and goes back unblamed with the
 * next poll, which does not name it. */
void wpk_holding_refused(struct wpk_holding *holding, wpk_work_id made_for, wpk_err err,
                         const char *why);

/* Results that are ready to be sent, as views; marks them SENT.
 *   shape   results [max], max <= WPK_WORK_MAX; returns how many */
uint32_t wpk_holding_results(struct wpk_holding *holding, struct wpk_result *results, uint32_t max);
/* As many of them as go into one frame, which is appended; *count of 0: there are none. One that
 * does not fit even alone goes without its schedule.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_holding_encode_results(struct wpk_holding *holding, uint64_t session,
                                   struct wpk_buf *frame, uint32_t *count);
/* The answer to what was SENT: forget it, or send it again. */
void wpk_holding_acknowledged(struct wpk_holding *holding);
void wpk_holding_not_acknowledged(struct wpk_holding *holding);

#endif
