/* SPDX-License-Identifier: Apache-2.0 */
/* A space made up for tests: a few variants with ordered and unordered genes, where some candidates
 * are illegal, and a time for each candidate. A test links this file instead of space.c. */
#ifndef WPK_TESTS_FAKE_SPACE_H
#define WPK_TESTS_FAKE_SPACE_H

#include "search/space.h"

struct wpk_fake_space_options {
    int variant_count;
    int gene_count;   /* of each variant */
    int choice_count; /* of each gene, at most */
    uint64_t seed;    /* of the times */
};

/*   owns    caller calls wpk_space_fini */
wpk_err wpk_fake_space_init(const struct wpk_fake_space_options *options, struct wpk_space *out);

/* The time of a candidate relative to a reference; negative when the candidate fails. The best
 * candidate of the space has a time somewhat below 1. */
double wpk_fake_space_time(uint64_t seed, const struct wpk_candidate *candidate);

#endif
