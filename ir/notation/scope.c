/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a stage and their extents: written, or taken from a tensor that an axis indexes
 * alone. */
#include "ir/notation/builder.h"

#include <stdio.h>
#include <string.h>

int wpk_builder_fail(struct wpk_builder *b, int at, wpk_err err, const char *what, const char *name)
{
    if (b->err == WPK_OK) {
        b->err = wpk_ast_fail(b->ast, at, err, what, name);
    }
    return -1;
}

int wpk_notation_scope_find(const struct wpk_notation_scope *scope, const char *name)
{
    return WPK_FIND(struct wpk_axis, name, scope->axis, scope->count, name);
}

int wpk_builder_axis(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                     const struct wpk_ast_node *name)
{
    int axis = wpk_notation_scope_find(scope, name->name);
    if (axis < 0) {
        return wpk_builder_fail(b, name->at, WPK_EPARSE, "%s is no axis of this equation",
                                name->name);
    }
    return axis < scope->bound
               ? axis
               : wpk_builder_fail(b, name->at, WPK_EPARSE,
                                  "axis %s is named outside of its reduction", name->name);
}

int wpk_ast_find_equation(const struct wpk_ast *ast, const char *name)
{
    return WPK_FIND(struct wpk_ast_equation, name, ast->equation, ast->equation_count, name);
}

static void add_axis(struct wpk_builder *b, struct wpk_notation_scope *scope,
                     const struct wpk_ast_axis *axis)
{
    if (wpk_notation_scope_find(scope, axis->name) >= 0) {
        wpk_builder_fail(b, axis->at, WPK_EPARSE, "axis %s is named twice", axis->name);
        return;
    }
    if (scope->count == WPK_AXES_MAX) {
        wpk_builder_fail(b, axis->at, WPK_ERANGE, "too many axes at %s", axis->name);
        return;
    }
    struct wpk_axis *to = &scope->axis[scope->count];
    snprintf(to->name, sizeof(to->name), "%s", axis->name);
    to->extent = axis->extent;
    scope->at[scope->count++] = axis->at;
}

static void add_reduction_axes(struct wpk_builder *b, struct wpk_notation_scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    for (int i = 0; i < n->axis_count; i++) {
        add_axis(b, scope, &n->axis[i]);
    }
    for (int i = 0; i < n->child_count; i++) {
        add_reduction_axes(b, scope, n->child[i]);
    }
}

/* ---- reductions side by side */

#define PARTED_MAX                                                                                 \
    (WPK_STAGES_MAX * 6) /* reduction axes of one equation; with more it is refused */

struct parting {
    struct wpk_ast *ast;
    const char *seen[PARTED_MAX]; /* names of the reduction axes met in this equation */
    int seen_count;
};

/* The axes around a node, innermost first. */
struct enclosing {
    const struct wpk_ast_axis *axis;
    int count;
    const struct enclosing *outer;
};

static bool occurs(const struct wpk_ast *ast, const char *name)
{
    bool found = false;
    for (int i = 0; i < ast->node_count && !found; i++) {
        const struct wpk_ast_node *n = &ast->nodes[i];
        found = n->kind == WPK_AST_NAME && strcmp(n->name, name) == 0;
        for (int a = 0; a < n->axis_count && !found; a++) {
            found = strcmp(n->axis[a].name, name) == 0;
        }
    }
    for (int i = 0; i < ast->equation_count && !found; i++) {
        for (int a = 0; a < ast->equation[i].axis_count && !found; a++) {
            found = strcmp(ast->equation[i].axis[a].name, name) == 0;
        }
    }
    return found;
}

static void rename_uses(struct wpk_ast *ast, int node, const char *from, const char *to)
{
    struct wpk_ast_node *n = &ast->nodes[node];
    if (n->kind == WPK_AST_NAME && strcmp(n->name, from) == 0) {
        snprintf(n->name, sizeof(n->name), "%s", to);
    }
    for (int i = 0; i < n->child_count; i++) {
        rename_uses(ast, n->child[i], from, to);
    }
}

static bool is_enclosed(const struct enclosing *around, const char *name)
{
    for (; around != NULL; around = around->outer) {
        for (int a = 0; a < around->count; a++) {
            if (strcmp(around->axis[a].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void part_node(struct parting *p, int node, const struct enclosing *around)
{
    struct wpk_ast_node *n = &p->ast->nodes[node];
    bool twice = false; /* sum(k,k) is wrong, whatever stands beside it */
    for (int a = 0; a < n->axis_count; a++) {
        const struct enclosing before = {n->axis, a, around};
        twice = twice || is_enclosed(&before, n->axis[a].name);
    }
    for (int a = 0; a < n->axis_count && !twice && p->seen_count < PARTED_MAX; a++) {
        struct wpk_ast_axis *axis = &n->axis[a];
        bool seen = false;
        for (int i = 0; i < p->seen_count && !seen; i++) {
            seen = strcmp(p->seen[i], axis->name) == 0;
        }
        if (seen) {
            char fresh[WPK_NAME_MAX];
            for (int i = 2, taken = 1; taken; i++) {
                snprintf(fresh, sizeof(fresh), "%.*s%d", WPK_NAME_MAX - 8, axis->name, i);
                taken = occurs(p->ast, fresh);
            }
            rename_uses(p->ast, p->ast->nodes[node].child[0], axis->name, fresh);
            snprintf(axis->name, sizeof(axis->name), "%s", fresh);
        }
        p->seen[p->seen_count++] = axis->name;
    }
    const struct enclosing inside = {n->axis, n->axis_count, around};
    for (int i = 0; i < n->child_count; i++) {
        part_node(p, n->child[i], &inside);
    }
}

void wpk_ast_part_axes(struct wpk_ast *ast)
{
    for (int i = 0; i < ast->equation_count; i++) {
        struct parting p = {.ast = ast};
        const struct enclosing own = {ast->equation[i].axis, ast->equation[i].axis_count, NULL};
        part_node(&p, ast->equation[i].root, &own);
    }
}

/* ---- extents */

static void learn_extent(struct wpk_builder *b, struct wpk_notation_scope *scope, int axis,
                         int64_t extent, int at)
{
    struct wpk_axis *a = &scope->axis[axis];
    if (a->extent == 0) {
        a->extent = extent;
    } else if (a->extent != extent && b->err == WPK_OK) {
        b->err =
            wpk_ast_fail(b->ast, at, WPK_ERANGE, "axis %s has extent %lld here and %lld before",
                         a->name, (long long)extent, (long long)a->extent);
    }
}

static void wrong_rank(struct wpk_builder *b, int at, int id, int given)
{
    const struct wpk_tensor *tensor = &b->program->tensors[id];
    if (b->err == WPK_OK) {
        b->err = wpk_ast_fail(b->ast, at, WPK_EPARSE, "%s has %d dimensions and is given %d",
                              tensor->name, tensor->rank, given);
    }
}

int wpk_builder_resolve(struct wpk_builder *b, const struct wpk_ast_node *load)
{
    int tensor = wpk_program_find_tensor(b->program, load->name);
    if (tensor < 0) {
        return wpk_builder_fail(b, load->at, WPK_EPARSE,
                                "tensor %s is not declared; declare it among the tensors",
                                load->name);
    }
    if (b->program->tensors[tensor].rank != load->child_count) {
        wrong_rank(b, load->at, tensor, load->child_count);
        return -1;
    }
    b->used[tensor] = true;
    return tensor;
}

static void infer_extents(struct wpk_builder *b, struct wpk_notation_scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    for (int i = 0; i < n->child_count && b->err == WPK_OK; i++) {
        infer_extents(b, scope, n->child[i]);
    }
    if (n->kind != WPK_AST_LOAD || b->err != WPK_OK) {
        return;
    }
    int tensor = wpk_builder_resolve(b, n);
    for (int d = 0; d < n->child_count && tensor >= 0; d++) {
        const struct wpk_ast_node *index = &b->ast->nodes[n->child[d]];
        int axis = index->kind == WPK_AST_NAME ? wpk_notation_scope_find(scope, index->name) : -1;
        /* the whole form states every extent, and reads a tensor with a border in part */
        if (axis >= 0 && (!b->closed || scope->axis[axis].extent == 0)) {
            learn_extent(b, scope, axis, b->program->tensors[tensor].extent[d], index->at);
        }
    }
}

static bool check_extents(struct wpk_builder *b, const struct wpk_notation_scope *scope)
{
    for (int i = 0; i < scope->count && b->err == WPK_OK; i++) {
        if (scope->axis[i].extent == 0) {
            wpk_builder_fail(b, scope->at[i], WPK_EPARSE,
                             "the extent of axis %s cannot be inferred", scope->axis[i].name);
        }
    }
    return b->err == WPK_OK;
}

bool wpk_builder_infer(struct wpk_builder *b, const struct wpk_ast_equation *e, int tensor,
                       struct wpk_notation_scope *scope)
{
    memset(scope, 0, sizeof(*scope));
    for (int i = 0; i < e->axis_count; i++) {
        add_axis(b, scope, &e->axis[i]);
    }
    if (tensor >= 0 && b->program->tensors[tensor].rank != e->axis_count) {
        wrong_rank(b, e->at, tensor, e->axis_count);
    }
    for (int i = 0; i < e->axis_count && tensor >= 0 && b->err == WPK_OK; i++) {
        learn_extent(b, scope, i, b->program->tensors[tensor].extent[i], e->axis[i].at);
    }
    if (b->err == WPK_OK) {
        add_reduction_axes(b, scope, e->root);
        infer_extents(b, scope, e->root);
    }
    return b->err == WPK_OK && check_extents(b, scope);
}
