/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct conv {
    int n, channels, height, width, filters, kernel[2], stride[2], padding[4], dilation[2], groups;
    bool bias, relu;
};

static int output_extent(const struct conv *c, int d)
{
    int extent = d == 0 ? c->height : c->width;
    int window = c->dilation[d] * (c->kernel[d] - 1) + 1;
    return (c->padding[d] + extent + c->padding[2 + d] - window) / c->stride[d] + 1;
}

static double conv_at(const struct conv *c, const struct wpk_expanded *e, const int *point)
{
    const double *x = wpk_expanded_values(e, "X"), *w = wpk_expanded_values(e, "W");
    int inputs = c->channels / c->groups;
    int first = point[1] / (c->filters / c->groups) * inputs;
    double sum = c->bias ? wpk_expanded_values(e, "B")[point[1]] : 0;
    for (int i = 0; i < inputs; i++) {
        for (int r = 0; r < c->kernel[0]; r++) {
            for (int s = 0; s < c->kernel[1]; s++) {
                int row = point[2] * c->stride[0] + r * c->dilation[0] - c->padding[0];
                int column = point[3] * c->stride[1] + s * c->dilation[1] - c->padding[1];
                if (row < 0 || row >= c->height || column < 0 || column >= c->width) {
                    continue;
                }
                int at = ((point[0] * c->channels + first + i) * c->height + row) * c->width;
                int tap = ((point[1] * inputs + i) * c->kernel[0] + r) * c->kernel[1] + s;
                sum += x[at + column] * w[tap];
            }
        }
    }
    return c->relu ? fmax(sum, 0) : sum;
}

static void check_conv(const struct conv *c, const char *json)
{
    struct wpk_expanded e;
    int64_t at = 0;
    wpk_expanded_init(&e, json);
    int height = output_extent(c, 0), width = output_extent(c, 1);
    assert_int_equal(wpk_tensor_elements(wpk_expanded_tensor(&e, "Y")),
                     c->n * c->filters * height * width);
    assert_int_equal(wpk_expanded_tensor(&e, "W")->role, WPK_ROLE_CONSTANT);
    for (int n = 0; n < c->n; n++) {
        for (int k = 0; k < c->filters; k++) {
            for (int y = 0; y < height; y++) {
                for (int x = 0; x < width; x++) {
                    wpk_expanded_expect(&e, at++, conv_at(c, &e, (int[]){n, k, y, x}));
                }
            }
        }
    }
    wpk_expanded_fini(&e);
}

static void test_conv2d(void **state)
{
    static const struct conv cases[] = {
        {1, 3, 7, 6, 4, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, true, true},
        {2, 3, 9, 8, 2, {3, 2}, {2, 3}, {0, 2, 1, 0}, {1, 1}, 1, false, false},
        {1, 2, 9, 9, 3, {3, 3}, {1, 2}, {2, 1, 2, 1}, {2, 3}, 1, true, false},
        {1, 2, 9, 9, 3, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 2}, 1, false, false},
        {1, 4, 5, 5, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2, true, true},
        {1, 4, 5, 5, 4, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4, false, true}, /* depthwise */
        {1, 3, 5, 5, 6, {3, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 3, true, false}, /* two for each */
        {2, 5, 4, 3, 2, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, true, false},
        {1, 2, 3, 3, 2, {7, 7}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 1, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct conv *c = &cases[i];
        char json[512];
        (void)snprintf(json, sizeof json,
                       "{'type':'conv2d','input':[%d,%d,%d,%d],'filters':%d,'kernel':[%d,%d],"
                       "'stride':[%d,%d],'padding':[%d,%d,%d,%d],'dilation':[%d,%d],'groups':%d,"
                       "'bias':%s,'activation':'%s'}",
                       c->n, c->channels, c->height, c->width, c->filters, c->kernel[0],
                       c->kernel[1], c->stride[0], c->stride[1], c->padding[0], c->padding[1],
                       c->padding[2], c->padding[3], c->dilation[0], c->dilation[1], c->groups,
                       c->bias ? "true" : "false", c->relu ? "relu" : "none");
        check_conv(c, json);
    }
}

static void test_depthwise_conv2d(void **state)
{
    (void)state;
    check_conv(&(struct conv){1, 3, 6, 6, 3, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3, true, true},
               "{'type':'depthwise_conv2d','input':[1,3,6,6],'kernel':[3,3],'padding':[1,1,1,1],"
               "'bias':true,'activation':'relu'}");
    check_conv(&(struct conv){2, 2, 7, 6, 4, {3, 2}, {2, 1}, {0, 0, 0, 0}, {2, 2}, 2, false, false},
               "{'type':'depthwise_conv2d','input':[2,2,7,6],'kernel':[3,2],'stride':[2,1],"
               "'dilation':[2,2],'multiplier':2}");
}

/* Fields that are not given have defaults, and narrow inputs have wide outputs. */
static void test_defaults(void **state)
{
    struct wpk_expanded e;
    (void)state;
    check_conv(&(struct conv){1, 2, 4, 4, 3, {3, 3}, {1, 1}, {0}, {1, 1}, 1, false, false},
               "{'type':'conv2d','input':[1,2,4,4],'filters':3,'kernel':[3,3]}");
    wpk_expanded_init(&e, "{'type':'conv2d','input':[1,2,4,4],'filters':3,'kernel':[1,1],"
                          "'bias':true,'dtype':'i8'}");
    assert_int_equal(wpk_expanded_tensor(&e, "W")->dtype, WPK_I8);
    assert_int_equal(wpk_expanded_tensor(&e, "B")->dtype, WPK_I32);
    assert_int_equal(wpk_expanded_tensor(&e, "Y")->dtype, WPK_I32);
    wpk_expanded_fini(&e);
    wpk_expanded_init(&e, "{'type':'conv2d','input':[1,2,4,4],'filters':3,'kernel':[1,1],"
                          "'dtype':'bf16','output_dtype':'f32'}");
    assert_int_equal(wpk_expanded_tensor(&e, "X")->dtype, WPK_BF16);
    assert_int_equal(wpk_expanded_tensor(&e, "Y")->dtype, WPK_F32);
    wpk_expanded_fini(&e);
}

#define CONV "{'type':'conv2d','input':[1,4,5,5],'filters':4,'kernel':[3,3]"

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'conv2d'}", WPK_EINVAL, "input", "is missing"},
        {CONV ",'stirde':[1,1]}", WPK_EINVAL, "stirde", "unknown field"},
        {CONV ",'stride':[1]}", WPK_EINVAL, "stride", "1 numbers instead of 2"},
        {CONV ",'stride':[0,1]}", WPK_ERANGE, "stride[0]", ""},
        {CONV ",'stride':[1,65537]}", WPK_ERANGE, "stride[1]", ""},
        {CONV ",'stride':[1,1,1]}", WPK_ERANGE, "stride", ""},
        {CONV ",'padding':[1,1]}", WPK_EINVAL, "padding", "2 numbers instead of 4"},
        {CONV ",'padding':[1,1,-1,1]}", WPK_ERANGE, "padding[2]", ""},
        {CONV ",'dilation':[3,1]}", WPK_ERANGE, "kernel", "a window of 7 does not fit into 5"},
        {CONV ",'dilation':'2'}", WPK_EINVAL, "dilation", "must be an array"},
        {CONV ",'groups':3}", WPK_EINVAL, "groups", "3 groups"},
        {CONV ",'groups':0}", WPK_ERANGE, "groups", ""},
        {CONV ",'bias':1}", WPK_EINVAL, "bias", "must be true or false"},
        {CONV ",'activation':'rleu'}", WPK_EINVAL, "activation", "must be one of"},
        {CONV ",'activation':'gelu','dtype':'i8'}", WPK_EINVAL, "activation", "floating output"},
        {CONV ",'dtype':'f8'}", WPK_EINVAL, "dtype", "must be one of"},
        {"{'type':'conv2d','input':[1,4,5],'filters':4,'kernel':[3,3]}", WPK_EINVAL, "input",
         "3 extents instead of 4"},
        {"{'type':'conv2d','input':[1,0,5,5],'filters':4,'kernel':[3,3]}", WPK_ERANGE, "input[1]",
         ""},
        {"{'type':'conv2d','input':[65536,65536,5,5],'filters':4,'kernel':[3,3]}", WPK_ERANGE,
         "input", "too many elements"},
        {"{'type':'depthwise_conv2d','input':[1,4,5,5],'kernel':[3,3],'groups':4}", WPK_EINVAL,
         "groups", "unknown field"},
        {"{'type':'depthwise_conv2d','input':[1,4,5,5],'kernel':[3,3],'multiplier':0}", WPK_ERANGE,
         "multiplier", ""},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d),
        cmocka_unit_test(test_depthwise_conv2d),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
