/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning of a model by a service that a script plays: the jobs that it gets, and the kernels
 * that are taken. */
#include "model/plan/tune.h"

#include "common/clock.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS_MAX = 12, KERNELS_MAX = 8 };

/* A service that measures as many operators of a job as it is told. */
struct script {
    struct wpk_buf jobs; /* "strategy candidates threads: op op\n" of each job */
    int job_count;
    int interrupted_at;           /* job during which Ctrl-C comes; 0: none */
    const char *hopeless;         /* operator whose candidates fail in the first job; NULL: none */
    uint64_t ns;                  /* time of every kernel */
    uint64_t one_thread_ns;       /* likewise, where a job asks for one thread */
    double expected[KERNELS_MAX]; /* of each operator; 0: not known */
    bool is_interrupted;
    int fetched;
};

static wpk_err run(void *user, const struct wpk_job *job, uint64_t until_ns,
                   struct wpk_arena *arena, struct wpk_api_job *out, struct wpk_diag *diag)
{
    struct script *script = user;

    (void)until_ns, (void)diag;
    script->is_interrupted = ++script->job_count == script->interrupted_at;
    wpk_buf_printf(&script->jobs, "%s %lld %d:", job->strategy, (long long)job->candidates,
                   job->threads);
    *out = (struct wpk_api_job){.id = "j1", .name = "model", .state = "done", .reason = ""};
    out->ops = WPK_ARENA_NEW(arena, struct wpk_api_op, (size_t)job->op_count);
    out->kernels = WPK_ARENA_NEW(arena, struct wpk_api_kernel, (size_t)job->op_count);
    assert_true(out->ops != NULL && out->kernels != NULL);
    for (int i = 0; i < job->op_count; i++) {
        const char *name = wpk_arena_copy_text(arena, job->ops[i].name);
        bool fails = script->hopeless != NULL && script->job_count == 1 &&
                     strcmp(script->hopeless, name) == 0;
        wpk_buf_printf(&script->jobs, " %s", name);
        out->ops[out->op_count++] =
            (struct wpk_api_op){.name = name, .measured = fails ? 0 : 1, .failed = fails ? 1 : 0};
        if (!fails && !script->is_interrupted) {
            out->kernels[out->kernel_count++] = (struct wpk_api_kernel){
                .name = name,
                .threads = job->threads,
                .own = {.provider = "c",
                        .time.median_ns = job->threads == 1 && script->one_thread_ns > 0
                                              ? script->one_thread_ns
                                              : script->ns}};
        }
    }
    wpk_buf_append_byte(&script->jobs, '\n');
    return WPK_OK;
}

static wpk_err fetch(void *user, const struct wpk_api_kernel *kernel, struct wpk_buf *object,
                     struct wpk_diag *diag)
{
    struct script *script = user;

    (void)kernel, (void)diag;
    wpk_buf_append_text(object, "no ELF file");
    script->fetched++;
    return WPK_OK;
}

static wpk_err expect(void *user, const struct wpk_job *job, struct wpk_tune_expected *out,
                      struct wpk_diag *diag)
{
    struct script *script = user;

    (void)diag;
    for (int i = 0; i < job->op_count && i < KERNELS_MAX; i++) {
        out[i] =
            (struct wpk_tune_expected){.ns = script->expected[i], .from = WPK_TUNE_FROM_MEASURED};
    }
    return WPK_OK;
}

static bool is_interrupted(void *user)
{
    const struct script *script = user;

    return script->is_interrupted;
}

static void go_on(void *user)
{
    struct script *script = user;

    script->is_interrupted = false;
}

/* A model and its tuning. */
struct bench {
    struct wpk_model_fixture model;
    struct wpk_model_fixing fixing;
    struct wpk_tune_source source;
    struct wpk_tune tune;
    struct script script;
};

/* y = Relu(MatMul(x, w)), and z = Softmax(y): two kernels of other equations. */
static void begin(struct bench *b, int64_t cache_bytes)
{
    struct wpk_buf problems = {0};
    struct wpk_diag diag = {0};

    *b = (struct bench){.script = {.ns = 100000}};
    wpk_model_fixture_input(&b->model, "x", "f32[6,24]");
    wpk_model_fixture_constant(&b->model, "w", "f32[24,6]", NULL);
    wpk_model_fixture_node(&b->model, "MatMul", "x,w", "t", "");
    wpk_model_fixture_node(&b->model, "Relu", "t", "y", "");
    wpk_model_fixture_node(&b->model, "Softmax", "y", "z", "axis:i=1");
    wpk_model_fixture_output(&b->model, "z");
    b->source = (struct wpk_tune_source){.run = run,
                                         .fetch = fetch,
                                         .expect = expect,
                                         .is_interrupted = is_interrupted,
                                         .go_on = go_on,
                                         .user = &b->script};
    b->tune.options = (struct wpk_tune_options){
        .path = wpk_model_fixture_write(&b->model, SIZE_MAX),
        .fixing = &b->fixing,
        .wanted.accuracy = WPK_ACCURACY_STANDARD,
        .machine = {.roofline = {1e9, 1e9}, .cache_bytes = cache_bytes},
        .source = &b->source,
    };
    wpk_job_init(&b->tune.job);
    b->tune.job.candidates = 6;
    assert_int_equal(wpk_tune_read(&b->tune, &problems, &diag), WPK_OK);
    assert_int_equal(wpk_tune_make_job(&b->tune, &diag), WPK_OK);
    wpk_buf_fini(&problems);
}

static void end(struct bench *b)
{
    wpk_buf_fini(&b->script.jobs);
    wpk_tune_fini(&b->tune);
    wpk_model_fixture_fini(&b->model);
}

static void expect_jobs(struct bench *b, const char *jobs)
{
    struct wpk_diag diag = {0};

    if (wpk_tune_run(&b->tune, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_string_equal(wpk_buf_text(&b->script.jobs), jobs);
}

/* ---- the job */

static void test_job_has_an_operator_for_each_region(void **state)
{
    const struct wpk_job *job;
    struct bench b;
    (void)state;

    begin(&b, 0);
    job = &b.tune.job;
    assert_int_equal(job->op_count, 2);
    assert_string_equal(job->ops[0].name, "MatMul1");
    assert_string_equal(job->ops[0].notation, "Y[d0,d1] = relu(sum(k:24) X[d0,k] * X1[k,d1])");
    assert_int_equal(job->ops[0].tensor_count, 3);
    assert_false(job->ops[0].tensors[0].constant);
    assert_true(job->ops[0].tensors[1].constant);
    assert_string_equal(job->ops[0].tensors[1].type, "f32[24,6]");
    assert_int_equal(job->ops[0].conditions, WPK_CONDITIONS_WARM);
    end(&b);
}

/* 576 bytes of constants leave a cache of 512, which is that of the machine that times. */
static void test_constants_are_cold_by_the_timing_machine(void **state)
{
    struct wpk_diag diag = {0};
    struct bench b;
    (void)state;

    begin(&b, 512);
    assert_int_equal(b.tune.job.ops[0].conditions, WPK_CONDITIONS_COLD_CONSTANTS);
    assert_int_equal(b.tune.job.ops[1].conditions, WPK_CONDITIONS_WARM); /* it has none */
    b.tune.options.machine.cache_bytes = 1024;
    assert_int_equal(wpk_tune_make_job(&b.tune, &diag), WPK_OK);
    assert_int_equal(b.tune.job.ops[0].conditions, WPK_CONDITIONS_WARM);
    b.tune.options.wanted.has_conditions = true;
    b.tune.options.wanted.conditions = WPK_CONDITIONS_COLD;
    assert_int_equal(wpk_tune_make_job(&b.tune, &diag), WPK_OK);
    assert_int_equal(b.tune.job.ops[1].conditions, WPK_CONDITIONS_COLD);
    end(&b);
}

static void test_views_need_no_job(void **state)
{
    struct wpk_buf problems = {0}, plan = {.size_max = 1 << 20};
    struct wpk_model_fixture model = {0};
    struct wpk_model_fixing fixing = {0};
    struct wpk_tune_source source = {.notice = NULL};
    struct wpk_diag diag = {0};
    (void)state;

    wpk_model_fixture_input(&model, "x", "f32[2,3]");
    wpk_model_fixture_constant(&model, "s", "i64[1]", "6");
    wpk_model_fixture_node(&model, "Reshape", "x,s", "y", "");
    wpk_model_fixture_output(&model, "y");
    struct wpk_tune tune = {.options = {.path = wpk_model_fixture_write(&model, SIZE_MAX),
                                        .fixing = &fixing,
                                        .source = &source,
                                        .verify = true}};
    wpk_job_init(&tune.job);
    assert_int_equal(wpk_tune_read(&tune, &problems, &diag), WPK_OK);
    assert_int_equal(tune.model.kernel_count, 0);
    assert_int_equal(wpk_tune_make_job(&tune, &diag), WPK_OK);
    if (wpk_tune_plan(&tune, &plan, &diag) != WPK_OK) { /* checked and verified, too */
        fail_msg("%s", diag.text);
    }
    assert_true(plan.size > 0);
    wpk_buf_fini(&plan);
    wpk_buf_fini(&problems);
    wpk_tune_fini(&tune);
    wpk_model_fixture_fini(&model);
}

static void test_problems_are_listed(void **state)
{
    struct wpk_buf problems = {0};
    struct wpk_model_fixture model = {0};
    struct wpk_model_fixing fixing = {0};
    struct wpk_diag diag = {0};
    (void)state;

    wpk_model_fixture_input(&model, "x", "f32[2,3]");
    wpk_model_fixture_node(&model, "Unheard", "x", "y", "");
    wpk_model_fixture_output(&model, "y");
    struct wpk_tune tune = {
        .options = {.path = wpk_model_fixture_write(&model, SIZE_MAX), .fixing = &fixing}};
    assert_int_equal(wpk_tune_read(&tune, &problems, &diag), WPK_EUNSUPPORTED);
    assert_non_null(strstr(wpk_buf_text(&problems), "Unheard"));
    assert_non_null(strstr(diag.text, "1 problem, listed above"));
    wpk_buf_fini(&problems);
    wpk_tune_fini(&tune);
    wpk_model_fixture_fini(&model);
}

/* ---- rounds */

static void test_one_round_without_a_limit(void **state)
{
    struct bench b;
    (void)state;

    begin(&b, 0);
    b.script.expected[0] = 10;
    b.script.expected[1] = 20; /* the heaviest comes first */
    expect_jobs(&b, "auto 6 1: Softmax2 MatMul1\n");
    assert_int_equal(b.tune.rounds.found.kernel_count, 2);
    assert_string_equal(b.tune.rounds.found.state, "done");
    assert_false(b.tune.rounds.is_cut);
    end(&b);
}

/* With a limit each operator gets a kernel before any gets more. */
static void test_a_limit_begins_with_one_candidate(void **state)
{
    struct bench b;
    (void)state;

    begin(&b, 0);
    b.script.expected[0] = 20;
    b.script.expected[1] = 10;
    b.tune.options.seconds = 1000;
    expect_jobs(&b, "auto 1 1: MatMul1 Softmax2\nauto 6 1: MatMul1 Softmax2\n");
    end(&b);
}

/* After Ctrl-C operators of which candidates were measured get their winner. */
static void test_an_interrupted_tuning_is_completed(void **state)
{
    struct bench b;
    (void)state;

    begin(&b, 0);
    b.script.expected[0] = 20;
    b.script.expected[1] = 10;
    b.script.interrupted_at = 1;
    expect_jobs(&b, "auto 6 1: MatMul1 Softmax2\nauto 1 1: MatMul1 Softmax2\n");
    assert_true(b.tune.rounds.interrupted && b.tune.rounds.is_cut);
    assert_string_equal(b.tune.rounds.found.state, "done");
    end(&b);
}

/* Short steps of several threads are tuned for one, and the faster form is taken. */
static void test_short_steps_are_tuned_for_one_thread(void **state)
{
    static const uint64_t one_thread[] = {20000, 40000};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        begin(&b, 0);
        b.tune.job.threads = 2;
        b.script.ns = 30000;
        b.script.one_thread_ns = one_thread[i];
        b.script.expected[0] = 20;
        b.script.expected[1] = 10;
        expect_jobs(&b, "auto 6 2: MatMul1 Softmax2\nauto 6 1: MatMul1 Softmax2\n");
        assert_int_equal(b.tune.rounds.found.kernels[0].threads, i == 0 ? 1 : 2);
        end(&b);
    }
}

/* The product loses its Relu, which becomes part of the next operator. */
static void test_a_hopeless_region_is_cut(void **state)
{
    struct bench b;
    (void)state;

    begin(&b, 0);
    b.script.expected[0] = 20;
    b.script.expected[1] = 10;
    b.script.hopeless = "MatMul1";
    expect_jobs(&b, "auto 6 1: MatMul1 Softmax2\nauto 6 1: MatMul1 Softmax2\n");
    assert_string_equal(b.tune.job.ops[0].notation, "Y[d0,d1] = sum(k:24) X[d0,k] * X1[k,d1]");
    assert_string_equal(b.tune.rounds.found.state, "done");
    end(&b);
}

/* ---- what is expected */

/* An operator that history does not know takes its roofline over the share of the others. */
static void test_estimates_follow_history(void **state)
{
    struct wpk_estimate_sum sum;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    struct bench b;
    (void)state;

    begin(&b, 0);
    struct wpk_tune_kernel *kernels = b.tune.model.kernels;
    assert_int_equal(
        wpk_estimate_model(NULL, &b.tune.job, &b.tune.options.machine, &b.tune.model, &diag),
        WPK_OK);
    double alone = kernels[1].expected.ns;
    b.script.expected[0] = 2 * kernels[0].expected.ns;
    assert_int_equal(
        wpk_estimate_model(&b.source, &b.tune.job, &b.tune.options.machine, &b.tune.model, &diag),
        WPK_OK);
    assert_int_equal(kernels[0].expected.from, WPK_TUNE_FROM_MEASURED);
    assert_int_equal(kernels[1].expected.from, WPK_TUNE_FROM_ROOFLINE);
    assert_true(kernels[1].expected.ns > 1.99 * alone && kernels[1].expected.ns < 2.01 * alone);
    wpk_estimate_sum(&b.tune.model, 0, &sum);
    assert_true(sum.ns > sum.roofline_ns);
    wpk_estimate_print_steps(&sum, &text);
    assert_string_equal(wpk_buf_text(&text), "measured 1, roofline 1");
    wpk_buf_fini(&text);
    end(&b);
}

/* ---- the plan */

static void test_a_kernel_that_is_none_makes_no_plan(void **state)
{
    struct wpk_buf plan = {.size_max = 1 << 20};
    struct wpk_diag diag = {0};
    struct bench b;
    (void)state;

    begin(&b, 0);
    assert_int_equal(wpk_tune_run(&b.tune, &diag), WPK_OK);
    assert_true(wpk_tune_plan(&b.tune, &plan, &diag) != WPK_OK);
    assert_int_equal(b.script.fetched, 2);
    assert_true(diag.text[0] != '\0');
    b.tune.rounds.found.kernel_count--;
    diag = (struct wpk_diag){0};
    wpk_buf_reset(&plan);
    assert_int_equal(wpk_tune_plan(&b.tune, &plan, &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "has no kernel; wpkctl why"));
    wpk_buf_fini(&plan);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_has_an_operator_for_each_region),
        cmocka_unit_test(test_constants_are_cold_by_the_timing_machine),
        cmocka_unit_test(test_views_need_no_job),
        cmocka_unit_test(test_problems_are_listed),
        cmocka_unit_test(test_one_round_without_a_limit),
        cmocka_unit_test(test_a_limit_begins_with_one_candidate),
        cmocka_unit_test(test_an_interrupted_tuning_is_completed),
        cmocka_unit_test(test_short_steps_are_tuned_for_one_thread),
        cmocka_unit_test(test_a_hopeless_region_is_cut),
        cmocka_unit_test(test_estimates_follow_history),
        cmocka_unit_test(test_a_kernel_that_is_none_makes_no_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
