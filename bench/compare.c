/* SPDX-License-Identifier: Apache-2.0 */
/* bench-compare: compares our kernels with other libraries, interleaved.
 *
 * For each case every implementation opens the operator and is checked. Rounds follow, in which
 * each implementation is timed in turn. The order moves on by one from round to round, so that a
 * slow moment of the machine hits all of them. A ratio is taken within a round. */
#include "bench/cases.h"
#include "bench/child.h"
#include "bench/table.h"
#include "bench/usage.h"
#include "common/clock.h"
#include "common/fs.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define TUNED_MAX 16

struct options {
    const char *ops;
    const char *cases; /* NULL: none */
    const char *tuned[TUNED_MAX];
    int tuned_count;
    const char *models;
    const char *programs; /* directory of the peers; NULL: beside this program */
    const char *only;     /* NULL: all; else names with commas between */
    const char *json;     /* NULL: text only */
    int threads[2];
    int threads_count;
    bool layouts[2]; /* by enum bench_layouts */
    enum wpk_conditions conditions;
    struct wpk_accuracy accuracy;
    int rounds;
    int round_ms;
};

struct bench {
    struct options options;
    struct bench_ops ops;
    struct bench_table table;
    struct bench_child children[BENCH_IMPLEMENTATION_COUNT];
    char programs[BENCH_PATH_MAX];
};

static const char usage[] =
    "usage: bench-compare --models DIR [options]\n"
    "  --ops FILE         operators, a job file (bench/ops.json)\n"
    "  --tuned LAYOUTS:THREADS:FILE   kernels of ours: what `wpkctl tune --json` printed\n"
    "  --cases FILE       the same as a list: [{op, layouts, threads, kernel, served}, ...]\n"
    "without these two all operators are run, peers alone:\n"
    "  --threads N[,M]    (1)\n"
    "  --layouts any|fixed|both   (both)\n"
    "in any case:\n"
    "  --accuracy CLASS   strict|standard|fast|times_direct=K: times of results whose error is\n"
    "                     above the class do not count (standard)\n"
    "  --conditions warm|cold-constants|cold   what the caches hold before a call (warm)\n"
    "  --only NAME,...    these operators only\n"
    "  --rounds N         interleaved rounds (11)\n"
    "  --ms N             of sampling in a round (40)\n"
    "  --programs DIR     where the bench-peer-* are (beside this program)\n"
    "  --json FILE        write all that was measured\n";

static const struct option long_options[] = {
    {"ops", required_argument, NULL, 'o'},        {"cases", required_argument, NULL, 'c'},
    {"tuned", required_argument, NULL, 'u'},      {"models", required_argument, NULL, 'm'},
    {"programs", required_argument, NULL, 'p'},   {"only", required_argument, NULL, 'n'},
    {"json", required_argument, NULL, 'j'},       {"threads", required_argument, NULL, 't'},
    {"layouts", required_argument, NULL, 'l'},    {"rounds", required_argument, NULL, 'r'},
    {"ms", required_argument, NULL, 's'},         {"accuracy", required_argument, NULL, 'a'},
    {"conditions", required_argument, NULL, 'd'}, {NULL, 0, NULL, 0},
};

static void parse_threads(const char *text, struct options *out)
{
    char *end = NULL;
    out->threads[0] = (int)strtol(text, &end, 10);
    out->threads_count = *end == ',' ? 2 : 1;
    out->threads[1] = *end == ',' ? (int)strtol(end + 1, NULL, 10) : 1;
}

static bool take_accuracy(struct options *out)
{
    struct wpk_diag diag = {0};
    const wpk_err err = wpk_accuracy_parse(optarg, &out->accuracy, &diag);
    if (err != WPK_OK) {
        fprintf(stderr, "bench-compare: --accuracy: %s\n", diag.text);
    }
    return err == WPK_OK;
}

static bool take_option(int opt, struct options *out)
{
    switch (opt) {
    case 'o':
        out->ops = optarg;
        return true;
    case 'c':
        out->cases = optarg;
        return true;
    case 'm':
        out->models = optarg;
        return true;
    case 'p':
        out->programs = optarg;
        return true;
    case 'n':
        out->only = optarg;
        return true;
    case 'j':
        out->json = optarg;
        return true;
    case 'r':
        out->rounds = (int)strtol(optarg, NULL, 10);
        return true;
    case 's':
        out->round_ms = (int)strtol(optarg, NULL, 10);
        return true;
    case 't':
        parse_threads(optarg, out);
        return true;
    case 'l':
        out->layouts[BENCH_LAYOUTS_ANY] = strcmp(optarg, "fixed") != 0;
        out->layouts[BENCH_LAYOUTS_FIXED] = strcmp(optarg, "any") != 0;
        return true;
    case 'a':
        return take_accuracy(out);
    case 'd':
        if (wpk_conditions_parse(optarg, &out->conditions) != WPK_OK) {
            fprintf(stderr, "bench-compare: --conditions: unknown conditions '%s'\n", optarg);
            return false;
        }
        return true;
    case 'u':
        if (out->tuned_count == TUNED_MAX) {
            return false;
        }
        out->tuned[out->tuned_count++] = optarg;
        return true;
    default:
        return false;
    }
}

static bool parse_options(int argc, char **argv, struct options *out)
{
    int opt = 0;
    while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (!take_option(opt, out)) {
            return false;
        }
    }
    bool good = optind == argc && out->models != NULL;
    good = good && out->rounds >= 1 && out->rounds <= BENCH_ROUNDS_MAX && out->round_ms >= 1;
    for (int i = 0; i < 2; i++) {
        good = good && out->threads[i] >= 1 && out->threads[i] <= THREADS_MAX;
    }
    return good;
}

/* A child runs on as many CPUs as the case has threads; a new count needs a new process, because
 * some libraries look at their CPUs only once. */
static wpk_err ensure_child(struct bench *bench, int which, int threads, struct wpk_diag *diag)
{
    struct bench_child *child = &bench->children[which];
    if (child->pid != 0 && child->threads != threads) {
        bench_child_stop(child);
    }
    if (child->pid != 0) {
        return WPK_OK;
    }
    char program[BENCH_PATH_MAX + 64];
    snprintf(program, sizeof(program), "%s/bench-peer-%s", bench->programs,
             bench_implementation_program(which));
    const wpk_err err = bench_child_start(child, program, threads, diag);
    if (err == WPK_OK) {
        memcpy(bench->table.versions[which], child->version, sizeof(child->version));
    }
    return err;
}

/* False when this implementation has nothing to load for the row. */
static bool choose_path(const struct bench *bench, struct bench_row *row, int which)
{
    const size_t size = sizeof(row->what.path);
    switch (which) {
    case BENCH_OURS:
        snprintf(row->what.path, size, "%s", row->kernel);
        break;
    case BENCH_SERVED:
        snprintf(row->what.path, size, "%s", row->served);
        break;
    default:
        snprintf(row->what.path, size, "%s/%s.onnx", bench->options.models, row->what.op.name);
        break;
    }
    return row->what.path[0] != '\0';
}

static void open_cell(struct bench *bench, struct bench_row *row, int which)
{
    struct bench_cell *cell = &row->cell[which];
    struct bench_reply reply = {0};
    struct wpk_diag diag = {0};
    if (!choose_path(bench, row, which)) {
        return;
    }
    wpk_err err = ensure_child(bench, which, row->what.threads, &diag);
    if (err == WPK_ENOENT) {
        return;
    }
    if (err == WPK_OK) {
        const struct bench_request request = {.command = BENCH_OPEN, .what = row->what};
        err = bench_child_ask(&bench->children[which], &request, &reply, &diag);
    }
    snprintf(cell->text, sizeof(cell->text), "%.*s", BENCH_TEXT_MAX - 1,
             err == WPK_OK ? reply.text : diag.text);
    cell->error_ratio = reply.error_ratio;
    cell->accuracy = reply.accuracy;
    cell->state = BENCH_CELL_TIMED;
    if (err == WPK_EUNSUPPORTED) {
        cell->state = BENCH_CELL_ABSENT;
    } else if (err != WPK_OK) {
        cell->state = BENCH_CELL_FAILED;
    } else if (reply.error_ratio > BENCH_OP_WRONG) {
        cell->state = BENCH_CELL_WRONG;
    }
}

static void time_cell(struct bench *bench, struct bench_row *row, int which, int round)
{
    struct bench_cell *cell = &row->cell[which];
    const struct bench_request request = {
        .command = BENCH_ROUND,
        .budget_ns = (uint64_t)bench->options.round_ms * WPK_NS_PER_MS,
        .conditions = bench->options.conditions,
    };
    struct bench_reply reply = {0};
    struct wpk_diag diag = {0};
    if (bench_child_ask(&bench->children[which], &request, &reply, &diag) != WPK_OK) {
        cell->state = BENCH_CELL_FAILED;
        snprintf(cell->text, sizeof(cell->text), "%.*s", BENCH_TEXT_MAX - 1, diag.text);
        return;
    }
    cell->ns_median[round] = reply.ns_median;
    cell->ns_min = round == 0 || reply.ns_min < cell->ns_min ? reply.ns_min : cell->ns_min;
}

static void run_row(struct bench *bench, struct bench_row *row)
{
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        open_cell(bench, row, i);
    }
    for (int round = 0; round < bench->table.rounds; round++) {
        for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
            const int which = (i + round) % BENCH_IMPLEMENTATION_COUNT;
            if (row->cell[which].state == BENCH_CELL_TIMED) {
                time_cell(bench, row, which, round);
            }
        }
    }
    static const struct bench_request close_request = {.command = BENCH_CLOSE};
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        struct bench_reply reply = {0};
        struct wpk_diag diag = {0};
        if (row->cell[i].state != BENCH_CELL_ABSENT &&
            bench_child_ask(&bench->children[i], &close_request, &reply, &diag) != WPK_OK) {
            bench_child_stop(&bench->children[i]); /* what it would not close it takes along */
        }
    }
}

static wpk_err add_rows(struct bench *bench, struct wpk_diag *diag)
{
    const struct options *options = &bench->options;
    const struct bench_selection selection = {.ops = &bench->ops, .only = options->only};
    wpk_err err = WPK_OK;
    for (int i = 0; err == WPK_OK && i < options->tuned_count; i++) {
        err = bench_cases_read_tuned(&bench->table, &selection, options->tuned[i], diag);
    }
    if (err == WPK_OK && options->cases != NULL) {
        err = bench_cases_read(&bench->table, &selection, options->cases, diag);
    }
    if (options->tuned_count > 0 || options->cases != NULL) {
        return err;
    }
    for (int t = 0; t < options->threads_count; t++) {
        for (int layouts = 0; err == WPK_OK && layouts < 2; layouts++) {
            if (options->layouts[layouts]) {
                err = bench_cases_add_all(&bench->table, &selection, (enum bench_layouts)layouts,
                                          options->threads[t]);
            }
        }
    }
    return err;
}

static wpk_err find_programs(struct bench *bench, struct wpk_diag *diag)
{
    struct wpk_buf directory = {0};
    const char *given = bench->options.programs;
    const wpk_err err = given == NULL ? wpk_fs_program_dir(&directory, diag) : WPK_OK;
    snprintf(bench->programs, sizeof(bench->programs), "%s",
             given != NULL ? given : wpk_buf_text(&directory));
    wpk_buf_fini(&directory);
    return err;
}

static wpk_err run(struct bench *bench, struct wpk_diag *diag)
{
    bench->table.rows = calloc(BENCH_ROWS_MAX, sizeof(bench->table.rows[0]));
    if (bench->table.rows == NULL) {
        return WPK_ENOMEM;
    }
    bench->table.rounds = bench->options.rounds;
    bench->table.round_ms = bench->options.round_ms;
    bench->table.conditions = bench->options.conditions;
    bench->table.accuracy = bench->options.accuracy;
    wpk_err err = find_programs(bench, diag);
    if (err == WPK_OK) {
        err = bench_ops_read(bench->options.ops, &bench->ops, diag);
    }
    if (err == WPK_OK) {
        err = add_rows(bench, diag);
    }
    if (err == WPK_OK) {
        err = wpk_peak_measure(&bench->table.peak);
    }
    for (int i = 0; err == WPK_OK && i < bench->table.row_count; i++) {
        struct bench_row *row = &bench->table.rows[i];
        fprintf(stderr, "\rbench: %d of %d: %-24s\r", i + 1, bench->table.row_count,
                row->what.op.name);
        run_row(bench, row);
    }
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        bench_child_stop(&bench->children[i]);
    }
    if (err == WPK_OK) {
        bench_table_print(&bench->table, stdout);
        if (bench->options.json != NULL) {
            err = bench_table_write_json(&bench->table, bench->options.json, diag);
        }
    }
    free(bench->table.rows);
    return err;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.options = (struct options){
        .ops = "bench/ops.json",
        .threads = {1, 1},
        .threads_count = 1,
        .layouts = {true, true},
        .accuracy = WPK_ACCURACY_STANDARD,
        .rounds = 11,
        .round_ms = 40,
    };
    bench_usage_help(argc, argv, usage);
    if (!parse_options(argc, argv, &bench.options)) {
        fputs(usage, stderr);
        return 2;
    }
    struct wpk_diag diag = {0};
    const wpk_err err = run(&bench, &diag);
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "bench-compare: %s: %s\n", wpk_err_text(err), text);
        return 1;
    }
    return 0;
}
