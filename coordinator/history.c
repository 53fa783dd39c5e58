/* SPDX-License-Identifier: Apache-2.0 */
/* The writing half of the history; history_read.c is the other. */
#include "coordinator/history.h"

#include "coordinator/submission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICY_TEXT_MAX 128

/* How a problem's times are taken, as part of its key. The race ratio is not: it decides what is
 * measured to the end, not what a measurement means. */
static void policy_text(const struct wpk_policy *policy, char out[POLICY_TEXT_MAX])
{
    snprintf(out, POLICY_TEXT_MAX, "threads=%d;cold=%d;time_ns=%llu;samples=%d", policy->threads,
             policy->cold_cache, (unsigned long long)policy->time_ns_min, policy->sample_count);
}

static int64_t now_of(const struct wpk_store *store)
{
    return (int64_t)wpk_store_wall_ns(store);
}

/* ---- jobs */

uint64_t wpk_history_job_number_next(struct wpk_store *store)
{
    uint64_t next = 1;
    struct wpk_rows *rows = wpk_store_query(store, "SELECT COALESCE(MAX(number), 0) FROM job", "");
    if (wpk_rows_next(rows)) {
        next = (uint64_t)wpk_rows_int(rows, 0) + 1;
    }
    wpk_rows_close(rows);
    return next;
}

void wpk_history_put_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *source)
{
    int64_t number = (int64_t)job->number;
    wpk_store_run(store,
                  "INSERT INTO job (number, id, name, owner, priority, source, state, reason,"
                  " document, created_at, started_at, finished_at, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, '', '', ?, 0, 0, ?)",
                  "itttittii", number, job->id, job->name, job->owner, (int64_t)job->priority,
                  source, wpk_job_state_name(job->state), (int64_t)job->created_wall_ns,
                  wpk_store_epoch(store));
    for (uint32_t i = 0; i < job->op_count; i++) {
        wpk_store_run(store,
                      "INSERT INTO job_op (job_number, position, search_id, kernel_id, phase,"
                      " reason, from_history, epoch) VALUES (?, ?, NULL, NULL, ?, '', 0, ?)",
                      "iiti", number, (int64_t)i, wpk_phase_name(job->ops[i].phase),
                      wpk_store_epoch(store));
    }
}

void wpk_history_set_job(struct wpk_store *store, const struct wpk_job_entry *job,
                         const char *document)
{
    wpk_store_run(store,
                  "UPDATE job SET state = ?, reason = ?, document = ?, started_at = ?,"
                  " finished_at = ? WHERE number = ?",
                  "tttiii", wpk_job_state_name(job->state), job->reason, document,
                  (int64_t)job->started_wall_ns, (int64_t)job->finished_wall_ns,
                  (int64_t)job->number);
}

void wpk_history_set_op(struct wpk_store *store, const struct wpk_job_entry *job, uint32_t index)
{
    const struct wpk_job_op_state *op = &job->ops[index];
    wpk_store_run(store,
                  "UPDATE job_op SET search_id = ?, kernel_id = ?, phase = ?, reason = ?,"
                  " from_history = ? WHERE job_number = ? AND position = ?",
                  "IIttiii", (int64_t)(op->search != NULL ? op->search->id : 0),
                  (int64_t)op->kernel_id, wpk_phase_name(op->phase), op->reason,
                  (int64_t)op->from_history, (int64_t)job->number, (int64_t)index);
}

void wpk_history_fail_ops(struct wpk_store *store, const struct wpk_job_entry *job)
{
    wpk_store_run(store,
                  "UPDATE job_op SET phase = 'failed', reason = ? WHERE job_number = ?"
                  " AND phase NOT IN ('done', 'failed', 'cancelled')",
                  "ti", job->reason, (int64_t)job->number);
}

/* ---- searches */

static uint64_t find_problem(struct wpk_store *store, const struct wpk_search_key *key,
                             const char *policy)
{
    uint64_t id = 0;
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id FROM problem WHERE fingerprint = ? AND layouts = ? AND device_class = ?"
        " AND environment = ? AND policy = ?",
        "ttttt", key->fingerprint, key->layouts, key->device_class, key->environment, policy);
    if (wpk_rows_next(rows)) {
        id = (uint64_t)wpk_rows_int(rows, 0);
    }
    wpk_rows_close(rows);
    return id;
}

static uint64_t make_problem(struct wpk_store *store, const struct wpk_search *search,
                             const char *policy)
{
    const struct wpk_search_key *key = &search->key;
    char extents[WPK_EXTENTS_SIZE];
    wpk_submission_extents(search->op, extents);
    wpk_store_run(store,
                  "INSERT INTO problem (fingerprint, layouts, device_class, environment, policy,"
                  " family, extents, op, flops, created_at, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "ttttttttrii", key->fingerprint, key->layouts, key->device_class,
                  key->environment, policy, search->family, extents, search->op, search->flops,
                  now_of(store), wpk_store_epoch(store));
    return (uint64_t)wpk_store_inserted(store);
}

static bool find_search(struct wpk_store *store, const struct wpk_search_key *key, const char *seed,
                        struct wpk_opened *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT s.id, s.elapsed_ns, s.ended_asks, s.exhausted, s.kernel_id,"
        " CASE json_valid(k.document) WHEN 1 THEN json_extract(k.document, '$.own.artifact') END"
        " FROM search s LEFT JOIN kernel k ON k.id = s.kernel_id WHERE s.problem_id = ?"
        " AND s.strategy = ? AND s.parameters = ? AND s.seed = ? AND s.providers = ?"
        " AND s.space_version = ?",
        "ittttt", (int64_t)out->problem_id, key->strategy, key->parameters, seed, key->providers,
        key->space_version);
    bool found = wpk_rows_next(rows);
    if (found) {
        out->search_id = (uint64_t)wpk_rows_int(rows, 0);
        out->elapsed_ns = (uint64_t)wpk_rows_int(rows, 1);
        out->ended_asks = (uint32_t)wpk_rows_int(rows, 2);
        out->exhausted = wpk_rows_int(rows, 3) != 0;
        out->kernel_id = (uint64_t)wpk_rows_int(rows, 4);
        snprintf(out->own_artifact, sizeof out->own_artifact, "%s", wpk_rows_text(rows, 5));
    }
    wpk_rows_close(rows);
    return found;
}

static void make_search(struct wpk_store *store, const struct wpk_search_key *key, const char *seed,
                        struct wpk_opened *out)
{
    wpk_store_run(store,
                  "INSERT INTO search (problem_id, strategy, parameters, seed, providers,"
                  " space_version, elapsed_ns, ended_asks, exhausted, kernel_id, snapshot,"
                  " snapshot_version, snapshot_told, ok_count, failed_count, known_count, best,"
                  " created_at, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, NULL, '', '', 0, 0, 0, 0, '', ?, ?)",
                  "itttttii", (int64_t)out->problem_id, key->strategy, key->parameters, seed,
                  key->providers, key->space_version, now_of(store), wpk_store_epoch(store));
    out->search_id = (uint64_t)wpk_store_inserted(store);
}

static void find_served(struct wpk_store *store, struct wpk_opened *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id, provider, artifact_sha256 FROM kernel WHERE problem_id = ? AND served = 1", "i",
        (int64_t)out->problem_id);
    if (wpk_rows_next(rows)) {
        out->served_kernel_id = (uint64_t)wpk_rows_int(rows, 0);
        snprintf(out->served_provider, sizeof out->served_provider, "%s", wpk_rows_text(rows, 1));
        snprintf(out->served_artifact, sizeof out->served_artifact, "%s", wpk_rows_text(rows, 2));
    }
    wpk_rows_close(rows);
}

/* The vendors of a search are the providers after the first. */
static void open_vendors(struct wpk_store *store, const struct wpk_search_key *key,
                         struct wpk_opened *out)
{
    const char *at = strchr(key->providers, ';');
    while (at != NULL && out->vendor_count < WPK_PROVIDERS_MAX) {
        size_t size = strcspn(at + 1, ";");
        struct wpk_piece *vendor = &out->vendors[out->vendor_count++];
        vendor->text = strndup(at + 1, size);
        WPK_ASSERT(vendor->text != NULL);
        if (wpk_history_known_trial(store, out->problem_id, vendor->text, "", &vendor->trial,
                                    NULL)) {
            vendor->standing = WPK_STANDING_ENDED;
            vendor->known = true;
        }
        at = at[1 + size] == ';' ? at + 1 + size : NULL;
    }
}

void wpk_history_open_search(struct wpk_store *store, const struct wpk_search *search,
                             struct wpk_opened *out)
{
    char policy[POLICY_TEXT_MAX];
    char seed[24];
    memset(out, 0, sizeof *out);
    policy_text(&search->policy, policy);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)search->key.seed);
    out->problem_id = find_problem(store, &search->key, policy);
    if (out->problem_id == 0) {
        out->problem_id = make_problem(store, search, policy);
    }
    if (find_search(store, &search->key, seed, out)) {
        wpk_history_asks(store, out->search_id, &out->window, &out->ask_count);
    } else {
        make_search(store, &search->key, seed, out);
    }
    find_served(store, out);
    open_vendors(store, &search->key, out);
}

void wpk_history_set_search(struct wpk_store *store, const struct wpk_search *search,
                            uint64_t elapsed_ns)
{
    wpk_store_run(store,
                  "UPDATE search SET elapsed_ns = ?, ended_asks = ?, exhausted = ? WHERE id = ?",
                  "iiii", (int64_t)elapsed_ns, (int64_t)search->ended_asks,
                  (int64_t)search->exhausted, (int64_t)search->id);
}

/* ---- asks, trials, measurements */

/* The trial's id; a new one has no outcome yet. */
static uint64_t make_trial(struct wpk_store *store, uint64_t problem_id, const char *provider,
                           const char *candidate, const uint8_t hash[WPK_STORE_HASH_SIZE])
{
    int made = wpk_store_run(
        store,
        "INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome, log, detail,"
        " schedule_sha256, artifact_sha256, error_max, error_tolerance, build_ns, verify_ns,"
        " recorded_at, epoch) VALUES (?, ?, ?, ?, '', '', '', '', '', 0, 0, 0, 0, 0, ?)"
        " ON CONFLICT DO NOTHING",
        "itthi", (int64_t)problem_id, provider, candidate, hash, wpk_store_epoch(store));
    return made > 0 ? (uint64_t)wpk_store_inserted(store) : 0;
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
        is_known = wpk_history_find_trial(store, ask->problem_id, ask->provider, ask->candidate,
                                          &trial, &trial_id) &&
                   wpk_history_settled(&trial, ask->candidate);
        *known = trial;
    }
    wpk_store_run(store,
                  "INSERT INTO ask (search_id, number, trial_id, ended, known, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?)",
                  "iiiiii", (int64_t)ask->search_id, (int64_t)ask->number, (int64_t)trial_id,
                  (int64_t)is_known, (int64_t)is_known, wpk_store_epoch(store));
    return is_known;
}

static void append_samples(const struct wpk_timing *timing, struct wpk_buf *out)
{
    wpk_buf_append_byte(out, '[');
    for (int i = 0; i < timing->sample_count; i++) {
        wpk_buf_printf(out, "%s%llu", i > 0 ? "," : "", (unsigned long long)timing->sample_ns[i]);
    }
    wpk_buf_append_byte(out, ']');
}

static void append_counters(const struct wpk_counters *counters, struct wpk_buf *out)
{
    if (counters != NULL && counters->present) {
        wpk_buf_printf(out,
                       "{\"cycles\":%.17g,\"instructions\":%.17g,\"l1d_misses\":%.17g,"
                       "\"llc_misses\":%.17g}",
                       counters->cycles, counters->instructions, counters->l1d_misses,
                       counters->llc_misses);
    }
}

struct measurement {
    uint64_t trial_id;
    const char *kind;
    uint64_t search_id;
    struct wpk_history_worker worker;
    const struct wpk_timing *timing;
    uint64_t reference_ns;
    const struct wpk_counters *counters; /* NULL: none */
};

static void put_measurement(struct wpk_store *store, const struct measurement *m)
{
    struct wpk_buf samples = {0};
    struct wpk_buf counters = {0};
    append_samples(m->timing, &samples);
    append_counters(m->counters, &counters);
    wpk_store_run(store,
                  "INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance,"
                  " median_ns, min_ns, mad_ns, repeat_count, censored, reference_ns, samples_ns,"
                  " counters, measured_at, epoch) VALUES (?1, (SELECT COALESCE(MAX(number) + 1, 0)"
                  " FROM measurement WHERE trial_id = ?1), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                  " ?)",
                  "itittiiiiiittii", (int64_t)m->trial_id, m->kind, (int64_t)m->search_id,
                  m->worker.name, m->worker.instance, (int64_t)m->timing->median_ns,
                  (int64_t)m->timing->min_ns, (int64_t)m->timing->mad_ns,
                  (int64_t)m->timing->repeat_count, (int64_t)m->timing->censored,
                  (int64_t)m->reference_ns, wpk_buf_text(&samples), wpk_buf_text(&counters),
                  now_of(store), wpk_store_epoch(store));
    wpk_buf_fini(&samples);
    wpk_buf_fini(&counters);
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static void set_trial(struct wpk_store *store, uint64_t id, const struct wpk_record *record)
{
    wpk_store_run(store,
                  "UPDATE trial SET outcome = ?, log = ?, detail = ?, schedule_sha256 = ?,"
                  " artifact_sha256 = ?, error_max = ?, error_tolerance = ?, build_ns = ?,"
                  " verify_ns = ?, recorded_at = ?, epoch = ? WHERE id = ?",
                  "tttttrriiiii", wpk_outcome_name(record->outcome), record->log,
                  or_empty(record->detail), record->schedule_sha256, record->artifact_sha256,
                  record->error_max, record->error_tolerance, (int64_t)record->build_ns,
                  (int64_t)record->verify_ns, now_of(store), wpk_store_epoch(store), (int64_t)id);
}

/* Does the result say more than what is stored? */
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
                        "SELECT t.id, t.outcome FROM ask a JOIN trial t ON t.id = a.trial_id"
                        " WHERE a.search_id = ? AND a.number = ?",
                        "ii", (int64_t)work.search, (int64_t)work.index);
    if (wpk_rows_next(rows)) {
        id = (uint64_t)wpk_rows_int(rows, 0);
        *fresh = wpk_rows_text(rows, 1)[0] == '\0';
    }
    wpk_rows_close(rows);
    return id;
}

static uint64_t trial_of_vendor(struct wpk_store *store, const struct wpk_history_result *result,
                                bool *fresh)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    struct wpk_trial_summary stored;
    uint64_t id = 0;
    wpk_store_hash(result->provider, "", hash);
    id = make_trial(store, result->problem_id, result->provider, "", hash);
    *fresh = id != 0;
    if (id == 0 &&
        !wpk_history_find_trial(store, result->problem_id, result->provider, "", &stored, &id)) {
        return 0;
    }
    return id;
}

void wpk_history_put_trial(struct wpk_store *store, const struct wpk_history_result *result)
{
    const struct wpk_record *record = result->record;
    bool vendor = result->work.kind == WPK_WORK_VENDOR;
    bool taken = false;
    uint64_t id =
        vendor ? trial_of_vendor(store, result, &taken) : trial_of_ask(store, result->work, &taken);
    if (!taken) {
        struct wpk_trial_summary stored = wpk_history_trial(store, id);
        taken = supersedes(record, &stored, vendor ? "" : "own");
    }
    if (taken) {
        set_trial(store, id, record);
    }
    if (taken && result->worker.name != NULL && record->timing.sample_count > 0) {
        struct measurement m = {.trial_id = id,
                                .kind = wpk_work_kind_name(result->work.kind),
                                .search_id = result->work.search,
                                .worker = result->worker,
                                .timing = &record->timing,
                                .reference_ns = record->reference_ns,
                                .counters = &record->counters};
        put_measurement(store, &m);
    }
    if (!vendor) {
        wpk_store_run(store, "UPDATE ask SET ended = 1 WHERE search_id = ? AND number = ?", "ii",
                      (int64_t)result->work.search, (int64_t)result->work.index);
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
                            .reference_ns = record->reference_ns,
                            .counters = &record->counters};
    if (m.trial_id == 0 || record->outcome == WPK_OUTCOME_ABANDONED) {
        return;
    }
    if (record->outcome == WPK_OUTCOME_OK) {
        put_measurement(store, &m);
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

uint64_t wpk_history_put_kernel(struct wpk_store *store, const struct wpk_search *search,
                                const struct wpk_final_entry *served, const char *document,
                                bool serve)
{
    if (serve) {
        wpk_store_run(store, "UPDATE kernel SET served = 0 WHERE problem_id = ? AND served = 1",
                      "i", (int64_t)search->problem_id);
    }
    wpk_store_run(
        store,
        "INSERT INTO kernel (problem_id, search_id, provider, artifact_sha256, median_ns,"
        " served, pinned, revoked_at, revoked_reason, verified_by, document, manifest, signature,"
        " created_at, epoch) VALUES (?, ?, ?, ?, ?, ?, 0, 0, '', '', ?, '', '', ?, ?)",
        "iittiitii", (int64_t)search->problem_id, (int64_t)search->id, served->provider,
        served->artifact_sha256, (int64_t)served->timing.median_ns, (int64_t)serve, document,
        now_of(store), wpk_store_epoch(store));
    uint64_t id = (uint64_t)wpk_store_inserted(store);
    wpk_store_run(store, "UPDATE search SET kernel_id = ? WHERE id = ?", "Ii", (int64_t)id,
                  (int64_t)search->id);
    return id;
}

void wpk_history_put_artifact(struct wpk_store *store, const char *sha256, size_t size)
{
    wpk_store_run(store,
                  "INSERT INTO artifact (sha256, size, used_at, created_at, epoch)"
                  " VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT DO NOTHING",
                  "tiii", sha256, (int64_t)size, now_of(store), wpk_store_epoch(store));
}
