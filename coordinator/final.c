/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a search: its best candidates and the vendors are timed side by side, the best of our
 * own faces a fresh set of inputs, and the fastest of those that stand becomes the kernel.
 *
 * Times from the search itself were taken minutes apart, and the fastest of many is likely to be
 * one that was lucky: so they only choose who takes part. */
#include "coordinator/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Standard deviations by which a newcomer must beat what is there: about 5 % of false alarms. */
#define BEYOND_NOISE 2.0
#define MAD_TO_SIGMA 1.4826 /* of a normal distribution */

/* Is `a` faster than `b` by more than the noise of both medians? */
static bool is_faster(const struct wpk_timing *a, const struct wpk_timing *b)
{
    double count = a->sample_count > 0 ? a->sample_count : 1;
    double noise = MAD_TO_SIGMA * hypot((double)a->mad_ns, (double)b->mad_ns) / sqrt(count);
    return (double)a->median_ns + BEYOND_NOISE * noise < (double)b->median_ns;
}

static struct wpk_timing timing_of(const struct wpk_trial_summary *trial)
{
    struct wpk_timing timing = {.median_ns = trial->median_ns,
                                .min_ns = trial->min_ns,
                                .mad_ns = trial->mad_ns,
                                .sample_count = 1};
    return timing;
}

static struct wpk_final_entry *add_entry(struct wpk_search *search, const struct wpk_piece *piece,
                                         const char *provider, const char *artifact)
{
    WPK_ASSERT(search->entry_count < WPK_CONTENDERS_MAX);
    struct wpk_final_entry *entry = &search->entries[search->entry_count++];
    memset(entry, 0, sizeof *entry);
    entry->piece = piece;
    snprintf(entry->provider, sizeof entry->provider, "%s", provider);
    snprintf(entry->artifact_sha256, sizeof entry->artifact_sha256, "%s", artifact);
    if (piece != NULL) {
        entry->timing = timing_of(&piece->trial);
    }
    return entry;
}

static bool is_own(const struct wpk_final_entry *entry)
{
    return entry->piece != NULL && entry->artifact_sha256[0] != '\0';
}

static bool is_vendor(const struct wpk_final_entry *entry)
{
    return entry->piece != NULL && entry->artifact_sha256[0] == '\0';
}

/* The name of our own provider: the first of the key's. */
static void own_provider(const struct wpk_search *search, char out[WPK_PROVIDER_NAME_MAX])
{
    size_t size = strcspn(search->key.providers, ";");
    snprintf(out, WPK_PROVIDER_NAME_MAX, "%.*s", (int)size, search->key.providers);
}

static void collect_entries(struct wpk_search *search)
{
    char own[WPK_PROVIDER_NAME_MAX];
    own_provider(search, own);
    search->entry_count = 0;
    bool served_is_among_them = search->served_artifact[0] == '\0';
    for (uint32_t i = 0; i < search->best_count; i++) {
        const struct wpk_piece *ask = &search->asks[search->best[i]];
        add_entry(search, ask, own, ask->trial.artifact_sha256);
        served_is_among_them = served_is_among_them ||
                               strcmp(ask->trial.artifact_sha256, search->served_artifact) == 0;
    }
    for (uint32_t i = 0; i < search->vendor_count && search->entry_count < WPK_CONTENDERS_MAX - 1;
         i++) {
        if (search->vendors[i].trial.outcome == WPK_OUTCOME_OK) {
            add_entry(search, &search->vendors[i], search->vendors[i].text, "");
        }
    }
    /* What another search found for this problem is not thrown out by a slower newcomer. */
    if (!served_is_among_them && search->best_count > 0) {
        add_entry(search, NULL, search->served_provider, search->served_artifact);
    }
}

/* Why candidates failed, the commonest outcome first. */
static void describe_failure(const struct wpk_search *search, char out[WPK_REASON_MAX])
{
    uint32_t counts[WPK_OUTCOME_COUNT] = {0};
    uint32_t commonest = WPK_OUTCOME_OK;
    for (uint32_t i = 0; i < search->ask_count; i++) {
        if (search->asks[i].standing == WPK_STANDING_ENDED) {
            counts[search->asks[i].trial.outcome]++;
        }
    }
    for (uint32_t o = WPK_OUTCOME_OK + 1; o < WPK_OUTCOME_COUNT; o++) {
        if (commonest == WPK_OUTCOME_OK || counts[o] > counts[commonest]) {
            commonest = o;
        }
    }
    if (search->ask_count == 0) {
        snprintf(out, WPK_REASON_MAX, "the time was over before a candidate was tried");
        return;
    }
    snprintf(out, WPK_REASON_MAX, "no implementation works: %u of %u candidates ended %s%s%s",
             counts[commonest], search->ask_count, wpk_outcome_name((enum wpk_outcome)commonest),
             search->failure[0] != '\0' ? "; the last one: " : "", search->failure);
}

static struct wpk_final_entry *fastest(struct wpk_search *search,
                                       bool (*counts)(const struct wpk_final_entry *))
{
    struct wpk_final_entry *best = NULL;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        struct wpk_final_entry *entry = &search->entries[i];
        if (counts(entry) && !entry->rejected && entry->timing.sample_count > 0 &&
            (best == NULL || entry->timing.median_ns < best->timing.median_ns)) {
            best = entry;
        }
    }
    return best;
}

/* Choose what is served and hand it to the store; `record` is of the verification of our own. */
static void conclude(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_record *record)
{
    const struct wpk_final_entry *own = fastest(search, is_own);
    const struct wpk_final_entry *baseline = fastest(search, is_vendor);
    const struct wpk_final_entry *served = own;
    if (own == NULL || (baseline != NULL && !is_faster(&own->timing, &baseline->timing))) {
        served = baseline;
    }
    search->ended_asks = search->ok_count + search->failed_count;
    if (served == NULL) {
        char reason[WPK_REASON_MAX];
        describe_failure(search, reason);
        wpk_search_set_phase(c, search, WPK_PHASE_FAILED, reason);
        return;
    }
    bool serve = true;
    for (uint32_t i = 0; i < search->entry_count; i++) {
        const struct wpk_final_entry *entry = &search->entries[i];
        if (entry->piece == NULL && entry->timing.sample_count > 0) {
            serve = is_faster(&served->timing, &entry->timing);
        }
    }
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_KERNEL);
    effect->search = search;
    effect->served = served;
    effect->own = own;
    effect->baseline = baseline;
    effect->record = own != NULL ? record : NULL;
    effect->serve = serve;
}

/* The fastest of our own that was not rejected is tried on inputs that nobody saw before. */
static void verify_next(struct wpk_coordinator *c, struct wpk_search *search)
{
    struct wpk_final_entry *own = fastest(search, is_own);
    if (own == NULL) {
        conclude(c, search, NULL);
        return;
    }
    search->verifying = (uint32_t)(own - search->entries);
    memset(&search->verify, 0, sizeof search->verify);
    search->verify.text = own->piece->text;
    if (search->phase != WPK_PHASE_VERIFYING) {
        wpk_search_set_phase(c, search, WPK_PHASE_VERIFYING, "");
    }
}

void wpk_final_start(struct wpk_coordinator *c, struct wpk_search *search)
{
    search->measured = true;
    collect_entries(search);
    if (search->entry_count < 2) {
        verify_next(c, search);
        return;
    }
    memset(&search->final, 0, sizeof search->final);
    wpk_search_set_phase(c, search, WPK_PHASE_FINALS, "");
}

void wpk_final_timed(struct wpk_coordinator *c, struct wpk_search *search,
                     const struct wpk_timing *times, const struct wpk_worker *worker)
{
    WPK_ASSERT(search->phase == WPK_PHASE_FINALS);
    search->final.standing = WPK_STANDING_ENDED;
    for (uint32_t i = 0; times != NULL && i < search->entry_count; i++) {
        search->entries[i].timing = times[i];
        if (times[i].sample_count > 0 && search->entries[i].piece != NULL) {
            struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_TIMES);
            effect->search = search;
            effect->entry = &search->entries[i];
            effect->worker = worker;
        }
    }
    verify_next(c, search);
}

void wpk_final_verified(struct wpk_coordinator *c, struct wpk_search *search,
                        const struct wpk_record *record)
{
    WPK_ASSERT(search->phase == WPK_PHASE_VERIFYING);
    if (record->outcome == WPK_OUTCOME_OK) {
        conclude(c, search, record);
        return;
    }
    wpk_effect_log(c, "winner_rejected", "search=%llu outcome=%s candidate=\"%.200s\"",
                   (unsigned long long)search->id, wpk_outcome_name(record->outcome),
                   search->verify.text);
    search->entries[search->verifying].rejected = true;
    verify_next(c, search);
}

void wpk_final_kernel_put(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id)
{
    search->kernel_id = kernel_id;
    wpk_search_set_phase(c, search, WPK_PHASE_DONE, "");
}
