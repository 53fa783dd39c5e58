/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups that no kernel answered: counted on any thread, and taken by the loop, which has them
 * written to the store.
 *
 *      lookup ──▶ add ──▶ pending, by key ── each tick ──▶ take ──▶ table `miss` */
#ifndef WPK_COORDINATOR_INDEX_MISSES_H
#define WPK_COORDINATOR_INDEX_MISSES_H

#include "coordinator/index/lookup.h"

#define WPK_MISSES_MAX 4096 /* of the table, and of those that are pending */

struct wpk_misses; /* `= NULL` in an index without lookups */

struct wpk_miss {
    char *key;         /* owned; fingerprint, device, threads, layouts, class and conditions */
    char *op;          /* owned; the operator as a job file has it, without a name */
    const char *match; /* name of the level, static */
    uint64_t lookups;
    uint64_t calls; /* that the asker has made meanwhile, of whatever it had */
    uint64_t time_ns;
    uint64_t estimate_ns; /* of one call of the kernel that is missing; 0: unknown */
};

struct wpk_misses *wpk_misses_new(void);
void wpk_misses_free(struct wpk_misses *misses);

/* Count a lookup. `op` is taken; it is freed where nothing is kept of it: the key is counted
 * already, or too many are pending. */
void wpk_misses_add(struct wpk_misses *misses, const struct wpk_lookup *lookup, char *op,
                    const struct wpk_miss *more);

/* Take what is pending, for the caller to free with wpk_miss_fini(); NULL: there is nothing.
 *   owns  caller frees the array of *count */
struct wpk_miss *wpk_misses_take(struct wpk_misses *misses, uint32_t *count);
void wpk_miss_fini(struct wpk_miss *miss);

/* In a batch: add what was taken to the table. Past the limit those that `index` answers go, then
 * those that cost least. */
void wpk_misses_write(struct wpk_store *store, struct wpk_index *index,
                      const struct wpk_miss *misses, uint32_t count);
/* Write at most `max` of the table from number `from` on, those that cost most first, without those
 * that `version` answers by now. Returns the number to go on from; 0 at the end. */
uint64_t wpk_misses_list(struct wpk_store *store, const struct wpk_index_version *version,
                         uint64_t from, int max, struct wpk_json_writer *w);

#endif
