/* SPDX-License-Identifier: Apache-2.0 */
#include "client/output.h"

#include "common/json.h"
#include "schema/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PEAK_PASSED 1.05 /* less is the peak's own error */
#define CELL_SIZE 96
#define LINE_WIDTH 100   /* of wrapped text, at most */
#define NOISE_MAX 0.1    /* MAD by median of a time that can be believed */
#define DETAIL_INDENT 15 /* columns before the text of a detail */

/* The path of the artifact with this hash in a data directory, if there is one; else the hash. */
static const char *artifact_of(const char *data_dir, const char *sha256, struct wpk_buf *path)
{
    if (data_dir == NULL || sha256[0] == '\0') {
        return sha256;
    }
    wpk_buf_printf(path, "%s/artifacts/%.2s/%s.so", data_dir, sha256, sha256);
    return wpk_buf_text(path);
}

static bool timed(const struct wpk_api_contender *contender)
{
    return contender->provider != NULL && contender->time.median_ns > 0;
}

bool wpk_report_is_noisy(const struct wpk_api_time *time)
{
    return (double)time->mad_ns > NOISE_MAX * (double)time->median_ns;
}

/* "590.1 ± 0.9 µs": the spread in the unit and with the digits of the time it belongs to. */
static void format_spread(const struct wpk_api_time *time, char *out, size_t size)
{
    char median[WPK_FORMAT_SIZE];

    wpk_format_ns(time->median_ns, median);
    const char *blank = strchr(median, ' ');
    if (blank == NULL) {
        snprintf(out, size, "%s", median);
        return;
    }
    double unit = strcmp(blank, " ns") == 0   ? 1
                  : strcmp(blank, " µs") == 0 ? 1e3
                  : strcmp(blank, " ms") == 0 ? 1e6
                                              : 1e9;
    const char *point = strchr(median, '.');
    int decimals = point != NULL ? (int)(blank - point) - 1 : 0;
    snprintf(out, size, "%.*s ± %.*f%s", (int)(blank - median), median, decimals,
             (double)time->mad_ns / unit, blank);
}

/* The operator's own operations per second over the peak of its cores; 0: unknown. */
static double share_of_peak(const struct wpk_api_kernel *kernel)
{
    double peak = kernel->peak_flops_per_s * (kernel->threads > 0 ? kernel->threads : 1);
    double time_s = (double)kernel->served.time.median_ns / 1e9;
    return peak > 0 && timed(&kernel->served) ? kernel->flops / time_s / peak : 0;
}

static void format_speed(const struct wpk_api_kernel *kernel, char *speed, char *share)
{
    snprintf(speed, CELL_SIZE, "-");
    snprintf(share, CELL_SIZE, "-");
    if (kernel->flops > 0 && timed(&kernel->served)) {
        double flops_per_s = kernel->flops / (double)kernel->served.time.median_ns * 1e9;
        snprintf(speed, CELL_SIZE, "%.1f", flops_per_s / 1e9);
        if (kernel->peak_flops_per_s > 0) {
            snprintf(share, CELL_SIZE, "%.0f %%", 100 * share_of_peak(kernel));
        }
    }
}

void wpk_report_error(const struct wpk_api_kernel *kernel, char *out)
{
    if (kernel->times_direct < 0) {
        snprintf(out, WPK_REPORT_ERROR_SIZE, "-");
        return;
    }
    snprintf(out, WPK_REPORT_ERROR_SIZE, "%.1e of rms, %.1fx direct", kernel->of_rms,
             kernel->times_direct);
}

static void add_row(struct wpk_text_table *table, const struct wpk_api_kernel *kernel)
{
    char best[CELL_SIZE];
    char speed[CELL_SIZE];
    char share[CELL_SIZE];
    char vendor[CELL_SIZE] = "-";
    char ratio[CELL_SIZE] = "-";
    char error[WPK_REPORT_ERROR_SIZE];
    char tried[CELL_SIZE];
    const struct wpk_api_contender *served = &kernel->served;

    format_spread(&served->time, best, sizeof(best));
    format_speed(kernel, speed, share);
    if (wpk_device_class_is_emulated(kernel->device)) {
        wpk_format_modelled(served->time.median_ns, best);
    }
    if (timed(&kernel->baseline)) {
        format_spread(&kernel->baseline.time, vendor, sizeof(vendor));
        snprintf(ratio, sizeof(ratio), "%.2fx",
                 (double)kernel->baseline.time.median_ns / (double)served->time.median_ns);
    }
    wpk_report_error(kernel, error);
    snprintf(tried, sizeof(tried), "%" PRId64 " + %" PRId64, kernel->measured, kernel->failed);
    wpk_text_table_add(table, (const char *const[]){
                                  kernel->name, best, speed, share,
                                  served->algorithm[0] != '\0' ? served->algorithm : served->detail,
                                  served->provider, vendor, ratio, kernel->accuracy, error, tried});
}

/* A candidate's genes, over as many lines as they need. */
static void print_wrapped(const char *text, int indent, int width, struct wpk_buf *out)
{
    wpk_format_wrap(text, indent, width > 0 && width < LINE_WIDTH ? width : LINE_WIDTH, out);
}

static void print_details(const struct wpk_api_kernel *kernel, const char *data_dir, int width,
                          struct wpk_buf *out)
{
    const struct wpk_api_contender *served = &kernel->served;
    struct wpk_buf path = {0};

    wpk_buf_printf(out, "\n%s\n", kernel->name);
    wpk_buf_printf(out, "  fingerprint  %s\n", kernel->fingerprint);
    if (served->candidate[0] != '\0') {
        wpk_buf_append_text(out, "  schedule     ");
        print_wrapped(served->candidate, DETAIL_INDENT, width, out);
    }
    if (served->artifact[0] != '\0') {
        wpk_buf_printf(out, "  kernel       %s\n", artifact_of(data_dir, served->artifact, &path));
    } else {
        char own[CELL_SIZE];
        wpk_buf_printf(out, "  kernel       the vendor's: %s %s\n", served->provider,
                       served->detail);
        if (timed(&kernel->own)) {
            format_spread(&kernel->own.time, own, sizeof(own));
            wpk_buf_printf(out, "  best of own  %s (%s), which is %s\n", own, kernel->own.algorithm,
                           kernel->own.time.median_ns < served->time.median_ns
                               ? "not faster beyond the noise"
                               : "slower");
        } else {
            wpk_buf_append_text(out, "  best of own  none worked\n");
        }
    }
    if (timed(&kernel->baseline) && wpk_report_is_noisy(&kernel->baseline.time)) {
        wpk_buf_printf(
            out,
            "  noise        the MAD of %s's time is %.0f %% of it, also when it was timed "
            "again: the speedup is uncertain; tune on a quiet machine\n",
            kernel->baseline.provider,
            100 * (double)kernel->baseline.time.mad_ns / (double)kernel->baseline.time.median_ns);
    }
    if (strcmp(kernel->conditions, "warm") != 0) {
        wpk_buf_printf(out, "  conditions   %s\n", kernel->conditions);
    }
    if (kernel->from_history) {
        wpk_buf_append_text(out, "  answered from history: nothing was measured now\n");
    }
    wpk_buf_fini(&path);
}

static void print_table(const struct wpk_api_job *job, const struct wpk_output *output,
                        struct wpk_text_table *table, struct wpk_buf *out)
{
    wpk_text_table_add(table, (const char *const[]){"op", "best ± MAD", "GFLOP/s", "of peak",
                                                    "algorithm", "by", "vendor ± MAD", "speedup",
                                                    "class", "error", "ok + failed"});
    for (int i = 0; i < job->kernel_count; i++) {
        add_row(table, &job->kernels[i]);
    }
    if (job->kernel_count > 0) {
        wpk_output_table(output, table, out);
    }
}

static void print_notes(const struct wpk_api_job *job, const char *data_dir, int width,
                        struct wpk_buf *out)
{
    bool passes = false;

    for (int i = 0; i < job->kernel_count; i++) {
        print_details(&job->kernels[i], data_dir, width, out);
        passes = passes || share_of_peak(&job->kernels[i]) > PEAK_PASSED;
    }
    if (passes) {
        wpk_buf_append_text(out, "\n");
        print_wrapped("GFLOP/s counts the operator's own operations: an algorithm that needs fewer "
                      "can pass the peak.",
                      0, width, out);
    }
    if (job->kernel_count > 0 && wpk_device_class_is_emulated(job->kernels[0].device)) {
        wpk_buf_append_text(out, "\n");
        print_wrapped(
            "Nothing was timed: the GPU is emulated, and a model of it ranked the kernels. It "
            "shares numbers with the model that chose the first candidates, and neither was "
            "compared with a GPU. They answer for no other device.",
            0, width, out);
    }
    for (int i = 0; i < job->op_count; i++) {
        if (job->ops[i].reason[0] != '\0') {
            wpk_buf_printf(out, "\n%s: %s\n", job->ops[i].name, job->ops[i].reason);
        }
    }
}

wpk_err wpk_report_print(const struct wpk_api_job *job, const char *data_dir,
                         const struct wpk_output *output, struct wpk_arena *arena,
                         struct wpk_buf *out)
{
    static struct wpk_text_table table; /* large, and there is one per process */

    table = (struct wpk_text_table){
        .arena = arena,
        .column_count = 11,
        .right = {[1] = true, [2] = true, [3] = true, [6] = true, [7] = true, [10] = true},
        .rank = {[2] = 7, [3] = 8, [4] = 4, [5] = 6, [6] = 5, [7] = 1, [8] = 2, [9] = 3, [10] = 9},
    };
    print_table(job, output, &table, out);
    if (!output->brief && (output->format == NULL || strcmp(output->format, "csv") != 0)) {
        print_notes(job, data_dir, wpk_output_width(STDOUT_FILENO), out);
    }
    return wpk_buf_status(out);
}

static void put_time(struct wpk_json_writer *writer, const struct wpk_api_time *time)
{
    wpk_json_begin_object(writer, "time_ns");
    wpk_json_put_int(writer, "median", (int64_t)time->median_ns);
    wpk_json_put_int(writer, "min", (int64_t)time->min_ns);
    wpk_json_put_int(writer, "mad", (int64_t)time->mad_ns);
    wpk_json_end(writer);
}

static void put_baseline(struct wpk_json_writer *writer, const struct wpk_api_kernel *kernel)
{
    if (!timed(&kernel->baseline)) {
        wpk_json_put_null(writer, "baseline");
        wpk_json_put_null(writer, "speedup");
        return;
    }
    wpk_json_begin_object(writer, "baseline");
    wpk_json_put_text(writer, "provider", kernel->baseline.provider);
    put_time(writer, &kernel->baseline.time);
    wpk_json_end(writer);
    wpk_json_put_real(writer, "speedup", kernel->speedup);
}

/* Where a vendor's implementation is served, the best of our own stands beside it. */
static void put_own(struct wpk_json_writer *writer, const struct wpk_api_kernel *kernel,
                    const char *data_dir)
{
    struct wpk_buf path = {0};

    if (!timed(&kernel->own) || kernel->own.artifact[0] == '\0' ||
        strcmp(kernel->own.artifact, kernel->served.artifact) == 0) {
        return;
    }
    wpk_json_begin_object(writer, "own");
    wpk_json_put_text(writer, "provider", kernel->own.provider);
    wpk_json_put_text(writer, "algorithm", kernel->own.algorithm);
    put_time(writer, &kernel->own.time);
    wpk_json_put_text_or_null(writer, "artifact",
                              artifact_of(data_dir, kernel->own.artifact, &path));
    wpk_json_end(writer);
    wpk_buf_fini(&path);
}

static void put_kernel(struct wpk_json_writer *writer, const struct wpk_api_kernel *kernel,
                       const char *data_dir)
{
    struct wpk_buf path = {0};

    wpk_json_begin_object(writer, NULL);
    wpk_json_put_text(writer, "name", kernel->name);
    wpk_json_put_text(writer, "fingerprint", kernel->fingerprint);
    wpk_json_put_raw(writer, "binding", kernel->binding_json);
    wpk_json_put_text(writer, "provider", kernel->served.provider);
    wpk_json_put_text(writer, "algorithm", kernel->served.algorithm);
    wpk_json_put_bool(writer, "timed", !wpk_device_class_is_emulated(kernel->device));
    put_time(writer, &kernel->served.time);
    put_baseline(writer, kernel);
    wpk_json_begin_object(writer, "candidates");
    wpk_json_put_int(writer, "measured", kernel->measured);
    wpk_json_put_int(writer, "failed", kernel->failed);
    wpk_json_end(writer);
    wpk_json_put_text_or_null(writer, "accuracy", kernel->accuracy);
    wpk_json_put_text_or_null(writer, "conditions", kernel->conditions);
    wpk_json_begin_object(writer, "verified");
    wpk_json_put_real(writer, "max_error", kernel->error_max);
    wpk_json_put_real(writer, "tolerance", kernel->error_tolerance);
    wpk_json_put_real(writer, "of_rms", kernel->of_rms);
    wpk_json_put_real(writer, "times_direct", kernel->times_direct);
    wpk_json_end(writer);
    wpk_json_put_bool(writer, "from_history", kernel->from_history);
    wpk_json_put_text_or_null(writer, "artifact",
                              artifact_of(data_dir, kernel->served.artifact, &path));
    wpk_json_put_text_or_null(writer, "schedule", kernel->schedule);
    put_own(writer, kernel, data_dir);
    wpk_json_end(writer);
    wpk_buf_fini(&path);
}

wpk_err wpk_report_encode(const struct wpk_api_job *job, const char *data_dir, struct wpk_buf *out)
{
    struct wpk_json_writer *writer = wpk_json_writer_new_object();

    wpk_json_begin_array(writer, "kernels");
    for (int i = 0; i < job->kernel_count; i++) {
        put_kernel(writer, &job->kernels[i], data_dir);
    }
    wpk_json_end(writer);
    wpk_json_put_real(writer, "seconds", job->seconds);
    return wpk_json_finish(writer, true, out);
}
