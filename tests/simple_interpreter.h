/* SPDX-License-Identifier: Apache-2.0 */
/* A second interpreter of programs, for tests of the first: it walks the expression at every point
 * and is too simple to be wrong in the same way. */
#ifndef WPK_TESTS_SIMPLE_INTERPRETER_H
#define WPK_TESTS_SIMPLE_INTERPRETER_H

#include "op/program.h"

/* Of the tensors that stages write; NULL for all others. */
struct wpk_simple_values {
    double *value[WPK_TENSORS_MAX];     /* [extent...], owned */
    double *magnitude[WPK_TENSORS_MAX]; /* [extent...], owned; sums of absolute values */
};

/* Run every stage.
 *
 *   shape   given [tensor_count]: of inputs and constants their elements, else ignored
 *   owns    caller calls wpk_simple_values_fini
 */
void wpk_simple_run(const struct wpk_program *program, const double *const *given,
                    struct wpk_simple_values *out);
/* The same with every floating result rounded to its type, sums term by term. Functions that are
 * not correctly rounded (op/direct.h) must not occur. */
void wpk_simple_run_rounded(const struct wpk_program *program, const double *const *given,
                            struct wpk_simple_values *out);
void wpk_simple_values_fini(struct wpk_simple_values *values);

#endif
