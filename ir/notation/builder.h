/* SPDX-License-Identifier: Apache-2.0 */
/* From a syntax tree to a program: state and functions shared by ir/notation/scope.c,
 * ir/notation/expr.c and ir/notation/build.c, each of which calls only those before it.
 *
 * The first error is reported and kept; every function then returns -1 or false. */
#ifndef WPK_IR_NOTATION_BUILDER_H
#define WPK_IR_NOTATION_BUILDER_H

#include "ir/notation/ast.h"

/* The axes of the stage being built: output axes, then reduction axes. After these come the axes of
 * other reductions inside or beside it, which only those reductions may name. */
struct wpk_notation_scope {
    struct wpk_axis axis[WPK_AXES_MAX];
    int at[WPK_AXES_MAX]; /* byte offset of each name, for errors */
    int count;
    int bound; /* the first `bound` axes are the stage's own */
};

struct wpk_builder {
    const struct wpk_ast *ast;
    struct wpk_program *program;
    bool closed;
    int state[WPK_AST_EQUATIONS_MAX]; /* 0 not built, 1 being built, 2 built */
    bool used[WPK_TENSORS_MAX];
    const char *current; /* the equation's tensor, with which made-up names begin */
    wpk_err err;
};

/* Report an error and return -1. `what` is a format with one %s for `name`. */
int wpk_builder_fail(struct wpk_builder *b, int at, wpk_err err, const char *what,
                     const char *name);

/* ---- ir/notation/scope.c */

int wpk_notation_scope_find(const struct wpk_notation_scope *scope,
                            const char *name); /* -1: none */
/* The stage's own axis that an expression names; -1 with an error when there is none. */
int wpk_builder_axis(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                     const struct wpk_ast_node *name);
int wpk_ast_find_equation(const struct wpk_ast *ast, const char *name); /* -1: none */
/* The tensor that a load names, whose equation has been built. */
int wpk_builder_resolve(struct wpk_builder *b, const struct wpk_ast_node *load);
/* Fill `scope` with the axes of an equation, inferring their extents. `tensor`: the one that the
 * equation writes, or -1 when it is not declared. */
bool wpk_builder_infer(struct wpk_builder *b, const struct wpk_ast_equation *e, int tensor,
                       struct wpk_notation_scope *scope);

/* ---- ir/notation/expr.c; `wanted` is the type a bare number takes */

int wpk_builder_expr(struct wpk_builder *b, const struct wpk_notation_scope *scope, int node,
                     enum wpk_dtype wanted);

/* Complete a stage that reduces: its reduction axes, body and accumulator. */
bool wpk_builder_reduction(struct wpk_builder *b, struct wpk_notation_scope *scope, int stage,
                           const struct wpk_ast_node *n, enum wpk_dtype wanted, int *tensor_dtype);

#endif
