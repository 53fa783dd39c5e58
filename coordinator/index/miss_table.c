/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/misses.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

/* The loss: the time of the calls, less that of as many calls of the missing kernel. */
#define MOST "9007199254740991" /* WPK_JSON_INT_MAX */
#define LOST "max(time_ns - calls * estimate_ns, 0)"

/* Read the key, whose device stays in it. */
static bool read_key(const char *key, struct wpk_lookup *lookup, char layouts[16])
{
    char accuracy[WPK_ACCURACY_TEXT_MAX], conditions[32];
    int end = 0;
    *lookup = (struct wpk_lookup){.layouts = layouts, .environment = ""};
    _Static_assert(WPK_FINGERPRINT_SIZE == 65 && WPK_ACCURACY_TEXT_MAX == 48, "words fit");
    if (sscanf(key, "%64s %d %15s %47s %31s%n", lookup->fingerprint, &lookup->threads, layouts,
               accuracy, conditions, &end) != 5 ||
        key[end] != ' ' || wpk_accuracy_parse(accuracy, &lookup->accuracy, NULL) != WPK_OK) {
        return false;
    }
    lookup->device = key + end + 1;
    return wpk_conditions_parse(conditions, &lookup->conditions) == WPK_OK;
}

static bool is_answered(const struct wpk_index_version *version, const struct wpk_lookup *lookup)
{
    struct wpk_match match;
    wpk_lookup_find(version, lookup, &match);
    return wpk_match_is_hit(&match);
}

/* Delete those that have a kernel by now. */
static void drop_answered(struct wpk_store *store, const struct wpk_index_version *version)
{
    struct wpk_buf keys = {0}; /* each with its NUL */
    struct wpk_rows *rows = wpk_store_query(store, "SELECT key FROM miss", "");
    while (wpk_rows_next(rows)) {
        struct wpk_lookup lookup;
        char layouts[16];
        const char *key = wpk_rows_text(rows, 0);
        if (!read_key(key, &lookup, layouts) || is_answered(version, &lookup)) {
            wpk_buf_append(&keys, key, strlen(key) + 1);
        }
    }
    wpk_rows_close(rows);
    for (size_t at = 0; at < keys.size; at += strlen(keys.data + at) + 1) {
        wpk_store_run(store, "DELETE FROM miss WHERE key = ?", "t", keys.data + at);
    }
    wpk_buf_fini(&keys);
}

void wpk_misses_write(struct wpk_store *store, struct wpk_index *index,
                      const struct wpk_miss *misses, uint32_t count)
{
    int64_t known = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_miss *miss = &misses[i];
        wpk_store_run(store,
                      "INSERT INTO miss (key, op, match, lookups, calls, time_ns, estimate_ns,"
                      " seen_at, epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO"
                      " UPDATE SET match = excluded.match,"
                      " lookups = min(lookups + excluded.lookups, " MOST "),"
                      " calls = min(calls + excluded.calls, " MOST "),"
                      " time_ns = min(time_ns + excluded.time_ns, " MOST "),"
                      " estimate_ns = excluded.estimate_ns, seen_at = excluded.seen_at",
                      "tttiiiiii", miss->key, miss->op, miss->match, (int64_t)miss->lookups,
                      (int64_t)miss->calls, (int64_t)miss->time_ns, (int64_t)miss->estimate_ns,
                      (int64_t)wpk_store_wall_ns(store), wpk_store_epoch(store));
    }
    wpk_rows_take(wpk_store_query(store, "SELECT count(*) FROM miss", ""), "i", &known);
    if (known <= WPK_MISSES_MAX) {
        return;
    }
    const struct wpk_index_version *version = wpk_index_acquire(index);
    drop_answered(store, version);
    wpk_index_release(index, version);
    wpk_store_run(store,
                  "DELETE FROM miss WHERE key IN (SELECT key FROM miss ORDER BY " LOST
                  ", lookups, seen_at LIMIT max((SELECT count(*) FROM miss) - ?, 0))",
                  "i", (int64_t)WPK_MISSES_MAX);
}

static void put_row(const struct wpk_rows *rows, const struct wpk_lookup *lookup,
                    struct wpk_json_writer *w)
{
    static const char *const numbers[] = {"lookups", "calls", "time_ns", "estimate_ns", "lost_ns"};
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "fingerprint", lookup->fingerprint);
    wpk_json_put_text(w, "device", lookup->device);
    wpk_json_put_int(w, "threads", lookup->threads);
    wpk_json_put_raw(w, "op", wpk_rows_text(rows, 1));
    wpk_json_put_text(w, "match", wpk_rows_text(rows, 2));
    for (int i = 0; i < (int)(sizeof numbers / sizeof numbers[0]); i++) {
        wpk_json_put_int(w, numbers[i], wpk_rows_int(rows, 3 + i));
    }
    wpk_json_put_wall(w, "seen_at", (uint64_t)wpk_rows_int(rows, 8));
    wpk_json_end(w);
}

uint64_t wpk_misses_list(struct wpk_store *store, const struct wpk_index_version *version,
                         uint64_t from, int max, struct wpk_json_writer *w)
{
    uint64_t number = from;
    int count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT key, op, match, lookups, calls, time_ns, estimate_ns, " LOST " AS lost, seen_at"
        " FROM miss ORDER BY lost DESC, lookups DESC, key LIMIT -1 OFFSET ?",
        "i", (int64_t)from);
    bool more;
    while ((more = wpk_rows_next(rows)) && count < max) {
        struct wpk_lookup lookup;
        char layouts[16];
        number++;
        if (read_key(wpk_rows_text(rows, 0), &lookup, layouts) && !is_answered(version, &lookup)) {
            put_row(rows, &lookup, w);
            count++;
        }
    }
    wpk_rows_close(rows);
    return more ? number : 0;
}
