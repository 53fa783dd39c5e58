/* SPDX-License-Identifier: Apache-2.0 */
/* Pins in the asker's names. Spaces are derived of canonical programs (op/canonical.h), so their
 * genes speak of t0, t1, ... and a0, a1, ...; who asked says Y.tile.k. */
#ifndef WPK_SEARCH_PIN_H
#define WPK_SEARCH_PIN_H

#include "common/buf.h"
#include "op/canonical.h"

/* Append to `name` and `value` what a pin of the asker's is called in the space of the canonical
 * program, e.g. Y_acc_m.block.ty=4 is t2_acc_m.block.ta2=4 where Y_acc has become t2. A tensor, or
 * an axis of the tensor's stage or of one before it, is looked for among the asker's names first;
 * what is not found there stays as it is: a canonical name, or an axis that a derivation added.
 *
 *   shape   asked: the program that `map` was made from
 *   errors  WPK_ENOMEM. Whether there is such a gene, wpk_space_pin says
 */
wpk_err wpk_pin_canonical(const struct wpk_program *asked, const struct wpk_canonical_map *map,
                          const char *gene, const char *choice, struct wpk_buf *name,
                          struct wpk_buf *value);

#endif
