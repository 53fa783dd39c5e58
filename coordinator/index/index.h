/* SPDX-License-Identifier: Apache-2.0 */
/* The served kernels in memory, for lookups on any thread.
 *
 *      writer's thread                      loop's thread            any thread
 *      refresh(problem) ──▶ change ── commit ──▶ publish ──▶ [version] ──▶ acquire ... release
 *                                │
 *                                └─ the commit failed ──▶ discard
 *
 * A version never changes: it has, for each order, an array of all entries. A publication copies
 * the arrays, of some thousands of kernels, with its changes. So a reader sees one state from
 * acquire to release, without waiting. */
#ifndef WPK_COORDINATOR_INDEX_INDEX_H
#define WPK_COORDINATOR_INDEX_INDEX_H

#include "coordinator/index/served.h"

#define WPK_INDEX_DEVICES_MAX 64 /* device classes with an environment */

struct wpk_index;
struct wpk_index_change;
struct wpk_misses;

/* A device class, and the environment in which its newest kernel was measured. */
struct wpk_index_device {
    uint64_t kernel_id;
    const char *name;
    const char *environment;
    double peak_flops_per_s; /* of one core; 0: unknown */
    double peak_bytes_per_s; /* likewise */
};

/* The key by which a version's array orders its entries, before the kernel's id. */
enum wpk_index_order {
    WPK_INDEX_BY_FINGERPRINT, /* wpk_served_key() */
    WPK_INDEX_BY_FAMILY,      /* wpk_served_key() */
    WPK_INDEX_BY_DEVICE,      /* wpk_served_device_key() */
    WPK_INDEX_BY_KERNEL,      /* key 0: by id alone */
    WPK_INDEX_ORDER_COUNT
};

struct wpk_index_slot {
    uint64_t key;
    uint64_t kernel_id;
    const struct wpk_served *served;
};

struct wpk_index_version {
    uint64_t life;   /* random: tells versions of two starts apart */
    uint64_t number; /* grows by one with each version */
    uint32_t count;
    struct wpk_index_slot *slots[WPK_INDEX_ORDER_COUNT];    /* each [count], in its order */
    struct wpk_index_device devices[WPK_INDEX_DEVICES_MAX]; /* [device_count], by name */
    uint32_t device_count;
};

/*   owns    caller frees, after all versions were released */
struct wpk_index *wpk_index_new(void);
void wpk_index_free(struct wpk_index *index);
/* The lookups that it could not answer (index/misses.h). */
struct wpk_misses *wpk_index_misses(struct wpk_index *index);

/* Read all served kernels and publish them: at the start, and after a failure of the store.
 *   errors  WPK_ENOMEM; those of the store */
wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store, struct wpk_diag *diag);

/* Read what `problem_id` serves after the current batch. Publish the change once the batch is
 * durable, else discard it; changes are published in the order in which they were made.
 *   owns    publish or discard takes the change; NULL, which both accept, after a failure of the
 *           store, which fails the batch */
struct wpk_index_change *wpk_index_refresh(struct wpk_store *store, uint64_t problem_id);
void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change);
void wpk_index_discard(struct wpk_index_change *change);
/* Get the newest version, which is valid until it is released. */
const struct wpk_index_version *wpk_index_acquire(struct wpk_index *index);
void wpk_index_release(struct wpk_index *index, const struct wpk_index_version *version);

/* A position between two entries of one key. */
struct wpk_index_cursor {
    const struct wpk_index_slot *slots; /* [count] */
    uint32_t count;
    uint32_t at; /* the next slot's index */
    uint64_t key;
};

/* Move the cursor before (key, kernel_id); UINT64_MAX is behind all entries of the key. */
void wpk_index_seek(struct wpk_index_cursor *cursor, const struct wpk_index_version *version,
                    enum wpk_index_order order, uint64_t key, uint64_t kernel_id);
/* Move the cursor across the previous or next entry of the key, and return it; NULL: no more. */
const struct wpk_served *wpk_index_prev(struct wpk_index_cursor *cursor);
const struct wpk_served *wpk_index_next(struct wpk_index_cursor *cursor);

#endif
