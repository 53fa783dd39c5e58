/* SPDX-License-Identifier: Apache-2.0 */
/* Which decisions a group leaves open is read off its structure: an axis of extent 1 has none, a
 * pointwise group needs no reduction order. Sizes are listed ascending, so that a mutation can step
 * to a neighbour. */
#include "search/genes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_UNITS_MAX 4 /* 24 orders; more axes keep their leading ones together */
#define LOADS_MAX 16
#define LANES_MIN 4 /* fewer are not worth the vector */

static const int64_t tile_sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                     12, 13, 14, 15, 16, 18, 20, 24, 28};
static const int64_t vector_counts[] = {1, 2, 3, 4, 5, 6, 8};
static const int64_t block_sizes[] = {1, 2, 3, 4, 6, 7, 8, 14, 16, 28, 32};
static const int64_t split_sizes[] = {4, 8, 16, 32, 64, 128, 256};
static const int64_t unroll_sizes[] = {1, 2, 3, 4, 7, 8};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Collects genes; the first failure sticks. */
struct collector {
    struct wpk_variant *variant;
    wpk_err err;
};

static int new_gene(struct collector *c, bool ordered, const char *format, ...) WPK_PRINTF(3, 4);

static int new_gene(struct collector *c, bool ordered, const char *format, ...)
{
    struct wpk_variant *variant = c->variant;
    va_list args;
    if (c->err != WPK_OK || variant->gene_count == WPK_GENES_MAX) {
        c->err = c->err == WPK_OK ? WPK_ENOSPC : c->err;
        return -1;
    }
    struct wpk_gene *grown =
        realloc(variant->genes, (size_t)(variant->gene_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        c->err = WPK_ENOMEM;
        return -1;
    }
    variant->genes = grown;
    struct wpk_gene *gene = &variant->genes[variant->gene_count];
    memset(gene, 0, sizeof(*gene));
    gene->ordered = ordered;
    gene->choice = calloc(WPK_CHOICES_MAX, sizeof(*gene->choice));
    if (gene->choice == NULL) {
        c->err = WPK_ENOMEM;
        return -1;
    }
    va_start(args, format);
    vsnprintf(gene->name, sizeof(gene->name), format, args);
    va_end(args);
    return variant->gene_count++;
}

static void add_choice(struct collector *c, int gene, const char *text)
{
    if (gene < 0 || c->err != WPK_OK) {
        return;
    }
    struct wpk_gene *g = &c->variant->genes[gene];
    if (g->choice_count < WPK_CHOICES_MAX && wpk_gene_choice(g, text) < 0) {
        snprintf(g->choice[g->choice_count++], WPK_CHOICE_MAX, "%s", text);
    }
}

static void add_number(struct collector *c, int gene, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add_choice(c, gene, text);
}

int wpk_gene_choice(const struct wpk_gene *gene, const char *text)
{
    for (int i = 0; i < gene->choice_count; i++) {
        if (strcmp(gene->choice[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

int wpk_gene_floor(const struct wpk_gene *gene, int64_t value)
{
    int best = 0;
    for (int i = 0; i < gene->choice_count; i++) {
        char *end = NULL;
        long long here = strtoll(gene->choice[i], &end, 10);
        if (*end == '\0' && here <= value) {
            best = i;
        }
    }
    return best;
}

/* ---- deriving */

static bool has_loop(const struct wpk_group *group, const struct wpk_stage *root, int axis)
{
    return root->axes[axis].extent > 1 && !group->whole[axis];
}

static const struct wpk_stage *contraction_of(const struct wpk_variant *variant,
                                              const struct wpk_group *group)
{
    return group->contraction < 0
               ? NULL
               : &variant->program.stages[group->member[group->contraction].stage];
}

static bool is_constant(const struct wpk_program *program, int tensor, const bool *prepare)
{
    int writer = wpk_program_writer(program, tensor);
    return program->tensors[tensor].role == WPK_ROLE_CONSTANT || (writer >= 0 && prepare[writer]);
}

/* Does some operand of the contraction not depend on the root axis? Only then does a register tile
 * along it reuse what was loaded. */
static bool is_lacked(const struct wpk_program *program, const struct wpk_group *group, int axis)
{
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    int loads[LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, LOADS_MAX);
    for (int i = 0; i < count && i < LOADS_MAX; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        bool used = program->tensors[load->tensor].role == WPK_ROLE_LITERAL;
        for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
            for (int a = 0; a < stage->rank; a++) {
                int64_t low = 0, high = 0, origin[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX];
                for (int b = 0; b < WPK_AXES_MAX; b++) {
                    extent[b] = b == a ? stage->axes[a].extent : 1;
                }
                wpk_index_range_in(program, load->index[d], origin, extent, &low, &high);
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
        int id = m < 0 ? group->root : group->member[m].stage, loads[LOADS_MAX];
        const struct wpk_stage *stage = &program->stages[id];
        int count = wpk_stage_loads(program, stage, loads, LOADS_MAX);
        for (int i = 0; i < count && i < LOADS_MAX; i++) {
            const struct wpk_node *load = &program->nodes[loads[i]];
            int rank = program->tensors[load->tensor].rank;
            bool packable = is_constant(program, load->tensor, plan->prepare) &&
                            m == group->contraction && group->reuse &&
                            is_lacked(program, group, axis);
            for (int d = 0; d < rank; d++) {
                struct wpk_affine affine;
                if ((d < rank - 1 && !packable) ||
                    !wpk_index_affine(program, load->index[d], &affine)) {
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

/* Does some member multiply by a literal along two axes in turn? Then each may be a loop while the
 * other is unrolled. */
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

static void derive_vector(struct collector *c, const struct wpk_structure *s, int g,
                          const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_program *program = &c->variant->program;
    const struct wpk_stage *root = &program->stages[group->root];
    slots->vec = new_gene(c, false, "%s.vec", group->name);
    slots->lanes = new_gene(c, true, "%s.lanes", group->name);
    if (slots->lanes < 0) {
        return;
    }
    int last = -1;
    for (int a = root->rank - 1; a >= 0 && last < 0; a--) {
        last = has_loop(group, root, a) ? a : -1;
    }
    if (!group->rows && last >= 0) {
        if (fits_lanes(group, last, LANES_MIN)) {
            add_choice(c, slots->vec, root->axes[last].name);
        }
        for (int a = root->rank - 1; a >= 0; a--) {
            if (has_loop(group, root, a) && fits_lanes(group, a, LANES_MIN) &&
                is_vectorizable(program, &s->plan, group, a)) {
                add_choice(c, slots->vec, root->axes[a].name);
            }
        }
    }
    if (group->rows || last < 0 || root->axes[last].extent < LANES_MIN ||
        c->variant->genes[slots->vec].choice_count == 0) {
        add_choice(c, slots->vec, "none");
    }
    size_t size = wpk_dtype_size(program->tensors[root->output].dtype);
    int widest = options->device.vector_bytes / (int)(size < 4 ? 4 : size);
    if (group->rows || last < 0) {
        widest = 1;
    }
    /* narrower lanes where an axis is no multiple of the widest */
    int narrowest = widest;
    for (int a = 0; a < root->rank; a++) {
        while (has_loop(group, root, a) && narrowest > LANES_MIN &&
               (root->axes[a].extent % narrowest != 0 || !fits_lanes(group, a, narrowest)) &&
               wpk_gene_choice(&c->variant->genes[slots->vec], root->axes[a].name) >= 0) {
            narrowest /= 2;
        }
    }
    if (widest >= LANES_MIN && wpk_gene_choice(&c->variant->genes[slots->vec], "none") >= 0) {
        add_number(c, slots->lanes, 1);
    }
    for (int lanes = narrowest; lanes <= widest; lanes *= 2) {
        add_number(c, slots->lanes, lanes);
    }
}

static void derive_tile(struct collector *c, const struct wpk_structure *s, int g, int axis,
                        const struct wpk_space_options *options, struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    int64_t extent = root->axes[axis].extent, align = group->align[axis];
    int gene = slots->tile[axis] =
        new_gene(c, true, "%s.tile.%s", group->name, root->axes[axis].name);
    if (gene < 0) {
        return;
    }
    int64_t round = options->device.vector_bytes / 4;
    int64_t most = (extent + round - 1) / round * round;
    bool tiled = group->reuse && is_lacked(&c->variant->program, group, axis);
    bool transformed = transforms(&c->variant->program, group);
    int most_tiles = tiled ? COUNT(tile_sizes) : transformed || group->reuse ? 1 : 3;
    for (int i = 0; i < most_tiles; i++) {
        int64_t size = tile_sizes[i] * align;
        if (size <= extent || i == 0) {
            add_number(c, gene, size);
        }
    }
    /* as a vector axis: lanes times a few; the smaller lanes of narrow extents too */
    int most_vectors = tiled ? COUNT(vector_counts) : transformed ? 2 : 4;
    if (align == 1 && wpk_gene_choice(&c->variant->genes[slots->vec], root->axes[axis].name) >= 0) {
        const struct wpk_gene *lanes = &c->variant->genes[slots->lanes];
        for (int k = 0; k < lanes->choice_count; k++) {
            for (int i = 0; i < most_vectors; i++) {
                int64_t size = strtoll(lanes->choice[k], NULL, 10) * vector_counts[i];
                if (size <= most) {
                    add_number(c, gene, size);
                }
            }
        }
    }
}

static int compare_numbers(const void *a, const void *b)
{
    long long x = strtoll(a, NULL, 10), y = strtoll(b, NULL, 10);
    return (x > y) - (x < y);
}

static void sort_choices(struct collector *c, int gene)
{
    if (gene >= 0 && c->err == WPK_OK) {
        struct wpk_gene *g = &c->variant->genes[gene];
        qsort(g->choice, (size_t)g->choice_count, sizeof(*g->choice), compare_numbers);
    }
}

static void derive_block(struct collector *c, const struct wpk_structure *s, int g, int axis,
                         struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    int gene = slots->block[axis] =
        new_gene(c, true, "%s.block.%s", group->name, root->axes[axis].name);
    for (int i = 0; i < COUNT(block_sizes); i++) {
        if (block_sizes[i] * group->align[axis] < root->axes[axis].extent) {
            add_number(c, gene, block_sizes[i]);
        }
    }
    add_choice(c, gene, "all");
}

struct unit_list {
    char name[ORDER_UNITS_MAX][WPK_CHOICE_MAX];
    int count;
};

static void add_orders(struct collector *c, int gene, const struct unit_list *units, int taken,
                       const char *prefix)
{
    if (taken == (1 << units->count) - 1) {
        add_choice(c, gene, prefix);
        return;
    }
    for (int i = 0; i < units->count; i++) {
        if ((taken & (1 << i)) == 0) {
            char longer[2 * WPK_CHOICE_MAX];
            snprintf(longer, sizeof(longer), "%s%s%s", prefix, *prefix == '\0' ? "" : ",",
                     units->name[i]);
            add_orders(c, gene, units, taken | 1 << i, longer);
        }
    }
}

/* Leading axes share a unit when there are too many: their order among themselves stays. */
static void collect_units(const struct wpk_axis *const *axes, int count, struct unit_list *units)
{
    units->count = count < ORDER_UNITS_MAX ? count : ORDER_UNITS_MAX;
    int surplus = count - units->count;
    for (int u = 0, a = 0; u < units->count; u++) {
        units->name[u][0] = '\0';
        for (int take = u == 0 ? surplus + 1 : 1; take > 0; take--, a++) {
            size_t used = strlen(units->name[u]);
            snprintf(units->name[u] + used, WPK_CHOICE_MAX - used, "%s%s", used == 0 ? "" : ",",
                     axes[a]->name);
        }
    }
}

static int derive_order(struct collector *c, const struct wpk_group *group, const char *what,
                        const struct wpk_axis *const *axes, int count)
{
    struct unit_list units = {0};
    if (count < 2) {
        return -1;
    }
    int gene = new_gene(c, false, "%s.%s", group->name, what);
    collect_units(axes, count, &units);
    add_orders(c, gene, &units, 0, "");
    return gene;
}

static int largest_reduction(const struct wpk_stage *stage, const bool *literal)
{
    int best = -1;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && (best < 0 || stage->axes[a].extent > stage->axes[best].extent)) {
            best = a;
        }
    }
    return best;
}

static void derive_reduction(struct collector *c, const struct wpk_group *group,
                             struct wpk_slots *slots)
{
    const struct wpk_stage *stage = contraction_of(c->variant, group);
    const struct wpk_axis *axes[WPK_AXES_MAX];
    int count = 0;
    const bool *literal = group->member[group->contraction].literal;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && stage->axes[a].extent > 1) {
            axes[count++] = &stage->axes[a];
        }
    }
    slots->red = derive_order(c, group, "red", axes, count);
    int largest = largest_reduction(stage, literal);
    slots->split = new_gene(c, true, "%s.split", group->name);
    for (int i = 0; i < COUNT(split_sizes) && largest >= 0; i++) {
        int64_t extent = stage->axes[largest].extent;
        if (split_sizes[i] < extent && extent % split_sizes[i] == 0 && count > 1) {
            add_number(c, slots->split, split_sizes[i]);
        }
    }
    add_choice(c, slots->split, "all");
    slots->unroll = new_gene(c, true, "%s.unroll", group->name);
    for (int i = 0; i < COUNT(unroll_sizes); i++) {
        add_number(c, slots->unroll, unroll_sizes[i]);
    }
}

static void derive_place(struct collector *c, const struct wpk_structure *s, int g,
                         struct wpk_slots *slots)
{
    if (g == s->plan.group_count - 1) {
        return;
    }
    slots->at = new_gene(c, false, "%s.at", s->plan.group[g].name);
    add_choice(c, slots->at, "root");
    for (int h = g + 1; h < s->plan.group_count; h++) {
        bool last = h == s->plan.group_count - 1;
        if (s->plan.feeds[g][h] || last) {
            char text[WPK_CHOICE_MAX];
            snprintf(text, sizeof(text), "%.48s.block", s->plan.group[h].name);
            add_choice(c, slots->at, text);
        }
        if (s->plan.feeds[g][h]) {
            char text[WPK_CHOICE_MAX];
            snprintf(text, sizeof(text), "%.48s.tile", s->plan.group[h].name);
            add_choice(c, slots->at, text);
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

/* Operands that are not constant may be packed when the contraction reuses them and reads every
 * dimension by a plain axis. Constants always are: it costs nothing per call. */
static void derive_packs(struct collector *c, const struct wpk_structure *s, int g,
                         struct wpk_slots *slots)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_program *program = &c->variant->program;
    const struct wpk_stage *stage = contraction_of(c->variant, group);
    int loads[LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, LOADS_MAX);
    for (int i = 0; i < count && i < LOADS_MAX && slots->pack_count < WPK_PACKS_MAX; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        bool plain = load->outside < 0 && !has_pack(program, slots, load->tensor);
        for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
            plain = plain && (program->tensors[load->tensor].extent[d] == 1 ||
                              wpk_index_axis(program, load->index[d]) >= 0);
        }
        bool constant = is_constant(program, load->tensor, s->plan.prepare);
        if (!plain || (!constant && program->tensors[load->tensor].role != WPK_ROLE_INPUT)) {
            continue; /* what a stage of ours writes is written in a good order to begin with */
        }
        int slot = slots->pack_count++;
        slots->pack_load[slot] = loads[i];
        slots->pack[slot] =
            new_gene(c, false, "%s.pack.%s", group->name, program->tensors[load->tensor].name);
        if (constant) {
            add_choice(c, slots->pack[slot], "yes");
        } else {
            add_choice(c, slots->pack[slot], "no");
            add_choice(c, slots->pack[slot], "yes");
        }
    }
}

static void clear_slots(struct wpk_slots *slots)
{
    memset(slots, 0, sizeof(*slots));
    slots->vec = slots->lanes = slots->outer = slots->inner = slots->red = -1;
    slots->split = slots->unroll = slots->at = slots->par = slots->roll = -1;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        slots->tile[a] = slots->block[a] = -1;
    }
}

static void derive_group(struct collector *c, struct wpk_structure *s, int g,
                         const struct wpk_space_options *options)
{
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = &c->variant->program.stages[group->root];
    struct wpk_slots *slots = &s->slots[g];
    const struct wpk_axis *axes[WPK_RANK_MAX];
    int count = 0;
    bool last = g == s->plan.group_count - 1;
    clear_slots(slots);
    derive_vector(c, s, g, options, slots);
    for (int a = 0; a < root->rank; a++) {
        if (!has_loop(group, root, a)) {
            continue;
        }
        axes[count++] = &root->axes[a];
        derive_tile(c, s, g, a, options, slots);
        sort_choices(c, slots->tile[a]);
        if (last || (group->reuse && is_lacked(&c->variant->program, group, a))) {
            derive_block(c, s, g, a, slots);
        }
    }
    if (last || group->reuse) {
        slots->outer = derive_order(c, group, "outer", axes, count);
    }
    slots->inner = derive_order(c, group, "inner", axes, count);
    if (group->contraction >= 0) {
        derive_reduction(c, group, slots);
        if (group->reuse) {
            derive_packs(c, s, g, slots);
        }
    }
    if (group->contraction < 0 && transforms(&c->variant->program, group)) {
        slots->roll = new_gene(c, false, "%s.roll", group->name);
        add_choice(c, slots->roll, "yes");
        add_choice(c, slots->roll, "no");
    }
    derive_place(c, s, g, slots);
    if (options->threads > 1) {
        slots->par = new_gene(c, true, "%s.par", group->name);
        for (int i = 0; i <= 2; i++) {
            add_number(c, slots->par, i);
        }
    }
}

wpk_err wpk_genes_derive(struct wpk_variant *variant, struct wpk_structure *structure,
                         const struct wpk_space_options *options)
{
    struct collector c = {.variant = variant, .err = WPK_OK};
    for (int g = 0; g < structure->plan.group_count; g++) {
        derive_group(&c, structure, g, options);
    }
    return c.err;
}

/* ---- reading a candidate */

static const char *value_of(const struct wpk_variant *variant,
                            const struct wpk_candidate *candidate, int gene)
{
    WPK_ASSERT(gene >= 0 && gene < variant->gene_count);
    const struct wpk_gene *g = &variant->genes[gene];
    int choice = candidate->gene[gene];
    return g->choice[choice < g->choice_count ? choice : 0];
}

/* "all" and other words read as 0. */
static int64_t number_of(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                         int gene, int64_t absent)
{
    return gene < 0 ? absent : strtoll(value_of(variant, candidate, gene), NULL, 10);
}

static int axis_named(const struct wpk_stage *stage, int first, int end, const char *name,
                      size_t size)
{
    for (int a = first; a < end; a++) {
        if (strlen(stage->axes[a].name) == size && strncmp(stage->axes[a].name, name, size) == 0) {
            return a;
        }
    }
    return -1;
}

static int read_order(const char *text, const struct wpk_stage *stage, int first, int end, int *out)
{
    int count = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        int axis = axis_named(stage, first, end, text, size);
        WPK_ASSERT(axis >= 0);
        out[count++] = axis;
        text += size + (text[size] == ',');
    }
    return count;
}

static void read_place(const struct wpk_variant *variant, const struct wpk_plan *plan,
                       const char *text, struct wpk_decisions *out)
{
    (void)variant;
    out->level = WPK_LEVEL_ROOT;
    out->at_group = -1;
    for (int h = 0; h < plan->group_count; h++) {
        size_t size = strlen(plan->group[h].name);
        if (strncmp(text, plan->group[h].name, size) == 0 && text[size] == '.') {
            out->at_group = h;
            out->level = strcmp(text + size + 1, "tile") == 0 ? WPK_LEVEL_TILE : WPK_LEVEL_BLOCK;
        }
    }
}

static void read_orders(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                        const struct wpk_slots *slots, const struct wpk_group *group,
                        const struct wpk_stage *root, struct wpk_decisions *out)
{
    for (int a = 0; a < root->rank; a++) {
        if (has_loop(group, root, a)) {
            out->inner[out->order_count] = a;
            out->outer[out->order_count++] = a;
        }
    }
    if (slots->inner >= 0) {
        read_order(value_of(variant, candidate, slots->inner), root, 0, root->rank, out->inner);
    }
    if (slots->outer >= 0) {
        read_order(value_of(variant, candidate, slots->outer), root, 0, root->rank, out->outer);
    }
}

static void read_reduction(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                           const struct wpk_slots *slots, const struct wpk_group *group,
                           struct wpk_decisions *out)
{
    const struct wpk_stage *stage = contraction_of(variant, group);
    const bool *literal = group->member[group->contraction].literal;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        if (!literal[a] && stage->axes[a].extent > 1) {
            out->red[out->red_count++] = a;
        }
    }
    if (slots->red >= 0) {
        read_order(value_of(variant, candidate, slots->red), stage, stage->rank, stage->axis_count,
                   out->red);
    }
    out->split_axis = largest_reduction(stage, literal);
    out->split = number_of(variant, candidate, slots->split, 0);
    out->unroll = number_of(variant, candidate, slots->unroll, 1);
}

void wpk_genes_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate, int g,
                    struct wpk_decisions *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    memset(out, 0, sizeof(*out));
    out->split_axis = -1;
    out->unroll = 1;
    const char *vec = value_of(variant, candidate, slots->vec);
    out->vec = axis_named(root, 0, root->rank, vec, strlen(vec));
    out->lanes = (int)number_of(variant, candidate, slots->lanes, 1);
    for (int a = 0; a < root->rank; a++) {
        out->tile[a] = group->whole[a] ? root->axes[a].extent
                                       : number_of(variant, candidate, slots->tile[a], 1);
        out->block[a] = number_of(variant, candidate, slots->block[a], 0);
    }
    if (out->vec < 0) {
        out->lanes = 1;
    }
    read_orders(variant, candidate, slots, group, root, out);
    if (group->contraction >= 0) {
        read_reduction(variant, candidate, slots, group, out);
    }
    read_place(variant, &s->plan, slots->at < 0 ? "root" : value_of(variant, candidate, slots->at),
               out);
    for (int a = 0; a < root->rank && out->level != WPK_LEVEL_ROOT; a++) {
        out->block[a] = 0; /* it is computed block by block already */
    }
    out->roll = slots->roll >= 0 && strcmp(value_of(variant, candidate, slots->roll), "yes") == 0;
    out->par = (int)number_of(variant, candidate, slots->par, 0);
    for (int i = 0; i < slots->pack_count; i++) {
        out->pack[i] = strcmp(value_of(variant, candidate, slots->pack[i]), "yes") == 0;
    }
}

int64_t wpk_tile_count(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    return (root->axes[axis].extent + d->tile[axis] - 1) / d->tile[axis];
}

int64_t wpk_block_tiles(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    int64_t count = wpk_tile_count(root, d, axis);
    return d->block[axis] == 0 || d->block[axis] > count ? count : d->block[axis];
}

bool wpk_has_block_loop(const struct wpk_stage *root, const struct wpk_decisions *d, int axis)
{
    return wpk_block_tiles(root, d, axis) < wpk_tile_count(root, d, axis);
}
