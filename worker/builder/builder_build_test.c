/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: causes of a failed build: the schedule, or the machine with its programs and disk. */
#include "worker/builder/builder.h"

#include "common/fs.h"
#include "runtime/link.h"
#include "worker/engine/planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OP "input X f32[4]\noutput Y f32[4]\nY[i] = X[i] * 2\n"

static const char schedule_text[] =
    "wpk-schedule 2\ntarget x86-64-linux-sse41 threads 1\nby c\nlayout X f32[4] 0\n"
    "layout Y f32[4] 0\nprogram\n" OP "end\nstage Y root\n  lanes i\n";

static char directory[] = "/tmp/wpk-build-XXXXXX";

/* The only program of that name in PATH; NULL: there is none. */
static void set_program(const char *name, const char *text)
{
    char path[160], script[320];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
    if (text != NULL) {
        snprintf(script, sizeof script, "#!/bin/sh\n%s\n", text);
        assert_int_equal(wpk_fs_write(path, script, strlen(script), 0755, NULL), WPK_OK);
    }
}

static void set_compiler(const char *name, const char *version, const char *builds)
{
    char text[240];
    snprintf(text, sizeof text, "case $1 in -dump*) echo %s; exit;; esac\n%s", version, builds);
    set_program(name, version != NULL ? text : NULL);
}

/* In a process of its own, as in a worker: the compiler is looked for once. */
static wpk_err in_process(wpk_err (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("PATH", directory, 1);
        _exit(chdir(directory) == 0 ? (int)what() : 255);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (wpk_err)WEXITSTATUS(status);
}

static wpk_err plan(void)
{
    static struct wpk_planner planner;
    const struct wpk_planner_request request = {
        .op = OP, .layouts = "fixed", .threads = 1, .schedule = schedule_text};
    struct wpk_planned planned = {0};
    wpk_planner_init(&planner, &(struct wpk_device){.kind = "cpu"});
    wpk_err err = wpk_planner_plan(&planner, &request, &planned, NULL);
    if (err == WPK_OK) {
        err = wpk_fs_write("schedule", planned.schedule, strlen(planned.schedule), 0644, NULL);
    }
    if (err == WPK_OK) {
        err = wpk_fs_write("manifest", planned.manifest, strlen(planned.manifest), 0644, NULL);
    }
    wpk_planned_fini(&planned);
    wpk_planner_fini(&planner);
    return err;
}

static wpk_err build(void)
{
    return wpk_builder_build(&(struct wpk_builder_options){.cache_dir = "."});
}

static void who_is_at_fault(void **state)
{
    (void)state;
    static const struct {
        const char *gcc, *clang; /* their versions now; NULL: missing */
        const char *compiles, *links;
        wpk_err expected;
    } rows[] = {
        {"12.2.0", NULL, "exit 1", "exit 1", WPK_EUNSUPPORTED},
        {"12.2.0", "14.0.6", "exit 0", "exit 1", WPK_EUNSUPPORTED},
        {"12.2.0", NULL, "exit 0", NULL, WPK_ENOENT},
        {"13.1.0", NULL, "exit 0", "exit 1", WPK_ENOENT},
        {NULL, "14.0.6", "exit 0", "exit 1", WPK_ENOENT},
        {NULL, NULL, "exit 0", "exit 1", WPK_ENOENT},
        {"12.2.0", NULL, "echo main.s: No space left on device >&2; exit 1", "", WPK_ENOSPC},
        {"12.2.0", NULL, "exit 0", "echo ld: No space left on device >&2; exit 1", WPK_ENOSPC},
        {"12.2.0", NULL, "echo main.s: Disk quota exceeded >&2; exit 1", "", WPK_ENOSPC},
    };
    assert_non_null(mkdtemp(directory));
    assert_int_equal(wpk_link_write_parts(directory, NULL), WPK_OK);
    set_compiler("gcc", "12.2.0", "");
    assert_int_equal(in_process(plan), WPK_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_compiler("gcc", rows[i].gcc, rows[i].compiles);
        set_compiler("clang", rows[i].clang, rows[i].compiles);
        set_program("ld", rows[i].links);
        wpk_err err = in_process(build);
        if (err != rows[i].expected) {
            fail_msg("row %zu: %s", i, wpk_err_name(err));
        }
    }
    assert_int_equal(wpk_fs_remove_tree(directory, NULL), WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_at_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
