/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/message.h"

#include "common/log.h"

#include <inttypes.h>
#include <stdio.h>

void wpk_work_id_print(wpk_work_id id, char out[WPK_WORK_ID_TEXT_SIZE])
{
    snprintf(out, WPK_WORK_ID_TEXT_SIZE, "%" PRIu64 "/%s/%" PRIu32, id.search,
             wpk_work_kind_name(id.kind), id.index);
}

void wpk_message_trace(const char *event, const struct wpk_message *message, const char *worker)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    const char *name = worker != NULL ? " worker=" : "";
    worker = worker != NULL ? worker : "";
    if (!wpk_log_enabled(WPK_LOG_DEBUG)) {
        return;
    }
    for (uint32_t i = 0; i < message->work_count; i++) {
        const struct wpk_work *work = &message->work[i];
        wpk_work_id_print(work->id, id);
        wpk_log(WPK_LOG_DEBUG, event, "work=%s lease=%" PRIu64 " attempt=%" PRIu32 " stage=%s%s%s",
                id, work->lease, work->attempt, wpk_work_stage_name(work->stage), name, worker);
    }
    for (uint32_t i = 0; i < message->result_count; i++) {
        const struct wpk_result *result = &message->results[i];
        const char *outcome = result->id.kind != WPK_WORK_FINAL
                                  ? wpk_outcome_name(result->record.outcome)
                              : result->failure == NULL || result->failure[0] == '\0' ? "ok"
                                                                                      : "failed";
        wpk_work_id_print(result->id, id);
        wpk_log(WPK_LOG_DEBUG, event,
                "work=%s lease=%" PRIu64 " attempt=%" PRIu32 " stage=%s outcome=%s%s%s", id,
                result->lease, result->attempt, wpk_work_stage_name(result->stage), outcome, name,
                worker);
    }
}
