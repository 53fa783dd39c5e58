/* SPDX-License-Identifier: Apache-2.0 */
/* Writing results and kernels. history_job.c has the jobs, history_search.c the searches,
 * history_read.c the reads for answers. */
#include "coordinator/store/history.h"

#include "coordinator/store/history_curve.h"

#include <string.h>

static int64_t now_of(const struct wpk_store *store)
{
    return (int64_t)wpk_store_wall_ns(store);
}

/* ---- asks, trials, measurements */

/* The trial's id; a new one has no outcome yet. */
static uint64_t make_trial(struct wpk_store *store, uint64_t problem_id, const char *provider,
                           const char *candidate, const uint8_t hash[WPK_STORE_HASH_SIZE])
{
    int made = wpk_store_run(
        store,
        "INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome, log, detail,"
        " schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms, times_direct,"
        " constants_bytes, unseen, recipe, build_ns, verify_ns, recorded_at, epoch)"
        " VALUES (?, ?, ?, ?, '', '', '', '', '', 0, 0, 0, -1, 0, '', '', 0, 0, 0, ?)"
        " ON CONFLICT DO NOTHING",
        "itthi", (int64_t)problem_id, provider, candidate, hash, wpk_store_epoch(store));
    return made > 0 ? (uint64_t)wpk_store_inserted(store) : 0;
}

static void find_anchor(struct wpk_store *store, uint64_t search_id, char out[WPK_ID_MAX])
{
    out[0] = '\0';
    wpk_rows_take(
        wpk_store_query(store, "SELECT anchor FROM search WHERE id = ?", "i", (int64_t)search_id),
        "t", out, (size_t)WPK_ID_MAX);
}

bool wpk_history_put_ask(struct wpk_store *store, const struct wpk_history_ask *ask,
                         struct wpk_trial_summary *known)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    bool is_known = false;
    wpk_store_hash(ask->provider, ask->candidate, hash);
    uint64_t trial_id = make_trial(store, ask->problem_id, ask->provider, ask->candidate, hash);
    if (trial_id == 0) {
        struct wpk_trial_summary trial;
        char anchor[WPK_ID_MAX];
        find_anchor(store, ask->search_id, anchor);
        bool found = wpk_history_find_trial(store, ask->problem_id, ask->provider, ask->candidate,
                                            &trial, &trial_id);
        WPK_ASSERT(found); /* it is what was in the way */
        trial = wpk_history_trial(store, trial_id, anchor);
        is_known = wpk_history_settled(&trial, ask->candidate) &&
                   (trial.outcome != WPK_OUTCOME_OK || trial.anchor_ratio > 0) &&
                   (trial.artifact_sha256[0] == '\0' ||
                    wpk_history_has_artifact(store, trial.artifact_sha256));
        if (is_known) {
            wpk_history_use_artifact(store, trial.artifact_sha256);
        }
        *known = trial;
    }
    wpk_store_run(store,
                  "INSERT INTO ask (search_id, number, trial_id, source, ended, known, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?)",
                  "iiitiii", (int64_t)ask->search_id, (int64_t)ask->number, (int64_t)trial_id,
                  ask->source, (int64_t)is_known, (int64_t)is_known, wpk_store_epoch(store));
    if (is_known) {
        const struct wpk_curve_end end = {.search_id = ask->search_id,
                                          .ask = ask->number,
                                          .trial_id = trial_id,
                                          .outcome = known->outcome,
                                          .censored = known->censored,
                                          .median_ns = known->median_ns};
        wpk_history_count_end(store, &end);
    }
    return is_known;
}

/* Written for every result, so without printf. */
static void append_number(uint64_t number, struct wpk_buf *out)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    wpk_buf_append(out, digits + at, sizeof digits - at);
}

/* A struct as a JSON column; the batch fails without memory. */
static void encode(struct wpk_store *store, const struct wpk_field *table, const void *object,
                   struct wpk_buf *out)
{
    wpk_err err = wpk_fields_encode(table, object, out);
    if (err != WPK_OK) {
        wpk_store_fail(store, err, &(struct wpk_diag){.text = "a column was not encoded"});
    }
}

struct measurement {
    uint64_t trial_id;
    const char *kind;
    uint64_t search_id;
    struct wpk_history_worker worker;
    const struct wpk_timing *timing;
    uint64_t anchor_ns;
    double anchor_ratio;
    const char *anchor;                  /* NULL: none */
    const struct wpk_counters *counters; /* NULL: none */
};

static void put_measurement(struct wpk_store *store, const struct measurement *m)
{
    struct wpk_buf samples = {0};
    struct wpk_buf counters = {0};
    for (int i = 0; i < m->timing->sample_count; i++) {
        wpk_buf_append_byte(&samples, i > 0 ? ',' : '[');
        append_number(m->timing->sample_ns[i], &samples);
    }
    wpk_buf_append_text(&samples, m->timing->sample_count > 0 ? "]" : "[]");
    if (m->counters != NULL && m->counters->present) {
        encode(store, wpk_counters_fields, m->counters, &counters);
    }
    wpk_store_run(
        store,
        "INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance,"
        " median_ns, min_ns, mad_ns, repeat_count, censored, anchor_ns, anchor_ratio,"
        " anchor, samples_ns, counters, measured_at, epoch) VALUES (?1,"
        " (SELECT COALESCE(MAX(number) + 1, 0) FROM measurement WHERE trial_id = ?1),"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "itittiiiiiirtttii", (int64_t)m->trial_id, m->kind, (int64_t)m->search_id, m->worker.name,
        m->worker.instance, (int64_t)m->timing->median_ns, (int64_t)m->timing->min_ns,
        (int64_t)m->timing->mad_ns, (int64_t)m->timing->repeat_count, (int64_t)m->timing->censored,
        (int64_t)m->anchor_ns, m->anchor_ratio, m->anchor != NULL ? m->anchor : "",
        wpk_buf_text(&samples), wpk_buf_text(&counters), now_of(store), wpk_store_epoch(store));
    wpk_buf_fini(&samples);
    wpk_buf_fini(&counters);
}

static void set_trial(struct wpk_store *store, uint64_t id, const struct wpk_record *record)
{
    struct wpk_buf launch = {0};
    encode(store, wpk_launch_fields, &record->launch, &launch);
    wpk_store_run(store,
                  "UPDATE trial SET outcome = ?, log = ?, detail = ?, schedule_sha256 = ?,"
                  " artifact_sha256 = ?, error_max = ?, error_tolerance = ?, of_rms = ?,"
                  " times_direct = ?, constants_bytes = ?, launch = ?, unseen = ?, recipe = ?,"
                  " build_ns = ?, verify_ns = ?, recorded_at = ?, epoch = ? WHERE id = ?",
                  "tttttrrrritttiiiii", wpk_outcome_name(record->outcome), record->log,
                  WPK_OR_EMPTY(record->detail), record->schedule_sha256, record->artifact_sha256,
                  record->error_max, record->error_tolerance, record->of_rms, record->times_direct,
                  (int64_t)record->constants_bytes, wpk_buf_text(&launch),
                  WPK_OR_EMPTY(record->unseen), WPK_OR_EMPTY(record->recipe),
                  (int64_t)record->build_ns, (int64_t)record->verify_ns, now_of(store),
                  wpk_store_epoch(store), (int64_t)id);
    wpk_buf_fini(&launch);
}

/* True if the result says more than the stored trial. */
static bool supersedes(const struct wpk_record *record, const struct wpk_trial_summary *stored,
                       const char *candidate)
{
    struct wpk_trial_summary trial = {.outcome = record->outcome,
                                      .censored = record->timing.censored};
    memcpy(trial.artifact_sha256, record->artifact_sha256, sizeof trial.artifact_sha256);
    return !wpk_history_settled(stored, candidate) &&
           (wpk_history_settled(&trial, candidate) || stored->outcome == WPK_OUTCOME_ABANDONED);
}

/* The trial that the result is of; *fresh: it has none yet. 0 when there is no such ask. */
static uint64_t trial_of_ask(struct wpk_store *store, wpk_work_id work, bool *fresh)
{
    uint64_t id = 0;
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT t.id, t.outcome = '' FROM ask a JOIN trial t ON t.id = a.trial_id"
                        " WHERE a.search_id = ? AND a.number = ?",
                        "ii", (int64_t)work.search, (int64_t)work.index);
    wpk_rows_take(rows, "uf", &id, fresh);
    return id;
}

/* Of what is no ask: a vendor's, or the plain kernel. */
static uint64_t trial_of_provider(struct wpk_store *store, const struct wpk_history_result *result,
                                  const char *candidate, bool *fresh)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    struct wpk_trial_summary stored;
    uint64_t id = 0;
    wpk_store_hash(result->provider, candidate, hash);
    id = make_trial(store, result->problem_id, result->provider, candidate, hash);
    *fresh = id != 0;
    if (id == 0 && !wpk_history_find_trial(store, result->problem_id, result->provider, candidate,
                                           &stored, &id)) {
        return 0;
    }
    return id;
}

/* Another candidate may come to the code of one that was revoked. */
static void fail_if_revoked(struct wpk_store *store, uint64_t id,
                            const struct wpk_history_result *result,
                            const struct wpk_record *record)
{
    bool vendor = result->work.kind == WPK_WORK_VENDOR;
    if (record->outcome == WPK_OUTCOME_OK && (vendor || record->artifact_sha256[0] != '\0') &&
        wpk_history_is_revoked(store, result->problem_id, vendor ? result->provider : "",
                               vendor ? "" : record->artifact_sha256)) {
        wpk_store_run(store, "UPDATE trial SET outcome = ?, log = 'revoked before' WHERE id = ?",
                      "ti", wpk_outcome_name(WPK_OUTCOME_WRONG_RESULT), (int64_t)id);
    }
}

/* The first result ends the ask, whatever its trial has become meanwhile. */
static void end_ask(struct wpk_store *store, const struct wpk_history_result *result, uint64_t id)
{
    int ended = wpk_store_run(
        store, "UPDATE ask SET ended = 1 WHERE search_id = ? AND number = ? AND ended = 0", "ii",
        (int64_t)result->work.search, (int64_t)result->work.index);
    const struct wpk_curve_end end = {.search_id = result->work.search,
                                      .ask = result->work.index,
                                      .trial_id = id,
                                      .outcome = result->record->outcome,
                                      .censored = result->record->timing.censored,
                                      .median_ns = result->record->timing.median_ns};
    if (ended > 0) {
        wpk_history_count_end(store, &end);
    }
}

void wpk_history_put_trial(struct wpk_store *store, const struct wpk_history_result *result)
{
    const struct wpk_record *record = result->record;
    bool is_ask = result->work.kind == WPK_WORK_TRIAL;
    char candidate[WPK_PLAIN_CANDIDATE_SIZE] = "";
    if (result->work.kind == WPK_WORK_PLAIN) {
        wpk_plain_candidate_print(result->work.index, candidate);
    }
    bool taken = false;
    uint64_t id = is_ask ? trial_of_ask(store, result->work, &taken)
                         : trial_of_provider(store, result, candidate, &taken);
    bool timed = taken;
    if (!taken) {
        struct wpk_trial_summary stored = wpk_history_trial(store, id, result->anchor);
        taken = supersedes(record, &stored, is_ask ? "own" : candidate);
        /* Time also a trial that was timed only with the anchor of another search. */
        timed = taken || (record->outcome == WPK_OUTCOME_OK && record->anchor_ratio > 0 &&
                          stored.outcome == WPK_OUTCOME_OK && stored.anchor_ratio == 0);
    }
    if (taken) {
        set_trial(store, id, record);
        fail_if_revoked(store, id, result, record);
    }
    if (timed && result->worker.name != NULL && record->timing.sample_count > 0) {
        struct measurement m = {.trial_id = id,
                                .kind = wpk_work_kind_name(result->work.kind),
                                .search_id = result->work.search,
                                .worker = result->worker,
                                .timing = &record->timing,
                                .anchor_ns = record->anchor_ns,
                                .anchor_ratio = record->anchor_ratio,
                                .anchor = record->anchor_ratio > 0 ? result->anchor : NULL,
                                .counters = &record->counters};
        put_measurement(store, &m);
    }
    if (is_ask) {
        end_ask(store, result, id);
    }
}

/* The trial of a contender; 0 when there is none. */
static uint64_t trial_of(struct wpk_store *store, const struct wpk_history_contender *contender)
{
    struct wpk_trial_summary stored;
    uint64_t id = 0;
    bool found = wpk_history_find_trial(store, contender->problem_id, contender->provider,
                                        contender->candidate, &stored, &id);
    return found ? id : 0;
}

void wpk_history_put_times(struct wpk_store *store, const struct wpk_history_contender *contender,
                           const struct wpk_timing *timing)
{
    struct measurement m = {.trial_id = trial_of(store, contender),
                            .kind = wpk_work_kind_name(WPK_WORK_FINAL),
                            .search_id = contender->search_id,
                            .worker = contender->worker,
                            .timing = timing};
    if (m.trial_id != 0) {
        put_measurement(store, &m);
    }
}

void wpk_history_put_verified(struct wpk_store *store,
                              const struct wpk_history_contender *contender,
                              const struct wpk_record *record)
{
    struct measurement m = {.trial_id = trial_of(store, contender),
                            .kind = wpk_work_kind_name(WPK_WORK_VERIFY),
                            .search_id = contender->search_id,
                            .worker = contender->worker,
                            .timing = &record->timing,
                            .anchor_ns = record->anchor_ns,
                            .counters = &record->counters};
    if (m.trial_id == 0 || record->outcome == WPK_OUTCOME_ABANDONED) {
        return;
    }
    if (record->outcome == WPK_OUTCOME_OK) {
        put_measurement(store, &m);
        if (contender->outside) {
            /* The largest error over all sets of inputs counts; so does that of equal code. */
            wpk_store_run(
                store,
                "UPDATE trial SET times_direct = max(times_direct, ?) WHERE problem_id = ?"
                " AND outcome = 'ok' AND artifact_sha256 = ?",
                "rit", record->times_direct, (int64_t)contender->problem_id,
                contender->artifact_sha256);
        }
        return;
    }
    /* So have those that came to the same code. */
    wpk_store_run(store,
                  "UPDATE trial SET outcome = ?, log = ? WHERE problem_id = ? AND outcome = 'ok'"
                  " AND artifact_sha256 = ?",
                  "ttit", wpk_outcome_name(record->outcome), record->log,
                  (int64_t)contender->problem_id, contender->artifact_sha256);
}

/* ---- kernels and artifacts */

/* True if a new kernel is to be served: never if another is pinned; always if none is served. */
static bool may_serve(struct wpk_store *store, const struct wpk_search *search, bool wanted)
{
    double pinned = 0, served = 0;
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT TOTAL(pinned), TOTAL(served) FROM kernel"
                        " WHERE problem_id = ? AND accuracy = ?",
                        "it", (int64_t)search->problem_id, search->key.accuracy);
    bool serves = wpk_rows_take(rows, "rr", &pinned, &served);
    return serves ? pinned == 0 && (wanted || served == 0) : wanted;
}

static uint64_t insert_kernel(struct wpk_store *store, const struct wpk_effect *put, bool serve,
                              bool revoked, const char *document)
{
    const struct wpk_search *search = put->search;
    int64_t served_at = serve ? now_of(store) : 0;
    wpk_store_run(store,
                  "INSERT INTO kernel (problem_id, search_id, provider, artifact_sha256,"
                  " plain_sha256, accuracy, times_direct, median_ns, served, served_at, pinned,"
                  " revoked_at, revoked_reason, verified_by, document, manifest, signature,"
                  " created_at, epoch) VALUES (?1, ?, ?, ?, ?, ?, ?, ?, ?9, iif(?10 > 0, max(?10,"
                  " " WPK_HISTORY_SERVED_AFTER "), 0), 0, ?, ?, ?, ?, '', '', ?, ?)",
                  "iittttriiiitttii", (int64_t)search->problem_id, (int64_t)search->id,
                  put->served->provider, put->served->artifact_sha256,
                  put->plain != NULL ? put->plain->artifact_sha256 : "", search->key.accuracy,
                  put->served->trial.times_direct, (int64_t)put->served->timing.median_ns,
                  (int64_t)serve, served_at, revoked ? now_of(store) : 0,
                  revoked ? "revoked before" : "", put->served->verified_by, document,
                  now_of(store), wpk_store_epoch(store));
    return (uint64_t)wpk_store_inserted(store);
}

uint64_t wpk_history_put_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                const char *document)
{
    const struct wpk_search *search = put->search;
    bool revoked = wpk_history_is_revoked(store, search->problem_id, put->served->provider,
                                          put->served->artifact_sha256);
    bool serve = !revoked && may_serve(store, search, put->serve);
    if (serve) {
        wpk_store_run(store,
                      "UPDATE kernel SET served = 0 WHERE problem_id = ? AND accuracy = ?"
                      " AND served = 1",
                      "it", (int64_t)search->problem_id, search->key.accuracy);
    }
    if (put->plain != NULL) {
        wpk_history_name_plain(store, put);
    }
    uint64_t id = insert_kernel(store, put, serve, revoked, document);
    wpk_store_run(store, "UPDATE search SET kernel_id = ? WHERE id = ?", "Ii", (int64_t)id,
                  (int64_t)search->id);
    return id;
}

void wpk_history_name_plain(struct wpk_store *store, const struct wpk_effect *put)
{
    wpk_store_run(store, "UPDATE kernel SET plain_sha256 = ? WHERE problem_id = ?", "ti",
                  put->plain->artifact_sha256, (int64_t)put->search->problem_id);
}

uint64_t wpk_history_keep_kernel(struct wpk_store *store, const struct wpk_effect *put,
                                 const char *document)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT 1 FROM kernel WHERE problem_id = ? AND accuracy = ?"
                        " AND provider = ? AND artifact_sha256 = ? LIMIT 1",
                        "ittt", (int64_t)put->search->problem_id, put->search->key.accuracy,
                        put->served->provider, put->served->artifact_sha256);
    if (wpk_rows_take(rows, "") ||
        wpk_history_is_revoked(store, put->search->problem_id, put->served->provider,
                               put->served->artifact_sha256)) {
        return 0;
    }
    return insert_kernel(store, put, false, false, document);
}

/* ---- owners and workers */

void wpk_history_set_owner(struct wpk_store *store, const struct wpk_owner_event *owner)
{
    wpk_store_run(store,
                  "INSERT INTO owner (name, device_ns, share_ns, epoch) VALUES (?1, ?2, ?3, ?4)"
                  " ON CONFLICT (name) DO UPDATE SET device_ns = ?2, share_ns = ?3",
                  "tiii", owner->name, (int64_t)owner->device_ns, (int64_t)owner->virtual_ns,
                  wpk_store_epoch(store));
}

void wpk_history_set_admin_state(struct wpk_store *store, const char *name,
                                 enum wpk_admin_state state, const char *reason)
{
    if (state == WPK_ADMIN_STATE_NONE) {
        wpk_store_run(store, "DELETE FROM worker_order WHERE name = ?", "t", name);
        return;
    }
    wpk_store_run(store,
                  "INSERT INTO worker_order (name, state, reason, at, epoch)"
                  " VALUES (?1, ?2, ?3, ?4, ?5)"
                  " ON CONFLICT (name) DO UPDATE SET state = ?2, reason = ?3, at = ?4",
                  "tttii", name, wpk_admin_state_name(state), reason, now_of(store),
                  wpk_store_epoch(store));
}
