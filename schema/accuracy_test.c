/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/accuracy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    double times;
} good[] = {
    {"strict", 1.25},
    {"standard", 4.0},
    {"fast", 16.0},
    {"times_direct=6", 6.0},
    {"times_direct=0.1", 0.1},
    {"times_direct=1e+06", 1e6},
    {"times_direct=1.75", 1.75},
    {"times_direct=1e-300", 1e-300},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct wpk_accuracy accuracy = {0};
        char name[WPK_ACCURACY_TEXT_MAX];
        assert_int_equal(wpk_accuracy_parse(good[i].text, &accuracy, NULL), WPK_OK);
        assert_true(accuracy.times_direct == good[i].times);
        wpk_accuracy_name(accuracy, name);
        assert_string_equal(name, good[i].text);
    }
    struct wpk_accuracy accuracy = {0};
    assert_int_equal(wpk_accuracy_parse("times_direct=4", &accuracy, NULL), WPK_OK);
    assert_true(accuracy.times_direct == WPK_ACCURACY_STANDARD.times_direct);
}

/* Every double has a text that fits and reads back as it. */
static void test_long_numbers(void **state)
{
    (void)state;
    static const double times[] = {1.0 / 3, 5e-324, 2.2250738585072014e-308, 999999.99999999988};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char name[WPK_ACCURACY_TEXT_MAX];
        struct wpk_accuracy accuracy = {0};
        wpk_accuracy_name((struct wpk_accuracy){times[i]}, name);
        assert_int_equal(wpk_accuracy_parse(name, &accuracy, NULL), WPK_OK);
        assert_true(accuracy.times_direct == times[i]);
    }
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        wpk_err err;
    } bad[] = {
        {"", WPK_EINVAL},
        {"Strict", WPK_EINVAL},
        {"4", WPK_EINVAL},
        {"times_direct", WPK_EINVAL},
        {"times_direct=", WPK_EINVAL},
        {"times_direct=4x", WPK_EINVAL},
        {"times_direct= 4", WPK_EINVAL},
        {"times_direct=4e", WPK_EINVAL},
        {"times_direct=nan", WPK_EINVAL},
        {"times_direct=inf", WPK_EINVAL},
        {"times_direct=0", WPK_ERANGE},
        {"times_direct=-4", WPK_ERANGE},
        {"times_direct=1000001", WPK_ERANGE},
        {"times_direct=1e999", WPK_ERANGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wpk_accuracy accuracy = {7.0};
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_accuracy_parse(bad[i].text, &accuracy, &diag), bad[i].err);
        assert_true(accuracy.times_direct == 7.0);
        assert_true(strlen(diag.text) > 10);
    }
}

static wpk_err read(const char *text, struct wpk_accuracy *out, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader = NULL;
    assert_int_equal(wpk_json_open(text, strlen(text), 0, &reader, diag), WPK_OK);
    wpk_accuracy_get(reader, "accuracy", out);
    wpk_err err = wpk_json_status(reader);
    wpk_json_close(reader);
    return err;
}

static void test_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct wpk_json_writer *writer = wpk_json_writer_new_object();
        wpk_accuracy_put(writer, "accuracy", &(struct wpk_accuracy){good[i].times});
        struct wpk_buf buf = {.size_max = 1000};
        char *text = NULL;
        assert_int_equal(wpk_json_print(writer, false, &buf), WPK_OK);
        assert_int_equal(wpk_buf_take(&buf, &text, NULL), WPK_OK);
        wpk_json_writer_free(writer);
        struct wpk_accuracy accuracy = {0};
        assert_int_equal(read(text, &accuracy, NULL), WPK_OK);
        assert_true(accuracy.times_direct == good[i].times);
        assert_true((strchr(text + 1, '{') == NULL) == (strchr(good[i].text, '=') == NULL));
        free(text);
    }
    struct wpk_accuracy accuracy = {0};
    assert_int_equal(read("{}", &accuracy, NULL), WPK_OK);
    assert_true(accuracy.times_direct == 4.0);
    assert_int_equal(read("{\"accuracy\": \"times_direct=6\"}", &accuracy, NULL), WPK_OK);
    assert_true(accuracy.times_direct == 6.0);
}

static void test_bad_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *field;
        const char *says;
    } bad[] = {
        {"{\"accuracy\": 4}", "accuracy", "strict"},
        {"{\"accuracy\": null}", "accuracy", "strict"},
        {"{\"accuracy\": \"exact\"}", "accuracy", "standard"},
        {"{\"accuracy\": {}}", "accuracy.times_direct", "missing"},
        {"{\"accuracy\": {\"times_direct\": 0}}", "accuracy.times_direct", "above 0"},
        {"{\"accuracy\": {\"times_direct\": -1}}", "accuracy.times_direct", "0"},
        {"{\"accuracy\": {\"times_direct\": 1e7}}", "accuracy.times_direct", "1e+06"},
        {"{\"accuracy\": {\"times_direct\": \"4\"}}", "accuracy.times_direct", ""},
        {"{\"accuracy\": {\"times_direct\": 4, \"k\": 1}}", "accuracy.k", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wpk_accuracy accuracy;
        struct wpk_diag diag = {0};
        assert_int_not_equal(read(bad[i].text, &accuracy, &diag), WPK_OK);
        assert_string_equal(diag.field, bad[i].field);
        assert_non_null(strstr(diag.text, bad[i].says));
    }
}

static void test_admits(void **state)
{
    (void)state;
    struct wpk_accuracy standard = WPK_ACCURACY_STANDARD;
    assert_true(wpk_accuracy_admits(standard, 0));
    assert_true(wpk_accuracy_admits(standard, 3.6));
    assert_false(wpk_accuracy_admits(standard, 3.61));
    assert_false(wpk_accuracy_admits(standard, -1));
    assert_false(wpk_accuracy_admits(standard, NAN));
    assert_true(wpk_accuracy_admits_fresh(standard, 4.18));
    assert_false(wpk_accuracy_admits_fresh(standard, 4.2));
    assert_false(wpk_accuracy_admits_fresh(standard, -1));
    assert_true(wpk_accuracy_serves(standard, WPK_ACCURACY_STRICT, -1));
    assert_true(wpk_accuracy_serves(standard, standard, 3.9));
    assert_true(wpk_accuracy_serves(standard, (struct wpk_accuracy){16}, 1));
    assert_false(wpk_accuracy_serves(standard, (struct wpk_accuracy){16}, 3.9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admits),       cmocka_unit_test(test_texts),
        cmocka_unit_test(test_long_numbers), cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_json),         cmocka_unit_test(test_bad_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
