/* SPDX-License-Identifier: Apache-2.0 */
/* Machines for tests: one of vectors of 4 elements, 8 registers and little room for code, and CPUs
 * with other limits. */
#ifndef WPK_TESTS_FAKE_TARGET_H
#define WPK_TESTS_FAKE_TARGET_H

#include "search/space.h"

/* Options of a space for such a device. */
struct wpk_space_options wpk_target_fake_options(const char *layouts, int threads);

/* The rules of CPUs, by which sums of all lengths may have panels. */
struct wpk_target wpk_target_fake_panels(void);

#endif
