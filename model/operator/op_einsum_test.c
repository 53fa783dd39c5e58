/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum against a loop over all letters. */
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ELEMENTS_MAX 512

/* An equation without "...": extents of its letters as digits, "i2j3". */
struct equation {
    const char *written; /* as the attribute */
    const char *inputs;  /* "ij,jk" */
    const char *result;  /* "ik" */
    const char *extents;
};

static int64_t extent_of(const struct equation *e, char letter)
{
    return strchr(e->extents, letter)[1] - '0';
}

/* The number of the element that the letters' values name. */
static int64_t place(const struct equation *e, const char *letters, size_t size,
                     const int64_t *value)
{
    int64_t at = 0;
    for (size_t i = 0; i < size; i++) {
        at = at * extent_of(e, letters[i]) + value[(int)letters[i]];
    }
    return at;
}

/* Add the products of all values of the letters. */
static void add_up(const struct equation *e, double data[][ELEMENTS_MAX], double *out)
{
    int64_t value[128] = {0};
    size_t count = strlen(e->extents) / 2, letter = 0;
    while (letter < count) {
        double product = 1;
        const char *at = e->inputs;
        for (int i = 0; *at != '\0'; i++) {
            size_t size = strcspn(at, ",");
            product *= data[i][place(e, at, size, value)];
            at += size + (at[size] == ',');
        }
        out[place(e, e->result, strlen(e->result), value)] += product;
        for (letter = 0; letter < count; letter++) {
            char name = e->extents[2 * letter];
            if (++value[(int)name] < extent_of(e, name)) {
                break;
            }
            value[(int)name] = 0;
        }
    }
}

static void check(const struct equation *e, int64_t expected_count)
{
    static double data[4][ELEMENTS_MAX];
    double found[ELEMENTS_MAX], expected[ELEMENTS_MAX] = {0};
    struct wpk_model_input inputs[4];
    char types[4][64], attribute[128];
    const char *at = e->inputs;
    int count = 0;
    for (; *at != '\0'; count++) {
        size_t size = strcspn(at, ",");
        int64_t elements = 1;
        snprintf(types[count], sizeof(types[count]), "f64[");
        for (size_t i = 0; i < size; i++) {
            size_t before = strlen(types[count]);
            snprintf(types[count] + before, sizeof(types[count]) - before, "%s%d", i > 0 ? "," : "",
                     (int)extent_of(e, at[i]));
            elements *= extent_of(e, at[i]);
        }
        size_t used = strlen(types[count]);
        snprintf(types[count] + used, sizeof(types[count]) - used, "]");
        assert_true(elements <= ELEMENTS_MAX);
        wpk_model_case_draw((unsigned)count + 1, data[count], elements);
        inputs[count] = (struct wpk_model_input){.type = types[count], .data = data[count]};
        at += size + (at[size] == ',');
    }
    add_up(e, data, expected);
    snprintf(attribute, sizeof(attribute), "equation:s=%s", e->written);
    int64_t elements =
        wpk_model_case_compute("Einsum", 17, attribute, inputs, count, 0, found, ELEMENTS_MAX);
    assert_int_equal(elements, expected_count);
    wpk_model_case_compare(e->written, found, expected, elements);
}

static void equations_are_sums_of_products(void **state)
{
    (void)state;
    static const struct {
        struct equation e;
        int64_t count;
    } cases[] = {
        {{"ij,jk->ik", "ij,jk", "ik", "i2j3k4"}, 8},
        {{"ij,jk", "ij,jk", "ik", "i2j3k4"}, 8}, /* implied */
        {{"bij,bjk->bik", "bij,bjk", "bik", "b2i3j4k2"}, 12},
        {{"ij->ji", "ij", "ji", "i2j5"}, 10},
        {{"ba", "ba", "ab", "a3b2"}, 6}, /* implied results are sorted */
        {{"ij->", "ij", "", "i3j4"}, 1},
        {{"ii->i", "ii", "i", "i4"}, 4}, /* a diagonal */
        {{"ii", "ii", "", "i4"}, 1},     /* a trace */
        {{"i,j->ij", "i,j", "ij", "i3j4"}, 12},
        {{"i,i->", "i,i", "", "i7"}, 1},
        {{"ij,ij,j->i", "ij,ij,j", "i", "i3j4"}, 3},
        {{"ab,bc,cd->ad", "ab,bc,cd", "ad", "a2b3c4d2"}, 4},
        {{"bhid,bhjd->bhij", "bhid,bhjd", "bhij", "b2h2i3d4j3"}, 36},
        {{"aBc,Bd->acd", "aBc,Bd", "acd", "a2B3c2d2"}, 8}, /* capitals are other letters */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(&cases[i].e, cases[i].count);
    }
}

/* "..." stands for the axes in front; missing ones broadcast. */
static void dots_stand_for_leading_axes(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Einsum", ":f32[2,2,3] 1,0,0,1,1,1:f32[3,2]", "equation:s=...ij,jk->...ik",
         "f32[2,2,2] 4,5,10,11,16,17,22,23"},
        {"Einsum", ":f32[2,2] :f32[2,2]", "equation:s=...,...->...", "f32[2,2] 1,4,9,16"},
        {"Einsum", ":f32[2,3]", "equation:s=...i->...", "f32[2] 6,15"},
        {"Einsum", ":f32[2,3]", "equation:s=i...->i...", "f32[2,3] 1,2,3,4,5,6"},
        {"Einsum", ":f32[3,2] :f32[1,2]", "equation:s=ij,ij->ij", "f32[3,2] 1,4,3,8,5,12"},
        {"Einsum", ":f32[2] :f32[2,2]", "equation:s=...,a...->a...", "f32[2,2] 1,4,3,8"},
    };
    WPK_MODEL_CASES(cases);
}

static void equations_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Einsum", ":f32[2,3]", "equation:s=ijk->i", "!does not fit its inputs"},
        {"Einsum", ":f32[2,3]", "equation:s=i->i", "!does not fit its inputs"},
        {"Einsum", ":f32[2,3] :f32[4]", "equation:s=ij,j->i", "!does not fit its inputs"},
        {"Einsum", ":f32[2,3] :f32[3]", "equation:s=ij->i", "!one term for each input"},
        {"Einsum", ":f32[2]", "equation:s=i,i->i", "!is not well formed"},
        {"Einsum", ":f32[2]", "equation:s=1->1", "!does not fit its inputs"},
        {"Einsum", ":f32[2]", "equation:s=i->j", "!Einsum"},
        {"Einsum", ":f32[2] :i64[2]", "equation:s=i,i->i", "!types f32 and i64"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equations_are_sums_of_products),
        cmocka_unit_test(dots_stand_for_leading_axes),
        cmocka_unit_test(equations_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
