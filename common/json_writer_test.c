/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "common/rng.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Prints, frees the writer, and compares. */
static void expect_text(struct wpk_json_writer *w, bool pretty, const char *expected)
{
    struct wpk_buf out = {0};

    assert_int_equal(wpk_json_print(w, pretty, &out), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), expected);
    wpk_buf_fini(&out);
    wpk_json_writer_free(w);
}

/* {"x": [ */
static struct wpk_json_writer *new_list(void)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_begin_array(w, "x");
    return w;
}

static struct wpk_json_writer *build_sample(void)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    const int64_t shape[] = {1, 128, 28};

    wpk_json_put_text(w, "name", "c6");
    wpk_json_put_ints(w, "shape", shape, 3);
    wpk_json_begin_object(w, "best");
    wpk_json_put_int(w, "ns", -5);
    wpk_json_put_real(w, "speedup", 2.5);
    wpk_json_put_bool(w, "verified", true);
    wpk_json_put_null(w, "artifact");
    wpk_json_end(w);
    wpk_json_begin_array(w, "none");
    wpk_json_end(w);
    wpk_json_begin_array(w, "list");
    wpk_json_begin_object(w, NULL);
    wpk_json_end(w);
    wpk_json_put_text(w, NULL, "a,b:{\"");
    wpk_json_end(w);
    wpk_json_put_raw(w, "raw", "{\"x\":[1]}");
    wpk_json_put_u64(w, "id", UINT64_MAX);
    return w;
}

static void test_compact(void **state)
{
    (void)state;
    expect_text(build_sample(), false,
                "{\"name\":\"c6\",\"shape\":[1,128,28],\"best\":{\"ns\":-5,\"speedup\":2.5,"
                "\"verified\":true,\"artifact\":null},\"none\":[],\"list\":[{},\"a,b:{\\\"\"],"
                "\"raw\":{\"x\":[1]},\"id\":\"18446744073709551615\"}");
    expect_text(wpk_json_writer_new_object(), false, "{}");
}

static void test_pretty(void **state)
{
    (void)state;
    expect_text(build_sample(), true,
                "{\n"
                "  \"name\": \"c6\",\n"
                "  \"shape\": [1, 128, 28],\n"
                "  \"best\": {\n"
                "    \"ns\": -5,\n"
                "    \"speedup\": 2.5,\n"
                "    \"verified\": true,\n"
                "    \"artifact\": null\n"
                "  },\n"
                "  \"none\": [],\n"
                "  \"list\": [\n"
                "    {},\n"
                "    \"a,b:{\\\"\"\n"
                "  ],\n"
                "  \"raw\": {\n"
                "    \"x\": [1]\n"
                "  },\n"
                "  \"id\": \"18446744073709551615\"\n"
                "}\n");
    expect_text(wpk_json_writer_new_object(), true, "{}\n");
}

static void test_printing_leaves_the_writer_usable(void **state)
{
    (void)state;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf out = {0};

    wpk_json_put_int(w, "a", 1);
    assert_int_equal(wpk_json_print(w, false, &out), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), "{\"a\":1}");
    wpk_buf_fini(&out);
    wpk_json_put_int(w, "b", 2);
    expect_text(w, false, "{\"a\":1,\"b\":2}");
}

static void test_strings_are_escaped(void **state)
{
    (void)state;
    struct wpk_json_writer *w = new_list();

    wpk_json_put_text(w, NULL, "\"\\/\b\t\n\v\f\r\x1f\x7f");
    wpk_json_put_text(w, NULL, "\xc3\xa4\xf0\x9f\x98\x80");
    /* Bytes that are not UTF-8, and NUL, become U+FFFD. */
    wpk_json_put_bytes(w, NULL, "a\xff\0b\xe2\x82", 6);
    wpk_json_end(w);
    expect_text(
        w, false,
        "{\"x\":[\"\\\"\\\\/\\b\\t\\n\\u000b\\f\\r\\u001f\\u007f\",\"\xc3\xa4\xf0\x9f\x98\x80\","
        "\"a\xef\xbf\xbd\xef\xbf\xbd"
        "b\xef\xbf\xbd\xef\xbf\xbd\"]}");
}

/* Write one real and read it back. */
static double pass_real(double value)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_json_reader *r = NULL;
    struct wpk_buf out = {0};

    wpk_json_put_real(w, "x", value);
    assert_int_equal(wpk_json_print(w, false, &out), WPK_OK);
    assert_int_equal(wpk_json_open(out.data, out.size, 0, &r, NULL), WPK_OK);
    double again = wpk_json_get_real(r, "x", -DBL_MAX, DBL_MAX);
    assert_int_equal(wpk_json_status(r), WPK_OK);
    wpk_json_close(r);
    wpk_json_writer_free(w);
    wpk_buf_fini(&out);
    return again;
}

static void test_reals_read_back_exactly(void **state)
{
    (void)state;
    static const double fixed[] = {0, -0.0, 0.1, 0.1 + 0.2, 1e300, DBL_MAX, DBL_MIN, 5e-324, 1e22};
    struct wpk_rng rng;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        assert_true(pass_real(fixed[i]) == fixed[i]);
    }
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = wpk_rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            assert_true(pass_real(value) == value);
        }
    }
}

static void test_reals_are_short(void **state)
{
    (void)state;
    struct wpk_json_writer *w = new_list();

    wpk_json_put_real(w, NULL, 0.1);
    wpk_json_put_real(w, NULL, 1e-9);
    wpk_json_put_real(w, NULL, 2.0);
    wpk_json_end(w);
    expect_text(w, false, "{\"x\":[0.1,1e-09,2]}");
}

static void test_integers_read_back_exactly(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, -1, INT32_MAX, WPK_JSON_INT_MAX, -WPK_JSON_INT_MAX};
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_put_ints(w, "x", values, 6);
    expect_text(w, false, "{\"x\":[0,1,-1,2147483647,9007199254740991,-9007199254740991]}");
}

static void test_full_buffers_and_missing_writers(void **state)
{
    (void)state;
    struct wpk_json_writer *w = build_sample();
    struct wpk_buf out;

    for (int pretty = 0; pretty < 2; pretty++) {
        wpk_buf_init(&out, 20);
        assert_int_equal(wpk_json_print(w, pretty, &out), WPK_ENOSPC);
        wpk_buf_fini(&out);
    }
    wpk_json_writer_free(w);

    wpk_json_begin_object(NULL, "a");
    wpk_json_put_int(NULL, "b", 1);
    wpk_json_end(NULL);
    assert_int_equal(wpk_json_print(NULL, false, &out), WPK_ENOMEM);
    wpk_json_writer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_printing_leaves_the_writer_usable),
        cmocka_unit_test(test_strings_are_escaped),
        cmocka_unit_test(test_reals_read_back_exactly),
        cmocka_unit_test(test_reals_are_short),
        cmocka_unit_test(test_integers_read_back_exactly),
        cmocka_unit_test(test_full_buffers_and_missing_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
