/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/index.h"
#include "coordinator/state/model.h"
#include "coordinator/store/store.h"
#include "search/strategy/strategy.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t wpk_sim_count(struct wpk_sim *sim, const char *sql)
{
    int64_t value = -1;
    struct wpk_rows *rows = wpk_store_query(sim->store, sql, "");
    if (wpk_rows_next(rows)) {
        value = wpk_rows_int(rows, 0);
    }
    wpk_rows_close(rows);
    return value;
}

static void check_none(struct wpk_sim *sim, const char *what, const char *sql)
{
    int64_t count = wpk_sim_count(sim, sql);
    WPK_SIM_CHECK(sim, count == 0, "%lld %s", (long long)count, what);
}

/* ---- asks and trials */

void wpk_sim_check_recorded(struct wpk_sim *sim, wpk_work_id id)
{
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT t.outcome <> 'ok' OR EXISTS (SELECT 1 FROM measurement m WHERE m.trial_id = t.id)"
        " FROM ask a JOIN trial t ON t.id = a.trial_id WHERE a.search_id = ? AND a.number = ?"
        " AND a.ended = 1",
        "ii", (int64_t)id.search, (int64_t)id.index);
    bool there = wpk_rows_next(rows) && wpk_rows_int(rows, 0) != 0;
    wpk_rows_close(rows);
    WPK_SIM_CHECK(sim, there, "%llu/%u is acknowledged and not recorded",
                  (unsigned long long)id.search, id.index);
}

void wpk_sim_check_asked(struct wpk_sim *sim, const struct wpk_work *work)
{
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT t.candidate = ? FROM ask a JOIN trial t ON t.id = a.trial_id WHERE"
                        " a.search_id = ? AND a.number = ?",
                        "tii", work->candidate, (int64_t)work->id.search, (int64_t)work->id.index);
    bool there = wpk_rows_next(rows) && wpk_rows_int(rows, 0) != 0;
    wpk_rows_close(rows);
    WPK_SIM_CHECK(sim, there, "%llu/%u is given out before it is recorded",
                  (unsigned long long)work->id.search, work->id.index);
}

void wpk_sim_check_acknowledged(struct wpk_sim *sim)
{
    uint32_t number = 0;
    uint64_t search = 0;
    struct wpk_rows *rows =
        wpk_store_query(sim->store, "SELECT search_id, number, ended FROM ask ORDER BY 1, 2", "");
    while (wpk_rows_next(rows)) {
        uint64_t id = (uint64_t)wpk_rows_int(rows, 0);
        number = id == search ? number + 1 : 0;
        search = id;
        WPK_SIM_CHECK(sim, wpk_rows_int(rows, 1) == number, "ask %llu/%u is missing",
                      (unsigned long long)id, number);
        struct wpk_sim_work_item *item = wpk_sim_find_work_item(sim, id, number);
        WPK_SIM_CHECK(sim, !item->acknowledged || wpk_rows_int(rows, 2) != 0,
                      "%llu/%u was acknowledged and is lost", (unsigned long long)id, number);
    }
    wpk_rows_close(rows);
}

/* ---- asks against the strategy */

/* One search's strategy, asked and told once more. */
struct oracle {
    const struct wpk_strategy_class *kind;
    struct wpk_strategy *strategy;
    struct wpk_space space;
    char **texts; /* owned; [count]: the recorded asks */
    bool *failed; /* owned; [count]: known from history as rejected, or abandoned */
    uint32_t count;
    uint32_t told;
};

static void tell_next(struct oracle *oracle)
{
    const char *text = oracle->texts[oracle->told];
    uint64_t ns = oracle->failed[oracle->told] ? 0 : wpk_sim_trial_ns(text);
    struct wpk_tell tell = {.ok = ns > 0, .relative = (double)ns / 1e6};
    wpk_strategy_tell(oracle->strategy, &tell);
    oracle->told++;
}

/* The text that the strategy asks for, telling it as much as it wants to know first. */
static void ask_next(const struct wpk_sim *sim, struct oracle *oracle, uint32_t number, char *out,
                     size_t size)
{
    struct wpk_candidate candidate;
    int filled = 0;
    while (true) {
        wpk_err err = wpk_strategy_ask(oracle->strategy, 1, &candidate, &filled);
        WPK_SIM_CHECK(sim, err == WPK_OK, "a strategy cannot ask: %s", wpk_err_text(err));
        if (filled == 1) {
            break;
        }
        WPK_SIM_CHECK(sim, oracle->told < number, "a strategy refuses to ask");
        tell_next(oracle);
    }
    wpk_err err = wpk_candidate_encode(&oracle->space, &candidate, out, size);
    WPK_ASSERT(err == WPK_OK);
}

static void check_search(struct wpk_sim *sim, int64_t search, const char *strategy, uint64_t seed)
{
    struct oracle oracle = {.kind = wpk_strategy_find(strategy)};
    wpk_err err = wpk_space_derive(NULL, NULL, &oracle.space, NULL);
    WPK_ASSERT(err == WPK_OK && oracle.kind != NULL);
    err = wpk_strategy_make(oracle.kind, &oracle.space, &(struct wpk_strategy_setup){.seed = seed},
                            &oracle.strategy);
    WPK_ASSERT(err == WPK_OK);
    uint32_t capacity = (uint32_t)wpk_sim_count(sim, "SELECT COUNT(*) FROM ask");
    oracle.texts = calloc(capacity + 1, sizeof *oracle.texts);
    oracle.failed = calloc(capacity + 1, sizeof *oracle.failed);
    WPK_ASSERT(oracle.texts != NULL && oracle.failed != NULL);
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT t.candidate, a.known AND t.outcome = 'wrong_result' FROM ask a"
                        " JOIN trial t ON t.id = a.trial_id WHERE a.search_id = ?"
                        " ORDER BY a.number",
                        "i", search);
    while (wpk_rows_next(rows)) {
        char text[WPK_CANDIDATE_TEXT_MAX];
        oracle.texts[oracle.count] = strdup(wpk_rows_text(rows, 0));
        oracle.failed[oracle.count] = wpk_rows_int(rows, 1) != 0;
        ask_next(sim, &oracle, oracle.count, text, sizeof text);
        WPK_SIM_CHECK(sim, strcmp(text, oracle.texts[oracle.count]) == 0,
                      "ask %lld/%u is %s; undisturbed it would be %s", (long long)search,
                      oracle.count, oracle.texts[oracle.count], text);
        oracle.count++;
    }
    wpk_rows_close(rows);
    wpk_strategy_free(oracle.strategy);
    wpk_space_fini(&oracle.space);
    for (uint32_t i = 0; i < oracle.count; i++) {
        free(oracle.texts[i]);
    }
    free(oracle.texts);
    free(oracle.failed);
}

void wpk_sim_check_asks(struct wpk_sim *sim)
{
    int64_t ids[512];
    char strategies[512][32];
    uint64_t seeds[512];
    int count = 0;
    /* A winner that was rejected, or a work item that was abandoned, changes what is told after a
     * restart: such a search goes on well, but not the same. Of a candidate that two searches had
     * measured at once the first result is recorded, and each was told its own: a strategy that
     * learns a model sees the rounded nanoseconds between them. A stand-in that was timed alone,
     * because nothing else was left, has a ratio that another worker's speed is in. */
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT id, strategy, seed FROM search s WHERE NOT EXISTS (SELECT 1 FROM"
        " trial t WHERE t.problem_id = s.problem_id AND t.outcome IN"
        " ('wrong_result', 'abandoned')) AND (strategy NOT IN ('auto', 'bayes',"
        " 'rl') OR NOT EXISTS (SELECT 1 FROM ask a JOIN ask b ON b.trial_id ="
        " a.trial_id AND b.search_id <> a.search_id WHERE a.search_id = s.id AND"
        " a.known = 0 AND b.known = 0)) AND NOT EXISTS (SELECT 1 FROM ask a JOIN trial t"
        " ON t.id = a.trial_id JOIN measurement m ON m.trial_id = t.id WHERE"
        " a.search_id = s.id AND m.anchor_ns = m.median_ns AND m.anchor <> '' AND"
        " m.anchor <> t.artifact_sha256)",
        "");
    while (wpk_rows_next(rows) && count < 512) {
        ids[count] = wpk_rows_int(rows, 0);
        snprintf(strategies[count], sizeof strategies[count], "%s", wpk_rows_text(rows, 1));
        seeds[count++] = strtoull(wpk_rows_text(rows, 2), NULL, 10);
    }
    wpk_rows_close(rows);
    for (int i = 0; i < count && !sim->blamed && !sim->options.skewed; i++) {
        check_search(sim, ids[i], strategies[i], seeds[i]);
    }
}

/* ---- kernels */

/* Of each kernel that was in a final, in the same life of wpkd: after a restart there is another
 * final, which may be given up. Others were alone: nothing is known beside them. */
static void check_times(struct wpk_sim *sim)
{
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT k.id, k.provider, k.artifact_sha256, k.median_ns, t.candidate, EXISTS (SELECT 1"
        " FROM measurement m WHERE m.trial_id = t.id AND m.kind = 'verify') FROM kernel k JOIN"
        " trial t ON t.problem_id = k.problem_id AND t.provider = k.provider AND t.artifact_sha256 "
        "="
        " k.artifact_sha256 WHERE k.revoked_at = 0",
        "");
    for (int i = 0; i < sim->kernel_count; i++) {
        sim->kernels[i].ns = 0;
    }
    while (wpk_rows_next(rows)) {
        struct wpk_sim_kernel *kernel = wpk_sim_find_kernel(sim, wpk_rows_int(rows, 0));
        const char *artifact = wpk_rows_text(rows, 2);
        bool ours = artifact[0] != '\0';
        if (kernel->timed) {
            kernel->ns = (uint64_t)wpk_rows_int(rows, 3);
            uint64_t ns = wpk_sim_final_ns(wpk_rows_text(rows, 1), artifact);
            bool skewed =
                sim->options.skewed && kernel->ns == (uint64_t)((double)ns * sim->options.skew);
            WPK_SIM_CHECK(sim, kernel->ns == ns || skewed, "a kernel has another's time");
            WPK_SIM_CHECK(sim, !ours || wpk_sim_verifies(wpk_rows_text(rows, 4)),
                          "a kernel does not verify");
            WPK_SIM_CHECK(sim, !ours || wpk_rows_int(rows, 5) != 0, "a kernel was not verified");
        }
    }
    wpk_rows_close(rows);
}

/* Check that the served kernel is the fastest, unless a user rolled back. */
static void check_fastest(struct wpk_sim *sim)
{
    for (int s = 0; s < sim->kernel_count; s++) {
        const struct wpk_sim_kernel *served = &sim->kernels[s];
        bool compares = served->served && served->ns != 0;
        for (int i = 0; compares && i < sim->kernel_count; i++) {
            const struct wpk_sim_kernel *other = &sim->kernels[i];
            bool faster = other->ns != 0 && other->ns < served->ns;
            WPK_SIM_CHECK(sim, other->problem != served->problem || other->rolled_back || !faster,
                          "kernel %lld is served, and %lld is faster", (long long)served->id,
                          (long long)other->id);
        }
    }
}

void wpk_sim_check_kernels(struct wpk_sim *sim)
{
    check_times(sim);
    if (!sim->options.skewed) {
        check_fastest(sim);
    }
    check_none(sim, "kernels are served and revoked",
               "SELECT COUNT(*) FROM kernel WHERE served = 1 AND revoked_at <> 0");
    check_none(sim, "problems with a kernel serve none",
               "SELECT COUNT(*) FROM (SELECT 1 FROM kernel WHERE revoked_at = 0 GROUP BY problem_id"
               " HAVING TOTAL(served) = 0)");
    check_none(sim, "problems serve two kernels",
               "SELECT COUNT(*) FROM (SELECT 1 FROM kernel WHERE served = 1 GROUP BY problem_id"
               " HAVING COUNT(*) > 1)");
    check_none(sim, "artifacts of kernels are missing",
               "SELECT COUNT(*) FROM kernel WHERE artifact_sha256 <> '' AND artifact_sha256 NOT IN"
               " (SELECT sha256 FROM artifact)");
}

void wpk_sim_check_index(struct wpk_sim *sim)
{
    const struct wpk_index_version *version = wpk_index_acquire(sim->index);
    int64_t served = wpk_sim_count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1");
    WPK_SIM_CHECK(sim, version->count == served, "%u kernels are found, %lld are served",
                  version->count, (long long)served);
    struct wpk_rows *rows =
        wpk_store_query(sim->store, "SELECT id FROM kernel WHERE served = 1", "");
    while (wpk_rows_next(rows)) {
        struct wpk_index_cursor cursor;
        uint64_t id = (uint64_t)wpk_rows_int(rows, 0);
        wpk_index_seek(&cursor, version, WPK_INDEX_BY_KERNEL, 0, id);
        const struct wpk_served *found = wpk_index_next(&cursor);
        WPK_SIM_CHECK(sim, found != NULL && found->kernel_id == id,
                      "kernel %llu is served and not found", (unsigned long long)id);
    }
    wpk_rows_close(rows);
    wpk_index_release(sim->index, version);
}

/* ---- jobs */

static void check_trials(struct wpk_sim *sim)
{
    check_none(sim, "trials are counted twice",
               "SELECT COUNT(*) FROM (SELECT trial_id FROM measurement WHERE kind = 'trial'"
               " GROUP BY trial_id, anchor HAVING COUNT(*) > 1)");
    check_none(sim, "trials are measured by another device",
               "SELECT COUNT(*) FROM measurement m JOIN trial t ON t.id = m.trial_id JOIN problem p"
               " ON p.id = t.problem_id WHERE instr(p.device_class, substr(m.instance, 1,"
               " instr(m.instance, '/') - 1)) = 0");
    check_none(sim, "plain kernels have no trial that is right",
               "SELECT COUNT(*) FROM kernel k WHERE k.provider = 'plain' AND k.revoked_at = 0 AND"
               " NOT EXISTS (SELECT 1 FROM trial t WHERE t.problem_id = k.problem_id AND t.provider"
               " = 'plain' AND t.outcome = 'ok' AND t.artifact_sha256 = k.artifact_sha256)");
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT candidate, outcome FROM trial WHERE candidate <> '' AND outcome <> ''"
        " AND log NOT LIKE 'revoked%' AND provider <> 'plain'",
        "");
    while (wpk_rows_next(rows)) {
        const char *text = wpk_rows_text(rows, 0);
        const char *outcome = wpk_rows_text(rows, 1);
        bool works = wpk_sim_trial_ns(text) > 0;
        bool right = strcmp(outcome, "abandoned") == 0
                         ? sim->blamed
                         : strcmp(outcome, !works                   ? "build_error"
                                           : wpk_sim_verifies(text) ? "ok"
                                                                    : outcome) == 0;
        WPK_SIM_CHECK(sim, right, "%s is recorded as %s", text, outcome);
    }
    wpk_rows_close(rows);
}

/* The operators of one job that ended well, against its budget. */
static void check_budget(struct wpk_sim *sim, const struct wpk_sim_job *job, const char *name)
{
    struct wpk_rows *rows = wpk_store_query(
        sim->store,
        "SELECT s.id, s.elapsed_ns, s.exhausted, (SELECT COUNT(*) FROM ask a WHERE a.search_id ="
        " s.id AND a.ended = 1), o.phase FROM job_op o JOIN job j ON j.number ="
        " o.job_number JOIN search s ON s.id = o.search_id WHERE j.name = ? AND o.phase IN"
        " ('done', 'failed')",
        "t", name);
    while (wpk_rows_next(rows)) {
        bool in_time = (uint64_t)wpk_rows_int(rows, 1) < job->seconds * WPK_NS_PER_S;
        uint64_t ended = (uint64_t)wpk_rows_int(rows, 3);
        WPK_SIM_CHECK(sim, ended >= job->candidates || !in_time || wpk_rows_int(rows, 2) != 0,
                      "%s: search %lld is %s with %llu of %u candidates, after %.1f of %u s", name,
                      (long long)wpk_rows_int(rows, 0), wpk_rows_text(rows, 4),
                      (unsigned long long)ended, job->candidates,
                      (double)wpk_rows_int(rows, 1) / 1e9, job->seconds);
    }
    wpk_rows_close(rows);
}

/* No search asked for more than the largest budget of its jobs; unless one was cancelled, or its
 * device did not come back in time after a restart: then it is not counted here any more. */
static void check_asked_too_much(struct wpk_sim *sim)
{
    bool lonely = sim->options.class_count > 1 ||
                  wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'cancelled'") > 0;
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT a.search_id, COUNT(*), COALESCE((SELECT MAX(j.candidates)"
                        " FROM job_op o JOIN job j ON j.number = o.job_number"
                        " WHERE o.search_id = a.search_id), 0) FROM ask a GROUP BY a.search_id",
                        "");
    while (wpk_rows_next(rows)) {
        bool fits = wpk_rows_int(rows, 1) <= wpk_rows_int(rows, 2);
        WPK_SIM_CHECK(sim, fits || lonely, "search %lld asked %lld of %lld",
                      (long long)wpk_rows_int(rows, 0), (long long)wpk_rows_int(rows, 1),
                      (long long)wpk_rows_int(rows, 2));
    }
    wpk_rows_close(rows);
}

static void check_jobs(struct wpk_sim *sim)
{
    check_none(sim, "jobs have not ended",
               "SELECT COUNT(*) FROM job WHERE state NOT IN ('done', 'failed', 'cancelled')");
    check_none(sim, "jobs have no document", "SELECT COUNT(*) FROM job WHERE document = ''");
    for (int i = 0; i < sim->job_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        bool there = false;
        struct wpk_rows *rows =
            wpk_store_query(sim->store, "SELECT id FROM job WHERE name = ?", "t", name);
        while (wpk_rows_next(rows)) {
            there = there || strcmp(wpk_rows_text(rows, 0), sim->jobs[i].id) == 0;
        }
        wpk_rows_close(rows);
        WPK_SIM_CHECK(sim, there || !sim->jobs[i].accepted, "%s was accepted and is lost", name);
        check_budget(sim, &sim->jobs[i], name);
    }
    check_asked_too_much(sim);
}

void wpk_sim_check_end(struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    for (uint32_t i = 0; i < c->worker_count; i++) {
        WPK_SIM_CHECK(sim, c->workers[i]->lease_count == 0, "%s has %u leases at the end",
                      c->workers[i]->hello.name, c->workers[i]->lease_count);
    }
    WPK_SIM_CHECK(sim, c->search_count == 0, "%u searches are left", c->search_count);
    check_trials(sim);
    check_jobs(sim);
    wpk_sim_check_kernels(sim);
    wpk_sim_check_acknowledged(sim);
    wpk_sim_check_asks(sim);
}
