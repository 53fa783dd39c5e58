/* SPDX-License-Identifier: Apache-2.0 */
/* Versions form a chain, oldest first. Entries and nodes that the next version lacks are freed when
 * their version and all before it are released, so that entries need no reference counts.
 *
 *     oldest ──▶ ... ──▶ newest (which acquire returns)
 *     each: users, trees, and the entries and nodes that the next version lacks
 */
#include "coordinator/index/index.h"

#include "common/crypto.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct version {
    struct wpk_index_version view; /* first: a view is its version */
    uint32_t users;
    struct version *next;        /* newer */
    struct wpk_served **dropped; /* owned; [dropped_count]: gone in the next version */
    uint32_t dropped_count;
    struct wpk_index_node *replaced; /* owned list: nodes that the next version has no more */
};

struct wpk_index {
    pthread_mutex_t lock; /* guards the chain and its counts of users; held for a few instructions,
                           * or while a released version is freed */
    struct version *oldest;
    struct version *newest;
    uint64_t life; /* of every version; constant */
};

struct wpk_index_change {
    uint64_t problem_id;
    uint64_t fingerprint_key;      /* of the problem */
    struct wpk_served_list served; /* by class; none: nothing any more */
};

const struct wpk_served *wpk_index_kernel(const struct wpk_index_version *version,
                                          uint64_t kernel_id)
{
    struct wpk_index_cursor cursor;
    wpk_index_seek(&cursor, version->trees[WPK_INDEX_BY_KERNEL], 0, kernel_id);
    const struct wpk_served *served = wpk_index_next(&cursor);
    return served != NULL && served->kernel_id == kernel_id ? served : NULL;
}

/* ---- versions */

static void version_free(struct version *version)
{
    for (uint32_t i = 0; i < version->dropped_count; i++) {
        wpk_served_free(version->dropped[i]);
    }
    free(version->dropped);
    wpk_index_nodes_free(version->replaced);
    free(version);
}

/* Remember the environment of a class's newest kernel, as texts of the version's own entries.
 * Classes beyond the maximum are found too, but have no environment of their own. */
static void note_device(struct wpk_index_version *view, const struct wpk_served *served)
{
    struct wpk_index_device noted = {served->kernel_id, served->device, served->environment};
    for (uint32_t i = 0; i < view->device_count; i++) {
        struct wpk_index_device *device = &view->devices[i];
        if (strcmp(device->name, served->device) == 0) {
            if (device->kernel_id <= served->kernel_id) {
                *device = noted;
            }
            return;
        }
    }
    if (view->device_count < WPK_INDEX_DEVICES_MAX) {
        view->devices[view->device_count++] = noted;
    }
}

static void note_dropped(struct version *version, const struct wpk_served *served)
{
    version->dropped[version->dropped_count++] = (struct wpk_served *)(uintptr_t)served;
}

/* All that the version has goes with it. */
static void drop_all(struct version *version)
{
    struct wpk_index_edit edit = {.replaced = NULL};
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    version->dropped = calloc((size_t)version->view.count + 1, sizeof *version->dropped);
    WPK_ASSERT(version->dropped != NULL);
    wpk_index_seek(&cursor, version->view.trees[WPK_INDEX_BY_KERNEL], 0, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        note_dropped(version, served);
    }
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        wpk_index_tree_drop(&edit, version->view.trees[order]);
    }
    version->replaced = edit.replaced;
}

/* An empty one, to be filled and appended. */
static struct version *version_after(const struct version *newest)
{
    struct version *version = calloc(1, sizeof *version);
    WPK_ASSERT(version != NULL);
    version->view.life = newest->view.life;
    version->view.number = newest->view.number + 1;
    return version;
}

/* With the lock held: free what nobody can use any more. */
static void free_released(struct wpk_index *index)
{
    while (index->oldest != index->newest && index->oldest->users == 0) {
        struct version *released = index->oldest;
        index->oldest = released->next;
        version_free(released);
    }
}

static void note_devices(struct wpk_index_version *view)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    wpk_index_seek(&cursor, view->trees[WPK_INDEX_BY_KERNEL], 0, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        note_device(view, served);
    }
}

/* The entry is gone: if it was the newest of its class, the one before it is that now. */
static void forget_device(struct wpk_index_version *view, const struct wpk_served *gone)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    uint32_t at = 0;
    while (at < view->device_count && view->devices[at].kernel_id != gone->kernel_id) {
        at++;
    }
    if (at == view->device_count) {
        return;
    }
    wpk_index_seek(&cursor, view->trees[WPK_INDEX_BY_DEVICE], gone->device_key, UINT64_MAX);
    do {
        served = wpk_index_prev(&cursor);
    } while (served != NULL && strcmp(served->device, gone->device) != 0);
    if (served != NULL) {
        view->devices[at] =
            (struct wpk_index_device){served->kernel_id, served->device, served->environment};
        return;
    }
    view->device_count--;
    memmove(&view->devices[at], &view->devices[at + 1],
            (view->device_count - at) * sizeof view->devices[0]);
}

/* Make `version` the newest. */
static void append(struct wpk_index *index, struct version *version)
{
    pthread_mutex_lock(&index->lock);
    index->newest->next = version;
    index->newest = version;
    free_released(index);
    pthread_mutex_unlock(&index->lock);
}

const struct wpk_index_version *wpk_index_acquire(struct wpk_index *index)
{
    pthread_mutex_lock(&index->lock);
    struct version *version = index->newest;
    version->users++;
    pthread_mutex_unlock(&index->lock);
    return &version->view;
}

void wpk_index_release(struct wpk_index *index, const struct wpk_index_version *view)
{
    struct version *version = (struct version *)(uintptr_t)view;
    pthread_mutex_lock(&index->lock);
    WPK_ASSERT(version->users > 0);
    version->users--;
    free_released(index);
    pthread_mutex_unlock(&index->lock);
}

wpk_err wpk_index_new(struct wpk_index **out)
{
    struct wpk_index *index = calloc(1, sizeof *index);
    struct version *empty = calloc(1, sizeof *empty);
    if (index == NULL || empty == NULL) {
        free(index);
        free(empty);
        return WPK_ENOMEM;
    }
    pthread_mutex_init(&index->lock, NULL);
    wpk_crypto_random(&index->life, sizeof index->life);
    empty->view.life = index->life;
    index->oldest = empty;
    index->newest = empty;
    *out = index;
    return WPK_OK;
}

void wpk_index_free(struct wpk_index *index)
{
    if (index == NULL) {
        return;
    }
    free_released(index);
    WPK_ASSERT(index->oldest == index->newest && index->newest->users == 0);
    drop_all(index->newest);
    version_free(index->newest);
    pthread_mutex_destroy(&index->lock);
    free(index);
}

/* ---- loading */

static int compare_slots(const void *a, const void *b)
{
    const struct wpk_index_slot *left = a;
    const struct wpk_index_slot *right = b;
    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return (left->kernel_id > right->kernel_id) - (left->kernel_id < right->kernel_id);
}

static struct wpk_index_slot slot_of(const struct wpk_served *served, int order)
{
    const uint64_t keys[WPK_INDEX_ORDER_COUNT] = {served->fingerprint_key, served->family_key,
                                                  served->device_key, 0};
    return (struct wpk_index_slot){keys[order], served->kernel_id, .to.served = served};
}

static wpk_err read_all(struct wpk_store *store, struct wpk_served_list *loaded,
                        struct wpk_diag *diag)
{
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT DISTINCT problem_id FROM kernel WHERE served = 1", "");
    while (wpk_rows_next(rows)) {
        wpk_served_read(store, (uint64_t)wpk_rows_int(rows, 0), loaded);
    }
    wpk_rows_close(rows);
    return wpk_store_take_status(store, diag);
}

static void make_trees(const struct wpk_served_list *loaded, struct wpk_index_version *view)
{
    struct wpk_index_slot *slots = malloc(((size_t)loaded->count + 1) * sizeof *slots);
    WPK_ASSERT(slots != NULL);
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        for (uint32_t i = 0; i < loaded->count; i++) {
            slots[i] = slot_of(loaded->items[i], order);
        }
        qsort(slots, loaded->count, sizeof *slots, compare_slots);
        view->trees[order] = wpk_index_tree_new(slots, loaded->count, view->number);
    }
    view->count = loaded->count;
    free(slots);
}

wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store, struct wpk_diag *diag)
{
    struct wpk_served_list loaded = {0};
    wpk_err err = read_all(store, &loaded, diag);
    struct version *version = err == WPK_OK ? version_after(index->newest) : NULL;
    if (version == NULL) {
        wpk_served_list_fini(&loaded);
        return err;
    }
    make_trees(&loaded, &version->view);
    note_devices(&version->view);
    drop_all(index->newest);
    append(index, version);
    free(loaded.items);
    return WPK_OK;
}

/* ---- changing */

static uint64_t read_key(struct wpk_store *store, uint64_t problem_id)
{
    uint64_t key = 0;
    struct wpk_rows *rows = wpk_store_query(store, "SELECT fingerprint FROM problem WHERE id = ?",
                                            "i", (int64_t)problem_id);
    if (wpk_rows_next(rows)) {
        key = wpk_served_key(wpk_rows_text(rows, 0));
    }
    wpk_rows_close(rows);
    return key;
}

struct wpk_index_change *wpk_index_refresh(struct wpk_store *store, uint64_t problem_id)
{
    struct wpk_index_change *change = calloc(1, sizeof *change);
    if (change == NULL) {
        struct wpk_diag diag = {.text = "an index's change"};
        wpk_store_fail(store, WPK_ENOMEM, &diag);
        return NULL;
    }
    change->problem_id = problem_id;
    change->fingerprint_key = read_key(store, problem_id);
    wpk_served_read(store, problem_id, &change->served);
    if (wpk_store_status(store) != WPK_OK) {
        wpk_index_discard(change);
        return NULL;
    }
    return change;
}

void wpk_index_discard(struct wpk_index_change *change)
{
    if (change != NULL) {
        wpk_served_list_fini(&change->served);
        free(change);
    }
}

/* What the problem has served so far, as what `old` drops; its successors have the same
 * fingerprint. */
static void drop_problem(struct version *old, const struct wpk_index_change *change)
{
    struct wpk_index_node *tree = old->view.trees[WPK_INDEX_BY_FINGERPRINT];
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    uint32_t count = 0;
    wpk_index_seek(&cursor, tree, change->fingerprint_key, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        count += served->problem_id == change->problem_id;
    }
    old->dropped = calloc((size_t)count + 1, sizeof *old->dropped);
    WPK_ASSERT(old->dropped != NULL);
    wpk_index_seek(&cursor, tree, change->fingerprint_key, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        if (served->problem_id == change->problem_id) {
            note_dropped(old, served);
        }
    }
}

/* The version after `old`: without what that drops, with `added`. */
static struct version *derive(struct version *old, const struct wpk_served_list *added)
{
    struct version *version = version_after(old);
    struct wpk_index_version *view = &version->view;
    struct wpk_index_edit edit = {.version = view->number};
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        struct wpk_index_node *tree = old->view.trees[order];
        for (uint32_t i = 0; i < old->dropped_count; i++) {
            struct wpk_index_slot slot = slot_of(old->dropped[i], order);
            tree = wpk_index_tree_take(&edit, tree, slot.key, slot.kernel_id);
        }
        for (uint32_t i = 0; i < added->count; i++) {
            struct wpk_index_slot slot = slot_of(added->items[i], order);
            tree = wpk_index_tree_put(&edit, tree, &slot);
        }
        view->trees[order] = tree;
    }
    old->replaced = edit.replaced;
    view->count = old->view.count - old->dropped_count + added->count;
    memcpy(view->devices, old->view.devices, sizeof view->devices);
    view->device_count = old->view.device_count;
    for (uint32_t i = 0; i < old->dropped_count; i++) {
        forget_device(view, old->dropped[i]);
    }
    for (uint32_t i = 0; i < added->count; i++) {
        note_device(view, added->items[i]);
    }
    return version;
}

void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change)
{
    if (change == NULL) {
        return;
    }
    /* Only this thread makes versions: the newest one stays the newest. */
    struct version *last = index->newest;
    drop_problem(last, change);
    append(index, derive(last, &change->served));
    free(change->served.items);
    free(change);
}
