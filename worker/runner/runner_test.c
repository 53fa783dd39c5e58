/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's children on an emulated GPU: each keeps a context, and a spare has one ready. The
 * candidates here have no artifact: they are `unsupported`, and each ends its child. */
#include "worker/runner/runner.h"

#include "common/clock.h"
#include "common/fs.h"
#include "worker/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define START_MS 800
#define END_MS 200
#define TIMEOUT_MS 60000
#define CHILDREN_MAX 8
#define SKIPPED 77 /* meson's exit status for it */

static const char op[] = "input X f32[8]\noutput Y f32[8]\nY[i] = X[i] * 2\n";

struct fixture {
    char directory[64];
    pid_t runner;
    struct wpk_channel channel;
    uint64_t id; /* of the last run */
};

static int set_up(void **state)
{
    static struct fixture f;
    int pair[2];
    f = (struct fixture){.directory = "/tmp/wpk-runner-XXXXXX"};
    if (mkdtemp(f.directory) == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        return -1;
    }
    f.runner = fork();
    if (f.runner == 0) {
        const struct wpk_runner_options options = {.answers_dir = f.directory,
                                                   .on_gpu = true,
                                                   .emulated = true,
                                                   .start_ms = START_MS,
                                                   .end_ms = END_MS};
        close(pair[0]);
        wpk_process_pin(0, 1); /* what is killed ends when the runner has looked on */
        if (pair[1] != WPK_CHANNEL_FD) {
            dup2(pair[1], WPK_CHANNEL_FD);
            close(pair[1]);
        }
        _exit(wpk_runner_serve(&options));
    }
    close(pair[1]);
    wpk_channel_init(&f.channel, pair[0]);
    *state = &f;
    return f.runner > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int status = 0;
    wpk_channel_fini(&f->channel);
    waitpid(f->runner, &status, 0);
    return wpk_fs_remove_tree(f->directory, NULL) == WPK_OK && status == 0 ? 0 : -1;
}

/* Wait for the next message of that kind; its reason, or the log of its one record.
 *   shape   out [WPK_LOG_MAX] */
static enum wpk_outcome wait_for(struct fixture *f, enum wpk_engine_message_kind wanted, char *out)
{
    struct wpk_record record = {0};
    struct wpk_buf text = {0};
    struct wpk_engine_message message;
    int count = 0;
    do {
        assert_int_equal(wpk_channel_wait(&f->channel, &text), WPK_OK);
        assert_int_equal(wpk_engine_message_read(&text, &message), WPK_OK);
    } while (message.kind != wanted);
    if (message.kind == WPK_ENGINE_MESSAGE_BROKEN) {
        snprintf(out, WPK_LOG_MAX, "%s", message.text);
    } else {
        assert_int_equal(wpk_engine_message_read_result(&message, &record, 1, &count), WPK_OK);
        assert_int_equal(count, 1);
        snprintf(out, WPK_LOG_MAX, "%s", record.log);
    }
    enum wpk_outcome outcome = record.outcome;
    wpk_record_fini(&record);
    wpk_buf_fini(&text);
    return outcome;
}

static void run(struct fixture *f)
{
    const struct wpk_run_request request = {
        .id = ++f->id,
        .work = "test",
        .op = op,
        .provider = "kernel",
        .layouts = "fixed",
        .artifact = "/nowhere/kernel.so",
        .anchor = "",
        .policy = {.threads = 1, .time_ns_min = 1000000, .sample_count = 3},
        .rule = {.times = WPK_VERIFY_TIMES},
        .accuracy = {WPK_ACCURACY_TIMES_MAX},
        .timeout_ms = TIMEOUT_MS};
    char log[WPK_LOG_MAX];
    assert_int_equal(WPK_ENGINE_SEND(&f->channel, .kind = WPK_ENGINE_MESSAGE_RUN, .run = request),
                     WPK_OK);
    enum wpk_outcome outcome = wait_for(f, WPK_ENGINE_MESSAGE_RESULT, log);
    if (outcome != WPK_OUTCOME_UNSUPPORTED) {
        fail_msg("%s: %s", wpk_outcome_name(outcome), log);
    }
}

/* A spare may wait for its first candidate: the limit is that of making a context. */
static void test_spare_grows_old(void **state)
{
    struct fixture *f = *state;
    run(f);
    nanosleep(&(struct timespec){.tv_sec = (START_MS + 100) / 1000,
                                 .tv_nsec = (START_MS + 100) % 1000 * 1000000L},
              NULL);
    run(f);
    run(f);
}

/* Trace the runner's children: one that is killed stays until its tracer looks.
 *   shape   out [CHILDREN_MAX] */
static int trace_children(const struct fixture *f, pid_t *out)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)f->runner, (int)f->runner);
    FILE *file = fopen(path, "re");
    while (file != NULL && count < CHILDREN_MAX && fscanf(file, "%d", &out[count]) == 1) {
        count += ptrace(PTRACE_SEIZE, out[count], NULL, NULL) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static void test_process_does_not_end(void **state)
{
    struct fixture *f = *state;
    char why[WPK_LOG_MAX], wanted[WPK_LOG_MAX] = "";
    pid_t traced[CHILDREN_MAX];
    run(f);
    int count = trace_children(f, traced);
    if (count == 0) {
        skip(); /* this machine lets nobody trace */
    }
    run(f);
    (void)wait_for(f, WPK_ENGINE_MESSAGE_BROKEN, why);
    for (int i = 0; i < count; i++) {
        snprintf(wanted, sizeof(wanted), "the GPU does not let go of process %d", (int)traced[i]);
        count = strcmp(why, wanted) == 0 ? 0 : count;
        waitpid(traced[i], NULL, __WALL | WNOHANG);
    }
    assert_string_equal(why, wanted);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("skipped: ThreadSanitizer's own thread does not outlive the runner's forks");
    return SKIPPED;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spare_grows_old, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_process_does_not_end, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
