/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces and groups of programs on a GPU, for the tests of target/gpu. */
#ifndef WPK_TESTS_CUDA_SPACE_H
#define WPK_TESTS_CUDA_SPACE_H

#include "target/gpu/space/tiles.h"

/* Parse a program in notation; a failure fails the test. */
void wpk_cuda_space_parse(const char *text, struct wpk_program *out);

/* Parse and normalize a program, and find its groups. */
void wpk_cuda_space_group(const char *text, bool strict, struct wpk_program *program,
                          struct wpk_cuda_groups *out);

/* Derive the space of a program on an emulated sm_90 of 132 multiprocessors.
 *   owns    caller calls wpk_space_fini */
void wpk_cuda_space_derive(const char *text, bool strict, struct wpk_space *out);

/* The first variant whose algorithm has the word in its text; the test fails if there is none. */
int wpk_cuda_space_variant(const struct wpk_space *space, const char *algorithm);

/* Set genes of the candidate, "Y.block.i=32 Y.depth=2"; the test fails if one is not there. */
void wpk_cuda_space_set(const struct wpk_space *space, const char *genes,
                        struct wpk_candidate *candidate);
/* A candidate of the variant whose other genes have their first choice. */
struct wpk_candidate wpk_cuda_space_candidate(const struct wpk_space *space, int variant,
                                              const char *genes);

/* The stage that writes this tensor; the test fails if there is none. */
int wpk_cuda_space_stage(const struct wpk_program *program, const char *tensor);

#endif
