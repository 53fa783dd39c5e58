/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/template.h"

#include "search/genes.h"

#include <string.h>

/* Each slot is required. */
static const struct {
    void (*genes)(const struct wpk_cuda_adding *a);
    bool (*legal)(const struct wpk_cuda_decided *d, const char **why);
    double (*bound)(const struct wpk_cuda_decided *d);
    void (*nest)(struct wpk_cuda_build *b, int g, int stage);
} templates[] = {
    [WPK_CUDA_POINTWISE] = {wpk_cuda_genes_pointwise, wpk_cuda_legal_tile, wpk_cuda_bound_tile,
                            wpk_cuda_nest_tile},
    [WPK_CUDA_ROWS] = {wpk_cuda_genes_rows, wpk_cuda_legal_rows, wpk_cuda_bound_rows,
                       wpk_cuda_nest_rows},
    [WPK_CUDA_SHARED] = {wpk_cuda_genes_shared, wpk_cuda_legal_tile, wpk_cuda_bound_shared,
                         wpk_cuda_nest_tile},
    [WPK_CUDA_PRODUCTS] = {wpk_cuda_genes_products, wpk_cuda_legal_tile, wpk_cuda_bound_tile,
                           wpk_cuda_nest_tile},
    [WPK_CUDA_WINDOWS] = {wpk_cuda_genes_products, wpk_cuda_legal_tile, wpk_cuda_bound_tile,
                          wpk_cuda_nest_tile},
    [WPK_CUDA_JOINED] = {wpk_cuda_genes_joined, wpk_cuda_legal_tile, wpk_cuda_bound_tile,
                         wpk_cuda_nest_joined},
    [WPK_CUDA_TRANSFORMS] = {wpk_cuda_genes_transforms, wpk_cuda_legal_transforms,
                             wpk_cuda_bound_transforms, wpk_cuda_nest_transforms},
};

void wpk_cuda_add_genes(struct wpk_cuda_adding *a)
{
    int g = a->number;
    a->group = &a->kept->groups.group[g];
    a->root = &a->program->stages[a->group->root];
    a->of = a->program->tensors[a->root->output].name;
    a->kept->first[g] = a->list->variant->gene_count;
    a->kept->guessed[g] = (struct wpk_cuda_guessed_genes){
        .padding = {-1, -1}, .unroll = -1, .copies = -1, .virtual_threads = {-1, -1}};
    a->kept->join[g] = (struct wpk_cuda_join_genes){.together = -1, .behind = -1, .before = -1};
    templates[a->group->kind].genes(a);
    a->kept->first[g + 1] = a->list->variant->gene_count;
}

static void decide(const struct wpk_space *space, const struct wpk_candidate *candidate, int number,
                   struct wpk_cuda_decided *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_groups *all = &wpk_cuda_kept_of(variant)->groups;
    out->space = space;
    out->candidate = candidate;
    out->variant = variant;
    out->all = all;
    out->number = number;
    out->group = &all->group[number];
    wpk_cuda_tiles_read(variant, candidate, number, &out->t);
    wpk_cuda_read_machine(space, &out->m);
}

bool wpk_cuda_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                       int number, const char **why)
{
    struct wpk_cuda_decided d;
    decide(space, candidate, number, &d);
    return (wpk_back_end_takes_all(wpk_genes_back_end(d.variant, candidate)) ||
            wpk_cuda_legal_alone(&d, why)) &&
           templates[d.group->kind].legal(&d, why);
}

double wpk_cuda_bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      int number)
{
    struct wpk_cuda_decided d;
    decide(space, candidate, number, &d);
    return templates[d.group->kind].bound(&d);
}

/* ---- nests */

/* Read what the candidate decides, and which groups' blocks compute others. */
static void read_tiles(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       struct wpk_cuda_build *b)
{
    for (int g = 0; g < b->groups->count; g++) {
        wpk_cuda_tiles_read(variant, candidate, g, &b->tiles[g]);
        b->behind_of[g] = b->before_of[g] = -1;
    }
    for (int g = 0; g < b->groups->count; g++) {
        const struct wpk_cuda_group *group = &b->groups->group[g];
        if (b->tiles[g].behind) {
            b->behind_of[group->behind] = g;
        }
        if (b->tiles[g].before) {
            b->before_of[group->before] = g;
            b->tiles[group->before].staged[0] = false; /* what a step needs is no box */
        }
    }
}

/* The group whose operand is read out of the box that the stage copies, or -1. */
static int find_boxed(const struct wpk_cuda_build *b, int stage)
{
    int found = -1;
    for (int g = 0; g < b->groups->count; g++) {
        found = b->tiles[g].box && b->groups->group[g].box == stage ? g : found;
    }
    return found;
}

/* Readers come after what they read in a program, and before it in a nest. */
wpk_err wpk_cuda_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      struct wpk_nest *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_cuda_build b = {.nest = out, .groups = &wpk_cuda_kept_of(variant)->groups};
    read_tiles(variant, candidate, &b);
    memset(out, 0, sizeof(*out));
    out->program = &variant->program;
    for (int s = variant->program.stage_count - 1; s >= 0 && !out->full; s--) {
        int g = b.groups->group_of[s], boxed = g == WPK_CUDA_INLINED ? find_boxed(&b, s) : -1;
        int host = g < 0 ? -1 : wpk_cuda_find_host(&b, g);
        b.entry_of[s] = out->entry_count;
        if (boxed >= 0) {
            wpk_cuda_add_box(&b, boxed, s);
        } else if (g == WPK_CUDA_INLINED) {
            wpk_nest_add(out, WPK_NEST_STAGE, s)->inlined = true;
        } else if (host >= 0) {
            wpk_cuda_nest_in_rows(&b, g, host, s);
        } else if (g >= 0) {
            templates[b.groups->group[g].kind].nest(&b, g, s);
        }
    }
    return out->full ? WPK_ENOSPC : WPK_OK;
}
