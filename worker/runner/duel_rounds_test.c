/* SPDX-License-Identifier: Apache-2.0 */
/* Duels on a machine that scatters as the test says. */
#include "worker/runner/run_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ROUNDS 10
#define OWN 0
#define VENDOR 1

struct fake {
    int turns[2];      /* taken by each */
    int noisy_from[2]; /* turn at which every second one begins to take half as long again */
    int noisy_until[2];
    int out_at[2]; /* turn that ends it; 0: none */
    uint64_t vendor_ns;
};

static uint64_t take_turn(void *user, int index)
{
    struct fake *fake = user;
    int turn = fake->turns[index]++;
    if (fake->out_at[index] > 0 && turn >= fake->out_at[index]) {
        return 0;
    }
    bool noisy = turn >= fake->noisy_from[index] && turn < fake->noisy_until[index];
    uint64_t ns = index == OWN ? 1000 : fake->vendor_ns;
    return noisy && turn % 2 == 1 ? ns + ns / 2 : ns;
}

/* `vendor_ns`: of a time near our own, more rounds are needed. */
static void play(struct fake *fake, uint64_t vendor_ns, struct wpk_timing *out)
{
    fake->vendor_ns = vendor_ns;
    const struct wpk_duel_rounds rounds = {.count = 2,
                                           .round_count = ROUNDS,
                                           .is_vendor = {[VENDOR] = true},
                                           .take_turn = take_turn,
                                           .user = fake};
    wpk_duel_rounds_play(&rounds, out);
}

static void test_steady_vendor_is_timed_once(void **state)
{
    struct fake fake = {.noisy_until = {[OWN] = ROUNDS}};
    struct wpk_timing timing[2];

    (void)state;
    play(&fake, 1000, timing);
    assert_int_equal(fake.turns[VENDOR], ROUNDS);
    assert_int_equal(timing[VENDOR].median_ns, 1000);
    assert_int_equal(timing[VENDOR].mad_ns, 0);
    assert_int_equal(timing[OWN].sample_count, ROUNDS); /* its own noise is for the table to say */
    assert_int_equal(timing[OWN].mad_ns, 250);
}

static void test_noisy_vendor_is_timed_again(void **state)
{
    struct fake fake = {.noisy_until = {ROUNDS, ROUNDS}};
    struct wpk_timing timing[2];

    (void)state;
    play(&fake, 1000, timing);
    assert_int_equal(fake.turns[VENDOR], 2 * ROUNDS);
    assert_int_equal(timing[VENDOR].median_ns, 1000);
    assert_int_equal(timing[VENDOR].mad_ns, 0);
    assert_int_equal(timing[VENDOR].sample_count, ROUNDS);
    assert_int_equal(timing[OWN].median_ns, 1000); /* of the same rounds */
    assert_int_equal(timing[OWN].mad_ns, 0);
}

static void test_noise_that_stays_ends(void **state)
{
    struct fake fake = {.noisy_until = {[VENDOR] = 1000}};
    struct wpk_timing timing[2];

    (void)state;
    play(&fake, 1000, timing);
    assert_int_equal(fake.turns[VENDOR], 2 * ROUNDS);
    assert_int_equal(timing[VENDOR].median_ns, 1250);
    assert_int_equal(timing[VENDOR].mad_ns, 250);
}

static void test_who_dies_is_out(void **state)
{
    struct fake early = {.out_at = {[OWN] = 3}};
    struct fake late = {.noisy_until = {[VENDOR] = 1000}, .out_at = {[OWN] = ROUNDS + 3}};
    struct wpk_timing timing[2];

    (void)state;
    play(&early, 1000, timing);
    assert_int_equal(timing[OWN].sample_count, 0);
    assert_int_equal(timing[VENDOR].median_ns, 1000);
    play(&late, 1000, timing);
    assert_int_equal(timing[OWN].sample_count, 0);
    assert_true(timing[VENDOR].sample_count > 0); /* alone, it needs no more */
}

static void test_clear_order_ends_early(void **state)
{
    struct fake clear = {.turns = {0}};
    struct fake noisy = {.noisy_until = {[OWN] = ROUNDS}};
    struct wpk_timing timing[2];

    (void)state;
    play(&clear, 1200, timing);
    assert_int_equal(clear.turns[OWN] + clear.turns[VENDOR], 2 * 5);
    assert_int_equal(timing[VENDOR].sample_count, 5);
    assert_int_equal(timing[VENDOR].median_ns, 1200);
    play(&noisy, 1050, timing);
    assert_int_equal(noisy.turns[VENDOR], ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clear_order_ends_early),
        cmocka_unit_test(test_steady_vendor_is_timed_once),
        cmocka_unit_test(test_noisy_vendor_is_timed_again),
        cmocka_unit_test(test_noise_that_stays_ends),
        cmocka_unit_test(test_who_dies_is_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
