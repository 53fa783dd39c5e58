/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/tune.h"

#include "common/clock.h"
#include "common/format.h"
#include "common/fs.h"
#include "model/plan/check_plan.h"
#include "schema/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEED 1 /* of the inputs that are drawn */
#define ALIGNMENT ((size_t)64)
/* Verification of a whole plan takes at most this part of the tuning's time, unless it is asked
 * for. */
#define VERIFY_SHARE 0.1
/* Operations of a model in a second of the interpreter: half the rate of products on a slow core.
 */
#define INTERPRETED_FLOPS_PER_S 1e8

void wpk_tune_fini(struct wpk_tune *tuning)
{
    wpk_tune_rounds_fini(&tuning->rounds);
    wpk_tune_model_fini(&tuning->model);
    wpk_job_fini(&tuning->job);
    *tuning = (struct wpk_tune){.begun_ns = 0};
}

wpk_err wpk_tune_read(struct wpk_tune *tuning, struct wpk_buf *problems, struct wpk_diag *diag)
{
    tuning->begun_ns = wpk_clock_now_ns(wpk_clock_system());
    return wpk_tune_model_read(tuning->options.path, tuning->options.fixing, &tuning->model,
                               problems, diag);
}

wpk_err wpk_tune_make_job(struct wpk_tune *tuning, struct wpk_diag *diag)
{
    return wpk_tune_model_job(&tuning->model, &tuning->options.wanted,
                              tuning->options.machine.cache_bytes, &tuning->job, diag);
}

/* ---- the kernels */

static void tell_expected(const struct wpk_tune *tuning, int shape)
{
    struct wpk_estimate_sum sum;
    struct wpk_buf steps = {0};
    char ns[WPK_FORMAT_SIZE];

    wpk_estimate_sum(&tuning->model, shape, &sum);
    wpk_format_ns((uint64_t)sum.ns, ns);
    wpk_estimate_print_steps(&sum, &steps);
    wpk_tune_tell(tuning->options.source, WPK_TUNE_PROGRESS, "expected: %s a run; steps: %s", ns,
                  wpk_buf_text(&steps));
    wpk_buf_fini(&steps);
}

/* Expect times of the model's operators. They decide what is tuned first: where history cannot be
 * asked, rooflines do. */
static wpk_err estimate(struct wpk_tune *tuning, struct wpk_diag *diag)
{
    bool is_known = false;

    wpk_err err = wpk_estimate_model(tuning->options.source, &tuning->job, &tuning->options.machine,
                                     &tuning->model, diag);
    for (int k = 0; k < tuning->model.kernel_count; k++) {
        is_known = is_known || tuning->model.kernels[k].expected.from != WPK_TUNE_FROM_ROOFLINE;
    }
    for (int s = 0; s < tuning->model.shape_count && is_known; s++) {
        tell_expected(tuning, s);
    }
    if (err != WPK_OK && err != WPK_ENOMEM) {
        *diag = (struct wpk_diag){0};
        err = WPK_OK;
    }
    return err;
}

static wpk_err run_rounds(struct wpk_tune *tuning, uint64_t until_ns, struct wpk_diag *diag)
{
    const struct wpk_tune_rounds_options options = {.model = &tuning->model,
                                                    .job = &tuning->job,
                                                    .source = tuning->options.source,
                                                    .search_places = tuning->options.search_places,
                                                    .until_ns = until_ns};

    wpk_err err = estimate(tuning, diag);
    return err == WPK_OK ? wpk_tune_rounds_run(&options, &tuning->rounds, diag) : err;
}

/* Cut regions for which every candidate failed into smaller ones.
 *   shape   *count: the groups of nodes that were cut */
static wpk_err split_hopeless(struct wpk_tune *tuning, int *count, struct wpk_diag *diag)
{
    struct wpk_tune_model *model = &tuning->model;
    bool *is_hopeless = WPK_DEMAND(calloc((size_t)model->kernel_count + 1, sizeof(*is_hopeless)));

    *count = 0;
    for (int k = 0; k < model->kernel_count; k++) {
        is_hopeless[k] = wpk_tune_rounds_is_hopeless(&tuning->rounds, k);
    }
    wpk_err err = wpk_tune_model_split(model, tuning->options.path, tuning->options.fixing,
                                       is_hopeless, count, diag);
    free(is_hopeless);
    if (err == WPK_OK && *count > 0) {
        wpk_tune_tell(tuning->options.source, WPK_TUNE_PROGRESS,
                      "no candidate works for %d group%s of nodes; smaller ones are tried", *count,
                      *count == 1 ? "" : "s");
        wpk_tune_rounds_fini(&tuning->rounds);
        err = wpk_tune_make_job(tuning, diag);
    }
    return err;
}

wpk_err wpk_tune_run(struct wpk_tune *tuning, struct wpk_diag *diag)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());
    uint64_t until_ns =
        tuning->options.seconds > 0 ? now_ns + (uint64_t)tuning->options.seconds * WPK_NS_PER_S : 0;

    wpk_err err = run_rounds(tuning, until_ns, diag);
    for (int count = 1; err == WPK_OK && count > 0 && !tuning->rounds.is_cut;) {
        err = split_hopeless(tuning, &count, diag);
        if (err == WPK_OK && count > 0) {
            err = run_rounds(tuning, until_ns, diag);
        }
    }
    return err;
}

/* ---- the plan */

/* The tensors of one call of a plan. */
struct tensors {
    struct wpk_tensor_data *list; /* owned, as their data; [count] inputs, then outputs */
    size_t count;
};

static wpk_err add_tensor(struct tensors *tensors, const struct wpk_argument *argument)
{
    size_t bytes = wpk_tensor_type_bytes(&argument->type);
    void *data = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);

    if (data == NULL) {
        return WPK_ENOMEM;
    }
    tensors->list[tensors->count++] =
        (struct wpk_tensor_data){.name = argument->name, .data = data, .size = bytes};
    return WPK_OK;
}

/* Allocate the tensors of a set of shapes, and draw the inputs from what the model allows. */
static wpk_err draw_tensors(const struct wpk_model *model, size_t shape, struct tensors *out)
{
    size_t inputs = wpk_model_input_count(model);
    size_t outputs = wpk_model_output_count(model);

    out->list = WPK_DEMAND(calloc(inputs + outputs + 1, sizeof(*out->list)));
    wpk_err err = WPK_OK;
    for (size_t i = 0; err == WPK_OK && i < inputs; i++) {
        const struct wpk_argument *argument = wpk_model_input(model, shape, i);
        struct wpk_domain domain;
        wpk_model_input_domain(model, shape, i, &domain.low, &domain.high);
        err = add_tensor(out, argument);
        if (err == WPK_OK) {
            wpk_draw_in_domain(SEED, argument->name, argument->type.dtype, domain,
                               wpk_tensor_type_elements(&argument->type), out->list[i].data);
        }
    }
    for (size_t i = 0; err == WPK_OK && i < outputs; i++) {
        err = add_tensor(out, wpk_model_output(model, shape, i));
    }
    return err;
}

/* Decide whether the plan is compared with the whole model, and say if not. */
static bool is_verified(const struct wpk_tune *tuning, size_t shape)
{
    const struct wpk_assemble_shape *here = &tuning->model.shapes[shape];
    double flops = 0;

    for (int r = 0; r < here->regions.count; r++) {
        const struct wpk_tune_kernel *kernel = &tuning->model.kernels[here->kernel[r]];
        flops += kernel->cost.flops * (double)here->regions.list[r].count;
    }
    uint64_t spent_ns = wpk_clock_now_ns(wpk_clock_system()) - tuning->begun_ns;
    double needed = flops / INTERPRETED_FLOPS_PER_S;
    bool is_cheap = needed <= VERIFY_SHARE * (double)spent_ns / WPK_NS_PER_S;
    if (!is_cheap && !tuning->options.verify) {
        wpk_tune_tell(tuning->options.source, WPK_TUNE_PROGRESS,
                      "the plan is checked step by step; --verify compares it with the whole "
                      "model, in about %.0f s",
                      needed < 1 ? 1 : needed);
    }
    return is_cheap || tuning->options.verify;
}

static wpk_err verify(const struct wpk_tune *tuning, const struct wpk_plan_call *call,
                      struct wpk_diag *diag)
{
    double *differences = WPK_DEMAND(calloc(call->output_count + 1, sizeof(*differences)));
    struct wpk_buf problems = {0}; /* there were none before */
    struct wpk_model_fixing fixing;

    wpk_model_fixing_of_set(tuning->options.fixing, (int)call->shape, &fixing);
    wpk_err err =
        wpk_verify_plan_file(tuning->options.path, &fixing, call, differences, &problems, diag);
    for (size_t i = 0; err == WPK_OK && i < call->output_count; i++) {
        wpk_tune_tell(tuning->options.source, WPK_TUNE_RESULT,
                      "verified: output %s differs from the model's by %.1e of its largest element",
                      call->outputs[i].name, differences[i]);
    }
    wpk_buf_fini(&problems);
    free(differences);
    return err;
}

static wpk_err check_call(const struct wpk_tune *tuning, const struct wpk_plan_call *call,
                          struct wpk_diag *diag)
{
    struct wpk_check_plan found;

    wpk_err err = wpk_check_plan(call, &found, diag);
    const char *failure = wpk_model_context_failure(call->context);
    if (err != WPK_OK && diag->text[0] == '\0' && failure[0] != '\0') {
        wpk_diag_set(diag, "%s", failure);
    }
    if (err == WPK_OK) {
        wpk_tune_tell(tuning->options.source, WPK_TUNE_RESULT,
                      "checked: %d steps at %lld points; the largest error is %.1f times that of "
                      "direct evaluation%s%s",
                      found.steps, (long long)found.points, found.times_direct,
                      found.worst_node[0] != '\0' ? ", of " : "", found.worst_node);
    }
    return err == WPK_OK && is_verified(tuning, call->shape) ? verify(tuning, call, diag) : err;
}

static wpk_err check_shape(const struct wpk_tune *tuning, struct wpk_model *model, size_t shape,
                           struct wpk_diag *diag)
{
    size_t inputs = wpk_model_input_count(model);
    struct wpk_model_context *context = NULL;
    struct tensors tensors = {.count = 0};

    wpk_err err = draw_tensors(model, shape, &tensors);
    err = err == WPK_OK ? wpk_model_context_new(model, shape, NULL, &context) : err;
    if (err == WPK_OK) {
        const struct wpk_plan_call call = {
            .model = model,
            .shape = shape,
            .context = context,
            .inputs = tensors.list,
            .input_count = inputs,
            .outputs = tensors.list + inputs,
            .output_count = wpk_model_output_count(model),
        };
        err = check_call(tuning, &call, diag);
    }
    wpk_model_context_free(context);
    for (size_t i = 0; i < tensors.count; i++) {
        free(tensors.list[i].data);
    }
    free(tensors.list);
    return err;
}

/* Check a plan that is no file yet: a wrong one replaces none. */
static wpk_err check_bytes(const struct wpk_tune *tuning, const struct wpk_buf *plan,
                           struct wpk_diag *diag)
{
    struct wpk_model *model = NULL;
    char path[64];
    int fd = memfd_create("plan", MFD_CLOEXEC);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    wpk_err err = fd >= 0 ? wpk_fs_write(path, plan->data, plan->size, 0600, diag) : WPK_ESYSTEM;
    err = err == WPK_OK ? wpk_model_open(path, NULL, &model, diag) : err;
    for (int s = 0; err == WPK_OK && s < tuning->model.shape_count; s++) {
        err = check_shape(tuning, model, (size_t)s, diag);
    }
    wpk_model_close(model);
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

wpk_err wpk_tune_plan(struct wpk_tune *tuning, struct wpk_buf *out, struct wpk_diag *diag)
{
    wpk_err err = wpk_tune_model_assemble(&tuning->model, tuning->options.source,
                                          &tuning->rounds.found, tuning->job.threads, out, diag);

    return err == WPK_OK ? check_bytes(tuning, out, diag) : err;
}
