/* SPDX-License-Identifier: Apache-2.0 */
/* Every number is a relaxed atomic of its own: a scrape may see a histogram's count before its sum,
 * which the next one sees. The buckets and the count have to agree within a page, so both are
 * printed from one reading. */
#include "common/metrics.h"

#include "common/machine.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct label {
    const char *name;
    const char *values[WPK_METRIC_VALUES_MAX]; /* then NULL */
};

static const struct label labels[WPK_LABEL_COUNT] = {
#define WPK_LABEL_ROW(id, name, ...) {name, {__VA_ARGS__}},
    WPK_LABEL_LIST(WPK_LABEL_ROW)
#undef WPK_LABEL_ROW
};

struct metric {
    const char *name;
    enum wpk_label label;
    const char *help;
};

static const struct metric counter_rows[] = {
#define WPK_METRIC_ROW(id, name, label, help) {name, WPK_LABEL_##label, help},
    WPK_COUNTER_LIST(WPK_METRIC_ROW)};
static const struct metric gauge_rows[] = {WPK_GAUGE_LIST(WPK_METRIC_ROW)
#undef WPK_METRIC_ROW
};

enum unit { NS, PPM, ONE };
static const double unit_scales[] = {[NS] = 1e9, [PPM] = 1e6, [ONE] = 1};

/* Upper ends, in the unit observed in; the last bucket, without an end, is not listed. */
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
static const uint64_t work_ends[] = {10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS,
                                     1 * S,   2 * S,   5 * S,   10 * S,   20 * S,   60 * S};
static const uint64_t request_ends[] = {2 * US,   5 * US,   10 * US,  25 * US, 50 * US, 100 * US,
                                        250 * US, 1 * MS,   2 * MS,   5 * MS,  10 * MS, 25 * MS,
                                        50 * MS,  100 * MS, 250 * MS, 1 * S,   5 * S};
static const uint64_t commit_ends[] = {100 * US, 250 * US, 500 * US, 1 * MS,  2 * MS,
                                       5 * MS,   10 * MS,  25 * MS,  50 * MS, 100 * MS,
                                       250 * MS, 500 * MS, 1 * S,    5 * S,   10 * S};
static const uint64_t count_ends[] = {0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000};
static const uint64_t ratio_ends[] = {1000,  2000,   5000,   10000,  20000,
                                      50000, 100000, 200000, 500000, 1000000};

struct histogram {
    const char *name;
    enum unit unit;
    const uint64_t *ends;
    size_t end_count;
    const char *help;
};

static const struct histogram histogram_rows[] = {
#define WPK_HISTOGRAM_ROW(id, name, unit, ends, help)                                              \
    {name, unit, ends##_ends, sizeof ends##_ends / sizeof ends##_ends[0], help},
    WPK_HISTOGRAM_LIST(WPK_HISTOGRAM_ROW)
#undef WPK_HISTOGRAM_ROW
};

static _Atomic uint64_t counters[WPK_COUNTER_COUNT][WPK_METRIC_VALUES_MAX];
static _Atomic int64_t gauges[WPK_GAUGE_COUNT][WPK_METRIC_VALUES_MAX];
static struct {
    _Atomic uint64_t buckets[WPK_METRIC_BUCKETS_MAX + 1]; /* the last: past every end */
    _Atomic uint64_t sum;                                 /* in the unit observed in */
} histograms[WPK_HISTOGRAM_COUNT];

/* Device classes seen; [0] is "other". A name is written before the count that covers it, so that
 * readers need no lock; `lock` is between writers. */
static struct {
    pthread_mutex_t lock;
    _Atomic unsigned count;
    char names[WPK_METRIC_VALUES_MAX][WPK_METRIC_VALUE_SIZE];
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1, .names = {"other"}};

/* ---- labels */

static void print_number(struct wpk_buf *out, const char *name, const char *type, const char *help,
                         double number)
{
    wpk_buf_printf(out, "# HELP %s %s.\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name,
                   number);
}

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = file != NULL && fgets(line, (int)size, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* The fields after the program's name, which may hold anything. */
static void print_stat(struct wpk_buf *out)
{
    char line[1024];
    uint64_t user = 0;
    uint64_t kernel = 0;
    uint64_t start = 0;
    uint64_t virtual_bytes = 0;
    int64_t pages = 0;
    struct timespec up = {0};
    struct timespec now = {0};
    double ticks = (double)sysconf(_SC_CLK_TCK);
    const char *after = read_line("/proc/self/stat", line, sizeof line) ? strrchr(line, ')') : NULL;
    if (after == NULL || sscanf(after + 1,
                                " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                                " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNd64,
                                &user, &kernel, &start, &virtual_bytes, &pages) != 5) {
        return;
    }
    print_number(out, "process_cpu_seconds_total", "counter", "User and system time",
                 (double)(user + kernel) / ticks);
    print_number(out, "process_resident_memory_bytes", "gauge", "Resident memory",
                 (double)pages * (double)sysconf(_SC_PAGESIZE));
    print_number(out, "process_virtual_memory_bytes", "gauge", "Virtual memory",
                 (double)virtual_bytes);
    /* Not from /proc/stat, which a service may not be shown. */
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    double boot_s = (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
    print_number(out, "process_start_time_seconds", "gauge", "Start, since 1970",
                 boot_s + (double)start / ticks);
}

static void print_descriptors(struct wpk_buf *out)
{
    uint64_t count = 0;
    uint64_t max = 0;
    wpk_limits_descriptors(&count, &max);
    print_number(out, "process_open_fds", "gauge", "Open file descriptors", (double)count);
    print_number(out, "process_max_fds", "gauge", "File descriptors it may open", (double)max);
}

static unsigned value_count(enum wpk_label label)
{
    if (label == WPK_LABEL_DEVICE) {
        return atomic_load_explicit(&devices.count, memory_order_acquire);
    }
    unsigned count = 0;
    while (count < WPK_METRIC_VALUES_MAX && labels[label].values[count] != NULL) {
        count++;
    }
    return count;
}

static unsigned find_device(const char *name, unsigned from)
{
    unsigned count = value_count(WPK_LABEL_DEVICE);
    while (from < count && strcmp(devices.names[from], name) != 0) {
        from++;
    }
    return from < count ? from : 0;
}

static unsigned device_value(const char *text)
{
    char name[WPK_METRIC_VALUE_SIZE] = "";
    /* Printable and without what the text format would have escaped. */
    for (size_t i = 0; text[i] != '\0' && i < sizeof name - 1; i++) {
        unsigned char c = (unsigned char)text[i];
        name[i] = c < ' ' || c >= 0x7f || c == '"' || c == '\\' ? '_' : text[i];
    }
    unsigned found = find_device(name, 0);
    if (found != 0 || strcmp(name, "other") == 0) {
        return found;
    }
    pthread_mutex_lock(&devices.lock);
    found = find_device(name, 1);
    unsigned count = value_count(WPK_LABEL_DEVICE);
    if (found == 0 && count < WPK_METRIC_VALUES_MAX) {
        found = count;
        memcpy(devices.names[found], name, sizeof name);
        atomic_store_explicit(&devices.count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&devices.lock);
    return found;
}

unsigned wpk_metric_value(enum wpk_label label, const char *text)
{
    WPK_ASSERT((unsigned)label < WPK_LABEL_COUNT);
    if (label == WPK_LABEL_DEVICE) {
        return device_value(text);
    }
    int count = (int)value_count(label);
    int found = wpk_list_find(labels[label].values, count, text);
    found = found < 0 ? wpk_list_find(labels[label].values, count, "other") : found;
    return (unsigned)(found < 0 ? count - 1 : found);
}

unsigned wpk_metric_value_count(enum wpk_label label)
{
    WPK_ASSERT((unsigned)label < WPK_LABEL_COUNT);
    return value_count(label);
}

/* ---- counting */

void wpk_metric_add(enum wpk_counter counter, unsigned value, uint64_t amount)
{
    WPK_ASSERT((unsigned)counter < WPK_COUNTER_COUNT);
    WPK_ASSERT(value < value_count(counter_rows[counter].label));
    atomic_fetch_add_explicit(&counters[counter][value], amount, memory_order_relaxed);
}

void wpk_metric_set(enum wpk_gauge gauge, unsigned value, int64_t number)
{
    WPK_ASSERT((unsigned)gauge < WPK_GAUGE_COUNT);
    WPK_ASSERT(value < value_count(gauge_rows[gauge].label));
    atomic_store_explicit(&gauges[gauge][value], number, memory_order_relaxed);
}

void wpk_metric_change(enum wpk_gauge gauge, unsigned value, int64_t difference)
{
    WPK_ASSERT((unsigned)gauge < WPK_GAUGE_COUNT);
    WPK_ASSERT(value < value_count(gauge_rows[gauge].label));
    atomic_fetch_add_explicit(&gauges[gauge][value], difference, memory_order_relaxed);
}

static void observe(enum wpk_histogram histogram, enum unit unit, uint64_t number)
{
    WPK_ASSERT((unsigned)histogram < WPK_HISTOGRAM_COUNT);
    const struct histogram *row = &histogram_rows[histogram];
    WPK_ASSERT(row->unit == unit);
    size_t i = 0;
    while (i < row->end_count && number > row->ends[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&histograms[histogram].buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histograms[histogram].sum, number, memory_order_relaxed);
}

void wpk_metric_observe_ns(enum wpk_histogram histogram, uint64_t ns)
{
    observe(histogram, NS, ns);
}

void wpk_metric_observe_ratio(enum wpk_histogram histogram, double ratio)
{
    double ppm = ratio * unit_scales[PPM];
    observe(histogram, PPM, ppm > 1e15 ? UINT64_C(1000000000000000) : ppm > 0 ? (uint64_t)ppm : 0);
}

void wpk_metric_observe_count(enum wpk_histogram histogram, uint64_t count)
{
    observe(histogram, ONE, count);
}

uint64_t wpk_metric_counted(enum wpk_counter counter, unsigned value)
{
    WPK_ASSERT((unsigned)counter < WPK_COUNTER_COUNT);
    WPK_ASSERT(value < WPK_METRIC_VALUES_MAX);
    return atomic_load_explicit(&counters[counter][value], memory_order_relaxed);
}

int64_t wpk_metric_gauged(enum wpk_gauge gauge, unsigned value)
{
    WPK_ASSERT((unsigned)gauge < WPK_GAUGE_COUNT);
    WPK_ASSERT(value < WPK_METRIC_VALUES_MAX);
    return atomic_load_explicit(&gauges[gauge][value], memory_order_relaxed);
}

void wpk_metrics_reset(void)
{
    memset(counters, 0, sizeof counters);
    memset(gauges, 0, sizeof gauges);
    memset(histograms, 0, sizeof histograms);
    atomic_store(&devices.count, 1);
}

/* ---- printing */

static void print_head(struct wpk_buf *out, const char *name, const char *help, const char *type)
{
    wpk_buf_printf(out, "# HELP %s %s.\n# TYPE %s %s\n", name, help, name, type);
}

/* name{label="value"}, and a blank */
static void print_series(struct wpk_buf *out, const struct metric *row, unsigned value)
{
    wpk_buf_append_text(out, row->name);
    if (row->label != WPK_LABEL_NONE) {
        wpk_buf_printf(out, "{%s=\"%s\"}", labels[row->label].name,
                       row->label == WPK_LABEL_DEVICE ? devices.names[value]
                                                      : labels[row->label].values[value]);
    }
    wpk_buf_append_byte(out, ' ');
}

static void print_counter(struct wpk_buf *out, enum wpk_counter counter)
{
    const struct metric *row = &counter_rows[counter];
    bool in_seconds = strstr(row->name, "_seconds_") != NULL;
    print_head(out, row->name, row->help, "counter");
    for (unsigned i = 0; i < value_count(row->label); i++) {
        uint64_t count = wpk_metric_counted(counter, i);
        print_series(out, row, i);
        if (in_seconds) {
            wpk_buf_printf(out, "%.15g\n", (double)count / unit_scales[NS]);
        } else {
            wpk_buf_printf(out, "%" PRIu64 "\n", count);
        }
    }
}

static void print_histogram(struct wpk_buf *out, enum wpk_histogram histogram)
{
    const struct histogram *row = &histogram_rows[histogram];
    double scale = unit_scales[row->unit];
    uint64_t count = 0;
    print_head(out, row->name, row->help, "histogram");
    for (size_t i = 0; i <= row->end_count; i++) {
        count += atomic_load_explicit(&histograms[histogram].buckets[i], memory_order_relaxed);
        if (i < row->end_count) {
            wpk_buf_printf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", row->name,
                           (double)row->ends[i] / scale, count);
        } else {
            wpk_buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", row->name, count);
        }
    }
    uint64_t sum = atomic_load_explicit(&histograms[histogram].sum, memory_order_relaxed);
    wpk_buf_printf(out, "%s_sum %.15g\n%s_count %" PRIu64 "\n", row->name, (double)sum / scale,
                   row->name, count);
}

void wpk_metrics_print(struct wpk_buf *out)
{
    print_head(out, "wpk_build_info", "1, labelled with what runs", "gauge");
    wpk_buf_printf(out, "wpk_build_info{version=\"%s\"} 1\n", WPK_VERSION);
    for (unsigned i = 0; i < WPK_COUNTER_COUNT; i++) {
        print_counter(out, (enum wpk_counter)i);
    }
    for (unsigned i = 0; i < WPK_GAUGE_COUNT; i++) {
        const struct metric *row = &gauge_rows[i];
        print_head(out, row->name, row->help, "gauge");
        for (unsigned at = 0; at < value_count(row->label); at++) {
            print_series(out, row, at);
            wpk_buf_printf(out, "%" PRId64 "\n", wpk_metric_gauged((enum wpk_gauge)i, at));
        }
    }
    for (unsigned i = 0; i < WPK_HISTOGRAM_COUNT; i++) {
        print_histogram(out, (enum wpk_histogram)i);
    }
    /* A number of the process that /proc does not give, for want of a descriptor to read it with,
     * is left out. */
    print_stat(out);
    print_descriptors(out);
}
