/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/misses.h"

#include "common/json.h"

#include <stdio.h>

/* The loss: the time of the calls, less that of as many calls of the missing kernel. */
#define LOST "max(time_ns - calls * estimate_ns, 0)"

void wpk_misses_write(struct wpk_store *store, const struct wpk_miss *misses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wpk_miss *miss = &misses[i];
        wpk_store_run(store,
                      "INSERT INTO miss (key, op, match, lookups, calls, time_ns, estimate_ns,"
                      " seen_at, epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO"
                      " UPDATE SET match = excluded.match, lookups = lookups + excluded.lookups,"
                      " calls = calls + excluded.calls, time_ns = time_ns + excluded.time_ns,"
                      " estimate_ns = excluded.estimate_ns, seen_at = excluded.seen_at",
                      "tttiiiiii", miss->key, miss->op, miss->match, (int64_t)miss->lookups,
                      (int64_t)miss->calls, (int64_t)miss->time_ns, (int64_t)miss->estimate_ns,
                      (int64_t)wpk_store_wall_ns(store), wpk_store_epoch(store));
    }
    wpk_store_run(store,
                  "DELETE FROM miss WHERE key IN (SELECT key FROM miss ORDER BY " LOST
                  ", lookups, seen_at LIMIT max((SELECT count(*) FROM miss) - ?, 0))",
                  "i", (int64_t)WPK_MISSES_MAX);
}

/* True if a kernel answers the key now. */
static bool is_answered(const struct wpk_index_version *version, const char *key,
                        struct wpk_lookup *lookup, char *layouts, char *device)
{
    char accuracy[WPK_ACCURACY_TEXT_MAX], conditions[32];
    struct wpk_match match;
    *lookup = (struct wpk_lookup){.layouts = layouts, .device = device, .environment = ""};
    _Static_assert(WPK_FINGERPRINT_SIZE == 65 && WPK_ACCURACY_TEXT_MAX >= 32, "texts fit");
    if (sscanf(key, "%64s %d %15s %31s %31s %255[^\n]", lookup->fingerprint, &lookup->threads,
               layouts, accuracy, conditions, device) != 6 ||
        wpk_accuracy_parse(accuracy, &lookup->accuracy, NULL) != WPK_OK ||
        wpk_conditions_parse(conditions, &lookup->conditions) != WPK_OK) {
        return false;
    }
    wpk_lookup_find(version, lookup, &match);
    return wpk_match_is_hit(&match);
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
        char layouts[16], device[256];
        number++;
        if (!is_answered(version, wpk_rows_text(rows, 0), &lookup, layouts, device)) {
            put_row(rows, &lookup, w);
            count++;
        }
    }
    wpk_rows_close(rows);
    return more ? number : 0;
}
