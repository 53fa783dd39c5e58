/* SPDX-License-Identifier: Apache-2.0 */
/* Which decisions a group leaves open is read off its structure: an axis of extent 1 has none, a
 * pointwise group needs no reduction order. Sizes are listed ascending, so that a mutation can step
 * to a neighbour. */
#include "search/genes.h"

#include "ir/data_index.h"
#include "ir/derive/derive.h"
#include "ir/instruction/instruction.h"
#include "search/back_end.h"
#include "search/gene_list.h"
#include "search/reuse.h"
#include "target/cpu/register_tile.h"

#include <stdio.h>
#include <string.h>

#define ORDER_UNITS_MAX 4    /* 24 orders; more axes keep their leading ones together */
#define ALIGNED_POINTS_MAX 8 /* a tile of one vector of each of them fits any machine's registers */

#define TILE_MOST 28  /* accumulators, with which 32 registers have 4 for operands */
#define TILE_STEPS 8  /* sizes an octave: tiles decide on registers, one by one */
#define BLOCK_MOST 32 /* tiles: larger blocks are more than a cache's share, or the whole axis */
#define BLOCK_STEPS 4 /* sizes an octave: blocks decide on bytes in caches */
#define PARTS_MAX 8   /* an axis is cut into up to as many equal parts */
#define UNROLL_MOST 8 /* iterations: windows of up to 8 may be written out */

static const int64_t vector_counts[] = {1, 2, 3, 4, 5, 6, 8};
static const int64_t split_sizes[] = {4, 8, 16, 32, 64, 128, 256};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static bool is_constant(const struct wpk_program *program, int tensor, const bool *prepare)
{
    int writer = wpk_program_writer(program, tensor);
    return program->tensors[tensor].role == WPK_ROLE_CONSTANT || (writer >= 0 && prepare[writer]);
}

/* True if some operand of the contraction does not depend on the root axis. Only then does a
 * register tile along it reuse loaded elements. */
static bool is_lacked(const struct wpk_program *program, const struct wpk_group *group, int axis)
{
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        bool used = program->tensors[load.node->tensor].role == WPK_ROLE_LITERAL;
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            for (int a = 0; a < stage->rank; a++) {
                int64_t low = 0, high = 0, origin[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX];
                for (int b = 0; b < WPK_AXES_MAX; b++) {
                    extent[b] = b == a ? stage->axes[a].extent : 1;
                }
                wpk_index_range_in(program, load.node->index[d], origin, extent, &low, &high);
                used = used || (member->root_axis[a] == axis && high > low);
            }
        }
        if (!used) {
            return true;
        }
    }
    return false;
}

/* Root axis `axis` is the contiguous axis of some load, or the plain axis of a packable operand. */
static bool is_vectorizable(const struct wpk_program *program, const struct wpk_plan *plan,
                            const struct wpk_group *group, int axis)
{
    for (int m = -1; m < group->member_count; m++) {
        int id = m < 0 ? group->root : group->member[m].stage;
        const struct wpk_stage *stage = &program->stages[id];
        for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
            int rank = program->tensors[load.node->tensor].rank;
            bool packable = is_constant(program, load.node->tensor, plan->prepare) &&
                            m == group->contraction && group->reuse &&
                            is_lacked(program, group, axis);
            for (int d = 0; d < rank; d++) {
                struct wpk_affine affine;
                if ((d < rank - 1 && !packable) ||
                    !wpk_index_affine(program, load.node->index[d], &affine)) {
                    continue;
                }
                for (int a = 0; a < stage->rank; a++) {
                    int root_axis = m < 0 ? a : group->member[m].root_axis[a];
                    if (root_axis == axis && affine.coefficient[a] == 1) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

/* True if some member multiplies by a literal along two axes in turn. Each may then be a loop while
 * the other is unrolled. */
static bool transforms(const struct wpk_program *program, const struct wpk_group *group)
{
    for (int m = 0; m < group->member_count; m++) {
        const struct wpk_stage *stage = &program->stages[group->member[m].stage];
        for (int a = 0; a < stage->axis_count; a++) {
            if (group->member[m].literal[a]) {
                return true;
            }
        }
    }
    return false;
}

/* Lanes lie within the divisions of an axis: q / 9 has the same value in all of them. */
static bool fits_lanes(const struct wpk_group *group, int axis, int lanes)
{
    return group->align[axis] == 1 || group->align[axis] % lanes == 0;
}

static void derive_vector(struct wpk_gene_list *c, const struct wpk_structure *s, int g,
                          const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_program *program = &c->variant->program;
    const struct wpk_stage *root = &program->stages[group->root];
    slots->vec = wpk_gene_list_add(c, false, "%s.vec", group->name);
    slots->lanes = wpk_gene_list_add(c, true, "%s.lanes", group->name);
    if (slots->lanes < 0) {
        return;
    }
    const struct wpk_machine *machine = &options->target.machine;
    int last = -1;
    for (int a = root->rank - 1; a >= 0 && last < 0; a--) {
        last = wpk_has_loop(group, root, a) ? a : -1;
    }
    if (!group->rows && last >= 0) {
        if (fits_lanes(group, last, machine->lanes_min)) {
            wpk_gene_list_choice(c, slots->vec, last, root->axes[last].name);
        }
        for (int a = root->rank - 1; a >= 0; a--) {
            if (wpk_has_loop(group, root, a) && fits_lanes(group, a, machine->lanes_min) &&
                is_vectorizable(program, &s->plan, group, a)) {
                wpk_gene_list_choice(c, slots->vec, a, root->axes[a].name);
            }
        }
    }
    if (group->rows || last < 0 || root->axes[last].extent < machine->lanes_min ||
        c->variant->genes[slots->vec].choice_count == 0) {
        wpk_gene_list_choice(c, slots->vec, -1, "none");
    }
    size_t size = wpk_dtype_size(program->tensors[root->output].dtype);
    int widest = machine->lanes_max * 4 / (int)(size < 4 ? 4 : size);
    if (group->rows || last < 0) {
        widest = 1;
    }
    /* narrower lanes where an axis is no multiple of the widest */
    int narrowest = widest;
    for (int a = 0; a < root->rank; a++) {
        while (wpk_has_loop(group, root, a) && narrowest > machine->lanes_min &&
               (root->axes[a].extent % narrowest != 0 || !fits_lanes(group, a, narrowest)) &&
               wpk_gene_find(&c->variant->genes[slots->vec], a) >= 0) {
            narrowest /= 2;
        }
    }
    if (widest >= machine->lanes_min && wpk_gene_find(&c->variant->genes[slots->vec], -1) >= 0) {
        wpk_gene_list_number(c, slots->lanes, 1);
    }
    for (int lanes = narrowest; lanes <= widest; lanes *= 2) {
        wpk_gene_list_number(c, slots->lanes, lanes);
    }
}

/* True if the smallest tile that keeps all alignments has too many points for registers. Groups
 * whose root needs all tiles of a transform for each element do not count. */
static bool is_cramped(const struct wpk_program *program, const struct wpk_group *group)
{
    for (int m = 0; m < group->member_count; m++) {
        const struct wpk_member *member = &group->member[m];
        for (int d = 0; d < program->stages[member->stage].rank; d++) {
            if (member->literal[d] && member->root_axis[d] < 0) {
                return false;
            }
        }
    }
    const struct wpk_stage *root = &program->stages[group->root];
    int64_t points = 1;
    for (int a = 0; a < root->rank; a++) {
        points *= group->whole[a] ? root->axes[a].extent : group->align[a];
    }
    return points > ALIGNED_POINTS_MAX;
}

/* Add sizes of the parts of an axis, in multiples of `unit`: in each octave `steps` of them, or all
 * integers, and those that cut the axis into equal parts, the last of which may be shorter.
 *   unit  extent, most: units; no size is above either */
static void add_sizes(struct wpk_gene_list *c, int gene, int64_t extent, int steps, int64_t most,
                      int64_t unit)
{
    int64_t end = extent < most ? extent : most;
    for (int64_t size = 1, octave = 1; size <= end;) {
        wpk_gene_list_number(c, gene, size * unit);
        octave = size == 2 * octave ? size : octave;
        size += octave < steps ? 1 : octave / steps;
    }
    for (int64_t parts = 1; parts <= PARTS_MAX; parts++) {
        int64_t size = (extent + parts - 1) / parts;
        if (size <= end) {
            wpk_gene_list_number(c, gene, size * unit);
        }
    }
    wpk_gene_list_sort(c, gene);
}

static void derive_tile(struct wpk_gene_list *c, const struct wpk_structure *s, int g, int axis,
                        const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    int64_t extent = root->axes[axis].extent, align = group->align[axis];
    int gene = slots->tile[axis] =
        wpk_gene_list_add(c, true, "%s.tile.%s", group->name, root->axes[axis].name);
    if (gene < 0) {
        return;
    }
    int64_t round = options->target.machine.lanes_max;
    int64_t most = (extent + round - 1) / round * round;
    bool tiled = group->reuse && is_lacked(&c->variant->program, group, axis);
    bool transformed = transforms(&c->variant->program, group);
    int most_tiles = tiled ? TILE_MOST : transformed || group->reuse ? 1 : 3;
    if (align > 1 && is_cramped(&c->variant->program, group)) {
        wpk_gene_list_number(c, gene, 1);
    }
    add_sizes(c, gene, extent < align ? 1 : extent / align, TILE_STEPS, most_tiles, align);
    /* as a vector axis: lanes times a few; the smaller lanes of narrow extents too */
    int most_vectors = tiled ? COUNT(vector_counts) : transformed ? 2 : 4;
    if (align == 1 && wpk_gene_find(&c->variant->genes[slots->vec], axis) >= 0) {
        const struct wpk_gene *lanes = &c->variant->genes[slots->lanes];
        for (int k = 0; k < lanes->choice_count; k++) {
            for (int i = 0; i < most_vectors; i++) {
                int64_t size = lanes->choice[k].value * vector_counts[i];
                if (size <= most) {
                    wpk_gene_list_number(c, gene, size);
                }
            }
        }
    }
}

/* A tail of its own is offered if some tile along some vector axis has vectors past the end. */
static void derive_tail(struct wpk_gene_list *c, const struct wpk_structure *s, int g,
                        struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    const struct wpk_gene *lanes = &c->variant->genes[slots->lanes];
    bool offered = false;
    for (int a = 0; a < root->rank; a++) {
        if (slots->tile[a] < 0 || group->align[a] > 1 ||
            wpk_gene_find(&c->variant->genes[slots->vec], a) < 0) {
            continue;
        }
        const struct wpk_gene *tile = &c->variant->genes[slots->tile[a]];
        for (int i = 0; i < tile->choice_count; i++) {
            for (int k = 0; k < lanes->choice_count; k++) {
                int64_t size = tile->choice[i].value, width = lanes->choice[k].value;
                offered = offered || (width > 1 && size % width == 0 &&
                                      wpk_has_dead_vectors(root->axes[a].extent, size, (int)width));
            }
        }
    }
    if (offered) {
        slots->tail = wpk_gene_list_add(c, false, "%s.tail", group->name);
        wpk_gene_list_choice(c, slots->tail, WPK_GENE_ALL, "whole");
        if (slots->tail >= 0) {
            c->variant->genes[slots->tail].optional = true;
        }
        wpk_gene_list_choice(c, slots->tail, 1, "own");
    }
}

static void derive_block(struct wpk_gene_list *c, const struct wpk_structure *s, int g, int axis,
                         struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    int gene = slots->block[axis] =
        wpk_gene_list_add(c, true, "%s.block.%s", group->name, root->axes[axis].name);
    int64_t tiles = (root->axes[axis].extent + group->align[axis] - 1) / group->align[axis];
    add_sizes(c, gene, tiles, BLOCK_STEPS, tiles - 1 < BLOCK_MOST ? tiles - 1 : BLOCK_MOST, 1);
    wpk_gene_list_number(c, gene, WPK_GENE_ALL);
}

/* Axes whose order is open, in units that stay together. */
struct unit_list {
    const struct wpk_stage *stage;
    int first[ORDER_UNITS_MAX + 1]; /* [count + 1] where each unit begins in `axis` */
    int count;
    int axis[WPK_AXES_MAX];
};

static void add_order(struct wpk_gene_list *c, int gene, const struct unit_list *units,
                      const int *taken)
{
    struct wpk_buf text = {0};
    int64_t order = 0;
    for (int i = 0, place = 0; i < units->count; i++) {
        for (int k = units->first[taken[i]]; k < units->first[taken[i] + 1]; k++, place++) {
            order = wpk_order_with(order, place, units->axis[k]);
            wpk_buf_printf(&text, "%s%s", place == 0 ? "" : ",",
                           units->stage->axes[units->axis[k]].name);
        }
    }
    c->err = c->err == WPK_OK ? wpk_buf_status(&text) : c->err;
    if (c->err == WPK_OK) {
        wpk_gene_list_choice(c, gene, order, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

/*   shape  taken [units->count] units, of which the first `count` are chosen */
static void add_orders(struct wpk_gene_list *c, int gene, const struct unit_list *units, int *taken,
                       int count)
{
    if (count == units->count) {
        add_order(c, gene, units, taken);
        return;
    }
    for (int i = 0; i < units->count; i++) {
        bool is_taken = false;
        for (int k = 0; k < count; k++) {
            is_taken = is_taken || taken[k] == i;
        }
        if (!is_taken) {
            taken[count] = i;
            add_orders(c, gene, units, taken, count + 1);
        }
    }
}

/* Leading axes share a unit when there are too many: their order among themselves stays.
 *   shape  axes [count] of the stage */
static int derive_order(struct wpk_gene_list *c, const struct wpk_group *group, const char *what,
                        const struct wpk_stage *stage, const int *axes, int count)
{
    struct unit_list units = {.stage = stage};
    int taken[ORDER_UNITS_MAX];
    if (count < 2) {
        return -1;
    }
    int gene = wpk_gene_list_add(c, false, "%s.%s", group->name, what);
    units.count = count < ORDER_UNITS_MAX ? count : ORDER_UNITS_MAX;
    memcpy(units.axis, axes, (size_t)count * sizeof(axes[0]));
    for (int u = 1; u <= units.count; u++) {
        units.first[u] = u + count - units.count;
    }
    add_orders(c, gene, &units, taken, 0);
    return gene;
}

/* An axis of which an instruction of the device adds several terms at a time, or none. */
static void derive_dot(struct wpk_gene_list *c, const struct wpk_group *group,
                       const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_stage *stage = wpk_contraction_of(c->variant, group);
    const bool *literal = group->member[group->contraction].literal;
    bool prints = (options->back_ends & 1U << WPK_BACK_END_c) != 0 && group->reuse;
    int instruction =
        prints ? wpk_instruction_choose(&c->variant->program, stage, options->device.cpu.flags)
               : -1;
    slots->instruction = instruction;
    if (instruction < 0) {
        return;
    }
    slots->dot = wpk_gene_list_add(c, false, "%s.dot", group->name);
    wpk_gene_list_choice(c, slots->dot, WPK_GENE_ALL, "none");
    if (slots->dot >= 0) {
        c->variant->genes[slots->dot].optional = true;
    }
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && stage->axes[a].extent > 1) {
            wpk_gene_list_choice(c, slots->dot, a, stage->axes[a].name);
        }
    }
}

static void derive_reduction(struct wpk_gene_list *c, const struct wpk_group *group,
                             const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_machine *machine = &options->target.machine;
    const struct wpk_stage *stage = wpk_contraction_of(c->variant, group);
    int axes[WPK_AXES_MAX], count = 0;
    const bool *literal = group->member[group->contraction].literal;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && stage->axes[a].extent > 1) {
            axes[count++] = a;
        }
    }
    slots->red = derive_order(c, group, "red", stage, axes, count);
    int largest = wpk_largest_reduction(stage, literal);
    slots->split = wpk_gene_list_add(c, true, "%s.split", group->name);
    for (int i = 0; i < COUNT(split_sizes) && largest >= 0; i++) {
        int64_t extent = stage->axes[largest].extent;
        if (split_sizes[i] < extent && extent % split_sizes[i] == 0 && count > 1) {
            wpk_gene_list_number(c, slots->split, split_sizes[i]);
        }
    }
    wpk_gene_list_number(c, slots->split, WPK_GENE_ALL);
    slots->sum = wpk_gene_sum_add_blocks(c, group, stage, largest);
    slots->panel = wpk_gene_sum_add_panels(c, group, stage, largest, machine);
    derive_dot(c, group, options, slots);
    slots->unroll = wpk_gene_list_add(c, true, "%s.unroll", group->name);
    for (int i = 1; i <= UNROLL_MOST; i++) {
        wpk_gene_list_number(c, slots->unroll, i);
    }
}

static void add_place(struct wpk_gene_list *c, int gene, const struct wpk_plan *plan, int group,
                      enum wpk_level level)
{
    char text[WPK_NAME_MAX + 8] = "root";
    if (level != WPK_LEVEL_ROOT) {
        snprintf(text, sizeof(text), "%s.%s", plan->group[group].name,
                 level == WPK_LEVEL_TILE ? "tile" : "block");
    }
    wpk_gene_list_choice(c, gene, wpk_place(group, level), text);
}

static void derive_place(struct wpk_gene_list *c, const struct wpk_structure *s, int g,
                         struct wpk_slots *slots)
{
    const struct wpk_plan *plan = &s->plan;
    int last = plan->group_count - 1;
    if (g == last) {
        return;
    }
    slots->at = wpk_gene_list_add(c, false, "%s.at", plan->group[g].name);
    add_place(c, slots->at, plan, -1, WPK_LEVEL_ROOT);
    const struct wpk_program *program = &c->variant->program;
    int output = program->stages[plan->group[g].root].output;
    if (program->tensors[output].role == WPK_ROLE_OUTPUT) { /* nobody may need all of it */
        return;
    }
    for (int h = g + 1; h <= last; h++) {
        if (plan->feeds[g][h] || h == last) {
            add_place(c, slots->at, plan, h, WPK_LEVEL_BLOCK);
        }
        if (plan->feeds[g][h]) {
            add_place(c, slots->at, plan, h, WPK_LEVEL_TILE);
        }
    }
}

static bool has_pack(const struct wpk_program *program, const struct wpk_slots *slots, int tensor)
{
    for (int i = 0; i < slots->pack_count; i++) {
        if (program->nodes[slots->pack_load[i]].tensor == tensor) {
            return true;
        }
    }
    return false;
}

/* All loads of a tensor that is copied read the copy. */
static int count_loads(const struct wpk_program *program, int tensor)
{
    int count = 0;
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        count += load.node->tensor == tensor;
    }
    return count;
}

/* The tensor of a load comes from memory in each call, and once: registers hold all that is
 * computed from one of its elements. */
static bool streams(const struct wpk_program *program, const struct wpk_stage *stage,
                    const struct wpk_node *load, const struct wpk_machine *machine)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    bool used[WPK_AXES_MAX] = {false};
    int64_t uses = 1;
    for (int d = 0; d < tensor->rank; d++) {
        (void)wpk_reuse_mark_index(program, load->index[d], used);
    }
    for (int a = 0; a < stage->rank && uses <= machine->registers; a++) {
        uses *= used[a] ? 1 : stage->axes[a].extent;
    }
    return uses <= machine->registers &&
           wpk_tensor_elements(tensor) * (int64_t)wpk_dtype_size(tensor->dtype) >
               machine->cache_bytes[WPK_CACHES - 1];
}

/* Operands that are not constant may be packed when the contraction reuses them and reads every
 * dimension by a plain axis. Constants always are: it costs nothing per call. */
static void derive_packs(struct wpk_gene_list *c, const struct wpk_structure *s, int g,
                         const struct wpk_machine *machine, struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_program *program = &c->variant->program;
    const struct wpk_stage *stage = wpk_contraction_of(c->variant, group);
    for (struct wpk_loads load = wpk_loads_of(program, stage);
         wpk_loads_next(&load) && slots->pack_count < WPK_PACKS_MAX;) {
        bool plain = load.node->outside < 0 && !has_pack(program, slots, load.node->tensor) &&
                     !wpk_tensor_gathers(program, load.node->tensor);
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            plain = plain && (program->tensors[load.node->tensor].extent[d] == 1 ||
                              wpk_index_axis(program, load.node->index[d]) >= 0);
        }
        bool constant = is_constant(program, load.node->tensor, s->plan.prepare);
        if (!plain || (!constant && program->tensors[load.node->tensor].role != WPK_ROLE_INPUT)) {
            continue; /* what a stage of ours writes is written in a good order to begin with */
        }
        int slot = slots->pack_count++;
        slots->pack_load[slot] = load.id;
        slots->pack_may[slot] = wpk_pack_reads_border(program, load.node->tensor) ? WPK_PACK_NEVER
                                : wpk_pack_reads_outside(program, load.node->tensor)
                                    ? WPK_PACK_EXACT
                                    : WPK_PACK_ANY;
        slots->pack[slot] = wpk_gene_list_add(c, false, "%s.pack.%s", group->name,
                                              program->tensors[load.node->tensor].name);
        if (!constant) {
            wpk_gene_list_choice(c, slots->pack[slot], 0, "no");
        }
        if (!constant && slots->panel >= 0 && count_loads(program, load.node->tensor) == 1) {
            wpk_gene_list_choice(c, slots->pack[slot], WPK_PACK_PANEL, "panel");
        }
        if (constant && streams(program, stage, load.node, machine)) {
            wpk_gene_list_choice(c, slots->pack[slot], WPK_PACK_HALVES, "halves");
        }
        wpk_gene_list_choice(c, slots->pack[slot], 1, "yes");
    }
}

static void clear_slots(struct wpk_slots *slots)
{
    memset(slots, 0, sizeof(*slots));
    slots->vec = slots->lanes = slots->outer = slots->inner = slots->red = -1;
    slots->split = slots->sum = slots->panel = slots->unroll = -1;
    slots->dot = slots->instruction = -1;
    slots->at = slots->par = slots->roll = slots->tail = -1;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        slots->tile[a] = slots->block[a] = -1;
    }
}

static void derive_group(struct wpk_gene_list *c, struct wpk_structure *s, int g,
                         const struct wpk_space_options *options)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    struct wpk_slots *slots = &s->slots[g];
    int axes[WPK_RANK_MAX], count = 0;
    bool last = g == s->plan.group_count - 1;
    clear_slots(slots);
    derive_vector(c, s, g, options, slots);
    for (int a = 0; a < root->rank; a++) {
        if (!wpk_has_loop(group, root, a)) {
            continue;
        }
        axes[count++] = a;
        derive_tile(c, s, g, a, options, slots);
        wpk_gene_list_sort(c, slots->tile[a]);
        if (last || (group->reuse && is_lacked(&c->variant->program, group, a))) {
            derive_block(c, s, g, a, slots);
        }
    }
    if (group->reuse && slots->lanes >= 0) {
        derive_tail(c, s, g, slots);
    }
    if (last || group->reuse) {
        slots->outer = derive_order(c, group, "outer", root, axes, count);
    }
    slots->inner = derive_order(c, group, "inner", root, axes, count);
    if (group->contraction >= 0) {
        derive_reduction(c, group, options, slots);
        if (group->reuse) {
            derive_packs(c, s, g, &options->target.machine, slots);
        }
    }
    if (group->contraction < 0 && transforms(&c->variant->program, group)) {
        slots->roll = wpk_gene_list_add(c, false, "%s.roll", group->name);
        wpk_gene_list_choice(c, slots->roll, 1, "yes");
        wpk_gene_list_choice(c, slots->roll, 0, "no");
    }
    derive_place(c, s, g, slots);
    if (options->threads > 1) {
        slots->par = wpk_gene_list_add(c, true, "%s.par", group->name);
        for (int i = 0; i <= 2; i++) {
            wpk_gene_list_number(c, slots->par, i);
        }
    }
}

wpk_err wpk_genes_derive(struct wpk_variant *variant, struct wpk_structure *structure,
                         const struct wpk_space_options *options)
{
    struct wpk_gene_list c = {.variant = variant, .err = WPK_OK};
    for (int g = 0; g < structure->plan.group_count; g++) {
        derive_group(&c, structure, g, options);
    }
    return c.err;
}

wpk_err wpk_genes_derive_back_end(struct wpk_variant *variant,
                                  const struct wpk_space_options *options)
{
    struct wpk_structure *structure = variant->plan;
    struct wpk_gene_list list = {.variant = variant, .err = WPK_OK};
    structure->by = -1;
    structure->back_end = wpk_back_end_first(options->target.rules->kind);
    if (variant->gene_count == WPK_GENES_MAX) {
        return WPK_ENOSPC;
    }
    if ((options->back_ends & ~(1U << structure->back_end)) == 0) {
        return WPK_OK;
    }
    structure->by = wpk_gene_list_add(&list, false, WPK_BACK_END_GENE);
    for (int i = 0; wpk_back_end_name(i) != NULL; i++) {
        if ((options->back_ends & 1U << i) != 0) {
            wpk_gene_list_choice(&list, structure->by, i, wpk_back_end_name(i));
        }
    }
    return list.err;
}
