/* SPDX-License-Identifier: Apache-2.0 */
/* Named scenarios; sim_main.c draws others from seeds. */
#include "common/log.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/state/event.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/worker.h"
#include "coordinator/store/document.h"
#include "coordinator/store/store.h"
#include "tests/sim/sim.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORKERS 3
#define SEEDS 6
#define TROUBLE 0.5
#define HOURS_MAX 4
#define STEPS_MAX 40000
#define KNOWN_AFTER 40 /* leases, of three workers that take six at a time */

#define OP(name, factor)                                                                           \
    "{\"name\":\"" name "\",\"op\":\"Y[i] = X[i] * " factor                                        \
    "\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}"
/* Up to its last brace: more may follow. */
#define JOB_OF(strategy, ops, search, candidates, seconds)                                         \
    "{\"name\":\"sim\",\"ops\":[" ops "],\"search\":{\"strategy\":\"" strategy "\"," search        \
    "},\"budget\":{\"candidates\":" candidates ",\"seconds\":" seconds "}"
#define JOB(ops, search, candidates, seconds) JOB_OF("ga", ops, search, candidates, seconds)
/* A job whose strategy always has something to ask. */
#define LONG_JOB(ops) JOB_OF("random", ops, "\"seed\":5", "600", "3600") "}"

static const char job_text[] = JOB(OP("a", "2") "," OP("b", "3"), "\"seed\":5", "60", "3600") "}";

/* Everything that was recorded of asks, as one text. */
static void recorded(struct wpk_sim *sim, struct wpk_buf *out)
{
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT p.fingerprint, a.number, t.candidate, t.outcome FROM ask a"
                        " JOIN search s ON s.id = a.search_id JOIN problem p ON p.id = s.problem_id"
                        " JOIN trial t ON t.id = a.trial_id ORDER BY p.fingerprint, a.number",
                        "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(out, "%.8s %d %s %s\n", wpk_rows_text(rows, 0), (int)wpk_rows_int(rows, 1),
                       wpk_rows_text(rows, 2), wpk_rows_text(rows, 3));
    }
    wpk_rows_close(rows);
    rows = wpk_store_query(sim->store,
                           "SELECT p.fingerprint, k.provider, k.artifact_sha256 FROM kernel k"
                           " JOIN problem p ON p.id = k.problem_id WHERE k.served = 1"
                           " ORDER BY p.fingerprint",
                           "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(out, "%.8s %s %s\n", wpk_rows_text(rows, 0), wpk_rows_text(rows, 1),
                       wpk_rows_text(rows, 2));
    }
    wpk_rows_close(rows);
}

static void check_invariants(struct wpk_sim *sim)
{
    wpk_sim_check_kernels(sim);
    /* Two searches of 60, everything recorded, nothing twice. */
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM ask"), 120);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM ask WHERE ended = 0"), 0);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM trial WHERE candidate <> ''"
                                        " AND provider <> 'plain'"),
                     120);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM trial WHERE candidate = ''"), 2);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM trial WHERE provider = 'plain'"
                                        " AND outcome = 'ok'"),
                     2);
    assert_int_equal(
        wpk_sim_count(sim, "SELECT COUNT(*) FROM (SELECT trial_id FROM measurement WHERE kind"
                           " = 'trial' GROUP BY trial_id HAVING COUNT(*) > 1)"),
        0);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 2);
    /* A kernel's artifact is there. */
    assert_int_equal(wpk_sim_count(sim,
                                   "SELECT COUNT(*) FROM kernel WHERE artifact_sha256 <> '' AND"
                                   " artifact_sha256 NOT IN (SELECT sha256 FROM artifact)"),
                     0);
}

static struct wpk_sim *new_sim(uint64_t seed, const char *job)
{
    struct wpk_sim_options options = {.seed = seed, .worker_count = WORKERS, .class_count = 1};
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    wpk_sim_init(sim, &options);
    if (job != NULL) {
        wpk_sim_submit(sim, job);
    }
    return sim;
}

static void free_sim(struct wpk_sim *sim)
{
    wpk_sim_fini(sim);
    free(sim);
}

static void step(struct wpk_sim *sim)
{
    wpk_sim_run(sim, 50);
}

static void finish(struct wpk_sim *sim)
{
    assert_true(wpk_sim_finish(sim, HOURS_MAX));
}

/* False: some work lost all its attempts, for which its candidate may have been blamed. */
static bool run(uint64_t seed, double trouble, struct wpk_buf *out)
{
    struct wpk_sim *sim = new_sim(seed, job_text);
    sim->trouble = trouble;
    wpk_sim_run(sim, 10000);
    wpk_sim_calm(sim);
    finish(sim);
    check_invariants(sim);
    recorded(sim, out);
    bool blamed = sim->blamed;
    free_sim(sim);
    return !blamed;
}

/* Hours in which nothing ran: no lease is taken back, no budget is used up. */
static void a_suspended_machine(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, job_text);
    for (int i = 0; i < 20; i++) {
        step(sim);
    }
    const struct wpk_coordinator *coordinator = wpk_sim_coordinator(sim);
    assert_int_equal(coordinator->worker_count, WORKERS);
    uint64_t sessions[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        sessions[i] = coordinator->workers[i]->session;
    }
    wpk_clock_fake_advance(&sim->clock, 2 * 3600 * WPK_NS_PER_S);
    finish(sim);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(coordinator->workers[i]->session == sessions[i]);
    }
    check_invariants(sim);
    free_sim(sim);
}

static void trouble_changes_nothing(void **state)
{
    (void)state;
    struct wpk_buf undisturbed = {0};
    int compared = 0;
    assert_true(run(1, 0, &undisturbed));
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct wpk_buf disturbed = {0};
        if (run(seed, TROUBLE, &disturbed)) {
            assert_string_equal(wpk_buf_text(&disturbed), wpk_buf_text(&undisturbed));
            compared++;
        }
        wpk_buf_fini(&disturbed);
    }
    assert_true(2 * compared > SEEDS);
    wpk_buf_fini(&undisturbed);
}

/* The same job again: nothing is measured. */
static void history_answers(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, job_text);
    finish(sim);
    int executions = sim->executions;
    wpk_sim_submit(sim, job_text);
    for (int steps = 0; wpk_sim_is_live(sim) && steps < 10; steps++) {
        step(sim);
    }
    assert_false(wpk_sim_is_live(sim));
    assert_int_equal(sim->executions, executions);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job_op WHERE from_history = 1"), 2);
    free_sim(sim);
}

/* Step until a search is in that phase, and its work for it is out. */
static struct wpk_search *reach(struct wpk_sim *sim, enum wpk_search_phase phase)
{
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
        for (uint32_t i = 0; i < c->search_count; i++) {
            struct wpk_search *search = c->searches[i];
            const struct wpk_work_item *item =
                phase == WPK_SEARCH_PHASE_FINALS ? &search->final : &search->verify;
            if (search->phase == phase && item->standing == WPK_STANDING_LEASED) {
                return search;
            }
        }
        step(sim);
    }
    fail_msg("no search comes to be %s", wpk_phase_name(wpk_search_phase_shown(phase)));
    return NULL;
}

/* All are lost, and followed by others; whatever they held was counted. */
static void replace_workers(struct wpk_sim *sim)
{
    for (int i = 0; i < WORKERS; i++) {
        wpk_sim_worker_die(sim, i, 10);
    }
    for (int steps = 0; steps < 200; steps++) {
        step(sim);
    }
    assert_int_equal(wpk_sim_coordinator(sim)->worker_count, WORKERS);
}

/* The search is kept until its worker is heard or lost, and then it is gone. */
static void cancelled_at_its_end(void **state)
{
    const enum wpk_search_phase *phase = *state;
    for (int lost = 0; lost < 2; lost++) {
        struct wpk_sim *sim = new_sim(3, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
        reach(sim, *phase);
        wpk_sim_cancel(sim, wpk_sim_coordinator(sim)->jobs[0]->id);
        assert_false(wpk_sim_is_live(sim));
        if (lost) {
            replace_workers(sim);
        }
        for (int steps = 0; steps < 200; steps++) {
            step(sim);
        }
        assert_int_equal(wpk_sim_coordinator(sim)->search_count, 0);
        wpk_sim_submit(sim, job_text);
        finish(sim);
        assert_false(wpk_sim_is_live(sim));
        wpk_sim_check_kernels(sim);
        free_sim(sim);
    }
}

/* No variant has the pinned gene: the job fails while its vendors are being tried. */
static void a_space_that_cannot_be(void **state)
{
    (void)state;
    struct wpk_sim *sim =
        new_sim(1, JOB(OP("a", "2"), "\"pin\":{\"no\":\"gene\"}", "20", "3600") "}");
    finish(sim);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'failed'"), 1);
    replace_workers(sim);
    assert_int_equal(wpk_sim_coordinator(sim)->search_count, 0);
    free_sim(sim);
}

/* The run of one worker does not end, and the worker names it for ever: the others end the job
 * without it. */
static void a_worker_that_is_stuck(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(4, job_text);
    struct wpk_sim_worker *stuck = &sim->workers[0];
    while (stuck->run_until_ns == 0 || stuck->held_count < 2) {
        step(sim);
    }
    wpk_sim_worker_stick(sim, stuck, 1000 * 3600);
    assert_true(wpk_sim_finish(sim, 1));
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM trial WHERE outcome = 'abandoned'"),
                     0);
    free_sim(sim);
}

static uint32_t count_leases(const struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        count += c->workers[i]->lease_count;
    }
    return count;
}

/* The vendor is the first of what its worker is given, and kills it: not the ask that follows. */
static void the_first_of_a_message_is_blamed(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
    for (int round = 0; round < WPK_ATTEMPTS_MAX; round++) {
        sim->resting = false;
        while (count_leases(sim) == 0) {
            step(sim);
        }
        sim->resting = true;
        for (int i = 0; i < WORKERS; i++) {
            wpk_sim_worker_die(sim, i, 10);
        }
        while (count_leases(sim) > 0) {
            step(sim);
        }
    }
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM trial WHERE provider = 'vendor' AND"
                                        " outcome = 'abandoned'"),
                     1);
    sim->resting = false;
    finish(sim);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    free_sim(sim);
}

/* Two searches of one problem, at the same time: the better result is what is served. */
static void two_searches_of_a_problem(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct wpk_sim *sim = new_sim(seed, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
        wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":6", "20", "3600") "}");
        wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":7", "30", "3600") "}");
        finish(sim);
        assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM search WHERE kernel_id <> 0"), 3);
        assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 1);
        wpk_sim_check_kernels(sim);
        free_sim(sim);
    }
}

/* A job with a larger budget joins while the final goes on: the search goes on for it. */
static void a_larger_budget_comes_late(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(4, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
    reach(sim, WPK_SEARCH_PHASE_FINALS);
    wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":5", "50", "3600") "}");
    finish(sim);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 2);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM ask"), 50);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM kernel WHERE served_at > 0"), 2);
    wpk_sim_check_kernels(sim);
    free_sim(sim);
}

/* The candidates would last for ever: the seconds end the search. */
static void the_time_is_over(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, JOB(OP("a", "2"), "\"seed\":5", "100000", "4") "}");
    uint64_t began_ns = sim->clock.now_ns;
    finish(sim);
    uint64_t ms = (sim->clock.now_ns - began_ns) / WPK_NS_PER_MS;
    assert_in_range(ms, 4000, 8000);
    assert_in_range(wpk_sim_count(sim, "SELECT COUNT(*) FROM ask WHERE ended = 1"), 10, 2000);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    wpk_sim_check_kernels(sim);
    free_sim(sim);
}

/* Leases for `owner` among `count` from `first` on. */
static int count_for(const struct wpk_sim *sim, int first, int count, char owner)
{
    int found = 0;
    for (int i = first; i < first + count; i++) {
        found += sim->leases[i] == owner;
    }
    return found;
}

static void set_weight(struct wpk_sim *sim, const char *name, uint32_t weight)
{
    struct wpk_event event = {.kind = WPK_EVENT_SET_OWNER,
                              .owner = {.name = name, .weight = weight, .jobs_max = 100}};
    wpk_executor_step(sim->executor, &event);
}

/* Two owners with more to do than there are workers for. */
static struct wpk_sim *new_rivals(uint32_t weight, const char *ops_of_y)
{
    struct wpk_sim_options options = {
        .seed = 1, .worker_count = WORKERS, .class_count = 1, .run_ms = 100};
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    wpk_sim_init(sim, &options);
    set_weight(sim, "y", weight);
    wpk_sim_submit(sim, LONG_JOB(OP("a", "2")));
    sim->owner = "y";
    wpk_sim_submit(sim, ops_of_y);
    wpk_sim_run(sim, 15000);
    assert_true(wpk_sim_coordinator(sim)->live_count == 2);
    return sim;
}

/* Over any 20 leases, once it is known what one takes: within a tenth of the device's time. */
static void owners_share(void **state)
{
    (void)state;
    static const char one[] = LONG_JOB(OP("b", "3"));
    static const char more[] = LONG_JOB(OP("b", "3") "," OP("c", "4") "," OP("d", "5"));
    for (int ops = 0; ops < 2; ops++) {
        struct wpk_sim *sim = new_rivals(1, ops == 0 ? one : more);
        assert_in_range(sim->lease_count, 200, WPK_SIM_LEASES_MAX);
        for (int first = KNOWN_AFTER; first + 20 <= sim->lease_count; first++) {
            assert_in_range(count_for(sim, first, 20, 'x'), 9, 11);
        }
        free_sim(sim);
    }
}

static void owners_share_by_weight(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_rivals(3, LONG_JOB(OP("b", "3")));
    for (int first = KNOWN_AFTER; first + 20 <= sim->lease_count; first++) {
        assert_in_range(count_for(sim, first, 20, 'y'), 14, 16);
    }
    free_sim(sim);
}

/* The job that came last ends first. */
static void the_more_important_job(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, JOB(OP("a", "2"), "\"seed\":5", "200", "3600") "}");
    for (int steps = 0; steps < 10; steps++) {
        step(sim);
    }
    wpk_sim_submit(sim, JOB(OP("b", "3"), "\"seed\":5", "60", "3600") ",\"priority\":1}");
    while (wpk_sim_coordinator(sim)->live_count == 2) {
        step(sim);
    }
    assert_int_equal(
        wpk_sim_count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done' AND priority = 1"), 1);
    finish(sim);
    free_sim(sim);
}

/* Jobs that nobody could work on yet, and then the first worker comes. */
static void more_operators_than_a_step_opens(void **state)
{
    (void)state;
    const int jobs = 40;
    const int ops = 10;
    const int ahead = 8; /* of a job at a time */
    struct wpk_sim *sim = new_sim(1, NULL);
    for (int j = 0; j < jobs; j++) {
        struct wpk_buf job = {0};
        wpk_buf_printf(&job, "{\"name\":\"sim\",\"ops\":[");
        for (int i = 0; i < ops; i++) {
            wpk_buf_printf(&job,
                           "%s{\"name\":\"o%d\",\"op\":\"Y[i] = X[i] * %d\",\"tensors\":"
                           "{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}",
                           i > 0 ? "," : "", i, 2 + j * ops + i);
        }
        wpk_buf_printf(&job, "]}");
        wpk_sim_submit(sim, wpk_buf_text(&job));
        wpk_buf_fini(&job);
    }
    for (int steps = 0; steps < 120; steps++) {
        step(sim);
    }
    assert_int_equal(wpk_sim_coordinator(sim)->worker_count, WORKERS);
    assert_int_equal(wpk_sim_count(sim, "SELECT COUNT(*) FROM search"), jobs * ahead);
    free_sim(sim);
}

/* Workers of whom a list says why they are to be looked at. */
static uint32_t count_reasons(const struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = wpk_sim_coordinator(sim);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        struct wpk_buf text = {0};
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_json_begin_array(w, "workers");
        wpk_document_worker(w, c->workers[i], sim->clock.now_ns);
        wpk_json_end(w);
        assert_int_equal(wpk_json_print(w, false, &text), WPK_OK);
        wpk_json_writer_free(w);
        count += strstr(wpk_buf_text(&text), "\"reason\":\"its times are ") != NULL;
        wpk_buf_fini(&text);
    }
    return count;
}

/* Too fast or too slow, always the same: it is found out by what others need for the same. */
static void a_worker_whose_times_are_wrong(void **state)
{
    (void)state;
    static const double skews[] = {0.1, 10, 1};
    for (int i = 0; i < 3; i++) {
        struct wpk_sim_options options = {
            .seed = 1, .worker_count = 4, .class_count = 1, .skewed = true, .skew = skews[i]};
        struct wpk_sim *sim = calloc(1, sizeof *sim);
        assert_non_null(sim);
        wpk_sim_init(sim, &options);
        wpk_sim_submit(sim, JOB(OP("a", "2") "," OP("b", "3") "," OP("c", "4") "," OP("d", "5"),
                                "\"seed\":5", "40", "3600") "}");
        wpk_sim_submit(sim, JOB(OP("e", "6") "," OP("f", "7") "," OP("g", "8") "," OP("h", "9"),
                                "\"seed\":5", "40", "3600") "}");
        finish(sim);
        struct wpk_coordinator_counts counts;
        wpk_coordinator_count(wpk_sim_coordinator(sim), &counts);
        assert_int_equal(counts.workers_outliers, skews[i] != 1);
        assert_int_equal(count_reasons(sim), skews[i] != 1);
        assert_int_equal(sim->found, skews[i] != 1);
        free_sim(sim);
    }
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("sim", WPK_LOG_ERROR, null);
    static enum wpk_search_phase finals = WPK_SEARCH_PHASE_FINALS;
    static enum wpk_search_phase verifying = WPK_SEARCH_PHASE_VERIFYING;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_changes_nothing),
        cmocka_unit_test(history_answers),
        cmocka_unit_test(a_suspended_machine),
        cmocka_unit_test_prestate(cancelled_at_its_end, &finals),
        cmocka_unit_test_prestate(cancelled_at_its_end, &verifying),
        cmocka_unit_test(a_space_that_cannot_be),
        cmocka_unit_test(a_worker_that_is_stuck),
        cmocka_unit_test(the_first_of_a_message_is_blamed),
        cmocka_unit_test(two_searches_of_a_problem),
        cmocka_unit_test(a_larger_budget_comes_late),
        cmocka_unit_test(the_time_is_over),
        cmocka_unit_test(the_more_important_job),
        cmocka_unit_test(owners_share),
        cmocka_unit_test(owners_share_by_weight),
        cmocka_unit_test(more_operators_than_a_step_opens),
        cmocka_unit_test(a_worker_whose_times_are_wrong),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
