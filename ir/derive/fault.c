/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/derive.h"

#include "ir/derive/rewrite.h"
#include "ir/node.h"

#include <math.h>

static const char *const fault_names[] = {WPK_FAULT_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_fault_name, enum wpk_fault, fault_names)

static int neutral_of(struct wpk_program *program, const struct wpk_stage *stage)
{
    enum wpk_dtype dtype = program->nodes[stage->expr].dtype;
    bool is_max = stage->reduction == WPK_REDUCE_MAX;
    double value = stage->reduction == WPK_REDUCE_PROD ? 1 : 0;
    if (wpk_dtype_is_float(dtype)) {
        bool ordered = is_max || stage->reduction == WPK_REDUCE_MIN;
        double end = is_max ? -(double)INFINITY : (double)INFINITY;
        return wpk_node_real(program, dtype, ordered ? end : value);
    }
    int64_t low = (int64_t)value;
    int64_t high = (int64_t)value;
    if (is_max || stage->reduction == WPK_REDUCE_MIN) {
        wpk_dtype_integer_range(dtype, &low, &high);
    }
    return wpk_node_cast(program, dtype, wpk_node_int(program, is_max ? low : high));
}

/* Build the condition that all reduction axes are at their first, or last, element. */
static int is_term(struct wpk_program *program, const struct wpk_stage *stage, bool last)
{
    int all = -1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        int64_t at = last ? stage->axes[a].extent - 1 : 0;
        int here = wpk_node_binary(program, WPK_BINARY_EQ, wpk_node_axis(program, a),
                                   wpk_node_int(program, at));
        all = all < 0 ? here : wpk_node_binary(program, WPK_BINARY_AND, all, here);
    }
    return all;
}

static bool has_terms(const struct wpk_stage *stage)
{
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (stage->axes[a].extent > 1) {
            return true;
        }
    }
    return false;
}

static int pass_operand(struct wpk_program *program, const struct wpk_stage *stage)
{
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    bool bare = program->nodes[stage->expr].kind == WPK_NODE_LOAD;
    return count == 0 || bare ? -1
                              : wpk_node_cast(program, program->nodes[stage->expr].dtype, loads[0]);
}

static int shift_axis(struct wpk_program *program, const struct wpk_stage *stage, int axis)
{
    int map[WPK_AXES_MAX];
    for (int a = 0; a < stage->axis_count; a++) {
        map[a] = wpk_node_axis(program, a);
    }
    map[axis] = wpk_index_mod(program, wpk_index_add_constant(program, map[axis], 1),
                              stage->axes[axis].extent);
    return wpk_rewrite_expr(program, stage->expr, map, -1, NULL, NULL);
}

static bool can_have(const struct wpk_program *program, const struct wpk_stage *stage,
                     enum wpk_fault fault, int axis)
{
    if (fault != WPK_FAULT_NEIGHBOUR && axis > 0) {
        return false;
    }
    switch (fault) {
    case WPK_FAULT_NEIGHBOUR:
        return axis < stage->rank && stage->axes[axis].extent > 1;
    case WPK_FAULT_IDENTITY:
        return stage->reduction == WPK_REDUCE_NONE
                   ? program->nodes[stage->expr].kind != WPK_NODE_LOAD
                   : has_terms(stage);
    default:
        return stage->reduction != WPK_REDUCE_NONE && has_terms(stage);
    }
}

wpk_err wpk_fault_make(const struct wpk_program *program, int index, enum wpk_fault fault, int axis,
                       struct wpk_program *out)
{
    WPK_ASSERT(index < program->stage_count);
    if (!can_have(program, &program->stages[index], fault, axis)) {
        return WPK_ENOENT;
    }
    struct wpk_program faulty;
    wpk_err err = wpk_program_copy(program, &faulty);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_stage *stage = &faulty.stages[index];
    int expr = -1;
    if (fault == WPK_FAULT_NEIGHBOUR) {
        expr = shift_axis(&faulty, stage, axis);
    } else if (fault != WPK_FAULT_IDENTITY) {
        bool last = fault == WPK_FAULT_LAST;
        expr = wpk_node_select(&faulty, is_term(&faulty, stage, last), neutral_of(&faulty, stage),
                               stage->expr);
    } else {
        expr = stage->reduction == WPK_REDUCE_NONE
                   ? pass_operand(&faulty, stage)
                   : wpk_node_select(&faulty, is_term(&faulty, stage, false), stage->expr,
                                     neutral_of(&faulty, stage));
    }
    if (expr < 0) {
        err = faulty.full ? wpk_program_full_error(&faulty) : WPK_ENOENT;
        wpk_program_fini(&faulty);
        return err;
    }
    stage->expr = expr;
    *out = faulty;
    return WPK_OK;
}
