/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the anchor of a search, from the first candidate that ends ok to its stand-in. */
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_search *the_search(const struct wpk_fixture *fixture)
{
    assert_int_equal(fixture->c->search_count, 1);
    return fixture->c->searches[0];
}

static struct wpk_fixture *begin(int *worker)
{
    struct wpk_fixture *fixture = wpk_fixture_new();
    fixture->opened.anchor = (struct wpk_anchor){0};
    *worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_submit_one(fixture, 1, 20);
    return fixture;
}

static void lose(struct wpk_fixture *fixture, const char *artifact)
{
    struct wpk_event lost = {.kind = WPK_EVENT_ARTIFACT_LOST};
    memcpy(lost.sha256, artifact, strlen(artifact));
    wpk_fixture_step(fixture, &lost);
}

/* The first candidate has become it. */
static struct wpk_fixture *begin_with_anchor(int *worker)
{
    struct wpk_fixture *fixture = begin(worker);
    wpk_fixture_poll(fixture, *worker, 1);
    wpk_fixture_result(fixture, *worker, WPK_OUTCOME_OK, 2000);
    assert_string_equal(the_search(fixture)->anchor.now, "a1.0");
    return fixture;
}

/* Few are out before there is one; what came back beside it runs again, with it. */
static void the_first_ok_is_the_anchor(void **state)
{
    (void)state;
    int worker;
    struct wpk_fixture *fixture = begin(&worker);
    const struct wpk_search *search = the_search(fixture);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), WPK_ANCHORLESS_MAX);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_BUILD_ERROR, 0),
                     WPK_ACK_RECORDED);
    assert_int_equal(search->failed_count, 1);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), 1);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 2000), WPK_ACK_RECORDED);
    assert_string_equal(search->anchor.sha256, "a1.1");
    assert_string_equal(search->anchor.now, "a1.1");
    assert_true(search->best[0].trial.anchor_ratio == 1);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 1000), WPK_ACK_UNKNOWN);
    assert_int_equal(search->ok_count, 1);
    assert_int_equal(search->told_count, 2);
    assert_true(wpk_fixture_poll(fixture, worker, 8) > WPK_ANCHORLESS_MAX);
    bool again = false;
    for (uint32_t i = 0; i < fixture->workers[worker].held_count; i++) {
        again = again || fixture->workers[worker].held[i].id.index == 2;
        assert_string_equal(fixture->workers[worker].anchor[i], "a1.1");
    }
    assert_true(again);
    wpk_fixture_free(fixture);
}

/* Times of different moments do not compare: the order is that of the ratios. */
static void the_best_are_so_by_their_ratio(void **state)
{
    (void)state;
    const struct wpk_trial_summary quiet = {.median_ns = 1000, .anchor_ratio = 0.9};
    const struct wpk_trial_summary busy = {.median_ns = 1700, .anchor_ratio = 0.8};
    assert_true(wpk_trial_is_faster(&busy, &quiet));
    assert_false(wpk_trial_is_faster(&quiet, &busy));
}

/* The best that is left takes its place, and ratios go on being to the anchor's time. */
static void a_stand_in(void **state)
{
    (void)state;
    int worker;
    struct wpk_fixture *fixture = begin_with_anchor(&worker);
    const struct wpk_search *search = the_search(fixture);
    wpk_fixture_poll(fixture, worker, 3);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 500);
    lose(fixture, "a1.0");
    assert_string_equal(search->anchor.sha256, "a1.0");
    assert_string_equal(search->anchor.now, "a1.1");
    assert_true(search->anchor.ratio == 0.5);
    /* It was leased with the old one. */
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 100), WPK_ACK_UNKNOWN);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_BUILD_ERROR, 0);
    wpk_fixture_poll(fixture, worker, 1);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 600), WPK_ACK_RECORDED);
    assert_true(search->best[1].trial.anchor_ratio == 0.6 * 0.5 ||
                search->best[0].trial.anchor_ratio == 0.6 * 0.5);
    wpk_fixture_free(fixture);
}

/* No successful candidate is left: the next one that ends ok stands in, by the anchor's last
 * time. */
static void nothing_is_left(void **state)
{
    (void)state;
    int worker;
    struct wpk_fixture *fixture = begin_with_anchor(&worker);
    const struct wpk_search *search = the_search(fixture);
    lose(fixture, "a1.0");
    assert_string_equal(search->anchor.now, "");
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), WPK_ANCHORLESS_MAX);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 1000), WPK_ACK_RECORDED);
    assert_string_equal(search->anchor.sha256, "a1.0");
    assert_string_equal(search->anchor.now, "a1.1");
    assert_true(search->anchor.ratio == 0.5);
    wpk_fixture_free(fixture);
}

/* It crashes beside a candidate: the best that is left stands in, and the candidate runs again. */
static void one_that_fails_is_replaced(void **state)
{
    (void)state;
    int worker;
    struct wpk_fixture *fixture = begin_with_anchor(&worker);
    const struct wpk_search *search = the_search(fixture);
    wpk_fixture_poll(fixture, worker, 1);
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 500);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 2), 2);
    assert_int_equal(wpk_fixture_anchor_fails(fixture, worker), WPK_ACK_RECORDED);
    assert_true(
        wpk_fixture_logged(" anchor_failed search=1 artifact=a1.0 reason=\"it crashed\"\n"));
    assert_string_equal(search->anchor.sha256, "a1.0");
    assert_string_equal(search->anchor.now, "a1.1");
    assert_true(search->anchor.ratio == 0.5);
    assert_int_equal(wpk_asks_get(search, 2)->attempts, 0);
    /* Leased beside the first one, too: an attempt, as nobody can say which candidate it was. */
    wpk_fixture_anchor_fails(fixture, worker);
    assert_string_equal(search->anchor.now, "a1.1");
    assert_int_equal(wpk_asks_get(search, 3)->attempts, 1);
    assert_int_equal(search->failed_count, 0);
    assert_int_equal(search->best_count, 2); /* another host may be able to run it */
    wpk_fixture_poll(fixture, worker, 2);
    assert_string_equal(fixture->workers[worker].anchor[0], "a1.1");
    wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 600);
    assert_int_equal(search->ok_count, 3);
    wpk_fixture_free(fixture);
}

/* No candidate is given up because no anchor works beside it on its host. */
static void all_that_fail_are_replaced(void **state)
{
    (void)state;
    int worker;
    struct wpk_fixture *fixture = begin_with_anchor(&worker);
    const struct wpk_search *search = the_search(fixture);
    for (int i = 0; i < WPK_ATTEMPTS_MAX; i++) {
        wpk_fixture_poll(fixture, worker, 1);
        wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 500);
    }
    for (int i = 0; i <= WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
        assert_int_equal(fixture->workers[worker].held[0].attempt, 1);
        wpk_fixture_anchor_fails(fixture, worker);
    }
    assert_string_equal(search->anchor.now, "");
    assert_int_equal(wpk_fixture_poll(fixture, worker, 1), 1);
    assert_int_equal(wpk_fixture_result(fixture, worker, WPK_OUTCOME_OK, 500), WPK_ACK_RECORDED);
    assert_string_equal(search->anchor.now, "a1.4");
    assert_int_equal(search->failed_count, 0);
    wpk_fixture_free(fixture);
}

/* Before there is an anchor two candidates are out at a time, and the plain kernel beside them. */
static void the_plain_kernel_is_no_candidate(void **state)
{
    (void)state;
    struct wpk_fixture *fixture = wpk_fixture_new();
    fixture->opened.anchor = (struct wpk_anchor){0};
    fixture->opened.plain = (struct wpk_work_item){.standing = WPK_STANDING_OPEN};
    int worker = wpk_fixture_join(fixture, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_submit_one(fixture, 1, 20);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), 1);
    assert_int_equal(fixture->workers[worker].held[0].id.kind, WPK_WORK_PLAIN);
    assert_int_equal(wpk_fixture_poll(fixture, worker, 8), WPK_ANCHORLESS_MAX);
    wpk_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_ok_is_the_anchor),
        cmocka_unit_test(the_best_are_so_by_their_ratio),
        cmocka_unit_test(a_stand_in),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(one_that_fails_is_replaced),
        cmocka_unit_test(all_that_fail_are_replaced),
        cmocka_unit_test(the_plain_kernel_is_no_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
