/* SPDX-License-Identifier: Apache-2.0 */
/* A second interpreter of programs, for tests of ir/reference/reference.c. It walks the expression
 * at every point and is too simple to be wrong in the same way. */
#ifndef WPK_TESTS_SIMPLE_INTERPRETER_H
#define WPK_TESTS_SIMPLE_INTERPRETER_H

#include "ir/program.h"

/* The tensors that stages write; other elements are NULL. */
struct wpk_simple_values {
    double *value[WPK_TENSORS_MAX];     /* [extent...], owned */
    double *magnitude[WPK_TENSORS_MAX]; /* [extent...], owned; sums of absolute values */
};

/* Run every stage.
 *
 *   shape   given [tensor_count]: elements of inputs and constants; other entries are ignored
 *   owns    caller calls wpk_simple_values_fini
 */
void wpk_simple_run(const struct wpk_program *program, const double *const *given,
                    struct wpk_simple_values *out);
/* Run every stage, with every floating result rounded to its type and sums taken term by term.
 * Functions that are not correctly rounded (ir/reference/reference.h) must not occur. */
void wpk_simple_run_rounded(const struct wpk_program *program, const double *const *given,
                            struct wpk_simple_values *out);
void wpk_simple_values_fini(struct wpk_simple_values *values);

#endif
