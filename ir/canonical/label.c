/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/canonical/label.h"

#include <stdlib.h>
#include <string.h>

/* Kinds of hashed objects, so that objects of different kinds with equal content hash
 * differently. */
enum tag {
    TAG_LITERAL = 1,
    TAG_AXIS,
    TAG_LOAD,
    TAG_UNARY,
    TAG_BINARY,
    TAG_SELECT,
    TAG_CAST,
    TAG_STAGE,
    TAG_TENSOR,
    TAG_OUTPUT_AXIS,
    TAG_REDUCTION_AXIS,
    TAG_PLACE,
    TAG_MARK,
    TAG_APART,
};

/* The finalizer of splitmix64 over the sum: order matters, sums of results form multisets. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    uint64_t z = hash * 0x9e3779b97f4a7c15u + value + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- nodes */

static bool commutes(int op)
{
    static const bool commutative[] = {
#define COMMUTES(name, text, commutative, call) [WPK_BINARY_##name] = commutative,
        WPK_BINARY_LIST(COMMUTES)
#undef COMMUTES
    };
    return commutative[op];
}

static bool same_chain(const struct wpk_node *a, const struct wpk_node *b)
{
    bool associates = commutes(a->op) && a->op != WPK_BINARY_EQ && a->op != WPK_BINARY_NE;
    return b->kind == WPK_NODE_BINARY && associates && a->op == b->op && a->dtype == b->dtype;
}

void wpk_labels_walk_chain(const struct wpk_labels *labels, int node, wpk_chain_visit visit,
                           void *user)
{
    const struct wpk_node *n = &labels->program->nodes[node];
    for (int i = 0; i < 2; i++) {
        int arg = n->arg[i];
        if (same_chain(n, &labels->program->nodes[arg]) && !labels->frozen[arg]) {
            wpk_labels_walk_chain(labels, arg, visit, user);
        } else {
            visit(arg, user);
        }
    }
}

bool wpk_labels_sorts(const struct wpk_labels *labels, int node)
{
    const struct wpk_node *n = &labels->program->nodes[node];
    return n->kind == WPK_NODE_BINARY && commutes(n->op) && !labels->frozen[node];
}

static uint64_t label_load(struct wpk_labels *labels, int s, const struct wpk_node *n)
{
    uint64_t hash = mix(TAG_LOAD, labels->tensor[n->tensor]);
    for (int d = 0; d < labels->program->tensors[n->tensor].rank; d++) {
        hash = mix(hash, wpk_labels_node(labels, s, n->index[d]));
    }
    return mix(hash, n->outside < 0 ? 0 : wpk_labels_node(labels, s, n->outside));
}

struct operand_sum {
    struct wpk_labels *labels;
    int stage;
    uint64_t count;
    uint64_t sum;
};

static void add_operand(int node, void *user)
{
    struct operand_sum *operands = user;
    operands->count++;
    operands->sum += mix(TAG_BINARY, wpk_labels_node(operands->labels, operands->stage, node));
}

static uint64_t label_binary(struct wpk_labels *labels, int s, int node)
{
    const struct wpk_node *n = &labels->program->nodes[node];
    uint64_t hash = mix(mix(TAG_BINARY, (uint64_t)n->op), (uint64_t)n->dtype);
    if (!wpk_labels_sorts(labels, node)) {
        hash = mix(hash, wpk_labels_node(labels, s, n->arg[0]));
        return mix(hash, wpk_labels_node(labels, s, n->arg[1]));
    }
    struct operand_sum operands = {.labels = labels, .stage = s};
    wpk_labels_walk_chain(labels, node, add_operand, &operands);
    return mix(mix(hash, operands.count), operands.sum);
}

static uint64_t label_other(struct wpk_labels *labels, int s, const struct wpk_node *n)
{
    static const uint64_t tags[] = {[WPK_NODE_LITERAL] = TAG_LITERAL,
                                    [WPK_NODE_AXIS] = TAG_AXIS,
                                    [WPK_NODE_UNARY] = TAG_UNARY,
                                    [WPK_NODE_SELECT] = TAG_SELECT,
                                    [WPK_NODE_CAST] = TAG_CAST};
    uint64_t hash = mix(tags[n->kind], (uint64_t)n->dtype);
    int arg_count = n->kind == WPK_NODE_SELECT ? 3 : 1;
    switch (n->kind) {
    case WPK_NODE_LITERAL:
        return mix(hash, wpk_dtype_is_float(n->dtype) ? bits_of(n->value) : (uint64_t)n->integer);
    case WPK_NODE_AXIS:
        return mix(hash, labels->axis[s][n->axis]);
    case WPK_NODE_UNARY:
        hash = mix(hash, (uint64_t)n->op);
        break;
    default:
        break;
    }
    for (int i = 0; i < arg_count; i++) {
        hash = mix(hash, wpk_labels_node(labels, s, n->arg[i]));
    }
    return hash;
}

uint64_t wpk_labels_node(struct wpk_labels *labels, int s, int node)
{
    if (labels->generation[node] == labels->current) {
        return labels->node[node];
    }
    const struct wpk_node *n = &labels->program->nodes[node];
    uint64_t hash;
    if (n->kind == WPK_NODE_LOAD) {
        hash = label_load(labels, s, n);
    } else if (n->kind == WPK_NODE_BINARY) {
        hash = label_binary(labels, s, node);
    } else {
        hash = label_other(labels, s, n);
    }
    labels->node[node] = hash;
    labels->generation[node] = labels->current;
    return hash;
}

/* ---- stages and tensors */

static uint64_t label_type(const struct wpk_labels *labels, const struct wpk_tensor *tensor)
{
    bool is_literal = tensor->role == WPK_ROLE_LITERAL;
    uint64_t hash = mix(mix(TAG_TENSOR, (uint64_t)tensor->role), (uint64_t)tensor->dtype);
    hash = mix(hash, (uint64_t)tensor->rank);
    for (int d = 0; d < tensor->rank; d++) {
        /* A literal's extents belong to its values. */
        hash = mix(hash, labels->family && !is_literal ? 0 : (uint64_t)tensor->extent[d]);
        if (!labels->family) {
            hash = mix(mix(hash, (uint64_t)tensor->pad_before[d]), (uint64_t)tensor->pad_after[d]);
        }
    }
    for (int64_t i = 0; is_literal && i < wpk_tensor_elements(tensor); i++) {
        hash = mix(hash, bits_of(tensor->values[i]));
    }
    return hash;
}

static uint64_t label_stage(struct wpk_labels *labels, int s)
{
    const struct wpk_stage *stage = &labels->program->stages[s];
    uint64_t hash = mix(mix(TAG_STAGE, (uint64_t)stage->reduction), (uint64_t)stage->rank);
    if (stage->reduction != WPK_REDUCE_NONE) {
        hash = mix(hash, (uint64_t)stage->accumulator);
    }
    uint64_t reductions = 0;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        reductions += mix(TAG_REDUCTION_AXIS, labels->axis[s][a]);
    }
    hash = mix(mix(hash, reductions), wpk_labels_node(labels, s, stage->expr));
    return mix(hash, label_type(labels, &labels->program->tensors[stage->output]));
}

/* Label what the stages write, from the labels of leaves and axes; returns the program's label. */
static uint64_t label_program(struct wpk_labels *labels)
{
    const struct wpk_program *program = labels->program;
    uint64_t sum = 0;
    labels->current++;
    for (int s = 0; s < program->stage_count; s++) {
        if (labels->live[s]) {
            int output = program->stages[s].output;
            labels->tensor[output] = label_stage(labels, s);
            bool is_output = program->tensors[output].role == WPK_ROLE_OUTPUT;
            sum += is_output ? mix(TAG_STAGE, labels->tensor[output]) : 0;
        }
    }
    return sum;
}

static bool is_argument(const struct wpk_labels *labels, int t)
{
    return labels->used[t] && wpk_tensor_is_given(&labels->program->tensors[t]);
}

/* ---- telling arguments and reduction axes apart */

/* How many labels differ, over arguments and over the reduction axes of each stage. */
static int count_distinct(const struct wpk_labels *labels)
{
    const struct wpk_program *program = labels->program;
    int distinct = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        bool seen = !is_argument(labels, t);
        for (int o = 0; o < t && !seen; o++) {
            seen = is_argument(labels, o) && labels->tensor[o] == labels->tensor[t];
        }
        distinct += seen ? 0 : 1;
    }
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        for (int a = stage->rank; labels->live[s] && a < stage->axis_count; a++) {
            bool seen = false;
            for (int o = stage->rank; o < a && !seen; o++) {
                seen = labels->axis[s][o] == labels->axis[s][a];
            }
            distinct += seen ? 0 : 1;
        }
    }
    return distinct;
}

static uint64_t marked_program(struct wpk_labels *labels, int t)
{
    uint64_t own = labels->tensor[t];
    labels->tensor[t] = mix(TAG_MARK, own);
    uint64_t hash = label_program(labels);
    labels->tensor[t] = own;
    return hash;
}

/* New labels for arguments and reduction axes, which keep what the own ones told apart. */
struct round {
    uint64_t tensor[WPK_TENSORS_MAX];
    uint64_t axis[WPK_STAGES_MAX][WPK_AXES_MAX];
};

static void take_round(struct wpk_labels *labels, const struct round *round)
{
    const struct wpk_program *program = labels->program;
    for (int t = 0; t < program->tensor_count; t++) {
        if (is_argument(labels, t)) {
            labels->tensor[t] = mix(labels->tensor[t], round->tensor[t]);
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        for (int a = stage->rank; labels->live[s] && a < stage->axis_count; a++) {
            labels->axis[s][a] = mix(labels->axis[s][a], round->axis[s][a]);
        }
    }
}

/* Each by the whole with just this one marked: sees that A is read twice in A*A + B*B + C*D + C*D,
 * which no round of contexts does, for the time of one labelling per argument. */
static void mark_round(struct wpk_labels *labels)
{
    const struct wpk_program *program = labels->program;
    struct round round;
    for (int t = 0; t < program->tensor_count; t++) {
        round.tensor[t] = is_argument(labels, t) ? marked_program(labels, t) : 0;
    }
    (void)label_program(labels);
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        for (int a = stage->rank; labels->live[s] && a < stage->axis_count; a++) {
            uint64_t own = labels->axis[s][a];
            labels->axis[s][a] = mix(TAG_MARK, own);
            labels->current++;
            uint64_t hash = label_stage(labels, s);
            labels->axis[s][a] = own;
            round.axis[s][a] = hash;
        }
    }
    take_round(labels, &round);
}

/* ---- contexts: where in the program a node stands */

/* The part of a node's context that its operand at `place` gets. A context is the sum, over all
 * paths from the root, of the product of these: it does not matter which nodes are shared. */
static uint64_t part(uint64_t label, uint64_t place)
{
    return mix(mix(TAG_PLACE, label), place) | 1;
}

struct descent {
    struct wpk_labels *labels;
    uint64_t label, context; /* of the chain */
};

static void enter_operand(int node, void *user)
{
    const struct descent *descent = user;
    struct wpk_labels *labels = descent->labels;
    labels->context[node] += descent->context * part(descent->label, labels->node[node]);
}

static void enter_operands(struct wpk_labels *labels, int node)
{
    const struct wpk_node *n = &labels->program->nodes[node];
    struct descent descent = {labels, labels->node[node], labels->context[node]};
    int rank = n->kind == WPK_NODE_LOAD ? labels->program->tensors[n->tensor].rank : 0;
    if (wpk_labels_sorts(labels, node)) {
        wpk_labels_walk_chain(labels, node, enter_operand, &descent);
        return;
    }
    for (int i = 0; i < 3 && n->arg[i] >= 0; i++) {
        labels->context[n->arg[i]] += descent.context * part(descent.label, (uint64_t)i);
    }
    for (int d = 0; d < rank; d++) {
        labels->context[n->index[d]] += descent.context * part(descent.label, (uint64_t)d);
    }
}

/* Contexts are of the stage alone, so that equal stages stay equal; what is read in it stands where
 * its output does. Operands have smaller ids than what they are of. */
static void descend_stage(struct wpk_labels *labels, int s, struct round *round)
{
    const struct wpk_program *program = labels->program;
    const struct wpk_stage *stage = &program->stages[s];
    uint64_t own = mix(TAG_STAGE, labels->tensor[stage->output]);
    uint64_t readers = round->tensor[stage->output];
    bool is_output = program->tensors[stage->output].role == WPK_ROLE_OUTPUT;
    uint64_t above = (readers + (is_output ? own : 0)) * (own | 1);
    int end = s == 0 ? 0 : program->stages[s - 1].expr + 1;
    labels->context[stage->expr] = 1;
    for (int node = stage->expr; node >= end; node--) {
        const struct wpk_node *n = &program->nodes[node];
        uint64_t context = labels->context[node];
        if (context != 0 && n->kind == WPK_NODE_AXIS) {
            round->axis[s][n->axis] += context;
        } else if (context != 0) {
            enter_operands(labels, node);
        }
        if (context != 0 && n->kind == WPK_NODE_LOAD) {
            round->tensor[n->tensor] += above * context * part(labels->node[node], TAG_LOAD);
        }
    }
}

/* Until a round tells nothing more apart: at most as many rounds as there are things. */
static void refine(struct wpk_labels *labels)
{
    int before;
    int after = count_distinct(labels);
    do {
        before = after;
        /* Each by the sum of the contexts that it is read in. */
        struct round round = {0};
        memset(labels->context, 0, (size_t)labels->program->node_count * sizeof *labels->context);
        (void)label_program(labels);
        for (int s = labels->program->stage_count - 1; s >= 0; s--) {
            if (labels->live[s]) {
                descend_stage(labels, s, &round);
            }
        }
        take_round(labels, &round);
        after = count_distinct(labels);
    } while (after > before);
}

/* An index of the smallest label that occurs twice, or -1 when all differ; the smallest, so that
 * the order in which the program is written does not matter. If `exact` is given, the index with
 * the least `exact` among the equal ones. */
static int find_equal(const uint64_t *label, const bool *counts, const uint64_t *exact, int count)
{
    int found = -1;
    for (int i = 0; i < count; i++) {
        for (int o = 0; o < i && counts[i]; o++) {
            if (counts[o] && label[o] == label[i] && (found < 0 || label[o] < label[found])) {
                found = o;
            }
        }
    }
    for (int i = 0; found >= 0 && exact != NULL && i < count; i++) {
        found = counts[i] && label[i] == label[found] && exact[i] < exact[found] ? i : found;
    }
    return found;
}

/* Set one of several equal arguments apart; false when all differ. */
static bool set_argument_apart(struct wpk_labels *labels)
{
    bool counts[WPK_TENSORS_MAX];
    int count = labels->program->tensor_count;
    for (int t = 0; t < count; t++) {
        counts[t] = is_argument(labels, t);
    }
    int found = find_equal(labels->tensor, counts,
                           labels->exact == NULL ? NULL : labels->exact->tensor, count);
    if (found >= 0) {
        labels->tensor[found] = mix(TAG_APART, labels->tensor[found]);
    }
    return found >= 0;
}

/* One in each stage that has equal axes, so that equal stages stay equal. */
static bool set_axes_apart(struct wpk_labels *labels)
{
    bool any = false;
    for (int s = 0; s < labels->program->stage_count; s++) {
        const struct wpk_stage *stage = &labels->program->stages[s];
        bool counts[WPK_AXES_MAX];
        for (int a = 0; a < stage->axis_count; a++) {
            counts[a] = labels->live[s] && a >= stage->rank;
        }
        int found =
            find_equal(labels->axis[s], counts,
                       labels->exact == NULL ? NULL : labels->exact->axis[s], stage->axis_count);
        if (found >= 0) {
            labels->axis[s][found] = mix(TAG_APART, labels->axis[s][found]);
            any = true;
        }
    }
    return any;
}

/* ---- start */

static void mark_live(struct wpk_labels *labels, int *loads)
{
    const struct wpk_program *program = labels->program;
    for (int t = 0; t < program->tensor_count; t++) {
        labels->used[t] = program->tensors[t].role == WPK_ROLE_OUTPUT;
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        labels->live[s] = labels->used[program->stages[s].output];
        int count = !labels->live[s]
                        ? 0
                        : wpk_stage_loads(program, &program->stages[s], loads, program->node_count);
        for (int i = 0; i < count; i++) {
            labels->used[program->nodes[loads[i]].tensor] = true;
        }
    }
}

static void label_leaves(struct wpk_labels *labels)
{
    const struct wpk_program *program = labels->program;
    for (int t = 0; t < program->tensor_count; t++) {
        labels->tensor[t] = label_type(labels, &program->tensors[t]);
    }
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        for (int a = 0; a < stage->axis_count; a++) {
            uint64_t extent = labels->family ? 0 : (uint64_t)stage->axes[a].extent;
            labels->axis[s][a] = a < stage->rank ? mix(mix(TAG_OUTPUT_AXIS, (uint64_t)a), extent)
                                                 : mix(TAG_REDUCTION_AXIS, extent);
        }
    }
}

wpk_err wpk_labels_init(struct wpk_labels *labels, const struct wpk_program *program,
                        const struct wpk_labels *exact)
{
    *labels = (struct wpk_labels){.program = program, .family = exact != NULL, .exact = exact};
    size_t count = (size_t)program->node_count + 1;
    labels->node = calloc(count, sizeof *labels->node);
    labels->context = calloc(count, sizeof *labels->context);
    labels->generation = calloc(count, sizeof *labels->generation);
    labels->frozen = calloc(count, sizeof *labels->frozen);
    int *loads = calloc(count, sizeof *loads);
    if (labels->node == NULL || labels->context == NULL || labels->generation == NULL ||
        labels->frozen == NULL || loads == NULL) {
        free(loads);
        wpk_labels_fini(labels);
        return WPK_ENOMEM;
    }
    mark_live(labels, loads);
    free(loads);
    /* Chains of literals alone: what could be folded in them was. */
    bool *frozen = labels->frozen;
    for (int id = 0; id < program->node_count; id++) {
        const struct wpk_node *n = &program->nodes[id];
        frozen[id] = n->kind == WPK_NODE_BINARY;
        for (int i = 0; i < 2 && frozen[id]; i++) {
            const struct wpk_node *arg = &program->nodes[n->arg[i]];
            frozen[id] = arg->kind == WPK_NODE_LITERAL || (same_chain(n, arg) && frozen[n->arg[i]]);
        }
    }
    label_leaves(labels);
    refine(labels);
    mark_round(labels);
    do {
        refine(labels);
    } while (set_argument_apart(labels) || set_axes_apart(labels));
    (void)label_program(labels);
    return WPK_OK;
}

void wpk_labels_fini(struct wpk_labels *labels)
{
    free(labels->node);
    free(labels->context);
    free(labels->generation);
    free(labels->frozen);
    *labels = (struct wpk_labels){0};
}
