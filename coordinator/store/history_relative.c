/* SPDX-License-Identifier: Apache-2.0 */
/* The best schedules of a problem's relatives: of other shapes, or with other borders. */
#include "coordinator/store/history.h"

#include "common/format.h"
#include "search/mask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEMS_MAX 4                                           /* the nearest ones */
#define SCHEDULES_MAX (WPK_HISTORY_RELATIVES_MAX / PROBLEMS_MAX) /* of each */

struct relative {
    int64_t problem_id;
    double distance;
};

/* Nearest first; of equal distance the one that came first. */
struct relatives {
    struct relative item[PROBLEMS_MAX];
    int count;
};

/* Sum of |log(a / b)| over all extents, which are as many.   shape  "1,64,56,56" */
static double distance_of(const char *a, const char *b)
{
    double sum = 0;
    while (*a != '\0' && *b != '\0') {
        char *end_a = NULL, *end_b = NULL;
        double x = (double)strtoll(a, &end_a, 10), y = (double)strtoll(b, &end_b, 10);
        sum += x > 0 && y > 0 ? fabs(wpk_real_log(x) - wpk_real_log(y)) : 0;
        a = end_a + (*end_a == ',');
        b = end_b + (*end_b == ',');
    }
    return sum;
}

static void put(struct relatives *relatives, int64_t problem_id, double distance)
{
    int at = relatives->count;
    while (at > 0 && relatives->item[at - 1].distance > distance) {
        at--;
    }
    if (at == PROBLEMS_MAX) {
        return;
    }
    relatives->count += relatives->count < PROBLEMS_MAX;
    memmove(&relatives->item[at + 1], &relatives->item[at],
            (size_t)(relatives->count - 1 - at) * sizeof(relatives->item[0]));
    relatives->item[at] = (struct relative){problem_id, distance};
}

/* Problems of the same family that are timed in the same way, and have a kernel of their own. */
static void find(struct wpk_store *store, uint64_t search_id, struct relatives *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT p.id, p.extents, q.extents FROM search s JOIN problem q ON q.id = s.problem_id"
        " JOIN problem p ON p.family = q.family AND p.layouts = q.layouts AND p.device_class ="
        " q.device_class AND p.environment = q.environment AND p.policy = q.policy AND p.id <> q.id"
        " WHERE s.id = ? AND EXISTS (SELECT 1 FROM kernel k WHERE k.problem_id = p.id AND"
        " k.artifact_sha256 <> '' AND k.provider <> ? AND k.revoked_at = 0) ORDER BY p.id",
        "it", (int64_t)search_id, WPK_PLAIN_PROVIDER);
    while (wpk_rows_next(rows)) {
        put(out, wpk_rows_int(rows, 0),
            distance_of(wpk_rows_text(rows, 1), wpk_rows_text(rows, 2)));
    }
}

/* The candidate of another problem of the family with this one's names. A text that is none stays
 * as it is: it fits no space. */
static char *take_candidate(const char *from, const char *to, const char *text)
{
    struct wpk_buf renamed = {0};
    char *out = NULL;
    if (wpk_candidate_rename(from, to, text, &renamed) != WPK_OK ||
        wpk_buf_take(&renamed, &out, NULL) != WPK_OK) {
        out = WPK_DEMAND(strdup(text));
    }
    wpk_buf_fini(&renamed);
    return out;
}

/* Read the schedules of one problem: verified ones first, then those that were only timed, each
 * group by time. */
static uint32_t read_best(struct wpk_store *store, uint64_t search_id, int64_t problem_id,
                          char **out)
{
    uint32_t count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT t.candidate, MIN(k.median_ns) AS verified, (SELECT MIN(m.median_ns) FROM"
        " measurement m WHERE m.trial_id = t.id AND m.censored = 0) AS timed, p.op, q.op FROM"
        " trial t JOIN problem p ON p.id = t.problem_id JOIN search s ON s.id = ?4 JOIN problem q"
        " ON q.id = s.problem_id LEFT JOIN kernel k ON k.problem_id = t.problem_id AND "
        "k.artifact_sha256 ="
        " t.artifact_sha256 AND k.provider <> ?1 AND k.revoked_at = 0 WHERE t.problem_id = ?2"
        " AND t.outcome = 'ok' AND t.artifact_sha256 <> '' AND t.provider <> ?1 GROUP BY t.id"
        " HAVING timed IS NOT NULL ORDER BY verified IS NULL, verified, timed, t.id LIMIT ?3",
        "tiii", WPK_PLAIN_PROVIDER, problem_id, (int64_t)SCHEDULES_MAX, (int64_t)search_id);
    while (wpk_rows_next(rows)) {
        out[count] =
            take_candidate(wpk_rows_text(rows, 3), wpk_rows_text(rows, 4), wpk_rows_text(rows, 0));
        count++;
    }
    return count;
}

uint32_t wpk_history_relatives(struct wpk_store *store, uint64_t search_id,
                               char *out[WPK_HISTORY_RELATIVES_MAX], uint32_t *twin_count)
{
    struct relatives relatives = {.count = 0};
    uint32_t count = 0;
    find(store, search_id, &relatives);
    *twin_count = 0;
    for (int i = 0; i < relatives.count; i++) {
        count += read_best(store, search_id, relatives.item[i].problem_id, &out[count]);
        *twin_count = relatives.item[i].distance == 0 ? count : *twin_count;
    }
    return count;
}

char *wpk_history_packing(struct wpk_store *store, uint64_t problem_id)
{
    char *out = NULL;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT t.candidate, p.op, q.op FROM problem q JOIN problem p ON p.family = q.family AND"
        " p.constants = q.constants AND p.layouts = q.layouts AND p.device_class = q.device_class"
        " AND p.environment = q.environment AND p.policy = q.policy AND p.id <> q.id JOIN kernel k"
        " ON k.problem_id = p.id AND k.provider <> ? AND k.revoked_at = 0 JOIN trial t ON"
        " t.problem_id = p.id AND t.artifact_sha256 = k.artifact_sha256 AND t.outcome = 'ok'"
        " WHERE q.id = ? AND k.artifact_sha256 <> '' ORDER BY p.id, k.median_ns LIMIT 1",
        "ti", WPK_PLAIN_PROVIDER, (int64_t)problem_id);
    if (wpk_rows_next(rows)) {
        out =
            take_candidate(wpk_rows_text(rows, 1), wpk_rows_text(rows, 2), wpk_rows_text(rows, 0));
    }
    wpk_rows_close(rows);
    return out != NULL ? out : WPK_DEMAND(strdup(""));
}
