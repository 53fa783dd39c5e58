/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy that was saved and loaded goes on as if it had never stopped. */
#include "search/snapshot.h"

#include "search/strategy/strategies.h"
#include "tests/fake_space.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ASKS_MAX 12000

/* Those that learn a model take milliseconds an ask. */
static int asks_for(const struct wpk_strategy_class *kind, int asks)
{
    return wpk_test_share(kind->is_slow ? asks / 10 : asks);
}

static const struct wpk_strategy_setup setup; /* a loaded strategy has the seed of its text */

/* A strategy with everything it was asked so far. */
struct run {
    const struct wpk_strategy_class *kind;
    struct wpk_strategy *strategy;
    struct wpk_candidate *asked;
    int asked_count;
    int told_count;
    bool exhausted;
};

static void start(struct run *run, const struct wpk_strategy_class *kind,
                  const struct wpk_space *space, uint64_t seed)
{
    memset(run, 0, sizeof *run);
    run->kind = kind;
    run->asked = calloc(ASKS_MAX, sizeof *run->asked);
    assert_int_equal(wpk_strategy_make(run->kind, space, &(struct wpk_strategy_setup){.seed = seed},
                                       &run->strategy),
                     WPK_OK);
}

static void stop(struct run *run)
{
    wpk_strategy_free(run->strategy);
    free(run->asked);
}

static void tell_next(struct run *run, uint64_t landscape)
{
    const struct wpk_candidate *candidate = &run->asked[run->told_count++];
    double time = wpk_fake_space_time(landscape, candidate);
    struct wpk_tell tell = {.ok = time > 0, .relative = time > 0 ? time : 0};
    wpk_strategy_tell(run->strategy, &tell);
}

/* Until `asks` were asked, with `ahead` under way where the strategy lets us. */
static void go_on(struct run *run, uint64_t landscape, int asks, int ahead)
{
    while (run->asked_count < asks && !run->exhausted) {
        int filled = 0;
        if (run->asked_count - run->told_count < ahead) {
            wpk_err err =
                wpk_strategy_ask(run->strategy, 1, &run->asked[run->asked_count], &filled);
            run->exhausted = err == WPK_EEXHAUSTED;
            assert_true(err == WPK_OK || run->exhausted);
        }
        run->asked_count += filled;
        if (filled == 0 && run->told_count < run->asked_count) {
            tell_next(run, landscape);
        }
    }
}

/* Through text: the strategy is another object afterwards, and writes the same text. */
static size_t reload(struct run *run, const struct wpk_space *space)
{
    struct wpk_buf text = {0}, again = {0};
    assert_int_equal(wpk_strategy_save(run->strategy, &text), WPK_OK);
    assert_memory_equal(wpk_buf_text(&text), run->kind->version, strlen(run->kind->version));
    assert_null(strchr(wpk_buf_text(&text), '\n'));
    wpk_strategy_free(run->strategy);
    run->strategy = NULL;
    struct wpk_diag diag = {0};
    wpk_err err =
        wpk_strategy_load(run->kind, space, &setup, wpk_buf_text(&text), &run->strategy, &diag);
    if (err != WPK_OK) {
        fail_msg("%s after %d asks: %s", run->kind->name, run->asked_count, diag.text);
    }
    assert_int_equal(wpk_strategy_save(run->strategy, &again), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), wpk_buf_text(&again));
    size_t size = text.size;
    wpk_buf_fini(&text);
    wpk_buf_fini(&again);
    return size;
}

static void assert_same(const struct run *a, const struct run *b)
{
    assert_int_equal(a->asked_count, b->asked_count);
    for (int i = 0; i < a->asked_count; i++) {
        assert_true(wpk_candidate_equal(&a->asked[i], &b->asked[i]));
    }
}

static void make_space(struct wpk_space *space, int variants, int genes, int choices)
{
    struct wpk_fake_space_options options = {
        .variant_count = variants, .gene_count = genes, .choice_count = choices};
    assert_int_equal(wpk_fake_space_init(&options, space), WPK_OK);
}

/* Cut before the first ask, in generation 0, at its end, later; with few and many under way. */
static void goes_on_with_the_same_asks(void **state)
{
    (void)state;
    static const int shapes[][3] = {{1, 4, 8}, {8, 14, 8}, {3, 40, 5}, {32, 100, 20}};
    static const int cuts[] = {0, 1, 7, 8, 63, 64, 65, 200, 390};
    static const int aheads[] = {1, 16, 300};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        struct wpk_space space;
        make_space(&space, shapes[s][0], shapes[s][1], shapes[s][2]);
        for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
            if (s != 1 && wpk_strategy_at(n)->is_slow) {
                continue; /* minutes */
            }
            struct run whole;
            start(&whole, wpk_strategy_at(n), &space, 40 + s);
            int asks = asks_for(wpk_strategy_at(n), 400);
            go_on(&whole, s, asks, 1);
            size_t step = wpk_strategy_at(n)->is_slow ? 2 : 1; /* of what learns a model */
            for (size_t c = 0; c < sizeof cuts / sizeof cuts[0] && cuts[c] < asks; c += step) {
                struct run cut;
                start(&cut, wpk_strategy_at(n), &space, 40 + s);
                go_on(&cut, s, cuts[c], aheads[c % 3]);
                reload(&cut, &space);
                go_on(&cut, s, asks, aheads[(c + 1) % 3]);
                assert_same(&whole, &cut);
                stop(&cut);
            }
            stop(&whole);
        }
        wpk_space_fini(&space);
    }
}

/* Saved after each step: asks that are not told yet, tells that are not in the population yet. */
static void goes_on_from_anywhere(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space, 4, 10, 6);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct run whole, cut;
        start(&whole, wpk_strategy_at(n), &space, 9);
        start(&cut, wpk_strategy_at(n), &space, 9);
        int asks = asks_for(wpk_strategy_at(n), 200);
        go_on(&whole, 5, asks, 1);
        while (cut.asked_count < asks) {
            go_on(&cut, 5, cut.asked_count + 3, 24);
            reload(&cut, &space);
            for (int i = 0; i < 2 && cut.told_count < cut.asked_count; i++) {
                tell_next(&cut, 5);
            }
            reload(&cut, &space);
        }
        cut.asked_count = asks;
        assert_same(&whole, &cut);
        stop(&whole);
        stop(&cut);
    }
    wpk_space_fini(&space);
}

/* To the last point of a small space: the walk is part of the snapshot. */
static void walks_on(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space, 2, 5, 4);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct run whole, cut;
        start(&whole, wpk_strategy_at(n), &space, 3);
        start(&cut, wpk_strategy_at(n), &space, 3);
        go_on(&whole, 5, ASKS_MAX, 1);
        assert_true(whole.exhausted);
        for (int at = 40; !cut.exhausted; at += 7) {
            go_on(&cut, 5, at, 8);
            reload(&cut, &space);
        }
        go_on(&cut, 5, ASKS_MAX, 8);
        assert_same(&whole, &cut);
        stop(&whole);
        stop(&cut);
    }
    wpk_space_fini(&space);
}

/* Trials from history were never asked for, and are known all the same after a snapshot. */
static void keeps_what_history_told(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space, 4, 10, 6);
    struct run past, warm, cut;
    start(&past, wpk_strategy_find("random"), &space, 1);
    go_on(&past, 5, 100, 1);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        start(&warm, wpk_strategy_at(n), &space, 2);
        start(&cut, wpk_strategy_at(n), &space, 2);
        for (int i = 0; i < 100; i++) {
            double time = wpk_fake_space_time(5, &past.asked[i]);
            struct wpk_tell tell = {.ok = time > 0, .relative = time > 0 ? time : 0};
            wpk_strategy_learn(warm.strategy, &past.asked[i], &tell);
            wpk_strategy_learn(cut.strategy, &past.asked[i], &tell);
        }
        reload(&cut, &space);
        go_on(&warm, 5, asks_for(wpk_strategy_at(n), 200), 1);
        go_on(&cut, 5, asks_for(wpk_strategy_at(n), 200), 1);
        assert_same(&warm, &cut);
        stop(&warm);
        stop(&cut);
    }
    stop(&past);
    wpk_space_fini(&space);
}

/* 100 live searches of 10,000 asks are to fit a restart of two seconds and a batch of a few MB. */
static void stays_small(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space, 8, 40, 8);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct run run;
        start(&run, wpk_strategy_at(n), &space, 1);
        int asks = asks_for(wpk_strategy_at(n), 10000) / (wpk_strategy_at(n)->is_slow ? 10 : 1);
        go_on(&run, 5, asks, 16);
        size_t size = reload(&run, &space);
        print_message("%s: %zu bytes after %d asks\n", wpk_strategy_at(n)->name, size, asks);
        assert_true(size < 150000);
        stop(&run);
    }
    wpk_space_fini(&space);
}

static void refuses_what_is_not_its_own(void **state)
{
    (void)state;
    struct wpk_space space, other;
    make_space(&space, 4, 10, 6);
    make_space(&other, 4, 10, 7);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct run run;
        struct wpk_strategy *loaded = NULL;
        struct wpk_diag diag = {0};
        struct wpk_buf text = {0};
        start(&run, wpk_strategy_at(n), &space, 1);
        go_on(&run, 5, 30, 8);
        assert_int_equal(wpk_strategy_save(run.strategy, &text), WPK_OK);
        const char *saved = wpk_buf_text(&text);
        assert_int_equal(wpk_strategy_load(run.kind, &other, &setup, saved, &loaded, &diag),
                         WPK_EMISMATCH);
        assert_non_null(strstr(diag.text, "another space"));
        const struct wpk_strategy_class *other_class = wpk_strategy_at(n == 0 ? 1 : 0);
        assert_int_equal(wpk_strategy_load(other_class, &space, &setup, saved, &loaded, NULL),
                         WPK_EMISMATCH);
        assert_int_equal(wpk_strategy_load(run.kind, &space, &setup, "", &loaded, NULL),
                         WPK_EMISMATCH);
        assert_int_equal(wpk_strategy_load(run.kind, &space, &setup, "ga-10 x", &loaded, NULL),
                         WPK_EMISMATCH);
        assert_null(loaded);
        wpk_buf_fini(&text);
        stop(&run);
    }
    wpk_space_fini(&space);
    wpk_space_fini(&other);
}

/* Cut anywhere it is refused; with any byte changed it is refused, or loads and can be used. */
static void survives_damage(void **state)
{
    (void)state;
    struct wpk_space space;
    make_space(&space, 4, 10, 6);
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        struct run run;
        struct wpk_buf text = {0};
        start(&run, wpk_strategy_at(n), &space, 1);
        go_on(&run, 5, 40, 8);
        assert_int_equal(wpk_strategy_save(run.strategy, &text), WPK_OK);
        size_t step = wpk_strategy_at(n)->is_slow ? 397 : (size_t)(4 / wpk_test_share(4));
        for (size_t at = 0; at < text.size; at += step) {
            struct wpk_strategy *loaded = NULL;
            char was = text.data[at];
            text.data[at] = '\0';
            assert_int_not_equal(
                wpk_strategy_load(run.kind, &space, &setup, text.data, &loaded, NULL), WPK_OK);
            assert_null(loaded);
            text.data[at] = "9f: -"[at % 5];
            if (wpk_strategy_load(run.kind, &space, &setup, text.data, &loaded, NULL) == WPK_OK) {
                struct wpk_candidate candidates[4];
                int filled = 0;
                wpk_err err = wpk_strategy_ask(loaded, 4, candidates, &filled);
                assert_true(err == WPK_OK || err == WPK_EEXHAUSTED);
                wpk_strategy_free(loaded);
            }
            text.data[at] = was;
        }
        wpk_buf_fini(&text);
        stop(&run);
    }
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_with_the_same_asks),
        cmocka_unit_test(goes_on_from_anywhere),
        cmocka_unit_test(walks_on),
        cmocka_unit_test(keeps_what_history_told),
        cmocka_unit_test(stays_small),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_what_is_not_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
