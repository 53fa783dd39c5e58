/* SPDX-License-Identifier: Apache-2.0 */
/* One candidate's life in its child process:
 *
 *     integers, if exact; reals ──▶ "verified", "go" ──▶ measure ──▶ "timed" ──▶ reals again
 *                                                           │                      │
 *                                          raced out: result ┘    all other kinds of inputs
 *                                                                                  │
 *                                                             a winner: fresh sets ┘
 *
 * A wrong result on the inputs that are timed ends the try before timing: a wrong kernel's time is
 * worth nothing. A candidate that was raced out, as two of three are in a search, is too slow to be
 * served and is verified no further. Every other candidate is verified on every kind of inputs,
 * with every placement of buffers, before its result is sent. */
#include "worker/process.h"
#include "worker/runner/run_batch.h"
#include "worker/runner/runner.h"
#include "worker/runner/runner_child.h"
#include "worker/runner/subject.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compared points of a fresh set: of a final, as the classes ask for; else of a look whether the
 * kernel was tuned to the recorded sets. */
#define FINAL_POINTS WPK_ANSWERS_SAMPLE_COUNT
#define TRIAL_POINTS (WPK_ANSWERS_SAMPLE_COUNT / 4)

struct attempt {
    const struct wpk_runner_options *options;
    const struct wpk_runner_op *op;
    const struct wpk_run_request *request;
    struct wpk_verify_errors errors;
    struct wpk_diag diag;
    struct wpk_record *record;
    struct wpk_subject anchor;                /* timed in turns with it; closed: there is none */
    bool excluded[WPK_PROVIDER_EXCLUDED_MAX]; /* algorithms of the vendor that are wrong */
    int excluded_count;
};

/* ---- crashes */

/* The guard whose pages a fault may have struck; for the signal handler. */
static const struct wpk_guard *volatile guard_in_use;

/* Say where, for the log, and die of the same signal: the handler is reset when it is entered. */
static void explain_fault(int number WPK_UNUSED, siginfo_t *info, void *context WPK_UNUSED)
{
    const struct wpk_guard *guard = guard_in_use;
    const char *where = guard != NULL ? wpk_guard_explain(guard, info->si_addr) : "while loading";
    (void)!write(STDERR_FILENO, where, strlen(where));
}

static void listen_for_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_sigaction = explain_fault,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK)};
    sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigaction(faults[i], &action, NULL);
    }
}

/* ---- steps */

static wpk_err open_subject(struct attempt *a, const struct wpk_program *view,
                            const struct wpk_inputs *inputs, enum wpk_guard_placement placement,
                            struct wpk_subject *out)
{
    const struct wpk_subject_options options = {
        .provider = a->request->provider,
        .artifact = a->request->artifact,
        .layouts = a->request->layouts,
        .threads = a->request->policy.threads,
        .placement = placement,
        .view = view,
        .excluded = a->excluded,
    };
    guard_in_use = &out->guard;
    return wpk_subject_open(out, a->op->program, &options, inputs, &a->diag);
}

/* Verify against one set; a wrong result becomes WPK_ECORRUPT with the worst point in the diag. */
static wpk_err verify(struct attempt *a, struct wpk_subject *subject,
                      const struct wpk_answers *answers)
{
    bool ours = wpk_provider_is_ours(subject->provider);
    if (answers->inputs.kind == WPK_INPUT_SPECIAL && !ours) {
        return WPK_OK; /* vendors' maxima drop NaN */
    }
    guard_in_use = &subject->guard; /* another subject's may have gone */
    wpk_err err = wpk_subject_verify(subject, answers, &a->request->rule, &a->errors, &a->diag);
    if (err == WPK_OK && a->errors.ratio > 1) {
        char text[256];
        wpk_verify_describe(subject->view, answers, &a->errors, text, sizeof(text));
        err = wpk_fail(&a->diag, WPK_ECORRUPT, "%s", text);
    }
    return err;
}

/* A subject of its own for one set, with the guard in front of each buffer. */
static wpk_err verify_apart(struct attempt *a, const struct wpk_program *view,
                            const struct wpk_inputs *inputs, const struct wpk_answers *answers)
{
    struct wpk_subject subject = {0};
    wpk_err err = open_subject(a, view, inputs, WPK_GUARD_START, &subject);
    if (err == WPK_OK) {
        err = verify(a, &subject, answers);
        wpk_subject_close(&subject);
    }
    return err;
}

static wpk_err verify_integers(struct attempt *a)
{
    return verify_apart(a, NULL, &a->op->inputs[WPK_RUNNER_INTEGERS],
                        &a->op->answers[WPK_RUNNER_INTEGERS]);
}

/* Move the subject and verify one set there; `subject` has the set's constants. */
static wpk_err verify_moved(struct attempt *a, struct wpk_subject *subject,
                            enum wpk_guard_placement placement, int set)
{
    wpk_err err = wpk_subject_move(subject, placement, &a->op->inputs[set], &a->diag);
    return err == WPK_OK ? verify(a, subject, &a->op->answers[set]) : err;
}

/* Every set but the one that is timed, with the guard behind the last byte and at an odd address
 * in turns; integers, whose constants are their own, have it in front. Where there are too few
 * other sets, that one stands in. `subject` was opened with its constants. */
static wpk_err verify_others(struct attempt *a, struct wpk_subject *subject)
{
    static const enum wpk_guard_placement placements[] = {WPK_GUARD_END, WPK_GUARD_SHIFTED};
    const struct wpk_answers *reals = &a->op->answers[WPK_RUNNER_REALS];
    int moves = 0;
    wpk_err err = a->request->rule.exact ? WPK_OK : verify_integers(a);
    for (int k = WPK_RUNNER_REALS + 1; k < WPK_RUNNER_SETS && err == WPK_OK; k++) {
        const struct wpk_answers *answers = &a->op->answers[k];
        if (answers->count == 0) {
            continue;
        }
        err = wpk_inputs_share_constants(&answers->inputs, &reals->inputs)
                  ? verify_moved(a, subject, placements[moves++ % 2], k)
                  : verify_apart(a, NULL, &a->op->inputs[k], answers);
    }
    int least = wpk_provider_has_clock(subject->provider)
                    ? 1
                    : 2; /* a GPU's memory is guarded at both ends */
    while (err == WPK_OK && moves < least && wpk_subject_moves(subject)) {
        err = verify_moved(a, subject, placements[moves++], WPK_RUNNER_REALS);
    }
    return err;
}

/* Append a remark for readers of the result, although nothing failed. */
static void remark(struct wpk_record *record, const char *text)
{
    size_t used = strlen(record->log);
    snprintf(record->log + used, sizeof(record->log) - used, "%s%s", used > 0 ? "; " : "", text);
}

static wpk_err make_fresh(const struct attempt *a, const struct wpk_program *view,
                          enum wpk_input_kind kind, struct wpk_answers *answers,
                          struct wpk_inputs *inputs, struct wpk_diag *diag)
{
    const struct wpk_input_options *recorded = &a->op->answers[kind].inputs;
    const struct wpk_input_options options = {.kind = kind,
                                              .domain = recorded->domain,
                                              .seed = a->request->fresh_seed + (uint64_t)kind,
                                              .constants_seed = a->request->fresh_seed,
                                              .large = recorded->large};
    wpk_err err = wpk_answers_make(view, &options, a->request->final ? FINAL_POINTS : TRIAL_POINTS,
                                   answers, diag);
    err = err == WPK_OK ? wpk_answers_draw_more(view, answers, diag) : err;
    return err == WPK_OK ? wpk_inputs_make(view, &answers->inputs, inputs) : err;
}

/* That there are no answers is not the kernel's fault: it passes, with a remark. */
static wpk_err verify_fresh(struct attempt *a, const struct wpk_program *view,
                            enum wpk_input_kind kind)
{
    struct wpk_answers answers = {0};
    struct wpk_inputs inputs = {0};
    struct wpk_diag diag = {0};
    wpk_err err = make_fresh(a, view, kind, &answers, &inputs, &diag);
    if (err == WPK_OK) {
        err = answers.count > 0 ? verify_apart(a, view, &inputs, &answers) : WPK_OK;
    } else {
        char text[WPK_DIAG_TEXT_MAX + 64];
        snprintf(text, sizeof(text), "not verified on fresh %s inputs: %s",
                 wpk_input_kind_name(kind), diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        remark(a->record, text);
        err = WPK_OK;
    }
    wpk_inputs_fini(&inputs);
    wpk_answers_fini(&answers);
    return err;
}

/* Verify every output but the first, on inputs that are drawn for it: of the kinds that the first
 * one is verified on. */
static wpk_err verify_more_outputs(struct attempt *a)
{
    const struct wpk_program *program = a->op->program;
    wpk_err err = WPK_OK;
    for (int t = wpk_program_output(program) + 1; t < program->tensor_count && err == WPK_OK; t++) {
        struct wpk_program view = {0};
        if (program->tensors[t].role != WPK_ROLE_OUTPUT) {
            continue;
        }
        err = wpk_program_view(program, t, &view);
        for (int k = 0; k < WPK_INPUT_KINDS && err == WPK_OK; k++) {
            if (k < WPK_INPUT_JOINING || a->op->answers[k].count > 0) {
                err = verify_fresh(a, &view, (enum wpk_input_kind)k);
            }
        }
        wpk_program_fini(&view);
    }
    return err;
}

static bool is_winner(const struct attempt *a)
{
    return !a->record->timing.censored &&
           wpk_accuracy_admits(a->request->accuracy, a->errors.accuracy.times_direct) &&
           wpk_measure_beats(a->record, a->request->incumbent_ns, a->request->incumbent_ratio);
}

static wpk_err run_anchor(void *user)
{
    wpk_runner_child_set_anchor(true);
    wpk_err err = wpk_subject_run(user);
    if (err != WPK_OK) {
        _exit(1);
    }
    wpk_runner_child_set_anchor(false);
    return WPK_OK;
}

static wpk_err time_anchor(void *user, int count, uint64_t *ns)
{
    wpk_runner_child_set_anchor(true);
    wpk_err err = wpk_subject_time(user, count, ns);
    if (err != WPK_OK) {
        _exit(1);
    }
    wpk_runner_child_set_anchor(false);
    return WPK_OK;
}

static wpk_err measure(struct attempt *a, struct wpk_subject *subject)
{
    const struct wpk_measure_subject measured = wpk_subject_measured(subject);
    struct wpk_measure_subject beside = measured;
    bool anchored = a->anchor.provider != NULL;
    struct wpk_record *record = a->record;
    struct wpk_run_batch batch;
    if (anchored) {
        beside = wpk_subject_measured(&a->anchor);
        beside.run = run_anchor;
        beside.time = beside.time != NULL ? time_anchor : NULL;
    }
    double incumbent = anchored ? a->request->incumbent_ratio : (double)a->request->incumbent_ns;
    wpk_err err = wpk_run_batch_measure(&measured, anchored ? &beside : NULL, &a->request->policy,
                                        incumbent, wpk_sentinel_run_ns, &batch);
    if (err != WPK_OK) {
        wpk_subject_trouble(subject, &a->diag);
        return err;
    }
    record->timing = batch.pair.timing;
    record->anchor_ns = batch.pair.anchor_ns;
    record->anchor_ratio = batch.pair.ratio;
    if (!wpk_run_batch_is_steady(&batch)) {
        char text[256];
        wpk_run_batch_describe(&batch, text, sizeof(text));
        remark(record, text);
    }
    if (a->request->policy.conditions != WPK_CONDITIONS_WARM) {
        err = wpk_subject_cool(subject, a->request->policy.conditions);
    }
    if (err == WPK_OK && is_winner(a) && !wpk_provider_has_clock(subject->provider)) {
        return wpk_counters_read(wpk_subject_run, subject, record->timing.repeat_count,
                                 &record->counters);
    }
    return err;
}

/* Open the search's anchor, which was verified long ago. If it does not open, that is not the
 * candidate's fault: the candidate is timed alone, and its record shows that. */
static void open_anchor(struct attempt *a, const struct wpk_guard *guard)
{
    const struct wpk_subject_options options = {.provider = a->request->provider,
                                                .artifact = a->request->anchor,
                                                .layouts = a->request->layouts,
                                                .threads = a->request->policy.threads,
                                                .placement = WPK_GUARD_ALIGNED};
    struct wpk_diag diag = {0};
    if (a->request->anchor[0] == '\0') {
        return;
    }
    guard_in_use = &a->anchor.guard;
    wpk_runner_child_set_anchor(true);
    wpk_err err = wpk_subject_open(&a->anchor, a->op->program, &options,
                                   &a->op->inputs[WPK_RUNNER_REALS], &diag);
    wpk_runner_child_set_anchor(false);
    guard_in_use = guard;
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 64];
        a->anchor = (struct wpk_subject){0};
        a->record->anchor_failed = true;
        snprintf(text, sizeof(text), "timed without its anchor: %s",
                 diag.text[0] != '\0' ? diag.text : wpk_err_text(err));
        remark(a->record, text);
    }
}

/* The anchor's memory on a GPU is in the candidate's reach. */
static wpk_err check_anchor(struct attempt *a)
{
    struct wpk_diag diag = {0};
    if (a->anchor.provider == NULL || !wpk_provider_has_clock(a->anchor.provider)) {
        return WPK_OK;
    }
    wpk_err err = wpk_provider_check(a->anchor.provider, &diag);
    if (err == WPK_ECORRUPT) {
        wpk_diag_set(&a->diag, "in the memory of its anchor: %s", diag.text);
    }
    return err;
}

static wpk_err measure_quietly(struct attempt *a, struct wpk_subject *subject,
                               struct wpk_channel *channel)
{
    int threads = a->request->policy.threads;
    wpk_runner_wait_for_go(channel, a->request->id);
    if (threads == 1) {
        wpk_process_pin(wpk_process_core_count() - 1, 1);
    }
    uint64_t start = wpk_clock_ns();
    wpk_err err = measure(a, subject);
    a->record->measure_ns = wpk_clock_ns() - start;
    if (WPK_ENGINE_SEND(channel, .kind = WPK_ENGINE_MESSAGE_TIMED, .id = a->request->id) !=
        WPK_OK) {
        exit(1);
    }
    if (threads == 1) {
        wpk_process_pin(0, 0);
    }
    return err;
}

/* The record keeps the errors on the sets that all trials face, unless those on fresh sets are
 * outside the class: then they decide. */
static wpk_err verify_winner(struct attempt *a)
{
    struct wpk_accuracy_errors recorded = a->errors.accuracy;
    a->errors.accuracy = (struct wpk_accuracy_errors){0};
    wpk_err err = WPK_OK;
    for (int k = 0; k < WPK_RUNNER_SETS && err == WPK_OK; k++) {
        bool joined = k < WPK_INPUT_JOINING || a->op->answers[k].count > 0;
        if (k == WPK_RUNNER_REALS || (a->request->final && joined)) {
            err = verify_fresh(a, a->op->program, (enum wpk_input_kind)k);
        }
    }
    struct wpk_accuracy_errors fresh = a->errors.accuracy;
    a->errors.accuracy = recorded;
    if (err == WPK_OK && !wpk_accuracy_stays_in(a->request->accuracy, &fresh)) {
        char name[WPK_ACCURACY_TEXT_MAX];
        char text[160];
        wpk_accuracy_name(a->request->accuracy, name);
        snprintf(text, sizeof(text), "outside class %s on fresh inputs: %.3g x direct", name,
                 fresh.times_direct);
        remark(a->record, text);
        a->errors.accuracy.times_direct = fresh.times_direct;
    }
    return err;
}

/* Verify the rest once the time is known. */
static wpk_err verify_after(struct attempt *a, struct wpk_subject *subject)
{
    if (a->record->timing.censored) {
        return WPK_OK;
    }
    wpk_err err = verify(a, subject, &a->op->answers[WPK_RUNNER_REALS]);
    err = err == WPK_OK ? verify_others(a, subject) : err;
    err = err == WPK_OK ? verify_more_outputs(a) : err;
    return err == WPK_OK && is_winner(a) ? verify_winner(a) : err;
}

/* Open the subject and verify it on the set that it is timed on. Algorithms of a vendor that are
 * wrong there are passed over; if all are, the fastest one's error is the result. */
static wpk_err open_right(struct attempt *a, struct wpk_subject *subject)
{
    const struct wpk_verify_errors before = a->errors;
    struct wpk_verify_errors errors = {0};
    struct wpk_diag diag = {0};
    for (;;) {
        wpk_err err =
            open_subject(a, NULL, &a->op->inputs[WPK_RUNNER_REALS], WPK_GUARD_ALIGNED, subject);
        if (err == WPK_EUNSUPPORTED && a->excluded_count > 0) {
            a->errors = errors;
            a->diag = diag;
            return WPK_ECORRUPT;
        }
        err = err == WPK_OK ? verify(a, subject, &a->op->answers[WPK_RUNNER_REALS]) : err;
        int algorithm = err == WPK_ECORRUPT ? wpk_provider_algorithm(subject->provider) : -1;
        if (algorithm < 0 || algorithm >= WPK_PROVIDER_EXCLUDED_MAX) {
            return err;
        }
        if (a->excluded_count == 0) {
            errors = a->errors;
            diag = a->diag;
        }
        a->excluded[algorithm] = true;
        a->excluded_count++;
        a->errors = before;
        wpk_subject_close(subject);
    }
}

static wpk_err attempt(struct attempt *a, struct wpk_channel *channel)
{
    struct wpk_subject subject = {0};
    uint64_t start = wpk_clock_ns();
    wpk_err err = a->request->rule.exact ? verify_integers(a) : WPK_OK;
    err = err == WPK_OK ? open_right(a, &subject) : err;
    uint64_t before = wpk_clock_ns() - start;
    if (err == WPK_OK) {
        const char *recipe = wpk_provider_recipe(subject.provider);
        a->record->detail = strdup(wpk_provider_detail(subject.provider));
        a->record->recipe = recipe != NULL ? strdup(recipe) : NULL;
        a->record->constants_bytes = wpk_provider_constants_bytes(subject.provider);
        a->record->launch = wpk_provider_launch(subject.provider);
        open_anchor(a, &subject.guard);
        err = measure_quietly(a, &subject, channel);
        err = err == WPK_OK ? check_anchor(a) : err;
        wpk_subject_close(&a->anchor);
    }
    start = wpk_clock_ns();
    err = err == WPK_OK ? verify_after(a, &subject) : err;
    a->record->verify_ns = before + wpk_clock_ns() - start;
    wpk_subject_close(&subject);
    return err;
}

void wpk_runner_try(const struct wpk_runner_options *options, const struct wpk_runner_op *op,
                    const struct wpk_run_request *request, struct wpk_channel *channel,
                    struct wpk_record *out)
{
    static struct attempt a;
    a = (struct attempt){.options = options, .op = op, .request = request, .record = out};
    listen_for_faults();
    if (request->policy.threads > 1) {
        /* Pools and vendors start their threads when they are opened. */
        int threads = request->policy.threads;
        wpk_process_pin(wpk_process_core_count() - threads, threads);
    }
    wpk_err err = attempt(&a, channel);
    out->outcome = wpk_subject_outcome(err);
    out->error_max = a.errors.max;
    out->error_tolerance = a.errors.max_tolerance;
    out->error_ratio = a.errors.ratio;
    out->unseen = op->unseen[0] != '\0' ? strdup(op->unseen) : NULL;
    out->of_rms = a.errors.accuracy.of_rms;
    out->times_direct = a.errors.accuracy.times_direct;
    if (err != WPK_OK) {
        out->timing = (struct wpk_timing){0};
        snprintf(out->log, sizeof(out->log), "%s",
                 a.diag.text[0] != '\0' ? a.diag.text : wpk_err_text(err));
    }
}
