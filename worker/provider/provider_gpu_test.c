/* SPDX-License-Identifier: Apache-2.0 */
/* The choice among a vendor's algorithms: the fastest that runs and is not passed over. */
#include "worker/provider/provider.h"

#include "runtime/vendor/gpu_vendor.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT 200
#define FASTEST 150
#define NEXT 70

static const struct wpk_gpu_vendor vendor = {.name = "test"};

static wpk_err time_algorithm(void *user, int count, double *ns)
{
    const struct wpk_gpu_primitive *primitive = user;
    int algorithm = primitive->recipe.algorithm;
    *ns = count * (algorithm == FASTEST ? 1e3 : algorithm == NEXT ? 2e3 : 4e3);
    return algorithm == 0 ? WPK_EUNSUPPORTED : WPK_OK;
}

static void test_those_that_are_wrong_are_passed_over(void **state)
{
    (void)state;
    bool excluded[WPK_PROVIDER_EXCLUDED_MAX] = {false};
    struct wpk_gpu_primitive primitive = {.vendor = &vendor, .algorithm_count = COUNT};
    const int wanted[] = {FASTEST, NEXT, 1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_provider_gpu_choose(&primitive, i > 0 ? excluded : NULL,
                                                 time_algorithm, &primitive, NULL),
                         WPK_OK);
        assert_int_equal(primitive.recipe.algorithm, wanted[i]);
        excluded[wanted[i]] = true;
    }
    for (int i = 0; i < COUNT; i++) {
        excluded[i] = true;
    }
    assert_int_equal(
        wpk_provider_gpu_choose(&primitive, excluded, time_algorithm, &primitive, NULL),
        WPK_EUNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_that_are_wrong_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
