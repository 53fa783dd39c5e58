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
        if (p->err == WPK_OK) {
            p->err =
                wpk_ast_fail(p->ast, p->at, WPK_ERANGE, "nested deeper than %d", WPK_AST_DEPTH_MAX);
        }
        return -1;
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
    return wpk_parser_fail(p, "expected an expression");
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

static int accept_operator(struct wpk_parser *p, int level)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].level == level && wpk_parser_accept(p, operators[i].text)) {
            return (int)operators[i].op;
        }
    }
    return -1;
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
        int op = accept_operator(p, level);
        if (op < 0) {
            break;
        }
        int right = parse_level(p, level + 1);
        int node = right < 0 ? -1 : wpk_parser_add_node(p, WPK_AST_BINARY, at);
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

static bool parse_equation(struct wpk_parser *p)
{
    if (p->ast->equation_count == WPK_AST_EQUATIONS_MAX) {
        p->err = wpk_ast_fail(p->ast, p->at, WPK_ERANGE, "too many equations");
        return false;
    }
    struct wpk_ast_equation *e = &p->ast->equation[p->ast->equation_count];
    memset(e, 0, sizeof(*e));
    wpk_parser_skip_space(p);
    e->at = p->at;
    if (!wpk_parser_read_name(p, e->name)) {
        return false;
    }
    if (wpk_parser_accept(p, "[")) {
        while (!wpk_parser_peek(p, "]")) {
            if (e->axis_count == WPK_RANK_MAX) {
                wpk_parser_fail(p, "too many axes");
                return false;
            }
            struct wpk_ast_axis *axis = &e->axis[e->axis_count];
            wpk_parser_skip_space(p);
            axis->at = p->at;
            if (!wpk_parser_read_name(p, axis->name) ||
                (wpk_parser_accept(p, ":") && !wpk_parser_read_extent(p, &axis->extent))) {
                return false;
            }
            for (int i = 0; i < e->axis_count; i++) {
                if (strcmp(e->axis[i].name, axis->name) == 0) {
                    wpk_parser_fail_at(p, axis->at, "this axis is named twice");
                    return false;
                }
            }
            e->axis_count++;
            if (!wpk_parser_accept(p, ",")) {
                break;
            }
        }
        if (!wpk_parser_expect(p, "]")) {
            return false;
        }
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
    out->nodes = calloc(WPK_AST_NODES_MAX, sizeof(*out->nodes));
    if (out->nodes == NULL) {
        return WPK_ENOMEM;
    }
    /* equations follow one another, with `where` or `;` between them where that reads better */
    while (p.err == WPK_OK && parse_equation(&p)) {
        char word[WPK_NAME_MAX];
        wpk_parser_skip_space(&p);
        int at = p.at;
        if (wpk_parser_accept(&p, ";")) {
            wpk_parser_skip_space(&p);
        } else if (wpk_parser_starts_name(text[at]) && wpk_parser_read_name(&p, word) &&
                   strcmp(word, "where") != 0) {
            p.at = at;
        }
        wpk_parser_skip_space(&p);
        if (text[p.at] == '\0') {
            break;
        }
    }
    if (p.err == WPK_OK && out->equation_count == 0) {
        wpk_parser_fail(&p, "expected an equation");
    }
    return p.err;
}

void wpk_ast_fini(struct wpk_ast *ast)
{
    free(ast->nodes);
    memset(ast, 0, sizeof(*ast));
}
