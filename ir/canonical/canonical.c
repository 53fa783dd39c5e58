/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/canonical/canonical.h"

#include "ir/canonical/label.h"
#include "ir/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One canonical form under way. */
struct emission {
    const struct wpk_program *from; /* in normal form */
    struct wpk_labels *labels;
    struct wpk_program *to;
    struct wpk_canonical_map *map;
    int next_axis[WPK_STAGES_MAX]; /* number of the reduction axis that is met next */
    int *built;                    /* [from->node_count] id in `to`, */
    int *builder;                  /* [from->node_count] and 1 + the stage it was built for */
};

struct operand {
    uint64_t key;
    uint64_t label;
    int node;
    int place;
};

struct operands {
    struct emission *e;
    int stage;
    struct operand *at; /* owned */
    int count;
};

static int emit_node(struct emission *e, int s, int node);
static int emit_tensor(struct emission *e, int t);

/* ---- the order of operands */

/* An axis or its multiple: its index, else -1. */
static int scaled_axis(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];
    if (n->kind == WPK_NODE_BINARY && n->op == WPK_BINARY_MUL &&
        wpk_node_is_literal(program, n->arg[0])) {
        n = &program->nodes[n->arg[1]];
    }
    return n->kind == WPK_NODE_AXIS ? n->axis : -1;
}

/* The first output axis in an index, or WPK_AXES_MAX. */
static int first_axis(const struct wpk_program *program, const struct wpk_stage *stage, int index)
{
    const struct wpk_node *n = &program->nodes[index];
    int axis = scaled_axis(program, index);
    int first = axis >= 0 && axis < stage->rank ? axis : WPK_AXES_MAX;
    for (int i = 0; i < 2 && axis < 0 && n->kind == WPK_NODE_BINARY; i++) {
        int other = first_axis(program, stage, n->arg[i]);
        first = other < first ? other : first;
    }
    return first;
}

/* Loads come in the order in which their dimensions run along the output's, so that the order of
 * what is canonical is that of the programs that people write. */
static uint64_t load_key(const struct wpk_program *program, const struct wpk_stage *stage,
                         const struct wpk_node *load)
{
    static const uint64_t groups[] = {[WPK_ROLE_INTERMEDIATE] = 4,
                                      [WPK_ROLE_OUTPUT] = 4,
                                      [WPK_ROLE_INPUT] = 5,
                                      [WPK_ROLE_CONSTANT] = 6,
                                      [WPK_ROLE_LITERAL] = 7};
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    uint64_t key = groups[tensor->role];
    for (int d = 0; d < WPK_RANK_MAX; d++) {
        int axis = d < tensor->rank ? first_axis(program, stage, load->index[d]) : WPK_AXES_MAX + 1;
        key = key << 5 | (uint64_t)axis;
    }
    return key;
}

/* Output axes, reduction axes, operations, loads, literals: two literals never meet first. */
static uint64_t operand_key(const struct emission *e, int s, int node)
{
    const int shift = 5 * WPK_RANK_MAX;
    const struct wpk_stage *stage = &e->from->stages[s];
    const struct wpk_node *n = &e->from->nodes[node];
    int axis = n->dtype == WPK_I64 ? scaled_axis(e->from, node) : -1;
    if (n->kind == WPK_NODE_LITERAL) {
        return UINT64_MAX;
    }
    if (axis >= 0) {
        return axis < stage->rank ? (uint64_t)1 << shift | (uint64_t)axis : (uint64_t)2 << shift;
    }
    return n->kind == WPK_NODE_LOAD ? load_key(e->from, stage, n) : (uint64_t)3 << shift;
}

static int compare_operands(const void *a, const void *b)
{
    const struct operand *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->label != y->label) {
        return x->label < y->label ? -1 : 1;
    }
    return x->place - y->place;
}

static void count_operand(int node WPK_UNUSED, void *user)
{
    ++*(int *)user;
}

static void take_operand(int node, void *user)
{
    struct operands *operands = user;
    struct emission *e = operands->e;
    int place = operands->count++;
    operands->at[place] =
        (struct operand){operand_key(e, operands->stage, node),
                         wpk_labels_node(e->labels, operands->stage, node), node, place};
}

/* ---- expressions */

static int emit_load(struct emission *e, int s, const struct wpk_node *load)
{
    int index[WPK_RANK_MAX];
    int tensor = emit_tensor(e, load->tensor);
    for (int d = 0; d < e->from->tensors[load->tensor].rank; d++) {
        index[d] = emit_node(e, s, load->index[d]);
    }
    return wpk_node_load(e->to, tensor, index,
                         load->outside < 0 ? -1 : emit_node(e, s, load->outside));
}

static int emit_fresh(struct emission *e, int s, int node)
{
    const struct wpk_node *n = &e->from->nodes[node];
    int arg[3] = {-1, -1, -1};
    if (n->kind == WPK_NODE_LITERAL) {
        return wpk_node_append(e->to, n);
    }
    if (n->kind == WPK_NODE_AXIS) {
        int *number = &e->map->axis[s][n->axis];
        if (*number < 0) {
            *number = e->next_axis[s]++;
        }
        return wpk_node_axis(e->to, *number);
    }
    if (n->kind == WPK_NODE_LOAD) {
        return emit_load(e, s, n);
    }
    if (wpk_labels_sorts(e->labels, node)) {
        enum wpk_binary op = (enum wpk_binary)e->from->nodes[node].op;
        struct operands operands = {.e = e, .stage = s};
        int count = 0;
        wpk_labels_walk_chain(e->labels, node, count_operand, &count);
        operands.at = malloc((size_t)count * sizeof *operands.at);
        if (operands.at == NULL) {
            e->to->full = e->to->starved = true;
            return -1;
        }
        wpk_labels_walk_chain(e->labels, node, take_operand, &operands);
        qsort(operands.at, (size_t)count, sizeof *operands.at, compare_operands);
        int id = emit_node(e, s, operands.at[0].node);
        for (int i = 1; i < count; i++) {
            id = wpk_node_binary(e->to, op, id, emit_node(e, s, operands.at[i].node));
        }
        free(operands.at);
        return id;
    }
    for (int i = 0; i < 3 && n->arg[i] >= 0; i++) {
        arg[i] = emit_node(e, s, n->arg[i]);
    }
    return wpk_node_remake(e->to, n, arg);
}

static int emit_node(struct emission *e, int s, int node)
{
    if (e->builder[node] != s + 1) {
        e->built[node] = emit_fresh(e, s, node);
        e->builder[node] = s + 1;
    }
    return e->built[node];
}

/* ---- stages */

static bool same_expr(const struct wpk_program *program, int a, int b)
{
    const struct wpk_node *x = &program->nodes[a], *y = &program->nodes[b];
    if (a == b) {
        return true;
    }
    if (x->kind != y->kind || x->dtype != y->dtype || x->op != y->op || x->axis != y->axis ||
        x->tensor != y->tensor || (x->outside < 0) != (y->outside < 0) ||
        memcmp(&x->value, &y->value, sizeof x->value) != 0 || x->integer != y->integer) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (x->arg[i] >= 0 && !same_expr(program, x->arg[i], y->arg[i])) {
            return false;
        }
    }
    for (int d = 0; x->kind == WPK_NODE_LOAD && d < program->tensors[x->tensor].rank; d++) {
        if (!same_expr(program, x->index[d], y->index[d])) {
            return false;
        }
    }
    return x->outside < 0 || same_expr(program, x->outside, y->outside);
}

static bool same_type(const struct wpk_tensor *a, const struct wpk_tensor *b)
{
    size_t size = (size_t)a->rank * sizeof a->extent[0];
    return a->role == b->role && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->extent, b->extent, size) == 0 &&
           memcmp(a->pad_before, b->pad_before, size) == 0 &&
           memcmp(a->pad_after, b->pad_after, size) == 0;
}

static bool same_stage(const struct wpk_program *program, const struct wpk_stage *a,
                       const struct wpk_stage *b)
{
    bool same = a->axis_count == b->axis_count && a->reduction == b->reduction &&
                a->accumulator == b->accumulator &&
                same_type(&program->tensors[a->output], &program->tensors[b->output]);
    for (int i = 0; i < a->axis_count && same; i++) {
        same = a->axes[i].extent == b->axes[i].extent;
    }
    return same && same_expr(program, a->expr, b->expr);
}

static int add_tensor(struct emission *e, int t)
{
    const struct wpk_tensor *tensor = &e->from->tensors[t];
    char name[WPK_NAME_MAX];
    (void)snprintf(name, sizeof name, "t%d", e->to->tensor_count);
    int id = tensor->role == WPK_ROLE_LITERAL
                 ? wpk_program_add_literal(e->to, name, tensor->dtype, tensor->rank, tensor->extent,
                                           tensor->values)
                 : wpk_program_add_tensor(e->to, name, tensor->role, tensor->dtype, tensor->rank,
                                          tensor->extent);
    if (id >= 0) {
        struct wpk_tensor *copy = &e->to->tensors[id];
        memcpy(copy->pad_before, tensor->pad_before, sizeof copy->pad_before);
        memcpy(copy->pad_after, tensor->pad_after, sizeof copy->pad_after);
    }
    return id;
}

/* The stage, after those it needs; returns the tensor it writes. Depth: WPK_STAGES_MAX. */
static int emit_stage(struct emission *e, int s)
{
    int expr = emit_node(e, s, e->from->stages[s].expr);
    /* Reduction axes that the expression does not name come last, by label. */
    const struct wpk_stage *stage = &e->from->stages[s];
    const uint64_t *label = e->labels->axis[s];
    while (e->next_axis[s] < stage->axis_count) {
        int next = -1;
        for (int a = stage->rank; a < stage->axis_count; a++) {
            if (e->map->axis[s][a] < 0 && (next < 0 || label[a] < label[next])) {
                next = a;
            }
        }
        e->map->axis[s][next] = e->next_axis[s]++;
    }
    int output = add_tensor(e, e->from->stages[s].output);
    int id = wpk_program_add_stage(e->to, output, NULL);
    if (expr < 0 || id < 0) {
        e->to->full = true;
        return -1;
    }
    struct wpk_stage *out = &e->to->stages[id];
    out->axis_count = stage->axis_count;
    out->reduction = stage->reduction;
    out->accumulator = stage->accumulator;
    out->expr = expr;
    for (int a = 0; a < stage->axis_count; a++) {
        int number = e->map->axis[s][a];
        struct wpk_axis *axis = &out->axes[number];
        axis->extent = stage->axes[a].extent;
        (void)snprintf(axis->name, sizeof axis->name, "a%d", number);
    }
    for (int o = 0; o < id; o++) {
        if (e->to->tensors[output].role == WPK_ROLE_INTERMEDIATE &&
            same_stage(e->to, &e->to->stages[o], &e->to->stages[id])) {
            e->to->stage_count--;
            e->to->tensor_count--;
            id = o;
        }
    }
    e->map->stage[s] = id;
    return e->to->stages[id].output;
}

static int find_literal(const struct wpk_program *program, const struct wpk_tensor *literal)
{
    size_t size = (size_t)wpk_tensor_elements(literal) * sizeof literal->values[0];
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *other = &program->tensors[t];
        if (same_type(other, literal) && memcmp(other->values, literal->values, size) == 0) {
            return t;
        }
    }
    return -1;
}

static int emit_tensor(struct emission *e, int t)
{
    const struct wpk_tensor *tensor = &e->from->tensors[t];
    int writer = wpk_program_writer(e->from, t);
    int *id = &e->map->tensor[t];
    if (*id < 0 && tensor->role == WPK_ROLE_LITERAL) {
        *id = find_literal(e->to, tensor);
    }
    if (*id < 0) {
        *id = writer < 0 ? add_tensor(e, t) : emit_stage(e, writer);
    }
    return *id;
}

static void emit_outputs(struct emission *e)
{
    struct operand outputs[WPK_TENSORS_MAX];
    int count = 0;
    for (int t = 0; t < e->from->tensor_count; t++) {
        if (e->from->tensors[t].role == WPK_ROLE_OUTPUT) {
            outputs[count] = (struct operand){0, e->labels->tensor[t], t, count};
            count++;
        }
    }
    qsort(outputs, (size_t)count, sizeof *outputs, compare_operands);
    for (int i = 0; i < count; i++) {
        (void)emit_tensor(e, outputs[i].node);
    }
}

/* ---- the whole */

static wpk_err emit_program(const struct wpk_program *normal, struct wpk_labels *labels,
                            struct wpk_program *out, struct wpk_canonical_map *map)
{
    struct emission e = {.from = normal, .labels = labels, .to = out, .map = map};
    size_t count = (size_t)normal->node_count + 1;
    e.built = calloc(count, sizeof *e.built);
    e.builder = calloc(count, sizeof *e.builder);
    wpk_err err = WPK_ENOMEM;
    memset(out, 0, sizeof *out);
    if (e.built != NULL && e.builder != NULL) {
        for (int t = 0; t < WPK_TENSORS_MAX; t++) {
            e.map->tensor[t] = -1;
        }
        for (int s = 0; s < WPK_STAGES_MAX; s++) {
            int rank = s < normal->stage_count ? normal->stages[s].rank : 0;
            e.map->stage[s] = -1;
            e.next_axis[s] = rank;
            for (int a = 0; a < WPK_AXES_MAX; a++) {
                e.map->axis[s][a] = a < rank ? a : -1;
            }
        }
        emit_outputs(&e);
        err = wpk_program_validate(out, NULL); /* normal forms may outgrow the limits */
    }
    if (err != WPK_OK) {
        wpk_program_fini(out);
    }
    free(e.built);
    free(e.builder);
    return err;
}

/* `family` may be NULL; `map` is of the exact form. */
static wpk_err emit_forms(const struct wpk_program *program, struct wpk_program *exact,
                          struct wpk_canonical_map *map, struct wpk_program *family,
                          struct wpk_canonical_map *family_map)
{
    struct wpk_program normal;
    struct wpk_labels labels = {0}, family_labels = {0};
    wpk_err err = wpk_program_normal(program, &normal);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_labels_init(&labels, &normal, NULL);
    err = err == WPK_OK ? emit_program(&normal, &labels, exact, map) : err;
    if (err == WPK_OK && family != NULL) {
        err = wpk_labels_init(&family_labels, &normal, &labels);
        err = err == WPK_OK ? emit_program(&normal, &family_labels, family, family_map) : err;
        if (err != WPK_OK) {
            wpk_program_fini(exact);
        }
    }
    wpk_labels_fini(&family_labels);
    wpk_labels_fini(&labels);
    wpk_program_fini(&normal);
    return err == WPK_ENOSPC ? WPK_ERANGE : err; /* trying again would not help */
}

wpk_err wpk_program_canonical_map(const struct wpk_program *program, struct wpk_program *out,
                                  struct wpk_canonical_map *map)
{
    return emit_forms(program, out, map, NULL, NULL);
}

static void bind(const struct wpk_program *program, const struct wpk_program *canonical,
                 const struct wpk_canonical_map *map, struct wpk_binding *out)
{
    static const enum wpk_role roles[] = {WPK_ROLE_INPUT, WPK_ROLE_CONSTANT, WPK_ROLE_OUTPUT};
    memset(out, 0, sizeof *out);
    for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++) {
        for (int t = 0; t < program->tensor_count; t++) {
            if (program->tensors[t].role == roles[r]) {
                int id = map->tensor[t];
                memcpy(out->tensor[out->count].name, program->tensors[t].name, WPK_NAME_MAX);
                (void)snprintf(out->tensor[out->count].canonical, WPK_NAME_MAX, "%s",
                               id < 0 ? "" : canonical->tensors[id].name);
                out->tensor[out->count++].role = roles[r];
            }
        }
    }
}

wpk_err wpk_program_canonical_family(const struct wpk_program *program, struct wpk_program *exact,
                                     struct wpk_binding *binding, struct wpk_program *family)
{
    struct wpk_canonical_map map, family_map;
    wpk_err err = emit_forms(program, exact, &map, family, &family_map);
    if (err == WPK_OK && binding != NULL) {
        bind(program, exact, &map, binding);
    }
    return err;
}

wpk_err wpk_program_canonical(const struct wpk_program *program, struct wpk_program *out,
                              struct wpk_binding *binding)
{
    return wpk_program_canonical_family(program, out, binding, NULL);
}

static wpk_err map_family(const struct wpk_program *program, struct wpk_canonical_map *out)
{
    struct wpk_program exact, family;
    struct wpk_canonical_map map;
    wpk_err err = emit_forms(program, &exact, &map, &family, out);
    if (err == WPK_OK) {
        wpk_program_fini(&exact);
        wpk_program_fini(&family);
    }
    return err;
}

/* The place of an id in a list; -1: it is not there, or none. */
static int place_of(const int *ids, int count, int id)
{
    int at = id < 0 ? count : 0;
    while (at < count && ids[at] != id) {
        at++;
    }
    return at < count ? at : -1;
}

wpk_err wpk_program_relate(const struct wpk_program *from, const struct wpk_program *to,
                           struct wpk_canonical_map *out)
{
    struct wpk_canonical_map map;
    wpk_err err = map_family(from, out);
    err = err == WPK_OK ? map_family(to, &map) : err;
    for (int t = 0; err == WPK_OK && t < WPK_TENSORS_MAX; t++) {
        out->tensor[t] = place_of(map.tensor, WPK_TENSORS_MAX, out->tensor[t]);
    }
    for (int s = 0; err == WPK_OK && s < WPK_STAGES_MAX; s++) {
        out->stage[s] = place_of(map.stage, WPK_STAGES_MAX, out->stage[s]);
        for (int a = 0; a < WPK_AXES_MAX && out->stage[s] >= 0; a++) {
            out->axis[s][a] = place_of(map.axis[out->stage[s]], WPK_AXES_MAX, out->axis[s][a]);
        }
    }
    return err;
}
