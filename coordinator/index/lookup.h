/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an operator on a device: the search through a version of the index. Pure. */
#ifndef WPK_COORDINATOR_INDEX_LOOKUP_H
#define WPK_COORDINATOR_INDEX_LOOKUP_H

#include "coordinator/index/index.h"
#include "op/fingerprint.h"

#define WPK_LOOKUP_DIFFERS_MAX 8

/* suffix, text: what is closest first; the order is that of WPK_LABEL_MATCH */
#define WPK_MATCH_LIST(X)                                                                          \
    X(EXACT, "exact")                 /* measured for this key */                                  \
    X(OTHER_VERSION, "other_version") /* in another environment */                                 \
    X(NEAREST_SHAPE, "nearest_shape") /* for another shape, and legal on this one */               \
    X(SAME_FAMILY, "same_family")     /* on another device, or not legal on this shape */          \
    X(VENDOR, "vendor")               /* measured for this key: a vendor's is the fastest */       \
    X(NONE, "none")

#define WPK_MATCH_ENUM(name, text) WPK_MATCH_##name,
enum wpk_match_level { WPK_MATCH_LIST(WPK_MATCH_ENUM) WPK_MATCH_COUNT };

const char *wpk_match_name(enum wpk_match_level level);

/* What is asked for. */
struct wpk_lookup {
    char fingerprint[WPK_FINGERPRINT_SIZE];
    const char *layouts;
    int threads;
    struct wpk_accuracy accuracy; /* class that the kernel's error has to fit */
    enum wpk_conditions conditions;
    const char *device;      /* class */
    const char *environment; /* fields to be equal; "": those of the device's newest kernel */
    /* Known where the operator itself was given; needed for shapes that are near. */
    struct wpk_program *program; /* owned by the caller; NULL: unknown, as all below */
    char family[WPK_FINGERPRINT_SIZE];
    char extents[WPK_EXTENTS_SIZE];
    double flops;
};

/* A field of the environment that is not as it was asked for. An empty span: not there. */
struct wpk_differs {
    struct wpk_span field;
    struct wpk_span has;
    struct wpk_span wants;
};

struct wpk_match {
    enum wpk_match_level level;
    const struct wpk_served *served; /* NULL for NONE */
    double distance;   /* between the shapes: the sum of |log2(a / b)| over all axes */
    double time_ratio; /* expected time / measured time; 0: nothing is expected */
    struct wpk_differs differs[WPK_LOOKUP_DIFFERS_MAX]; /* [differs_count] */
    uint32_t differs_count;
};

/* The match, with pointers into the version and the lookup. */
void wpk_lookup_find(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                     struct wpk_match *out);

/* Fields of `wants` that `has` lacks or has otherwise; of a driver the major version alone counts.
 * Returns how many, at most WPK_LOOKUP_DIFFERS_MAX. */
uint32_t wpk_lookup_differs(const char *has, const char *wants,
                            struct wpk_differs out[WPK_LOOKUP_DIFFERS_MAX]);

#endif
