/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char job_text[] =
    "{\"id\":\"j0123456789abcdef\",\"name\":\"resnet18\",\"owner\":\"me\",\"priority\":0,"
    "\"state\":\"done\",\"reason\":\"\",\"created\":\"2026-01-01T00:00:00.000Z\",\"started\":null,"
    "\"seconds\":12.5,\"seconds_left\":0,\"budget\":{\"candidates\":200,\"seconds\":600},"
    "\"ops\":[{\"name\":\"c6\",\"fingerprint\":\"f\",\"phase\":\"done\",\"from_history\":false,"
    "\"candidates\":{\"measured\":150,\"failed\":5,\"known\":0,\"running\":2,\"wanted\":200},"
    "\"best\":{\"provider\":\"halide-cpu\",\"algorithm\":\"direct\","
    "\"time_ns\":{\"median\":100,\"min\":90,\"mad\":2}},\"baseline\":null}],"
    "\"kernels\":[{\"id\":\"k1\",\"name\":\"c6\",\"fingerprint\":\"f\",\"provider\":\"halide-cpu\","
    "\"algorithm\":\"direct\",\"time_ns\":{\"median\":100,\"min\":90,\"mad\":2},"
    "\"baseline\":{\"provider\":\"onednn\",\"time_ns\":{\"median\":300,\"min\":290,\"mad\":3}},"
    "\"own\":null,\"speedup\":3.0,\"candidates\":{\"measured\":150,\"failed\":5},"
    "\"verified\":{\"max_error\":1e-6,\"tolerance\":1e-4},\"from_history\":true,"
    "\"artifact\":null,\"schedule\":null,\"flops\":2e8,\"device\":\"cpu/x/avx2\","
    "\"device_peak_flops_per_s\":1.4e11,\"layouts\":\"any\",\"threads\":1,\"novel\":[]}]}";

static wpk_err decode(const char *text, struct wpk_arena *arena, struct wpk_api_job *job,
                      struct wpk_diag *diag)
{
    struct wpk_buf body = {0};

    wpk_buf_append_text(&body, text);
    wpk_err err = wpk_api_decode_job(&body, arena, job, diag);
    wpk_buf_fini(&body);
    return err;
}

static void test_job(void **state)
{
    struct wpk_arena arena = {0};
    struct wpk_api_job job;
    struct wpk_diag diag = {0};

    (void)state;
    assert_int_equal(decode(job_text, &arena, &job, &diag), WPK_OK);
    assert_string_equal(job.id, "j0123456789abcdef");
    assert_true(wpk_api_job_ended(&job));
    assert_int_equal(job.op_count, 1);
    assert_int_equal(job.ops[0].measured, 150);
    assert_int_equal(job.ops[0].failed, 5);
    assert_int_equal(job.ops[0].best.time.median_ns, 100);
    assert_null(job.ops[0].baseline.provider);
    assert_int_equal(job.kernel_count, 1);
    const struct wpk_api_kernel *kernel = &job.kernels[0];
    assert_string_equal(kernel->baseline.provider, "onednn");
    assert_int_equal(kernel->baseline.time.mad_ns, 3);
    assert_null(kernel->own.provider);
    assert_string_equal(kernel->served.artifact, "");
    assert_true(kernel->from_history);
    assert_true(kernel->error_max > 0.9e-6 && kernel->error_max < 1.1e-6);
    wpk_arena_fini(&arena);
}

static void test_not_promised(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{\"id\":7,\"ops\":[]}",
        "{\"id\":\"j\",\"state\":\"done\"}",
        "{\"id\":\"j\",\"ops\":[{\"best\":{\"time_ns\":{\"median\":-1,\"min\":1,\"mad\":1}}}]}",
        "{\"id\":\"j\",\"ops\":[{\"best\":{\"time_ns\":{\"median\":1}}}]}",
    };
    struct wpk_api_job job;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_arena arena = {0};
        struct wpk_diag diag = {0};
        if (decode(cases[i], &arena, &job, &diag) == WPK_OK || diag.text[0] == '\0') {
            fail_msg("case %zu was taken", i);
        }
        wpk_arena_fini(&arena);
    }
}

static void test_problem(void **state)
{
    struct wpk_buf body = {0};
    struct wpk_diag diag = {0};

    (void)state;
    wpk_buf_append_text(&body, "{\"type\":\"urn:x\",\"title\":\"t\",\"status\":422,"
                               "\"detail\":\"must be at least 1\",\"field\":\"budget.seconds\","
                               "\"line\":3,\"column\":7}");
    assert_int_equal(wpk_api_check(422, &body, &diag), WPK_EINVAL);
    assert_string_equal(diag.text, "must be at least 1");
    assert_string_equal(diag.field, "budget.seconds");
    assert_int_equal(diag.line, 3);
    assert_int_equal(diag.column, 7);
    wpk_buf_fini(&body);

    diag = (struct wpk_diag){0};
    wpk_buf_append_text(&body, "<html>");
    assert_int_equal(wpk_api_check(404, &body, &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "wpkd answered with status 404"));
    wpk_buf_fini(&body);

    /* not EBUSY, which is tried again */
    assert_int_equal(wpk_api_check(429, &body, &diag), WPK_ENOSPC);
    assert_int_equal(wpk_api_check(201, &body, NULL), WPK_OK);
}

static void test_lists(void **state)
{
    struct wpk_arena arena = {0};
    struct wpk_buf body = {0};
    struct wpk_api_list list;

    (void)state;
    wpk_buf_append_text(
        &body,
        "{\"workers\":[{\"name\":\"w1\",\"state\":\"ready\","
        "\"device\":\"cpu\",\"providers\":[\"halide-cpu\",\"onednn\"],\"missing\":[\"c: no gcc\"],"
        "\"running\":4,\"heard_seconds_ago\":1},"
        /* as a wpkd says it that knows no `missing` */
        "{\"name\":\"w2\",\"state\":\"ready\",\"device\":\"cpu\",\"providers\":[],"
        "\"running\":0,\"heard_seconds_ago\":1}]}");
    assert_int_equal(wpk_api_decode_list(&body, &arena, &list, NULL), WPK_OK);
    assert_int_equal(list.count, 2);
    assert_null(list.jobs);
    const struct wpk_api_worker *workers = list.workers;
    assert_string_equal(workers[0].providers, "halide-cpu, onednn");
    assert_string_equal(workers[0].missing, "c: no gcc");
    assert_int_equal(workers[0].running, 4);
    assert_string_equal(workers[1].missing, "");
    wpk_buf_reset(&body);
    wpk_buf_append_text(&body, "{\"others\":[]}");
    assert_int_equal(wpk_api_decode_list(&body, &arena, &list, NULL), WPK_EINVAL);
    wpk_buf_fini(&body);
    wpk_arena_fini(&arena);
}

static void test_genes_of_a_trial(void **state)
{
    (void)state;
    static const char candidate[] = "cpu-6 algorithm=direct  Y.tile.i=16 by=c";
    static const struct {
        const char *gene, *value;
    } cases[] = {
        {"algorithm", "direct"}, {"Y.tile.i", "16"}, {"by", "c"}, {"Y.tile", ""}, {"cpu-6", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size;
        const char *value =
            wpk_api_trial_gene(candidate, cases[i].gene, strlen(cases[i].gene), &size);
        assert_int_equal(size, strlen(cases[i].value));
        assert_memory_equal(value, cases[i].value, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_genes_of_a_trial),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_not_promised),
        cmocka_unit_test(test_problem),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
