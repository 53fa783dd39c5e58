/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void first_round_overflows_then_one_block_serves(void **state)
{
    struct wpk_scratch scratch = {0};
    char *blocks[3] = {0};

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            blocks[i] = wpk_scratch_take(&scratch, 1000U * ((size_t)i + 1));
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 64, 0);
            memset(blocks[i], 0x11 * i, 1000U * ((size_t)i + 1));
        }
        assert_int_equal(blocks[1][0], 0x11);
        assert_true((scratch.overflow == NULL) == (round > 0));
        for (int i = 0; i < 3; i++) {
            wpk_scratch_give(&scratch, blocks[i]);
        }
        assert_int_equal(scratch.top, 0);
        wpk_scratch_settle(&scratch);
        assert_true(scratch.size >= 6000);
    }
    wpk_scratch_fini(&scratch);
}

static void given_back_in_any_order(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct wpk_scratch scratch = {.need = 1 << 16};
    void *blocks[3];

    (void)state;
    wpk_scratch_settle(&scratch);
    for (int order = 0; order < 6; order++) {
        for (int i = 0; i < 3; i++) {
            blocks[i] = wpk_scratch_take(&scratch, 100);
        }
        assert_true(blocks[0] != blocks[1]);
        wpk_scratch_give(&scratch, blocks[orders[order][0]]);
        assert_true(scratch.top > 0);
        wpk_scratch_give(&scratch, blocks[orders[order][1]]);
        assert_true(scratch.top > 0);
        wpk_scratch_give(&scratch, blocks[orders[order][2]]);
        assert_int_equal(scratch.top, 0);
    }
    assert_null(scratch.overflow);
    wpk_scratch_fini(&scratch);
}

static void what_is_live_is_never_handed_out_again(void **state)
{
    struct wpk_scratch scratch = {.need = 1 << 16};

    (void)state;
    wpk_scratch_settle(&scratch);
    char *below = wpk_scratch_take(&scratch, 64);
    char *live = wpk_scratch_take(&scratch, 64);
    memset(live, 7, 64);
    wpk_scratch_give(&scratch, below);
    char *again = wpk_scratch_take(&scratch, 64);
    memset(again, 9, 64);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(live[i], 7);
    }
    wpk_scratch_give(&scratch, again);
    wpk_scratch_give(&scratch, live);
    assert_int_equal(scratch.top, 0);
    wpk_scratch_fini(&scratch);
}

static void refuses_beyond_its_limit(void **state)
{
    struct wpk_scratch scratch = {.size_max = 4096};

    (void)state;
    assert_null(wpk_scratch_take(&scratch, 8192));
    assert_null(wpk_scratch_take(&scratch, SIZE_MAX));
    assert_null(wpk_scratch_take(&scratch, SIZE_MAX - 64));
    void *memory = wpk_scratch_take(&scratch, 2048);
    assert_non_null(memory);
    assert_null(wpk_scratch_take(&scratch, 2048));
    wpk_scratch_give(&scratch, memory);
    wpk_scratch_fini(&scratch);
}

static void settle_forgets_what_a_failed_call_left(void **state)
{
    struct wpk_scratch scratch = {0};

    (void)state;
    assert_non_null(wpk_scratch_take(&scratch, 5000));
    assert_non_null(wpk_scratch_take(&scratch, 5000));
    wpk_scratch_settle(&scratch);
    assert_null(scratch.overflow);
    assert_int_equal(scratch.top, 0);
    assert_non_null(wpk_scratch_take(&scratch, 5000));
    wpk_scratch_settle(&scratch);
    assert_int_equal(scratch.top, 0);
    wpk_scratch_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_round_overflows_then_one_block_serves),
        cmocka_unit_test(given_back_in_any_order),
        cmocka_unit_test(what_is_live_is_never_handed_out_again),
        cmocka_unit_test(refuses_beyond_its_limit),
        cmocka_unit_test(settle_forgets_what_a_failed_call_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
