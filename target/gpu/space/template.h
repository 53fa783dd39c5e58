/* SPDX-License-Identifier: Apache-2.0 */
/* The templates of groups (target/gpu/space/groups.h): the genes, the rules, the rank and the nest
 * of each, which the table in template.c lists. */
#ifndef WPK_TARGET_GPU_SPACE_TEMPLATE_H
#define WPK_TARGET_GPU_SPACE_TEMPLATE_H

#include "common/cuda_machine.h"
#include "search/gene_list.h"
#include "target/gpu/space/nest.h"
#include "target/gpu/space/tiles.h"

/* A group whose genes are added. */
struct wpk_cuda_adding {
    const struct wpk_program *program;
    struct wpk_cuda_kept *kept;
    const struct wpk_cuda_machine *machine;
    bool strict; /* sums have the terms in their order */
    struct wpk_gene_list *list;
    int number; /* of the group */
    const struct wpk_cuda_group *group;
    const struct wpk_stage *root;
    const char *of; /* the root's tensor, after which genes are named */
};

/* A group of a candidate, with what it decides. */
struct wpk_cuda_decided {
    const struct wpk_space *space;
    const struct wpk_candidate *candidate;
    const struct wpk_variant *variant;
    const struct wpk_cuda_groups *all;
    int number;
    const struct wpk_cuda_group *group;
    struct wpk_cuda_tiles t;
    struct wpk_cuda_machine m;
};

/* Add genes, all of which have choices then. */
void wpk_cuda_genes_pointwise(const struct wpk_cuda_adding *a);
void wpk_cuda_genes_rows(const struct wpk_cuda_adding *a);
void wpk_cuda_genes_shared(const struct wpk_cuda_adding *a);
void wpk_cuda_genes_products(const struct wpk_cuda_adding *a);
void wpk_cuda_genes_joined(const struct wpk_cuda_adding *a);
void wpk_cuda_genes_transforms(const struct wpk_cuda_adding *a);

/* True if the group keeps the device's limits; else *why, unless NULL, is the broken rule. */
bool wpk_cuda_legal_tile(const struct wpk_cuda_decided *d, const char **why);
bool wpk_cuda_legal_rows(const struct wpk_cuda_decided *d, const char **why);
bool wpk_cuda_legal_transforms(const struct wpk_cuda_decided *d, const char **why);
/* The rules of a back end that does not take all nests. */
bool wpk_cuda_legal_alone(const struct wpk_cuda_decided *d, const char **why);

/* Predicted seconds of the group's launch. */
double wpk_cuda_bound_tile(const struct wpk_cuda_decided *d);
double wpk_cuda_bound_rows(const struct wpk_cuda_decided *d);
double wpk_cuda_bound_shared(const struct wpk_cuda_decided *d);
double wpk_cuda_bound_transforms(const struct wpk_cuda_decided *d);

/* Add the entry of one of the group's stages. */
void wpk_cuda_nest_tile(struct wpk_cuda_build *b, int g, int stage);
void wpk_cuda_nest_rows(struct wpk_cuda_build *b, int g, int stage);
void wpk_cuda_nest_joined(struct wpk_cuda_build *b, int g, int stage);
void wpk_cuda_nest_transforms(struct wpk_cuda_build *b, int g, int stage);
/* The same where a block of the rows of group `host` computes the group. */
void wpk_cuda_nest_in_rows(struct wpk_cuda_build *b, int g, int host, int stage);

/* By the template of a group. */

/* Add the genes of group number `a->number`; the group's members of `a` are filled in. */
void wpk_cuda_add_genes(struct wpk_cuda_adding *a);
bool wpk_cuda_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                       int group, const char **why);
/* Where a contraction's blocks compute transforms, too, it has less by what those take apart, and
 * these take that. */
double wpk_cuda_bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      int group);
/* Fill `out` with the nest of a legal candidate.   errors  WPK_ENOSPC a limit of nest/nest.h */
wpk_err wpk_cuda_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      struct wpk_nest *out);

/* The cost of a group's tiles: memory, registers, and seconds by a model. */

void wpk_cuda_read_machine(const struct wpk_space *space, struct wpk_cuda_machine *out);

/* Bytes of shared memory of a block's operands, and of what a block's rows read that it computes.
 */
int64_t wpk_cuda_shared_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t);
int64_t wpk_cuda_row_bytes(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t);
/* Registers of a thread: of a tile, or of a root that ends transforms. */
int64_t wpk_cuda_registers(const struct wpk_cuda_tiles *t);
int64_t wpk_cuda_tile_registers(const struct wpk_stage *root, const struct wpk_cuda_group *group);
/* Terms of the group's reduction; 1 without one. */
double wpk_cuda_terms(const struct wpk_program *program, const struct wpk_cuda_group *group);

/* Predicted seconds of a launch of transforms. */
double wpk_cuda_transform_bound(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                                const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m);

#define WPK_CUDA_THREADS_LEAST WPK_CUDA_WARP /* a warp, unless each thread has one result */

/* The number of the group's first genes whose values need no looking at beside those of the others:
 * with these the candidate is illegal, or another one's kernel, whatever the first are. 0: it is to
 * be looked at. */
int wpk_cuda_skip(const struct wpk_space *space, const struct wpk_candidate *candidate, int group);

#endif
