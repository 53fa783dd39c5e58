/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever goes wrong, in the end every run must have recorded the same as one in which nothing
 * did. Each prints its seed. */
#include "tests/sim/sim.h"

#include "common/log.h"
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

static const char job_text[] =
    "{\"name\":\"sim\",\"ops\":["
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i] * 2\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}},"
    "{\"name\":\"b\",\"op\":\"Y[i] = X[i] * 3\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"
    "\"search\":{\"strategy\":\"ga\",\"seed\":5},\"budget\":{\"candidates\":60,\"seconds\":3600}}";

/* Everything that was recorded of asks, as one text. */
static void recorded(struct wpk_sim *sim, struct wpk_buf *out)
{
    struct wpk_rows *rows =
        wpk_store_query(sim->store,
                        "SELECT p.fingerprint, a.number, a.candidate, t.outcome FROM ask a"
                        " JOIN search s ON s.id = a.search_id JOIN problem p ON p.id = s.problem_id"
                        " LEFT JOIN trial t ON t.id = a.trial_id ORDER BY p.fingerprint, a.number",
                        "");
    while (wpk_rows_next(rows)) {
        wpk_buf_printf(out, "%.8s %d %s %s\n", wpk_rows_text(rows, 0), (int)wpk_rows_int(rows, 1),
                       wpk_rows_text(rows, 2), wpk_rows_text(rows, 3));
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

static void check_invariants(struct wpk_sim *sim)
{
    assert_int_equal(sim->responses, 1);
    /* Two searches of 60, everything recorded, nothing twice. */
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask"), 120);
    assert_int_equal(count(sim, "SELECT COUNT(*) FROM ask WHERE trial_id IS NULL"), 0);
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

static struct wpk_sim *new_sim(uint64_t seed, double trouble)
{
    struct wpk_sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    wpk_sim_init(sim, seed, trouble);
    wpk_sim_submit(sim, job_text);
    return sim;
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

int main(int argc, char **argv)
{
    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = (int)strtol(argv[2], NULL, 10);
    }
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("sim", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_changes_nothing),
        cmocka_unit_test(history_answers),
        cmocka_unit_test(a_suspended_machine),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
