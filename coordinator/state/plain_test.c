/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel of a search: who builds it, what the search's end waits for, what it leaves. */
#include "coordinator/state/coordinator.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/job.h"
#include "coordinator/state/model.h"

#include "coordinator/state/search.h"
#include "coordinator/state/worker.h"
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A fixture whose store knows no plain kernel of the search. */
static struct wpk_fixture *begin(void)
{
    struct wpk_fixture *fixture = wpk_fixture_new();
    fixture->opened.plain = (struct wpk_work_item){.standing = WPK_STANDING_OPEN};
    return fixture;
}

static struct wpk_search *submit(struct wpk_fixture *fixture, uint32_t candidates)
{
    wpk_fixture_submit_one(fixture, 1, candidates);
    assert_int_equal(fixture->c->search_count, 1);
    return fixture->c->searches[0];
}

/* With a worker that builds and runs. */
static struct wpk_fixture *begin_whole(uint32_t candidates, int *worker, struct wpk_search **search)
{
    struct wpk_fixture *fixture = begin();
    *worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    *search = submit(fixture, candidates);
    return fixture;
}

static struct wpk_built *known_built(void)
{
    struct wpk_built *built = calloc(1, sizeof *built);
    assert_non_null(built);
    memcpy(built->artifact_sha256, "known", sizeof "known");
    return built;
}

static void revoke(struct wpk_fixture *fixture, const struct wpk_search *search,
                   const char *artifact)
{
    struct wpk_kernel_event kernel = {.problem_id = search->problem_id,
                                      .revoked_provider = WPK_PLAIN_PROVIDER};
    memcpy(kernel.revoked_artifact, artifact, strlen(artifact));
    wpk_fixture_step(fixture,
                     &(struct wpk_event){.kind = WPK_EVENT_KERNEL_CHANGED, .kernel = &kernel});
}

static void expect(const struct wpk_fixture *fixture, int worker, enum wpk_work_kind kind,
                   uint32_t index, enum wpk_work_stage stage)
{
    const struct wpk_fixture_worker *self = &fixture->workers[worker];
    assert_true(self->held_count > 0);
    assert_int_equal(self->held[0].id.kind, kind);
    assert_int_equal(self->held[0].id.index, index);
    assert_int_equal(self->held[0].stage, stage);
}

/* Before the candidates; in one thread and the class strict, whatever the search has. */
static void it_is_asked_for_first(void **state)
{
    (void)state;
    int worker;
    struct wpk_search *search;
    struct wpk_fixture *fixture = begin_whole(1, &worker, &search);
    assert_null(wpk_plain_entry(search));
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    expect(fixture, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_WHOLE);
    const struct wpk_work *work = &fixture->workers[worker].held[0];
    assert_int_equal(work->policy.threads, 1);
    assert_true(work->accuracy.times_direct == WPK_ACCURACY_STRICT.times_direct);
    assert_true(work->keep_artifact);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000), WPK_ACK_RECORDED);
    assert_int_equal(fixture->seen[WPK_EFFECT_PUT_TRIAL], 1);
    const struct wpk_final_entry *entry = wpk_plain_entry(search);
    assert_non_null(entry);
    assert_string_equal(entry->provider, WPK_PLAIN_PROVIDER);
    assert_string_equal(entry->artifact_sha256, "a1.1");
    assert_string_equal(entry->verified_by, "w");
    assert_int_equal(entry->timing.median_ns, 9000);
    assert_int_equal(search->ok_count, 0); /* it is no candidate of the search */
    wpk_fixture_free(fixture);
}

/* The next of those that are constructed; after the last one the search ends without. */
static void a_wrong_one_is_followed(void **state)
{
    (void)state;
    int worker;
    struct wpk_search *search;
    struct wpk_fixture *fixture = begin_whole(1, &worker, &search);
    for (uint32_t number = 1; number <= WPK_PLAIN_MAX; number++) {
        assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
        expect(fixture, worker, WPK_WORK_PLAIN, number, WPK_STAGE_WHOLE);
        assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_WRONG_RESULT, 0),
                         WPK_ACK_RECORDED);
    }
    assert_true(wpk_fixture_logged(" plain_rejected search=1 candidate=1 outcome=wrong_result "));
    assert_null(wpk_plain_entry(search));
    assert_int_equal(fixture->seen[WPK_EFFECT_PUT_TRIAL], WPK_PLAIN_MAX); /* each is recorded */
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    expect(fixture, worker, WPK_WORK_TRIAL, 0, WPK_STAGE_WHOLE);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 1000);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_VERIFYING);
    char reason[WPK_REASON_MAX];
    assert_int_equal(wpk_verdict_phase(search, reason), WPK_SEARCH_PHASE_DONE);
    assert_string_equal(reason, "there is no plain kernel, which would run on other devices: it "
                                "ended wrong_result");
    wpk_fixture_free(fixture);
}

static void the_end_waits_for_it(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin();
    int worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    int other = wpk_fixture_join(fixture, "v", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(fixture, 1);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    assert_int_equal(wpk_fixture_poll(fixture, other, 1), 1);
    expect(fixture, other, WPK_WORK_TRIAL, 0, WPK_STAGE_WHOLE);
    wpk_fixture_result(fixture, other, WPK_OUTCOME_OK, 1000);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_SEARCHING);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_VERIFYING);
    wpk_fixture_free(fixture);
}

/* A worker that only builds makes it, one that only runs verifies and times it; what got lost
 * between them is built again. */
static void builders_and_runners_share_it(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin();
    int runner = wpk_fixture_join(fixture, "r", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(fixture, "b", WPK_WORKER_BUILDS);
    struct wpk_search *search = submit(fixture, 1);
    assert_int_equal(wpk_fixture_poll(fixture, builder, 1), 1);
    expect(fixture, builder, WPK_WORK_PLAIN, 1, WPK_STAGE_BUILD);
    wpk_fixture_result(fixture, builder, WPK_OUTCOME_OK, 0);
    assert_int_equal(wpk_fixture_poll(fixture, runner, 1), 1);
    expect(fixture, runner, WPK_WORK_PLAIN, 1, WPK_STAGE_RUN);
    assert_string_equal(fixture->workers[runner].artifact[0], "built1.1");
    wpk_fixture_result(fixture, runner, WPK_OUTCOME_ABANDONED, 0);
    assert_int_equal(wpk_fixture_poll(fixture, builder, 1), 1);
    expect(fixture, builder, WPK_WORK_PLAIN, 1, WPK_STAGE_BUILD);
    wpk_fixture_result(fixture, builder, WPK_OUTCOME_OK, 0);
    assert_int_equal(wpk_fixture_poll(fixture, runner, 1), 1);
    wpk_fixture_result(fixture, runner, WPK_OUTCOME_OK, 9000);
    assert_string_equal(wpk_plain_entry(search)->artifact_sha256, "built1.1");
    assert_string_equal(wpk_plain_entry(search)->verified_by, "r");
    wpk_fixture_free(fixture);
}

/* Another problem of the same operator has it: it is run here, and not built again. */
static void what_was_built_before_is_only_run(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin();
    fixture->opened.plain.built = known_built(); /* the search's from then on */
    int worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(fixture, 1);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    expect(fixture, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_RUN);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    assert_string_equal(wpk_plain_entry(search)->artifact_sha256, "known");
    wpk_fixture_free(fixture);
}

/* Time is up, and who could build it is gone: the search ends without. */
static void no_builder_is_waited_for(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin();
    int runner = wpk_fixture_join(fixture, "r", WPK_WORKER_RUNS);
    struct wpk_search *search = submit(fixture, 1);
    assert_false(wpk_plain_awaited(search));
    int builder = wpk_fixture_join(fixture, "b", WPK_WORKER_BUILDS);
    assert_true(wpk_plain_awaited(search));
    assert_int_equal(wpk_fixture_poll(fixture, runner, 1), 0);
    assert_int_equal(wpk_fixture_poll(fixture, builder, 1), 1);
    assert_true(wpk_plain_awaited(search)); /* somebody has it */
    wpk_fixture_free(fixture);
}

static void a_revoked_one_is_followed(void **state)
{
    (void)state;
    int worker;
    struct wpk_search *search;
    struct wpk_fixture *fixture = begin_whole(5, &worker, &search);
    wpk_fixture_poll(fixture, worker, 1);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    revoke(fixture, search, "a1.1");
    assert_null(wpk_plain_entry(search));
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    expect(fixture, worker, WPK_WORK_PLAIN, 2, WPK_STAGE_WHOLE);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    assert_string_equal(wpk_plain_entry(search)->artifact_sha256, "a1.2");
    wpk_fixture_free(fixture);
}

/* If no candidate works, the plain kernel is the answer, which says so, from history too. */
static void it_is_the_answer(void **state)
{
    (void)state;
    int worker;
    struct wpk_search *search;
    struct wpk_fixture *fixture = begin_whole(2, &worker, &search);
    const struct wpk_job_op_state *op = search->ops;
    wpk_fixture_poll(fixture, worker, 1);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    wpk_fixture_poll(fixture, worker, 2);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_RUN_CRASH, 0);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_RUN_CRASH, 0);
    assert_int_equal(op->phase, WPK_PHASE_DONE);
    assert_string_equal(op->reason, "only the plain kernel can be served: 2 of 2 candidates ended "
                                    "run_crash");
    assert_int_equal(op->kernel_id, 1);
    assert_string_equal(fixture->kernel_provider, WPK_PLAIN_PROVIDER);
    assert_true(fixture->kernel_serves);
    assert_string_equal(search->served.provider, WPK_PLAIN_PROVIDER);
    assert_string_equal(search->served.artifact_sha256, "a1.1");
    const struct wpk_job_entry *again = wpk_fixture_submit_one(fixture, 1, 2);
    assert_int_equal(again->ops[0].phase, WPK_PHASE_DONE);
    assert_true(again->ops[0].from_history);
    assert_int_equal(again->ops[0].kernel_id, 1);
    assert_string_equal(again->ops[0].reason, op->reason);
    wpk_fixture_free(fixture);
}

/* It is revoked while it is being stored as the winner: the next candidate becomes the answer. */
static void a_revoked_answer_is_followed(void **state)
{
    (void)state;
    int worker;
    struct wpk_search *search;
    struct wpk_fixture *fixture = begin_whole(1, &worker, &search);
    wpk_fixture_poll(fixture, worker, 1);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    wpk_fixture_poll(fixture, worker, 1);
    fixture->hold = true;
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_RUN_CRASH, 0);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_STORING);
    revoke(fixture, search, "a1.1");
    fixture->hold = false;
    wpk_fixture_answer(fixture);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_SEARCHING);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    expect(fixture, worker, WPK_WORK_PLAIN, 2, WPK_STAGE_WHOLE);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_DONE);
    assert_string_equal(search->served.artifact_sha256, "a1.2");
    wpk_fixture_free(fixture);
}

/* ---- answers from history */

/* The history has a kernel of two candidates, and no plain kernel. */
static struct wpk_fixture *begin_answered(void)
{
    struct wpk_fixture *fixture = begin();
    fixture->opened.kernel_id = 7;
    fixture->opened.ended_asks = 2;
    fixture->opened.told_count = 2;
    fixture->opened.ask_count = 2;
    fixture->opened.ok_count = 2;
    return fixture;
}

static void an_answer_from_history_gets_one(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin_answered();
    int worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = wpk_fixture_submit_one(fixture, 1, 2);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_SEARCHING);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), 1); /* and nothing else */
    expect(fixture, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_WHOLE);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 9000);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_DONE);
    assert_true(job->ops[0].from_history);
    assert_int_equal(job->ops[0].kernel_id, 7);
    assert_int_equal(fixture->seen[WPK_EFFECT_PUT_PLAIN], 1);
    assert_int_equal(fixture->seen[WPK_EFFECT_PUT_KERNEL], 0);
    wpk_fixture_free(fixture);
}

/* Without a builder the answer is given at once; also when the builder leaves. */
static void an_answer_waits_for_no_builder(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin_answered();
    wpk_fixture_join(fixture, "r", WPK_WORKER_RUNS);
    assert_int_equal(wpk_fixture_submit_one(fixture, 1, 2)->ops[0].phase, WPK_PHASE_DONE);
    int builder = wpk_fixture_join(fixture, "b", WPK_WORKER_BUILDS);
    const struct wpk_job_entry *job = wpk_fixture_submit_one(fixture, 2, 2);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_SEARCHING);
    wpk_fixture_lose(fixture, builder);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_DONE);
    assert_int_equal(job->ops[0].kernel_id, 7);
    assert_int_equal(fixture->seen[WPK_EFFECT_PUT_PLAIN], 0);
    wpk_fixture_free(fixture);
}

/* A job with a larger budget comes: the search goes on for it, and the others are answered. */
static void an_answer_waits_for_no_search(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = begin_answered();
    int worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = wpk_fixture_submit_one(fixture, 1, 2);
    const struct wpk_job_entry *larger = wpk_fixture_submit_one(fixture, 1, 3);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_DONE);
    assert_true(job->ops[0].from_history);
    assert_int_equal(larger->ops[0].phase, WPK_PHASE_SEARCHING);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), 1);
    expect(fixture, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_WHOLE);
    wpk_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_for_first),
        cmocka_unit_test(a_wrong_one_is_followed),
        cmocka_unit_test(the_end_waits_for_it),
        cmocka_unit_test(builders_and_runners_share_it),
        cmocka_unit_test(what_was_built_before_is_only_run),
        cmocka_unit_test(no_builder_is_waited_for),
        cmocka_unit_test(a_revoked_one_is_followed),
        cmocka_unit_test(it_is_the_answer),
        cmocka_unit_test(a_revoked_answer_is_followed),
        cmocka_unit_test(an_answer_from_history_gets_one),
        cmocka_unit_test(an_answer_waits_for_no_builder),
        cmocka_unit_test(an_answer_waits_for_no_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
