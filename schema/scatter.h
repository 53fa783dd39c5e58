/* SPDX-License-Identifier: Apache-2.0 */
/* Writes at indices that are data, as ONNX's ScatterElements and ScatterND have them: a copy of a
 * tensor, into which updates are put or joined, one after the other. */
#ifndef WPK_SCHEMA_SCATTER_H
#define WPK_SCHEMA_SCATTER_H

#include "schema/tensor.h"

/* suffix, ONNX's name */
#define WPK_SCATTER_LIST(X)                                                                        \
    X(NONE, "none")                                                                                \
    X(ADD, "add")                                                                                  \
    X(MUL, "mul")                                                                                  \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")

#define WPK_SCATTER_ENUM(suffix, name) WPK_SCATTER_##suffix,
enum wpk_scatter_reduction { WPK_SCATTER_LIST(WPK_SCATTER_ENUM) WPK_SCATTER_COUNT };

/* The reduction of this name; WPK_SCATTER_COUNT: there is none. */
enum wpk_scatter_reduction wpk_scatter_find(const char *name);

struct wpk_scatter {
    int axis; /* of ScatterElements; -1: ScatterND, of which `indices` has the indices last */
    enum wpk_scatter_reduction reduction;
    enum wpk_dtype dtype;         /* of x; f64 for cells (schema/convert.h) but those of i64 */
    enum wpk_dtype indices_dtype; /* i32 or i64; f64 for cells of i32 */
    int rank;
    int64_t extent[WPK_RANK_MAX]; /* of x */
    int indices_rank;
    int64_t indices_extent[WPK_RANK_MAX];
};

/* The elements that the updates have; -1: x, the axis and the indices do not fit each other. */
int64_t wpk_scatter_updates(const struct wpk_scatter *scatter);

/* Compute `out`, which may be x.   shape  see wpk_scatter_updates, which is not -1
 *   errors  WPK_ERANGE an index is out of its axis: `diag` has the element and its value */
wpk_err wpk_scatter_run(const struct wpk_scatter *scatter, const void *x, const void *indices,
                        const void *updates, void *out, struct wpk_diag *diag);

#endif
