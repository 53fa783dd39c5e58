/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel, planned from a number: every CPU, one thread, sums in the written order. */
#include "worker/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char op[] = "input X f32[8,16]\nconstant W f32[16,32]\noutput Y f32[8,32]\n"
                         "Y[i,j] = sum.f32(k:16) X[i,k] * W[k,j]\n";

static wpk_err plan(struct wpk_planner *planner, int number, struct wpk_planned *out)
{
    const struct wpk_planner_request request = {
        .op = op, .layouts = "fixed", .threads = 2, .candidate = "", .plain = number};
    struct wpk_diag diag = {0};
    return wpk_planner_plan(planner, &request, out, &diag);
}

static void open_planner(struct wpk_planner *planner)
{
    struct wpk_device device;
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX512, &device), WPK_OK);
    wpk_planner_init(planner, &device);
}

static void it_is_for_every_cpu(void **state)
{
    (void)state;
    static struct wpk_planner planner;
    struct wpk_planned planned = {0};
    open_planner(&planner);
    assert_int_equal(plan(&planner, 1, &planned), WPK_OK);
    assert_non_null(strstr(planned.manifest, "\"algorithm\":\"direct\""));
    assert_non_null(strstr(planned.manifest, "\"threads\":1"));
    assert_non_null(strstr(planned.manifest, "sse41"));
    assert_null(strstr(planned.manifest, "avx"));
    /* Else a mean multiplies by 1/n, and a*b+a is a*(b+1). */
    assert_non_null(strstr(planned.schedule, "-strict_float"));
    wpk_planned_fini(&planned);
    wpk_planner_fini(&planner);
}

static void a_number_names_a_candidate(void **state)
{
    (void)state;
    static struct wpk_planner planner;
    struct wpk_planned first = {0}, again = {0}, second = {0}, none = {0};
    open_planner(&planner);
    assert_int_equal(plan(&planner, 1, &first), WPK_OK);
    assert_int_equal(plan(&planner, 2, &second), WPK_OK);
    assert_int_equal(plan(&planner, 1, &again), WPK_OK);
    assert_string_equal(first.schedule_sha256, again.schedule_sha256);
    assert_string_not_equal(first.schedule_sha256, second.schedule_sha256);
    assert_int_equal(plan(&planner, 100000, &none), WPK_EUNSUPPORTED);
    wpk_planned_fini(&first);
    wpk_planned_fini(&again);
    wpk_planned_fini(&second);
    wpk_planner_fini(&planner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_for_every_cpu),
        cmocka_unit_test(a_number_names_a_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
