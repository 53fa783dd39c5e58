/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a plan of views against its model: right ones, wrong ones, and those of another
 * model. */
#include "model/plan/check_plan.h"

#include "common/fs.h"
#include "model/plan/tune.h"
#include "tests/model_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { ELEMENTS = 6 };

/* A plan that is open, with its tensors. */
struct run {
    struct wpk_model_fixture fixture;
    struct wpk_model_fixing fixing;
    struct wpk_model *model;
    struct wpk_model_context *context;
    struct wpk_tensor_data input, output;
    float x[ELEMENTS], y[ELEMENTS];
    struct wpk_plan_call call;
};

/* Make the plan of y = Reshape(x), and run it. */
static void begin(struct run *r)
{
    struct wpk_buf problems = {0}, plan = {.size_max = 1 << 20};
    const struct wpk_tune_source source = {.notice = NULL};
    struct wpk_diag diag = {0};
    char path[64];

    *r = (struct run){.x = {1, -2, 3, 0.5F, INFINITY, NAN}};
    wpk_model_fixture_input(&r->fixture, "x", "f32[2,3]");
    wpk_model_fixture_constant(&r->fixture, "s", "i64[1]", "6");
    wpk_model_fixture_node(&r->fixture, "Reshape", "x,s", "y", "");
    wpk_model_fixture_output(&r->fixture, "y");
    struct wpk_tune tune = {.options = {.path = wpk_model_fixture_write(&r->fixture, SIZE_MAX),
                                        .fixing = &r->fixing,
                                        .source = &source}};
    wpk_job_init(&tune.job);
    assert_int_equal(wpk_tune_read(&tune, &problems, &diag), WPK_OK);
    assert_int_equal(wpk_tune_make_job(&tune, &diag), WPK_OK);
    assert_int_equal(wpk_tune_plan(&tune, &plan, &diag), WPK_OK);
    int fd = memfd_create("plan", 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(wpk_fs_write(path, plan.data, plan.size, 0600, &diag), WPK_OK);
    assert_int_equal(wpk_model_open(path, NULL, &r->model, &diag), WPK_OK);
    assert_int_equal(wpk_model_context_new(r->model, 0, NULL, &r->context), WPK_OK);
    close(fd);
    r->input = (struct wpk_tensor_data){.name = "x", .data = r->x, .size = sizeof(r->x)};
    r->output = (struct wpk_tensor_data){.name = "y", .data = r->y, .size = sizeof(r->y)};
    r->call = (struct wpk_plan_call){.model = r->model,
                                     .context = r->context,
                                     .inputs = &r->input,
                                     .input_count = 1,
                                     .outputs = &r->output,
                                     .output_count = 1};
    assert_int_equal(wpk_model_run(r->context, &r->input, 1, &r->output, 1), WPK_OK);
    wpk_buf_fini(&plan);
    wpk_buf_fini(&problems);
    wpk_tune_fini(&tune);
}

static void end(struct run *r)
{
    wpk_model_context_free(r->context);
    wpk_model_close(r->model);
    wpk_model_fixture_fini(&r->fixture);
}

static wpk_err verify(struct run *r, double *difference, struct wpk_diag *diag)
{
    struct wpk_buf problems = {0};

    *diag = (struct wpk_diag){0};
    wpk_err err =
        wpk_verify_plan_file(r->fixture.path, &r->fixing, &r->call, difference, &problems, diag);
    wpk_buf_fini(&problems);
    return err;
}

/* NaN meets NaN, an infinity the same one. */
static void test_right_outputs(void **state)
{
    struct wpk_diag diag;
    double difference = 1;
    struct run r;
    (void)state;

    begin(&r);
    assert_int_equal(verify(&r, &difference, &diag), WPK_OK);
    assert_true(difference == 0);
    r.y[0] += 2e-4F; /* of the largest element, 3, less than 1e-4 */
    assert_int_equal(verify(&r, &difference, &diag), WPK_OK);
    assert_true(difference > 6e-5 && difference < 7e-5);
    end(&r);
}

static void test_wrong_outputs(void **state)
{
    static const float wrong[][2] = {{0, 1.01F}, {1, NAN}, {4, -INFINITY}, {5, 0}};
    struct wpk_diag diag;
    double difference;
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct run r;
        begin(&r);
        r.y[(size_t)wrong[i][0]] = wrong[i][1];
        assert_int_equal(verify(&r, &difference, &diag), WPK_EMISMATCH);
        assert_non_null(strstr(diag.text, "output y differs from the model's by"));
        end(&r);
    }
}

static void test_another_model(void **state)
{
    struct wpk_model_fixture other = {0};
    struct wpk_buf problems = {0};
    struct wpk_diag diag = {0};
    double difference;
    struct run r;
    (void)state;

    begin(&r);
    wpk_model_fixture_input(&other, "x", "f32[2,3]");
    wpk_model_fixture_node(&other, "ReduceSum", "x", "z", "");
    wpk_model_fixture_output(&other, "z");
    assert_int_equal(wpk_verify_plan_file(wpk_model_fixture_write(&other, SIZE_MAX), &r.fixing,
                                          &r.call, &difference, &problems, &diag),
                     WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "of another model"));
    wpk_buf_fini(&problems);
    wpk_model_fixture_fini(&other);
    end(&r);
}

/* A step that is checked has a kernel: a plan of views has none, and is right. */
static void test_steps_of_views(void **state)
{
    struct wpk_check_plan found;
    struct wpk_diag diag = {0};
    struct run r;
    (void)state;

    begin(&r);
    assert_int_equal(wpk_check_plan(&r.call, &found, &diag), WPK_OK);
    assert_int_equal(found.steps, 0);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_outputs),
        cmocka_unit_test(test_wrong_outputs),
        cmocka_unit_test(test_another_model),
        cmocka_unit_test(test_steps_of_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
