/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's state and functions, shared by ir/notation/token.c, ir/notation/parse_expr.c and
 * ir/notation/parse.c.
 *
 * The first failure is reported and kept; functions then return -1 or false. Functions that make a
 * node return its index in the syntax tree. */
#ifndef WPK_IR_NOTATION_PARSER_H
#define WPK_IR_NOTATION_PARSER_H

#include "ir/notation/ast.h"

struct wpk_parser {
    struct wpk_ast *ast;
    const char *text;
    int at;    /* the cursor: byte offset of the next token */
    int depth; /* of nesting, at most WPK_AST_DEPTH_MAX */
    wpk_err err;
    char shown[16]; /* the text that wpk_parser_next returns */
};

/* Report an error at byte `at`, or at the cursor, and return -1. */
int wpk_parser_fail_at(struct wpk_parser *p, int at, const char *format, ...) WPK_PRINTF(3, 4);
int wpk_parser_fail(struct wpk_parser *p, const char *format, ...) WPK_PRINTF(2, 3);
/* The same with WPK_ERANGE, for numbers and texts that are too large. */
int wpk_parser_fail_range(struct wpk_parser *p, int at, const char *format, ...) WPK_PRINTF(3, 4);

/* ---- tokens; blanks and comments before them are skipped */

bool wpk_parser_starts_name(char c);
bool wpk_parser_continues_name(char c);
void wpk_parser_skip_space(struct wpk_parser *p);
/* The token at the cursor, for messages: "')'", "the end". */
const char *wpk_parser_next(struct wpk_parser *p);
bool wpk_parser_peek(struct wpk_parser *p, const char *token);
bool wpk_parser_accept(struct wpk_parser *p, const char *token);
bool wpk_parser_expect(struct wpk_parser *p, const char *token);
bool wpk_parser_read_name(struct wpk_parser *p, char *out); /* [WPK_NAME_MAX] */
bool wpk_parser_read_extent(struct wpk_parser *p, int64_t *out);

/* ---- nodes */

int wpk_parser_add_node(struct wpk_parser *p, enum wpk_ast_kind kind, int at);
int wpk_parser_read_number(struct wpk_parser *p);
int wpk_parser_read_named(struct wpk_parser *p); /* axis, load, reduction, call */
int wpk_parser_read_expr(struct wpk_parser *p);
int wpk_parser_read_term(struct wpk_parser *p); /* one multiplicative term, as a reduction takes */

#endif
