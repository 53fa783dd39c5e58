/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose indices are data. */
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void a_gather_takes_slices_of_an_axis(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Gather", ":f32[3,2] 2,0:i64[2]", "", "f32[2,2] 5,6,1,2"},
        {"Gather", ":f32[3,2] 1,0,1:i64[3]", "axis:i=1", "f32[3,3] 2,1,2,4,3,4,6,5,6"},
        {"Gather", ":f32[3,2] -1:i64[1]", "", "f32[1,2] 5,6"},
        {"Gather", ":f32[3,2] 1:i64[]", "", "f32[2] 3,4"}, /* the axis is gone */
        {"Gather", ":f32[3] 2,1,0,-3:i64[2,2]", "", "f32[2,2] 3,2,1,1"},
        {"Gather", ":i64[3] 0,2:i32[2]", "axis:i=-1", "i64[2] 1,3"},
        {"Gather", ":f32[1,2] 0,0:i64[2]", "", "f32[2,2] 1,2,1,2"}, /* an axis of one element */
    };
    WPK_MODEL_CASES(cases);
}

/* Y[o, i, r] = X[o, index(i), r], where the indices are the model's input. */
static void a_gather_of_data_reads_what_the_data_says(void **state)
{
    (void)state;
    static const double x[24] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
    static const int index[] = {3, 0, 2};
    double found[18], expected[18];
    const struct wpk_model_input inputs[] = {{.type = "f64[2,4,3]", .data = x},
                                             {.type = "i64[3]", .values = "3,-4,2"}};
    assert_int_equal(wpk_model_case_compute("Gather", 13, "axis:i=1", inputs, 2, 0, found, 18), 18);
    for (int o = 0; o < 2; o++) {
        for (int i = 0; i < 3; i++) {
            for (int r = 0; r < 3; r++) {
                expected[(o * 3 + i) * 3 + r] = x[(o * 4 + index[i]) * 3 + r];
            }
        }
    }
    wpk_model_case_compare("Gather", found, expected, 18);
}

static void gathers_of_elements_have_an_index_each(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"GatherElements", ":f32[2,3] 2,0,1,1:i64[2,2]", "axis:i=1", "f32[2,2] 3,1,5,5"},
        {"GatherElements", ":f32[2,3] 1,0,-1:i64[1,3]", "", "f32[1,3] 4,2,6"},
        {"GatherElements", ":f32[3] 2,2,0,0:i64[4]", "", "f32[4] 3,3,1,1"},
        {"GatherElements", ":f32[2,3] 0,0,0:i64[3]", "", "!its indices do not fit its data"},
        {"GatherElements", ":f32[2,3] :i64[3,1]", "axis:i=1", "!its indices do not fit its data"},
        {"GatherElements", ":f32[2,3] 3:i64[1,1]", "axis:i=1", "!index 3 of an axis of 3"},
        {"GatherElements", ":f32[2,3] 0:i64[1,1]", "axis:i=2", "!axis 2 of 2"},
    };
    WPK_MODEL_CASES(cases);
}

static void gathers_by_rows_name_several_axes(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"GatherND", ":f32[2,2] 0,0,1,1:i64[2,2]", "", "f32[2] 1,4"},
        {"GatherND", ":f32[2,2] 1,0:i64[2,1]", "", "f32[2,2] 3,4,1,2"},
        {"GatherND", ":f32[2,2,2] 0,1,1,0:i64[2,1,2]", "", "f32[2,1,2] 3,4,5,6"},
        {"GatherND", ":f32[2,2,2] 1,0:i64[2,1]", "batch_dims:i=1", "f32[2,2] 3,4,5,6"},
        {"GatherND", ":f32[2,3] -1,-3:i64[1,2]", "", "f32[1] 4"},
        {"GatherND", ":f32[2,2] :i64[1,3]", "", "!its indices do not fit its data"},
        {"GatherND", ":f32[2,2] 0,0:i64[2]", "batch_dims:i=1", "!its indices do not fit its data"},
        {"GatherND", ":f32[2,2] 0,0,0:i64[3,1]", "batch_dims:i=1", "!do not fit its data"},
        {"GatherND", ":f32[2,2] 0:i64[1,1]", "batch_dims:i=-1", "!its indices do not fit its data"},
    };
    WPK_MODEL_CASES(cases);
}

static void scatters_write_where_the_indices_say(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"ScatterElements", ":f32[2,3] 2,0:i64[2,1] 8,9:f32[2,1]", "axis:i=1",
         "f32[2,3] 1,2,8,9,5,6"},
        {"ScatterElements", ":f32[3] 1,1:i64[2] 8,9:f32[2]", "reduction:s=add", "f32[3] 1,19,3"},
        {"ScatterElements", ":f32[3] 1,1:i64[2] 8,9:f32[2]", "reduction:s=mul", "f32[3] 1,144,3"},
        {"ScatterElements", ":f32[3] 1,-1:i64[2] 8,1:f32[2]", "reduction:s=max", "f32[3] 1,8,3"},
        {"ScatterElements", ":f32[3] 1,-1:i64[2] 8,1:f32[2]", "reduction:s=min", "f32[3] 1,2,1"},
        {"Scatter@10", ":f32[3] 2:i64[1] 7:f32[1]", "", "f32[3] 1,2,7"},
        {"ScatterND", ":f32[2,2] 1:i64[1,1] 8,9:f32[1,2]", "", "f32[2,2] 1,2,8,9"},
        {"ScatterND", ":f32[2,2] 0,1,1,0:i64[2,2] 8,9:f32[2]", "", "f32[2,2] 1,8,9,4"},
        {"ScatterND", ":i64[3] 0,0:i64[2,1] 8,9:i64[2]", "reduction:s=add", "i64[3] 18,2,3"},
        {"ScatterND", ":f32[2,2] 1:i64[1,1] 8:f32[1]", "", "!its updates do not fit its indices"},
        {"ScatterND", ":f32[2,2] 2:i64[1,1] 8,9:f32[1,2]", "", "!index 2 of an axis of 2"},
        {"ScatterND", ":f32[2] 1:i64[1,1] 8:i64[1]", "", "!updates have another type"},
        {"ScatterElements", ":f32[3] 1,1:i64[2] 8:f32[1]", "", "!do not fit its indices"},
        {"ScatterElements", ":f32[3] 1:i64[1] 8:f32[1]", "reduction:s=mean", "!its reduction"},
    };
    WPK_MODEL_CASES(cases);
}

static void one_hot_rows_have_a_single_hot_element(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"OneHot", "1,-1,5:i64[3] 3:i64[] 0,1:f32[2]", "", "f32[3,3] 0,1,0,0,0,1,0,0,0"},
        {"OneHot", "1,0:i64[2] 3:i64[1] 7,9:i32[2]", "axis:i=0", "i32[3,2] 7,9,9,7,7,7"},
        {"OneHot", "1:i64[] 2:i64[] 0,1:f32[2]", "", "f32[2] 0,1"},
        {"OneHot", "1:i64[1] 0:i64[] 0,1:f32[2]", "", "!its depth is no extent"},
        {"OneHot", "1:i64[1] 2,2:i64[2] 0,1:f32[2]", "", "!its depth must be a constant number"},
        {"OneHot", "1:i64[1] 2:i64[] 0,1,2:f32[3]", "", "!its values are not two"},
        {"OneHot", "1:i64[1] 2:i64[] 0,1:f32[2]", "axis:i=2", "!axis 2 of 2"},
    };
    WPK_MODEL_CASES(cases);
}

static void the_largest_elements_come_first(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"TopK", "3,9,4,9,1:f32[5] 3:i64[1]", "", "f32[3] 9,9,4"},
        {"TopK>1", "3,9,4,9,1:f32[5] 3:i64[1]", "", "i64[3] 1,3,2"}, /* equal ones by their index */
        {"TopK", "3,9,4,9,1:f32[5] 2:i64[1]", "largest:i=0", "f32[2] 1,3"},
        {"TopK>1", "3,9,4,9,1:f32[5] 2:i64[1]", "largest:i=0", "i64[2] 4,0"},
        {"TopK", "1,6,5,2,3,4:f32[3,2] 2:i64[1]", "axis:i=0", "f32[2,2] 5,6,3,4"},
        {"TopK>1", "1,6,5,2,3,4:f32[3,2] 2:i64[1]", "axis:i=0", "i64[2,2] 1,0,2,2"},
        {"TopK", "1,nan,2:f32[3] 2:i64[1]", "", "f32[2] nan,2"}, /* larger than every number */
        {"TopK", "1,2:f32[2] 3:i64[1]", "", "!K is not within its axis, which has 2 elements"},
        {"TopK", "1,2:f32[2] 0:i64[1]", "", "!K is not within its axis"},
        {"TopK", "1,2:f32[2] 1:i64[1]", "axis:i=1", "!axis 1 of 1"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gather_takes_slices_of_an_axis),
        cmocka_unit_test(a_gather_of_data_reads_what_the_data_says),
        cmocka_unit_test(gathers_of_elements_have_an_index_each),
        cmocka_unit_test(gathers_by_rows_name_several_axes),
        cmocka_unit_test(scatters_write_where_the_indices_say),
        cmocka_unit_test(one_hot_rows_have_a_single_hot_element),
        cmocka_unit_test(the_largest_elements_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
