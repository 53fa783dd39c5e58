/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum kind { MAXIMUM, AVERAGE_INSIDE, AVERAGE_WHOLE };

struct pool {
    enum kind kind;
    int n, channels, height, width, kernel[2], stride[2], padding[4], dilation[2];
    const char *more; /* fields, with their comma */
};

static int output_extent(const struct pool *p, int d)
{
    int extent = d == 0 ? p->height : p->width;
    int window = p->dilation[d] * (p->kernel[d] - 1) + 1;
    return (p->padding[d] + extent + p->padding[2 + d] - window) / p->stride[d] + 1;
}

/* Of one image of one channel. */
static double pool_at(const struct pool *p, const double *image, int y, int x)
{
    double sum = 0, largest = -INFINITY;
    int inside = 0;
    for (int r = 0; r < p->kernel[0]; r++) {
        for (int s = 0; s < p->kernel[1]; s++) {
            int row = y * p->stride[0] + r * p->dilation[0] - p->padding[0];
            int column = x * p->stride[1] + s * p->dilation[1] - p->padding[1];
            if (row < 0 || row >= p->height || column < 0 || column >= p->width) {
                continue;
            }
            sum += image[row * p->width + column];
            largest = fmax(largest, image[row * p->width + column]);
            inside++;
        }
    }
    return p->kind == MAXIMUM          ? largest
           : p->kind == AVERAGE_INSIDE ? sum / inside
                                       : sum / (p->kernel[0] * p->kernel[1]);
}

static void check_pool(const struct pool *p, const char *json)
{
    struct wpk_expanded e;
    int64_t at = 0;
    wpk_expanded_init(&e, json);
    const double *image = wpk_expanded_values(&e, "X");
    int height = output_extent(p, 0), width = output_extent(p, 1);
    assert_int_equal(wpk_tensor_elements(wpk_expanded_tensor(&e, "Y")),
                     p->n * p->channels * height * width);
    for (int i = 0; i < p->n * p->channels; i++) {
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                wpk_expanded_expect(&e, at++, pool_at(p, image, y, x));
            }
        }
        image += p->height * p->width;
    }
    wpk_expanded_fini(&e);
}

static void test_pools(void **state)
{
    static const struct pool cases[] = {
        {MAXIMUM, 1, 2, 7, 6, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, ""},
        /* windows with one element inside, which may be negative */
        {MAXIMUM, 1, 3, 6, 6, {2, 2}, {2, 2}, {1, 1, 1, 1}, {1, 1}, ""},
        {MAXIMUM, 1, 1, 8, 8, {2, 2}, {1, 1}, {1, 0, 0, 1}, {3, 2}, ",'dilation':[3,2]"},
        {MAXIMUM, 1, 3, 6, 6, {2, 2}, {2, 2}, {1, 1, 1, 1}, {1, 1}, ",'dtype':'i8'"},
        {AVERAGE_INSIDE, 1, 2, 7, 5, {3, 3}, {2, 1}, {1, 1, 1, 1}, {1, 1}, ""},
        {AVERAGE_INSIDE, 1, 1, 5, 5, {3, 2}, {1, 2}, {2, 0, 0, 1}, {1, 1}, ""},
        {AVERAGE_WHOLE,
         1,
         2,
         7,
         5,
         {3, 3},
         {2, 1},
         {1, 1, 1, 1},
         {1, 1},
         ",'count_include_pad':true"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pool *p = &cases[i];
        char json[300];
        (void)snprintf(json, sizeof json,
                       "{'type':'%s','input':[%d,%d,%d,%d],'kernel':[%d,%d],'stride':[%d,%d],"
                       "'padding':[%d,%d,%d,%d]%s}",
                       p->kind == MAXIMUM ? "max_pool2d" : "avg_pool2d", p->n, p->channels,
                       p->height, p->width, p->kernel[0], p->kernel[1], p->stride[0], p->stride[1],
                       p->padding[0], p->padding[1], p->padding[2], p->padding[3], p->more);
        check_pool(p, json);
    }
}

/* The stride is the kernel's, unless it is given; a global pool's kernel is the image. */
static void test_defaults(void **state)
{
    (void)state;
    check_pool(&(struct pool){MAXIMUM, 2, 1, 6, 7, {2, 3}, {2, 3}, {0}, {1, 1}, ""},
               "{'type':'max_pool2d','input':[2,1,6,7],'kernel':[2,3]}");
    check_pool(&(struct pool){AVERAGE_WHOLE, 1, 3, 4, 4, {2, 2}, {2, 2}, {0}, {1, 1}, ""},
               "{'type':'avg_pool2d','input':[1,3,4,4],'kernel':[2,2]}");
    check_pool(&(struct pool){AVERAGE_WHOLE, 2, 3, 4, 5, {4, 5}, {1, 1}, {0}, {1, 1}, ""},
               "{'type':'global_avg_pool','input':[2,3,4,5]}");
}

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'max_pool2d','input':[1,1,4,4]}", WPK_EINVAL, "kernel", "is missing"},
        {"{'type':'max_pool2d','input':[1,1,4,4],'kernel':[2,2],'padding':[2,0,0,0]}", WPK_ERANGE,
         "padding", "a border of 2 can hold a whole window"},
        {"{'type':'max_pool2d','input':[1,1,4,4],'kernel':[5,2]}", WPK_ERANGE, "kernel",
         "a window of 5 does not fit into 4"},
        {"{'type':'avg_pool2d','input':[1,1,4,4],'kernel':[2,2],'dilation':[2,2]}", WPK_EINVAL,
         "dilation", "unknown field"},
        {"{'type':'avg_pool2d','input':[1,1,4,4],'kernel':[2,2],'dtype':'i8'}", WPK_EINVAL, "dtype",
         "floating"},
        {"{'type':'global_avg_pool','input':[4,4]}", WPK_EINVAL, "input", "2 extents instead of 4"},
        {"{'type':'global_avg_pool','input':[1,1,4,4],'dtype':'i32'}", WPK_EINVAL, "dtype",
         "floating"},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
