/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/tiles.h"

#include "common/cuda_machine.h"
#include "search/genes.h"
#include "target/gpu/space/moves.h"

#define UNROLLED_MAX 1024 /* products of a thread that are written out */
/* Of a group, without those that are found by number: also the order of blocks, and the depth. */
#define GENES_MAX (WPK_CUDA_STAGED + WPK_CUDA_OPERANDS_MAX + 2)

const struct wpk_cuda_kept *wpk_cuda_kept_of(const struct wpk_variant *variant)
{
    const struct wpk_structure *structure = variant->plan;
    return structure->kind;
}

/* Threads beside those along i and j: of a root that ends transforms, those along other axes, whose
 * last tile is not whole. A block of threads has all of these axes. */
static int64_t find_tiles_beside(const struct wpk_stage *root, const struct wpk_cuda_group *group)
{
    int64_t threads = 1;
    for (int a = 0; a < root->rank; a++) {
        bool beside = a != group->i && a != group->j;
        threads *= beside && root->axes[a].extent % group->tile[a] != 0
                       ? wpk_cuda_tiles_along(root, group, a)
                       : 1;
    }
    return threads;
}

bool wpk_cuda_may_be_async(const struct wpk_cuda_group *group)
{
    bool may = false;
    for (int c = 0; c < group->operand_count; c++) {
        may = may || group->operand[c].is_move;
    }
    return may;
}

int wpk_cuda_along(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t, int operand)
{
    bool transformed = t->before && operand == group->before_copy;
    return transformed ? group->before_along : group->operand[operand].along;
}

bool wpk_cuda_has_rows_of_terms(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                                int operand)
{
    return t->staged[operand] && !(t->box && operand == group->box_copy) &&
           wpk_cuda_along(group, t, operand) == group->k;
}

bool wpk_cuda_is_copied(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                        int operand)
{
    return t->staged[operand] && group->operand[operand].is_move &&
           !(t->before && operand == group->before_copy);
}

int wpk_cuda_find_fit(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                      int along_j)
{
    int i = 0;
    while (i < group->fit_count[along_j] && group->fit[along_j][i] != t->block[along_j]) {
        i++;
    }
    return i < group->fit_count[along_j] ? i : -1;
}

int64_t wpk_cuda_step_terms(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t)
{
    const struct wpk_stage *sum = &program->stages[group->sum];
    int64_t terms = t->step;
    for (int a = sum->rank; a < sum->axis_count && t->box; a++) {
        terms *= a != group->k ? sum->axes[a].extent : 1;
    }
    return terms;
}

int64_t wpk_cuda_width(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t, int c)
{
    int along = wpk_cuda_along(group, t, c);
    int64_t neighbours = along == group->k ? t->unrolled : t->piece[along != group->i];
    int64_t row = along == group->k ? t->step + t->padding[c] : 0;
    int64_t width = t->box && c == group->box_copy ? 1 : WPK_CUDA_VECTOR_ELEMENTS;
    while (neighbours % width != 0 || row % width != 0) {
        width /= 2;
    }
    return width;
}

/* All banks hand out a read of each at a time. The lanes that read them together lie along j, then
 * along i, then along the axis `whole`: those along i or j are apart by a piece, or its rows of
 * terms, and those along `whole` should go on where these end. */
int64_t wpk_cuda_spacing(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t, int c)
{
    int64_t width = wpk_cuda_width(group, t, c), lanes = WPK_CUDA_BANKS / width;
    int64_t threads[] = {t->block[0] / t->thread[0], t->block[1] / t->thread[1]};
    int along_j = group->operand[c].tiled == group->j;
    bool terms = wpk_cuda_along(group, t, c) == group->k;
    int64_t row = t->step + t->padding[c];
    if (t->together == 1 || t->box || !group->operand[c].planes ||
        threads[0] * threads[1] >= lanes) {
        return 0;
    }
    int64_t apart = t->piece[along_j] * (terms ? row : 1) / width;
    int64_t plane = t->block[along_j] * (terms ? row : t->step) / width;
    int64_t left = (threads[along_j] * apart - plane) % lanes;
    return (left < 0 ? left + lanes : left) * width;
}

/* Threads that are neighbours read neighbours in shared memory: four elements each along an axis
 * that is contiguous there, one along an axis whose operand has rows of terms. So they do in global
 * memory, where rows that are no multiples of four elements are not accessed 16 bytes at a time. */
static int64_t first_virtual_threads(const struct wpk_stage *root,
                                     const struct wpk_cuda_group *group,
                                     const struct wpk_cuda_tiles *t, int along_j)
{
    int axis = along_j ? group->j : group->i;
    bool terms = false, along = false;
    if (group->sum < 0) {
        bool odd_rows = along_j && root->axes[axis].extent % WPK_CUDA_VECTOR_ELEMENTS != 0;
        return odd_rows ? t->thread[along_j] : 1;
    }
    for (int c = 0; c < group->operand_count; c++) {
        terms = terms || (t->staged[c] && wpk_cuda_along(group, t, c) == group->k);
        along = along || (t->staged[c] && wpk_cuda_along(group, t, c) == axis);
    }
    bool odd = t->thread[along_j] % 2 != 0; /* then no two of a piece are one access */
    bool window =
        t->box && axis == group->operand[group->box_copy].tiled; /* nor those of windows */
    int64_t piece = (terms && !along) || odd || window ? 1 : WPK_CUDA_VECTOR_ELEMENTS;
    return group->operand_count > 0 && t->thread[along_j] % piece == 0 ? t->thread[along_j] / piece
                                                                       : 1;
}

bool wpk_cuda_may_unroll(const struct wpk_cuda_tiles *t, int64_t terms)
{
    return terms * t->thread[0] * t->thread[1] <= UNROLLED_MAX;
}

/* All terms of a step, or as many as divide it. */
static int64_t first_unrolled(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    int64_t unrolled = t->step;
    bool all = group->operand_count > 0 && !t->box; /* a box has the window's loops inside */
    for (int c = 0; c < group->operand_count; c++) {
        all = all && t->staged[c];
    }
    if (!all) {
        return t->step > 0 ? 1 : 0;
    }
    while (unrolled > 1 && (!wpk_cuda_may_unroll(t, unrolled) || t->step % unrolled != 0)) {
        unrolled--;
    }
    return unrolled;
}

/* Rows of terms whose number is a multiple of eight would begin in the same bank every four rows
 * or fewer. With four more elements eight rows begin in banks of their own, at multiples of 16
 * bytes. */
void wpk_cuda_guess(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                    struct wpk_cuda_tiles *t)
{
    bool copied = false;
    for (int c = 0; c < group->operand_count; c++) {
        bool fours = t->step % WPK_CUDA_VECTOR_ELEMENTS == 0;
        t->padding[c] =
            fours && wpk_cuda_has_rows_of_terms(group, t, c) ? WPK_CUDA_VECTOR_ELEMENTS : 0;
        copied = copied || wpk_cuda_is_copied(group, t, c);
    }
    t->unrolled = first_unrolled(group, t);
    t->async = copied && t->depth > 1;
    for (int a = 0; a < 2; a++) {
        t->virtual_threads[a] = first_virtual_threads(root, group, t, a);
    }
}

bool wpk_cuda_is_in_registers(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                              const struct wpk_cuda_group *host, int g)
{
    bool some = false;
    for (int other = 0; other < all->count; other++) {
        const struct wpk_cuda_group *part = &all->group[other];
        some = some || (host->in_row[other] && part->kind == WPK_CUDA_SHARED &&
                        program->stages[part->root].rank == host->row_axes);
    }
    const struct wpk_cuda_group *part = &all->group[g];
    return some && (part->sum < 0 || part->kind == WPK_CUDA_SHARED) &&
           program->stages[part->root].rank == host->row_axes;
}

int64_t wpk_cuda_vector(int64_t extent, int64_t threads)
{
    bool whole = extent % WPK_CUDA_VECTOR_ELEMENTS == 0;
    return whole && extent >= WPK_CUDA_VECTOR_ELEMENTS * threads ? WPK_CUDA_VECTOR_ELEMENTS : 1;
}

int64_t wpk_cuda_term_vector(const struct wpk_program *program, const struct wpk_cuda_group *group,
                             const struct wpk_cuda_tiles *t)
{
    int64_t extent = program->stages[group->sum].axes[group->k].extent / t->parts;
    return t->share > 1 && group->rows ? wpk_cuda_vector(extent, t->share) : 1;
}

static int64_t value_of(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                        int gene, int64_t none)
{
    return gene < 0 ? none : variant->genes[gene].choice[candidate->gene[gene]].value;
}

/* Read the genes of joined transforms. Transforms before products compute at a time all that the
 * products need. A block that transforms copies its operands, as widely as it can. */
static void read_joins(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       int number, const int64_t *staged, struct wpk_cuda_tiles *out)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    const struct wpk_cuda_join_genes *gene = &kept->join[number];
    out->behind = value_of(variant, candidate, gene->behind, 0) != 0;
    out->before = value_of(variant, candidate, gene->before, 0) != 0;
    for (int c = 0; c < group->operand_count; c++) {
        out->box = out->box || staged[c] == WPK_CUDA_STAGE_BOX;
    }
    out->together = out->before ? variant->program.stages[group->root].axes[group->whole].extent
                    : out->behind || out->box ? value_of(variant, candidate, gene->together, 1)
                                              : 1;
    for (int c = 0; c < group->operand_count && (out->behind || out->before); c++) {
        out->staged[c] = true;
        out->vectors[c] =
            group->operand[c].is_vector_move && !(out->before && c == group->before_copy);
    }
}

int wpk_cuda_joined_to(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       int g)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    int found = -1;
    for (int h = 0; h < kept->groups.count && kept->groups.group[g].kind == WPK_CUDA_TRANSFORMS;
         h++) {
        const struct wpk_cuda_group *group = &kept->groups.group[h];
        bool behind = group->behind == g && value_of(variant, candidate, kept->join[h].behind, 0);
        bool before = group->before == g && value_of(variant, candidate, kept->join[h].before, 0);
        found = behind || before ? h : found;
    }
    return found;
}

void wpk_cuda_tiles_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                         int number, struct wpk_cuda_tiles *out)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    int64_t value[GENES_MAX] = {0};
    int first = kept->first[number];
    const struct wpk_cuda_guessed_genes *guessed = &kept->guessed[number];
    const struct wpk_cuda_join_genes *gene = &kept->join[number];
    int joins = (gene->together >= 0) + (gene->behind >= 0) + (gene->before >= 0);
    int count = kept->first[number + 1] - first - guessed->count - joins;
    bool reduces = group->sum >= 0, shares = group->kind == WPK_CUDA_SHARED;
    bool transforms = group->kind == WPK_CUDA_TRANSFORMS;
    int staged = transforms ? WPK_CUDA_THREAD_I : WPK_CUDA_STAGED + group->ordered;
    WPK_ASSERT(count <= GENES_MAX);
    for (int i = 0; i < count; i++) {
        value[i] = variant->genes[first + i].choice[candidate->gene[first + i]].value;
    }
    *out = (struct wpk_cuda_tiles){.block = {value[WPK_CUDA_BLOCK_I], value[WPK_CUDA_BLOCK_J]},
                                   .thread = {value[WPK_CUDA_THREAD_I], value[WPK_CUDA_THREAD_J]},
                                   .step = reduces ? value[WPK_CUDA_STEP] : 0,
                                   .parts = reduces ? value[WPK_CUDA_PARTS] : 1,
                                   .share = shares ? value[WPK_CUDA_SHARE] : 1,
                                   .order = group->ordered ? value[WPK_CUDA_ORDER] : 1,
                                   .rows = reduces ? 0 : value[WPK_CUDA_BLOCK_ROWS]};
    for (int c = 0; c < group->operand_count; c++) {
        out->staged[c] = value[staged + c] != 0;
        out->vectors[c] = value[staged + c] == WPK_CUDA_VECTOR_ELEMENTS;
    }
    out->depth = shares ? 1 : value[staged + group->operand_count];
    out->depth = out->depth > 0 ? out->depth : 1;
    read_joins(variant, candidate, number, &value[staged], out);
    if (transforms) {
        out->rows = 0;
        out->thread[0] = group->i < 0 ? 1 : group->tile[group->i];
        out->thread[1] = group->j < 0 ? 1 : group->tile[group->j];
    }
    for (int a = 0; a < 2; a++) {
        out->virtual_threads[a] = value_of(variant, candidate, guessed->virtual_threads[a], 1);
        out->piece[a] = out->thread[a] / out->virtual_threads[a];
    }
    for (int c = 0; c < group->operand_count; c++) {
        bool rows = wpk_cuda_has_rows_of_terms(group, out, c);
        out->padding[c] = rows ? value_of(variant, candidate, guessed->padding[c], 0) : 0;
    }
    out->unrolled = value_of(variant, candidate, guessed->unroll, reduces);
    out->async = value_of(variant, candidate, guessed->copies, 0) != 0;
    out->share = out->rows > 0 ? value[WPK_CUDA_ROW_THREADS] : out->share;
    out->threads =
        out->share * (out->rows > 0 ? out->rows
                                    : out->block[0] / out->thread[0] *
                                          (out->block[1] / out->thread[1]) * out->together);
    if (transforms) {
        out->threads *= find_tiles_beside(&variant->program.stages[group->root], group);
    }
}

bool wpk_cuda_advance(const struct wpk_variant *variant, int first, int count,
                      struct wpk_candidate *candidate)
{
    for (int i = first; i < first + count; i++) {
        if (++candidate->gene[i] < variant->genes[i].choice_count) {
            return true;
        }
        candidate->gene[i] = 0;
    }
    return false;
}
