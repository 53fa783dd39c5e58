/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernel_fixture.h"

#include "common/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *encode_example(void)
{
    struct wpk_manifest manifest;
    char *text = NULL;

    wpk_kernel_fixture_manifest(&manifest, 4, 32, "1,0 pad 0:0,1:1");
    manifest.needs.flags = WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_VNNI;
    manifest.constants[1].type.dtype = WPK_I32;
    manifest.indices[manifest.index_count++] = (struct wpk_manifest_index){
        "S", {.low = -4, .high = 3, .first = 1, .axis_count = 1, .stride = {2}, .extent = {16}}};
    assert_int_equal(wpk_manifest_encode(&manifest, &text), WPK_OK);
    wpk_manifest_fini(&manifest);
    return text;
}

static void round_trips(void **state)
{
    struct wpk_manifest back;
    char *text = encode_example();
    char *again = NULL;

    (void)state;
    assert_int_equal(wpk_manifest_decode(text, strlen(text), &back, NULL), WPK_OK);
    assert_int_equal(back.needs.flags, WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_VNNI);
    assert_int_equal(back.inputs[0].type.layout.pad_before[1], 1);
    assert_int_equal(back.main_count, 4);
    assert_string_equal(back.prepare[1], "P");
    assert_int_equal(back.index_count, 1);
    assert_true(back.indices[0].bound.low == -4 && back.indices[0].bound.stride[0] == 2);
    assert_ptr_equal(wpk_manifest_find(&back, "S"), &back.constants[1]);
    assert_null(wpk_manifest_find(&back, "T"));
    assert_int_equal(wpk_manifest_encode(&back, &again), WPK_OK);
    assert_string_equal(text, again);
    wpk_manifest_fini(&back);
    free(text);
    free(again);
}

/* A copy of the text with the first `from` replaced. */
static char *replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    struct wpk_buf buf = {0};
    char *out = NULL;

    assert_non_null(at);
    wpk_buf_append(&buf, text, (size_t)(at - text));
    wpk_buf_append_text(&buf, to);
    wpk_buf_append_text(&buf, at + strlen(from));
    assert_int_equal(wpk_buf_take(&buf, &out, NULL), WPK_OK);
    return out;
}

static void refuses_what_it_does_not_mean(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        wpk_err err;
    } bad[] = {
        {"\"abi\":4", "\"abi\":3", WPK_EMISMATCH},
        {"\"kind\":\"cpu\"", "\"kind\":\"cuda\"", WPK_EINVAL},
        {"\"kind\":\"cpu\"", "\"kind\":\"fpga\"", WPK_EINVAL},
        {"\"threads\":1", "\"threads\":0", WPK_ERANGE},
        {"\"avx512f\"", "\"avx1024\"", WPK_EINVAL},
        {"\"flags\"", "\"isa\"", WPK_EINVAL},
        {"aaaa", "zzzz", WPK_EINVAL},
        {"f32[4,32]", "f32[4,0]", WPK_EPARSE},
        {"f32[4,32]", "f32[4,-1]", WPK_EPARSE},
        {"f32[4,32]", "f33[4,32]", WPK_EPARSE},
        {"f32[4,32]", "f32[4,32", WPK_EPARSE},
        {"f32[4,32]", "f32[4,,32]", WPK_EPARSE},
        {"f32[4,32]", "f32[4,32,]", WPK_EPARSE},
        {"f32[4,32]", "f32[4,9999999999999999999999]", WPK_EPARSE},
        {"f32[4,32]", "f32[1,1,1,1,1,1,1,1,1,1,1]", WPK_EPARSE},
        {"pad 0:0,1:1", "pad 0:0,1:9000000000", WPK_OK},
        {"\"1,0 pad 0:0,1:1\"", "\"1,1\"", WPK_EPARSE},
        {"\"main\":[\"X\"", "\"main\":[\"Q\"", WPK_EINVAL},
        {"\"main\":[\"X\"", "\"main\":[\"X\",\"X\"", WPK_EINVAL},
        {"\"prepare\":[\"W\"", "\"prepare\":[\"X\"", WPK_EINVAL},
        {"\"prepare\":[\"W\",\"P\"]", "\"prepare\":[]", WPK_EINVAL},
        {"\"name\":\"S\"", "\"name\":\"W\"", WPK_EINVAL},
        {"\"name\":\"S\"", "\"name\":\"\"", WPK_EINVAL},
        {"\"algorithm\"", "\"in_place\":\"W\",\"algorithm\"", WPK_EINVAL},
        {"\"algorithm\"", "\"in_place\":\"Y\",\"algorithm\"", WPK_EINVAL},
        {"\"tensor\":\"S\"", "\"tensor\":\"W\"", WPK_EINVAL},
        {"\"tensor\":\"S\"", "\"tensor\":\"Q\"", WPK_EINVAL},
        {"\"extents\":[16]", "\"extents\":[17]", WPK_EINVAL},
        {"\"extents\":[16]", "\"extents\":[16,1]", WPK_ERANGE},
        {"\"first\":1", "\"first\":-1", WPK_ERANGE},
        {"\"low\":-4", "\"lowest\":-4", WPK_OK},
        {"\"algorithm\"", "\"color\":1,\"algorithm\"", WPK_OK},
    };
    char *text = encode_example();

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wpk_manifest manifest = {0};
        struct wpk_diag diag = {0};
        char *changed = replace(text, bad[i].from, bad[i].to);
        wpk_err err = wpk_manifest_decode(changed, strlen(changed), &manifest, &diag);
        assert_int_not_equal(err, WPK_OK);
        if (bad[i].err != WPK_OK && bad[i].err != WPK_ERANGE) {
            assert_int_equal(err, bad[i].err);
        }
        assert_true(diag.text[0] != '\0');
        assert_null(manifest.op);
        free(changed);
    }
    free(text);
}

static void every_cut_is_refused(void **state)
{
    struct wpk_manifest manifest;
    char *text = encode_example();

    (void)state;
    for (size_t size = 0; size < strlen(text); size++) {
        assert_int_not_equal(wpk_manifest_decode(text, size, &manifest, NULL), WPK_OK);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(refuses_what_it_does_not_mean),
        cmocka_unit_test(every_cut_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
