/* SPDX-License-Identifier: Apache-2.0 */
/* One lease: whether it has ended, ending it without a try, and freeing it. */
#include "worker/session/holding.h"

#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wpk_holding_is_unfinished(const struct wpk_holding_item *item)
{
    return item->standing == WPK_HOLDING_WAITING || item->standing == WPK_HOLDING_IN_ENGINE ||
           item->standing == WPK_HOLDING_DUELLING;
}

void wpk_holding_forget(struct wpk_holding *holding, struct wpk_holding_item *item)
{
    wpk_record_fini(&item->record);
    free(item->op);
    free(item->layouts);
    free(item->provider);
    free(item->candidate);
    memset(item, 0, sizeof *item);
    holding->count--;
}

void wpk_holding_fail(struct wpk_holding_item *item, enum wpk_outcome outcome, const char *text,
                      wpk_err err)
{
    item->standing = WPK_HOLDING_ENDED;
    item->uploaded = true;
    item->record.outcome = outcome;
    snprintf(item->record.log, sizeof item->record.log, "%s: %s", text, wpk_err_text(err));
    wpk_holding_log_ended(item, wpk_outcome_name(outcome), item->record.log);
}

void wpk_holding_fail_final(struct wpk_holding_item *item, const char *why)
{
    snprintf(item->failure, sizeof item->failure, "%s", why);
    item->timing_count = 0;
    item->standing = WPK_HOLDING_ENDED;
    item->uploaded = true;
    wpk_holding_log_ended(item, "failed", why);
}

void wpk_holding_log_ended(const struct wpk_holding_item *item, const char *outcome,
                           const char *reason)
{
    wpk_log(WPK_LOG_DEBUG, "ended", "work=%s lease=%llu outcome=%s reason=\"%.*s\"", item->name,
            (unsigned long long)item->work.lease, outcome, (int)strcspn(reason, "\n"), reason);
}
