/* SPDX-License-Identifier: Apache-2.0 */
/* bench-compare: our kernels against other libraries, interleaved.
 *
 *     bench-compare --models DIR [--cases FILE] [options]
 *
 * For each case every implementation opens the operator and is checked; then rounds follow in
 * which each is timed in turn, the order moving on by one, so that a slow moment of the machine
 * hits all alike. A ratio is taken within a round.
 *
 * Without --cases all operators of --ops are run with both layouts, peers alone. A case file is a
 * JSON array of {"op": NAME, "layouts": "any"|"fixed", "threads": N, "kernel": PATH}; with a
 * kernel, ours takes part. */
#include "bench/child.h"
#include "bench/table.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/json.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define CASES_SIZE_MAX ((size_t)1 << 20)
#define THREADS_MAX 64

struct options {
    const char *ops;
    const char *cases; /* NULL: all operators */
    const char *models;
    const char *programs; /* directory of the peers; NULL: beside this program */
    const char *only;     /* NULL: all; else names with commas between */
    const char *json;     /* NULL: text only */
    int threads[2];
    int threads_count;
    bool layouts[2]; /* by enum bench_layouts */
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
    "  --cases FILE       which of them, with kernels of ours (all, peers alone)\n"
    "  --only NAME,...    of these only the named ones\n"
    "  --threads N[,M]    without --cases (1)\n"
    "  --layouts any|fixed|both   without --cases (both)\n"
    "  --rounds N         interleaved rounds (11)\n"
    "  --ms N             of sampling in a round (40)\n"
    "  --programs DIR     where the bench-peer-* are (beside this program)\n"
    "  --json FILE        write all that was measured\n";

static wpk_err parse_options(int argc, char **argv, struct options *out)
{
    static const struct option longs[] = {
        {"ops", required_argument, NULL, 'o'},     {"cases", required_argument, NULL, 'c'},
        {"models", required_argument, NULL, 'm'},  {"programs", required_argument, NULL, 'p'},
        {"only", required_argument, NULL, 'n'},    {"json", required_argument, NULL, 'j'},
        {"threads", required_argument, NULL, 't'}, {"layouts", required_argument, NULL, 'l'},
        {"rounds", required_argument, NULL, 'r'},  {"ms", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int opt = 0;
    char *end = NULL;
    while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (opt) {
        case 'o': out->ops = optarg; break;
        case 'c': out->cases = optarg; break;
        case 'm': out->models = optarg; break;
        case 'p': out->programs = optarg; break;
        case 'n': out->only = optarg; break;
        case 'j': out->json = optarg; break;
        case 'r': out->rounds = (int)strtol(optarg, NULL, 10); break;
        case 's': out->round_ms = (int)strtol(optarg, NULL, 10); break;
        case 't':
            out->threads[0] = (int)strtol(optarg, &end, 10);
            out->threads_count = *end == ',' ? 2 : 1;
            out->threads[1] = *end == ',' ? (int)strtol(end + 1, NULL, 10) : 1;
            break;
        case 'l':
            out->layouts[BENCH_LAYOUTS_ANY] = strcmp(optarg, "fixed") != 0;
            out->layouts[BENCH_LAYOUTS_FIXED] = strcmp(optarg, "any") != 0;
            break;
        default: return WPK_EINVAL;
        }
    }
    const bool good = optind == argc && out->models != NULL && out->rounds >= 1 &&
                      out->rounds <= BENCH_ROUNDS_MAX && out->round_ms >= 1 &&
                      out->threads[0] >= 1 && out->threads[0] <= THREADS_MAX &&
                      out->threads[1] >= 1 && out->threads[1] <= THREADS_MAX;
    return good ? WPK_OK : WPK_EINVAL;
}

static bool is_wanted(const char *only, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = only; at != NULL && *at != '\0';) {
        const size_t part = strcspn(at, ",");
        if (part == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += part + (at[part] == ',');
    }
    return only == NULL;
}

/* The kernel's path waits in what.path until our peer is asked; the others get their model. */
static wpk_err add_row(struct bench *bench, const struct bench_op *op, enum bench_layouts layouts,
                       int threads, const char *kernel)
{
    if (!is_wanted(bench->options.only, op->name)) {
        return WPK_OK;
    }
    if (bench->table.row_count == BENCH_ROWS_MAX) {
        return WPK_ENOSPC;
    }
    struct bench_row *row = &bench->table.rows[bench->table.row_count++];
    row->what.op = *op;
    row->what.layouts = layouts;
    row->what.threads = threads;
    snprintf(row->what.path, sizeof(row->what.path), "%s", kernel);
    return WPK_OK;
}

static wpk_err add_all_rows(struct bench *bench)
{
    const struct options *options = &bench->options;
    for (int t = 0; t < options->threads_count; t++) {
        for (int layouts = 0; layouts < 2; layouts++) {
            for (int i = 0; options->layouts[layouts] && i < bench->ops.count; i++) {
                const wpk_err err = add_row(bench, &bench->ops.op[i], (enum bench_layouts)layouts,
                                            options->threads[t], "");
                if (err != WPK_OK) {
                    return err;
                }
            }
        }
    }
    return WPK_OK;
}

static wpk_err read_cases(struct bench *bench, struct wpk_diag *diag)
{
    static const char *const layouts_names[] = {"any", "fixed"};
    struct wpk_buf text = {0};
    struct wpk_json_reader *reader = NULL;
    wpk_err err = wpk_fs_read(bench->options.cases, CASES_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        err = wpk_json_open(wpk_buf_text(&text), text.size, 0, &reader, diag);
    }
    if (err != WPK_OK) {
        goto done;
    }
    wpk_json_enter_array(reader, NULL);
    while (wpk_json_next(reader)) {
        const char *name = wpk_json_get_text(reader, "op", BENCH_NAME_MAX - 1);
        const struct bench_op *op = bench_ops_find(&bench->ops, name);
        const size_t layouts = wpk_json_get_choice(reader, "layouts", layouts_names, 2);
        const int64_t threads = wpk_json_get_int(reader, "threads", 1, THREADS_MAX);
        const char *kernel = wpk_json_has(reader, "kernel")
                                 ? wpk_json_get_text(reader, "kernel", BENCH_PATH_MAX - 1)
                                 : "";
        if (op == NULL) {
            wpk_json_fail(reader, "op", WPK_ENOENT, "no operator named %s", name);
        } else if (wpk_json_status(reader) == WPK_OK &&
                   add_row(bench, op, (enum bench_layouts)layouts, (int)threads, kernel) !=
                       WPK_OK) {
            wpk_json_fail(reader, NULL, WPK_ENOSPC, "more than %d cases", BENCH_ROWS_MAX);
        }
    }
    wpk_json_leave(reader);
    err = wpk_json_status(reader);
done:
    wpk_json_close(reader);
    wpk_buf_fini(&text);
    return err;
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
    char program[BENCH_PATH_MAX];
    snprintf(program, sizeof(program), "%s/bench-peer-%s", bench->programs,
             bench_implementation_name((enum bench_implementation)which));
    const wpk_err err = bench_child_start(child, program, threads, diag);
    if (err == WPK_OK) {
        snprintf(bench->table.versions[which], sizeof(bench->table.versions[which]), "%s",
                 child->version);
    }
    return err;
}

static void open_cell(struct bench *bench, struct bench_row *row, int which)
{
    struct bench_cell *cell = &row->cell[which];
    struct bench_request request = {.command = BENCH_OPEN, .what = row->what};
    struct bench_reply reply = {0};
    struct wpk_diag diag = {0};
    if (which != BENCH_OURS) {
        snprintf(request.what.path, sizeof(request.what.path), "%s/%s.onnx", bench->options.models,
                 row->what.op.name);
    } else if (row->what.path[0] == '\0') {
        return;
    }
    wpk_err err = ensure_child(bench, which, row->what.threads, &diag);
    if (err == WPK_ENOENT) {
        return;
    }
    if (err == WPK_OK) {
        err = bench_child_ask(&bench->children[which], &request, &reply, &diag);
    }
    snprintf(cell->text, sizeof(cell->text), "%.*s", BENCH_TEXT_MAX - 1,
             err == WPK_OK ? reply.text : diag.text);
    cell->error_ratio = reply.error_ratio;
    cell->state = err != WPK_OK              ? BENCH_CELL_FAILED
                  : reply.error_ratio > 1    ? BENCH_CELL_WRONG
                                             : BENCH_CELL_TIMED;
}

static void time_cell(struct bench *bench, struct bench_row *row, int which, int round)
{
    struct bench_cell *cell = &row->cell[which];
    const struct bench_request request = {
        .command = BENCH_ROUND,
        .budget_ns = (uint64_t)bench->options.round_ms * WPK_NS_PER_MS,
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

static wpk_err prepare(struct bench *bench, struct wpk_diag *diag)
{
    bench->table.rows = calloc(BENCH_ROWS_MAX, sizeof(bench->table.rows[0]));
    if (bench->table.rows == NULL) {
        return WPK_ENOMEM;
    }
    bench->table.rounds = bench->options.rounds;
    bench->table.round_ms = bench->options.round_ms;
    wpk_err err = WPK_OK;
    if (bench->options.programs != NULL) {
        snprintf(bench->programs, sizeof(bench->programs), "%s", bench->options.programs);
    } else {
        struct wpk_buf directory = {0};
        err = wpk_fs_program_dir(&directory, diag);
        snprintf(bench->programs, sizeof(bench->programs), "%s", wpk_buf_text(&directory));
        wpk_buf_fini(&directory);
    }
    if (err == WPK_OK) {
        err = bench_ops_read(bench->options.ops, &bench->ops, diag);
    }
    if (err == WPK_OK) {
        err = bench->options.cases != NULL ? read_cases(bench, diag) : add_all_rows(bench);
    }
    return err == WPK_OK ? wpk_peak_measure(&bench->table.peak) : err;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct wpk_diag diag = {0};
    bench.options = (struct options){
        .ops = "bench/ops.json",
        .threads = {1, 1},
        .threads_count = 1,
        .layouts = {true, true},
        .rounds = 11,
        .round_ms = 40,
    };
    if (parse_options(argc, argv, &bench.options) != WPK_OK) {
        fputs(usage, stderr);
        return 2;
    }
    wpk_err err = prepare(&bench, &diag);
    for (int i = 0; err == WPK_OK && i < bench.table.row_count; i++) {
        struct bench_row *row = &bench.table.rows[i];
        fprintf(stderr, "\rbench: %d of %d: %-24s", i + 1, bench.table.row_count,
                row->what.op.name);
        run_row(&bench, row);
    }
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        bench_child_stop(&bench.children[i]);
    }
    if (err == WPK_OK) {
        fputs("\r                                                  \r", stderr);
        bench_table_print(&bench.table, stdout);
        if (bench.options.json != NULL) {
            err = bench_table_write_json(&bench.table, bench.options.json, &diag);
        }
    }
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "bench-compare: %s: %s\n", wpk_err_text(err), text);
    }
    free(bench.table.rows);
    return err == WPK_OK ? 0 : 1;
}
