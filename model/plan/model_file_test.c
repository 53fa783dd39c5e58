/* SPDX-License-Identifier: Apache-2.0 */
/* A model file with what the user fixes of it: shapes, constants, types. */
#include "model/plan/model_file.h"

#include "common/fs.h"
#include "schema/npy.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct wpk_model_fixing fixing_of(const char *const *shapes, int count)
{
    struct wpk_model_fixing out = {.math = NULL};
    for (int i = 0; i < count; i++) {
        out.shapes.items[out.shapes.count++] = shapes[i];
    }
    return out;
}

static void onnx_files_are_known_by_their_ending(void **state)
{
    (void)state;
    assert_true(wpk_model_file_is_onnx("a.onnx"));
    assert_true(wpk_model_file_is_onnx("/tmp/x.y/model.onnx"));
    assert_false(wpk_model_file_is_onnx(".onnx")); /* no name */
    assert_false(wpk_model_file_is_onnx("a.onnx.wpk"));
    assert_false(wpk_model_file_is_onnx("onnx"));
    assert_false(wpk_model_file_is_onnx(""));
}

static void a_shape_is_of_the_name_before_its_last_equals(void **state)
{
    (void)state;
    assert_true(wpk_model_shape_is_of("x=1,2", "x"));
    assert_true(wpk_model_shape_is_of("a=b=1", "a=b"));
    assert_false(wpk_model_shape_is_of("a=b=1", "a"));
    assert_false(wpk_model_shape_is_of("xy=1", "x"));
    assert_false(wpk_model_shape_is_of("x=1", "xy"));
    assert_true(wpk_model_shape_is_of("x", "x")); /* refused later */
}

static void sets_of_shapes_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *shapes[5];
        int shape_count, max, sets;
        const char *problem; /* NULL: good */
    } cases[] = {
        {{NULL}, 0, 1, 1, NULL},
        {{"x=1"}, 1, 1, 1, NULL},
        {{"x=1", "y=2"}, 2, 1, 1, NULL},
        {{"x=1", "x=2", "x=3"}, 3, 3, 3, NULL},
        {{"x=1", "y=9", "x=2"}, 3, 2, 2, NULL}, /* y is the same in both */
        {{"x=1", "x=2", "y=1", "y=2"}, 4, 2, 2, NULL},
        {{"x=1", "x=2", "x=3", "y=1", "y=2"}, 5, 9, 3, "input y has 2 shapes, and another one 3"},
        {{"x=1", "x=2", "x=3"}, 3, 2, 3, "an input has 3 shapes; a plan has at most 2"},
        {{"x=1", "x=2"}, 2, 1, 2, "only tune takes more than 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_model_fixing fixing = fixing_of(cases[i].shapes, cases[i].shape_count);
        struct wpk_diag diag = {.text = ""};
        int sets = 0;
        wpk_err err = wpk_model_fixing_count(&fixing, cases[i].max, &sets, &diag);
        if (err != (cases[i].problem == NULL ? WPK_OK : WPK_EINVAL) || sets != cases[i].sets ||
            (cases[i].problem != NULL && strstr(diag.text, cases[i].problem) == NULL)) {
            fail_msg("case %zu: %d sets, %s", i, sets, diag.text);
        }
    }
}

static void a_set_has_one_shape_of_each_input(void **state)
{
    (void)state;
    static const char *const shapes[] = {"x=1", "y=9", "x=2", "z=5", "z=6"};
    const struct wpk_model_fixing fixing = fixing_of(shapes, 5);
    static const char *const expected[2][3] = {{"x=1", "y=9", "z=5"}, {"y=9", "x=2", "z=6"}};
    for (int set = 0; set < 2; set++) {
        struct wpk_model_fixing out;
        wpk_model_fixing_of_set(&fixing, set, &out);
        assert_int_equal(out.shapes.count, 3);
        for (int i = 0; i < 3; i++) {
            assert_string_equal(out.shapes.items[i], expected[set][i]);
        }
    }
}

/* y = Reshape(x, s) in a memory file. */
static void build(struct wpk_model_fixture *model)
{
    *model = (struct wpk_model_fixture){.fd = 0};
    wpk_model_fixture_input(model, "x", "f32[2,3]");
    wpk_model_fixture_input(model, "s", "i64[1]");
    wpk_model_fixture_node(model, "Reshape", "x,s", "y", "");
    wpk_model_fixture_output(model, "y");
}

static wpk_err read_in(const char *path, const struct wpk_model_fixing *fixing,
                       struct wpk_graph *graph, struct wpk_buf *problems, struct wpk_diag *diag)
{
    *diag = (struct wpk_diag){.text = ""};
    *problems = (struct wpk_buf){0};
    return wpk_model_file_read(path, fixing, graph, problems, diag);
}

/* Write an array to a memory file; returns "s=PATH". */
static int write_array(enum wpk_dtype dtype, int64_t count, const void *data, char *out,
                       size_t size)
{
    const struct wpk_tensor_type type = {
        .dtype = dtype, .rank = 1, .extent = {count}, .layout = wpk_layout_row_major(1)};
    struct wpk_buf bytes = {0};
    wpk_npy_encode(&type, data, &bytes);
    int fd = memfd_create("array", MFD_CLOEXEC);
    assert_true(fd > 0);
    assert_int_equal(write(fd, bytes.data, bytes.size), (ssize_t)bytes.size);
    snprintf(out, size, "s=/proc/self/fd/%d", fd);
    wpk_buf_fini(&bytes);
    return fd;
}

static void an_input_is_bound_to_an_array(void **state)
{
    (void)state;
    struct wpk_model_fixture model;
    struct wpk_model_fixing fixing = {.math = NULL};
    struct wpk_graph graph;
    struct wpk_buf problems;
    struct wpk_diag diag;
    char pair[64];
    const int64_t six = 6, five = 5;
    const float real = 6;
    const int64_t two[] = {2, 3};
    const struct {
        enum wpk_dtype dtype;
        int64_t count;
        const void *data;
        wpk_err err;
        const char *text; /* of the failure */
    } cases[] = {
        {WPK_I64, 1, &six, WPK_OK, ""},
        {WPK_I64, 1, &five, WPK_EUNSUPPORTED, "1 problem, listed above"},
        {WPK_F32, 1, &real, WPK_EINVAL, ""},
        {WPK_I64, 2, two, WPK_EINVAL, "the model fixes extent 0 of input s at 1"},
    };
    build(&model);
    const char *path = wpk_model_fixture_write(&model, SIZE_MAX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = write_array(cases[i].dtype, cases[i].count, cases[i].data, pair, sizeof(pair));
        fixing.binds.items[0] = pair;
        fixing.binds.count = 1;
        wpk_err err = read_in(path, &fixing, &graph, &problems, &diag);
        if (err != cases[i].err || strstr(diag.text, cases[i].text) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        if (err == WPK_OK) {
            assert_int_equal(graph.values[graph.outputs[0]].extent[0], 6);
            assert_int_equal(graph.input_count, 1);
        } else if (err == WPK_EINVAL) {
            assert_string_equal(diag.field, "s");
        } else {
            assert_non_null(strstr(wpk_buf_text(&problems), path)); /* each line has the file */
        }
        wpk_graph_fini(&graph);
        wpk_buf_fini(&problems);
        close(fd);
    }
    wpk_model_fixture_fini(&model);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *bind, *math, *weights;
        const char *text;
    } cases[] = {
        {"z=1", NULL, NULL, NULL, "the model has no input 'z'"},
        {"x=2,4", NULL, NULL, NULL, "fixes extent 1"},
        {NULL, "z=a.npy", NULL, NULL, "--bind takes INPUT=FILE.npy"},
        {NULL, "s=", NULL, NULL, "--bind takes INPUT=FILE.npy"},
        {NULL, "s", NULL, NULL, "--bind takes INPUT=FILE.npy"},
        {NULL, "s=/nonexistent/a.npy", NULL, NULL, "/nonexistent/a.npy"},
        {NULL, NULL, "f16", NULL, "--math f16: expected f32 or bf16"},
        {NULL, NULL, "i8", NULL, "--math i8: expected f32 or bf16"},
        {NULL, NULL, "none", NULL, "--math none: expected"},
        {NULL, NULL, NULL, "i64", "--weights i64: expected f32, bf16, i8 or i4"},
        {NULL, NULL, NULL, "", "--weights : expected"},
    };
    struct wpk_model_fixture model;
    build(&model);
    const char *path = wpk_model_fixture_write(&model, SIZE_MAX);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixing fixing = {.math = cases[i].math, .weights = cases[i].weights};
        struct wpk_graph graph;
        struct wpk_buf problems;
        struct wpk_diag diag;
        fixing.shapes.items[0] = cases[i].shape;
        fixing.shapes.count = cases[i].shape != NULL;
        fixing.binds.items[0] = cases[i].bind;
        fixing.binds.count = cases[i].bind != NULL;
        wpk_err err = read_in(path, &fixing, &graph, &problems, &diag);
        bool is_told =
            strstr(diag.text, cases[i].text) != NULL || strstr(diag.file, cases[i].text) != NULL;
        if (err != WPK_EINVAL || !is_told) {
            fail_msg("case %zu: %s (%s)", i, diag.text, diag.file);
        }
        wpk_graph_fini(&graph);
        wpk_buf_fini(&problems);
    }
    wpk_model_fixture_fini(&model);
}

static void a_missing_file_is_an_invalid_argument(void **state)
{
    (void)state;
    const struct wpk_model_fixing fixing = {.math = NULL};
    struct wpk_graph graph;
    struct wpk_buf problems;
    struct wpk_diag diag;
    assert_int_equal(read_in("/nonexistent/m.onnx", &fixing, &graph, &problems, &diag), WPK_EINVAL);
    wpk_graph_fini(&graph);
    wpk_buf_fini(&problems);
}

static void types_are_printed_with_what_lies_around(void **state)
{
    (void)state;
    static const struct {
        struct wpk_graph_value value;
        const char *text;
    } cases[] = {
        {{.dtype = WPK_F32, .rank = 2, .extent = {2, 3}}, "f32[2,3]"},
        {{.dtype = WPK_I64}, "i64[]"},
        {{.dtype = WPK_F32, .rank = 2, .extent = {2, 3}, .pad_after = {0, 5}},
         "f32[2,3] pad 0:0,0:5"},
        {{.dtype = WPK_BF16, .rank = 1, .extent = {8589934592}, .pad_before = {1}},
         "bf16[8589934592] pad 1:0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_buf text = {0};
        wpk_model_print_type(&cases[i].value, &text);
        assert_string_equal(wpk_buf_text(&text), cases[i].text);
        struct wpk_tensor_type type = wpk_model_value_type(&cases[i].value);
        assert_int_equal(type.rank, cases[i].value.rank);
        assert_int_equal(wpk_tensor_type_elements(&type), wpk_graph_elements(&cases[i].value));
        wpk_buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_files_are_known_by_their_ending),
        cmocka_unit_test(a_shape_is_of_the_name_before_its_last_equals),
        cmocka_unit_test(sets_of_shapes_are_counted),
        cmocka_unit_test(a_set_has_one_shape_of_each_input),
        cmocka_unit_test(an_input_is_bound_to_an_array),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(a_missing_file_is_an_invalid_argument),
        cmocka_unit_test(types_are_printed_with_what_lies_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
