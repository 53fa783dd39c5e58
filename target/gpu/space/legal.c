/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/template.h"

#include "target/gpu/space/moves.h"

bool wpk_cuda_legal_transforms(const struct wpk_cuda_decided *d, const char **why)
{
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    const struct wpk_stage *root = &d->variant->program.stages[group->root];
    bool all = group->j < 0 || t->block[1] >= root->axes[group->j].extent;
    if (t->threads > d->m.block_threads_max || (t->threads < WPK_CUDA_THREADS_LEAST && !all)) {
        return wpk_illegal(why, "too many threads in a block, or less than a warp");
    }
    if (wpk_cuda_tile_registers(root, group) * t->threads > d->m.registers_max) {
        return wpk_illegal(why, "the tiles do not fit the registers");
    }
    return !t->staged[0] ||
           wpk_cuda_copied_bytes(d->space, d->candidate, d->number) <= d->m.block_shared_max ||
           wpk_illegal(why, "what is transformed does not fit the shared memory");
}

/* The axis inside of a row, or the only one that its reduction runs over, is as long as the row has
 * threads. */
static bool has_threads(const struct wpk_stage *stage, int first, int64_t threads)
{
    return stage->axis_count == first + 1 && stage->axes[first].extent >= threads;
}

/* Several rows of a block have threads of their own. The registers of a row have to be dealt
 * out alike then: either all that the row reads is there, or all lies in shared memory. */
bool wpk_cuda_legal_rows(const struct wpk_cuda_decided *d, const char **why)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_groups *all = d->all;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    if (t->rows == 0) {
        return wpk_cuda_legal_tile(d, why);
    }
    bool alike = has_threads(&program->stages[group->root], group->row_axes, t->share);
    int registers = 0, shared = 0;
    for (int g = 0; g < all->count; g++) {
        const struct wpk_cuda_group *part = &all->group[g];
        bool own = group->in_row[g] && wpk_cuda_is_in_registers(program, all, group, g);
        registers += own;
        shared += group->in_row[g] && !own;
        alike = alike && (!own || part->sum < 0 ||
                          has_threads(&program->stages[part->sum], group->row_axes, t->share));
    }
    alike = alike && (registers == 0 || shared == 0);
    if (t->threads > d->m.block_threads_max) {
        return wpk_illegal(why, "too many threads in a block");
    }
    if (t->rows > 1 && !alike) {
        return wpk_illegal(why,
                           "a block of several rows has each along one axis, whose threads it has");
    }
    return wpk_cuda_row_bytes(d->variant, group, t) <= d->m.block_shared_max ||
           wpk_illegal(why, "what the rows read does not fit the shared memory");
}

/* In parts over blocks the threads' steps divide the terms: a part ends where the next begins. */
static bool legal_share(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const char **why)
{
    if (t->share == 1) {
        return true;
    }
    int64_t terms = program->stages[group->sum].axes[group->k].extent / t->parts;
    return (t->share <= terms &&
            (t->parts == 1 || terms % (t->share * wpk_cuda_term_vector(program, group, t)) == 0)) ||
           wpk_illegal(why, "the threads that share terms do not divide them");
}

/* A depth above 1 is legal only if operands are staged, and whole steps make up the terms. */
static bool legal_depth(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const char **why)
{
    int staged = 0;
    if (t->depth == 1) {
        return true;
    }
    for (int c = 0; c < group->operand_count; c++) {
        staged += t->staged[c];
    }
    if (t->before) {
        return wpk_illegal(why, "an operand is transformed, not copied");
    }
    if (staged == 0 || (group->i < 0 && group->j < 0)) {
        return wpk_illegal(why, "no operand is staged in blocks");
    }
    double steps = wpk_cuda_terms(program, group) /
                   (double)(wpk_cuda_step_terms(program, group, t) * t->parts);
    return (program->stages[group->sum].axes[group->k].extent % t->step == 0 &&
            steps >= (double)t->depth) ||
           wpk_illegal(why, "the steps do not divide the terms, or are fewer than the depth");
}

/* Four elements are moved or read together from multiples of 16 bytes on. */
static bool legal_copying(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                          const char **why)
{
    bool copied = false;
    for (int c = 0; c < group->operand_count; c++) {
        copied = copied || wpk_cuda_is_copied(group, t, c);
        int64_t row = t->step + t->padding[c];
        if (t->padding[c] > 0 && row % WPK_CUDA_VECTOR_ELEMENTS != 0 &&
            (t->vectors[c] || t->padding[c] % WPK_CUDA_VECTOR_ELEMENTS == 0)) {
            return wpk_illegal(why, "the padding lets rows begin at no multiples of 16 bytes");
        }
    }
    if (t->async && !copied) {
        return wpk_illegal(why, "no operand is copied as it is");
    }
    return group->sum < 0 || t->box || t->unrolled == 1 ||
           (t->step % t->unrolled == 0 && wpk_cuda_may_unroll(t, t->unrolled)) ||
           wpk_illegal(why,
                       "terms that are written out do not divide a step, or are too much code");
}

/* A block that computes transforms, too, has whole tiles; one that reads windows out of a box has
 * the other operand in shared memory, too. */
static bool legal_joins(const struct wpk_cuda_decided *d, const char **why)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    int64_t registers = wpk_cuda_registers(t);
    if (t->box && !t->staged[1 - group->box_copy]) {
        return wpk_illegal(why, "beside a window's box the other operand is staged, too");
    }
    if (!t->behind && !t->before) {
        return true;
    }
    if (t->order > 1) {
        return wpk_illegal(why, "blocks that transform have one order");
    }
    if (t->before) {
        const struct wpk_cuda_group *of = &d->all->group[group->before];
        registers += wpk_cuda_tile_registers(&program->stages[of->root], of);
    }
    if (registers > WPK_CUDA_THREAD_REGISTERS || registers * t->threads > d->m.registers_max) {
        return wpk_illegal(why, "what is transformed does not fit the registers");
    }
    if (t->behind && (wpk_cuda_find_fit(group, t, 0) < 0 || wpk_cuda_find_fit(group, t, 1) < 0)) {
        return wpk_illegal(why,
                           "a block has no whole tiles of what is transformed behind the products");
    }
    return t->parts == 1 || !t->behind ||
           t->together == program->stages[group->root].axes[group->whole].extent ||
           wpk_illegal(why, "parts over blocks have all products at a time");
}

/* Of a back end that does not take all nests: each thread adds up all terms of its elements, and
 * what is copied is neither ahead nor spaced out (target/halide/halide.h). */
bool wpk_cuda_legal_alone(const struct wpk_cuda_decided *d, const char **why)
{
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    bool shared_out = t->parts > 1 || (t->rows == 0 && t->share > 1), spaced = false;
    for (int g = 0; g < d->all->count && t->rows > 0; g++) {
        shared_out =
            shared_out ||
            (group->in_row[g] && wpk_cuda_is_in_registers(&d->variant->program, d->all, group, g));
    }
    for (int c = 0; c < group->operand_count; c++) {
        spaced = spaced || (t->staged[c] && wpk_cuda_spacing(group, t, c) > 0);
    }
    if (shared_out) {
        return wpk_illegal(why, "the back end adds up no parts of blocks or threads");
    }
    return (t->depth == 1 && !t->async && !spaced) ||
           wpk_illegal(why, "the back end copies nothing ahead, and nothing spaced out");
}

bool wpk_cuda_legal_tile(const struct wpk_cuda_decided *d, const char **why)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    bool least = t->thread[0] * t->thread[1] == 1;
    if (t->block[0] % t->thread[0] != 0 || t->block[1] % t->thread[1] != 0) {
        return wpk_illegal(why, "a thread's tile does not divide its block's");
    }
    if (t->thread[0] % t->virtual_threads[0] != 0 || t->thread[1] % t->virtual_threads[1] != 0) {
        return wpk_illegal(why, "virtual threads do not divide a thread's tile");
    }
    if (t->threads > d->m.block_threads_max || (t->threads < WPK_CUDA_THREADS_LEAST && !least)) {
        return wpk_illegal(why, "too many threads in a block, or less than a warp");
    }
    if (wpk_cuda_registers(t) > WPK_CUDA_THREAD_REGISTERS ||
        wpk_cuda_registers(t) * t->threads > d->m.registers_max) {
        return wpk_illegal(why, "the tiles do not fit the registers");
    }
    if (t->parts > 1 &&
        program->stages[group->sum].axes[group->k].extent % (t->parts * t->step) != 0) {
        return wpk_illegal(why, "the steps do not divide a part's terms");
    }
    if (t->order > 1 &&
        program->stages[group->root].axes[group->i].extent % (t->order * t->block[0]) != 0) {
        return wpk_illegal(why, "groups of blocks do not divide the rows");
    }
    return legal_joins(d, why) && legal_share(program, group, t, why) &&
           legal_depth(program, group, t, why) && legal_copying(group, t, why) &&
           (wpk_cuda_shared_bytes(program, group, t) <= d->m.block_shared_max ||
            wpk_illegal(why, "the operands do not fit the shared memory"));
}

/* ---- what needs no looking at */

/* True if the gene has not its first choice. */
static bool is_set(const struct wpk_candidate *candidate, int gene)
{
    return gene >= 0 && candidate->gene[gene] != 0;
}

int wpk_cuda_skip(const struct wpk_space *space, const struct wpk_candidate *candidate, int number)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    const struct wpk_cuda_join_genes *join = &kept->join[number];
    struct wpk_cuda_tiles t;
    if (join->together < 0 && join->before < 0) {
        return 0;
    }
    wpk_cuda_tiles_read(variant, candidate, number, &t);
    if (is_set(candidate, join->together) && !t.box && (!t.behind || t.before)) {
        int gene = group->kind == WPK_CUDA_WINDOWS ? kept->staged[number] + group->box_copy
                                                   : join->together;
        return gene - kept->first[number];
    }
    if (t.box && !t.staged[1 - group->box_copy]) {
        return kept->staged[number] - kept->first[number];
    }
    for (int c = group->operand_count - 1; c >= 0 && (t.behind || t.before); c--) {
        if (is_set(candidate, kept->staged[number] + c)) {
            return kept->staged[number] + c - kept->first[number];
        }
    }
    return 0;
}
