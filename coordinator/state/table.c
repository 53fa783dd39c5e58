/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing. Taking a value out moves the values behind it back, so that
 * no tombstones are needed. */
#include "coordinator/state/table.h"

#include "coordinator/state/model.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 16

/* Where a key wants to be: numbers that count up must not lie side by side. */
static uint32_t home_of(const struct wpk_table *table, uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32) & (table->capacity - 1);
}

uint64_t wpk_table_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        hash = (hash ^ *p) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void wpk_table_fini(struct wpk_table *table)
{
    free(table->slots);
    memset(table, 0, sizeof *table);
}

/* The key's slot, or the free one where it would be. The table is not empty. */
static struct wpk_table_slot *find(const struct wpk_table *table, uint64_t key, const char *text)
{
    uint32_t at = home_of(table, key);
    while (table->slots[at].value != NULL &&
           (table->slots[at].key != key ||
            (text != NULL && strcmp(table->slots[at].text, text) != 0))) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->slots[at];
}

static void *get(const struct wpk_table *table, uint64_t key, const char *text)
{
    return table->count > 0 ? find(table, key, text)->value : NULL;
}

static void grow(struct wpk_table *table)
{
    struct wpk_table old = *table;
    table->capacity = old.capacity == 0 ? CAPACITY_FIRST : old.capacity * 2;
    table->slots = WPK_DEMAND(calloc(table->capacity, sizeof *table->slots));
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].value != NULL) {
            *find(table, old.slots[i].key, old.slots[i].text) = old.slots[i];
        }
    }
    free(old.slots);
}

static void put(struct wpk_table *table, uint64_t key, const char *text, void *value)
{
    WPK_ASSERT(value != NULL);
    if (4 * (table->count + 1) > 3 * table->capacity) {
        grow(table);
    }
    struct wpk_table_slot *slot = find(table, key, text);
    WPK_ASSERT(slot->value == NULL);
    *slot = (struct wpk_table_slot){key, text, value};
    table->count++;
}

/* Move back what lies behind a slot that became free and would not be found any more. */
static void close_gap(struct wpk_table *table, uint32_t gap)
{
    uint32_t mask = table->capacity - 1;
    for (uint32_t at = (gap + 1) & mask; table->slots[at].value != NULL; at = (at + 1) & mask) {
        uint32_t home = home_of(table, table->slots[at].key);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            table->slots[gap] = table->slots[at];
            table->slots[at].value = NULL;
            gap = at;
        }
    }
}

static void *take(struct wpk_table *table, uint64_t key, const char *text)
{
    if (table->count == 0) {
        return NULL;
    }
    struct wpk_table_slot *slot = find(table, key, text);
    void *value = slot->value;
    if (value != NULL) {
        slot->value = NULL;
        table->count--;
        close_gap(table, (uint32_t)(slot - table->slots));
    }
    return value;
}

void *wpk_table_get(const struct wpk_table *table, uint64_t key)
{
    return get(table, key, NULL);
}

void *wpk_table_get_text(const struct wpk_table *table, const char *text)
{
    return get(table, wpk_table_hash(text), text);
}

void wpk_table_put(struct wpk_table *table, uint64_t key, void *value)
{
    put(table, key, NULL, value);
}

void wpk_table_put_text(struct wpk_table *table, const char *text, void *value)
{
    put(table, wpk_table_hash(text), text, value);
}

void *wpk_table_take(struct wpk_table *table, uint64_t key)
{
    return take(table, key, NULL);
}

void *wpk_table_take_text(struct wpk_table *table, const char *text)
{
    return take(table, wpk_table_hash(text), text);
}

/* ---- timers */

void wpk_timers_fini(struct wpk_timers *timers)
{
    free(timers->items);
    memset(timers, 0, sizeof *timers);
}

static void place(struct wpk_timers *timers, struct wpk_timer *timer, uint32_t at)
{
    timers->items[at] = timer;
    timer->place = at + 1;
}

/* Move the timer from `at` towards the front, then towards the back, to where it belongs. */
static void sift(struct wpk_timers *timers, struct wpk_timer *timer, uint32_t at)
{
    while (at > 0 && timers->items[(at - 1) / 2]->due_ns > timer->due_ns) {
        place(timers, timers->items[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    for (uint32_t child = 2 * at + 1; child < timers->count; child = 2 * at + 1) {
        if (child + 1 < timers->count &&
            timers->items[child + 1]->due_ns < timers->items[child]->due_ns) {
            child++;
        }
        if (timers->items[child]->due_ns >= timer->due_ns) {
            break;
        }
        place(timers, timers->items[child], at);
        at = child;
    }
    place(timers, timer, at);
}

void wpk_timer_set(struct wpk_timers *timers, struct wpk_timer *timer, uint64_t due_ns)
{
    timer->due_ns = due_ns;
    if (timer->place == 0) {
        timers->items =
            wpk_grow(timers->items, timers->count, &timers->capacity, sizeof(struct wpk_timer *));
        place(timers, timer, timers->count++);
    }
    sift(timers, timer, timer->place - 1);
}

void wpk_timer_cancel(struct wpk_timers *timers, struct wpk_timer *timer)
{
    if (timer->place == 0) {
        return;
    }
    uint32_t at = timer->place - 1;
    WPK_ASSERT(at < timers->count && timers->items[at] == timer);
    struct wpk_timer *last = timers->items[--timers->count];
    timer->place = 0;
    if (last != timer) {
        sift(timers, last, at);
    }
}

struct wpk_timer *wpk_timers_next(struct wpk_timers *timers, uint64_t now_ns)
{
    if (timers->count == 0 || timers->items[0]->due_ns > now_ns) {
        return NULL;
    }
    struct wpk_timer *first = timers->items[0];
    wpk_timer_cancel(timers, first);
    return first;
}

/* ---- marks */

void wpk_mark_put(struct wpk_mark_list *list, struct wpk_mark *mark, void *of)
{
    if (mark->of == NULL) {
        *mark = (struct wpk_mark){.of = of};
        *(list->last != NULL ? &list->last->next : &list->first) = mark;
        list->last = mark;
    }
}

void *wpk_mark_take(struct wpk_mark_list *list)
{
    void *of = list->first != NULL ? list->first->of : NULL;
    if (of != NULL) {
        wpk_mark_drop(list, list->first);
    }
    return of;
}

void wpk_mark_drop(struct wpk_mark_list *list, struct wpk_mark *mark)
{
    struct wpk_mark *before = NULL;
    if (mark->of == NULL) {
        return;
    }
    for (struct wpk_mark *at = list->first; at != mark; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &list->first) = mark->next;
    list->last = list->last == mark ? before : list->last;
    mark->of = NULL;
}

bool wpk_mark_any(const struct wpk_mark *marks, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        any = any || marks[i].of != NULL;
    }
    return any;
}

void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark)
{
    wpk_mark_put(&c->marked_searches[mark], &search->marks[mark], search);
}

void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark)
{
    wpk_mark_put(&c->marked_jobs[mark], &job->marks[mark], job);
}

/* ---- arrays */

void *wpk_grow(void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    return WPK_DEMAND(realloc(items, *capacity * size));
}
