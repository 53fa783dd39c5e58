/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of operators, and what the files that do it share: nodes of equations, and how an
 * expansion fails. Each wpk_expand_* reads the node and appends what computes its outputs.
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason; WPK_ENOSPC, WPK_ENOMEM */
#ifndef WPK_MODEL_OPERATOR_EXPANSION_H
#define WPK_MODEL_OPERATOR_EXPANSION_H

#include "ir/program.h"
#include "model/operator/operator.h"

/* ---- nodes
 *
 * Those that an operator without a program consists of are appended to the graph. After a failure,
 * which is kept, nothing more is appended. Functions return the value that the node computes; 0
 * after a failure. */

struct wpk_compose {
    struct wpk_graph *graph;
    const char *name; /* of the node that the appended ones are for */
    int loop;         /* of which nodes are appended (loop.h); 0: none */
    int64_t times;    /* its iterations */
    wpk_err err;      /* WPK_ENOSPC, WPK_ENOMEM, those of `to` */
    const struct wpk_unroll
        *to; /* appends the nodes (loop.h); NULL: they are appended as they are */
};

/* "NAME.PART", in the graph's arena. */
const char *wpk_compose_name(struct wpk_compose *c, const char *part);

struct wpk_graph_attribute wpk_compose_integer(const char *name, int64_t value);
struct wpk_graph_attribute wpk_compose_real(const char *name, float value);
/*   shape   values [count], at most WPK_RANK_MAX */
struct wpk_graph_attribute wpk_compose_integers(struct wpk_compose *c, const char *name,
                                                const int64_t *values, int count);

/* A node of this operator, with lists that are copied. It computes `output`; -1: a new value.
 *   shape   inputs [count], attributes [attribute_count] */
int wpk_compose_operator(struct wpk_compose *c, const char *domain, const char *op,
                         const char *name, const int *inputs, int count,
                         const struct wpk_graph_attribute *attributes, int attribute_count,
                         int output);

int wpk_compose_unary(struct wpk_compose *c, const char *op, int x);
int wpk_compose_binary(struct wpk_compose *c, const char *op, const char *name, int x, int y);
/*   shape   extent [rank]
 *   owns    data: borrowed for the graph's life */
int wpk_compose_constant(struct wpk_compose *c, enum wpk_dtype dtype, int rank,
                         const int64_t *extent, const void *data);
int wpk_compose_number(struct wpk_compose *c, float value);
int wpk_compose_reshape(struct wpk_compose *c, int x, const char *name, int rank,
                        const int64_t *extent, int output);
int wpk_compose_transpose(struct wpk_compose *c, int x, int rank, const int64_t *order, int output);
/* Elements [begin, end) of an axis. */
int wpk_compose_slice(struct wpk_compose *c, int x, int64_t axis, int64_t begin, int64_t end);
int wpk_compose_concat(struct wpk_compose *c, const int *values, int count, int64_t axis,
                       int output);
/* x y^T + z; z: -1 for none. */
int wpk_compose_product(struct wpk_compose *c, const char *name, int x, int y, int z);

/* The operators of loop.h.   shape  of a Read: the part [rank] */
int wpk_compose_enter(struct wpk_compose *c, const char *name, int x);
int wpk_compose_read(struct wpk_compose *c, int x, int64_t offset, int64_t step, int rank,
                     const int64_t *extent);
int wpk_compose_store(struct wpk_compose *c, int next, int start, bool is_reverse);
int wpk_compose_result(struct wpk_compose *c, int all, int other);

/* ---- equations */

/* A node that others take the place of. */
struct wpk_expansion {
    struct wpk_compose to; /* keeps the first failure */
    struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    struct wpk_diag *diag;
    struct wpk_buf text; /* of the next equation, in notation */
    int axis;            /* of the next equation's second tensor, kept as its attribute */
};

/* Say why the node is refused.   errors  returns WPK_EUNSUPPORTED */
WPK_MUST_CHECK wpk_err wpk_expansion_refuse(const struct wpk_expansion *e, const char *why);

/* A copy of input number `index`, as more values move what they were; rank -1: left out. */
struct wpk_graph_value wpk_expansion_input(const struct wpk_expansion *e, int index);

/* The number that input `index` is, or `otherwise` if it is left out.
 *   errors  WPK_EUNSUPPORTED  it is no constant integer */
WPK_MUST_CHECK wpk_err wpk_expansion_number(const struct wpk_expansion *e, int index,
                                            int64_t otherwise, int64_t *out);

/* The value that input number `index` is; -1: left out. */
int wpk_expansion_input_of(const struct wpk_expansion *e, int index);

/* The list of an attribute, or `otherwise`, the least that it may have, for each.
 *   returns  false: of another length, or with another element */
bool wpk_expansion_list(const struct wpk_expansion *e, const char *attribute, int count,
                        int64_t otherwise, int64_t *out);

/* Append a node whose equation is e->text, which is emptied; its tensors are X, X1, ... and Y.
 *   shape   inputs [count], extent [rank]; output: -1 for a new value
 *   returns the value that it computes */
int wpk_expansion_equation(struct wpk_expansion *e, const int *inputs, int count,
                           enum wpk_dtype dtype, int rank, const int64_t *extent, int output);

/* Append a node of an operator of ONNX, or of another domain.
 *   shape   output: -1 for a new value */
int wpk_expansion_node(struct wpk_expansion *e, const char *domain, const char *op,
                       const int *inputs, int count, const struct wpk_graph_attribute *attributes,
                       int attribute_count, int output);
int wpk_expansion_binary(struct wpk_expansion *e, const char *op, int a, int b, int output);
int wpk_expansion_cast(struct wpk_expansion *e, int x, enum wpk_dtype dtype, int output);

/* A tensor of f32 or f64 of these numbers.   shape  numbers [elements of extent [rank]] */
int wpk_expansion_constant(struct wpk_expansion *e, enum wpk_dtype dtype, int rank,
                           const int64_t *extent, const double *numbers);

/* Rows of x [rows, ...]: out[i.., ...] = x[indices[i..], ...]. */
int wpk_expansion_gather(struct wpk_expansion *e, int x, int indices, int output);

/* The value that output number `index` is; -1: nobody asks for it. */
int wpk_expansion_output(const struct wpk_expansion *e, int index);

/* Operators of com.microsoft that ONNX Runtime's optimizers write: several of ONNX's in one.
 *   source  ONNX Runtime docs/ContribOperators.md */
/* FusedMatMul: transposed operands, and a factor. */
wpk_err wpk_expand_fused_matmul(struct wpk_expansion *e);
/* FusedConv and FusedGemm: an activation after it, and of a convolution an addend before that. */
wpk_err wpk_expand_fused_activation(struct wpk_expansion *e);
/* SkipLayerNormalization, SkipSimplifiedLayerNormalization: the sum of two, normalized. */
wpk_err wpk_expand_skip_norm(struct wpk_expansion *e);
/* EmbedLayerNormalization: the sum of rows of two or three tables, normalized. */
wpk_err wpk_expand_embed_norm(struct wpk_expansion *e);

/* Operators of ai.onnx.ml: linear models, and what prepares their inputs. */
WPK_MUST_CHECK wpk_err wpk_expand_scaler(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_linear(struct wpk_expansion *e);

/* Apply attribute post_transform to the scores [rows, count], which becomes the value `output`.
 *   errors  WPK_EUNSUPPORTED  another function than NONE, SOFTMAX, LOGISTIC */
WPK_MUST_CHECK wpk_err wpk_expand_post_transform(struct wpk_expansion *e, int scores, int output);

/* How many labels the node has; 0: none.   shape  *ints: NULL if they are texts */
int wpk_expand_label_count(const struct wpk_expansion *e, const int64_t **ints);

/* Compute the labels of the largest scores [rows, count]: output 0, if it is asked for.
 *   errors  WPK_EUNSUPPORTED  labels are texts */
WPK_MUST_CHECK wpk_err wpk_expand_labels(struct wpk_expansion *e, int scores, int64_t rows,
                                         int64_t count);

/* Operators that move elements: by data, through a Gather, or as an equation says. */
WPK_MUST_CHECK wpk_err wpk_expand_affine_grid(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_feature_extractor(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_col2im(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_compress(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_det(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_max_unpool(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_reverse_sequence(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_tensor_scatter(struct wpk_expansion *e);

/* Operators that read an image between its elements, at places that are data. */
WPK_MUST_CHECK wpk_err wpk_expand_grid_sample(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_roi_align(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_deform_conv(struct wpk_expansion *e);

/* Operators of signals: windows, and Fourier transforms as products with a constant matrix. */

/* HannWindow, HammingWindow, BlackmanWindow. */
WPK_MUST_CHECK wpk_err wpk_expand_window(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_dft(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_stft(struct wpk_expansion *e);

/* Operators of models that read a sequence step by step and keep a state. */
WPK_MUST_CHECK wpk_err wpk_expand_causal_conv(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_flex_attention(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_linear_attention(struct wpk_expansion *e);

/* Ensembles of decision trees: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
 *   errors  WPK_EPARSE, too */
WPK_MUST_CHECK wpk_err wpk_expand_trees(struct wpk_expansion *e);

/* RNN, GRU, LSTM and DynamicQuantizeLSTM as nodes that have programs: the steps of the sequence one
 * after the other. Inputs are multiplied by the weights for all steps at once; the nodes of a step
 * are named after it.
 *   source  https://onnx.ai/onnx/operators/ (RNN, GRU, LSTM) */
WPK_MUST_CHECK wpk_err wpk_expand_recurrent(struct wpk_expansion *e);

/* The functions that RNN, GRU and LSTM take by their names, as nodes. */

#define WPK_ACTIVATIONS_MAX 6 /* of a node: three in both directions */

struct wpk_activation_function {
    int kind;
    float alpha, beta; /* of those that have them */
};

/* Read the attributes activations, activation_alpha and activation_beta of a node.
 *   shape   usual: names, separated by commas, of the functions where none are given
 *           out [count]
 *   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_activations_read(const struct wpk_graph_node *node, const char *usual,
                                            int count, struct wpk_activation_function *out,
                                            struct wpk_diag *diag);

/* Append what computes the function of x. */
int wpk_activation_apply(struct wpk_compose *c, const struct wpk_activation_function *activation,
                         int x);

/* Operators without a program of their own: nodes that have one take their place. */

/* True if the node is of the kind WPK_KIND_EXPANDED. */
bool wpk_graph_is_expanded(const struct wpk_graph_node *node);

/* Append to the graph nodes that compute the outputs of `node`, which is none of its nodes. The
 * shapes of its inputs are known.
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL, WPK_EPARSE with a reason; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_expand(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                        struct wpk_diag *diag);

/* Nodes with several outputs as nodes with one. */

/* Replace each node with several outputs by one node for each output that is read or is the
 * model's, with `part` and `part_count`. A node nobody asks anything of keeps its first output.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_split_outputs(struct wpk_graph *graph);

#endif
