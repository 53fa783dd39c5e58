/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of a space: the algorithms and layouts that apply to a program. */
#ifndef WPK_SEARCH_VARIANT_H
#define WPK_SEARCH_VARIANT_H

#include "search/space.h"

/* Derive every variant that applies: algorithm x order of axes. Inputs get zero borders (halos)
 * where the layout is free, and staging copies where it is fixed.
 *   owns    fills space->variants; caller calls wpk_space_fini
 *   errors  WPK_EUNSUPPORTED no variant applies; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_variants_derive(const struct wpk_program *program, struct wpk_space *space,
                            struct wpk_diag *diag);

/* The layout of a boundary tensor of a variant, in terms of the original tensor's axes.
 *   shape   tensor: id in the original program
 *   errors  WPK_ENOENT the variant does not use the tensor */
wpk_err wpk_variant_boundary(const struct wpk_variant *variant, const struct wpk_program *original,
                             int tensor, struct wpk_tensor_type *out);

void wpk_variant_fini(struct wpk_variant *variant);

#endif
