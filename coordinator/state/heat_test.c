/* SPDX-License-Identifier: Apache-2.0 */
/* Leaders are timed again while their search goes on. */
#include "coordinator/state/heat.h"

#include "coordinator/state/job.h"
#include "coordinator/state/search.h"
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LUCKY 5 /* the number of an ask that seems to be the fastest, and is the slowest in turns */

static uint64_t true_ns(uint32_t number)
{
    return 100000 + 10 * number;
}

/* Times of a heat or final: what each contender really takes. */
static void time_all(struct wpk_fixture *s, int worker, const struct wpk_search *search)
{
    struct wpk_result result = {.timing_count = s->workers[worker].held[0].contender_count};
    for (uint32_t i = 0; i < result.timing_count; i++) {
        uint32_t number = search->entries[i].number;
        uint64_t ns = number == LUCKY ? 500000 : true_ns(number);
        result.timing[i] = (struct wpk_timing){
            .median_ns = ns, .min_ns = ns, .mad_ns = 1, .sample_count = 1, .repeat_count = 1};
    }
    wpk_fixture_send(s, worker, &result);
}

struct story {
    uint32_t heats, finals;
    uint32_t ended[8]; /* results before each heat */
    uint32_t first;    /* the leader after the first heat */
    uint64_t first_ns;
    uint32_t contender; /* the best by single times, then */
};

static void run(struct wpk_fixture *s, uint32_t candidates, struct story *story)
{
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, 1);
    job->candidates = candidates;
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    const struct wpk_fixture_worker *self = &s->workers[worker];
    memset(story, 0, sizeof(*story));
    while (self->held_count > 0 || wpk_fixture_poll(s, worker, 2) > 0) {
        const struct wpk_search *search = submitted->ops[0].search;
        if (self->held[0].id.kind != WPK_WORK_FINAL) {
            uint32_t number = self->held[0].id.index;
            wpk_fixture_result(s, worker, WPK_OUTCOME_OK,
                               number == LUCKY ? 90000 : true_ns(number));
            continue;
        }
        bool heat = search->heat;
        assert_int_equal(self->held[0].round_count, heat ? WPK_HEAT_ROUNDS : 15);
        story->ended[story->heats] = search->ok_count + search->failed_count;
        assert_true(!heat || search->best[0].number == LUCKY);
        time_all(s, worker, search);
        story->heats += heat;
        story->finals += !heat;
        if (heat && story->heats == 1) {
            uint64_t ns[3];
            story->first = wpk_heat_leader(search, ns)->number;
            story->first_ns = ns[0];
            story->contender = search->best[0].number;
        }
    }
    assert_int_equal(submitted->state, WPK_JOB_DONE);
}

static void leaders_are_timed_again(void **state)
{
    struct wpk_fixture *s = wpk_fixture_new();
    struct story story;
    (void)state;
    run(s, 150, &story);
    assert_int_equal(story.heats, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(story.ended[i] >= 32U << i && story.ended[i] < (32U << i) + 8);
    }
    assert_int_equal(story.finals, 1);
    assert_int_equal(story.first, 0);
    assert_int_equal(story.first_ns, true_ns(0));
    assert_int_equal(story.contender, LUCKY);
    wpk_fixture_free(s);
}

/* The final comes at once: it times the leaders itself. */
static void none_before_a_short_search_ends(void **state)
{
    struct wpk_fixture *s = wpk_fixture_new();
    struct story story;
    (void)state;
    run(s, 32, &story);
    assert_int_equal(story.heats, 0);
    assert_int_equal(story.finals, 1);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaders_are_timed_again),
        cmocka_unit_test(none_before_a_short_search_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
