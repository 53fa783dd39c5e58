/* SPDX-License-Identifier: Apache-2.0 */
/* A derived program against its original: for tests of derivations. All fail the running cmocka
 * test, with both programs printed. */
#ifndef WPK_TESTS_DERIVE_CHECK_H
#define WPK_TESTS_DERIVE_CHECK_H

#include "common/rng.h"
#include "op/program.h"

/* The program's output tensor. */
int wpk_check_output(const struct wpk_program *program);

/* Equal references, on random values within what sums in another order may differ by.
 *
 *   shape   order [rank of the output]: dimension d of the derived program's inputs and output of
 *           that rank is dimension order[d] of the original's; NULL: they lie as there */
void wpk_check_derived(const struct wpk_program *original, const struct wpk_program *derived,
                       const int *order, struct wpk_rng *rng);

/* Valid, and text and back is the same text. */
void wpk_check_whole(const struct wpk_program *program);

#endif
