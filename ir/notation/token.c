/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the parser (blanks, names, numbers) and its error messages. */
#include "ir/notation/parser.h"

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

static void report(struct wpk_parser *p, int at, wpk_err err, const char *format, va_list args)
{
    char text[256];
    if (p->err == WPK_OK) {
        vsnprintf(text, sizeof(text), format, args);
        p->err = wpk_ast_fail(p->ast, at, err, "%s", text);
    }
}

int wpk_parser_fail_at(struct wpk_parser *p, int at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(p, at, WPK_EPARSE, format, args);
    va_end(args);
    return -1;
}

int wpk_parser_fail(struct wpk_parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(p, p->at, WPK_EPARSE, format, args);
    va_end(args);
    return -1;
}

int wpk_parser_fail_range(struct wpk_parser *p, int at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(p, at, WPK_ERANGE, format, args);
    va_end(args);
    return -1;
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

const char *wpk_parser_next(struct wpk_parser *p)
{
    wpk_parser_skip_space(p);
    char c = p->text[p->at];
    if (c == '\0') {
        return "the end";
    }
    snprintf(p->shown, sizeof(p->shown), isprint((unsigned char)c) ? "'%c'" : "byte 0x%02x",
             (unsigned char)c);
    return p->shown;
}

bool wpk_parser_peek(struct wpk_parser *p, const char *token)
{
    wpk_parser_skip_space(p);
    return wpk_begins(p->text + p->at, token);
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
    if (p->err == WPK_OK && wpk_parser_accept(p, token)) {
        return true;
    }
    wpk_parser_fail(p, "expected '%s' before %s", token, wpk_parser_next(p));
    return false;
}

bool wpk_parser_read_name(struct wpk_parser *p, char *out)
{
    wpk_parser_skip_space(p);
    int size = 0;
    if (!wpk_parser_starts_name(p->text[p->at])) {
        wpk_parser_fail(p, "expected a name before %s", wpk_parser_next(p));
        return false;
    }
    while (wpk_parser_continues_name(p->text[p->at + size])) {
        size++;
    }
    if (size >= WPK_NAME_MAX) {
        wpk_parser_fail(p, "a name longer than %d characters", WPK_NAME_MAX - 1);
        return false;
    }
    memcpy(out, p->text + p->at, (size_t)size);
    out[size] = '\0';
    p->at += size;
    return true;
}

static bool grow(struct wpk_ast *ast)
{
    int capacity = ast->node_capacity == 0 ? 64 : 2 * ast->node_capacity;
    struct wpk_ast_node *nodes = realloc(ast->nodes, (size_t)capacity * sizeof(*nodes));
    if (nodes != NULL) {
        ast->nodes = nodes;
        ast->node_capacity = capacity;
    }
    return nodes != NULL;
}

int wpk_parser_add_node(struct wpk_parser *p, enum wpk_ast_kind kind, int at)
{
    if (p->err != WPK_OK) {
        return -1;
    }
    if (p->ast->node_count == WPK_AST_NODES_MAX) {
        return wpk_parser_fail_range(p, at, "more than %d names, numbers and operators",
                                     WPK_AST_NODES_MAX);
    }
    if (p->ast->node_count == p->ast->node_capacity && !grow(p->ast)) {
        p->err = WPK_ENOMEM;
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
    /* -2^63 is a number and a sign before it */
    uint64_t magnitude = integer ? strtoull(p->text + at, NULL, 10) : 0;
    if (!isfinite(value) || magnitude > (uint64_t)INT64_MAX + 1) {
        return wpk_parser_fail_range(p, at, "number out of range");
    }
    p->at += (int)size;
    int node = wpk_parser_add_node(p, WPK_AST_NUMBER, at);
    if (node >= 0) {
        p->ast->nodes[node].value = value;
        p->ast->nodes[node].is_integer = integer;
        p->ast->nodes[node].magnitude = magnitude;
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
    if (!number->is_integer || number->magnitude < 1 || number->magnitude > WPK_ELEMENTS_MAX) {
        wpk_parser_fail_range(p, at, "an extent is a whole number from 1 to %lld",
                              (long long)WPK_ELEMENTS_MAX);
        return false;
    }
    *out = (int64_t)number->magnitude;
    return true;
}
