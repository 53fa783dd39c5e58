/* SPDX-License-Identifier: Apache-2.0 */
/* Computes operators that are written by name, for tests that know the expected values. */
#ifndef WPK_TESTS_SHORTHAND_CHECK_H
#define WPK_TESTS_SHORTHAND_CHECK_H

#include "ir/program.h"

struct wpk_expanded {
    struct wpk_program program;
    double *value[WPK_TENSORS_MAX]; /* [extent...] of inputs, constants and the output; owned */
};

/* Expand a shorthand, draw its inputs (quarters in [-2, 2]) and compute its output. A failure fails
 * the running cmocka test. JSON is written with ' for ".
 *   owns  caller calls wpk_expanded_fini */
void wpk_expanded_init(struct wpk_expanded *e, const char *json);
void wpk_expanded_fini(struct wpk_expanded *e);
const struct wpk_tensor *wpk_expanded_tensor(const struct wpk_expanded *e, const char *name);
const double *wpk_expanded_values(const struct wpk_expanded *e, const char *name);

/* Check that element `at` of Y is `expected`, within a millionth. */
void wpk_expanded_expect(const struct wpk_expanded *e, int64_t at, double expected);

/* A shorthand that must be refused with `err`, at `field`, with a text that contains `says`. */
struct wpk_shorthand_mistake {
    const char *json;
    wpk_err err;
    const char *field, *says;
};
void wpk_expect_mistakes(const struct wpk_shorthand_mistake *mistakes, size_t count);

#endif
