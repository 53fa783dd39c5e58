/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that would destroy something, or that cannot be written, are refused before any work. */
#include "common/fs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void touch(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static int enter(void **state)
{
    static char folder[] = "/tmp/wpk_output_path_XXXXXX";

    *state = mkdtemp(folder);
    return *state != NULL && chdir(folder) == 0 && mkdir("data", 0700) == 0 &&
                   mkdir("data/artifacts", 0700) == 0 && mkdir("data/artifacts/ab", 0700) == 0 &&
                   mkdir("closed", 0500) == 0
               ? 0
               : -1;
}

static int leave(void **state)
{
    return chdir("/") == 0 && wpk_fs_remove_tree(*state, NULL) == WPK_OK ? 0 : -1;
}

static void test_place(void **state)
{
    static const struct {
        const char *path;
        wpk_err err;
        const char *says;
    } rows[] = {
        {"m.wpk", WPK_OK, ""},
        {"-", WPK_OK, ""},
        {"/dev/null", WPK_OK, ""},
        {"/dev/stdout", WPK_OK, ""},
        {"data/m.wpk", WPK_OK, ""},
        {"m.onnx", WPK_OK, ""},
        {"", WPK_EINVAL, "the name is empty"},
        {"data", WPK_EINVAL, "it is a directory"},
        {"data/", WPK_EINVAL, "it is a directory"},
        {"no/m.wpk", WPK_EINVAL, "make its directory first"},
        {"m.onnx/m.wpk", WPK_EINVAL, "cannot write"},
        {"data/history.db", WPK_EINVAL, "belongs to a history"},
        {"data/history.db-wal", WPK_EINVAL, "belongs to a history"},
        {"data/wpkd.lock", WPK_EINVAL, "belongs to a history"},
        {"data/../data/signing.key", WPK_EINVAL, "belongs to a history"},
        {"data/artifacts/ab/abcd.so", WPK_EINVAL, "belongs to a history"},
        {"link", WPK_EINVAL, "belongs to a history"},
    };
    (void)state;
    touch("data/history.db");
    touch("m.onnx");
    assert_int_equal(symlink("data/history.db", "link"), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_output_path_check(rows[i].path, &diag), rows[i].err);
        assert_non_null(strstr(diag.text, rows[i].says));
    }
    if (geteuid() != 0) {
        assert_int_equal(wpk_output_path_check("closed/m.wpk", NULL), WPK_EACCES);
    }
}

static void test_input(void **state)
{
    (void)state;
    touch("in");
    assert_int_equal(link("in", "again"), 0);
    assert_int_equal(wpk_output_path_differs("in", "./in", NULL), WPK_EINVAL);
    assert_int_equal(wpk_output_path_differs("again", "in", NULL), WPK_EINVAL);
    assert_int_equal(wpk_output_path_differs("other", "in", NULL), WPK_OK);
    assert_int_equal(wpk_output_path_differs("/dev/null", "/dev/null", NULL), WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_input),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
