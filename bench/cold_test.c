/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cold.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_names_are_read_back(void **state)
{
    (void)state;
    static const enum bench_conditions all[] = {
        BENCH_CONDITIONS_WARM, BENCH_CONDITIONS_COLD_CONSTANTS, BENCH_CONDITIONS_COLD};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum bench_conditions conditions = BENCH_CONDITIONS_WARM;
        assert_int_equal(bench_conditions_parse(bench_conditions_name(all[i]), &conditions),
                         WPK_OK);
        assert_int_equal(conditions, all[i]);
    }
    enum bench_conditions conditions = BENCH_CONDITIONS_COLD;
    assert_int_equal(bench_conditions_parse("tepid", &conditions), WPK_ENOENT);
    assert_int_equal(conditions, BENCH_CONDITIONS_COLD);
}

/* A peer is timed on the CPUs that it was given, before and after. */
static void test_streaming_leaves_the_affinity(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(bench_cold_stream(), WPK_OK);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_read_back),
        cmocka_unit_test(test_streaming_leaves_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
