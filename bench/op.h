/* SPDX-License-Identifier: Apache-2.0 */
/* The operators that the bench compares, as plain numbers.
 *
 * Peers do not see our tensor IR: they get what a user of the library would write. This file,
 * models.py (which makes the ONNX files of two peers) and `wpkctl tune` read the same
 * bench/ops.json, so that all of them compute the same operators on the same data. The reference is
 * written out as loops rather than taken from ir/, so that a fault of ir/ shows. */
#ifndef WPK_BENCH_OP_H
#define WPK_BENCH_OP_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

#define BENCH_NAME_MAX 48
#define BENCH_OPERANDS_MAX 4
#define BENCH_RANK_MAX 4
#define BENCH_OPS_MAX 64
#define BENCH_EMPTY_CALL "empty-call"

enum bench_kind {
    BENCH_CONV,      /* X [1,C,H,W] * W [K,C/groups,R,S] + B [K], relu */
    BENCH_MATMUL,    /* A [M,K] * B [K,N], B constant */
    BENCH_SOFTMAX,   /* over the last axis of X [rows,columns] */
    BENCH_LAYERNORM, /* over the last axis of X [rows,columns], scale and shift [columns] */
    BENCH_ATTENTION, /* Q, K [heads,rows,columns], mask [rows,rows], V as K, all inputs */
    BENCH_RELU,      /* of X [columns]: almost no work, so its time is the cost of a call */
};

/* One operator. Fields that a kind does not name are 0. The struct is copied through a socket as it
 * is. */
struct bench_op {
    char name[BENCH_NAME_MAX];
    enum bench_kind kind;
    int64_t c, h, w;       /* conv: input channels, height, width; batch is 1 */
    int64_t k, r, s;       /* conv: filters and their height and width */
    int64_t stride[2];     /* conv: y, x */
    int64_t padding[4];    /* conv: top, left, bottom, right */
    int64_t groups;        /* conv */
    bool bias, relu;       /* conv */
    int64_t m, n, depth;   /* matmul: rows, columns, reduction */
    int64_t heads;         /* attention */
    int64_t rows, columns; /* softmax, layernorm, relu; attention: tokens, size of a head */
    double epsilon;        /* layernorm, added to the variance */
};

struct bench_shape {
    int rank;
    int64_t extent[BENCH_RANK_MAX];
};

/* The operators of a job file. */
struct bench_ops {
    struct bench_op op[BENCH_OPS_MAX];
    int count;
};

/* Read the names and operators of a job file, and ignore the rest. BENCH_EMPTY_CALL is added, an
 * operator with almost no work; it is not in the file because there is nothing to tune.
 *
 *   errors  those of wpk_fs_read and wpk_json_open; WPK_EUNSUPPORTED  an op with no peers
 */
wpk_err bench_ops_read(const char *path, struct bench_ops *out, struct wpk_diag *diag);
/* The operator with this name; NULL if there is none. */
const struct bench_op *bench_ops_find(const struct bench_ops *ops, const char *name);

/* The first operands are the inputs, the others are constants. */
int bench_op_operand_count(const struct bench_op *op);
int bench_op_input_count(const struct bench_op *op);
struct bench_shape bench_op_operand(const struct bench_op *op, int operand);
struct bench_shape bench_op_output(const struct bench_op *op);
int64_t bench_shape_elements(const struct bench_shape *shape);

/* Number of multiplications, additions, comparisons and exponentials. */
double bench_op_flops(const struct bench_op *op);

/* Fill an operand with multiples of 2^-16 in [-0.5, 0.5). Each number depends on operand and index
 * only. models.py has the same few lines.
 *
 *   shape   out [elements of the operand]
 */
void bench_op_fill(const struct bench_op *op, int operand, float *out);

/* Compute one element of the result in double precision, and the sum of its terms' absolute values.
 *
 *   shape   operands [operand count][their elements]; index < elements of the output
 */
void bench_op_reference(const struct bench_op *op, const float *const *operands, int64_t index,
                        double *value, double *magnitude);

/* The p-th of the scattered points at which a result is compared: the last element, the first, then
 * steps of the golden ratio of the tensor, which meet rows, columns and channels alike. */
int64_t bench_op_point(int64_t elements, int64_t p);

/* Compare the result at `point_count` scattered points. Return the largest error divided by its
 * tolerance, which is 3e-6 of the magnitude. Rounding in any order and Winograd's F(4,3) stay below
 * 0.5; bf16 or tf32 arithmetic lies above 5. */
double bench_op_check(const struct bench_op *op, const float *const *operands, const float *result,
                      int point_count);

/* A larger ratio means a wrong operator, not a lack of accuracy: the error is above 3e-3 of the
 * magnitude at some point. bf16 inputs stay below. */
#define BENCH_OP_WRONG 1000

#endif
