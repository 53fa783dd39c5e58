/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int start(void **state)
{
    (void)state;
    wpk_metrics_reset();
    return 0;
}

/* ---- a reader of the text format: https://prometheus.io/docs/instrumenting/exposition_formats */

struct reader {
    const char *at;
    char family[128]; /* of the last TYPE */
    char type[128];
    double below; /* the last bucket's count */
    bool seen_infinite;
    double infinite;
    int series;
};

static void take(struct reader *r, const char *text)
{
    if (strncmp(r->at, text, strlen(text)) != 0) {
        fail_msg("'%s' is expected at '%.60s'", text, r->at);
    }
    r->at += strlen(text);
}

static void take_name(struct reader *r, char out[128])
{
    size_t size = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
    assert_in_range(size, 1, 127);
    assert_false(r->at[0] >= '0' && r->at[0] <= '9');
    memcpy(out, r->at, size);
    out[size] = '\0';
    r->at += size;
}

static double take_number(struct reader *r)
{
    char *end = NULL;
    double number = strtod(r->at, &end);
    assert_ptr_not_equal(end, r->at);
    r->at = end;
    take(r, "\n");
    return number;
}

static void read_comment(struct reader *r)
{
    char name[128];
    take(r, "# HELP ");
    take_name(r, r->family);
    take(r, " ");
    r->at += strcspn(r->at, "\n");
    take(r, "\n# TYPE ");
    take_name(r, name);
    assert_string_equal(name, r->family);
    take(r, " ");
    take_name(r, r->type);
    take(r, "\n");
    r->below = 0;
    r->seen_infinite = false;
}

static void check_histogram(struct reader *r, const char *suffix, const char *value, double number)
{
    if (strcmp(suffix, "_bucket") == 0) {
        assert_false(r->seen_infinite);
        assert_true(number >= r->below);
        r->below = number;
        r->seen_infinite = strcmp(value, "+Inf") == 0;
        r->infinite = number;
    } else if (strcmp(suffix, "_count") == 0) {
        assert_true(r->seen_infinite);
        assert_true(number == r->infinite);
    } else {
        assert_string_equal(suffix, "_sum");
    }
}

static void read_sample(struct reader *r)
{
    char name[128];
    char label[128];
    char value[128] = "";
    take_name(r, name);
    assert_memory_equal(name, r->family, strlen(r->family));
    const char *suffix = name + strlen(r->family);
    if (*r->at == '{') {
        take(r, "{");
        take_name(r, label);
        take(r, "=\"");
        size_t size = strcspn(r->at, "\"\\\n");
        assert_in_range(size, 1, 127);
        memcpy(value, r->at, size);
        value[size] = '\0';
        r->at += size;
        take(r, "\"}");
    }
    take(r, " ");
    double number = take_number(r);
    r->series++;
    if (strcmp(r->type, "histogram") == 0) {
        check_histogram(r, suffix, value, number);
    } else {
        assert_string_equal(suffix, "");
    }
    if (strcmp(r->type, "counter") == 0) {
        assert_non_null(strstr(name, "_total"));
        assert_true(number >= 0);
    }
}

/* The number of series of a page that is valid. */
static int check_page(const char *page)
{
    struct reader reader = {.at = page};
    while (*reader.at != '\0') {
        if (*reader.at == '#') {
            read_comment(&reader);
        } else {
            read_sample(&reader);
        }
    }
    return reader.series;
}

static void expect_line(const char *page, const char *line)
{
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(page, whole) == NULL) {
        fail_msg("the page has no line %s", line);
    }
}

/* ---- tests */

static void page_is_valid(void **state)
{
    (void)state;
    struct wpk_buf page = {0};
    wpk_metrics_print(&page);
    assert_int_equal(wpk_buf_status(&page), WPK_OK);
    int empty = check_page(page.data);
    expect_line(page.data, "wpk_build_info{version=\"" WPK_VERSION "\"} 1");
    expect_line(page.data, "wpk_trials_total{outcome=\"abandoned\"} 0");
    expect_line(page.data, "# TYPE process_resident_memory_bytes gauge");
    expect_line(page.data, "# TYPE process_open_fds gauge");
    expect_line(page.data, "# TYPE process_cpu_seconds_total counter");
    expect_line(page.data, "# TYPE process_start_time_seconds gauge");
    wpk_buf_reset(&page);

    wpk_metric_add(WPK_COUNTER_TRIALS, 0, 7);
    wpk_metric_add(WPK_COUNTER_DEVICE_SECONDS, wpk_metric_value(WPK_LABEL_DEVICE, "cpu:x"),
                   UINT64_C(1500000000));
    wpk_metric_set(WPK_GAUGE_JOBS, wpk_metric_value(WPK_LABEL_JOB_STATE, "running"), 3);
    wpk_metric_change(WPK_GAUGE_LEASES_HELD, 0, 5);
    wpk_metric_change(WPK_GAUGE_LEASES_HELD, 0, -2);
    wpk_metrics_print(&page);
    assert_int_equal(check_page(page.data), empty + 3); /* three families have devices */
    expect_line(page.data, "wpk_trials_total{outcome=\"ok\"} 7");
    expect_line(page.data, "wpk_device_seconds_total{device=\"cpu:x\"} 1.5");
    expect_line(page.data, "wpk_jobs{state=\"running\"} 3");
    expect_line(page.data, "wpk_jobs{state=\"queued\"} 0");
    expect_line(page.data, "wpk_leases_held 3");
    wpk_buf_fini(&page);
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    struct wpk_buf page = {0};
    wpk_metric_observe_ns(WPK_HISTOGRAM_COMMIT, 100000); /* on an end: in that bucket */
    wpk_metric_observe_ns(WPK_HISTOGRAM_COMMIT, 100001);
    wpk_metric_observe_ns(WPK_HISTOGRAM_COMMIT, 60000000000); /* past all */
    wpk_metric_observe_ratio(WPK_HISTOGRAM_NOISE, 0.004);
    wpk_metric_observe_ratio(WPK_HISTOGRAM_NOISE, -1);
    wpk_metric_observe_count(WPK_HISTOGRAM_COMMIT_RESULTS, 3);
    wpk_metrics_print(&page);
    check_page(page.data);
    expect_line(page.data, "wpk_commit_seconds_bucket{le=\"0.0001\"} 1");
    expect_line(page.data, "wpk_commit_seconds_bucket{le=\"0.00025\"} 2");
    expect_line(page.data, "wpk_commit_seconds_bucket{le=\"10\"} 2");
    expect_line(page.data, "wpk_commit_seconds_bucket{le=\"+Inf\"} 3");
    expect_line(page.data, "wpk_commit_seconds_sum 60.000200001");
    expect_line(page.data, "wpk_commit_seconds_count 3");
    expect_line(page.data, "wpk_measurement_noise_ratio_bucket{le=\"0.002\"} 1");
    expect_line(page.data, "wpk_measurement_noise_ratio_bucket{le=\"0.005\"} 2");
    expect_line(page.data, "wpk_measurement_noise_ratio_sum 0.004");
    expect_line(page.data, "wpk_commit_results_bucket{le=\"5\"} 1");
    wpk_buf_fini(&page);
}

/* However many devices call in, and whatever they call themselves, the page stays as long. */
static void devices_are_bounded(void **state)
{
    (void)state;
    struct wpk_buf page = {0};
    char name[200];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "gpu \"%d\"\n\\%0150d", i, 0);
        wpk_metric_set(WPK_GAUGE_QUEUE_DEPTH, wpk_metric_value(WPK_LABEL_DEVICE, name), i);
    }
    unsigned last = wpk_metric_value(WPK_LABEL_DEVICE, "one more");
    assert_int_equal(last, wpk_metric_value(WPK_LABEL_DEVICE, "other"));
    snprintf(name, sizeof name, "gpu \"%d\"\n\\%0150d", 3, 0);
    assert_int_equal(wpk_metric_value(WPK_LABEL_DEVICE, name), 4);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_QUEUE_DEPTH, 4), 3);
    wpk_metrics_print(&page);
    check_page(page.data);
    assert_in_range(page.size, 1, 64 << 10);
    assert_int_equal(wpk_metric_value_count(WPK_LABEL_DEVICE), WPK_METRIC_VALUES_MAX);
    wpk_buf_fini(&page);
}

static void unknown_values_are_other(void **state)
{
    (void)state;
    unsigned other = wpk_metric_value(WPK_LABEL_JOB_STATE, "other");
    assert_int_equal(wpk_metric_value(WPK_LABEL_JOB_STATE, "dreaming"), other);
    assert_int_not_equal(wpk_metric_value(WPK_LABEL_JOB_STATE, "done"), other);
    assert_int_equal(wpk_metric_value(WPK_LABEL_STATUS, "2xx"), 2);
    assert_int_equal(wpk_metric_value(WPK_LABEL_STATUS, "7xx"), 0);
    assert_int_equal(wpk_metric_value(WPK_LABEL_NONE, ""), 0);
}

enum { THREADS = 8, TURNS = 20000 };

static void *count_much(void *user)
{
    char name[32];
    snprintf(name, sizeof name, "device %d", *(int *)user % 3);
    for (int i = 0; i < TURNS; i++) {
        wpk_metric_add(WPK_COUNTER_LOOKUPS, 0, 1);
        wpk_metric_change(WPK_GAUGE_QUEUE_DEPTH, wpk_metric_value(WPK_LABEL_DEVICE, name), 1);
        wpk_metric_observe_ns(WPK_HISTOGRAM_LOOKUP, 1000);
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    struct wpk_buf page = {0};
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, &numbers[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        wpk_buf_reset(&page);
        wpk_metrics_print(&page);
        check_page(page.data);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_LOOKUPS, 0), THREADS * TURNS);
    int64_t sum = 0;
    for (unsigned i = 0; i < WPK_METRIC_VALUES_MAX; i++) {
        sum += wpk_metric_gauged(WPK_GAUGE_QUEUE_DEPTH, i);
    }
    assert_int_equal(sum, THREADS * TURNS);
    wpk_buf_reset(&page);
    wpk_metrics_print(&page);
    expect_line(page.data, "wpk_lookup_seconds_count 160000");
    wpk_buf_fini(&page);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) { /* for promtool check metrics */
        struct wpk_buf page = {0};
        wpk_metrics_print(&page);
        fputs(wpk_buf_text(&page), stdout);
        wpk_buf_fini(&page);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(page_is_valid, start),
        cmocka_unit_test_setup(histograms_are_cumulative, start),
        cmocka_unit_test_setup(devices_are_bounded, start),
        cmocka_unit_test_setup(unknown_values_are_other, start),
        cmocka_unit_test_setup(threads_lose_nothing, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
