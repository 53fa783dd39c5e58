/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/job.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char full_text[] =
    "{ \"name\": \"resnet18\",\n"
    "  \"ops\": [\n"
    "    { \"name\": \"c6\", \"op\": \"Y[i] = X[i] * W[i]\",\n"
    "      \"tensors\": { \"X\": \"f32[8]\", \"W\": \"f32[8]\", \"Y\": \"f32[8]\" },\n"
    "      \"constants\": [\"W\"], \"layouts\": \"any\" },\n"
    "    { \"name\": \"attention\", \"op\": { \"type\": \"matmul\", \"a\": [2,3],\n"
    "      \"b\": [3,4] } } ],\n"
    "  \"target\": { \"kind\": \"cpu\", \"device\": \"cpu/a b/avx512\", \"threads\": 2, "
    "\"labels\": { \"zone\": \"b 1\" } },\n"
    "  \"search\": { \"strategy\": \"random\", \"seed\": \"18446744073709551615\",\n"
    "    \"pin\": { \"algorithm\": \"direct\" } },\n"
    "  \"budget\": { \"candidates\": 12, \"seconds\": 34 },\n"
    "  \"priority\": -3 }\n";

static void check_full(const struct wpk_job *job)
{
    assert_string_equal(job->name, "resnet18");
    assert_int_equal(job->op_count, 2);
    const struct wpk_job_op *op = &job->ops[0];
    assert_string_equal(op->name, "c6");
    assert_string_equal(op->notation, "Y[i] = X[i] * W[i]");
    assert_null(op->shorthand);
    assert_int_equal(op->tensor_count, 3);
    assert_string_equal(op->tensors[1].name, "W");
    assert_string_equal(op->tensors[1].type, "f32[8]");
    assert_true(op->tensors[1].constant);
    assert_false(op->tensors[0].constant);
    assert_int_equal(op->layouts, WPK_LAYOUTS_ANY);
    assert_null(job->ops[1].notation);
    assert_int_equal(job->ops[1].layouts, WPK_LAYOUTS_FIXED);
    assert_int_equal(job->threads, 2);
    assert_int_equal(job->label_count, 1);
    assert_string_equal(job->device, "cpu/a b/avx512");
    assert_string_equal(job->labels[0].name, "zone");
    assert_string_equal(job->labels[0].value, "b 1");
    assert_string_equal(job->strategy, "random");
    assert_true(job->seed == UINT64_MAX);
    assert_int_equal(job->pin_count, 1);
    assert_string_equal(job->pins[0].gene, "algorithm");
    assert_string_equal(job->pins[0].value, "direct");
    assert_int_equal(job->candidates, 12);
    assert_int_equal(job->seconds, 34);
    assert_int_equal(job->priority, -3);
}

static void test_full(void **state)
{
    struct wpk_job job;
    struct wpk_diag diag = {0};

    (void)state;
    assert_int_equal(wpk_job_decode(full_text, strlen(full_text), &job, &diag), WPK_OK);
    check_full(&job);
    assert_string_equal(job.ops[1].shorthand,
                        "{ \"type\": \"matmul\", \"a\": [2,3],\n      \"b\": [3,4] }");
    wpk_job_fini(&job);
    assert_null(job.ops);
}

static void test_defaults(void **state)
{
    static const char text[] = "{\"ops\":[{\"name\":\"m\",\"op\":{\"type\":\"matmul\"}}]}";
    struct wpk_job job;

    (void)state;
    assert_int_equal(wpk_job_decode(text, strlen(text), &job, NULL), WPK_OK);
    assert_string_equal(job.name, "");
    assert_string_equal(job.kind, "cpu");
    assert_string_equal(job.strategy, "auto");
    assert_int_equal(job.threads, 1);
    assert_int_equal(job.seed, 1);
    assert_int_equal(job.candidates, 200);
    assert_int_equal(job.seconds, 600);
    assert_int_equal(job.pin_count, 0);
    wpk_job_fini(&job);
}

static void test_round_trip(void **state)
{
    struct wpk_job first;
    struct wpk_job second;
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};

    (void)state;
    assert_int_equal(wpk_job_decode(full_text, strlen(full_text), &first, NULL), WPK_OK);
    assert_int_equal(wpk_job_encode(&first, &once), WPK_OK);
    assert_int_equal(wpk_job_decode(once.data, once.size, &second, NULL), WPK_OK);
    check_full(&second);
    assert_int_equal(wpk_job_encode(&second, &twice), WPK_OK);
    assert_string_equal(once.data, twice.data);
    wpk_job_fini(&first);
    wpk_job_fini(&second);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
}

#define OP "\"name\":\"a\",\"op\":\"Y[i]=X[i]\",\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}"

static void test_rejected(void **state)
{
    static const struct {
        const char *text;
        wpk_err err;
        const char *field;
        int line;
        int column; /* 0: not looked at */
    } cases[] = {
        {"", WPK_EPARSE, "", 1, 1},
        {"{\"ops\":[{" OP "}]", WPK_EPARSE, "", 1, 0},
        {"[]", WPK_EINVAL, "", 1, 1},
        {"{}", WPK_EINVAL, "ops", 1, 1},
        {"{\"ops\":[]}", WPK_ERANGE, "ops", 1, 8},
        {"{\"ops\":{}}", WPK_EINVAL, "ops", 1, 8},
        {"{\"ops\":[1]}", WPK_EINVAL, "ops[0]", 1, 9},
        {"{\n \"ops\":[{" OP "}],\n \"extra\":1}", WPK_EINVAL, "extra", 3, 2},
        {"{\"ops\":[{" OP "},\n{" OP "}]}", WPK_EINVAL, "ops[1].name", 2, 9},
        {"{\"ops\":[{\"name\":\"a b\",\"op\":{}}]}", WPK_EINVAL, "ops[0].name", 1, 0},
        {"{\"name\":\"a\\u009b2J\",\"ops\":[{" OP "}]}", WPK_EINVAL, "name", 1, 0},
        {"{\"ops\":[{\"name\":\"../x\",\"op\":{}}]}", WPK_EINVAL, "ops[0].name", 1, 0},
        {"{\"ops\":[{\"name\":\"a\"}]}", WPK_EINVAL, "ops[0].op", 1, 0},
        {"{\"ops\":[{\"name\":\"a\",\"op\":7}]}", WPK_EINVAL, "ops[0].op", 1, 0},
        {"{\"ops\":[{\"name\":\"a\",\"op\":\"Y[i]=X[i]\"}]}", WPK_EINVAL, "ops[0].tensors", 1, 0},
        {"{\"ops\":[{\"name\":\"a\",\"op\":{},\"tensors\":{}}]}", WPK_EINVAL, "ops[0].tensors", 1,
         0},
        {"{\"ops\":[{" OP ",\"constants\":[\"Z\"]}]}", WPK_EINVAL, "ops[0].constants[0]", 1, 0},
        {"{\"ops\":[{" OP ",\"constants\":[\"X\",\"X\"]}]}", WPK_EINVAL, "ops[0].constants[1]", 1,
         0},
        {"{\"ops\":[{" OP ",\"layouts\":\"nhwc\"}]}", WPK_EINVAL, "ops[0].layouts", 1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"kind\":\"tpu\"}}", WPK_EINVAL, "target.kind", 1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"threads\":0}}", WPK_ERANGE, "target.threads", 1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"device\":\"toaster\"}}", WPK_EINVAL, "target.device", 1,
         0},
        {"{\"ops\":[{" OP "}],\"target\":{\"device\":\"gpu/x/avx2\"}}", WPK_EINVAL, "target.device",
         1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"labels\":[]}}", WPK_EINVAL, "target.labels", 1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"labels\":{\"Zone\":\"b\"}}}", WPK_EINVAL,
         "target.labels.Zone", 1, 0},
        {"{\"ops\":[{" OP "}],\"target\":{\"labels\":{\"zone\":1}}}", WPK_EINVAL,
         "target.labels.zone", 1, 0},
        {"{\"ops\":[{" OP "}],\"budget\":{\"candidates\":-1}}", WPK_ERANGE, "budget.candidates", 1,
         0},
        {"{\"ops\":[{" OP "}],\"budget\":{\"seconds\":1.5}}", WPK_EINVAL, "budget.seconds", 1, 0},
        {"{\"ops\":[{" OP "}],\"budget\":{\"seconds\":1e99}}", WPK_ERANGE, "budget.seconds", 1, 0},
        {"{\"ops\":[{" OP "}],\"search\":{\"sead\":1}}", WPK_EINVAL, "search.sead", 1, 0},
        {"{\"ops\":[{" OP "}],\"search\":{\"pin\":{\"a\":1}}}", WPK_EINVAL, "search.pin.a", 1, 0},
        {"{\"ops\":[{" OP "}],\"priority\":101}", WPK_ERANGE, "priority", 1, 0},
        {"{\"ops\":[{" OP "}],\"name\":\"a\\nb\"}", WPK_EINVAL, "name", 1, 0},
        {"{\"ops\":[{" OP "}],\"name\":\"\xff\"}", WPK_EPARSE, "", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wpk_job job = {0};
        struct wpk_diag diag = {0};
        wpk_err err = wpk_job_decode(cases[i].text, strlen(cases[i].text), &job, &diag);
        if (err != cases[i].err || strcmp(diag.field, cases[i].field) != 0 ||
            diag.line != cases[i].line ||
            (cases[i].column != 0 && diag.column != cases[i].column)) {
            fail_msg("case %zu: %s\n%s at '%s' %d:%d: %s", i, cases[i].text, wpk_err_name(err),
                     diag.field, diag.line, diag.column, diag.text);
        }
        assert_true(diag.text[0] != '\0');
        assert_null(job.ops);
    }
}

static void test_limits(void **state)
{
    struct wpk_job job;
    struct wpk_diag diag = {0};
    size_t size = WPK_JOB_SIZE_MAX + 1;
    char *large = malloc(size);

    (void)state;
    assert_non_null(large);
    memset(large, ' ', size);
    assert_int_equal(wpk_job_decode(large, size, &job, &diag), WPK_ERANGE);
    memset(large, '[', size);
    assert_int_equal(wpk_job_decode(large, 10000, &job, NULL), WPK_ERANGE);
    free(large);

    struct wpk_buf many = {0};
    wpk_buf_append_text(&many, "{\"ops\":[");
    for (int i = 0; i <= WPK_JOB_OPS_MAX; i++) {
        wpk_buf_printf(&many, "%s{\"name\":\"a%d\",\"op\":{}}", i > 0 ? "," : "", i);
    }
    wpk_buf_append_text(&many, "]}");
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_job_decode(many.data, many.size, &job, &diag), WPK_ERANGE);
    assert_string_equal(diag.field, "ops");
    wpk_buf_fini(&many);
}

static void test_locate(void **state)
{
    static const struct {
        int op;
        const char *member;
        int inner_line;
        int inner_column;
        const char *inner_field;
        int line;
        int column;
        const char *field;
    } cases[] = {
        {0, "op", 0, 0, "", 2, 28, "ops[0].op"},
        {0, "op", 1, 1, "", 2, 29, "ops[0].op"},
        /* behind an escaped quote, an escaped newline and two bytes of one character */
        {0, "op", 1, 3, "", 2, 32, "ops[0].op"},
        {0, "op", 2, 1, "", 2, 35, "ops[0].op"},
        {0, "op", 2, 3, "", 2, 37, "ops[0].op"},
        {0, "tensors.X", 1, 5, "", 3, 26, "ops[0].tensors.X"},
        {0, "tensors.Z", 1, 5, "", 3, 14, "ops[0].tensors.Z"},
        {1, "op", 1, 3, "type", 4, 28, "ops[1].op.type"},
        {1, "op", 2, 2, "a[0]", 5, 2, "ops[1].op.a[0]"},
    };
    static const char text[] = "{\"ops\":[\n"
                               "    { \"name\": \"a\",   \"op\": \"Y\\\"[\\n\xc3\xa9 + 1\",\n"
                               "  \"tensors\": { \"X\": \"f32[8]\", \"Y\": \"f32[8]\" }},\n"
                               "    { \"name\": \"b\", \"op\": { \"type\": 1,\n"
                               " \"a\": [1]}}]}";
    struct wpk_job job;

    (void)state;
    assert_int_equal(wpk_job_decode(text, strlen(text), &job, NULL), WPK_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wpk_diag diag = {.line = cases[i].inner_line, .column = cases[i].inner_column};
        snprintf(diag.field, sizeof(diag.field), "%s", cases[i].inner_field);
        wpk_job_locate(&job, cases[i].op, cases[i].member, &diag);
        assert_string_equal(diag.field, cases[i].field);
        if (diag.line != cases[i].line || diag.column != cases[i].column) {
            fail_msg("case %zu: %d:%d", i, diag.line, diag.column);
        }
    }
    wpk_job_fini(&job);
}

static void test_pin(void **state)
{
    struct wpk_job job = {0};
    char name[32];

    (void)state;
    assert_int_equal(wpk_job_pin(&job, "algorithm", "direct"), WPK_OK);
    assert_int_equal(wpk_job_pin(&job, "algorithm", "im2col"), WPK_OK);
    assert_int_equal(job.pin_count, 1);
    assert_string_equal(job.pins[0].value, "im2col");
    assert_int_equal(wpk_job_pin(&job, "", "x"), WPK_ERANGE);
    for (int i = 1; i < WPK_JOB_PINS_MAX; i++) {
        snprintf(name, sizeof(name), "gene%d", i);
        assert_int_equal(wpk_job_pin(&job, name, "1"), WPK_OK);
    }
    assert_int_equal(wpk_job_pin(&job, "one more", "1"), WPK_ENOSPC);
    wpk_job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),       cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_locate),
        cmocka_unit_test(test_pin),
    };

    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
