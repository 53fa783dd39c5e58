/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel of a search: who builds it, what the search's end waits for, what it leaves. */
#include "coordinator/state/parts.h"
#include "coordinator/state/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Nothing is known of the search's plain kernel; one candidate is its whole budget. */
static struct wpk_scene *begin(void)
{
    struct wpk_scene *scene = wpk_scene_new();
    scene->opened.plain = (struct wpk_piece){.standing = WPK_STANDING_OPEN};
    return scene;
}

static struct wpk_search *submit(struct wpk_scene *scene, uint32_t candidates)
{
    wpk_scene_submit_one(scene, 1, candidates);
    assert_int_equal(wpk_coordinator_search_count(scene->c), 1);
    return scene->c->searches[0];
}

static void expect(const struct wpk_scene *scene, int worker, enum wpk_work_kind kind,
                   uint32_t index, enum wpk_work_stage stage)
{
    const struct wpk_scene_worker *self = &scene->workers[worker];
    assert_true(self->held_count > 0);
    assert_int_equal(self->held[0].id.kind, kind);
    assert_int_equal(self->held[0].id.index, index);
    assert_int_equal(self->held[0].stage, stage);
}

/* Before the candidates; in one thread and the class strict, whatever the search has. */
static void it_is_asked_for_first(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int worker = wpk_scene_join(scene, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(scene, 1);
    assert_null(wpk_plain_entry(search));
    assert_int_equal(wpk_scene_poll(scene, worker, 1), 1);
    expect(scene, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_WHOLE);
    const struct wpk_work *work = &scene->workers[worker].held[0];
    assert_int_equal(work->policy.threads, 1);
    assert_true(work->accuracy.times_direct == WPK_ACCURACY_STRICT.times_direct);
    assert_true(work->keep_artifact);
    assert_int_equal(wpk_scene_result(scene, worker, WPK_OUTCOME_OK, 9000), WPK_ACK_RECORDED);
    assert_int_equal(scene->seen[WPK_EFFECT_PUT_TRIAL], 1);
    const struct wpk_final_entry *entry = wpk_plain_entry(search);
    assert_non_null(entry);
    assert_string_equal(entry->provider, WPK_PLAIN_PROVIDER);
    assert_string_equal(entry->artifact_sha256, "a1.1");
    assert_string_equal(entry->verified_by, "w");
    assert_int_equal(entry->timing.median_ns, 9000);
    assert_int_equal(search->ok_count, 0); /* it is no candidate of the search */
    wpk_scene_free(scene);
}

/* The next of those that are constructed; after the last one the search ends without. */
static void a_wrong_one_is_followed(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int worker = wpk_scene_join(scene, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(scene, 1);
    for (uint32_t number = 1; number <= WPK_PLAIN_MAX; number++) {
        assert_int_equal(wpk_scene_poll(scene, worker, 1), 1);
        expect(scene, worker, WPK_WORK_PLAIN, number, WPK_STAGE_WHOLE);
        assert_int_equal(wpk_scene_result(scene, worker, WPK_OUTCOME_WRONG_RESULT, 0),
                         WPK_ACK_RECORDED);
    }
    assert_null(wpk_plain_entry(search));
    assert_int_equal(scene->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(wpk_scene_poll(scene, worker, 1), 1);
    expect(scene, worker, WPK_WORK_TRIAL, 0, WPK_STAGE_WHOLE);
    wpk_scene_result(scene, worker, WPK_OUTCOME_OK, 1000);
    assert_int_equal(search->phase, WPK_PHASE_VERIFYING);
    wpk_scene_free(scene);
}

static void the_end_waits_for_it(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int worker = wpk_scene_join(scene, "w", WPK_WORKER_ROLES_ALL);
    int other = wpk_scene_join(scene, "v", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(scene, 1);
    assert_int_equal(wpk_scene_poll(scene, worker, 1), 1);
    assert_int_equal(wpk_scene_poll(scene, other, 1), 1);
    expect(scene, other, WPK_WORK_TRIAL, 0, WPK_STAGE_WHOLE);
    wpk_scene_result(scene, other, WPK_OUTCOME_OK, 1000);
    assert_int_equal(search->phase, WPK_PHASE_SEARCHING);
    wpk_scene_result(scene, worker, WPK_OUTCOME_OK, 9000);
    assert_int_equal(search->phase, WPK_PHASE_VERIFYING);
    wpk_scene_free(scene);
}

/* A worker that only builds makes it, one that only runs verifies and times it; what got lost
 * between them is built again. */
static void builders_and_runners_share_it(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int runner = wpk_scene_join(scene, "r", WPK_WORKER_RUNS);
    int builder = wpk_scene_join(scene, "b", WPK_WORKER_BUILDS);
    struct wpk_search *search = submit(scene, 1);
    assert_int_equal(wpk_scene_poll(scene, builder, 1), 1);
    expect(scene, builder, WPK_WORK_PLAIN, 1, WPK_STAGE_BUILD);
    wpk_scene_result(scene, builder, WPK_OUTCOME_OK, 0);
    assert_int_equal(wpk_scene_poll(scene, runner, 1), 1);
    expect(scene, runner, WPK_WORK_PLAIN, 1, WPK_STAGE_RUN);
    assert_string_equal(scene->workers[runner].artifact[0], "built1.1");
    wpk_scene_result(scene, runner, WPK_OUTCOME_ABANDONED, 0);
    assert_int_equal(wpk_scene_poll(scene, builder, 1), 1);
    expect(scene, builder, WPK_WORK_PLAIN, 1, WPK_STAGE_BUILD);
    wpk_scene_result(scene, builder, WPK_OUTCOME_OK, 0);
    assert_int_equal(wpk_scene_poll(scene, runner, 1), 1);
    wpk_scene_result(scene, runner, WPK_OUTCOME_OK, 9000);
    assert_string_equal(wpk_plain_entry(search)->artifact_sha256, "built1.1");
    assert_string_equal(wpk_plain_entry(search)->verified_by, "r");
    wpk_scene_free(scene);
}

/* Another problem of the same operator has it: it is run here, and not built again. */
static void what_was_built_before_is_only_run(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    struct wpk_built *built = calloc(1, sizeof *built);
    assert_non_null(built);
    memcpy(built->artifact_sha256, "known", sizeof "known");
    scene->opened.plain.built = built; /* the search's from then on */
    int worker = wpk_scene_join(scene, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(scene, 1);
    assert_int_equal(wpk_scene_poll(scene, worker, 1), 1);
    expect(scene, worker, WPK_WORK_PLAIN, 1, WPK_STAGE_RUN);
    wpk_scene_result(scene, worker, WPK_OUTCOME_OK, 9000);
    assert_string_equal(wpk_plain_entry(search)->artifact_sha256, "known");
    wpk_scene_free(scene);
}

/* Time is up, and who could build it is gone: the search ends without. */
static void no_builder_is_waited_for(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int runner = wpk_scene_join(scene, "r", WPK_WORKER_RUNS);
    struct wpk_search *search = submit(scene, 1);
    assert_false(wpk_plain_awaited(search));
    int builder = wpk_scene_join(scene, "b", WPK_WORKER_BUILDS);
    assert_true(wpk_plain_awaited(search));
    assert_int_equal(wpk_scene_poll(scene, runner, 1), 0);
    assert_int_equal(wpk_scene_poll(scene, builder, 1), 1);
    assert_true(wpk_plain_awaited(search)); /* somebody has it */
    wpk_scene_free(scene);
}

static void a_revoked_one_is_none(void **state)
{
    (void)state;
    struct wpk_scene *scene = begin();
    int worker = wpk_scene_join(scene, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_search *search = submit(scene, 5);
    wpk_scene_poll(scene, worker, 1);
    wpk_scene_result(scene, worker, WPK_OUTCOME_OK, 9000);
    struct wpk_kernel_event kernel = {
        .problem_id = search->problem_id, .revoked_provider = "plain", .revoked_artifact = "a1.1"};
    wpk_scene_step(scene, &(struct wpk_event){.kind = WPK_EVENT_KERNEL_CHANGED, .kernel = &kernel});
    assert_null(wpk_plain_entry(search));
    wpk_scene_free(scene);
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
        cmocka_unit_test(a_revoked_one_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
