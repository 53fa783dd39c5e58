/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/table.h"

#include "bench/stats.h"

#include <string.h>

static const double confidence = 0.9;

static const char *const layer_names[] = {"c1", "c2", "c3", "c4",  "c5",  "c6",
                                          "c7", "c8", "c9", "c10", "c11", "c12"};
#define LAYER_COUNT (int)(sizeof(layer_names) / sizeof(layer_names[0]))

static const struct {
    const char *name;
    const char *program;
    const char *heading;
    bool counts[2]; /* by enum bench_layouts */
    bool direct;
} implementations[BENCH_IMPLEMENTATION_COUNT] = {
#define BENCH_IMPLEMENTATION_ROW(id, name, program, heading, any, fixed, direct)                   \
    {name, program, heading, {any, fixed}, direct},
    BENCH_IMPLEMENTATION_LIST(BENCH_IMPLEMENTATION_ROW)
#undef BENCH_IMPLEMENTATION_ROW
};

const char *bench_implementation_name(int which)
{
    return implementations[which].name;
}

const char *bench_implementation_program(int which)
{
    return implementations[which].program;
}

const char *bench_implementation_heading(int which)
{
    return implementations[which].heading;
}

bool bench_implementation_counts(int which, enum bench_layouts layouts, enum bench_peers peers)
{
    return implementations[which].counts[layouts] &&
           (peers == BENCH_PEERS_ALL || implementations[which].direct);
}

/* Sorts `values`. */
static struct bench_estimate estimate(double *values, int count)
{
    struct bench_estimate out = {.valid = count > 0};
    if (out.valid) {
        bench_stats_sort(values, count);
        out.median = bench_stats_median(values, count);
        bench_stats_interval(values, count, confidence, &out.low, &out.high);
    }
    return out;
}

struct bench_estimate bench_cell_time(const struct bench_table *table,
                                      const struct bench_cell *cell)
{
    if (cell->state != BENCH_CELL_TIMED) {
        return (struct bench_estimate){0};
    }
    double values[BENCH_ROUNDS_MAX];
    memcpy(values, cell->ns_median, sizeof(values));
    return estimate(values, table->rounds);
}

bool bench_cell_in_class(const struct bench_table *table, const struct bench_cell *cell)
{
    return cell->state == BENCH_CELL_TIMED && bench_accuracy_fits(cell->accuracy, table->accuracy);
}

int bench_row_best_peer(const struct bench_table *table, const struct bench_row *row,
                        enum bench_peers peers)
{
    int best = -1;
    double best_ns = 0;
    for (int i = 0; i < BENCH_IMPLEMENTATION_COUNT; i++) {
        if (!bench_implementation_counts(i, row->what.layouts, peers) ||
            !bench_cell_in_class(table, &row->cell[i])) {
            continue;
        }
        const struct bench_estimate time = bench_cell_time(table, &row->cell[i]);
        if (time.valid && (best < 0 || time.median < best_ns)) {
            best = i;
            best_ns = time.median;
        }
    }
    return best;
}

struct bench_estimate bench_row_ratio_to(const struct bench_table *table,
                                         const struct bench_row *row, int which)
{
    const struct bench_cell *ours = &row->cell[BENCH_OURS];
    if (row->cell[which].state != BENCH_CELL_TIMED || !bench_cell_in_class(table, ours)) {
        return (struct bench_estimate){0};
    }
    double ratios[BENCH_ROUNDS_MAX];
    for (int i = 0; i < table->rounds; i++) {
        ratios[i] = row->cell[which].ns_median[i] / ours->ns_median[i];
    }
    return estimate(ratios, table->rounds);
}

struct bench_estimate bench_row_ratio(const struct bench_table *table, const struct bench_row *row,
                                      enum bench_peers peers)
{
    const int peer = bench_row_best_peer(table, row, peers);
    return peer < 0 ? (struct bench_estimate){0} : bench_row_ratio_to(table, row, peer);
}

static const struct bench_row *find_row(const struct bench_table *table, const char *name,
                                        enum bench_layouts layouts, int threads)
{
    for (int i = 0; i < table->row_count; i++) {
        const struct bench_case *what = &table->rows[i].what;
        if (what->layouts == layouts && what->threads == threads &&
            strcmp(what->op.name, name) == 0) {
            return &table->rows[i];
        }
    }
    return NULL;
}

struct bench_estimate bench_table_sum_ratio(const struct bench_table *table,
                                            enum bench_layouts layouts, int threads,
                                            enum bench_peers peers)
{
    double theirs[BENCH_ROUNDS_MAX] = {0};
    double ours[BENCH_ROUNDS_MAX] = {0};
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        const struct bench_row *row = find_row(table, layer_names[layer], layouts, threads);
        const int peer = row != NULL ? bench_row_best_peer(table, row, peers) : -1;
        if (peer < 0 || !bench_cell_in_class(table, &row->cell[BENCH_OURS])) {
            return (struct bench_estimate){0};
        }
        for (int i = 0; i < table->rounds; i++) {
            theirs[i] += row->cell[peer].ns_median[i];
            ours[i] += row->cell[BENCH_OURS].ns_median[i];
        }
    }
    double ratios[BENCH_ROUNDS_MAX];
    for (int i = 0; i < table->rounds; i++) {
        ratios[i] = theirs[i] / ours[i];
    }
    return estimate(ratios, table->rounds);
}
