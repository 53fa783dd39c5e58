/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/seen.h"

#include "tests/fake_space.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRAWN 4000
#define HINTS 64
#define TRIALS 40
#define ELSEWHERE 3e6 /* ns of a time of 1 on the machine that the hints are of */

static struct wpk_space space;
static struct wpk_hint hints[DRAWN];
static int hint_sources; /* asks that a strategy says to be hints */

static int compare_hints(const void *a, const void *b)
{
    const struct wpk_hint *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int set_up(void **state)
{
    const struct wpk_fake_space_options options = {
        .variant_count = 8, .gene_count = 14, .choice_count = 8};
    struct wpk_rng rng;
    int count = 0;
    (void)state;
    wpk_rng_seed(&rng, 9);
    if (wpk_fake_space_init(&options, &space) != WPK_OK) {
        return -1;
    }
    while (count < DRAWN) {
        struct wpk_hint *hint = &hints[count];
        if (wpk_space_draw(&space, &rng, &hint->candidate) == WPK_OK) {
            hint->time_ns = ELSEWHERE * wpk_fake_space_time(3, &hint->candidate);
            count += hint->time_ns > 0;
        }
    }
    qsort(hints, DRAWN, sizeof(hints[0]), compare_hints);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wpk_space_fini(&space);
    return 0;
}

static struct wpk_strategy *make(const char *name, int hint_count)
{
    const struct wpk_strategy_setup setup = {.seed = 1, .hints = hints, .hint_count = hint_count};
    struct wpk_strategy *strategy = NULL;
    assert_int_equal(wpk_strategy_make(wpk_strategy_find(name), &space, &setup, &strategy), WPK_OK);
    return strategy;
}

/* A candidate with this source is one of the hints. */
static void check_source(const struct wpk_strategy *strategy, const struct wpk_candidate *asked)
{
    const char *source = wpk_strategy_source(strategy, wpk_strategy_asked(strategy) - 1);
    bool from_hints = strcmp(source, "hint") == 0, is_one = false;
    for (int h = 0; h < HINTS; h++) {
        is_one = is_one || wpk_candidate_equal(asked, &hints[h].candidate);
    }
    assert_true(is_one || !from_hints);
    hint_sources += from_hints;
}

/* Run the strategy up to `trials`; save and load it after each tell if `breaks`.
 *   shape   asked [trials]; returns the best time */
static double run(const char *name, int hint_count, int trials, bool breaks,
                  struct wpk_candidate *asked)
{
    const struct wpk_strategy_setup setup = {.seed = 1, .hints = hints, .hint_count = hint_count};
    struct wpk_strategy *strategy = make(name, hint_count);
    double best = HUGE_VAL;
    for (int told = 0, count = 0, filled; told < trials;) {
        filled = 0;
        if (count < trials) {
            assert_int_equal(wpk_strategy_ask(strategy, 1, &asked[count], &filled), WPK_OK);
        }
        if (filled == 1) {
            check_source(strategy, &asked[count]);
        }
        count += filled;
        if (filled == 0) {
            double time = wpk_fake_space_time(3, &asked[told++]);
            best = time > 0 ? fmin(best, time) : best;
            wpk_strategy_tell(strategy, &(struct wpk_tell){.ok = time > 0, .relative = time});
        }
        if (filled == 0 && breaks) {
            struct wpk_buf text = {0};
            assert_int_equal(wpk_strategy_save(strategy, &text), WPK_OK);
            wpk_strategy_free(strategy);
            strategy = NULL;
            assert_int_equal(wpk_strategy_load(wpk_strategy_find(name), &space, &setup,
                                               wpk_buf_text(&text), &strategy, NULL),
                             WPK_OK);
            wpk_buf_fini(&text);
        }
    }
    wpk_strategy_free(strategy);
    return best;
}

/* The fastest hints are asked for, right after construction; nothing else is known of them here. */
static void the_fastest_are_asked_first(void **state)
{
    struct wpk_candidate asked[TRIALS];
    int found = 0;
    (void)state;
    hint_sources = 0;
    run("anneal", HINTS, TRIALS, false, asked);
    assert_int_equal(hint_sources, WPK_HINTS_ASKED);
    for (int i = 0; i < TRIALS; i++) {
        for (int h = 0; h < HINTS; h++) {
            if (wpk_candidate_equal(&asked[i], &hints[h].candidate)) {
                assert_true(h <
                            WPK_HINTS_ASKED); /* the others are learnt, as they would come out */
                found++;
            }
        }
    }
    assert_int_equal(found, WPK_HINTS_ASKED);
}

/* They are 200 of 4,000 draws: a search with them finds more than one without. */
static void they_help(void **state)
{
    static const char *const names[] = {"ga", "anneal", "auto"};
    struct wpk_candidate asked[64];
    (void)state;
    for (int n = 0; n < 3; n++) {
        double with = run(names[n], 200, 64, false, asked),
               without = run(names[n], 0, 64, false, asked);
        print_message("%s: %.3f of the time without\n", names[n], with / without);
        assert_true(with < without);
    }
}

static void a_saved_search_goes_on_with_them(void **state)
{
    struct wpk_candidate one[TRIALS], other[TRIALS];
    (void)state;
    run("anneal", HINTS, TRIALS, false, one);
    run("anneal", HINTS, TRIALS, true, other);
    for (int i = 0; i < TRIALS; i++) {
        assert_true(wpk_candidate_equal(&one[i], &other[i]));
    }
}

/* Times elsewhere are 3 ms for a time of 1 here; those learnt are what they would be here. */
static void times_are_shifted(void **state)
{
    struct wpk_hints known = {.hint = hints, .count = HINTS};
    struct wpk_seen seen = {0};
    int next = 0, learnt = 0;
    double time;
    (void)state;
    for (int n; (n = wpk_hints_take(&known, &seen, &space)) >= 0;) {
        assert_null(wpk_hints_learn(&known, &next, &time));
        wpk_hints_tell(&known, n, n == 0 ? HUGE_VAL : log(hints[n].time_ns / ELSEWHERE));
    }
    for (const struct wpk_hint *hint; (hint = wpk_hints_learn(&known, &next, &time)) != NULL;) {
        assert_true(fabs(time - log(hint->time_ns / ELSEWHERE)) < 1e-9);
        learnt++;
    }
    assert_int_equal(learnt, HINTS - WPK_HINTS_ASKED);
    next = 0;
    assert_null(wpk_hints_learn(&known, &next, &time)); /* once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_are_asked_first),
        cmocka_unit_test(they_help),
        cmocka_unit_test(a_saved_search_goes_on_with_them),
        cmocka_unit_test(times_are_shifted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
