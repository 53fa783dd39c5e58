/* SPDX-License-Identifier: Apache-2.0 */
/* The served kernels in memory, for lookups on any thread.
 *
 *      writer's thread                      loop's thread            any thread
 *      refresh(problem) ──▶ change ── commit ──▶ publish ──▶ [version] ──▶ acquire ... release
 *                                │
 *                                └─ the commit failed ──▶ discard
 *
 * A version never changes. The next one shares its nodes, except on the paths to changed entries,
 * and costs O(log n). So a reader sees one state from acquire to release, without waiting. */
#ifndef WPK_COORDINATOR_INDEX_INDEX_H
#define WPK_COORDINATOR_INDEX_INDEX_H

#include "coordinator/index/index_tree.h"

#define WPK_INDEX_DEVICES_MAX 64 /* device classes with an environment */

struct wpk_index;
struct wpk_index_change;

/* A device class, and the environment in which its newest kernel was measured. */
struct wpk_index_device {
    uint64_t kernel_id;
    const char *name;
    const char *environment;
};

/* The key by which a version's tree (index_tree.h) orders its entries, before the kernel's id. */
enum wpk_index_order {
    WPK_INDEX_BY_FINGERPRINT, /* wpk_served_key() */
    WPK_INDEX_BY_FAMILY,      /* wpk_served_key() */
    WPK_INDEX_BY_DEVICE,      /* wpk_served_device_key() */
    WPK_INDEX_BY_KERNEL,      /* key 0: by id alone */
    WPK_INDEX_ORDER_COUNT
};

struct wpk_index_version {
    uint64_t life;   /* random: tells versions of two starts apart */
    uint64_t number; /* grows by one with each version */
    uint32_t count;
    struct wpk_index_node *trees[WPK_INDEX_ORDER_COUNT];
    struct wpk_index_device devices[WPK_INDEX_DEVICES_MAX]; /* [device_count] */
    uint32_t device_count;
};

/*   owns    caller frees, after all versions were released
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_index_new(struct wpk_index **out);
void wpk_index_free(struct wpk_index *index);

/* Read all served kernels and publish them: at the start, and after a failure of the store.
 *   errors  WPK_ENOMEM; those of the store */
WPK_MUST_CHECK wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store,
                                      struct wpk_diag *diag);

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

/* Find a kernel; NULL when it is not served. */
const struct wpk_served *wpk_index_kernel(const struct wpk_index_version *version,
                                          uint64_t kernel_id);

#endif
