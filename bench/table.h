/* SPDX-License-Identifier: Apache-2.0 */
/* What one run of the bench found: rows of cases, a cell for each implementation, and its
 * printing as text and as JSON. */
#ifndef WPK_BENCH_TABLE_H
#define WPK_BENCH_TABLE_H

#include "bench/peer.h"
#include "common/peak.h"

#include <stdio.h>

#define BENCH_ROUNDS_MAX 101
#define BENCH_ROWS_MAX 256

/* name, program, heading, does its time count as a peer's with layouts any, and fixed, and does it
 * evaluate convolutions directly, as those do that the second ratio is against?
 *
 * `wpk` is what halide-cpu generated; `served` is what wpkd would hand out, when that is another
 * kernel, such as the vendor's. With fixed layouts the comparison is with those that were handed
 * the same ones; oneDNN, which here reorders on each call, is shown but not counted. The lean
 * build of an older oneDNN has no SYCL queue to pass through, which costs several us a call. */
#define BENCH_IMPLEMENTATION_LIST(X)                                                               \
    X(OURS, "wpk", "wpk", "ours", false, false, false)                                             \
    X(SERVED, "served", "wpk", "served", false, false, false)                                      \
    X(ONNXRUNTIME, "onnxruntime", "onnxruntime", "ONNX Runtime", true, true, true)                 \
    X(OPENVINO, "openvino", "openvino", "OpenVINO", true, true, true)                              \
    X(ONEDNN, "onednn", "onednn", "oneDNN", true, false, true)                                     \
    X(ONEDNN_LEAN, "onednn-lean", "onednn-lean", "oneDNN lean", true, false, true)                 \
    X(ONEDNN2, "onednn2", "onednn2", "oneDNN 2.6", true, false, false)                             \
    X(NCNN, "ncnn", "ncnn", "ncnn", true, true, false)                                             \
    X(MNN, "mnn", "mnn", "MNN", true, true, false)

#define BENCH_IMPLEMENTATION_ENUM(id, name, program, heading, any, fixed, direct) BENCH_##id,
enum bench_implementation {
    BENCH_IMPLEMENTATION_LIST(BENCH_IMPLEMENTATION_ENUM) BENCH_IMPLEMENTATION_COUNT
};

/* `which` is an enum bench_implementation throughout. */
const char *bench_implementation_name(int which);
/* Its program, without the bench-peer- in front. */
const char *bench_implementation_program(int which);
const char *bench_implementation_heading(int which);

/* Against which peers a ratio is. */
enum bench_peers {
    BENCH_PEERS_ALL,
    BENCH_PEERS_DIRECT, /* oneDNN, ONNX Runtime and OpenVINO alone */
};
bool bench_implementation_counts(int which, enum bench_layouts layouts, enum bench_peers peers);

enum bench_cell_state {
    BENCH_CELL_ABSENT, /* not built, no kernel given, or no such operator in the library */
    BENCH_CELL_FAILED, /* text says why */
    BENCH_CELL_WRONG,  /* error_ratio above BENCH_OP_WRONG: it is not timed */
    BENCH_CELL_TIMED,
};

struct bench_cell {
    enum bench_cell_state state;
    char text[BENCH_TEXT_MAX]; /* what the library chose, or why it failed */
    double error_ratio;        /* largest error over its tolerance */
    struct bench_accuracy accuracy;
    double ns_median[BENCH_ROUNDS_MAX]; /* [rounds of the table] */
    double ns_min;                      /* over all rounds */
};

struct bench_row {
    struct bench_case what;      /* path is set for each implementation when it is opened */
    char kernel[BENCH_PATH_MAX]; /* ours; "": none */
    char served[BENCH_PATH_MAX]; /* "": the same, or none */
    struct bench_cell cell[BENCH_IMPLEMENTATION_COUNT];
};

struct bench_table {
    struct bench_row *rows; /* owned, [BENCH_ROWS_MAX] */
    int row_count;
    int rounds;
    double round_ms;
    enum wpk_conditions conditions;
    struct wpk_accuracy accuracy; /* a less accurate peer does not count */
    char versions[BENCH_IMPLEMENTATION_COUNT][BENCH_TEXT_MAX];
    struct wpk_peak peak; /* of one core, measured before the first round */
};

/* Median over rounds with its 90 % interval. */
struct bench_estimate {
    bool valid;
    double median;
    double low;
    double high;
};

struct bench_estimate bench_cell_time(const struct bench_table *table,
                                      const struct bench_cell *cell);
/* Was it timed, with an error within the table's class of accuracy? */
bool bench_cell_in_class(const struct bench_table *table, const struct bench_cell *cell);
/* The counted peer with the smallest median among those in class, or -1. */
int bench_row_best_peer(const struct bench_table *table, const struct bench_row *row,
                        enum bench_peers peers);
/* Best peer's time divided by ours, round by round; invalid when ours is not in class. */
struct bench_estimate bench_row_ratio(const struct bench_table *table, const struct bench_row *row,
                                      enum bench_peers peers);
/* The same for the sum over ResNet-18's layers c1..c12; invalid unless all twelve are there. */
struct bench_estimate bench_table_sum_ratio(const struct bench_table *table,
                                            enum bench_layouts layouts, int threads,
                                            enum bench_peers peers);

void bench_table_print(const struct bench_table *table, FILE *out);
/*   errors  those of wpk_fs_write */
WPK_MUST_CHECK wpk_err bench_table_write_json(const struct bench_table *table, const char *path,
                                              struct wpk_diag *diag);

#endif
