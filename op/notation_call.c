/* SPDX-License-Identifier: Apache-2.0 */
/* What begins with a name: axes, loads, reductions, functions, casts. */
#include "op/notation_parser.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    bool where = strncmp(text + at, "where", 5) == 0 && !wpk_parser_continues_name(text[at + 5]);
    return !where && (wpk_parser_continues_name(text[at]) || text[at] == '(' || text[at] == '.');
}

static int parse_reduction(struct wpk_parser *p, int reduction, int at, bool typed,
                           enum wpk_dtype accumulator)
{
    struct wpk_ast_axis axis[6];
    int count = 0;
    do {
        if (count == 6) {
            return wpk_parser_fail(p, "more than 6 axes in one reduction");
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

static int parse_call(struct wpk_parser *p, const char *name, int at)
{
    static const char *const calls[WPK_CALL_COUNT] = {
        [WPK_CALL_RELU] = "relu", [WPK_CALL_RELU6] = "relu6", [WPK_CALL_LEAKY_RELU] = "leaky_relu",
        [WPK_CALL_SILU] = "silu", [WPK_CALL_GELU] = "gelu",   [WPK_CALL_HARDSWISH] = "hardswish",
    };
    static const char *const unary[] = {
#define TEXT(suffix, text) text,
        WPK_UNARY_LIST(TEXT)
#undef TEXT
    };
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
            int node = wpk_parser_add_node(p, WPK_AST_CALL, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, name, 1);
        }
    }
    for (int i = 0; i < WPK_UNARY_COUNT; i++) {
        if (wpk_parser_starts_name(unary[i][0]) && strcmp(name, unary[i]) == 0) {
            int node = wpk_parser_add_node(p, WPK_AST_UNARY, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, name, 1);
        }
    }
    for (int i = 0; i < WPK_BINARY_COUNT; i++) {
        if (strcmp(name, binary[i]) == 0) {
            int node = wpk_parser_add_node(p, WPK_AST_BINARY, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, name, 2);
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
