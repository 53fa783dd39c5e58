/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas, from files as kernels write them, and from a group with a quota where one can be made. */
#include "common/quota.h"

#include "common/clock.h"

#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/quota_test.XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Write the file below the root, with its directories. */
static void put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int cpus(int max)
{
    char group[WPK_QUOTA_PATH_MAX];
    wpk_quota_find(root, group);
    return wpk_quota_cpus(group, max);
}

static uint64_t throttled(void)
{
    char group[WPK_QUOTA_PATH_MAX];
    wpk_quota_find(root, group);
    return wpk_quota_throttled(group);
}

static void version_2(void **state)
{
    (void)state;
    assert_int_equal(cpus(8), 8); /* nothing is there */
    assert_int_equal(throttled(), 0);
    put("proc/self/cgroup", "0::/pods/one\n");
    put("sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
    assert_int_equal(cpus(8), 8);
    put("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/pods/one/cpu.stat",
        "usage_usec 5\nnr_periods 9\nnr_throttled 7\nthrottled_usec 11\n");
    assert_int_equal(cpus(8), 8);
    assert_int_equal(throttled(), 7);
    put("sys/fs/cgroup/pods/one/cpu.max", "350000 100000\n");
    assert_int_equal(cpus(8), 3);
    assert_int_equal(cpus(2), 2);
    put("sys/fs/cgroup/pods/cpu.max", "200000 100000\n"); /* of the group around it */
    assert_int_equal(cpus(8), 2);
    put("sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n");
    assert_int_equal(cpus(8), 1);
}

/* A container sees its own group as the root of the mount, and may see its path on the host. */
static void inside_a_container(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/kubepods.slice/pod17/abc\n");
    put("sys/fs/cgroup/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/cpu.stat", "nr_throttled 3\n");
    assert_int_equal(cpus(16), 4);
    assert_int_equal(throttled(), 3);
    put("proc/self/cgroup", "0::/\n");
    assert_int_equal(cpus(16), 4);
    assert_int_equal(throttled(), 3);
}

/* Version 1 has controllers, which a machine may use besides. */
static void beside_version_1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpuacct,cpu:/box\n0::/one\n");
    put("sys/fs/cgroup/one/cpu.max", "300000 100000\n");
    assert_int_equal(cpus(8), 3);
    put("proc/self/cgroup", "9:name=systemd:/\n4:cpuacct,cpu:/one\n");
    assert_int_equal(cpus(8), 8);
}

static void broken_files(void **state)
{
    static const char *const lines[] = {
        "", "\n", "x", "0", "0:", "0::", "::", "4:cpu", "0::\n\n", "10::/x"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put("proc/self/cgroup", lines[i]);
        assert_int_equal(cpus(8), 8);
    }
    put("proc/self/cgroup", "0::/\n");
    static const char *const limits[] = {"", "max", "0 0", "-5 100", "100000", "x 100000", "5 -1"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        put("sys/fs/cgroup/cpu.max", limits[i]);
        assert_int_equal(cpus(8), 8);
    }
}

/* A thread that shares its CPU with others waits. */
static void waiting_is_seen(void **state)
{
    (void)state;
    pid_t others[4];
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET((size_t)sched_getcpu(), &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    for (int i = 0; i < 4; i++) {
        others[i] = fork();
        while (others[i] == 0) {
        }
    }
    uint64_t before = wpk_quota_waited_ns(), end = wpk_clock_ns() + 20 * WPK_NS_PER_S;
    while (wpk_quota_waited_ns() < before + 20 * WPK_NS_PER_MS && wpk_clock_ns() < end) {
    }
    uint64_t waited = wpk_quota_waited_ns() - before;
    for (int i = 0; i < 4; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    if (access("/proc/thread-self/schedstat", R_OK) != 0) {
        skip();
    }
    assert_true(waited >= 20 * WPK_NS_PER_MS);
}

/* Burn CPU in a group with a twentieth of a CPU, in a child, until it shows. */
static void run_under_quota(const char *tasks)
{
    char group[WPK_QUOTA_PATH_MAX];
    FILE *file = fopen(tasks, "we");
    if (file == NULL || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0) {
        _exit(2);
    }
    wpk_quota_find("", group);
    uint64_t before = wpk_quota_throttled(group);
    uint64_t end = wpk_clock_ns() + 20 * WPK_NS_PER_S;
    while (wpk_quota_throttled(group) == before && wpk_clock_ns() < end) {
    }
    _exit(wpk_quota_throttled(group) > before && wpk_quota_cpus(group, 64) == 1 ? 0 : 1);
}

static void a_real_quota(void **state)
{
    char group[WPK_QUOTA_PATH_MAX], directory[WPK_QUOTA_PATH_MAX + 32];
    char path[WPK_QUOTA_PATH_MAX + 64];
    (void)state;
    wpk_quota_find("", group);
    snprintf(directory, sizeof directory, "%s/quota_test.%d", group, (int)getpid());
    if (group[0] == '\0' || mkdir(directory, 0700) != 0) {
        print_message("no control group of version 2 can be made here\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    FILE *file = fopen(path, "r+e");
    bool set = file != NULL && fputs("5000 100000", file) >= 0;
    set = file != NULL && fclose(file) == 0 && set;
    int status = 0;
    if (set) {
        snprintf(path, sizeof path, "%s/cgroup.procs", directory);
        pid_t pid = fork();
        if (pid == 0) {
            run_under_quota(path);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    rmdir(directory);
    if (!set || WEXITSTATUS(status) == 2) {
        print_message("no quota can be set here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        CASE(version_2),    CASE(inside_a_container),          CASE(beside_version_1),
        CASE(broken_files), cmocka_unit_test(waiting_is_seen), cmocka_unit_test(a_real_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
