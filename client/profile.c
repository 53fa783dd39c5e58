/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl profile: runs a model's plan until its times are known, and says where they go. The trace
 * is one run, the median one, in the Trace Event Format that browsers and Perfetto show. */
#include "client/command.h"
#include "client/run_model.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/machine.h"

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
    size_t step_count;
    uint64_t *times; /* owned; [run_count][step_count] ns */
    uint64_t *total; /* owned; [run_count] ns of whole runs, without the clocks */
    uint64_t *sum;   /* owned; [run_count] of the steps */
    int run_count;
    struct wpk_peak peak;
};

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t median_of(const uint64_t *values, int count, size_t stride, uint64_t *scratch)
{
    for (int i = 0; i < count; i++) {
        scratch[i] = values[(size_t)i * stride];
    }
    qsort(scratch, (size_t)count, sizeof(*scratch), compare_times);
    return scratch[count / 2];
}

static void allocate(struct profile *profile, size_t step_count)
{
    profile->step_count = step_count;
    profile->times = WPK_DEMAND(calloc((step_count + 1) * RUNS_MAX, sizeof(uint64_t)));
    profile->total = WPK_DEMAND(calloc(RUNS_MAX, sizeof(uint64_t)));
    profile->sum = WPK_DEMAND(calloc(RUNS_MAX, sizeof(uint64_t)));
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

static void print_step(const struct profile *profile, const struct wpk_model_step *step,
                       size_t index, uint64_t time_ns, uint64_t total_ns)
{
    double roof = roofline_ns(profile, step);
    char share[16] = "-";
    char vendor[96] = "";
    char calls[32] = "";

    if (roof > 0 && time_ns > 0) {
        snprintf(share, sizeof(share), "%.0f %%", 100 * roof / (double)time_ns);
    }
    if (step->vendor_ns > 0 && step->tuned_ns > 0 && step->vendor_ns < step->tuned_ns) {
        snprintf(vendor, sizeof(vendor), "; %.40s was %.2f times as fast", step->vendor,
                 (double)step->tuned_ns / (double)step->vendor_ns);
    }
    if (step->calls > 1) {
        snprintf(calls, sizeof(calls), "; %llu calls", (unsigned long long)step->calls);
    }
    printf("%4zu  %10.1f  %5.1f %%  %8s  %-20s  %.*s%s%s%s\n", index, (double)time_ns / 1e3,
           total_ns > 0 ? 100 * (double)time_ns / (double)total_ns : 0, share, step->kernel,
           NODE_WIDTH, step->node, strlen(step->node) > NODE_WIDTH ? "…" : "", calls, vendor);
}

static void print_table(const struct profile *profile, const struct wpk_plan_call *call,
                        uint64_t *scratch)
{
    uint64_t sum_ns = median_of(profile->sum, profile->run_count, 1, scratch);
    uint64_t total_ns = median_of(profile->total, profile->run_count, 1, scratch);

    printf("step          µs    share  roofline  kernel                nodes\n");
    for (size_t s = 0; s < profile->step_count; s++) {
        const struct wpk_model_step step = wpk_model_step(call->model, call->shape, s);
        uint64_t time_ns =
            median_of(profile->times + s, profile->run_count, profile->step_count, scratch);
        print_step(profile, &step, s, time_ns, sum_ns);
    }
    printf("\n%.3f ms a run, %.2f times the sum of its %zu steps; medians of %d runs\n",
           (double)total_ns / 1e6, sum_ns > 0 ? (double)total_ns / (double)sum_ns : 0,
           profile->step_count, profile->run_count);
}

static wpk_err print_json(const struct profile *profile, const struct wpk_plan_call *call,
                          uint64_t *scratch)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_put_int(w, "runs", profile->run_count);
    wpk_json_put_int(w, "run_ns",
                     (int64_t)median_of(profile->total, profile->run_count, 1, scratch));
    wpk_json_put_int(w, "sum_ns", (int64_t)median_of(profile->sum, profile->run_count, 1, scratch));
    wpk_json_begin_array(w, "steps");
    for (size_t s = 0; s < profile->step_count; s++) {
        const struct wpk_model_step step = wpk_model_step(call->model, call->shape, s);
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "nodes", step.node);
        wpk_json_put_text(w, "kernel", step.kernel);
        wpk_json_put_int(w, "calls", (int64_t)step.calls);
        wpk_json_put_int(w, "time_ns",
                         (int64_t)median_of(profile->times + s, profile->run_count,
                                            profile->step_count, scratch));
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
static int median_run(const struct profile *profile, uint64_t *scratch)
{
    uint64_t median = median_of(profile->sum, profile->run_count, 1, scratch);
    int found = 0;

    for (int i = 0; i < profile->run_count; i++) {
        if (profile->sum[i] == median) {
            found = i;
        }
    }
    return found;
}

static wpk_err write_trace(const struct profile *profile, const struct wpk_plan_call *call,
                           uint64_t *scratch, struct wpk_diag *diag)
{
    const uint64_t *times =
        profile->times + (size_t)median_run(profile, scratch) * profile->step_count;
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
    uint64_t *scratch = WPK_DEMAND(calloc(RUNS_MAX, sizeof(*scratch)));

    allocate(profile, wpk_model_step_count(call->model, call->shape));
    if (wpk_peak_measure(&profile->peak) != WPK_OK) {
        profile->peak = (struct wpk_peak){.name = ""};
    }
    wpk_err err = measure(call, profile);
    if (err == WPK_OK && profile->trace_path != NULL) {
        err = write_trace(profile, call, scratch, diag);
    }
    if (err == WPK_OK && profile->json) {
        err = print_json(profile, call, scratch);
    } else if (err == WPK_OK) {
        print_table(profile, call, scratch);
    }
    free(scratch);
    return err;
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
    free(profile.times);
    free(profile.total);
    free(profile.sum);
    return wpk_command_end(call, err);
}
