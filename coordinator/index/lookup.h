/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup: find the best known kernel for an operator on a device in a version of the index. The
 * functions are pure. */
#ifndef WPK_COORDINATOR_INDEX_LOOKUP_H
#define WPK_COORDINATOR_INDEX_LOOKUP_H

#include "coordinator/index/index.h"
#include "ir/canonical/canonical.h"

#define WPK_LOOKUP_DIFFERS_MAX 8

/* suffix, text: the closest match first, in the order of WPK_LABEL_MATCH */
#define WPK_MATCH_LIST(X)                                                                          \
    X(EXACT, "exact")                 /* measured for this problem */                              \
    X(OTHER_VERSION, "other_version") /* measured in another environment */                        \
    X(NEAREST_SHAPE, "nearest_shape") /* of another shape, and legal on this one */                \
    X(SAME_FAMILY, "same_family")     /* of another device, or not legal here */                   \
    X(VENDOR, "vendor")               /* measured for this problem: a vendor is fastest */         \
    X(NONE, "none")

#define WPK_MATCH_ENUM(name, text) WPK_MATCH_##name,
enum wpk_match_level { WPK_MATCH_LIST(WPK_MATCH_ENUM) WPK_MATCH_COUNT };

const char *wpk_match_name(enum wpk_match_level level);

/* A lookup's request. */
struct wpk_lookup {
    char fingerprint[WPK_FINGERPRINT_SIZE];
    const char *layouts;
    int threads;
    struct wpk_accuracy accuracy; /* class that the kernel's error has to fit */
    enum wpk_conditions conditions;
    const char *device;      /* class */
    const char *environment; /* wanted; "": that of the device's newest kernel */
    /* Set when the request gives the operator itself; needed to find near shapes. */
    struct wpk_program *program; /* owned by the caller; NULL: unknown, like all below */
    char family[WPK_FINGERPRINT_SIZE];
    char extents[WPK_EXTENTS_SIZE];
    double flops; /* of one call */
    double bytes; /* of its inputs, constants and outputs */
};

/* A field of the environment that differs from the wanted one. An empty span: absent. */
struct wpk_differs {
    struct wpk_text_span field;
    struct wpk_text_span has;
    struct wpk_text_span wants;
};

struct wpk_match {
    enum wpk_match_level level;
    const struct wpk_served *served; /* NULL for NONE */
    double distance; /* between the shapes: the sum of |log2(a / b)| over all axes */
    struct wpk_differs differs[WPK_LOOKUP_DIFFERS_MAX]; /* [differs_count] */
    uint32_t differs_count;
};

/* True if the match was measured for this problem. */
bool wpk_match_is_hit(const struct wpk_match *match);
/* Find the best match; *out points into the version and the lookup. */
void wpk_lookup_find(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                     struct wpk_match *out);

/* True if the kernel could answer the lookup for an equal problem: the error fits, and it was timed
 * on the wanted device or on another one of its kind that is not emulated. */
bool wpk_lookup_admits(const struct wpk_lookup *lookup, const struct wpk_served *served);

/* True if the kernel was timed on the lookup's device, with its layouts, threads and conditions. */
bool wpk_lookup_has_key(const struct wpk_lookup *lookup, const struct wpk_served *served);

/* List the fields of `wants` that `has` lacks or has with another value; of a driver only the major
 * version counts. Returns their number, at most WPK_LOOKUP_DIFFERS_MAX. */
uint32_t wpk_lookup_differs(const char *has, const char *wants,
                            struct wpk_differs out[WPK_LOOKUP_DIFFERS_MAX]);

/* An estimate of an operator's time on a device, from what the index knows. */

/* suffix, text: the most trustworthy first. Elsewhere: with other borders, layouts, threads or
 * conditions, or on another device of the kind. */
#define WPK_ESTIMATE_LIST(X)                                                                       \
    X(MEASURED, "measured")           /* this problem's time, perhaps of another environment */    \
    X(ELSEWHERE, "elsewhere")         /* the same equation and extents elsewhere */                \
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
