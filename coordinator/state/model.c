/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/model.h"

#include "common/err.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"

#include <stdlib.h>
#include <string.h>

static const char *const phase_names[] = {WPK_PHASE_LIST(WPK_LIST_TEXT)};
static const char *const job_state_names[] = {WPK_JOB_STATE_LIST(WPK_LIST_TEXT)};

WPK_LIST_NAME(wpk_phase_name, enum wpk_phase, phase_names)

WPK_LIST_NAME(wpk_job_state_name, enum wpk_job_state, job_state_names)

bool wpk_phase_ended(enum wpk_phase phase)
{
    return phase == WPK_PHASE_DONE || phase == WPK_PHASE_FAILED || phase == WPK_PHASE_CANCELLED;
}

enum wpk_phase wpk_search_phase_shown(enum wpk_search_phase phase)
{
#define SHOWN(name, shown) WPK_PHASE_##shown,
    static const enum wpk_phase shown[] = {WPK_SEARCH_PHASE_LIST(SHOWN)};
#undef SHOWN
    WPK_ASSERT(phase <= WPK_SEARCH_PHASE_FAILED);
    return shown[phase];
}

void wpk_built_free(struct wpk_built *built)
{
    if (built != NULL) {
        free(built->schedule);
        free(built);
    }
}

void wpk_work_items_free(struct wpk_work_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(items[i].text);
        wpk_built_free(items[i].built);
    }
    free(items);
}

bool wpk_trial_is_faster(const struct wpk_trial_summary *a, const struct wpk_trial_summary *b)
{
    return a->anchor_ratio > 0 && b->anchor_ratio > 0 ? a->anchor_ratio < b->anchor_ratio
                                                      : a->median_ns < b->median_ns;
}

bool wpk_trial_raced_out(struct wpk_accuracy accuracy, const struct wpk_trial_summary *trial)
{
    return trial->censored || !wpk_accuracy_admits(accuracy, trial->times_direct);
}

struct wpk_best *wpk_best_put(struct wpk_best *best, uint32_t *count, struct wpk_accuracy accuracy,
                              const struct wpk_trial_summary *trial)
{
    if (trial->outcome != WPK_OUTCOME_OK || wpk_trial_raced_out(accuracy, trial) ||
        trial->artifact_sha256[0] == '\0') {
        return NULL;
    }
    /* Candidates that differ may come to the same code. */
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(best[i].trial.artifact_sha256, trial->artifact_sha256) == 0) {
            return NULL;
        }
    }
    uint32_t at = *count;
    while (at > 0 && wpk_trial_is_faster(trial, &best[at - 1].trial)) {
        at--;
    }
    if (at == WPK_BEST_MAX) {
        return NULL;
    }
    if (*count == WPK_BEST_MAX) {
        free(best[--*count].candidate);
    }
    memmove(&best[at + 1], &best[at], (*count - at) * sizeof best[0]);
    ++*count;
    best[at] = (struct wpk_best){.trial = *trial};
    return &best[at];
}

struct wpk_trial_summary wpk_trial_summarize(const struct wpk_record *record)
{
    struct wpk_trial_summary trial = {
        .outcome = record->outcome,
        .anchor_ns = record->anchor_ns,
        .anchor_ratio = record->anchor_ratio,
        .error_max = record->error_max,
        .error_tolerance = record->error_tolerance,
        .of_rms = record->of_rms,
        .times_direct = record->times_direct,
        .constants_bytes = record->constants_bytes,
    };
    if (record->outcome == WPK_OUTCOME_OK) {
        trial.median_ns = record->timing.median_ns;
        trial.min_ns = record->timing.min_ns;
        trial.mad_ns = record->timing.mad_ns;
        trial.censored = record->timing.censored;
        memcpy(trial.artifact_sha256, record->artifact_sha256, sizeof trial.artifact_sha256);
    }
    return trial;
}

const struct wpk_work_item *wpk_work_item_copy(struct wpk_coordinator *c,
                                               const struct wpk_work_item *item, const char *text)
{
    struct wpk_work_item *copy = wpk_effect_memory(c, 1, sizeof *copy);
    *copy = *item;
    copy->text = wpk_effect_text(c, text);
    return copy;
}

void wpk_opened_free(struct wpk_opened *opened)
{
    if (opened == NULL) {
        return;
    }
    for (uint32_t i = 0; i < opened->best_count; i++) {
        free(opened->best[i].candidate);
    }
    for (uint32_t i = 0; i < opened->vendor_count; i++) {
        free(opened->vendors[i].text);
    }
    wpk_built_free(opened->plain.built);
    wpk_work_items_free(opened->window, opened->ask_count - opened->told_count);
    free(opened);
}

void wpk_asked_free(struct wpk_asked *asked)
{
    if (asked != NULL) {
        wpk_work_items_free(asked->items, asked->count);
        free(asked);
    }
}

void wpk_event_fini(struct wpk_event *event)
{
    if (event->kind == WPK_EVENT_OPENED) {
        wpk_opened_free(event->opened);
    } else if (event->kind == WPK_EVENT_ASKED) {
        wpk_asked_free(event->asked);
    } else if (event->kind == WPK_EVENT_KERNEL_CHANGED) {
        free(event->kernel);
    }
}
