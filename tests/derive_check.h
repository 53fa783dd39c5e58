/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a derived program with its original, for tests of derivations. A failed check fails the
 * running cmocka test and prints both programs. */
#ifndef WPK_TESTS_DERIVE_CHECK_H
#define WPK_TESTS_DERIVE_CHECK_H

#include "common/rng.h"
#include "ir/program.h"

/* Check that both programs compute the same on random values, within what sums in another order
 * may differ by.
 *
 *   shape   order [rank of the output]: dimension d of the derived program's inputs and output of
 *           that rank is dimension order[d] of the original's; NULL: they lie as there */
void wpk_check_derived(const struct wpk_program *original, const struct wpk_program *derived,
                       const int *order, struct wpk_rng *rng);

/* The same with tensors as in the original, and another tolerance, relative to the terms. */
void wpk_check_close(const struct wpk_program *original, const struct wpk_program *derived,
                     double tolerance, struct wpk_rng *rng);

/* Check that the program is valid, and that its text reads back as the same text. */
void wpk_check_whole(const struct wpk_program *program);

#endif
