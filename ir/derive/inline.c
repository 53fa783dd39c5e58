/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/derive.h"
#include "ir/derive/rewrite.h"

#include <string.h>

/* A stage that is being put into the one that reads it. */
/* The load reads the stage's own element, as output axes of the reader in order. */
static bool is_own_element(const struct wpk_program *program, const struct wpk_stage *reader,
                           const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    bool own = reader->rank == tensor->rank;

    for (int d = 0; own && d < tensor->rank; d++) {
        own = wpk_index_axis(program, load->index[d]) == d &&
              reader->axes[d].extent == tensor->extent[d];
    }
    return own;
}

static int replace(struct wpk_program *program WPK_UNUSED, const struct wpk_node *load WPK_UNUSED,
                   const int *index WPK_UNUSED, void *user)
{
    const int *expr = user;

    return *expr;
}

/* ---- stages that only move elements */

/* True if the movement is an order of axes: each dimension of what it reads is another axis, and as
 * long. An index outside of the one tensor is then outside of the other. */
static bool is_order(const struct wpk_program *program, const struct wpk_stage *stage)
{
    int place[WPK_AXES_MAX];

    return program->nodes[stage->expr].outside < 0 &&
           wpk_rewrite_order(program, stage, &program->nodes[stage->expr], place);
}

/* True if the movement only puts zeros around all that it reads. */
static bool is_padding(const struct wpk_program *program, const struct wpk_stage *stage)
{
    const struct wpk_node *load = &program->nodes[stage->expr];
    bool pads = stage->reduction == WPK_REDUCE_NONE && load->kind == WPK_NODE_LOAD &&
                wpk_load_is_zero_outside(program, load) &&
                program->tensors[load->tensor].rank == stage->rank;

    for (int d = 0; pads && d < stage->rank; d++) {
        struct wpk_affine affine;
        struct wpk_affine own = {.constant = 0};
        own.coefficient[d] = 1;
        pads = wpk_index_affine(program, load->index[d], &affine);
        own.constant = pads ? affine.constant : 0;
        pads = pads && memcmp(&affine, &own, sizeof(own)) == 0 && affine.constant <= 0 &&
               affine.constant + stage->axes[d].extent >= program->tensors[load->tensor].extent[d];
    }
    return pads;
}

static int move(struct wpk_program *program, const struct wpk_node *load, const int *index,
                void *user)
{
    const int *expr = user; /* the load that the movement is */
    int map[WPK_AXES_MAX] = {0};

    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        map[d] = index[d];
    }
    int moved = wpk_rewrite_expr(program, *expr, map, -1, NULL, NULL);
    if (moved < 0 || load->outside < 0) {
        return moved;
    }
    const struct wpk_node at = program->nodes[moved]; /* the array may move */
    return wpk_node_load(program, at.tensor, at.index, load->outside);
}

/* True if no load of the tensor may leave it, or, with `or_zero`, reads zeros there. */
static bool stays_within(const struct wpk_program *program, int tensor, bool or_zero)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        if (load.node->tensor == tensor && load.node->outside >= 0 &&
            !(or_zero && wpk_load_is_zero_outside(program, load.node))) {
            return false;
        }
    }
    return true;
}

/* Let every reader of a stage that only moves elements read those elsewhere. */
static bool move_one(struct wpk_program *program, wpk_err *err)
{
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        const struct wpk_node *load = &program->nodes[stage->expr];
        bool moves = stage->reduction == WPK_REDUCE_NONE && load->kind == WPK_NODE_LOAD &&
                     load->outside < 0 &&
                     (is_order(program, stage) || stays_within(program, stage->output, false));
        if (program->tensors[stage->output].role != WPK_ROLE_INTERMEDIATE ||
            !(moves ||
              (is_padding(program, stage) && stays_within(program, stage->output, true)))) {
            continue;
        }
        int expr = stage->expr;
        *err = wpk_rewrite_all(program, s, stage->output, move, &expr);
        if (*err == WPK_OK) {
            *err = wpk_program_tidy(program);
        }
        return true;
    }
    return false;
}

/* ---- the order in which elements are stored */

static int read_own(struct wpk_program *program, const struct wpk_node *load,
                    const int *index WPK_UNUSED, void *user WPK_UNUSED)
{
    int own[WPK_RANK_MAX] = {0};

    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        own[d] = wpk_node_axis(program, d);
    }
    return wpk_node_load(program, load->tensor, own, -1);
}

/* Let the stage that writes the tensor store dimension d at place[d], and its reader read it so. */
static wpk_err reorder(struct wpk_program *program, int tensor, int reader, const int *place)
{
    struct wpk_stage *stage = &program->stages[wpk_program_writer(program, tensor)];
    const struct wpk_stage old = *stage;
    const struct wpk_tensor was = program->tensors[tensor];
    int map[WPK_AXES_MAX] = {0};

    for (int a = 0; a < old.axis_count; a++) {
        int to = a < old.rank ? place[a] : a;
        map[a] = wpk_node_axis(program, to);
        stage->axes[to] = old.axes[a];
    }
    for (int d = 0; d < was.rank; d++) {
        program->tensors[tensor].extent[place[d]] = was.extent[d];
    }
    stage->expr = wpk_rewrite_expr(program, old.expr, map, -1, NULL, NULL);
    program->stages[reader].expr =
        wpk_rewrite_expr(program, program->stages[reader].expr, NULL, tensor, read_own, NULL);
    return stage->expr >= 0 && program->stages[reader].expr >= 0 ? WPK_OK
                                                                 : wpk_program_full_error(program);
}

/* Name the output axes as the other stage does, where no reduction axis has such a name. */
static void take_names(struct wpk_stage *stage, const struct wpk_stage *other)
{
    for (int a = 0; a < stage->rank; a++) {
        for (int r = stage->rank; r < stage->axis_count; r++) {
            if (strcmp(other->axes[a].name, stage->axes[r].name) == 0) {
                return;
            }
        }
    }
    memcpy(stage->axes, other->axes, (size_t)stage->rank * sizeof(*stage->axes));
}

/* Store one intermediate, which one stage reads once, in the order of that stage. An intermediate
 * that is then only copied is left out. */
static bool reorder_one(struct wpk_program *program, wpk_err *err)
{
    for (int t = 0; t < program->tensor_count; t++) {
        int place[WPK_AXES_MAX];
        int load = -1;
        int reader = program->tensors[t].role == WPK_ROLE_INTERMEDIATE
                         ? wpk_program_only_load(program, t, &load)
                         : -1;
        bool is_copied = reader >= 0 && program->stages[reader].expr == load &&
                         program->stages[reader].reduction == WPK_REDUCE_NONE;
        bool in_order = true;
        if (reader < 0 || program->nodes[load].outside >= 0 ||
            !wpk_rewrite_order(program, &program->stages[reader], &program->nodes[load], place)) {
            continue;
        }
        for (int d = 0; d < program->tensors[t].rank; d++) {
            in_order = in_order && place[d] == d;
        }
        if (!in_order) {
            *err = reorder(program, t, reader, place);
            return true;
        }
        if (is_copied) {
            struct wpk_stage joint = program->stages[wpk_program_writer(program, t)];
            joint.output = program->stages[reader].output;
            take_names(&joint, &program->stages[reader]);
            program->stages[reader] = joint;
            *err = wpk_program_tidy(program);
            return true;
        }
    }
    return false;
}

/* Put one stage into its reader. False: there is none that can be. */
static bool inline_one(struct wpk_program *program, wpk_err *err)
{
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_stage *stage = &program->stages[s];
        int load = -1;
        int reader = program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE &&
                             stage->reduction == WPK_REDUCE_NONE
                         ? wpk_program_only_load(program, stage->output, &load)
                         : -1;
        if (reader < 0 ||
            !is_own_element(program, &program->stages[reader], &program->nodes[load])) {
            continue;
        }
        int value = stage->expr;
        int expr = wpk_rewrite_expr(program, program->stages[reader].expr, NULL, stage->output,
                                    replace, &value);
        program->stages[reader].expr = expr;
        *err = expr >= 0 ? wpk_program_tidy(program) : wpk_program_full_error(program);
        return true;
    }
    return false;
}

wpk_err wpk_derive_inline(struct wpk_program *program)
{
    wpk_err err = wpk_program_loads_fit(program) ? WPK_OK : WPK_ENOSPC;

    while (err == WPK_OK &&
           (move_one(program, &err) || reorder_one(program, &err) || inline_one(program, &err))) {
    }
    return err;
}
