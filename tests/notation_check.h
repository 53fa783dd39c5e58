/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the notation: equations with tensors, and texts that must read back. */
#ifndef WPK_TESTS_NOTATION_CHECK_H
#define WPK_TESTS_NOTATION_CHECK_H

#include "ir/notation/notation.h"

#define WPK_GIVEN_MAX 6

struct wpk_given {
    const char *text;
    const char *tensors[WPK_GIVEN_MAX]; /* each "name type", then NULL */
};

wpk_err wpk_given_parse(const struct wpk_given *given, struct wpk_program *out,
                        struct wpk_diag *diag);

/* The next three functions fail the running cmocka test on an error. */
void wpk_given_parse_good(const struct wpk_given *given, struct wpk_program *out);
/* The same, with constants: the inputs whose names begin with W or B. */
void wpk_given_parse_constants(const struct wpk_given *given, struct wpk_program *out);
/* The whole form of `program`, which must read back as itself.   owns  caller frees */
char *wpk_print_again(const struct wpk_program *program);

#endif
