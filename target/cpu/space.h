/* SPDX-License-Identifier: Apache-2.0 */
/* The space of CPUs: groups of stages (search/plan.h) and their genes (search/genes.h). */
#ifndef WPK_TARGET_CPU_SPACE_H
#define WPK_TARGET_CPU_SPACE_H

#include "search/genes.h"

/* These fill slots of the table of CPUs (search/rules.h). */

wpk_err wpk_cpu_derive(const struct wpk_space *space, struct wpk_variant *variant);
wpk_err wpk_cpu_repair(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *candidate);
wpk_err wpk_cpu_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                          int *filled);
int wpk_cpu_gene_at(const struct wpk_variant *variant, int step);
bool wpk_cpu_complete(const struct wpk_space *space, int step, struct wpk_candidate *candidate);

/* True if the candidate keeps the rules for this group. */
bool wpk_cpu_is_legal_group(const struct wpk_space *space, int group,
                            const struct wpk_candidate *candidate);

#endif
