/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SM_COUNT 132
#define BLOCKS ((int64_t)SM_COUNT * 8)
#define THREADS 256

static double seconds_of(int64_t shared_bytes, int registers)
{
    struct wpk_cuda_machine machine;
    const struct wpk_launch_counts counts = {.warp_instructions = 1000 * BLOCKS,
                                             .global_requests = 100 * BLOCKS,
                                             .global_sectors = 400 * BLOCKS};
    wpk_cuda_machine(90, SM_COUNT, &machine);
    return wpk_launch_model(&machine, &counts, BLOCKS, THREADS, shared_bytes, registers);
}

/* Blocks that find no registers wait for others, as those that find no shared memory do. */
static void test_registers(void **state)
{
    (void)state;
    double unknown = seconds_of(0, 0);
    assert_true(seconds_of(0, 32) == unknown); /* all eight blocks of 256 threads */
    assert_true(seconds_of(0, 64) > unknown);  /* four of them */
    assert_true(seconds_of(0, 128) > seconds_of(0, 64));
    assert_true(seconds_of(0, 128) == seconds_of(100 << 10, 0)); /* two of them */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
