/* SPDX-License-Identifier: Apache-2.0 */
#include "target/cpu/register_tile.h"

#include "search/reuse.h"
#include "target/cpu/rules.h"

#include <stdlib.h>
#include <string.h>

/* True if the contraction gathers its vectors from memory one value at a time. */
static bool reads_strided(const struct wpk_variant *variant, const struct wpk_group *group, int vec)
{
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    for (int a = 0; a < stage->rank; a++) {
        if (vec >= 0 && member->root_axis[a] == vec) {
            return wpk_stage_is_strided(variant, stage, a);
        }
    }
    return false;
}

/* Find the window of a load; literal axes are unrolled anyway.   shape  tile, lanes [rank] */
static bool find_window(const struct wpk_program *program, const struct wpk_stage *stage,
                        const struct wpk_member *member, const struct wpk_node *load,
                        const int64_t *tile, const bool *lanes, struct wpk_register_window *out)
{
    bool used[WPK_AXES_MAX] = {false}, found = false;
    for (int dim = 0; dim < program->tensors[load->tensor].rank; dim++) {
        struct wpk_affine affine;
        (void)wpk_reuse_mark_index(program, load->index[dim], used);
        if (!wpk_index_affine(program, load->index[dim], &affine)) {
            continue;
        }
        for (int a = 0; a < stage->rank; a++) {
            for (int r = stage->rank; r < stage->axis_count; r++) {
                if (affine.coefficient[a] == 1 && affine.coefficient[r] == 1 && !lanes[a] &&
                    stage->axes[r].extent > 1 && !member->literal[r] &&
                    tile[a] > (found ? out->results : 1)) {
                    *out = (struct wpk_register_window){r, stage->axes[r].extent, tile[a]};
                    found = true;
                }
            }
        }
    }
    for (int a = 0; a < stage->rank; a++) {
        found = found && (used[a] || (!lanes[a] && tile[a] == 1));
    }
    return found;
}

bool wpk_register_window_find(const struct wpk_variant *variant, int g, int vec,
                              const int64_t *tile, struct wpk_register_window *out)
{
    const struct wpk_program *program = &variant->program;
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    int64_t sizes[WPK_AXES_MAX];
    bool lanes[WPK_AXES_MAX], found = false;
    for (int a = 0; a < stage->rank; a++) {
        int root = member->root_axis[a];
        sizes[a] = root < 0 ? 1 : tile[root];
        lanes[a] = root >= 0 && root == vec;
    }
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load) && !found;) {
        found = find_window(program, stage, member, load.node, sizes, lanes, out);
    }
    return found;
}

bool wpk_register_tile_leaves_out(const struct wpk_variant *variant, int g,
                                  const struct wpk_register_tile *tile)
{
    const struct wpk_structure *s = variant->plan;
    bool transformed = false;
    for (int t = 0; t < variant->program.tensor_count; t++) {
        transformed = transformed || variant->program.tensors[t].role == WPK_ROLE_LITERAL;
    }
    return s->slots[g].tail >= 0 && tile->vec >= 0 && !transformed &&
           wpk_has_dead_vectors(wpk_root_of(variant, g)->axes[tile->vec].extent,
                                tile->size[tile->vec], tile->lanes);
}

/* True if a reduction axis moves the vectors of the load along their axis. */
static bool is_unaligned(const struct wpk_program *program, const struct wpk_stage *stage,
                         const struct wpk_node *load, int vec)
{
    for (int dim = 0; dim < program->tensors[load->tensor].rank; dim++) {
        struct wpk_affine affine;
        if (!wpk_index_affine(program, load->index[dim], &affine) || affine.coefficient[vec] == 0) {
            continue;
        }
        for (int r = stage->rank; r < stage->axis_count; r++) {
            if (affine.coefficient[r] != 0 && stage->axes[r].extent > 1) {
                return true;
            }
        }
    }
    return false;
}

/* Count the loads of each operand in one step of the reduction: vectors if the operand has the
 * vector axis, else elements that are broadcast; one for each position in the tile that the operand
 * depends on. */
static void count_loads(const struct wpk_variant *variant, int g,
                        const struct wpk_register_tile *chosen, bool strided, struct wpk_tile *out)
{
    const struct wpk_program *program = &variant->program;
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    for (struct wpk_loads it = wpk_loads_of(program, stage); wpk_loads_next(&it);) {
        const struct wpk_node *load = it.node;
        bool used[WPK_AXES_MAX] = {false};
        int64_t places = 1;
        bool lanes_axis = false;
        for (int dim = 0; dim < program->tensors[load->tensor].rank; dim++) {
            (void)wpk_reuse_mark_index(program, load->index[dim], used);
        }
        for (int a = 0; a < stage->rank; a++) {
            int root = member->root_axis[a];
            bool lanes = used[a] && root >= 0 && root == chosen->vec;
            places *= !used[a] || root < 0 ? 1
                      : lanes              ? chosen->size[root] / (strided ? 1 : chosen->lanes)
                                           : chosen->size[root];
            lanes_axis = lanes_axis || lanes;
            if (lanes && is_unaligned(program, stage, load, a)) {
                out->unaligned = -1;
            }
        }
        out->loads += places;
        out->live += lanes_axis ? places / (strided ? chosen->lanes : 1) : 0;
        out->unaligned = out->unaligned < 0 ? places : out->unaligned;
    }
}

static double score(const struct wpk_variant *variant, const struct wpk_space_options *options,
                    int g, const struct wpk_register_tile *chosen)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_stage *root = wpk_root_of(variant, g);
    struct wpk_tile tile = {
        .reuses = group->reuse, .lanes = chosen->lanes, .covered = 1, .vectors = 1, .points = 1};
    for (int a = 0; a < root->rank; a++) {
        int64_t step = a == chosen->vec && wpk_register_tile_leaves_out(variant, g, chosen)
                           ? chosen->lanes
                           : chosen->size[a];
        int64_t extent = root->axes[a].extent, computed = (extent + step - 1) / step * step;
        tile.covered *= group->whole[a] ? 1 : (double)extent / (double)computed;
        if (a == chosen->vec) {
            tile.vectors = chosen->size[a] / chosen->lanes;
        } else {
            tile.points *= chosen->size[a];
        }
    }
    struct wpk_register_window window;
    bool strided = group->reuse && reads_strided(variant, group, chosen->vec);
    if (group->reuse) {
        count_loads(variant, g, chosen, strided, &tile);
    }
    if (group->reuse && wpk_register_window_find(variant, g, chosen->vec, chosen->size, &window)) {
        int64_t shared = window.results + window.terms - 1;
        tile.held = tile.vectors * tile.points / window.results * shared;
        tile.live = 0;
        tile.loads = tile.held * (strided ? chosen->lanes : 1) / window.terms + 1;
    }
    return wpk_tile_score(&options->target.machine, &tile);
}

static int compare_tiles(const void *a, const void *b)
{
    const struct wpk_register_tile *x = a, *y = b;
    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return memcmp(x->size, y->size, sizeof(x->size));
}

static void sort_tiles(struct wpk_register_tiles *tiles)
{
    qsort(tiles->tile, (size_t)tiles->count, sizeof(tiles->tile[0]), compare_tiles);
}

/* The worse half makes room: the first vector axis alone may have more tiles than fit. */
static void add_tile(struct wpk_register_tiles *out, const struct wpk_register_tile *chosen)
{
    if (out->count == WPK_REGISTER_TILES_MAX) {
        sort_tiles(out);
        out->count /= 2;
    }
    out->tile[out->count++] = *chosen;
}

static void add_tiles_for(const struct wpk_variant *variant,
                          const struct wpk_space_options *options, int g,
                          const struct wpk_decisions *base, struct wpk_register_tiles *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    const struct wpk_stage *root = wpk_root_of(variant, g);
    int companion[2] = {-1, -1};
    /* The two axes beside the vector axis that may have tiles of more than one: the last two
     * with loops. Others keep their smallest tile. */
    int vec = base->vec;
    int companions = 0;
    for (int i = base->order_count - 1; i >= 0 && companions < 2; i--) {
        if (base->inner[i] != vec) {
            companion[companions++] = base->inner[i];
        }
    }
    const struct wpk_gene *vec_tiles =
        base->vec >= 0 ? &variant->genes[slots->tile[base->vec]] : NULL;
    const struct wpk_gene *first =
        companions > 0 ? &variant->genes[slots->tile[companion[0]]] : NULL;
    const struct wpk_gene *second =
        companions > 1 ? &variant->genes[slots->tile[companion[1]]] : NULL;
    for (int v = 0; v < (vec_tiles == NULL ? 1 : vec_tiles->choice_count); v++) {
        for (int p = 0; p < (first == NULL ? 1 : first->choice_count); p++) {
            for (int q = 0; q < (second == NULL ? 1 : second->choice_count); q++) {
                struct wpk_decisions d = *base;
                struct wpk_register_tile one = {.vec = d.vec, .lanes = d.lanes};
                if (vec_tiles != NULL) {
                    d.tile[d.vec] = vec_tiles->choice[v].value;
                }
                if (first != NULL) {
                    d.tile[companion[0]] = first->choice[p].value;
                }
                if (second != NULL) {
                    d.tile[companion[1]] = second->choice[q].value;
                }
                if (wpk_group_is_legal(variant, options, g, &d, NULL)) {
                    memcpy(one.size, d.tile, (size_t)root->rank * sizeof(d.tile[0]));
                    one.score = score(variant, options, g, &one);
                    add_tile(out, &one);
                }
            }
        }
    }
}

void wpk_register_tiles_rank(const struct wpk_variant *variant,
                             const struct wpk_space_options *options, int g,
                             struct wpk_register_tiles *out)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_slots *slots = &s->slots[g];
    struct wpk_candidate blank = {.gene_count = variant->gene_count};
    out->count = 0;
    for (int v = 0; v < variant->genes[slots->vec].choice_count; v++) {
        for (int n = 0; n < variant->genes[slots->lanes].choice_count; n++) {
            struct wpk_decisions base;
            blank.gene[slots->vec] = (uint8_t)v;
            blank.gene[slots->lanes] = (uint8_t)n;
            wpk_genes_read(variant, &blank, g, &base);
            base.unroll = 1;
            base.split = 0;
            base.panel = false;
            add_tiles_for(variant, options, g, &base, out);
        }
    }
    sort_tiles(out);
}

#define PANEL_SIZES 3

int wpk_gene_sum_add_blocks(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis)
{
    static const int64_t sizes[] = {4, 8, 16, 32, 64, 128};
    int64_t extent = axis < 0 ? 1 : stage->axes[axis].extent;
    bool rounds = stage->reduction == WPK_REDUCE_SUM && wpk_dtype_is_float(stage->accumulator) &&
                  stage->rank < WPK_RANK_MAX && stage->axis_count < WPK_AXES_MAX;
    int gene = -1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && rounds; i++) {
        if (sizes[i] < extent && extent % sizes[i] == 0) {
            gene = gene < 0 ? wpk_gene_list_add(list, true, "%s.sum", group->name) : gene;
            wpk_gene_list_number(list, gene, sizes[i]);
        }
    }
    wpk_gene_list_number(list, gene, WPK_GENE_ALL);
    return gene;
}

/* True if the contraction's axes are those of the root, one to one, and all members that it reads,
 * or that read it, are inlined. All tiles of a block may then be computed before the root's, one
 * k-block after the other. */
static bool may_have_panels(const struct wpk_program *program, const struct wpk_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_member *sum = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[sum->stage];
    uint32_t covered = 0;
    for (int m = 0; m < group->member_count; m++) {
        if (group->member[m].consumer == group->contraction && !group->member[m].inlined) {
            return false;
        }
    }
    for (int m = sum->consumer; m >= 0; m = group->member[m].consumer) {
        if (!group->member[m].inlined) {
            return false;
        }
    }
    for (int d = 0; d < stage->rank; d++) {
        int axis = sum->root_axis[d];
        if (stage->axes[d].extent == 1) {
            continue;
        }
        if (axis < 0 || group->whole[axis] || (covered >> axis & 1) != 0 ||
            root->axes[axis].extent != stage->axes[d].extent) {
            return false;
        }
        covered |= UINT32_C(1) << axis;
    }
    for (int a = 0; a < root->rank; a++) {
        if (root->axes[a].extent > 1 && (covered >> a & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* The largest divisor of `extent` in (most / 2, most], or 0. */
static int64_t divisor_below(int64_t extent, int64_t most)
{
    int64_t size = most < extent ? most : extent;
    while (size > most / 2 && extent % size != 0) {
        size--;
    }
    return size > most / 2 ? size : 0;
}

int wpk_gene_sum_add_panels(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis,
                            const struct wpk_machine *machine)
{
    int64_t extent = axis < 0 ? 1 : stage->axes[axis].extent;
    int64_t term = (int64_t)machine->strip_vectors * machine->lanes_max * 4;
    int gene = -1;
    if (!group->reuse || extent * term < machine->strip_bytes_max || stage->rank == WPK_RANK_MAX ||
        stage->axis_count == WPK_AXES_MAX || !may_have_panels(&list->variant->program, group)) {
        return -1;
    }
    for (int64_t most = machine->cache_bytes[0] / term, i = 0; i < PANEL_SIZES; i++, most *= 2) {
        int64_t size = divisor_below(extent, most);
        if (size > 0 && size < extent) {
            gene = gene < 0 ? wpk_gene_list_add(list, true, "%s.panel", group->name) : gene;
            wpk_gene_list_number(list, gene, size);
        }
    }
    wpk_gene_list_number(list, gene, WPK_GENE_ALL);
    if (gene >= 0) {
        list->variant->genes[gene].optional = true;
    }
    return gene;
}
