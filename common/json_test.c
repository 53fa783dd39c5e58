/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char job[] = "{ \"name\": \"resnet18\",\n"
                          "  \"ops\": [\n"
                          "    { \"name\": \"c6\", \"shape\": [1, 128, 28, 28],\n"
                          "      \"tensors\": { \"X\": \"f32\", \"W\": \"f16\" } },\n"
                          "    { \"name\": \"c4\", \"shape\": [] } ],\n"
                          "  \"rate\": 0.25, \"seed\": \"18446744073709551615\", \"big\": 42,\n"
                          "  \"any\": true, \"none\": null }\n";

static struct wpk_diag diag;

static struct wpk_json_reader *open_text(const char *text)
{
    struct wpk_json_reader *reader = NULL;

    diag = (struct wpk_diag){0};
    wpk_err err = wpk_json_open(text, strlen(text), 0, &reader, &diag);
    if (err != WPK_OK) {
        fail_msg("does not open: %s", diag.text);
    }
    return reader;
}

/* The reader has failed there, with a text that contains this; and is closed. */
static void expect_failure(struct wpk_json_reader *reader, wpk_err err, const char *field, int line,
                           int column, const char *text)
{
    assert_string_equal(diag.field, field);
    if (strstr(diag.text, text) == NULL) {
        fail_msg("'%s' is not in '%s'", text, diag.text);
    }
    assert_int_equal(diag.line, line);
    assert_int_equal(diag.column, column);
    assert_int_equal(wpk_json_status(reader), err);
    wpk_json_close(reader);
}

static void test_reads_every_kind(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text(job);
    char name[9];

    wpk_json_get_copy(r, "name", name, sizeof(name));
    assert_string_equal(name, "resnet18");
    assert_string_equal(wpk_json_get_text(r, "name", 8), "resnet18");
    assert_true(wpk_json_get_real(r, "rate", 0, 1) == 0.25);
    assert_true(wpk_json_get_u64(r, "seed") == UINT64_MAX);
    assert_true(wpk_json_get_u64(r, "big") == 42);
    assert_int_equal(wpk_json_get_int(r, "big", 42, 42), 42);
    assert_true(wpk_json_get_bool(r, "any"));
    assert_int_equal(wpk_json_kind_of(r, "none"), WPK_JSON_NULL);
    assert_int_equal(wpk_json_kind_of(r, "nothing"), WPK_JSON_ABSENT);
    assert_int_equal(wpk_json_kind_of(r, "any"), WPK_JSON_BOOL);
    assert_int_equal(wpk_json_kind_of(r, "rate"), WPK_JSON_NUMBER);
    assert_int_equal(wpk_json_kind_of(r, "ops"), WPK_JSON_ARRAY);
    assert_int_equal(wpk_json_kind_of(r, NULL), WPK_JSON_OBJECT);
    assert_int_equal(wpk_json_count(r, "ops"), 2);
    assert_true(wpk_json_has(r, "none"));
    assert_false(wpk_json_has(r, "Name"));
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
    wpk_json_close(NULL);
}

static void test_walks_arrays_and_objects(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text(job);
    int64_t shape[4] = {0};
    struct wpk_buf seen = {0};

    wpk_json_enter_array(r, "ops");
    while (wpk_json_next(r)) {
        wpk_buf_append_text(&seen, wpk_json_get_text(r, "name", 8));
        assert_int_equal(wpk_json_get_ints(r, "shape", 1, 1000, shape, 4), seen.size == 2 ? 4 : 0);
        if (wpk_json_has(r, "tensors")) {
            wpk_json_enter(r, "tensors");
            while (wpk_json_next(r)) {
                wpk_buf_append_text(&seen, wpk_json_name(r));
                wpk_buf_append_text(&seen, wpk_json_get_text(r, NULL, 8));
            }
            wpk_json_leave(r);
        }
    }
    wpk_json_leave(r);
    assert_string_equal(wpk_buf_text(&seen), "c6Xf32Wf16c4");
    wpk_buf_fini(&seen);
    assert_int_equal(shape[1], 128);
    assert_true(wpk_json_has(r, "name"));
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
}

static void test_raw_is_the_text_itself(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text("{\"a\":[{\"b\": 0.30000000000000004 }]}");
    struct wpk_buf out = {0};

    wpk_json_enter_array(r, "a");
    assert_true(wpk_json_next(r));
    wpk_json_get_raw(r, "b", &out);
    wpk_json_get_raw(r, NULL, &out);
    wpk_json_leave(r);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), "0.30000000000000004{\"b\": 0.30000000000000004 }");
    wpk_buf_fini(&out);

    wpk_buf_init(&out, 3);
    wpk_json_get_raw(r, "a", &out);
    assert_int_equal(wpk_json_status(r), WPK_ENOSPC);
    wpk_buf_fini(&out);
    wpk_json_close(r);
}

/* Whichever item was asked for before: the next one, one further on, or an earlier one. */
static void test_raw_of_items_in_any_order(void **state)
{
    (void)state;
    const char *const wanted[] = {"{ \"b\" : [1 , 2] }", "[ ]", "\"],\"", "{\"b\":[[3],{}]}"};
    const char *const inner[] = {"1", "2", "", "", "", "[3]", "{}"};
    struct wpk_json_reader *r = open_text(
        "{\"x\":[9],\"a\":[ { \"b\" : [1 , 2] } ,\n[ ],\"],\" , {\"b\":[[3],{}]}],\"a2\":0}");
    for (size_t step = 1; step < 4; step++) {
        size_t i = 0;
        wpk_json_enter_array(r, "a");
        for (; wpk_json_next(r); i++) {
            struct wpk_buf out = {0};
            if (i % step == 0) {
                wpk_json_get_raw(r, NULL, &out);
                assert_string_equal(wpk_buf_text(&out), wanted[i]);
            }
            wpk_buf_fini(&out);
        }
        assert_int_equal(i, 4);
        wpk_json_leave(r);
    }
    /* Items of items, and what was looked at before them again. */
    wpk_json_enter_array(r, "a");
    for (size_t i = 0; wpk_json_next(r); i++) {
        for (int again = 0; again < 2 && i % 3 == 0; again++) {
            struct wpk_buf out = {0};
            size_t at = 0;
            wpk_json_get_raw(r, NULL, &out);
            wpk_json_enter(r, NULL);
            wpk_json_enter_array(r, "b");
            for (; wpk_json_next(r); at++) {
                struct wpk_buf item = {0};
                wpk_json_get_raw(r, NULL, &item);
                assert_string_equal(wpk_buf_text(&item), inner[i == 0 ? at : 5 + at]);
                wpk_buf_fini(&item);
            }
            wpk_json_leave(r);
            wpk_json_leave(r);
            assert_int_equal(at, 2);
            assert_string_equal(wpk_buf_text(&out), wanted[i]);
            wpk_buf_fini(&out);
        }
    }
    wpk_json_leave(r);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
}

static void test_failures_name_field_line_and_column(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text(job);
    (void)wpk_json_get_int(r, "name", 0, 1);
    expect_failure(r, WPK_EINVAL, "name", 1, 11, "must be a number");

    r = open_text(job);
    (void)wpk_json_get_text(r, "owner", 10);
    expect_failure(r, WPK_EINVAL, "owner", 1, 1, "is missing");

    r = open_text(job);
    (void)wpk_json_get_int(r, "rate", 0, 1);
    expect_failure(r, WPK_EINVAL, "rate", 6, 11, "must be an integer");

    r = open_text(job);
    (void)wpk_json_get_real(r, "rate", 0.5, 1);
    expect_failure(r, WPK_ERANGE, "rate", 6, 11, "between 0.5 and 1");

    r = open_text(job);
    (void)wpk_json_get_text(r, "name", 7);
    expect_failure(r, WPK_ERANGE, "name", 1, 11, "at most 7 bytes");

    r = open_text(job);
    (void)wpk_json_get_u64(r, "name");
    expect_failure(r, WPK_EINVAL, "name", 1, 11, "decimal number");

    r = open_text(job);
    wpk_json_enter_array(r, "any");
    expect_failure(r, WPK_EINVAL, "any", 7, 10, "must be an array");
}

static void test_failures_deep_inside(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "f64"};
    struct wpk_json_reader *r = open_text(job);

    wpk_json_enter_array(r, "ops");
    while (wpk_json_next(r)) {
        wpk_json_enter(r, "tensors");
        while (wpk_json_next(r)) {
            (void)wpk_json_get_choice(r, NULL, types, 2);
        }
        wpk_json_leave(r);
    }
    wpk_json_leave(r);
    expect_failure(r, WPK_EINVAL, "ops[0].tensors.W", 4, 37, "must be one of: f32, f64");

    int64_t shape[4];
    r = open_text(job);
    wpk_json_enter_array(r, "ops");
    assert_true(wpk_json_next(r));
    assert_int_equal(wpk_json_get_ints(r, "shape", 1, 28, shape, 4), 0);
    wpk_json_leave(r);
    expect_failure(r, WPK_ERANGE, "ops[0].shape[1]", 3, 34, "between 1 and 28");

    r = open_text(job);
    wpk_json_enter_array(r, "ops");
    assert_true(wpk_json_next(r));
    (void)wpk_json_get_ints(r, "shape", 1, 1000, shape, 3);
    expect_failure(r, WPK_ERANGE, "ops[0].shape", 3, 30, "at most 3");
}

static void test_unknown_fields_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"name", "shape", NULL};
    struct wpk_json_reader *r = open_text(job);

    wpk_json_enter_array(r, "ops");
    while (wpk_json_next(r)) {
        wpk_json_allow(r, names);
    }
    wpk_json_leave(r);
    /* On the name, not on its value. */
    expect_failure(r, WPK_EINVAL, "ops[0].tensors", 4, 7, "unknown field");
}

static void test_first_failure_sticks(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text(job);

    wpk_json_enter(r, "nothing");
    wpk_json_enter_array(r, "ops");
    assert_false(wpk_json_next(r));
    assert_int_equal(wpk_json_get_int(r, "big", 0, 100), 0);
    assert_string_equal(wpk_json_get_text(r, "name", 100), "");
    assert_false(wpk_json_has(r, "name"));
    assert_string_equal(wpk_json_name(r), "");
    wpk_json_fail(r, "name", WPK_ERANGE, "later");
    wpk_json_leave(r);
    wpk_json_leave(r);
    expect_failure(r, WPK_EINVAL, "nothing", 1, 1, "is missing; an object is expected");
}

static void test_callers_own_rules(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text(job);

    wpk_json_fail(r, "rate", WPK_ERANGE, "%d is %s", 7, "odd");
    expect_failure(r, WPK_ERANGE, "rate", 6, 11, "7 is odd");
}

static void expect_rejected(const char *text, wpk_err expected, const char *field, int line,
                            int column)
{
    struct wpk_json_reader *untouched = NULL;

    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_json_open(text, strlen(text), 0, &untouched, &diag), expected);
    assert_null(untouched);
    assert_string_equal(diag.field, field);
    assert_int_equal(diag.line, line);
    assert_int_equal(diag.column, column);
}

static void test_duplicate_names_are_rejected(void **state)
{
    (void)state;
    expect_rejected("{\"a\":1,\n \"a\":2}", WPK_EPARSE, "a", 2, 2);
    expect_rejected("{\"a\":1,\"\\u0061\":2}", WPK_EPARSE, "a", 1, 8);
    expect_rejected("[0,{\"x\":{\"b\":1,\"c\":2,\"b\":{}}}]", WPK_EPARSE, "[1].x.b", 1, 22);
    wpk_json_close(open_text("{\"a\":{\"a\":1},\"A\":2}"));
}

static void test_integers_are_exact(void **state)
{
    (void)state;
    struct wpk_json_reader *r = open_text("[9007199254740991, -9007199254740991, 1.0, 3e2]");
    int64_t numbers[4];

    assert_int_equal(wpk_json_get_ints(r, NULL, INT64_MIN, INT64_MAX, numbers, 4), 4);
    assert_true(numbers[0] == WPK_JSON_INT_MAX);
    assert_true(numbers[1] == -WPK_JSON_INT_MAX);
    assert_int_equal(numbers[2], 1);
    assert_int_equal(numbers[3], 300);
    wpk_json_close(r);

    r = open_text("[9007199254740993]");
    assert_int_equal(wpk_json_get_ints(r, NULL, INT64_MIN, INT64_MAX, numbers, 4), 0);
    expect_failure(r, WPK_ERANGE, "[0]", 1, 2, "must be between");
    r = open_text("[-9007199254740993]");
    assert_int_equal(wpk_json_get_ints(r, NULL, INT64_MIN, INT64_MAX, numbers, 4), 0);
    expect_failure(r, WPK_ERANGE, "[0]", 1, 2, "must be between -9007199254740991");
    r = open_text("{\"x\":1e400}");
    (void)wpk_json_get_real(r, "x", -1e308, 1e308);
    expect_failure(r, WPK_ERANGE, "x", 1, 6, "must be between");
    r = open_text("{\"x\":\"18446744073709551616\"}");
    (void)wpk_json_get_u64(r, "x");
    expect_failure(r, WPK_EINVAL, "x", 1, 6, "below 2^64");
    r = open_text("{\"x\":\"01\"}");
    (void)wpk_json_get_u64(r, "x");
    expect_failure(r, WPK_EINVAL, "x", 1, 6, "decimal");
    r = open_text("{\"x\":-1}");
    (void)wpk_json_get_u64(r, "x");
    expect_failure(r, WPK_ERANGE, "x", 1, 6, "between 0 and");
}

static void test_limits(void **state)
{
    (void)state;
    struct wpk_json_reader *r = NULL;

    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_json_open("[1,2]", 5, 5, &r, &diag), WPK_OK);
    wpk_json_close(r);
    assert_int_equal(wpk_json_open("[1,2]", 5, 4, &r, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "5 bytes are more than the 4"));
    /* The deepest that is allowed can be entered to its end. */
    static char deep[2 * WPK_JSON_DEPTH_MAX + 1];
    memset(deep, '[', WPK_JSON_DEPTH_MAX);
    memset(deep + WPK_JSON_DEPTH_MAX, ']', WPK_JSON_DEPTH_MAX);
    r = open_text(deep);
    for (int i = 1; i < WPK_JSON_DEPTH_MAX; i++) {
        assert_true(wpk_json_next(r));
        wpk_json_enter_array(r, NULL);
    }
    assert_false(wpk_json_next(r));
    wpk_json_fail(r, NULL, WPK_EINVAL, "here");
    expect_failure(r, WPK_EINVAL,
                   "[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]"
                   "[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][",
                   1, WPK_JSON_DEPTH_MAX, "here");
}

static void test_hundred_thousand_members_are_quick(void **state)
{
    (void)state;
    struct wpk_buf text = {0};

    /* Quadratic checking would take minutes; meson's timeout is 30 s. */
    wpk_buf_append_byte(&text, '{');
    for (int i = 0; i < 80000; i++) {
        wpk_buf_printf(&text, "%s\"%d\":0", i > 0 ? "," : "", i);
    }
    wpk_buf_append_byte(&text, '}');
    assert_true(text.size < WPK_JSON_SIZE_MAX_DEFAULT);
    wpk_json_close(open_text(wpk_buf_text(&text)));
    wpk_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_every_kind),
        cmocka_unit_test(test_walks_arrays_and_objects),
        cmocka_unit_test(test_raw_is_the_text_itself),
        cmocka_unit_test(test_raw_of_items_in_any_order),
        cmocka_unit_test(test_failures_name_field_line_and_column),
        cmocka_unit_test(test_failures_deep_inside),
        cmocka_unit_test(test_unknown_fields_are_named),
        cmocka_unit_test(test_first_failure_sticks),
        cmocka_unit_test(test_callers_own_rules),
        cmocka_unit_test(test_duplicate_names_are_rejected),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hundred_thousand_members_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
