/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/notation/definition.h"

#include "ir/canonical/canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static wpk_err decode(const char *text, struct wpk_job *job)
{
    struct wpk_diag diag = {0};
    wpk_err err = wpk_job_decode(text, strlen(text), job, &diag);

    if (err != WPK_OK) {
        fail_msg("%s: %s", diag.field, diag.text);
    }
    return err;
}

/* The same operator in notation and as a shorthand is the same program. */
static void test_two_ways(void **state)
{
    static const char text[] =
        "{\"ops\":["
        "{\"name\":\"a\",\"op\":\"Q[b,i,j] = sum(k) L[b,i,k] * R[b,k,j]\","
        " \"tensors\":{\"L\":\"f32[12,128,64]\",\"R\":\"f32[12,64,128]\",\"Q\":\"f32[12,128,128]\"}"
        "},"
        "{\"name\":\"b\",\"op\":{\"type\":\"batch_matmul\",\"a\":[12,128,64],\"b\":[12,64,128],"
        "\"dtype\":\"f32\"}}]}";
    struct wpk_job job;
    struct wpk_diag diag = {0};
    struct wpk_fingerprint fingerprint[2];

    (void)state;
    assert_int_equal(decode(text, &job), WPK_OK);
    for (int i = 0; i < 2; i++) {
        struct wpk_program program = {0};
        if (wpk_job_op_program(&job, i, &program, &diag) != WPK_OK) {
            fail_msg("%s: %s", diag.field, diag.text);
        }
        assert_int_equal(wpk_fingerprint(&program, &fingerprint[i]), WPK_OK);
        wpk_program_fini(&program);
    }
    assert_string_equal(fingerprint[0].exact, fingerprint[1].exact);
    assert_int_equal(wpk_job_check(&job, &diag), WPK_OK);
    wpk_job_fini(&job);
}

static void test_rejected(void **state)
{
    static const struct {
        const char *text;
        const char *field;
        int line;
        int column; /* 0: not looked at */
    } cases[] = {
        {"{\"ops\":[{\"name\":\"a\",\n\"op\":\"Y[i] = X[i] +\",\"tensors\":{\"X\":\"f32[4]\","
         "\"Y\":\"f32[4]\"}}]}",
         "ops[0].op", 2, 0},
        {"{\"ops\":[{\"name\":\"a\",\n\"op\":\"Y[i] =\\n Z[i]\",\"tensors\":{\"X\":\"f32[4]\","
         "\"Y\":\"f32[4]\"}}]}",
         "ops[0].op", 2, 16},
        {"{\"ops\":[{\"name\":\"a\",\"op\":\"Y[i] = X[i]\",\n\"tensors\":{\"X\":\"f32[4]\",\n"
         "\"Y\":\"f32[0]\"}}]}",
         "ops[0].tensors.Y", 3, 0},
        {"{\"ops\":[{\"name\":\"a\",\"op\":{\n\"type\":\"conv9d\"}}]}", "ops[0].op.type", 2, 8},
        {"{\"ops\":[{\"name\":\"a\",\"op\":{\"type\":\"matmul\",\"a\":[2,3],\n\"b\":[3,0]}}]}",
         "ops[0].op.b[1]", 2, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_job job;
        struct wpk_diag diag = {0};
        assert_int_equal(decode(cases[i].text, &job), WPK_OK);
        wpk_err err = wpk_job_check(&job, &diag);
        if (err == WPK_OK || strcmp(diag.field, cases[i].field) != 0 ||
            diag.line != cases[i].line ||
            (cases[i].column != 0 && diag.column != cases[i].column)) {
            fail_msg("case %zu: %s, '%s' %d:%d: %s", i, wpk_err_name(err), diag.field, diag.line,
                     diag.column, diag.text);
        }
        wpk_job_fini(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_ways),
        cmocka_unit_test(test_rejected),
    };

    return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}
