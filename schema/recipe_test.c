/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/recipe.h"
#include "tests/recipe_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char convolution[] =
    "{\"version\":3,\"primitive\":\"convolution\",\"inputs\":[{\"name\":\"t0\","
    "\"type\":\"f32[1,32,8,8]\",\"layout\":\"0,1,2,3,1/16\"}],\"constants\":[{\"name\":\"t1\","
    "\"type\":\"f32[16,32,3,3]\",\"layout\":\"0,1,2,3\"}],\"outputs\":[{\"name\":\"t2\","
    "\"type\":\"f32[1,16,8,8]\",\"layout\":\"0,1,2,3\"}],\"src\":{\"extents\":[1,32,8,8],"
    "\"strides\":[2048,1024,128,16],\"tensor\":0,\"block\":{\"dim\":1,\"size\":16},"
    "\"chosen\":false},\"weights\":{\"extents\":[16,32,3,3],\"strides\":[288,9,3,1],"
    "\"tensor\":1,\"chosen\":true},\"dst\":{\"extents\":[1,16,8,8],\"strides\":[1024,64,8,1],"
    "\"tensor\":2,\"chosen\":true},\"window\":{\"kernel\":[3,3],\"strides\":[1,1],"
    "\"dilations\":[1,1],\"before\":[1,1],\"after\":[1,1]},\"posts\":[{\"function\":\"clip\","
    "\"alpha\":0,\"beta\":6}]}";

static void reads_what_it_wrote(void **state)
{
    struct wpk_recipe recipe = {0};
    struct wpk_buf text = {0};

    (void)state;
    assert_int_equal(wpk_recipe_decode(convolution, strlen(convolution), &recipe, NULL), WPK_OK);
    assert_int_equal(recipe.kind, WPK_RECIPE_CONVOLUTION);
    assert_int_equal(recipe.tensor_count, 3);
    assert_int_equal(recipe.spatial, 2);
    assert_int_equal(recipe.operand[WPK_RECIPE_SRC].block, 16);
    assert_int_equal(recipe.operand[WPK_RECIPE_BIAS].tensor, -1);
    assert_int_equal(recipe.operand[WPK_RECIPE_DST].tensor, 2);
    assert_true(recipe.post[0].beta == 6);
    assert_int_equal(wpk_recipe_encode(&recipe, &text), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), convolution);
    wpk_buf_fini(&text);
}

static const char product[] =
    "{\"version\":3,\"primitive\":\"matmul\",\"inputs\":[{\"name\":\"t0\",\"type\":\"f32[4,"
    "8]\",\"layout\":\"0,1\"}],\"constants\":[{\"name\":\"t1\",\"type\":\"f32[8,6]\","
    "\"layout\":\"0,1\"}],\"outputs\":[{\"name\":\"t2\",\"type\":\"f32[4,6]\",\"layout\":\"0,"
    "1\"}],\"src\":{\"extents\":[4,8],\"strides\":[8,1],\"tensor\":0,\"chosen\":false},"
    "\"weights\":{\"extents\":[8,6],\"strides\":[6,1],\"tensor\":1,\"chosen\":false},"
    "\"dst\":{\"extents\":[4,6],\"strides\":[6,1],\"tensor\":2,\"chosen\":false},";

/* The first algorithm goes without saying. */
static void algorithms_have_numbers(void **state)
{
    static const struct {
        const char *rest;
        int number; /* -1: it is refused */
    } cases[] = {{"\"posts\":[]}", 0},
                 {"\"algorithm\":7,\"posts\":[]}", 7},
                 {"\"algorithm\":0,\"posts\":[]}", -1},
                 {"\"algorithm\":1001,\"posts\":[]}", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_recipe recipe = {0};
        struct wpk_buf text = {0}, again = {0};
        wpk_buf_append_text(&text, product);
        wpk_buf_append_text(&text, cases[i].rest);
        wpk_err err = wpk_recipe_decode(text.data, text.size, &recipe, NULL);
        assert_int_equal(err, cases[i].number < 0 ? WPK_ERANGE : WPK_OK);
        if (err == WPK_OK) {
            assert_int_equal(recipe.algorithm, cases[i].number);
            assert_int_equal(wpk_recipe_encode(&recipe, &again), WPK_OK);
            assert_string_equal(wpk_buf_text(&again), wpk_buf_text(&text));
        }
        wpk_buf_fini(&text);
        wpk_buf_fini(&again);
    }
}

static const struct {
    const char *from;
    const char *to;
    wpk_err err;
    const char *says;
} breaches[] = {
    {"\"version\":3", "\"version\":2", WPK_EMISMATCH, "version 2"},
    {"\"convolution\"", "\"transform\"", WPK_EINVAL, "primitive"},
    {"\"posts\"", "\"axis\":1,\"posts\"", WPK_EINVAL, "axis"},
    {"\"posts\"", "\"algorithm\":1001,\"posts\"", WPK_ERANGE, "algorithm"},
    {"\"tensor\":1", "\"tensor\":7", WPK_EINVAL, "no tensor 7"},
    {"\"tensor\":1", "\"tensor\":2", WPK_EINVAL, "weights"},
    {"\"tensor\":2", "\"tensor\":0", WPK_EINVAL, "dst"},
    {"\"name\":\"t1\"", "\"name\":\"t0\"", WPK_EINVAL, "twice"},
    {"[288,9,3,1]", "[289,9,3,1]", WPK_ERANGE, "leaves 't1'"},
    {"[288,9,3,1]", "[288,9,3]", WPK_ERANGE, "fewer than 4 items"},
    {"[288,9,3,1]", "[8589934592,9,3,1]", WPK_ERANGE, "leaves 't1'"},
    {"[16,32,3,3],\"strides\"", "[8589934592,8589934592,3,3],\"strides\"", WPK_ERANGE, "leaves"},
    {"[2048,1024,128,16]", "[2048,1025,128,16]", WPK_ERANGE, "leaves 't0'"},
    {"\"dim\":1", "\"dim\":4", WPK_ERANGE, "dim"},
    {"\"kernel\":[3,3]", "\"kernel\":[3]", WPK_ERANGE, "kernel"},
    {"\"kernel\":[3,3]", "\"kernel\":[0,3]", WPK_ERANGE, "kernel"},
    {"\"alpha\":0", "\"gamma\":0", WPK_EINVAL, "gamma"},
    {"\"dst\":{", "\"bias\":{", WPK_EINVAL, "bias"},
    {"\"window\"",
     "\"scale\":{\"extents\":[16],\"strides\":[1],\"tensor\":1,\"chosen\":false},\"window\"",
     WPK_EINVAL, "scale"}, /* of floats */
};

static void breaches_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
        struct wpk_recipe recipe;
        struct wpk_buf text = {0};
        struct wpk_diag diag = {0};
        const char *at = strstr(convolution, breaches[i].from);
        assert_non_null(at);
        wpk_buf_append(&text, convolution, (size_t)(at - convolution));
        wpk_buf_append_text(&text, breaches[i].to);
        wpk_buf_append_text(&text, at + strlen(breaches[i].from));
        wpk_err err = wpk_recipe_decode(text.data, text.size, &recipe, &diag);
        char whole[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, whole, sizeof(whole));
        if (err != breaches[i].err || strstr(whole, breaches[i].says) == NULL) {
            fail_msg("%s: %s: %s", breaches[i].to, wpk_err_text(err), whole);
        }
        wpk_buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(algorithms_have_numbers),
        cmocka_unit_test(breaches_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
