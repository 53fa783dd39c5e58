/* SPDX-License-Identifier: Apache-2.0 */
#include "search/reuse.h"

#include "ir/derive/rewriting.h"

#include <stdlib.h>
#include <string.h>

#define BORDER_POINTS_MAX 256 /* 16 outputs of 16 taps */

static bool is_product(const struct wpk_program *program, const struct wpk_stage *stage)
{
    int node = stage->expr;
    while (program->nodes[node].kind == WPK_NODE_CAST) {
        node = program->nodes[node].arg[0];
    }
    return stage->reduction == WPK_REDUCE_SUM && program->nodes[node].kind == WPK_NODE_BINARY &&
           program->nodes[node].op == WPK_BINARY_MUL;
}

/* A contraction that reads 0 outside of a bare dimension: with the axes of that index unrolled,
 * the multiplications by those zeros fold away. Such axes count as literal ones, unless there are
 * too many points to unroll. */
static void mark_border_axes(const struct wpk_program *program, const struct wpk_stage *stage,
                             bool *literal)
{
    bool border[WPK_AXES_MAX] = {false};
    int64_t points = 1;
    int loads[WPK_LOADS_MAX];
    int count =
        is_product(program, stage) ? wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX) : 0;
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        bool zero = wpk_load_is_zero_outside(program, load);
        for (int d = 0; d < program->tensors[load->tensor].rank && zero; d++) {
            const struct wpk_tensor *tensor = &program->tensors[load->tensor];
            int64_t low = 0, high = 0;
            struct wpk_affine affine;
            wpk_index_range(program, stage, load->index[d], &low, &high);
            if ((low >= -tensor->pad_before[d] &&
                 high < tensor->extent[d] + tensor->pad_after[d]) ||
                !wpk_index_affine(program, load->index[d], &affine)) {
                continue;
            }
            for (int a = 0; a < stage->axis_count; a++) {
                border[a] = border[a] || (affine.coefficient[a] != 0 &&
                                          stage->axes[a].extent <= WPK_BORDER_EXTENT_MAX);
            }
        }
    }
    for (int a = 0; a < stage->axis_count; a++) {
        points *= border[a] ? stage->axes[a].extent : 1;
    }
    for (int a = 0; a < stage->axis_count && points <= BORDER_POINTS_MAX; a++) {
        literal[a] = literal[a] || border[a];
    }
}

bool wpk_reuse_mark_tables(const struct wpk_program *program, const struct wpk_stage *stage,
                           bool *literal)
{
    bool found = false;
    memset(literal, 0, WPK_AXES_MAX * sizeof(*literal));
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        if (program->tensors[load.node->tensor].role != WPK_ROLE_LITERAL) {
            continue;
        }
        found = true;
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            int axis = wpk_index_axis(program, load.node->index[d]);
            if (axis >= 0) {
                literal[axis] = true;
            }
        }
    }
    return found;
}

void wpk_reuse_mark_literal(const struct wpk_program *program, const struct wpk_stage *stage,
                            bool *literal)
{
    (void)wpk_reuse_mark_tables(program, stage, literal);
    mark_border_axes(program, stage, literal);
}

double wpk_reuse_inside(const struct wpk_program *program, const struct wpk_stage *stage,
                        const bool *literal)
{
    double share = 1;
    int loads[WPK_LOADS_MAX];
    int count =
        is_product(program, stage) ? wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX) : 0;
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        const struct wpk_tensor *tensor = &program->tensors[load->tensor];
        bool zero = wpk_load_is_zero_outside(program, load);
        for (int d = 0; d < tensor->rank && zero; d++) {
            bool used[WPK_AXES_MAX] = {false}, unrolled = true;
            (void)wpk_reuse_mark_index(program, load->index[d], used);
            for (int a = 0; a < stage->axis_count; a++) {
                unrolled = unrolled && (!used[a] || literal[a]);
            }
            share *= unrolled
                         ? wpk_index_share(program, stage, load->index[d], -tensor->pad_before[d],
                                           tensor->extent[d] + tensor->pad_after[d])
                         : 1;
        }
    }
    return share;
}

int wpk_reuse_mark_index(const struct wpk_program *program, int node, bool *used)
{
    const struct wpk_node *n = &program->nodes[node];
    int count = 0;
    if (n->kind == WPK_NODE_AXIS) {
        count = !used[n->axis];
        used[n->axis] = true;
    } else if (n->kind == WPK_NODE_BINARY) {
        count = wpk_reuse_mark_index(program, n->arg[0], used) +
                wpk_reuse_mark_index(program, n->arg[1], used);
    } else if (n->kind == WPK_NODE_CAST) {
        count = wpk_reuse_mark_index(program, n->arg[0], used);
    }
    for (int d = 0; n->kind == WPK_NODE_LOAD && d < program->tensors[n->tensor].rank; d++) {
        count += wpk_reuse_mark_index(program, n->index[d], used);
    }
    return count;
}

/* True if two points of the axes may give the same index. They do not if, from the smallest
 * coefficient up, each exceeds all that the smaller ones reach together: a number written in a
 * mixed radix. */
static bool overlaps(const struct wpk_program *program, const struct wpk_stage *stage, int index)
{
    struct wpk_affine affine;
    bool taken[WPK_AXES_MAX] = {false};
    int64_t span = 0;
    if (!wpk_index_affine(program, index, &affine)) {
        return true;
    }
    for (;;) {
        int next = -1;
        for (int a = 0; a < stage->axis_count; a++) {
            if (!taken[a] && affine.coefficient[a] != 0 && stage->axes[a].extent > 1 &&
                (next < 0 || llabs(affine.coefficient[a]) < llabs(affine.coefficient[next]))) {
                next = a;
            }
        }
        if (next < 0) {
            return false;
        }
        int64_t coefficient = llabs(affine.coefficient[next]);
        if (coefficient <= span) {
            return true;
        }
        span += coefficient * (stage->axes[next].extent - 1);
        taken[next] = true;
    }
}

/* Marks the axes that the load's indices do not depend on, those of literals and of extent 1 left
 * out; false when some index overlaps itself. */
static bool find_lacking(const struct wpk_program *program, const struct wpk_stage *stage, int load,
                         const bool *literal, bool *lacking)
{
    const struct wpk_node *node = &program->nodes[load];
    bool used[WPK_AXES_MAX] = {false};
    for (int d = 0; d < program->tensors[node->tensor].rank; d++) {
        bool here[WPK_AXES_MAX] = {false};
        if (wpk_reuse_mark_index(program, node->index[d], here) > 1 &&
            overlaps(program, stage, node->index[d])) {
            return false;
        }
        for (int a = 0; a < stage->axis_count; a++) {
            used[a] = used[a] || here[a];
        }
    }
    for (int a = 0; a < stage->axis_count; a++) {
        lacking[a] = !used[a] && !literal[a] && stage->axes[a].extent > 1;
    }
    return true;
}

bool wpk_reuse_reads_once(const struct wpk_program *program, const struct wpk_stage *stage,
                          int load, const bool *literal)
{
    bool lacking[WPK_AXES_MAX];
    if (!find_lacking(program, stage, load, literal, lacking)) {
        return false;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (lacking[a]) {
            return false;
        }
    }
    return true;
}

bool wpk_reuse_reads_one_to_one(const struct wpk_program *program, const struct wpk_stage *stage,
                                int load)
{
    const struct wpk_node *node = &program->nodes[load];
    bool used[WPK_AXES_MAX] = {false};
    for (int d = 0; d < program->tensors[node->tensor].rank; d++) {
        int axis = wpk_index_axis(program, node->index[d]);
        if (axis < 0 || used[axis]) {
            return false;
        }
        used[axis] = true;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (!used[a] && stage->axes[a].extent > 1) {
            return false;
        }
    }
    return true;
}

bool wpk_reuse_has_plain_reduction(const struct wpk_stage *stage, const bool *literal)
{
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a]) {
            return true;
        }
    }
    return false;
}

bool wpk_reuse_pays(const struct wpk_program *program, const struct wpk_stage *stage,
                    const bool *literal)
{
    bool first[WPK_AXES_MAX] = {false}, have_first = false, constant = false;
    if (!wpk_reuse_has_plain_reduction(stage, literal)) {
        return false;
    }
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        bool lacking[WPK_AXES_MAX], any = false;
        if (program->tensors[load.node->tensor].role == WPK_ROLE_LITERAL) {
            continue;
        }
        if (!find_lacking(program, stage, load.id, literal, lacking)) {
            return true;
        }
        for (int a = 0; a < stage->rank; a++) {
            any = any || lacking[a];
        }
        if (any && have_first &&
            memcmp(first, lacking, (size_t)stage->rank * sizeof(first[0])) != 0) {
            return true;
        }
        if (any && !have_first) {
            memcpy(first, lacking, sizeof(first));
            have_first = true;
        }
        constant =
            constant || (!any && program->tensors[load.node->tensor].role == WPK_ROLE_CONSTANT);
    }
    return have_first && constant;
}
