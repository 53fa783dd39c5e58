/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite of strategies: every class of WPK_STRATEGY_LIST asks for legal candidates,
 * each once; its asks follow from its seed and the results; it stands failures of memory; and it
 * searches better than random draws, if it learns. search/snapshot_test.c holds all of them to what
 * saving and loading promise. */
#include "search/strategy/strategies.h"

#include "tests/fake_space.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Those that learn a model take milliseconds an ask. */
static int asks_for(const struct wpk_strategy_class *kind, int asks)
{
    return kind->is_slow ? asks / 16 : asks;
}

#define TOLD 120 /* by a history */
#define TRIALS 200
#define SPACES 12

/* So many calls until one fails for want of memory; 0: none does. */
static int calls_left;
static int failures;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
wpk_err __real_wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *out);
wpk_err __wrap_wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *out);
const struct wpk_variant *__real_wpk_space_variant(const struct wpk_space *space, int variant);
const struct wpk_variant *__wrap_wpk_space_variant(const struct wpk_space *space, int variant);
wpk_err __wrap_wpk_space_variant_error(const struct wpk_space *space, int variant);

static bool fails(void)
{
    bool now = calls_left > 0 && --calls_left == 0;
    failures += now;
    return now;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

wpk_err __wrap_wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *out)
{
    wpk_err err = __real_wpk_space_draw(space, rng, out);
    return fails() ? WPK_ENOMEM : err;
}

const struct wpk_variant *__wrap_wpk_space_variant(const struct wpk_space *space, int variant)
{
    return fails() ? NULL : __real_wpk_space_variant(space, variant);
}

wpk_err __wrap_wpk_space_variant_error(const struct wpk_space *space, int variant)
{
    (void)space;
    (void)variant;
    return WPK_ENOMEM;
}

struct run {
    struct wpk_candidate asked[4096];
    const char *source[4096];
    int asked_count;
    double best;
};

static struct wpk_tell tell_for(uint64_t seed, const struct wpk_candidate *candidate)
{
    double time = wpk_fake_space_time(seed, candidate);
    struct wpk_tell tell = {.ok = time > 0, .relative = time > 0 ? time : 0};
    return tell;
}

/* The number of first calls of an ask of which one fails, and the ask is repeated; 0: none. */
static int calls_of_asks;

/* Ask up to `batch` at a time, with up to `ahead` under way, and tell in order. */
static void search(const struct wpk_strategy_class *kind, const struct wpk_space *space,
                   uint64_t landscape, uint64_t seed, int trials, int batch, int ahead,
                   struct run *run)
{
    struct wpk_strategy *strategy = NULL;
    assert_int_equal(
        wpk_strategy_make(kind, space, &(struct wpk_strategy_setup){.seed = seed}, &strategy),
        WPK_OK);
    run->asked_count = 0;
    run->best = HUGE_VAL;
    int told = 0;
    while (told < trials) {
        int want = trials - run->asked_count;
        want = want < batch ? want : batch;
        int filled = 0;
        if (run->asked_count - told < ahead && want > 0) {
            calls_left = calls_of_asks > 0 ? 1 + run->asked_count % calls_of_asks : 0;
            wpk_err err = wpk_strategy_ask(strategy, want, run->asked + run->asked_count, &filled);
            calls_left = 0;
            if (err == WPK_ENOMEM) {
                err = wpk_strategy_ask(strategy, want, run->asked + run->asked_count, &filled);
            }
            if (err != WPK_OK) {
                assert_int_equal(err, WPK_EEXHAUSTED);
                trials = run->asked_count;
            }
        }
        for (int i = 0; i < filled; i++) {
            run->source[run->asked_count] =
                wpk_strategy_source(strategy, (uint64_t)run->asked_count);
            run->asked_count++;
        }
        if (filled == 0 && told < run->asked_count) {
            struct wpk_tell tell = tell_for(landscape, &run->asked[told]);
            run->best = tell.ok && tell.relative < run->best ? tell.relative : run->best;
            wpk_strategy_tell(strategy, &tell);
            told++;
        }
    }
    wpk_strategy_free(strategy);
}

static void make_space(struct wpk_space *space)
{
    struct wpk_fake_space_options options = {
        .variant_count = 8, .gene_count = 14, .choice_count = 8};
    assert_int_equal(wpk_fake_space_init(&options, space), WPK_OK);
}

static void never_twice_and_always_legal(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space);
    struct run *run = calloc(1, sizeof *run);

    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        search(kind, &space, 3, 1, asks_for(kind, 1000), 7, 20, run);
        assert_int_equal(run->asked_count, asks_for(kind, 1000));
        for (int i = 0; i < run->asked_count; i++) {
            assert_true(wpk_space_is_legal(&space, &run->asked[i]));
            for (int j = 0; j < i; j++) {
                assert_false(wpk_candidate_equal(&run->asked[i], &run->asked[j]));
            }
        }
    }
    free(run);
    wpk_space_fini(&space);
}

/* However asks are batched and however far they run ahead: the same asks. */
static void asks_depend_on_seed_and_results_only(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space);
    struct run *one = calloc(1, sizeof *one);
    struct run *other = calloc(1, sizeof *other);

    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        int asks = 40 + asks_for(kind, 360);
        search(kind, &space, 3, 42, asks, 1, 1, one);
        search(kind, &space, 3, 42, asks, 16, 1000, other);
        assert_int_equal(one->asked_count, other->asked_count);
        for (int i = 0; i < one->asked_count; i++) {
            assert_true(wpk_candidate_equal(&one->asked[i], &other->asked[i]));
        }
        search(kind, &space, 3, 43, asks, 16, 1000, other);
        assert_true((kind->first > 0 && kind->propose == NULL) || /* construction draws nothing */

                    !wpk_candidate_equal(&one->asked[asks - 1], &other->asked[asks - 1]));
    }
    free(one);
    free(other);
    wpk_space_fini(&space);
}

/* A search that is made anew asks for the same: it knows nothing of asks that failed. */
static void asks_that_fail_leave_no_trace(void **state)
{
    (void)state;
    struct wpk_space space;
    const struct wpk_fake_space_options options = {
        .variant_count = 4, .gene_count = 6, .choice_count = 5};
    assert_int_equal(wpk_fake_space_init(&options, &space), WPK_OK);
    struct run *one = calloc(1, sizeof *one);
    struct run *other = calloc(1, sizeof *other);

    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        int asks = asks_for(kind, 2000);
        search(kind, &space, 3, 42, asks, 4, 20, one);
        failures = 0;
        calls_of_asks = 17;
        search(kind, &space, 3, 42, asks, 4, 20, other);
        calls_of_asks = 0;
        assert_true(failures > 10);
        assert_int_equal(one->asked_count, other->asked_count);
        for (int i = 0; i < one->asked_count; i++) {
            assert_true(wpk_candidate_equal(&one->asked[i], &other->asked[i]));
        }
    }
    free(one);
    free(other);
    wpk_space_fini(&space);
}

/* Ask until the space is exhausted, tell at once, and save.   shape  returns how many were asked */
static int exhaust(const struct wpk_strategy_class *kind, const struct wpk_space *space, int batch,
                   struct wpk_buf *out)
{
    struct wpk_strategy *strategy = NULL;
    struct wpk_candidate asked[7];
    int count = 0, filled = 0;
    assert_int_equal(
        wpk_strategy_make(kind, space, &(struct wpk_strategy_setup){.seed = 1}, &strategy), WPK_OK);
    while (wpk_strategy_ask(strategy, batch, asked, &filled) == WPK_OK) {
        for (int i = 0; i < filled; i++) {
            struct wpk_tell tell = tell_for(3, &asked[i]);
            wpk_strategy_tell(strategy, &tell);
        }
        count += filled;
    }
    assert_int_equal(wpk_strategy_save(strategy, out), WPK_OK);
    wpk_strategy_free(strategy);
    return count;
}

/* An ask that fills a part of its batch did not try the next one. */
static void exhaustion_does_not_depend_on_batches(void **state)
{
    (void)state;
    struct wpk_space space;
    const struct wpk_fake_space_options options = {
        .variant_count = 2, .gene_count = 4, .choice_count = 4};

    assert_int_equal(wpk_fake_space_init(&options, &space), WPK_OK);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        struct wpk_buf one = {0}, other = {0};
        int count = exhaust(kind, &space, 1, &one);
        assert_true(count % 7 != 0);
        assert_int_equal(exhaust(kind, &space, 7, &other), count);
        assert_string_equal(wpk_buf_text(&one), wpk_buf_text(&other));
        wpk_buf_fini(&one);
        wpk_buf_fini(&other);
    }
    wpk_space_fini(&space);
}

static void a_small_space_is_searched_whole(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_fake_space_options options = {
        .variant_count = 2, .gene_count = 5, .choice_count = 4};
    assert_int_equal(wpk_fake_space_init(&options, &space), WPK_OK);
    int legal = 0;
    for (int v = 0; v < 2; v++) {
        struct wpk_candidate c = {.variant = v, .gene_count = 5};
        const struct wpk_gene *genes = space.variants[v].genes;
        for (c.gene[0] = 0; c.gene[0] < genes[0].choice_count; c.gene[0]++) {
            for (c.gene[1] = 0; c.gene[1] < genes[1].choice_count; c.gene[1]++) {
                for (c.gene[2] = 0; c.gene[2] < genes[2].choice_count; c.gene[2]++) {
                    for (c.gene[3] = 0; c.gene[3] < genes[3].choice_count; c.gene[3]++) {
                        for (c.gene[4] = 0; c.gene[4] < genes[4].choice_count; c.gene[4]++) {
                            legal += wpk_space_is_legal(&space, &c);
                        }
                    }
                }
            }
        }
    }
    struct run *run = calloc(1, sizeof *run);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        if (!wpk_strategy_at(n)->is_slow) {
            search(wpk_strategy_at(n), &space, 5, 1, 4000, 8, 24, run);
            assert_int_equal(run->asked_count, legal);
        }
    }
    free(run);
    wpk_space_fini(&space);
}

/* The point of it all: the best after 200 trials, as geometric mean over landscapes. A strategy
 * that is replaced by random search comes to 1. */
static void each_beats_random(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double least;
        uint64_t spaces;
    } wanted[] = {{"auto", 1.5, 4},       {"ga", 1.4, SPACES}, {"anneal", 1.3, SPACES},
                  {"mcmc", 1.15, SPACES}, {"bayes", 1.1, 4},   {"", 1.05, 2}}; /* any other */
    const struct wpk_strategy_class *random = wpk_strategy_find("random");
    struct wpk_space space;
    make_space(&space);
    struct run *run = calloc(1, sizeof *run);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        double sum = 0;
        size_t w = 0;
        if (kind->propose == NULL) {
            continue; /* it learns nothing */
        }
        while (wanted[w].name[0] != '\0' && strcmp(wanted[w].name, kind->name) != 0) {
            w++;
        }
        for (uint64_t s = 0; s < wanted[w].spaces; s++) {
            search(kind, &space, s, 1, TRIALS, 8, 24, run);
            double own = run->best;
            search(random, &space, s, 1, TRIALS, 8, 24, run);
            sum += log(run->best / own);
        }
        double ratio = exp(sum / (double)wanted[w].spaces);
        print_message("best after %d trials: random / %s = %.3f in %d spaces\n", TRIALS, kind->name,
                      ratio, (int)wanted[w].spaces);
        assert_true(ratio > wanted[w].least);
    }
    free(run);
    wpk_space_fini(&space);
}

static void each_candidate_has_its_source(void **state)
{
    (void)state;
    static const struct {
        const char *name, *first, *later;
    } wanted[] = {{"random", "drawn", "drawn"},
                  {"construct", "constructed", "drawn"},
                  {"ga", "constructed", "proposed"},
                  {"auto", "constructed", "neighbour"}};
    struct wpk_space space;
    make_space(&space);
    struct run *run = calloc(1, sizeof *run);
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        bool found = false;
        search(wpk_strategy_find(wanted[n].name), &space, 1, 1, 128, 4, 16, run);
        assert_string_equal(run->source[0], wanted[n].first);
        for (int i = 1; i < run->asked_count; i++) {
            found = found || strcmp(run->source[i], wanted[n].later) == 0;
        }
        assert_true(found);
    }
    free(run);
    wpk_space_fini(&space);
}

/* Schedules of the same shape come first, then a constructed one, then those of other shapes; each
 * once. Other strategies take none. */
static void schedules_of_relatives(void **state)
{
    (void)state;
    static const struct {
        const char *name, *options;
        int order[4]; /* of relatives, -1: constructed */
    } wanted[] = {{"nearest", "", {0, 1, -1, 2}},
                  {"nearest", "nearest.constructed=0", {0, 1, 2, -1}},
                  {"construct", "", {-1, -1, -1, -1}}};
    struct wpk_space space;
    struct wpk_candidate relatives[4], constructed[4], asked[4];
    struct wpk_rng rng;
    int count = 0;
    make_space(&space);
    wpk_rng_seed(&rng, 11);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_space_draw(&space, &rng, &relatives[i]), WPK_OK);
    }
    relatives[3] = relatives[0];
    assert_int_equal(wpk_space_construct(&space, constructed, 4, &count), WPK_OK);
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        const struct wpk_strategy_setup with = {.seed = 1,
                                                .options = wanted[n].options,
                                                .relatives = relatives,
                                                .relative_count = 4,
                                                .twin_count = 2};
        struct wpk_strategy *strategy = NULL;
        int filled = 0, next = 0;
        assert_int_equal(
            wpk_strategy_make(wpk_strategy_find(wanted[n].name), &space, &with, &strategy), WPK_OK);
        assert_int_equal(wpk_strategy_ask(strategy, 4, asked, &filled), WPK_OK);
        assert_int_equal(filled, 4);
        for (int i = 0; i < 4; i++) {
            int k = wanted[n].order[i];
            assert_true(
                wpk_candidate_equal(&asked[i], k < 0 ? &constructed[next++] : &relatives[k]));
            assert_string_equal(wpk_strategy_source(strategy, (uint64_t)i),
                                k < 0 ? "constructed" : "history");
        }
        wpk_strategy_free(strategy);
    }
    wpk_space_fini(&space);
}

/* Candidates in the history are not asked for again. */
static void history_counts_as_seen(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space);
    struct run *run = calloc(1, sizeof *run);
    search(wpk_strategy_find("ga"), &space, 3, 7, TOLD, 8, 24, run);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct wpk_strategy *strategy = NULL;
        struct wpk_candidate fresh[64];
        int filled = 0;
        assert_int_equal(wpk_strategy_make(wpk_strategy_at(n), &space,
                                           &(struct wpk_strategy_setup){.seed = 8}, &strategy),
                         WPK_OK);
        for (int i = 0; i < TOLD; i++) {
            struct wpk_tell tell = tell_for(3, &run->asked[i]);
            wpk_strategy_learn(strategy, &run->asked[i], &tell);
        }
        assert_int_equal(wpk_strategy_ask(strategy, 64, fresh, &filled), WPK_OK);
        assert_true(filled > 0);
        for (int i = 0; i < filled; i++) {
            for (int j = 0; j < TOLD; j++) {
                assert_false(wpk_candidate_equal(&fresh[i], &run->asked[j]));
            }
        }
        wpk_strategy_free(strategy);
    }
    free(run);
    wpk_space_fini(&space);
}

/* Names, which messages list, lead to their classes, and no two are equal. */
static void test_names(void **state)
{
    char listed[256] = "";
    (void)state;
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        size_t used = strlen(listed);
        assert_ptr_equal(wpk_strategy_find(kind->name), kind);
        assert_memory_equal(kind->version, kind->name, strlen(kind->name));
        assert_true(kind->summary[0] != '\0');
        snprintf(listed + used, sizeof(listed) - used, "%s%s", n == 0 ? "" : ", ", kind->name);
    }
    assert_string_equal(wpk_strategy_names(), listed);
    assert_null(wpk_strategy_find("astrology"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(never_twice_and_always_legal),
        cmocka_unit_test(asks_depend_on_seed_and_results_only),
        cmocka_unit_test(asks_that_fail_leave_no_trace),
        cmocka_unit_test(exhaustion_does_not_depend_on_batches),
        cmocka_unit_test(a_small_space_is_searched_whole),
        cmocka_unit_test(each_candidate_has_its_source),
        cmocka_unit_test(schedules_of_relatives),
        cmocka_unit_test(history_counts_as_seen),
        cmocka_unit_test(each_beats_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
