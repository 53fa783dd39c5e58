/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/cost.h"

#include "ir/data_index.h"

#include <stdlib.h>

static double axis_product(const struct wpk_stage *stage, int from, int to)
{
    double product = 1.0;
    for (int a = from; a < to; a++) {
        product *= (double)stage->axes[a].extent;
    }
    return product;
}

/* Operations in one evaluation of the expression, each distinct node once; casts, loads and what
 * computes their indices are free. `seen` may be NULL: then a shared node counts once per path. */
static double count_operations(const struct wpk_program *program, int node, bool *seen)
{
    const struct wpk_node *n = &program->nodes[node];
    int arg_count = 0;
    switch (n->kind) {
    case WPK_NODE_LITERAL:
    case WPK_NODE_AXIS:
    case WPK_NODE_LOAD:
        return 0.0;
    case WPK_NODE_UNARY:
    case WPK_NODE_CAST:
        arg_count = 1;
        break;
    case WPK_NODE_BINARY:
        arg_count = 2;
        break;
    case WPK_NODE_SELECT:
        arg_count = 3;
        break;
    }
    if (seen != NULL) {
        if (seen[node]) {
            return 0.0;
        }
        seen[node] = true;
    }
    double count = n->kind == WPK_NODE_CAST ? 0.0 : 1.0;
    for (int i = 0; i < arg_count; i++) {
        count += count_operations(program, n->arg[i], seen);
    }
    return count;
}

void wpk_stage_cost(const struct wpk_program *program, int stage_index, struct wpk_cost *out)
{
    const struct wpk_stage *stage = &program->stages[stage_index];
    const struct wpk_tensor *output = &program->tensors[stage->output];
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    double iterations = axis_product(stage, 0, stage->axis_count);
    double bytes = (double)wpk_tensor_elements(output) * (double)wpk_dtype_size(output->dtype);
    /* Without memory for it the count is an upper bound, which beats failing. */
    bool *seen = calloc((size_t)program->node_count + 1, sizeof *seen);
    double operations = count_operations(program, stage->expr, seen);
    free(seen);
    *out = (struct wpk_cost){.flops = iterations * (operations + (reduces ? 1.0 : 0.0)),
                             .iterations = iterations,
                             .elements = (double)wpk_tensor_elements(output)};
    if (output->role == WPK_ROLE_INTERMEDIATE) {
        out->bytes_intermediate = bytes;
    }
}

/* Elements of a tensor that are read. */
struct reading {
    const struct wpk_stage *stage;
    int tensor;
    double elements;
    unsigned axes; /* of one load */
};

static void mark_axis(const struct wpk_program *program, int node, void *user)
{
    struct reading *reading = user;
    bool is_axis = program->nodes[node].kind == WPK_NODE_AXIS;
    reading->axes |= is_axis ? 1U << program->nodes[node].axis : 0;
}

/* A load at indices that are data reads an element at each point of its axes, others read all. */
static void add_load(const struct wpk_program *program, int node, void *user)
{
    struct reading *reading = user;
    const struct wpk_node *load = &program->nodes[node];
    if (load->kind != WPK_NODE_LOAD || load->tensor != reading->tensor) {
        return;
    }
    double elements = wpk_load_gathers(program, load) ? 1 : (double)WPK_ELEMENTS_MAX;
    reading->axes = 0;
    wpk_node_walk(program, node, true, mark_axis, reading);
    for (int a = 0; a < reading->stage->axis_count; a++) {
        elements *= (reading->axes >> a & 1) != 0 ? (double)reading->stage->axes[a].extent : 1;
    }
    reading->elements += elements;
}

static double elements_read(const struct wpk_program *program, int tensor)
{
    struct reading reading = {.tensor = tensor};
    double all = (double)wpk_tensor_elements(&program->tensors[tensor]);
    for (int s = 0; s < program->stage_count && wpk_tensor_gathers(program, tensor); s++) {
        reading.stage = &program->stages[s];
        wpk_node_walk(program, reading.stage->expr, false, add_load, &reading);
    }
    return reading.elements > 0 && reading.elements < all ? reading.elements : all;
}

void wpk_cost(const struct wpk_program *program, struct wpk_cost *out)
{
    struct wpk_cost sum = {0};
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_cost stage;
        wpk_stage_cost(program, s, &stage);
        sum.flops += stage.flops;
        sum.iterations += stage.iterations;
        sum.elements += stage.elements;
        sum.bytes_intermediate += stage.bytes_intermediate;
    }
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        double bytes = elements_read(program, t) * (double)wpk_dtype_size(tensor->dtype);
        if (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT ||
            tensor->role == WPK_ROLE_OUTPUT) {
            sum.bytes_min += bytes;
        }
        if (tensor->role == WPK_ROLE_CONSTANT) {
            sum.bytes_constants += bytes;
        }
    }
    *out = sum;
}

double wpk_cost_memory_bytes(const struct wpk_cost *cost, enum wpk_conditions conditions,
                             double cache_bytes)
{
    double cold = conditions == WPK_CONDITIONS_COLD             ? cost->bytes_min
                  : conditions == WPK_CONDITIONS_COLD_CONSTANTS ? cost->bytes_constants
                                                                : 0;
    double warm = cost->bytes_min - cold;
    return cold + (warm > cache_bytes ? warm : 0);
}

double wpk_cost_roofline_ns(const struct wpk_cost *cost, double memory_bytes,
                            const struct wpk_roofline *roofline)
{
    WPK_ASSERT(roofline->flops_per_s > 0.0);
    WPK_ASSERT(roofline->bytes_per_s > 0.0);
    double compute = cost->flops / roofline->flops_per_s;
    double traffic = memory_bytes / roofline->bytes_per_s;
    return 1e9 * (compute > traffic ? compute : traffic);
}
