/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor IR: a program is a DAG of stages over tensors.
 *
 * Spaces, kernels and reference values are derived from the program alone: no later step knows an
 * operator by name.
 *
 * Tensors, stages and nodes are in flat arrays and refer to each other by index, so that copying
 * the arrays copies the program, and a node id stays valid while the program grows. Stages are in
 * topological order. Nodes are immutable, and expressions of one stage may share them.
 *
 * Invariants, checked by wpk_program_validate:
 *   - a stage's first `rank` axes are its output axes, in the order of its output tensor's
 *     physical dimensions and with their unpadded extents; the reduction axes follow
 *   - each tensor but inputs, constants and literals is written by exactly one stage
 *   - a stage loads only tensors of earlier stages, inputs, constants and literals
 *   - after layouts are applied (derive.h), tensors are dense in these axes; only inputs, constants
 *     and outputs have layouts. `pad_before/after`: how far outside [0, extent) a tensor reaches
 *   - index expressions are of dtype i64: axes, integer literals, + - * and floor / and % by
 *     positive literals, and integers of inputs, constants and literals (data_index.h), cast to i64
 *   - types are explicit: both operands of a binary node have one dtype, a pointwise stage's
 *     expression has its output's dtype and a reduction's its accumulator's
 *   - a node's children have smaller ids than the node
 *   - with each shared node counted as often as it is used, all expressions have at most
 *     WPK_TREE_MAX nodes; those of an expanded program (expand.h) share theirs */
#ifndef WPK_IR_PROGRAM_H
#define WPK_IR_PROGRAM_H

#include "schema/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_AXES_MAX 16
#define WPK_TENSORS_MAX 112
#define WPK_STAGES_MAX 96
#define WPK_NODES_MAX 16384
#define WPK_EXPANDED_NODES_MAX (1 << 19) /* of an expanded program */
#define WPK_LITERAL_ELEMENTS_MAX 4096
#define WPK_TREE_MAX 8192 /* nodes of all stages, shared ones counted as often as they are used */
#define WPK_LOADS_MAX 256 /* of one stage, in derivations and all later steps */

enum wpk_role {
    WPK_ROLE_INPUT,
    WPK_ROLE_CONSTANT, /* the same in every call of a kernel: prepared once */
    WPK_ROLE_INTERMEDIATE,
    WPK_ROLE_OUTPUT,
    WPK_ROLE_LITERAL, /* values are part of the program, e.g. Winograd's matrices */
};

struct wpk_tensor {
    char name[WPK_NAME_MAX];
    enum wpk_role role;
    enum wpk_dtype dtype;
    int rank;
    int64_t extent[WPK_RANK_MAX];     /* [rank], each >= 1 */
    int64_t pad_before[WPK_RANK_MAX]; /* [rank] elements below index 0; zero in inputs */
    int64_t pad_after[WPK_RANK_MAX];  /* [rank] elements from index `extent` on */
    double *values;                   /* [extent...] row-major; literals only; owned */
};

enum wpk_node_kind {
    WPK_NODE_LITERAL, /* value, or integer when dtype is not floating */
    WPK_NODE_AXIS,    /* the current value of stage axis `axis`; dtype i64 */
    WPK_NODE_LOAD,    /* tensor[index...], or `outside` where an index leaves the tensor */
    WPK_NODE_UNARY,
    WPK_NODE_BINARY, /* comparisons too: their dtype is bool */
    WPK_NODE_SELECT, /* arg[0] ? arg[1] : arg[2] */
    WPK_NODE_CAST,   /* arg[0] to dtype: float to int rounds to nearest even and saturates, int to
                         int wraps (keeps the low bits), to bool is x != 0 */
};

/* suffix, notation */
#define WPK_UNARY_LIST(X)                                                                          \
    X(NEG, "-")                                                                                    \
    X(NOT, "!")                                                                                    \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(RSQRT, "rsqrt")                                                                              \
    X(TANH, "tanh")                                                                                \
    X(ERF, "erf")                                                                                  \
    X(SIGMOID, "sigmoid")                                                                          \
    X(ABS, "abs")                                                                                  \
    X(FLOOR, "floor")                                                                              \
    X(CEIL, "ceil")                                                                                \
    X(ROUND, "round")                                                                              \
    X(TRUNC, "trunc")                                                                              \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(ISNAN, "isnan") /* of type bool */                                                           \
    X(ISINF, "isinf") /* of type bool; of both signs */

/* suffix, notation, commutative, function-call form */
#define WPK_BINARY_LIST(X)                                                                         \
    X(ADD, "+", true, false)                                                                       \
    X(SUB, "-", false, false)                                                                      \
    X(MUL, "*", true, false)                                                                       \
    X(DIV, "/", false, false)                                                                      \
    X(MOD, "%", false, false)                                                                      \
    X(MIN, "min", true, true)                                                                      \
    X(MAX, "max", true, true)                                                                      \
    X(POW, "pow", false, true)                                                                     \
    X(LT, "<", false, false)                                                                       \
    X(LE, "<=", false, false)                                                                      \
    X(EQ, "==", true, false)                                                                       \
    X(NE, "!=", true, false)                                                                       \
    X(AND, "&&", true, false)                                                                      \
    X(OR, "||", true, false)

#define WPK_UNARY_ENUM(name, text) WPK_UNARY_##name,
enum wpk_unary { WPK_UNARY_LIST(WPK_UNARY_ENUM) WPK_UNARY_COUNT };

#define WPK_BINARY_ENUM(name, text, commutative, call) WPK_BINARY_##name,
enum wpk_binary { WPK_BINARY_LIST(WPK_BINARY_ENUM) WPK_BINARY_COUNT };

/* One node of an expression. Integer `/` and `%` floor; `relu(x)` is max(x, 0). */
struct wpk_node {
    enum wpk_node_kind kind;
    enum wpk_dtype dtype;
    int op;                  /* enum wpk_unary or enum wpk_binary */
    int arg[3];              /* node ids */
    int axis;                /* AXIS: index into the stage's axes */
    int tensor;              /* LOAD */
    int index[WPK_RANK_MAX]; /* LOAD: node id for each dimension of the tensor */
    int outside;             /* LOAD: literal node, the value outside; -1: never outside */
    bool strict;             /* UNARY, BINARY: see expand.h */
    double value;            /* LITERAL, floating */
    int64_t integer;         /* LITERAL, integer or bool */
};

struct wpk_axis {
    char name[WPK_NAME_MAX];
    int64_t extent; /* >= 1; the axis runs over [0, extent) */
};

enum wpk_reduction {
    WPK_REDUCE_NONE,
    WPK_REDUCE_SUM,
    WPK_REDUCE_MAX,
    WPK_REDUCE_MIN,
    WPK_REDUCE_PROD,
};

/* output[axes 0 .. rank) = reduction over axes [rank, axis_count) of the node `expr`. */
struct wpk_stage {
    int output;     /* tensor id */
    int rank;       /* output axes */
    int axis_count; /* of output and reduction axes; equal to rank iff reduction is NONE */
    struct wpk_axis axes[WPK_AXES_MAX];
    enum wpk_reduction reduction;
    enum wpk_dtype accumulator; /* of a reduction; its result is cast to the output's dtype */
    int expr;                   /* node id */
    /* Of a reduction of an expanded program, else -1 and false: the literal node that it starts
     * from, and whether its terms may be infinite. */
    int identity;
    bool strict;
};

/* = {0} is the empty program. */
struct wpk_program {
    struct wpk_tensor *tensors; /* owned; [tensor_capacity]; they stay where they are */
    int tensor_count;
    int tensor_capacity;
    struct wpk_stage *stages; /* owned; [stage_capacity]; likewise */
    int stage_count;
    int stage_capacity;
    struct wpk_node *nodes; /* owned; [node_capacity]; they move when one is added */
    int node_count;
    int node_capacity;
    bool full;     /* building reached a limit or ran out of memory: wpk_program_validate fails */
    bool starved;  /* full because memory ran out */
    bool expanded; /* consists of primitive operations, expand.h */
};

void wpk_program_fini(struct wpk_program *program);
/* Make a deep copy.   errors  WPK_ENOMEM; `out` is then empty */
wpk_err wpk_program_copy(const struct wpk_program *program, struct wpk_program *out);
/* Move a program to `out`, which is taken for empty; `program` is then empty. */
void wpk_program_move(struct wpk_program *program, struct wpk_program *out);
/* Give back the memory that a program of this size does not need. Adding a tensor or a stage then
 * moves those that there are. */
void wpk_program_trim(struct wpk_program *program);

/* ---- building
 *
 * All functions return an id, or -1 when a limit is reached or memory runs out; `full` is then set,
 * and wpk_program_validate fails. An operand of -1 gives -1. Literal operands are folded; x+0, x*1
 * and x-c (to x+-c) are simplified; the constants of an i64 sum are gathered at its end, those of
 * an i64 product at its beginning. Operands are cast to one dtype, by the rule of ir/node.h. */

int wpk_program_add_tensor(struct wpk_program *program, const char *name, enum wpk_role role,
                           enum wpk_dtype dtype, int rank, const int64_t *extent);
/* Add a literal tensor.   shape  values [extent...] row-major, copied */
int wpk_program_add_literal(struct wpk_program *program, const char *name, enum wpk_dtype dtype,
                            int rank, const int64_t *extent, const double *values);
/* Append a stage that writes tensor `output`. The output axes get the tensor's extents, and the
 * given names (NULL: i0, i1, ...). The caller then adds reduction axes and sets `expr`. */
int wpk_program_add_stage(struct wpk_program *program, int output, const char *const *axis_names);
/* Returns the axis's index, or -1: too many axes or too long a name, which does not set `full`. */
int wpk_stage_add_reduction_axis(struct wpk_stage *stage, const char *name, int64_t extent);

int wpk_node_int(struct wpk_program *program, int64_t value);
int wpk_node_real(struct wpk_program *program, enum wpk_dtype dtype, double value);
int wpk_node_axis(struct wpk_program *program, int axis);
/* Add a load.   shape  index [rank of the tensor] node ids; outside: node id or -1 */
int wpk_node_load(struct wpk_program *program, int tensor, const int *index, int outside);
int wpk_node_unary(struct wpk_program *program, enum wpk_unary op, int a);
int wpk_node_binary(struct wpk_program *program, enum wpk_binary op, int a, int b);
int wpk_node_select(struct wpk_program *program, int condition, int a, int b);
int wpk_node_cast(struct wpk_program *program, enum wpk_dtype dtype, int a);

/* Copy the expression `node` of program `from` into program `to`, with tensors and axes replaced.
 * `from` and `to` may be the same program. Returns the copy's id, or -1 as above.
 *
 *   shape   tensor_map [from->tensor_count] ids in `to`; axis_map [WPK_AXES_MAX] node ids in `to`
 *           (nodes, so that an axis can become an expression); NULL: unchanged
 */
int wpk_node_copy(struct wpk_program *to, const struct wpk_program *from, int node,
                  const int *tensor_map, const int *axis_map);

/* Why a program is `full`: WPK_ENOMEM memory ran out; WPK_ENOSPC a limit is reached. */
wpk_err wpk_program_full_error(const struct wpk_program *program);

/* ---- reading */

int wpk_program_find_tensor(const struct wpk_program *program, const char *name); /* -1: none */
int wpk_program_writer(const struct wpk_program *program, int tensor);            /* stage or -1 */
int wpk_program_find_stage(const struct wpk_program *program, const char *name);  /* its writer */
int wpk_program_output(const struct wpk_program *program);    /* the first; every program has one */
int64_t wpk_tensor_elements(const struct wpk_tensor *tensor); /* unpadded */
bool wpk_tensor_is_given(const struct wpk_tensor *tensor);    /* an input or a constant */

/* Call `visit` on `node` and all nodes below, children first, a shared node once for each use.
 * Without `into_indices` of what indices consist of only loads are visited. */
typedef void (*wpk_node_visit)(const struct wpk_program *program, int node, void *user);
void wpk_node_walk(const struct wpk_program *program, int node, bool into_indices,
                   wpk_node_visit visit, void *user);
/* A visit: mark the axes that are met.   shape  user: bool [WPK_AXES_MAX] */
void wpk_node_mark_axis(const struct wpk_program *program, int node, void *user);
/* Copy the program with one output; the others are intermediates.
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM */
wpk_err wpk_program_view(const struct wpk_program *program, int output, struct wpk_program *out);

/* True if the value depends on where it is computed: the expression has an axis outside of the
 * indices of loads, or reads integers or bools of a stage, which may be inlined. */
bool wpk_node_has_axis(const struct wpk_program *program, int node);
/* Fill `loads` with the load nodes of the stage, those in indices before those that they are of,
 * each once; at most `max`. Returns how many. */
int wpk_stage_loads(const struct wpk_program *program, const struct wpk_stage *stage, int *loads,
                    int max);

/* The points of the stage's whole space, reduction axes among them; of its axes from `first` to
 * before `end`; of its reduction axes. */
double wpk_stage_points(const struct wpk_stage *stage);
double wpk_stage_points_of(const struct wpk_stage *stage, int first, int end);
double wpk_stage_terms(const struct wpk_stage *stage);

/* A walk over these loads, in the same order:
 *
 *     for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
 */
struct wpk_loads {
    const struct wpk_program *program;
    const struct wpk_stage *stage; /* that has the load */
    const struct wpk_node *node;   /* the load; valid until a node is added */
    int id;                        /* its number */
    int reader, last;              /* of a walk over all stages: the stage's number, the last one */
    int at, count;
    int ids[WPK_LOADS_MAX];
};
/* Begin a walk over the loads of one stage, or over those of all stages. */
struct wpk_loads wpk_loads_of(const struct wpk_program *program, const struct wpk_stage *stage);
struct wpk_loads wpk_loads_in(const struct wpk_program *program);
/* Step to the next load; false: there is none. */
WPK_MUST_CHECK bool wpk_loads_next(struct wpk_loads *loads);

/* The stage that reads the tensor with the only load of it in the program, which *load is then; -1:
 * there is none, or several. */
int wpk_program_only_load(const struct wpk_program *program, int tensor, int *load);

/* True if every stage has at most WPK_LOADS_MAX loads. Other programs can be parsed, printed and
 * interpreted, but derivations, splitting and spaces refuse them. */
bool wpk_program_loads_fit(const struct wpk_program *program);

/* index = sum(coefficient[axis] * axis) + constant */
struct wpk_affine {
    int64_t coefficient[WPK_AXES_MAX];
    int64_t constant;
};
/* Fill `out` with an index's affine form. False when the index has none, because of / or %. */
bool wpk_index_affine(const struct wpk_program *program, int node, struct wpk_affine *out);
/* The axis that the index consists of; -1 for any other index. */
int wpk_index_axis(const struct wpk_program *program, int node);
/* The smallest and largest value of an index over the stage's axes; bounds where not affine. */
void wpk_index_range(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                     int64_t *low, int64_t *high);
/* The same with each axis restricted to [low[axis], low[axis] + extent[axis]). */
void wpk_index_range_in(const struct wpk_program *program, int node, const int64_t *low,
                        const int64_t *extent, int64_t *out_low, int64_t *out_high);
/* The dimension that the load reads together with the next one as if both were one, by i / n and
 * i % n, where i is an axis and n the extent of the next one; -1: none. Along that axis the load
 * runs through neighbours, beyond the ends of the next dimension, too. */
int wpk_load_flat_dim(const struct wpk_program *program, const struct wpk_node *load);
/* The least common multiple of the divisors applied to `axis` in all indices of the stage, of which
 * a split of the axis must be a multiple; 1 without divisors. */
int64_t wpk_axis_alignment(const struct wpk_program *program, const struct wpk_stage *stage,
                           int axis);
/* The same for a split into register tiles: tensors read by collapsed axes need no whole rows. */
int64_t wpk_axis_tile_alignment(const struct wpk_program *program, const struct wpk_stage *stage,
                                int axis);
/* The same, with the alignments of the stages that the stage reads by this axis alone. */
int64_t wpk_program_alignment(const struct wpk_program *program, int stage, int axis);
/* True if a load of the stage can leave its tensor; padding counts as inside. */
bool wpk_load_may_leave(const struct wpk_program *program, const struct wpk_stage *stage, int load);
/* True if a load has the value 0 outside of its tensor. */
bool wpk_load_is_zero_outside(const struct wpk_program *program, const struct wpk_node *load);
/* The share of the points of its axes for which an index is in [low, high); 1 where that is not
 * known: the index is not affine, or is large. */
double wpk_index_share(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                       int64_t low, int64_t high);

/* Check all invariants.
 *   errors  WPK_EINVAL with the broken invariant in `diag`; WPK_ENOSPC `full` is set; WPK_ENOMEM */
wpk_err wpk_program_validate(const struct wpk_program *program, struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
