/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/tune.h"

#include "common/clock.h"
#include "schema/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAREST "nearest" /* the strategy that begins with schedules of the same shape */
/* Candidates of a place: of those of a search one in so many, and no more than these. */
#define PLACE_SHARE 3
#define PLACE_CANDIDATES_MAX 3
/* A shorter step of several threads may not be worth waking them, 5 to 50 us (pool.h): its form
 * for one thread is tuned, too. */
#define ONE_THREAD_NS 50000

/* A tuning under way. */
struct tuning {
    const struct wpk_tune_rounds_options *options;
    struct wpk_tune_rounds *out;
    uint64_t until_ns; /* 0: never */
    bool *wanted;      /* [kernel_count] operators of the next round */
    int *order;        /* [kernel_count] kernels, the heaviest first */
};

void wpk_tune_tell(const struct wpk_tune_source *source, enum wpk_tune_notice kind,
                   const char *format, ...)
{
    struct wpk_buf text = {0};
    va_list args;

    if (source->notice != NULL) {
        va_start(args, format);
        wpk_buf_vprintf(&text, format, args);
        va_end(args);
        source->notice(source->user, kind, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

static int kernel_count(const struct tuning *t)
{
    return t->options->model->kernel_count;
}

void wpk_tune_rounds_fini(struct wpk_tune_rounds *rounds)
{
    for (int r = 0; r < rounds->round_count; r++) {
        wpk_arena_fini(&rounds->rounds[r].arena);
    }
    free(rounds->kernels);
    free(rounds->tried);
    free(rounds->failed);
    free(rounds->found.kernels);
    *rounds = (struct wpk_tune_rounds){.round_count = 0};
}

/* ---- one round */

/* Time of the kernel that the plan would have: a generated one. */
static uint64_t own_ns(const struct wpk_api_kernel *kernel)
{
    return kernel->own.provider != NULL ? kernel->own.time.median_ns
                                        : kernel->served.time.median_ns;
}

/* Time of all calls of a kernel in a run of the model: measured, if a round did so. */
static double weight(const struct tuning *t, int k)
{
    const struct wpk_tune_kernel *kernel = &t->options->model->kernels[k];
    const struct wpk_api_kernel *found = &t->out->kernels[k];
    double ns = found->name != NULL ? (double)own_ns(found) : kernel->expected.ns;

    return (double)kernel->calls * ns;
}

/* A later round's kernel takes the place of an earlier one; of one thread, if it is faster. */
static void take(struct tuning *t, const struct wpk_api_job *job)
{
    const struct wpk_job *asked = t->options->job;

    for (int k = 0; k < kernel_count(t); k++) {
        for (int i = 0; i < job->kernel_count; i++) {
            const struct wpk_api_kernel *found = &job->kernels[i];
            struct wpk_api_kernel *kernel = &t->out->kernels[k];
            bool is_other_form = kernel->name != NULL && found->threads != kernel->threads;
            if (strcmp(found->name, asked->ops[k].name) == 0 &&
                (!is_other_form || own_ns(found) < own_ns(kernel))) {
                *kernel = *found;
            }
        }
        for (int i = 0; i < job->op_count; i++) {
            if (strcmp(job->ops[i].name, asked->ops[k].name) == 0) {
                t->out->tried[k] = t->out->tried[k] || job->ops[i].measured > 0;
                t->out->failed[k] = t->out->failed[k] || job->ops[i].failed > 0;
            }
        }
    }
}

/* Follow a job of the wanted operators, if there are any.
 *   shape   strategy: NULL: that of the job, with its options */
static wpk_err run_with(struct tuning *t, const char *strategy, int64_t candidates, int threads,
                        struct wpk_diag *diag)
{
    struct wpk_tune_round *round = &t->out->rounds[t->out->round_count];
    struct wpk_job job = *t->options->job;
    struct wpk_job_op *ops = WPK_DEMAND(calloc((size_t)kernel_count(t) + 1, sizeof(*ops)));

    for (int k = 0; k < kernel_count(t); k++) {
        int at = k;
        for (; at > 0 && weight(t, t->order[at - 1]) < weight(t, k); at--) {
            t->order[at] = t->order[at - 1];
        }
        t->order[at] = k;
    }
    job.ops = ops;
    job.op_count = 0;
    for (int i = 0; i < kernel_count(t); i++) {
        if (t->wanted[t->order[i]]) {
            ops[job.op_count++] = t->options->job->ops[t->order[i]]; /* borrowed */
        }
    }
    job.candidates = candidates;
    job.threads = threads;
    if (strategy != NULL) {
        snprintf(job.strategy, sizeof(job.strategy), "%s", strategy);
        job.options[0] = '\0';
        job.prior[0] = '\0';
        job.prior_text = NULL;
        job.total = 0;
    }
    wpk_err err = WPK_OK;
    if (job.op_count > 0) {
        const struct wpk_tune_source *source = t->options->source;
        WPK_ASSERT(t->out->round_count < WPK_TUNE_ROUNDS_MAX);
        t->out->round_count++;
        err = source->run(source->user, &job, t->until_ns, &round->arena, &round->job, diag);
    }
    if (err == WPK_OK && job.op_count > 0 && round->job.state != NULL) {
        take(t, &round->job);
    }
    free(ops);
    return err;
}

static wpk_err run(struct tuning *t, const char *strategy, int64_t candidates,
                   struct wpk_diag *diag)
{
    return run_with(t, strategy, candidates, t->options->job->threads, diag);
}

/* ---- all rounds */

static bool is_interrupted(const struct tuning *t)
{
    const struct wpk_tune_source *source = t->options->source;

    return source->is_interrupted != NULL && source->is_interrupted(source->user);
}

static bool is_over(const struct tuning *t)
{
    return is_interrupted(t) ||
           (t->until_ns != 0 && wpk_clock_now_ns(wpk_clock_system()) >= t->until_ns);
}

static bool is_place(const struct tuning *t, int k)
{
    return !t->options->search_places && t->options->model->kernels[k].base != k;
}

/* True if the operator has a kernel that was made from a candidate. */
static bool has_own(const struct wpk_tune_rounds *rounds, int k)
{
    const struct wpk_api_kernel *kernel = &rounds->kernels[k];

    return kernel->name != NULL && kernel->own.provider != NULL &&
           strcmp(kernel->own.provider, WPK_PLAIN_PROVIDER) != 0;
}

bool wpk_tune_rounds_is_hopeless(const struct wpk_tune_rounds *rounds, int k)
{
    return rounds->failed[k] && !rounds->tried[k] && !has_own(rounds, k);
}

static wpk_err run_searches(struct tuning *t, int64_t candidates, struct wpk_diag *diag)
{
    for (int k = 0; k < kernel_count(t); k++) {
        t->wanted[k] = !is_place(t, k);
    }
    return run(t, NULL, candidates, diag);
}

/* A place that no schedule fits is searched. */
static wpk_err run_places(struct tuning *t, int64_t candidates, struct wpk_diag *diag)
{
    int64_t few = candidates / PLACE_SHARE;

    few = few < 1 ? 1 : few > PLACE_CANDIDATES_MAX ? PLACE_CANDIDATES_MAX : few;
    for (int k = 0; k < kernel_count(t); k++) {
        t->wanted[k] = is_place(t, k);
    }
    wpk_err err = run(t, NEAREST, few, diag);
    for (int k = 0; k < kernel_count(t); k++) {
        t->wanted[k] = is_place(t, k) && !has_own(t->out, k);
    }
    return err == WPK_OK && !is_over(t) ? run(t, NULL, candidates, diag) : err;
}

/* Operators of which some candidates were measured get their winner; the others one candidate. */
static wpk_err complete(struct tuning *t, struct wpk_diag *diag)
{
    const struct wpk_tune_source *source = t->options->source;
    uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
    int missing = 0;
    for (int k = 0; k < kernel_count(t); k++) {
        missing += t->out->kernels[k].name == NULL;
    }

    wpk_tune_tell(source, WPK_TUNE_PROGRESS,
                  "%s; a plan needs a kernel of every operator: the %d without one get one "
                  "candidate (Ctrl-C%s: no plan)",
                  t->out->interrupted ? "interrupted" : "the time is over", missing,
                  t->out->interrupted ? " again" : "");
    if (source->go_on != NULL) {
        source->go_on(source->user);
    }
    t->until_ns = 0;
    for (int k = 0; k < kernel_count(t); k++) {
        t->wanted[k] = t->out->kernels[k].name == NULL && t->out->tried[k];
    }
    wpk_err err = run(t, NULL, 1, diag);
    for (int k = 0; k < kernel_count(t); k++) {
        t->wanted[k] = t->out->kernels[k].name == NULL;
    }
    err = err == WPK_OK && !is_over(t) ? run(t, NEAREST, 1, diag) : err;
    if (missing > 0) {
        wpk_tune_tell(source, WPK_TUNE_PROGRESS, "these took %.0f s more",
                      (double)(wpk_clock_now_ns(wpk_clock_system()) - began_ns) / WPK_NS_PER_S);
    }
    return err;
}

/* The rounds as one answer: of a job that is not done, if there is one. */
static void gather(struct tuning *t)
{
    struct wpk_tune_rounds *out = t->out;
    struct wpk_api_job *found = &out->found;
    double seconds = 0;
    bool whole = true;

    found->kernels = WPK_DEMAND(calloc((size_t)kernel_count(t) + 1, sizeof(*found->kernels)));
    for (int i = 0; i < kernel_count(t); i++) {
        const struct wpk_api_kernel *kernel = &out->kernels[t->order[i]];
        whole = whole && kernel->name != NULL;
        if (kernel->name != NULL) {
            found->kernels[found->kernel_count++] = *kernel;
        }
    }
    for (int r = 0; r < out->round_count; r++) {
        const struct wpk_api_job *job = &out->rounds[r].job;
        seconds += job->seconds;
        if (job->state != NULL &&
            (found->id == NULL || (!whole && strcmp(found->state, "done") == 0))) {
            found->id = job->id;
            found->name = job->name;
            found->owner = job->owner;
            found->state = job->state;
            found->reason = job->reason;
            found->created = job->created;
        }
    }
    if (whole) {
        found->state = "done";
        found->reason = "";
    }
    found->seconds = seconds;
}

static wpk_err run_all(struct tuning *t, struct wpk_diag *diag)
{
    const struct wpk_job *job = t->options->job;
    wpk_err err = WPK_OK;

    /* Each round has finals of its own, which are a tenth of the time (docs/models.md). */
    if (t->until_ns != 0 && job->total == 0 && job->candidates > 1) {
        err = run_searches(t, 1, diag);
    }
    if (err == WPK_OK && !is_over(t)) {
        err = run_searches(t, job->candidates, diag);
    }
    if (err == WPK_OK && !is_over(t)) {
        err = run_places(t, job->candidates, diag);
    }
    if (err == WPK_OK && !is_over(t) && job->threads > 1) {
        /* Short steps with one thread. */
        int64_t candidates = job->candidates;
        for (int k = 0; k < kernel_count(t); k++) {
            const struct wpk_api_kernel *kernel = &t->out->kernels[k];
            t->wanted[k] = kernel->name != NULL && own_ns(kernel) < ONE_THREAD_NS;
        }
        err = run_with(t, NULL, candidates, 1, diag);
    }
    t->out->interrupted = is_interrupted(t);
    t->out->is_cut = is_over(t);
    return err == WPK_OK && t->out->is_cut ? complete(t, diag) : err;
}

wpk_err wpk_tune_rounds_run(const struct wpk_tune_rounds_options *options,
                            struct wpk_tune_rounds *out, struct wpk_diag *diag)
{
    size_t count = (size_t)options->model->kernel_count + 1;
    struct tuning t = {.options = options,
                       .out = out,
                       .until_ns = options->until_ns,
                       .wanted = WPK_DEMAND(calloc(count, sizeof(*t.wanted))),
                       .order = WPK_DEMAND(calloc(count, sizeof(*t.order)))};

    out->kernels = WPK_DEMAND(calloc(count, sizeof(*out->kernels)));
    out->tried = WPK_DEMAND(calloc(count, sizeof(*out->tried)));
    out->failed = WPK_DEMAND(calloc(count, sizeof(*out->failed)));
    wpk_err err = run_all(&t, diag);
    if (err == WPK_OK) {
        gather(&t);
    }
    free(t.wanted);
    free(t.order);
    return err;
}
