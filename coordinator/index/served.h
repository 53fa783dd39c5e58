/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that is served, as lookups need it: what it is found by, and its answers as text, made
 * once. Immutable. */
#ifndef WPK_COORDINATOR_INDEX_SERVED_H
#define WPK_COORDINATOR_INDEX_SERVED_H

#include "coordinator/store/store.h"
#include "op/fingerprint.h"
#include "schema/accuracy.h"
#include "schema/record.h"

struct wpk_span {
    const char *text; /* not NUL-terminated */
    size_t size;
};

/* Texts are owned, and "" where history does not know. */
struct wpk_served {
    uint64_t kernel_id;
    uint64_t problem_id;
    uint64_t fingerprint_key; /* wpk_served_key() of it */
    uint64_t family_key;
    uint64_t device_key; /* wpk_served_device_key() of it */
    const char *fingerprint;
    const char *family;
    const char *layouts;
    const char *device; /* class */
    const char *environment;
    const char *provider;
    const char *candidate; /* genes; "" of a vendor's */
    const char *artifact;  /* SHA-256; "" of a vendor's */
    int threads;
    enum wpk_conditions conditions; /* of the policy that it was timed by */
    struct wpk_accuracy accuracy;   /* the class that serves it */
    double times_direct;            /* its error over direct evaluation's; -1: not measured */
    bool pinned;
    bool vendor; /* there is no artifact */
    double flops;
    uint64_t median_ns;
    uint64_t mad_ns;
    const float *log2_extents; /* [extent_count]; of the canonical form's axes */
    uint32_t extent_count;
    struct wpk_span answer; /* the Match of schema/openapi.yaml where all is equal */
    struct wpk_span brief;  /* of that, what stands before the kernel: without a closing brace */
    struct wpk_span match;  /* of that, the members that every match has: `"kernel_id":...` */
    struct wpk_span kernel; /* of that, the Kernel: an object */
    char etag[19];          /* of the answer, with its quotes */
};

/* The first 16 digits of a hash in hexadecimal, as a number: equal where hashes are equal. */
uint64_t wpk_served_key(const char *hash);

/* Of a device class: equal where classes are equal, and hardly ever where they are not. */
uint64_t wpk_served_device_key(const char *device);

/* Kernels that are served. `= {0}` is an empty list. */
struct wpk_served_list {
    struct wpk_served **items; /* owned, and what they point to; [count] */
    uint32_t count;
    uint32_t capacity;
};

/* Append what the problem serves: a kernel for each class that it was searched in. Where the store
 * or memory failed the store says which (a failure of memory is reported through it).
 *   owns  caller calls wpk_served_list_fini */
void wpk_served_read(struct wpk_store *store, uint64_t problem_id, struct wpk_served_list *out);
void wpk_served_list_fini(struct wpk_served_list *list);
void wpk_served_free(struct wpk_served *served);

/* "64,64,56" as logarithms; how many, 0 when it is not such a list. */
uint32_t wpk_served_extents(const char *text, float out[WPK_EXTENTS_MAX]);

#endif
