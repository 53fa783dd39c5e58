/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/canonical/canonical.h"

#include "ir/node.h"

#include <stdlib.h>

#define TERMS_MAX 32 /* longer sums of what are no axes stay as they were written */

struct sum {
    int64_t axis[WPK_AXES_MAX]; /* coefficients */
    int64_t constant;
    struct {
        int node;
        int64_t coefficient;
    } term[TERMS_MAX];
    int term_count;
};

struct normalizing {
    const struct wpk_program *from;
    struct wpk_program *to;
    const struct wpk_stage *stage; /* of `to` */
    int *done; /* [from->node_count] id in `to` of a node of this stage, -2: not yet */
};

static int normal(const struct normalizing *n, int node);

/* Add `factor` times the normal node to `sum`; false when a coefficient overflows. */
static bool read_sum(const struct wpk_program *program, int node, int64_t factor, struct sum *sum)
{
    const struct wpk_node *at = &program->nodes[node];
    int64_t product;
    if (at->kind == WPK_NODE_LITERAL) {
        return !__builtin_mul_overflow(factor, at->integer, &product) &&
               !__builtin_add_overflow(sum->constant, product, &sum->constant);
    }
    if (at->kind == WPK_NODE_AXIS) {
        return !__builtin_add_overflow(sum->axis[at->axis], factor, &sum->axis[at->axis]);
    }
    if (at->kind == WPK_NODE_BINARY && at->op == WPK_BINARY_ADD) {
        return read_sum(program, at->arg[0], factor, sum) &&
               read_sum(program, at->arg[1], factor, sum);
    }
    if (at->kind == WPK_NODE_BINARY && at->op == WPK_BINARY_MUL &&
        wpk_node_is_literal(program, at->arg[0])) {
        return !__builtin_mul_overflow(factor, program->nodes[at->arg[0]].integer, &product) &&
               read_sum(program, at->arg[1], product, sum);
    }
    if (sum->term_count == TERMS_MAX) {
        return false;
    }
    sum->term[sum->term_count].node = node;
    sum->term[sum->term_count++].coefficient = factor;
    return true;
}

/* sum + coefficient * node, where a sum of -1 is empty */
static int add_term(struct wpk_program *program, int sum, int64_t coefficient, int node)
{
    if (coefficient == 0) {
        return sum;
    }
    int scaled = coefficient == 1 ? node
                                  : wpk_node_binary(program, WPK_BINARY_MUL,
                                                    wpk_node_int(program, coefficient), node);
    return sum == -1 ? scaled : wpk_node_binary(program, WPK_BINARY_ADD, sum, scaled);
}

static int build_sum(struct wpk_program *program, const struct sum *sum)
{
    int node = -1;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        if (sum->axis[a] != 0) {
            node = add_term(program, node, sum->axis[a], wpk_node_axis(program, a));
        }
    }
    for (int i = 0; i < sum->term_count; i++) {
        node = add_term(program, node, sum->term[i].coefficient, sum->term[i].node);
    }
    if (node == -1 || sum->constant != 0) {
        int constant = wpk_node_int(program, sum->constant);
        node = node == -1 ? constant : wpk_node_binary(program, WPK_BINARY_ADD, node, constant);
    }
    return node;
}

static bool is_constant(const struct sum *sum)
{
    bool constant = sum->term_count == 0;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        constant = constant && sum->axis[a] == 0;
    }
    return constant;
}

/* Take the coefficient out of a sum of one term. */
static int64_t take_coefficient(struct sum *sum)
{
    int64_t *only = NULL;
    int count = sum->constant != 0 ? 1 : 0;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        if (sum->axis[a] != 0) {
            only = &sum->axis[a];
            count++;
        }
    }
    for (int i = 0; i < sum->term_count; i++) {
        only = &sum->term[i].coefficient;
        count++;
    }
    if (count != 1 || only == NULL) {
        return 1;
    }
    int64_t coefficient = *only;
    *only = 1;
    return coefficient;
}

/* Both operands are normal. -2: a coefficient overflows */
static int multiply(struct wpk_program *program, int a, int b)
{
    struct sum x = {0}, y = {0}, product = {0};
    if (!read_sum(program, a, 1, &x) || !read_sum(program, b, 1, &y)) {
        return -2;
    }
    if (is_constant(&x) || is_constant(&y)) {
        int64_t factor = is_constant(&x) ? x.constant : y.constant;
        return read_sum(program, is_constant(&x) ? b : a, factor, &product)
                   ? build_sum(program, &product)
                   : -2;
    }
    int64_t of_x = take_coefficient(&x), of_y = take_coefficient(&y);
    product.term_count = 1;
    if (__builtin_mul_overflow(of_x, of_y, &product.term[0].coefficient)) {
        return -2;
    }
    product.term[0].node =
        wpk_node_binary(program, WPK_BINARY_MUL, build_sum(program, &x), build_sum(program, &y));
    return product.term[0].node < 0 ? -1 : build_sum(program, &product);
}

static int normal_arithmetic(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    struct sum sum = {0};
    int node = -2;
    if (op == WPK_BINARY_MUL) {
        node = multiply(program, a, b);
    } else if (read_sum(program, a, 1, &sum) &&
               read_sum(program, b, op == WPK_BINARY_SUB ? -1 : 1, &sum)) {
        node = build_sum(program, &sum);
    }
    return node == -2 ? wpk_node_binary(program, op, a, b) : node;
}

static int normal_load(const struct normalizing *n, const struct wpk_node *load)
{
    int index[WPK_RANK_MAX];
    for (int d = 0; d < n->from->tensors[load->tensor].rank; d++) {
        index[d] = normal(n, load->index[d]);
        if (index[d] < 0) {
            return -1;
        }
    }
    int outside = load->outside < 0 ? -1 : normal(n, load->outside);
    int id = wpk_node_load(n->to, load->tensor, index, outside);
    if (id >= 0 && outside >= 0 && !wpk_load_may_leave(n->to, n->stage, id)) {
        n->to->nodes[id].outside = -1;
    }
    return id;
}

static int normal_inner(const struct normalizing *n, const struct wpk_node *old)
{
    int arg[3] = {-1, -1, -1};
    for (int i = 0; i < 3 && old->arg[i] >= 0; i++) {
        arg[i] = normal(n, old->arg[i]);
        if (arg[i] < 0) {
            return -1;
        }
    }
    enum wpk_binary op = (enum wpk_binary)old->op;
    bool is_arithmetic = old->kind == WPK_NODE_BINARY && old->dtype == WPK_I64 &&
                         (op == WPK_BINARY_ADD || op == WPK_BINARY_SUB || op == WPK_BINARY_MUL);
    return is_arithmetic ? normal_arithmetic(n->to, op, arg[0], arg[1])
                         : wpk_node_remake(n->to, old, arg);
}

static int normal(const struct normalizing *n, int node)
{
    const struct wpk_node *old = &n->from->nodes[node];
    if (n->done[node] == -2) {
        bool leaf = old->kind == WPK_NODE_LITERAL || old->kind == WPK_NODE_AXIS;
        n->done[node] = leaf                         ? wpk_node_append(n->to, old)
                        : old->kind == WPK_NODE_LOAD ? normal_load(n, old)
                                                     : normal_inner(n, old);
    }
    return n->done[node];
}

wpk_err wpk_program_normal(const struct wpk_program *program, struct wpk_program *out)
{
    size_t size = (size_t)program->node_count * sizeof(int);
    struct normalizing n = {.from = program, .to = out, .done = malloc(size)};
    wpk_err err = n.done == NULL ? WPK_ENOMEM : wpk_program_copy(program, out);
    if (err != WPK_OK) {
        free(n.done);
        return err;
    }
    out->node_count = 0;
    for (int s = 0; s < program->stage_count; s++) {
        for (int i = 0; i < program->node_count; i++) {
            n.done[i] = -2;
        }
        n.stage = &out->stages[s];
        out->stages[s].expr = normal(&n, program->stages[s].expr);
    }
    free(n.done);
    if (out->full) {
        err = wpk_program_full_error(out);
        wpk_program_fini(out);
    }
    return err;
}
