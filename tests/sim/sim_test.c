/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever goes wrong, in the end every run must have recorded the same as one in which nothing
 * did. Each prints its seed. */
#include "tests/sim/sim.h"

#include "common/log.h"
#include "coordinator/parts.h"
#include "coordinator/store.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SEEDS_DEFAULT 12
#define TROUBLE 0.1

#define OP(name, factor)                                                                           \
    "{\"name\":\"" name "\",\"op\":\"Y[i] = X[i] * " factor                                        \
    "\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}"
/* Up to its last brace: more may follow. */
#define JOB(ops, search, candidates, seconds)                                                      \
    "{\"name\":\"sim\",\"ops\":[" ops "],\"search\":{\"strategy\":\"ga\"," search                  \
    "},\"budget\":{\"candidates\":" candidates ",\"seconds\":" seconds "}"

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

static int64_t count(struct wpk_sim *sim, const char *sql)
{
    int64_t value = -1;
    struct wpk_rows *rows = wpk_store_query(sim->store, sql, "");
    if (wpk_rows_next(rows)) {
        value = wpk_rows_int(rows, 0);
    }
    wpk_rows_close(rows);
    return value;
}

/* Times are those of the contender that they stand for, what is served is the fastest that was in a
 * final of its problem, and it stood its verification. */
static void check_kernels(struct wpk_sim *sim)
{
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT k.provider, k.artifact_sha256, k.median_ns, t.candidate, k.served,"
                        " (SELECT MIN(o.median_ns) FROM kernel o WHERE o.problem_id = k.problem_id)"
                        " FROM kernel k JOIN trial t ON t.problem_id = k.problem_id"
                        " AND t.provider = k.provider AND t.artifact_sha256 = k.artifact_sha256",
                        "");
    while (wpk_rows_next(rows)) {
        uint64_t ns = wpk_sim_final_ns(wpk_rows_text(rows, 0), wpk_rows_text(rows, 1));
        assert_int_equal(wpk_rows_int(rows, 2), ns);
        assert_true(wpk_rows_text(rows, 1)[0] == '\0' || wpk_sim_verifies(wpk_rows_text(rows, 3)));
        assert_true(wpk_rows_int(rows, 4) == 0 || (uint64_t)wpk_rows_int(rows, 5) == ns);
    }
    wpk_rows_close(rows);
}

static void check_invariants(struct wpk_sim *sim)
{
    check_kernels(sim);
    assert_int_equal(sim->responses, 1);
    /* Two searches of 60, everything recorded, nothing twice. */
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask"), 120);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask WHERE ended = 0"), 0);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM trial WHERE candidate <> ''"), 120);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM trial WHERE candidate = ''"), 2);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM (SELECT trial_id FROM measurement WHERE kind"
                                " = 'trial' GROUP BY trial_id HAVING COUNT(*) > 1)"),
                     0);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 2);
    /* A kernel's artifact is there. */
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel WHERE artifact_sha256 <> '' AND"
                                " artifact_sha256 NOT IN (SELECT sha256 FROM artifact)"),
                     0);
}

static struct wpk_sim *new_sim_of(uint64_t seed, double trouble, const char *job)
{
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    wpk_sim_init(sim, seed, trouble);
    wpk_sim_submit(sim, job);
    return sim;
}

static struct wpk_sim *new_sim(uint64_t seed, double trouble)
{
    return new_sim_of(seed, trouble, job_text);
}

static void free_sim(struct wpk_sim *sim)
{
    wpk_sim_fini(sim);
    free(sim);
}

static void run(uint64_t seed, double trouble, struct wpk_buf *out)
{
    struct wpk_sim *sim = new_sim(seed, trouble);
    int steps = wpk_sim_finish(sim);
    print_message("seed %llu: %d steps, %d executions, %d crashes of wpkd\n",
                  (unsigned long long)seed, steps, sim->executions, sim->crashes);
    assert_false(wpk_sim_is_live(sim));
    check_invariants(sim);
    recorded(sim, out);
    free_sim(sim);
}

/* Hours in which nothing ran: no lease is taken back, no budget is used up. */
static void a_suspended_machine(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, 0);
    for (int i = 0; i < 20; i++) {
        wpk_sim_step(sim);
    }
    const struct wpk_coordinator *coordinator = wpk_performer_coordinator(sim->performer);
    assert_int_equal(wpk_coordinator_worker_count(coordinator), WPK_SIM_WORKERS);
    uint64_t sessions[WPK_SIM_WORKERS];
    for (uint32_t i = 0; i < WPK_SIM_WORKERS; i++) {
        sessions[i] = wpk_coordinator_worker(coordinator, i)->session;
    }
    wpk_clock_fake_advance(&sim->clock, 2 * 3600 * WPK_NS_PER_S);
    wpk_sim_finish(sim);
    for (uint32_t i = 0; i < WPK_SIM_WORKERS; i++) {
        assert_true(wpk_coordinator_worker(coordinator, i)->session == sessions[i]);
    }
    check_invariants(sim);
    free_sim(sim);
}

static uint64_t first_seed = 1;
static int seed_count = SEEDS_DEFAULT;

static void trouble_changes_nothing(void **state)
{
    (void)state;
    struct wpk_buf undisturbed = {0};
    run(1, 0, &undisturbed);
    for (int i = 0; i < seed_count; i++) {
        struct wpk_buf disturbed = {0};
        run(first_seed + (uint64_t)i, TROUBLE, &disturbed);
        assert_string_equal(wpk_buf_text(&disturbed), wpk_buf_text(&undisturbed));
        wpk_buf_fini(&disturbed);
    }
    wpk_buf_fini(&undisturbed);
}

/* The same job again: nothing is measured. */
static void history_answers(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim(1, 0);
    wpk_sim_finish(sim);
    int executions = sim->executions;
    wpk_sim_submit(sim, job_text);
    for (int steps = 0; wpk_sim_is_live(sim) && steps < 10; steps++) {
        wpk_sim_step(sim);
    }
    assert_false(wpk_sim_is_live(sim));
    assert_int_equal(sim->executions, executions);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job_op WHERE from_history = 1"), 2);
    free_sim(sim);
}

static const struct wpk_coordinator *coordinator_of(const struct wpk_sim *sim)
{
    return wpk_performer_coordinator(sim->performer);
}

/* Step until a search is in that phase, and its work for it is out. */
static struct wpk_search *reach(struct wpk_sim *sim, enum wpk_phase phase)
{
    for (int steps = 0; steps < WPK_SIM_STEPS_MAX; steps++) {
        const struct wpk_coordinator *c = coordinator_of(sim);
        for (uint32_t i = 0; i < c->search_count; i++) {
            struct wpk_search *search = c->searches[i];
            const struct wpk_piece *piece =
                phase == WPK_PHASE_FINALS ? &search->final : &search->verify;
            if (search->phase == phase && piece->standing == WPK_STANDING_LEASED) {
                return search;
            }
        }
        wpk_sim_step(sim);
    }
    fail_msg("no search comes to be %s", wpk_phase_name(phase));
    return NULL;
}

/* All are lost, and followed by others; whatever they held was counted. */
static void replace_workers(struct wpk_sim *sim)
{
    for (int i = 0; i < WPK_SIM_WORKERS; i++) {
        wpk_sim_worker_die(sim, i);
    }
    for (int steps = 0; steps < 200; steps++) {
        wpk_sim_step(sim);
    }
    assert_int_equal(wpk_coordinator_worker_count(coordinator_of(sim)), WPK_SIM_WORKERS);
}

/* The search is kept until its worker is heard or lost, and then it is gone. */
static void cancelled_at_its_end(void **state)
{
    const enum wpk_phase *phase = *state;
    for (int lost = 0; lost < 2; lost++) {
        struct wpk_sim *sim = new_sim_of(3, 0, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
        reach(sim, *phase);
        wpk_sim_cancel(sim);
        assert_false(wpk_sim_is_live(sim));
        if (lost) {
            replace_workers(sim);
        }
        for (int steps = 0; steps < 200; steps++) {
            wpk_sim_step(sim);
        }
        assert_int_equal(coordinator_of(sim)->search_count, 0);
        wpk_sim_submit(sim, job_text);
        wpk_sim_finish(sim);
        assert_false(wpk_sim_is_live(sim));
        check_kernels(sim);
        free_sim(sim);
    }
}

/* Nothing has that gene: the job fails while its vendors are being tried. */
static void a_space_that_cannot_be(void **state)
{
    (void)state;
    struct wpk_sim *sim =
        new_sim_of(1, 0, JOB(OP("a", "2"), "\"pin\":{\"no\":\"gene\"}", "20", "3600") "}");
    wpk_sim_finish(sim);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'failed'"), 1);
    replace_workers(sim);
    assert_int_equal(coordinator_of(sim)->search_count, 0);
    free_sim(sim);
}

static uint32_t count_leases(const struct wpk_sim *sim)
{
    const struct wpk_coordinator *c = coordinator_of(sim);
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
    struct wpk_sim *sim = new_sim_of(1, 0, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
    for (int round = 0; round < WPK_ATTEMPTS_MAX; round++) {
        sim->resting = false;
        while (count_leases(sim) == 0) {
            wpk_sim_step(sim);
        }
        sim->resting = true;
        for (int i = 0; i < WPK_SIM_WORKERS; i++) {
            wpk_sim_worker_die(sim, i);
        }
        while (count_leases(sim) > 0) {
            wpk_sim_step(sim);
        }
    }
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM trial WHERE provider = 'vendor' AND"
                                " outcome = 'abandoned'"),
                     1);
    sim->resting = false;
    wpk_sim_finish(sim);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    free_sim(sim);
}

/* Two searches of one problem, at the same time: the better result is what is served. */
static void two_searches_of_a_problem(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct wpk_sim *sim =
            new_sim_of(seed, 0, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
        wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":6", "20", "3600") "}");
        wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":7", "30", "3600") "}");
        wpk_sim_finish(sim);
        assert_int_equal(count(sim, "SELECT COUNT(*) FROM search WHERE kernel_id <> 0"), 3);
        assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel WHERE served = 1"), 1);
        check_kernels(sim);
        free_sim(sim);
    }
}

/* A job with a larger budget joins while the final goes on: the search goes on for it. */
static void a_larger_budget_comes_late(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim_of(4, 0, JOB(OP("a", "2"), "\"seed\":5", "20", "3600") "}");
    reach(sim, WPK_PHASE_FINALS);
    wpk_sim_submit(sim, JOB(OP("a", "2"), "\"seed\":5", "50", "3600") "}");
    wpk_sim_finish(sim);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 2);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask"), 50);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM kernel"), 2);
    check_kernels(sim);
    free_sim(sim);
}

/* The candidates would last for ever: the seconds end the search. */
static void the_time_is_over(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim_of(1, 0, JOB(OP("a", "2"), "\"seed\":5", "100000", "4") "}");
    uint64_t began_ns = sim->clock.now_ns;
    wpk_sim_finish(sim);
    uint64_t ms = (sim->clock.now_ns - began_ns) / WPK_NS_PER_MS;
    assert_in_range(ms, 4000, 6000);
    assert_in_range(count(sim, "SELECT COUNT(*) FROM ask WHERE ended = 1"), 10, 2000);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done'"), 1);
    check_kernels(sim);
    free_sim(sim);
}

/* The job that came last ends first. */
static void the_more_important_job(void **state)
{
    (void)state;
    struct wpk_sim *sim = new_sim_of(1, 0, JOB(OP("a", "2"), "\"seed\":5", "200", "3600") "}");
    for (int steps = 0; steps < 10; steps++) {
        wpk_sim_step(sim);
    }
    wpk_sim_submit(
        sim, JOB(OP("b", "3"), "\"seed\":5", "60", "3600") ",\"priority\":1,\"owner\":\"x\"}");
    while (wpk_coordinator_job_count(coordinator_of(sim)) == 2) {
        wpk_sim_step(sim);
    }
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM job WHERE state = 'done' AND priority = 1"),
                     1);
    wpk_sim_finish(sim);
    free_sim(sim);
}

/* Jobs of the largest size that nobody could work on yet, and then the first worker comes. */
static void more_operators_than_a_step_opens(void **state)
{
    (void)state;
    const int jobs = 17;
    const int ops = 256;
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    wpk_sim_init(sim, 1, 0);
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
    for (int steps = 0; steps < 30; steps++) {
        wpk_sim_step(sim);
    }
    assert_int_equal(wpk_coordinator_worker_count(coordinator_of(sim)), WPK_SIM_WORKERS);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM search"), jobs * ops);
    free_sim(sim);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = (int)strtol(argv[2], NULL, 10);
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("sim", WPK_LOG_ERROR, null);
    static enum wpk_phase finals = WPK_PHASE_FINALS;
    static enum wpk_phase verifying = WPK_PHASE_VERIFYING;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_changes_nothing),
        cmocka_unit_test(history_answers),
        cmocka_unit_test(a_suspended_machine),
        cmocka_unit_test_prestate(cancelled_at_its_end, &finals),
        cmocka_unit_test_prestate(cancelled_at_its_end, &verifying),
        cmocka_unit_test(a_space_that_cannot_be),
        cmocka_unit_test(the_first_of_a_message_is_blamed),
        cmocka_unit_test(two_searches_of_a_problem),
        cmocka_unit_test(a_larger_budget_comes_late),
        cmocka_unit_test(the_time_is_over),
        cmocka_unit_test(the_more_important_job),
        cmocka_unit_test(more_operators_than_a_step_opens),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
