/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: changes of a job by command line options. */
#include "client/job_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void make(struct wpk_job *job)
{
    const struct wpk_job_inline given = {
        .op = "Y[i] = X[i] + 1",
        .tensors = {.count = 2, .items = {"X=f32[8]", "Y=f32[8]"}},
    };
    assert_int_equal(wpk_job_file_make(&given, job, NULL), WPK_OK);
}

static void test_nothing_given_changes_nothing(void **state)
{
    (void)state;
    struct wpk_job job = {0};
    make(&job);
    assert_int_equal(wpk_job_file_override(&(struct wpk_job_overrides){0}, &job, NULL), WPK_OK);
    assert_true(job.ops[0].accuracy.times_direct == 4);
    assert_int_equal(job.ops[0].conditions, WPK_CONDITIONS_WARM);
    assert_int_equal(job.ops[0].layouts, WPK_LAYOUTS_FIXED);
    wpk_job_fini(&job);
}

static void test_class_of_each_operator(void **state)
{
    (void)state;
    struct wpk_job job = {0};
    const struct wpk_job_overrides overrides = {
        .accuracy = "times_direct=6", .conditions = "cold-constants", .layouts = "any"};
    make(&job);
    assert_int_equal(wpk_job_file_override(&overrides, &job, NULL), WPK_OK);
    assert_true(job.ops[0].accuracy.times_direct == 6);
    assert_int_equal(job.ops[0].conditions, WPK_CONDITIONS_COLD_CONSTANTS);
    assert_int_equal(job.ops[0].layouts, WPK_LAYOUTS_ANY);
    wpk_job_fini(&job);
}

static void test_unknown_class_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct wpk_job_overrides overrides;
        const char *says[2];
    } cases[] = {
        {{.accuracy = "exact"}, {"exact", "strict"}},
        {{.conditions = "tepid"}, {"tepid", "cold-constants"}},
        {{.layouts = "some"}, {"some", "fixed"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_job job = {0};
        struct wpk_diag diag = {0};
        make(&job);
        assert_int_equal(wpk_job_file_override(&cases[i].overrides, &job, &diag), WPK_EINVAL);
        assert_non_null(strstr(diag.text, cases[i].says[0]));
        assert_non_null(strstr(diag.text, cases[i].says[1]));
        wpk_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_given_changes_nothing),
        cmocka_unit_test(test_class_of_each_operator),
        cmocka_unit_test(test_unknown_class_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
