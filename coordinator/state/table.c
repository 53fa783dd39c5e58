/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing. Taking a value out moves the values behind it back, so that
 * no tombstones are needed. */
#include "coordinator/state/table.h"

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

static bool is_at(const struct wpk_table_slot *slot, uint64_t key, const char *text)
{
    return slot->key == key && (text == NULL || strcmp(slot->text, text) == 0);
}

/* The key's slot, or the free one where it would be. The table is not empty. */
static struct wpk_table_slot *find(const struct wpk_table *table, uint64_t key, const char *text)
{
    uint32_t at = home_of(table, key);
    while (table->slots[at].value != NULL && !is_at(&table->slots[at], key, text)) {
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
    table->slots = calloc(table->capacity, sizeof *table->slots);
    WPK_ASSERT(table->slots != NULL);
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
