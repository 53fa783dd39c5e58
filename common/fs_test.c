/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* Each test works in an empty directory that is the current one. */
static char directory[] = "/tmp/wpk_fs_test.XXXXXX";

static int enter_directory(void **state)
{
    (void)state;
    memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
    return mkdtemp(directory) == NULL || chdir(directory) != 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return chdir("/") != 0 || wpk_fs_remove_tree(directory, NULL) != WPK_OK;
}

static int entry_count(void)
{
    DIR *listing = opendir(".");
    int count = -2; /* . and .. */

    assert_non_null(listing);
    while (readdir(listing) != NULL) {
        count++;
    }
    closedir(listing);
    return count;
}

static void expect_content(const char *path, const char *expected)
{
    struct wpk_buf buf = {0};

    assert_int_equal(wpk_fs_read(path, 1000, &buf, NULL), WPK_OK);
    assert_string_equal(wpk_buf_text(&buf), expected);
    wpk_buf_fini(&buf);
}

static void test_write_then_read(void **state)
{
    (void)state;
    struct stat info;

    assert_int_equal(wpk_fs_write("a", "first", 5, 0600, NULL), WPK_OK);
    expect_content("a", "first");
    mode_t before = umask(022);
    assert_int_equal(wpk_fs_write("a", "2nd", 3, 0644, NULL), WPK_OK);
    expect_content("a", "2nd");
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
    umask(027);
    assert_int_equal(wpk_fs_write("a", "3rd", 3, 0755, NULL), WPK_OK);
    umask(before);
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0750);
    assert_int_equal(wpk_fs_write("empty", NULL, 0, 0600, NULL), WPK_OK);
    expect_content("empty", "");
    assert_int_equal(entry_count(), 2);
}

static void test_read_stops_at_the_limit(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};
    struct wpk_diag diag = {0};
    size_t size = 100000;
    char *data = calloc(1, size);

    assert_non_null(data);
    assert_int_equal(wpk_fs_write("big", data, size, 0600, NULL), WPK_OK);
    free(data);
    assert_int_equal(wpk_fs_read("big", size, &buf, NULL), WPK_OK);
    assert_int_equal(buf.size, size);
    wpk_buf_reset(&buf);
    assert_int_equal(wpk_fs_read("big", size - 1, &buf, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "longer than 99999 bytes"));
    wpk_buf_fini(&buf);

    wpk_buf_init(&buf, 10);
    assert_int_equal(wpk_fs_read("big", size, &buf, NULL), WPK_ENOSPC);
    wpk_buf_reset(&buf);
    assert_int_equal(wpk_fs_write("small", "abc", 3, 0600, NULL), WPK_OK);
    assert_int_equal(wpk_fs_read("small", size, &buf, NULL), WPK_OK);
    assert_string_equal(wpk_buf_text(&buf), "abc");
    wpk_buf_fini(&buf);
}

static void test_failures_name_the_file(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};
    struct wpk_diag diag = {0};

    assert_int_equal(wpk_fs_read("nowhere.json", 10, &buf, &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "nowhere.json"));
    assert_int_equal(wpk_fs_read(".", 10, &buf, NULL), WPK_EINVAL);
    assert_int_equal(wpk_fs_write("no/such/file", "x", 1, 0600, NULL), WPK_ENOENT);
    wpk_buf_fini(&buf);
}

static void test_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    static char data[5000];
    const struct rlimit tiny = {1000, RLIM_INFINITY};
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

    assert_int_equal(wpk_fs_write("a", "old", 3, 0600, NULL), WPK_OK);
    /* A full disk for one process: writes past the limit fail with EFBIG. */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    wpk_err err = wpk_fs_write("a", data, sizeof(data), 0600, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(err, WPK_ENOSPC);
    expect_content("a", "old");
    assert_int_equal(entry_count(), 1);

    /* The rename fails: a directory is in its place. */
    assert_int_equal(wpk_fs_make_dirs("d", NULL), WPK_OK);
    assert_int_not_equal(wpk_fs_write("d", "x", 1, 0600, NULL), WPK_OK);
    assert_int_equal(entry_count(), 2);
}

static int sync_count;

/* Instead of the library's. */
int fsync(int fd)
{
    sync_count++;
    return (int)syscall(SYS_fsync, fd);
}

/* A file that is synced is no use in a directory that is not there after a crash. */
/* Of a device of its own: a node that is replaced breaks the machine. */
static void test_devices_are_written_into(void **state)
{
    struct stat info;
    (void)state;

    if (mknod("null", S_IFCHR | 0666, makedev(1, 3)) != 0) {
        print_message("mknod is not permitted: skipped\n");
        skip();
    }
    assert_int_equal(mknod("full", S_IFCHR | 0666, makedev(1, 7)), 0);
    int probe = open("null", O_WRONLY | O_CLOEXEC);
    if (probe < 0) {
        print_message("devices cannot be opened here: skipped\n");
        skip();
    }
    close(probe);
    assert_int_equal(symlink("null", "link"), 0);
    assert_true(wpk_fs_is_stream("null") && wpk_fs_is_stream("link"));
    assert_int_equal(wpk_fs_write("null", "some", 4, 0644, NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("link", "some", 4, 0644, NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("full", "some", 4, 0644, NULL), WPK_ENOSPC);
    assert_true(stat("null", &info) == 0 && S_ISCHR(info.st_mode));
    assert_true(stat("full", &info) == 0 && S_ISCHR(info.st_mode));
    assert_int_equal(entry_count(), 3);
}

static void test_pipes_are_written_into(void **state)
{
    struct stat info;
    char got[8] = "";
    (void)state;

    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(wpk_fs_write("pipe", "some", 4, 0644, NULL), WPK_OK);
    assert_int_equal(read(reader, got, sizeof(got)), 4);
    assert_memory_equal(got, "some", 4);
    close(reader);
    assert_true(lstat("pipe", &info) == 0 && S_ISFIFO(info.st_mode));
    assert_int_equal(entry_count(), 1);
}

/* An open file goes on where it is, as a shell's >> expects. */
static void test_open_files_are_written_into(void **state)
{
    char name[32];
    (void)state;

    assert_int_equal(wpk_fs_write("file", "old ", 4, 0644, NULL), WPK_OK);
    int fd = open("file", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    assert_true(wpk_fs_is_stream(name));
    assert_int_equal(wpk_fs_write(name, "new", 3, 0644, NULL), WPK_OK);
    close(fd);
    expect_content("file", "old new");
}

static void test_links_are_followed(void **state)
{
    struct stat info;
    struct wpk_diag diag = {0};
    (void)state;

    assert_int_equal(wpk_fs_write("file", "old", 3, 0644, NULL), WPK_OK);
    assert_int_equal(symlink("file", "link"), 0);
    assert_int_equal(symlink("nowhere", "broken"), 0);
    assert_int_equal(wpk_fs_write("link", "new", 3, 0644, NULL), WPK_OK);
    assert_true(lstat("link", &info) == 0 && S_ISLNK(info.st_mode));
    expect_content("file", "new");
    assert_int_equal(wpk_fs_write("broken", "new", 3, 0644, &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "broken"));
    assert_int_equal(entry_count(), 3);
}

static void test_what_is_made_or_renamed_is_durable(void **state)
{
    (void)state;
    sync_count = 0;
    assert_int_equal(wpk_fs_make_dirs("new/inner", NULL), WPK_OK);
    assert_int_equal(sync_count, 2);
    assert_int_equal(wpk_fs_make_dirs("new/inner", NULL), WPK_OK);
    assert_int_equal(sync_count, 2);
    assert_int_equal(wpk_fs_rename("new/inner", "new/other", NULL), WPK_OK);
    assert_int_equal(sync_count, 3);
    assert_int_equal(wpk_fs_rename("new/inner", "new/other", NULL), WPK_ENOENT);
    assert_int_equal(wpk_fs_remove_tree("new", NULL), WPK_OK);
}

static void test_make_dirs(void **state)
{
    (void)state;
    struct stat info;

    assert_int_equal(wpk_fs_make_dirs("x/y//z/", NULL), WPK_OK);
    assert_int_equal(wpk_fs_make_dirs("x/y/z", NULL), WPK_OK);
    assert_int_equal(stat("x/y/z", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(wpk_fs_make_dirs("/tmp", NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("file", "", 0, 0600, NULL), WPK_OK);
    assert_int_equal(wpk_fs_make_dirs("file", NULL), WPK_EEXIST);
    assert_int_equal(wpk_fs_make_dirs("file/below", NULL), WPK_ENOENT);
    assert_int_equal(wpk_fs_make_dirs("", NULL), WPK_ENOENT);
    static char longer[2 * PATH_MAX];
    memset(longer, '/', sizeof longer - 1);
    assert_int_equal(wpk_fs_make_dirs(longer, NULL), WPK_EINVAL);
}

static void test_remove_tree_does_not_follow_links(void **state)
{
    (void)state;
    assert_int_equal(wpk_fs_make_dirs("tree/a/b", NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("tree/a/f", "x", 1, 0600, NULL), WPK_OK);
    assert_int_equal(wpk_fs_make_dirs("kept", NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("kept/f", "x", 1, 0600, NULL), WPK_OK);
    assert_int_equal(symlink("../../kept", "tree/a/link"), 0);
    assert_int_equal(wpk_fs_remove_tree("tree", NULL), WPK_OK);
    assert_int_equal(wpk_fs_remove_tree("tree", NULL), WPK_OK);
    expect_content("kept/f", "x");
    assert_int_equal(entry_count(), 1);
}

static void test_a_socket_replaces_nothing_else(void **state)
{
    (void)state;
    struct wpk_diag diag = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(wpk_fs_check_socket("absent", NULL), WPK_OK);
    assert_int_equal(wpk_fs_write("file", "x", 1, 0600, NULL), WPK_OK);
    assert_int_equal(wpk_fs_check_socket("file", &diag), WPK_EINVAL);
    assert_string_equal(diag.text,
                        "file is there, and is no socket; remove it, or choose another path");
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(wpk_fs_check_socket("socket", NULL), WPK_OK);
    close(fd);
    assert_int_equal(symlink("socket", "link"), 0);
    assert_int_equal(wpk_fs_check_socket("link", NULL), WPK_EINVAL);
}

static void expect_data_dir(const char *given, const char *xdg, const char *home,
                            const char *expected)
{
    struct wpk_buf buf = {0};

    assert_int_equal(wpk_fs_data_dir(given, xdg, home, &buf, NULL), WPK_OK);
    assert_string_equal(wpk_buf_text(&buf), expected);
    wpk_buf_fini(&buf);
}

static void test_data_dir(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};

    expect_data_dir("here", "/xdg", "/home/u", "here");
    expect_data_dir(NULL, "/xdg", "/home/u", "/xdg/woodpecker");
    expect_data_dir(NULL, "relative", "/home/u", "/home/u/.local/share/woodpecker");
    expect_data_dir(NULL, "", "/home/u", "/home/u/.local/share/woodpecker");
    assert_int_equal(wpk_fs_data_dir(NULL, NULL, "", &buf, NULL), WPK_EINVAL);
    assert_int_equal(wpk_fs_data_dir("", "/x", "/h", &buf, NULL), WPK_EINVAL);
}

static void test_program_dir(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};

    assert_int_equal(wpk_fs_program_dir(&buf, NULL), WPK_OK);
    wpk_buf_append_text(&buf, "/fs_test");
    assert_int_equal(access(wpk_buf_text(&buf), X_OK), 0);
    wpk_buf_fini(&buf);
}

static void test_errno_table(void **state)
{
    (void)state;
    assert_int_equal(wpk_fs_err(0), WPK_OK);
    assert_int_equal(wpk_fs_err(EROFS), WPK_EACCES);
    assert_int_equal(wpk_fs_err(ENOSPC), WPK_ENOSPC);
    assert_int_equal(wpk_fs_err(EIO), WPK_EIO);
    assert_int_equal(wpk_fs_err(ENOTTY), WPK_ESYSTEM);
    assert_string_equal(wpk_fs_advice(ENOENT), "; check the path");
    for (int code = 1; code < 134; code++) { /* every errno has advice that ends a message */
        assert_int_equal(strncmp(wpk_fs_advice(code), "; ", 2), 0);
    }
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_write_then_read),
        IN_DIRECTORY(test_read_stops_at_the_limit),
        IN_DIRECTORY(test_failures_name_the_file),
        IN_DIRECTORY(test_failed_write_leaves_the_old_file),
        IN_DIRECTORY(test_what_is_made_or_renamed_is_durable),
        IN_DIRECTORY(test_make_dirs),
        IN_DIRECTORY(test_remove_tree_does_not_follow_links),
        IN_DIRECTORY(test_a_socket_replaces_nothing_else),
        IN_DIRECTORY(test_devices_are_written_into),
        IN_DIRECTORY(test_pipes_are_written_into),
        IN_DIRECTORY(test_open_files_are_written_into),
        IN_DIRECTORY(test_links_are_followed),
        cmocka_unit_test(test_data_dir),
        cmocka_unit_test(test_program_dir),
        cmocka_unit_test(test_errno_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
