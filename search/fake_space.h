/* SPDX-License-Identifier: Apache-2.0 */
/* A space made up for tests: a few variants with ordered and unordered genes, some points of which
 * are illegal, and a time for each point. It stands in for space.c: link one or the other. */
#ifndef WPK_SEARCH_FAKE_SPACE_H
#define WPK_SEARCH_FAKE_SPACE_H

#include "search/space.h"

struct wpk_fake_space_options {
    int variant_count;
    int gene_count;   /* of each variant */
    int choice_count; /* of each gene, at most */
    uint64_t seed;    /* of the landscape */
};

/*   owns    caller calls wpk_space_fini */
wpk_err wpk_fake_space_init(const struct wpk_fake_space_options *options, struct wpk_space *out);

/* The time of a point, relative to a reference; negative when the candidate fails. The best point
 * of the space is somewhat below 1. */
double wpk_fake_space_time(uint64_t seed, const struct wpk_candidate *candidate);

#endif
