/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A struct with a member of every kind. */

struct wpk_test_pet {
    char name[8];
    int32_t age;
    char *note; /* owned */
};

struct wpk_test_tag {
    char key[8];
    char value[8];
};

enum wpk_test_shape { SHAPE_ROUND, SHAPE_SQUARE, SHAPE_FLAT };

struct wpk_test_size {
    bool present;
    double width;
    double height;
};

struct wpk_test_all {
    int32_t small;
    uint32_t large;
    int64_t wide;
    uint64_t id;
    double real;
    bool flag;
    enum wpk_test_shape shape;
    int32_t edges;  /* of a square */
    int32_t radius; /* of one that is round */
    char copy[8];
    char label[8];
    char hash[65];
    const char *text;
    const char *more;
    struct wpk_test_size size;
    int32_t part_a, part_b;
    int64_t numbers[3];
    uint32_t number_count;
    struct wpk_test_pet *pets;
    uint32_t pet_count;
    struct wpk_test_tag tags[2];
    uint32_t tag_count;
    struct wpk_test_pet *inline_pet;
    unsigned twice; /* half of the member */
};

static const char *const shape_names[] = {"round", "square", "flat"};
static const struct wpk_field pet_fields[] = {
    {WPK_FIELD(LABEL, "name", test_pet, name)},
    {WPK_FIELD_INT("age", test_pet, age, 0, 30)},
    {WPK_FIELD_OWNED("note", test_pet, note, 100, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

static const struct wpk_field tag_fields[] = {
    {WPK_FIELD(COPY, NULL, test_tag, key)},
    {WPK_FIELD(LABEL, NULL, test_tag, value)},
    {WPK_FIELD_END},
};

static const struct wpk_field size_fields[] = {
    {WPK_FIELD_PRESENT(test_size, present)},
    {WPK_FIELD_REAL("width", test_size, width, 0, 10)},
    {WPK_FIELD_REAL("height", test_size, height, 0, 10)},
    {WPK_FIELD_END},
};

static const struct wpk_field part_fields[] = {
    {WPK_FIELD_INT("a", test_all, part_a, 0, 9)},
    {WPK_FIELD_INT("b", test_all, part_b, 0, 9)},
    {WPK_FIELD_END},
};

static const struct wpk_field square_fields[] = {
    {WPK_FIELD_INT("edges", test_all, edges, 4, 4)},
    {WPK_FIELD_END},
};

static const struct wpk_field round_fields[] = {
    {WPK_FIELD_INT("radius", test_all, radius, 1, 9)},
    {WPK_FIELD_END},
};

static void put_twice(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_json_put_int(w, key, 2 * (int64_t) * (const unsigned *)member);
}

static void get_twice(struct wpk_json_reader *r, const char *key, void *member)
{
    *(unsigned *)member = (unsigned)(wpk_json_get_int(r, key, 0, 100) / 2);
}

static void check_sum(struct wpk_json_reader *r, void *object)
{
    const struct wpk_test_all *all = object;
    if (all->part_a + all->part_b > 9) {
        wpk_json_fail(r, "part", WPK_EINVAL, "a and b are 9 at most");
    }
}

static const struct wpk_field all_fields[] = {
    {WPK_FIELD_VERSION(3, "ask for another")},
    {WPK_FIELD_CHOICE("shape", test_all, shape, shape_names)},
    {WPK_FIELD_WHEN(test_all, shape, WPK_IS(SHAPE_SQUARE), square_fields)},
    {WPK_FIELD_WHEN(test_all, shape, WPK_IS(SHAPE_ROUND), round_fields)},
    {WPK_FIELD_INT("small", test_all, small, -7, 7)},
    {WPK_FIELD_INT("large", test_all, large, 0, UINT32_MAX)},
    {WPK_FIELD_INT("wide", test_all, wide, -WPK_JSON_INT_MAX, WPK_JSON_INT_MAX)},
    {WPK_FIELD(U64, "id", test_all, id)},
    {WPK_FIELD_REAL("real", test_all, real, -1, 1, WPK_OPTIONAL)},
    {WPK_FIELD(BOOL, "flag", test_all, flag, WPK_OPTIONAL)},
    {WPK_FIELD(COPY, "copy", test_all, copy)},
    {WPK_FIELD(LABEL, "label", test_all, label)},
    {WPK_FIELD(HASH, "hash", test_all, hash, WPK_OPTIONAL)},
    {WPK_FIELD_TEXT("text", test_all, text, 10, WPK_OPTIONAL)},
    {WPK_FIELD_TEXT("more", test_all, more, 10, WPK_NULLABLE)},
    {WPK_FIELD_OBJECT("size", test_all, size, size_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("part", part_fields, WPK_OPTIONAL)},
    {WPK_FIELD_ARRAY("numbers", test_all, numbers, number_count, WPK_ITEM(INT, int64_t, -5, 5),
                     .min = 1)},
    {WPK_FIELD_LIST("pets", test_all, pets, pet_count, 3, pet_fields)},
    {WPK_FIELD_MAP("tags", test_all, tags, tag_count, tag_fields)},
    {WPK_FIELD_GROUP(test_all, inline_pet, WPK_ROWS({WPK_FIELD(COPY, "pet_name", test_pet, name)}),
                     .is_pointer = true, .size = sizeof(struct wpk_test_pet))},
    {WPK_FIELD_CUSTOM("twice", test_all, twice, put_twice, get_twice)},
    {WPK_FIELD_CHECK(check_sum)},
    {WPK_FIELD_END},
};

static wpk_err decode(const char *text, struct wpk_arena *arena, bool lenient,
                      struct wpk_test_all *all, struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, strlen(text), 10000, arena, lenient};
    *all = (struct wpk_test_all){.small = 0};
    *diag = (struct wpk_diag){.line = 0};
    return wpk_fields_decode(&from, all_fields, all, diag);
}

/* decode(encode(x)) = x, shown by equal texts. */
static void check_text(const struct wpk_test_all *all, const char *expected)
{
    struct wpk_buf first = {0}, second = {0};
    struct wpk_arena arena = {0};
    struct wpk_test_all back;
    struct wpk_diag diag;
    assert_int_equal(wpk_fields_encode(all_fields, all, &first), WPK_OK);
    assert_string_equal(wpk_buf_text(&first), expected);
    if (decode(wpk_buf_text(&first), &arena, false, &back, &diag) != WPK_OK) {
        fail_msg("%s: %s", diag.field, diag.text);
    }
    assert_int_equal(wpk_fields_encode(all_fields, &back, &second), WPK_OK);
    assert_string_equal(wpk_buf_text(&second), expected);
    wpk_fields_fini(all_fields, &back);
    wpk_arena_fini(&arena);
    wpk_buf_fini(&first);
    wpk_buf_fini(&second);
}

static void every_kind_goes_both_ways(void **state)
{
    struct wpk_test_pet pets[] = {{"Rex", 3, (char *)"a \"dog\""}, {"Tom", 0, NULL}};
    struct wpk_test_pet inline_pet = {.name = "Ada"};
    struct wpk_test_all all = {.shape = SHAPE_SQUARE,
                               .edges = 4,
                               .small = -7,
                               .large = UINT32_MAX,
                               .wide = -(INT64_C(1) << 40),
                               .id = UINT64_MAX,
                               .real = 0.5,
                               .flag = true,
                               .copy = "\t",
                               .label = "l",
                               .hash = HASH,
                               .text = "t",
                               .more = "m",
                               .size = {.present = true, .width = 2},
                               .part_a = 1,
                               .numbers = {-5, 5},
                               .number_count = 2,
                               .pets = pets,
                               .pet_count = 2,
                               .tags = {{"k", "v"}, {"k2", "v2"}},
                               .tag_count = 2,
                               .inline_pet = &inline_pet,
                               .twice = 21};
    (void)state;
    check_text(&all, "{\"version\":3,\"shape\":\"square\",\"edges\":4,\"small\":-7,"
                     "\"large\":4294967295,\"wide\":-1099511627776,"
                     "\"id\":\"18446744073709551615\",\"real\":0.5,\"flag\":true,\"copy\":\"\\t\","
                     "\"label\":\"l\",\"hash\":\"" HASH "\",\"text\":\"t\",\"more\":\"m\","
                     "\"size\":{\"width\":2,\"height\":0},\"part\":{\"a\":1,\"b\":0},"
                     "\"numbers\":[-5,5],\"pets\":[{\"name\":\"Rex\",\"age\":3,"
                     "\"note\":\"a \\\"dog\\\"\"},{\"name\":\"Tom\",\"age\":0}],"
                     "\"tags\":{\"k\":\"v\",\"k2\":\"v2\"},\"pet_name\":\"Ada\",\"twice\":42}");
}

#define LEAST                                                                                      \
    "\"small\":0,\"large\":0,\"wide\":0,\"id\":\"0\",\"copy\":\"\",\"label\":\"\",\"more\":null,"  \
    "\"numbers\":[0],\"pets\":[],\"tags\":{},\"pet_name\":\"\",\"twice\":0}"
#define FLAT "{\"version\":3,\"shape\":\"flat\","

static void what_is_empty_is_left_out(void **state)
{
    struct wpk_test_pet inline_pet = {.age = 0};
    const struct wpk_test_all all = {
        .shape = SHAPE_FLAT, .number_count = 1, .inline_pet = &inline_pet, .edges = 4};
    struct wpk_arena arena = {0};
    struct wpk_test_all back;
    struct wpk_diag diag;
    (void)state;
    check_text(&all, FLAT LEAST);
    assert_int_equal(decode(FLAT LEAST, &arena, false, &back, &diag), WPK_OK);
    assert_string_equal(back.text, "");
    assert_string_equal(back.more, "");
    assert_false(back.size.present);
    wpk_arena_fini(&arena);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *field, *says;
        wpk_err err;
    } bad[] = {
        {"{\"version\":4}", "version", "version 4 is not spoken here, only 3: ask for another",
         WPK_EMISMATCH},
        {"{}", "version", "is missing", WPK_EINVAL},
        {FLAT "\"edges\":4," LEAST, "edges", "unknown field", WPK_EINVAL},
        {FLAT "\"more\":1,", "", "", WPK_EPARSE},
        {"{\"version\":3,\"shape\":\"oval\"," LEAST, "shape", "round, square, flat", WPK_EINVAL},
        {"{\"version\":3,\"shape\":\"square\"," LEAST, "edges", "is missing", WPK_EINVAL},
        {"{\"version\":3,\"shape\":\"round\",\"radius\":0," LEAST, "radius", "between 1 and 9",
         WPK_ERANGE},
        {FLAT "\"real\":2," LEAST, "real", "between -1 and 1", WPK_ERANGE},
        {FLAT "\"hash\":\"00\"," LEAST, "hash", "SHA-256", WPK_EINVAL},
        {FLAT "\"flag\":null," LEAST, "flag", "true or false", WPK_EINVAL},
        {FLAT "\"text\":\"01234567890\"," LEAST, "text", "at most 10 bytes", WPK_ERANGE},
        {FLAT "\"size\":{\"width\":1}," LEAST, "size.height", "is missing", WPK_EINVAL},
        {FLAT "\"size\":{\"width\":1,\"height\":1,\"depth\":1}," LEAST, "size.depth",
         "unknown field", WPK_EINVAL},
        {FLAT "\"part\":{\"a\":5,\"b\":5}," LEAST, "part", "9 at most", WPK_EINVAL},
    };
    struct wpk_arena arena = {0};
    struct wpk_test_all all;
    struct wpk_diag diag;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(decode(bad[i].text, &arena, false, &all, &diag), bad[i].err);
        assert_string_equal(diag.field, bad[i].field);
        assert_non_null(strstr(diag.text, bad[i].says));
    }
    wpk_arena_fini(&arena);
}

/* A text in which one part was replaced; the decoder must name the field. */
static void check_part(const char *part, const char *instead, const char *field)
{
    struct wpk_arena arena = {0};
    struct wpk_buf text = {0};
    struct wpk_test_all all;
    struct wpk_diag diag;
    const char *at = strstr(FLAT LEAST, part);
    assert_non_null(at);
    size_t before = strlen(FLAT LEAST) - strlen(at);
    wpk_buf_append(&text, FLAT LEAST, before);
    wpk_buf_append_text(&text, instead);
    wpk_buf_append_text(&text, at + strlen(part));
    assert_int_not_equal(decode(wpk_buf_text(&text), &arena, false, &all, &diag), WPK_OK);
    assert_string_equal(diag.field, field);
    wpk_fields_fini(all_fields, &all); /* of what there is */
    assert_true(all.pet_count == 0 || all.pets[0].note == NULL);
    wpk_arena_fini(&arena);
    wpk_buf_fini(&text);
}

static void lists_are_bounded(void **state)
{
    (void)state;
    check_part("[0]", "[]", "numbers");
    check_part("[0]", "[0,0,0,0]", "numbers");
    check_part("[0]", "[0,6]", "numbers[1]");
    check_part("[0]", "{\"a\":0}", "numbers");
    check_part("\"pets\":[]", "\"pets\":[{\"name\":\"R\",\"age\":1,\"note\":\"n\"},{}]",
               "pets[1].name");
    check_part("\"pets\":[]", "\"pets\":[{\"name\":\"R\",\"age\":1,\"note\":\"n\"},1]", "pets[1]");
    check_part("\"pets\":[]", "\"pets\":[{},{},{},{}]", "pets");
    check_part("{}", "{\"a\":\"\",\"b\":\"\",\"c\":\"\"}", "tags");
    check_part("{}", "{\"12345678\":\"\"}", "tags.12345678");
    check_part("{}", "{\"a\":\"\x7f\"}", "tags.a");
    check_part("\"copy\":\"\"", "\"copy\":\"12345678\"", "copy");
}

static void lenient_decoders_skip(void **state)
{
    struct wpk_arena arena = {0};
    struct wpk_test_all all;
    struct wpk_diag diag;
    (void)state;
    assert_int_equal(
        decode(FLAT "\"next\":1,\"flag\":null,\"size\":null," LEAST, &arena, true, &all, &diag),
        WPK_OK);
    assert_false(all.flag || all.size.present);
    wpk_arena_fini(&arena);
}

static void memory_has_an_end(void **state)
{
    struct wpk_arena arena;
    struct wpk_test_all all;
    struct wpk_diag diag;
    (void)state;
    wpk_arena_init(&arena, 1);
    assert_int_equal(decode(FLAT LEAST, &arena, false, &all, &diag), WPK_ENOMEM);
    wpk_fields_fini(all_fields, &all);
    wpk_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_goes_both_ways), cmocka_unit_test(what_is_empty_is_left_out),
        cmocka_unit_test(what_is_wrong_is_named),    cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(lenient_decoders_skip),     cmocka_unit_test(memory_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
