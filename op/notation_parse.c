/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent over the equations; the grammar is in docs/notation.md. */
#include "op/notation_ast.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct wpk_ast *ast;
    const char *text;
    int at;
    int depth;
    wpk_err err;
};

wpk_err wpk_ast_fail(const struct wpk_ast *ast, int at, wpk_err err, const char *format, ...)
{
    char text[256];
    va_list args;
    int line = 1 + ast->line_offset, column = 1;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (int i = 0; i < at && ast->text[i] != '\0'; i++) {
        column = ast->text[i] == '\n' ? 1 : column + 1;
        line += ast->text[i] == '\n';
    }
    wpk_diag_set_at(ast->diag, line, column, "%s", text);
    return err;
}

static int fail_at(struct parser *p, int at, const char *what)
{
    if (p->err == WPK_OK) {
        p->err = wpk_ast_fail(p->ast, at, WPK_EPARSE, "%s", what);
    }
    return -1;
}

static int fail(struct parser *p, const char *what)
{
    return fail_at(p, p->at, what);
}

/* ---- tokens */

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void skip_space(struct parser *p)
{
    for (;;) {
        while (isspace((unsigned char)p->text[p->at])) {
            p->at++;
        }
        if (p->text[p->at] != '#') {
            return;
        }
        while (p->text[p->at] != '\0' && p->text[p->at] != '\n') {
            p->at++;
        }
    }
}

static bool peek(struct parser *p, const char *token)
{
    skip_space(p);
    return strncmp(p->text + p->at, token, strlen(token)) == 0;
}

static bool accept(struct parser *p, const char *token)
{
    if (!peek(p, token)) {
        return false;
    }
    p->at += (int)strlen(token);
    return true;
}

static bool expect(struct parser *p, const char *token)
{
    char what[48];
    if (p->err == WPK_OK && accept(p, token)) {
        return true;
    }
    snprintf(what, sizeof(what), "expected '%s'", token);
    fail(p, what);
    return false;
}

static bool read_name(struct parser *p, char *out)
{
    skip_space(p);
    int size = 0;
    if (!is_name_start(p->text[p->at])) {
        fail(p, "expected a name");
        return false;
    }
    while (is_name_char(p->text[p->at + size])) {
        size++;
    }
    if (size >= WPK_NAME_MAX) {
        fail(p, "name too long");
        return false;
    }
    memcpy(out, p->text + p->at, (size_t)size);
    out[size] = '\0';
    p->at += size;
    return true;
}

static int new_node(struct parser *p, enum wpk_ast_kind kind, int at)
{
    if (p->err != WPK_OK) {
        return -1;
    }
    if (p->ast->node_count == WPK_AST_NODES_MAX) {
        p->err = wpk_ast_fail(p->ast, at, WPK_ERANGE, "expression too large");
        return -1;
    }
    struct wpk_ast_node *node = &p->ast->nodes[p->ast->node_count];
    memset(node, 0, sizeof(*node));
    node->kind = kind;
    node->at = at;
    node->outside = -1;
    return p->ast->node_count++;
}

static int read_number(struct parser *p)
{
    int at = p->at;
    char *end = NULL;
    errno = 0;
    double value = strtod(p->text + at, &end);
    size_t size = (size_t)(end - (p->text + at));
    bool integer = true;
    for (size_t i = 0; i < size; i++) {
        integer = integer && isdigit((unsigned char)p->text[at + (int)i]);
    }
    if (size == 0 || is_name_char(*end)) {
        return fail_at(p, at, "malformed number");
    }
    if (!isfinite(value) || (integer && fabs(value) > 9007199254740991.0)) {
        p->err = wpk_ast_fail(p->ast, at, WPK_ERANGE, "number out of range");
        return -1;
    }
    p->at += (int)size;
    int node = new_node(p, WPK_AST_NUMBER, at);
    if (node >= 0) {
        p->ast->nodes[node].value = value;
        p->ast->nodes[node].is_integer = integer;
        p->ast->nodes[node].integer = integer ? (int64_t)value : 0;
    }
    return node;
}

/* ---- expressions */

static int parse_expr(struct parser *p, int level);

static int parse_unary(struct parser *p);

static int parse_top(struct parser *p)
{
    if (++p->depth > WPK_AST_DEPTH_MAX) {
        p->depth--;
        if (p->err == WPK_OK) {
            p->err =
                wpk_ast_fail(p->ast, p->at, WPK_ERANGE, "nested deeper than %d", WPK_AST_DEPTH_MAX);
        }
        return -1;
    }
    int node = parse_expr(p, 0);
    p->depth--;
    return node;
}

static int parse_load(struct parser *p, const char *name, int at)
{
    int node = new_node(p, WPK_AST_LOAD, at);
    if (node < 0) {
        return -1;
    }
    snprintf(p->ast->nodes[node].name, WPK_NAME_MAX, "%s", name);
    int count = 0;
    while (!peek(p, "]") && !peek(p, "|")) {
        if (count == WPK_RANK_MAX) {
            return fail(p, "too many indices");
        }
        int child = parse_top(p);
        if (child < 0) {
            return -1;
        }
        p->ast->nodes[node].child[count++] = child;
        if (!accept(p, ",")) {
            break;
        }
    }
    p->ast->nodes[node].child_count = count;
    if (accept(p, "|")) {
        int outside = parse_top(p);
        if (outside < 0) {
            return -1;
        }
        p->ast->nodes[node].outside = outside;
    }
    return expect(p, "]") ? node : -1;
}

static bool read_extent(struct parser *p, int64_t *out)
{
    skip_space(p);
    int at = p->at;
    int node = read_number(p);
    if (node < 0) {
        return false;
    }
    const struct wpk_ast_node *number = &p->ast->nodes[node];
    if (!number->is_integer || number->integer < 1 || number->integer > WPK_ELEMENTS_MAX) {
        p->err = wpk_ast_fail(p->ast, at, WPK_ERANGE, "an extent is a number of at least 1");
        return false;
    }
    *out = number->integer;
    return true;
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
static bool looks_like_reduction(struct parser *p)
{
    int at = p->at;
    const char *text = p->text;
    for (;;) {
        while (isspace((unsigned char)text[at])) {
            at++;
        }
        if (!is_name_start(text[at])) {
            return false;
        }
        while (is_name_char(text[at])) {
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
    return is_name_char(text[at]) || text[at] == '(' || text[at] == '.';
}

static int parse_reduction(struct parser *p, int reduction, int at, bool typed,
                           enum wpk_dtype accumulator)
{
    struct wpk_ast_axis axis[6];
    int count = 0;
    do {
        if (count == 6) {
            return fail(p, "too many reduction axes");
        }
        memset(&axis[count], 0, sizeof(axis[count]));
        skip_space(p);
        axis[count].at = p->at;
        if (!read_name(p, axis[count].name) ||
            (accept(p, ":") && !read_extent(p, &axis[count].extent))) {
            return -1;
        }
        count++;
    } while (accept(p, ","));
    if (!expect(p, ")")) {
        return -1;
    }
    /* the body is one multiplicative term */
    if (++p->depth > WPK_AST_DEPTH_MAX) {
        return fail(p, "nested too deeply");
    }
    int body = parse_expr(p, 4);
    p->depth--;
    int node = body < 0 ? -1 : new_node(p, WPK_AST_REDUCTION, at);
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

static int parse_arguments(struct parser *p, int node, int wanted)
{
    int count = 0;
    if (node < 0) {
        return -1;
    }
    do {
        int child = parse_top(p);
        if (child < 0) {
            return -1;
        }
        if (count == wanted) {
            return fail(p, "too many arguments");
        }
        p->ast->nodes[node].child[count++] = child;
    } while (accept(p, ","));
    p->ast->nodes[node].child_count = count;
    if (!expect(p, ")")) {
        return -1;
    }
    return count == wanted ? node : fail(p, "too few arguments");
}

static int parse_call(struct parser *p, const char *name, int at)
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
    if (reduction != WPK_REDUCE_NONE && looks_like_reduction(p)) {
        return parse_reduction(p, reduction, at, false, WPK_F32);
    }
    for (int i = 0; i < WPK_CALL_COUNT; i++) {
        if (strcmp(name, calls[i]) == 0) {
            int node = new_node(p, WPK_AST_CALL, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, 1);
        }
    }
    for (int i = 0; i < WPK_UNARY_COUNT; i++) {
        if (is_name_start(unary[i][0]) && strcmp(name, unary[i]) == 0) {
            int node = new_node(p, WPK_AST_UNARY, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, 1);
        }
    }
    for (int i = 0; i < WPK_BINARY_COUNT; i++) {
        if (strcmp(name, binary[i]) == 0) {
            int node = new_node(p, WPK_AST_BINARY, at);
            if (node >= 0) {
                p->ast->nodes[node].op = i;
            }
            return parse_arguments(p, node, 2);
        }
    }
    if (strcmp(name, "select") == 0) {
        return parse_arguments(p, new_node(p, WPK_AST_SELECT, at), 3);
    }
    if (wpk_dtype_parse(name, &dtype) == WPK_OK) {
        int node = new_node(p, WPK_AST_CAST, at);
        if (node >= 0) {
            p->ast->nodes[node].dtype = dtype;
        }
        return parse_arguments(p, node, 1);
    }
    return fail_at(p, at, "unknown function");
}

static int parse_named(struct parser *p)
{
    char name[WPK_NAME_MAX], type[WPK_NAME_MAX];
    int at = p->at;
    if (!read_name(p, name)) {
        return -1;
    }
    if (strcmp(name, "inf") == 0) {
        int node = new_node(p, WPK_AST_NUMBER, at);
        if (node >= 0) {
            p->ast->nodes[node].value = INFINITY;
        }
        return node;
    }
    if (strcmp(name, "nan") == 0) {
        return fail_at(p, at, "NaN is no value here");
    }
    if (accept(p, "[")) {
        return parse_load(p, name, at);
    }
    if (reduction_named(name) != WPK_REDUCE_NONE && p->text[p->at] == '.') {
        enum wpk_dtype accumulator;
        p->at++;
        if (!read_name(p, type)) {
            return -1;
        }
        if (wpk_dtype_parse(type, &accumulator) != WPK_OK) {
            return fail_at(p, at, "unknown accumulator type");
        }
        return expect(p, "(") ? parse_reduction(p, reduction_named(name), at, true, accumulator)
                              : -1;
    }
    if (accept(p, "(")) {
        return parse_call(p, name, at);
    }
    int node = new_node(p, WPK_AST_NAME, at);
    if (node >= 0) {
        snprintf(p->ast->nodes[node].name, WPK_NAME_MAX, "%s", name);
    }
    return node;
}

static int parse_primary(struct parser *p)
{
    skip_space(p);
    char c = p->text[p->at];
    if (accept(p, "(")) {
        int node = parse_top(p);
        return node >= 0 && expect(p, ")") ? node : -1;
    }
    if (isdigit((unsigned char)c) || c == '.') {
        return read_number(p);
    }
    if (is_name_start(c)) {
        return parse_named(p);
    }
    return fail(p, "expected an expression");
}

static int parse_unary(struct parser *p)
{
    skip_space(p);
    int at = p->at;
    bool negative = peek(p, "-");
    if (!negative && !(peek(p, "!") && !peek(p, "!="))) {
        return parse_primary(p);
    }
    p->at++;
    if (++p->depth > WPK_AST_DEPTH_MAX) {
        return fail(p, "nested too deeply");
    }
    int operand = parse_unary(p);
    p->depth--;
    int node = operand < 0 ? -1 : new_node(p, WPK_AST_UNARY, at);
    if (node >= 0) {
        p->ast->nodes[node].op = negative ? WPK_UNARY_NEG : WPK_UNARY_NOT;
        p->ast->nodes[node].child[0] = operand;
        p->ast->nodes[node].child_count = 1;
    }
    return node;
}

/* Operators by level, weakest first; `<=` before `<` so that the longer one wins. */
static const struct {
    int level;
    const char *text;
    enum wpk_binary op;
} operators[] = {
    {0, "||", WPK_BINARY_OR}, {1, "&&", WPK_BINARY_AND}, {2, "<=", WPK_BINARY_LE},
    {2, "==", WPK_BINARY_EQ}, {2, "!=", WPK_BINARY_NE},  {2, "<", WPK_BINARY_LT},
    {3, "+", WPK_BINARY_ADD}, {3, "-", WPK_BINARY_SUB},  {4, "*", WPK_BINARY_MUL},
    {4, "/", WPK_BINARY_DIV}, {4, "%", WPK_BINARY_MOD},
};

static int accept_operator(struct parser *p, int level)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].level == level && accept(p, operators[i].text)) {
            return (int)operators[i].op;
        }
    }
    return -1;
}

static int parse_expr(struct parser *p, int level)
{
    if (level == 5) {
        return parse_unary(p);
    }
    int left = parse_expr(p, level + 1);
    while (left >= 0) {
        skip_space(p);
        int at = p->at;
        int op = accept_operator(p, level);
        if (op < 0) {
            break;
        }
        int right = parse_expr(p, level + 1);
        int node = right < 0 ? -1 : new_node(p, WPK_AST_BINARY, at);
        if (node >= 0) {
            p->ast->nodes[node].op = op;
            p->ast->nodes[node].child[0] = left;
            p->ast->nodes[node].child[1] = right;
            p->ast->nodes[node].child_count = 2;
        }
        left = node;
    }
    return left;
}

/* ---- equations */

static bool parse_equation(struct parser *p)
{
    if (p->ast->equation_count == WPK_AST_EQUATIONS_MAX) {
        p->err = wpk_ast_fail(p->ast, p->at, WPK_ERANGE, "too many equations");
        return false;
    }
    struct wpk_ast_equation *e = &p->ast->equation[p->ast->equation_count];
    memset(e, 0, sizeof(*e));
    skip_space(p);
    e->at = p->at;
    if (!read_name(p, e->name)) {
        return false;
    }
    if (accept(p, "[")) {
        while (!peek(p, "]")) {
            if (e->axis_count == WPK_RANK_MAX) {
                fail(p, "too many axes");
                return false;
            }
            struct wpk_ast_axis *axis = &e->axis[e->axis_count];
            skip_space(p);
            axis->at = p->at;
            if (!read_name(p, axis->name) || (accept(p, ":") && !read_extent(p, &axis->extent))) {
                return false;
            }
            for (int i = 0; i < e->axis_count; i++) {
                if (strcmp(e->axis[i].name, axis->name) == 0) {
                    fail_at(p, axis->at, "this axis is named twice");
                    return false;
                }
            }
            e->axis_count++;
            if (!accept(p, ",")) {
                break;
            }
        }
        if (!expect(p, "]")) {
            return false;
        }
    }
    if (!expect(p, "=")) {
        return false;
    }
    e->root = parse_top(p);
    p->ast->equation_count += e->root >= 0;
    return e->root >= 0;
}

wpk_err wpk_ast_parse(const char *text, int line_offset, struct wpk_ast *out, struct wpk_diag *diag)
{
    struct parser p = {.ast = out, .text = text};
    memset(out, 0, sizeof(*out));
    out->text = text;
    out->diag = diag;
    out->line_offset = line_offset;
    out->nodes = calloc(WPK_AST_NODES_MAX, sizeof(*out->nodes));
    if (out->nodes == NULL) {
        return WPK_ENOMEM;
    }
    /* equations follow one another, with `where` or `;` between them where that reads better */
    while (p.err == WPK_OK && parse_equation(&p)) {
        char word[WPK_NAME_MAX];
        skip_space(&p);
        int at = p.at;
        if (accept(&p, ";")) {
            skip_space(&p);
        } else if (is_name_start(text[at]) && read_name(&p, word) && strcmp(word, "where") != 0) {
            p.at = at;
        }
        skip_space(&p);
        if (text[p.at] == '\0') {
            break;
        }
    }
    if (p.err == WPK_OK && out->equation_count == 0) {
        fail(&p, "expected an equation");
    }
    return p.err;
}

void wpk_ast_fini(struct wpk_ast *ast)
{
    free(ast->nodes);
    memset(ast, 0, sizeof(*ast));
}
