/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe: a vendor library's primitive as data. It says which primitive computes an operator,
 * what its operands are, and how the operator's tensors lie in memory.
 *
 *     {"version":3,"primitive":"convolution",
 *      "inputs":[{"name":"t0","type":"f32[1,64,56,56]","layout":"0,1,2,3"}],
 *      "constants":[{"name":"t1","type":"f32[64,64,3,3]","layout":"0,1,2,3"}],
 *      "outputs":[{"name":"t2","type":"f32[1,64,56,56]","layout":"0,1,2,3"}],
 *      "src":{"extents":[1,64,56,56],"strides":[200704,3136,56,1],"tensor":0,"chosen":true},
 *      "weights":{...},"dst":{...},
 *      "window":{"kernel":[3,3],"strides":[1,1],"dilations":[1,1],"before":[1,1],"after":[1,1]},
 *      "posts":[{"function":"relu","alpha":0,"beta":0}]}
 *
 * An operand's tensor is its number in the three lists, from 0. A recipe names no library and no
 * file: a choice (schema/choice.h) says which provider and which version it was measured with.
 * Operands follow the conventions of oneDNN:
 *
 *     convolution, pooling   src [N, C, spatial...], dst likewise; weights [K, C, spatial...], in
 *                            groups [G, K, C, spatial...]; bias [K]
 *     matmul                 weights: the right factor
 *     both, of integers      scale [K]: of each channel's sums, before the bias is added; zero [1]:
 *                            added to dst last
 *     layernorm              weights: the scale; bias: the shift
 *     binary                 src and weights, broadcast where an extent is 1
 *     eltwise                posts[0] applied to src
 *
 * A convolution or product that does not use the first of the algorithms that its library lists has
 * "algorithm", too: the number of the one that it uses, from 0. */
#ifndef WPK_SCHEMA_RECIPE_H
#define WPK_SCHEMA_RECIPE_H

#include "schema/named_tensor.h"

#define WPK_RECIPE_VERSION 3
#define WPK_RECIPE_SIZE_MAX ((size_t)32 << 10) /* bytes of JSON */
#define WPK_RECIPE_RANK_MAX 12                 /* oneDNN's */
#define WPK_RECIPE_POSTS_MAX 4
#define WPK_RECIPE_TENSORS_MAX 8
#define WPK_RECIPE_ALGORITHM_MAX 1000
#define WPK_RECIPE_WINDOW_MAX 65536 /* kernel, stride, dilation and padding, each */

/* suffix, text */
#define WPK_RECIPE_KIND_LIST(X)                                                                    \
    X(CONVOLUTION, "convolution")                                                                  \
    X(MATMUL, "matmul")                                                                            \
    X(SOFTMAX, "softmax")                                                                          \
    X(LAYERNORM, "layernorm")                                                                      \
    X(POOL_MAX, "pool_max")                                                                        \
    X(POOL_AVERAGE, "pool_average")               /* padding is counted */                         \
    X(POOL_AVERAGE_INSIDE, "pool_average_inside") /* padding is not counted */                     \
    X(ELTWISE, "eltwise")                                                                          \
    X(BINARY, "binary")

/* y = f(x); CLIP: min(max(x, alpha), beta); LINEAR: alpha * x + beta */
#define WPK_RECIPE_FUNCTION_LIST(X)                                                                \
    X(RELU, "relu")                                                                                \
    X(CLIP, "clip")                                                                                \
    X(LINEAR, "linear")                                                                            \
    X(LOGISTIC, "logistic")                                                                        \
    X(TANH, "tanh")                                                                                \
    X(ABS, "abs")                                                                                  \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SQRT, "sqrt")

#define WPK_RECIPE_BINARY_LIST(X)                                                                  \
    X(ADD, "add")                                                                                  \
    X(SUB, "sub")                                                                                  \
    X(MUL, "mul")                                                                                  \
    X(DIV, "div")                                                                                  \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")

/* suffix, text; the index of an operand in wpk_recipe.operand */
#define WPK_RECIPE_ROLE_LIST(X)                                                                    \
    X(SRC, "src")                                                                                  \
    X(WEIGHTS, "weights")                                                                          \
    X(BIAS, "bias")                                                                                \
    X(DST, "dst")                                                                                  \
    X(SCALE, "scale")                                                                              \
    X(ZERO, "zero")

#define WPK_RECIPE_ENUM(name, text) WPK_RECIPE_##name,
enum wpk_recipe_kind { WPK_RECIPE_KIND_LIST(WPK_RECIPE_ENUM) WPK_RECIPE_KIND_COUNT };
enum wpk_recipe_function { WPK_RECIPE_FUNCTION_LIST(WPK_RECIPE_ENUM) WPK_RECIPE_FUNCTION_COUNT };
enum wpk_recipe_binary { WPK_RECIPE_BINARY_LIST(WPK_RECIPE_ENUM) WPK_RECIPE_BINARY_COUNT };
enum wpk_recipe_role { WPK_RECIPE_ROLE_LIST(WPK_RECIPE_ENUM) WPK_RECIPE_ROLE_COUNT };
#undef WPK_RECIPE_ENUM

struct wpk_recipe_post {
    enum wpk_recipe_function function;
    double alpha;
    double beta;
};

/* A tensor in the primitive's own order of dimensions: a strided view of the tensor's memory.
 * Invariant: every element of the view lies inside the tensor. */
struct wpk_recipe_operand {
    int tensor; /* index into wpk_recipe.tensor; -1: not used */
    int rank;   /* 0: not used */
    int64_t extent[WPK_RECIPE_RANK_MAX];
    int64_t stride[WPK_RECIPE_RANK_MAX]; /* elements; of block_dim: between two blocks */
    int block_dim;
    int64_t block; /* elements of block_dim that lie together, innermost; 0: none */
    bool chosen;   /* the primitive chooses the layout, and the data is converted: constants once,
                      other tensors in each call */
};

enum wpk_recipe_use { WPK_RECIPE_INPUT, WPK_RECIPE_CONSTANT, WPK_RECIPE_OUTPUT };

struct wpk_recipe {
    enum wpk_recipe_kind kind;
    struct wpk_named_tensor tensor[WPK_RECIPE_TENSORS_MAX]; /* all of the operator's arguments */
    enum wpk_recipe_use use[WPK_RECIPE_TENSORS_MAX];
    int tensor_count;
    struct wpk_recipe_operand operand[WPK_RECIPE_ROLE_COUNT];
    int spatial;                         /* convolution, pooling: dimensions; 0 for the others */
    int64_t kernel[WPK_RECIPE_RANK_MAX]; /* [spatial], like the next four */
    int64_t stride[WPK_RECIPE_RANK_MAX];
    int64_t dilation[WPK_RECIPE_RANK_MAX]; /* 1: none */
    int64_t pad_before[WPK_RECIPE_RANK_MAX];
    int64_t pad_after[WPK_RECIPE_RANK_MAX];
    int axis;                                          /* softmax: of src */
    double epsilon;                                    /* layernorm */
    enum wpk_recipe_binary binary;                     /* binary */
    int algorithm;                                     /* convolution, matmul */
    struct wpk_recipe_post post[WPK_RECIPE_POSTS_MAX]; /* in the order of application */
    int post_count;
};

/* True if all tensors are f32. */
bool wpk_recipe_is_f32(const struct wpk_recipe *recipe);
bool wpk_recipe_has_window(const struct wpk_recipe *recipe); /* convolution, pooling */

/* Rows for a recipe (schema/fields.h): every field of the primitive is required, others are
 * refused, and operands must lie inside their tensors. */
extern const struct wpk_field wpk_recipe_fields[];

#endif
