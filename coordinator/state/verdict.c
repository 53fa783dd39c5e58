/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a final: which of its contenders wins, whether it replaces what the problem
 * serves, and what is recorded beside it. */
#include "coordinator/state/final.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Standard deviations by which a newcomer must beat what is there: about 5 % of false alarms. */
#define BEYOND_NOISE 2.0
#define MAD_TO_SIGMA 1.4826 /* of a normal distribution */

/* True if `a` is faster than `b` by more than the noise of both medians. */
static bool is_faster(const struct wpk_timing *a, const struct wpk_timing *b)
{
    double count = a->sample_count > 0 ? a->sample_count : 1;
    double noise = MAD_TO_SIGMA * hypot((double)a->mad_ns, (double)b->mad_ns) / sqrt(count);
    return (double)a->median_ns + BEYOND_NOISE * noise < (double)b->median_ns;
}

static bool is_verified(const struct wpk_final_entry *entry)
{
    return entry->verified;
}

static bool is_vendor(const struct wpk_final_entry *entry)
{
    return entry->kind == WPK_ENTRY_VENDOR;
}

/* True if the problem serves this entry. */
static bool is_served(const struct wpk_search *search, const struct wpk_final_entry *entry)
{
    return strcmp(entry->provider, search->served.provider) == 0 &&
           strcmp(entry->artifact_sha256, search->served.artifact_sha256) == 0;
}

/* The entry that the problem serves; NULL if it does not take part. */
static const struct wpk_final_entry *find_served(const struct wpk_search *search)
{
    for (uint32_t i = 0; i < search->entry_count; i++) {
        if (is_served(search, &search->entries[i])) {
            return &search->entries[i];
        }
    }
    return NULL;
}

/* True if `winner` may replace the served kernel: it must be faster in this final. A served kernel
 * that was not timed in it stays. */
static bool is_to_be_served(const struct wpk_search *search, const struct wpk_final_entry *winner)
{
    const struct wpk_final_entry *served = find_served(search);
    if (search->served.kernel_id == 0 || is_served(search, winner)) {
        return true;
    }
    return served != NULL && served->timed && winner->timed &&
           is_faster(&winner->timing, &served->timing);
}

/* Why no candidate of the search is its answer, after what is. */
static void explain(const struct wpk_search *search, const char *answer, char out[WPK_REASON_MAX])
{
    uint32_t commonest = WPK_OUTCOME_OK + 1;
    for (uint32_t o = commonest + 1; o < WPK_OUTCOME_COUNT; o++) {
        if (search->outcomes[o] > search->outcomes[commonest]) {
            commonest = o;
        }
    }
    if (search->ok_count > 0 || search->failed_count == 0) {
        snprintf(out, WPK_REASON_MAX, "%s%s", answer,
                 search->ok_count > 0
                     ? "nothing that works is within the accuracy class and has a shared object"
                     : "the time was over before a candidate was tried");
        return;
    }
    snprintf(out, WPK_REASON_MAX, "%s%u of %u candidates ended %s%s%s", answer,
             search->outcomes[commonest], search->failed_count,
             wpk_outcome_name((enum wpk_outcome)commonest),
             search->failure[0] != '\0' ? "; the last one: " : "", search->failure);
}

enum wpk_search_phase wpk_verdict_phase(const struct wpk_search *search,
                                        char reason[WPK_REASON_MAX])
{
    bool all_failed = search->ok_count == 0 && search->failed_count > 0;
    reason[0] = '\0';
    if (all_failed && !wpk_plain_works(search)) {
        explain(search, "no implementation works: ", reason);
        return WPK_SEARCH_PHASE_FAILED;
    }
    if (search->plain_wins) {
        explain(search, "only the plain kernel can be served: ", reason);
    } else if (all_failed) {
        explain(search, "no candidate works: ", reason);
    } else if (search->plain.item.standing == WPK_STANDING_ENDED && !wpk_plain_works(search)) {
        snprintf(reason, WPK_REASON_MAX,
                 "there is no plain kernel, which would run on other devices: it ended %s",
                 wpk_outcome_name(search->plain.item.trial.outcome));
    }
    return WPK_SEARCH_PHASE_DONE;
}

struct wpk_final_entry *wpk_verdict_fastest(struct wpk_search *search,
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

/* The searches of one problem and class race against what it serves now, not when they were opened,
 * nor when it is stored. */
void wpk_verdict_serve(struct wpk_coordinator *c, struct wpk_search *search, uint64_t kernel_id)
{
    const struct wpk_final_entry *winner = search->winner;
    struct wpk_search *other = wpk_table_get(&c->searches_by_problem, search->problem_id);
    for (; other != NULL; other = other->problem_next) {
        if (strcmp(other->key.accuracy, search->key.accuracy) != 0) {
            continue;
        }
        other->served.kernel_id = kernel_id;
        memcpy(other->served.provider, winner->provider, sizeof other->served.provider);
        memcpy(other->served.artifact_sha256, winner->artifact_sha256,
               sizeof other->served.artifact_sha256);
    }
}

/* List the entries that are recorded beside the winner: verified ones, and the fastest vendor's. */
static void keep_others(const struct wpk_search *search, struct wpk_effect *effect)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->entry_count && count < WPK_FINAL_VERIFIED_MAX; i++) {
        const struct wpk_final_entry *entry = &search->entries[i];
        if (entry != effect->served && !entry->rejected &&
            (entry->verified || entry == effect->baseline)) {
            effect->kept[count++] = entry;
        }
    }
}

enum wpk_verdict wpk_verdict_reach(struct wpk_coordinator *c, struct wpk_search *search,
                                   char reason[WPK_REASON_MAX])
{
    const struct wpk_final_entry *own = wpk_verdict_fastest(search, is_verified);
    const struct wpk_final_entry *baseline = wpk_verdict_fastest(search, is_vendor);
    const struct wpk_final_entry *plain = wpk_plain_entry(search);
    const struct wpk_final_entry *winner = own;
    if (own == NULL || (baseline != NULL && !is_faster(&own->timing, &baseline->timing))) {
        winner = baseline;
    }
    if (winner == NULL && plain != NULL &&
        wpk_accuracy_admits(search->accuracy, plain->trial.times_direct)) {
        own = plain;
        winner = plain;
    }
    if (winner != NULL && search->served.artifact_sha256[0] != '\0' &&
        find_served(search) == NULL) {
        return WPK_VERDICT_AGAIN; /* another search has ended meanwhile: its kernel takes part */
    }
    search->ended_asks = search->ok_count + search->failed_count;
    search->plain_wins = winner != NULL && winner == plain;
    if (winner == NULL && wpk_plain_awaited(search)) {
        return WPK_VERDICT_PLAIN;
    }
    if (winner == NULL) {
        bool all_failed = search->ok_count == 0 && search->failed_count > 0;
        explain(search, all_failed ? "no implementation works: " : "", reason);
        return WPK_VERDICT_NOTHING;
    }
    /* Not left to the next tick: with the kernel stored, and not what it covers, another start
     * would search once more. */
    wpk_effect_add(c, WPK_EFFECT_SET_SEARCH)->search = search;
    search->phase = WPK_SEARCH_PHASE_STORING;
    search->winner = winner;
    search->serving = is_to_be_served(search, winner);
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_KERNEL);
    effect->search = search;
    effect->served = winner;
    effect->own = own;
    effect->baseline = baseline;
    effect->serve = search->serving;
    effect->plain = plain;
    keep_others(search, effect);
    if (search->serving) {
        wpk_verdict_serve(c, search, WPK_NOT_STORED);
    }
    return WPK_VERDICT_KERNEL;
}
