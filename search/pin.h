/* SPDX-License-Identifier: Apache-2.0 */
/* Translating pins from the names of a job's program to the names of its canonical form.
 *
 * Spaces are derived from canonical programs (ir/canonical/canonical.h), so their genes name
 * tensors t0, t1, ... and axes a0, a1, ...; a job says Y.tile.k. */
#ifndef WPK_SEARCH_PIN_H
#define WPK_SEARCH_PIN_H

#include "common/buf.h"
#include "ir/canonical/canonical.h"

/* Append to `name` and `value` the pin `gene`=`choice` in the names of the canonical program: where
 * Y_acc has become t2, Y_acc_m.block.ty=4 becomes t2_acc_m.block.ta2=4. The names of `asked`, its
 * tensors and the axes of the tensor's stage and of earlier ones, are translated; other names stay:
 * they are canonical already, or a derivation added them. wpk_space_pin says if the gene exists.
 *
 *   shape   asked: the program that `map` was made from
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_pin_canonical(const struct wpk_program *asked, const struct wpk_canonical_map *map,
                          const char *gene, const char *choice, struct wpk_buf *name,
                          struct wpk_buf *value);

#endif
