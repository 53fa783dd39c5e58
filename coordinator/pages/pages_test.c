/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile names come out as text on every page. */
#include "coordinator/pages/pages.h"

#include "common/json.h"
#include "coordinator/state/model.h"
#include "target/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_SIZE_MAX ((size_t)150 * 1000)

static char long_name[65537];

static const char *const hostile[] = {"<script>alert(1)</script>",
                                      "\"><img src=x onerror=alert(1)>",
                                      "'; </textarea></title></style><svg/onload=x>",
                                      "gnp.\xe2\x80\xae"
                                      "exe \xe2\x81\xa6",
                                      "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
                                      "\xff\xfe\xc3(\x1b[31m",
                                      long_name};

#define HOSTILE_COUNT (int)(sizeof hostile / sizeof hostile[0])

/* Tags of a page are ours, and what a name holds is none of them. */
static void expect_text(const struct wpk_buf *page)
{
    const char *text = wpk_buf_text(page);
    assert_int_equal(wpk_buf_status(page), WPK_OK);
    assert_true(page->size < PAGE_SIZE_MAX);
    static const char *const never[] = {"<script>", "<img",         "<svg/",
                                        "\x1b",     "\xe2\x80\xae", "\xff"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_null(strstr(text, never[i]));
    }
    assert_non_null(strstr(text, "</html>"));
    assert_null(strstr(text, " style="));
    assert_null(strstr(text, "javascript:"));
    assert_null(strstr(text, "href=\"/"));
}

static struct wpk_api_kernel make_kernel(const char *name)
{
    return (struct wpk_api_kernel){
        .id = "k1",
        .name = name,
        .fingerprint = name,
        .served = {.provider = name,
                   .algorithm = name,
                   .candidate = name,
                   .artifact = name,
                   .time = {1000, 900, 10}},
        .accuracy = name,
        .conditions = name,
        .op = name,
        .schedule = name,
        .device = name,
        .environment = name,
        .created = name,
        .verified_by = name,
        .job = name,
        .owner = name,
        .flops = 1e6,
        .bytes = 1e6,
        .peak_flops_per_s = 1e10,
        .peak_bytes_per_s = 1e10,
        .threads = 1,
    };
}

static struct wpk_api_job make_job(const char *name, struct wpk_api_op *op,
                                   struct wpk_api_kernel *kernel)
{
    *op = (struct wpk_api_op){.name = name,
                              .phase = name,
                              .reason = name,
                              .measured = 3,
                              .wanted = 4,
                              .best = kernel->served,
                              .baseline = {.time = {2000, 1900, 10}}};
    return (struct wpk_api_job){.id = name,
                                .name = name,
                                .owner = name,
                                .state = name,
                                .reason = name,
                                .created = name,
                                .ops = op,
                                .op_count = 1,
                                .kernels = kernel,
                                .kernel_count = 1};
}

/* As many genes and values as there can be, one of each hostile. */
static void put_worth(const char *name, struct wpk_page_curve *curve)
{
    struct wpk_buf text = {0};
    for (int i = 0; i < 2 * WPK_WORTH_GENES_MAX; i++) {
        wpk_buf_printf(&text, "%.80s%d=%.200s%d <script>=<img ", name, i / 2, name, i % 2);
        wpk_buf_printf(&text, "gene%d=%d ", i / 2, i);
        wpk_worth_add(&curve->worth, wpk_buf_text(&text), 1000 + i % 3, true);
    }
    wpk_worth_finish(&curve->worth);
    curve->ask_count = 1000000;
    wpk_buf_fini(&text);
}

static void show_job(const char *name, const char *by, bool is_report, struct wpk_buf *out)
{
    struct wpk_api_op op;
    struct wpk_api_kernel kernel = make_kernel(name);
    struct wpk_api_job job = make_job(name, &op, &kernel);
    const struct wpk_api_trial trial = {.index = 3,
                                        .provider = "<script>",
                                        .candidate = "<img src=x>",
                                        .source = "<b>",
                                        .outcome = "ok",
                                        .log = "</td><script>\nmore",
                                        .median_ns = 10};
    struct wpk_page_curve *curve = calloc(1, sizeof *curve);
    assert_non_null(curve);
    for (int i = 0; i < WPK_CURVE_BUCKETS_MILLION; i++) {
        curve->points[i] = (struct wpk_curve_point){.ask = (uint64_t)i,
                                                    .best_ns = 1000 + (uint64_t)i,
                                                    .at_s = i,
                                                    .candidate = name,
                                                    .source = name,
                                                    .strategy = "ga"};
    }
    for (int i = 0; i < WPK_CURVE_BUCKETS_MAX && strcmp(by, "strategy") == 0; i++) {
        curve->rivals[curve->rival_count++] = (struct wpk_curve_point){
            .ask = (uint64_t)i, .best_ns = 9000 - (uint64_t)i, .at_s = i, .strategy = name};
    }
    curve->point_count = WPK_CURVE_BUCKETS_MILLION;
    curve->outcomes[0] = (struct wpk_curve_outcome){name, 7, name};
    curve->outcome_count = 1;
    put_worth(name, curve);
    const struct wpk_page_job_view view = {.job = &job,
                                           .curve = curve,
                                           .by = by,
                                           .trials = &trial,
                                           .trial_count = 1,
                                           .next = "0.\"4",
                                           .outcome = is_report ? "" : name,
                                           .is_report = is_report};
    wpk_page_job(out, &view);
    wpk_worth_fini(&curve->worth);
    free(curve);
}

static const char *const kinds[] = {"algorithm", "source", "strategy"};

static void show_pair(const char *name, struct wpk_buf *out)
{
    const struct wpk_api_kernel kernel = make_kernel(name);
    const struct wpk_api_trial trial = {3, name, name, name, name, name, name, .median_ns = 10};
    wpk_page_trial_pair(out, name, name, &kernel, &trial, &trial);
}

static void show_gone(const char *name, struct wpk_buf *out)
{
    struct wpk_buf problem = {0};
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_object(w, "gone");
    static const char *const members[] = {"id", "name", "owner", "state", "finished", "pruned"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        wpk_json_put_text(w, members[i], strlen(name) < 4096 ? name : "long");
    }
    wpk_json_put_int(w, "op_count", 17);
    wpk_json_begin_array(w, "ops");
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "name", strlen(name) < 4096 ? name : "long");
    wpk_json_put_int(w, "best_ns", 1500);
    wpk_json_end(w);
    wpk_json_end(w);
    wpk_json_end(w);
    assert_int_equal(wpk_json_finish(w, false, &problem), WPK_OK);
    wpk_page_gone_job(out, &problem);
    wpk_buf_fini(&problem);
    assert_non_null(strstr(wpk_buf_text(out), "1.500 µs"));
    assert_non_null(strstr(wpk_buf_text(out), "<dd>17</dd>"));
}

static void show_fleet(const char *name, struct wpk_buf *out)
{
    struct wpk_timing_class timing;
    struct wpk_worker_class class = {.timing = &timing, .worker_count = 1};
    struct wpk_worker bad = {.peer = 1, .polling = true, .worker_class = &class};
    struct wpk_worker *workers[] = {&bad};
    struct wpk_worker_class *classes[] = {&class};
    struct wpk_coordinator *c = calloc(1, sizeof *c);
    assert_non_null(c);
    snprintf(bad.hello.name, sizeof bad.hello.name, "%s", name);
    snprintf(bad.failure, sizeof bad.failure, "%s", name);
    snprintf(class.hello.environment, sizeof class.hello.environment, "%s", name);
    snprintf(timing.text, sizeof timing.text, "%s", name);
    snprintf(bad.device_class, sizeof bad.device_class, "%s", name);
    c->workers = workers;
    c->worker_classes = classes;
    c->worker_count = c->worker_class_count = 1;
    wpk_page_fleet(out, c, 1);
    free(c);
}

static void show_misses(const char *name, struct wpk_buf *out)
{
    struct wpk_buf misses = {0};
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    const char *shown = strlen(name) < 256 ? name : "long";
    wpk_json_begin_array(w, "misses");
    wpk_json_begin_object(w, NULL);
    static const char *const numbers[] = {"lost_ns", "lookups", "calls", "threads"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        wpk_json_put_int(w, numbers[i], 1);
    }
    wpk_json_put_text(w, "match", "none");
    wpk_json_put_text(w, "device", shown);
    wpk_json_begin_object(w, "op");
    wpk_json_put_text(w, "op", shown);
    wpk_json_end(w);
    wpk_json_end(w);
    wpk_json_end(w);
    assert_int_equal(wpk_json_finish(w, false, &misses), WPK_OK);
    wpk_err err = wpk_page_misses(out, &misses, name[0] == 'x' ? "" : name);
    assert_int_equal(err, WPK_OK);
    wpk_buf_fini(&misses);
}

static void test_hostile_names_are_text(void **state)
{
    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        struct wpk_buf out = {0};
        struct wpk_api_op op;
        struct wpk_api_kernel kernel = make_kernel(hostile[i]);
        struct wpk_api_job job = make_job(hostile[i], &op, &kernel);
        wpk_page_jobs(&out, &job, 1, "", hostile[i][0] == 'x' ? "" : hostile[i]);
        expect_text(&out);
        wpk_buf_reset(&out);
        show_gone(hostile[i], &out);
        expect_text(&out);
        wpk_buf_reset(&out);
        wpk_page_kernels(&out, &kernel, 1, "");
        expect_text(&out);
        wpk_buf_reset(&out);
        wpk_page_kernel(&out, &kernel, 1, "vendor");
        expect_text(&out);
        wpk_buf_reset(&out);
        show_pair(hostile[i], &out);
        expect_text(&out);
        wpk_buf_reset(&out);
        wpk_page_compare(&out, &job, &job);
        expect_text(&out);
        wpk_buf_reset(&out);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            show_job(hostile[i], kinds[k], false, &out);
            expect_text(&out);
            wpk_buf_reset(&out);
        }
        show_fleet(hostile[i], &out);
        expect_text(&out);
        wpk_buf_reset(&out);
        show_misses(hostile[i], &out);
        expect_text(&out);
        wpk_buf_reset(&out);
        wpk_page_sign_in(&out, hostile[i]);
        expect_text(&out);
        wpk_buf_reset(&out);
        wpk_page_problem(&out, 404, hostile[i]);
        expect_text(&out);
        wpk_buf_fini(&out);
    }
}

/* Genes that differ stand out; one that a trial lacks is empty there. */
static void test_two_trials(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    const struct wpk_api_trial left = {3,
                                       "c",
                                       "cpu-6 algorithm=direct Y.tile.i=8 by=<c>",
                                       "drawn",
                                       "ok",
                                       "",
                                       "",
                                       .median_ns = 10},
                               right = {9,
                                        "c",
                                        "cpu-6 algorithm=direct Y.tile.i=16 Y.dot=k",
                                        "drawn",
                                        "ok",
                                        "",
                                        "",
                                        .median_ns = 10};
    wpk_page_trial_pair(&out, "j1", "<op>", NULL, &left, &right);
    static const char *const parts[] = {
        "<td>algorithm</td><td>direct</td><td>direct</td>",
        "<td>Y.tile.i</td><td><strong>8</strong></td><td><strong>16</strong></td>",
        "<td>by</td><td><strong>&lt;c&gt;</strong></td><td><strong></strong></td>",
        "<td>Y.dot</td><td><strong></strong></td><td><strong>k</strong></td>", "&lt;op&gt;"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(wpk_buf_text(&out), parts[i]) == NULL) {
            fail_msg("%s is not in %s", parts[i], wpk_buf_text(&out));
        }
    }
    expect_text(&out);
    wpk_buf_fini(&out);
}

/* A kernel's page says what the peaks permit; that of two trials has the code of both. */
static void test_a_kernel_has_its_code(void **state)
{
    (void)state;
    static const char op[] = "input X f32[64]\noutput Y f32[64]\nY[i] = X[i] + 1\n";
    struct wpk_buf out = {0}, schedule = {0};
    struct wpk_api_kernel kernel = make_kernel("add");
    struct wpk_space space;
    struct wpk_candidate candidate;
    char first[WPK_CANDIDATE_TEXT_MAX];
    int count = 0;
    kernel.op = op;
    kernel.device = "cpu/any/avx2";
    kernel.layouts = "fixed";
    assert_int_equal(wpk_space_derive_text(op, kernel.device, "fixed", 1, &space, NULL), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, &candidate, 1, &count), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &candidate, first, sizeof first), WPK_OK);
    const struct wpk_api_trial one = {3, "c", first, "drawn", "ok", "", "", .median_ns = 10},
                               other = {9,    "c", "cpu-1 no=1", "drawn",
                                        "ok", "",  "",           .median_ns = 10};
    wpk_page_trial_pair(&out, "j1", "add", &kernel, &one, &other);
    assert_non_null(strstr(wpk_buf_text(&out), "Schedule of ask 3"));
    assert_non_null(strstr(wpk_buf_text(&out), "Code of ask 3"));
    assert_null(strstr(wpk_buf_text(&out), "Schedule of ask 9"));
    wpk_buf_reset(&out);
    assert_int_equal(wpk_code_schedule(&space, first, &schedule, NULL), WPK_OK);
    kernel.schedule = wpk_buf_text(&schedule);
    wpk_page_kernel(&out, &kernel, 1, "exact, kernel k7");
    assert_non_null(strstr(wpk_buf_text(&out), "device: exact, kernel k7."));
    assert_non_null(strstr(wpk_buf_text(&out), "Code of add"));
    assert_non_null(strstr(wpk_buf_text(&out), "(10000 % of the time)"));
    wpk_buf_fini(&out);
    wpk_buf_fini(&schedule);
    wpk_space_fini(&space);
}

/* The chart's marks by what is asked for, with links to the other ways of telling them apart. */
static void test_a_chart_tells_what_is_asked_for(void **state)
{
    (void)state;
    static const char *const wanted[][3] = {
        {"by <strong>algorithm</strong> <a href=\"job?id=rl&amp;op=rl&amp;by=source\">", ">several",
         "over <strong>trials</strong> <a href=\"job?id=rl&amp;op=rl&amp;by=algorithm&amp;axis=s"},
        {"by=algorithm\">algorithm</a> <strong>source</strong> <a", ">rl</text>", "is ga.</p>"},
        {"<strong>strategy</strong>, over", ">ga</text>", "is ga; of others, marks are what"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct wpk_buf out = {0};
        show_job("rl", kinds[k], false, &out);
        for (int i = 0; i < 3; i++) {
            if (strstr(wpk_buf_text(&out), wanted[k][i]) == NULL) {
                fail_msg("%s is not in %s", wanted[k][i], wpk_buf_text(&out));
            }
        }
        wpk_buf_fini(&out);
    }
}

static void test_a_report_needs_nothing_else(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    show_job("a", "algorithm", true, &out);
    const char *text = wpk_buf_text(&out);
    assert_non_null(strstr(text, "<style>"));
    assert_non_null(strstr(text, "<svg"));
    assert_null(strstr(text, "<link"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "href="));
    wpk_buf_fini(&out);
}

static void test_the_fleet_lists_what_is_wrong(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    struct wpk_timing_class timing = {.text = "cpu/<b>\nenvironment\nx"};
    struct wpk_worker_class class = {.timing = &timing, .worker_count = 2, .available_count = 1};
    struct wpk_worker good = {.peer = 1, .polling = true, .worker_class = &class};
    struct wpk_worker bad = {.peer = 1, .polling = true, .worker_class = &class};
    snprintf(good.hello.name, sizeof good.hello.name, "fine");
    snprintf(bad.hello.name, sizeof bad.hello.name, "<script>x</script>");
    snprintf(bad.failure, sizeof bad.failure, "no <compiler>");
    struct wpk_worker *workers[] = {&good, &bad};
    struct wpk_worker_class *classes[] = {&class};
    struct wpk_coordinator *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->workers = workers;
    c->worker_count = 2;
    c->worker_classes = classes;
    c->worker_class_count = 1;
    wpk_page_fleet(&out, c, 1);
    expect_text(&out);
    assert_non_null(strstr(wpk_buf_text(&out), "no &lt;compiler&gt;"));
    assert_null(strstr(wpk_buf_text(&out), "fine"));
    wpk_buf_fini(&out);
    free(c);
}

/* 10,000 workers, all with a fault. */
static void test_a_large_fleet_is_a_short_page(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    struct wpk_buf out = {0};
    struct wpk_timing_class timing = {.text = "cpu"};
    struct wpk_worker_class class = {.timing = &timing};
    struct wpk_worker *all = calloc(COUNT, sizeof *all);
    struct wpk_worker **workers = calloc(COUNT, sizeof(struct wpk_worker *));
    struct wpk_coordinator *c = calloc(1, sizeof *c);
    assert_true(all != NULL && workers != NULL && c != NULL);
    for (int i = 0; i < COUNT; i++) {
        workers[i] = &all[i];
        all[i].worker_class = &class;
        memset(all[i].failure, '<', sizeof all[i].failure - 1);
    }
    c->workers = workers;
    c->worker_count = COUNT;
    wpk_page_fleet(&out, c, 1);
    assert_true(out.size < PAGE_SIZE_MAX);
    assert_non_null(strstr(wpk_buf_text(&out), "And 9900 more"));
    wpk_buf_fini(&out);
    free(c);
    free(workers);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_names_are_text),
        cmocka_unit_test(test_two_trials),
        cmocka_unit_test(test_a_kernel_has_its_code),
        cmocka_unit_test(test_a_chart_tells_what_is_asked_for),
        cmocka_unit_test(test_a_report_needs_nothing_else),
        cmocka_unit_test(test_the_fleet_lists_what_is_wrong),
        cmocka_unit_test(test_a_large_fleet_is_a_short_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
