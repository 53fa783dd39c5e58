/* SPDX-License-Identifier: Apache-2.0 */
/* The check of tensors whose elements are indices, before a kernel or the interpreter reads at
 * them. */
#ifndef WPK_SCHEMA_INDEX_CHECK_H
#define WPK_SCHEMA_INDEX_CHECK_H

#include "common/err.h"
#include "schema/tensor.h"

#define WPK_INDEX_AXES_MAX 16

/* Elements first + sum(stride[a] * i) with each i in [0, extent[a]) of a tensor, row-major, and the
 * values that they may have. */
struct wpk_index_bound {
    int64_t low, high;
    int64_t first;
    int axis_count;
    int64_t stride[WPK_INDEX_AXES_MAX];
    int64_t extent[WPK_INDEX_AXES_MAX]; /* >= 1 */
};

/* True if the elements are those of a tensor of `count`. */
bool wpk_index_bound_fits(const struct wpk_index_bound *bound, int64_t count);

/* Check that all elements of the bound are in [low, high].
 *   shape   data: the tensor, of an integer type; the cells of another integer type than i64 are
 *           f64
 *   errors  WPK_ERANGE: `diag`, which may be NULL, has the name, the element and its value */
wpk_err wpk_index_check(const char *name, enum wpk_dtype dtype, const void *data,
                        const struct wpk_index_bound *bound, struct wpk_diag *diag);

#endif
