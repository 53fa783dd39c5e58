/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/expand.h"

#include "ir/infinite.h"
#include "ir/node.h"
#include "nest/expand_function.h"

#include <math.h>
#include <stdlib.h>

#define ABSENT (-2)

struct expansion {
    const struct wpk_program *from;
    struct wpk_program *to;
    struct wpk_infinite infinite;  /* of `from` */
    const struct wpk_stage *stage; /* of `to` */
    int axis[WPK_AXES_MAX];        /* of the stage: nodes of `to` */
    int *done;                     /* [from->node_count] node of `to`; ABSENT: not expanded yet */
};

static int expand(struct expansion *x, int id);

/* ---- loads */

/* The element of a literal whose indices are numbers; ABSENT for other loads. */
static int element_of(const struct expansion *x, const struct wpk_tensor *tensor, const int *index)
{
    int64_t at = 0;
    if (tensor->role != WPK_ROLE_LITERAL) {
        return ABSENT;
    }
    for (int d = 0; d < tensor->rank; d++) {
        const struct wpk_node *node = &x->to->nodes[index[d]];
        if (node->kind != WPK_NODE_LITERAL || node->integer < 0 ||
            node->integer >= tensor->extent[d]) {
            return ABSENT;
        }
        at = at * tensor->extent[d] + node->integer;
    }
    return wpk_node_real(x->to, tensor->dtype, tensor->values[at]);
}

/* True if no index leaves the tensor. */
static int inside_of(struct expansion *x, const struct wpk_tensor *tensor, const int *index)
{
    int inside = -1;
    for (int d = 0; d < tensor->rank; d++) {
        int first = wpk_node_int(x->to, -tensor->pad_before[d]);
        int last = wpk_node_int(x->to, tensor->extent[d] + tensor->pad_after[d] - 1);
        int within = wpk_node_binary(x->to, WPK_BINARY_AND,
                                     wpk_node_binary(x->to, WPK_BINARY_LE, first, index[d]),
                                     wpk_node_binary(x->to, WPK_BINARY_LE, index[d], last));
        inside = inside < 0 ? within : wpk_node_binary(x->to, WPK_BINARY_AND, inside, within);
    }
    return inside;
}

/* True if the literal keeps its value in the type. */
static bool fits(const struct wpk_node *literal, enum wpk_dtype dtype)
{
    double value = wpk_dtype_is_float(literal->dtype) ? literal->value : (double)literal->integer;
    return wpk_dtype_round(dtype, value) == value;
}

/* Expand a load; the value has the type that the tensor has in the expanded program. */
static int expand_load(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    const struct wpk_tensor *tensor = &x->to->tensors[node.tensor];
    int index[WPK_RANK_MAX], may_be = x->infinite.may_be[id];
    for (int d = 0; d < tensor->rank; d++) {
        index[d] = expand(x, node.index[d]);
        if (index[d] < 0) {
            return -1;
        }
    }
    int element = element_of(x, tensor, index);
    if (element != ABSENT) {
        return element;
    }
    bool apart = node.outside >= 0 && !fits(&x->from->nodes[node.outside], tensor->dtype);
    int outside = node.outside >= 0 && !apart ? expand(x, node.outside)
                                              : wpk_node_real(x->to, tensor->dtype, 0);
    int load = outside < 0 ? -1 : wpk_node_load(x->to, node.tensor, index, outside);
    if (load < 0) {
        return -1;
    }
    bool leaves = wpk_load_may_leave(x->to, x->stage, load);
    x->to->nodes[load].outside = leaves ? x->to->nodes[load].outside : -1;
    load = wpk_expand_cast(x->to, node.dtype, load, may_be);
    return leaves && apart
               ? wpk_node_select(x->to, inside_of(x, tensor, index), load, expand(x, node.outside))
               : load;
}

/* ---- other nodes */

static int expand_unary(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    enum wpk_unary op = (enum wpk_unary)node.op;
    int a = expand(x, node.arg[0]);
    return wpk_expand_function(x->to, op, a, x->infinite.strict[id]);
}

/* A quotient or remainder of an index that stays within one multiple of the divisor, without the
 * division: Halide knows of a remainder only that it is below the divisor, and computes or reads
 * elements that nobody needs. ABSENT: it is none. */
static int expand_quotient(struct expansion *x, enum wpk_binary op, int a, int b)
{
    int64_t low, high;
    bool divides = op == WPK_BINARY_DIV || op == WPK_BINARY_MOD;
    if (!divides || a < 0 || b < 0 || x->to->nodes[a].dtype != WPK_I64 ||
        x->to->nodes[b].kind != WPK_NODE_LITERAL || x->to->nodes[b].integer < 1) {
        return ABSENT;
    }
    int64_t divisor = x->to->nodes[b].integer;
    wpk_index_range(x->to, x->stage, a, &low, &high);
    int64_t multiple = (low - ((low % divisor) + divisor) % divisor) / divisor;
    if (high >= (multiple + 1) * divisor) {
        return ABSENT;
    }
    return op == WPK_BINARY_DIV
               ? wpk_node_int(x->to, multiple)
               : wpk_node_binary(x->to, WPK_BINARY_SUB, a, wpk_node_int(x->to, multiple * divisor));
}

static int expand_binary(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    enum wpk_binary op = (enum wpk_binary)node.op;
    int a = expand(x, node.arg[0]), b = expand(x, node.arg[1]);
    int quotient = expand_quotient(x, op, a, b);
    if (quotient != ABSENT) {
        return quotient;
    }
    if (a >= 0 && b >= 0 && (op == WPK_BINARY_MAX || op == WPK_BINARY_MIN) &&
        wpk_dtype_is_float(node.dtype)) {
        return wpk_expand_choice(x->to, op, a, b);
    }
    if (op == WPK_BINARY_LE && x->infinite.strict[id]) { /* Halide's is !(b < a), true of a NaN */
        return wpk_node_binary(x->to, WPK_BINARY_OR, wpk_expand_strict(x->to, WPK_BINARY_LT, a, b),
                               wpk_expand_strict(x->to, WPK_BINARY_EQ, a, b));
    }
    return x->infinite.strict[id] ? wpk_expand_strict(x->to, op, a, b)
                                  : wpk_node_binary(x->to, op, a, b);
}

static int expand_select(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    int condition = expand(x, node.arg[0]);
    int a = expand(x, node.arg[1]), b = expand(x, node.arg[2]);
    return wpk_node_select(x->to, condition, a, b);
}

static int expand_new(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL:
        return wpk_node_append(x->to, &node);
    case WPK_NODE_AXIS:
        return x->axis[node.axis];
    case WPK_NODE_LOAD:
        return expand_load(x, id);
    case WPK_NODE_UNARY:
        return expand_unary(x, id);
    case WPK_NODE_BINARY:
        return expand_binary(x, id);
    case WPK_NODE_SELECT:
        return expand_select(x, id);
    case WPK_NODE_CAST: {
        int a = expand(x, node.arg[0]);
        return wpk_expand_cast(x->to, node.dtype, a, x->infinite.may_be[node.arg[0]]);
    }
    }
    return -1;
}

static int expand(struct expansion *x, int id)
{
    if (x->done[id] == ABSENT) {
        x->done[id] = expand_new(x, id);
    }
    return x->done[id];
}

/* ---- stages */

/* The stage's value or term, as a `dtype`. */
static int expand_value(struct expansion *x, int expr, enum wpk_dtype dtype)
{
    for (int i = 0; i < x->from->node_count; i++) {
        x->done[i] = ABSENT;
    }
    return wpk_expand_cast(x->to, dtype, expand(x, expr), x->infinite.may_be[expr]);
}

/* A maximum or minimum of floats is strict, so that its identity may be infinite. */
static int identity_of(struct wpk_program *program, const struct wpk_stage *stage)
{
    enum wpk_dtype dtype = stage->accumulator;
    switch (stage->reduction) {
    case WPK_REDUCE_MAX:
        /* of an integer type the least number; a bool is whether it is not 0 */
        return wpk_node_real(program, dtype, dtype == WPK_BOOL ? 0 : -(double)INFINITY);
    case WPK_REDUCE_MIN:
        return wpk_node_real(program, dtype, (double)INFINITY);
    default:
        return wpk_node_real(program, dtype, stage->reduction == WPK_REDUCE_PROD);
    }
}

/* The terms after `sum`, added to it in their order; axes before `a` have their numbers. */
static int add_terms(struct expansion *x, const struct wpk_stage *of, int a, int sum)
{
    if (a == of->axis_count) {
        int term = expand_value(x, of->expr, of->accumulator);
        return x->stage->strict ? wpk_expand_strict(x->to, WPK_BINARY_ADD, sum, term)
                                : wpk_node_binary(x->to, WPK_BINARY_ADD, sum, term);
    }
    for (int64_t i = 0; i < of->axes[a].extent && sum >= 0; i++) {
        x->axis[a] = wpk_node_int(x->to, i);
        sum = x->axis[a] < 0 ? -1 : add_terms(x, of, a + 1, sum);
    }
    return sum;
}

static wpk_err expand_stage(struct expansion *x, int s, bool sums)
{
    const struct wpk_stage *of = &x->from->stages[s];
    struct wpk_stage *stage = &x->to->stages[s];
    enum wpk_dtype dtype = x->to->tensors[stage->output].dtype;
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    x->stage = stage;
    stage->strict = reduces && x->infinite.reduction[s];
    for (int a = 0; a < stage->axis_count; a++) {
        x->axis[a] = wpk_node_axis(x->to, a);
    }
    if (sums) {
        WPK_ASSERT(of->reduction == WPK_REDUCE_SUM);
        stage->axis_count = stage->rank;
        stage->reduction = WPK_REDUCE_NONE;
        int sum = add_terms(x, of, of->rank, wpk_node_real(x->to, of->accumulator, 0));
        stage->expr = wpk_expand_cast(x->to, dtype, sum, x->infinite.may_be[of->expr]);
        stage->strict = false;
    } else {
        stage->expr = expand_value(x, of->expr, dtype);
    }
    stage->accumulator = dtype;
    stage->identity = reduces && !sums ? identity_of(x->to, stage) : -1;
    return stage->expr >= 0 && !x->to->full ? WPK_OK : wpk_program_full_error(x->to);
}

/* A sum is stored in the type in which it is computed, an output's in the output's type. */
static void set_types(struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        struct wpk_tensor *tensor = &program->tensors[stage->output];
        if (stage->reduction != WPK_REDUCE_NONE && tensor->role == WPK_ROLE_INTERMEDIATE) {
            tensor->dtype = stage->accumulator;
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        struct wpk_tensor *tensor = &program->tensors[t];
        bool inside = tensor->role == WPK_ROLE_INTERMEDIATE || tensor->role == WPK_ROLE_LITERAL;
        tensor->dtype = tensor->dtype == WPK_BOOL && !inside ? WPK_U8 : tensor->dtype;
    }
}

wpk_err wpk_program_expand(const struct wpk_program *program, const bool *sums,
                           struct wpk_program *out)
{
    struct wpk_program expanded;
    struct expansion x = {.from = program, .to = &expanded};
    wpk_err err = wpk_program_copy(program, &expanded);
    if (err != WPK_OK) {
        return err;
    }
    expanded.expanded = true;
    expanded.node_count = 0;
    set_types(&expanded);
    wpk_infinite_find(program, &x.infinite);
    x.done = malloc(((size_t)program->node_count + 1) * sizeof(*x.done));
    err = x.done == NULL ? WPK_ENOMEM : WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        err = expand_stage(&x, s, sums[s]);
    }
    free(x.done);
    if (err != WPK_OK) {
        wpk_program_fini(&expanded);
        return err;
    }
    *out = expanded;
    return WPK_OK;
}

bool wpk_program_is_strict(const struct wpk_program *program)
{
    bool strict = false;
    for (int i = 0; i < program->node_count; i++) {
        strict = strict || program->nodes[i].strict;
    }
    for (int s = 0; s < program->stage_count; s++) {
        strict = strict || program->stages[s].strict;
    }
    return strict;
}
