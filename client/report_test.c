/* SPDX-License-Identifier: Apache-2.0 */
#include "client/output.h"

#include "common/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_output fits; /* no terminal here: every column does */

static struct wpk_api_op op = {.name = "c6", .phase = "done", .reason = ""};

/* A kernel of our own that beats the vendor. */
static struct wpk_api_kernel make_kernel(void)
{
    return (struct wpk_api_kernel){
        .id = "k1",
        .name = "c6",
        .fingerprint = "ff00",
        .served = {.provider = "halide-cpu",
                   .algorithm = "winograd(6)",
                   .detail = "",
                   .candidate = "cpu-1 algorithm=winograd(6)",
                   .artifact = "abcd",
                   .time = {590125, 588001, 912}},
        .baseline = {.provider = "onednn",
                     .algorithm = "",
                     .detail = "brg",
                     .candidate = "",
                     .artifact = "",
                     .time = {1770375, 1770000, 2000}},
        .speedup = 3.0,
        .measured = 188,
        .failed = 12,
        .error_max = 1.2e-5,
        .error_tolerance = 4e-4,
        .of_rms = 1.1e-6,
        .times_direct = 1.8,
        .accuracy = "standard",
        .conditions = "warm",
        .schedule = "wpk-schedule 2\n",
        .flops = 231211008,
        .device = "cpu/x/avx512",
        .peak_flops_per_s = 144e9,
        .layouts = "any",
        .threads = 1,
        .created = "",
    };
}

static struct wpk_api_job make_job(struct wpk_api_kernel *kernel)
{
    return (struct wpk_api_job){.id = "j",
                                .name = "resnet18",
                                .state = "done",
                                .reason = "",
                                .seconds = 1.5,
                                .ops = &op,
                                .op_count = 1,
                                .kernels = kernel,
                                .kernel_count = 1};
}

static void test_print(void **state)
{
    static const char *const expected[] = {
        "590.1 ± 0.9 µs",
        "391.8",
        "272 %",
        "winograd(6)",
        "halide-cpu",
        "1.770 ± 0.002 ms",
        "3.00x",
        "188 + 12",
        "standard",
        "1.1e-06 of rms, 1.8x direct",
        "ff00",
        "cpu-1 algo",
        "abcd.so",
        "/data/artifacts/ab/",
        "can pass the peak",
    };
    struct wpk_api_kernel kernel = make_kernel();
    struct wpk_api_job job = make_job(&kernel);
    struct wpk_arena arena = {0};
    struct wpk_buf out = {0};

    (void)state;
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (strstr(wpk_buf_text(&out), expected[i]) == NULL) {
            fail_msg("'%s' is not in\n%s", expected[i], wpk_buf_text(&out));
        }
    }
    assert_null(strstr(wpk_buf_text(&out), "history"));
    /* A kernel below the peak gets no explanation. */
    kernel.served.time.median_ns = 1700000;
    wpk_buf_reset(&out);
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_null(strstr(wpk_buf_text(&out), "can pass the peak"));
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* Genes are many: they are wrapped, and none is lost. */
static void test_wrapped(void **state)
{
    struct wpk_api_kernel kernel = make_kernel();
    struct wpk_api_job job = make_job(&kernel);
    struct wpk_arena arena = {0};
    struct wpk_buf genes = {0};
    struct wpk_buf out = {0};
    int count = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        wpk_buf_printf(&genes, "%sgene%d=value", i > 0 ? " " : "", i);
    }
    kernel.served.candidate = wpk_buf_text(&genes);
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    for (const char *p = strstr(wpk_buf_text(&out), "  schedule"); p != NULL;
         p = strstr(p + 1, "=value")) {
        assert_true(strcspn(p, "\n") <= 100);
        count++;
    }
    assert_int_equal(count, 101);
    wpk_buf_fini(&genes);
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* The vendor's wins: there is no artifact, and the table says what ours would have been. */
static void test_vendor(void **state)
{
    struct wpk_api_kernel kernel = make_kernel();
    struct wpk_api_job job = make_job(&kernel);
    struct wpk_arena arena = {0};
    struct wpk_buf out = {0};

    (void)state;
    kernel.own = kernel.served;
    kernel.own.time.median_ns = 2000000;
    kernel.served = kernel.baseline;
    kernel.from_history = true;
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&out), "the vendor's: onednn brg"));
    assert_non_null(strstr(wpk_buf_text(&out), "which is slower"));
    assert_non_null(strstr(wpk_buf_text(&out), "answered from history"));
    kernel.own.time.median_ns = kernel.served.time.median_ns - 1;
    wpk_buf_reset(&out);
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&out), "which is not faster beyond the noise"));
    kernel.own = (struct wpk_api_contender){0};
    wpk_buf_reset(&out);
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&out), "none worked"));
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* A vendor's time that scatters, and conditions that are not warm, are said. */
static void test_noise(void **state)
{
    struct wpk_api_kernel kernel = make_kernel();
    struct wpk_api_job job = make_job(&kernel);
    struct wpk_arena arena = {0};
    struct wpk_buf out = {0};

    (void)state;
    kernel.baseline.time.mad_ns = kernel.baseline.time.median_ns / 10;
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_null(strstr(wpk_buf_text(&out), "noise"));
    assert_null(strstr(wpk_buf_text(&out), "conditions"));
    kernel.baseline.time.mad_ns = kernel.baseline.time.median_ns / 5;
    kernel.conditions = "cold";
    wpk_buf_reset(&out);
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&out), "MAD of onednn's time is 20 % of it"));
    assert_non_null(strstr(wpk_buf_text(&out), "conditions   cold"));
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* If no kernel was found, the report prints the reason, and no headings. */
static void test_no_kernel(void **state)
{
    struct wpk_api_op failed = {.name = "c6", .phase = "failed", .reason = "no candidate worked"};
    struct wpk_api_job job = make_job(NULL);
    struct wpk_arena arena = {0};
    struct wpk_buf out = {0};

    (void)state;
    job.kernel_count = 0;
    job.ops = &failed;
    assert_int_equal(wpk_report_print(&job, "/data", &fits, &arena, &out), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), "\nc6: no candidate worked\n");
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* The names are a contract: nothing more, nothing less. */
static void test_encode(void **state)
{
    static const char *const root[] = {"kernels", "seconds", NULL};
    static const char *const members[] = {
        "name",         "fingerprint", "binding",    "provider", "algorithm",  "time_ns",
        "baseline",     "speedup",     "candidates", "accuracy", "conditions", "verified",
        "from_history", "artifact",    "schedule",   "timed",    NULL};
    struct wpk_api_kernel kernel = make_kernel();
    struct wpk_api_job job = make_job(&kernel);
    struct wpk_buf out = {0};
    struct wpk_json_reader *reader;
    struct wpk_diag diag = {0};

    (void)state;
    assert_int_equal(wpk_report_encode(&job, "/data", &out), WPK_OK);
    assert_int_equal(wpk_json_open(wpk_buf_text(&out), out.size, 0, &reader, &diag), WPK_OK);
    wpk_json_allow(reader, root);
    assert_true(wpk_json_get_real(reader, "seconds", 0, 10) > 1);
    wpk_json_enter_array(reader, "kernels");
    assert_true(wpk_json_next(reader));
    wpk_json_allow(reader, members);
    for (size_t i = 0; members[i] != NULL; i++) {
        assert_true(wpk_json_has(reader, members[i]));
    }
    assert_string_equal(wpk_json_get_text(reader, "artifact", 100), "/data/artifacts/ab/abcd.so");
    wpk_json_leave(reader);
    assert_int_equal(wpk_json_status(reader), WPK_OK);
    wpk_json_close(reader);
    wpk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),  cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_vendor), cmocka_unit_test(test_no_kernel),
        cmocka_unit_test(test_noise),  cmocka_unit_test(test_encode),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
