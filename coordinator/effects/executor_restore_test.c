/* SPDX-License-Identifier: Apache-2.0 */
/* The state as a start reads it from the store, and as a failure of the store has it read again. */
#include "coordinator/store/store.h"
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB_COUNT 20 /* of 256 operators each: more than one slice */

static uint32_t job_count(const struct wpk_fixture *f)
{
    return wpk_executor_coordinator(f->executor)->live_count;
}

static void execute(struct wpk_fixture *f, const char *sql)
{
    struct wpk_diag diag = {0};
    if (wpk_store_execute(f->store, sql, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void restart(struct wpk_fixture *f)
{
    wpk_executor_free(f->executor);
    wpk_fixture_start(f);
}

/* ---- jobs as they were understood */

static const char rich[] =
    "{\"name\":\"two\",\"ops\":["
    "{\"name\":\"a\",\"op\":\"C[i,j] = sum(k) A[i,k] * B[k,j]\",\"accuracy\":\"strict\","
    "\"tensors\":{\"A\":\"f32[8,8]\",\"B\":\"f32[8,8]\",\"C\":\"f32[8,8]\"}},"
    "{\"name\":\"b\",\"op\":\"P[i,j] = sum(k) Q[i,k] * R[k,j]\",\"layouts\":\"any\","
    "\"conditions\":\"cold\","
    "\"tensors\":{\"Q\":\"f32[8,16]\",\"R\":\"f32[16,8]\",\"P\":\"f32[8,8]\"}}],"
    "\"target\":{\"kind\":\"cpu\",\"threads\":2,\"labels\":{\"rack\":\"a=7\",\"zone\":\"eu\"}},"
    "\"search\":{\"strategy\":\"random\",\"seed\":\"18446744073709551615\","
    "\"pin\":{\"algorithm\":\"direct\"}},"
    "\"budget\":{\"candidates\":17,\"seconds\":34},\"priority\":-3}";

static void print_op(const struct wpk_job_op_state *op, struct wpk_buf *out)
{
    wpk_buf_printf(out, "%s %s %s %s %s %s %s %s %s %.17g %.17g\n", op->name, op->layouts,
                   op->accuracy, wpk_conditions_name(op->conditions), op->fingerprint, op->family,
                   op->op, op->binding != NULL ? op->binding : "", op->pins != NULL ? op->pins : "",
                   op->flops, op->bytes);
}

/* All that the file says, as the state has it. */
static char *print_job(const struct wpk_fixture *f)
{
    struct wpk_buf out = {0};
    char *text = NULL;
    const struct wpk_job_entry *job =
        wpk_coordinator_job(wpk_executor_coordinator(f->executor), "j0000000000000001");
    assert_non_null(job);
    wpk_buf_printf(&out, "%s %s %s %d %s %d %s %llu %u %llu %d\n", job->id, job->name, job->owner,
                   job->priority, job->kind, job->threads, job->strategy,
                   (unsigned long long)job->seed, job->candidates, (unsigned long long)job->time_ns,
                   (int)job->state);
    for (uint32_t i = 0; i < job->label_count; i++) {
        wpk_buf_printf(&out, "%s is %s\n", job->labels[i].name, job->labels[i].value);
    }
    for (uint32_t i = 0; i < job->op_count; i++) {
        print_op(&job->ops[i], &out);
    }
    assert_int_equal(wpk_buf_take(&out, &text, NULL), WPK_OK);
    wpk_buf_fini(&out);
    return text;
}

/* Canonical forms and fingerprints take long, so they are computed once, when the job arrives. */
static void a_file_is_understood_once(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", rich);
    assert_int_equal(f->status, 201);
    char *before = print_job(f);
    assert_non_null(strstr(before, "rack is a=7\nzone is eu\n"));
    assert_non_null(strstr(before, "algorithm=direct"));
    restart(f);
    char *after = print_job(f);
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* Data that only a live job needs is deleted when the job ends. */
static void an_ended_job_is_small(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", rich);
    wpk_fixture_request(f, "POST", "/v1/jobs/j0000000000000001:cancel", "");
    struct wpk_rows *rows =
        wpk_store_query(f->store, "SELECT SUM(length(op) + length(binding)) FROM job_op", "");
    assert_true(wpk_rows_next(rows));
    assert_int_equal(wpk_rows_int(rows, 0), 0);
    wpk_rows_close(rows);
}

/* ---- many jobs */

static void put_many(struct wpk_fixture *f)
{
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    wpk_executor_free(f->executor);
    f->executor = NULL;
    execute(
        f,
        "CREATE TEMP TABLE n AS WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM"
        " c WHERE n < 255) SELECT n FROM c;"
        "INSERT INTO job_op (job_number, position, phase, reason, from_history, name, count, "
        "layouts,"
        " accuracy, conditions, fingerprint, family, op, flops, bytes, pins, binding, epoch)"
        " SELECT 1, n, phase, reason, from_history, 'a' || n, count, layouts, accuracy, conditions,"
        " fingerprint, family, op, flops, bytes, pins, binding, epoch FROM job_op, n"
        " WHERE n > 0;"
        "INSERT INTO job (number, id, name, owner, priority, state, reason, document,"
        " created_at, started_at, finished_at, kind, device, threads, labels, strategy, options,"
        " prior, seed, candidates, total, time_ns, until, epoch)"
        " SELECT n, printf('j%016x', n), name, owner, priority, state, reason,"
        " document, created_at, started_at, finished_at, kind, device, threads, labels, strategy,"
        " options, prior, seed, candidates, total, time_ns, until, epoch FROM job, n"
        " WHERE n BETWEEN 2 AND 20;"
        "INSERT INTO job_op (job_number, position, phase, reason, from_history, name, count, "
        "layouts,"
        " accuracy, conditions, fingerprint, family, op, flops, bytes, pins, binding, epoch)"
        " SELECT n, position, phase, reason, from_history, name, count, layouts, accuracy,"
        " conditions, fingerprint, family, op, flops, bytes, pins, binding, epoch"
        " FROM job_op, n WHERE n BETWEEN 2 AND 20");
}

/* The service manager hears of us meanwhile. */
static void a_start_with_many_jobs(void **state)
{
    struct wpk_fixture *f = *state;
    put_many(f);
    f->slice_count = 0;
    wpk_fixture_start(f);
    assert_int_equal(job_count(f), JOB_COUNT);
    assert_int_equal(f->slice_count, 3); /* 2048 operators are eight jobs */
}

/* Another part of the jobs is there, and not yet all. */
static uint32_t is_part(const struct wpk_fixture *f, uint32_t *seen)
{
    uint32_t before = *seen;
    *seen = job_count(f);
    assert_true(*seen <= before + 8);
    return *seen != before && *seen > 0 && *seen < JOB_COUNT;
}

/* The loop turns meanwhile, and what it is asked for is not said to be absent. */
static void many_jobs_after_a_failure(void **state)
{
    struct wpk_fixture *f = *state;
    uint32_t parts = 0;
    uint32_t seen = 0;
    put_many(f);
    execute(
        f, "CREATE TRIGGER refuse AFTER UPDATE ON job BEGIN SELECT RAISE(ABORT, 'a bad row'); END");
    f->threads = 1;
    wpk_fixture_start(f);
    wpk_fixture_begin_request(f, "POST", "/v1/jobs/j0000000000000002:pause", "");
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    while (wpk_executor_degraded(f->executor, NULL) == WPK_OK) {
        usleep(1000);
        wpk_executor_poll(f->executor);
    }
    seen = job_count(f) < JOB_COUNT ? 0 : JOB_COUNT;
    parts += is_part(f, &seen);
    while (wpk_executor_degraded(f->executor, NULL) != WPK_OK) {
        wpk_executor_poll(f->executor);
        parts += is_part(f, &seen);
        wpk_err err = wpk_executor_commit(f->executor, NULL);
        (void)err;
        parts += is_part(f, &seen);
    }
    assert_int_equal(job_count(f), JOB_COUNT);
    assert_true(parts >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_understood_once, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(an_ended_job_is_small, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_start_with_many_jobs, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(many_jobs_after_a_failure, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
