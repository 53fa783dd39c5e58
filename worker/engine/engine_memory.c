/* SPDX-License-Identifier: Apache-2.0 */
/* A trial that was made before is answered from memory, because many candidates lower to the same
 * schedule. Two trials are identical when schedule, op, layouts, policy, accuracy class, anchor,
 * build_only and final are equal. A trial waits for an identical one that is under way. */
#include "worker/engine/engine_state.h"

#include "common/log.h"
#include "worker/measure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void wpk_engine_mark_done(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    trial->stage = WPK_TRIAL_DONE;
    trial->done_at = ++engine->done;
}

static char *copy_text(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void copy_record(const struct wpk_record *from, struct wpk_record *to)
{
    *to = *from;
    to->schedule = copy_text(from->schedule);
    to->artifact_path = copy_text(from->artifact_path);
    to->detail = copy_text(from->detail);
    to->unseen = copy_text(from->unseen);
    to->recipe = copy_text(from->recipe);
}

/* A race's loser stopped early and its object was thrown away: that serves where it would lose
 * again, not where it might win. */
static bool answers_for(const struct wpk_record *record, const struct wpk_trial_state *trial)
{
    const char *artifact = record->artifact_path;
    bool there = artifact != NULL && access(artifact, R_OK) == 0;
    bool whole = there && !record->timing.censored;
    bool may_win =
        wpk_measure_beats(record, trial->trial.incumbent_ns, trial->trial.incumbent_ratio);
    if (record->outcome != WPK_OUTCOME_OK) {
        return true;
    }
    return (whole || !may_win) && (there || (artifact == NULL && !trial->trial.keep_artifact));
}

/* The record of an identical trial; not one whose artifact is wanted and gone. */
static const struct wpk_record *recall(const struct wpk_engine *engine,
                                       const struct wpk_trial_state *trial)
{
    for (int i = 0; i < WPK_ENGINE_MEMORY_MAX; i++) {
        const struct wpk_engine_memory *place = &engine->memory[i];
        if (strcmp(place->identity, trial->identity) == 0 && answers_for(&place->record, trial)) {
            return &place->record;
        }
    }
    return NULL;
}

static const struct wpk_trial_state *find_twin(const struct wpk_engine *engine,
                                               const struct wpk_trial_state *trial)
{
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        const struct wpk_trial_state *other = &engine->trials[i];
        bool on_its_way = other->stage == WPK_TRIAL_PLANNED || other->stage == WPK_TRIAL_BUILDING ||
                          other->stage == WPK_TRIAL_BUILT || other->stage == WPK_TRIAL_RUNNING;
        if (other != trial && on_its_way && strcmp(other->identity, trial->identity) == 0) {
            return other;
        }
    }
    return NULL;
}

static void answer_from_memory(struct wpk_engine *engine, struct wpk_trial_state *trial,
                               const struct wpk_record *record)
{
    wpk_record_fini(&trial->record);
    copy_record(record, &trial->record);
    wpk_log(WPK_LOG_DEBUG, "remembered", "work=%s schedule=%.12s outcome=%s", trial->trial.work,
            trial->planned.schedule_sha256, wpk_outcome_name(record->outcome));
    wpk_engine_mark_done(engine, trial);
}

void wpk_engine_recall(struct wpk_engine *engine, struct wpk_trial_state *trial)
{
    const struct wpk_policy *policy = &trial->trial.policy;
    char text[256];
    int size = snprintf(
        text, sizeof(text), "%s %s %d %d %llu %d %a %a %d %d", trial->planned.schedule_sha256,
        trial->trial.layouts, policy->threads, (int)policy->conditions,
        (unsigned long long)policy->time_ns_min, policy->sample_count, policy->race_ratio,
        trial->trial.accuracy.times_direct, trial->trial.build_only, trial->trial.final);
    WPK_ASSERT(size > 0 && (size_t)size < sizeof(text));
    struct wpk_crypto_hash hash;
    wpk_crypto_hash_init(&hash);
    wpk_crypto_hash_add(&hash, text, (size_t)size);
    if (trial->trial.anchor != NULL) {
        wpk_crypto_hash_add(&hash, trial->trial.anchor, strlen(trial->trial.anchor));
    }
    wpk_crypto_hash_add(&hash, trial->trial.op, strlen(trial->trial.op));
    wpk_crypto_hash_finish_hex(&hash, trial->identity);
    const struct wpk_record *known = recall(engine, trial);
    const struct wpk_trial_state *twin = known == NULL ? find_twin(engine, trial) : NULL;
    if (known != NULL) {
        answer_from_memory(engine, trial, known);
        return;
    }
    trial->stage = twin != NULL ? WPK_TRIAL_TWIN : WPK_TRIAL_PLANNED;
    if (twin != NULL) {
        wpk_log(WPK_LOG_DEBUG, "waits_for_twin", "work=%s twin=%s", trial->trial.work,
                twin->trial.work);
    }
}

/* The twins of what has just ended take its result, or go on by themselves. */
static void release_twins(struct wpk_engine *engine, const struct wpk_trial_state *ended)
{
    for (int i = 0; i < WPK_ENGINE_TRIALS_MAX; i++) {
        struct wpk_trial_state *trial = &engine->trials[i];
        if (trial->stage != WPK_TRIAL_TWIN || strcmp(trial->identity, ended->identity) != 0) {
            continue;
        }
        const struct wpk_record *known = recall(engine, trial);
        if (known != NULL) {
            answer_from_memory(engine, trial, known);
        } else if (find_twin(engine, trial) == NULL) {
            trial->stage = WPK_TRIAL_PLANNED;
        }
    }
}

void wpk_engine_remember(struct wpk_engine *engine, const struct wpk_trial_state *trial)
{
    if (trial->identity[0] == '\0') {
        return;
    }
    /* Do not remember failures that the machine caused: the next attempt may succeed. */
    enum wpk_outcome outcome = trial->record.outcome;
    if (outcome != WPK_OUTCOME_BUILD_TIMEOUT && outcome != WPK_OUTCOME_RUN_TIMEOUT &&
        outcome != WPK_OUTCOME_ABANDONED) {
        struct wpk_engine_memory *place = &engine->memory[engine->memory_next];
        engine->memory_next = (engine->memory_next + 1) % WPK_ENGINE_MEMORY_MAX;
        wpk_record_fini(&place->record);
        memcpy(place->identity, trial->identity, sizeof(place->identity));
        copy_record(&trial->record, &place->record);
    }
    release_twins(engine, trial);
}
