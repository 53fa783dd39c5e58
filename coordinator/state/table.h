/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table: a number or a text finds a pointer in O(1). One table has keys of one kind. It owns
 * its slots, neither texts nor values: a value that holds its own key as text must stay where it is
 * until it is taken out. `= {0}` is an empty table. */
#ifndef WPK_COORDINATOR_STATE_TABLE_H
#define WPK_COORDINATOR_STATE_TABLE_H

#include "common/err.h"

#include <stdint.h>

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

/* NULL when there is none. */
void *wpk_table_get(const struct wpk_table *table, uint64_t key);
void *wpk_table_get_text(const struct wpk_table *table, const char *text);
/* Add a value, not NULL, under a key that is not there. */
void wpk_table_put(struct wpk_table *table, uint64_t key, void *value);
void wpk_table_put_text(struct wpk_table *table, const char *text, void *value);
/* Take a value out and return it; NULL when there is none. */
void *wpk_table_take(struct wpk_table *table, uint64_t key);
void *wpk_table_take_text(struct wpk_table *table, const char *text);

/* 64 bits of a text, for keys in memory: not against somebody who seeks collisions. */
uint64_t wpk_table_hash(const char *text);

#endif
