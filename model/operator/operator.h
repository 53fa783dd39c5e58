/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ONNX operators that models may consist of.
 *
 * An entry says an operator's shapes by its kind, and what it computes by a text in the tensor
 * IR's notation, with these places for what a node decides:
 *
 *   X[..] X1[..]   an input, broadcast to the output's axes; a constant of one element is written
 *                  as its number
 *   Y[..] E[..]    the output's axes: the output, and intermediates of its shape
 *   X[@]           input 0's axes, those that the operator reduces replaced by reduction axes
 *   (@)            the reduction axes with their extents, as in sum(@)
 *   S[-]           the axes that are kept; X1[-] without any: its element 0
 *   {#}            how many elements are reduced into one
 *   {r}            the number of an element among those that are reduced into one
 *   {d}            that of the output's element, where the output has the reduced axes
 *   {row} {column} the output's last two axes
 *   {name=1}       a number: the node's attribute, or this default
 *   {X1=0}         a number: input 1, which must be a constant, or this default
 *   {to}           the output's element type
 *   {?2: text}     the text, if the node has input number 2
 *   {?name=1: text}, {?name!=tanh: text}
 *                  the text, if the attribute, an integer or a text, is given with this value, or
 *                  is not; `part` is the number of the output
 *   {?float: text}, {?integer: text}, {?i64: text}
 *                  the text, if the output is of a floating type, is not, or is of this type
 *
 * Operators whose attributes decide on the structure of the equation have no text: a function of
 * their kind prints it. */
#ifndef WPK_MODEL_OPERATOR_OPERATOR_H
#define WPK_MODEL_OPERATOR_OPERATOR_H

#include "model/graph.h"

#define WPK_EQUATION_DOMAIN "\001equation" /* names in files have no control characters */
/* MatMul and Conv of u8 and i8 with sums in i32; a Conv reads its attribute `outside` there. Shift
 * adds a number and casts. */
#define WPK_SUM_DOMAIN "\001sum"
#define WPK_OPERATOR_INPUTS_MAX 32 /* of a node; Sum, Max, Min and Concat of more become several */

/* The rule for the output's extents. */
enum wpk_operator_kind {
    WPK_KIND_POINTWISE, /* all inputs, broadcast */
    WPK_KIND_SAME,      /* input 0: normalizations; output parts 1, 2: one for each row */
    WPK_KIND_LIKE,      /* input 0; the others are parameters */
    WPK_KIND_REDUCE,    /* input 0 without the reduced axes, or with extents of 1 */
    WPK_KIND_CLIP,
    WPK_KIND_CONV,
    WPK_KIND_MAX_POOL,
    WPK_KIND_AVERAGE_POOL,
    WPK_KIND_LP_POOL,
    WPK_KIND_MATMUL,
    WPK_KIND_GEMM,
    WPK_KIND_RESHAPE,
    WPK_KIND_FLATTEN,
    WPK_KIND_SQUEEZE,
    WPK_KIND_UNSQUEEZE,
    WPK_KIND_TRANSPOSE,
    WPK_KIND_CONCAT,
    WPK_KIND_SLICE,
    WPK_KIND_SELECT,   /* all inputs, broadcast; the type is input 1's */
    WPK_KIND_VARIADIC, /* all inputs, broadcast; the text is an operator or a function */
    WPK_KIND_EXPAND,   /* input 0, broadcast to the shape that input 1 is */
    WPK_KIND_PAD,
    WPK_KIND_RESIZE, /* by whole factors, the nearest element */
    WPK_KIND_CONV_TRANSPOSE,
    WPK_KIND_CONSTANT_OF_SHAPE, /* folded where its input is a constant */
    WPK_KIND_CAST,              /* input 0, in the type of attribute `to` */
    WPK_KIND_SHAPE,             /* follows from shapes alone: folded, never lowered */
    WPK_KIND_DEPTH_TO_SPACE,
    WPK_KIND_SPACE_TO_DEPTH,
    WPK_KIND_TILE,
    WPK_KIND_CENTER, /* input 0 with extents that input 1 is, in the middle */
    WPK_KIND_GATHER,
    WPK_KIND_GATHER_ELEMENTS,
    WPK_KIND_GATHER_ND,
    WPK_KIND_SCATTER_ELEMENTS,
    WPK_KIND_SCATTER_ND,
    WPK_KIND_ONE_HOT,
    WPK_KIND_ATTENTION,
    WPK_KIND_EINSUM,
    WPK_KIND_ROTARY,     /* input 0 */
    WPK_KIND_GROUP,      /* input 0 */
    WPK_KIND_RANGE,      /* from input 0 to input 1 by input 2 */
    WPK_KIND_NON_ZERO,   /* one column for each element that is not 0; host.h computes it of data */
    WPK_KIND_TOP_K,      /* input 0 with input 1's elements of an axis; host.h computes it */
    WPK_KIND_LOSS,       /* none, or a scalar; part 1: input 0 */
    WPK_KIND_LOOP_ENTER, /* loop.h: input 0 */
    WPK_KIND_LOOP_READ,  /* attribute shape */
    WPK_KIND_LOOP_STORE, /* [times + 1, ...] of input 0 */
    WPK_KIND_LOOP_RESULT, /* input 0 */
    WPK_KIND_EQUATION,    /* attribute shape; the notation is attribute text (expansion.h) */
    WPK_KIND_EXPANDED,    /* nodes that others take the place of (expand.h) */
    WPK_KIND_COUNT,
};

struct wpk_inference;
struct wpk_printer;

/* The functions of a kind; NULL: it has none. */
struct wpk_operator_form {
    wpk_err (*infer)(const struct wpk_inference *in); /* the output's extents: inference.h */
    wpk_err (*print)(struct wpk_printer *printer);    /* the equation: printer.h */
};
extern const struct wpk_operator_form wpk_operator_forms[WPK_KIND_COUNT];

/* Which axes of input 0 an operator reduces. */
enum wpk_operator_axes {
    WPK_AXES_NONE,
    WPK_AXES_SPATIAL, /* 2 and all that follow */
    WPK_AXES_LISTED,  /* attribute axes, or input 1; all without either */
    WPK_AXES_FROM,    /* attribute axis and all that follow */
    WPK_AXES_SOFTMAX, /* attribute axis; before opset 13 all that follow, too */
    WPK_AXES_FIRST,   /* attribute axis, or 0 */
    WPK_AXES_LAST,    /* attribute axis, or the last */
    WPK_AXES_INPUT,   /* input 1, a constant */
    WPK_AXES_MOMENTS, /* attribute axes, or all but the channels */
};

/* The element type of an operator's output. */
enum wpk_operator_output {
    WPK_OUTPUT_AS_INPUT,  /* that of input 0, or as the kind says */
    WPK_OUTPUT_AS_SECOND, /* that of input 1 */
    WPK_OUTPUT_AS_THIRD,  /* that of input 2 */
    WPK_OUTPUT_BOOL,
    WPK_OUTPUT_I64,
    WPK_OUTPUT_SUM,   /* in which elements of input 0 are added */
    WPK_OUTPUT_DTYPE, /* attribute dtype, or input 0's */
    WPK_OUTPUT_MASK,  /* input 0's; of part 1: bool */
    WPK_OUTPUT_WHERE, /* input 0's; of part 1: i64 */
};

struct wpk_operator {
    const char *name;
    int input_min;
    int input_max;
    enum wpk_operator_kind kind;
    enum wpk_operator_axes axes;
    enum wpk_operator_output output;
    const char *attributes; /* "axis:i axes:I epsilon:f mode:s=DCR|CRD"; others are refused, and
                               other texts than those behind '=' */
    const char *text;       /* NULL: by its kind */
    int parts;              /* how many of its outputs can be asked for; 0: one */
    int outputs;            /* how many it has, if these are more */
};

/* The entry of an operator; NULL: it is not supported. */
const struct wpk_operator *wpk_operator_find(const char *name, const char *domain);
/* Entry `index` of all that files can name, and its domain, "" for ONNX's own; NULL: no more. */
const struct wpk_operator *wpk_operator_at(int index, const char **domain);

/* Check the number of the node's inputs and the names and kinds of its attributes.
 *   errors  WPK_EUNSUPPORTED, WPK_EPARSE with a reason in `diag` */
WPK_MUST_CHECK wpk_err wpk_operator_check(const struct wpk_operator *op,
                                          const struct wpk_graph_node *node, struct wpk_diag *diag);

/* Fill in which axes of input 0, whose shape is known, the node reduces.
 *   shape   out [rank of input 0]
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_operator_reduced(const struct wpk_graph *graph,
                                            const struct wpk_graph_node *node,
                                            const struct wpk_operator *op, bool *out,
                                            struct wpk_diag *diag);

/* "d0,d1,...", of `count` axes, at most WPK_RANK_MAX. */
const char *wpk_axis_names(int count);

/* The axis `axis` of `rank`, counted from the end if negative.   errors  WPK_EINVAL */
WPK_MUST_CHECK wpk_err wpk_operator_axis(int64_t axis, int rank, int *out, struct wpk_diag *diag);

/* The same of the node's attribute axis, or `otherwise`. */
WPK_MUST_CHECK wpk_err wpk_operator_axis_of(const struct wpk_graph_node *node, int64_t otherwise,
                                            int rank, int *out, struct wpk_diag *diag);

/* How many axes a Shape lists, of `rank`, and the first of them. */
int wpk_operator_shape_axes(const struct wpk_graph_node *node, int rank, int *first);

/* The order of axes of a Transpose: output axis d is input axis out[d].   errors  WPK_EINVAL */
WPK_MUST_CHECK wpk_err wpk_operator_order(const struct wpk_graph_node *node, int rank, int *out,
                                          struct wpk_diag *diag);

/* The list of integers that is an attribute or, in later opsets, an input.
 *   shape   out [WPK_RANK_MAX]
 *   errors  WPK_ENOENT  the node has neither; WPK_EUNSUPPORTED  an input that is no constant;
 *           WPK_ERANGE  too long */
WPK_MUST_CHECK wpk_err wpk_operator_integers(const struct wpk_graph *graph,
                                             const struct wpk_graph_node *node,
                                             const char *attribute, int input, int64_t *out,
                                             int *count, struct wpk_diag *diag);

/* Elements that a Pad adds at both ends of each axis of input 0; negative: it removes them.
 *   shape   before, after [rank of input 0]
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason */
WPK_MUST_CHECK wpk_err wpk_operator_pads(const struct wpk_graph *graph,
                                         const struct wpk_graph_node *node, int64_t *before,
                                         int64_t *after, struct wpk_diag *diag);

/* The elements of each axis of input 0 that a Slice takes: output element i is start + i * step. */
struct wpk_operator_slice {
    int64_t start[WPK_RANK_MAX];
    int64_t step[WPK_RANK_MAX]; /* not 0 */
    int64_t count[WPK_RANK_MAX];
};

/* Also of a Split: what its part takes.
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason */
WPK_MUST_CHECK wpk_err wpk_operator_slice(const struct wpk_graph *graph,
                                          const struct wpk_graph_node *node,
                                          struct wpk_operator_slice *out, struct wpk_diag *diag);

#endif
