/* SPDX-License-Identifier: Apache-2.0 */
/* Workers whose samples wait for a CPU only build, while another one does better. */
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_worker *worker_of(const struct wpk_fixture *s, int worker)
{
    return wpk_coordinator_find_session(s->c, s->workers[worker].session);
}

/* Send a time of 50 samples; besides them so many waited. */
static void report(struct wpk_fixture *s, int worker, int disturbed)
{
    struct wpk_result result = {.record = {.outcome = WPK_OUTCOME_OK}};
    snprintf(result.record.artifact_sha256, WPK_ID_MAX, "artifact%u",
             s->workers[worker].held[0].id.index);
    result.record.timing = (struct wpk_timing){.median_ns = 50,
                                               .min_ns = 50,
                                               .mad_ns = 1,
                                               .sample_count = 50,
                                               .disturbed_count = disturbed,
                                               .repeat_count = 1,
                                               .sample_ns = {50}};
    result.record.anchor_ns = 50;
    result.record.anchor_ratio = 1;
    snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", s->workers[worker].anchor[0]);
    assert_int_equal(wpk_fixture_send(s, worker, &result), WPK_ACK_RECORDED);
}

static void time_some(struct wpk_fixture *s, int worker, int count, int disturbed)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
        assert_int_equal(s->workers[worker].held[0].id.kind, WPK_WORK_TRIAL);
        report(s, worker, disturbed);
    }
}

static bool is_disturbed(const struct wpk_fixture *s, int worker, const char *words)
{
    char reason[WPK_REASON_MAX];
    bool disturbed = wpk_steadiness_reason(worker_of(s, worker), reason);
    assert_true(!disturbed || strstr(reason, words) != NULL);
    return disturbed;
}

static void a_disturbed_worker_only_builds(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 200);
    int busy = wpk_fixture_join(s, "busy", WPK_WORKER_ROLES_ALL);
    int quiet = wpk_fixture_join(s, "quiet", WPK_WORKER_ROLES_ALL);
    time_some(s, busy, 3, 5);
    assert_false(is_disturbed(s, busy, "")); /* too few samples */
    time_some(s, quiet, 5, 2);
    assert_false(is_disturbed(s, quiet, "")); /* 2 of 52 are less than a twentieth */
    time_some(s, busy, 1, 5);
    assert_true(is_disturbed(s, busy, "20 of the last 220"));
    assert_true(wpk_fixture_logged("worker_disturbed worker=busy samples=20 of=220"));
    wpk_fixture_wait(s, 1500);
    assert_true(is_disturbed(s, busy, "it only builds"));
    assert_int_equal(wpk_fixture_poll(s, busy, 1), 1);
    assert_int_equal(s->workers[busy].held[0].stage, WPK_STAGE_BUILD);
    assert_int_equal(wpk_fixture_poll(s, quiet, 1), 1);
    assert_int_equal(s->workers[quiet].held[0].stage, WPK_STAGE_WHOLE);
    /* The other one runs its builds. */
    assert_int_equal(wpk_fixture_result(s, busy, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, busy, 1), 1);
    assert_int_equal(s->workers[busy].held[0].stage, WPK_STAGE_BUILD);
    report(s, quiet, 0);
    assert_int_equal(wpk_fixture_poll(s, quiet, 1), 1);
    assert_int_equal(s->workers[quiet].held[0].stage, WPK_STAGE_RUN);
    wpk_fixture_free(s);
}

static void the_last_one_goes_on(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 200);
    int busy = wpk_fixture_join(s, "busy", WPK_WORKER_ROLES_ALL);
    int other = wpk_fixture_join(s, "other", WPK_WORKER_ROLES_ALL);
    time_some(s, busy, 4, 10);
    wpk_fixture_wait(s, 1500);
    assert_true(worker_of(s, busy)->steadiness.only_builds);
    wpk_fixture_lose(s, other);
    wpk_fixture_poll(s, busy, 0);
    wpk_fixture_wait(s, 1500);
    assert_true(is_disturbed(s, busy, "wait for a CPU"));
    assert_false(worker_of(s, busy)->steadiness.only_builds);
    assert_int_equal(wpk_fixture_poll(s, busy, 1), 1);
    assert_int_equal(s->workers[busy].held[0].stage, WPK_STAGE_WHOLE);
    wpk_fixture_free(s);
}

static void it_gets_another_chance(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 200);
    int busy = wpk_fixture_join(s, "busy", WPK_WORKER_ROLES_ALL);
    int quiet = wpk_fixture_join(s, "quiet", WPK_WORKER_ROLES_ALL);
    time_some(s, busy, 4, 10);
    for (int i = 0; i < 8; i++) { /* a sign of life */
        assert_true(is_disturbed(s, busy, "wait for a CPU"));
        wpk_fixture_wait(s, WPK_DISTURBED_MS / 8);
        wpk_fixture_poll(s, busy, 0);
        wpk_fixture_poll(s, quiet, 0);
    }
    wpk_fixture_wait(s, 1500);
    assert_false(is_disturbed(s, busy, ""));
    assert_true(wpk_fixture_logged("worker_runs_again worker=busy"));
    assert_int_equal(wpk_fixture_poll(s, busy, 1), 1);
    assert_int_equal(s->workers[busy].held[0].stage, WPK_STAGE_WHOLE);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disturbed_worker_only_builds),
        cmocka_unit_test(the_last_one_goes_on),
        cmocka_unit_test(it_gets_another_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
