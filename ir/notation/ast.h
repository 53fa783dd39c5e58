/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree of a text, in which the types of tensors are not known yet: private to
 * notation_*.c.
 *
 * Nodes are in one array, which owns them, and refer to each other by index. Positions are byte
 * offsets into the text; lines and columns are counted when an error is reported. */
#ifndef WPK_IR_NOTATION_AST_H
#define WPK_IR_NOTATION_AST_H

#include "ir/program.h"

#define WPK_AST_NODES_MAX (3 * WPK_TREE_MAX) /* a literal may be cast(-number) */
#define WPK_AST_DEPTH_MAX 64
#define WPK_AST_EQUATIONS_MAX WPK_STAGES_MAX

enum wpk_ast_kind {
    WPK_AST_NUMBER, /* value, magnitude, is_integer; without a sign */
    WPK_AST_NAME,   /* an axis */
    WPK_AST_LOAD,   /* name[child...] with an optional outside child last */
    WPK_AST_UNARY,  /* op */
    WPK_AST_BINARY, /* op */
    WPK_AST_SELECT,
    WPK_AST_CAST,      /* dtype */
    WPK_AST_REDUCTION, /* reduction, axes, accumulator; child 0 is the body */
    WPK_AST_CALL,      /* enum wpk_ast_call: expanded by wpk_ast_build */
};

enum wpk_ast_call {
    WPK_CALL_RELU,
    WPK_CALL_RELU6,
    WPK_CALL_LEAKY_RELU, /* slope 0.01 */
    WPK_CALL_SILU,
    WPK_CALL_GELU,
    WPK_CALL_HARDSWISH,
    WPK_CALL_COUNT
};

struct wpk_ast_axis {
    char name[WPK_NAME_MAX];
    int64_t extent; /* 0: to be inferred */
    int at;
};

struct wpk_ast_node {
    enum wpk_ast_kind kind;
    int at;               /* byte offset */
    int op;               /* enum wpk_unary, wpk_binary, wpk_reduction or wpk_ast_call */
    enum wpk_dtype dtype; /* of a cast; of a reduction's accumulator if `typed` */
    bool typed;
    bool is_integer;
    double value;
    uint64_t magnitude; /* of an integer, at most 2^63 */
    char name[WPK_NAME_MAX];
    int child[WPK_RANK_MAX + 1];
    int child_count;
    int outside;                            /* of a load: node or -1 */
    struct wpk_ast_axis axis[WPK_RANK_MAX]; /* of a reduction */
    int axis_count;
};

struct wpk_ast_equation {
    char name[WPK_NAME_MAX];
    int at;
    struct wpk_ast_axis axis[WPK_RANK_MAX];
    int axis_count;
    int root;
};

struct wpk_ast {
    const char *text;
    struct wpk_diag *diag;
    struct wpk_ast_node *nodes; /* owned; [node_capacity] */
    int node_count;
    int node_capacity;
    struct wpk_ast_equation equation[WPK_AST_EQUATIONS_MAX];
    int equation_count;
    int line_offset; /* lines of the user's text before `text` */
};

/* Parse the equations of `text`.
 *   owns    caller calls wpk_ast_fini, after a failure too; text and diag are borrowed until then
 *   errors  WPK_EPARSE, WPK_ERANGE, WPK_ENOMEM */
wpk_err wpk_ast_parse(const char *text, int line_offset, struct wpk_ast *out,
                      struct wpk_diag *diag);
void wpk_ast_fini(struct wpk_ast *ast);

/* Report an error at a byte offset; returns `err`. */
wpk_err wpk_ast_fail(const struct wpk_ast *ast, int at, wpk_err err, const char *format, ...)
    WPK_PRINTF(4, 5);

/* Rename axes of reductions. Two reductions side by side may use one name for their axes: those of
 * the later one get names that occur nowhere else. An axis of a reduction inside another one that
 * has its name, or of one that has an equation's axis's name, keeps the name: this is an error. */
void wpk_ast_part_axes(struct wpk_ast *ast);

/* Add the equations as stages to `program`, which has the declared tensors already. `closed`: every
 * equation's tensor is declared (the whole form). Otherwise the first equation's tensor is the
 * output, and the others are intermediates whose types are inferred. */
wpk_err wpk_ast_build(const struct wpk_ast *ast, bool closed, struct wpk_program *program);

#endif
