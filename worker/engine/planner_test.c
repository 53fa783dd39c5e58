/* SPDX-License-Identifier: Apache-2.0 */
/* The plain kernel, planned from a number: every CPU, one thread, sums in the written order. The
 * device for which a kernel that is built elsewhere is planned. */
#include "worker/engine/planner.h"

#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &device), WPK_OK);
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

/* A GPU's plain kernels are for the oldest architecture, of nests that Halide takes: it builds
 * those of odd numbers. */
static void it_is_for_every_gpu(void **state)
{
    (void)state;
    static struct wpk_planner planner;
    struct wpk_device device;
    assert_int_equal(wpk_device_emulate("sm_90", 132, &device, NULL), WPK_OK);
    wpk_planner_init(&planner, &device);
    for (int number = 1; number <= 12; number++) {
        struct wpk_planned planned = {0};
        assert_int_equal(plan(&planner, number, &planned), WPK_OK);
        assert_string_equal(planned.by->name, number % 2 == 1 ? "halide-cuda" : "cuda");
        assert_non_null(strstr(planned.schedule, "target cuda-sm_50-strict_float"));
        wpk_planned_fini(&planned);
    }
    wpk_planner_fini(&planner);
}

/* Looking for a compiler starts it, beside the threads of a worker that only runs. */
static void what_is_built_needs_no_compiler(void **state)
{
    (void)state;
    static const char text[] = "wpk-schedule 2\ntarget x86-64-linux-sse41 threads 1\nby c\n"
                               "layout X f32[4] 0\nlayout Y f32[4] 0\nprogram\n"
                               "input X f32[4]\noutput Y f32[4]\nY[i] = X[i] * 2\nend\n"
                               "stage Y root\n  lanes i\n";
    static const char gcc[] = "#!/bin/sh\n: > ${0%gcc}asked\necho 12.2.0\n";
    static struct wpk_planner planner;
    char directory[] = "/tmp/wpk-planner-XXXXXX", path[64];
    struct wpk_planned planned = {0};
    struct wpk_planner_request request = {.op =
                                              "input X f32[4]\noutput Y f32[4]\nY[i] = X[i] * 2\n",
                                          .layouts = "fixed",
                                          .threads = 1,
                                          .schedule = text};
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("PATH", directory, 1), 0);
    snprintf(path, sizeof path, "%s/gcc", directory);
    assert_int_equal(wpk_fs_write(path, gcc, strlen(gcc), 0755, NULL), WPK_OK);
    snprintf(path, sizeof path, "%s/asked", directory);
    open_planner(&planner);
    for (int built = 1; built >= 0; built--) {
        request.built = built;
        assert_int_equal(wpk_planner_plan(&planner, &request, &planned, NULL), WPK_OK);
        assert_string_equal(planned.by->name, "c");
        assert_int_equal(planned.manifest == NULL, built);
        assert_int_equal(access(path, F_OK) == 0, !built);
        wpk_planned_fini(&planned);
    }
    wpk_planner_fini(&planner);
    assert_int_equal(wpk_fs_remove_tree(directory, NULL), WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_for_every_cpu),
        cmocka_unit_test(it_is_for_every_gpu),
        cmocka_unit_test(a_number_names_a_candidate),
        cmocka_unit_test(what_is_built_needs_no_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
