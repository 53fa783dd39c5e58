/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table: finds a pointer by a number or a text in O(1). All keys of a table are of one kind.
 * A table owns its slots, but neither texts nor values: a value that holds its own key's text must
 * stay where it is until it is taken out. `= {0}` is an empty table. */
#ifndef WPK_COORDINATOR_STATE_TABLE_H
#define WPK_COORDINATOR_STATE_TABLE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_search;

struct wpk_table_slot {
    uint64_t key;     /* the number, or the text's hash */
    const char *text; /* NULL: the key is the number */
    void *value;      /* NULL: the slot is free */
};

struct wpk_table {
    struct wpk_table_slot *slots; /* owned; [capacity], at most three quarters in use */
    uint32_t capacity;            /* a power of two, or 0 */
    uint32_t count;
};

void wpk_table_fini(struct wpk_table *table);

/* The value under the key; NULL: there is none. */
void *wpk_table_get(const struct wpk_table *table, uint64_t key);
void *wpk_table_get_text(const struct wpk_table *table, const char *text);
/* Add a value, not NULL, under a key that is not there. */
void wpk_table_put(struct wpk_table *table, uint64_t key, void *value);
void wpk_table_put_text(struct wpk_table *table, const char *text, void *value);
/* Take the value under the key out and return it; NULL: there is none. */
void *wpk_table_take(struct wpk_table *table, uint64_t key);
void *wpk_table_take_text(struct wpk_table *table, const char *text);

/* A 64-bit hash of a text, for keys in memory. It does not resist collisions made on purpose. */
uint64_t wpk_table_hash(const char *text);

/* Timers: a heap of timers, each embedded in the struct that it is for. Setting one is O(log n),
 * looking whether one is due is O(1). `= {0}` is a timer that is not set, and an empty heap. */

struct wpk_timer {
    uint64_t due_ns;
    uint32_t place; /* in the heap, from 1; 0: not set */
    void *owner;    /* the struct that it is for; filled in before it is set */
};

struct wpk_timers {
    struct wpk_timer **items; /* owned; [count], the earliest first */
    uint32_t count;
    uint32_t capacity;
};

void wpk_timers_fini(struct wpk_timers *timers);
/* Set the timer, or move it to another time. */
void wpk_timer_set(struct wpk_timers *timers, struct wpk_timer *timer, uint64_t due_ns);
/* Take the timer out of the heap, if it is set. */
void wpk_timer_cancel(struct wpk_timers *timers, struct wpk_timer *timer);
/* Take the earliest timer out, if it is due; NULL: none is. */
struct wpk_timer *wpk_timers_next(struct wpk_timers *timers, uint64_t now_ns);

/* Marks: lists of the searches, jobs, work queues and owners that a step has changed. A handler
 * changes its own noun and marks it; coordinator.c takes the marked items from the lists. A list is
 * first in, first out, so that a seed replays a run; an item that is marked again keeps its place.
 * Between two steps all lists are empty, except those of items to be stored: marks are not
 * persisted. */

/* An item's place in a list, embedded in the item. */
struct wpk_mark {
    void *of; /* the item, while it is in the list; else NULL */
    struct wpk_mark *next;
};

struct wpk_mark_list {
    struct wpk_mark *first;
    struct wpk_mark *last;
};

enum wpk_search_mark {
    WPK_SEARCH_COURSE,  /* its phase may be over, or an operator is to join it */
    WPK_SEARCH_READY,   /* the stages that it has work for may have changed */
    WPK_SEARCH_RELEASE, /* it may not be needed any more */
    WPK_SEARCH_STORE,   /* its counters are to be stored within a second */
    WPK_SEARCH_MARKS,
};

enum wpk_job_mark {
    WPK_JOB_OPERATORS, /* an operator has ended; the job ends if no other is open */
    WPK_JOB_BIND,      /* an operator may be bound to a search, or worked on */
    WPK_JOB_MARKS,
};

/* Put the item into the list, if it is not there. `mark`: the item's for this list. */
void wpk_mark_put(struct wpk_mark_list *list, struct wpk_mark *mark, void *of);
/* Take the first item out of the list; NULL: the list is empty. */
void *wpk_mark_take(struct wpk_mark_list *list);
/* Take this item out, if it is in the list. */
void wpk_mark_drop(struct wpk_mark_list *list, struct wpk_mark *mark);
/* True if any of these marks is in a list. */
bool wpk_mark_any(const struct wpk_mark *marks, uint32_t count);
void wpk_mark_search(struct wpk_coordinator *c, struct wpk_search *search,
                     enum wpk_search_mark mark);
void wpk_mark_job(struct wpk_coordinator *c, struct wpk_job_entry *job, enum wpk_job_mark mark);

/* Arrays that grow. */

/* Return the array with room for one item more than `count` items of `size` bytes; it may move. */
void *wpk_grow(void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
