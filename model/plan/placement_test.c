/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/assemble.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VALUES 60
#define STEPS 40

/* A chain, in which only neighbours live together, needs the largest pair. */
static void test_chain(void **state)
{
    struct wpk_placement list[] = {{.size = 256, .first = 0, .last = 1},
                                   {.size = 128, .first = 1, .last = 2},
                                   {.size = 256, .first = 2, .last = 3},
                                   {.size = 64, .first = 3, .last = 3}};
    int64_t size = -1;

    (void)state;
    wpk_placement_solve(list, 4, &size);
    assert_int_equal(size, 384);
    wpk_placement_solve(list, 0, &size);
    assert_int_equal(size, 0);
}

static int64_t sum_at(const struct wpk_placement *list, int step)
{
    int64_t sum = 0;

    for (int i = 0; i < VALUES; i++) {
        sum += list[i].first <= step && step <= list[i].last ? list[i].size : 0;
    }
    return sum;
}

/* Random lifetimes: nothing that lives together overlaps, and little is wasted. */
static void test_random(void **state)
{
    struct wpk_rng rng;
    struct wpk_placement list[VALUES];

    (void)state;
    wpk_rng_seed(&rng, 5);
    for (int trial = 0; trial < 200; trial++) {
        int64_t size = 0;
        int64_t largest = 0;
        for (int i = 0; i < VALUES; i++) {
            int first = (int)(wpk_rng_next(&rng) % STEPS);
            list[i] = (struct wpk_placement){
                .size = 64 * (int64_t)(1 + wpk_rng_next(&rng) % 30),
                .first = first,
                .last = first + (int)(wpk_rng_next(&rng) % 6),
            };
        }
        wpk_placement_solve(list, VALUES, &size);
        for (int i = 0; i < VALUES; i++) {
            assert_true(list[i].offset >= 0 && list[i].offset + list[i].size <= size);
            for (int k = 0; k < i; k++) {
                bool together = list[i].first <= list[k].last && list[k].first <= list[i].last;
                bool apart = list[i].offset + list[i].size <= list[k].offset ||
                             list[k].offset + list[k].size <= list[i].offset;
                assert_true(apart || !together);
            }
        }
        for (int step = 0; step < STEPS + 6; step++) {
            int64_t sum = sum_at(list, step);
            largest = sum > largest ? sum : largest;
        }
        assert_true(size <= largest * 3 / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
