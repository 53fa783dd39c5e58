/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a file: where their numbers lie, and what does not fit. */
#include "model/onnx/reader.h"

#include "tests/model_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { DIMS = 1, TYPE = 2, FLOATS = 4, INTS = 5, LONGS = 7, NAME = 8, RAW = 9, DOUBLES = 10 };
enum { EXTERNAL = 13, LOCATION = 14 };
enum { FLOAT = 1, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE };
enum { UINT4 = 21, INT4 = 22 };

/* Begin a tensor "t" of this type and these extents, "2,3". */
static struct wpk_buf begin(int type, const char *extents)
{
    struct wpk_buf out = {0};
    for (char *end = (char *)extents; *end != '\0'; end += *end == ',') {
        wpk_model_put_number(&out, DIMS, strtoll(end, &end, 10));
    }
    wpk_model_put_number(&out, TYPE, type);
    wpk_model_put_text(&out, NAME, "t");
    return out;
}

static void put_varint(struct wpk_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        wpk_buf_append_byte(out, (char)(value | 0x80));
    }
    wpk_buf_append_byte(out, (char)value);
}

/* A reader of a model in memory. */
struct reading {
    struct wpk_graph graph;
    struct wpk_diag diag;
    struct wpk_onnx_reader reader;
    int value;
};

static wpk_err read_in(struct reading *r, const char *path, struct wpk_buf *tensor)
{
    *r = (struct reading){.value = -1};
    wpk_arena_init(&r->graph.arena, WPK_GRAPH_MEMORY_MAX);
    r->graph.maps[0] = (struct wpk_graph_map){tensor->data, tensor->size}; /* of messages */
    r->reader = (struct wpk_onnx_reader){.graph = &r->graph, .path = path, .diag = &r->diag};
    const struct wpk_protobuf message = {.at = (const uint8_t *)tensor->data,
                                         .end = (const uint8_t *)tensor->data + tensor->size};
    return wpk_onnx_tensor(&r->reader, message, false, &r->value);
}

static void end(struct reading *r, struct wpk_buf *tensor)
{
    wpk_graph_fini(&r->graph);
    wpk_buf_fini(tensor);
}

/* Read the tensor, whose numbers are these; a tensor of no type has none. */
static void expect(struct wpk_buf *tensor, const double *numbers, int count)
{
    struct reading r;
    if (read_in(&r, "m.onnx", tensor) != WPK_OK) {
        fail_msg("%s", r.diag.text);
    }
    const struct wpk_graph_value *value = &r.graph.values[r.value];
    assert_int_equal(wpk_graph_find(&r.graph, "t"), r.value);
    assert_int_equal(value->writer, -1);
    assert_true(value->is_shaped && value->is_typed && value->data != NULL);
    assert_int_equal(wpk_graph_elements(value), count);
    for (int i = 0; i < count; i++) {
        if (wpk_graph_element(value, i) != numbers[i]) {
            fail_msg("element %d: %g, not %g", i, wpk_graph_element(value, i), numbers[i]);
        }
    }
    end(&r, tensor);
}

static void refuse(struct wpk_buf *tensor, wpk_err err, const char *text)
{
    struct reading r;
    wpk_err found = read_in(&r, "m.onnx", tensor);
    if (found != err || strstr(r.diag.text, text) == NULL) {
        fail_msg("%s: %s", text, r.diag.text);
    }
    end(&r, tensor);
}

#define EXPECT(tensor, ...)                                                                        \
    do {                                                                                           \
        const double wanted[] = {__VA_ARGS__};                                                     \
        expect(tensor, wanted, (int)(sizeof(wanted) / sizeof(wanted[0])));                         \
    } while (0)

static void raw_data_stays_in_the_file(void **state)
{
    (void)state;
    const float numbers[] = {1.5F, -2, 3};
    struct wpk_buf tensor = begin(FLOAT, "3");
    struct reading r;
    wpk_model_put_bytes(&tensor, RAW, numbers, sizeof(numbers));
    assert_int_equal(read_in(&r, "m.onnx", &tensor), WPK_OK);
    const char *data = r.graph.values[r.value].data;
    assert_true(data > tensor.data && data < tensor.data + tensor.size);
    assert_memory_equal(data, numbers, sizeof(numbers));
    end(&r, &tensor);
}

static void raw_data_has_the_bytes_of_its_extents(void **state)
{
    (void)state;
    static const struct {
        int type;
        const char *extents;
        size_t bytes;
        bool good;
    } cases[] = {
        {FLOAT, "2,3", 24, true}, {FLOAT, "2,3", 23, false}, {FLOAT, "2,3", 25, false},
        {INT64, "3", 24, true},   {INT8, "3", 3, true},      {FLOAT16, "3", 6, true},
        {DOUBLE, "", 8, true},    {DOUBLE, "", 0, false},    {BOOL, "2,2", 4, true},
        {INT4, "3", 2, true},     {INT4, "3", 3, false},     {UINT4, "4", 2, true},
        {FLOAT, "0,3", 0, true},
    };
    static const char zeros[32];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_buf tensor = begin(cases[i].type, cases[i].extents);
        struct reading r;
        wpk_model_put_bytes(&tensor, RAW, zeros, cases[i].bytes);
        wpk_err err = read_in(&r, "m.onnx", &tensor);
        if (err != (cases[i].good ? WPK_OK : WPK_EPARSE)) {
            fail_msg("case %zu: %s", i, r.diag.text);
        }
        end(&r, &tensor);
    }
}

static void numbers_lie_packed_or_one_a_field(void **state)
{
    (void)state;
    const float reals[] = {0.5F, -1};
    const double doubles[] = {0.1, -1e300};
    struct wpk_buf packed = {0}, tensor = begin(FLOAT, "2");
    wpk_model_put_bytes(&tensor, FLOATS, reals, sizeof(reals));
    EXPECT(&tensor, 0.5, -1);
    tensor = begin(FLOAT, "3"); /* a field of two, and one of one */
    wpk_model_put_bytes(&tensor, FLOATS, reals, sizeof(reals));
    put_varint(&tensor, FLOATS << 3 | WPK_PROTOBUF_FIXED32);
    wpk_buf_append(&tensor, reals, sizeof(float));
    EXPECT(&tensor, 0.5, -1, 0.5);
    tensor = begin(DOUBLE, "2");
    wpk_model_put_bytes(&tensor, DOUBLES, doubles, sizeof(doubles));
    EXPECT(&tensor, 0.1, -1e300);
    tensor = begin(INT64, "3");
    put_varint(&packed, 7);
    put_varint(&packed, (uint64_t)-1);
    wpk_model_put_message(&tensor, LONGS, &packed);
    wpk_model_put_number(&tensor, LONGS, 9);
    EXPECT(&tensor, 7, -1, 9);
}

/* Narrow types, and f16 by its bits, lie in int32_data. */
static void narrow_numbers_lie_as_integers(void **state)
{
    (void)state;
    static const struct {
        int type;
        int64_t stored;
        double number;
    } cases[] = {{INT32, -5, -5}, {INT8, -1, -1},         {UINT8, 200, 200}, {INT16, -300, -300},
                 {BOOL, 1, 1},    {FLOAT16, 0x3e00, 1.5}, {16, 0xbfc0, -1.5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_buf tensor = begin(cases[i].type, "2");
        wpk_model_put_number(&tensor, INTS, cases[i].stored);
        wpk_model_put_number(&tensor, INTS, 0);
        EXPECT(&tensor, cases[i].number, 0);
    }
}

/* Two in a byte, the first in its low half; the high half of the last byte is no element. */
static void elements_of_four_bits_become_bytes(void **state)
{
    (void)state;
    const unsigned char bytes[] = {0x8f, 0xf7};
    struct wpk_buf tensor = begin(INT4, "3");
    wpk_model_put_bytes(&tensor, RAW, bytes, 2);
    EXPECT(&tensor, -1, -8, 7);
    tensor = begin(UINT4, "3");
    wpk_model_put_bytes(&tensor, RAW, bytes, 2);
    EXPECT(&tensor, 15, 8, 7);
    tensor = begin(UINT4, "4");
    wpk_model_put_number(&tensor, INTS, 0x8f);
    wpk_model_put_number(&tensor, INTS, 0xf7);
    EXPECT(&tensor, 15, 8, 7, 15);
}

static void a_tensor_has_as_many_numbers_as_elements(void **state)
{
    (void)state;
    struct wpk_buf tensor = begin(INT64, "2");
    wpk_model_put_number(&tensor, LONGS, 1);
    refuse(&tensor, WPK_EPARSE, "it has 1 numbers; its extents ask for 2");
    tensor = begin(INT64, "2");
    for (int i = 0; i < 3; i++) {
        wpk_model_put_number(&tensor, LONGS, i);
    }
    refuse(&tensor, WPK_EPARSE, "it has 3 numbers; its extents ask for 2");
    tensor = begin(FLOAT, "2"); /* integers are no floats */
    wpk_model_put_number(&tensor, LONGS, 1);
    wpk_model_put_number(&tensor, LONGS, 1);
    refuse(&tensor, WPK_EPARSE, "it has 0 numbers");
    tensor = begin(FLOAT, "100000000"); /* nothing is allocated for what the file cannot hold */
    wpk_model_put_number(&tensor, FLOATS, 1);
    refuse(&tensor, WPK_EPARSE, "which it does not have");
}

static void a_tensor_without_elements_has_no_numbers(void **state)
{
    (void)state;
    struct wpk_buf tensor = begin(INT64, "0");
    struct reading r;
    assert_int_equal(read_in(&r, "m.onnx", &tensor), WPK_OK);
    assert_int_equal(wpk_graph_elements(&r.graph.values[r.value]), 0);
    assert_non_null(r.graph.values[r.value].data);
    end(&r, &tensor);
}

static void extents_have_limits(void **state)
{
    (void)state;
    struct wpk_buf tensor = begin(FLOAT, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    refuse(&tensor, WPK_EUNSUPPORTED, "dimensions");
    tensor = begin(FLOAT, "4294967296,4294967296");
    refuse(&tensor, WPK_ERANGE, "more than 2^33 elements");
    tensor = begin(FLOAT, "-1");
    refuse(&tensor, WPK_ERANGE, "more than 2^33 elements");
    tensor = begin(FLOAT, "8589934593");
    refuse(&tensor, WPK_ERANGE, "more than 2^33 elements");
}

/* dims [2, 3] in one field */
static void packed_extents_are_read(void **state)
{
    (void)state;
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    struct wpk_buf tensor = {0};
    wpk_model_put_bytes(&tensor, DIMS, "\x02\x03", 2);
    wpk_model_put_number(&tensor, TYPE, FLOAT);
    wpk_model_put_text(&tensor, NAME, "t");
    wpk_model_put_bytes(&tensor, RAW, numbers, sizeof(numbers));
    EXPECT(&tensor, 1, 2, 3, 4, 5, 6);
    wpk_model_put_bytes(&tensor, DIMS, "\x02\x83", 2); /* cut short */
    wpk_model_put_text(&tensor, NAME, "t");
    refuse(&tensor, WPK_EPARSE, "cut short");
}

static void a_type_that_is_not_computed_with_is_no_failure(void **state)
{
    (void)state;
    struct wpk_buf tensor = begin(STRING, "2");
    struct reading r;
    assert_int_equal(read_in(&r, "m.onnx", &tensor), WPK_OK);
    assert_false(r.graph.values[r.value].is_typed);
    assert_int_equal(r.graph.values[r.value].element_type, STRING);
    assert_non_null(r.graph.values[r.value].data); /* a constant all the same */
    end(&r, &tensor);
}

static void names_are_given_once(void **state)
{
    (void)state;
    struct reading r;
    struct wpk_buf tensor = begin(INT64, "0");
    assert_int_equal(read_in(&r, "m.onnx", &tensor), WPK_OK);
    const struct wpk_protobuf again = {.at = (const uint8_t *)tensor.data,
                                       .end = (const uint8_t *)tensor.data + tensor.size};
    int value = -1;
    assert_int_equal(wpk_onnx_tensor(&r.reader, again, false, &value), WPK_EPARSE);
    assert_non_null(strstr(r.diag.text, "empty or given twice"));
    assert_string_equal(r.diag.field, "tensor t");
    assert_int_equal(wpk_onnx_tensor(&r.reader, again, true, &value), WPK_OK); /* of an attribute */
    assert_string_equal(r.graph.values[value].name, "");
    end(&r, &tensor);
    wpk_model_put_number(&tensor, TYPE, FLOAT);
    refuse(&tensor, WPK_EPARSE, "empty or given twice"); /* it has no name */
}

/* ---- external data */

static void put_entry(struct wpk_buf *tensor, const char *key, const char *value)
{
    struct wpk_buf entry = {0};
    wpk_model_put_text(&entry, 1, key);
    wpk_model_put_text(&entry, 2, value);
    wpk_model_put_message(tensor, EXTERNAL, &entry);
}

static struct wpk_buf begin_external(const char *location, const char *offset, const char *length)
{
    struct wpk_buf tensor = begin(FLOAT, "2");
    if (location != NULL) {
        put_entry(&tensor, "location", location);
    }
    if (offset != NULL) {
        put_entry(&tensor, "offset", offset);
    }
    if (length != NULL) {
        put_entry(&tensor, "length", length);
    }
    put_entry(&tensor, "checksum", "0"); /* of no use */
    wpk_model_put_number(&tensor, LOCATION, 1);
    return tensor;
}

static void external_data_lies_between_offset_and_length(void **state)
{
    (void)state;
    char folder[] = "/tmp/wpk-tensor-XXXXXX", path[64], weights[64];
    const float numbers[] = {1, 2, 3, 4};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.onnx", folder);
    snprintf(weights, sizeof(weights), "%s/w", folder);
    int fd = open(weights, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, numbers, sizeof(numbers)), sizeof(numbers));
    close(fd);
    static const struct {
        const char *location, *offset, *length;
        float first;      /* of the two numbers; 0: refused */
        const char *text; /* of the refusal */
    } cases[] = {
        {"w", NULL, NULL, 1, NULL},
        {"w", "4", "8", 2, NULL},
        {"w", "8", NULL, 3, NULL},
        {"w", "8", "8", 3, NULL},
        {"w", "0", "12", 1, NULL}, /* more than it needs */
        {"w", "12", NULL, 0, "its data has 4 bytes; its extents ask for 8"},
        {"w", "0", "4", 0, "its data has 4 bytes"},
        {"w", "9", "8", 0, "beyond the end of w (16 bytes)"},
        {"w", "17", NULL, 0, "beyond the end"},
        {"w", "9223372036854775807", "9223372036854775807", 0, "beyond the end"},
        {"w", "9223372036854775808", NULL, 0, "is no number"},
        {"w", "-4", NULL, 0, "its external offset '-4' is no number"},
        {"w", "4x", NULL, 0, "is no number"},
        {"w", "", NULL, 0, "is no number"},
        {"w", NULL, "eight", 0, "its external length 'eight' is no number"},
        {NULL, "0", "8", 0, "has no location"},
        {"v", NULL, NULL, 0, "cannot read v"},
        {"../w", NULL, NULL, 0, "leads out"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_buf tensor = begin_external(cases[i].location, cases[i].offset, cases[i].length);
        struct reading r;
        wpk_err err = read_in(&r, path, &tensor);
        if ((err == WPK_OK) != (cases[i].first > 0) ||
            (err != WPK_OK && strstr(r.diag.text, cases[i].text) == NULL)) {
            fail_msg("case %zu: %s", i, r.diag.text);
        }
        if (err == WPK_OK) {
            const struct wpk_graph_value *value = &r.graph.values[r.value];
            assert_true(wpk_graph_element(value, 0) == cases[i].first);
            assert_true(wpk_graph_element(value, 1) == cases[i].first + 1);
        }
        end(&r, &tensor);
    }
    assert_int_equal(unlink(weights), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data_stays_in_the_file),
        cmocka_unit_test(raw_data_has_the_bytes_of_its_extents),
        cmocka_unit_test(numbers_lie_packed_or_one_a_field),
        cmocka_unit_test(narrow_numbers_lie_as_integers),
        cmocka_unit_test(elements_of_four_bits_become_bytes),
        cmocka_unit_test(a_tensor_has_as_many_numbers_as_elements),
        cmocka_unit_test(a_tensor_without_elements_has_no_numbers),
        cmocka_unit_test(extents_have_limits),
        cmocka_unit_test(packed_extents_are_read),
        cmocka_unit_test(a_type_that_is_not_computed_with_is_no_failure),
        cmocka_unit_test(names_are_given_once),
        cmocka_unit_test(external_data_lies_between_offset_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
