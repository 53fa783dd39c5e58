/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_every_code_has_name_and_text(void **state)
{
    (void)state;
    assert_string_equal(wpk_err_name(WPK_OK), "OK");
    assert_string_equal(wpk_err_name(WPK_EPARSE), "EPARSE");
    assert_string_equal(wpk_err_text(WPK_ENOENT), "not found");
    for (int i = 0; i < WPK_ERR_COUNT; i++) {
        assert_true(strlen(wpk_err_name((wpk_err)i)) > 0);
        assert_true(strlen(wpk_err_text((wpk_err)i)) > 0);
    }
}

static void test_unknown_codes_are_answered(void **state)
{
    (void)state;
    assert_string_equal(wpk_err_name((wpk_err)WPK_ERR_COUNT), "EUNKNOWN");
    assert_string_equal(wpk_err_text((wpk_err)-1), "unknown error");
}

static void test_first_detail_stays(void **state)
{
    (void)state;
    struct wpk_diag diag = {0};

    wpk_diag_set(&diag, "tensor %s", "X");
    wpk_diag_set_at(&diag, 3, 4, "later");
    assert_string_equal(diag.text, "tensor X");
    assert_int_equal(diag.line, 0);
    wpk_diag_set(NULL, "nobody listens");
}

static void test_detail_is_one_bounded_line(void **state)
{
    (void)state;
    struct wpk_diag diag = {0};
    char long_text[2 * WPK_DIAG_TEXT_MAX];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    long_text[1] = '\n';
    wpk_diag_set(&diag, "%s", long_text);
    assert_int_equal(strlen(diag.text), WPK_DIAG_TEXT_MAX - 1);
    assert_null(strchr(diag.text, '\n'));
}

static void test_format_leaves_out_what_is_absent(void **state)
{
    (void)state;
    char out[128];
    struct wpk_diag diag = {.text = "must be positive"};

    wpk_diag_format(&diag, out, sizeof(out));
    assert_string_equal(out, "must be positive");
    snprintf(diag.field, sizeof(diag.field), "budget.seconds");
    wpk_diag_format(&diag, out, sizeof(out));
    assert_string_equal(out, "budget.seconds: must be positive");
    diag.line = 4;
    diag.column = 9;
    wpk_diag_format(&diag, out, sizeof(out));
    assert_string_equal(out, "4:9: budget.seconds: must be positive");
    snprintf(diag.file, sizeof(diag.file), "job.json");
    wpk_diag_format(&diag, out, sizeof(out));
    assert_string_equal(out, "job.json:4:9: budget.seconds: must be positive");
    diag.line = 0;
    diag.field[0] = '\0';
    wpk_diag_format(&diag, out, sizeof(out));
    assert_string_equal(out, "job.json: must be positive");
    wpk_diag_format(&diag, out, 5);
    assert_string_equal(out, "job.");
}

static void test_assert_aborts_and_names_the_place(void **state)
{
    (void)state;
    int fds[2];
    char said[256] = "";

    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        WPK_ASSERT(child != 0);
        _exit(0);
    }
    close(fds[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
    close(fds[0]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, "err_test.c:"));
    assert_non_null(strstr(said, "child != 0"));
}

static void a_text_begins_with_all_of_a_prefix(void **state)
{
    (void)state;
    assert_true(wpk_begins("cpu/zen4", "cpu/"));
    assert_true(wpk_begins("cpu/", "cpu/"));
    assert_true(wpk_begins("", ""));
    assert_false(wpk_begins("cpu", "cpu/"));
    assert_false(wpk_begins("gpu/", "cpu/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_name_and_text),
        cmocka_unit_test(test_unknown_codes_are_answered),
        cmocka_unit_test(test_first_detail_stays),
        cmocka_unit_test(test_detail_is_one_bounded_line),
        cmocka_unit_test(test_format_leaves_out_what_is_absent),
        cmocka_unit_test(test_assert_aborts_and_names_the_place),
        cmocka_unit_test(a_text_begins_with_all_of_a_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
