/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent over expressions: operators, and below them what begins with a name (axes,
 * loads, reductions, functions, casts). */
#include "ir/notation/parser.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what begins with a name */

static int parse_load(struct wpk_parser *p, const char *name, int at)
{
    int node = wpk_parser_add_node(p, WPK_AST_LOAD, at);
    if (node < 0) {
        return -1;
    }
    snprintf(p->ast->nodes[node].name, WPK_NAME_MAX, "%s", name);
    int count = 0;
    while (!wpk_parser_peek(p, "]") && !wpk_parser_peek(p, "|")) {
        if (count == WPK_RANK_MAX) {
            return wpk_parser_fail(p, "more than %d indices for %s", WPK_RANK_MAX, name);
        }
        int child = wpk_parser_read_expr(p);
        if (child < 0) {
            return -1;
        }
        p->ast->nodes[node].child[count++] = child;
        if (!wpk_parser_accept(p, ",")) {
            break;
        }
    }
    p->ast->nodes[node].child_count = count;
    if (wpk_parser_accept(p, "|")) {
        int outside = wpk_parser_read_expr(p);
        if (outside < 0) {
            return -1;
        }
        p->ast->nodes[node].outside = outside;
    }
    return wpk_parser_expect(p, "]") ? node : -1;
}

static int reduction_named(const char *name)
{
    return strcmp(name, "sum") == 0    ? WPK_REDUCE_SUM
           : strcmp(name, "max") == 0  ? WPK_REDUCE_MAX
           : strcmp(name, "min") == 0  ? WPK_REDUCE_MIN
           : strcmp(name, "prod") == 0 ? WPK_REDUCE_PROD
                                       : WPK_REDUCE_NONE;
}

/* `max(r, s) X[..]` reduces and `max(a, b)` does not: names alone in the parentheses and an operand
 * behind them make a reduction. */
static bool looks_like_reduction(struct wpk_parser *p)
{
    int at = p->at;
    const char *text = p->text;
    for (;;) {
        while (isspace((unsigned char)text[at])) {
            at++;
        }
        if (!wpk_parser_starts_name(text[at])) {
            return false;
        }
        while (wpk_parser_continues_name(text[at])) {
            at++;
        }
        while (isspace((unsigned char)text[at]) || text[at] == ':' ||
               isdigit((unsigned char)text[at])) {
            at++;
        }
        if (text[at] == ')') {
            at++;
            break;
        }
        if (text[at] != ',') {
            return false;
        }
        at++;
    }
    while (isspace((unsigned char)text[at])) {
        at++;
    }
    bool where = wpk_begins(text + at, "where") && !wpk_parser_continues_name(text[at + 5]);
    return !where && (wpk_parser_continues_name(text[at]) || text[at] == '(' || text[at] == '.');
}

static int parse_reduction(struct wpk_parser *p, int reduction, int at, bool typed,
                           enum wpk_dtype accumulator)
{
    struct wpk_ast_axis axis[WPK_RANK_MAX];
    int count = 0;
    do {
        if (count == WPK_RANK_MAX) {
            return wpk_parser_fail(p, "more than %d axes in one reduction", WPK_RANK_MAX);
        }
        memset(&axis[count], 0, sizeof(axis[count]));
        wpk_parser_skip_space(p);
        axis[count].at = p->at;
        if (!wpk_parser_read_name(p, axis[count].name) ||
            (wpk_parser_accept(p, ":") && !wpk_parser_read_extent(p, &axis[count].extent))) {
            return -1;
        }
        count++;
    } while (wpk_parser_accept(p, ","));
    if (!wpk_parser_expect(p, ")")) {
        return -1;
    }
    int body = wpk_parser_read_term(p);
    int node = body < 0 ? -1 : wpk_parser_add_node(p, WPK_AST_REDUCTION, at);
    if (node >= 0) {
        struct wpk_ast_node *n = &p->ast->nodes[node];
        n->op = reduction;
        n->typed = typed;
        n->dtype = accumulator;
        n->child[0] = body;
        n->child_count = 1;
        memcpy(n->axis, axis, sizeof(axis));
        n->axis_count = count;
    }
    return node;
}

static int parse_arguments(struct wpk_parser *p, int node, const char *name, int wanted)
{
    int count = 0;
    if (node < 0) {
        return -1;
    }
    do {
        int child = wpk_parser_read_expr(p);
        if (child < 0) {
            return -1;
        }
        if (count == wanted) {
            return wpk_parser_fail(p, "more than %d arguments for %s", wanted, name);
        }
        p->ast->nodes[node].child[count++] = child;
    } while (wpk_parser_accept(p, ","));
    p->ast->nodes[node].child_count = count;
    if (!wpk_parser_expect(p, ")")) {
        return -1;
    }
    return count == wanted ? node
                           : wpk_parser_fail(p, "%d of %d arguments for %s", count, wanted, name);
}

static int parse_function(struct wpk_parser *p, int node, int op, const char *name, int wanted)
{
    if (node >= 0) {
        p->ast->nodes[node].op = op;
    }
    return parse_arguments(p, node, name, wanted);
}

static int parse_call(struct wpk_parser *p, const char *name, int at)
{
    static const char *const calls[WPK_CALL_COUNT] = {
        [WPK_CALL_RELU] = "relu", [WPK_CALL_RELU6] = "relu6", [WPK_CALL_LEAKY_RELU] = "leaky_relu",
        [WPK_CALL_SILU] = "silu", [WPK_CALL_GELU] = "gelu",   [WPK_CALL_HARDSWISH] = "hardswish",
    };
    static const char *const unary[] = {WPK_UNARY_LIST(WPK_LIST_TEXT)};
    static const char *const binary[] = {
#define TEXT(suffix, text, commutative, call) (call) ? text : "",
        WPK_BINARY_LIST(TEXT)
#undef TEXT
    };
    enum wpk_dtype dtype;
    int reduction = reduction_named(name);
    /* no function is called sum or prod: what is wrong in their parentheses is told as such */
    bool certain = reduction == WPK_REDUCE_SUM || reduction == WPK_REDUCE_PROD;
    if (certain || (reduction != WPK_REDUCE_NONE && looks_like_reduction(p))) {
        return parse_reduction(p, reduction, at, false, WPK_F32);
    }
    for (int i = 0; i < WPK_CALL_COUNT; i++) {
        if (strcmp(name, calls[i]) == 0) {
            return parse_function(p, wpk_parser_add_node(p, WPK_AST_CALL, at), i, name, 1);
        }
    }
    for (int i = 0; i < WPK_UNARY_COUNT; i++) {
        if (wpk_parser_starts_name(unary[i][0]) && strcmp(name, unary[i]) == 0) {
            return parse_function(p, wpk_parser_add_node(p, WPK_AST_UNARY, at), i, name, 1);
        }
    }
    for (int i = 0; i < WPK_BINARY_COUNT; i++) {
        if (strcmp(name, binary[i]) == 0) {
            return parse_function(p, wpk_parser_add_node(p, WPK_AST_BINARY, at), i, name, 2);
        }
    }
    if (strcmp(name, "select") == 0) {
        return parse_arguments(p, wpk_parser_add_node(p, WPK_AST_SELECT, at), name, 3);
    }
    if (wpk_dtype_parse(name, &dtype) == WPK_OK) {
        int node = wpk_parser_add_node(p, WPK_AST_CAST, at);
        if (node >= 0) {
            p->ast->nodes[node].dtype = dtype;
        }
        return parse_arguments(p, node, name, 1);
    }
    return wpk_parser_fail_at(p, at, "unknown function %s", name);
}

int wpk_parser_read_named(struct wpk_parser *p)
{
    char name[WPK_NAME_MAX], type[WPK_NAME_MAX];
    int at = p->at;
    if (!wpk_parser_read_name(p, name)) {
        return -1;
    }
    if (strcmp(name, "inf") == 0) {
        int node = wpk_parser_add_node(p, WPK_AST_NUMBER, at);
        if (node >= 0) {
            p->ast->nodes[node].value = INFINITY;
        }
        return node;
    }
    if (strcmp(name, "nan") == 0) {
        return wpk_parser_fail_at(p, at, "NaN is no value here");
    }
    if (wpk_parser_accept(p, "[")) {
        return parse_load(p, name, at);
    }
    if (reduction_named(name) != WPK_REDUCE_NONE && p->text[p->at] == '.') {
        enum wpk_dtype accumulator;
        p->at++;
        if (!wpk_parser_read_name(p, type)) {
            return -1;
        }
        if (wpk_dtype_parse(type, &accumulator) != WPK_OK) {
            return wpk_parser_fail_at(p, at, "unknown accumulator type %s", type);
        }
        return wpk_parser_expect(p, "(")
                   ? parse_reduction(p, reduction_named(name), at, true, accumulator)
                   : -1;
    }
    if (wpk_parser_accept(p, "(")) {
        return parse_call(p, name, at);
    }
    int node = wpk_parser_add_node(p, WPK_AST_NAME, at);
    if (node >= 0) {
        snprintf(p->ast->nodes[node].name, WPK_NAME_MAX, "%s", name);
    }
    return node;
}

/* ---- operators */

/* Levels of operators, weakest first. */
enum { LEVEL_WEAKEST = 0, LEVEL_TERM = 4, LEVEL_UNARY = 5 };

static int parse_level(struct wpk_parser *p, int level);

/* Everything that nests comes through here, so that no text can exhaust the stack. */
static int nest(struct wpk_parser *p, int level)
{
    if (p->depth == WPK_AST_DEPTH_MAX) {
        return wpk_parser_fail_range(p, p->at, "nested deeper than %d levels", WPK_AST_DEPTH_MAX);
    }
    p->depth++;
    int node = parse_level(p, level);
    p->depth--;
    return node;
}

int wpk_parser_read_expr(struct wpk_parser *p)
{
    return nest(p, LEVEL_WEAKEST);
}

int wpk_parser_read_term(struct wpk_parser *p)
{
    return nest(p, LEVEL_TERM);
}

static int parse_primary(struct wpk_parser *p)
{
    wpk_parser_skip_space(p);
    char c = p->text[p->at];
    if (wpk_parser_accept(p, "(")) {
        int node = wpk_parser_read_expr(p);
        return node >= 0 && wpk_parser_expect(p, ")") ? node : -1;
    }
    if (isdigit((unsigned char)c) || c == '.') {
        return wpk_parser_read_number(p);
    }
    if (wpk_parser_starts_name(c)) {
        return wpk_parser_read_named(p);
    }
    return wpk_parser_fail(p, "expected an expression before %s", wpk_parser_next(p));
}

static int parse_unary(struct wpk_parser *p)
{
    wpk_parser_skip_space(p);
    int at = p->at;
    bool negative = wpk_parser_peek(p, "-");
    if (!negative && !(wpk_parser_peek(p, "!") && !wpk_parser_peek(p, "!="))) {
        return parse_primary(p);
    }
    p->at++;
    int operand = nest(p, LEVEL_UNARY);
    int node = operand < 0 ? -1 : wpk_parser_add_node(p, WPK_AST_UNARY, at);
    if (node >= 0) {
        p->ast->nodes[node].op = negative ? WPK_UNARY_NEG : WPK_UNARY_NOT;
        p->ast->nodes[node].child[0] = operand;
        p->ast->nodes[node].child_count = 1;
    }
    return node;
}

/* By level, weakest first; `<=` before `<` so that the longer one wins. The IR has one order of
 * comparison: a > b is b < a. */
static const struct operator
{
    int level;
    const char *text;
    enum wpk_binary op;
    bool swapped;
}
operators[] = {
    {0, "||", WPK_BINARY_OR, false}, {1, "&&", WPK_BINARY_AND, false},
    {2, "<=", WPK_BINARY_LE, false}, {2, ">=", WPK_BINARY_LE, true},
    {2, "==", WPK_BINARY_EQ, false}, {2, "!=", WPK_BINARY_NE, false},
    {2, "<", WPK_BINARY_LT, false},  {2, ">", WPK_BINARY_LT, true},
    {3, "+", WPK_BINARY_ADD, false}, {3, "-", WPK_BINARY_SUB, false},
    {4, "*", WPK_BINARY_MUL, false}, {4, "/", WPK_BINARY_DIV, false},
    {4, "%", WPK_BINARY_MOD, false},
};

static const struct operator* accept_operator(struct wpk_parser *p, int level)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].level == level && wpk_parser_accept(p, operators[i].text)) {
            return &operators[i];
        }
    }
    return NULL;
}

static int parse_level(struct wpk_parser *p, int level)
{
    if (level == LEVEL_UNARY) {
        return parse_unary(p);
    }
    int left = parse_level(p, level + 1);
    while (left >= 0) {
        wpk_parser_skip_space(p);
        int at = p->at;
        const struct operator* op = accept_operator(p, level);
        if (op == NULL) {
            break;
        }
        int right = parse_level(p, level + 1);
        int node = right < 0 ? -1 : wpk_parser_add_node(p, WPK_AST_BINARY, at);
        if (node >= 0) {
            p->ast->nodes[node].op = (int)op->op;
            p->ast->nodes[node].child[0] = op->swapped ? right : left;
            p->ast->nodes[node].child[1] = op->swapped ? left : right;
            p->ast->nodes[node].child_count = 2;
        }
        left = node;
    }
    return left;
}
