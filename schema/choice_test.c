/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const char text_of_choice[] =
    "{\"version\":4,\"operator\":\"input X f32[8]; output Y[i] = X[i]\","
    "\"fingerprint\":\"" HASH "\",\"accuracy\":\"standard\",\"conditions\":\"warm\","
    "\"layouts\":\"fixed\",\"threads\":2,\"binding\":{\"inputs\":[[\"X\",\"t0\"]],"
    "\"constants\":[],\"outputs\":[[\"Y\",\"t1\"]]},"
    "\"self_test\":{\"seed\":\"18446744073709551615\",\"domain\":\"any\","
    "\"outputs\":[{\"points\":[0,7],\"values\":[0.5,-2],\"tolerance\":1e-05}]},"
    "\"plain_missing\":\"\",\"chain\":[{"
    "\"kind\":\"kernel\","
    "\"file\":\"c6.so\",\"sha256\":\"" HASH "\"},{\"kind\":\"vendor\",\"provider\":\"onednn\","
    "\"version\":\"3.2.0\",\"recipe\":{\"version\":3,\"primitive\":\"eltwise\","
    "\"inputs\":[{\"name\":\"t0\",\"type\":\"f32[8]\",\"layout\":\"0\"}],\"constants\":[],"
    "\"outputs\":[{\"name\":\"t1\",\"type\":\"f32[8]\",\"layout\":\"0\"}],"
    "\"src\":{\"extents\":[8],\"strides\":[1],\"tensor\":0,\"chosen\":false},"
    "\"dst\":{\"extents\":[8],\"strides\":[1],\"tensor\":1,\"chosen\":false},"
    "\"posts\":[{\"function\":\"relu\",\"alpha\":0,\"beta\":0}]}},{\"kind\":\"plain\","
    "\"file\":\"c6.plain.so\",\"sha256\":\"" HASH "\"}]}";

static void reads_what_it_wrote(void **state)
{
    struct wpk_choice choice = {0};
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};

    (void)state;
    if (wpk_choice_decode(text_of_choice, strlen(text_of_choice), &choice, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(choice.chain_count, 3);
    assert_int_equal(choice.chain[1].recipe->kind, WPK_RECIPE_ELTWISE);
    assert_string_equal(choice.chain[2].file, "c6.plain.so");
    assert_string_equal(choice.inputs.tensor[0].canonical, "t0");
    assert_true(choice.accuracy.times_direct == 4.0);
    assert_int_equal(choice.threads, 2);
    assert_true(choice.test.seed == UINT64_MAX);
    assert_int_equal(choice.test.output[0].count, 2);
    assert_true(choice.test.output[0].value[1] == -2);
    assert_true(wpk_choice_has_test(&choice));
    assert_int_equal(wpk_choice_encode(&choice, &text), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), text_of_choice);
    wpk_buf_fini(&text);
    wpk_choice_fini(&choice);
}

static const struct {
    const char *from;
    const char *to;
    wpk_err err;
    const char *says;
} breaches[] = {
    {"\"warm\"", "\"tepid\"", WPK_EINVAL, "conditions"},
    {"\"accuracy\":\"standard\",", "", WPK_EINVAL, "accuracy"},
    {"\"standard\"", "\"precise\"", WPK_EINVAL, "accuracy"},
    {"\"version\":4", "\"version\":3", WPK_EMISMATCH,
     "version 3 is not spoken here, only 4: wpkctl get"},
    {"\"threads\":2", "\"threads\":0", WPK_ERANGE, "threads"},
    {"\"threads\":2", "\"threads\":2,\"library\":\"/x.so\"", WPK_EINVAL, "library"},
    {"\"provider\":", "\"library\":\"/x.so\",\"provider\":", WPK_EINVAL, "library"},
    {"\"fingerprint\":\"0", "\"fingerprint\":\"x", WPK_EINVAL, "SHA-256"},
    {"c6.so", "lib/c6.so", WPK_EINVAL, "beside the choice"},
    {"c6.so", "/c6.so", WPK_EINVAL, "beside the choice"},
    {"c6.plain.so", "..", WPK_EINVAL, "beside the choice"},
    {"c6.plain.so", "", WPK_EINVAL, "beside the choice"},
    {"[\"Y\",\"t1\"]", "[\"X\",\"t1\"]", WPK_EINVAL, "twice"},
    {"[\"Y\",\"t1\"]", "[\"Y\",\"t0\"]", WPK_EINVAL, "twice"},
    {"[\"Y\",\"t1\"]", "[\"Y\"]", WPK_EINVAL, "pair"},
    {"[[\"Y\",\"t1\"]]", "[]", WPK_EINVAL, "output"},
    {"[0.5,-2]", "[0.5]", WPK_ERANGE, "fewer than 2 items"},
    {"[\"Y\",\"t1\"]", "[\"Y\",\"t1\"],[\"Z\",\"t2\"]", WPK_ERANGE, "fewer than 2 items"},
    {"[0,7]", "[0,-7]", WPK_ERANGE, "points"},
    {"\"plain\"", "\"simple\"", WPK_EINVAL, "kind"},
    {"\"plain_missing\":\"\",", "", WPK_EINVAL, "plain_missing"},
    {"\"plain_missing\":\"\"", "\"plain_missing\":\"lost\"", WPK_EINVAL, "said to be missing"},
    {"\"kind\":\"plain\"", "\"kind\":\"kernel\"", WPK_EINVAL, "no reason is given"},
    {"\"extents\":[8]", "\"extents\":[9]", WPK_ERANGE, "leaves"},
    {"\"kind\":\"vendor\"", "\"kind\":\"kernel\"", WPK_EINVAL, "provider"},
};

static void breaches_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
        struct wpk_choice choice = {0};
        struct wpk_buf text = {0};
        struct wpk_diag diag = {0};
        const char *at = strstr(text_of_choice, breaches[i].from);
        assert_non_null(at);
        wpk_buf_append(&text, text_of_choice, (size_t)(at - text_of_choice));
        wpk_buf_append_text(&text, breaches[i].to);
        wpk_buf_append_text(&text, at + strlen(breaches[i].from));
        wpk_err err = wpk_choice_decode(text.data, text.size, &choice, &diag);
        char whole[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, whole, sizeof(whole));
        if (err != breaches[i].err || strstr(whole, breaches[i].says) == NULL) {
            fail_msg("%s: %s: %s", breaches[i].to, wpk_err_text(err), whole);
        }
        wpk_buf_fini(&text);
    }
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t size = 0; size < strlen(text_of_choice); size++) {
        struct wpk_choice choice;
        struct wpk_diag diag = {0};
        assert_int_not_equal(wpk_choice_decode(text_of_choice, size, &choice, &diag), WPK_OK);
        assert_true(diag.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(breaches_are_refused),
        cmocka_unit_test(every_cut_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
