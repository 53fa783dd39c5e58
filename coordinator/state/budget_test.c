/* SPDX-License-Identifier: Apache-2.0 */
/* Leaders are timed again while their search goes on. A total budget goes to where candidates are
 * expected to save the most. */
#include "coordinator/state/budget.h"

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

#define OPS 3

/* End a final or a heat in the order that is expected. */
static void time_in_order(struct wpk_fixture *s, int worker, uint64_t ns)
{
    struct wpk_result result = {.timing_count = s->workers[worker].held[0].contender_count};
    for (uint32_t i = 0; i < result.timing_count; i++) {
        result.timing[i] = (struct wpk_timing){
            .median_ns = ns + i, .min_ns = ns, .mad_ns = 1, .sample_count = 1, .repeat_count = 1};
    }
    wpk_fixture_send(s, worker, &result);
}

/* Work everything off: candidate i of operator k takes `ns`[k] + i, so that the first is the best.
 *   shape   asks [OPS]: how many each search has asked for */
static void work_off(struct wpk_fixture *s, int worker, const struct wpk_job_entry *job,
                     const uint64_t *ns, uint32_t *asks)
{
    const struct wpk_fixture_worker *self = &s->workers[worker];
    for (int rounds = 0; rounds < 5000; rounds++) {
        for (uint32_t k = 0; k < OPS; k++) {
            const struct wpk_search *search = job->ops[k].search;
            asks[k] = search != NULL && search->ask_count > asks[k] ? search->ask_count : asks[k];
        }
        if (self->held_count == 0 && wpk_fixture_poll(s, worker, 4) == 0) {
            return;
        }
        uint32_t k = 0;
        while (job->ops[k].search == NULL || job->ops[k].search->id != self->held[0].id.search) {
            k++;
        }
        if (self->held[0].id.kind == WPK_WORK_FINAL) {
            time_in_order(s, worker, ns[k]);
        } else {
            wpk_fixture_result(s, worker, WPK_OUTCOME_OK, ns[k] + self->held[0].id.index);
        }
    }
    fail_msg("the work does not end");
}

static const struct wpk_job_entry *run_total(struct wpk_fixture *s, uint32_t total, uint32_t count,
                                             const uint64_t *ns, uint32_t *asks)
{
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, OPS);
    job->total = job->candidates = total;
    job->ops[0].count = job->ops[1].count = 1;
    job->ops[2].count = count;
    memset(asks, 0, OPS * sizeof(*asks));
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    work_off(s, worker, submitted, ns, asks);
    assert_int_equal(submitted->state, WPK_JOB_DONE);
    return submitted;
}

/* Of three operators as fast as one another the one that is called most gets the most; all of the
 * budget is used, and none gets fewer than 8. */
static void calls_count(void **state)
{
    static const uint64_t ns[OPS] = {100000, 100000, 100000};
    uint32_t asks[OPS];
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    run_total(s, 120, 16, ns, asks);
    print_message("%u %u %u\n", asks[0], asks[1], asks[2]);
    assert_int_equal(asks[0] + asks[1] + asks[2], 120);
    assert_true(asks[0] >= 8 && asks[1] >= 8);
    assert_true(asks[2] > 2 * asks[0] && asks[2] > 2 * asks[1]);
    wpk_fixture_free(s);
}

static void time_counts(void **state)
{
    static const uint64_t ns[OPS] = {100000, 1600000, 100000};
    uint32_t asks[OPS];
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    run_total(s, 120, 1, ns, asks);
    assert_int_equal(asks[0] + asks[1] + asks[2], 120);
    assert_true(asks[1] > 2 * asks[0] && asks[1] > 2 * asks[2]);
    wpk_fixture_free(s);
}

/* A budget that is too small for a choice is shared equally, with one candidate at least. */
static void a_small_budget_is_shared_equally(void **state)
{
    static const uint64_t ns[OPS] = {100000, 100000, 100000};
    uint32_t asks[OPS];
    (void)state;
    for (uint32_t total = 1; total <= 9; total += 4) {
        struct wpk_fixture *s = wpk_fixture_new();
        uint32_t each = total < OPS ? 1 : total / OPS;
        run_total(s, total, 1, ns, asks);
        assert_true(asks[0] >= each && asks[1] >= each && asks[2] >= each);
        assert_true(asks[0] + asks[1] + asks[2] <= (total < OPS ? OPS : total));
        wpk_fixture_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaders_are_timed_again),
        cmocka_unit_test(none_before_a_short_search_ends),
        cmocka_unit_test(calls_count),
        cmocka_unit_test(time_counts),
        cmocka_unit_test(a_small_budget_is_shared_equally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
