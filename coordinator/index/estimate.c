/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"
#include "coordinator/index/lookup.h"

#include "ir/cost.h"

#include <stdlib.h>
#include <string.h>

#define SHARES_MAX 256 /* newest kernels of a family that its median is of */

static const char *const estimate_names[] = {WPK_ESTIMATE_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_estimate_name, enum wpk_estimate_source, estimate_names)

/* Times of the kernels of a family, as they are read from the index. */
struct survey {
    const struct wpk_lookup *lookup;
    const struct wpk_index_device *device; /* the lookup's; NULL: unknown */
    double roofline_ns;                    /* of the lookup; 0: unknown */
    const struct wpk_served *elsewhere;    /* NULL: none, as below */
    int elsewhere_score;
    const struct wpk_served *nearest;
    double distance;
    double shares[SHARES_MAX]; /* [share_count] roofline over time */
    uint32_t share_count;
};

static double roofline_ns(double flops, double bytes, int threads, double flops_per_s,
                          double bytes_per_s)
{
    const struct wpk_cost cost = {.flops = flops};
    const struct wpk_roofline roofline = {flops_per_s * threads, bytes_per_s};
    return flops_per_s > 0 && bytes_per_s > 0 ? wpk_cost_roofline_ns(&cost, bytes, &roofline) : 0;
}

static double served_roofline_ns(const struct wpk_served *served)
{
    return roofline_ns(served->flops, served->bytes, served->threads, served->peak_flops_per_s,
                       served->peak_bytes_per_s);
}

/* Similarity of the circumstances of lookup and kernel. The device counts most. */
static int score(const struct wpk_lookup *lookup, const struct wpk_served *served)
{
    return 8 * (strcmp(served->device, lookup->device) == 0) +
           4 * (served->threads == lookup->threads) +
           2 * (served->conditions == lookup->conditions) +
           (strcmp(served->layouts, lookup->layouts) == 0);
}

/* Entries come newest first. */
static void note(struct survey *survey, const struct wpk_served *served, double distance)
{
    double roof = served_roofline_ns(served);
    int mine = score(survey->lookup, served);
    if (distance == 0 && (survey->elsewhere == NULL || mine > survey->elsewhere_score)) {
        survey->elsewhere = served;
        survey->elsewhere_score = mine;
    }
    if (wpk_lookup_has_key(survey->lookup, served) &&
        (survey->nearest == NULL || distance < survey->distance)) {
        survey->nearest = served;
        survey->distance = distance;
    }
    if (roof > 0 && served->median_ns > 0 && survey->share_count < SHARES_MAX) {
        survey->shares[survey->share_count++] = roof / (double)served->median_ns;
    }
}

static void look(const struct wpk_index_version *version, struct survey *survey)
{
    const struct wpk_lookup *lookup = survey->lookup;
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    float extents[WPK_EXTENTS_MAX];
    uint32_t count = wpk_served_extents(lookup->extents, extents);
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_FAMILY, wpk_served_key(lookup->family),
                   UINT64_MAX);
    while ((served = wpk_index_prev(&cursor)) != NULL) {
        if (strcmp(served->family, lookup->family) == 0 && served->extent_count == count &&
            wpk_lookup_admits(lookup, served)) {
            note(survey, served, wpk_served_distance(served, extents));
        }
    }
}

/* Scale the time of a kernel to the lookup's problem; false: no kernel, or no known ratio. */
static bool scale(const struct survey *survey, const struct wpk_served *served,
                  enum wpk_estimate_source source, struct wpk_estimate *out)
{
    double there = served != NULL ? served_roofline_ns(served) : 0;
    double ratio = 0;
    if (served == NULL) {
        return false;
    }
    if (there > 0 && survey->roofline_ns > 0) {
        ratio = survey->roofline_ns / there;
    } else if (served->flops > 0 && strcmp(served->device, survey->lookup->device) == 0) {
        ratio = survey->lookup->flops * served->threads / (served->flops * survey->lookup->threads);
    }
    *out = (struct wpk_estimate){source, ratio * (double)served->median_ns,
                                 ratio * (double)served->mad_ns};
    return ratio > 0;
}

static bool share(struct survey *survey, struct wpk_estimate *out)
{
    if (survey->share_count == 0 || survey->roofline_ns <= 0) {
        return false;
    }
    qsort(survey->shares, survey->share_count, sizeof survey->shares[0], wpk_real_compare);
    *out = (struct wpk_estimate){WPK_ESTIMATE_FAMILY,
                                 survey->roofline_ns / survey->shares[survey->share_count / 2], 0};
    return true;
}

static const struct wpk_index_device *find_device(const struct wpk_index_version *version,
                                                  const char *name)
{
    int found =
        WPK_FIND(struct wpk_index_device, name, version->devices, version->device_count, name);
    return found >= 0 ? &version->devices[found] : NULL;
}

void wpk_estimate_find(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                       const struct wpk_match *match, struct wpk_estimate *out)
{
    struct survey survey = {.lookup = lookup, .device = find_device(version, lookup->device)};
    if (match->level == WPK_MATCH_EXACT || match->level == WPK_MATCH_VENDOR ||
        match->level == WPK_MATCH_OTHER_VERSION) {
        *out = (struct wpk_estimate){WPK_ESTIMATE_MEASURED, (double)match->served->median_ns,
                                     (double)match->served->mad_ns};
        return;
    }
    if (survey.device != NULL) {
        survey.roofline_ns =
            roofline_ns(lookup->flops, lookup->bytes, lookup->threads,
                        survey.device->peak_flops_per_s, survey.device->peak_bytes_per_s);
    }
    if (lookup->family[0] != '\0') {
        look(version, &survey);
    }
    if (!scale(&survey, survey.elsewhere, WPK_ESTIMATE_ELSEWHERE, out) &&
        !scale(&survey, survey.nearest, WPK_ESTIMATE_NEAREST_SHAPE, out) && !share(&survey, out)) {
        *out = (struct wpk_estimate){.source = WPK_ESTIMATE_NONE};
    }
}
