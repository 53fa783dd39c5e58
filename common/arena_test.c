/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include <cmocka.h>

static void test_zeroed_arena_works(void **state)
{
    (void)state;
    struct wpk_arena arena = {0};
    int *numbers = WPK_ARENA_NEW(&arena, int, 1000);

    assert_non_null(numbers);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(numbers[i], 0);
    }
    wpk_arena_fini(&arena);
    assert_null(arena.first);
    wpk_arena_fini(&arena);
    wpk_arena_fini(NULL);
}

static void test_allocations_are_aligned_and_apart(void **state)
{
    (void)state;
    struct wpk_arena arena = {0};
    char *last = NULL;

    for (size_t size = 0; size < 200; size++) {
        char *p = wpk_arena_alloc(&arena, 1, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        assert_ptr_not_equal(p, last);
        memset(p, 0xff, size);
        last = p;
    }
    wpk_arena_fini(&arena);
}

static void test_reset_reuses_blocks_and_zeroes(void **state)
{
    (void)state;
    struct wpk_arena arena = {0};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            unsigned char *p = wpk_arena_alloc(&arena, 1, 5000);
            assert_non_null(p);
            assert_int_equal(p[0] | p[4999], 0);
            memset(p, 0xff, 5000);
        }
        wpk_arena_reset(&arena);
        if (round == 0) {
            arena.size_max = arena.size_reserved; /* from now on nothing may be added */
        }
    }
    wpk_arena_fini(&arena);
}

static void test_limit_and_overflow_give_null(void **state)
{
    (void)state;
    struct wpk_arena arena;

    wpk_arena_init(&arena, 100000);
    assert_non_null(wpk_arena_alloc(&arena, 1, 60000));
    assert_null(wpk_arena_alloc(&arena, 1, 60000));
    assert_non_null(wpk_arena_alloc(&arena, 1, 30000));
    assert_null(wpk_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(wpk_arena_alloc(&arena, 1, SIZE_MAX));
    assert_null(wpk_arena_copy_bytes(&arena, "x", SIZE_MAX));
    assert_true(arena.size_reserved <= 100000);
    wpk_arena_fini(&arena);
}

static void test_demands_pass_the_limit(void **state)
{
    (void)state;
    struct wpk_arena arena;

    wpk_arena_init(&arena, 100000);
    char *small = WPK_ARENA_DEMAND(&arena, char, 1000);
    assert_non_null(small);
    assert_false(arena.is_full);
    char *large = WPK_ARENA_DEMAND(&arena, char, 200000);
    assert_non_null(large);
    memset(large, 1, 200000);
    assert_true(arena.is_full);
    assert_int_equal(arena.size_max, 100000);
    assert_null(wpk_arena_alloc(&arena, 1, 100000)); /* the limit holds for others */
    wpk_arena_fini(&arena);
}

static void test_copies_end_in_nul(void **state)
{
    (void)state;
    struct wpk_arena arena = {0};

    assert_string_equal(wpk_arena_copy_text(&arena, "conv"), "conv");
    assert_string_equal(wpk_arena_copy_bytes(&arena, "conv2d", 4), "conv");
    assert_string_equal(wpk_arena_copy_bytes(&arena, NULL, 0), "");
    wpk_arena_fini(&arena);
}

#ifdef __SANITIZE_ADDRESS__
static void test_asan_knows_what_is_live(void **state)
{
    (void)state;
    struct wpk_arena arena = {0};

    for (size_t size = 1; size < 40; size++) {
        char *p = wpk_arena_alloc(&arena, 1, size);
        assert_null(__asan_region_is_poisoned(p, size));
        assert_true(__asan_address_is_poisoned(p + size));
        wpk_arena_reset(&arena);
        assert_true(__asan_address_is_poisoned(p));
    }
    wpk_arena_fini(&arena);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_arena_works),
        cmocka_unit_test(test_allocations_are_aligned_and_apart),
        cmocka_unit_test(test_reset_reuses_blocks_and_zeroes),
        cmocka_unit_test(test_limit_and_overflow_give_null),
        cmocka_unit_test(test_demands_pass_the_limit),
        cmocka_unit_test(test_copies_end_in_nul),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_asan_knows_what_is_live),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
