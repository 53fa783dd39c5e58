/* SPDX-License-Identifier: Apache-2.0 */
/* A served kernel as lookups need it: its keys, and its answers as text, which are made once.
 * Immutable. */
#ifndef WPK_COORDINATOR_INDEX_SERVED_H
#define WPK_COORDINATOR_INDEX_SERVED_H

#include "coordinator/store/store.h"
#include "ir/canonical/canonical.h"
#include "schema/accuracy.h"
#include "schema/record.h"

struct wpk_text_span {
    const char *text; /* not NUL-terminated */
    size_t size;
};

/* Texts are owned; "" where the history has none. */
struct wpk_served {
    uint64_t kernel_id;
    uint64_t problem_id;
    uint64_t fingerprint_key; /* wpk_served_key(fingerprint) */
    uint64_t family_key;
    uint64_t device_key; /* wpk_served_device_key(device) */
    const char *fingerprint;
    const char *family;
    const char *layouts;
    const char *device; /* class */
    const char *environment;
    const char *provider;
    const char *candidate; /* genes; "": a vendor's */
    const char *artifact;  /* SHA-256; "": a vendor's */
    int threads;
    enum wpk_conditions conditions; /* of the policy it was timed by */
    struct wpk_accuracy accuracy;   /* the class that serves it */
    double times_direct;            /* its error over direct evaluation's; -1: not measured */
    bool pinned;
    bool vendor;             /* a vendor's implementation, without an artifact */
    double flops;            /* of one call */
    double bytes;            /* of its inputs, constants and outputs */
    double peak_flops_per_s; /* of one core of the device; 0: unknown */
    double peak_bytes_per_s; /* likewise */
    uint64_t median_ns;
    uint64_t mad_ns;
    const float *log2_extents; /* [extent_count]; of the canonical form's axes */
    uint32_t extent_count;
    struct wpk_text_span answer; /* the Match of schema/openapi.yaml for an exact match */
    struct wpk_text_span brief;  /* part of `answer` before the kernel, without a closing brace */
    struct wpk_text_span
        match; /* part of `answer`: the members of every match, `"kernel_id":...` */
    struct wpk_text_span kernel; /* part of `answer`: the Kernel, an object */
    char etag[19];               /* of `answer`, with its quotes */
};

/* The first 16 digits of a hash in hexadecimal, as a number: equal where hashes are equal. */
uint64_t wpk_served_key(const char *hash);

/* A hash of a device class: equal for equal classes, almost never for others. */
uint64_t wpk_served_device_key(const char *device);

/* A list of served kernels. `= {0}` is an empty list. */
struct wpk_served_list {
    struct wpk_served **items; /* owned, and what they point to; [count] */
    uint32_t count;
    uint32_t capacity;
};

/* Append what the problem serves: one kernel for each accuracy class that it was searched in. All
 * failures, of memory too, are reported through the store's status.
 *   owns  caller calls wpk_served_list_fini */
void wpk_served_read(struct wpk_store *store, uint64_t problem_id, struct wpk_served_list *out);
void wpk_served_list_fini(struct wpk_served_list *list);
void wpk_served_free(struct wpk_served *served);

/* Parse "64,64,56" into logarithms to base 2; returns their number, 0 for any other text. */
uint32_t wpk_served_extents(const char *text, float out[WPK_EXTENTS_MAX]);

/* The distance between the kernel's shape and another one: the sum of |log2(a / b)| over all axes.
 *   shape   extents [extent_count]: logarithms, from wpk_served_extents */
double wpk_served_distance(const struct wpk_served *served, const float *extents);

#endif
