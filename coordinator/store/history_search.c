/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading problems and searches. */
#include "coordinator/store/history.h"

#include "coordinator/state/asks.h"
#include "coordinator/state/event.h"
#include "coordinator/state/model.h"
#include "coordinator/state/submission.h"
#include "coordinator/store/history_admin.h"
#include "search/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEST_TEXT_MAX (WPK_BEST_MAX * 11 + 2) /* as many numbers, with commas and a semicolon */
#define POLICY_TEXT_MAX 128
#define SEED_TEXT_MAX 24

/* How a problem's times are taken, as part of its key. The race ratio is not: it decides what is
 * measured to the end, not what a measurement means. */
static void policy_text(const struct wpk_policy *policy, char out[POLICY_TEXT_MAX])
{
    snprintf(out, POLICY_TEXT_MAX, "threads=%d;conditions=%s;time_ns=%llu;samples=%d",
             policy->threads, wpk_conditions_name(policy->conditions),
             (unsigned long long)policy->time_ns_min, policy->sample_count);
}

static void seed_text(const struct wpk_search_key *key, char out[SEED_TEXT_MAX])
{
    snprintf(out, SEED_TEXT_MAX, "%llu", (unsigned long long)key->seed);
}

static uint64_t find_problem(struct wpk_store *store, const struct wpk_search_key *key,
                             const char *policy)
{
    return wpk_rows_take_id(wpk_store_query(
        store,
        "SELECT id FROM problem WHERE fingerprint = ? AND layouts = ? AND device_class = ?"
        " AND environment = ? AND policy = ?",
        "ttttt", key->fingerprint, key->layouts, key->device_class, key->environment, policy));
}

static uint64_t make_problem(struct wpk_store *store, const struct wpk_search *search,
                             const char *policy)
{
    const struct wpk_search_key *key = &search->key;
    struct wpk_fingerprint own;
    wpk_submission_fingerprint(search->op, &own);
    wpk_store_run(store,
                  "INSERT INTO problem (fingerprint, layouts, device_class, environment, policy,"
                  " family, extents, constants, op, flops, bytes, created_at, epoch)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "tttttttttrrii", key->fingerprint, key->layouts, key->device_class,
                  key->environment, policy, search->family, own.extents, own.constants, search->op,
                  search->flops, search->bytes, (int64_t)wpk_store_wall_ns(store),
                  wpk_store_epoch(store));
    return (uint64_t)wpk_store_inserted(store);
}

/* Find the search of a key. The columns of its snapshot are all that is known of its first asks. */
static bool find_search(struct wpk_store *store, const struct wpk_search_key *key, const char *seed,
                        struct wpk_opened *out, char best[BEST_TEXT_MAX])
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT s.id, s.elapsed_ns, s.ended_asks, s.exhausted,"
        " CASE k.revoked_at WHEN 0 THEN k.id END,"
        " CASE json_valid(k.document) WHEN 1 THEN json_extract(k.document, '$.own.artifact') END,"
        " s.snapshot_told, s.ok_count, s.failed_count, s.known_count, s.best, s.anchor, s.stand_in,"
        " s.stand_in_ratio FROM search s LEFT JOIN kernel k ON k.id = s.kernel_id WHERE "
        "s.problem_id = ?"
        " AND s.strategy = ? AND s.options = ? AND s.prior = ? AND s.pins = ? AND"
        " s.seed = ? AND s.providers = ? AND s.space_version = ? AND s.accuracy = ?",
        "itttttttt", (int64_t)out->problem_id, key->strategy, key->options, key->prior, key->pins,
        seed, key->providers, key->space_version, key->accuracy);
    return wpk_rows_take(rows, "uuwfutwwwwtttr", &out->search_id, &out->elapsed_ns,
                         &out->ended_asks, &out->exhausted, &out->kernel_id, out->own_artifact,
                         sizeof out->own_artifact, &out->told_count, &out->ok_count,
                         &out->failed_count, &out->known_count, best, (size_t)BEST_TEXT_MAX,
                         out->anchor.sha256, sizeof out->anchor.sha256, out->anchor.now,
                         sizeof out->anchor.now, &out->anchor.ratio);
}

/* Adopt the anchor of other searches of the problem: the results of candidates that they have timed
 * are valid only for a search with the same anchor. */
static void adopt_anchor(struct wpk_store *store, struct wpk_opened *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT m.anchor FROM trial t JOIN measurement m ON m.trial_id = t.id JOIN artifact a ON"
        " a.sha256 = m.anchor WHERE t.problem_id = ? LIMIT 1",
        "i", (int64_t)out->problem_id);
    if (wpk_rows_take(rows, "t", out->anchor.sha256, sizeof out->anchor.sha256)) {
        memcpy(out->anchor.now, out->anchor.sha256, WPK_ID_MAX);
        out->anchor.ratio = 1;
    }
    if (wpk_history_is_revoked(store, out->problem_id, "", out->anchor.sha256)) {
        out->anchor = (struct wpk_anchor){0};
    }
    wpk_history_keep_artifact(store, out->anchor.now, 1);
}

static void make_search(struct wpk_store *store, const struct wpk_search_key *key, const char *seed,
                        struct wpk_opened *out)
{
    bool shares = strstr(key->pins, WPK_PACKING_GENE "=") != NULL;
    char *packing = shares ? wpk_history_packing(store, out->problem_id) : NULL;
    wpk_store_run(
        store,
        "INSERT INTO search (problem_id, strategy, options, prior, pins, packing, seed, providers,"
        " space_version, elapsed_ns, ended_asks, exhausted, kernel_id, snapshot,"
        " snapshot_version, snapshot_told, ok_count, failed_count, known_count, best,"
        " accuracy, anchor, stand_in, stand_in_ratio, created_at, epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, NULL, '', '', 0, 0, 0, 0, '', ?, ?11, ?11,"
        " ?, ?, ?)",
        "ittttttttttrii", (int64_t)out->problem_id, key->strategy, key->options, key->prior,
        key->pins, packing != NULL ? packing : "", seed, key->providers, key->space_version,
        key->accuracy, out->anchor.sha256, out->anchor.ratio, (int64_t)wpk_store_wall_ns(store),
        wpk_store_epoch(store));
    out->search_id = (uint64_t)wpk_store_inserted(store);
    free(packing);
}

static void find_served(struct wpk_store *store, const char *accuracy, struct wpk_opened *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT id, provider, artifact_sha256 FROM kernel WHERE problem_id = ? AND accuracy = ?"
        " AND served = 1",
        "it", (int64_t)out->problem_id, accuracy);
    wpk_rows_take(rows, "utt", &out->served.kernel_id, out->served.provider,
                  sizeof out->served.provider, out->served.artifact_sha256,
                  sizeof out->served.artifact_sha256);
}

static void find_revoked(struct wpk_store *store, struct wpk_opened *out)
{
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT provider, artifact_sha256 FROM kernel WHERE problem_id = ?"
                        " AND revoked_at <> 0 ORDER BY revoked_at DESC LIMIT ?",
                        "ii", (int64_t)out->problem_id, (int64_t)WPK_REVOKED_MAX);
    while (wpk_rows_next(rows)) {
        wpk_revoked_put(&out->revoked, wpk_rows_text(rows, 0), wpk_rows_text(rows, 1));
    }
}

/* The vendors of a search are the providers after the first. */
static void open_vendors(struct wpk_store *store, const struct wpk_search_key *key,
                         struct wpk_opened *out)
{
    const char *at = strchr(key->providers, ';');
    while (at != NULL && out->vendor_count < WPK_PROVIDERS_MAX) {
        size_t size = strcspn(at + 1, ";");
        struct wpk_work_item *vendor = &out->vendors[out->vendor_count++];
        vendor->text = WPK_DEMAND(strndup(at + 1, size));
        if (wpk_history_known_trial(store, out->problem_id, vendor->text, "", &vendor->trial,
                                    NULL)) {
            vendor->standing = WPK_STANDING_ENDED;
            vendor->known = true;
        }
        at = at[1 + size] == ';' ? at + 1 + size : NULL;
    }
}

/* Look for a candidate of the plain kernel in all problems of the operator: what was built for one
 * of them serves this one. False when one of them had it revoked: it is wrong everywhere. */
static bool find_built(struct wpk_store *store, uint64_t problem_id, const char *candidate,
                       struct wpk_built **out)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    bool revoked = false;
    wpk_store_hash(WPK_PLAIN_PROVIDER, candidate, hash);
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT t.artifact_sha256, t.schedule_sha256, t.build_ns, t.times_direct, t.outcome = 'ok'"
        " AND EXISTS (SELECT 1 FROM artifact a WHERE a.sha256 = t.artifact_sha256), EXISTS (SELECT"
        " 1 FROM kernel k WHERE k.artifact_sha256 = t.artifact_sha256 AND k.artifact_sha256 <> ''"
        " AND k.revoked_at <> 0) FROM problem p JOIN problem q ON q.fingerprint = p.fingerprint"
        " AND q.layouts = p.layouts AND q.environment = p.environment JOIN trial t"
        " ON t.problem_id = q.id AND t.candidate_hash = ? WHERE p.id = ? ORDER BY t.id",
        "hi", hash, (int64_t)problem_id);
    while (wpk_rows_next(rows)) {
        revoked = revoked || wpk_rows_int(rows, 5) != 0;
        bool works = wpk_rows_int(rows, 4) != 0 &&
                     wpk_accuracy_admits(WPK_ACCURACY_STRICT, wpk_rows_real(rows, 3));
        if (*out == NULL && works && !revoked) {
            struct wpk_built *built = WPK_DEMAND(calloc(1, sizeof *built));
            snprintf(built->artifact_sha256, WPK_ID_MAX, "%s", wpk_rows_text(rows, 0));
            snprintf(built->schedule_sha256, WPK_ID_MAX, "%s", wpk_rows_text(rows, 1));
            built->build_ns = (uint64_t)wpk_rows_int(rows, 2);
            *out = built;
        }
    }
    if (revoked) {
        wpk_built_free(*out);
        *out = NULL;
    }
    return !revoked;
}

/* The first candidate that was not rejected: ended where this problem has its result, with what was
 * built where another one has it. With all rejected, the last one. */
static void open_plain(struct wpk_store *store, struct wpk_opened *out)
{
    char candidate[WPK_PLAIN_CANDIDATE_SIZE];
    for (uint32_t number = 1; number <= WPK_PLAIN_MAX; number++) {
        struct wpk_trial_summary trial = {.outcome = WPK_OUTCOME_WRONG_RESULT};
        struct wpk_history_origin origin;
        wpk_plain_candidate_print(number, candidate);
        bool known = wpk_history_known_trial(store, out->problem_id, WPK_PLAIN_PROVIDER, candidate,
                                             &trial, NULL);
        bool works = known && trial.outcome == WPK_OUTCOME_OK &&
                     wpk_accuracy_admits(WPK_ACCURACY_STRICT, trial.times_direct);
        out->plain = (struct wpk_work_item){.standing = WPK_STANDING_ENDED, .trial = trial};
        out->plain_number = number;
        if (works && wpk_history_has_artifact(store, trial.artifact_sha256)) {
            wpk_history_origin(store, out->problem_id, WPK_PLAIN_PROVIDER, candidate, &origin);
            snprintf(out->plain_verified_by, sizeof out->plain_verified_by, "%s", origin.worker);
            return;
        }
        if ((works || !known) && find_built(store, out->problem_id, candidate, &out->plain.built)) {
            out->plain.standing = WPK_STANDING_OPEN;
            out->plain.trial = (struct wpk_trial_summary){.outcome = WPK_OUTCOME_OK};
            return;
        }
    }
}

/* Numbers of asks, as the search's row has them: "17,4;33". Those before the semicolon are kept:
 * *kept is how many, or as it was where nothing says so. Returns how many there are. */
static uint32_t parse_best(const char *text, uint32_t numbers[WPK_BEST_MAX], uint32_t *kept)
{
    uint32_t count = 0;
    while (*text != '\0' && count < WPK_BEST_MAX) {
        char *end = NULL;
        numbers[count] = (uint32_t)strtoul(text, &end, 10);
        if (end == text) {
            break;
        }
        count++;
        *kept = *end == ';' ? count : *kept;
        text = end + strspn(end, ",;");
    }
    return count;
}

/* Those of the row's `text` that are there. Returns how many. */
static uint32_t read_best(struct wpk_store *store, uint64_t search_id, const char *text,
                          struct wpk_best best[WPK_BEST_MAX])
{
    uint32_t numbers[WPK_BEST_MAX];
    uint32_t kept = 0;
    uint32_t best_count = 0;
    uint32_t number_count = parse_best(text, numbers, &kept);
    for (uint32_t i = 0; i < number_count; i++) {
        struct wpk_work_item *ask = NULL;
        uint32_t count = 0;
        wpk_history_asks_between(store, search_id, numbers[i], numbers[i] + 1, &ask, &count);
        if (count == 1) {
            best[best_count++] = (struct wpk_best){
                .number = numbers[i], .candidate = ask->text, .trial = ask->trial};
            ask->text = NULL;
        }
        wpk_work_items_free(ask, count);
    }
    return best_count;
}

/* The best of the first asks, as they are now: one that was rejected since has failed. */
static void open_best(struct wpk_store *store, const char *numbers, struct wpk_opened *out)
{
    struct wpk_best best[WPK_BEST_MAX];
    uint32_t count = read_best(store, out->search_id, numbers, best);
    for (uint32_t i = 0; i < count; i++) {
        bool ok = best[i].trial.outcome == WPK_OUTCOME_OK;
        if (ok && wpk_history_has_artifact(store, best[i].trial.artifact_sha256)) {
            wpk_history_use_artifact(store, best[i].trial.artifact_sha256);
            out->best[out->best_count++] = best[i];
            continue;
        }
        free(best[i].candidate);
        if (!ok && out->ok_count > 0) {
            out->ok_count--;
            out->failed_count++;
        }
    }
}

/* Why all of the first asks failed, if they did: a job that fails says the commonest reason. */
static void count_outcomes(struct wpk_store *store, struct wpk_opened *out)
{
    if (out->ok_count > 0 || out->told_count == 0) {
        return;
    }
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT t.outcome, COUNT(*) FROM ask a JOIN trial t ON t.id = a.trial_id"
                        " WHERE a.search_id = ? AND a.number < ? GROUP BY t.outcome",
                        "ii", (int64_t)out->search_id, (int64_t)out->told_count);
    while (wpk_rows_next(rows)) {
        enum wpk_outcome outcome;
        if (wpk_outcome_parse(wpk_rows_text(rows, 0), &outcome) == WPK_OK) {
            out->outcomes[outcome] = (uint32_t)wpk_rows_int(rows, 1);
        }
    }
}

void wpk_history_name_artifacts(struct wpk_store *store, const struct wpk_search *search,
                                char out[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX])
{
    struct wpk_opened found = {0};
    char policy[POLICY_TEXT_MAX];
    char seed[SEED_TEXT_MAX];
    char best[BEST_TEXT_MAX];
    policy_text(&search->policy, policy);
    seed_text(&search->key, seed);
    found.problem_id = find_problem(store, &search->key, policy);
    if (found.problem_id != 0) {
        find_search(store, &search->key, seed, &found, best);
        find_served(store, search->key.accuracy, &found);
    }
    bool same = strcmp(found.own_artifact, found.served.artifact_sha256) == 0;
    memcpy(out[0], found.own_artifact, WPK_ID_MAX);
    memcpy(out[1], same ? "" : found.served.artifact_sha256, same ? 1 : WPK_ID_MAX);
}

void wpk_history_open_search(struct wpk_store *store, const struct wpk_search *search,
                             struct wpk_opened *out)
{
    char policy[POLICY_TEXT_MAX];
    char seed[SEED_TEXT_MAX];
    char best[BEST_TEXT_MAX] = "";
    memset(out, 0, sizeof *out);
    policy_text(&search->policy, policy);
    seed_text(&search->key, seed);
    out->problem_id = find_problem(store, &search->key, policy);
    if (out->problem_id == 0) {
        out->problem_id = make_problem(store, search, policy);
    }
    if (find_search(store, &search->key, seed, out, best)) {
        uint32_t count = 0;
        wpk_history_asks(store, out->search_id, out->told_count, &out->window, &count);
        out->ask_count = out->told_count + count;
        open_best(store, best, out);
        count_outcomes(store, out);
        char *anchor = out->anchor.now;
        if (anchor[0] != '\0' && (!wpk_history_has_artifact(store, anchor) ||
                                  wpk_history_is_revoked(store, out->problem_id, "", anchor))) {
            anchor[0] = '\0'; /* its artifact is gone or was revoked */
        }
        if (out->ask_count == 0 && out->anchor.sha256[0] == '\0') { /* an import made its row */
            adopt_anchor(store, out);
            wpk_store_run(store,
                          "UPDATE search SET anchor = ?1, stand_in = ?1, stand_in_ratio = ?2"
                          " WHERE id = ?3",
                          "tri", out->anchor.sha256, out->anchor.ratio, (int64_t)out->search_id);
        }
    } else {
        adopt_anchor(store, out);
        make_search(store, &search->key, seed, out);
    }
    find_served(store, search->key.accuracy, out);
    find_revoked(store, out);
    open_vendors(store, &search->key, out);
    open_plain(store, out);
}

/* Keep the artifact of the current anchor, and release that of the one before. */
static void keep_anchor(struct wpk_store *store, const struct wpk_history_progress *progress)
{
    char before[WPK_ID_MAX] = "";
    struct wpk_rows *rows = wpk_store_query(store, "SELECT stand_in FROM search WHERE id = ?", "i",
                                            (int64_t)progress->search_id);
    wpk_rows_take(rows, "t", before, sizeof before);
    if (strcmp(before, progress->anchor.now) != 0) {
        wpk_history_keep_artifact(store, before, -1);
        wpk_history_keep_artifact(store, progress->anchor.now, 1);
    }
}

void wpk_history_set_search(struct wpk_store *store, const struct wpk_history_progress *progress)
{
    keep_anchor(store, progress);
    wpk_store_run(store,
                  "UPDATE search SET elapsed_ns = ?, ended_asks = ?, exhausted = ?, anchor = ?,"
                  " stand_in = ?, stand_in_ratio = ? WHERE id = ?",
                  "iiittri", (int64_t)progress->elapsed_ns, (int64_t)progress->ended_asks,
                  (int64_t)progress->exhausted, progress->anchor.sha256, progress->anchor.now,
                  progress->anchor.ratio, (int64_t)progress->search_id);
}

/* ---- the log of a search, and where its strategy goes on in it */

/* Add `more` to the keep counts of the asks in `numbers`; asks in both lists do not change. */
static void keep_those(struct wpk_store *store, uint64_t search_id, const uint32_t *numbers,
                       uint32_t count, const uint32_t *others, uint32_t other_count, int more)
{
    for (uint32_t i = 0; i < count; i++) {
        bool in_both = false;
        for (uint32_t j = 0; j < other_count; j++) {
            in_both = in_both || others[j] == numbers[i];
        }
        if (!in_both) {
            struct wpk_work_item *ask = NULL;
            uint32_t found = 0;
            wpk_history_asks_between(store, search_id, numbers[i], numbers[i] + 1, &ask, &found);
            wpk_history_keep_artifact(store, found > 0 ? ask->trial.artifact_sha256 : "", more);
            wpk_work_items_free(ask, found);
        }
    }
}

/* Of the best `kept_count` now, and no more of those that were before: their number may have been
 * another one then. */
static void keep_best(struct wpk_store *store, const struct wpk_history_snapshot *snapshot,
                      uint32_t kept_count)
{
    char text[BEST_TEXT_MAX] = "";
    uint32_t before[WPK_BEST_MAX];
    uint32_t before_kept = kept_count;
    struct wpk_rows *rows = wpk_store_query(store, "SELECT best FROM search WHERE id = ?", "i",
                                            (int64_t)snapshot->search_id);
    wpk_rows_take(rows, "t", text, sizeof text);
    uint32_t before_count = parse_best(text, before, &before_kept);
    before_count = before_count < before_kept ? before_count : before_kept;
    keep_those(store, snapshot->search_id, snapshot->best, kept_count, before, before_count, 1);
    keep_those(store, snapshot->search_id, before, before_count, snapshot->best, kept_count, -1);
}

void wpk_history_put_snapshot(struct wpk_store *store, const struct wpk_history_snapshot *snapshot,
                              uint32_t kept_max)
{
    char best[BEST_TEXT_MAX] = "";
    size_t at = 0;
    uint32_t kept = snapshot->best_count < kept_max ? snapshot->best_count : kept_max;
    keep_best(store, snapshot, kept);
    for (uint32_t i = 0; i < snapshot->best_count && at < sizeof best; i++) {
        const char *behind = i + 1 == kept ? ";" : i + 1 < snapshot->best_count ? "," : "";
        at += (size_t)snprintf(best + at, sizeof best - at, "%u%s", snapshot->best[i], behind);
    }
    wpk_store_run(store,
                  "UPDATE search SET snapshot = ?, snapshot_version = ?, snapshot_told = ?,"
                  " ok_count = ?, failed_count = ?, known_count = ?, best = ? WHERE id = ?",
                  "ttiiiiti", snapshot->text, snapshot->version, (int64_t)snapshot->told_count,
                  (int64_t)snapshot->ok_count, (int64_t)snapshot->failed_count,
                  (int64_t)snapshot->known_count, best, (int64_t)snapshot->search_id);
}

/* Those that came later are of no search that had begun: its asks are the same after a restart. */
static void read_hints(struct wpk_store *store, uint64_t search_id, struct wpk_history_log *out)
{
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT h.candidate, h.time_ns FROM search s JOIN problem p ON p.id = s.problem_id"
        " JOIN hint h ON h.fingerprint = p.fingerprint AND h.layouts = p.layouts"
        " WHERE s.id = ? AND h.created_at < s.created_at ORDER BY h.time_ns, h.candidate LIMIT ?",
        "ii", (int64_t)search_id, (int64_t)WPK_HISTORY_HINTS_MAX);
    while (wpk_rows_next(rows)) {
        if (out->hints == NULL) {
            out->hints = WPK_DEMAND(calloc(WPK_HISTORY_HINTS_MAX, sizeof(*out->hints)));
        }
        struct wpk_history_hint *hint = &out->hints[out->hint_count++];
        hint->candidate = WPK_DEMAND(strdup(wpk_rows_text(rows, 0)));
        hint->time_ns = wpk_rows_real(rows, 1);
    }
}

void wpk_history_read_log(struct wpk_store *store, uint64_t search_id, bool whole,
                          struct wpk_history_log *out)
{
    char best[BEST_TEXT_MAX] = "";
    memset(out, 0, sizeof *out);
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT snapshot, snapshot_version, snapshot_told, ok_count, failed_count, known_count,"
        " best FROM search WHERE id = ?",
        "i", (int64_t)search_id);
    if (!whole && wpk_rows_next(rows) && wpk_rows_text(rows, 0)[0] != '\0') {
        wpk_buf_append_text(&out->snapshot, wpk_rows_text(rows, 0));
        snprintf(out->version, sizeof out->version, "%s", wpk_rows_text(rows, 1));
        out->first = (uint32_t)wpk_rows_int(rows, 2);
        out->ok_count = (uint32_t)wpk_rows_int(rows, 3);
        out->failed_count = (uint32_t)wpk_rows_int(rows, 4);
        out->known_count = (uint32_t)wpk_rows_int(rows, 5);
        snprintf(best, sizeof best, "%s", wpk_rows_text(rows, 6));
    }
    wpk_rows_close(rows);
    rows = wpk_store_query(store,
                           "SELECT p.text FROM search s JOIN prior p ON p.sha256 = s.prior"
                           " WHERE s.id = ?",
                           "i", (int64_t)search_id);
    wpk_rows_take(rows, "b", &out->prior);
    rows =
        wpk_store_query(store, "SELECT packing FROM search WHERE id = ?", "i", (int64_t)search_id);
    wpk_rows_take(rows, "b", &out->packing);
    read_hints(store, search_id, out);
    out->best_count = read_best(store, search_id, best, out->best);
    wpk_history_asks(store, search_id, out->first, &out->asks, &out->count);
}

void wpk_history_log_fini(struct wpk_history_log *log)
{
    wpk_buf_fini(&log->snapshot);
    wpk_buf_fini(&log->prior);
    wpk_buf_fini(&log->packing);
    for (uint32_t i = 0; i < log->hint_count; i++) {
        free(log->hints[i].candidate);
    }
    free(log->hints);
    for (uint32_t i = 0; i < log->relative_count; i++) {
        free(log->relatives[i]);
    }
    for (uint32_t i = 0; i < log->best_count; i++) {
        free(log->best[i].candidate);
    }
    wpk_work_items_free(log->asks, log->count);
    memset(log, 0, sizeof *log);
}
