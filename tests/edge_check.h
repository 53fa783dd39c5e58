/* SPDX-License-Identifier: Apache-2.0 */
/* Building equations by both back ends of CPUs, and comparing the kernels with the interpreter, on
 * values of inputs that each equation names. WPK_TEST_SEED draws other candidates and values. */
#ifndef WPK_TESTS_EDGE_CHECK_H
#define WPK_TESTS_EDGE_CHECK_H

#include "tests/kernel_check.h"

struct wpk_edge {
    const char *op;
    const char *tensors; /* NAME=TYPE, separated by spaces */
    const char *values;  /* letters of tests/kernel_check.h */
};

/* Fail the running cmocka test, or skip it where kernels of AVX2 do not run. */
void wpk_check_edges(const struct wpk_edge *edges, int count);
/* The same for an instruction set up to AVX2; units > 0: by which outputs may be off in the last
 * place, beside the least number. */
void wpk_check_edges_within(const struct wpk_edge *edges, int count, wpk_cpu_flags flags,
                            double units);

/* The same step by step. False: kernels of AVX2 do not run here. */
bool wpk_edges_begin(struct wpk_kernels *batch, struct wpk_rng *rng);
/* Add a constructed candidate, and for some programs a drawn one. False: an input does not matter:
 * there is none. */
bool wpk_edge_add(struct wpk_kernels *batch, const struct wpk_edge *edge,
                  const struct wpk_program *program, struct wpk_rng *rng);

#endif
