/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fleet_report.h"

#include "common/buf.h"
#include "common/fs.h"
#include "common/json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- latencies */

void bench_latencies_reset(struct bench_latencies *latencies)
{
    latencies->count = 0;
    latencies->beyond = 0;
}

void bench_latencies_add(struct bench_latencies *latencies, uint64_t ns)
{
    if (latencies->count < BENCH_LATENCIES_MAX) {
        latencies->ns[latencies->count++] = ns;
    } else {
        latencies->beyond++;
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double bench_latencies_ms(struct bench_latencies *latencies, double share)
{
    if (latencies->count == 0) {
        return 0;
    }
    qsort(latencies->ns, latencies->count, sizeof latencies->ns[0], compare);
    uint32_t at = (uint32_t)(share * (double)(latencies->count - 1));
    return (double)latencies->ns[at] / 1e6;
}

/* ---- /proc */

static void read_thread(const char *id, struct bench_threads *threads)
{
    char path[300];
    char text[1024];
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *open = strchr(text, '(');
    char *close = strrchr(text, ')');
    unsigned long user = 0;
    unsigned long system = 0;
    if (open == NULL || close == NULL ||
        sscanf(close + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) !=
            2) {
        return;
    }
    int at = threads->count++;
    threads->id[at] = (int)strtol(id, NULL, 10);
    snprintf(threads->name[at], sizeof threads->name[at], "%.*s", (int)(close - open - 1),
             open + 1);
    threads->cpu_s[at] = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

void bench_threads_take(struct bench_threads *threads)
{
    DIR *directory = opendir("/proc/self/task");
    threads->count = 0;
    for (struct dirent *entry; directory != NULL && threads->count < BENCH_THREADS_MAX &&
                               (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') {
            read_thread(entry->d_name, threads);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

double bench_rss_mib(int pid)
{
    char path[64];
    char line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtod(line + 6, NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib / 1024;
}

/* ---- the report */

/* CPU seconds of the thread in this part. */
static double used_s(const struct bench_fleet_part *part, int thread)
{
    double before = 0;
    for (int i = 0; i < part->before.count; i++) {
        if (part->before.id[i] == part->after.id[thread]) {
            before = part->before.cpu_s[i];
        }
    }
    return part->after.cpu_s[thread] - before;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void print_part(struct bench_fleet_part *part, FILE *out)
{
    fprintf(out, "  results/s           %10.0f\n", (double)part->results / part->seconds);
    fprintf(out, "  fsyncs/s            %10.1f\n", (double)part->fsyncs / part->seconds);
    fprintf(out, "  results per fsync   %10.1f\n",
            ratio((double)part->results, (double)part->fsyncs));
    fprintf(out, "  commit, ms          %10.2f p50 %10.2f p99\n",
            bench_latencies_ms(&part->commits, 0.5), bench_latencies_ms(&part->commits, 0.99));
    fprintf(out, "  result to ack, ms   %10.2f p50 %10.2f p99\n",
            bench_latencies_ms(&part->acks, 0.5), bench_latencies_ms(&part->acks, 0.99));
    for (int i = 0; i < part->after.count; i++) {
        double s = used_s(part, i);
        if (s >= 0.01 * part->seconds) {
            fprintf(out, "  CPU of %-12s %10.0f %% %10.1f us a result\n", part->after.name[i],
                    100 * s / part->seconds, 1e6 * s / (double)part->results);
        }
    }
}

void bench_fleet_report_print(struct bench_fleet_report *report, FILE *out)
{
    struct bench_fleet_part *without = &report->parts[0];
    struct bench_fleet_part *with = &report->parts[1];
    fprintf(out, "%u workers, %u results a message, %lld rows, +%d ms per fsync, %.1f s\n",
            report->workers, report->batch, (long long)report->rows, report->fsync_ms,
            without->seconds);
    print_part(without, out);
    if (report->artifact_size > 0) {
        fprintf(out, "and with artifacts of %zu bytes, %.1f s\n", report->artifact_size,
                with->seconds);
        fprintf(out, "  uploads/s           %10.1f (%llu refused)\n",
                (double)with->uploads / with->seconds, (unsigned long long)with->uploads_refused);
        print_part(with, out);
        fprintf(
            out, "  p99 with / without  %10.2f commit %10.2f ack\n",
            ratio(bench_latencies_ms(&with->commits, 0.99),
                  bench_latencies_ms(&without->commits, 0.99)),
            ratio(bench_latencies_ms(&with->acks, 0.99), bench_latencies_ms(&without->acks, 0.99)));
    }
    fprintf(out, "repeated, errors      %10llu %10llu\n", (unsigned long long)report->repeated,
            (unsigned long long)report->errors);
    fprintf(out, "resident, MiB         %10.0f (crew included)\n", bench_rss_mib((int)getpid()));
}

static void put_part(struct wpk_json_writer *w, struct bench_fleet_part *part)
{
    wpk_json_put_real(w, "seconds", part->seconds);
    wpk_json_put_real(w, "results_per_s", (double)part->results / part->seconds);
    wpk_json_put_real(w, "fsyncs_per_s", (double)part->fsyncs / part->seconds);
    wpk_json_put_real(w, "results_per_fsync", ratio((double)part->results, (double)part->fsyncs));
    wpk_json_put_real(w, "commit_ms_p50", bench_latencies_ms(&part->commits, 0.5));
    wpk_json_put_real(w, "commit_ms_p99", bench_latencies_ms(&part->commits, 0.99));
    wpk_json_put_real(w, "ack_ms_p50", bench_latencies_ms(&part->acks, 0.5));
    wpk_json_put_real(w, "ack_ms_p99", bench_latencies_ms(&part->acks, 0.99));
    wpk_json_begin_array(w, "threads");
    for (int i = 0; i < part->after.count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", part->after.name[i]);
        wpk_json_put_real(w, "cpu_share", used_s(part, i) / part->seconds);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

void bench_fleet_report_write(struct bench_fleet_report *report, const char *path)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_json_put_int(w, "workers", report->workers);
    wpk_json_put_int(w, "batch", report->batch);
    wpk_json_put_int(w, "rows", report->rows);
    wpk_json_put_int(w, "fsync_ms", report->fsync_ms);
    put_part(w, &report->parts[0]);
    wpk_json_put_int(w, "repeated", (int64_t)report->repeated);
    wpk_json_put_int(w, "errors", (int64_t)report->errors);
    if (report->artifact_size > 0) {
        struct bench_fleet_part *with = &report->parts[1];
        wpk_json_begin_object(w, "with_artifacts");
        wpk_json_put_int(w, "artifact_bytes", (int64_t)report->artifact_size);
        wpk_json_put_real(w, "uploads_per_s", (double)with->uploads / with->seconds);
        wpk_json_put_int(w, "uploads_refused", (int64_t)with->uploads_refused);
        put_part(w, with);
        wpk_json_end(w);
    }
    wpk_err err = wpk_json_print(w, true, &text);
    wpk_json_writer_free(w);
    if (err == WPK_OK) {
        err = wpk_fs_write(path, text.data, text.size, 0644, &diag);
    }
    if (err != WPK_OK) {
        fprintf(stderr, "%s: %s\n", path, diag.text);
    }
    wpk_buf_fini(&text);
}
