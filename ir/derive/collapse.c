/* SPDX-License-Identifier: Apache-2.0 */
/* Two adjacent axes as one: if every load has both, side by side and each alone, the elements that
 * they address lie one after the other, and
 *
 *     Y[k, y, x] = sum(c) X[c, y, x] * W[k, c]        becomes
 *     Y[k, q]    = sum(c) X[c, q] * W[k, c]           with as many q as y and x together
 *
 * A pair of axes stands for a pair of dimensions of each tensor that it indexes, which stands for a
 * pair of axes of each stage that has the tensor. No element moves, so inputs and outputs collapse,
 * too. Some other stage may need the axes apart, as a window does that runs along each of them:
 *
 *     D[c, y, x] = sum(r, s) X[c, y+r, x+s] * V[c, r, s]
 *     Y[k, q]    = sum(c) D[c, q / width, q % width] * W[k, c]
 *
 * The output of such a stage keeps its dimensions, and collapsed stages read it by a quotient and a
 * remainder, which address one element after the other. If such a stage reads the output of a
 * collapsed stage, a copying stage restores the dimensions; a copy that is read once is computed by
 * its reader. */
#include "ir/derive/derive.h"

#include "ir/derive/rewrite.h"

#include <stdio.h>
#include <string.h>

struct collapse {
    struct wpk_program *program;
    int axis[WPK_STAGES_MAX];    /* of each stage: it and the next one collapse; -1: none */
    int dim[WPK_TENSORS_MAX];    /* of each tensor: it and the next one collapse; -1: none */
    bool apart[WPK_STAGES_MAX];  /* the stage needs the axes apart */
    bool kept[WPK_TENSORS_MAX];  /* the tensor keeps its dimensions */
    int tensor[WPK_TENSORS_MAX]; /* that takes the place of each other tensor */
    bool changed;
};

/* ---- what collapses with a pair of axes */

static bool mark_axis(struct collapse *c, int stage, int axis)
{
    const struct wpk_stage *s = &c->program->stages[stage];
    int end = axis < s->rank ? s->rank : s->axis_count;
    if (c->axis[stage] == axis) {
        return true;
    }
    if (c->axis[stage] >= 0 || axis < 0 || axis + 1 >= end) {
        return false;
    }
    c->axis[stage] = axis;
    c->changed = true;
    return true;
}

static bool mark_dim(struct collapse *c, int tensor, int dim)
{
    const struct wpk_tensor *t = &c->program->tensors[tensor];
    if (c->dim[tensor] == dim) {
        return true;
    }
    for (int d = 0; d < t->rank; d++) {
        if (t->pad_before[d] > 0 || t->pad_after[d] > 0) {
            return false;
        }
    }
    if (c->dim[tensor] >= 0 || dim + 1 >= t->rank || t->role == WPK_ROLE_LITERAL) {
        return false;
    }
    c->dim[tensor] = dim;
    c->changed = true;
    return true;
}

struct search {
    int axis;
    bool found;
};

static void find_axis(const struct wpk_program *program, int node, void *user)
{
    struct search *search = user;
    const struct wpk_node *n = &program->nodes[node];
    bool same =
        n->kind == WPK_NODE_AXIS && (n->axis == search->axis || n->axis == search->axis + 1);
    search->found = search->found || same;
}

static bool has_pair(const struct wpk_program *program, int node, bool into_indices, int axis)
{
    struct search search = {.axis = axis};
    wpk_node_walk(program, node, into_indices, find_axis, &search);
    return search.found;
}

/* True if the load has both axes in neighbouring dimensions, or neither of them. */
static bool mark_load(struct collapse *c, int stage, const struct wpk_node *load)
{
    const struct wpk_program *program = c->program;
    const struct wpk_stage *s = &program->stages[stage];
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int dim = c->dim[load->tensor];
    if (dim >= 0 && !mark_axis(c, stage, wpk_index_axis(program, load->index[dim]))) {
        return false;
    }
    int axis = c->axis[stage], count = 0;
    for (int d = 0; d < tensor->rank && axis >= 0; d++) {
        if (has_pair(program, load->index[d], true, axis)) {
            dim = count == 0 ? d : dim;
            count++;
        }
    }
    if (count == 0) {
        return dim < 0;
    }
    return count == 2 && dim + 1 < tensor->rank &&
           wpk_index_axis(program, load->index[dim]) == axis &&
           wpk_index_axis(program, load->index[dim + 1]) == axis + 1 &&
           s->axes[axis].extent <= tensor->extent[dim] &&
           s->axes[axis + 1].extent == tensor->extent[dim + 1] && mark_dim(c, load->tensor, dim);
}

static bool mark_stage(struct collapse *c, int id)
{
    const struct wpk_stage *stage = &c->program->stages[id];
    if (c->dim[stage->output] >= 0 && !mark_axis(c, id, c->dim[stage->output])) {
        return false;
    }
    for (struct wpk_loads load = wpk_loads_of(c->program, stage); wpk_loads_next(&load);) {
        if (!mark_load(c, id, load.node)) {
            return false;
        }
    }
    int axis = c->axis[id];
    if (axis >= 0 && axis < stage->rank && !mark_dim(c, stage->output, axis)) {
        return false;
    }
    return axis < 0 || !has_pair(c->program, stage->expr, false, axis);
}

/* True if the stage is an element-wise epilogue of stages that need the axes apart: it is computed
 * with them. */
static bool finishes_apart(const struct collapse *c, int id)
{
    const struct wpk_program *program = c->program;
    const struct wpk_stage *stage = &program->stages[id];
    bool reads_apart = false, reads_collapsed = false;
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        int t = load.node->tensor, writer = wpk_program_writer(program, t);
        reads_apart = reads_apart || (writer >= 0 && c->apart[writer]);
        reads_collapsed = reads_collapsed || (writer >= 0 && c->dim[t] >= 0 && !c->kept[t]);
    }
    return stage->reduction == WPK_REDUCE_NONE && reads_apart && !reads_collapsed;
}

/* A stage that has to stay as it is, though not all others have to; -1: there is none. */
static int find_apart(struct collapse *c)
{
    while (c->changed) {
        c->changed = false;
        for (int s = 0; s < c->program->stage_count; s++) {
            if (!c->apart[s] && !mark_stage(c, s)) {
                return s;
            }
        }
    }
    /* Find the tensors that keep their dimensions: those that a stage which needs the axes apart
     * writes, or that it reads and no stage writes. */
    const struct wpk_program *program = c->program;
    memset(c->kept, 0, sizeof(c->kept));
    for (int s = 0; s < program->stage_count; s++) {
        c->kept[program->stages[s].output] |= c->apart[s];
        for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
             wpk_loads_next(&load) && c->apart[s];) {
            int t = load.node->tensor;
            c->kept[t] |= wpk_program_writer(program, t) < 0;
        }
    }
    for (int s = 0; s < c->program->stage_count; s++) {
        if (!c->apart[s] && c->axis[s] >= 0 && finishes_apart(c, s)) {
            return s;
        }
    }
    return -1;
}

/* Mark all that collapses with the pair; stages that cannot are left out, one after the other, if
 * `leaves_out`. */
static bool mark_all(struct collapse *c, int stage, int axis, bool leaves_out)
{
    int apart = -1;
    do {
        memset(c->axis, -1, sizeof(c->axis));
        memset(c->dim, -1, sizeof(c->dim));
        if (!mark_axis(c, stage, axis)) {
            return false;
        }
        apart = find_apart(c);
        if (apart >= 0) {
            c->apart[apart] = true;
        }
    } while (apart >= 0 && apart != stage && leaves_out);
    return apart < 0;
}

static bool reads_by_axes(const struct wpk_program *program, const struct wpk_node *load)
{
    bool plain = true;
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        plain = plain && wpk_index_axis(program, load->index[d]) >= 0;
    }
    return plain;
}

/* True if a stage that needs the axes apart reads an output that collapses, or is an element-wise
 * epilogue of a collapsed stage: it could no longer be computed in the same loops. */
static bool needs_both(const struct collapse *c)
{
    const struct wpk_program *program = c->program;
    for (int s = 0; s < program->stage_count; s++) {
        for (struct wpk_loads load = wpk_loads_of(program, &program->stages[s]);
             wpk_loads_next(&load) && c->apart[s];) {
            bool collapsed = c->dim[load.node->tensor] >= 0 && !c->kept[load.node->tensor];
            bool finishes = program->stages[s].reduction == WPK_REDUCE_NONE &&
                            program->stages[s].rank == program->tensors[load.node->tensor].rank &&
                            reads_by_axes(program, load.node);
            bool output = program->tensors[load.node->tensor].role == WPK_ROLE_OUTPUT;
            if (collapsed && (output || finishes)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- what it becomes */

static wpk_err collapse_tensors(struct collapse *c)
{
    struct wpk_program *program = c->program;
    int count = program->tensor_count;
    for (int t = 0; t < count; t++) {
        if (c->dim[t] < 0 || c->kept[t]) {
            continue;
        }
        struct wpk_tensor old = program->tensors[t];
        int64_t extent[WPK_RANK_MAX] = {0};
        for (int d = 0; d < old.rank; d++) {
            int to = d > c->dim[t] ? d - 1 : d;
            extent[to] = to == c->dim[t] && d > to ? extent[to] * old.extent[d] : old.extent[d];
        }
        char spare[WPK_NAME_MAX];
        wpk_program_free_name(program, old.name, spare);
        memcpy(program->tensors[t].name, spare, sizeof(spare));
        program->tensors[t].role = WPK_ROLE_INTERMEDIATE;
        c->tensor[t] =
            wpk_program_add_tensor(program, old.name, old.role, old.dtype, old.rank - 1, extent);
        if (c->tensor[t] < 0) {
            return WPK_ENOSPC;
        }
    }
    return WPK_OK;
}

static int load_collapsed(struct wpk_program *program, const struct wpk_node *load,
                          const int *index, void *user)
{
    const struct collapse *c = user;
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int moved[WPK_RANK_MAX] = {0}, dim = c->dim[load->tensor], rank = tensor->rank;
    if (dim < 0) {
        return wpk_rewrite_keep(program, load, index);
    }
    if (c->kept[load->tensor]) {
        int64_t width = tensor->extent[dim + 1];
        memcpy(moved, index, (size_t)rank * sizeof(moved[0]));
        moved[dim] = wpk_index_div(program, index[dim], width);
        moved[dim + 1] = wpk_index_mod(program, index[dim], width);
        return wpk_rewrite_keep(program, load, moved);
    }
    for (int d = 0; d < rank; d++) {
        if (d != dim + 1) {
            moved[d > dim ? d - 1 : d] = index[d];
        }
    }
    return wpk_node_load(program, c->tensor[load->tensor], moved, load->outside);
}

static bool collapse_stage(struct collapse *c, int id)
{
    struct wpk_stage *stage = &c->program->stages[id];
    int axis = c->axis[id], map[WPK_AXES_MAX] = {0};
    for (int a = 0; a < stage->axis_count; a++) {
        map[a] = wpk_node_axis(c->program, axis >= 0 && a > axis ? a - 1 : a);
    }
    stage->expr = wpk_rewrite_expr(c->program, stage->expr, map, -1, load_collapsed, c);
    if (axis >= 0) {
        struct wpk_axis *one = &stage->axes[axis];
        char name[WPK_NAME_MAX];
        snprintf(name, sizeof(name), "%.20s%.20s", one[0].name, one[1].name);
        memcpy(one->name, name, sizeof(name));
        one->extent *= one[1].extent;
        stage->axis_count--;
        stage->rank -= axis < stage->rank;
        memmove(&one[1], &one[2], (size_t)(stage->axis_count - axis - 1) * sizeof(*one));
    }
    if (c->dim[stage->output] >= 0) {
        stage->output = c->tensor[stage->output];
    }
    return stage->expr >= 0;
}

/* Copy what a collapsed stage writes to the tensor `t`, which has the dimensions apart. */
static bool add_copy(struct collapse *c, int t)
{
    struct wpk_program *program = c->program;
    int dim = c->dim[t], stage = wpk_program_add_stage(program, t, NULL);
    int64_t width = program->tensors[t].extent[dim + 1];
    int index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < program->tensors[t].rank; d++) {
        int axis = wpk_node_axis(program, d);
        index[d > dim ? d - 1 : d] = d == dim + 1 ? wpk_index_add(program, index[dim], axis)
                                     : d == dim   ? wpk_index_scale(program, axis, width)
                                                  : axis;
    }
    int expr = wpk_node_load(program, c->tensor[t], index, -1);
    if (stage >= 0) {
        program->stages[stage].expr = expr;
    }
    return stage >= 0 && expr >= 0;
}

/* The stages that need the axes apart read copies of what collapsed. */
static bool add_copies(struct collapse *c, int stages)
{
    bool copied[WPK_TENSORS_MAX] = {false};
    for (int s = 0; s < stages; s++) {
        for (struct wpk_loads load = wpk_loads_of(c->program, &c->program->stages[s]);
             wpk_loads_next(&load) && c->apart[s];) {
            int t = load.node->tensor;
            bool needed = c->dim[t] >= 0 && !c->kept[t] && !copied[t];
            if (needed && !add_copy(c, t)) {
                return false;
            }
            copied[t] |= needed;
        }
    }
    return true;
}

static wpk_err collapse_pair(struct wpk_program *program, int stage, int axis, bool leaves_out)
{
    struct collapse c = {.program = program};
    int stages = program->stage_count;
    if (!mark_all(&c, stage, axis, leaves_out) || needs_both(&c)) {
        return WPK_EUNSUPPORTED;
    }
    wpk_err err = collapse_tensors(&c);
    for (int s = 0; s < stages && err == WPK_OK; s++) {
        err = c.apart[s] || collapse_stage(&c, s) ? WPK_OK : WPK_ENOSPC;
    }
    err = err == WPK_OK && !add_copies(&c, stages) ? WPK_ENOSPC : err;
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}

/* Reductions over one term have no axis afterwards: y + r is y. */
static wpk_err drop_unit_reductions(struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_stage *stage = &program->stages[s];
        int map[WPK_AXES_MAX] = {0}, kept = stage->rank;
        if (stage->axis_count - stage->rank < 2) { /* one has to stay */
            continue;
        }
        for (int a = 0; a < stage->axis_count; a++) {
            bool last = a + 1 == stage->axis_count && kept == stage->rank;
            if (a < stage->rank || stage->axes[a].extent > 1 || last) {
                map[a] = wpk_node_axis(program, a < stage->rank ? a : kept);
                stage->axes[a < stage->rank ? a : kept++] = stage->axes[a];
            } else {
                map[a] = wpk_node_int(program, 0);
            }
        }
        stage->axis_count = kept;
        stage->expr = wpk_rewrite_expr(program, stage->expr, map, -1, NULL, NULL);
        if (stage->expr < 0) {
            return WPK_ENOSPC;
        }
    }
    return WPK_OK;
}

/* Each pair of axes of the stage, the last one first. */
static wpk_err collapse_pairs(struct wpk_program *program, int stage, bool leaves_out)
{
    char name[WPK_NAME_MAX];
    bool any = false;
    snprintf(name, sizeof(name), "%s", program->tensors[program->stages[stage].output].name);
    /* a stage that nobody reads is gone after the first pair */
    for (int a = program->stages[stage].axis_count - 2; a >= 0 && stage >= 0; a--) {
        const struct wpk_axis *axes = program->stages[stage].axes;
        if (axes[a].extent == 1 || axes[a + 1].extent == 1) {
            continue;
        }
        wpk_err err = collapse_pair(program, stage, a, leaves_out);
        if (err == WPK_OK) {
            any = true;
            stage = wpk_program_writer(program, wpk_program_find_tensor(program, name));
        } else if (err != WPK_EUNSUPPORTED) {
            return err;
        }
    }
    return any ? WPK_OK : WPK_EUNSUPPORTED;
}

wpk_err wpk_derive_collapse(struct wpk_program *program, int stage)
{
    wpk_err err = drop_unit_reductions(program);
    err = err == WPK_OK ? collapse_pairs(program, stage, false) : err;
    return err == WPK_EUNSUPPORTED ? collapse_pairs(program, stage, true) : err;
}
