/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

/* What was written, without the time, which is checked for its shape. */
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
    assert_int_equal(wpk_log_level_parse("WARN", &level), WPK_EINVAL);
    assert_int_equal(level, WPK_LOG_WARN);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
