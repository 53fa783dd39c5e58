/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a program: SHA-256 over its canonical form (canonical.h) as text. */
#ifndef WPK_IR_CANONICAL_FINGERPRINT_H
#define WPK_IR_CANONICAL_FINGERPRINT_H

#include "ir/canonical/canonical.h"

#define WPK_FINGERPRINT_SIZE 65 /* 64 hexadecimal digits and a NUL */
#define WPK_EXTENTS_MAX 64      /* axes in `extents`; later ones are left out */
#define WPK_EXTENTS_SIZE (WPK_EXTENTS_MAX * 12)

struct wpk_fingerprint {
    char exact[WPK_FINGERPRINT_SIZE];
    char family[WPK_FINGERPRINT_SIZE]; /* extents and borders erased, strides and
                                          dilations kept */
    /* "1,64,56,56,64,3,3": extents of the axes of all stages, in the order of the family's
     * canonical form. Programs of one family have the same axes at the same places. */
    char extents[WPK_EXTENTS_SIZE];
};

/* Fill the fingerprint of a valid program. Two programs have the same `exact` if and only if their
 * canonical forms print the same.
 *
 *   errors  as wpk_program_canonical
 */
wpk_err wpk_fingerprint(const struct wpk_program *program, struct wpk_fingerprint *out);
/* Do what wpk_fingerprint and wpk_program_canonical do, in the time of one.
 *   owns    caller calls wpk_program_fini on `canonical` */
wpk_err wpk_program_identity(const struct wpk_program *program, struct wpk_program *canonical,
                             struct wpk_binding *binding, struct wpk_fingerprint *out);

#endif
