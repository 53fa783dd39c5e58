/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

#define VENDOR_NS 300000
#define SLOW 1.6 /* times as long, in the slower state of the machine; an outlier differs by 3 */

static uint64_t hash_of(const char *text, int part)
{
    uint64_t hash[4];
    wpk_crypto_sha256(text, strlen(text), (uint8_t *)hash);
    return hash[part];
}

uint64_t wpk_sim_trial_ns(const char *candidate)
{
    return hash_of(candidate, 0) % 10 == 0 ? 0 : 100000 + hash_of(candidate, 1) % 1000000;
}

void wpk_sim_artifact(const char *candidate, char out[WPK_SHA256_HEX_SIZE])
{
    wpk_crypto_sha256_hex(candidate, strlen(candidate), out);
}

uint64_t wpk_sim_artifact_ns(const char *artifact)
{
    uint64_t hash[4];
    bool own = wpk_crypto_unhex(artifact, sizeof hash, hash);
    return own ? 100000 + hash[1] % 1000000 : VENDOR_NS;
}

/* An artifact's name is its candidate's hash, which says what it took in the search. In a final it
 * takes 0.6 to 1.4 of that: others win. */
uint64_t wpk_sim_final_ns(const char *provider, const char *artifact)
{
    char text[WPK_PROVIDER_NAME_MAX + WPK_ID_MAX];
    uint64_t ns = wpk_sim_artifact_ns(artifact);
    snprintf(text, sizeof text, "%s%s", provider, artifact);
    return ns * 6 / 10 + hash_of(text, 0) % (ns * 8 / 10);
}

bool wpk_sim_verifies(const char *candidate)
{
    return hash_of(candidate, 2) % 6 != 0;
}

static struct wpk_timing timing_of(uint64_t ns)
{
    struct wpk_timing timing = {.median_ns = ns,
                                .min_ns = ns - 10,
                                .mad_ns = 5,
                                .sample_count = 1,
                                .repeat_count = 1,
                                .sample_ns = {ns}};
    return timing;
}

static uint64_t skewed(uint64_t ns, double skew)
{
    return (uint64_t)((double)ns * skew);
}

/* Fill in the anchor's time and the ratio to it; the ratio is the same whether the worker is slow
 * or not. */
static void put_anchor(const struct wpk_sim_holding *held, uint64_t ns, struct wpk_record *record)
{
    if (held->anchor[0] != '\0') {
        memcpy(record->anchor_sha256, held->anchor, sizeof record->anchor_sha256);
        record->anchor_ns = skewed(held->anchor_ns, held->slow ? SLOW : 1);
        record->anchor_ratio = (double)ns / (double)held->anchor_ns;
    }
}

void wpk_sim_fill_result(const struct wpk_sim_holding *held, double skew, struct wpk_result *result)
{
    const struct wpk_work *work = &held->work;
    memset(result, 0, sizeof *result);
    result->id = work->id;
    result->lease = work->lease;
    result->stage = work->stage;
    result->attempt = work->attempt;
    result->failure = held->lost ? "an artifact is lost" : "";
    if (held->lost || held->anchor_failed) {
        result->record.outcome = WPK_OUTCOME_ABANDONED;
        result->record.anchor_failed = held->anchor_failed;
        memcpy(result->record.anchor_sha256, held->anchor, sizeof held->anchor);
        return;
    }
    if (work->id.kind == WPK_WORK_FINAL) {
        result->timing_count = work->contender_count;
        for (uint32_t c = 0; c < work->contender_count; c++) {
            result->timing[c] = timing_of(skewed(held->final_ns[c], skew));
        }
        return;
    }
    bool vendor = work->id.kind == WPK_WORK_VENDOR;
    bool runs = work->stage != WPK_STAGE_BUILD;
    uint64_t ns = vendor ? VENDOR_NS : wpk_sim_trial_ns(held->candidate);
    result->record.outcome = ns > 0 ? WPK_OUTCOME_OK : WPK_OUTCOME_BUILD_ERROR;
    bool fresh = work->id.kind == WPK_WORK_VERIFY || work->id.kind == WPK_WORK_PLAIN;
    if (runs && fresh && !wpk_sim_verifies(held->candidate)) {
        result->record.outcome = WPK_OUTCOME_WRONG_RESULT;
        return;
    }
    if (ns > 0) {
        if (runs) {
            bool slow = held->slow && work->id.kind == WPK_WORK_TRIAL;
            result->record.timing = timing_of(skewed(ns, slow ? skew * SLOW : skew));
            put_anchor(held, ns, &result->record);
        }
        if (!vendor) {
            wpk_sim_artifact(held->candidate, result->record.artifact_sha256);
        }
    }
}
