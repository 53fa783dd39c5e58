/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of program.h, checked where programs come in and after each derivation. */
#include "ir/data_index.h"
#include "ir/node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX                                                                                 \
    ((int64_t)1 << 60) /* of one stage, reduction included: counters do not overflow */

struct check {
    const struct wpk_program *program;
    struct wpk_diag *diag;
    bool written[WPK_TENSORS_MAX];
    unsigned char
        *seen; /* [node_count] of the stage: keeps a shared node from being checked twice */
};

#define FAIL(...) (wpk_diag_set(check->diag, __VA_ARGS__), WPK_EINVAL)

static bool is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name != '\0' && strchr(first, *name) != NULL && strspn(name, rest) == strlen(name);
}

static wpk_err check_tensor(const struct check *check, int id)
{
    const struct wpk_tensor *tensor = &check->program->tensors[id];
    int64_t count = 1;
    if (!is_name(tensor->name)) {
        return FAIL("'%s' is no name of a tensor", tensor->name);
    }
    if (wpk_program_find_tensor(check->program, tensor->name) != id) {
        return FAIL("two tensors are called %s", tensor->name);
    }
    if ((unsigned)tensor->dtype >= WPK_DTYPE_COUNT || (unsigned)tensor->role > WPK_ROLE_LITERAL) {
        return FAIL("tensor %s has no such type or role", tensor->name);
    }
    for (int d = 0; d < tensor->rank; d++) {
        int64_t before = tensor->pad_before[d], after = tensor->pad_after[d];
        if (tensor->extent[d] < 1 || before < 0 || after < 0 ||
            tensor->extent[d] > WPK_ELEMENTS_MAX || before > WPK_ELEMENTS_MAX ||
            after > WPK_ELEMENTS_MAX ||
            before + tensor->extent[d] + after > WPK_ELEMENTS_MAX / count) {
            return FAIL("tensor %s is empty, negative or too large in dimension %d", tensor->name,
                        d);
        }
        count *= before + tensor->extent[d] + after;
    }
    if ((tensor->role == WPK_ROLE_LITERAL) != (tensor->values != NULL)) {
        return FAIL("only literals have values: %s", tensor->name);
    }
    return WPK_OK;
}

/* ---- nodes */

static bool is_child(int child, int parent)
{
    return child >= 0 && child < parent;
}

static wpk_err check_load(const struct check *check, const struct wpk_stage *stage, int id);

/* An index that is data, perhaps cast to i64, is an integer that is given. */
static wpk_err check_data(const struct check *check, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *node = &check->program->nodes[id];
    bool casts = node->kind == WPK_NODE_CAST;
    int data = casts ? node->arg[0] : id;
    const struct wpk_node *load = is_child(data, id + 1) ? &check->program->nodes[data] : node;
    if (load->kind != WPK_NODE_LOAD || wpk_dtype_is_float(load->dtype) || load->dtype == WPK_BOOL) {
        return FAIL("an index is made of axes, literals, integers of tensors and + - * / %% only");
    }
    wpk_err err = check_load(check, stage, data);
    if (err == WPK_OK && check->written[load->tensor]) {
        return FAIL("an index is read from %s, which the program computes",
                    check->program->tensors[load->tensor].name);
    }
    return err;
}

static wpk_err check_index(const struct check *check, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *node = &check->program->nodes[id];
    if (node->dtype != WPK_I64) {
        return FAIL("an index is of type %s instead of i64", wpk_dtype_name(node->dtype));
    }
    if (node->kind == WPK_NODE_LITERAL) {
        return WPK_OK;
    }
    if (node->kind == WPK_NODE_AXIS) {
        return node->axis >= 0 && node->axis < stage->axis_count
                   ? WPK_OK
                   : FAIL("an index names axis %d of %d", node->axis, stage->axis_count);
    }
    if (node->kind != WPK_NODE_BINARY || node->op > WPK_BINARY_MOD || node->op < 0) {
        return check_data(check, stage, id);
    }
    if (!is_child(node->arg[0], id) || !is_child(node->arg[1], id)) {
        return FAIL("node %d has no such operand", id);
    }
    if (node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD) {
        const struct wpk_node *divisor = &check->program->nodes[node->arg[1]];
        if (divisor->kind != WPK_NODE_LITERAL || divisor->integer < 1) {
            return FAIL("an index is divided by something else than a positive literal");
        }
    }
    wpk_err err = check_index(check, stage, node->arg[0]);
    return err != WPK_OK ? err : check_index(check, stage, node->arg[1]);
}

static wpk_err check_inside(const struct check *check, const struct wpk_stage *stage,
                            const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &check->program->tensors[load->tensor];
    for (int d = 0; d < tensor->rank && load->outside < 0; d++) {
        struct wpk_affine affine;
        int64_t low, high;
        if (!wpk_index_affine(check->program, load->index[d], &affine) &&
            !wpk_index_is_data(check->program, load->index[d])) {
            continue; /* the range is a bound only: whoever built the load knows better */
        }
        wpk_index_range(check->program, stage, load->index[d], &low, &high);
        if (low < -tensor->pad_before[d] || high >= tensor->extent[d] + tensor->pad_after[d]) {
            return FAIL("a load leaves %s in dimension %d and has no value for outside",
                        tensor->name, d);
        }
    }
    return WPK_OK;
}

static wpk_err check_load(const struct check *check, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *load = &check->program->nodes[id];
    if (load->tensor < 0 || load->tensor >= check->program->tensor_count) {
        return FAIL("node %d loads no tensor", id);
    }
    const struct wpk_tensor *tensor = &check->program->tensors[load->tensor];
    bool computed = tensor->role == WPK_ROLE_INTERMEDIATE || tensor->role == WPK_ROLE_OUTPUT;
    if (computed && !check->written[load->tensor]) {
        return FAIL("%s is read before it is written", tensor->name);
    }
    if (load->dtype != tensor->dtype) {
        return FAIL("a load from %s is of type %s", tensor->name, wpk_dtype_name(load->dtype));
    }
    for (int d = 0; d < tensor->rank; d++) {
        if (!is_child(load->index[d], id)) {
            return FAIL("node %d has no such index", id);
        }
        wpk_err err = check_index(check, stage, load->index[d]);
        if (err != WPK_OK) {
            return err;
        }
    }
    if (load->outside >= 0 &&
        (!is_child(load->outside, id) || !wpk_node_is_literal(check->program, load->outside) ||
         check->program->nodes[load->outside].dtype != load->dtype)) {
        return FAIL("what is read outside of %s is not a literal of its type", tensor->name);
    }
    return check_inside(check, stage, load);
}

static wpk_err check_types(const struct check *check, const struct wpk_node *node)
{
    const struct wpk_node *nodes = check->program->nodes;
    enum wpk_dtype first = nodes[node->arg[0]].dtype;
    bool asks = node->kind == WPK_NODE_UNARY && wpk_unary_asks((enum wpk_unary)node->op);
    if (node->kind == WPK_NODE_UNARY &&
        (asks ? !wpk_dtype_is_float(first) || node->dtype != WPK_BOOL : first != node->dtype)) {
        return FAIL("a function of a %s is of type %s", wpk_dtype_name(first),
                    wpk_dtype_name(node->dtype));
    }
    if (node->kind == WPK_NODE_BINARY) {
        enum wpk_dtype expected = node->op >= WPK_BINARY_LT ? WPK_BOOL : first;
        if (first != nodes[node->arg[1]].dtype || node->dtype != expected) {
            return FAIL("the operands of an operation differ in type");
        }
    }
    if (node->kind == WPK_NODE_SELECT &&
        (first != WPK_BOOL || nodes[node->arg[1]].dtype != node->dtype ||
         nodes[node->arg[2]].dtype != node->dtype)) {
        return FAIL("the arms of a selection differ in type, or its condition is not bool");
    }
    return WPK_OK;
}

/* Accept only functions and casts that a back end implements: see expand.h. */
static wpk_err check_primitive(const struct check *check, const struct wpk_node *node)
{
    const struct wpk_node *operand = node->arg[0] < 0 ? node : &check->program->nodes[node->arg[0]];
    bool derived = node->op == WPK_UNARY_RSQRT || node->op == WPK_UNARY_TANH ||
                   node->op == WPK_UNARY_ERF || node->op == WPK_UNARY_SIGMOID ||
                   wpk_unary_asks((enum wpk_unary)node->op);
    if (node->kind == WPK_NODE_UNARY && derived) {
        return FAIL("an expanded program has a function that is not primitive");
    }
    if (node->kind == WPK_NODE_CAST && wpk_dtype_is_float(operand->dtype) &&
        !wpk_dtype_is_float(node->dtype) && node->dtype != WPK_BOOL &&
        (operand->kind != WPK_NODE_UNARY || !wpk_unary_makes_whole(operand->op))) {
        return FAIL("an expanded program casts a number to an integer that is not rounded");
    }
    return WPK_OK;
}

static wpk_err check_node(const struct check *check, const struct wpk_stage *stage, int id)
{
    const struct wpk_node *node = &check->program->nodes[id];
    int arg_count = 0;
    if (check->seen[id]) {
        return WPK_OK;
    }
    check->seen[id] = 1;
    if ((unsigned)node->dtype >= WPK_DTYPE_COUNT) {
        return FAIL("node %d has no type", id);
    }
    bool operates = node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_BINARY;
    if (node->strict && !(check->program->expanded && operates)) {
        return FAIL("only operations of an expanded program are strict");
    }
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return wpk_dtype_is_float(node->dtype) && isnan(node->value) ? FAIL("a literal is NaN")
                                                                     : WPK_OK;
    case WPK_NODE_AXIS:
        return check_index(check, stage, id);
    case WPK_NODE_LOAD:
        return check_load(check, stage, id);
    case WPK_NODE_UNARY:
        arg_count = node->op >= 0 && node->op < WPK_UNARY_COUNT ? 1 : 0;
        break;
    case WPK_NODE_CAST:
        arg_count = 1;
        break;
    case WPK_NODE_BINARY:
        arg_count = node->op >= 0 && node->op < WPK_BINARY_COUNT ? 2 : 0;
        break;
    case WPK_NODE_SELECT:
        arg_count = 3;
        break;
    }
    if (arg_count == 0) {
        return FAIL("node %d is of no known kind", id);
    }
    for (int i = 0; i < arg_count; i++) {
        if (!is_child(node->arg[i], id)) {
            return FAIL("node %d has no such operand", id);
        }
        wpk_err err = check_node(check, stage, node->arg[i]);
        if (err != WPK_OK) {
            return err;
        }
    }
    wpk_err err = check_types(check, node);
    return err == WPK_OK && check->program->expanded ? check_primitive(check, node) : err;
}

/* ---- stages */

static wpk_err check_axes(const struct check *check, const struct wpk_stage *stage)
{
    const struct wpk_tensor *output = &check->program->tensors[stage->output];
    int64_t points = 1;
    if (stage->rank != output->rank || stage->axis_count < stage->rank ||
        stage->axis_count > WPK_AXES_MAX) {
        return FAIL("the stage of %s has not its rank", output->name);
    }
    if ((stage->axis_count > stage->rank) != (stage->reduction != WPK_REDUCE_NONE)) {
        return FAIL("the stage of %s has reduction axes without a reduction, or the reverse",
                    output->name);
    }
    for (int a = 0; a < stage->axis_count; a++) {
        const struct wpk_axis *axis = &stage->axes[a];
        if (!is_name(axis->name)) {
            return FAIL("'%s' is no name of an axis of %s", axis->name, output->name);
        }
        for (int b = 0; b < a; b++) {
            if (strcmp(axis->name, stage->axes[b].name) == 0) {
                return FAIL("two axes of %s are called %s", output->name, axis->name);
            }
        }
        if (a < stage->rank && axis->extent != output->extent[a]) {
            return FAIL("axis %s and dimension %d of %s differ in extent", axis->name, a,
                        output->name);
        }
        if (axis->extent < 1 || axis->extent > POINTS_MAX / points) {
            return FAIL("axis %s of %s is empty or too long", axis->name, output->name);
        }
        points *= axis->extent;
    }
    return WPK_OK;
}

static wpk_err check_reduction(const struct check *check, const struct wpk_stage *stage)
{
    const struct wpk_program *program = check->program;
    const struct wpk_tensor *output = &program->tensors[stage->output];
    bool starts = is_child(stage->identity, program->node_count) &&
                  wpk_node_is_literal(program, stage->identity) &&
                  program->nodes[stage->identity].dtype == stage->accumulator;
    if (stage->reduction != WPK_REDUCE_NONE && !starts) {
        return FAIL("the reduction of %s does not start from a literal of its type", output->name);
    }
    return stage->accumulator == output->dtype
               ? WPK_OK
               : FAIL("the reduction of %s and its output differ in type", output->name);
}

static wpk_err check_stage(struct check *check, const struct wpk_stage *stage)
{
    const struct wpk_program *program = check->program;
    memset(check->seen, 0, (size_t)program->node_count);
    if (stage->output < 0 || stage->output >= program->tensor_count) {
        return FAIL("a stage writes no tensor");
    }
    const struct wpk_tensor *output = &program->tensors[stage->output];
    if (output->role != WPK_ROLE_INTERMEDIATE && output->role != WPK_ROLE_OUTPUT) {
        return FAIL("%s is given and computed", output->name);
    }
    if (check->written[stage->output]) {
        return FAIL("two stages write %s", output->name);
    }
    wpk_err err = check_axes(check, stage);
    if (err != WPK_OK) {
        return err;
    }
    if (stage->expr < 0 || stage->expr >= program->node_count) {
        return FAIL("the stage of %s has no expression", output->name);
    }
    err = check_node(check, stage, stage->expr);
    if (err == WPK_OK && program->expanded) {
        err = check_reduction(check, stage);
    }
    if (err != WPK_OK) {
        return err;
    }
    enum wpk_dtype dtype = stage->reduction == WPK_REDUCE_NONE ? output->dtype : stage->accumulator;
    if (program->nodes[stage->expr].dtype != dtype) {
        return FAIL("the expression of %s is of type %s instead of %s", output->name,
                    wpk_dtype_name(program->nodes[stage->expr].dtype), wpk_dtype_name(dtype));
    }
    check->written[stage->output] = true;
    return WPK_OK;
}

/* Sharing makes gelu(gelu(gelu(...))) small as nodes and endless as text, or for whoever walks it:
 * each level doubles it. Nodes that no stage needs any more may be anything. */
static wpk_err check_size(const struct check *check)
{
    const struct wpk_program *program = check->program;
    int size[WPK_NODES_MAX], total = 0;
    if (program->expanded) {
        return WPK_OK;
    }
    for (int id = 0; id < program->node_count; id++) {
        const struct wpk_node *node = &program->nodes[id];
        size[id] = 1;
        for (int i = 0; i < 3 && node->kind != WPK_NODE_LOAD; i++) {
            size[id] += is_child(node->arg[i], id) ? size[node->arg[i]] : 0;
        }
        bool loads = node->kind == WPK_NODE_LOAD && node->tensor < program->tensor_count;
        for (int d = 0; loads && d < program->tensors[node->tensor].rank; d++) {
            size[id] += is_child(node->index[d], id) ? size[node->index[d]] : 0;
        }
        size[id] = size[id] < WPK_TREE_MAX ? size[id] : WPK_TREE_MAX;
    }
    for (int s = 0; s < program->stage_count; s++) {
        total += size[program->stages[s].expr];
    }
    if (total >= WPK_TREE_MAX) {
        return wpk_fail(check->diag, WPK_ENOSPC,
                        "written out, the expressions have more than %d parts", WPK_TREE_MAX);
    }
    return WPK_OK;
}

static wpk_err check_all(struct check *check)
{
    const struct wpk_program *program = check->program;
    for (int t = 0; t < program->tensor_count; t++) {
        wpk_err err = check_tensor(check, t);
        if (err != WPK_OK) {
            return err;
        }
    }
    for (int s = 0; s < program->stage_count; s++) {
        wpk_err err = check_stage(check, &program->stages[s]);
        if (err != WPK_OK) {
            return err;
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &check->program->tensors[t];
        bool computed = tensor->role == WPK_ROLE_INTERMEDIATE || tensor->role == WPK_ROLE_OUTPUT;
        if (computed && !check->written[t]) {
            return FAIL("no stage writes %s", tensor->name);
        }
    }
    return check_size(check);
}

wpk_err wpk_program_validate(const struct wpk_program *program, struct wpk_diag *diag)
{
    struct check checking = {.program = program, .diag = diag};
    struct check *check = &checking;
    if (program->full) {
        wpk_diag_set(diag, program->starved ? "memory ran out" : "the program is too large");
        return wpk_program_full_error(program);
    }
    if (program->stage_count < 1) {
        return FAIL("a program without stages");
    }
    check->seen = malloc((size_t)program->node_count + 1);
    if (check->seen == NULL) {
        return wpk_fail(diag, WPK_ENOMEM, "memory ran out");
    }
    wpk_err err = check_all(check);
    free(check->seen);
    return err;
}
