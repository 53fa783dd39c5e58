/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bench-search: spaces small enough to be timed whole.
 *
 * A table is text: lines "name value" say what it is of, then a line "rows", then a line for each
 * schedule: its key, 0 or the time in ns. The table has a row for every candidate of the pinned
 * space: no time is interpolated. bench/search_tables.py makes tables. */
#ifndef WPK_BENCH_SEARCH_TABLE_H
#define WPK_BENCH_SEARCH_TABLE_H

#include "search/space.h"

#define BENCH_PINS_MAX 64
#define BENCH_ROWS_MAX 8192

struct bench_search_row {
    uint64_t key;
    double ns; /* 0: it fails */
};

struct bench_search_table {
    char *text; /* owned */
    const char *op;
    char layouts[8];
    char device[256]; /* "": this machine's */
    int threads;
    char *pin[BENCH_PINS_MAX]; /* into `text` */
    int pin_count;
    struct bench_search_row row[BENCH_ROWS_MAX]; /* by key */
    int row_count;
    double best; /* ns */
    struct wpk_space space;
};

/* Derive the space of a table whose other members are filled. Ends the program where it fails. */
void bench_search_table_derive(struct bench_search_table *table);
/* Read a table and derive its space. Ends the program where it fails.
 *   owns    caller calls bench_search_table_fini */
void bench_search_table_read(const char *path, struct bench_search_table *table);
void bench_search_table_fini(struct bench_search_table *table);
/* The time of a candidate, 0: it fails. Ends the program where the table lacks it. */
double bench_search_table_time(const struct bench_search_table *table,
                               const struct wpk_candidate *candidate);

#endif
