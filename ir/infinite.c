/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/infinite.h"

#include "ir/node.h"

#include <math.h>
#include <string.h>

/* ---- backwards: what reaches an exp or a maximum */

/* Mark the tensors whose elements reach this node unscaled. */
static void reach(const struct wpk_program *program, int id, bool *reaches)
{
    const struct wpk_node *node = &program->nodes[id];
    switch (node->kind) {
    case WPK_NODE_LOAD:
        reaches[node->tensor] = true;
        break;
    case WPK_NODE_BINARY:
        if (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_MAX) {
            reach(program, node->arg[0], reaches);
            reach(program, node->arg[1], reaches);
        } else if (node->op == WPK_BINARY_SUB) {
            reach(program, node->arg[0], reaches);
        }
        break;
    case WPK_NODE_SELECT:
        reach(program, node->arg[1], reaches);
        reach(program, node->arg[2], reaches);
        break;
    case WPK_NODE_CAST:
        if (wpk_dtype_is_float(node->dtype)) {
            reach(program, node->arg[0], reaches);
        }
        break;
    default:
        break;
    }
}

static void visit_exp(const struct wpk_program *program, int id, void *user)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_EXP) {
        reach(program, node->arg[0], user);
    }
}

static void find_reaching(const struct wpk_program *program, bool *reaches)
{
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        bool passes = stage->reduction == WPK_REDUCE_NONE || stage->reduction == WPK_REDUCE_MAX ||
                      stage->reduction == WPK_REDUCE_SUM;
        wpk_node_walk(program, stage->expr, false, visit_exp, reaches);
        if ((reaches[stage->output] && passes) || stage->reduction == WPK_REDUCE_MAX) {
            reach(program, stage->expr, reaches);
        }
    }
}

/* ---- forwards: what is computed from it */

struct forwards {
    struct wpk_infinite *found;
    unsigned char tensor[WPK_TENSORS_MAX]; /* by tensor id: what its elements may be */
    bool adds;                             /* the stage being followed adds up its terms */
};

static int of_infinity(double value)
{
    return !isinf(value) ? 0 : value < 0 ? WPK_MAY_BE_MINUS : WPK_MAY_BE_PLUS;
}

static int negated(int may_be)
{
    int rest = may_be & ~(WPK_MAY_BE_INFINITE | WPK_IS_MAXIMUM);
    return rest | ((may_be & WPK_MAY_BE_MINUS) != 0 ? WPK_MAY_BE_PLUS : 0) |
           ((may_be & WPK_MAY_BE_PLUS) != 0 ? WPK_MAY_BE_MINUS : 0);
}

static int of_unary(const struct wpk_node *node, const struct forwards *f)
{
    int arg = f->found->may_be[node->arg[0]] & ~WPK_IS_MAXIMUM;
    int nan = (arg & WPK_MAY_BE_SPECIAL) != 0 ? WPK_MAY_BE_NAN : 0;
    switch (node->op) {
    case WPK_UNARY_NEG:
        return negated(arg);
    case WPK_UNARY_ABS:
        return arg | negated(arg);
    case WPK_UNARY_FLOOR:
    case WPK_UNARY_CEIL:
    case WPK_UNARY_ROUND:
    case WPK_UNARY_TRUNC:
        return arg;
    case WPK_UNARY_EXP:
        return arg & (WPK_MAY_BE_PLUS | WPK_MAY_BE_NAN);
    case WPK_UNARY_SIGMOID:
    case WPK_UNARY_TANH:
    case WPK_UNARY_ERF:
        return arg & WPK_MAY_BE_NAN;
    case WPK_UNARY_ISNAN:
    case WPK_UNARY_ISINF:
        return 0;
    default: /* log, sqrt, rsqrt, sin, cos */
        return arg | nan;
    }
}

/* True if a + b may be infinity minus infinity; the caller negates b for a subtraction. */
static bool may_cancel(int a, int b)
{
    return ((a & WPK_MAY_BE_MINUS) != 0 && (b & WPK_MAY_BE_PLUS) != 0) ||
           ((a & WPK_MAY_BE_PLUS) != 0 && (b & WPK_MAY_BE_MINUS) != 0);
}

static int of_binary(const struct wpk_node *node, struct forwards *f)
{
    int a = f->found->may_be[node->arg[0]], b = f->found->may_be[node->arg[1]];
    int either = (a | b) & ~WPK_IS_MAXIMUM;
    int both = a & b & WPK_IS_MAXIMUM;
    bool infinite = (either & WPK_MAY_BE_INFINITE) != 0;
    switch (node->op) {
    case WPK_BINARY_ADD:
        return either | (may_cancel(a, b) ? WPK_MAY_BE_NAN : 0);
    case WPK_BINARY_SUB: {
        /* what is less than its maximum is subtracted from */
        int difference =
            (a & ~WPK_IS_MAXIMUM) | negated((b & WPK_IS_MAXIMUM) != 0 ? b & ~WPK_MAY_BE_MINUS : b);
        return difference | (may_cancel(a, negated(b)) ? WPK_MAY_BE_NAN : 0);
    }
    case WPK_BINARY_MUL:
    case WPK_BINARY_DIV:
        return either | (infinite ? WPK_MAY_BE_SPECIAL : 0);
    case WPK_BINARY_MAX:
    case WPK_BINARY_MIN:
        f->found->rows = f->found->rows && (either & WPK_MAY_BE_NAN) == 0;
        return (either & ~WPK_MAY_BE_NAN) | both;
    default: /* comparisons, pow, % */
        f->found->rows = f->found->rows && (either & WPK_MAY_BE_NAN) == 0;
        return either & ~WPK_MAY_BE_NAN;
    }
}

/* A term that is NaN already may be added up with fast arithmetic: a sum of products is to stay one
 * of fused multiply-adds. */
static bool is_strict(const struct wpk_node *node, int value, const struct forwards *f)
{
    bool binary = node->kind == WPK_NODE_BINARY;
    bool term = f->adds && binary && (node->op == WPK_BINARY_MUL || node->op == WPK_BINARY_ADD);
    bool unary = node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_CAST;
    int either = value;
    either |= binary || unary ? f->found->may_be[node->arg[0]] : 0;
    either |= binary ? f->found->may_be[node->arg[1]] : 0;
    return (either & WPK_MAY_BE_INFINITE) != 0 || ((either & WPK_MAY_BE_NAN) != 0 && !term);
}

static void visit(const struct wpk_program *program, int id, void *user)
{
    struct forwards *f = user;
    const struct wpk_node *node = &program->nodes[id];
    int may_be = 0;
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        may_be = wpk_dtype_is_float(node->dtype) ? of_infinity(node->value) : 0;
        break;
    case WPK_NODE_LOAD:
        may_be = f->tensor[node->tensor] |
                 (node->outside < 0 ? 0 : of_infinity(program->nodes[node->outside].value));
        break;
    case WPK_NODE_UNARY:
        may_be = of_unary(node, f);
        break;
    case WPK_NODE_BINARY:
        may_be = of_binary(node, f);
        break;
    case WPK_NODE_SELECT:
        may_be =
            (f->found->may_be[node->arg[1]] | f->found->may_be[node->arg[2]]) & ~WPK_IS_MAXIMUM;
        break;
    case WPK_NODE_CAST:
        may_be = f->found->may_be[node->arg[0]];
        break;
    case WPK_NODE_AXIS:
        break;
    }
    f->found->strict[id] = f->found->strict[id] || is_strict(node, may_be, f);
    f->found->any = f->found->any || f->found->strict[id];
    if (!wpk_dtype_is_float(node->dtype)) {
        f->found->rows = f->found->rows && (may_be & WPK_MAY_BE_NAN) == 0;
        may_be = 0;
    }
    f->found->may_be[id] = (unsigned char)may_be;
}

static void follow(const struct wpk_program *program, int s, struct forwards *f)
{
    const struct wpk_stage *stage = &program->stages[s];
    f->adds = stage->reduction == WPK_REDUCE_SUM;
    wpk_node_walk(program, stage->expr, false, visit, f);
    int may_be = f->found->may_be[stage->expr];
    bool nan = (may_be & WPK_MAY_BE_NAN) != 0;
    bool chooses = stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN;
    f->found->rows = f->found->rows && !(chooses && nan);
    bool floating = wpk_dtype_is_float(stage->accumulator) ||
                    wpk_dtype_is_float(program->tensors[stage->output].dtype);
    /* the identity of a maximum or minimum is infinite, even if its terms are not */
    f->found->reduction[s] = stage->reduction != WPK_REDUCE_NONE &&
                             ((may_be & WPK_MAY_BE_INFINITE) != 0 || (chooses && floating));
    if (stage->reduction == WPK_REDUCE_SUM &&
        (may_be & WPK_MAY_BE_INFINITE) == WPK_MAY_BE_INFINITE) {
        may_be |= WPK_MAY_BE_NAN;
    } else if (stage->reduction == WPK_REDUCE_PROD && (may_be & WPK_MAY_BE_INFINITE) != 0) {
        may_be |= WPK_MAY_BE_SPECIAL;
    }
    bool maximum = stage->reduction == WPK_REDUCE_MAX ||
                   (stage->reduction == WPK_REDUCE_NONE && (may_be & WPK_IS_MAXIMUM) != 0);
    may_be = (may_be & ~WPK_IS_MAXIMUM) | (maximum ? WPK_IS_MAXIMUM : 0);
    f->found->tensor[stage->output] = (may_be & WPK_MAY_BE_INFINITE) != 0;
    f->found->any = f->found->any || f->found->reduction[s];
    f->tensor[stage->output] = (unsigned char)may_be;
}

/* ---- backwards: what questions are asked of */

enum {
    ASKED = 1,      /* which of two is larger, or a function */
    ASKED_KIND = 2, /* whether it is infinite or NaN */
};

struct asking {
    struct wpk_infinite *found;
    unsigned char node[WPK_NODES_MAX], tensor[WPK_TENSORS_MAX]; /* what is asked of it */
};

/* A literal of about the largest number of its type, or infinite. */
static bool is_limit(const struct wpk_node *node)
{
    double limit = node->dtype == WPK_F64 ? 0x1p1023 : node->dtype == WPK_F16 ? 0x1p15 : 0x1p127;
    return node->kind == WPK_NODE_LITERAL && wpk_dtype_is_float(node->dtype) &&
           fabs(node->value) >= limit;
}

/* Mark node `id` with the questions `what`, and the operands that pointwise arithmetic computes it
 * from. */
static void ask(const struct wpk_program *program, int id, int what, struct asking *asking)
{
    const struct wpk_node *node = &program->nodes[id];
    if ((asking->node[id] & what) == what || !wpk_dtype_is_float(node->dtype)) {
        return;
    }
    asking->node[id] |= (unsigned char)what;
    switch (node->kind) {
    case WPK_NODE_LOAD:
        asking->tensor[node->tensor] |= (unsigned char)what;
        break;
    case WPK_NODE_SELECT:
        ask(program, node->arg[1], what, asking);
        ask(program, node->arg[2], what, asking);
        break;
    case WPK_NODE_CAST:
        if ((what & ASKED_KIND) != 0) { /* its infinities and NaN are selected apart */
            asking->found->may_be[node->arg[0]] |= WPK_MAY_BE_SPECIAL;
        }
        ask(program, node->arg[0], what, asking);
        break;
    case WPK_NODE_UNARY:
    case WPK_NODE_BINARY:
        asking->found->strict[id] = true;
        ask(program, node->arg[0], what, asking);
        if (node->kind == WPK_NODE_BINARY) {
            ask(program, node->arg[1], what, asking);
        }
        break;
    default:
        break;
    }
}

/* The questions that the node asks of its operands; 0: it asks none. */
static int asks(const struct wpk_program *program, const struct wpk_node *node)
{
    const struct wpk_node *a = &program->nodes[node->arg[0] < 0 ? 0 : node->arg[0]];
    if (node->kind == WPK_NODE_CAST) {
        return wpk_dtype_is_float(node->dtype) ? 0 : ASKED;
    }
    if (node->kind == WPK_NODE_UNARY) {
        bool passes = node->op == WPK_UNARY_NEG || node->op == WPK_UNARY_ABS;
        return wpk_unary_asks((enum wpk_unary)node->op) ? ASKED | ASKED_KIND : passes ? 0 : ASKED;
    }
    if (node->kind != WPK_NODE_BINARY) {
        return 0;
    }
    const struct wpk_node *b = &program->nodes[node->arg[1]];
    switch ((enum wpk_binary)node->op) {
    case WPK_BINARY_EQ:
    case WPK_BINARY_NE:
        return ASKED | ASKED_KIND;
    case WPK_BINARY_MIN:
    case WPK_BINARY_MAX:
        if (a->kind != WPK_NODE_LITERAL && b->kind != WPK_NODE_LITERAL) {
            return ASKED | ASKED_KIND; /* wpk_expand_choice asks which is NaN */
        }
        return is_limit(a) || is_limit(b) ? ASKED | ASKED_KIND : ASKED;
    case WPK_BINARY_LT:
    case WPK_BINARY_LE:
        return is_limit(a) || is_limit(b) ? ASKED | ASKED_KIND : ASKED;
    case WPK_BINARY_POW:
    case WPK_BINARY_MOD:
        return ASKED;
    default:
        return 0;
    }
}

static void visit_question(const struct wpk_program *program, int id, void *user)
{
    struct asking *asking = user;
    const struct wpk_node *node = &program->nodes[id];
    int what = asks(program, node);
    if (what == 0 || !wpk_dtype_is_float(program->nodes[node->arg[0]].dtype)) {
        return;
    }
    asking->found->strict[id] = true;
    ask(program, node->arg[0], what, asking);
    if (node->kind == WPK_NODE_BINARY) {
        ask(program, node->arg[1], what, asking);
    }
}

static void visit_arithmetic(const struct wpk_program *program, int id, void *user)
{
    const struct wpk_node *node = &program->nodes[id];
    struct wpk_infinite *found = user;
    bool computes = node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_BINARY;
    found->strict[id] = found->strict[id] || (computes && wpk_dtype_is_float(node->dtype));
}

/* The special values that must not be drawn for a tensor, because right kernels may differ there.
 */
struct keeping {
    unsigned char tensor[WPK_TENSORS_MAX], stage; /* bits of enum wpk_may_be */
};

static void visit_load(const struct wpk_program *program, int id, void *user)
{
    struct keeping *keeping = user;
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_LOAD) {
        keeping->tensor[node->tensor] |= keeping->stage;
    }
}

static void visit_losing(const struct wpk_program *program, int id, void *user)
{
    struct keeping *keeping = user;
    const struct wpk_node *node = &program->nodes[id];
    bool converts = node->kind == WPK_NODE_CAST && node->dtype != WPK_BOOL &&
                    !wpk_dtype_is_float(node->dtype) &&
                    wpk_dtype_is_float(program->nodes[node->arg[0]].dtype);
    bool sums = node->kind == WPK_NODE_BINARY && wpk_dtype_is_float(node->dtype) &&
                (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB) &&
                !wpk_node_is_literal(program, node->arg[0]) &&
                !wpk_node_is_literal(program, node->arg[1]);
    keeping->stage |= sums ? WPK_MAY_BE_SPECIAL : converts ? WPK_MAY_BE_NAN : 0;
}

static void find_special(const struct wpk_program *program, const struct asking *asking)
{
    struct keeping keeping = {{0}, 0};
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        keeping.stage = keeping.tensor[stage->output];
        keeping.stage |= stage->reduction == WPK_REDUCE_NONE ? 0
                         : stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN
                             ? WPK_MAY_BE_NAN
                             : WPK_MAY_BE_SPECIAL;
        wpk_node_walk(program, stage->expr, false, visit_losing, &keeping);
        wpk_node_walk(program, stage->expr, false, visit_load, &keeping);
    }
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool given = wpk_tensor_is_given(tensor);
        bool asked = asking->tensor[t] != 0 && wpk_dtype_is_float(tensor->dtype);
        int kept = WPK_MAY_BE_SPECIAL & ~keeping.tensor[t];
        asking->found->special[t] =
            (unsigned char)(given && asked && (kept & WPK_MAY_BE_INFINITE) != 0 ? kept : 0);
    }
}

static void find_questions(const struct wpk_program *program, struct wpk_infinite *found)
{
    struct asking asking = {.found = found};
    bool sums = false;
    for (int s = 0; s < program->stage_count; s++) {
        enum wpk_reduction reduction = program->stages[s].reduction;
        sums = sums || reduction == WPK_REDUCE_SUM || reduction == WPK_REDUCE_PROD;
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        bool chooses = stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN;
        int what = asking.tensor[stage->output] | (chooses ? ASKED : 0);
        if (what != 0 && (stage->reduction == WPK_REDUCE_NONE || chooses)) {
            ask(program, stage->expr, what, &asking);
        }
        wpk_node_walk(program, stage->expr, false, visit_question, &asking);
        if (!sums) {
            wpk_node_walk(program, stage->expr, false, visit_arithmetic, found);
        }
    }
    for (int i = 0; i < program->node_count; i++) {
        found->any = found->any || found->strict[i];
    }
    find_special(program, &asking);
}

#define MASK_MIN 8 /* the least product of two numbers that counts as large */

static bool is_number(const struct wpk_program *program, int id, double *value)
{
    const struct wpk_node *node = &program->nodes[id];
    *value = node->value;
    return node->kind == WPK_NODE_LITERAL && wpk_dtype_is_float(node->dtype);
}

/* True for the sum of a value and a number, `*addend`. */
static bool adds_number(const struct wpk_program *program, int id, double *addend)
{
    const struct wpk_node *node = &program->nodes[id];
    return node->kind == WPK_NODE_BINARY &&
           (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB) &&
           (is_number(program, node->arg[0], addend) || is_number(program, node->arg[1], addend));
}

/* Make products of a number and a sum with a number strict where multiplying both is large. */
static void find_masks(const struct wpk_program *program, struct wpk_infinite *found)
{
    for (int i = 0; i < program->node_count; i++) {
        const struct wpk_node *node = &program->nodes[i];
        double addend, factor;
        bool scales = node->kind == WPK_NODE_BINARY &&
                      (node->op == WPK_BINARY_MUL || node->op == WPK_BINARY_DIV);
        for (int a = 0; scales && a < (node->op == WPK_BINARY_MUL ? 2 : 1); a++) {
            if (is_number(program, node->arg[1 - a], &factor) &&
                adds_number(program, node->arg[a], &addend) &&
                fabs(node->op == WPK_BINARY_MUL ? addend * factor : addend / factor) >= MASK_MIN) {
                found->strict[i] = found->strict[node->arg[a]] = true;
            }
        }
    }
}

void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out)
{
    bool reaches[WPK_TENSORS_MAX] = {false};
    struct forwards forwards = {.found = out};
    memset(out, 0, sizeof(*out));
    find_reaching(program, reaches);
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        out->tensor[t] =
            reaches[t] && wpk_dtype_is_float(tensor->dtype) && wpk_tensor_is_given(tensor);
        forwards.tensor[t] = out->tensor[t] ? WPK_MAY_BE_MINUS : 0;
        out->rows = out->rows || out->tensor[t];
    }
    for (int s = 0; s < program->stage_count; s++) {
        follow(program, s, &forwards);
    }
    find_masks(program, out);
    find_questions(program, out);
}
