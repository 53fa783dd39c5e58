/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that are served, in memory, for lookups on any thread.
 *
 *      writer's thread                      loop's thread            any thread
 *      refresh(problem) ──▶ change ── commit ──▶ publish ──▶ [version] ──▶ acquire ... release
 *                                │
 *                                └─ the commit failed ──▶ discard
 *
 * A version never changes: a new one shares all of the one before but what changed, and costs
 * O(log n). So a reader sees one state from acquire to release, and waits for nobody. */
#ifndef WPK_COORDINATOR_INDEX_INDEX_H
#define WPK_COORDINATOR_INDEX_INDEX_H

#include "coordinator/index/index_tree.h"

#define WPK_INDEX_DEVICES_MAX 64 /* device classes whose environment is remembered */

struct wpk_index;
struct wpk_index_change;
struct wpk_store_write;

/* A device class, and the environment in which its newest kernel was measured. */
struct wpk_index_device {
    uint64_t kernel_id;
    const char *name;
    const char *environment;
};

/* How a version's trees (index_tree.h) order their entries: by which key; it is followed by the
 * kernel's id. */
enum wpk_index_order {
    WPK_INDEX_BY_FINGERPRINT, /* wpk_served_key() */
    WPK_INDEX_BY_FAMILY,      /* likewise */
    WPK_INDEX_BY_DEVICE,      /* wpk_served_device_key() */
    WPK_INDEX_BY_KERNEL,      /* 0 */
    WPK_INDEX_ORDER_COUNT
};

struct wpk_index_version {
    uint64_t life;   /* random: numbers of another start are others */
    uint64_t number; /* grows by one with each version */
    uint32_t count;
    struct wpk_index_node *trees[WPK_INDEX_ORDER_COUNT];
    struct wpk_index_device devices[WPK_INDEX_DEVICES_MAX]; /* [device_count] */
    uint32_t device_count;
};

/*   owns    caller frees; every version has to be released before
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_index_new(struct wpk_index **out);
void wpk_index_free(struct wpk_index *index);

/* Read everything that is served, and publish it: at the start, and after the store failed.
 *   errors  WPK_ENOMEM; what the store says */
WPK_MUST_CHECK wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store,
                                      struct wpk_diag *diag);

/* What `problem_id` serves now, as the batch under way leaves it. To be published once that is
 * durable, else discarded; changes are published in the order in which they were made.
 *   owns    the change is taken by publish or discard; NULL (which both accept) after a failure of
 *           the store, which fails the batch */
struct wpk_index_change *wpk_index_refresh(struct wpk_store *store, uint64_t problem_id);
void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change);
void wpk_index_discard(struct wpk_index_change *change);
/* The three of them as an order (executor.h), to be given after whatever changes the problem. */
struct wpk_store_write *wpk_index_write_new(struct wpk_index *index, uint64_t problem_id);

/* The newest version, which stays as it is until it is released. */
const struct wpk_index_version *wpk_index_acquire(struct wpk_index *index);
void wpk_index_release(struct wpk_index *index, const struct wpk_index_version *version);

/* NULL when it is not served. */
const struct wpk_served *wpk_index_kernel(const struct wpk_index_version *version,
                                          uint64_t kernel_id);

#endif
