/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/traffic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WORDS 512

/* All lanes read words that are `stride` apart, `rows` times from different places. */
static double least_of(uint64_t stride, uint64_t rows, uint64_t *sectors)
{
    struct wpk_device_memory memory;
    struct wpk_traffic traffic;
    uint64_t at, address[WPK_WARP_LANES];
    *sectors = 0;
    assert_int_equal(wpk_device_memory_init(&memory, 1 << 20), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, WORDS * 4, &at), WPK_OK);
    assert_int_equal(wpk_traffic_init(&traffic, &memory), WPK_OK);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t lane = 0; lane < WPK_WARP_LANES; lane++) {
            address[lane] = at + (r * WORDS / rows + lane * stride) * 4;
        }
        wpk_traffic_note(&traffic, UINT32_MAX, address, 4, 4 * stride);
    }
    double least = wpk_traffic_least(&traffic.range[0]);
    *sectors = traffic.range[0].sectors;
    wpk_traffic_fini(&traffic);
    wpk_device_memory_fini(&memory);
    return least;
}

/* Neighbours fill 4 sectors, words that are two apart 8, as many as there are. */
static void test_holes(void **state)
{
    (void)state;
    uint64_t sectors;
    assert_true(least_of(1, 1, &sectors) == 4);
    assert_true(least_of(1, 4, &sectors) == 16);
    assert_int_equal(sectors, 16);
    assert_true(least_of(2, 1, &sectors) == 8);
    assert_true(least_of(8, 2, &sectors) == 64);
}

/* Words between those of a request that another one is for are no holes. */
static void test_others_fill(void **state)
{
    (void)state;
    struct wpk_device_memory memory;
    struct wpk_traffic traffic;
    uint64_t at, address[WPK_WARP_LANES];
    assert_int_equal(wpk_device_memory_init(&memory, 1 << 20), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, WORDS * 4, &at), WPK_OK);
    assert_int_equal(wpk_traffic_init(&traffic, &memory), WPK_OK);
    for (uint64_t odd = 0; odd < 2; odd++) {
        for (uint64_t lane = 0; lane < WPK_WARP_LANES; lane++) {
            address[lane] = at + (2 * lane + odd) * 4;
        }
        wpk_traffic_note(&traffic, UINT32_MAX, address, 4, 8);
    }
    assert_true(wpk_traffic_least(&traffic.range[0]) == 8);
    for (uint64_t lane = 0; lane < WPK_WARP_LANES; lane++) {
        address[lane] = at; /* one word for all lanes */
    }
    wpk_traffic_note(&traffic, UINT32_MAX, address, 4, 1);
    wpk_traffic_note(&traffic, 0, address, 4, 0);
    assert_true(wpk_traffic_least(&traffic.range[0]) == 9);
    assert_int_equal(traffic.range[0].sectors, 17);
    wpk_traffic_fini(&traffic);
    wpk_device_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_others_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
