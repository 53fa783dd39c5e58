/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/notation/definition.h"

#include "tests/shorthand_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"", WPK_EPARSE, "", ""},
        {"[]", WPK_EINVAL, "type", "is missing"},
        {"{'type':'softmax','shape':[2,3]", WPK_EPARSE, "", ""},
        {"{'type':'softmax','shape':[2,3]} x", WPK_EPARSE, "", ""},
        {"{'type':'softmax','shape':[2,3],'shape':[2,3]}", WPK_EPARSE, "shape", "twice"},
        {"{}", WPK_EINVAL, "type", "is missing"},
        {"{'type':7}", WPK_EINVAL, "type", "must be a string"},
        {"{'type':'conv9d','shape':[2]}", WPK_EINVAL, "type", "no operator is called 'conv9d'"},
        {"{'type':'softmax','shape':[2,3],'dtype':'i64'}", WPK_EINVAL, "dtype", "must be one of"},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

/* Where the mistake is, in the JSON and not in the equations that were made of it. */
static void test_position(void **state)
{
    static const char json[] = "{\"type\": \"elementwise\",\n \"inputs\": {\"A\": [2]},\n"
                               "  \"expr\": \"A + exp()\"}";
    struct wpk_program program;
    struct wpk_diag diag = {0};
    (void)state;
    assert_int_equal(wpk_shorthand_expand(json, &program, &diag), WPK_EPARSE);
    assert_string_equal(diag.field, "expr");
    assert_int_equal(diag.line, 3);
    assert_int_equal(diag.column, 11);
    assert_non_null(strstr(diag.text, "expected an expression before ')'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
