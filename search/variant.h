/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of a space: combinations of algorithms with an order of axes. */
#ifndef WPK_SEARCH_VARIANT_H
#define WPK_SEARCH_VARIANT_H

#include "search/space.h"

/* Whether there can be a space at all.
 *   errors  WPK_EUNSUPPORTED with the reason */
wpk_err wpk_variants_check(const struct wpk_program *program, struct wpk_diag *diag);

/* List the variants of space->program, which has its sites, and derive none. Of one site all
 * choices are listed; of several those combinations whose expected operations are at most twice
 * those of the best one, best first, behind direct evaluation. `written`: only with the axes as
 * they are written.
 *   owns    fills space->variants; caller calls wpk_space_fini
 *   errors  WPK_ENOMEM */
wpk_err wpk_variants_list(struct wpk_space *space, bool written);

/* Fill `order` with the axes of a tensor, `last` behind all others; as they are if it is -1.
 *   shape   order [rank] */
void wpk_variant_order(int rank, int last, int *order);

/* Derive a listed variant; its state is then WPK_VARIANT_DERIVED, or WPK_VARIANT_NONE after a
 * failure; where memory ran out it stays listed. Inputs get zero borders (halos) where the layout
 * is free, and staging copies where it is fixed.
 *   errors  WPK_EUNSUPPORTED, WPK_ENOSPC, WPK_ENOMEM */
wpk_err wpk_variant_derive(const struct wpk_space *space, struct wpk_variant *variant);

/* True if the contiguous dimension of every tensor that the variant permutes is shorter than a
 * vector: such layouts are part of the space, and not worth a constructed candidate. */
bool wpk_variant_is_short(const struct wpk_space *space, int variant);

/* The choice of a site as a gene: its name is "algorithm" where the space has one site, else
 * "algorithm.SITE". */
struct wpk_variant_algorithm {
    char gene[WPK_GENE_NAME_MAX];
    char value[WPK_SITE_TEXT_MAX];
};

/* Fill `out` with the algorithm of a site; false when there are not so many. A variant without
 * sites has one "algorithm", "direct". */
bool wpk_variant_algorithm(const struct wpk_variant *variant, int site,
                           struct wpk_variant_algorithm *out);

/* The layout of a boundary tensor of a derived variant, in terms of the original tensor's axes.
 *   shape   tensor: id in the original program
 *   errors  WPK_ENOENT the variant does not use the tensor */
wpk_err wpk_variant_boundary(const struct wpk_variant *variant, const struct wpk_program *original,
                             int tensor, struct wpk_tensor_type *out);

/* Forget what was derived, but not what is listed of the variant: it has no candidates. */
void wpk_variant_drop(struct wpk_variant *variant);
/* Remove those variants of the space that are not kept; the others move up.
 *   shape   keep [variant_count] */
void wpk_variants_keep(struct wpk_space *space, const bool *keep);
void wpk_variant_fini(struct wpk_variant *variant);

#endif
