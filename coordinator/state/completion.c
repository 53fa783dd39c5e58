/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/completion.h"

#include "common/metrics.h"
#include "common/utf8.h"
#include "coordinator/state/anchor.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/final.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/plain.h"
#include "coordinator/state/revoked.h"
#include "coordinator/state/search.h"
#include "coordinator/state/search_key.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"
#include "coordinator/state/worker.h"
#include "schema/message_trace.h"

#include <stdio.h>
#include <string.h>

static void note_failure(struct wpk_search *search, const struct wpk_record *record)
{
    if (record->outcome != WPK_OUTCOME_OK && record->log[0] != '\0') {
        size_t size = strcspn(record->log, "\n");
        size = size < sizeof search->failure ? size : sizeof search->failure - 1;
        size = wpk_utf8_check(record->log, size); /* no half character */
        snprintf(search->failure, sizeof search->failure, "%.*s", (int)size, record->log);
        for (char *p = search->failure; *p != '\0'; p++) {
            *p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p; /* it is shown on terminals */
        }
    }
}

/* The artifact that was built for the run that has ended, NULL if it is one of the best now. */
static const char *spent_by(struct wpk_coordinator *c, const struct wpk_search *search,
                            const struct wpk_work_item *item)
{
    for (uint32_t i = 0; item->built != NULL && i < search->best_count; i++) {
        if (strcmp(search->best[i].trial.artifact_sha256, item->built->artifact_sha256) == 0) {
            return NULL;
        }
    }
    return item->built != NULL ? wpk_effect_text(c, item->built->artifact_sha256) : NULL;
}

void wpk_completion_take(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                         const struct wpk_record *record, const struct wpk_worker *worker)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    bool own = work.kind == WPK_WORK_TRIAL;
    WPK_ASSERT(item != NULL && work.kind != WPK_WORK_FINAL);
    WPK_ASSERT(item->standing == WPK_STANDING_OPEN); /* its lease has ended */
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (work.kind == WPK_WORK_PLAIN) {
        wpk_plain_ended(c, search, record, worker);
        return;
    }
    if (own) {
        wpk_asks_unopen(search, work.index);
    }
    if (work.kind != WPK_WORK_VERIFY) {
        record = wpk_revoked_refuse(c, search, own ? "" : item->text, record);
    }
    if (own) {
        record = wpk_anchor_apply(c, search, record);
    }
    item->standing = WPK_STANDING_ENDED;
    item->trial = wpk_trial_summarize(record);
    if (work.kind == WPK_WORK_VENDOR) {
        search->vendor_workers[work.index] = worker != NULL ? worker->name_hash : 0;
    }
    if (work.kind == WPK_WORK_VERIFY) {
        wpk_final_verified(c, search, record, worker);
        return;
    }
    search->measured = true;
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TRIAL);
    effect->search = search;
    effect->work = work;
    effect->provider =
        own ? wpk_search_key_provider(c, search, item->text) : wpk_effect_text(c, item->text);
    effect->item = wpk_work_item_copy(c, item, own ? item->text : "");
    effect->record = record;
    effect->worker = worker;
    wpk_metric_add(WPK_COUNTER_TRIALS, (uint32_t)record->outcome, 1);
    if (own) {
        note_failure(search, record);
        wpk_asks_count(search, work.index, worker != NULL ? worker->name_hash : 0);
        effect->spent = spent_by(c, search, item);
        wpk_asks_tell(c, search);
    }
}

void wpk_completion_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            const char *why)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(work, id);
    wpk_effect_log(c, "abandoned", "work=%s", id);
    if (work.kind == WPK_WORK_FINAL) {
        wpk_final_timed(c, search, NULL, NULL);
        return;
    }
    struct wpk_record *record = wpk_effect_memory(c, 1, sizeof *record);
    record->outcome = WPK_OUTCOME_ABANDONED;
    if (why == NULL) {
        snprintf(record->log, sizeof record->log, "%d workers were lost while they had it",
                 WPK_ATTEMPTS_MAX);
    } else {
        size_t size = wpk_utf8_check(why, strcspn(why, "\n")); /* no half character */
        snprintf(record->log, sizeof record->log, "not tried in %d attempts; the last one: %.*s",
                 WPK_ATTEMPTS_MAX,
                 size < WPK_COMPLETION_REASON_MAX ? (int)size : WPK_COMPLETION_REASON_MAX, why);
    }
    wpk_completion_take(c, search, work, record, NULL);
}
