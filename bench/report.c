/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table as text for people, and writes it as JSON for programs. */
#include "bench/table.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/json.h"

#include <string.h>

static const char *const layouts_names[] = {"any", "fixed"};

#define MACHINE_TEXT_MAX 128

/* The CPU's own name, from /proc/cpuinfo. */
static void machine_name(char out[MACHINE_TEXT_MAX])
{
    snprintf(out, MACHINE_TEXT_MAX, "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, MACHINE_TEXT_MAX, "%s", value + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void print_head(const struct bench_table *table, FILE *out)
{
    char machine[MACHINE_TEXT_MAX];
    char date[WPK_CLOCK_TEXT_SIZE];
    char accuracy[WPK_ACCURACY_TEXT_MAX];
    machine_name(machine);
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), date);
    wpk_accuracy_name(table->accuracy, accuracy);
    fprintf(out, "%s, %s\n", machine, date);
    fprintf(out, "one core: %.1f GFLOP/s (%s f32 FMA), %.1f GB/s\n", table->peak.flops_per_s / 1e9,
            table->peak.name, table->peak.bytes_per_s / 1e9);
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        if (table->versions[i][0] != '\0') {
            fprintf(out, "%-12s %s\n", bench_implementation_heading(i), table->versions[i]);
        }
    }
    fprintf(out,
            "batch 1, f32, caches %s; us, median/minimum of %d interleaved rounds of %.0f ms each\n"
            "GFLOP/s and share of peak are the best peer's, zeros of the padding counted, which it "
            "may skip; ratio: its time / ours\n"
            "accuracy %s: * marks an error above %g times direct evaluation's; that time does not "
            "count\n",
            wpk_conditions_name(table->conditions), table->rounds, table->round_ms, accuracy,
            table->accuracy.times_direct);
}

/* A column appears when an implementation took part in any row of the section. */
struct section {
    enum bench_layouts layouts;
    int threads;
    bool shown[BENCH_IMPLEMENTATION_COUNT];
};

static bool is_in(const struct section *section, const struct bench_row *row)
{
    return row->what.layouts == section->layouts && row->what.threads == section->threads;
}

static struct section make_section(const struct bench_table *table, enum bench_layouts layouts,
                                   int threads)
{
    struct section section = {.layouts = layouts, .threads = threads};
    for (int i = 0; i < table->row_count; i++) {
        for (int j = 0; is_in(&section, &table->rows[i]) && j < BENCH_IMPLEMENTATION_COUNT; j++) {
            section.shown[j] |= table->rows[i].cell[j].state != BENCH_CELL_ABSENT;
        }
    }
    return section;
}

static void print_cell(const struct bench_table *table, const struct bench_cell *cell, FILE *out)
{
    static const char *const marks[] = {"-", "failed", "wrong", ""};
    const struct bench_estimate time = bench_cell_time(table, cell);
    char text[32];
    snprintf(text, sizeof(text), "%.1f/%.1f%s", time.median / 1e3, cell->ns_min / 1e3,
             bench_cell_in_class(table, cell) ? "" : "*");
    fprintf(out, " %14s", time.valid ? text : marks[cell->state]);
}

static void print_ratio(struct bench_estimate ratio, FILE *out)
{
    char text[32] = "-";
    if (ratio.valid) {
        snprintf(text, sizeof(text), "%.2f [%.2f, %.2f]", ratio.median, ratio.low, ratio.high);
    }
    fprintf(out, "  %-17s", text);
}

static void print_row(const struct bench_table *table, const struct section *section,
                      const struct bench_row *row, FILE *out)
{
    fprintf(out, "%-20s", row->what.op.name);
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        if (section->shown[i]) {
            print_cell(table, &row->cell[i], out);
        }
    }
    const int peer = bench_row_best_peer(table, row, BENCH_PEERS_ALL);
    if (peer >= 0) {
        const struct bench_estimate time = bench_cell_time(table, &row->cell[peer]);
        const double flops_per_s = bench_op_flops(&row->what.op) * 1e9 / time.median;
        fprintf(out, " %7.1f %5.0f%%", flops_per_s / 1e9,
                100 * flops_per_s / (table->peak.flops_per_s * row->what.threads));
    }
    if (section->shown[BENCH_OURS]) {
        print_ratio(bench_row_ratio(table, row, BENCH_PEERS_ALL), out);
        print_ratio(bench_row_ratio(table, row, BENCH_PEERS_DIRECT), out);
        if (section->shown[BENCH_READING]) {
            print_ratio(bench_row_ratio_to(table, row, BENCH_READING), out);
        }
    }
    fputc('\n', out);
}

static void print_headings(const struct section *section, const char *first, FILE *out)
{
    fprintf(out, "%-20s", first);
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        if (section->shown[i]) {
            fprintf(out, " %14s", bench_implementation_heading(i));
        }
    }
}

static void print_errors(const struct bench_table *table, const struct section *section, FILE *out)
{
    print_headings(section, "error", out);
    fprintf(out, " as a multiple of direct evaluation's (and of the output's rms)\n");
    for (int i = 0; i < table->row_count; i++) {
        const struct bench_row *row = &table->rows[i];
        if (!is_in(section, row)) {
            continue;
        }
        fprintf(out, "%-20s", row->what.op.name);
        for (int j = 0; j < BENCH_IMPLEMENTATION_COUNT; j++) {
            const struct bench_cell *cell = &row->cell[j];
            char text[32] = "-";
            if (cell->state == BENCH_CELL_TIMED && j != BENCH_READING) {
                const double times_direct = cell->accuracy.times_direct;
                snprintf(text, sizeof(text), "%.*f (%.1e)", times_direct < 10 ? 2 : 0, times_direct,
                         cell->accuracy.of_rms);
            }
            if (section->shown[j]) {
                fprintf(out, " %14s", text);
            }
        }
        fputc('\n', out);
    }
}

static void print_sum(const struct bench_table *table, const struct section *section,
                      enum bench_peers peers, const char *against, FILE *out)
{
    const struct bench_estimate sum =
        bench_table_sum_ratio(table, section->layouts, section->threads, peers);
    if (sum.valid) {
        fprintf(out, "c1..c12, sum of best peers / sum of ours%s: %.2f [%.2f, %.2f]\n", against,
                sum.median, sum.low, sum.high);
    }
}

static void print_section(const struct bench_table *table, enum bench_layouts layouts, int threads,
                          FILE *out)
{
    const struct section section = make_section(table, layouts, threads);
    fprintf(out, "\nlayouts %s, %d thread%s\n", layouts_names[layouts], threads,
            threads == 1 ? "" : "s");
    print_headings(&section, "time", out);
    fprintf(out, " GFLOP/s   peak%s%s\n",
            section.shown[BENCH_OURS] ? "  ratio [90 %]       to direct peers" : "",
            section.shown[BENCH_OURS] && section.shown[BENCH_READING] ? "    to reading" : "");
    for (int i = 0; i < table->row_count; i++) {
        if (is_in(&section, &table->rows[i])) {
            print_row(table, &section, &table->rows[i], out);
        }
    }
    print_sum(table, &section, BENCH_PEERS_ALL, "", out);
    print_sum(table, &section, BENCH_PEERS_DIRECT, ", against oneDNN, ONNX Runtime, OpenVINO alone",
              out);
    print_errors(table, &section, out);
}

/* Calls `visit` once for each pair of layouts and threads in the table, in order of appearance. */
typedef void (*section_visit)(const struct bench_table *table, enum bench_layouts layouts,
                              int threads, void *user);
static void each_section(const struct bench_table *table, section_visit visit, void *user)
{
    for (int i = 0; i < table->row_count; i++) {
        const struct bench_case *what = &table->rows[i].what;
        bool seen = false;
        for (int j = 0; j < i && !seen; j++) {
            seen = table->rows[j].what.layouts == what->layouts &&
                   table->rows[j].what.threads == what->threads;
        }
        if (!seen) {
            visit(table, what->layouts, what->threads, user);
        }
    }
}

static void visit_print(const struct bench_table *table, enum bench_layouts layouts, int threads,
                        void *user)
{
    print_section(table, layouts, threads, user);
}

void bench_table_print(const struct bench_table *table, FILE *out)
{
    print_head(table, out);
    each_section(table, visit_print, out);
    for (int i = 0; i < table->row_count; i++) {
        const struct bench_row *row = &table->rows[i];
        for (int j = 0; j < BENCH_IMPLEMENTATION_COUNT; j++) {
            const struct bench_cell *cell = &row->cell[j];
            if (cell->state == BENCH_CELL_FAILED || cell->state == BENCH_CELL_WRONG) {
                fprintf(out, "%s, %s, %d threads, %s: %s (error %.2g of its tolerance)\n",
                        row->what.op.name, layouts_names[row->what.layouts], row->what.threads,
                        bench_implementation_heading(j),
                        cell->state == BENCH_CELL_WRONG ? "wrong result" : cell->text,
                        cell->error_ratio);
            }
        }
    }
}

static void put_estimate(struct wpk_json_writer *writer, const char *key,
                         struct bench_estimate value)
{
    if (!value.valid) {
        wpk_json_put_null(writer, key);
        return;
    }
    wpk_json_begin_object(writer, key);
    wpk_json_put_real(writer, "median", value.median);
    wpk_json_put_real(writer, "low", value.low);
    wpk_json_put_real(writer, "high", value.high);
    wpk_json_end(writer);
}

static void put_cell(struct wpk_json_writer *writer, const struct bench_table *table, int which,
                     const struct bench_cell *cell)
{
    static const char *const states[] = {"absent", "failed", "wrong", "timed"};
    wpk_json_begin_object(writer, bench_implementation_name(which));
    wpk_json_put_text(writer, "state", states[cell->state]);
    wpk_json_put_text(writer, "detail", cell->text);
    if (cell->state == BENCH_CELL_TIMED) {
        wpk_json_put_real(writer, "error_over_tolerance", cell->error_ratio);
        wpk_json_put_real(writer, "of_rms", cell->accuracy.of_rms);
        wpk_json_put_real(writer, "times_direct", cell->accuracy.times_direct);
        wpk_json_put_bool(writer, "in_class", bench_cell_in_class(table, cell));
        put_estimate(writer, "time_ns", bench_cell_time(table, cell));
        wpk_json_put_real(writer, "min_ns", cell->ns_min);
        wpk_json_begin_array(writer, "rounds_ns");
        for (int i = 0; i < table->rounds; i++) {
            wpk_json_put_real(writer, NULL, cell->ns_median[i]);
        }
        wpk_json_end(writer);
    }
    wpk_json_end(writer);
}

static void put_row(struct wpk_json_writer *writer, const struct bench_table *table,
                    const struct bench_row *row)
{
    const int peer = bench_row_best_peer(table, row, BENCH_PEERS_ALL);
    wpk_json_begin_object(writer, NULL);
    wpk_json_put_text(writer, "op", row->what.op.name);
    wpk_json_put_text(writer, "layouts", layouts_names[row->what.layouts]);
    wpk_json_put_int(writer, "threads", row->what.threads);
    wpk_json_put_real(writer, "flops", bench_op_flops(&row->what.op));
    wpk_json_begin_object(writer, "implementations");
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        if (row->cell[i].state != BENCH_CELL_ABSENT) {
            put_cell(writer, table, i, &row->cell[i]);
        }
    }
    wpk_json_end(writer);
    if (peer >= 0) {
        wpk_json_put_text(writer, "best_peer", bench_implementation_name(peer));
    }
    put_estimate(writer, "ratio", bench_row_ratio(table, row, BENCH_PEERS_ALL));
    put_estimate(writer, "ratio_to_direct_peers", bench_row_ratio(table, row, BENCH_PEERS_DIRECT));
    put_estimate(writer, "ratio_to_reading", bench_row_ratio_to(table, row, BENCH_READING));
    wpk_json_end(writer);
}

static void visit_sum(const struct bench_table *table, enum bench_layouts layouts, int threads,
                      void *user)
{
    struct wpk_json_writer *writer = user;
    wpk_json_begin_object(writer, NULL);
    wpk_json_put_text(writer, "layouts", layouts_names[layouts]);
    wpk_json_put_int(writer, "threads", threads);
    put_estimate(writer, "ratio", bench_table_sum_ratio(table, layouts, threads, BENCH_PEERS_ALL));
    put_estimate(writer, "ratio_to_direct_peers",
                 bench_table_sum_ratio(table, layouts, threads, BENCH_PEERS_DIRECT));
    wpk_json_end(writer);
}

static void put_head(struct wpk_json_writer *writer, const struct bench_table *table)
{
    char machine[MACHINE_TEXT_MAX];
    char date[WPK_CLOCK_TEXT_SIZE];
    machine_name(machine);
    wpk_clock_format(wpk_clock_wall_ns(wpk_clock_system()), date);
    wpk_json_put_text(writer, "machine", machine);
    wpk_json_put_text(writer, "date", date);
    wpk_json_put_int(writer, "rounds", table->rounds);
    wpk_json_put_real(writer, "round_ms", table->round_ms);
    wpk_json_put_text(writer, "conditions", wpk_conditions_name(table->conditions));
    wpk_accuracy_put(writer, "accuracy", &table->accuracy);
    wpk_json_begin_object(writer, "peak");
    wpk_json_put_text(writer, "isa", table->peak.name);
    wpk_json_put_real(writer, "flops_per_s", table->peak.flops_per_s);
    wpk_json_put_real(writer, "bytes_per_s", table->peak.bytes_per_s);
    wpk_json_end(writer);
    wpk_json_begin_object(writer, "versions");
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        wpk_json_put_text(writer, bench_implementation_name(i), table->versions[i]);
    }
    wpk_json_end(writer);
}

wpk_err bench_table_write_json(const struct bench_table *table, const char *path,
                               struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_json_writer *writer = wpk_json_writer_new_object();
    put_head(writer, table);
    wpk_json_begin_array(writer, "rows");
    for (int i = 0; i < table->row_count; i++) {
        put_row(writer, table, &table->rows[i]);
    }
    wpk_json_end(writer);
    wpk_json_begin_array(writer, "resnet18_sum");
    each_section(table, visit_sum, writer);
    wpk_json_end(writer);
    wpk_err err = writer != NULL ? wpk_json_print(writer, true, &text) : WPK_ENOMEM;
    if (err == WPK_OK) {
        err = wpk_fs_write(path, text.data, text.size, 0644, diag);
    }
    wpk_json_writer_free(writer);
    wpk_buf_fini(&text);
    return err;
}
