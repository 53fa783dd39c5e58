/* SPDX-License-Identifier: Apache-2.0 */
/* A node is allocated for its slots only, because each change copies it anyhow. An empty node is
 * removed; other nodes are not merged, because a removed entry is mostly put in again. */
#include "coordinator/index/index_tree.h"

#include <stdlib.h>
#include <string.h>

#define FILL 48 /* slots of a node of a new tree: there is room for some more */

static bool is_below(const struct wpk_index_slot *slot, uint64_t key, uint64_t kernel_id)
{
    return slot->key < key || (slot->key == key && slot->kernel_id < kernel_id);
}

/* How many slots of the node are below. */
static uint32_t count_below(const struct wpk_index_node *node, uint64_t key, uint64_t kernel_id)
{
    uint32_t low = 0;
    uint32_t high = node->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_below(&node->slots[middle], key, kernel_id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Where an entry is or belongs: the last child that does not begin behind it. */
static uint32_t find_child(const struct wpk_index_node *node, uint64_t key, uint64_t kernel_id)
{
    uint32_t below = count_below(node, key, kernel_id);
    bool equal = below < node->count && node->slots[below].key == key &&
                 node->slots[below].kernel_id == kernel_id;
    return equal ? below : below > 0 ? below - 1 : 0;
}

/* ---- reading */

void wpk_index_seek(struct wpk_index_cursor *cursor, const struct wpk_index_node *root,
                    uint64_t key, uint64_t kernel_id)
{
    cursor->height = 0;
    cursor->key = key;
    for (const struct wpk_index_node *node = root; node != NULL;) {
        int level = cursor->height++;
        WPK_ASSERT(level < WPK_INDEX_HEIGHT_MAX);
        cursor->nodes[level] = node;
        cursor->at[level] =
            node->leaf ? count_below(node, key, kernel_id) : find_child(node, key, kernel_id);
        node = node->leaf ? NULL : node->slots[cursor->at[level]].to.child;
    }
}

const struct wpk_served *wpk_index_prev(struct wpk_index_cursor *cursor)
{
    int level = cursor->height - 1;
    while (level >= 0 && cursor->at[level] == 0) {
        level--;
    }
    if (level < 0) {
        return NULL;
    }
    cursor->at[level]--;
    for (; !cursor->nodes[level]->leaf; level++) {
        const struct wpk_index_node *child =
            cursor->nodes[level]->slots[cursor->at[level]].to.child;
        cursor->nodes[level + 1] = child;
        cursor->at[level + 1] = child->count - 1;
    }
    const struct wpk_index_slot *slot = &cursor->nodes[level]->slots[cursor->at[level]];
    return slot->key == cursor->key ? slot->to.served : NULL;
}

const struct wpk_served *wpk_index_next(struct wpk_index_cursor *cursor)
{
    int leaf = cursor->height - 1;
    int level = leaf;
    while (level >= 0 && cursor->at[level] + (level < leaf) >= cursor->nodes[level]->count) {
        level--;
    }
    if (level < 0) {
        return NULL;
    }
    cursor->at[level] += level < leaf;
    for (; level < leaf; level++) {
        cursor->nodes[level + 1] = cursor->nodes[level]->slots[cursor->at[level]].to.child;
        cursor->at[level + 1] = 0;
    }
    const struct wpk_index_slot *slot = &cursor->nodes[leaf]->slots[cursor->at[leaf]++];
    return slot->key == cursor->key ? slot->to.served : NULL;
}

/* ---- nodes */

static struct wpk_index_node *node_new(uint64_t version, bool leaf,
                                       const struct wpk_index_slot *slots, uint32_t count)
{
    WPK_ASSERT(count > 0);
    struct wpk_index_node *node = malloc(sizeof *node + count * sizeof *slots);
    WPK_ASSERT(node != NULL);
    *node = (struct wpk_index_node){.version = version, .count = count, .leaf = leaf};
    memcpy(node->slots, slots, count * sizeof *slots);
    return node;
}

static struct wpk_index_slot slot_of(struct wpk_index_node *node)
{
    return (struct wpk_index_slot){
        .key = node->slots[0].key, .kernel_id = node->slots[0].kernel_id, .to.child = node};
}

void wpk_index_nodes_free(struct wpk_index_node *nodes)
{
    while (nodes != NULL) {
        struct wpk_index_node *next = nodes->next;
        free(nodes);
        nodes = next;
    }
}

void wpk_index_tree_drop(struct wpk_index_edit *edit, struct wpk_index_node *root)
{
    if (root == NULL) {
        return;
    }
    for (uint32_t i = 0; !root->leaf && i < root->count; i++) {
        wpk_index_tree_drop(edit, root->slots[i].to.child);
    }
    root->next = edit->replaced;
    edit->replaced = root;
}

void wpk_index_tree_free(struct wpk_index_node *root)
{
    struct wpk_index_edit edit = {.replaced = NULL};
    wpk_index_tree_drop(&edit, root);
    wpk_index_nodes_free(edit.replaced);
}

struct wpk_index_node *wpk_index_tree_new(const struct wpk_index_slot *slots, uint32_t count,
                                          uint64_t version)
{
    struct wpk_index_slot *level = malloc((count / FILL + 1) * sizeof *level);
    const struct wpk_index_slot *from = slots;
    bool leaf = true;
    WPK_ASSERT(level != NULL);
    while (count > 1 || (leaf && count > 0)) {
        uint32_t made = 0;
        for (uint32_t first = 0; first < count; first += FILL) {
            uint32_t size = count - first < FILL ? count - first : FILL;
            struct wpk_index_node *node = node_new(version, leaf, from + first, size);
            level[made++] = slot_of(node); /* in place: it lies before what is still to be read */
        }
        from = level;
        count = made;
        leaf = false;
    }
    struct wpk_index_node *root = count > 0 ? level[0].to.child : NULL;
    free(level);
    return root;
}

/* ---- changing */

/* Nobody reads what this edit has made; the others go when the version before does. */
static void drop(struct wpk_index_edit *edit, struct wpk_index_node *node)
{
    if (node->version == edit->version) {
        free(node);
    } else {
        node->next = edit->replaced;
        edit->replaced = node;
    }
}

/* A node in place of another one, or of none. */
static struct wpk_index_node *replace(struct wpk_index_edit *edit, struct wpk_index_node *old,
                                      bool leaf, const struct wpk_index_slot *slots, uint32_t count)
{
    struct wpk_index_node *node = node_new(edit->version, leaf, slots, count);
    edit->made_count++;
    if (old != NULL) {
        drop(edit, old);
    }
    return node;
}

/* What takes a node's place: one, or two where it was full. */
struct halves {
    struct wpk_index_node *nodes[2];
    uint32_t count;
};

/* The node with `drop` slots at `at` replaced by `slots` [count]. */
static struct halves splice(struct wpk_index_edit *edit, struct wpk_index_node *node, uint32_t at,
                            uint32_t drop, const struct wpk_index_slot *slots, uint32_t count)
{
    struct wpk_index_slot all[WPK_INDEX_NODE_MAX + 1];
    uint32_t total = node->count - drop + count;
    bool leaf = node->leaf;
    WPK_ASSERT(node->count <= WPK_INDEX_NODE_MAX && total <= WPK_INDEX_NODE_MAX + 1);
    memcpy(all, node->slots, at * sizeof *all);
    memcpy(all + at, slots, count * sizeof *all);
    memcpy(all + at + count, node->slots + at + drop, (node->count - at - drop) * sizeof *all);
    if (total <= WPK_INDEX_NODE_MAX) {
        return (struct halves){{replace(edit, node, leaf, all, total), NULL}, 1};
    }
    uint32_t half = total / 2;
    struct wpk_index_node *first = replace(edit, node, leaf, all, half);
    return (struct halves){{first, replace(edit, NULL, leaf, all + half, total - half)}, 2};
}

static struct halves put(struct wpk_index_edit *edit, struct wpk_index_node *node,
                         const struct wpk_index_slot *slot)
{
    if (node->leaf) {
        uint32_t below = count_below(node, slot->key, slot->kernel_id);
        return splice(edit, node, below, 0, slot, 1);
    }
    uint32_t at = find_child(node, slot->key, slot->kernel_id);
    struct halves halves = put(edit, node->slots[at].to.child, slot);
    struct wpk_index_slot slots[2] = {slot_of(halves.nodes[0])};
    if (halves.count > 1) {
        slots[1] = slot_of(halves.nodes[1]);
    }
    return splice(edit, node, at, 1, slots, halves.count);
}

struct wpk_index_node *wpk_index_tree_put(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                          const struct wpk_index_slot *slot)
{
    if (root == NULL) {
        return replace(edit, NULL, true, slot, 1);
    }
    struct halves halves = put(edit, root, slot);
    if (halves.count == 1) {
        return halves.nodes[0];
    }
    const struct wpk_index_slot slots[2] = {slot_of(halves.nodes[0]), slot_of(halves.nodes[1])};
    return replace(edit, NULL, false, slots, 2);
}

/* NULL: nothing is left of it. */
static struct wpk_index_node *take(struct wpk_index_edit *edit, struct wpk_index_node *node,
                                   uint64_t key, uint64_t kernel_id)
{
    uint32_t at = find_child(node, key, kernel_id);
    struct wpk_index_node *child = NULL;
    if (node->leaf) {
        WPK_ASSERT(node->slots[at].key == key && node->slots[at].kernel_id == kernel_id);
    } else {
        child = take(edit, node->slots[at].to.child, key, kernel_id);
    }
    if (child == NULL && node->count == 1) {
        drop(edit, node);
        return NULL;
    }
    struct wpk_index_slot slot = {.key = 0};
    if (child != NULL) {
        slot = slot_of(child);
    }
    return splice(edit, node, at, 1, &slot, child != NULL).nodes[0];
}

struct wpk_index_node *wpk_index_tree_take(struct wpk_index_edit *edit, struct wpk_index_node *root,
                                           uint64_t key, uint64_t kernel_id)
{
    WPK_ASSERT(root != NULL);
    struct wpk_index_node *left = take(edit, root, key, kernel_id);
    while (left != NULL && !left->leaf && left->count == 1) { /* a level less */
        struct wpk_index_node *child = left->slots[0].to.child;
        drop(edit, left);
        left = child;
    }
    return left;
}
