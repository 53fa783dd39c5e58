/* SPDX-License-Identifier: Apache-2.0 */
/* Served kernels in order, as a B+ tree that never changes. A change makes another tree, which
 * shares all nodes except those on the paths to changed entries: O(log n) new nodes.
 *
 *     before ──▶ root      root ◀── after       the edit lists the nodes that only `before` has,
 *                 │  ╲    ╱  │                  to be freed when the last reader has released
 *                 ▼    ╲ ╱   ▼                  `before`
 *               leaf   leaf  leaf'
 *
 * Entries are ordered by (key, kernel's id). A tree is its root; NULL is the empty tree. */
#ifndef WPK_COORDINATOR_INDEX_INDEX_TREE_H
#define WPK_COORDINATOR_INDEX_INDEX_TREE_H

#include "coordinator/index/served.h"

#define WPK_INDEX_NODE_MAX 64   /* slots; a full node is split in halves */
#define WPK_INDEX_HEIGHT_MAX 14 /* a higher tree would have 32^13 entries */

struct wpk_index_node;

/* In a leaf, an entry; above, a child with a lower bound of its entries. */
struct wpk_index_slot {
    uint64_t key;
    uint64_t kernel_id;
    union {
        const struct wpk_served *served;
        struct wpk_index_node *child;
    } to;
};

struct wpk_index_node {
    struct wpk_index_node *next; /* of the nodes that an edit has replaced */
    uint64_t version;            /* the version it was made for */
    uint32_t count;              /* at least 1 */
    bool leaf;
    struct wpk_index_slot slots[]; /* [count], in order */
};

/* ---- reading */

/* A position between two entries of one key. */
struct wpk_index_cursor {
    const struct wpk_index_node *nodes[WPK_INDEX_HEIGHT_MAX]; /* from the root to a leaf */
    uint32_t at[WPK_INDEX_HEIGHT_MAX]; /* the child's index; in the leaf, the next slot's */
    int height;                        /* 0: an empty tree */
    uint64_t key;
};

/* Move the cursor before (key, kernel_id); UINT64_MAX is behind all entries of the key. */
void wpk_index_seek(struct wpk_index_cursor *cursor, const struct wpk_index_node *root,
                    uint64_t key, uint64_t kernel_id);
/* Move the cursor across the previous or next entry of the key, and return it; NULL: no more. */
const struct wpk_served *wpk_index_prev(struct wpk_index_cursor *cursor);
const struct wpk_served *wpk_index_next(struct wpk_index_cursor *cursor);

/* ---- making; without memory these abort, as all of wpkd does */

/* The making of a version from the one before it. */
struct wpk_index_edit {
    uint64_t version;                /* nodes of this version are not shared yet */
    struct wpk_index_node *replaced; /* list of nodes that only the version before has */
    uint32_t made_count;             /* new nodes */
};

/* Make the tree of `slots` [count], which are in order.
 *   owns    caller calls wpk_index_tree_free, or wpk_index_tree_drop */
struct wpk_index_node *wpk_index_tree_new(const struct wpk_index_slot *slots, uint32_t count,
                                          uint64_t version);
/* Free all nodes of a tree, not its entries. */
void wpk_index_tree_free(struct wpk_index_node *root);
/* Free a list of nodes linked by `next`, not their children or entries. */
void wpk_index_nodes_free(struct wpk_index_node *nodes);
/* Add all nodes of the tree to the edit's replaced nodes. */
void wpk_index_tree_drop(struct wpk_index_edit *edit, struct wpk_index_node *root);

/* The tree with an entry that it does not have added, or with one that it has removed. */
struct wpk_index_node *wpk_index_tree_put(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                          const struct wpk_index_slot *slot);
struct wpk_index_node *wpk_index_tree_take(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                           uint64_t key, uint64_t kernel_id);

#endif
