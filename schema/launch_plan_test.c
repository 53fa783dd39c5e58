/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/launch_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char image[] =
    "{\"version\":5,\"architecture\":\"sm_90\",\"cubin_bytes\":0,\"arguments\":3,\"launches\":[{"
    "\"entry\":\"k_0\","
    "\"blocks\":[64,2,1],\"threads\":[256,1,1],\"shared_bytes\":8192,\"added_bytes\":0,"
    "\"registers\":70,\"local_bytes\":16,\"parameters\":[{\"tensor\":0,\"offset\":1234},"
    "{\"tensor\":3,\"offset\":4095},{\"number\":4294967295,\"bytes\":4}]},{\"entry\":\"k_1\","
    "\"blocks\":[1,1,1],\"threads\":[32,4,2],"
    "\"shared_bytes\":0,\"added_bytes\":512,\"registers\":0,\"local_bytes\":0,\"parameters\":["
    "{\"number\":-9007199254740991,\"bytes\":8},{\"tensor\":2,\"offset\":0}]}"
    "],\"scratch\":[{\"bytes\":4096,\"zeroed\":true}]}\n"
    ".version 8.8\n";

static void test_round_trip(void **state)
{
    (void)state;
    struct wpk_launch_plan plan = {0};
    struct wpk_buf again = {0};
    struct wpk_launch_code code = {0};
    assert_int_equal(wpk_launch_plan_decode(image, strlen(image), &plan, &code, NULL), WPK_OK);
    assert_string_equal(plan.architecture, "sm_90");
    assert_int_equal(plan.argument_count, 3);
    assert_int_equal(plan.launch_count, 2);
    assert_string_equal(plan.launch[1].entry, "k_1");
    assert_int_equal(plan.launch[0].blocks[1], 2);
    assert_int_equal(plan.launch[0].shared_bytes, 8192);
    assert_int_equal(plan.launch[1].added_bytes, 512);
    assert_int_equal(plan.launch[1].threads[2], 2);
    assert_int_equal(plan.launch[1].parameter_count, 2);
    assert_int_equal(plan.launch[1].parameter_first, 3);
    assert_int_equal(plan.parameter_count, 5);
    assert_int_equal(plan.parameter[1].tensor, 3);
    assert_int_equal(plan.parameter[1].value, 4095);
    assert_int_equal(plan.parameter[2].tensor, -1);
    assert_int_equal(plan.parameter[2].bytes, 4);
    assert_true(plan.parameter[3].value == -9007199254740991);
    assert_true(plan.scratch[0].zeroed);
    assert_int_equal(plan.launch[0].registers, 70);
    assert_int_equal(plan.launch[0].local_bytes, 16);
    assert_int_equal(code.cubin_size, 0);
    assert_int_equal(code.ptx_size, strlen(".version 8.8\n"));
    assert_memory_equal(code.ptx, ".version 8.8\n", code.ptx_size);
    assert_int_equal(wpk_launch_plan_encode(&plan, &code, &again), WPK_OK);
    assert_string_equal(wpk_buf_text(&again), image);
    wpk_buf_fini(&again);
}

/* Decode the image with `from` replaced by `to`, which are of one length. */
static void expect_refused(const char *from, const char *to, wpk_err err, const char *field)
{
    struct wpk_launch_plan plan = {0};
    struct wpk_diag diag = {0};
    struct wpk_launch_code code = {0};
    char text[sizeof(image)];
    memcpy(text, image, sizeof(text));
    char *at = strstr(text, from);
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_int_equal(wpk_launch_plan_decode(text, strlen(text), &plan, &code, &diag), err);
    if (field != NULL) {
        assert_non_null(strstr(diag.field, field));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct wpk_launch_plan plan = {0};
    struct wpk_launch_code code = {0};
    size_t line = strcspn(image, "\n") + 1;
    expect_refused("\"version\":5", "\"version\":4", WPK_EMISMATCH, "version");
    expect_refused("\"blocks\":[64", "\"blocks\":[ 0", WPK_ERANGE, "blocks");
    expect_refused("\"blocks\":[64,", "\"blocks\":[64 ", WPK_EPARSE, NULL);
    expect_refused("\"blocks\":[64,2,1]", "\"blocks\":[64,  2]", WPK_EINVAL, "blocks");
    expect_refused("\"threads\":[256", "\"threads\":[1e9", WPK_ERANGE, "threads");
    expect_refused("\"tensor\":3", "\"tensor\":4", WPK_ERANGE, "launches");
    expect_refused("\"tensor\":3", "\"tensor\":-", WPK_EPARSE, NULL);
    expect_refused("\"tensor\":3", "\"number\":3", WPK_EINVAL, NULL);
    expect_refused("\"offset\":4095", "\"offset\":4096", WPK_ERANGE, "launches");
    expect_refused("\"offset\":1234", "\"offset\":-123", WPK_ERANGE, "offset");
    expect_refused(":4294967295,", ":4294967296,", WPK_ERANGE, "number");
    expect_refused("\"bytes\":4}", "\"bytes\":6}", WPK_ERANGE, "bytes");
    expect_refused("\"bytes\":8}", "\"bytes\":4}", WPK_ERANGE, "number");
    expect_refused("\"bytes\":4096", "\"bytes\":4095", WPK_ERANGE, "launches");
    expect_refused("\"registers\":70", "\"registers\":9e", WPK_EPARSE, NULL);
    expect_refused("\"cubin_bytes\":0", "\"cubin_bytes\":9", WPK_EPARSE, "cubin_bytes");
    expect_refused("\"entry\"", "\"extra\"", WPK_EINVAL, NULL);
    expect_refused("{\"version\"", "[\"version\"", WPK_EPARSE, NULL);
    assert_int_equal(wpk_launch_plan_decode(image, line, &plan, &code, NULL), WPK_EPARSE);
    assert_int_equal(wpk_launch_plan_decode(image, line - 1, &plan, &code, NULL), WPK_EPARSE);
    assert_int_equal(wpk_launch_plan_decode("", 0, &plan, &code, NULL), WPK_EPARSE);
}

/* The line of the largest plan is one that is read. */
static void test_largest(void **state)
{
    (void)state;
    static struct wpk_launch_plan plan, again; /* large */
    const struct wpk_launch_code code = {.ptx = "p", .ptx_size = 1};
    struct wpk_launch_code read = {0};
    struct wpk_buf text = {0};
    plan = (struct wpk_launch_plan){.argument_count = WPK_LAUNCH_ARGUMENTS_MAX,
                                    .scratch_count = WPK_LAUNCH_SCRATCH_MAX};
    memset(plan.architecture, 'a', sizeof(plan.architecture) - 1);
    for (int i = 0; i < WPK_LAUNCH_SCRATCH_MAX; i++) {
        plan.scratch[i].bytes = (int64_t)1 << 40;
    }
    for (int i = 0; i < WPK_LAUNCHES_MAX; i++) {
        struct wpk_launch_step *launch = &plan.launch[plan.launch_count++];
        *launch = (struct wpk_launch_step){.blocks = {INT32_MAX, INT32_MAX, INT32_MAX},
                                           .threads = {1024, 1024, 1024},
                                           .shared_bytes = 1 << 20,
                                           .added_bytes = 1 << 20,
                                           .registers = 255,
                                           .local_bytes = 512 << 10};
        memset(launch->entry, 'k', sizeof(launch->entry) - 1);
        for (int p = 0; p < WPK_LAUNCH_PLAN_PARAMETERS_MAX / WPK_LAUNCHES_MAX; p++) {
            const struct wpk_launch_parameter longest = {WPK_LAUNCH_TENSORS_MAX - 1, 8,
                                                         ((int64_t)1 << 40) - 1};
            assert_int_equal(wpk_launch_plan_add(&plan, longest), WPK_OK);
        }
    }
    assert_int_equal(wpk_launch_plan_add(&plan, (struct wpk_launch_parameter){-1, 4, 0}),
                     WPK_ENOSPC);
    assert_int_equal(wpk_launch_plan_encode(&plan, &code, &text), WPK_OK);
    assert_int_equal(wpk_launch_plan_decode(text.data, text.size, &again, &read, NULL), WPK_OK);
    assert_int_equal(again.parameter_count, WPK_LAUNCH_PLAN_PARAMETERS_MAX);
    wpk_buf_fini(&text);
}

static void test_limit_of_a_launch(void **state)
{
    (void)state;
    static struct wpk_launch_plan plan = {.launch_count = 1}; /* large */
    for (int i = 0; i < WPK_LAUNCH_PARAMETERS_MAX; i++) {
        assert_int_equal(wpk_launch_plan_add(&plan, (struct wpk_launch_parameter){0, 8, 0}),
                         WPK_OK);
    }
    assert_int_equal(wpk_launch_plan_add(&plan, (struct wpk_launch_parameter){0, 8, 0}),
                     WPK_ENOSPC);
    assert_int_equal(plan.parameter_count, WPK_LAUNCH_PARAMETERS_MAX);
}

static void test_arguments_that_a_kernel_has(void **state)
{
    (void)state;
    static struct wpk_launch_plan plan; /* large */
    struct wpk_launch_code code = {0};
    struct wpk_diag diag = {0};
    size_t bytes[] = {1235, 4, 4};
    assert_int_equal(wpk_launch_plan_decode(image, strlen(image), &plan, &code, NULL), WPK_OK);
    assert_int_equal(wpk_launch_plan_check(&plan, bytes, 3, &diag), WPK_OK);
    assert_int_equal(wpk_launch_plan_check(&plan, bytes, 2, NULL), WPK_EMISMATCH);
    bytes[0] = 1234;
    assert_int_equal(wpk_launch_plan_check(&plan, bytes, 3, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "k_0 takes byte 1234 of argument 0, which has 1234 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_limit_of_a_launch),
        cmocka_unit_test(test_arguments_that_a_kernel_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
