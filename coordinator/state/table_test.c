/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table and the heap of timers against plain arrays, over random operations. */
#include "coordinator/state/table.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS 300
#define ROUNDS 20000

static void numbers_are_found(void **state)
{
    (void)state;
    struct wpk_table table = {0};
    struct wpk_rng rng;
    bool there[KEYS] = {false};
    int values[KEYS];
    uint32_t count = 0;
    wpk_rng_seed(&rng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        /* Half of them count up, half share their lower bits. */
        uint64_t k = wpk_rng_below(&rng, KEYS);
        uint64_t key = k % 2 == 0 ? k : k << 40;
        assert_ptr_equal(wpk_table_get(&table, key), there[k] ? &values[k] : NULL);
        if (there[k]) {
            assert_ptr_equal(wpk_table_take(&table, key), &values[k]);
            count--;
        } else {
            assert_null(wpk_table_take(&table, key));
            wpk_table_put(&table, key, &values[k]);
            count++;
        }
        there[k] = !there[k];
        assert_int_equal(table.count, count);
    }
    for (uint64_t k = 0; k < KEYS; k++) {
        uint64_t key = k % 2 == 0 ? k : k << 40;
        assert_ptr_equal(wpk_table_get(&table, key), there[k] ? &values[k] : NULL);
    }
    wpk_table_fini(&table);
    assert_null(wpk_table_get(&table, 1));
}

static void texts_are_found(void **state)
{
    (void)state;
    struct wpk_table table = {0};
    char texts[KEYS][8];
    assert_null(wpk_table_get_text(&table, "a"));
    for (int i = 0; i < KEYS; i++) {
        snprintf(texts[i], sizeof texts[i], "t%d", i);
        wpk_table_put_text(&table, texts[i], texts[i]);
    }
    for (int i = 0; i < KEYS; i += 2) {
        char same[8];
        snprintf(same, sizeof same, "t%d", i);
        assert_ptr_equal(wpk_table_take_text(&table, same), texts[i]);
    }
    for (int i = 0; i < KEYS; i++) {
        assert_ptr_equal(wpk_table_get_text(&table, texts[i]), i % 2 == 0 ? NULL : texts[i]);
    }
    wpk_table_fini(&table);
}

static void timers_come_in_order(void **state)
{
    (void)state;
    struct wpk_timers timers = {0};
    struct wpk_timer items[KEYS] = {{0}};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 2);
    for (int round = 0; round < ROUNDS; round++) {
        struct wpk_timer *timer = &items[wpk_rng_below(&rng, KEYS)];
        if (wpk_rng_chance(&rng, 0.3)) {
            wpk_timer_cancel(&timers, timer);
            assert_int_equal(timer->place, 0);
        } else {
            wpk_timer_set(&timers, timer, wpk_rng_below(&rng, 1000));
        }
    }
    uint32_t set = 0;
    for (int i = 0; i < KEYS; i++) {
        set += items[i].place != 0;
    }
    assert_int_equal(timers.count, set);
    uint64_t last = 0;
    for (struct wpk_timer *timer; (timer = wpk_timers_next(&timers, 500)) != NULL; set--) {
        assert_true(timer->due_ns >= last && timer->due_ns <= 500);
        last = timer->due_ns;
    }
    for (int i = 0; i < KEYS; i++) {
        assert_true(items[i].place == 0 || items[i].due_ns > 500);
    }
    assert_int_equal(timers.count, set);
    wpk_timers_fini(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_found),
        cmocka_unit_test(texts_are_found),
        cmocka_unit_test(timers_come_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
