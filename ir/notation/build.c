/* SPDX-License-Identifier: Apache-2.0 */
/* From a syntax tree to stages, in the order in which the equations depend on each other. */
#include "ir/notation/builder.h"

#include "ir/node.h"

#include <stdlib.h>
#include <string.h>

/* ---- equations */

static int add_intermediate(struct wpk_builder *b, const struct wpk_ast_equation *e,
                            const struct wpk_notation_scope *scope)
{
    int64_t extent[WPK_RANK_MAX];
    for (int i = 0; i < e->axis_count; i++) {
        extent[i] = scope->axis[i].extent;
    }
    int tensor = wpk_program_add_tensor(b->program, e->name, WPK_ROLE_INTERMEDIATE, WPK_F32,
                                        e->axis_count, extent);
    return tensor < 0 ? wpk_builder_fail(b, e->at, WPK_ERANGE, "too many tensors at %s", e->name)
                      : tensor;
}

static int build_stage(struct wpk_builder *b, const struct wpk_ast_equation *e, int tensor,
                       struct wpk_notation_scope *scope, bool inferred)
{
    const char *names[WPK_RANK_MAX];
    const struct wpk_ast_node *root = &b->ast->nodes[e->root];
    for (int i = 0; i < e->axis_count; i++) {
        names[i] = e->axis[i].name;
    }
    int stage = wpk_program_add_stage(b->program, tensor, names), dtype = WPK_F32;
    if (stage < 0) {
        return wpk_builder_fail(b, e->at, WPK_ERANGE, "too many stages at %s", e->name);
    }
    enum wpk_dtype wanted = inferred ? WPK_F32 : b->program->tensors[tensor].dtype;
    if (root->kind == WPK_AST_REDUCTION) {
        if (!wpk_builder_reduction(b, scope, stage, root, wanted, &dtype)) {
            return -1;
        }
    } else {
        struct wpk_notation_scope own = *scope;
        own.bound = e->axis_count;
        int expr = wpk_builder_expr(b, &own, e->root, wpk_dtype_wide(wanted));
        if (expr < 0) {
            return -1;
        }
        dtype = (int)b->program->nodes[expr].dtype;
        b->program->stages[stage].expr = inferred ? expr : wpk_node_cast(b->program, wanted, expr);
    }
    if (inferred) {
        b->program->tensors[tensor].dtype = (enum wpk_dtype)dtype;
    }
    return b->program->stages[stage].expr < 0 ? -1 : stage;
}

static int build_equation(struct wpk_builder *b, int id);

/* The equations that the node reads and that are not built yet. */
static bool build_what_it_reads(struct wpk_builder *b, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    for (int i = 0; i < n->child_count; i++) {
        if (!build_what_it_reads(b, n->child[i])) {
            return false;
        }
    }
    int id = n->kind == WPK_AST_LOAD ? wpk_ast_find_equation(b->ast, n->name) : -1;
    return id < 0 || b->state[id] == 2 || build_equation(b, id) >= 0;
}

static int build_equation(struct wpk_builder *b, int id)
{
    const struct wpk_ast_equation *e = &b->ast->equation[id];
    struct wpk_notation_scope scope;
    if (b->state[id] == 1) {
        return wpk_builder_fail(b, e->at, WPK_EPARSE, "%s is defined by itself", e->name);
    }
    b->state[id] = 1;
    int tensor = wpk_program_find_tensor(b->program, e->name);
    if (tensor >= 0 && wpk_program_writer(b->program, tensor) >= 0) {
        return wpk_builder_fail(b, e->at, WPK_EPARSE, "%s is defined twice", e->name);
    }
    if (tensor >= 0 && b->program->tensors[tensor].role != WPK_ROLE_OUTPUT &&
        b->program->tensors[tensor].role != WPK_ROLE_INTERMEDIATE) {
        return wpk_builder_fail(b, e->at, WPK_EPARSE, "%s is an input and cannot be assigned",
                                e->name);
    }
    if (tensor < 0 && (b->closed || id == 0)) {
        return wpk_builder_fail(b, e->at, WPK_EPARSE,
                                "the type of %s is not declared; declare it among the tensors",
                                e->name);
    }
    const char *outer = b->current;
    b->current = e->name;
    bool inferred = tensor < 0;
    if (!build_what_it_reads(b, e->root) || !wpk_builder_infer(b, e, tensor, &scope)) {
        return -1;
    }
    if (inferred) {
        tensor = add_intermediate(b, e, &scope);
    }
    int stage = tensor < 0 ? -1 : build_stage(b, e, tensor, &scope, inferred);
    b->current = outer;
    b->state[id] = 2;
    return stage;
}

static void check_duplicates(struct wpk_builder *b)
{
    for (int i = 0; i < b->ast->equation_count; i++) {
        if (wpk_ast_find_equation(b->ast, b->ast->equation[i].name) != i) {
            wpk_builder_fail(b, b->ast->equation[i].at, WPK_EPARSE, "%s is defined twice",
                             b->ast->equation[i].name);
        }
    }
}

/* Stages were added outermost first where one holds another: put writers before readers. */
static bool reads(const struct wpk_program *program, const struct wpk_stage *stage, int tensor)
{
    int loads[WPK_NODES_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_NODES_MAX);
    for (int i = 0; i < count; i++) {
        if (program->nodes[loads[i]].tensor == tensor) {
            return true;
        }
    }
    return false;
}

static void sort_stages(struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        for (int t = s + 1; t < program->stage_count; t++) {
            if (reads(program, &program->stages[s], program->stages[t].output)) {
                struct wpk_stage later = program->stages[t];
                memmove(&program->stages[s + 1], &program->stages[s],
                        (size_t)(t - s) * sizeof(later));
                program->stages[s] = later;
                s--;
                break;
            }
        }
    }
}

wpk_err wpk_ast_build(const struct wpk_ast *ast, bool closed, struct wpk_program *program)
{
    struct wpk_builder *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return WPK_ENOMEM;
    }
    b->ast = ast;
    b->program = program;
    b->closed = closed;
    b->current = ast->equation[0].name;
    check_duplicates(b);
    for (int i = 0; i < ast->equation_count && b->err == WPK_OK; i++) {
        if (b->state[i] != 2) {
            (void)build_equation(b, i);
        }
    }
    for (int t = 0; t < program->tensor_count && b->err == WPK_OK; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        /* the whole form may hold what folding has made useless */
        if (!b->used[t] && !b->closed && tensor->role != WPK_ROLE_OUTPUT) {
            wpk_builder_fail(b, 0, WPK_EPARSE, "tensor %s is not used", tensor->name);
        } else if (tensor->role == WPK_ROLE_OUTPUT && wpk_program_writer(program, t) < 0) {
            wpk_builder_fail(b, 0, WPK_EPARSE, "tensor %s is not computed", tensor->name);
        }
    }
    if (b->err == WPK_OK) {
        sort_stages(program);
    }
    wpk_err err = b->err;
    free(b);
    return err;
}
