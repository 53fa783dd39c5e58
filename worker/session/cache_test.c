/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/workplace.h"

#include "common/fs.h"
#include "tests/share.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int open_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/wpk-cache-XXXXXX", wpk_test_folder());
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int close_directory(void **state)
{
    (void)state;
    return wpk_fs_remove_tree(directory, NULL) == WPK_OK ? 0 : -1;
}

static const char *at(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* `age`: the higher, the earlier it was written. */
static void put(const char *name, size_t size, int age)
{
    char *bytes = calloc(1, size);
    assert_int_equal(wpk_fs_write(at(name), bytes, size, 0644, NULL), WPK_OK);
    free(bytes);
    struct timespec times[2] = {{.tv_sec = 1000000 - age}, {.tv_sec = 1000000 - age}};
    assert_int_equal(utimensat(AT_FDCWD, at(name), times, 0), 0);
}

static bool is_there(const char *name)
{
    return access(at(name), F_OK) == 0;
}

static bool is_old(const void *user, const char *name)
{
    (void)user;
    return strcmp(name, "old.so") == 0;
}

static void the_oldest_goes(void **state)
{
    (void)state;
    const struct wpk_cache_limits limits = {.files_max = 2, .bytes_max = UINT64_MAX};
    put("new.so", 10, 1);
    put("old.so", 10, 9);
    put("middle.so", 10, 5);
    put("older", 10, 99);
    assert_int_equal(wpk_cache_trim(directory, ".so", &limits, NULL, NULL), 1);
    assert_false(is_there("old.so"));
    assert_true(is_there("new.so") && is_there("middle.so") && is_there("older"));
    assert_int_equal(wpk_cache_trim(directory, ".so", &limits, NULL, NULL), 0);
}

static void what_is_needed_stays(void **state)
{
    (void)state;
    const struct wpk_cache_limits limits = {.files_max = 1, .bytes_max = UINT64_MAX};
    put("new.so", 10, 1);
    put("old.so", 10, 9);
    put("middle.so", 10, 5);
    assert_int_equal(wpk_cache_trim(directory, ".so", &limits, is_old, NULL), 2);
    assert_true(is_there("old.so"));
}

static void bytes_count(void **state)
{
    (void)state;
    const struct wpk_cache_limits limits = {.files_max = 100, .bytes_max = 250000};
    put("a.so", 100000, 3);
    put("b.so", 100000, 2);
    put("c.so", 100000, 1);
    assert_int_equal(wpk_cache_trim(directory, ".so", &limits, NULL, NULL), 1);
    assert_false(is_there("a.so"));
    assert_int_equal(wpk_cache_trim("/nowhere", ".so", &limits, NULL, NULL), 0);
}

static void many_files(void **state)
{
    (void)state;
    const struct wpk_cache_limits limits = {.files_max = 3, .bytes_max = UINT64_MAX};
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%d.so", i);
        put(name, 1, i);
    }
    assert_int_equal(wpk_cache_trim(directory, ".so", &limits, NULL, NULL), 197);
    assert_true(is_there("0.so") && is_there("1.so") && is_there("2.so"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_directory, close_directory)
    const struct CMUnitTest tests[] = {
        CASE(the_oldest_goes),
        CASE(what_is_needed_stays),
        CASE(bytes_count),
        CASE(many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
