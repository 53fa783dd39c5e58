/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl profile: runs a model's plan until its times are known, and says where they go. The trace
 * is one run, the median one, in the Trace Event Format that browsers and Perfetto show. */
#include "client/command.h"
#include "client/run_model.h"
#include "common/clock.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/markup.h"
#include "common/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MIN 5
#define RUNS_MAX 1000
#define PROFILE_NS (WPK_NS_PER_S)
#define NODE_WIDTH 60 /* of the last column, on a terminal */

struct profile {
    struct wpk_run_model options;
    const char *trace_path;
    bool json;
    struct wpk_buf *page; /* the table goes there, as markup; NULL: it is printed */
    size_t step_count;
    uint64_t *times;          /* owned; [run_count][step_count] ns */
    uint64_t total[RUNS_MAX]; /* [run_count] ns of whole runs, without the clocks */
    uint64_t sum[RUNS_MAX];   /* [run_count] of the steps */
    int run_count;
    struct wpk_peak peak;
};

static uint64_t median_of(const uint64_t *values, int count, size_t stride)
{
    static uint64_t scratch[RUNS_MAX];
    for (int i = 0; i < count; i++) {
        scratch[i] = values[(size_t)i * stride];
    }
    qsort(scratch, (size_t)count, sizeof(*scratch), wpk_u64_compare);
    return scratch[count / 2];
}

/* Time runs with a clock at each step and runs without in turns. */
static wpk_err measure(const struct wpk_plan_call *call, struct profile *profile)
{
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t end_ns = wpk_clock_now_ns(clock) + PROFILE_NS;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && profile->run_count < RUNS_MAX &&
           (profile->run_count < RUNS_MIN || wpk_clock_now_ns(clock) < end_ns)) {
        uint64_t *times = profile->times + (size_t)profile->run_count * profile->step_count;
        err = wpk_model_profile(call->context, call->inputs, call->input_count, call->outputs,
                                call->output_count, times);
        uint64_t began_ns = wpk_clock_now_ns(clock);
        if (err == WPK_OK) {
            err = wpk_model_run(call->context, call->inputs, call->input_count, call->outputs,
                                call->output_count);
        }
        profile->total[profile->run_count] = wpk_clock_now_ns(clock) - began_ns;
        for (size_t s = 0; s < profile->step_count; s++) {
            profile->sum[profile->run_count] += times[s];
        }
        profile->run_count++;
    }
    return err;
}

/* The least time that the step's work takes on one core with its data in the caches; 0: it has no
 * operations, or nothing was measured. */
static double roofline_ns(const struct profile *profile, const struct wpk_model_step *step)
{
    return profile->peak.flops_per_s > 0
               ? step->flops * (double)step->calls / profile->peak.flops_per_s * 1e9
               : 0;
}

static void put_step(const struct profile *profile, const struct wpk_model_step *step, size_t index,
                     uint64_t time_ns, uint64_t total_ns)
{
    double roof = roofline_ns(profile, step);
    double part = total_ns > 0 ? 100 * (double)time_ns / (double)total_ns : 0;
    char share[16] = "-", more[144] = "";
    int used = 0;

    if (roof > 0 && time_ns > 0) {
        snprintf(share, sizeof(share), "%.0f %%", 100 * roof / (double)time_ns);
    }
    if (step->calls > 1) {
        used = snprintf(more, sizeof(more), "; %llu calls", (unsigned long long)step->calls);
    }
    if (step->vendor_ns > 0 && step->tuned_ns > 0 && step->vendor_ns < step->tuned_ns) {
        snprintf(more + used, sizeof(more) - (size_t)used, "; %.40s was %.2f times as fast",
                 step->vendor, (double)step->tuned_ns / (double)step->vendor_ns);
    }
    if (profile->page != NULL) {
        wpk_markup(
            profile->page,
            "<tr><td class=\"n\">%d</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f %%</td>"
            "<td class=\"n\">%s</td><td>%s</td><td class=\"text long\">%s%s</td></tr>\n",
            (int)index, (double)time_ns / 1e3, part, share, step->kernel, step->node, more);
        return;
    }
    printf("%4zu  %10.1f  %5.1f %%  %8s  %-20s  %.*s%s%s\n", index, (double)time_ns / 1e3, part,
           share, step->kernel, NODE_WIDTH, step->node, strlen(step->node) > NODE_WIDTH ? "…" : "",
           more);
}

static void put_table(const struct profile *profile, const struct wpk_plan_call *call)
{
    uint64_t sum_ns = median_of(profile->sum, profile->run_count, 1);
    uint64_t total_ns = median_of(profile->total, profile->run_count, 1);
    char text[160];

    if (profile->page != NULL) {
        wpk_page_begin_table(profile->page, "times", "Where the time of a run on this machine goes",
                             "#Step|#µs|#Share|#Roofline|Kernel|Nodes");
    } else {
        printf("step          µs    share  roofline  kernel                nodes\n");
    }
    for (size_t s = 0; s < profile->step_count; s++) {
        const struct wpk_model_step step = wpk_model_step(call->model, call->shape, s);
        put_step(profile, &step, s,
                 median_of(profile->times + s, profile->run_count, profile->step_count), sum_ns);
    }
    snprintf(text, sizeof(text),
             "%.3f ms a run, %.2f times the sum of its %zu steps; medians of %d runs",
             (double)total_ns / 1e6, sum_ns > 0 ? (double)total_ns / (double)sum_ns : 0,
             profile->step_count, profile->run_count);
    if (profile->page != NULL) {
        wpk_page_end_table(profile->page);
        wpk_markup(profile->page, "<p>%s</p>\n", text);
    } else {
        printf("\n%s\n", text);
    }
}

static wpk_err print_json(const struct profile *profile, const struct wpk_plan_call *call)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_put_int(w, "runs", profile->run_count);
    wpk_json_put_int(w, "run_ns", (int64_t)median_of(profile->total, profile->run_count, 1));
    wpk_json_put_int(w, "sum_ns", (int64_t)median_of(profile->sum, profile->run_count, 1));
    wpk_json_begin_array(w, "steps");
    for (size_t s = 0; s < profile->step_count; s++) {
        const struct wpk_model_step step = wpk_model_step(call->model, call->shape, s);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "nodes", step.node);
        wpk_json_put_text(w, "kernel", step.kernel);
        wpk_json_put_int(w, "calls", (int64_t)step.calls);
        wpk_json_put_int(
            w, "time_ns",
            (int64_t)median_of(profile->times + s, profile->run_count, profile->step_count));
        wpk_json_put_real(w, "flops", step.flops);
        wpk_json_put_real(w, "bytes", step.bytes);
        wpk_json_put_real(w, "roofline_ns", roofline_ns(profile, &step));
        wpk_json_put_int(w, "tuned_ns", (int64_t)step.tuned_ns);
        wpk_json_put_text_or_null(w, "vendor", step.vendor[0] != '\0' ? step.vendor : NULL);
        wpk_json_put_int(w, "vendor_ns", (int64_t)step.vendor_ns);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return wpk_json_puts(w, true);
}

/* The run whose sum is nearest to the median. */
static int median_run(const struct profile *profile)
{
    uint64_t median = median_of(profile->sum, profile->run_count, 1);
    int found = 0;

    for (int i = 0; i < profile->run_count; i++) {
        if (profile->sum[i] == median) {
            found = i;
        }
    }
    return found;
}

static wpk_err write_trace(const struct profile *profile, const struct wpk_plan_call *call,
                           struct wpk_diag *diag)
{
    const uint64_t *times = profile->times + (size_t)median_run(profile) * profile->step_count;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    uint64_t at_ns = 0;

    wpk_json_begin_array(w, "traceEvents");
    for (size_t s = 0; s < profile->step_count; s++) {
        const struct wpk_model_step step = wpk_model_step(call->model, call->shape, s);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", step.node);
        wpk_json_put_text(w, "cat", step.kernel);
        wpk_json_put_text(w, "ph", "X");
        wpk_json_put_real(w, "ts", (double)at_ns / 1e3);
        wpk_json_put_real(w, "dur", (double)times[s] / 1e3);
        wpk_json_put_int(w, "pid", 1);
        wpk_json_put_int(w, "tid", 1);
        wpk_json_begin_object(w, "args");
        wpk_json_put_int(w, "step", (int64_t)s);
        wpk_json_put_text(w, "kernel", step.kernel);
        wpk_json_put_int(w, "calls", (int64_t)step.calls);
        wpk_json_put_real(w, "flops", step.flops * (double)step.calls);
        wpk_json_end(w);
        wpk_json_end(w);
        at_ns += times[s];
    }
    wpk_json_end(w);
    wpk_json_put_text(w, "displayTimeUnit", "ns");
    wpk_err err = wpk_json_finish(w, false, &text);
    err = err == WPK_OK ? wpk_fs_write(profile->trace_path, text.data, text.size, 0644, diag) : err;
    wpk_buf_fini(&text);
    return err == WPK_ENOENT ? WPK_EINVAL : err;
}

static wpk_err use(const struct wpk_plan_call *call, void *user, struct wpk_diag *diag)
{
    struct profile *profile = user;

    profile->step_count = wpk_model_step_count(call->model, call->shape);
    profile->times = WPK_DEMAND(calloc((profile->step_count + 1) * RUNS_MAX, sizeof(uint64_t)));
    if (wpk_peak_measure(&profile->peak) != WPK_OK) {
        profile->peak = (struct wpk_peak){.name = ""};
    }
    wpk_err err = measure(call, profile);
    if (err == WPK_OK && profile->trace_path != NULL) {
        err = write_trace(profile, call, diag);
    }
    if (err == WPK_OK && profile->json) {
        err = print_json(profile, call);
    } else if (err == WPK_OK) {
        put_table(profile, call);
    }
    free(profile->times);
    return err;
}

wpk_err wpk_profile_page(const char *path, const struct wpk_option_list *shapes,
                         struct wpk_buf *out, struct wpk_diag *diag)
{
    static struct profile profile;
    profile.options.draw = true;
    profile.options.fixing.shapes = *shapes;
    profile.page = out;
    return wpk_run_model_with(path, &profile.options, use, &profile, diag);
}

enum wpk_exit wpk_command_profile(struct wpk_invocation *call)
{
    static struct profile profile;
    const struct wpk_option options[] = {
        WPK_ARGS_LIST("input", "TENSOR=FILE.npy",
                      "an input; drawn where none is given (repeatable)", &profile.options.inputs),
        WPK_PLAN_SHAPE_OPTION_ROW(profile.options.fixing.shapes),
        WPK_ARGS_OUTPUT("write one run as a trace that browsers show", &profile.trace_path),
        WPK_ARGS_FLAG("json", "as JSON", &profile.json),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    profile.options.draw = true;
    wpk_err err =
        wpk_run_model_with(call->args.operands[0], &profile.options, use, &profile, &call->diag);
    return wpk_command_end(call, err);
}
