/* SPDX-License-Identifier: Apache-2.0 */
/* Each capability has the rates of a GPU that has it, or says that it has not. */
#include "common/cuda_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void rates_are_of_the_capability(void **state)
{
    static const struct {
        int capability;
        const char *of;
        bool known;
        double gigabytes_per_s; /* of memory, with as many multiprocessors as that GPU has */
        int sm_count, threads_max;
    } cases[] = {
        {50, "V100", false, 900, 80, 2048},       {70, "V100", true, 900, 80, 2048},
        {75, "T4", true, 320, 40, 1024},          {80, "A100", true, 1555, 108, 2048},
        {86, "RTX 3090", true, 936, 82, 1536},    {87, "RTX 3090", false, 936, 82, 1536},
        {89, "RTX 4090", true, 1008, 128, 1536},  {90, "H100", true, 3350, 132, 2048},
        {100, "B200", true, 8000, 148, 2048},     {103, "B200", false, 8000, 148, 2048},
        {120, "RTX 5090", true, 1792, 170, 1536}, {999, "RTX 5090", false, 1792, 170, 1536},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_cuda_machine m;
        wpk_cuda_machine(cases[i].capability, cases[i].sm_count, &m);
        double rate = m.dram_bytes * m.sm_count * m.hertz / 1e9;
        assert_string_equal(m.rates_of, cases[i].of);
        assert_int_equal(m.rates_known, cases[i].known);
        assert_int_equal(m.threads_max, cases[i].threads_max);
        assert_true(rate > 0.97 * cases[i].gigabytes_per_s &&
                    rate < 1.03 * cases[i].gigabytes_per_s);
        assert_true(m.launch / m.hertz > 2.3e-6 && m.launch / m.hertz < 2.4e-6);
        assert_int_equal(m.copies_ahead, cases[i].capability >= 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_of_the_capability)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
