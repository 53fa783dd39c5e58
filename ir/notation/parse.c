/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive descent over the equations; the grammar is in docs/notation.md. */
#include "ir/notation/parser.h"

#include <stdlib.h>
#include <string.h>

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
