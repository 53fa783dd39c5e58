/* SPDX-License-Identifier: Apache-2.0 */
/* What all of the parser reads: blanks, names, numbers; and how it says what is wrong. */
#include "op/notation_parser.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int wpk_parser_fail_at(struct wpk_parser *p, int at, const char *what)
{
    if (p->err == WPK_OK) {
        p->err = wpk_ast_fail(p->ast, at, WPK_EPARSE, "%s", what);
    }
    return -1;
}

int wpk_parser_fail(struct wpk_parser *p, const char *what)
{
    return wpk_parser_fail_at(p, p->at, what);
}

bool wpk_parser_starts_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

bool wpk_parser_continues_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void wpk_parser_skip_space(struct wpk_parser *p)
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

bool wpk_parser_peek(struct wpk_parser *p, const char *token)
{
    wpk_parser_skip_space(p);
    return strncmp(p->text + p->at, token, strlen(token)) == 0;
}

bool wpk_parser_accept(struct wpk_parser *p, const char *token)
{
    if (!wpk_parser_peek(p, token)) {
        return false;
    }
    p->at += (int)strlen(token);
    return true;
}

bool wpk_parser_expect(struct wpk_parser *p, const char *token)
{
    char what[48];
    if (p->err == WPK_OK && wpk_parser_accept(p, token)) {
        return true;
    }
    snprintf(what, sizeof(what), "expected '%s'", token);
    wpk_parser_fail(p, what);
    return false;
}

bool wpk_parser_read_name(struct wpk_parser *p, char *out)
{
    wpk_parser_skip_space(p);
    int size = 0;
    if (!wpk_parser_starts_name(p->text[p->at])) {
        wpk_parser_fail(p, "expected a name");
        return false;
    }
    while (wpk_parser_continues_name(p->text[p->at + size])) {
        size++;
    }
    if (size >= WPK_NAME_MAX) {
        wpk_parser_fail(p, "name too long");
        return false;
    }
    memcpy(out, p->text + p->at, (size_t)size);
    out[size] = '\0';
    p->at += size;
    return true;
}

int wpk_parser_add_node(struct wpk_parser *p, enum wpk_ast_kind kind, int at)
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

int wpk_parser_read_number(struct wpk_parser *p)
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
    if (size == 0 || wpk_parser_continues_name(*end)) {
        return wpk_parser_fail_at(p, at, "malformed number");
    }
    if (!isfinite(value) || (integer && fabs(value) > 9007199254740991.0)) {
        p->err = wpk_ast_fail(p->ast, at, WPK_ERANGE, "number out of range");
        return -1;
    }
    p->at += (int)size;
    int node = wpk_parser_add_node(p, WPK_AST_NUMBER, at);
    if (node >= 0) {
        p->ast->nodes[node].value = value;
        p->ast->nodes[node].is_integer = integer;
        p->ast->nodes[node].integer = integer ? (int64_t)value : 0;
    }
    return node;
}

bool wpk_parser_read_extent(struct wpk_parser *p, int64_t *out)
{
    wpk_parser_skip_space(p);
    int at = p->at;
    int node = wpk_parser_read_number(p);
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
