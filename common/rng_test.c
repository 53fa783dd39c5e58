/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_known_sequence(void **state)
{
    (void)state;
    /* From an implementation in another language, written from the paper. */
    static const uint64_t expected[] = {
        UINT64_C(0x99ec5f36cb75f2b4),
        UINT64_C(0xbf6e1f784956452a),
        UINT64_C(0x1a5f849d4933e6e0),
        UINT64_C(0x6aa594f1262d2d2c),
    };
    struct wpk_rng rng;

    wpk_rng_seed(&rng, 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(wpk_rng_next(&rng) == expected[i]);
    }
}

static void test_below_is_bounded_and_even(void **state)
{
    (void)state;
    struct wpk_rng rng;
    unsigned counts[7] = {0};

    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 70000; i++) {
        uint64_t drawn = wpk_rng_below(&rng, 7);
        assert_true(drawn < 7);
        counts[drawn]++;
    }
    /* 10000 each; the standard deviation is 93, so five of them. */
    for (int i = 0; i < 7; i++) {
        assert_in_range(counts[i], 9535, 10465);
    }
    for (int i = 0; i < 100; i++) {
        assert_true(wpk_rng_below(&rng, 1) == 0);
    }
}

static void test_below_is_unbiased_for_large_bounds(void **state)
{
    (void)state;
    struct wpk_rng rng;
    unsigned low = 0;

    /* 2^64 draws on 3 * 2^62 results: without drawing again, every third result would come twice
     * as often as the others, 4500 times here. The standard deviation of 3000 is 45. */
    wpk_rng_seed(&rng, 2);
    for (int i = 0; i < 9000; i++) {
        uint64_t drawn = wpk_rng_below(&rng, UINT64_C(3) << 62);
        assert_true(drawn < UINT64_C(3) << 62);
        low += drawn % 3 == 0;
    }
    assert_in_range(low, 2770, 3230);
}

static void test_between_takes_both_ends(void **state)
{
    (void)state;
    struct wpk_rng rng;
    bool seen[5] = {false};

    wpk_rng_seed(&rng, 3);
    for (int i = 0; i < 200; i++) {
        int64_t drawn = wpk_rng_between(&rng, -2, 2);
        assert_true(drawn >= -2 && drawn <= 2);
        seen[drawn + 2] = true;
    }
    for (int i = 0; i < 5; i++) {
        assert_true(seen[i]);
    }
    (void)wpk_rng_between(&rng, INT64_MIN, INT64_MAX);
    assert_true(wpk_rng_between(&rng, INT64_MAX, INT64_MAX) == INT64_MAX);
}

static void test_unit_and_chance(void **state)
{
    (void)state;
    struct wpk_rng rng;
    double sum = 0;
    int hits = 0;

    wpk_rng_seed(&rng, 4);
    for (int i = 0; i < 10000; i++) {
        double x = wpk_rng_unit(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
        hits += wpk_rng_chance(&rng, 0.25);
        assert_false(wpk_rng_chance(&rng, 0));
        assert_true(wpk_rng_chance(&rng, 1));
    }
    assert_true(sum > 4850 && sum < 5150);
    assert_in_range(hits, 2280, 2720);
}

static void test_forks_and_copies(void **state)
{
    (void)state;
    struct wpk_rng parent;
    struct wpk_rng child;

    wpk_rng_seed(&parent, 5);
    wpk_rng_fork(&parent, &child);
    struct wpk_rng copy = parent;
    for (int i = 0; i < 10; i++) {
        (void)wpk_rng_next(&child);
    }
    uint64_t next = wpk_rng_next(&parent);
    assert_true(wpk_rng_next(&copy) == next);
    assert_true(wpk_rng_next(&child) != wpk_rng_next(&parent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_sequence),
        cmocka_unit_test(test_below_is_bounded_and_even),
        cmocka_unit_test(test_below_is_unbiased_for_large_bounds),
        cmocka_unit_test(test_between_takes_both_ends),
        cmocka_unit_test(test_unit_and_chance),
        cmocka_unit_test(test_forks_and_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
