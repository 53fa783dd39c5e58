/* SPDX-License-Identifier: Apache-2.0 */
/* Which of oneDNN's primitives computes a program, if any: found in the program's structure, not
 * in the operator's name. Pure; knows nothing of the library but what its primitives mean.
 *
 * A match may be generous where a program is computed slightly differently from the primitive (a
 * variance as E[x^2] - E[x]^2): the runner verifies a vendor's result as it verifies ours. */
#ifndef WPK_WORKER_ONEDNN_MATCH_H
#define WPK_WORKER_ONEDNN_MATCH_H

#include "op/program.h"

#define WPK_ONEDNN_RANK_MAX 12 /* the library's */
#define WPK_ONEDNN_SPATIAL_MAX 3
#define WPK_ONEDNN_POSTS_MAX 4

enum wpk_onednn_kind {
    WPK_ONEDNN_CONVOLUTION,
    WPK_ONEDNN_MATMUL,
    WPK_ONEDNN_SOFTMAX,
    WPK_ONEDNN_LAYERNORM,
    WPK_ONEDNN_POOL_MAX,
    WPK_ONEDNN_POOL_AVERAGE,        /* padding counts */
    WPK_ONEDNN_POOL_AVERAGE_INSIDE, /* it does not */
    WPK_ONEDNN_ELTWISE,             /* post[0] applied to src */
    WPK_ONEDNN_BINARY, /* src and weights, of one rank, broadcast where an extent is 1 */
};

/* suffix: y = f(x); alpha and beta as the library defines them */
enum wpk_onednn_function {
    WPK_ONEDNN_RELU,
    WPK_ONEDNN_CLIP,   /* min(max(x, alpha), beta) */
    WPK_ONEDNN_LINEAR, /* alpha * x + beta */
    WPK_ONEDNN_LOGISTIC,
    WPK_ONEDNN_TANH,
    WPK_ONEDNN_ABS,
    WPK_ONEDNN_EXP,
    WPK_ONEDNN_LOG,
    WPK_ONEDNN_SQRT,
};

struct wpk_onednn_post {
    enum wpk_onednn_function function;
    double alpha;
    double beta;
};

/* A tensor of the program in the primitive's own order of dimensions: a strided view of the dense
 * row-major array. */
struct wpk_onednn_operand {
    int tensor; /* id, -1: not used */
    int rank;
    int64_t extent[WPK_ONEDNN_RANK_MAX];
    int64_t stride[WPK_ONEDNN_RANK_MAX]; /* elements of the dense array */
};

struct wpk_onednn_op {
    enum wpk_onednn_kind kind;
    struct wpk_onednn_operand src;     /* convolution, pooling: [N, C, spatial...] */
    struct wpk_onednn_operand weights; /* [K, C, spatial...] or, in groups, [G, K, C, ...];
                                          matmul: the right factor; layernorm: the scale */
    struct wpk_onednn_operand bias;    /* convolution: [K]; layernorm: the shift */
    struct wpk_onednn_operand dst;
    int spatial; /* convolution, pooling: dimensions; the library reads arrays of its own length */
    int64_t kernel[WPK_ONEDNN_RANK_MAX]; /* [spatial], and below */
    int64_t stride[WPK_ONEDNN_RANK_MAX];
    int64_t dilation[WPK_ONEDNN_RANK_MAX]; /* 1: none */
    int64_t pad_before[WPK_ONEDNN_RANK_MAX];
    int64_t pad_after[WPK_ONEDNN_RANK_MAX];
    int axis;                                          /* softmax: of src */
    double epsilon;                                    /* layernorm */
    enum wpk_binary binary;                            /* binary: ADD, SUB, MUL, DIV, MIN or MAX */
    struct wpk_onednn_post post[WPK_ONEDNN_POSTS_MAX]; /* in the order of application */
    int post_count;
};

/*   errors  WPK_EUNSUPPORTED no primitive computes it, as far as we can see */
WPK_MUST_CHECK wpk_err wpk_onednn_match(const struct wpk_program *program,
                                        struct wpk_onednn_op *out);

#endif
