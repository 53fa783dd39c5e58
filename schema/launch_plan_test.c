/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/launch_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char image[] =
    "{\"version\":4,\"architecture\":\"sm_90\",\"cubin_bytes\":0,\"arguments\":3,\"launches\":[{"
    "\"entry\":\"k_0\","
    "\"blocks\":[64,2,1],\"threads\":[256,1,1],\"shared_bytes\":8192,\"added_bytes\":0,"
    "\"registers\":70,\"local_bytes\":16,\"parameters\":[0,1,3]},{\"entry\":\"k_1\",\"blocks\":[1,"
    "1,1],\"threads\":[32,4,2],"
    "\"shared_bytes\":0,\"added_bytes\":512,\"registers\":0,\"local_bytes\":0,\"parameters\":[3,2]}"
    "],\"scratch\":[{\"bytes\":4096,"
    "\"offset\":16,\"zeroed\":"
    "true}]}\n"
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
    assert_int_equal(plan.launch[1].parameter[0], 3);
    assert_int_equal(plan.scratch[0].offset, 16);
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
    expect_refused("\"version\":4", "\"version\":3", WPK_EMISMATCH, "version");
    expect_refused("\"blocks\":[64", "\"blocks\":[ 0", WPK_ERANGE, "blocks");
    expect_refused("\"blocks\":[64,", "\"blocks\":[64 ", WPK_EPARSE, NULL);
    expect_refused("\"blocks\":[64,2,1]", "\"blocks\":[64,  2]", WPK_EINVAL, "blocks");
    expect_refused("\"threads\":[256", "\"threads\":[1e9", WPK_ERANGE, "threads");
    expect_refused("[0,1,3]", "[0,1,4]", WPK_ERANGE, "launches");
    expect_refused("\"bytes\":4096", "\"bytes\":   9", WPK_ERANGE, "offset");
    expect_refused("\"registers\":70", "\"registers\":9e", WPK_EPARSE, NULL);
    expect_refused("\"cubin_bytes\":0", "\"cubin_bytes\":9", WPK_EPARSE, "cubin_bytes");
    expect_refused("\"entry\"", "\"extra\"", WPK_EINVAL, NULL);
    expect_refused("{\"version\"", "[\"version\"", WPK_EPARSE, NULL);
    assert_int_equal(wpk_launch_plan_decode(image, line, &plan, &code, NULL), WPK_EPARSE);
    assert_int_equal(wpk_launch_plan_decode(image, line - 1, &plan, &code, NULL), WPK_EPARSE);
    assert_int_equal(wpk_launch_plan_decode("", 0, &plan, &code, NULL), WPK_EPARSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
