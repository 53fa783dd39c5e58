/* SPDX-License-Identifier: Apache-2.0 */
/* Versions form a chain, oldest first. What a version drops is freed when it and all before it are
 * released: nobody counts who uses an entry.
 *
 *     oldest ──▶ ... ──▶ newest (what acquire gives out)
 *     each: users, arrays, and the entries that the next one has no more
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
    struct wpk_index_slot slots[]; /* the three arrays, one after the other */
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
    struct wpk_served_list served; /* by class; none: nothing any more */
};

/* ---- searching */

uint32_t wpk_index_lower(const struct wpk_index_slot *slots, uint32_t count, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slots[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct wpk_index_range wpk_index_find(const struct wpk_index_slot *slots, uint32_t count,
                                      uint64_t key)
{
    uint32_t first = wpk_index_lower(slots, count, key);
    uint32_t end = first;
    while (end < count && slots[end].key == key) {
        end++;
    }
    return (struct wpk_index_range){slots + first, end - first};
}

const struct wpk_served *wpk_index_kernel(const struct wpk_index_version *version,
                                          uint64_t kernel_id)
{
    struct wpk_index_range found = wpk_index_find(version->by_kernel, version->count, kernel_id);
    return found.count > 0 ? found.first->served : NULL;
}

/* ---- versions */

static struct version *version_new(uint32_t count)
{
    struct version *version =
        calloc(1, sizeof *version + 3 * (size_t)count * sizeof(struct wpk_index_slot));
    if (version != NULL) {
        version->view.count = count;
        version->view.by_fingerprint = version->slots;
        version->view.by_family = version->slots + count;
        version->view.by_kernel = version->slots + 2 * (size_t)count;
    }
    return version;
}

static void version_free(struct version *version)
{
    for (uint32_t i = 0; i < version->dropped_count; i++) {
        wpk_served_free(version->dropped[i]);
    }
    free(version->dropped);
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
    view->device_count = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        note_device(view, view->by_kernel[i].served);
    }
}

/* Was it the newest of its class? */
static bool is_noted(const struct wpk_index_version *view, const struct wpk_served *served)
{
    for (uint32_t i = 0; served != NULL && i < view->device_count; i++) {
        if (view->devices[i].kernel_id == served->kernel_id) {
            return true;
        }
    }
    return false;
}

/* Make `version` the newest. */
static void append(struct wpk_index *index, struct version *version)
{
    pthread_mutex_lock(&index->lock);
    version->view.life = index->life;
    version->view.number = index->newest->view.number + 1;
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
    struct version *empty = version_new(0);
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
    const struct wpk_index_version *last = &index->newest->view;
    for (uint32_t i = 0; i < last->count; i++) {
        wpk_served_free((struct wpk_served *)(uintptr_t)last->by_kernel[i].served);
    }
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
    return (left->served->kernel_id > right->served->kernel_id) -
           (left->served->kernel_id < right->served->kernel_id);
}

/* Everything of the newest version is dropped with it. */
static bool drop_all(struct version *newest)
{
    uint32_t count = newest->view.count;
    newest->dropped = calloc((size_t)count + 1, sizeof *newest->dropped);
    if (newest->dropped == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        newest->dropped[i] = (struct wpk_served *)(uintptr_t)newest->view.by_kernel[i].served;
    }
    newest->dropped_count = count;
    return true;
}

/* What a version's arrays are sorted by, in their order. */
enum { BY_FINGERPRINT, BY_FAMILY, BY_KERNEL, ARRAY_COUNT };

static uint64_t key_of(const struct wpk_served *served, int array)
{
    return array == BY_FINGERPRINT ? served->fingerprint_key
           : array == BY_FAMILY    ? served->family_key
                                   : served->kernel_id;
}

/* The array of these entries.
 *   shape  slots [list->count] */
static void fill_slots(const struct wpk_served_list *list, int array, struct wpk_index_slot *slots)
{
    for (uint32_t i = 0; i < list->count; i++) {
        slots[i] = (struct wpk_index_slot){key_of(list->items[i], array), list->items[i]};
    }
    qsort(slots, list->count, sizeof *slots, compare_slots);
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

wpk_err wpk_index_load(struct wpk_index *index, struct wpk_store *store, struct wpk_diag *diag)
{
    struct wpk_served_list loaded = {0};
    wpk_err err = read_all(store, &loaded, diag);
    struct version *version = err == WPK_OK ? version_new(loaded.count) : NULL;
    if (err == WPK_OK && (version == NULL || !drop_all(index->newest))) {
        err = WPK_ENOMEM;
    }
    if (err != WPK_OK) {
        wpk_served_list_fini(&loaded);
        free(version);
        return err;
    }
    for (int array = 0; array < ARRAY_COUNT; array++) {
        fill_slots(&loaded, array, version->slots + (size_t)array * loaded.count);
    }
    note_devices(&version->view);
    append(index, version);
    free(loaded.items);
    return WPK_OK;
}

/* ---- changing */

struct wpk_index_change *wpk_index_refresh(struct wpk_store *store, uint64_t problem_id)
{
    struct wpk_index_change *change = calloc(1, sizeof *change);
    if (change == NULL) {
        struct wpk_diag diag = {.text = "an index's change"};
        wpk_store_fail(store, WPK_ENOMEM, &diag);
        return NULL;
    }
    change->problem_id = problem_id;
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

static bool is_dropped(const struct version *old, const struct wpk_served *served)
{
    for (uint32_t i = 0; i < old->dropped_count; i++) {
        if (old->dropped[i] == served) {
            return true;
        }
    }
    return false;
}

/* Copy an array of `old` without what it drops, and with `added` [added_count] where they belong;
 * these are sorted likewise. */
static void copy_slots(const struct version *old, const struct wpk_index_slot *from,
                       const struct wpk_index_slot *added, uint32_t added_count,
                       struct wpk_index_slot *to)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < old->view.count; i++) {
        if (is_dropped(old, from[i].served)) {
            continue;
        }
        while (next < added_count && compare_slots(&added[next], &from[i]) < 0) {
            *to++ = added[next++];
        }
        *to++ = from[i];
    }
    while (next < added_count) {
        *to++ = added[next++];
    }
}

/* What the problem has served so far, as what `old` drops; its successors have the same
 * fingerprint. */
static void drop_problem(struct version *old, const struct wpk_index_change *change)
{
    const struct wpk_index_version *view = &old->view;
    struct wpk_index_range range = {view->by_kernel, view->count};
    uint32_t count = 0;
    if (change->served.count > 0) {
        range = wpk_index_find(view->by_fingerprint, view->count,
                               change->served.items[0]->fingerprint_key);
    }
    for (uint32_t i = 0; i < range.count; i++) {
        count += range.first[i].served->problem_id == change->problem_id;
    }
    old->dropped = calloc((size_t)count + 1, sizeof *old->dropped);
    WPK_ASSERT(old->dropped != NULL);
    for (uint32_t i = 0; i < range.count; i++) {
        if (range.first[i].served->problem_id == change->problem_id) {
            old->dropped[old->dropped_count++] =
                (struct wpk_served *)(uintptr_t)range.first[i].served;
        }
    }
}

/* The devices after `old`, whose newest kernels may be gone. */
static void derive_devices(struct version *version, const struct version *old,
                           const struct wpk_served_list *added)
{
    for (uint32_t i = 0; i < old->dropped_count; i++) {
        if (is_noted(&old->view, old->dropped[i])) {
            note_devices(&version->view);
            return;
        }
    }
    memcpy(version->view.devices, old->view.devices, sizeof old->view.devices);
    version->view.device_count = old->view.device_count;
    for (uint32_t i = 0; i < added->count; i++) {
        note_device(&version->view, added->items[i]);
    }
}

/* The version after `old`: without what that drops, with `added`. */
static struct version *derive(const struct version *old, const struct wpk_served_list *added)
{
    const struct wpk_index_slot *const arrays[ARRAY_COUNT] = {
        old->view.by_fingerprint, old->view.by_family, old->view.by_kernel};
    uint32_t count = old->view.count - old->dropped_count + added->count;
    struct version *version = version_new(count);
    struct wpk_index_slot *slots = calloc((size_t)added->count + 1, sizeof *slots);
    WPK_ASSERT(version != NULL && slots != NULL);
    for (int array = 0; array < ARRAY_COUNT; array++) {
        fill_slots(added, array, slots);
        copy_slots(old, arrays[array], slots, added->count, version->slots + (size_t)array * count);
    }
    free(slots);
    derive_devices(version, old, added);
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
