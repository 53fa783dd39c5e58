/* SPDX-License-Identifier: Apache-2.0 */
/* Versions form a chain, oldest first. Entries that the next version lacks are freed when their
 * version and all before it are released, so that entries need no reference counts.
 *
 *     oldest ──▶ ... ──▶ newest (which acquire returns)
 *     each: users, arrays, and the entries that the next version lacks
 */
#include "coordinator/index/misses.h"

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
};

struct wpk_index {
    pthread_mutex_t lock; /* guards the chain and its counts of users; held for a few instructions,
                           * or while a released version is freed */
    struct version *oldest;
    struct version *newest;
    uint64_t life;             /* of every version; constant */
    struct wpk_misses *misses; /* owned */
};

struct wpk_index_change {
    uint64_t problem_id;
    uint64_t fingerprint_key;      /* of the problem */
    struct wpk_served_list served; /* by class; none: nothing any more */
};

/* ---- reading */

static bool is_below(const struct wpk_index_slot *slot, uint64_t key, uint64_t kernel_id)
{
    return slot->key < key || (slot->key == key && slot->kernel_id < kernel_id);
}

void wpk_index_seek(struct wpk_index_cursor *cursor, const struct wpk_index_version *version,
                    enum wpk_index_order order, uint64_t key, uint64_t kernel_id)
{
    const struct wpk_index_slot *slots = version->slots[order];
    uint32_t low = 0;
    uint32_t high = version->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_below(&slots[middle], key, kernel_id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *cursor = (struct wpk_index_cursor){slots, version->count, low, key};
}

const struct wpk_served *wpk_index_prev(struct wpk_index_cursor *cursor)
{
    if (cursor->at == 0 || cursor->slots[cursor->at - 1].key != cursor->key) {
        return NULL;
    }
    return cursor->slots[--cursor->at].served;
}

const struct wpk_served *wpk_index_next(struct wpk_index_cursor *cursor)
{
    if (cursor->at == cursor->count || cursor->slots[cursor->at].key != cursor->key) {
        return NULL;
    }
    return cursor->slots[cursor->at++].served;
}

/* ---- versions */

static void version_free(struct version *version)
{
    for (uint32_t i = 0; i < version->dropped_count; i++) {
        wpk_served_free(version->dropped[i]);
    }
    free(version->dropped);
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        free(version->view.slots[order]);
    }
    free(version);
}

static void note_dropped(struct version *version, const struct wpk_served *served)
{
    version->dropped[version->dropped_count++] = (struct wpk_served *)(uintptr_t)served;
}

/* All that the version has goes with it. */
static void drop_all(struct version *version)
{
    version->dropped =
        WPK_DEMAND(calloc((size_t)version->view.count + 1, sizeof *version->dropped));
    for (uint32_t i = 0; i < version->view.count; i++) {
        note_dropped(version, version->view.slots[WPK_INDEX_BY_KERNEL][i].served);
    }
}

static int compare_slots(const void *a, const void *b)
{
    const struct wpk_index_slot *left = a;
    const struct wpk_index_slot *right = b;
    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return (left->kernel_id > right->kernel_id) - (left->kernel_id < right->kernel_id);
}

static int compare_devices(const void *a, const void *b)
{
    return strcmp(((const struct wpk_index_device *)a)->name,
                  ((const struct wpk_index_device *)b)->name);
}

/* The last entry of each key is the newest of its class: its environment is the class's. Classes
 * beyond the maximum are found too, but have no environment of their own. */
static void note_devices(struct wpk_index_version *view)
{
    const struct wpk_index_slot *slots = view->slots[WPK_INDEX_BY_DEVICE];
    for (uint32_t i = 0; i < view->count; i++) {
        bool last = i + 1 == view->count || slots[i + 1].key != slots[i].key;
        if (last && view->device_count < WPK_INDEX_DEVICES_MAX) {
            const struct wpk_served *served = slots[i].served;
            view->devices[view->device_count++] =
                (struct wpk_index_device){served->kernel_id, served->device, served->environment,
                                          served->peak_flops_per_s, served->peak_bytes_per_s};
        }
    }
    qsort(view->devices, view->device_count, sizeof view->devices[0], compare_devices);
}

static struct wpk_index_slot slot_of(const struct wpk_served *served, int order)
{
    const uint64_t keys[WPK_INDEX_ORDER_COUNT] = {served->fingerprint_key, served->family_key,
                                                  served->device_key, 0};
    return (struct wpk_index_slot){keys[order], served->kernel_id, served};
}

static bool is_dropped(const struct version *version, const struct wpk_served *served)
{
    for (uint32_t i = 0; i < version->dropped_count; i++) {
        if (version->dropped[i] == served) {
            return true;
        }
    }
    return false;
}

/* The entries of `old` that stay, which are in order, and those that were added, merged. */
static struct wpk_index_slot *merge(const struct version *old, const struct wpk_served_list *added,
                                    int order, uint32_t count)
{
    const struct wpk_index_slot *slots = old->view.slots[order];
    struct wpk_index_slot *fresh = malloc(((size_t)added->count + 1) * sizeof *fresh);
    struct wpk_index_slot *made = malloc(((size_t)count + 1) * sizeof *made);
    WPK_ASSERT(fresh != NULL && made != NULL);
    for (uint32_t i = 0; i < added->count; i++) {
        fresh[i] = slot_of(added->items[i], order);
    }
    qsort(fresh, added->count, sizeof *fresh, compare_slots);
    uint32_t old_count = count > added->count ? old->view.count : 0; /* 0: none of them stays */
    uint32_t next = 0;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < old_count; i++) {
        while (next < added->count && is_below(&fresh[next], slots[i].key, slots[i].kernel_id)) {
            made[filled++] = fresh[next++];
        }
        if (!is_dropped(old, slots[i].served)) {
            made[filled++] = slots[i];
        }
    }
    while (next < added->count) {
        made[filled++] = fresh[next++];
    }
    WPK_ASSERT(filled == count);
    free(fresh);
    return made;
}

/* The version after `old`: without what that drops, with `added`. */
static struct version *version_after(const struct version *old, const struct wpk_served_list *added)
{
    struct version *version = WPK_DEMAND(calloc(1, sizeof *version));
    struct wpk_index_version *view = &version->view;
    view->life = old->view.life;
    view->number = old->view.number + 1;
    view->count = old->view.count - old->dropped_count + added->count;
    for (int order = 0; order < WPK_INDEX_ORDER_COUNT; order++) {
        view->slots[order] = merge(old, added, order, view->count);
    }
    note_devices(view);
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

struct wpk_index *wpk_index_new(void)
{
    struct wpk_index *index = WPK_DEMAND(calloc(1, sizeof *index));
    struct version *empty = WPK_DEMAND(calloc(1, sizeof *empty));
    pthread_mutex_init(&index->lock, NULL);
    wpk_crypto_random(&index->life, sizeof index->life);
    empty->view.life = index->life;
    index->misses = wpk_misses_new();
    index->oldest = empty;
    index->newest = empty;
    return index;
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
    wpk_misses_free(index->misses);
    free(index);
}

struct wpk_misses *wpk_index_misses(struct wpk_index *index)
{
    return index->misses;
}

/* ---- loading */

wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store, struct wpk_diag *diag)
{
    struct wpk_served_list loaded = {0};
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT DISTINCT problem_id FROM kernel WHERE served = 1", "");
    while (wpk_rows_next(rows)) {
        wpk_served_read(store, (uint64_t)wpk_rows_int(rows, 0), &loaded);
    }
    wpk_err err = wpk_store_take_status(store, diag);
    if (err != WPK_OK) {
        wpk_served_list_fini(&loaded);
        return err;
    }
    drop_all(index->newest);
    append(index, version_after(index->newest, &loaded));
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
    struct wpk_index_change *change = WPK_DEMAND(calloc(1, sizeof *change));
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

/* List what the problem has served so far as entries that `old` drops; their successors have the
 * same fingerprint. */
static void drop_problem(struct version *old, const struct wpk_index_change *change)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    uint32_t count = 0;
    wpk_index_seek(&cursor, &old->view, WPK_INDEX_BY_FINGERPRINT, change->fingerprint_key, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        count += served->problem_id == change->problem_id;
    }
    old->dropped = WPK_DEMAND(calloc((size_t)count + 1, sizeof *old->dropped));
    wpk_index_seek(&cursor, &old->view, WPK_INDEX_BY_FINGERPRINT, change->fingerprint_key, 0);
    while ((served = wpk_index_next(&cursor)) != NULL) {
        if (served->problem_id == change->problem_id) {
            note_dropped(old, served);
        }
    }
}

void wpk_index_publish(struct wpk_index *index, struct wpk_index_change *change)
{
    if (change == NULL) {
        return;
    }
    /* Only this thread makes versions: the newest one stays the newest. */
    struct version *last = index->newest;
    drop_problem(last, change);
    append(index, version_after(last, &change->served));
    free(change->served.items);
    free(change);
}
