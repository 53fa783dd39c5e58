/* SPDX-License-Identifier: Apache-2.0 */
#include "client/find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Newest first. The class, what was measured, the time. */
static struct wpk_api_kernel kernel(const char *id, const char *class, double times_direct,
                                    uint64_t median_ns)
{
    return (struct wpk_api_kernel){.id = id,
                                   .fingerprint = "0123456789abcdef",
                                   .served = {.provider = "halide-cpu", .time = {median_ns, 0, 0}},
                                   .accuracy = class,
                                   .conditions = "warm",
                                   .times_direct = times_direct,
                                   .device = "cpu",
                                   .environment = "halide=21.0.0",
                                   .layouts = "fixed",
                                   .threads = 1};
}

static const char *best(struct wpk_api_kernel *kernels, int count, struct wpk_find_wanted wanted)
{
    const struct wpk_api_kernel *found = NULL;
    struct wpk_diag diag = {0};

    wpk_err err = wpk_find_best(kernels, count, &wanted, &found, &diag);
    assert_true(err == WPK_OK || diag.text[0] != '\0');
    return err == WPK_OK ? found->id : "";
}

static void test_class(void **state)
{
    struct wpk_api_kernel kernels[] = {
        kernel("k4", "standard", 1.8, 600),
        kernel("k3", "strict", 0.9, 900),
        kernel("k2", "fast", 8.0, 500),
        kernel("k1", "strict", 0.6, 400),
    };

    (void)state;
    kernels[3].environment = "halide=20.0.0";
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){0}), "k4");
    assert_string_equal(kernels[0].found_for, "standard"); /* the newest one's */
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "strict"}), "k3");
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "fast"}), "k2");
    /* 0.9 of the class is what a measured error has to keep; 1.8 does so from 2 on. */
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "times_direct=2"}),
                        "k4");
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "times_direct=1.9"}),
                        "k3");
    assert_string_equal(kernels[0].found_for, "times_direct=2");
    /* A pin holds for the kernel's own class. */
    kernels[1].pinned = true;
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "strict"}), "k3");
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){.accuracy = "fast"}), "k2");
    kernels[0].pinned = true;
    kernels[1].served.time.median_ns = 300;
    assert_string_equal(best(kernels, 4, (struct wpk_find_wanted){0}), "k4");
}

static void test_nothing_fits(void **state)
{
    struct wpk_api_kernel kernels[] = {kernel("k1", "fast", 8.0, 500)};

    (void)state;
    /* the kernel does not fit; what its choice has beside it may */
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.accuracy = "strict"}), "k1");
    assert_true(kernels[0].is_too_wide);
    assert_string_equal(kernels[0].found_for, "strict");
    assert_string_equal(
        best(kernels, 1, (struct wpk_find_wanted){.accuracy = "strict", .threads = 2}), "");
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.accuracy = "stict"}), "");
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.conditions = "cold"}), "");
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.conditions = "wram"}), "");
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.threads = 2}), "");
    assert_string_equal(best(kernels, 1, (struct wpk_find_wanted){.layouts = "any"}), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class),
        cmocka_unit_test(test_nothing_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
