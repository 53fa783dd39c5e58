/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that came from different spellings of one formula, such as a normalization in one node
 * or in nine, become one program:
 *
 *   - stages that cost little more than their loads are put into all their readers, and those of
 *     a row into the stage that reads them for each element: what is the same for all elements is
 *     computed once by any compiler
 *   - dimensions of intermediates that are only read at 0 are dropped
 *   - pow(x, 2), x / 8 and (a / b) * c are x * x, x * 0.125 and (a * c) / b */
#include "ir/derive/derive.h"
#include "ir/derive/rewrite.h"
#include "ir/node.h"

#include <math.h>

#define SIZE_MAX_INLINED 12 /* nodes without indices: a difference from a mean has up to seven */

/* ---- stages that are put into their readers */

struct measure {
    int size;
    bool is_heavy;
};

static void measure_node(const struct wpk_program *program, int node, void *user)
{
    const struct wpk_node *n = &program->nodes[node];
    struct measure *measure = user;
    bool is_light = n->kind != WPK_NODE_UNARY || n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_NOT ||
                    n->op == WPK_UNARY_ABS || n->op == WPK_UNARY_SQRT || n->op == WPK_UNARY_RSQRT;

    measure->size++;
    measure->is_heavy =
        measure->is_heavy || !is_light || (n->kind == WPK_NODE_BINARY && n->op == WPK_BINARY_POW);
}

/* True if the load has each axis of the stage as an index: it reads an element for each point. */
static bool reads_each_point(const struct wpk_program *program, const struct wpk_stage *stage,
                             const struct wpk_node *load)
{
    for (int a = 0; a < stage->axis_count; a++) {
        bool found = stage->axes[a].extent == 1;
        for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
            found = found || wpk_index_axis(program, load->index[d]) == a;
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* A reduction that uses an element more than once, as products and windows do, computes nothing
 * else for each use. */
static bool may_take(const struct wpk_program *program, const struct wpk_stage *reader,
                     const int *loads, int count)
{
    if (reader->reduction == WPK_REDUCE_NONE) {
        return true;
    }
    for (int i = 0; i < count; i++) {
        if (reads_each_point(program, reader, &program->nodes[loads[i]])) {
            return true;
        }
    }
    return false;
}

/* True if the load reads as many elements as there are points, or the same one along the innermost
 * axis, so that a loop computes it before. */
static bool computes_once(const struct wpk_program *program, const struct wpk_stage *reader,
                          const struct wpk_node *load, int64_t element_count)
{
    struct wpk_affine affine;
    int innermost = reader->axis_count - 1;

    if ((double)element_count == wpk_stage_points(reader)) {
        return true;
    }
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (!wpk_index_affine(program, load->index[d], &affine) ||
            affine.coefficient[innermost] != 0) {
            return false;
        }
    }
    return true;
}

/* True if the stage may be put into all that read it. */
static bool is_inlined(const struct wpk_program *program, const struct wpk_stage *stage)
{
    struct measure measure = {.size = 0};
    int64_t own = wpk_tensor_elements(&program->tensors[stage->output]);
    int reads = 0;
    bool once = true;

    if (program->tensors[stage->output].role != WPK_ROLE_INTERMEDIATE ||
        stage->reduction != WPK_REDUCE_NONE) {
        return false;
    }
    wpk_node_walk(program, stage->expr, false, measure_node, &measure);
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *reader = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, reader, loads, WPK_LOADS_MAX);
        bool takes = may_take(program, reader, loads, count);
        for (int i = 0; i < count; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            if (load->tensor != stage->output) {
                continue;
            }
            if (load->outside >= 0 || !takes) {
                return false;
            }
            once = once && computes_once(program, reader, load, own);
            reads++;
        }
    }
    return (reads == 1 && once) ||
           (reads > 0 && measure.size <= SIZE_MAX_INLINED && !measure.is_heavy);
}

static int put(struct wpk_program *program, const struct wpk_node *load, const int *index,
               void *user)
{
    const int *expr = user;
    int map[WPK_AXES_MAX] = {0};

    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        map[d] = index[d];
    }
    return wpk_rewrite_expr(program, *expr, map, -1, NULL, NULL);
}

static bool inline_one(struct wpk_program *program, wpk_err *err)
{
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        if (is_inlined(program, stage)) {
            int expr = stage->expr;
            *err = wpk_rewrite_all(program, s, stage->output, put, &expr);
            if (*err == WPK_OK) {
                *err = wpk_program_tidy(program);
            }
            return true;
        }
    }
    return false;
}

/* ---- dimensions that are only read at 0 */

struct dropping {
    int tensor;
    int dim;
    int narrow; /* the tensor without it */
};

static bool is_droppable(const struct wpk_program *program, const struct dropping *at)
{
    const struct wpk_tensor *tensor = &program->tensors[at->tensor];

    if (tensor->extent[at->dim] != 1) {
        return false;
    }
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        if (load.node->tensor == at->tensor &&
            (load.node->outside >= 0 || !wpk_node_is_literal(program, load.node->index[at->dim]))) {
            return false;
        }
    }
    return true;
}

static int drop_index(struct wpk_program *program, const struct wpk_node *load WPK_UNUSED,
                      const int *index, void *user)
{
    const struct dropping *at = user;
    int kept[WPK_RANK_MAX] = {0};

    for (int d = 0; d < program->tensors[at->narrow].rank; d++) {
        kept[d] = index[d < at->dim ? d : d + 1];
    }
    return wpk_node_load(program, at->narrow, kept, -1);
}

/* Let the stage that writes the tensor write one without the dimension. */
static wpk_err drop(struct wpk_program *program, struct dropping *at)
{
    const struct wpk_tensor *tensor = &program->tensors[at->tensor];
    struct wpk_stage *stage = &program->stages[wpk_program_writer(program, at->tensor)];
    int64_t extent[WPK_RANK_MAX] = {0};
    int map[WPK_AXES_MAX] = {0};
    char name[WPK_NAME_MAX];

    for (int d = 0; d + 1 < tensor->rank; d++) {
        extent[d] = tensor->extent[d < at->dim ? d : d + 1];
    }
    wpk_program_free_name(program, tensor->name, name);
    at->narrow = wpk_program_add_tensor(program, name, WPK_ROLE_INTERMEDIATE, tensor->dtype,
                                        tensor->rank - 1, extent);
    if (at->narrow < 0) {
        return wpk_program_full_error(program);
    }
    for (int a = 0; a < stage->axis_count; a++) {
        map[a] = a == at->dim ? wpk_node_int(program, 0)
                              : wpk_node_axis(program, a < at->dim ? a : a - 1);
    }
    stage->expr = wpk_rewrite_expr(program, stage->expr, map, -1, NULL, NULL);
    stage->output = at->narrow;
    stage->rank--;
    stage->axis_count--;
    for (int a = at->dim; a < stage->axis_count; a++) {
        stage->axes[a] = stage->axes[a + 1];
    }
    wpk_err err = stage->expr >= 0 ? wpk_rewrite_all(program, -1, at->tensor, drop_index, at)
                                   : wpk_program_full_error(program);
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}

static bool drop_one(struct wpk_program *program, wpk_err *err)
{
    for (int t = 0; t < program->tensor_count; t++) {
        if (program->tensors[t].role != WPK_ROLE_INTERMEDIATE) {
            continue;
        }
        for (int d = 0; d < program->tensors[t].rank; d++) {
            struct dropping at = {.tensor = t, .dim = d};
            if (is_droppable(program, &at)) {
                *err = drop(program, &at);
                return true;
            }
        }
    }
    return false;
}

/* ---- arithmetic */

static bool is_quotient(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];

    return n->kind == WPK_NODE_BINARY && n->op == WPK_BINARY_DIV && wpk_dtype_is_float(n->dtype);
}

/* Literals come last, and two of them are one: (x * 2) * 4 = x * 8 */
static int multiply(struct wpk_program *program, int a, int b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    if (wpk_node_is_literal(program, a)) {
        return wpk_node_is_literal(program, b) ? wpk_node_binary(program, WPK_BINARY_MUL, a, b)
                                               : multiply(program, b, a);
    }
    const struct wpk_node left = program->nodes[a];
    const struct wpk_node right = program->nodes[b];
    if (right.kind == WPK_NODE_LITERAL && left.kind == WPK_NODE_BINARY &&
        left.op == WPK_BINARY_MUL && left.dtype == right.dtype &&
        wpk_node_is_literal(program, left.arg[1])) {
        double both = program->nodes[left.arg[1]].value * right.value;
        return wpk_node_binary(
            program, WPK_BINARY_MUL, left.arg[0],
            wpk_node_real(program, right.dtype, wpk_dtype_round(right.dtype, both)));
    }
    return wpk_node_binary(program, WPK_BINARY_MUL, a, b);
}

static int divide(struct wpk_program *program, int a, int b);

/* (a / b) * c = (a * c) / b */
static int product(struct wpk_program *program, int a, int b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    if (!is_quotient(program, a) && is_quotient(program, b)) {
        return product(program, b, a);
    }
    if (is_quotient(program, a)) {
        const struct wpk_node quotient = program->nodes[a];
        return divide(program, product(program, quotient.arg[0], b), quotient.arg[1]);
    }
    return multiply(program, a, b);
}

/* a / 8 = a * 0.125; (a / b) / c = a / (b * c) */
static int divide(struct wpk_program *program, int a, int b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    const struct wpk_node divisor = program->nodes[b];
    const struct wpk_node dividend = program->nodes[a];
    double inverse = divisor.kind == WPK_NODE_LITERAL && wpk_dtype_is_float(divisor.dtype)
                         ? wpk_dtype_round(divisor.dtype, 1 / divisor.value)
                         : 0;
    if (isnormal(inverse)) {
        return product(program, a, wpk_node_real(program, divisor.dtype, inverse));
    }
    if (is_quotient(program, a) && dividend.dtype == divisor.dtype) {
        return divide(program, dividend.arg[0], multiply(program, dividend.arg[1], b));
    }
    return wpk_node_binary(program, WPK_BINARY_DIV, a, b);
}

static int power(struct wpk_program *program, int a, int b)
{
    const struct wpk_node exponent = b >= 0 ? program->nodes[b] : (struct wpk_node){.value = 0};

    if (a < 0 || b < 0 || exponent.kind != WPK_NODE_LITERAL) {
        return wpk_node_binary(program, WPK_BINARY_POW, a, b);
    }
    if (exponent.value == 0.5) { /* NOLINT: exact */
        return wpk_node_unary(program, WPK_UNARY_SQRT, a);
    }
    if (exponent.value == 2) {
        return product(program, a, a);
    }
    return exponent.value == 3 ? product(program, product(program, a, a), a)
                               : wpk_node_binary(program, WPK_BINARY_POW, a, b);
}

static int respell(struct wpk_program *program, int node)
{
    struct wpk_node old = program->nodes[node]; /* the array may move while we build */
    int arg[3] = {-1, -1, -1};
    bool is_real = wpk_dtype_is_float(old.dtype);

    if (old.kind == WPK_NODE_LITERAL && is_real) {
        return wpk_node_real(program, old.dtype, wpk_dtype_round(old.dtype, old.value));
    }
    for (int i = 0; i < 3 && old.arg[i] >= 0; i++) {
        arg[i] = respell(program, old.arg[i]);
        if (arg[i] < 0) {
            return -1;
        }
    }
    if (old.arg[0] < 0) {
        return node;
    }
    bool is_binary = old.kind == WPK_NODE_BINARY && is_real;
    return is_binary && old.op == WPK_BINARY_MUL   ? product(program, arg[0], arg[1])
           : is_binary && old.op == WPK_BINARY_DIV ? divide(program, arg[0], arg[1])
           : is_binary && old.op == WPK_BINARY_POW ? power(program, arg[0], arg[1])
                                                   : wpk_node_remake(program, &old, arg);
}

static wpk_err respell_all(struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        int expr = respell(program, program->stages[s].expr);
        if (expr < 0) {
            return wpk_program_full_error(program);
        }
        program->stages[s].expr = expr;
    }
    return wpk_program_tidy(program);
}

wpk_err wpk_derive_spelling(struct wpk_program *program)
{
    wpk_err err = wpk_program_loads_fit(program) ? respell_all(program) : WPK_ENOSPC;

    while (err == WPK_OK && (inline_one(program, &err) || drop_one(program, &err))) {
    }
    err = err == WPK_OK ? respell_all(program) : err;
    return err == WPK_OK ? wpk_derive_reading_order(program) : err;
}
