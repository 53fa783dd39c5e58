/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers field by field, names in calls and branches, and files that are mapped. */
#include "model/onnx/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A message over these bytes, which outlive it. */
static struct wpk_protobuf over(const uint8_t *bytes, size_t size)
{
    return (struct wpk_protobuf){.at = bytes, .end = bytes + size};
}

#define OVER(bytes) over(bytes, sizeof(bytes))

/* ---- the wire format */

static void fields_of_each_kind_are_read(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {
        0x08, 0x96, 0x01,                            /* 1: 150 */
        0x12, 0x02, 'h',  'i',                       /* 2: "hi" */
        0x19, 1,    2,    3,    4,    5,    6, 7, 8, /* 3: 8 bytes */
        0x25, 0x78, 0x56, 0x34, 0x12,                /* 4: 4 bytes */
        0xf8, 0xff, 0xff, 0xff, 0x0f, 0x01,          /* the largest number: 1 */
        0x2a, 0x00,                                  /* 5: no bytes */
    };
    struct wpk_protobuf message = OVER(bytes);
    struct wpk_protobuf_field field;
    assert_true(wpk_protobuf_next(&message, &field));
    assert_true(field.number == 1 && field.wire == WPK_PROTOBUF_VARINT && field.value == 150);
    assert_true(wpk_protobuf_next(&message, &field));
    assert_int_equal(wpk_protobuf_size(&field.bytes), 2);
    assert_memory_equal(field.bytes.at, "hi", 2);
    assert_true(wpk_protobuf_next(&message, &field));
    assert_true(field.wire == WPK_PROTOBUF_FIXED64 && field.value == 0x0807060504030201U);
    assert_true(wpk_protobuf_next(&message, &field));
    assert_true(field.wire == WPK_PROTOBUF_FIXED32 && field.value == 0x12345678U);
    assert_true(wpk_protobuf_next(&message, &field));
    assert_true(field.number == (1U << 29) - 1 && field.value == 1);
    assert_true(wpk_protobuf_next(&message, &field));
    assert_true(field.number == 5 && wpk_protobuf_size(&field.bytes) == 0);
    assert_false(wpk_protobuf_next(&message, &field));
    assert_false(message.malformed);
}

static void varints_have_up_to_ten_bytes(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[12];
        size_t size;
        bool good;
        uint64_t value;
    } cases[] = {
        {{0x00}, 1, true, 0},
        {{0x7f}, 1, true, 127},
        {{0x80, 0x01}, 2, true, 128},
        {{0x80, 0x00}, 2, true, 0}, /* not the shortest */
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, true, UINT64_MAX},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 11, false, 0},
        {{0x80}, 1, false, 0}, /* cut short */
        {{0}, 0, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_protobuf message = over(cases[i].bytes, cases[i].size);
        uint64_t value = 7;
        assert_int_equal(wpk_protobuf_varint(&message, &value), cases[i].good);
        assert_true(value == (cases[i].good ? cases[i].value : 7));
        assert_int_equal(message.malformed, !cases[i].good && cases[i].size > 0);
        assert_int_equal(wpk_protobuf_size(&message), cases[i].good ? 0 : cases[i].size);
    }
}

static void malformed_fields_stop_the_reader_where_they_begin(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[12];
        size_t size;
    } cases[] = {
        {{0x00, 0x01}, 2},                         /* number 0 */
        {{0x0b}, 1},                               /* a group */
        {{0x0f, 0x00}, 2},                         /* no kind */
        {{0x12, 0x05, 'h', 'i'}, 4},               /* longer than the message */
        {{0x12}, 1},                               /* no length */
        {{0x19, 1, 2, 3, 4, 5, 6, 7}, 8},          /* seven bytes of eight */
        {{0x25, 1, 2, 3}, 4},                      /* three of four */
        {{0x80, 0x80, 0x80, 0x80, 0x10, 0x01}, 6}, /* number 2^29 */
        {{0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 11},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[16] = {0x08, 0x01}; /* a good field before */
        struct wpk_protobuf_field field;
        memcpy(bytes + 2, cases[i].bytes, cases[i].size);
        struct wpk_protobuf message = over(bytes, 2 + cases[i].size);
        assert_true(wpk_protobuf_next(&message, &field));
        assert_false(wpk_protobuf_next(&message, &field));
        if (!message.malformed || message.at != bytes + 2) {
            fail_msg("case %zu", i);
        }
        assert_false(wpk_protobuf_next(&message, &field)); /* it sticks */
    }
}

static void fields_of_a_number_are_counted(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x08, 1, 0x10, 2, 0x08, 3, 0x0a, 0x02, 0x08, 0x01, 0x08};
    assert_int_equal(wpk_onnx_count(OVER(bytes), 1), 3); /* of both kinds; the last is cut short */
    assert_int_equal(wpk_onnx_count(OVER(bytes), 2), 1);
    assert_int_equal(wpk_onnx_count(OVER(bytes), 3), 0);
    assert_int_equal(wpk_onnx_count((struct wpk_protobuf){.at = NULL}, 1), 0);
}

/* ---- texts */

static void texts_are_utf8_without_control_characters(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    struct wpk_diag diag = {.text = ""};
    const struct wpk_onnx_reader reader = {.graph = &graph, .path = "m.onnx", .diag = &diag};
    static const struct {
        const char *text;
        size_t size;
        bool good;
    } cases[] = {
        {"conv_1/weight:0", 15, true},
        {"", 0, true},
        {"gr\xc3\xb6\xc3\x9f"
         "e",
         7, true},
        {"a\nb", 3, false},
        {"a\0b", 3, false},
        {"\x7f", 1, false},
        {"\xff", 1, false},
        {"\xc3", 1, false},
        {"\x1b[31m", 5, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_protobuf_field field = {
            .number = 1,
            .wire = WPK_PROTOBUF_BYTES,
            .bytes = over((const uint8_t *)cases[i].text, cases[i].size)};
        const char *out = NULL;
        wpk_err err = wpk_onnx_text(&reader, &field, &out);
        if (err != (cases[i].good ? WPK_OK : WPK_EPARSE)) {
            fail_msg("case %zu", i);
        }
        if (cases[i].good) {
            assert_string_equal(out, cases[i].text);
        }
    }
    const struct wpk_protobuf_field number = {.number = 1, .wire = WPK_PROTOBUF_VARINT};
    const char *out = NULL;
    assert_int_equal(wpk_onnx_text(&reader, &number, &out), WPK_EPARSE);
    assert_null(out);
    wpk_graph_fini(&graph);
}

static void a_failure_names_the_file_and_the_part(void **state)
{
    (void)state;
    struct wpk_diag diag = {.text = ""};
    const struct wpk_onnx_reader reader = {
        .path = "m.onnx", .diag = &diag, .where = "node conv1 (Conv)"};
    assert_int_equal(wpk_onnx_fail(&reader, WPK_ERANGE, "%d of %d", 3, 2), WPK_ERANGE);
    assert_string_equal(diag.text, "3 of 2");
    assert_string_equal(diag.file, "m.onnx");
    assert_string_equal(diag.field, "node conv1 (Conv)");
    const struct wpk_onnx_reader silent = {.path = "m.onnx"};
    assert_int_equal(wpk_onnx_fail(&silent, WPK_EPARSE, "x"), WPK_EPARSE); /* nobody asks */
}

/* ---- files */

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static wpk_err map(int folder, const char *path, char *text, size_t size)
{
    struct wpk_graph graph = {.node_count = 0};
    struct wpk_diag diag = {.text = ""};
    const struct wpk_onnx_reader reader = {.graph = &graph, .path = "m.onnx", .diag = &diag};
    struct wpk_protobuf out = {0};
    wpk_err err = wpk_onnx_map(&reader, folder, path, &out);
    if (err == WPK_OK) {
        snprintf(text, size, "%.*s", (int)wpk_protobuf_size(&out), (const char *)out.at);
        assert_int_equal(graph.map_count, 1);
    } else {
        snprintf(text, size, "%s", diag.text);
        assert_int_equal(graph.map_count, 0);
    }
    wpk_graph_fini(&graph);
    return err;
}

static void external_files_lie_below_the_folder(void **state)
{
    (void)state;
    char base[] = "/tmp/wpk-reader-XXXXXX", path[64], text[256];
    assert_non_null(mkdtemp(base));
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(base), 0);
    assert_int_equal(mkdir("model", 0700), 0);
    assert_int_equal(mkdir("model/parts", 0700), 0);
    write_file("model/w.bin", "weights");
    write_file("model/parts/a.bin", "part a");
    write_file("model/empty", "");
    write_file("secret", "secret");
    assert_int_equal(symlink("../secret", "model/link"), 0);
    assert_int_equal(symlink("..", "model/up"), 0);
    snprintf(path, sizeof(path), "%s/secret", base);
    int folder = open("model", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    static const struct {
        const char *path;
        wpk_err err;
        const char *text; /* content, or a part of the message */
    } cases[] = {
        {"w.bin", WPK_OK, "weights"},
        {"parts/a.bin", WPK_OK, "part a"},
        {"./w.bin", WPK_OK, "weights"},
        {"../secret", WPK_EINVAL, "leads out of the model's folder"},
        {"parts/../../secret", WPK_EINVAL, "leads out"},
        {"link", WPK_EINVAL, "by a link"},
        {"/etc/passwd", WPK_EINVAL, "leads out"},
        {"", WPK_EINVAL, "leads out"},
        {"parts//a.bin", WPK_EINVAL, "leads out"},
        {"none", WPK_ENOENT, "cannot read none"},
        {"parts", WPK_EPARSE, "is not a file"},
        {"empty", WPK_EPARSE, "is empty"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wpk_err err = map(folder, cases[i].path, text, sizeof(text));
        if (err != cases[i].err || strstr(text, cases[i].text) == NULL) {
            fail_msg("'%s': %s", cases[i].path, text);
        }
    }
    wpk_err err = map(folder, "up/secret", text, sizeof(text)); /* a link is no folder */
    assert_int_not_equal(err, WPK_OK);
    assert_int_equal(map(-1, path, text, sizeof(text)), WPK_OK); /* the user's own path */
    assert_string_equal(text, "secret");
    close(folder);
    static const char *const files[] = {"model/link",        "model/up",    "model/w.bin",
                                        "model/parts/a.bin", "model/empty", "secret"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_int_equal(unlink(files[i]), 0);
    }
    assert_int_equal(rmdir("model/parts") + rmdir("model"), 0);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_int_equal(rmdir(base), 0);
}

/* ---- names in calls and branches */

static void names_of_a_call_are_its_own(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    int outer = -1, own = -1, found = 0;
    struct wpk_onnx_formal formals[] = {
        {.name = "x", .value = 0, .is_given = true},
        {.name = "y", .value = 5, .is_output = true},
        {.name = "left", .value = -1, .is_given = true},
    };
    const struct wpk_onnx_function function = {.name = "f"};
    struct wpk_onnx_scope call = {
        .function = &function, .prefix = "node", .formals = formals, .formal_count = 3};
    struct wpk_onnx_reader reader = {.graph = &graph};
    assert_int_equal(wpk_graph_add_value(&graph, "w", &outer), WPK_OK);
    assert_int_equal(wpk_graph_add_value(&graph, "node/t", &own), WPK_OK);
    assert_true(wpk_onnx_find_value(&reader, "w", &found));
    assert_int_equal(found, outer);
    assert_string_equal(wpk_onnx_scoped_name(&reader, "t"), "t");
    reader.scope = &call;
    assert_false(wpk_onnx_find_value(&reader, "w", &found)); /* a function sees nothing around it */
    assert_true(wpk_onnx_find_value(&reader, "t", &found));
    assert_int_equal(found, own);
    assert_true(wpk_onnx_find_value(&reader, "x", &found));
    assert_int_equal(found, 0);
    assert_false(wpk_onnx_find_value(&reader, "y", &found)); /* not computed yet */
    formals[1].is_given = true;
    assert_true(wpk_onnx_find_value(&reader, "y", &found));
    assert_int_equal(found, 5);
    assert_true(wpk_onnx_find_value(&reader, "left", &found));
    assert_int_equal(found, -1); /* the caller leaves it out */
    assert_string_equal(wpk_onnx_scoped_name(&reader, "t"), "node/t");
    assert_string_equal(wpk_onnx_scoped_name(&reader, ""), "");
    assert_ptr_equal(wpk_onnx_formal_find(&reader, "y"), &formals[1]);
    assert_null(wpk_onnx_formal_find(&reader, "t"));
    wpk_graph_fini(&graph);
}

static void a_branch_knows_what_is_around_it(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    int outer = -1, found = 0;
    struct wpk_onnx_formal formals[] = {{.name = "x", .value = 9, .is_given = true}};
    const struct wpk_onnx_function function = {.name = "f"};
    struct wpk_onnx_scope call = {
        .function = &function, .prefix = "call", .formals = formals, .formal_count = 1};
    struct wpk_onnx_scope branch = {.prefix = "call/if", .outer = &call};
    struct wpk_onnx_reader reader = {.graph = &graph, .scope = &branch};
    assert_int_equal(wpk_graph_add_value(&graph, "w", &outer), WPK_OK);
    assert_true(wpk_onnx_find_value(&reader, "x", &found)); /* of the call around it */
    assert_int_equal(found, 9);
    assert_false(wpk_onnx_find_value(&reader, "w", &found)); /* but not around the function */
    branch.outer = NULL;
    assert_true(wpk_onnx_find_value(&reader, "w", &found));
    assert_int_equal(found, outer);
    wpk_graph_fini(&graph);
}

static void calls_lie_in_each_other_up_to_a_limit(void **state)
{
    (void)state;
    struct wpk_diag diag = {.text = ""};
    static struct wpk_onnx_scope scopes[WPK_ONNX_CALLS_MAX + 1];
    struct wpk_onnx_reader reader = {.path = "m.onnx", .diag = &diag};
    for (int i = 0; i < WPK_ONNX_CALLS_MAX; i++) {
        assert_int_equal(wpk_onnx_count_call(&reader), WPK_OK);
        scopes[i] = (struct wpk_onnx_scope){.outer = reader.scope};
        reader.scope = &scopes[i];
    }
    assert_int_equal(wpk_onnx_count_call(&reader), WPK_EUNSUPPORTED);
    assert_non_null(strstr(diag.text, "32 times"));
    reader.scope = NULL;
    reader.call_count = WPK_GRAPH_NODES_MAX; /* side by side, so many */
    assert_int_equal(wpk_onnx_count_call(&reader), WPK_ENOSPC);
}

static void an_attribute_comes_from_the_caller_or_its_default(void **state)
{
    (void)state;
    const struct wpk_graph_attribute given[] = {
        {.name = "alpha", .kind = WPK_ATTRIBUTE_INT, .integer = 3}};
    struct wpk_graph_attribute defaults[] = {
        {.name = "alpha", .kind = WPK_ATTRIBUTE_INT, .integer = 1},
        {.name = "beta", .kind = WPK_ATTRIBUTE_INT, .integer = 2}};
    const struct wpk_graph_node caller = {.attributes = given, .attribute_count = 1};
    const struct wpk_onnx_function function = {.name = "f"};
    struct wpk_onnx_scope call = {
        .function = &function, .caller = &caller, .defaults = defaults, .default_count = 2};
    struct wpk_onnx_scope branch = {.outer = &call};
    struct wpk_onnx_reader reader = {.scope = &branch}; /* in a branch of the function */
    struct wpk_graph_attribute out = {.name = "own"};
    assert_true(wpk_onnx_scoped_attribute(&reader, "alpha", &out));
    assert_int_equal(out.integer, 3);
    assert_string_equal(out.name, "own"); /* it keeps its name */
    assert_true(wpk_onnx_scoped_attribute(&reader, "beta", &out));
    assert_int_equal(out.integer, 2);
    assert_false(wpk_onnx_scoped_attribute(&reader, "gamma", &out));
    reader.scope = NULL;
    assert_false(wpk_onnx_scoped_attribute(&reader, "alpha", &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_each_kind_are_read),
        cmocka_unit_test(varints_have_up_to_ten_bytes),
        cmocka_unit_test(malformed_fields_stop_the_reader_where_they_begin),
        cmocka_unit_test(fields_of_a_number_are_counted),
        cmocka_unit_test(texts_are_utf8_without_control_characters),
        cmocka_unit_test(a_failure_names_the_file_and_the_part),
        cmocka_unit_test(external_files_lie_below_the_folder),
        cmocka_unit_test(names_of_a_call_are_its_own),
        cmocka_unit_test(a_branch_knows_what_is_around_it),
        cmocka_unit_test(calls_lie_in_each_other_up_to_a_limit),
        cmocka_unit_test(an_attribute_comes_from_the_caller_or_its_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
