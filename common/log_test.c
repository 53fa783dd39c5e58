/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include "common/json.h"
#include "common/metrics.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int fds[2];
static char line[2 * WPK_LOG_LINE_MAX];

static int open_pipe(void **state)
{
    (void)state;
    if (pipe2(fds, O_NONBLOCK) != 0) {
        return 1;
    }
    wpk_log_init("wpkd", WPK_LOG_INFO, fds[1]);
    return 0;
}

static int close_pipe(void **state)
{
    (void)state;
    wpk_log_init("", WPK_LOG_INFO, STDERR_FILENO);
    return close(fds[0]) != 0 || close(fds[1]) != 0;
}

/* The line that was written, without the time, which is checked for its shape. */
static const char *read_log(void)
{
    static const char shape[] = "2026-11-21T03:52:00.125Z ";

    memset(line, 0, sizeof(line));
    if (read(fds[0], line, sizeof(line) - 1) <= 0) {
        return "";
    }
    for (size_t i = 0; shape[i] != '\0'; i++) {
        bool is_digit = shape[i] >= '0' && shape[i] <= '9';
        assert_true(is_digit ? line[i] >= '0' && line[i] <= '9' : line[i] == shape[i]);
    }
    return line + strlen(shape);
}

static void test_one_line_per_event(void **state)
{
    (void)state;
    wpk_log(WPK_LOG_INFO, "worker_joined", "worker=%s cores=%d", "w1", 2);
    assert_string_equal(read_log(), "info wpkd worker_joined worker=w1 cores=2\n");
    wpk_log(WPK_LOG_ERROR, "stopped", "%s", "");
    assert_string_equal(read_log(), "error wpkd stopped\n");
}

static void test_levels_below_are_silent(void **state)
{
    (void)state;
    wpk_log(WPK_LOG_DEBUG, "detail", "n=%d", 1);
    assert_string_equal(read_log(), "");
    assert_false(wpk_log_enabled(WPK_LOG_DEBUG));
    assert_true(wpk_log_enabled(WPK_LOG_WARN));
}

static void test_values_cannot_forge_a_line(void **state)
{
    (void)state;
    wpk_log(WPK_LOG_INFO, "job", "name=%s", "a\nb\x1b[2Jc");
    assert_string_equal(read_log(), "info wpkd job name=a\\x0ab\\x1b[2Jc\n");
    wpk_log(WPK_LOG_INFO, "job", "name=%s",
            "a\xc2\x9b"
            "2Jc");
    assert_string_equal(read_log(), "info wpkd job name=a\\xc2\\x9b2Jc\n");
    wpk_log(WPK_LOG_INFO, "job", "name=%s", "\xc3\xa9 \xff\xc3");
    assert_string_equal(read_log(), "info wpkd job name=\xc3\xa9 \\xff\\xc3\n");
}

static void test_long_lines_are_cut(void **state)
{
    (void)state;
    char value[2 * WPK_LOG_LINE_MAX];

    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    wpk_log(WPK_LOG_INFO, "job", "name=%s", value);
    (void)read_log();
    assert_int_equal(strlen(line), WPK_LOG_LINE_MAX);
    assert_string_equal(line + WPK_LOG_LINE_MAX - 5, "v...\n");
}

static void test_failures_carry_code_and_detail(void **state)
{
    (void)state;
    const struct wpk_diag diag = {
        .text = "must be positive", .file = "job.json", .field = "budget", .line = 2, .column = 3};

    wpk_log_failure(WPK_LOG_WARN, "job_rejected", WPK_ERANGE, &diag);
    assert_string_equal(read_log(), "warn wpkd job_rejected error=ERANGE "
                                    "reason=\"job.json:2:3: budget: must be positive\"\n");
    wpk_log_failure(WPK_LOG_WARN, "job_rejected", WPK_ENOENT, NULL);
    assert_string_equal(read_log(), "warn wpkd job_rejected error=ENOENT reason=\"not found\"\n");
}

static void test_level_names(void **state)
{
    (void)state;
    enum wpk_log_level level = WPK_LOG_DEBUG;

    assert_int_equal(wpk_log_level_parse("warn", &level), WPK_OK);
    assert_int_equal(level, WPK_LOG_WARN);
    assert_string_equal(wpk_log_level_name(level), "warn");
    assert_int_equal(wpk_log_level_parse("WARN", &level), WPK_ENOENT);
    assert_int_equal(level, WPK_LOG_WARN);
}

static void test_json_lines(void **state)
{
    (void)state;
    char text[2 * WPK_LOG_LINE_MAX];
    struct wpk_json_reader *reader = NULL;
    wpk_log_set_format(WPK_LOG_FORMAT_JSON);
    wpk_log(WPK_LOG_INFO, "job", "id=%s reason=\"%s\" n=%d", "j1", "a \"quoted\" \n\xff word", 3);
    ssize_t size = read(fds[0], text, sizeof(text));
    assert_true(size > 0 && text[size - 1] == '\n');
    assert_int_equal(wpk_json_open(text, (size_t)size, 0, &reader, NULL), WPK_OK);
    assert_string_equal(wpk_json_get_text(reader, "level", 99), "info");
    assert_string_equal(wpk_json_get_text(reader, "program", 99), "wpkd");
    assert_string_equal(wpk_json_get_text(reader, "event", 99), "job");
    assert_string_equal(wpk_json_get_text(reader, "id", 99), "j1");
    assert_string_equal(wpk_json_get_text(reader, "reason", 99),
                        "a \"quoted\" \n\xef\xbf\xbd word");
    assert_string_equal(wpk_json_get_text(reader, "n", 99), "3");
    assert_int_equal(strlen(wpk_json_get_text(reader, "time", 99)), 24);
    wpk_json_close(reader);

    wpk_log(WPK_LOG_INFO, "odd", "%s", "no fields at all");
    size = read(fds[0], text, sizeof(text));
    assert_int_equal(wpk_json_open(text, (size_t)size, 0, &reader, NULL), WPK_OK);
    assert_string_equal(wpk_json_get_text(reader, "text", 99), "no fields at all");
    wpk_json_close(reader);
}

static void test_journal_lines(void **state)
{
    (void)state;
    char text[256] = "";
    wpk_log_set_format(WPK_LOG_FORMAT_JOURNAL);
    wpk_log(WPK_LOG_WARN, "worker_gone", "worker=%s", "w\n1");
    assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "<4>worker_gone worker=w\\x0a1\n");
}

static int count_lines(void)
{
    char text[64 << 10];
    int count = 0;
    ssize_t size = read(fds[0], text, sizeof(text));
    for (ssize_t i = 0; i < size; i++) {
        count += text[i] == '\n';
    }
    return count;
}

static int moved_s; /* what the machine's clock is ahead */

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *out)
{
    int err = (int)syscall(SYS_clock_gettime, id, out);
    out->tv_sec += moved_s;
    return err;
}

/* A storm of one warning does not hide the others, nor fill the disk. */
static void test_repeats_are_suppressed(void **state)
{
    (void)state;
    uint64_t before = wpk_metric_counted(WPK_COUNTER_LOG_SUPPRESSED, 0);
    for (int i = 0; i < 100; i++) {
        wpk_log(WPK_LOG_WARN, "denied", "n=%d", i);
    }
    wpk_log(WPK_LOG_WARN, "another", "%s", "");
    assert_int_equal(count_lines(), WPK_LOG_REPEATS_MAX + 1);
    moved_s += WPK_LOG_REPEATS_S;
    wpk_log(WPK_LOG_WARN, "denied", "%s", "n=100");
    assert_string_equal(read_log(), "warn wpkd denied n=100 suppressed=80\n");
    wpk_log(WPK_LOG_WARN, "denied", "%s", "n=101");
    assert_string_equal(read_log(), "warn wpkd denied n=101\n");
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_LOG_SUPPRESSED, 0) - before,
                     100 - WPK_LOG_REPEATS_MAX);
    for (int i = 0; i < 100; i++) {
        wpk_log(WPK_LOG_INFO, "joined", "n=%d", i);
    }
    assert_int_equal(count_lines(), 100);
    for (int i = 0; i < 500; i++) { /* more events than are kept: all are written */
        char event[32];
        snprintf(event, sizeof(event), "event_%d", i);
        wpk_log(WPK_LOG_ERROR, event, "%s", "");
    }
    assert_int_equal(count_lines(), 500);
}

static void test_formats_have_names(void **state)
{
    (void)state;
    enum wpk_log_format format = WPK_LOG_FORMAT_TEXT;
    assert_int_equal(wpk_log_format_parse("journal", &format), WPK_OK);
    assert_int_equal(format, WPK_LOG_FORMAT_JOURNAL);
    assert_int_equal(wpk_log_format_parse("xml", &format), WPK_ENOENT);
}

#define WITH_PIPE(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_pipe)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PIPE(test_one_line_per_event),
        WITH_PIPE(test_levels_below_are_silent),
        WITH_PIPE(test_values_cannot_forge_a_line),
        WITH_PIPE(test_long_lines_are_cut),
        WITH_PIPE(test_failures_carry_code_and_detail),
        cmocka_unit_test(test_level_names),
        cmocka_unit_test(test_formats_have_names),
        WITH_PIPE(test_json_lines),
        WITH_PIPE(test_journal_lines),
        WITH_PIPE(test_repeats_are_suppressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
