/* SPDX-License-Identifier: Apache-2.0 */
/* Removing candidates that cannot be in an accuracy class, before any of them is built. */
#ifndef WPK_SEARCH_PRUNE_H
#define WPK_SEARCH_PRUNE_H

#include "schema/accuracy.h"
#include "search/space.h"

/* Remove the variants, and the block sizes of sums, whose expected error the class does not admit;
 * variants that wait to be derived are looked at then. Expected errors are off by up to a tenth, so
 * that a candidate close to the limit may be kept or removed wrongly. The most accurate variant and
 * block size always stay. Call it before the first candidate is drawn. */
void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy);

#endif
