/* SPDX-License-Identifier: Apache-2.0 */
/* From a stage to its tape: the loop nest and the instructions. */
#include "ir/node.h"
#include "ir/reference/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct compiler {
    const struct wpk_program *program;
    const struct wpk_stage *stage;
    const struct wpk_tape_use *use;
    struct wpk_tape *tape;
    int *slot_of;               /* [node_count] -1: not yet */
    int position[WPK_AXES_MAX]; /* of each axis in the loop nest */
    bool failed;                /* out of memory */
};

static void order_loops(struct compiler *c)
{
    struct wpk_tape *tape = c->tape;
    const struct wpk_stage *stage = c->stage;
    bool lane_is_output = tape->lane_axis >= 0 && tape->lane_axis < stage->rank;
    if (lane_is_output) {
        tape->loop_axis[tape->loop_count++] = tape->lane_axis;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (a != tape->lane_axis) {
            tape->loop_axis[tape->loop_count++] = a;
        }
    }
    if (tape->lane_axis >= 0 && !lane_is_output) {
        tape->loop_axis[tape->loop_count++] = tape->lane_axis;
    }
    tape->output_loops = stage->rank;
    WPK_ASSERT(tape->loop_count == stage->axis_count);
    for (int p = 0; p < tape->loop_count; p++) {
        c->position[tape->loop_axis[p]] = p;
    }
}

/* ---- instructions */

static int emit(struct compiler *c, int node);

static bool is_integer(enum wpk_dtype dtype)
{
    return !wpk_dtype_is_float(dtype);
}

static struct wpk_tape_instruction *at(const struct compiler *c, int slot)
{
    return &c->tape->instructions[slot];
}

/* Append, deriving what follows from the operands: axes, level, lanes. Returns the slot. */
static int append(struct compiler *c, struct wpk_tape_instruction instruction)
{
    struct wpk_tape *tape = c->tape;
    if (tape->instruction_count == tape->instruction_capacity) {
        int capacity = tape->instruction_capacity == 0 ? 32 : 2 * tape->instruction_capacity;
        void *grown =
            realloc(tape->instructions, (size_t)capacity * sizeof(struct wpk_tape_instruction));
        if (grown == NULL) {
            c->failed = true;
            return -1;
        }
        tape->instructions = grown;
        tape->instruction_capacity = capacity;
    }
    instruction.level = -1;
    for (int a = 0; a < c->stage->axis_count; a++) {
        if ((instruction.axes >> a & 1u) != 0 && c->position[a] > instruction.level) {
            instruction.level = c->position[a];
        }
    }
    bool on_lanes = tape->lane_axis >= 0 && (instruction.axes >> tape->lane_axis & 1u) != 0;
    instruction.lanes = on_lanes || instruction.kind == WPK_TAPE_BROADCAST;
    bool computes = instruction.kind == WPK_TAPE_UNARY || instruction.kind == WPK_TAPE_BINARY ||
                    instruction.kind == WPK_TAPE_CAST;
    instruction.rounds = tape->rounds && computes && wpk_dtype_is_float(instruction.dtype);
    tape->instructions[tape->instruction_count] = instruction;
    return tape->instruction_count++;
}

static int broadcast(struct compiler *c, int slot)
{
    if (at(c, slot)->lanes) {
        return slot;
    }
    for (int i = slot + 1; i < c->tape->instruction_count; i++) {
        if (at(c, i)->kind == WPK_TAPE_BROADCAST && at(c, i)->arg[0] == slot) {
            return i;
        }
    }
    return append(c, (struct wpk_tape_instruction){.kind = WPK_TAPE_BROADCAST,
                                                   .arg = {slot, -1, -1},
                                                   .axes = at(c, slot)->axes,
                                                   .low = at(c, slot)->low,
                                                   .high = at(c, slot)->high});
}

/* Append an operation on `count` slots: uniform ones are broadcast where another has lanes. */
static int append_operation(struct compiler *c, struct wpk_tape_instruction instruction, int count)
{
    bool lanes = false;
    for (int i = 0; i < count; i++) {
        if (instruction.arg[i] < 0) {
            return -1;
        }
        lanes = lanes || at(c, instruction.arg[i])->lanes;
        instruction.axes |= at(c, instruction.arg[i])->axes;
    }
    for (int i = 0; lanes && i < count; i++) {
        instruction.arg[i] = broadcast(c, instruction.arg[i]);
        if (instruction.arg[i] < 0) {
            return -1;
        }
    }
    return append(c, instruction);
}

/* Bounds of an integer operation before it wraps; the type's where nothing better is known. */
static void bound_binary(struct compiler *c, struct wpk_tape_instruction *i)
{
    const struct wpk_tape_instruction *a = at(c, i->arg[0]);
    const struct wpk_tape_instruction *b = at(c, i->arg[1]);
    const double products[4] = {a->low * b->low, a->low * b->high, a->high * b->low,
                                a->high * b->high};
    switch (i->op) {
    case WPK_BINARY_ADD:
        i->low = a->low + b->low;
        i->high = a->high + b->high;
        break;
    case WPK_BINARY_SUB:
        i->low = a->low - b->high;
        i->high = a->high - b->low;
        break;
    case WPK_BINARY_MUL:
        i->low = fmin(fmin(products[0], products[1]), fmin(products[2], products[3]));
        i->high = fmax(fmax(products[0], products[1]), fmax(products[2], products[3]));
        break;
    case WPK_BINARY_DIV: /* the one quotient that leaves a signed type: its minimum by -1 */
        i->low = -fmax(fabs(a->low), fabs(a->high));
        i->high = -i->low;
        if (a->low >= 0.0 && b->low >= 0.0) {
            i->low = 0.0;
        }
        break;
    case WPK_BINARY_POW:
        i->low = -INFINITY;
        i->high = INFINITY;
        break;
    default:
        wpk_convert_bounds(i->dtype, &i->low, &i->high);
    }
}

static void settle_bounds(struct wpk_tape_instruction *i)
{
    i->wraps = false;
    if (!is_integer(i->dtype)) {
        return;
    }
    double low;
    double high;
    wpk_convert_bounds(i->dtype, &low, &high);
    bool leaves = i->low < low || i->high > high || (i->dtype == WPK_I64 && i->high == high);
    if (leaves) { /* operations on i64 wrap by themselves */
        i->wraps = i->dtype != WPK_I64;
        i->low = low;
        i->high = high;
    }
}

/* Functions that no machine computes correctly rounded. */
static bool is_inexact(const struct wpk_node *n)
{
    static const bool unary[WPK_UNARY_COUNT] = {
        [WPK_UNARY_EXP] = true,  [WPK_UNARY_LOG] = true, [WPK_UNARY_RSQRT] = true,
        [WPK_UNARY_TANH] = true, [WPK_UNARY_ERF] = true, [WPK_UNARY_SIGMOID] = true,
        [WPK_UNARY_SIN] = true,  [WPK_UNARY_COS] = true,
    };
    return (n->kind == WPK_NODE_UNARY && unary[n->op]) ||
           (n->kind == WPK_NODE_BINARY && n->op == WPK_BINARY_POW && !is_integer(n->dtype));
}

/* One for each stage and node, so that no two functions draw the same errors; 0: exact. */
static uint64_t salt_of(const struct compiler *c, const struct wpk_node *n)
{
    if (!c->tape->rounds || !is_inexact(n)) {
        return 0;
    }
    uint64_t stage = (uint64_t)(c->stage - c->program->stages);
    return stage * WPK_NODES_MAX + (uint64_t)(n - c->program->nodes) + 1;
}

static int emit_unary(struct compiler *c, const struct wpk_node *n)
{
    int a = emit(c, n->arg[0]);
    if (a < 0) {
        return -1;
    }
    struct wpk_tape_instruction i = {.kind = WPK_TAPE_UNARY,
                                     .op = n->op,
                                     .dtype = n->dtype,
                                     .arg = {a, -1, -1},
                                     .salt = salt_of(c, n)};
    if (n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_ABS) {
        double most = fmax(fabs(at(c, a)->low), fabs(at(c, a)->high));
        i.low = n->op == WPK_UNARY_NEG ? -at(c, a)->high : 0.0;
        i.high = n->op == WPK_UNARY_NEG ? -at(c, a)->low : most;
    } else {
        wpk_convert_bounds(is_integer(n->dtype) ? n->dtype : WPK_I64, &i.low, &i.high);
    }
    settle_bounds(&i);
    return append_operation(c, i, 1);
}

static int emit_binary(struct compiler *c, const struct wpk_node *n)
{
    struct wpk_tape_instruction i = {.kind = WPK_TAPE_BINARY,
                                     .op = n->op,
                                     .dtype = n->dtype,
                                     .from = c->program->nodes[n->arg[0]].dtype,
                                     .arg = {emit(c, n->arg[0]), emit(c, n->arg[1]), -1},
                                     .salt = salt_of(c, n)};
    if (i.arg[0] < 0 || i.arg[1] < 0) {
        return -1;
    }
    if (is_integer(n->dtype)) {
        bound_binary(c, &i);
        settle_bounds(&i);
    }
    return append_operation(c, i, 2);
}

/* True if a cast changes no value of the slot. */
static bool cast_keeps(const struct compiler *c, int slot, enum wpk_dtype from, enum wpk_dtype to)
{
    if (from == to) {
        return true;
    }
    if (from == WPK_I64 || to == WPK_I64) { /* another kind of cell */
        return false;
    }
    if (from == WPK_BOOL) {
        return true;
    }
    if (wpk_dtype_is_float(to)) {
        bool narrow = from != WPK_F64 && from != WPK_F32 && from != WPK_I32 && from != WPK_I64;
        return !c->tape->rounds || to == WPK_F64 || (to == WPK_F32 && narrow);
    }
    if (to == WPK_BOOL || wpk_dtype_is_float(from)) {
        return false;
    }
    double low;
    double high;
    wpk_convert_bounds(to, &low, &high);
    return at(c, slot)->low >= low && at(c, slot)->high <= high;
}

static int emit_cast(struct compiler *c, int slot, enum wpk_dtype from, enum wpk_dtype to)
{
    if (slot < 0 || cast_keeps(c, slot, from, to)) {
        return slot;
    }
    struct wpk_tape_instruction i = {
        .kind = WPK_TAPE_CAST, .dtype = to, .from = from, .arg = {slot, -1, -1}};
    wpk_convert_bounds(to, &i.low, &i.high);
    if (is_integer(from) && is_integer(to) && at(c, slot)->low >= i.low &&
        at(c, slot)->high <= i.high) {
        i.low = at(c, slot)->low;
        i.high = at(c, slot)->high;
    }
    return append_operation(c, i, 1);
}

/* ---- loads */

static bool set_dim(struct compiler *c, struct wpk_tape_load *load, int d, int node, uint32_t *axes)
{
    struct wpk_tape_dim *dim = &load->dim[d];
    int64_t low;
    int64_t high;
    wpk_index_range(c->program, c->stage, node, &low, &high);
    *dim = (struct wpk_tape_dim){.slot = -1};
    dim->checked = low < 0 || high >= c->program->tensors[load->tensor].extent[d];
    struct wpk_affine affine;
    if (!wpk_index_affine(c->program, node, &affine)) {
        dim->slot = emit(c, node);
        if (dim->slot < 0) {
            return false;
        }
        *axes |= at(c, dim->slot)->axes;
        load->gathers = load->gathers || at(c, dim->slot)->lanes;
        return true;
    }
    dim->constant = affine.constant;
    for (int a = 0; a < c->stage->axis_count; a++) {
        if (affine.coefficient[a] != 0) {
            dim->term[dim->term_count++] = (struct wpk_tape_term){a, affine.coefficient[a]};
            *axes |= 1u << a;
        }
    }
    dim->lane_coefficient = c->tape->lane_axis < 0 ? 0 : affine.coefficient[c->tape->lane_axis];
    return true;
}

static int add_load(struct compiler *c, const struct wpk_tape_load *load)
{
    struct wpk_tape *tape = c->tape;
    if (tape->load_count == tape->load_capacity) {
        int capacity = tape->load_capacity == 0 ? 8 : 2 * tape->load_capacity;
        void *grown = realloc(tape->loads, (size_t)capacity * sizeof *load);
        if (grown == NULL) {
            c->failed = true;
            return -1;
        }
        tape->loads = grown;
        tape->load_capacity = capacity;
    }
    tape->loads[tape->load_count] = *load;
    return tape->load_count++;
}

/* The cell of a literal. */
static double literal_cell(const struct compiler *c, const struct wpk_node *n)
{
    if (n->dtype == WPK_I64) {
        return wpk_cell_of(n->integer);
    }
    double value = wpk_node_number(n);
    return c->tape->rounds ? wpk_dtype_round(n->dtype, value) : value;
}

static int emit_load(struct compiler *c, const struct wpk_node *n, int64_t iterations)
{
    const struct wpk_tensor *tensor = &c->program->tensors[n->tensor];
    struct wpk_tape_load load = {
        .tensor = n->tensor, .rank = tensor->rank, .dtype = tensor->dtype, .pack_dim = -1};
    struct wpk_tape_instruction i = {.kind = WPK_TAPE_LOAD, .dtype = n->dtype, .arg = {-1, -1, -1}};
    for (int d = 0; d < tensor->rank; d++) {
        if (!set_dim(c, &load, d, n->index[d], &i.axes)) {
            return -1;
        }
    }
    if (is_integer(n->dtype)) {
        wpk_convert_bounds(n->dtype, &i.low, &i.high);
    }
    load.outside = n->outside < 0 ? 0.0 : literal_cell(c, &c->program->nodes[n->outside]);
    if (c->tape->lane_axis >= 0) {
        load.pack_dim = wpk_tape_dim_to_pack(c->program, n, c->tape->lane_axis, c->use, iterations);
    }
    i.load = add_load(c, &load);
    return i.load < 0 ? -1 : append(c, i);
}

static int64_t iterations_of(const struct compiler *c)
{
    int64_t iterations = 1;
    for (int a = 0; a < c->stage->axis_count; a++) {
        iterations *= c->tape->axis_extent[a];
    }
    return iterations;
}

static int emit_select(struct compiler *c, const struct wpk_node *n)
{
    struct wpk_tape_instruction i = {
        .kind = WPK_TAPE_SELECT,
        .dtype = n->dtype,
        .arg = {emit(c, n->arg[0]), emit(c, n->arg[1]), emit(c, n->arg[2])}};
    if (i.arg[0] < 0 || i.arg[1] < 0 || i.arg[2] < 0) {
        return -1;
    }
    i.low = fmin(at(c, i.arg[1])->low, at(c, i.arg[2])->low);
    i.high = fmax(at(c, i.arg[1])->high, at(c, i.arg[2])->high);
    return append_operation(c, i, 3);
}

static int emit_literal(struct compiler *c, const struct wpk_node *n)
{
    double cell = literal_cell(c, n), number = wpk_cell_number(n->dtype, cell);
    return append(c, (struct wpk_tape_instruction){.kind = WPK_TAPE_LITERAL,
                                                   .dtype = n->dtype,
                                                   .arg = {-1, -1, -1},
                                                   .literal = cell,
                                                   .low = number,
                                                   .high = number});
}

static int emit_axis(struct compiler *c, int axis)
{
    return append(c, (struct wpk_tape_instruction){.kind = WPK_TAPE_AXIS,
                                                   .dtype = WPK_I64,
                                                   .arg = {-1, -1, -1},
                                                   .axis = axis,
                                                   .axes = 1u << axis,
                                                   .high = (double)c->stage->axes[axis].extent});
}

/* The slot of a node, compiled once however often it is used; -1 on failure. */
static int emit(struct compiler *c, int node)
{
    if (c->slot_of[node] >= 0) {
        return c->slot_of[node];
    }
    const struct wpk_node *n = &c->program->nodes[node];
    int slot = -1;
    switch (n->kind) {
    case WPK_NODE_LITERAL:
        slot = emit_literal(c, n);
        break;
    case WPK_NODE_AXIS:
        slot = emit_axis(c, n->axis);
        break;
    case WPK_NODE_LOAD:
        slot = emit_load(c, n, iterations_of(c));
        break;
    case WPK_NODE_UNARY:
        slot = emit_unary(c, n);
        break;
    case WPK_NODE_BINARY:
        slot = emit_binary(c, n);
        break;
    case WPK_NODE_SELECT:
        slot = emit_select(c, n);
        break;
    case WPK_NODE_CAST:
        slot = emit_cast(c, emit(c, n->arg[0]), c->program->nodes[n->arg[0]].dtype, n->dtype);
        break;
    }
    c->slot_of[node] = slot;
    return slot;
}

/* ---- the root */

/* True when the product of the factors stays inside its integer type (or is floating). */
static bool product_is_exact(struct compiler *c, enum wpk_dtype dtype, const int factor[2],
                             double *most)
{
    struct wpk_tape_instruction i = {
        .op = WPK_BINARY_MUL, .dtype = dtype, .arg = {factor[0], factor[1], -1}};
    if (!is_integer(dtype)) {
        return true;
    }
    bound_binary(c, &i);
    *most = fmax(fabs(i.low), fabs(i.high));
    settle_bounds(&i);
    return !i.wraps;
}

/* Leave the last product of a sum to the accumulator. False: not of that form. */
static bool take_factors(struct compiler *c, double *most)
{
    const struct wpk_stage *stage = c->stage;
    const struct wpk_node *root = &c->program->nodes[stage->expr];
    if (stage->reduction != WPK_REDUCE_SUM || root->kind != WPK_NODE_BINARY ||
        root->op != WPK_BINARY_MUL || root->dtype == WPK_I64 || stage->accumulator == WPK_I64 ||
        (is_integer(stage->accumulator) && !is_integer(root->dtype))) {
        return false;
    }
    int factor[2] = {emit(c, root->arg[0]), emit(c, root->arg[1])};
    if (factor[0] < 0 || factor[1] < 0 || !product_is_exact(c, root->dtype, factor, most)) {
        return false;
    }
    bool first = at(c, factor[0])->lanes;
    bool second = at(c, factor[1])->lanes;
    if (!first && !second) {
        return false;
    }
    c->tape->sparse = !first || !second;
    c->tape->factor[0] = first && !second ? factor[1] : factor[0];
    c->tape->factor[1] = first && !second ? factor[0] : factor[1];
    return true;
}

static void emit_root(struct compiler *c)
{
    struct wpk_tape *tape = c->tape;
    const struct wpk_stage *stage = c->stage;
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    double most = 0.0;
    if (!take_factors(c, &most)) {
        enum wpk_dtype from = c->program->nodes[stage->expr].dtype;
        enum wpk_dtype to = reduces ? stage->accumulator : c->program->tensors[stage->output].dtype;
        int slot = emit_cast(c, emit(c, stage->expr), from, to);
        slot = slot >= 0 && tape->lane_axis >= 0 ? broadcast(c, slot) : slot;
        tape->factor[0] = slot;
        tape->factor[1] = -1;
        if (slot < 0) {
            return;
        }
        most = fmax(fabs(at(c, slot)->low), fabs(at(c, slot)->high));
    }
    double count = wpk_stage_terms(stage);
    bool wraps = reduces && is_integer(stage->accumulator) && stage->accumulator != WPK_I64;
    tape->wraps_often = wraps && (stage->reduction == WPK_REDUCE_PROD || most * count >= 0x1p53);
}

/* A load whose only use is as a factor needs no |value| of its own. */
static void mark_bare(struct wpk_tape *tape)
{
    if (tape->factor[1] < 0) {
        return;
    }
    for (int f = 0; f < 2; f++) {
        tape->instructions[tape->factor[f]].bare =
            tape->instructions[tape->factor[f]].kind == WPK_TAPE_LOAD;
    }
    for (int i = 0; i < tape->instruction_count; i++) {
        for (int k = 0; k < 3; k++) {
            if (tape->instructions[i].arg[k] >= 0) {
                tape->instructions[tape->instructions[i].arg[k]].bare = false;
            }
        }
    }
}

/* A counting sort by level; stable, so operands stay before their uses. */
static bool order_instructions(struct wpk_tape *tape)
{
    size_t count = (size_t)tape->instruction_count;
    tape->order = malloc((count + 1) * sizeof *tape->order);
    tape->slots = calloc(count + 1, sizeof *tape->slots);
    tape->memory = malloc((count + 1) * 2 * WPK_TAPE_LANES * sizeof *tape->memory);
    if (tape->order == NULL || tape->slots == NULL || tape->memory == NULL) {
        return false;
    }
    int filled = 0;
    for (int level = -1; level < tape->loop_count; level++) {
        tape->level_first[level + 1] = filled;
        for (int i = 0; i < tape->instruction_count; i++) {
            if (tape->instructions[i].level == level) {
                tape->order[filled++] = i;
            }
        }
    }
    tape->level_first[tape->loop_count + 1] = filled;
    WPK_ASSERT(filled == tape->instruction_count);
    for (int i = 0; i < tape->instruction_count; i++) {
        struct wpk_tape_slot *slot = &tape->slots[i];
        slot->value_own = tape->memory + (size_t)i * 2 * WPK_TAPE_LANES;
        slot->magnitude_own = slot->value_own + WPK_TAPE_LANES;
        slot->value = slot->value_own;
        slot->magnitude = slot->magnitude_own;
    }
    return true;
}

wpk_err wpk_tape_new(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_tape_use *use, const struct wpk_tape_arithmetic *arithmetic,
                     struct wpk_tape **out)
{
    size_t node_count = (size_t)program->node_count;
    struct wpk_tape *tape = calloc(1, sizeof *tape);
    struct compiler c = {.program = program, .stage = stage, .use = use, .tape = tape};
    c.slot_of = malloc((node_count + 1) * sizeof *c.slot_of);
    int *loads = malloc((node_count + 1) * sizeof *loads);
    wpk_err err = WPK_ENOMEM;
    if (tape == NULL || c.slot_of == NULL || loads == NULL) {
        goto done;
    }
    memset(c.slot_of, 0xff, (node_count + 1) * sizeof *c.slot_of);
    tape->program = program;
    tape->stage = stage;
    tape->with_magnitude = arithmetic->with_magnitude;
    tape->rounds = arithmetic->rounds;
    tape->seed = arithmetic->seed;
    WPK_ASSERT(!tape->rounds || !tape->with_magnitude);
    bool joins = stage->reduction == WPK_REDUCE_SUM || stage->reduction == WPK_REDUCE_PROD;
    tape->ordered = tape->rounds && joins && wpk_dtype_is_float(stage->accumulator);
    memcpy(tape->axis_extent, use->extent, (size_t)stage->axis_count * sizeof *use->extent);
    tape->lane_axis = wpk_tape_lane_axis(program, stage, use, tape->ordered, loads);
    order_loops(&c);
    emit_root(&c);
    if (c.failed || !order_instructions(tape) || wpk_order_new(tape) != WPK_OK) {
        goto done;
    }
    mark_bare(tape);
    *out = tape;
    tape = NULL;
    err = WPK_OK;
done:
    wpk_tape_free(tape);
    free(c.slot_of);
    free(loads);
    return err;
}

void wpk_tape_free(struct wpk_tape *tape)
{
    if (tape == NULL) {
        return;
    }
    for (int i = 0; i < tape->load_count; i++) {
        free(tape->loads[i].packed);
    }
    free(tape->instructions);
    free(tape->loads);
    free(tape->order);
    free(tape->slots);
    free(tape->memory);
    free(tape->terms);
    free(tape);
}
