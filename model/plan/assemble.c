/* SPDX-License-Identifier: Apache-2.0 */
/* Each value of the graph that a step touches, or that is an output, becomes a value of the plan.
 * A value that is a view of another lies in its memory. */
#include "model/plan/assemble.h"

#include "common/crypto.h"
#include "ir/cost.h"
#include "model/operator/loop.h"
#include "model/operator/lower.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_SIZE_MAX ((size_t)1 << 40)
#define STEP_NAME_MAX 1000 /* bytes, after which nodes are only counted */

/* Bytes that lie in the data. */
struct datum {
    char checksum[WPK_CHECKSUM_HEX_SIZE];
    int64_t offset;
    size_t size;
};

/* A plan under way; its lists are owned by `plan.arena`. */
struct file {
    struct wpk_model_plan plan;
    struct wpk_buf data;     /* kernels and constants */
    struct datum *constants; /* owned; [constant_count] */
    int constant_count;
};

/* One set of shapes of it. */
struct assembly {
    struct file *file;
    const struct wpk_assemble_shape *shape;
    const struct wpk_graph *graph;
    const struct wpk_graph_regions *regions;
    struct wpk_arena *arena;                   /* of the plan */
    struct wpk_model_plan_shape *plan;         /* borrowed */
    const struct wpk_assemble_kernel *kernels; /* borrowed; by number */
    int *last_use;   /* [value_count of the graph] of roots: the last step that touches it */
    int *number;     /* [value_count] its value in the plan; -1: none yet */
    bool *has_parts; /* [value_count] views are less than all of it */
    struct wpk_placement *places; /* [plan.value_count] of those in the arena */
    int *place_of;                /* [plan.value_count] index into places; -1: not in the arena */
    int *base;                    /* [plan.value_count] value that it is part of; -1: none */
    int64_t *shift;               /* [plan.value_count] bytes from there */
    int place_count;
};

/* Append to the data, and return the offset. */
static int64_t add_data(struct file *file, const void *bytes, size_t size)
{
    static const char zeros[WPK_MODEL_PLAN_ALIGNMENT];
    int64_t offset = (int64_t)file->data.size;

    wpk_buf_append(&file->data, bytes, size);
    wpk_buf_append(&file->data, zeros, WPK_MODEL_PLAN_ALIGN(size) - size);
    return offset;
}

/* The same for a constant, unless its bytes are there. */
static int64_t add_constant(struct file *file, const void *bytes, size_t size)
{
    struct datum constant = {.size = size};

    wpk_checksum_hex(bytes, size, constant.checksum);
    for (int i = 0; i < file->constant_count; i++) {
        const struct datum *known = &file->constants[i];
        if (known->size == size && strcmp(known->checksum, constant.checksum) == 0 &&
            wpk_buf_status(&file->data) == WPK_OK &&
            memcmp(file->data.data + known->offset, bytes, size) == 0) {
            return known->offset;
        }
    }
    constant.offset = add_data(file, bytes, size);
    file->constants[file->constant_count++] = constant;
    return constant.offset;
}

static struct wpk_tensor_type type_of(const struct wpk_graph_value *value)
{
    struct wpk_tensor_type type = {
        .dtype = value->dtype, .rank = value->rank, .layout = wpk_layout_row_major(value->rank)};

    memcpy(type.extent, value->extent, sizeof(type.extent));
    memcpy(type.layout.pad_before, value->pad_before, sizeof(type.layout.pad_before));
    memcpy(type.layout.pad_after, value->pad_after, sizeof(type.layout.pad_after));
    return type;
}

static int find_root(const struct assembly *a, int value)
{
    int64_t offset;

    return wpk_graph_views_root(&a->regions->views, value, &offset);
}

/* The plan's value of a value of the graph. */
static int plan_value(struct assembly *a, int v)
{
    const struct wpk_graph_value *value = &a->graph->values[v];
    int64_t offset;
    int root = wpk_graph_views_root(&a->regions->views, v, &offset);
    int base = -1;

    if (a->number[v] >= 0) {
        return a->number[v];
    }
    if (root != v) {
        base = plan_value(a, root);
    }
    int number = a->plan->value_count++;
    struct wpk_model_plan_value *out = &a->plan->values[number];
    *out = (struct wpk_model_plan_value){
        .type = type_of(value), .is_part = value->is_part, .place = WPK_MODEL_PLAN_ARENA};
    if (root == v && value->data != NULL) {
        out->place = WPK_MODEL_PLAN_DATA;
        out->offset = add_constant(a->file, value->data, value->size);
    }
    a->number[v] = number;
    a->place_of[number] = -1;
    a->base[number] = base;
    a->shift[number] = offset * (int64_t)wpk_dtype_size(value->dtype);
    out->stride =
        wpk_graph_views_step(&a->regions->views, v) * (int64_t)wpk_dtype_size(value->dtype);
    return number;
}

static void set_place(struct assembly *a, int root, enum wpk_model_plan_place place, int index)
{
    struct wpk_model_plan_value *value = &a->plan->values[plan_value(a, root)];

    value->place = place;
    value->offset = index;
}

/* An output that a step computes is written where the caller wants it; one that is an input, a
 * constant, part of another value, or another output's memory is copied at the end. */
static void add_outputs(struct assembly *a)
{
    const struct wpk_graph *graph = a->graph;

    for (int i = 0; i < graph->output_count; i++) {
        int v = graph->outputs[i];
        int root = find_root(a, v);
        a->plan->outputs[i].name = graph->values[v].name;
        a->plan->outputs[i].value = plan_value(a, v);
        if (a->plan->values[plan_value(a, root)].place == WPK_MODEL_PLAN_ARENA &&
            !a->has_parts[root]) {
            set_place(a, root, WPK_MODEL_PLAN_OUTPUT, i);
        }
    }
    a->plan->output_count = graph->output_count;
}

static bool is_step(const struct assembly *a, int node)
{
    return a->regions->uses[node].region >= 0 || a->regions->uses[node].is_host;
}

/* Find the last step that touches each root; of those that a loop touches, the step behind it: an
 * iteration may need what the one before it did. */
static void find_last_uses(struct assembly *a)
{
    int step = 0;
    int loop_left = 0; /* steps of the loop from here on */

    for (int n = 0; n < a->graph->node_count; n++) {
        const struct wpk_graph_region_use *use = &a->regions->uses[n];
        int loop = a->graph->nodes[n].loop;
        if (loop > 0 && (n == 0 || a->graph->nodes[n - 1].loop != loop)) {
            loop_left = 0;
            for (int m = n; m <= wpk_graph_loop_end(a->graph, n); m++) {
                loop_left += is_step(a, m);
            }
        }
        if (!is_step(a, n)) {
            continue;
        }
        for (int i = 0; i < use->argument_count; i++) {
            a->last_use[find_root(a, use->arguments[i].value)] = loop > 0 ? step + loop_left : step;
        }
        loop_left--;
        step++;
    }
    for (int i = 0; i < a->graph->output_count; i++) {
        a->last_use[find_root(a, a->graph->outputs[i])] = INT_MAX; /* after the last step */
    }
}

/* The value that the step's kernel may replace by its output, and that nothing needs later; -1:
 * none. */
static int find_replaced(const struct assembly *a, const struct wpk_graph_region_use *use,
                         int output, int step)
{
    int found = -1;
    int count = 0;

    if (use->region < 0) {
        return -1;
    }
    const char *name = a->kernels[a->shape->kernel[use->region]].in_place;
    for (int i = 0; name[0] != '\0' && i < use->argument_count; i++) {
        if (strcmp(use->arguments[i].name, name) == 0) {
            found = find_root(a, use->arguments[i].value);
        }
    }
    for (int i = 0; i < use->argument_count; i++) {
        count += find_root(a, use->arguments[i].value) == found;
    }
    if (found < 0 || count != 1 || a->last_use[found] != step || a->has_parts[found] ||
        a->has_parts[output] || find_root(a, output) != output || a->number[found] < 0) {
        return -1;
    }
    const struct wpk_model_plan_value *value = &a->plan->values[a->number[found]];
    return a->place_of[a->number[found]] >= 0 && !value->is_part ? found : -1;
}

/* Put the step's output where that value is. */
static void replace(struct assembly *a, int output, int value)
{
    int from = a->number[value];
    int to = plan_value(a, output);
    const struct wpk_model_plan_value *out = &a->plan->values[to];
    const struct wpk_tensor_type *before = &a->plan->values[from].type;
    bool are_dense = wpk_layout_is_row_major(&before->layout) &&
                     wpk_layout_is_row_major(&out->type.layout) &&
                     wpk_tensor_type_bytes(before) == wpk_tensor_type_bytes(&out->type);

    if (out->place == WPK_MODEL_PLAN_ARENA && !out->is_part && a->place_of[to] < 0 &&
        (are_dense || wpk_tensor_type_equal(&out->type, before))) {
        a->place_of[to] = a->place_of[from];
    }
}

/* Note that step `step` touches the value. */
static void touch(struct assembly *a, int v, int step)
{
    int number = plan_value(a, find_root(a, v));
    const struct wpk_model_plan_value *value = &a->plan->values[number];

    if (value->place != WPK_MODEL_PLAN_ARENA) {
        return;
    }
    if (a->place_of[number] < 0) {
        a->place_of[number] = a->place_count;
        a->places[a->place_count++] = (struct wpk_placement){
            .size = (int64_t)WPK_MODEL_PLAN_ALIGN(wpk_tensor_type_bytes(&value->type)),
            .first = step};
    }
    a->places[a->place_of[number]].last = step;
}

/* The names of the step's nodes, "conv1 + relu2".   owns  by the plan */
static const char *name_step(struct assembly *a, const struct wpk_graph_region_use *use)
{
    struct wpk_buf names = {0};

    for (int i = 0; i < use->node_count; i++) {
        const char *name = a->graph->nodes[use->nodes[i]].name;
        if (name[0] == '\0') { /* a change of order */
            continue;
        }
        wpk_buf_printf(&names, "%s%s", names.size > 0 ? " + " : "", name);
        if (names.size > STEP_NAME_MAX && i + 1 < use->node_count) {
            wpk_buf_printf(&names, " + %d more", use->node_count - i - 1);
            break;
        }
    }
    if (names.size == 0) {
        wpk_buf_append_text(&names, "(another order)");
    }
    const char *text = WPK_DEMAND(wpk_arena_copy_text(a->arena, wpk_buf_text(&names)));
    wpk_buf_fini(&names);
    return text;
}

static void add_step(struct assembly *a, int node)
{
    const struct wpk_graph_region_use *use = &a->regions->uses[node];
    struct wpk_model_plan_step *step = &a->plan->steps[a->plan->step_count];

    step->kernel = use->region >= 0 ? a->shape->kernel[use->region] : -1;
    step->host = use->host;
    step->node = name_step(a, use);
    step->arguments =
        WPK_ARENA_DEMAND(a->arena, struct wpk_model_plan_argument, (size_t)use->argument_count);
    int output = a->graph->nodes[node].outputs[0];
    int replaced = find_replaced(a, use, output, a->plan->step_count);
    if (replaced >= 0) {
        replace(a, output, replaced);
    }
    for (int i = 0; i < use->argument_count; i++) {
        struct wpk_model_plan_argument *argument = &step->arguments[step->argument_count++];
        snprintf(argument->name, sizeof(argument->name), "%s", use->arguments[i].name);
        argument->value = plan_value(a, use->arguments[i].value);
        touch(a, use->arguments[i].value, a->plan->step_count);
    }
    a->plan->step_count++;
}

/* Behind the last node of a loop: note its steps. The tensors that these steps read or write keep
 * their memory until the loop ends. */
static void end_loop(struct assembly *a, int node)
{
    const struct wpk_graph_node *nodes = a->graph->nodes;
    const int loop = nodes[node].loop;
    struct wpk_model_plan_loop *out = &a->plan->loops[a->plan->loop_count];
    const int last = a->plan->step_count - 1;

    if (loop == 0 || (node + 1 < a->graph->node_count && nodes[node + 1].loop == loop)) {
        return;
    }
    *out = (struct wpk_model_plan_loop){.first = a->plan->step_count, .times = nodes[node].times};
    for (int n = node; n >= 0 && nodes[n].loop == loop; n--) {
        out->first -= is_step(a, n);
    }
    out->count = a->plan->step_count - out->first;
    a->plan->loop_count += out->count > 0;
    for (int p = 0; p < a->place_count; p++) {
        struct wpk_placement *place = &a->places[p];
        if (place->last >= out->first && place->last <= last) {
            place->first = place->first < out->first ? place->first : out->first;
            place->last = last;
        }
    }
}

static void add_note(struct assembly *a, const char *node, const char *why)
{
    a->plan->notes[a->plan->note_count++] = (struct wpk_model_plan_note){node, why};
}

/* True if the node's output is part of an input. */
static bool is_part(const struct assembly *a, const struct wpk_graph_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] >= 0 && a->regions->views.of[node->outputs[0]] == node->inputs[i]) {
            return true;
        }
    }
    return false;
}

/* Say of every node that is no step why it is none. */
static void add_notes(struct assembly *a)
{
    for (int i = 0; i < a->graph->note_count; i++) {
        add_note(a, a->graph->notes[i].node, a->graph->notes[i].why);
    }
    for (int n = 0; n < a->graph->node_count; n++) {
        const struct wpk_graph_node *node = &a->graph->nodes[n];
        if (node->name[0] == '\0') {
            continue;
        }
        if (a->graph->values[node->outputs[0]].data != NULL) {
            add_note(a, node->name, "follows from constants and shapes");
        } else if (a->regions->uses[n].is_view) {
            add_note(a, node->name,
                     is_part(a, node) ? "its output is its input's memory"
                                      : "its inputs are parts of its output");
        }
    }
}

static void place_values(struct assembly *a)
{
    wpk_placement_solve(a->places, a->place_count, &a->plan->arena_size);

    for (int v = 0; v < a->plan->value_count; v++) {
        struct wpk_model_plan_value *value = &a->plan->values[v];
        if (a->place_of[v] >= 0) {
            value->offset = a->places[a->place_of[v]].offset;
        }
        if (a->base[v] >= 0) { /* a value that comes before */
            const struct wpk_model_plan_value *base = &a->plan->values[a->base[v]];
            value->place = base->place;
            value->offset = base->offset + a->shift[v];
        }
    }
}

static wpk_err allocate(struct assembly *a, struct wpk_diag *diag)
{
    const struct wpk_graph *graph = a->graph;
    size_t values = (size_t)graph->value_count;
    struct wpk_arena *arena = a->arena;

    if (graph->input_count > WPK_MODEL_PLAN_ENDS_MAX ||
        graph->output_count > WPK_MODEL_PLAN_ENDS_MAX) {
        return wpk_fail(diag, WPK_ERANGE, "more than %d inputs or outputs",
                        WPK_MODEL_PLAN_ENDS_MAX);
    }
    a->has_parts = WPK_ARENA_DEMAND(arena, bool, (size_t)graph->value_count);
    a->base = WPK_ARENA_DEMAND(arena, int, values);
    a->shift = WPK_ARENA_DEMAND(arena, int64_t, values);
    a->number = WPK_ARENA_DEMAND(arena, int, (size_t)graph->value_count);
    a->places = WPK_ARENA_DEMAND(arena, struct wpk_placement, values);
    a->place_of = WPK_ARENA_DEMAND(arena, int, values);
    a->last_use = WPK_ARENA_DEMAND(arena, int, values);
    a->plan->values = WPK_ARENA_DEMAND(arena, struct wpk_model_plan_value, values);
    a->plan->inputs =
        WPK_ARENA_DEMAND(arena, struct wpk_model_plan_end, (size_t)graph->input_count);
    a->plan->outputs =
        WPK_ARENA_DEMAND(arena, struct wpk_model_plan_end, (size_t)graph->output_count);
    a->plan->notes = WPK_ARENA_DEMAND(arena, struct wpk_model_plan_note,
                                      (size_t)(graph->node_count + graph->note_count));
    a->plan->steps = WPK_ARENA_DEMAND(arena, struct wpk_model_plan_step, (size_t)graph->node_count);
    a->plan->loops =
        WPK_ARENA_DEMAND(arena, struct wpk_model_plan_loop, (size_t)graph->loop_count + 1);
    return WPK_OK;
}

static wpk_err assemble_shape(struct assembly *a, struct wpk_diag *diag)
{
    wpk_err err = allocate(a, diag);

    if (err != WPK_OK) {
        return err;
    }
    for (int v = 0; v < a->graph->value_count; v++) {
        int root = find_root(a, v);
        a->number[v] = -1;
        if (wpk_graph_elements(&a->graph->values[v]) !=
            wpk_graph_elements(&a->graph->values[root])) {
            a->has_parts[root] = true;
        }
    }
    find_last_uses(a);
    const struct wpk_graph *graph = a->graph;
    struct wpk_domain *domains =
        WPK_DEMAND(calloc((size_t)graph->input_count + 1, sizeof(*domains)));
    err = wpk_graph_domains(graph, domains);
    for (int i = 0; i < graph->input_count; i++) {
        set_place(a, graph->inputs[i], WPK_MODEL_PLAN_INPUT, i);
        a->plan->inputs[i].name = graph->values[graph->inputs[i]].name;
        a->plan->inputs[i].value = plan_value(a, graph->inputs[i]);
        a->plan->inputs[i].domain = domains[i];
    }
    a->plan->input_count = graph->input_count;
    free(domains);
    add_outputs(a);
    for (int n = 0; n < a->graph->node_count; n++) {
        if (is_step(a, n)) {
            add_step(a, n);
        }
        end_loop(a, n);
    }
    for (int i = 0; i < a->graph->output_count; i++) {
        touch(a, a->graph->outputs[i], a->plan->step_count); /* copied after the last step */
    }
    add_notes(a);
    place_values(a);
    return err;
}

/* ---- the file */

static wpk_err add_kernel(struct file *file, const struct wpk_assemble_parts *parts, int index,
                          struct wpk_diag *diag)
{
    const struct wpk_assemble_kernel *kernel = &parts->kernels[index];
    const struct wpk_assemble_shape *shape = &parts->shapes[kernel->shape];
    struct wpk_model_plan_kernel *out = &file->plan.kernels[index];

    *out = (struct wpk_model_plan_kernel){
        .offset = add_data(file, kernel->object.data, kernel->object.size),
        .size = (int64_t)kernel->object.size,
        .time_ns = (int64_t)kernel->time_ns,
        .vendor_ns = (int64_t)kernel->vendor_ns,
    };
    snprintf(out->name, sizeof(out->name), "%s", shape->regions.list[kernel->region].name);
    snprintf(out->vendor, sizeof(out->vendor), "%s", kernel->vendor);
    /* Fill in the operations and bytes of the kernel's program. */
    const struct wpk_graph_region *r = &shape->regions.list[kernel->region];
    struct wpk_lowered lowered;
    struct wpk_cost cost;
    wpk_err err = wpk_graph_fuse(&shape->graph, r->nodes, r->node_count, &lowered, diag);
    if (err == WPK_OK) {
        wpk_cost(&lowered.program, &cost);
        out->flops = cost.flops;
        out->bytes = cost.bytes_min;
    }
    wpk_lowered_fini(&lowered);
    return err;
}

static wpk_err assemble(struct file *file, const struct wpk_assemble_parts *parts,
                        struct wpk_diag *diag)
{
    struct wpk_model_plan *plan = &file->plan;
    size_t values = 0;
    for (int s = 0; s < parts->shape_count; s++) {
        values += (size_t)parts->shapes[s].graph.value_count;
    }
    wpk_arena_init(&plan->arena, (size_t)4 << 30);
    file->constants = WPK_ARENA_DEMAND(&plan->arena, struct datum, values);
    plan->kernels =
        WPK_ARENA_DEMAND(&plan->arena, struct wpk_model_plan_kernel, (size_t)parts->kernel_count);
    plan->shapes =
        WPK_ARENA_DEMAND(&plan->arena, struct wpk_model_plan_shape, (size_t)parts->shape_count);
    plan->threads = parts->threads;
    plan->kernel_count = parts->kernel_count;
    plan->shape_count = parts->shape_count;
    snprintf(plan->device, sizeof(plan->device), "%s", parts->device);
    wpk_err err = WPK_OK;

    for (int k = 0; err == WPK_OK && k < parts->kernel_count; k++) {
        err = add_kernel(file, parts, k, diag);
    }
    for (int s = 0; err == WPK_OK && s < parts->shape_count; s++) {
        struct assembly a = {
            .file = file,
            .shape = &parts->shapes[s],
            .graph = &parts->shapes[s].graph,
            .regions = &parts->shapes[s].regions,
            .arena = &file->plan.arena,
            .plan = &file->plan.shapes[s],
            .kernels = parts->kernels,
        };
        err = assemble_shape(&a, diag);
    }
    return err == WPK_OK ? wpk_buf_status(&file->data) : err;
}

wpk_err wpk_assemble_plan(const struct wpk_assemble_parts *parts, struct wpk_buf *out,
                          struct wpk_diag *diag)
{
    struct file file = {.data = {.size_max = DATA_SIZE_MAX}};

    wpk_err err = assemble(&file, parts, diag);
    if (err == WPK_OK) {
        file.plan.data = wpk_buf_text(&file.data);
        file.plan.data_size = file.data.size;
        err = wpk_model_plan_encode(&file.plan, out);
    }
    wpk_buf_fini(&file.data);
    wpk_model_plan_fini(&file.plan);
    return err;
}

void wpk_assemble_shape_fini(struct wpk_assemble_shape *shape)
{
    wpk_graph_regions_fini(&shape->regions);
    wpk_graph_fini(&shape->graph);
    free(shape->kernel);
    shape->kernel = NULL;
}
