/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler that back ends find on machines with different programs in PATH, and its name. */
#include "target/c/compiler.h"

#include "common/fs.h"
#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void names_are_those_of_candidates(void **state)
{
    (void)state;
    for (int i = 0; i < WPK_BACK_END_COUNT; i++) {
        const struct wpk_codegen *codegen = wpk_codegen_at(i);
        assert_string_equal(codegen->name, wpk_back_end_name(i));
        assert_true((wpk_back_ends_of(codegen->kind) & 1U << i) != 0);
        assert_ptr_equal(wpk_codegen_find(codegen->name), codegen);
    }
    assert_null(wpk_codegen_at(-1));
    assert_null(wpk_codegen_at(WPK_BACK_END_COUNT));
    assert_string_equal(wpk_codegen_of("c/gcc-12.2.0")->name, "c");
    assert_string_equal(wpk_codegen_of("halide-cpu")->name, "halide-cpu");
    assert_null(wpk_codegen_of("onednn"));
    assert_true(wpk_codegen_find("c")->found_here && !wpk_codegen_find("cuda")->found_here);
    assert_null(wpk_codegen_find("c/gcc-12.2.0"));
}

static void write_program(const char *directory, const char *name, const char *text)
{
    char path[160], script[160];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(script, sizeof script, "#!/bin/sh\n%s\n", text);
    assert_int_equal(wpk_fs_write(path, script, strlen(script), 0755, NULL), WPK_OK);
    assert_int_equal(chmod(path, 0755), 0);
}

/* Root may start as many processes as it likes: such a process becomes another user's. */
static void forbid_processes(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (getuid() == 0 && setuid(65534) != 0) {
        _exit(1);
    }
}

/* Check the compiler that a process with this PATH finds: PATH is searched once in each process.
 * `files`: the number that it may open. */
static void expect_found(const char *path, rlim_t files, bool forks, const char *expected)
{
    char found[200] = "";
    int pipes[2], status = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char provider[WPK_BACK_END_MAX];
        struct wpk_diag diag = {0};
        const struct rlimit limit = {files, files};
        setenv("PATH", path, 1);
        setrlimit(RLIMIT_NOFILE, &limit);
        if (!forks) {
            forbid_processes();
        }
        wpk_err err = wpk_codegen_provider(wpk_codegen_find("c"), provider, &diag);
        const char *text = err == WPK_OK ? provider : diag.text;
        snprintf(found, sizeof found, "%s %s", wpk_err_name(err), text);
        _exit(write(pipes[1], found, strlen(found)) > 0 ? 0 : 1);
    }
    close(pipes[1]);
    assert_true(read(pipes[0], found, sizeof found - 1) > 0);
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(found, expected);
}

static void compilers_are_found_in_path(void **state)
{
    (void)state;
    char directory[] = "/tmp/wpk-compiler-XXXXXX";
    assert_non_null(mkdtemp(directory));
    expect_found(directory, 64, true, "ENOENT no gcc or clang in PATH");
    write_program(directory, "clang", "[ $1 = -dumpversion ] && echo 14.0.6");
    expect_found(directory, 64, true, "OK c/clang-14.0.6");
    write_program(directory, "gcc", "echo what is that >&2; exit 1"); /* it has no version */
    expect_found(directory, 64, true, "OK c/clang-14.0.6");
    write_program(directory, "gcc", "[ $1 = -dumpfullversion ] && echo 12.2.0");
    expect_found(directory, 64, true, "OK c/gcc-12.2.0");
    /* That the machine cannot ask is not that there is none. */
    expect_found(directory, 4, true, "ESYSTEM no process can be started to look for gcc");
    expect_found(directory, 64, false, "ESYSTEM no process can be started to look for gcc");
    assert_int_equal(wpk_fs_remove_tree(directory, NULL), WPK_OK);
}

static void how_a_compiler_ends(void **state)
{
    (void)state;
    char text[8];
    const char *const says[] = {"printf", "123456789", NULL};
    assert_int_equal(wpk_c_compiler_run(says, NULL, text, sizeof text), WPK_OK);
    assert_string_equal(text, "1234567");
    assert_int_equal(wpk_c_compiler_run((const char *const[]){"false", NULL}, NULL, NULL, 0),
                     WPK_EUNSUPPORTED);
    const char *const fills[] = {"sh", "-c", "echo as: No space left on device >&2; exit 1", NULL};
    assert_int_equal(wpk_c_compiler_run(fills, NULL, NULL, 0), WPK_ENOSPC);
    assert_int_equal(wpk_c_compiler_run((const char *const[]){"wpk-no-such", NULL}, NULL, NULL, 0),
                     WPK_ENOENT);
}

static const char kernel_text[] =
    "wpk-schedule 2\ntarget x86-64-linux-sse41 threads 1\nby c\nlayout X f32[4] 0\n"
    "layout Y f32[4] 0\nprogram\ninput X f32[4]\noutput Y f32[4]\nY[i] = X[i] * 2\nend\n"
    "stage Y root\n  lanes i\n";

/* In a process of its own: the compiler is looked for once. `lost`: then the program goes. */
static void expect_built(const char *directory, const char *lost, wpk_err expected,
                         const char *words)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct wpk_schedule schedule;
        struct wpk_diag diag = {0};
        char object[160], version[WPK_CODEGEN_VERSION_MAX];
        setenv("PATH", directory, 1);
        snprintf(object, sizeof object, "%s/main.o", directory);
        wpk_err err = wpk_schedule_parse(kernel_text, &schedule, &diag);
        (void)!wpk_codegen_find("c")->find(version, NULL);
        if (lost != NULL && unlink(lost) != 0) {
            _exit(2);
        }
        err = err == WPK_OK ? wpk_c_build(&schedule, "k", object, &diag) : err;
        fprintf(stderr, "%s: %s\n", wpk_err_name(err), diag.text);
        _exit(err == expected && strcmp(diag.text, words) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The cause of a failed build: the schedule, a machine that never had a compiler, or one that has
 * lost it. */
static void what_a_build_comes_to(void **state)
{
    (void)state;
    char directory[] = "/tmp/wpk-compiler-XXXXXX", path[160];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/gcc", directory);
    expect_built(directory, NULL, WPK_EUNSUPPORTED, "no gcc or clang in PATH");
    write_program(directory, "gcc", "[ $1 = -dumpfullversion ] && echo 12.2.0");
    expect_built(directory, NULL, WPK_EUNSUPPORTED, "gcc-12.2.0 refuses the kernel");
    expect_built(directory, path, WPK_ENOENT, "gcc-12.2.0 is not in PATH any more");
    write_program(directory, "gcc", "echo 12.2.0");
    expect_built(directory, NULL, WPK_OK, "");
    assert_int_equal(wpk_fs_remove_tree(directory, NULL), WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_candidates),
        cmocka_unit_test(compilers_are_found_in_path),
        cmocka_unit_test(how_a_compiler_ends),
        cmocka_unit_test(what_a_build_comes_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
