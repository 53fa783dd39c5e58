/* SPDX-License-Identifier: Apache-2.0 */
/* The check of tensors whose elements are indices, before a kernel or the interpreter reads at
 * them. */
#ifndef WPK_SCHEMA_INDEX_CHECK_H
#define WPK_SCHEMA_INDEX_CHECK_H

#include "common/err.h"
#include "schema/tensor.h"

/* Check that all elements are in [low, high].
 *   shape   data [count] of an integer type; the cells of another integer type than i64 are f64
 *   errors  WPK_ERANGE: `diag`, which may be NULL, has the name, the element and its value */
WPK_MUST_CHECK wpk_err wpk_index_check(const char *name, enum wpk_dtype dtype, const void *data,
                                       int64_t count, int64_t low, int64_t high,
                                       struct wpk_diag *diag);

#endif
