/* SPDX-License-Identifier: Apache-2.0 */
/* Back ends that some workers offer: which search uses them, and who builds for it. */
#include "coordinator/state/claim.h"

#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `version` "": it lacks the back end; NULL: it does not build, and does not say. */
static int join(struct wpk_fixture *s, const char *name, unsigned roles, const char *version)
{
    int worker = wpk_fixture_worker(s, name);
    struct wpk_hello *hello = &s->workers[worker].hello;
    hello->roles = roles;
    if (version != NULL) {
        hello->back_end_count = 1;
        snprintf(hello->back_ends[0].name, WPK_PROVIDER_NAME_MAX, "c");
        snprintf(hello->back_ends[0].version, WPK_PROVIDER_NAME_MAX, "%s", version);
        snprintf(hello->back_ends[0].missing, WPK_BACK_END_REASON_MAX, "%s",
                 version[0] == '\0' ? "none in PATH" : "");
    }
    wpk_fixture_hello(s, worker);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_WELCOME);
    return worker;
}

static const struct wpk_job_entry *submit(struct wpk_fixture *s, uint32_t op, const char *pins)
{
    struct wpk_job_entry *job = wpk_fixture_job("a", op, 1);
    job->ops[0].pins = pins != NULL ? strdup(pins) : NULL;
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    assert_non_null(submitted);
    return submitted;
}

static void expect_blocked(struct wpk_fixture *s, const struct wpk_job_entry *job,
                           const char *reason)
{
    char text[WPK_REASON_MAX];
    assert_int_equal(wpk_bind_blocked(s->c, job, 0, text), reason[0] != '\0');
    assert_string_equal(text, reason);
}

static void expect_providers(const struct wpk_job_entry *job, const char *providers)
{
    assert_non_null(job->ops[0].search);
    assert_string_equal(job->ops[0].search->key.providers, providers);
}

/* A job that pins nothing is for all workers of a class, whatever compilers they have. */
static void by_default_nobody_is_left_out(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int with = join(s, "with", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    int without = join(s, "without", WPK_WORKER_ROLES_ALL, "");
    const struct wpk_job_entry *job = submit(s, 1, NULL);
    const struct wpk_job_entry *first = submit(s, 2, "by=halide-cpu");
    expect_providers(job, "halide-cpu");
    expect_providers(first, "halide-cpu");
    assert_int_equal(wpk_fixture_poll(s, with, 2), 2);
    assert_int_equal(wpk_fixture_poll(s, without, 2), 2);
    wpk_fixture_free(s);
}

/* Candidates that may use `c` are built by workers that offer the version that the search began
 * with. */
static void builds_go_to_workers_that_offer_it(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int without = join(s, "without", WPK_WORKER_ROLES_ALL, "");
    int with = join(s, "with", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    int other = join(s, "other", WPK_WORKER_ROLES_ALL, "gcc-13.1.0");
    join(s, "more", WPK_WORKER_RUNS, "");
    assert_int_equal(wpk_fixture_poll(s, without, 2), 0);
    const struct wpk_job_entry *job = submit(s, 1, "Y.tile.k=8;by=halide-cpu+c");
    expect_providers(job, "halide-cpu+c/gcc-12.2.0"); /* of equally many, the first by name */
    assert_int_equal(s->workers[without].held_count, 0);
    assert_int_equal(wpk_fixture_poll(s, other, 2), 0);
    assert_int_equal(wpk_fixture_poll(s, with, 2), 2);
    expect_blocked(s, job, "");
    wpk_fixture_lose(s, with);
    expect_blocked(s, job, "no worker builds for cpu/model/avx2 by c/gcc-12.2.0");
    with = join(s, "again", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    assert_int_equal(wpk_fixture_poll(s, with, 2), 2);
    wpk_fixture_free(s);
}

/* A back end whose version the environment has is an entry without one. */
static void a_version_may_be_the_environments(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_worker(s, "with");
    s->workers[worker].hello.back_end_count = 1;
    s->workers[worker].hello.back_ends[0] = (struct wpk_message_back_end){.name = "c"};
    wpk_fixture_hello(s, worker);
    expect_providers(submit(s, 1, "by=halide-cpu+c"), "halide-cpu+c");
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    wpk_fixture_free(s);
}

/* "any" leaves no builder out. */
static void any_that_all_offer(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    join(s, "runs", WPK_WORKER_RUNS, "");
    join(s, "with", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    join(s, "with, too", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    expect_providers(submit(s, 1, "by=any"), "halide-cpu+c/gcc-12.2.0");
    join(s, "other", WPK_WORKER_ROLES_ALL, "gcc-13.1.0");
    expect_providers(submit(s, 2, "by=any"), "halide-cpu");
    expect_providers(submit(s, 3, "by=halide-cpu+c"), "halide-cpu+c/gcc-12.2.0");
    wpk_fixture_free(s);
}

/* A list is a wish, as far as it has the first; a job that takes no other waits. */
static void nobody_offers_it(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int without = join(s, "without", WPK_WORKER_ROLES_ALL, "");
    const struct wpk_job_entry *both = submit(s, 1, "by=halide-cpu+c");
    expect_providers(both, "halide-cpu");
    assert_int_equal(wpk_fixture_poll(s, without, 2), 2);
    const struct wpk_job_entry *alone = submit(s, 2, "by=c");
    assert_null(alone->ops[0].search);
    expect_blocked(s, alone, "no worker offers the back end c");
    int with = join(s, "with", WPK_WORKER_ROLES_ALL, "clang-14.0.6");
    expect_blocked(s, alone, "");
    expect_providers(alone, "halide-cpu+c/clang-14.0.6");
    expect_providers(both, "halide-cpu"); /* it has begun */
    expect_providers(submit(s, 3, "by=c"), "halide-cpu+c/clang-14.0.6");
    assert_int_equal(wpk_fixture_poll(s, with, 4), 4);
    wpk_fixture_free(s);
}

/* A compiler at workers that may not do the job's work is none. */
static void labels_count(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    join(s, "with", WPK_WORKER_ROLES_ALL, "gcc-12.2.0");
    int without = wpk_fixture_worker(s, "without");
    s->workers[without].hello.labels[0] = (struct wpk_worker_label){"zone", "b"};
    s->workers[without].hello.label_count = 1;
    wpk_fixture_hello(s, without);
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, 1);
    job->ops[0].pins = strdup("by=halide-cpu+c");
    job->labels[0] = (struct wpk_worker_label){"zone", "b"};
    job->label_count = 1;
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    expect_providers(submitted, "halide-cpu");
    assert_int_equal(wpk_fixture_poll(s, without, 2), 2);
    wpk_fixture_free(s);
}

/* A worker that only runs artifacts of others needs no compiler. */
static void a_builder_offers_it_for_others(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int runner = join(s, "runner", WPK_WORKER_RUNS, NULL);
    join(s, "a", WPK_WORKER_BUILDS, "gcc-12.2.0");
    join(s, "b", WPK_WORKER_BUILDS, "gcc-13.1.0");
    int builder = join(s, "c", WPK_WORKER_BUILDS, "gcc-13.1.0");
    const struct wpk_job_entry *job = submit(s, 1, "by=c");
    expect_providers(job, "halide-cpu+c/gcc-13.1.0"); /* that of more workers */
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
    assert_int_equal(s->workers[builder].held[0].stage, WPK_STAGE_BUILD);
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    assert_int_equal(s->workers[runner].held[0].stage, WPK_STAGE_RUN);
    wpk_fixture_free(s);
}

/* After a restart a search goes on by the same compiler, or after a while another one begins. */
static void bound_to_a_compiler(void **state)
{
    (void)state;
    static const char bound[] = "cpu/model/avx2\ncodegen=1;halide=21\nhalide-cpu+c/gcc-12.2.0";
    char text[WPK_TIMING_CLASS_TEXT_MAX], again[WPK_TIMING_CLASS_TEXT_MAX];
    wpk_timing_class_strip(bound, text);
    assert_string_equal(text, "cpu/model/avx2\ncodegen=1;halide=21\nhalide-cpu");
    wpk_timing_class_add(text, "+c/gcc-12.2.0", again);
    assert_string_equal(again, bound);
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, 1);
    assert_false(wpk_offer_stands(s->c, job, bound));
    assert_true(wpk_offer_stands(s->c, job, text));
    int other = join(s, "other", WPK_WORKER_ROLES_ALL, "gcc-13.1.0");
    job->ops[0].pins = strdup("by=halide-cpu+c");
    job->ops[0].bound = strdup(bound);
    job->restored_ns = s->now_ns + 1;
    const struct wpk_job_entry *submitted = wpk_fixture_submit(s, job);
    expect_providers(submitted, "halide-cpu+c/gcc-12.2.0");
    for (uint64_t ms = 0; ms < WPK_RETURN_MS; ms += 8000) {
        assert_int_equal(wpk_fixture_poll(s, other, 1), 0);
        wpk_fixture_wait(s, 8000);
    }
    expect_providers(submitted, "halide-cpu+c/gcc-13.1.0");
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_nobody_is_left_out),
        cmocka_unit_test(builds_go_to_workers_that_offer_it),
        cmocka_unit_test(a_version_may_be_the_environments),
        cmocka_unit_test(any_that_all_offer),
        cmocka_unit_test(nobody_offers_it),
        cmocka_unit_test(labels_count),
        cmocka_unit_test(a_builder_offers_it_for_others),
        cmocka_unit_test(bound_to_a_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
