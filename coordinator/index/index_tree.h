/* SPDX-License-Identifier: Apache-2.0 */
/* Served kernels in order, as a B+ tree that never changes: a change makes another tree, which
 * shares all nodes but those on the way to what changed. Both live side by side, for O(log n) more.
 *
 *     before ──▶ root      root ◀── after       nodes that only `before` has are handed to whoever
 *                 │  ╲    ╱  │                  makes the change, to be freed when nobody reads
 *                 ▼    ╲ ╱   ▼                  `before` any more
 *               leaf   leaf  leaf'
 *
 * The order is that of (key, kernel's id). A tree is its root; NULL is the empty one. */
#ifndef WPK_COORDINATOR_INDEX_INDEX_TREE_H
#define WPK_COORDINATOR_INDEX_INDEX_TREE_H

#include "coordinator/index/served.h"

#define WPK_INDEX_NODE_MAX 64   /* slots: a full node is cut in two halves */
#define WPK_INDEX_HEIGHT_MAX 14 /* 32^13 entries have to come for one level more */

struct wpk_index_node;

/* In a leaf an entry; above, a node and what comes before none of its entries. */
struct wpk_index_slot {
    uint64_t key;
    uint64_t kernel_id;
    union {
        const struct wpk_served *served;
        struct wpk_index_node *child;
    } to;
};

struct wpk_index_node {
    struct wpk_index_node *next; /* of those that a change has replaced */
    uint64_t version;            /* that it was made for */
    uint32_t count;              /* at least 1 */
    bool leaf;
    struct wpk_index_slot slots[]; /* [count], in order */
};

/* ---- reading */

/* A place between two entries, among those of one key. */
struct wpk_index_cursor {
    const struct wpk_index_node *nodes[WPK_INDEX_HEIGHT_MAX]; /* from the root to a leaf */
    uint32_t at[WPK_INDEX_HEIGHT_MAX]; /* the child; in the leaf, the slot behind the place */
    int height;                        /* 0: of an empty tree */
    uint64_t key;
};

/* To the place in front of (key, kernel_id): UINT64_MAX is behind all of the key. */
void wpk_index_seek(struct wpk_index_cursor *cursor, const struct wpk_index_node *root,
                    uint64_t key, uint64_t kernel_id);
/* The entry before or behind the place, which moves across it; NULL where the key has no more. */
const struct wpk_served *wpk_index_prev(struct wpk_index_cursor *cursor);
const struct wpk_served *wpk_index_next(struct wpk_index_cursor *cursor);

/* ---- making; without memory they abort, as all of wpkd does */

/* A version that is being made out of the one before it. */
struct wpk_index_edit {
    uint64_t version;                /* nodes that bear it are nobody else's yet */
    struct wpk_index_node *replaced; /* list: only the version before has them */
    uint32_t made_count;             /* nodes */
};

/* The tree of `slots` [count], which are in order.
 *   owns    caller calls wpk_index_tree_free, or hands nodes to an edit */
struct wpk_index_node *wpk_index_tree_new(const struct wpk_index_slot *slots, uint32_t count,
                                          uint64_t version);
/* All of its nodes; not the entries. */
void wpk_index_tree_free(struct wpk_index_node *root);
/* A list of nodes, linked by `next`; not what they point to. */
void wpk_index_nodes_free(struct wpk_index_node *nodes);
/* All nodes of the tree are replaced. */
void wpk_index_tree_drop(struct wpk_index_edit *edit, struct wpk_index_node *root);

/* The tree with one entry more, which it does not have, or without one, which it has. */
struct wpk_index_node *wpk_index_tree_put(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                          const struct wpk_index_slot *slot);
struct wpk_index_node *wpk_index_tree_take(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                           uint64_t key, uint64_t kernel_id);

#endif
