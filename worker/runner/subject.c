/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/subject.h"

#include "common/quota.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static wpk_err set_all(struct wpk_subject *subject, enum wpk_role role,
                       const struct wpk_inputs *inputs, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < subject->program->tensor_count && err == WPK_OK; i++) {
        if (subject->program->tensors[i].role == role) {
            err = wpk_provider_set(subject->provider, i, inputs->dense[i], diag);
        }
    }
    return err;
}

wpk_err wpk_subject_open(struct wpk_subject *subject, const struct wpk_program *program,
                         const struct wpk_subject_options *options, const struct wpk_inputs *inputs,
                         struct wpk_diag *diag)
{
    const struct wpk_program *view = options->view != NULL ? options->view : program;
    *subject =
        (struct wpk_subject){.program = program, .view = view, .output = wpk_program_output(view)};
    wpk_guard_init(&subject->guard, options->placement);
    const struct wpk_tensor *output = &program->tensors[subject->output];
    subject->result = malloc((size_t)wpk_tensor_elements(output) * wpk_dtype_size(output->dtype));
    const struct wpk_provider_request request = {
        .program = program,
        .layouts = options->layouts,
        .artifact_path = options->artifact,
        .threads = options->threads,
        .excluded = options->excluded,
        .timed = options->placement == WPK_GUARD_ALIGNED,
        .memory = &subject->guard.memory,
    };
    wpk_err err = subject->result == NULL
                      ? WPK_ENOMEM
                      : wpk_provider_open(options->provider, &request, &subject->provider, diag);
    err = err == WPK_OK ? set_all(subject, WPK_ROLE_CONSTANT, inputs, diag) : err;
    err = err == WPK_OK ? set_all(subject, WPK_ROLE_INPUT, inputs, diag) : err;
    err = err == WPK_OK ? wpk_provider_prepare(subject->provider, diag) : err;
    if (err != WPK_OK) {
        wpk_subject_close(subject);
    }
    return err;
}

void wpk_subject_close(struct wpk_subject *subject)
{
    wpk_provider_close(subject->provider);
    wpk_guard_fini(&subject->guard);
    free(subject->result);
    *subject = (struct wpk_subject){0};
}

bool wpk_subject_moves(const struct wpk_subject *subject)
{
    return wpk_provider_is_ours(subject->provider);
}

wpk_err wpk_subject_move(struct wpk_subject *subject, enum wpk_guard_placement placement,
                         const struct wpk_inputs *inputs, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    if (wpk_subject_moves(subject)) {
        subject->guard.placement = placement;
        err = wpk_provider_move(subject->provider);
    }
    return err == WPK_OK ? set_all(subject, WPK_ROLE_INPUT, inputs, diag) : err;
}

/* Run on the inputs that are set, which are those of a draw. */
static wpk_err verify_draw(struct wpk_subject *subject, const struct wpk_answers *answers, int draw,
                           const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors,
                           struct wpk_diag *diag)
{
    enum wpk_dtype dtype = subject->program->tensors[subject->output].dtype;
    /* All ones are a NaN in every floating type; an integer gets what sums rarely give. */
    wpk_provider_poison(subject->provider, wpk_dtype_is_float(dtype) ? 0xFF : 0xA5);
    wpk_err err = wpk_provider_run(subject->provider);
    if (err != WPK_OK) {
        wpk_subject_trouble(subject, diag);
        return err;
    }
    err = wpk_provider_check(subject->provider, diag);
    err = err == WPK_OK ? wpk_guard_check(&subject->guard, diag) : err;
    err =
        err == WPK_OK ? wpk_provider_get(subject->provider, subject->output, subject->result) : err;
    if (err == WPK_OK) {
        wpk_verify_compare(subject->view, answers, draw, rule, subject->result, errors);
    }
    return err;
}

void wpk_subject_trouble(const struct wpk_subject *subject, struct wpk_diag *diag)
{
    const char *trouble = wpk_provider_trouble(subject->provider);
    wpk_diag_set(diag, "the kernel returned an error%s%s", trouble[0] != '\0' ? ": " : "", trouble);
}

static wpk_err set_draw(struct wpk_subject *subject, const struct wpk_answers *answers, int draw,
                        struct wpk_diag *diag)
{
    struct wpk_input_options options = wpk_answers_inputs(answers, draw);
    struct wpk_inputs inputs = {0};
    options.inputs_only = true; /* draws share the constants */
    wpk_err err = wpk_inputs_make(subject->program, &options, &inputs);
    err = err == WPK_OK ? set_all(subject, WPK_ROLE_INPUT, &inputs, diag) : err;
    wpk_inputs_fini(&inputs);
    return err;
}

wpk_err wpk_subject_verify(struct wpk_subject *subject, const struct wpk_answers *answers,
                           const struct wpk_verify_rule *rule, struct wpk_verify_errors *errors,
                           struct wpk_diag *diag)
{
    wpk_err err = verify_draw(subject, answers, 0, rule, errors, diag);
    for (int draw = 1; draw < answers->draws && err == WPK_OK && errors->ratio <= 1; draw++) {
        err = set_draw(subject, answers, draw, diag);
        err = err == WPK_OK ? verify_draw(subject, answers, draw, rule, errors, diag) : err;
    }
    return err == WPK_OK && answers->draws > 1 ? set_draw(subject, answers, 0, diag) : err;
}

wpk_err wpk_subject_run(void *user)
{
    struct wpk_subject *subject = user;
    return wpk_provider_run(subject->provider);
}

wpk_err wpk_subject_cool(void *user, enum wpk_conditions conditions)
{
    struct wpk_subject *subject = user;
    return wpk_provider_cool(subject->provider, conditions);
}

/* How often the scheduler has taken a CPU away from the threads of this process, or throttled its
 * control group. */
static uint64_t count_preemptions(void *user WPK_UNUSED)
{
    static char group[WPK_QUOTA_PATH_MAX];
    struct rusage usage;
    if (group[0] == '\0') {
        wpk_quota_find("", group);
    }
    return wpk_quota_throttled(group) +
           (getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0);
}

static uint64_t wait_of_thread(void *user WPK_UNUSED)
{
    return wpk_quota_waited_ns();
}

wpk_err wpk_subject_time(void *user, int count, uint64_t *ns)
{
    struct wpk_subject *subject = user;
    double total = 0;
    wpk_err err = wpk_provider_time(subject->provider, count, &total);
    *ns = (uint64_t)llround(total);
    return err;
}

static bool is_throttled(void *user)
{
    struct wpk_subject *subject = user;
    return wpk_provider_throttled(subject->provider);
}

static void pause_ns(void *user WPK_UNUSED, uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* A device that has a clock of its own does not wait for the host's CPUs. */
struct wpk_measure_subject wpk_subject_measured(struct wpk_subject *subject)
{
    bool has_clock = wpk_provider_has_clock(subject->provider);
    return (struct wpk_measure_subject){.run = wpk_subject_run,
                                        .cool = wpk_subject_cool,
                                        .preemptions = has_clock ? NULL : count_preemptions,
                                        .waited_ns = has_clock ? NULL : wait_of_thread,
                                        .throttled = has_clock ? is_throttled : NULL,
                                        .pause = pause_ns,
                                        .rotates = has_clock,
                                        .time = has_clock ? wpk_subject_time : NULL,
                                        .user = subject,
                                        .clock = wpk_clock_system()};
}

enum wpk_outcome wpk_subject_outcome(wpk_err err)
{
    switch (err) {
    case WPK_OK:
        return WPK_OUTCOME_OK;
    case WPK_ENOMEM:
        return WPK_OUTCOME_OUT_OF_MEMORY;
    case WPK_ECORRUPT:
        return WPK_OUTCOME_WRONG_RESULT;
    case WPK_EUNSUPPORTED:
    case WPK_EMISMATCH:
    case WPK_ENOENT:
        return WPK_OUTCOME_UNSUPPORTED;
    default:
        return WPK_OUTCOME_RUN_CRASH;
    }
}
