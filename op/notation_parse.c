/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent over the equations; the grammar is in docs/notation.md. */
#include "op/notation_parser.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- expressions */

/* Levels of operators, weakest first. */
enum { LEVEL_WEAKEST = 0, LEVEL_TERM = 4, LEVEL_UNARY = 5 };

static int parse_unary(struct wpk_parser *p);
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

/* ---- equations */

/* [n,k,y:28,x:28] */
static bool parse_output_axes(struct wpk_parser *p, struct wpk_ast_equation *e)
{
    while (!wpk_parser_peek(p, "]")) {
        struct wpk_ast_axis *axis = &e->axis[e->axis_count];
        wpk_parser_skip_space(p);
        if (e->axis_count == WPK_RANK_MAX) {
            wpk_parser_fail_range(p, p->at, "more than %d axes of %s", WPK_RANK_MAX, e->name);
            return false;
        }
        axis->at = p->at;
        if (!wpk_parser_read_name(p, axis->name) ||
            (wpk_parser_accept(p, ":") && !wpk_parser_read_extent(p, &axis->extent))) {
            return false;
        }
        for (int i = 0; i < e->axis_count; i++) {
            if (strcmp(e->axis[i].name, axis->name) == 0) {
                wpk_parser_fail_at(p, axis->at, "axis %s is named twice", axis->name);
                return false;
            }
        }
        e->axis_count++;
        if (!wpk_parser_accept(p, ",")) {
            break;
        }
    }
    return wpk_parser_expect(p, "]");
}

static bool parse_equation(struct wpk_parser *p)
{
    wpk_parser_skip_space(p);
    if (p->ast->equation_count == WPK_AST_EQUATIONS_MAX) {
        wpk_parser_fail_range(p, p->at, "more than %d equations", WPK_AST_EQUATIONS_MAX);
        return false;
    }
    if (!wpk_parser_starts_name(p->text[p->at])) {
        wpk_parser_fail(p, "expected %s before %s",
                        p->ast->equation_count == 0 ? "an equation"
                                                    : "an operator or another equation",
                        wpk_parser_next(p));
        return false;
    }
    struct wpk_ast_equation *e = &p->ast->equation[p->ast->equation_count];
    memset(e, 0, sizeof(*e));
    e->at = p->at;
    if (!wpk_parser_read_name(p, e->name)) {
        return false;
    }
    if (wpk_parser_accept(p, "[") && !parse_output_axes(p, e)) {
        return false;
    }
    if (!wpk_parser_expect(p, "=")) {
        return false;
    }
    e->root = wpk_parser_read_expr(p);
    p->ast->equation_count += e->root >= 0;
    return e->root >= 0;
}

wpk_err wpk_ast_parse(const char *text, int line_offset, struct wpk_ast *out, struct wpk_diag *diag)
{
    struct wpk_parser p = {.ast = out, .text = text};
    memset(out, 0, sizeof(*out));
    out->text = text;
    out->diag = diag;
    out->line_offset = line_offset;
    /* equations follow one another, with `where` or `;` between them where that reads better */
    while (p.err == WPK_OK && parse_equation(&p)) {
        char word[WPK_NAME_MAX];
        wpk_parser_skip_space(&p);
        int at = p.at;
        if (wpk_parser_accept(&p, ";")) {
            /* it may stand at the very end */
        } else if (wpk_parser_starts_name(text[at]) && wpk_parser_read_name(&p, word) &&
                   strcmp(word, "where") != 0) {
            p.at = at;
        }
        wpk_parser_skip_space(&p);
        if (text[p.at] == '\0') {
            break;
        }
    }
    return p.err;
}

void wpk_ast_fini(struct wpk_ast *ast)
{
    free(ast->nodes);
    memset(ast, 0, sizeof(*ast));
}
