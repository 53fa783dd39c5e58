/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table: finds a pointer by a number or a text in O(1). All keys of a table are of one kind.
 * A table owns its slots, but neither texts nor values: a value that holds its own key's text must
 * stay where it is until it is taken out. `= {0}` is an empty table. */
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

#endif
