/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for lookups that find nothing, over the days. */
#include "coordinator/api/api_lookup.h"
#include "tests/fixture.h"

#include "coordinator/state/submission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NEVER_SEEN "cpu/nobody has it/avx2"
#define DAY_S (UINT64_C(24) * 3600)

/* X + X with so many elements, and the fingerprint that a lookup of it has. */
static void make_op(int extent, struct wpk_job_op *op, char fingerprint[WPK_FINGERPRINT_SIZE])
{
    struct wpk_buf text = {0};
    struct wpk_job job = {0};
    struct wpk_job_entry *entry = NULL;
    wpk_buf_printf(&text,
                   "{\"ops\":[{\"name\":\"a\",\"op\":\"Y[i] = X[i] + X[i]\","
                   "\"tensors\":{\"X\":\"f32[%d]\",\"Y\":\"f32[%d]\"}}]}",
                   extent, extent);
    assert_int_equal(wpk_job_decode(wpk_buf_text(&text), text.size, &job, NULL), WPK_OK);
    assert_int_equal(wpk_submission_make(&job, &entry, NULL), WPK_OK);
    memcpy(fingerprint, entry->ops[0].fingerprint, WPK_FINGERPRINT_SIZE);
    *op = job.ops[0];
    op->name[0] = '\0';
    job.op_count = 0;
    wpk_job_entry_free(entry);
    wpk_job_fini(&job);
    wpk_buf_fini(&text);
}

/* Ask for a kernel of X + X with so many elements, on the device: the id of the job for it. */
static void ask_as(struct wpk_fixture *f, const char *owner, int extent, const char *device,
                   char id[WPK_JOB_ID_SIZE])
{
    struct wpk_api_answer answer = {0};
    struct wpk_http_request request = {.identity = {.roles = WPK_ROLE_ALL}};
    struct wpk_api api = {.coordinator = wpk_executor_coordinator(f->executor),
                          .executor = f->executor,
                          .store = wpk_executor_reader(f->executor),
                          .now_ns = wpk_executor_now_ns(f->executor)};
    struct wpk_call call = {.api = &api, .request = &request, .answer = &answer};
    struct wpk_lookup lookup = {.layouts = "fixed", .threads = 1, .device = device};
    struct wpk_tuning tuning = {0};
    struct wpk_job_op op;
    snprintf(request.identity.owner, sizeof request.identity.owner, "%s", owner);
    assert_int_equal(wpk_accuracy_parse("standard", &lookup.accuracy, NULL), WPK_OK);
    make_op(extent, &op, lookup.fingerprint);
    wpk_tuning_take(&tuning, &call, &lookup, &op);
    assert_true(wpk_tuning_prepare(&tuning, &call));
    assert_true(wpk_tuning_submit(&tuning, &call));
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    snprintf(id, WPK_JOB_ID_SIZE, "%s", wpk_buf_text(&answer.body));
    assert_int_equal(strlen(id), WPK_JOB_ID_SIZE - 1);
    wpk_tuning_fini(&tuning);
    wpk_api_answer_fini(&answer);
}

static void ask(struct wpk_fixture *f, int extent, const char *device, char id[WPK_JOB_ID_SIZE])
{
    ask_as(f, "", extent, device, id);
}

static uint32_t job_count(const struct wpk_fixture *f)
{
    return wpk_executor_coordinator(f->executor)->live_count;
}

/* For a device of which no worker comes: the first day's job waits, and is everybody's. */
static void one_job_waits_for_days(void **state)
{
    struct wpk_fixture *f = *state;
    char first[WPK_JOB_ID_SIZE];
    char later[WPK_JOB_ID_SIZE];
    wpk_fixture_start(f);
    ask(f, 8, NEVER_SEEN, first);
    for (int day = 0; day < 3; day++) {
        wpk_fixture_tick(f, DAY_S);
        ask(f, 8, NEVER_SEEN, later);
        assert_string_equal(later, first);
        assert_int_equal(job_count(f), 1);
    }
    wpk_executor_free(f->executor);
    wpk_fixture_start(f);
    ask(f, 8, NEVER_SEEN, later);
    assert_string_equal(later, first);
    assert_int_equal(job_count(f), 1);
}

static void other_questions_are_other_jobs(void **state)
{
    struct wpk_fixture *f = *state;
    char first[WPK_JOB_ID_SIZE];
    char other[WPK_JOB_ID_SIZE];
    char path[64];
    wpk_fixture_start(f);
    ask(f, 8, NEVER_SEEN, first);
    wpk_fixture_tick(f, DAY_S);
    ask(f, 16, NEVER_SEEN, other);
    assert_string_not_equal(other, first);
    ask(f, 8, "cpu/nobody has it/avx", other);
    assert_string_not_equal(other, first);
    assert_int_equal(job_count(f), 3);
    ask(f, 8, "cuda/NVIDIA H200/sm_90/132", other); /* a job of the device's kind */
    snprintf(path, sizeof path, "/v1/jobs/%s", other);
    wpk_fixture_request(f, "GET", path, "");
    assert_int_equal(f->status, 200);
    assert_non_null(strstr(wpk_buf_text(&f->body), "no worker with kind cuda"));
}

/* A job of an earlier day that was cancelled answers nobody, and is not the last one's obstacle. */
static void a_cancelled_one_is_replaced_once(void **state)
{
    struct wpk_fixture *f = *state;
    char first[WPK_JOB_ID_SIZE];
    char second[WPK_JOB_ID_SIZE];
    char later[WPK_JOB_ID_SIZE];
    char path[64];
    wpk_fixture_start(f);
    ask(f, 8, NEVER_SEEN, first);
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel", first);
    wpk_fixture_request(f, "POST", path, "");
    assert_int_equal(f->status, 200);
    ask(f, 8, NEVER_SEEN, second);
    assert_string_not_equal(second, first);
    wpk_fixture_tick(f, DAY_S);
    ask(f, 8, NEVER_SEEN, later);
    assert_string_equal(later, second);
    assert_int_equal(job_count(f), 1);
}

/* A paused job answers only its owner, who may resume it; other owners get another job. */
static void a_paused_one_is_its_owners(void **state)
{
    struct wpk_fixture *f = *state;
    char paused[WPK_JOB_ID_SIZE];
    char other[WPK_JOB_ID_SIZE];
    char later[WPK_JOB_ID_SIZE];
    char path[64];
    wpk_fixture_start(f);
    ask_as(f, "ann", 8, NEVER_SEEN, paused);
    snprintf(path, sizeof path, "/v1/jobs/%s:pause", paused);
    wpk_fixture_request(f, "POST", path, "");
    assert_int_equal(f->status, 200);
    ask_as(f, "bob", 8, NEVER_SEEN, other);
    assert_string_not_equal(other, paused);
    ask_as(f, "ann", 8, NEVER_SEEN, later);
    assert_string_equal(later, paused);
    wpk_fixture_tick(f, DAY_S);
    ask_as(f, "bob", 8, NEVER_SEEN, later);
    assert_string_equal(later, other);
    assert_int_equal(job_count(f), 2);
}

/* A job that a user submits under the same name, say with another budget, does not answer a
 * lookup. */
static void a_job_file_of_that_name_is_another(void **state)
{
    struct wpk_fixture *f = *state;
    char id[WPK_JOB_ID_SIZE];
    wpk_fixture_start(f);
    wpk_fixture_request(
        f, "POST", "/v1/jobs",
        "{\"name\":\"lookup\",\"ops\":[{\"name\":\"op1\",\"op\":\"Y[i] = X[i] + X[i]\","
        "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"
        "\"target\":{\"kind\":\"cpu\",\"device\":\"" NEVER_SEEN "\",\"threads\":1},"
        "\"budget\":{\"candidates\":1}}");
    assert_int_equal(f->status, 201);
    ask(f, 8, NEVER_SEEN, id);
    assert_int_equal(job_count(f), 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, wpk_fixture_set_up, wpk_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(one_job_waits_for_days),
        CASE(other_questions_are_other_jobs),
        CASE(a_cancelled_one_is_replaced_once),
        CASE(a_paused_one_is_its_owners),
        CASE(a_job_file_of_that_name_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
