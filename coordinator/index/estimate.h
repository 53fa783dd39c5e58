/* SPDX-License-Identifier: Apache-2.0 */
/* An estimate of an operator's time on a device, from what the index knows. */
#ifndef WPK_COORDINATOR_INDEX_ESTIMATE_H
#define WPK_COORDINATOR_INDEX_ESTIMATE_H

#include "coordinator/index/lookup.h"

/* suffix, text: the most trustworthy first. Elsewhere: with other borders, layouts, threads or
 * conditions, or on another device of the kind. */
#define WPK_ESTIMATE_LIST(X)                                                                       \
    X(MEASURED, "measured")   /* this problem's time, perhaps of another environment */            \
    X(ELSEWHERE, "elsewhere") /* the same equation and extents elsewhere */                        \
    X(NEAREST_SHAPE, "nearest_shape") /* the time of the nearest shape of the family */            \
    X(FAMILY, "family")               /* the median share of the roofline of the family */         \
    X(NONE, "none")

#define WPK_ESTIMATE_ENUM(name, text) WPK_ESTIMATE_##name,
enum wpk_estimate_source { WPK_ESTIMATE_LIST(WPK_ESTIMATE_ENUM) WPK_ESTIMATE_COUNT };

const char *wpk_estimate_name(enum wpk_estimate_source source);

struct wpk_estimate {
    enum wpk_estimate_source source;
    double median_ns;
    double mad_ns; /* scaled as the median is; of a family 0 */
};

/* Estimate the time of the operator that `lookup` asks for; `match` is its match. Times of other
 * places and shapes are multiplied by the ratio of the rooflines, which are max(FLOPs / peak, bytes
 * / bandwidth); within a device whose peaks are unknown by the ratio of the FLOPs. */
void wpk_estimate_find(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                       const struct wpk_match *match, struct wpk_estimate *out);

#endif
