/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model/prior.h"

#include "search/strategy/model.h"
#include "search/strategy/seen.h"
#include "tests/fake_space.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TAUGHT 200
#define LANDSCAPES 3
#define SEEDS 2
#define ASKS 40

static struct wpk_space space;
static struct wpk_course_trial trials[LANDSCAPES][TAUGHT];
static struct wpk_lesson lessons[LANDSCAPES];
static struct wpk_prior taught; /* by the first lesson */

/* Draw trials of each landscape; `sign` -1 makes the fastest the slowest. */
static void draw(double sign, int skip)
{
    for (uint64_t s = 0; s < LANDSCAPES; s++) {
        struct wpk_rng rng;
        wpk_rng_seed(&rng, s + 1);
        lessons[s] = (struct wpk_lesson){&space, trials[s], 0};
        for (int i = 0; i < skip + TAUGHT; i++) {
            struct wpk_course_trial *one = &trials[s][i < skip ? 0 : i - skip];
            assert_int_equal(wpk_space_draw(&space, &rng, &one->candidate), WPK_OK);
            double time = wpk_fake_space_time(s, &one->candidate);
            one->tell = (struct wpk_tell){.ok = time > 0, .relative = time};
            one->time = time > 0 ? sign * log(time) : HUGE_VAL;
            one->tell.relative = time > 0 ? exp(one->time) : 0;
        }
        lessons[s].count = TAUGHT;
    }
}

static int teach(void **state)
{
    const struct wpk_fake_space_options options = {
        .variant_count = 8, .gene_count = 14, .choice_count = 8};
    (void)state;
    assert_int_equal(wpk_fake_space_init(&options, &space), WPK_OK);
    draw(1, 0);
    return wpk_prior_teach(lessons, 1, &taught) == WPK_OK ? 0 : -1;
}

static int free_space(void **state)
{
    (void)state;
    wpk_space_fini(&space);
    return 0;
}

/* The log of auto's best on a landscape after so many trials. */
static double search(uint64_t landscape, uint64_t seed, const struct wpk_prior *prior,
                     int trial_count)
{
    const struct wpk_strategy_setup setup = {.seed = seed, .prior = prior};
    struct wpk_strategy *strategy = NULL;
    struct wpk_candidate asked[256];
    int count = 0, told = 0, filled;
    double best = HUGE_VAL;
    assert_int_equal(wpk_strategy_make(wpk_strategy_find("auto"), &space, &setup, &strategy),
                     WPK_OK);
    while (told < trial_count) {
        filled = 0;
        if (count < trial_count) {
            assert_int_equal(wpk_strategy_ask(strategy, 1, &asked[count], &filled), WPK_OK);
        }
        count += filled;
        if (filled == 0) {
            double time = wpk_fake_space_time(landscape, &asked[told++]);
            best = time > 0 ? fmin(best, time) : best;
            wpk_strategy_tell(strategy, &(struct wpk_tell){.ok = time > 0, .relative = time});
        }
    }
    wpk_strategy_free(strategy);
    return log(best);
}

static void text_comes_back_and_others_are_refused(void **state)
{
    struct wpk_prior *read = NULL;
    struct wpk_buf text = {0}, again = {0};
    struct wpk_diag diag = {0};
    (void)state;
    assert_int_equal(wpk_prior_encode(&taught, &text), WPK_OK);
    assert_true(text.size < WPK_PRIOR_SIZE_MAX);
    assert_int_equal(wpk_prior_decode(wpk_buf_text(&text), &read, &diag), WPK_OK);
    assert_int_equal(wpk_prior_encode(read, &again), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), wpk_buf_text(&again));
    free(read);

    char *cut = strdup(wpk_buf_text(&text));
    cut[text.size - 2] = '\0';
    assert_int_equal(wpk_prior_decode(cut, &read, &diag), WPK_EPARSE);
    assert_non_null(strstr(diag.text, "damaged"));
    free(cut);
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_prior_decode("wpk-prior-1 cpu-0 44 0", &read, &diag), WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "\"wpk-prior-1 cpu-0\""));
    assert_non_null(strstr(diag.text, WPK_SPACE_VERSION));
    assert_int_equal(wpk_prior_decode("{}", &read, &diag), WPK_EPARSE);
    wpk_buf_fini(&text);
    wpk_buf_fini(&again);
}

/* Trials that were not taught are ranked right, by what was taught of the same landscape. */
static void teaches_what_is_fast(void **state)
{
    double pairs = 0, right = 0;
    (void)state;
    draw(1, TAUGHT);
    wpk_prior_judge(&taught.trees, &lessons[0], &pairs, &right);
    print_message("%.3f of the pairs are right\n", right / pairs);
    assert_true(right / pairs > 0.75);
}

/* With 24 trials a search that was taught finds faster candidates than one that begins cold; a
 * prior of the opposite is dropped, and never costs more than a tenth after 64 trials. */
static void helps_and_does_no_harm(void **state)
{
    static struct wpk_prior helpful, misleading;
    double gained = 0, lost = 0;
    (void)state;
    for (uint64_t s = 0; s < LANDSCAPES; s++) {
        draw(1, 0);
        assert_int_equal(wpk_cost_model_teach(&lessons[s], 1, &helpful.trees), WPK_OK);
        draw(-1, 0);
        assert_int_equal(wpk_cost_model_teach(&lessons[s], 1, &misleading.trees), WPK_OK);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            gained += search(s, seed, NULL, 24) - search(s, seed, &helpful, 24);
            lost += search(s, seed, &misleading, 64) - search(s, seed, NULL, 64);
        }
    }
    gained = exp(gained / LANDSCAPES / SEEDS);
    lost = exp(lost / LANDSCAPES / SEEDS);
    print_message("gained %.3f, lost %.3f\n", gained, lost);
    assert_true(gained > 1.1);
    assert_true(lost < 1.1);
}

/* The policy changes the draws, although variants have as many operations as real ones. */
static void rl_begins_with_its_policy(void **state)
{
    static struct wpk_prior prior;
    struct wpk_strategy *strategy = NULL, *cold = NULL;
    const struct wpk_strategy_setup setup = {.seed = 5, .prior = &prior}, none = {.seed = 5};
    struct wpk_candidate asked[ASKS], other[ASKS];
    int filled = 0, same = 0;
    (void)state;
    draw(1, 0);
    lessons[0].count = lessons[1].count = 40;
    for (int v = 0; v < space.variant_count; v++) {
        space.variants[v].operations = 1e8;
    }
    assert_int_equal(wpk_prior_teach(lessons, 2, &prior), WPK_OK);
    assert_int_equal(wpk_strategy_make(wpk_strategy_find("rl"), &space, &setup, &strategy), WPK_OK);
    assert_memory_equal(wpk_strategy_policy(strategy)->weight, prior.policy.weight,
                        sizeof(prior.policy.weight));
    assert_int_equal(wpk_strategy_make(wpk_strategy_find("rl"), &space, &none, &cold), WPK_OK);
    for (int told = 0, count = 0; count < ASKS; count += filled) {
        assert_int_equal(wpk_strategy_ask(strategy, ASKS - count, asked + count, &filled), WPK_OK);
        assert_int_equal(wpk_strategy_ask(cold, ASKS - count, other + count, &filled), WPK_OK);
        for (; told < count + filled; told++) {
            wpk_strategy_tell(strategy, &(struct wpk_tell){.ok = false});
            wpk_strategy_tell(cold, &(struct wpk_tell){.ok = false});
            same += wpk_candidate_equal(&asked[told], &other[told]);
        }
    }
    print_message("%d of %d asks are the same\n", same, ASKS);
    assert_true(same < ASKS);
    wpk_strategy_free(strategy);
    wpk_strategy_free(cold);
    assert_true(wpk_strategy_find("rl")->takes_prior);
    assert_false(wpk_strategy_find("ga")->takes_prior);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back_and_others_are_refused),
        cmocka_unit_test(teaches_what_is_fast),
        cmocka_unit_test(helps_and_does_no_harm),
        cmocka_unit_test(rl_begins_with_its_policy),
    };
    return cmocka_run_group_tests(tests, teach, free_space);
}
