/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "ir/cost.h"
#include "model/operator/lower.h"
#include "model/operator/shape.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SIZE 32
#define LETTERS 26
#define ROUNDS_MAX 4 /* passes over the graph, as one rule's result may be another one's input */

static const struct wpk_rule rules[] = {
    {"associativity", "MatMul(MatMul(x, y), z)", "MatMul(x, MatMul(y, z))", false},
    {"associativity", "MatMul(x, MatMul(y, z))", "MatMul(MatMul(x, y), z)", false},
    {"distributivity", "Add(MatMul(x, y), MatMul(x, z))", "MatMul(x, Add(y, z))", false},
    {"distributivity", "Sub(MatMul(x, y), MatMul(x, z))", "MatMul(x, Sub(y, z))", false},
    {"distributivity", "Add(MatMul(x, z), MatMul(y, z))", "MatMul(Add(x, y), z)", false},
    {"distributivity", "Sub(MatMul(x, z), MatMul(y, z))", "MatMul(Sub(x, y), z)", false},
    {"distributivity", "Add(Conv(x, y), Conv(x, z))", "Conv(x, Add(y, z))", false},
    {"distributivity", "Add(Conv(x, y, b), Conv(x, z, c))", "Conv(x, Add(y, z), Add(b, c))", false},
    {"distributivity", "Add(Conv(x, z), Conv(y, z))", "Conv(Add(x, y), z)", false},
    {"distributivity", "Add(Mul(x, z), Mul(y, z))", "Mul(Add(x, y), z)", false},
    {"distributivity", "Sub(Mul(x, z), Mul(y, z))", "Mul(Sub(x, y), z)", false},
    {"cancelling", "Neg(Neg(x))", "x", false},
    {"cancelling", "Add(x, Neg(y))", "Sub(x, y)", false},
    {"cancelling", "Sub(x, Neg(y))", "Add(x, y)", false},
    {"cancelling", "Not(Not(x))", "x", false},
    {"cancelling", "Relu(x)", "x", true},
    {"cancelling", "Abs(x)", "x", true},
};

const struct wpk_rule *wpk_rules(int *count)
{
    *count = (int)(sizeof(rules) / sizeof(rules[0]));
    return rules;
}

/* One attempt. */
struct attempt {
    struct wpk_graph *graph;
    const int *uses;
    const struct wpk_rule *rule;
    int bound[LETTERS];            /* value; -1 */
    int nodes[WPK_RULE_NODES_MAX]; /* [node_count] that match `from`, the root first */
    int node_count;
    int first_new; /* nodes of the graph from here on are those of `to` */
};

/* ---- reading expressions */

/* Read an operator's name and its '('. False: `*text` begins with a letter that is a value. */
static bool read_operator(const char **text, char name[NAME_MAX_SIZE])
{
    size_t size = strcspn(*text, "(,)");

    WPK_ASSERT(size > 0 && size < NAME_MAX_SIZE);
    if ((*text)[size] != '(') {
        return false;
    }
    memcpy(name, *text, size);
    name[size] = '\0';
    *text += size + 1;
    return true;
}

/* Pass the ", " before the next operand; false: the ')' after the last one. */
static bool next_operand(const char **text)
{
    bool more = **text == ',';

    *text += more ? 2 : 1;
    return more;
}

static void skip_expression(const char **text)
{
    char name[NAME_MAX_SIZE];

    if (!read_operator(text, name)) {
        (*text)++;
        return;
    }
    do {
        skip_expression(text);
    } while (next_operand(text));
}

/* ---- matching */

static bool match(struct attempt *a, const char **text, int value);

static bool match_operands(struct attempt *a, const char **text, const struct wpk_graph_node *node,
                           bool is_turned)
{
    int i = 0;
    bool fits = true;

    do {
        int input = is_turned ? 1 - i : i;
        if (fits && i < node->input_count && node->inputs[input] >= 0) {
            fits = match(a, text, node->inputs[input]);
        } else {
            fits = false;
            skip_expression(text);
        }
        i++;
    } while (next_operand(text));
    return fits && i == node->input_count;
}

static bool same_attributes(const struct attempt *a, const struct wpk_graph_node *node)
{
    for (int i = 0; i < a->node_count; i++) {
        const struct wpk_graph_node *other = &a->graph->nodes[a->nodes[i]];
        if (strcmp(node->op, other->op) == 0 && !wpk_graph_same_attributes(node, other)) {
            return false;
        }
    }
    return true;
}

/* A vector is a row on one side of a MatMul and a column on the other: no rule is about that. */
static bool has_vector(const struct attempt *a, const struct wpk_graph_node *node)
{
    bool has = false;

    for (int i = 0; strcmp(node->op, "MatMul") == 0 && i < node->input_count; i++) {
        has = has || wpk_graph_input(a->graph, node, i)->rank < 2;
    }
    return has;
}

/* Match the operands of operator `name`, whose text begins at `*text`, with a node's. */
static bool match_node(struct attempt *a, const char *name, const char **text, int index)
{
    const struct wpk_graph_node *node = &a->graph->nodes[index];
    const char *begin = *text;
    struct attempt before = *a;

    if (strcmp(node->op, name) != 0 || node->domain[0] != '\0' ||
        a->node_count == WPK_RULE_NODES_MAX || node->output_count != 1 || has_vector(a, node) ||
        (a->node_count > 0 && node->loop != a->graph->nodes[a->nodes[0]].loop) ||
        !same_attributes(a, node)) {
        return false;
    }
    a->nodes[a->node_count++] = index;
    struct attempt marked = *a;
    if (match_operands(a, text, node, false)) {
        return true;
    }
    *a = marked;
    *text = begin;
    bool commutes = strcmp(name, "Add") == 0 || strcmp(name, "Mul") == 0;
    if (commutes && node->input_count == 2 && match_operands(a, text, node, true)) {
        return true;
    }
    *a = before;
    return false;
}

/* Match the expression at `*text` with what a value is, and pass it. */
static bool match(struct attempt *a, const char **text, int value)
{
    const char *begin = *text;
    char name[NAME_MAX_SIZE];

    if (read_operator(text, name)) {
        int writer = a->graph->values[value].writer;
        bool fits = a->graph->values[value].data == NULL && writer >= 0 && a->uses[value] == 1 &&
                    match_node(a, name, text, writer);
        if (!fits) {
            *text = begin;
            skip_expression(text);
        }
        return fits;
    }
    int letter = **text - 'a';
    (*text)++;
    WPK_ASSERT(letter >= 0 && letter < LETTERS);
    if (a->bound[letter] < 0) {
        a->bound[letter] = value;
    }
    return a->bound[letter] == value;
}

/* True if the expression's value can be told to be 0 or more. */
static bool is_never_negative(const struct wpk_program *p, int id)
{
    const struct wpk_node *node = &p->nodes[id];

    if (!wpk_dtype_is_float(node->dtype)) {
        return false; /* sums of integers wrap, and so does the least one's magnitude */
    }
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return node->value >= 0;
    case WPK_NODE_UNARY:
        return node->op == WPK_UNARY_EXP || node->op == WPK_UNARY_SQRT ||
               node->op == WPK_UNARY_RSQRT || node->op == WPK_UNARY_SIGMOID ||
               node->op == WPK_UNARY_ABS;
    case WPK_NODE_BINARY:
        if (node->op == WPK_BINARY_MAX) {
            return is_never_negative(p, node->arg[0]) || is_never_negative(p, node->arg[1]);
        }
        return (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_MUL ||
                node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MIN) &&
               is_never_negative(p, node->arg[0]) && is_never_negative(p, node->arg[1]);
    default:
        return false;
    }
}

static bool holds(const struct attempt *a)
{
    int writer = a->graph->values[a->bound['x' - 'a']].writer;

    if (!a->rule->never_negative) {
        return true;
    }
    const struct wpk_lowered *lowered = writer >= 0 ? wpk_graph_lowered(a->graph, writer) : NULL;
    if (lowered == NULL) {
        return false;
    }
    const struct wpk_program *p = &lowered->program;
    const struct wpk_stage *last = &p->stages[p->stage_count - 1];
    return (last->reduction == WPK_REDUCE_NONE || last->reduction == WPK_REDUCE_SUM ||
            last->reduction == WPK_REDUCE_MAX) &&
           is_never_negative(p, last->expr);
}

/* ---- building */

/* Append the node that the operator is, over values that are known.
 *   errors  WPK_ENOENT  it cannot be: the rule does not hold for these shapes */
static wpk_err append(struct attempt *a, const char *op, const int *operands, int count, int *out)
{
    struct wpk_graph *graph = a->graph;
    struct wpk_graph_node node = {.name = graph->nodes[a->nodes[0]].name,
                                  .op = wpk_graph_format(graph, "%s", op),
                                  .domain = "",
                                  .input_count = count,
                                  .output_count = 1,
                                  .part_count = 1,
                                  .loop = graph->nodes[a->nodes[0]].loop,
                                  .times = graph->nodes[a->nodes[0]].times};
    int *values = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)count + 1);
    bool is_sum = strcmp(op, "Add") == 0 || strcmp(op, "Sub") == 0;

    if (is_sum && !wpk_graph_same_shape(&graph->values[operands[0]], &graph->values[operands[1]])) {
        return WPK_ENOENT;
    }
    for (int i = 0; i < a->node_count; i++) {
        const struct wpk_graph_node *like = &graph->nodes[a->nodes[i]];
        if (strcmp(like->op, op) == 0) {
            node.attributes = like->attributes;
            node.attribute_count = like->attribute_count;
        }
    }
    memcpy(values, operands, (size_t)count * sizeof(int));
    node.inputs = values;
    node.outputs = values + count;
    wpk_err err = wpk_graph_add_value(graph, "", &values[count]);
    if (err == WPK_OK) {
        graph->values[values[count]].writer = graph->node_count;
        graph->values[values[count]].is_read = true;
        err = wpk_graph_add_node(graph, &node);
    }
    if (err == WPK_OK) {
        err = wpk_graph_infer_node(graph, graph->node_count - 1, NULL);
        err = err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
    }
    err = err == WPK_OK ? wpk_graph_fold_large(graph, graph->node_count - 1) : err;
    *out = values[count];
    return err;
}

/* Build the expression at `*text`, and pass it. */
static wpk_err build(struct attempt *a, const char **text, int *out)
{
    char name[NAME_MAX_SIZE];
    int operands[WPK_RULE_NODES_MAX];
    int count = 0;
    wpk_err err = WPK_OK;

    if (!read_operator(text, name)) {
        *out = a->bound[**text - 'a'];
        (*text)++;
        return WPK_OK;
    }
    do {
        WPK_ASSERT(count < WPK_RULE_NODES_MAX);
        err = build(a, text, &operands[count++]);
    } while (err == WPK_OK && next_operand(text));
    return err == WPK_OK ? append(a, name, operands, count, out) : err;
}

static wpk_err add_cost(const struct wpk_graph *graph, int node, struct wpk_cost *sum)
{
    const struct wpk_lowered *lowered = NULL;
    struct wpk_cost cost;

    if (graph->values[graph->nodes[node].outputs[0]].data != NULL) {
        return WPK_OK;
    }
    wpk_err err = wpk_graph_lower(graph, node, &lowered, NULL);
    if (err == WPK_OK) {
        wpk_cost(&lowered->program, &cost);
        sum->flops += cost.flops;
        sum->bytes_min += cost.bytes_min;
    }
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
}

/* errors  WPK_ENOENT  what would be put in place is not cheaper */
static wpk_err compare(const struct attempt *a)
{
    struct wpk_cost before = {.flops = 0};
    struct wpk_cost after = {.flops = 0};
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < a->node_count; i++) {
        err = add_cost(a->graph, a->nodes[i], &before);
    }
    for (int n = a->first_new; err == WPK_OK && n < a->graph->node_count; n++) {
        err = add_cost(a->graph, n, &after);
    }
    bool is_less = after.flops <= before.flops && after.bytes_min <= before.bytes_min &&
                   (after.flops < before.flops || after.bytes_min < before.bytes_min);
    return err == WPK_OK && !is_less ? WPK_ENOENT : err;
}

/* ---- the graph */

static wpk_err note(const struct attempt *a)
{
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < a->node_count; i++) {
        err = wpk_graph_add_note(a->graph, a->graph->nodes[a->nodes[i]].name, "%s: %s is %s",
                                 a->rule->name, a->rule->from, a->rule->to);
    }
    return err;
}

static void replace_value(struct wpk_graph *graph, int old, int value)
{
    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] == old) {
                ((int *)graph->nodes[n].inputs)[i] = value; /* in the graph's arena */
            }
        }
    }
}

static bool is_matched(const struct attempt *a, int node)
{
    for (int i = 0; i < a->node_count; i++) {
        if (a->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

/* Put the new nodes where the root was, and leave out those that matched. */
static wpk_err replace_nodes(struct attempt *a)
{
    struct wpk_graph *graph = a->graph;
    int count = 0;
    struct wpk_graph_node *nodes = wpk_graph_take_nodes(graph, &count);
    wpk_err err = WPK_OK;

    for (int i = 0; i < a->node_count; i++) {
        graph->values[nodes[a->nodes[i]].outputs[0]].writer = -1;
    }
    for (int n = 0; err == WPK_OK && n < a->first_new; n++) {
        for (int k = a->first_new; n == a->nodes[0] && err == WPK_OK && k < count; k++) {
            if (graph->values[nodes[k].outputs[0]].data == NULL) {
                err = wpk_graph_add_node(graph, &nodes[k]);
            }
        }
        if (err == WPK_OK && !is_matched(a, n)) {
            err = wpk_graph_add_node(graph, &nodes[n]);
        }
    }
    wpk_graph_end_nodes(graph, nodes);
    return err;
}

/* Let `value` be what the root computed. */
static wpk_err apply(struct attempt *a, int value)
{
    struct wpk_graph *graph = a->graph;
    int old = graph->nodes[a->nodes[0]].outputs[0];

    wpk_err err = note(a);
    if (graph->values[value].writer >= a->first_new && graph->values[value].data == NULL) {
        graph->nodes[graph->node_count - 1].outputs = graph->nodes[a->nodes[0]].outputs;
    } else {
        replace_value(graph, old, value);
    }
    return err == WPK_OK ? replace_nodes(a) : err;
}

/* errors  WPK_ENOENT  the rule does not apply here */
static wpk_err attempt(struct wpk_graph *graph, const int *uses, const struct wpk_rule *rule,
                       int root)
{
    struct attempt a = {.graph = graph, .uses = uses, .rule = rule};
    const struct wpk_graph_value *output = &graph->values[graph->nodes[root].outputs[0]];
    const char *from = rule->from;
    const char *to = rule->to;
    char name[NAME_MAX_SIZE];
    int value = -1;

    for (int i = 0; i < LETTERS; i++) {
        a.bound[i] = -1;
    }
    bool is_root = read_operator(&from, name);
    WPK_ASSERT(is_root);
    if (output->data != NULL || !match_node(&a, name, &from, root) || !holds(&a)) {
        return WPK_ENOENT;
    }
    a.first_new = graph->node_count;
    wpk_err err = build(&a, &to, &value);
    output = &graph->values[graph->nodes[root].outputs[0]];
    if (err == WPK_OK && (!wpk_graph_same_shape(&graph->values[value], output) ||
                          graph->values[value].dtype != output->dtype ||
                          (output->is_output && graph->values[value].writer < a.first_new))) {
        err = WPK_ENOENT;
    }
    err = err == WPK_OK ? compare(&a) : err;
    if (err != WPK_OK) {
        graph->node_count = a.first_new;
        return err;
    }
    return apply(&a, value);
}

/* Apply the first rule that applies anywhere from node `first` on.
 *   errors  WPK_ENOENT  none does */
static wpk_err apply_one(struct wpk_graph *graph, int *first)
{
    int *uses = wpk_graph_count_uses(graph);
    int count = 0;
    const struct wpk_rule *list = wpk_rules(&count);
    wpk_err err = WPK_ENOENT;

    for (; err == WPK_ENOENT && *first < graph->node_count; (*first)++) {
        for (int r = 0; err == WPK_ENOENT && r < count; r++) {
            err = attempt(graph, uses, &list[r], *first);
        }
    }
    free(uses);
    return err;
}

wpk_err wpk_graph_apply_rules(struct wpk_graph *graph)
{
    wpk_err err = WPK_OK;
    bool applied = true;

    for (int round = 0; err == WPK_OK && applied && round < ROUNDS_MAX; round++) {
        int first = 0;
        applied = false;
        while (err == WPK_OK) {
            err = apply_one(graph, &first);
            applied = applied || err == WPK_OK;
        }
        err = err == WPK_ENOENT ? WPK_OK : err;
    }
    return err;
}
