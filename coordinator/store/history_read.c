/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the history: asks, trials, kernels, owners. */
#include "coordinator/store/history.h"

#include "coordinator/store/history_curve.h"
#include "schema/message.h"

#include <stdio.h>
#include <string.h>

/* Columns 0 to 12: what read_summary() wants. A trial that was repeated has several measurements of
 * its own: the last that was not stopped early counts, of those with the anchor if there are any
 * (`anchor`: an expression). One that failed in the end has no times. */
#define SUMMARY_COLUMNS(anchor)                                                                    \
    "t.outcome, t.artifact_sha256, t.error_max, t.error_tolerance, m.median_ns, m.min_ns,"         \
    " m.mad_ns, m.anchor_ns, m.censored, t.of_rms, t.times_direct, t.constants_bytes,"             \
    " iif(m.anchor = " anchor ", m.anchor_ratio, 0)"
#define MEASUREMENT(where)                                                                         \
    "(SELECT n.number FROM measurement n WHERE n.trial_id = t.id AND n.kind IN ('trial',"          \
    " 'vendor', 'plain')" where " ORDER BY n.censored, n.number DESC LIMIT 1)"
#define SUMMARY_JOIN(anchor)                                                                       \
    " LEFT JOIN measurement m ON t.outcome = 'ok' AND m.trial_id = t.id AND m.number = "           \
    "coalesce(" MEASUREMENT(" AND n.anchor = " anchor) ", " MEASUREMENT("") ")"
#define ANY_ANCHOR "NULL"

static struct wpk_trial_summary read_summary(const struct wpk_rows *rows)
{
    struct wpk_trial_summary trial = {0};
    const char *outcome;
    wpk_rows_get(rows, "strruuuufrrur", &outcome, trial.artifact_sha256,
                 sizeof trial.artifact_sha256, &trial.error_max, &trial.error_tolerance,
                 &trial.median_ns, &trial.min_ns, &trial.mad_ns, &trial.anchor_ns, &trial.censored,
                 &trial.of_rms, &trial.times_direct, &trial.constants_bytes, &trial.anchor_ratio);
    if (outcome[0] == '\0') {
        trial.outcome = WPK_OUTCOME_ABANDONED; /* there is none yet: as little settled */
    } else if (wpk_outcome_parse(outcome, &trial.outcome) != WPK_OK) {
        trial.outcome = WPK_OUTCOME_UNSUPPORTED; /* of a newer wpkd: it counts as failed */
    }
    return trial;
}

bool wpk_history_find_trial(struct wpk_store *store, uint64_t problem_id, const char *provider,
                            const char *candidate, struct wpk_trial_summary *out, uint64_t *id)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash(provider, candidate, hash);
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT " SUMMARY_COLUMNS(ANY_ANCHOR) ", t.id FROM trial t" SUMMARY_JOIN(
                            ANY_ANCHOR) " WHERE t.problem_id = ? AND t.candidate_hash = ?",
                        "ih", (int64_t)problem_id, hash);
    bool found = wpk_rows_next(rows);
    if (found) {
        *out = read_summary(rows);
        if (id != NULL) {
            *id = (uint64_t)wpk_rows_int(rows, 13);
        }
    }
    wpk_rows_close(rows);
    return found;
}

struct wpk_trial_summary wpk_history_trial(struct wpk_store *store, uint64_t id, const char *anchor)
{
    struct wpk_trial_summary trial = {.outcome = WPK_OUTCOME_ABANDONED};
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT " SUMMARY_COLUMNS("?2") " FROM trial t" SUMMARY_JOIN("?2") " WHERE t.id = ?1", "it",
        (int64_t)id, anchor);
    if (wpk_rows_next(rows)) {
        trial = read_summary(rows);
    }
    wpk_rows_close(rows);
    return trial;
}

bool wpk_history_settled(const struct wpk_trial_summary *trial, const char *candidate)
{
    if (trial->outcome != WPK_OUTCOME_OK) {
        return trial->outcome != WPK_OUTCOME_ABANDONED;
    }
    bool vendor = candidate[0] == '\0';
    return vendor || (!trial->censored && trial->artifact_sha256[0] != '\0');
}

bool wpk_history_known_trial(struct wpk_store *store, uint64_t problem_id, const char *provider,
                             const char *candidate, struct wpk_trial_summary *out, uint64_t *id)
{
    struct wpk_trial_summary trial;
    uint64_t trial_id = 0;
    if (!wpk_history_find_trial(store, problem_id, provider, candidate, &trial, &trial_id) ||
        !wpk_history_settled(&trial, candidate)) {
        return false;
    }
    *out = trial;
    if (id != NULL) {
        *id = trial_id;
    }
    return true;
}

void wpk_history_detail(struct wpk_store *store, uint64_t problem_id, const char *provider,
                        const char *candidate, struct wpk_buf *out)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash(provider, candidate, hash);
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT detail FROM trial WHERE problem_id = ? AND candidate_hash = ?", "ih",
        (int64_t)problem_id, hash);
    wpk_rows_take(rows, "b", out);
}

void wpk_history_asks_between(struct wpk_store *store, uint64_t search_id, uint32_t first,
                              uint32_t end, struct wpk_work_item **asks, uint32_t *count)
{
    uint32_t capacity = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT " SUMMARY_COLUMNS(
            "s.anchor") ", t.candidate, a.ended, a.known"
                        " FROM ask a JOIN search s ON s.id = a.search_id"
                        " JOIN trial t ON t.id = a.trial_id" SUMMARY_JOIN(
                            "s.anchor") " WHERE a.search_id = ? AND a.number >= ? AND a.number < ?"
                                        " ORDER BY a.number",
        "iii", (int64_t)search_id, (int64_t)first, (int64_t)end);
    while (wpk_rows_next(rows)) {
        *asks = wpk_grow(*asks, *count, &capacity, sizeof **asks);
        struct wpk_work_item *ask = &(*asks)[(*count)++];
        memset(ask, 0, sizeof *ask);
        ask->text = WPK_DEMAND(strdup(wpk_rows_text(rows, 13)));
        if (wpk_rows_int(rows, 14) != 0) {
            ask->standing = WPK_STANDING_ENDED;
            ask->known = wpk_rows_int(rows, 15) != 0;
            ask->trial = read_summary(rows);
        }
    }
}

void wpk_history_asks(struct wpk_store *store, uint64_t search_id, uint32_t first,
                      struct wpk_work_item **asks, uint32_t *count)
{
    wpk_history_asks_between(store, search_id, first, UINT32_MAX, asks, count);
}

#define STRETCH 16 /* asks that follow one another share pages of the database */

uint64_t wpk_history_sample_times(struct wpk_store *store, uint64_t search_id, uint32_t most,
                                  wpk_curve_time_fn fn, void *user)
{
    uint64_t end = wpk_rows_take_id(
        wpk_store_query(store, "SELECT coalesce(max(number), -1) + 1 FROM ask WHERE search_id = ?",
                        "i", (int64_t)search_id));
    uint64_t step = (end * STRETCH + most - 1) / most;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + ?2 FROM s WHERE n + ?2 < ?3)"
        " SELECT t.candidate, m.median_ns FROM s CROSS JOIN ask a ON a.search_id = ?1 AND"
        " a.number >= s.n AND a.number < s.n + ?4 JOIN trial t ON t.id = a.trial_id AND"
        " t.outcome = 'ok' JOIN measurement m ON m.trial_id = t.id AND m.median_ns > 0 AND"
        " m.number = " MEASUREMENT(" AND n.censored = 0"),
        "iiii", (int64_t)search_id, (int64_t)(step > STRETCH ? step : STRETCH), (int64_t)end,
        (int64_t)STRETCH);
    while (wpk_rows_next(rows)) {
        fn(user, wpk_rows_text(rows, 0), (uint64_t)wpk_rows_int(rows, 1));
    }
    return end;
}

bool wpk_history_artifact_revoked(struct wpk_store *store, const char *sha256)
{
    bool revoked = false;
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT COALESCE(MIN(revoked_at), 0) FROM kernel WHERE artifact_sha256 = ?", "t",
        sha256);
    wpk_rows_take(rows, "f", &revoked);
    return revoked;
}

bool wpk_history_is_revoked(struct wpk_store *store, uint64_t problem_id, const char *provider,
                            const char *artifact_sha256)
{
    /* By the problem: the other index has all vendors' kernels under one key. */
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT 1 FROM kernel WHERE problem_id = ? AND +artifact_sha256 = ?"
                        " AND (artifact_sha256 <> '' OR provider = ?) AND revoked_at <> 0 LIMIT 1",
                        "itt", (int64_t)problem_id, artifact_sha256, provider);
    return wpk_rows_take(rows, "");
}

bool wpk_history_kernel(struct wpk_store *store, uint64_t kernel_id, struct wpk_buf *out)
{
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT document FROM kernel WHERE id = ? AND revoked_at = 0", "i",
                        (int64_t)kernel_id);
    return wpk_rows_take(rows, "b", out);
}

/* ---- owners and workers */

void wpk_history_owners(struct wpk_store *store, wpk_history_owner_fn fn, void *user)
{
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT name, device_ns, share_ns FROM owner ORDER BY name", "");
    while (wpk_rows_next(rows)) {
        struct wpk_owner_event owner = {0};
        wpk_rows_get(rows, "suu", &owner.name, &owner.device_ns, &owner.virtual_ns);
        fn(user, &owner);
    }
}

void wpk_history_admin_states(struct wpk_store *store, wpk_history_admin_state_fn fn, void *user)
{
    struct wpk_rows *rows =
        wpk_store_query(store, "SELECT name, state, reason FROM worker_order ORDER BY name", "");
    while (wpk_rows_next(rows)) {
        enum wpk_admin_state state;
        if (wpk_admin_state_parse(wpk_rows_text(rows, 1), &state) == WPK_OK) {
            fn(user, wpk_rows_text(rows, 0), state, wpk_rows_text(rows, 2));
        }
    }
}

/* ---- trials */

static void write_time(struct wpk_json_writer *w, const struct wpk_trial_summary *trial)
{
    if (trial->median_ns == 0) {
        wpk_json_put_null(w, "time_ns");
        return;
    }
    wpk_json_begin_object(w, "time_ns");
    wpk_json_put_int(w, "median", (int64_t)trial->median_ns);
    wpk_json_put_int(w, "min", (int64_t)trial->min_ns);
    wpk_json_put_int(w, "mad", (int64_t)trial->mad_ns);
    wpk_json_end(w);
}

/* Columns 13 on: candidate, provider, log, schedule, recorded_at, index, whether it has ended,
 * unseen faults, what launches need, source. */
static void write_trial(struct wpk_json_writer *w, const char *op, wpk_work_id work,
                        const struct wpk_rows *rows)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(work, id);
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "op", op);
    wpk_json_put_text(w, "work", id);
    wpk_json_put_int(w, "index", wpk_rows_int(rows, 18));
    wpk_json_put_text(w, "provider", wpk_rows_text(rows, 14));
    wpk_json_put_text(w, "candidate", wpk_rows_text(rows, 13));
    wpk_json_put_text(w, "source", wpk_rows_text(rows, 22));
    bool ended = wpk_rows_int(rows, 19) != 0;
    wpk_json_put_text(w, "outcome", ended ? wpk_rows_text(rows, 0) : "pending");
    if (!ended) {
        wpk_json_put_null(w, "time_ns");
        wpk_json_put_null(w, "recorded");
        wpk_json_end(w);
        return;
    }
    struct wpk_trial_summary trial = read_summary(rows);
    wpk_json_put_text(w, "log", wpk_rows_text(rows, 15));
    write_time(w, &trial);
    wpk_json_put_bool(w, "censored", trial.censored);
    wpk_json_put_int(w, "anchor_ns", (int64_t)trial.anchor_ns);
    wpk_json_put_real(w, "anchor_ratio", trial.anchor_ratio);
    wpk_json_put_real(w, "max_error", trial.error_max);
    wpk_json_put_real(w, "tolerance", trial.error_tolerance);
    wpk_json_put_real(w, "of_rms", trial.of_rms);
    wpk_json_put_real(w, "times_direct", trial.times_direct);
    wpk_json_put_int(w, "constants_bytes", (int64_t)trial.constants_bytes);
    wpk_json_put_raw(w, "launch", wpk_rows_text(rows, 21));
    wpk_json_put_text(w, "unseen", wpk_rows_text(rows, 20));
    wpk_json_put_text(w, "schedule_sha256", wpk_rows_text(rows, 16));
    wpk_json_put_text_or_null(w, "artifact", trial.artifact_sha256);
    wpk_json_put_wall(w, "recorded", (uint64_t)wpk_rows_int(rows, 17));
    wpk_json_end(w);
}

/* One that is no ask. */
static int write_other(struct wpk_store *store, uint64_t problem_id, wpk_work_id work,
                       const char *provider, const char *op, struct wpk_json_writer *w)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    char candidate[WPK_PLAIN_CANDIDATE_SIZE] = "";
    if (work.kind == WPK_WORK_PLAIN) {
        wpk_plain_candidate_print(work.index, candidate);
    }
    wpk_store_hash(provider, candidate, hash);
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT " SUMMARY_COLUMNS(
            ANY_ANCHOR) ", t.candidate, t.provider, t.log, t.schedule_sha256,"
                        " t.recorded_at, -1, 1, t.unseen, t.launch, '' FROM trial t" SUMMARY_JOIN(
                            ANY_ANCHOR) " WHERE t.problem_id = ? AND t.candidate_hash = ?",
        "ih", (int64_t)problem_id, hash);
    bool found = wpk_rows_next(rows);
    if (found) {
        write_trial(w, op, work, rows);
    }
    wpk_rows_close(rows);
    return found;
}

/* Vendors and candidates of the plain kernel have the index -1, and are few: they are all written
 * before the first ask. Vendors are the providers after the first. */
static int write_others(struct wpk_store *store, uint64_t search_id, const char *op,
                        struct wpk_json_writer *w)
{
    char providers[WPK_KEY_TEXT_MAX] = "";
    uint64_t problem_id = 0;
    int count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store, "SELECT problem_id, providers FROM search WHERE id = ?", "i", (int64_t)search_id);
    wpk_rows_take(rows, "ut", &problem_id, providers, sizeof providers);
    char *rest = providers;
    strsep(&rest, ";");
    for (uint32_t i = 0; rest != NULL; i++) {
        const wpk_work_id work = {search_id, WPK_WORK_VENDOR, i};
        count += write_other(store, problem_id, work, strsep(&rest, ";"), op, w);
    }
    for (uint32_t number = 1; number <= WPK_PLAIN_MAX; number++) {
        const wpk_work_id work = {search_id, WPK_WORK_PLAIN, number};
        count += write_other(store, problem_id, work, WPK_PLAIN_PROVIDER, op, w);
    }
    return count;
}

#define SCANNED_MAX 20000 /* asks that a page of those with one outcome looks at */

/* Write asks from *index on, which becomes that of the next page.   returns  how many were written;
 * `max` also where more asks are to be looked at */
static int write_asks(struct wpk_store *store, uint64_t search_id, const char *op,
                      const char *outcome, int max, int64_t *index, struct wpk_json_writer *w)
{
    int64_t end = outcome[0] != '\0' ? *index + SCANNED_MAX : INT64_MAX, last = 0;
    int count = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT " SUMMARY_COLUMNS(
            "s.anchor") ", t.candidate, t.provider, t.log, t.schedule_sha256,"
                        " t.recorded_at, a.number, a.ended, t.unseen, t.launch, a.source FROM ask a"
                        " JOIN search s ON s.id = a.search_id"
                        " JOIN trial t ON t.id = a.trial_id" SUMMARY_JOIN(
                            "s.anchor") " WHERE a.search_id = ?1 AND a.number BETWEEN ?2 AND ?3"
                                        " AND (?4 = '' OR t.outcome = ?4)"
                                        " ORDER BY a.number LIMIT ?5",
        "iiiti", (int64_t)search_id, *index, end, outcome, (int64_t)max);
    while (wpk_rows_next(rows)) {
        const wpk_work_id work = {search_id, WPK_WORK_TRIAL, (uint32_t)wpk_rows_int(rows, 18)};
        write_trial(w, op, work, rows);
        *index = wpk_rows_int(rows, 18) + 1;
        count++;
    }
    if (count < max && end < INT64_MAX) {
        *index = end + 1;
        wpk_rows_take(wpk_store_query(store, "SELECT max(number) FROM ask WHERE search_id = ?", "i",
                                      (int64_t)search_id),
                      "i", &last);
        count = last > end ? max : count;
    }
    return count;
}

bool wpk_history_list_trials(struct wpk_store *store, uint64_t job_number, int op,
                             const char *const *names, uint32_t op_count, const char *outcome,
                             int page_size, struct wpk_history_place *place,
                             struct wpk_json_writer *w)
{
    int room = page_size;
    for (; place->position < op_count; place->position++, place->index = -1) {
        if (op >= 0 && place->position != (uint32_t)op) {
            continue;
        }
        uint64_t search_id = wpk_history_search_of(store, job_number, place->position);
        const char *name = names[place->position];
        if (place->index < 0) {
            room -= outcome[0] == '\0' ? write_others(store, search_id, name, w) : 0;
            place->index = 0;
        }
        if (room <= 0) {
            return true;
        }
        room -= write_asks(store, search_id, name, outcome, room, &place->index, w);
        if (room <= 0) {
            return true;
        }
    }
    return false;
}

/* Of a policy's text, "threads=1;conditions=warm;...". */
static enum wpk_conditions read_conditions(const char *policy)
{
    static const char field[] = "conditions=";
    enum wpk_conditions conditions = WPK_CONDITIONS_WARM;
    char name[32];
    const char *at = strstr(policy, field);
    if (at != NULL) {
        at += sizeof field - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ";"), at);
        if (wpk_conditions_parse(name, &conditions) != WPK_OK) {
            conditions = WPK_CONDITIONS_WARM;
        }
    }
    return conditions;
}

/* The largest of an implementation's trial and of its kernels; -1: none. A final on fresh inputs
 * writes to both, to the trial alone if it rejects. */
static double find_times_direct(struct wpk_store *store, uint64_t problem_id, const char *provider,
                                const char *candidate, const char *artifact)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    double found = -1;
    wpk_store_hash(provider, candidate, hash);
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT coalesce(max(times_direct), -1) FROM (SELECT times_direct FROM"
                        " kernel WHERE problem_id = ?1 AND provider = ?2 AND artifact_sha256 = ?3"
                        " UNION ALL SELECT times_direct FROM trial WHERE problem_id = ?1 AND"
                        " candidate_hash = ?4)",
                        "itth", (int64_t)problem_id, provider, artifact, hash);
    wpk_rows_take(rows, "r", &found);
    return found;
}

bool wpk_history_read_choice(struct wpk_store *store, uint64_t kernel_id,
                             const struct wpk_history_chain *chain, struct wpk_history_choice *out)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    uint64_t problem_id = 0;
    *out = (struct wpk_history_choice){.accuracy = WPK_ACCURACY_STANDARD};
    wpk_store_hash(chain->vendor, "", hash);
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT k.accuracy, p.policy, coalesce(t.recipe, ''), k.plain_sha256, p.id"
                        " FROM kernel k"
                        " JOIN problem p ON p.id = k.problem_id"
                        " LEFT JOIN trial t ON t.problem_id = k.problem_id AND t.candidate_hash = ?"
                        " AND t.outcome = 'ok' WHERE k.id = ?",
                        "hi", hash, (int64_t)kernel_id);
    const char *accuracy, *policy;
    bool found = wpk_rows_next(rows);
    if (found) {
        wpk_rows_get(rows, "ssbtu", &accuracy, &policy, &out->recipe, out->plain_sha256,
                     sizeof out->plain_sha256, &problem_id);
        if (wpk_accuracy_parse(accuracy, &out->accuracy, NULL) != WPK_OK) {
            out->accuracy = WPK_ACCURACY_STANDARD;
        }
        out->conditions = read_conditions(policy);
    }
    wpk_rows_close(rows);
    out->own_times_direct =
        find_times_direct(store, problem_id, chain->provider, chain->candidate, chain->artifact);
    out->vendor_times_direct = find_times_direct(store, problem_id, chain->vendor, "", "");
    out->plain_times_direct =
        find_times_direct(store, problem_id, "plain", "algorithm=direct", out->plain_sha256);
    if (found && wpk_history_is_revoked(store, problem_id, "", out->plain_sha256)) {
        out->plain_sha256[0] = '\0';
    }
    return found;
}
