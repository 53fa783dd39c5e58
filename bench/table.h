/* SPDX-License-Identifier: Apache-2.0 */
/* The results of one run of the bench: a row for each case, a cell for each implementation. The
 * table is printed as text and written as JSON. */
#ifndef WPK_BENCH_TABLE_H
#define WPK_BENCH_TABLE_H

#include "bench/peer.h"
#include "common/machine.h"

#include <stdio.h>

#define BENCH_ROUNDS_MAX 101
#define BENCH_ROWS_MAX 256

/* Id, name, program, heading, and three flags: its time counts as a peer's with layouts any; it
 * counts with layouts fixed; it evaluates convolutions directly, as the peers of the second ratio.
 *
 * `wpk` is the best kernel that a back end generated. `served` is the kernel that wpkd serves, if
 * it is another one, such as the vendor's. With fixed layouts oneDNN reorders on each call; its
 * time is shown and does not count. The lean build of an older oneDNN has no SYCL queue, which
 * costs several us a call. `reading` is a bound: it reads the constants and computes nothing. */
#define BENCH_IMPLEMENTATION_LIST(X)                                                               \
    X(OURS, "wpk", "wpk", "ours", false, false, false)                                             \
    X(SERVED, "served", "wpk", "served", false, false, false)                                      \
    X(ONNXRUNTIME, "onnxruntime", "onnxruntime", "ONNX Runtime", true, true, true)                 \
    X(OPENVINO, "openvino", "openvino", "OpenVINO", true, true, true)                              \
    X(ONEDNN, "onednn", "onednn", "oneDNN", true, false, true)                                     \
    X(ONEDNN_LEAN, "onednn-lean", "onednn-lean", "oneDNN lean", true, false, true)                 \
    X(ONEDNN2, "onednn2", "onednn2", "oneDNN 2.6", true, false, false)                             \
    X(NCNN, "ncnn", "ncnn", "ncnn", true, true, false)                                             \
    X(MNN, "mnn", "mnn", "MNN", true, true, false)                                                 \
    X(READING, "reading", "reading", "reading", false, false, false)

#define BENCH_IMPLEMENTATION_ENUM(id, name, program, heading, any, fixed, direct) BENCH_##id,
enum bench_implementation {
    BENCH_IMPLEMENTATION_LIST(BENCH_IMPLEMENTATION_ENUM) BENCH_IMPLEMENTATION_COUNT
};

/* `which` is an enum bench_implementation throughout. */
const char *bench_implementation_name(int which);
/* The name of its program, without the prefix bench-peer-. */
const char *bench_implementation_program(int which);
const char *bench_implementation_heading(int which);

/* The peers that a ratio is against. */
enum bench_peers {
    BENCH_PEERS_ALL,
    BENCH_PEERS_DIRECT, /* only oneDNN, ONNX Runtime and OpenVINO */
};
bool bench_implementation_counts(int which, enum bench_layouts layouts, enum bench_peers peers);

enum bench_cell_state {
    BENCH_CELL_ABSENT, /* not built, no kernel given, or no such operator in the library */
    BENCH_CELL_FAILED, /* text has the reason */
    BENCH_CELL_WRONG,  /* error_ratio is above BENCH_OP_WRONG; not timed */
    BENCH_CELL_TIMED,
};

struct bench_cell {
    enum bench_cell_state state;
    char text[BENCH_TEXT_MAX]; /* implementation that the library chose, or reason of a failure */
    double error_ratio;        /* largest error divided by its tolerance */
    struct bench_accuracy accuracy;
    double ns_median[BENCH_ROUNDS_MAX]; /* [rounds of the table] */
    double ns_min;                      /* over all rounds */
};

struct bench_row {
    struct bench_case what;      /* path is set for each implementation when it is opened */
    char kernel[BENCH_PATH_MAX]; /* ours; "": none */
    char served[BENCH_PATH_MAX]; /* "": same as `kernel`, or none */
    struct bench_cell cell[BENCH_IMPLEMENTATION_COUNT];
};

struct bench_table {
    struct bench_row *rows; /* owned, [BENCH_ROWS_MAX] */
    int row_count;
    int rounds;
    double round_ms;
    enum wpk_conditions conditions;
    struct wpk_accuracy accuracy; /* class; peers outside it do not count */
    char versions[BENCH_IMPLEMENTATION_COUNT][BENCH_TEXT_MAX];
    struct wpk_peak peak; /* of one core, measured before the first round */
};

/* A median over rounds with its 90 % interval. */
struct bench_estimate {
    bool valid;
    double median;
    double low;
    double high;
};

struct bench_estimate bench_cell_time(const struct bench_table *table,
                                      const struct bench_cell *cell);
/* True if the cell was timed and its error is within the table's accuracy class. */
bool bench_cell_in_class(const struct bench_table *table, const struct bench_cell *cell);
/* The counted peer in class with the smallest median; -1 if there is none. */
int bench_row_best_peer(const struct bench_table *table, const struct bench_row *row,
                        enum bench_peers peers);
/* The best peer's time divided by ours, round by round. Invalid if ours is not in class, or no peer
 * is. */
struct bench_estimate bench_row_ratio(const struct bench_table *table, const struct bench_row *row,
                                      enum bench_peers peers);
/* The time of `which` divided by ours, round by round. Invalid if it was not timed, or
 * ours is not in class. */
struct bench_estimate bench_row_ratio_to(const struct bench_table *table,
                                         const struct bench_row *row, int which);
/* The ratio of the sums over ResNet-18's layers c1..c12. Invalid unless all twelve have a ratio. */
struct bench_estimate bench_table_sum_ratio(const struct bench_table *table,
                                            enum bench_layouts layouts, int threads,
                                            enum bench_peers peers);

void bench_table_print(const struct bench_table *table, FILE *out);
/*   errors  those of wpk_fs_write */
wpk_err bench_table_write_json(const struct bench_table *table, const char *path,
                               struct wpk_diag *diag);

#endif
